//! Two ends of the SMP link as gates have them, with each other and beside the event-driven model.

use std::collections::VecDeque;

use bellwire_model::cycle::lane_deskew::{self, LaneDeskew};
use bellwire_model::cycle::lane_stripe::{self, LaneStripe};
use bellwire_model::cycle::line::{Beat, SYMBOLS};
use bellwire_model::cycle::smp_link::{In, Out, Shape, SmpLink};
use bellwire_model::engine::Random;
use bellwire_wire::link::tlp::Tlp;

use crate::smp_path::{Fault, Path, SHAPE};

/// Over lanes that hit and drop beats each packet comes once, whole, and in the order of its
/// channel. When all have come all credits are back.
// shows: S-14, S-15, S-16, S-20, S-21
#[test]
fn each_packet_comes_once_and_all_credits_come_back() {
    for (seed, cut_through) in [(1, true), (2, false), (3, true)] {
        let mut path = Path::new(Shape { cut_through, ..SHAPE }, seed, Fault::None);
        path.run(100_000);
        let seen = path.seen();
        let common = [seen.came[0], seen.came[1], seen.damaged, seen.without_headers];
        assert!(common.iter().all(|&count| count > 100) && seen.quiet > 3, "{seen:?}");
        assert!(seen.without_data > 0, "{seen:?}");
        assert_eq!(seen.bad > 0, cut_through, "{seen:?}");
    }
}

/// The paper's buffers, with which nothing is scarce.
#[test]
fn the_papers_link_carries_all_packets() {
    let shape = Shape {
        replay: 128,
        replay_after: 206,
        acknowledge_after: 69,
        headers: 32,
        data: 92,
        update_again_after: 7500,
        init_again_after: 34,
        cut_through: true,
    };
    let mut path = Path::new(shape, 1, Fault::None);
    path.run(100_000);
    assert!(path.seen().quiet > 3 && path.seen().bad > 0, "{:?}", path.seen());
}

/// Canary: a packet that is marked bad and kept is noticed.
#[test]
#[should_panic(expected = "the next one in order")]
fn a_bad_packet_that_is_kept_is_noticed() {
    Path::new(SHAPE, 1, Fault::Unmarked).run(100_000);
}

/// Canary: a turned bit is noticed.
#[test]
#[should_panic(expected = "the next one in order")]
fn a_turned_bit_of_a_packet_is_noticed() {
    Path::new(SHAPE, 1, Fault::Turned).run(100_000);
}

/// Canary: credits that do not come back are noticed.
#[test]
#[should_panic(expected = "all credits come back")]
fn lost_credits_are_noticed() {
    Path::new(SHAPE, 1, Fault::Silent).run(100_000);
}

/// The lanes from one end to the other, each with its own delay.
struct Wires {
    stripe: LaneStripe,
    deskew: LaneDeskew,
    lanes: [VecDeque<(u8, u16)>; 8],
    /// Of 1,024 words of a lane, how many are hit.
    hit: u64,
    random: Random,
}

impl Wires {
    fn new(seed: u64, hit: u64) -> Wires {
        let mut random = Random::new(seed);
        let delays: [u64; 8] = std::array::from_fn(|_| 3 + random.below(8));
        Wires {
            stripe: LaneStripe::new(64),
            deskew: LaneDeskew::new(7),
            lanes: delays.map(|delay| (0..delay).map(|_| (0, 0)).collect()),
            hit,
            random,
        }
    }

    /// What comes at the far end, if something does.
    fn carry(&mut self, out: &Out) -> Option<Beat> {
        let (line_valid, line_k, line_data) = (out.tx_valid, out.tx_k, out.tx_data);
        let sent = self.stripe.cycle(lane_stripe::In { line_valid, line_k, line_data });
        let mut input = lane_deskew::In::default();
        for (at, lane) in self.lanes.iter_mut().enumerate() {
            lane.push_back((sent.lane_k[at], sent.lane_data[at]));
            let (k, mut data) = lane.pop_front().expect("one was put");
            if self.random.below(1024) < self.hit {
                data ^= 1 << self.random.below(16);
            }
            (input.lane_k[at], input.lane_data[at]) = (k, data);
        }
        let came = self.deskew.cycle(input);
        came.line_valid.then(|| Beat::new(came.line_data, came.line_k))
    }
}

