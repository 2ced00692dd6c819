//! Bytes against what reads the control messages and the names of other processes of this host.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bellwire_shm::fuzz::parse_strangers(bytes));
