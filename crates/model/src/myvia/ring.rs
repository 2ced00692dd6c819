//! A work queue of MyVIA: a small ring of physical descriptors on the NIC, and a big overflow ring
//! in host memory (M-12 to M-15; paper 3.3, Figs. 3 and 4).
//!
//! ```text
//!   user agent --PIO--> small ring ----> NIC               while the flag is not set
//!         \                  ^
//!          `--> big ring ----'  interrupt handler          while it is, in the order of posting
//! ```
//!
//! This file has the rules, without time; host and NIC have the costs.

use std::collections::VecDeque;

/// The place of the next descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The small ring: the write is the doorbell (M-12).
    Small,
    /// The big ring.
    Big,
    /// None: both are full.
    Nowhere,
}

/// Both rings of one work queue. `T` is a physical descriptor.
#[derive(Clone, Debug)]
pub struct Rings<T> {
    small: VecDeque<T>,
    small_entries: usize,
    big: VecDeque<T>,
    big_entries: usize,
    low_mark: usize,
    /// Set by the host while the big ring is not empty: closes the small ring to the user agent
    /// (M-14).
    flag: bool,
    /// The NIC's copy of the flag; a PIO write updates it.
    flag_on_nic: bool,
    /// An interrupt was raised and its handler is not done.
    asked: bool,
    /// Counters.
    pub counts: Counts,
    /// Canary: the user agent ignores the flag and writes into the small ring whenever it has room.
    pub(crate) ignores_flag: bool,
}

/// Counters of the rings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Descriptors that the user agent wrote into the small ring.
    pub direct: u64,
    /// Descriptors that went through the big ring.
    pub overflowed: u64,
    /// Descriptors that a handler moved to the small ring.
    pub refilled: u64,
    /// Descriptors that the NIC took.
    pub taken: u64,
    /// Interrupts for a refill.
    pub interrupts: u64,
    /// The peak length of the big ring.
    pub most_big: usize,
}

impl<T> Rings<T> {
    /// Empty rings. The NIC requests a refill when at most `low_mark` descriptors are left in the
    /// small ring.
    pub fn new(small_entries: usize, big_entries: usize, low_mark: usize) -> Rings<T> {
        Rings {
            small: VecDeque::new(),
            small_entries,
            big: VecDeque::new(),
            big_entries,
            low_mark,
            flag: false,
            flag_on_nic: false,
            asked: false,
            counts: Counts::default(),
            ignores_flag: false,
        }
    }

    /// The place of the next descriptor. It is the small ring only if that has room and nothing
    /// older waits in the big one.
    pub fn place(&self) -> Place {
        let closed = self.flag && !self.ignores_flag;
        if !closed && self.small.len() < self.small_entries {
            Place::Small
        } else if self.big.len() < self.big_entries {
            Place::Big
        } else {
            Place::Nowhere
        }
    }

    /// The user agent's PIO write has arrived in the small ring.
    pub fn put_small(&mut self, descriptor: T) {
        debug_assert!(self.small.len() < self.small_entries);
        self.small.push_back(descriptor);
        self.counts.direct += 1;
    }

    /// The user agent writes into the big ring. True if it must now set the NIC's flag.
    pub fn put_big(&mut self, descriptor: T) -> bool {
        self.big.push_back(descriptor);
        self.counts.overflowed += 1;
        self.counts.most_big = self.counts.most_big.max(self.big.len());
        !std::mem::replace(&mut self.flag, true)
    }

    /// The write of the flag has arrived at the NIC.
    pub fn flag_came(&mut self) {
        self.flag_on_nic = true;
    }

    /// The NIC takes the oldest descriptor.
    pub fn take(&mut self) -> Option<T> {
        let descriptor = self.small.pop_front()?;
        self.counts.taken += 1;
        Some(descriptor)
    }

    /// Whether the NIC must interrupt the host now: at or below the mark, the flag set, and no
    /// handler running (M-15). The caller raises the interrupt.
    pub fn ask(&mut self) -> bool {
        let needs = self.flag_on_nic && self.small.len() <= self.low_mark && !self.asked;
        if needs {
            self.asked = true;
            self.counts.interrupts += 1;
        }
        needs
    }

    /// Whether the handler can move another descriptor.
    pub fn can_refill(&self) -> bool {
        !self.big.is_empty() && self.small.len() < self.small_entries
    }

    /// The handler's PIO write has arrived: the oldest descriptor of the big ring moves to the
    /// small one.
    pub fn refill(&mut self) {
        if let Some(descriptor) = self.big.pop_front() {
            self.small.push_back(descriptor);
            self.counts.refilled += 1;
        }
    }

