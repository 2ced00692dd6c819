//! The doorbell window and its FIFOs (C-31, C-32; cHPP section 4.1), and the arbiter over them
//! (C-40, C-41; Fig. 13).

use super::config::NicConfig;
use crate::engine::{Arbiter, Random};
use crate::stats::Queue;
use crate::units::Time;

/// A doorbell on its way to the engine.
#[derive(Clone)]
pub struct Doorbell {
    /// The function whose window the store hit.
    pub function: usize,
    /// The written word, see `bellwire_wire::doorbell`.
    pub word: u64,
    /// Its operation, for the journal; the hardware does not know it.
    pub operation: u32,
    /// Its descriptor, if a processor stored it into the interface (B-01).
    pub stored: Option<Vec<u8>>,
}

/// One FIFO for each function; the address of a doorbell selects its FIFO.
pub struct Doorbells {
    /// By function.
    pub fifos: Vec<Queue<Doorbell>>,
    /// Bitmask: functions with nonempty FIFOs.
    filled: u64,
    depth: usize,
    arbiter: Arbiter,
    /// Doorbells lost to a full FIFO. Software must avoid that (C-33).
    pub overflowed: u64,
}

impl Doorbells {
    /// Empty FIFOs.
    pub fn new(config: &NicConfig, random: &mut Random) -> Doorbells {
        let arbiter = config.arbitration.arbiter(config.functions, random);
        Doorbells {
            fifos: vec![Queue::default(); config.functions],
            filled: 0,
            depth: config.doorbell_depth,
            arbiter,
            overflowed: 0,
        }
    }

    /// A doorbell arrives; it is lost if its FIFO is full.
    pub fn push(&mut self, doorbell: Doorbell, now: Time) {
        let function = doorbell.function;
        if self.fifos[function].len() == self.depth {
            self.overflowed += 1;
            return;
        }
        self.filled |= 1 << function;
        self.fifos[function].push(now, doorbell);
    }

    /// The doorbell that the arbiter grants.
    pub fn pop(&mut self, now: Time) -> Option<Doorbell> {
        let function = self.arbiter.grant(self.filled)?;
        let doorbell = self.fifos[function].pop(now);
        if self.fifos[function].is_empty() {
            self.filled &= !(1 << function);
        }
        doorbell
    }

    /// Whether no doorbell waits.
    pub fn is_empty(&self) -> bool {
        self.filled == 0
    }
}