/// Two ends whose lanes take one cycle or are `wires`, and what waits to enter the first one.
struct Pair {
    ends: [SmpLink; 2],
    lanes: [Option<Beat>; 2],
    /// Those from each end.
    wires: Option<[Wires; 2]>,
    entering: [VecDeque<(Beat, bool)>; 2],
    /// Which channels take at the second end.
    takes: [bool; 2],
    /// The second end does not hear the first one.
    is_deaf: bool,
}

impl Pair {
    fn new(shape: Shape) -> Pair {
        Pair {
            ends: [SmpLink::new(shape), SmpLink::new(shape)],
            lanes: Default::default(),
            wires: None,
            entering: Default::default(),
            takes: [true; 2],
            is_deaf: false,
        }
    }

    /// A packet with so many DWs of payload waits.
    fn offer(&mut self, channel: usize, payload_dws: usize) {
        let payload = vec![0x5a; 4 * payload_dws];
        let tlp =
            Tlp { channel: channel as u8, requester: 0, tag: 0, address: 9, payload: &payload };
        let mut bytes = vec![0; tlp.buffer_len()];
        tlp.emit(&mut bytes).expect("it is not too long");
        let beats = bytes.len().div_ceil(SYMBOLS);
        for (at, chunk) in bytes.chunks(SYMBOLS).enumerate() {
            let mut beat = Beat::default();
            beat.bytes[..chunk.len()].copy_from_slice(chunk);
            self.entering[channel].push_back((beat, at + 1 == beats));
        }
    }

    /// One cycle: whether a beat entered the first end, and the outputs of both.
    fn cycle(&mut self) -> (bool, [Out; 2]) {
        let mut inputs = self.lanes.map(|beat| In {
            out_ready: self.takes,
            tx_ready: true,
            rx_valid: beat.is_some(),
            rx_k: beat.map_or(0, |beat| beat.k),
            rx_data: beat.map_or([0; 2], |beat| beat.words()),
            ..In::default()
        });
        inputs[1].rx_valid &= !self.is_deaf;
        if let Some(wires) = &self.wires {
            for (input, wires) in inputs.iter_mut().zip(wires) {
                input.tx_ready = wires.stripe.line_ready();
            }
        }
        for channel in 0..2 {
            if let Some((beat, last)) = self.entering[channel].front() {
                inputs[0].in_valid[channel] = true;
                inputs[0].in_data[channel] = beat.words();
                inputs[0].in_last[channel] = *last;
            }
        }
        let outs = [0, 1].map(|at: usize| self.ends[at].cycle(inputs[at]));
        let mut has_entered = false;
        for channel in 0..2 {
            if inputs[0].in_valid[channel] && outs[0].in_ready[channel] {
                self.entering[channel].pop_front();
                has_entered = true;
            }
        }
        self.lanes = [1, 0].map(|far: usize| match &mut self.wires {
            Some(wires) => wires[far].carry(&outs[far]),
            None => Some(Beat::new(outs[far].tx_data, outs[far].tx_k)),
        });
        (has_entered, outs)
    }

    /// Runs until packets may go.
    fn come_up(&mut self) {
        for _ in 0..300 {
            self.cycle();
        }
        assert!(self.cycle().1.iter().all(|out| out.up == [true; 2]));
    }
}

