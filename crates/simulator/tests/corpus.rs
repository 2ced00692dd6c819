//! Replays the corpus of the fuzzers, and random bytes, through the fuzz targets with the stable
//! compiler.

use std::fs;
use std::path::Path;

use bellwire_simulator::fuzz::{operate, parse_formats, parse_frames};
use proptest::collection::vec;
use proptest::prelude::*;

fn replay(target: &str, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut count = 0;
    for file in fs::read_dir(&folder).unwrap() {
        run(&fs::read(file.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count > 0, "{} is empty", folder.display());
}

/// No file of the corpus makes a parser of frames panic, or accept what its writer would write
/// differently.
#[test]
fn parsers_stand_the_corpus() {
    replay("parse_frames", parse_frames);
}

/// The same for the formats of the interface, chain descriptors and their re-cutting among them.
// shows: C-28, C-29
#[test]
fn formats_stand_the_corpus() {
    replay("parse_formats", parse_formats);
}

/// No file of the corpus makes two endpoints panic, exceed a limit or lose count of a packet.
#[test]
fn endpoints_stand_the_corpus() {
    replay("operate", operate);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(3000) })]

    /// The same for random bytes.
    #[test]
    fn parsers_stand_any_bytes(bytes in vec(any::<u8>(), 0..300)) {
        parse_frames(&bytes);
        parse_formats(&bytes);
    }

    /// The same for random sequences of operations, which begin with a link between the two.
    #[test]
    fn endpoints_stand_any_operations(bytes in vec(any::<u8>(), 0..600)) {
        operate(&[&[0, 6, 12, 7, 12, 6, 12, 7][..], &bytes].concat());
    }
}
