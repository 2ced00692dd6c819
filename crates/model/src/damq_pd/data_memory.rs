//! The data memory: one port to write, one port to read.

use super::word::Word;

/// Words by address. A cycle writes one at most and reads one at most; the counts show it.
#[derive(Clone, Debug)]
pub struct DataMemory {
    /// The bits of each word, and above them whether it is the last.
    words: Box<[u64]>,
    /// Words written so far.
    pub writes: u64,
    /// Words read so far.
    pub reads: u64,
}

impl DataMemory {
    /// A memory of `depth` words.
    pub fn new(depth: usize) -> DataMemory {
        DataMemory { words: vec![0; depth].into(), writes: 0, reads: 0 }
    }

    /// Writes a word.
    #[inline]
    pub fn write(&mut self, address: u16, word: Word) {
        self.words[address as usize] = word.bits << 1 | u64::from(word.last);
        self.writes += 1;
    }

    /// Reads a word.
    #[inline]
    pub fn read(&mut self, address: u16) -> Word {
        self.reads += 1;
        let stored = self.words[address as usize];
        Word { bits: stored >> 1, last: stored & 1 == 1 }
    }

    /// How many words there are.
    pub fn depth(&self) -> usize {
        self.words.len()
    }
}
