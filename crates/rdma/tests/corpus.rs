//! What the fuzzer has found interesting so far is read again, and cut after each byte.

/// No input of the corpus makes the parser panic, whole or cut, and what is a packet comes back.
#[test]
fn the_corpus_is_harmless() {
    bellwire_testkit::cases::read_corpus("parse_rdma", bellwire_rdma::parse);
}
