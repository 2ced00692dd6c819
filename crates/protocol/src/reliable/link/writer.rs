//! Writes sections into a frame.

use bellwire_wire::frame::check::CHECK_BYTES;
use bellwire_wire::frame::header::HEADER_BYTES;
use bellwire_wire::frame::section::{SECTION_BYTES, Section, SectionKind};

use super::stream::Piece;

/// The frame being written, between header and check value.
pub(crate) struct Writer<'a> {
    buffer: &'a mut [u8],
    at: usize,
    /// Whether the last piece may stay in its stream.
    may_leave: bool,
    left: Option<Left>,
}

/// The last piece of a frame, which stayed in its stream: its bytes are missing in the frame.
#[derive(Clone, Copy)]
pub(crate) struct Left {
    pub(super) stream: usize,
    pub(super) piece: Piece,
}

/// Copying less costs less than to say where it is.
const LEAST_LEFT_BYTES: u32 = 256;

impl<'a> Writer<'a> {
    /// Writes into `buffer`, which has room for a header and a check value at least. `may_leave`:
    /// the last piece may stay in its stream.
    #[inline]
    pub fn new(buffer: &'a mut [u8], may_leave: bool) -> Self {
        Writer { buffer, at: HEADER_BYTES, may_leave, left: None }
    }

    /// Bytes that may still be written, without the check value.
    #[inline]
    pub fn room(&self) -> usize {
        self.buffer.len() - self.at - CHECK_BYTES
    }

    /// Length of the frame, check value included.
    #[inline]
    pub fn length(&self) -> usize {
        self.at + CHECK_BYTES
    }

    /// Drops all sections.
    pub fn clear(&mut self) {
        self.at = HEADER_BYTES;
        self.left = None;
    }

    /// Whether a piece of so many bytes may stay in its stream, if it is the last one.
    #[inline]
    pub fn may_leave(&self, bytes: u32) -> bool {
        self.may_leave && bytes >= LEAST_LEFT_BYTES
    }

    /// The piece of the section that was appended last stays in its stream.
    #[inline]
    pub(super) fn leave(&mut self, stream: usize, piece: Piece) {
        self.left = Some(Left { stream, piece });
    }

    /// Appends a section of `length` bytes, to be filled in.
    #[inline]
    pub fn section(&mut self, kind: SectionKind, flags: u8, length: usize) -> &mut [u8] {
        let at = self.at + SECTION_BYTES;
        self.buffer[self.at..at].copy_from_slice(&Section::head(kind, flags, length as u16));
        self.at = at + length;
        &mut self.buffer[at..at + length]
    }

    /// The whole frame, for its header and its check value, and what stayed in its stream.
    #[inline]
    pub fn finish(self) -> (&'a mut [u8], Option<Left>) {
        let length = self.length();
        (&mut self.buffer[..length], self.left)
    }
}
