//! Bytes against all parsers of strangers' names, addresses, keys and frames.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bellwire_testkit::fuzz::parse_outside(bytes));
