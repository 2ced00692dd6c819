//! Bytes against the parsers of control messages and names from other processes of this host.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bellwire_shm::fuzz::parse_neighbours(bytes));
