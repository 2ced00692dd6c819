//! Access for the fuzzers to the parsers of other processes' bytes (`fuzz/` at the root of the
//! project).

use crate::control::Control;
use crate::name;

/// Feeds bytes to two parsers: of records from control sockets, and of names in the kernel's table
/// of sockets, which any process may bind. What is understood must be understood again when it is
/// written.
pub fn parse_neighbours(bytes: &[u8]) {
    if let Some(message) = Control::from_bytes(bytes) {
        let (record, length) = message.to_bytes();
        assert_eq!(Control::from_bytes(&record[..length]), Some(message));
    }
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Some(found) = name::parse_line(text)
    {
        assert!(!found.scope.contains('/') && !found.job.contains('/'), "{found:?}");
    }
}
