//! A race of several senders for the line into one function: the bytes that each brings, and
//! whether they are fair.

use std::ops::Range;

/// The times of a race, in ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Race {
    /// The last function asks for its link.
    pub joins_ns: u64,
    /// From here on its share should equal the others'.
    pub watched_from_ns: u64,
    /// All senders stop.
    pub ends_ns: u64,
}

/// Bytes that came from each function while it was watched.
#[derive(Debug)]
pub struct Shares {
    watched_ns: Range<u64>,
    bytes: Vec<u64>,
}

impl Shares {
    /// No bytes yet. The first of the functions is the receiver.
    pub fn new(race: Race, functions: usize) -> Self {
        Shares { watched_ns: race.watched_from_ns..race.ends_ns, bytes: vec![0; functions] }
    }

    /// Some bytes of a function were taken.
    pub fn took(&mut self, from: usize, bytes: usize, now_ns: u64) {
        if self.watched_ns.contains(&now_ns) {
            self.bytes[from] += bytes as u64;
        }
    }

    /// Whether every sender got at least half of a fair share.
    ///
    /// # Errors
    /// The sender that got less, and its bytes.
    pub fn check(&self) -> Result<(), String> {
        let senders = &self.bytes[1..];
        let fair = senders.iter().sum::<u64>() / senders.len() as u64;
        match (1..).zip(senders).find(|(_, bytes)| **bytes * 2 < fair || fair == 0) {
            None => Ok(()),
            Some((index, bytes)) => Err(format!(
                "{index} brought {bytes} bytes, and a fair share is {fair}: {senders:?}"
            )),
        }
    }
}
