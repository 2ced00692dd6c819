//! The output stage: the descriptor being read, and the output register (D-06).

use super::word::{Read, Way};

/// State of the read side.
#[derive(Clone, Copy, Debug, Default)]
pub struct Output {
    /// The descriptor being read.
    pub run: Option<Run>,
    /// The pointer to the next word is there. Used only by DAMQ-PF; elsewhere it is always there.
    pub pointer_here: bool,
    /// The word that leaves in the next cycle.
    pub register: Option<Read>,
}

/// A descriptor being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its port.
    pub port: u8,
    /// Its list.
    pub way: Way,
    /// The address of its next word. The head of its list stays at its first word until its last
    /// has left.
    pub address: u16,
}
