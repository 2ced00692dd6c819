//! A race of several senders for the line into one function: what each of them brings there, and whether that is fair.

use std::ops::Range;

/// When a race happens, in ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Race {
    /// The last function asks for its link.
    pub joins_ns: u64,
    /// From now on it should have what the others have.
    pub watched_from_ns: u64,
    /// All stop.
    pub ends_ns: u64,
}

/// What came from each function while it was watched.
#[derive(Debug)]
pub struct Shares {
    watched_ns: Range<u64>,
    bytes: Vec<u64>,
}

impl Shares {
    /// Nothing came yet from any of the functions, of which the first is the one that takes.
    pub fn new(race: Race, functions: usize) -> Self {
        Shares { watched_ns: race.watched_from_ns..race.ends_ns, bytes: vec![0; functions] }
    }

    /// Some bytes of a function were taken.
    pub fn took(&mut self, from: usize, bytes: usize, now_ns: u64) {
        if self.watched_ns.contains(&now_ns) {
            self.bytes[from] += bytes as u64;
        }
    }

    /// Whether nobody got less than half of what is fair.
    ///
    /// # Errors
    /// Who did, and how little.
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
