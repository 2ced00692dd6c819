//! Replays the corpus of the fuzzer, and random bytes, through the fuzz target.

use bellwire_keys::fuzz::handshake;
use proptest::collection::vec;
use proptest::prelude::*;
use std::path::Path;

/// No file of the corpus makes a handshake panic, or a frame open that was not sealed.
#[test]
fn handshakes_stand_the_corpus() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/handshake");
    let mut count = 0;
    for file in std::fs::read_dir(&folder).expect("the corpus") {
        handshake(&std::fs::read(file.expect("a file").path()).expect("a file"));
        count += 1;
    }
    assert!(count > 10, "{} has {count} files", folder.display());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    /// The same for random operations, also after a handshake.
    #[test]
    fn handshakes_stand_any_operations(kind in any::<u8>(), bytes in vec(any::<u8>(), 0..400)) {
        handshake(&[&[kind][..], &bytes].concat());
        let whole = [kind, 1, 0, 15, 0, 14, 0, 15, 0, 14, 0, 15, 0];
        handshake(&[&whole[..], &bytes].concat());
    }
}
