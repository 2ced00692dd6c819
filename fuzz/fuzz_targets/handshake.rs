//! Sequences of operations against handshakes and sealed frames of two functions with a key.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bellwire_keys::fuzz::handshake(bytes));
