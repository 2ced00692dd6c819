//! The output word: the descriptor that is being read, and the register at the end (D-06).

use super::word::{Read, Way};

/// What the read side does.
#[derive(Clone, Copy, Debug, Default)]
pub struct Output {
    /// The descriptor that is being read.
    pub run: Option<Run>,
    /// The pointer to the next word is there; of no meaning where it always is (all but DAMQ-PF).
    pub pointer_here: bool,
    /// The word that leaves in the next cycle.
    pub register: Option<Read>,
}

/// A descriptor that is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its port.
    pub port: u8,
    /// Its list.
    pub way: Way,
    /// Where its next word lies. The head of its list stays at its first word until its last has left.
    pub address: u16,
}
