//! What the fuzzers found worth keeping goes through what the fuzzers run.

use bellwire_testkit::fuzz::parse_outside;
use std::fs;
use std::path::Path;

/// No file of the corpus makes a reader of names, addresses, keys or frames of strangers panic, or understand what it would write
/// otherwise.
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
