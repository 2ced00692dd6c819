//! Bytes against the parser of the messages of `bellwire copy`. The command is no library, so its
//! files are part of this program.
#![no_main]

#[allow(dead_code, reason = "the command has more uses for it")]
#[path = "../../crates/cli/src/copy/message.rs"]
mod message;
#[path = "../../crates/cli/src/copy/nonsense.rs"]
mod nonsense;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nonsense::parse(bytes));
