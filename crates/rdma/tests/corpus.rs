//! What the fuzzer has found interesting so far is read again, and cut after each byte.

use std::path::Path;

/// No input of the corpus makes the parser panic, whole or cut, and what is a packet comes back.
#[test]
fn the_corpus_is_harmless() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/parse_rdma");
    let mut inputs = 0;
    for entry in std::fs::read_dir(folder).expect("the corpus") {
        let bytes = std::fs::read(entry.expect("an entry").path()).expect("an input");
        for end in 0..=bytes.len() {
            bellwire_rdma::parse(&bytes[..end]);
        }
        inputs += 1;
    }
    assert!(inputs >= 20, "{inputs} inputs");
}
