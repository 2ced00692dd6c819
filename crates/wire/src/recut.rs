//! Re-cutting a list of source lengths to a list of destination lengths (C-28, C-29; cHPP section
//! 3.4, Tab. 2).
//!
//! A chain descriptor moves the same bytes out of one list of blocks and into another. The blocks
//! of the two lists need not match, so the move is cut wherever either list has a boundary:
//!
//! ```text
//!   sources        |      s0      |  s1  |         s2          |
//!   destinations   |   d0   |         d1        |      d2      |
//!   pieces         |   p0   |  p1 |  p2  |  p3  |      p4      |
//! ```
//!
//! Each [`Piece`] lies in one entry of both lists and is as long as that allows. With n and m
//! non-empty entries there are at most n + m - 1 pieces, and none is empty.
//!
//! [`recut`] knows lengths only, so that it serves any entry type. Callers map entries to their
//! lengths, and index entries with the piece.
//!
//! ```
//! use bellwire_wire::recut::recut;
//!
//! let source = ["to be, ", "or not to be"];
//! let mut destination = [vec![0; 2], vec![0; 0], vec![0; 17]];
//!
//! let source_lengths = source.iter().map(|text| text.len() as u64);
//! let destination_lengths: Vec<u64> = destination.iter().map(|room| room.len() as u64).collect();
//! for piece in recut(source_lengths, destination_lengths.iter().copied())? {
//!     let (from, to) = (piece.source_offset as usize, piece.destination_offset as usize);
//!     let length = piece.length as usize;
//!     destination[piece.destination_index][to..to + length]
//!         .copy_from_slice(&source[piece.source_index].as_bytes()[from..from + length]);
//! }
//! assert_eq!(destination.concat(), b"to be, or not to be");
//! # Ok::<(), bellwire_wire::WireError>(())
//! ```

use core::iter::{Enumerate, Fuse, FusedIterator};

use crate::WireError;

/// A run of bytes that lies in one source entry and in one destination entry. Never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Piece {
    /// Which source entry.
    pub source_index: usize,
    /// Bytes of that entry before the piece.
    pub source_offset: u64,
    /// Which destination entry.
    pub destination_index: usize,
    /// Bytes of that entry before the piece.
    pub destination_offset: u64,
    /// Bytes in the piece.
    pub length: u64,
}

/// Pairs the bytes of two lists, given by the lengths of their entries, in order.
///
/// Both sums are computed before the first piece, so nothing moves for a bad descriptor (C-29).
/// That walks each list once through a clone of its iterator; both walks must see the same lengths.
/// Copy lengths first if another process can write them. If they do change, the pieces still lie in
/// the lengths of the second walk and stop where the shorter list ends.
///
/// # Errors
/// [`WireError::UnequalSums`] if the sums differ, [`WireError::TransferTooLong`] if one does not
/// fit 64 bits.
pub fn recut<S, D>(
    source_lengths: S,
    destination_lengths: D,
) -> Result<Recut<S::IntoIter, D::IntoIter>, WireError>
where
    S: IntoIterator<Item = u64, IntoIter: Clone>,
    D: IntoIterator<Item = u64, IntoIter: Clone>,
{
    let (source_lengths, destination_lengths) =
        (source_lengths.into_iter(), destination_lengths.into_iter());
    let sources = total_bytes(source_lengths.clone())?;
    let destinations = total_bytes(destination_lengths.clone())?;
    if sources != destinations {
        return Err(WireError::UnequalSums { sources, destinations });
    }
    Ok(Recut { source: Cursor::new(source_lengths), destination: Cursor::new(destination_lengths) })
}

/// Sum of a list of lengths; [`WireError::TransferTooLong`] if it does not fit 64 bits.
pub fn total_bytes(lengths: impl IntoIterator<Item = u64>) -> Result<u64, WireError> {
    lengths
        .into_iter()
        .try_fold(0, u64::checked_add)
        .ok_or(WireError::TransferTooLong { limit: u64::MAX })
}

/// The pieces in order; made by [`recut`]. Takes constant space.
#[derive(Clone, Debug)]
pub struct Recut<S, D> {
    source: Cursor<S>,
    destination: Cursor<D>,
}

impl<S, D> Iterator for Recut<S, D>
where
    S: Iterator<Item = u64>,
    D: Iterator<Item = u64>,
{
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let source_left = self.source.settle()?;
        let destination_left = self.destination.settle()?;
        let length = source_left.min(destination_left);
        let piece = Piece {
            source_index: self.source.index,
            source_offset: self.source.offset,
            destination_index: self.destination.index,
            destination_offset: self.destination.offset,
            length,
        };
        self.source.advance(length);
        self.destination.advance(length);
        Some(piece)
    }
}

impl<S, D> FusedIterator for Recut<S, D>
where
    S: Iterator<Item = u64>,
    D: Iterator<Item = u64>,
{
}

/// A position in a list: `offset` bytes into entry `index`, which has `left` more bytes.
#[derive(Clone, Debug)]
struct Cursor<I> {
    entries: Fuse<Enumerate<I>>,
    index: usize,
    offset: u64,
    left: u64,
}

impl<I: Iterator<Item = u64>> Cursor<I> {
    fn new(lengths: I) -> Self {
        Self { entries: lengths.enumerate().fuse(), index: 0, offset: 0, left: 0 }
    }

    /// Moves past finished and empty entries. Returns the bytes left in the current one, never 0,
    /// or `None` at the end of the list.
    fn settle(&mut self) -> Option<u64> {
        while self.left == 0 {
            (self.index, self.left) = self.entries.next()?;
            self.offset = 0;
        }
        Some(self.left)
    }

    fn advance(&mut self, length: u64) {
        self.offset += length;
        self.left -= length;
    }
}
