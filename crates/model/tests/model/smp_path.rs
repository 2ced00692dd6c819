//! Two ends of the SMP link in gates' terms, and lanes between them that delay beats, flip bits and
//! drop beats. The lock-step of `hardware/smp_link` has this load, too.

use std::collections::VecDeque;

use bellwire_model::cycle::line::{Beat, SYMBOLS, bytes_of};
use bellwire_model::cycle::smp_link::{In, LONGEST, Out, Shape, SmpLink};
use bellwire_model::engine::Random;
use bellwire_wire::link::tlp::Tlp;

const CHANNELS: usize = 2;
/// Cycles of an epoch in which packets enter; then all come to their ends.
const BUSY: u64 = 6_000;
/// In so many cycles without errors all packets have come, and all credits are back.
const PATIENCE: u64 = 20_000;

/// An end whose buffers are often full.
pub const SHAPE: Shape = Shape {
    replay: 40,
    replay_after: 300,
    acknowledge_after: 20,
    headers: 4,
    data: 33,
    update_again_after: 200,
    init_again_after: 100,
    cut_through: true,
};

/// A planted fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// None.
    None,
    /// The network layer keeps packets that are marked bad.
    Unmarked,
    /// A beat of a packet is changed behind the link's check.
    Turned,
    /// Updates of credits never come.
    Silent,
}

/// One end, and what the network layer there does.
struct End {
    link: SmpLink,
    shape: Shape,
    /// Beats of packets that wait to enter, by channel, with whether they end one.
    entering: [VecDeque<(Beat, bool)>; CHANNELS],
    /// Packets that have begun to wait and have not come, by channel.
    under_way: [VecDeque<Vec<u8>>; CHANNELS],
    /// The packet that comes, by channel.
    coming: [Vec<u8>; CHANNELS],
    /// Beats on the lanes towards the other end.
    lanes: VecDeque<Option<Beat>>,
    last: (In, Out),
}

/// What the next cycles are like.
#[derive(Clone, Copy, Debug)]
struct Mood {
    /// Of eight cycles, how many offer a beat, and how many take one, by channel.
    enters: [u64; CHANNELS],
    leaves: [u64; CHANNELS],
    /// Of eight cycles, how many the lanes take a beat in.
    lanes: u64,
    /// DWs of payload, at most.
    longest: u64,
    /// Of 1,024 beats, how many are hit, and how many are dropped.
    hit: u64,
    dropped: u64,
}

/// How often something happened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// Packets that came, by channel.
    pub came: [u64; CHANNELS],
    /// Packets that came marked bad.
    pub bad: u64,
    /// Packets of which a beat left before the last one had come on the lanes.
    pub early: u64,
    /// Damaged frames and link packets.
    pub damaged: u64,
    /// Cycles in which a channel had no header credit, and no data credits.
    pub without_headers: u64,
    pub without_data: u64,
    /// Times that all had come to its end.
    pub quiet: u64,
    /// Calls for training.
    pub retrained: u64,
}

/// The link.
pub struct Path {
    ends: [End; 2],
    delay: usize,
    random: Random,
    mood: Mood,
    fault: Fault,
    /// Cycles of this epoch; the last packet of it has entered.
    cycle: u64,
    seen: Seen,
}

impl Path {
    /// Ends of this shape; how long lanes take is drawn by lot.
    pub fn new(shape: Shape, seed: u64, fault: Fault) -> Path {
        let mut random = Random::new(seed);
        let delay = 1 + random.below(24) as usize;
        let end = || End {
            link: SmpLink::new(shape),
            shape,
            entering: Default::default(),
            under_way: Default::default(),
            coming: Default::default(),
            lanes: (0..delay).map(|_| None).collect(),
            last: Default::default(),
        };
        let ends = [end(), end()];
        let mood =
            Mood { enters: [8; 2], leaves: [8; 2], lanes: 8, longest: 32, hit: 0, dropped: 0 };
        Path { ends, delay, random, mood, fault, cycle: 0, seen: Seen::default() }
    }

    /// What has happened.
    pub fn seen(&self) -> Seen {
        self.seen
    }

    /// Cycles that a beat is on the lanes.
    pub fn delay(&self) -> usize {
        self.delay
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
        if is_busy && self.random.below(256) == 0 {
            self.change_mood();
        }
        if self.cycle == BUSY {
            (self.mood.leaves, self.mood.lanes) = ([8; 2], 8);
            (self.mood.hit, self.mood.dropped) = (0, 0);
        }
        let arrived = [0, 1].map(|at: usize| self.ends[1 - at].lanes.pop_front().flatten());
        for (at, beat) in arrived.into_iter().enumerate() {
            self.step(at, beat, is_busy);
        }
        self.cycle += 1;
        if !is_busy {
            self.settle();
        }
        self.ends[0].last
    }

