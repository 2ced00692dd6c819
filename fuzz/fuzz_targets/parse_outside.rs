//! Bytes against everything that reads names, addresses, keys and frames of strangers.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bellwire_testkit::fuzz::parse_outside(bytes));
