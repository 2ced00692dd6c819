//! What goes through the buffer: words of 256 bits, each of one descriptor of one virtual port.

/// A word as it lies in the data memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Word {
    /// 63 of its 256 bits; the model has no use for the others.
    pub bits: u64,
    /// It ends its descriptor. In hardware a 257th bit.
    pub last: bool,
}

/// How a descriptor came to the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// The process wrote it into the interface (D-10).
    Pio,
    /// The interface read it from a queue in host memory (D-11).
    Dma,
}

/// A word that comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// Its virtual port.
    pub port: u8,
    /// How it came.
    pub way: Way,
    /// The word.
    pub word: Word,
}

/// A word that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// Its virtual port.
    pub port: u8,
    /// How it had come.
    pub way: Way,
    /// The word.
    pub word: Word,
}
