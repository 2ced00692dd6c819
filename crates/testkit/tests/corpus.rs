//! Replays the fuzzers' corpus.

use bellwire_testkit::fuzz::parse_outside;
use std::fs;
use std::path::Path;

/// No file of the corpus makes a parser of names, addresses, keys or strangers' frames panic. What
/// is understood is understood again when it is written.
#[test]
fn outsiders_stand_the_corpus() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/parse_outside");
    let mut count = 0;
    for file in fs::read_dir(&folder).unwrap() {
        parse_outside(&fs::read(file.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count > 10, "{} has {count} files", folder.display());
}
