//! Waiting for completions.

use std::time::Duration;

/// How long [`Wait::Adaptive`] spins before it sleeps.
pub const ADAPTIVE_SPIN: Duration = Duration::from_micros(50);

/// How to wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Wait {
    /// Polls until something comes: lowest latency, one whole processor.
    Spin,
    /// Spins for [`ADAPTIVE_SPIN`], then sleeps as [`Wait::Block`].
    #[default]
    Adaptive,
    /// Sleeps in the kernel until something comes: near zero processor time.
    Block,
}
