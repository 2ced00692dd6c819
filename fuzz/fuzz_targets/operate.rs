//! Sequences of operations against a pair of endpoints.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bellwire_simulator::fuzz::operate(bytes));
