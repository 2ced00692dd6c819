//! The network between the functions: carries frames, with the faults of networks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bellwire_wire::frame::keyed::SEALED_OVERHEAD_BYTES;

use crate::chance::Chance;
use crate::device::{self, Place};
use crate::scenario::{Scenario, Weather};

/// Old frames kept for replay.
const ARCHIVE_FRAMES: usize = 32;
/// A line with a longer queue than this drops frames, in ns.
const LONGEST_QUEUE_NS: u64 = 2_000_000;
/// Room behind the longest frame, for padding.
const PADDING_BYTES: usize = 16;

bellwire_protocol::counters! {
    /// What happened to all frames: sent + repeated + forged = lost + arrived + in flight.
    Traffic {
        /// Frames that functions sent.
        sent,
        /// Copies that the network made, replayed old frames included.
        repeated,
        /// Frames and copies that disappeared.
        lost,
        /// Frames and copies that were handed to a function.
        arrived,
        /// Frames and copies that were damaged.
        damaged,
        /// Bytes that functions sent.
        bytes,
        /// Frames that an adversary made.
        forged,
    }
}

/// A frame in flight.
pub struct Frame {
    /// The destination function.
    pub to: usize,
    /// Its source.
    pub from: Place,
    /// Its length, padding included.
    pub length: usize,
    bytes: Box<[u8]>,
}

impl Frame {
    /// Its bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// The network of one world.
pub struct Network {
    chance: Chance,
    /// The current rates of faults.
    pub weather: Weather,
    /// The longest frame that it carries now.
    pub mtu: usize,
    /// Bytes that a seal adds to each frame; they do not count for the MTU.
    overhead: usize,
    /// Whether frames from one function to another disappear.
    pub cut: Vec<Vec<bool>>,
    /// Whether frames by an interface disappear.
    pub dead: [bool; 3],
    /// What happened to frames.
    pub traffic: Traffic,
    latency_ns: [u64; 3],
    byte_ps: u64,
    busy_until_ns: Vec<[u64; 3]>,
    frames: Vec<Frame>,
    free: Vec<u32>,
    /// Time of arrival; then a key of sending order and index in `frames`.
    arrivals: BinaryHeap<Reverse<(u64, u64)>>,
    order: u64,
    archive: Vec<(usize, Place, Vec<u8>)>,
    archive_turn: usize,
    longest: usize,
}

impl Network {
    /// The network of a scenario, with fair weather.
    pub fn new(scenario: &Scenario) -> Self {
        let count = scenario.functions.len();
        let longest = scenario.functions.iter().map(|(_, config)| config.frame_bytes);
        let overhead = if scenario.has_key { SEALED_OVERHEAD_BYTES } else { 0 };
        let longest = longest.max().unwrap_or(0) + overhead;
        Network {
            chance: Chance::new(scenario.seed ^ 0x4e7),
            weather: Weather::default(),
            mtu: longest,
            overhead,
            cut: vec![vec![false; count]; count],
            dead: [false; 3],
            traffic: Traffic::default(),
            latency_ns: scenario.latency_ns,
            byte_ps: scenario.byte_ps,
            busy_until_ns: vec![[0; 3]; count],
            frames: Vec::new(),
            free: Vec::new(),
            arrivals: BinaryHeap::new(),
            order: 0,
            archive: Vec::new(),
            archive_turn: 0,
            longest,
        }
    }

