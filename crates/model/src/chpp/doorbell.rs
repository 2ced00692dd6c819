//! The doorbell window and its FIFOs (C-31, C-32; cHPP section 4.1), and the arbiter over them
//! (C-40, C-41; Fig. 13).

use super::config::NicConfig;
use crate::engine::{Arbiter, Random};
use crate::stats::{Imbalance, Queue, Watched};
use crate::units::Time;

/// A waiting doorbell.
#[derive(Clone, Copy, Debug)]
pub struct QueuedDoorbell {
    /// The written word, see `bellwire_wire::doorbell`.
    pub word: u64,
    /// Its operation, for the journal; the hardware does not know it.
    pub operation: u32,
}

/// One FIFO for each function; the address of a doorbell selects its FIFO.
pub struct Doorbells {
    /// By function.
    pub fifos: Vec<Queue<QueuedDoorbell>>,
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

    /// A doorbell of `function` arrives; false if its FIFO is full and the doorbell is lost.
    pub fn push(&mut self, function: usize, word: u64, operation: u32, now: Time) -> bool {
        if self.fifos[function].len() == self.depth {
            self.overflowed += 1;
            return false;
        }
        self.filled |= 1 << function;
        self.fifos[function].push(now, QueuedDoorbell { word, operation });
        true
    }

    /// The doorbell that the arbiter grants, with its function and arrival time.
    pub fn pop(&mut self, now: Time) -> Option<(usize, QueuedDoorbell, Time)> {
        let function = self.arbiter.grant(self.filled)?;
        let fifo = &mut self.fifos[function];
        let (entered, &doorbell) = fifo.front_since()?;
        fifo.pop(now);
        if fifo.is_empty() {
            self.filled &= !(1 << function);
        }
        Some((function, doorbell, entered))
    }

    /// Whether no doorbell waits.
    pub fn is_empty(&self) -> bool {
        self.filled == 0
    }

    /// Checks Little's law on each FIFO.
    ///
    /// # Errors
    /// The violated law.
    pub fn audit(&self, now: Time) -> Result<(), Imbalance> {
        let mut fifos = self.fifos.iter().enumerate();
        fifos.try_for_each(|(at, fifo)| fifo.audit(&format!("doorbell FIFO {at}"), now))
    }
}