    /// Whether the handler may clear the flag: the big ring is empty.
    pub fn can_open(&self) -> bool {
        self.flag && self.big.is_empty()
    }

    /// The handler clears the flag: the small ring is open again.
    pub fn open(&mut self) {
        self.flag = false;
        self.flag_on_nic = false;
    }

    /// The handler ends; another interrupt may follow.
    pub fn handler_ended(&mut self) {
        self.asked = false;
    }

    /// Descriptors in the small ring.
    pub fn small_len(&self) -> usize {
        self.small.len()
    }

    /// Descriptors in the big ring.
    pub fn big_len(&self) -> usize {
        self.big.len()
    }

    /// Whether the small ring is closed to the user agent.
    pub fn is_closed(&self) -> bool {
        self.flag
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Random;

    /// A random interleaving of posting, taking and refilling, against a plain queue.
    fn random_run(seed: u64, ignores_flag: bool) -> Result<Counts, String> {
        let mut random = Random::new(seed);
        let small = 1 + random.below(16) as usize;
        let mut rings = Rings::new(small, 64, random.below(small as u64) as usize);
        rings.ignores_flag = ignores_flag;
        let mut oracle = VecDeque::new();
        let (mut next, mut handling) = (0u32, false);
        for _ in 0..20_000 {
            match random.below(4) {
                0 | 1 => match rings.place() {
                    Place::Nowhere => {}
                    place => {
                        if place == Place::Big {
                            rings.put_big(next).then(|| rings.flag_came());
                        } else if rings.is_closed() {
                            return Err("the small ring was written while closed".to_owned());
                        } else {
                            rings.put_small(next);
                        }
                        oracle.push_back(next);
                        next += 1;
                    }
                },
                2 => {
                    let (taken, expected) = (rings.take(), oracle.front().copied());
                    match taken {
                        Some(_) if taken == expected => drop(oracle.pop_front()),
                        Some(other) => return Err(format!("{other} came, {expected:?} was due")),
                        None => {}
                    }
                }
                _ if handling => {
                    while rings.can_refill() {
                        rings.refill();
                    }
                    if rings.can_open() {
                        rings.open();
                    }
                    rings.handler_ended();
                    handling = false;
                }
                _ => {}
            }
            let (low, flag) = (rings.small_len() <= rings.low_mark, rings.is_closed());
            if rings.ask() {
                if !(low && flag) {
                    return Err("an interrupt without need".to_owned());
                }
                handling = true;
            } else if low && flag && !handling {
                return Err("nobody was asked to refill".to_owned());
            }
        }
        if rings.small_len() + rings.big_len() != oracle.len() {
            return Err("descriptors were lost".to_owned());
        }
        Ok(rings.counts)
    }

    /// Bursts beyond the small ring lose nothing and keep their order. The user agent never writes
    /// into a closed small ring, and interrupts come only at the mark with the flag set.
    // shows: M-13, M-14, M-15
    #[test]
    fn order_and_number_are_kept() {
        crate::limit::limited(|| {
            let mut overflowed = 0;
            for seed in 0..50 {
                let counts = random_run(seed, false).unwrap();
                overflowed += counts.overflowed;
                assert!(counts.refilled <= counts.overflowed);
                // The last handler may not have run yet.
                assert!(counts.interrupts <= counts.refilled + 1);
            }
            assert!(overflowed > 100_000);
        });
    }

    /// The small ring is closed from the first descriptor in the big one until the handler has
    /// emptied that. It is asked for once, at the mark, and moves what the small ring has room for.
    #[test]
    fn the_small_ring_opens_when_the_big_one_is_empty() {
        let mut rings = Rings::new(2, 1, 1);
        for number in 0..2 {
            assert_eq!(rings.place(), Place::Small);
            rings.put_small(number);
        }
        assert_eq!(rings.place(), Place::Big);
        assert!(rings.put_big(2) && rings.is_closed());
        assert_eq!(rings.place(), Place::Nowhere);
        assert!(!rings.can_refill() && !rings.can_open() && !rings.ask());
        rings.flag_came();
        assert!(!rings.ask(), "two are above the mark");
        assert_eq!(rings.take(), Some(0));
        assert!(rings.ask() && !rings.ask() && rings.counts.interrupts == 1);
        assert!(rings.can_refill() && !rings.can_open());
        rings.refill();
        assert!(!rings.can_refill() && rings.can_open());
        rings.open();
        rings.handler_ended();
        assert!(!rings.is_closed() && !rings.ask());
        assert_eq!((rings.take(), rings.place()), (Some(1), Place::Small));
    }

    /// Canary: the test catches a user agent that ignores the flag.
    #[test]
    fn ignoring_the_flag_is_caught() {
        assert!((0..5).any(|seed| random_run(seed, true).is_err()));
    }
}
