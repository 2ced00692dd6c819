//! Replays the fuzzers' corpus.

use bellwire_shm::fuzz::parse_neighbours;
use std::fs;
use std::path::Path;

/// No file of the corpus makes a parser of control messages or socket names panic. What is
/// understood is understood again when it is written.
#[test]
fn parsers_stand_the_corpus() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/parse_neighbours");
    let mut count = 0;
    for file in fs::read_dir(&folder).unwrap() {
        parse_neighbours(&fs::read(file.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count > 10, "{} has {count} files", folder.display());
}
