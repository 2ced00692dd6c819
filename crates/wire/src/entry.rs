//! Entries of the source and destination lists of a descriptor (C-28), and the moves they ask for.
//!
//! ```text
//!   0                  8                  16
//!   +------------------+------------------+
//!   |   byte address   | length in bytes  |     least significant byte first
//!   +------------------+------------------+
//! ```
//!
//! An entry may be empty. It must end within the 40-bit address space, so that packets can carry
//! anything a descriptor asks for.

use core::fmt;
use core::iter::FusedIterator;

use crate::recut::recut;
use crate::{ADDRESS_LIMIT, WireError};

/// Size of an entry.
pub const ENTRY_BYTES: usize = 16;

/// Most bytes that one descriptor moves: what 40 bits count.
pub const MAX_TRANSFER_BYTES: u64 = ADDRESS_LIMIT - 1;

const _: () = assert!(ENTRY_BYTES == 2 * size_of::<u64>());

/// A block of memory that is contiguous in the global address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// Global address of the first byte.
    pub address: u64,
    /// Number of bytes.
    pub length: u64,
}

impl Entry {
    fn parse(bytes: &[u8; ENTRY_BYTES]) -> Self {
        let (words, _) = bytes.as_chunks();
        Self { address: u64::from_le_bytes(words[0]), length: u64::from_le_bytes(words[1]) }
    }

    /// The bytes of the entry.
    pub(crate) fn emit(self, target: &mut [u8; ENTRY_BYTES]) {
        let (words, _) = target.as_chunks_mut();
        words[0] = self.address.to_le_bytes();
        words[1] = self.length.to_le_bytes();
    }

    fn check(self) -> Result<(), WireError> {
        let Self { address, length } = self;
        match address.checked_add(length) {
            Some(end) if end <= ADDRESS_LIMIT => Ok(()),
            _ => Err(WireError::AddressOutOfRange { address, length }),
        }
    }
}

/// A borrowed list of entries, either values or the bytes of a descriptor. Two lists are equal if
/// their entries are.
#[derive(Clone, Copy)]
pub struct Entries<'a>(Form<'a>);

#[derive(Clone, Copy)]
enum Form<'a> {
    Values(&'a [Entry]),
    Bytes(&'a [[u8; ENTRY_BYTES]]),
}

impl<'a> Entries<'a> {
    pub(crate) const fn from_bytes(bytes: &'a [[u8; ENTRY_BYTES]]) -> Self {
        Self(Form::Bytes(bytes))
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        match self.0 {
            Form::Values(values) => values.len(),
            Form::Bytes(bytes) => bytes.len(),
        }
    }

    /// True if there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entries in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Entry> + Clone + use<'a> {
        let entries = *self;
        (0..entries.len()).map(move |index| entries.at(index))
    }

    /// The lengths in order, as [`recut`] takes them.
    pub fn lengths(&self) -> impl ExactSizeIterator<Item = u64> + Clone + use<'a> {
        self.iter().map(|entry| entry.length)
    }

    /// Bytes in all entries.
    ///
    /// # Errors
    /// [`WireError::AddressOutOfRange`] if an entry leaves the address space,
    /// [`WireError::TransferTooLong`] above [`MAX_TRANSFER_BYTES`].
    pub fn total_bytes(&self) -> Result<u64, WireError> {
        let total = match self.0 {
            Form::Values(values) => checked_total(values.iter().copied()),
            Form::Bytes(bytes) => checked_total(bytes.iter().map(Entry::parse)),
        }?;
        match total {
            0..=MAX_TRANSFER_BYTES => Ok(total),
            _ => Err(WireError::TransferTooLong { limit: MAX_TRANSFER_BYTES }),
        }
    }

    /// The entry of a valid index.
    fn at(&self, index: usize) -> Entry {
        match self.0 {
            Form::Values(values) => values[index],
            Form::Bytes(bytes) => Entry::parse(&bytes[index]),
        }
    }
}

/// Bytes in entries that each lie in the address space, or `u64::MAX` if they are more.
fn checked_total(mut entries: impl Iterator<Item = Entry>) -> Result<u64, WireError> {
    entries.try_fold(0, |total: u64, entry| {
        entry.check()?;
        Ok(total.saturating_add(entry.length))
    })
}

impl<'a> From<&'a [Entry]> for Entries<'a> {
    fn from(entries: &'a [Entry]) -> Self {
        Self(Form::Values(entries))
    }
}

impl PartialEq for Entries<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Entries<'_> {}

impl fmt::Debug for Entries<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The two lists of a PUT or GET.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain<'a> {
    /// Where the bytes come from: the own memory for a PUT, the far memory for a GET.
    pub sources: Entries<'a>,
    /// Where they go: the far memory for a PUT, the own memory for a GET.
    pub destinations: Entries<'a>,
}

/// Bytes to be copied from one address to another; never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Move {
    /// Global address of the first byte to read.
    pub source: u64,
    /// Global address of the first byte to write.
    pub destination: u64,
    /// Number of bytes.
    pub length: u64,
}

impl<'a> Chain<'a> {
    /// Bytes that the chain moves.
    ///
    /// # Errors
    /// Those of [`Entries::total_bytes`], [`WireError::UnequalSums`] if the lists differ (C-29).
    pub fn total_bytes(&self) -> Result<u64, WireError> {
        let sources = self.sources.total_bytes()?;
        let destinations = self.destinations.total_bytes()?;
        if sources != destinations {
            return Err(WireError::UnequalSums { sources, destinations });
        }
        Ok(sources)
    }

    /// The moves that the chain asks for, re-cut so that each lies in one entry of both lists
    /// (C-28).
    ///
    /// # Errors
    /// Those of [`Chain::total_bytes`], all before the first move.
    pub fn moves(&self) -> Result<impl FusedIterator<Item = Move> + Clone + use<'a>, WireError> {
        // Also guarantees that the sums of addresses and offsets below do not wrap.
        self.total_bytes()?;
        let Self { sources, destinations } = *self;
        let pieces = recut(sources.lengths(), destinations.lengths())?;
        Ok(pieces.map(move |piece| Move {
            source: sources.at(piece.source_index).address + piece.source_offset,
            destination: destinations.at(piece.destination_index).address
                + piece.destination_offset,
            length: piece.length,
        }))
    }
}
