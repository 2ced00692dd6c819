//! Descriptors that processors store into a buffer of the interface, as in DAMQ-PD or by rings of fixed length (D-13 to D-16, M-12, M-13), instead of
//! having them read after a doorbell.
//!
//! With `nic.submission = "damq-pd"` all functions share the buffer, under the credits of `damq_pd`'s manager: software that has too few asks by a read of
//! the interface, in which its processor waits; if it is refused it rings a doorbell, and asks again when an operation of its own has been
//! sent. With `nic.submission = "ring"` each function has an equal part, whose free words its software counts; when they are too few it rings. The order of a
//! function's operations is that of its doorbell FIFO in both, as a stored descriptor goes through it too (D-19).

use std::collections::BTreeMap;

use super::config::{NicConfig, Start};
use crate::damq_pd::{CreditManager, LONGEST, Policy};

/// Bytes of a word of the buffer.
const WORD_BYTES: usize = 32;

/// How a processor should hand over a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Store it into the buffer.
    Store,
    /// Leave it in memory, and ring.
    Ring,
    /// Ask for credits first.
    Ask,
}

/// What the credit manager of the interface and software of its host know.
pub struct Submission {
    /// Under DAMQ-PD.
    manager: Option<CreditManager>,
    total: u16,
    functions: Vec<Function>,
    /// Descriptors stored into the buffer, and left in memory although there is a buffer.
    pub counts: [u64; 2],
    /// Reads of the interface for credits.
    pub requests: u64,
}

#[derive(Clone, Default)]
struct Function {
    credits: u16,
    refused: bool,
    /// Words of the ring taken by the operations whose descriptors belong to these places.
    taken: BTreeMap<u64, u16>,
}

/// Words that a descriptor takes in the buffer.
pub fn words(bytes: usize) -> u16 {
    bytes.div_ceil(WORD_BYTES) as u16
}

impl Submission {
    /// Nothing is stored.
    pub fn new(nic: &NicConfig) -> Submission {
        let total = nic.descriptor_words;
        let shared = nic.submission == Start::DamqPd;
        let part = if nic.submission == Start::Ring { total / nic.functions as u16 } else { 0 };
        let function = Function { credits: part, ..Function::default() };
        Submission {
            manager: shared
                .then(|| CreditManager::shared(Policy::History, total, LONGEST, nic.functions)),
            total,
            functions: vec![function; nic.functions],
            counts: [0; 2],
            requests: 0,
        }
    }

    /// How to hand over a descriptor of `words` words.
    pub fn way(&self, function: usize, words: u16) -> Way {
        let Function { credits, refused, .. } = self.functions[function];
        if words <= credits {
            Way::Store
        } else if self.manager.is_none() || refused || words > self.total {
            Way::Ring
        } else {
            Way::Ask
        }
    }

    /// The interface answers a request; a refused function rings for now.
    pub fn ask(&mut self, function: usize) {
        self.requests += 1;
        let Some(manager) = &mut self.manager else { return };
        let words = manager.request(function as u8);
        let state = &mut self.functions[function];
        state.credits += words;
        state.refused = words == 0;
    }

    /// A descriptor is stored, whose place in memory would be `place`.
    pub fn store(&mut self, function: usize, words: u16, place: u64) {
        self.counts[0] += 1;
        let state = &mut self.functions[function];
        state.credits -= words;
        if self.manager.is_none() {
            state.taken.insert(place, words);
        }
    }

    /// A descriptor is left in memory.
    pub fn ring(&mut self) {
        self.counts[1] += 1;
    }

    /// The extract module has taken a stored descriptor out of the buffer.
    pub fn extracted(&mut self, function: usize, words: u16) {
        let Some(manager) = &mut self.manager else { return };
        for _ in 0..words {
            manager.freed(function as u8);
            // Whoever waits is told when it asks again.
            while manager.offer(function as u8).is_some() {}
        }
    }

    /// An operation of the function has been sent, whose place in memory is `place`.
    pub fn sent(&mut self, function: usize, place: u64) {
        let state = &mut self.functions[function];
        state.refused = false;
        state.credits += state.taken.remove(&place).unwrap_or(0);
    }
}
