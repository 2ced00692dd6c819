//! Planted faults that the checkers must catch.
//!
//! Only tests of the checkers turn on the feature `canaries`. Without it no fault is planted, and
//! the calls compile to nothing. With it, the environment variable `BELLWIRE_CANARY` names the one
//! fault of this process.

/// Whether this fault is planted.
#[cfg(not(feature = "canaries"))]
#[inline(always)]
pub const fn planted(_fault: &str) -> bool {
    false
}

/// Whether this fault is planted.
#[cfg(feature = "canaries")]
pub fn planted(fault: &str) -> bool {
    static NAME: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    NAME.get_or_init(|| std::env::var("BELLWIRE_CANARY").ok()).as_deref() == Some(fault)
}
