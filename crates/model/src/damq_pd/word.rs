//! The words of the buffer: 256 bits, each of one descriptor of one virtual port.

/// A word in the data memory. The model keeps 63 of its 256 bits, and below them the mark of a
/// descriptor's last word. In hardware that mark is a 257th bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Word(u64);

impl Word {
    /// A word of 63 `bits`; the highest of the 64 is dropped.
    #[inline]
    pub fn new(bits: u64, last: bool) -> Word {
        Word(bits << 1 | u64::from(last))
    }

    /// Its 63 bits.
    #[inline]
    pub fn bits(self) -> u64 {
        self.0 >> 1
    }

    /// Whether it is the last word of its descriptor.
    #[inline]
    pub fn is_last(self) -> bool {
        self.0 & 1 == 1
    }
}

/// How a descriptor came to the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// The process wrote it into the interface (D-10).
    Pio,
    /// The interface read it from a queue in host memory (D-11).
    Dma,
}

/// A word that enters or leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortWord {
    /// Its virtual port.
    pub port: u8,
    /// How it came.
    pub way: Way,
    /// The word.
    pub word: Word,
}
