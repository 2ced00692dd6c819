//! Limit of small messages: a bare ring between one sender and one receiver. It copies 8 bytes in
//! and out and spins with pause. It has no lengths, no completions and no checks.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::Result;

use super::{Contender, Kind, Start};
use crate::op::{FAN_IN_SENDERS, Op, Wire};
use crate::worker::{InHouse, Outcome, Party, SharedMemory, Side, check_arrived, meet, spin_until};

pub const CONTENDER: Contender = Contender {
    name: "ring",
    about: "bare ring, 8 B copied in and out",
    kind: Kind::Limit,
    wires: &[Wire::Memory],
    start: Start::InHouse(InHouse {
        ops: &[Op::Latency, Op::Rate, Op::FanIn],
        followers: FAN_IN_SENDERS,
        shared_bytes: RINGS * SLOTS * size_of::<Slot>(),
        open: |party| Ok(Box::new(Rings::open(party))),
    }),
};

/// Two rings for the pair (one a direction), and one for each sender of a fan-in.
const RINGS: usize = 2 + FAN_IN_SENDERS;

/// Slots of one ring, a power of two.
const SLOTS: usize = 1024;

/// The receiver reports its place once in this many messages, so that the line of that word seldom
/// moves.
const REPORT_EVERY: u64 = SLOTS as u64 / 4;

/// Control words: 0 and 1 are those of [`meet`], then the receiver's place for each ring, then one
/// word for each fan-in sender.
const DRAINED: usize = 2;
const STOP: usize = DRAINED + RINGS;
const SENT: usize = STOP + 1;

/// One message, alone on its cache line. With four to a line the near rate was a quarter lower, and
/// no latency improved by more than 4 %.
#[repr(C, align(64))]
struct Slot {
    /// Number of the message, counted from 1: the slot is full when it has the number that the
    /// receiver expects.
    number: AtomicU64,
    value: AtomicU64,
}

/// One direction of one pair; the sender and the receiver each keep their own.
struct Ring {
    slots: &'static [Slot],
    drained: &'static AtomicU64,
    /// Messages sent, or received, so far.
    place: u64,
    /// The sender's last view of `drained`.
    drained_seen: u64,
}

impl Ring {
    fn new(shared: SharedMemory, ring: usize) -> Ring {
        let bytes = SLOTS * size_of::<Slot>();
        let slots = shared.data(ring * bytes, bytes).cast();
        // SAFETY: the bytes are aligned, inside the mapping, zero at first, never unmapped, and
        // only used as atomics.
        let slots = unsafe { std::slice::from_raw_parts(slots, SLOTS) };
        Ring { slots, drained: shared.word(DRAINED + ring), place: 0, drained_seen: 0 }
    }

    /// Sends if there is room.
    #[inline(always)]
    fn try_send(&mut self, value: u64) -> bool {
        if self.place - self.drained_seen >= SLOTS as u64 {
            // Pairs with the receiver's Release: its reads of the slots happened before we
            // overwrite them.
            self.drained_seen = self.drained.load(Ordering::Acquire);
            if self.place - self.drained_seen >= SLOTS as u64 {
                return false;
            }
        }
        let slot = &self.slots[self.place as usize % SLOTS];
        slot.value.store(value, Ordering::Relaxed);
        self.place += 1;
        // Publishes the value: pairs with the receiver's Acquire.
        slot.number.store(self.place, Ordering::Release);
        true
    }

    #[inline(always)]
    fn send(&mut self, value: u64) {
        spin_until(|| self.try_send(value));
    }

    /// Receives if a message is there.
    #[inline(always)]
    fn try_receive(&mut self) -> Option<u64> {
        let slot = &self.slots[self.place as usize % SLOTS];
        if slot.number.load(Ordering::Acquire) != self.place + 1 {
            return None;
        }
        let value = slot.value.load(Ordering::Relaxed);
        self.place += 1;
        if self.place.is_multiple_of(REPORT_EVERY) {
            self.drained.store(self.place, Ordering::Release);
        }
        Some(value)
    }

