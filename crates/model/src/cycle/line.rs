//! What the line carries in a cycle: 16 symbols, and which of them are special.
//!
//! ```text
//!   symbol   0                    8                  15
//!          +--------------------+--------------------+
//!          | STP, and the frame's first bytes        |  a frame begins with a beat
//!          | and the next ones                       |
//!          | and END, or zeros  | SDP .. END         |  a link packet has the upper half
//!          +--------------------+--------------------+
//! ```
//!
//! As in PIPE, a bit for each symbol tells special ones from data. Idle symbols are zeros.

use super::replay_buf::BEAT_WORDS;

/// Symbols of a beat: two of each of eight lanes.
pub const SYMBOLS: usize = 8 * BEAT_WORDS;
/// The first symbol of a link packet in its beat.
pub const UPPER: usize = SYMBOLS / 2;

/// The symbols of a cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beat {
    /// The bytes.
    pub bytes: [u8; SYMBOLS],
    /// A bit for each: it is a special symbol.
    pub k: u16,
}

impl Beat {
    /// The beat with these words, of which the first has symbols 0 to 7.
    pub fn new(words: [u64; BEAT_WORDS], k: u16) -> Beat {
        Beat { bytes: bytes_of(words), k }
    }

    /// The words.
    pub fn words(&self) -> [u64; BEAT_WORDS] {
        let (words, _) = self.bytes.as_chunks();
        [0, 1].map(|word: usize| u64::from_le_bytes(words[word]))
    }
}

/// The bytes of a beat, whose first one is the lowest of the first word.
pub fn bytes_of(words: [u64; BEAT_WORDS]) -> [u8; SYMBOLS] {
    let mut bytes = [0; SYMBOLS];
    bytes[..UPPER].copy_from_slice(&words[0].to_le_bytes());
    bytes[UPPER..].copy_from_slice(&words[1].to_le_bytes());
    bytes
}
