//! Bytes against the parsers of packets of `bellwire-rdma` and of messages of `bellwire-rdmacm`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    bellwire_rdma::parse(bytes);
    bellwire_rdmacm::parse(bytes);
});
