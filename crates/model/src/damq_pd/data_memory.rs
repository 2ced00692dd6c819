//! The data memory: one port to write, one port to read.

use super::word::Word;

/// Words by address.
#[derive(Clone, Debug)]
pub struct DataMemory {
    words: Box<[Word]>,
}

impl DataMemory {
    /// A memory of `depth` words.
    pub fn new(depth: usize) -> DataMemory {
        DataMemory { words: vec![Word::default(); depth].into() }
    }

    /// Writes a word.
    #[inline]
    pub fn write(&mut self, address: u16, word: Word) {
        self.words[usize::from(address)] = word;
    }

    /// Reads a word.
    #[inline]
    pub fn read(&self, address: u16) -> Word {
        self.words[usize::from(address)]
    }

    /// How many words there are.
    pub fn depth(&self) -> usize {
        self.words.len()
    }
}
