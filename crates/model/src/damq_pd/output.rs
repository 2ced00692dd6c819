//! The output word: the descriptor that is being read, and the register at the end (D-06).

use super::word::{Read, Way};

/// What the read side does.
#[derive(Clone, Copy, Debug, Default)]
pub struct Output {
    /// The list that is being read.
    pub run: Option<(u8, Way)>,
    /// The pointer to the next word is not there yet (DAMQ-PF).
    pub pointer_due: bool,
    /// The word that leaves in the next cycle.
    pub register: Option<Read>,
}
