//! Shared-memory rings: the only place that names atomics.
//!
//! | module | what |
//! |---|---|
//! | [`memory`] | bytes that others may change: owned ([`memory::Memory`]) and seen ([`memory::View`]) |

pub mod memory;
