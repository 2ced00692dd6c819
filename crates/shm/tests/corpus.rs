//! What the fuzzers found worth keeping goes through what the fuzzers run.

use bellwire_shm::fuzz::parse_strangers;
use std::fs;
use std::path::Path;

/// No file of the corpus makes a reader of control messages or names of other processes panic, or understand what it would write
/// otherwise.
#[test]
fn strangers_stand_the_corpus() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/parse_neighbours");
    let mut count = 0;
    for file in fs::read_dir(&folder).unwrap() {
        parse_strangers(&fs::read(file.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count > 10, "{} has {count} files", folder.display());
}
