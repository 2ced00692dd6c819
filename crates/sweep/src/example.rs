//! A sweep that explains itself.

/// A file that explains every line.
pub const EXAMPLE: &str = include_str!("example.toml");
