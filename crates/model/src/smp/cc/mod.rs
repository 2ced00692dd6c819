//! The coherence unit: an L2 directory keeps the caches of four processors coherent (S-04, S-32;
//! SMP paper, section 2).
//!
//! The paper names neither protocol nor messages. This one has the MESI states and a directory at
//! each line's *home*, which serves one request per line at a time. docs/model-smp.md has the table
//! of states and messages. Requests (GetS, GetM, Put) go on channel 0; everything else goes on
//! channel 1 and is always accepted, so no cycle of waits can form.
//!
//! ```text
//!   message   kinds, channels, packets of at most 16 DW
//!   cache     one line in one cache: states and answers
//!   home      one line in its home's directory
//!   unit      all lines of a node: accesses, evictions, messages
//!   checker   one writer or many readers, and every read returns the last write
//!   explore   every reachable state of a line, in small systems
//!   tester    random accesses over a network without time
//! ```

pub mod cache;
pub mod checker;
pub mod explore;
pub mod home;
pub mod message;
pub mod tester;
pub mod unit;

/// A fault planted to test the checkers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// A cache acknowledges an invalidation and keeps the line.
    KeepsInvalidated,
    /// The home forgets a node that got a shared copy.
    ForgetsSharer,
    /// The home does not store the data that an owner gives back.
    LosesWriteback,
    /// The home answers one invalidation too early.
    CountsTooFew,
    /// The home never answers a Put.
    SilentToPut,
}

/// The most nodes.
pub const NODES: usize = 4;

/// A message in a state that has no transition for it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} in state {state}; the protocol has a hole")]
pub struct Unexpected {
    /// The message.
    pub what: String,
    /// The state.
    pub state: String,
}
