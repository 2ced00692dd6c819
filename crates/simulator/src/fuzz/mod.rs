//! What the fuzzers do with bytes, and what the tests do with those that the fuzzers found (`fuzz/` at the root of the project).

mod formats;
mod frames;
mod operations;

pub use formats::parse_formats;
pub use frames::parse_frames;
pub use operations::operate;
