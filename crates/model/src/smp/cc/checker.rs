//! Coherence, checked at every step: one writer or many readers, and every read returns the last
//! write.

use super::cache::{CacheLine, State};

/// A violation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Incoherent {
    /// One node may write while another may read.
    #[error("line {line}: one node may write while another has a copy: {states:?}")]
    TwoOwners {
        /// The line.
        line: u32,
        /// Its state in each node.
        states: Vec<State>,
    },
    /// A read did not return the last write.
    #[error("line {line}: node {node} reads {read}, and {written} was written last")]
    Stale {
        /// The line.
        line: u32,
        /// The reader.
        node: u8,
        /// The value that it read.
        read: u64,
        /// The value last written.
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

/// The last write to each line, over the whole system.
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

    /// A value never written before.
    pub fn fresh(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Notes a write.
    pub fn wrote(&mut self, line: u32, value: u64) {
        self.written[line as usize] = value;
    }

    /// Checks a read.
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
