//! What coherence means, checked at every step: one writer or many readers, and every read gives what was written last.

use super::cache::{CacheLine, State};

/// A law that was broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Incoherent {
    /// Somebody may write while another may read.
    #[error("line {line}: one node may write while another has a copy: {states:?}")]
    TwoOwners {
        /// The line.
        line: u32,
        /// Its states, node by node.
        states: Vec<State>,
    },
    /// A read gave something else than what was written last.
    #[error("line {line}: node {node} reads {read}, and {written} was written last")]
    Stale {
        /// The line.
        line: u32,
        /// Who read.
        node: u8,
        /// What it got.
        read: u64,
        /// What it should have got.
        written: u64,
    },
}

/// At most one node may write a line, and then no other may read it.
///
/// # Errors
/// [`Incoherent::TwoOwners`].
pub fn check_copies<'a>(
    line: u32,
    copies: impl Iterator<Item = &'a CacheLine> + Clone,
) -> Result<(), Incoherent> {
    let writers = copies.clone().filter(|copy| copy.state.is_writable()).count();
    let readers = copies.clone().filter(|copy| copy.state.is_readable()).count();
    if writers > 1 || (writers == 1 && readers > 1) {
        let states = copies.map(|copy| copy.state).collect();
        return Err(Incoherent::TwoOwners { line, states });
    }
    Ok(())
}

/// What was written last to each line, over the whole system.
#[derive(Clone, Debug)]
pub struct Golden {
    written: Vec<u64>,
    next: u64,
}

impl Golden {
    /// Lines of zeros.
    pub fn new(lines: usize) -> Golden {
        Golden { written: vec![0; lines], next: 1 }
    }

    /// A value that was never written before.
    pub fn fresh(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// A write has been done.
    pub fn wrote(&mut self, line: u32, value: u64) {
        self.written[line as usize] = value;
    }

    /// A read has been done.
    ///
    /// # Errors
    /// [`Incoherent::Stale`].
    pub fn read(&self, node: u8, line: u32, read: u64) -> Result<(), Incoherent> {
        let written = self.written[line as usize];
        if read == written {
            return Ok(());
        }
        Err(Incoherent::Stale { line, node, read, written })
    }
}
