//! Planted faults that the checkers must catch.
//!
//! Only tests of the checkers turn on the feature `canaries`. Without it no fault is planted, and
//! the calls compile to nothing. With it, the environment variable `BELLWIRE_CANARY` names the one
//! fault of this process.

use std::sync::OnceLock;

/// Whether this fault is planted.
#[inline(always)]
pub fn planted(fault: &str) -> bool {
    cfg!(feature = "canaries") && named() == Some(fault)
}

/// The fault of this process.
fn named() -> Option<&'static str> {
    static NAME: OnceLock<Option<String>> = OnceLock::new();
    NAME.get_or_init(|| std::env::var("BELLWIRE_CANARY").ok()).as_deref()
}
