//! Bytes against every parser of the interface's formats, and the re-cutter.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bellwire_simulator::fuzz::parse_formats(bytes));