/// Packets pass over eight lanes with skew, of which some symbols are hit: all come, whole and in
/// order.
// shows: S-16, S-19
#[test]
fn packets_pass_over_lanes_with_skew() {
    for (seed, hit) in [(1, 0), (2, 1), (3, 3)] {
        let mut pair = Pair::new(SHAPE);
        pair.wires = Some([Wires::new(seed, hit), Wires::new(seed + 100, hit)]);
        let mut random = Random::new(seed);
        let mut sent = Vec::new();
        for _ in 0..200 {
            pair.offer(0, random.below(40) as usize);
        }
        sent.extend(pair.entering[0].iter().copied());
        let (mut came, mut packet, mut damaged) = (Vec::new(), Vec::new(), 0);
        for _ in 0..100_000 {
            let (_, [near, far]) = pair.cycle();
            damaged += u32::from(near.damaged) + u32::from(far.damaged);
            if far.out_valid[0] {
                packet.push((Beat::new(far.out_data[0], 0), far.out_last[0]));
                if far.out_last[0] {
                    let whole = std::mem::take(&mut packet);
                    came.extend(Some(whole).filter(|_| !far.out_bad[0]).into_iter().flatten());
                }
            }
            if came.len() == sent.len() {
                break;
            }
        }
        assert!(came == sent, "seed {seed}: {} of {} beats", came.len(), sent.len());
        assert_eq!(damaged > 0, hit > 0, "seed {seed}");
    }
}

/// A packet is on the line five cycles after it entered, and its last beat leaves the far end, over
/// lanes that take a cycle: after 11 cycles for a payload of 1 DW, 15 for 16 DW and 43 for 128 DW.
/// Store-and-forward takes as many cycles more as the packet has beats beyond its first.
// shows: S-20, S-21
#[test]
fn a_packet_takes_these_cycles() {
    let cycles = |cut_through, payload_dws| {
        let mut pair = Pair::new(Shape { data: 64, cut_through, ..SHAPE });
        pair.come_up();
        pair.offer(1, payload_dws);
        let (mut begun, mut on_line) = (None, None);
        for cycle in 0..200 {
            let (has_entered, outs) = pair.cycle();
            begun = begun.or(has_entered.then_some(cycle));
            let is_frame = outs[0].tx_valid && outs[0].tx_k & 1 == 1;
            on_line = on_line.or(is_frame.then_some(cycle));
            if outs[1].out_valid[1] && outs[1].out_last[1] {
                let begun = begun.expect("what leaves has entered");
                return (on_line.expect("it was on the line") - begun, cycle - begun);
            }
        }
        panic!("the packet comes");
    };
    for (payload_dws, beats, early) in [(1, 2, 11), (16, 6, 15), (128, 34, 43)] {
        assert_eq!(cycles(true, payload_dws), (5, early), "{payload_dws} DW");
        assert_eq!(cycles(false, payload_dws), (5, early + beats - 1), "{payload_dws} DW");
    }
}

/// An end whose far end hears nothing never comes up, and sends no packet.
// shows: S-15
#[test]
fn no_packet_goes_before_both_ends_know_their_credits() {
    let mut pair = Pair::new(SHAPE);
    pair.is_deaf = true;
    pair.offer(0, 4);
    pair.offer(1, 4);
    for _ in 0..2_000 {
        let (_, outs) = pair.cycle();
        assert_eq!((outs[0].up, outs[0].tx_k & 1), ([false; 2], 0));
    }
    pair.is_deaf = false;
    let came = (0..400).filter(|_| pair.cycle().1[1].out_last != [false; 2]).count();
    assert_eq!(came, 2);
}

/// Channel 1 moves on while nobody takes what channel 0 brings. If both move, they take turns.
// shows: S-14
#[test]
fn a_blocked_channel_lets_the_other_one_pass() {
    let mut pair = Pair::new(SHAPE);
    pair.come_up();
    let mut share = |takes| {
        pair.takes = takes;
        let mut came = [0; 2];
        for _ in 0..3_000 {
            for channel in 0..2 {
                if pair.entering[channel].len() < SYMBOLS {
                    pair.offer(channel, 12);
                }
            }
            let (_, outs) = pair.cycle();
            for channel in 0..2 {
                let is_last = outs[1].out_valid[channel] && outs[1].out_last[channel];
                came[channel] += u32::from(is_last && takes[channel]);
            }
        }
        came
    };
    let [none, all] = share([false, true]);
    assert!(none == 0 && all > 300, "{all}");
    let both = share([true; 2]);
    assert!(both[0] > 200 && both[0].abs_diff(both[1]) < 20, "{both:?}");
}
