//! Bytes against every parser of frames.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bellwire_simulator::fuzz::parse_frames(bytes));
