//! Arbitrary messages of a copy: for the fuzzer (`fuzz/` at the root of the project) and for tests
//! with its corpus.

use super::message::{ToReceiver, ToSender};
use std::path::{Component, Path};

/// Parses bytes as messages. A message that parses must parse again after it is written, and an
/// accepted name must lead into the copy.
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

    /// No file of the corpus makes the parser panic, change a message on its round trip, or accept
    /// a name that leads outside the copy.
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
