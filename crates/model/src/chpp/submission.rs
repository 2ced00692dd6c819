//! Descriptors that processors store into a buffer of the interface, as in DAMQ-PD or with rings of
//! fixed length (D-13 to D-16, M-12, M-13). The alternative is a descriptor fetch after a doorbell.
//!
//! With `nic.submission = "damq-pd"` all functions share the buffer, under the credits of
//! `damq_pd`'s manager. Software that lacks credits asks by a read of the interface, and its
//! processor waits for the answer. If refused, it rings a doorbell, and asks again after one of its
//! own operations is sent. With `nic.submission = "ring"` each function has an equal part, and its
//! software counts the free words. If they are too few, it rings. In both, a stored descriptor goes
//! through the function's doorbell FIFO, which keeps its operations in order (D-19).

use std::collections::BTreeMap;

use bellwire_protocol::GrantPolicy;

use super::config::{NicConfig, Start};
use crate::damq_pd::{CreditManager, LONGEST};

/// Bytes of a word of the buffer.
const WORD_BYTES: usize = 32;

/// How a processor submits a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Store it into the buffer.
    Store,
    /// Leave it in memory, and ring a doorbell.
    Ring,
    /// Ask for credits first.
    Ask,
}

/// The state of the interface's credit manager and of its host's software.
pub struct Submission {
    manager: Option<CreditManager>,
    total: u16,
    functions: Vec<Function>,
    /// Descriptors stored into the buffer, and descriptors left in memory despite a buffer.
    pub counts: [u64; 2],
    /// Reads of the interface for credits.
    pub requests: u64,
}

#[derive(Clone, Default)]
struct Function {
    credits: u16,
    refused: bool,
    /// By place of the descriptor in memory, the words of the ring that its operation occupies.
    taken: BTreeMap<u64, u16>,
}

/// Words that a descriptor occupies in the buffer.
pub fn words(bytes: usize) -> u16 {
    bytes.div_ceil(WORD_BYTES) as u16
}

impl Submission {
    /// An empty buffer.
    pub fn new(nic: &NicConfig) -> Submission {
        let total = nic.descriptor_words;
        let shared = nic.submission == Start::DamqPd;
        let part = if nic.submission == Start::Ring { total / nic.functions as u16 } else { 0 };
        let function = Function { credits: part, ..Function::default() };
        Submission {
            manager: shared.then(|| {
                CreditManager::shared(GrantPolicy::History, total, LONGEST, nic.functions)
            }),
            total,
            functions: vec![function; nic.functions],
            counts: [0; 2],
            requests: 0,
        }
    }

    /// How to submit a descriptor of `words` words.
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

    /// The interface answers a credit request; a refused function rings doorbells for now.
    pub fn ask(&mut self, function: usize) {
        self.requests += 1;
        let Some(manager) = &mut self.manager else { return };
        let words = manager.request(function as u8);
        let state = &mut self.functions[function];
        state.credits += words;
        state.refused = words == 0;
    }

    /// A descriptor is stored; `place` is its place in memory.
    pub fn store(&mut self, function: usize, words: u16, place: u64) {
        self.counts[0] += 1;
        let state = &mut self.functions[function];
        state.credits -= words;
        if self.manager.is_none() {
            state.taken.insert(place, words);
        }
    }

    /// The extract module has taken a stored descriptor out of the buffer.
    pub fn extracted(&mut self, function: usize, words: u16) {
        let Some(manager) = &mut self.manager else { return };
        for _ in 0..words {
            manager.freed(function as u8);
            // Discard offers: a waiting function learns of the credits when it asks again.
            while manager.offer(function as u8).is_some() {}
        }
    }

    /// The function's operation with its descriptor at `place` is sent.
    pub fn sent(&mut self, function: usize, place: u64) {
        let state = &mut self.functions[function];
        state.refused = false;
        state.credits += state.taken.remove(&place).unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use super::super::config::Config;

    fn submission(start: Start, words: u16) -> Submission {
        let mut nic = Config::prototype().nic;
        (nic.submission, nic.descriptor_words, nic.functions) = (start, words, 2);
        Submission::new(&nic)
    }

    /// A word of the buffer has 32 B.
    #[test]
    fn descriptors_take_words() {
        assert_eq!([0, 1, 32, 33, 64, 160].map(words), [0, 1, 1, 2, 2, 5]);
    }

    /// Rings: each of two functions has half of 16 words. A stored descriptor takes its words until
    /// its operation is sent; what does not fit rings a doorbell.
    #[test]
    fn rings_are_parts_of_the_buffer() {
        let mut it = submission(Start::Ring, 16);
        assert_eq!([1, 8, 9].map(|words| it.way(0, words)), [Way::Store, Way::Store, Way::Ring]);
        it.store(0, 5, 100);
        assert_eq!((it.counts, it.requests), ([1, 0], 0));
        assert_eq!([3, 4].map(|words| it.way(0, words)), [Way::Store, Way::Ring]);
        assert_eq!(it.way(1, 8), Way::Store, "the other part is untouched");
        it.extracted(0, 5);
        it.sent(0, 200);
        assert_eq!(it.way(0, 4), Way::Ring, "it is not sent yet");
        it.store(0, 2, 200);
        it.sent(0, 100);
        assert_eq!([6, 7].map(|words| it.way(0, words)), [Way::Store, Way::Ring]);
        it.sent(0, 100);
        assert_eq!(it.way(0, 7), Way::Ring, "once");
        it.ask(0);
        assert_eq!((it.requests, it.way(0, 7)), (1, Way::Ring));
    }

    /// Shared: a function asks for credits. Once refused, it rings until one of its operations is
    /// sent. Extracted words are granted again.
    #[test]
    fn credits_are_asked_for() {
        let mut it = submission(Start::DamqPd, 16);
        assert_eq!((it.way(0, 1), it.way(0, 16), it.way(0, 17)), (Way::Ask, Way::Ask, Way::Ring));
        it.ask(0);
        let granted = it.functions[0].credits;
        assert!((1..=16).contains(&granted), "{granted}");
        assert_eq!((it.requests, it.way(0, granted)), (1, Way::Store));
        assert_eq!(it.way(0, granted + 1), if granted == 16 { Way::Ring } else { Way::Ask });
        while !it.functions[0].refused {
            it.ask(0);
            assert!(it.requests < 20, "16 words cannot be granted so often");
        }
        let all = it.functions[0].credits;
        assert_eq!((it.way(0, all), it.way(0, all + 1)), (Way::Store, Way::Ring));
        it.store(0, all, 7);
        assert_eq!((it.functions[0].credits, it.way(0, 1)), (0, Way::Ring));
        assert_eq!(it.counts, [1, 0]);
        it.sent(0, 7);
        assert_eq!((it.functions[0].credits, it.way(0, 1)), (0, Way::Ask), "it may ask again");
        it.ask(0);
        assert!(it.functions[0].refused, "nothing was extracted");
        it.extracted(0, all);
        it.sent(0, 7);
        it.ask(0);
        assert_eq!(it.way(0, 1), Way::Store);
    }

    /// With plain doorbells, nothing is stored.
    #[test]
    fn doorbells_need_no_buffer() {
        assert_eq!(submission(Start::Doorbell, 16).way(0, 1), Way::Ring);
    }
}