    fn change_mood(&mut self) {
        let random = &mut self.random;
        let mut often = || [0, 1, 4, 7, 8, 8][random.below(6) as usize];
        let (enters, leaves) = ([often(), often()], [often(), often()]);
        self.mood = Mood {
            enters,
            leaves,
            lanes: [4, 7, 8, 8][random.below(4) as usize],
            longest: [0, 4, 16, 128][random.below(4) as usize],
            hit: [0, 0, 4, 40][random.below(4) as usize],
            dropped: [0, 0, 4, 20][random.below(4) as usize],
        };
    }

    /// A cycle of one end.
    fn step(&mut self, at: usize, beat: Option<Beat>, is_busy: bool) {
        let mood = self.mood;
        let mut input = In { tx_ready: self.random.below(8) < mood.lanes, ..In::default() };
        if let Some(beat) = beat {
            (input.rx_valid, input.rx_k, input.rx_data) = (true, beat.k, beat.words());
        }
        for channel in 0..CHANNELS {
            if is_busy && self.ends[at].entering[channel].is_empty() {
                self.make(at, channel);
            }
            // What has begun comes to its end.
            let rate = if is_busy { mood.enters[channel] } else { 8 };
            if self.random.below(8) < rate
                && let Some((beat, last)) = self.ends[at].entering[channel].front()
            {
                input.in_valid[channel] = true;
                (input.in_data[channel], input.in_last[channel]) = (beat.words(), *last);
            }
            input.out_ready[channel] = self.random.below(8) < mood.leaves[channel];
        }
        let end = &mut self.ends[at];
        let out = end.link.cycle(input);
        end.last = (input, out);
        for channel in 0..CHANNELS {
            if input.in_valid[channel] && out.in_ready[channel] {
                self.ends[at].entering[channel].pop_front();
            }
            if out.out_valid[channel] && input.out_ready[channel] {
                self.comes(at, channel, out);
            }
            assert!(!out.malformed[channel], "each packet is what its header says");
            self.seen.without_headers +=
                u64::from(out.up[channel] && out.left_headers[channel] == 0);
            self.seen.without_data += u64::from(out.up[channel] && out.left_data[channel] == 0);
        }
        assert!(!out.refused, "the far end counts right");
        self.seen.damaged += u64::from(out.damaged);
        self.seen.retrained += u64::from(out.retrain);
        let goes = Beat::new(out.tx_data, out.tx_k);
        let goes = (out.tx_valid && input.tx_ready).then_some(goes);
        let on_lanes = goes.and_then(|beat| self.carried(beat));
        self.ends[at].lanes.push_back(on_lanes);
    }

    /// A packet for the far end begins to wait.
    fn make(&mut self, at: usize, channel: usize) {
        let dws = match self.random.below(4) {
            0 => 0,
            1 => self.mood.longest,
            _ => self.random.below(self.mood.longest + 1),
        };
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
        assert!(beats <= LONGEST);
        end.under_way[channel].push_back(bytes);
    }

    /// A beat of a packet comes out.
    fn comes(&mut self, at: usize, channel: usize, out: Out) {
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
        if out.out_bad[channel] && self.fault != Fault::Unmarked {
            self.seen.bad += 1;
            return;
        }
        let sent = self.ends[1 - at].under_way[channel].pop_front();
        assert_eq!(Some(packet), sent, "end {at}, channel {channel}: the next one in order");
        self.seen.came[channel] += 1;
    }

    /// What becomes of a beat on the lanes: all that is hit lies in 16 bits, in the order in which
    /// the check of a link packet takes them. It notices any such hit.
    fn carried(&mut self, mut beat: Beat) -> Option<Beat> {
        let is_update = beat.k & 0x8100 == 0x8100 && beat.bytes[9] >> 6 == 0b10;
        if self.fault == Fault::Silent && is_update {
            return None;
        }
        let lot = self.random.below(1024);
        if lot < self.mood.dropped {
            return None;
        }
        if lot < self.mood.dropped + self.mood.hit {
            if self.random.below(8) == 0 {
                beat.k ^= 1 << self.random.below(16);
            } else {
                let pattern = u32::from(self.random.word() as u16 | 1);
                let from = self.random.below(8 * SYMBOLS as u64 - 15) as usize;
                for bit in (0..16).filter(|bit| pattern >> bit & 1 == 1) {
                    beat.bytes[(from + bit) / 8] ^= 0x80 >> ((from + bit) % 8);
                }
            }
        }
        Some(beat)
    }

    /// Behind the last packet of an epoch: once all have come and all credits are back, the next
    /// epoch begins.
    fn settle(&mut self) {
        assert!(self.cycle < BUSY + PATIENCE, "all packets come, and all credits come back");
        let is_done = self.ends.iter().all(|end| {
            let Out { left_headers, left_data, .. } = end.last.1;
            end.under_way.iter().all(VecDeque::is_empty)
                && end.coming.iter().all(Vec::is_empty)
                && left_headers == [end.shape.headers; CHANNELS]
                && left_data == [end.shape.data; CHANNELS]
        });
        if is_done {
            self.seen.quiet += 1;
            self.cycle = 0;
            self.change_mood();
        }
    }
}
