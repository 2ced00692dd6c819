//! Conformance suite, crash tests, hostile peers and canaries.

pub mod conformance;
pub mod crash;
#[cfg(feature = "steps")]
pub mod hostile;
pub mod loopback;

/// Plants the fault that `BELLWIRE_CANARY` names, if any, in the state machines of the protocol too, which look for it in the
/// calling thread. (The other crates ask the environment themselves.)
#[cfg(feature = "canaries")]
pub fn plant_from_environment() -> Option<bellwire_protocol::canary::Planted> {
    let name = std::env::var("BELLWIRE_CANARY").ok()?;
    // Once per process: a test binary that was started to fail.
    Some(bellwire_protocol::canary::plant(Box::leak(name.into_boxed_str())))
}
