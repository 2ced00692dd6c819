//! What the fuzzer does with messages of a copy (`fuzz/` at the root of the project), and the tests with what it found.

use super::message::{ToReceiver, ToSender};
use std::path::{Component, Path};

/// Gives bytes to what reads messages. What is understood must be understood again when it is written, and a name that is taken leads
/// nowhere but into the copy.
pub fn parse(bytes: &[u8]) {
    if let Ok(message) = serde_json::from_slice::<ToReceiver>(bytes) {
        let text = serde_json::to_vec(&message).expect("plain data");
        assert_eq!(serde_json::from_slice::<ToReceiver>(&text).ok().as_ref(), Some(&message));
        if let ToReceiver::Entry(entry) = message
            && entry.leads_inside()
        {
            let copy = Path::new("/some/copy");
            let path = copy.join(&entry.path);
            assert!(path.starts_with(copy), "{path:?}");
            assert!(!path.components().any(|part| part == Component::ParentDir), "{path:?}");
        }
    }
    if let Ok(message) = serde_json::from_slice::<ToSender>(bytes) {
        let text = serde_json::to_vec(&message).expect("plain data");
        assert_eq!(serde_json::from_slice::<ToSender>(&text).ok(), Some(message));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No file of the corpus makes the reader of messages panic, understand what it would write otherwise, or take a name that leads
    /// elsewhere.
    #[test]
    fn messages_stand_the_corpus() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/parse_copy");
        let mut count = 0;
        for file in std::fs::read_dir(&folder).expect("the corpus") {
            parse(&std::fs::read(file.expect("an entry").path()).expect("a file"));
            count += 1;
        }
        assert!(count > 10, "{} has {count} files", folder.display());
    }
}
