//! The coherence unit: an L2 directory keeps the caches of four processors coherent (S-04, S-32; SMP paper, section 2).
//!
//! The paper names neither protocol nor messages. This one has the states of MESI and a directory at each line's *home*, which serves
//! one request for a line at a time; docs/model-smp.md has the table of states and messages. Requests (GetS, GetM, Put) go on
//! channel 0; everything else goes on channel 1 and is always taken, so that no circle of waits can close.
//!
//! ```text
//!   message   what is said, on which channel, as a packet of at most 16 DW
//!   cache     one line in one cache: states and what they answer
//!   home      one line in its home's directory
//!   unit      all lines of a node: accesses, evictions, messages
//!   checker   one writer or many readers, and every read gives what was written last
//!   explore   every state that a line can get into, with the smallest of systems
//!   tester    random accesses over a network without time
//! ```

pub mod cache;
pub mod checker;
pub mod explore;
pub mod home;
pub mod message;
pub mod tester;
pub mod unit;

/// A mistake that is planted to see whether the checkers notice it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// A cache says that it gave a line up, and keeps it.
    KeepsInvalidated,
    /// The home forgets who got a shared copy.
    ForgetsSharer,
    /// The home does not store what an owner gives back.
    LosesWriteback,
    /// The home answers before the last sharer has given up its copy.
    CountsTooFew,
    /// The home never answers a Put.
    SilentToPut,
}

/// Most nodes.
pub const NODES: usize = 4;

/// What cannot happen did: a message in a state that has no answer to it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} in state {state}; the protocol has a hole")]
pub struct Unexpected {
    /// The message.
    pub what: String,
    /// The state.
    pub state: String,
}
