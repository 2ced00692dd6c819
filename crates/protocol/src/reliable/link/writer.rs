//! Writes sections into a frame.

use bellwire_wire::frame::check::CHECK_BYTES;
use bellwire_wire::frame::header::HEADER_BYTES;
use bellwire_wire::frame::section::{SECTION_BYTES, Section, SectionKind};

/// The frame being written, between header and check value.
pub(crate) struct Writer<'a> {
    buffer: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    /// Writes into `buffer`, which has room for a header and a check value at least.
    #[inline]
    pub fn new(buffer: &'a mut [u8]) -> Self {
        Writer { buffer, at: HEADER_BYTES }
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
    }

    /// Appends a section of `length` bytes, to be filled in.
    #[inline]
    pub fn section(&mut self, kind: SectionKind, flags: u8, length: usize) -> &mut [u8] {
        let at = self.at + SECTION_BYTES;
        self.buffer[self.at..at].copy_from_slice(&Section::head(kind, flags, length as u16));
        self.at = at + length;
        &mut self.buffer[at..at + length]
    }

    /// The whole frame, for its header and its check value.
    #[inline]
    pub fn finish(self) -> &'a mut [u8] {
        let length = self.length();
        &mut self.buffer[..length]
    }
}
