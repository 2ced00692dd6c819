//! Two ends of the SMP link with their lanes. Lanes have a skew each, hit symbols, and die for a
//! while. The lock-step of `hardware/smp_port` has this load, too.

use std::collections::VecDeque;

use bellwire_model::cycle::line::{Beat, SYMBOLS, bytes_of};
use bellwire_model::cycle::smp_port::{In, Out, Shape, SmpPort};
use bellwire_model::cycle::{lane_train, smp_link};
use bellwire_model::engine::Random;
use bellwire_wire::link::lanes::COM;
use bellwire_wire::link::tlp::Tlp;

const CHANNELS: usize = 2;
const LANES: usize = 8;
/// Cycles of an epoch in which packets enter; then all come to their ends.
const BUSY: u64 = 6_000;
/// In so many cycles without errors all packets have come, and all credits are back.
const PATIENCE: u64 = 20_000;

/// An end whose buffers are often full, and that trains in a short time.
pub const SHAPE: Shape = Shape {
    link: smp_link::Shape {
        replay: 40,
        replay_after: 150,
        acknowledge_after: 20,
        headers: 4,
        data: 33,
        update_again_after: 200,
        init_again_after: 100,
        cut_through: true,
    },
    mark_every: 64,
    max_skew: 7,
    train: lane_train::Shape { every: 16, sets: 2, lost_after: 200 },
};

/// A planted fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// None.
    None,
    /// Training resets the first end.
    Resets,
    /// A beat of a packet is changed behind the link's check.
    Turned,
}

/// How often something happened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// Packets that came.
    pub came: u64,
    /// Packets that came marked bad, and damaged frames and link packets.
    pub bad: u64,
    /// See `bad`.
    pub damaged: u64,
    /// Times that lanes were trained, and those in which a packet was under way.
    pub trained: u64,
    /// See `trained`.
    pub under_way: u64,
    /// Times that all had come to its end.
    pub quiet: u64,
    /// Trainings that began while a lane hit all symbols but marks.
    pub asked: u64,
}

type Word = (u8, u16);

struct End {
    port: SmpPort,
    /// Beats of packets that wait to enter, by channel, with whether they end one.
    entering: [VecDeque<(Beat, bool)>; CHANNELS],
    /// Packets that have begun to wait and have not come, by channel.
    under_way: [VecDeque<Vec<u8>>; CHANNELS],
    /// The packet that comes, by channel.
    coming: [Vec<u8>; CHANNELS],
    /// What is on each lane towards this end, and lanes that carry nothing.
    lanes: [VecDeque<Word>; LANES],
    dead: u8,
    /// Lanes that hit all symbols but marks, so that only the link notices.
    dirty: u8,
    last: (In, Out),
}

/// The link.
pub struct PortPath {
    ends: [End; 2],
    shape: Shape,
    random: Random,
    fault: Fault,
    cycle: u64,
    /// Of 8,192 words of a lane, how many are hit. Of eight cycles, how many take a beat.
    hit: u64,
    takes: [u64; CHANNELS],
    longest: u64,
    seen: Seen,
}

impl PortPath {
    /// Ends of this shape.
    pub fn new(shape: Shape, seed: u64, fault: Fault) -> PortPath {
        let mut random = Random::new(seed);
        let mut end = || {
            let delay = 1 + random.below(16);
            let lane = |random: &mut Random| {
                (0..delay + random.below(shape.max_skew as u64 + 1)).map(|_| (0, 0)).collect()
            };
            End {
                port: SmpPort::new(shape),
                entering: Default::default(),
                under_way: Default::default(),
                coming: Default::default(),
                lanes: std::array::from_fn(|_| lane(&mut random)),
                dead: 0,
                dirty: 0,
                last: Default::default(),
            }
        };
        let ends = [end(), end()];
        let (hit, takes, longest, seen) = (0, [8; 2], 32, Seen::default());
        PortPath { ends, shape, random, fault, cycle: 0, hit, takes, longest, seen }
    }

    /// What has happened.
    pub fn seen(&self) -> Seen {
        self.seen
    }

    /// Runs for so many cycles.
    pub fn run(&mut self, cycles: u64) {
        for _ in 0..cycles {
            self.cycle();
        }
    }

    /// One cycle: what entered the first end, and what left it.
    ///
    /// # Panics
    /// If a packet comes that is not the next one of its channel, or does not come at all, or if
    /// credits are lost.
    pub fn cycle(&mut self) -> (In, Out) {
        let is_busy = self.cycle < BUSY;
        let is_dirty = self.ends.iter().any(|end| end.dirty > 0);
        if is_busy && self.random.below(if is_dirty { 2048 } else { 512 }) == 0 {
            self.change_mood();
        }
        if self.cycle == BUSY {
            (self.hit, self.takes) = (0, [8; 2]);
            self.ends.iter_mut().for_each(|end| (end.dead, end.dirty) = (0, 0));
        }
        for at in 0..2 {
            self.step(at, is_busy);
        }
        self.cycle += 1;
        if !is_busy {
            self.settle();
        }
        self.ends[0].last
    }