    #[inline(always)]
    fn receive(&mut self) -> u64 {
        loop {
            if let Some(value) = self.try_receive() {
                return value;
            }
            std::hint::spin_loop();
        }
    }
}

struct Rings {
    index: usize,
    shared: SharedMemory,
    to_leader: Ring,
    from_leader: Ring,
    /// The ring of each sender of a fan-in; a sender uses only its own.
    fan_in: Vec<Ring>,
    /// Fan-ins run so far. The next one ends when the stop word is one more.
    fan_ins: u64,
}

impl Rings {
    fn open(party: &Party) -> Rings {
        let ring = |index| Ring::new(party.shared, index);
        Rings {
            index: party.index,
            shared: party.shared,
            to_leader: ring(0),
            from_leader: ring(1),
            fan_in: (0..FAN_IN_SENDERS).map(|sender| ring(2 + sender)).collect(),
            fan_ins: 0,
        }
    }

    fn ping_pong(&mut self, count: u64) -> Result<Outcome> {
        meet(self.shared, self.index);
        let start = Instant::now();
        for number in 0..count {
            if self.index == 0 {
                self.from_leader.send(number);
                check_arrived(number, self.to_leader.receive())?;
            } else {
                check_arrived(number, self.from_leader.receive())?;
                self.to_leader.send(number);
            }
        }
        Ok(Outcome::since(start))
    }

    fn one_way(&mut self, count: u64) -> Result<Outcome> {
        meet(self.shared, self.index);
        let start = Instant::now();
        if self.index == 0 {
            (0..count).for_each(|number| self.from_leader.send(number));
            check_arrived(count, self.to_leader.receive())?;
        } else {
            for number in 0..count {
                check_arrived(number, self.from_leader.receive())?;
            }
            self.to_leader.send(count);
        }
        Ok(Outcome::since(start))
    }

    fn receive_from_all(&mut self, count: u64) -> Result<Outcome> {
        let mut shares = vec![0; FAN_IN_SENDERS];
        let mut total = 0;
        let start = Instant::now();
        while total < count {
            for (ring, share) in self.fan_in.iter_mut().zip(&mut shares) {
                // Round-robin with a bounded number from each, so that no sender can delay the
                // others.
                for _ in 0..64 {
                    let Some(number) = ring.try_receive() else { break };
                    check_arrived(ring.place - 1, number)?;
                    *share += 1;
                    total += 1;
                }
            }
        }
        let time_ns = start.elapsed().as_nanos() as u64;
        self.shared.word(STOP).store(self.fan_ins, Ordering::Release);
        for (sender, ring) in self.fan_in.iter_mut().enumerate() {
            // Messages in flight are received, but not counted.
            spin_until(|| {
                while ring.try_receive().is_some() {}
                self.shared.word(SENT + sender).load(Ordering::Acquire) == self.fan_ins
                    && ring.try_receive().is_none()
            });
        }
        Ok(Outcome { time_ns, shares })
    }

    fn send_until_stopped(&mut self) -> Outcome {
        let ring = &mut self.fan_in[self.index - 1];
        let stop = self.shared.word(STOP);
        while stop.load(Ordering::Relaxed) != self.fan_ins {
            if !ring.try_send(ring.place) {
                // All senders share one CPU: yield to another one while this one has no room.
                std::thread::yield_now();
            }
        }
        self.shared.word(SENT + self.index - 1).store(self.fan_ins, Ordering::Release);
        Outcome::default()
    }
}

impl Side for Rings {
    fn run(&mut self, op: Op, _bytes: usize, count: u64) -> Result<Outcome> {
        match op {
            Op::Latency => self.ping_pong(count),
            Op::FanIn => {
                self.fan_ins += 1;
                if self.index == 0 {
                    self.receive_from_all(count)
                } else {
                    Ok(self.send_until_stopped())
                }
            }
            _ => self.one_way(count),
        }
    }
}
