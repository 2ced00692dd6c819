//! Faults that `tests/canaries.rs` plants to show that its checks notice them. Without the feature
//! `canaries` there are none.

/// Whether the fault `name` is planted. The environment names it, because the check runs in another
/// process.
#[cfg(feature = "canaries")]
pub fn planted(name: &str) -> bool {
    std::env::var("BELLWIRE_CANARY").is_ok_and(|planted| planted == name)
}

/// Always `false`: this build contains no planted fault.
#[cfg(not(feature = "canaries"))]
pub const fn planted(_name: &str) -> bool {
    false
}