    /// Reserves a buffer for a frame.
    pub fn reserve(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.frames.push(Frame {
                to: 0,
                from: 0,
                length: 0,
                bytes: vec![0; self.longest + PADDING_BYTES].into(),
            });
            self.frames.len() as u32 - 1
        })
    }

    /// The bytes of a reserved buffer.
    pub fn buffer(&mut self, place: u32) -> &mut [u8] {
        let longest = self.longest;
        &mut self.frames[place as usize].bytes[..longest]
    }

    /// Frees a buffer.
    pub fn release(&mut self, place: u32) {
        self.free.push(place);
    }

    /// Carries the frame of `length` bytes in buffer `place` from one function to another.
    pub fn send(&mut self, place: u32, from: usize, by: Place, length: usize, now_ns: u64) {
        let (to, interface) = (device::host(by), (by >> 16) as usize);
        self.traffic.sent += 1;
        self.traffic.bytes += length as u64;
        let frame = &mut self.frames[place as usize];
        (frame.to, frame.from, frame.length) = (to, device::place(from, interface as u32), length);
        if length > self.mtu.saturating_add(self.overhead)
            || self.cut[from][to]
            || self.dead[interface]
        {
            self.traffic.lost += 1;
            return self.release(place);
        }
        // One draw decides all faults: five times ten bits.
        let draw = self.chance.bits();
        let happens = |shift: u32, rate: u32| ((draw >> shift) as u32 & 1023) < rate;
        let weather = self.weather;
        if happens(40, weather.replay) {
            self.replay(to, now_ns);
        }
        if happens(10, weather.repeat) {
            let copy = self.copy(place);
            self.traffic.repeated += 1;
            let late_ns = self.chance.below(200_000);
            self.schedule(copy, interface, now_ns + late_ns);
        }
        if happens(0, weather.loss) {
            self.traffic.lost += 1;
            return self.release(place);
        }
        if happens(30, weather.damage) {
            self.damage(place);
        }
        let late_ns = if happens(20, weather.late) { self.chance.below(100_000) } else { 0 };
        self.schedule(place, interface, now_ns + late_ns);
    }

    /// Counts a frame of `length` bytes in buffer `place` that a function sent and that is not
    /// carried.
    pub fn swallow(&mut self, place: u32, length: usize) {
        self.traffic.sent += 1;
        self.traffic.bytes += length as u64;
        self.traffic.lost += 1;
        self.release(place);
    }

    /// Carries a frame that an adversary made, by the first interface.
    pub fn forge(&mut self, from: usize, to: usize, bytes: &[u8], now_ns: u64) {
        let place = self.reserve();
        let frame = &mut self.frames[place as usize];
        let length = bytes.len().min(frame.bytes.len());
        (frame.to, frame.from, frame.length) = (to, device::place(from, 0), length);
        frame.bytes[..length].copy_from_slice(&bytes[..length]);
        self.traffic.forged += 1;
        self.push(place, now_ns + self.latency_ns[0]);
    }

    /// When the next frame arrives.
    #[inline]
    pub fn next_arrival_ns(&self) -> u64 {
        self.arrivals.peek().map_or(u64::MAX, |&Reverse((at_ns, _))| at_ns)
    }

    /// The buffer of the frame that arrives next. It must be released or put off.
    pub fn arrive(&mut self) -> Option<u32> {
        let Reverse((_, key)) = self.arrivals.pop()?;
        self.traffic.arrived += 1;
        Some(key as u32 & 0xf_ffff)
    }

    /// A frame that has arrived.
    #[inline]
    pub fn frame(&self, place: u32) -> &Frame {
        &self.frames[place as usize]
    }

    /// The function is stalled: the frame waits for it.
    pub fn put_off(&mut self, place: u32, until_ns: u64) {
        self.traffic.arrived -= 1;
        self.push(place, until_ns);
    }

    /// The function no longer exists.
    pub fn lose(&mut self, place: u32) {
        self.traffic.arrived -= 1;
        self.traffic.lost += 1;
        self.release(place);
    }

    /// Frames in flight.
    pub fn under_way(&self) -> usize {
        self.arrivals.len()
    }

    /// Whether all frames are accounted for.
    pub fn balances(&self) -> bool {
        let Traffic { sent, repeated, lost, arrived, forged, .. } = self.traffic;
        sent + repeated + forged == lost + arrived + self.under_way() as u64
    }

    fn schedule(&mut self, place: u32, interface: usize, now_ns: u64) {
        let Frame { to, length, .. } = self.frames[place as usize];
        let mut at_ns = now_ns + self.latency_ns[interface];
        if self.byte_ps > 0 {
            let busy_ns = &mut self.busy_until_ns[to][interface];
            if *busy_ns > now_ns + LONGEST_QUEUE_NS {
                self.traffic.lost += 1;
                return self.release(place);
            }
            *busy_ns = (*busy_ns).max(now_ns) + length as u64 * self.byte_ps / 1000;
            at_ns = at_ns.max(*busy_ns + self.latency_ns[interface]);
        }
        if self.archive.len() < ARCHIVE_FRAMES || self.order & 63 == 0 {
            self.keep(place);
        }
        // Ethernet pads short frames.
        let frame = &mut self.frames[place as usize];
        if self.order & 15 == 0 {
            frame.bytes[length..length + PADDING_BYTES].fill(0x5a);
            frame.length += PADDING_BYTES;
        }
        self.push(place, at_ns);
    }

    fn push(&mut self, place: u32, at_ns: u64) {
        self.order += 1;
        self.arrivals.push(Reverse((at_ns, self.order << 20 | place as u64)));
    }

    fn copy(&mut self, place: u32) -> u32 {
        let copy = self.reserve();
        let [from, to] =
            self.frames.get_disjoint_mut([place as usize, copy as usize]).unwrap_or_else(
                // A reserved buffer is not given out again.
                |_| unreachable!("a copy has a place of its own"),
            );
        (to.to, to.from, to.length) = (from.to, from.from, from.length);
        to.bytes[..from.length].copy_from_slice(&from.bytes[..from.length]);
        copy
    }

    /// Flips one to three bits anywhere, or several within 32 bits: the check value detects all of
    /// these.
    fn damage(&mut self, place: u32) {
        self.traffic.damaged += 1;
        let frame = &mut self.frames[place as usize];
        let bits = frame.length as u64 * 8;
        if self.chance.hits(300) {
            let first = self.chance.below(bits - 31);
            let pattern = self.chance.bits() as u32 | 1 << 31;
            for bit in (0..32).filter(|bit| pattern >> bit & 1 == 1).map(|bit| first + bit) {
                frame.bytes[bit as usize / 8] ^= 1 << (bit % 8);
            }
            return;
        }
        for _ in 0..1 + self.chance.below(3) {
            let bit = self.chance.below(bits);
            frame.bytes[bit as usize / 8] ^= 1 << (bit % 8);
        }
    }

    /// Archives a copy of a frame for replay.
    fn keep(&mut self, place: u32) {
        let Frame { to, from, length, .. } = self.frames[place as usize];
        let bytes = self.frames[place as usize].bytes[..length].to_vec();
        if self.archive.len() < ARCHIVE_FRAMES {
            self.archive.push((to, from, bytes));
        } else {
            self.archive[self.archive_turn % ARCHIVE_FRAMES] = (to, from, bytes);
            self.archive_turn += 1 + self.chance.below(3) as usize;
        }
    }

    /// Replays an archived frame that went to this function before.
    fn replay(&mut self, to: usize, now_ns: u64) {
        if self.archive.is_empty() {
            return;
        }
        let chosen = self.chance.below(self.archive.len() as u64) as usize;
        if self.archive[chosen].0 != to {
            return;
        }
        let place = self.reserve();
        let (to, from, bytes) = &self.archive[chosen];
        let frame = &mut self.frames[place as usize];
        (frame.to, frame.from, frame.length) = (*to, *from, bytes.len());
        frame.bytes[..bytes.len()].copy_from_slice(bytes);
        self.traffic.repeated += 1;
        self.push(place, now_ns + 1);
    }
}