    fn change_mood(&mut self) {
        let random = &mut self.random;
        self.hit = [0, 0, 1, 16][random.below(4) as usize];
        self.longest = [0, 4, 16, 128][random.below(4) as usize];
        self.takes = [0; 2].map(|_: u8| [0, 4, 8, 8][random.below(4) as usize]);
        for end in &mut self.ends {
            end.dead = if random.below(4) == 0 { 1 << random.below(8) } else { 0 };
            end.dirty = if random.below(8) == 0 { 1 << random.below(8) } else { 0 };
        }
    }

    fn step(&mut self, at: usize, is_busy: bool) {
        let mut input = In::default();
        for lane in 0..LANES {
            let (mut k, mut data) = self.ends[at].lanes[lane].pop_front().expect("one was put");
            if self.hit > 0 && self.random.below(8192) < self.hit {
                match self.random.below(8) {
                    0 => k ^= 1 << self.random.below(2),
                    _ => data ^= 1 << self.random.below(16),
                }
            }
            let is_mark = k & 1 == 1 && data as u8 == COM;
            if self.ends[at].dirty >> lane & 1 == 1 && !is_mark {
                data ^= 0x0101;
            }
            let word = if self.ends[at].dead >> lane & 1 == 1 { (0, 0) } else { (k, data) };
            (input.rx_k[lane], input.rx_data[lane]) = word;
        }
        for channel in 0..CHANNELS {
            if is_busy && self.ends[at].entering[channel].is_empty() && self.random.below(8) == 0 {
                self.make(at, channel);
            }
            if let Some((beat, last)) = self.ends[at].entering[channel].front() {
                input.in_valid[channel] = true;
                (input.in_data[channel], input.in_last[channel]) = (beat.words(), *last);
            }
            input.out_ready[channel] = self.random.below(8) < self.takes[channel];
        }
        let end = &mut self.ends[at];
        let out = end.port.cycle(input);
        end.last = (input, out);
        if out.recovers && at == 0 && self.fault == Fault::Resets {
            end.port = SmpPort::new(self.shape);
        }
        assert!(out.malformed == [false; CHANNELS] && !out.refused, "the far end counts right");
        for channel in 0..CHANNELS {
            if input.in_valid[channel] && out.in_ready[channel] {
                self.ends[at].entering[channel].pop_front();
            }
            if out.out_valid[channel] && input.out_ready[channel] {
                self.comes(at, channel, &out);
            }
        }
        let waits = self.ends.iter().any(|end| end.under_way.iter().any(|it| !it.is_empty()));
        self.seen.damaged += u64::from(out.damaged);
        let is_dirty = self.ends[at].dirty != 0;
        self.seen.asked += u64::from(out.recovers && is_dirty);
        self.seen.trained += u64::from(out.trained);
        self.seen.under_way += u64::from(out.trained && waits);
        for lane in 0..LANES {
            self.ends[1 - at].lanes[lane].push_back((out.tx_k[lane], out.tx_data[lane]));
        }
    }

    /// A packet for the far end begins to wait.
    fn make(&mut self, at: usize, channel: usize) {
        let dws = self.random.below(self.longest + 1);
        let payload: Vec<u8> = (0..4 * dws).map(|_| self.random.word() as u8).collect();
        let (requester, tag) = (self.random.word() as u16, self.random.word() as u8);
        let address = self.random.word();
        let tlp = Tlp { channel: channel as u8, requester, tag, address, payload: &payload };
        let mut bytes = vec![0; tlp.buffer_len()];
        tlp.emit(&mut bytes).expect("it is not too long");
        let end = &mut self.ends[at];
        let beats = bytes.len().div_ceil(SYMBOLS);
        for (number, chunk) in bytes.chunks(SYMBOLS).enumerate() {
            let mut beat = Beat::default();
            beat.bytes[..chunk.len()].copy_from_slice(chunk);
            end.entering[channel].push_back((beat, number + 1 == beats));
        }
        end.under_way[channel].push_back(bytes);
    }

    /// A beat of a packet comes out.
    fn comes(&mut self, at: usize, channel: usize, out: &Out) {
        let mut bytes = bytes_of(out.out_data[channel]);
        if self.fault == Fault::Turned && self.random.below(64) == 0 {
            bytes[0] ^= 1;
        }
        let end = &mut self.ends[at];
        end.coming[channel].extend(bytes);
        if !out.out_last[channel] {
            return;
        }
        let mut packet = std::mem::take(&mut end.coming[channel]);
        packet.truncate(packet.len() - 4 * usize::from(out.out_empty[channel]));
        if out.out_bad[channel] {
            self.seen.bad += 1;
            return;
        }
        let sent = self.ends[1 - at].under_way[channel].pop_front();
        assert_eq!(Some(packet), sent, "end {at}, channel {channel}: the next one in order");
        self.seen.came += 1;
    }

    /// Behind the last packet of an epoch: once all have come and all credits are back, the next
    /// epoch begins.
    fn settle(&mut self) {
        assert!(self.cycle < BUSY + PATIENCE, "all packets come, and all credits come back");
        let shape = self.shape.link;
        let is_done = self.ends.iter().all(|end| {
            let Out { left_headers, left_data, lanes_up, .. } = end.last.1;
            end.under_way.iter().all(VecDeque::is_empty)
                && end.coming.iter().all(Vec::is_empty)
                && left_headers == [shape.headers; CHANNELS]
                && left_data == [shape.data; CHANNELS]
                && lanes_up
        });
        if is_done {
            self.seen.quiet += 1;
            self.cycle = 0;
            self.change_mood();
        }
    }
}
