//! The cycle blocks of the SMP link: against the protocol that the event-driven model runs, and
//! with each other.

use std::collections::VecDeque;

use bellwire_model::cycle::credit_gate::{self, CreditGate};
use bellwire_model::cycle::credit_ledger::{self, CreditLedger};
use bellwire_model::cycle::dllp_rx::{self, DllpRx};
use bellwire_model::cycle::dllp_tx;
use bellwire_model::cycle::fc_init::{self, FcInit};
use bellwire_model::cycle::frame_rx::{self, FrameRx};
use bellwire_model::cycle::frame_tx::{self, FrameTx};
use bellwire_model::cycle::line::Beat;
use bellwire_model::cycle::replay_buf::{In, Out, ReplayBuf, SEQUENCE_BITS};
use bellwire_model::cycle::rx_ack::{self, RxAck};
use bellwire_model::engine::Random;
use bellwire_protocol::link_layer::{TimedOut, Transmitter};
use bellwire_wire::link::tlp::Tlp;

/// Bytes of a beat.
const BEAT: usize = 16;
/// Beats of the longest frame.
const LONGEST: u64 = 34;
const NUMBERS: u64 = 1 << SEQUENCE_BITS;

/// A frame, as the protocol keeps it: its number since the start.
type Frame = u64;

/// The replay buffer and the protocol, which get the same frames and acknowledgements.
struct Both {
    buffer: ReplayBuf,
    protocol: Transmitter<Frame>,
    now: u64,
    depth: usize,
    /// Remaining beats of the frame that enters, and frames that have begun to enter.
    entering: u64,
    begun: u64,
    /// Beats that the buffer offered room for.
    room: usize,
    /// The frame on the line, and since when; frames that have left whole.
    on_line: Option<(u64, u64)>,
    left: u64,
    /// An ACK or NAK that was taken in the cycle before.
    taken: Option<(u16, bool)>,
    /// What takes effect behind the cycle before.
    effects: Effects,
    /// The longest time that a frame was on the line.
    longest: u64,
    seen: Seen,
}

/// What a cycle does at its end: a frame that begins in the next one was chosen before.
#[derive(Clone, Copy, Default)]
struct Effects {
    ack: Option<(u16, bool)>,
    refused: bool,
    timed_out: bool,
    retrain: bool,
}

/// How often something happened.
#[derive(Debug, Default)]
struct Seen {
    first: u64,
    again: u64,
    refused: u64,
    timeouts: u64,
    retrained: u64,
    /// Cycles in which an acknowledged frame was still on the line.
    stale: u64,
}

impl Both {
    fn new(depth: usize, replay_after: u64) -> Both {
        Both {
            buffer: ReplayBuf::new(depth, replay_after),
            protocol: Transmitter::new(depth * BEAT, replay_after),
            now: 0,
            depth,
            entering: 0,
            begun: 0,
            room: depth,
            on_line: None,
            left: 0,
            taken: None,
            effects: Effects::default(),
            longest: 0,
            seen: Seen::default(),
        }
    }

    /// A cycle. With `beats` a frame of that length begins, if both have room for all of it.
    fn cycle(&mut self, beats: Option<u64>, out_ready: bool, ack: Option<(u64, bool)>) {
        let is_between = self.entering == 0;
        let has_room = |&beats: &u64| {
            self.room >= beats as usize && self.protocol.has_room(beats as usize * BEAT)
        };
        let begins = beats.filter(|_| is_between).filter(has_room);
        self.entering += begins.unwrap_or(0);
        let (sequence, ack_nak) = ack.unwrap_or_default();
        let input = In {
            in_valid: self.entering > 0,
            in_last: self.entering == 1,
            in_data: [self.begun + u64::from(begins.is_some()), 0],
            out_ready,
            ack_valid: ack.is_some(),
            ack_nak,
            ack_sequence: (sequence % NUMBERS) as u16,
        };
        let out = self.buffer.cycle(input);
        let on_line = self.line(&out, out_ready);
        self.settle();

        let is_stale = on_line.is_some_and(|frame| frame < self.protocol.frames_acknowledged);
        self.seen.stale += u64::from(is_stale);
        self.room = out.room.into();
        let free = self.depth - self.protocol.held_bytes() / BEAT;
        if is_between {
            assert!(self.room == free || (is_stale && self.room < free), "{} {free}", self.room);
        }
        if let Some(beats) = begins {
            self.protocol.push(self.begun, beats as usize * BEAT).unwrap();
            self.begun += 1;
        }
        self.entering -= u64::from(input.in_valid && out.in_ready);
        let Out { refused, timed_out, retrain, .. } = out;
        self.effects = Effects { ack: self.taken.take(), refused, timed_out, retrain };
        if input.ack_valid && out.ack_ready {
            self.taken = Some((input.ack_sequence, ack_nak));
        }
        self.now += 1;
    }

    /// The frame on the line, which is what the protocol would send.
    fn line(&mut self, out: &Out, out_ready: bool) -> Option<Frame> {
        if !out.out_valid {
            return None;
        }
        if self.on_line.is_none() {
            let (sequence, &frame, is_first) = self.protocol.poll(self.now).expect("it waits");
            assert_eq!((sequence, is_first), (out.out_sequence, !out.out_again), "{}", self.now);
            self.on_line = Some((frame, self.now));
            self.seen.first += u64::from(is_first);
            self.seen.again += u64::from(!is_first);
        }
        let (frame, since) = self.on_line.expect("it began");
        assert_eq!(out.out_data[0], frame + 1);
        self.longest = self.longest.max(self.now - since);
        if out_ready && out.out_last {
            self.left = self.left.max(frame + 1);
            self.on_line = None;
        }
        Some(frame)
    }

    /// What the cycle before did at its end, the protocol does, too.
    fn settle(&mut self) {
        let Some(then) = self.now.checked_sub(1) else { return };
        if let Some((sequence, nak)) = self.effects.ack {
            let done = match nak {
                true => self.protocol.handle_nak(then, sequence, drop),
                false => self.protocol.handle_ack(then, sequence, drop),
            };
            assert_eq!(done.is_err(), self.effects.refused, "{sequence} at {then}");
            self.seen.refused += u64::from(self.effects.refused);
        }
        // The buffer's timer starts when a frame has left, the protocol's when it begins to leave.
        let deadline = self.protocol.deadline();
        if self.effects.timed_out {
            assert!(deadline.is_some_and(|deadline| deadline <= then), "{deadline:?} at {then}");
            let retrains = self.protocol.handle_timeout(then) == TimedOut::Retrain;
            assert_eq!(retrains, self.effects.retrain);
            self.seen.timeouts += 1;
            self.seen.retrained += u64::from(retrains);
        } else if let Some(deadline) = deadline {
            assert!(then <= deadline + self.longest + 1, "{deadline} is over at {then}");
        }
    }
}

/// Random frames, a line that stalls, acknowledgements that are lost, late, repeated or wrong: in
/// each cycle the block has the frame on the line that the protocol of the event-driven model would
/// send, has room for the same frames, refuses the same numbers, and asks for training at the same
/// timeout. Two things differ. The block's timer starts when a frame has left and not when it
/// begins. An acknowledged frame keeps its places until it has left the line.
#[test]
fn the_replay_buffer_does_what_the_protocol_does() {
    for (depth, replay_after, seed) in [(128, 206, 1), (128, 206, 2), (5, 30, 3), (34, 60, 4)] {
        let mut random = Random::new(seed);
        let mut both = Both::new(depth, replay_after);
        let (mut acknowledges, mut stalls, mut lengths) = (8, 1, 1);
        for _ in 0..200_000 {
            if random.below(512) == 0 {
                acknowledges = [0, 1, 4, 16][random.below(4) as usize];
                stalls = [0, 1, 4][random.below(3) as usize];
                lengths = [1, 2, LONGEST.min(depth as u64)][random.below(3) as usize];
            }
            let beats = (random.below(4) > 0).then(|| 1 + random.below(lengths));
            let number = match random.below(16) {
                // It was never sent, or not for a long time.
                0 => both.begun + 1 + random.below(NUMBERS / 4),
                1 => both.left + 3 * NUMBERS - 1 - random.below(NUMBERS / 4),
                // Of the last ones, acknowledged or not.
                _ => both.left + NUMBERS - 1 - random.below(4.min(both.left + 1)),
            };
            let ack = (random.below(64) < acknowledges).then(|| (number, random.below(4) == 0));
            both.cycle(beats, random.below(8) >= stalls, ack);
        }
        let seen = &both.seen;
        let all = [seen.first, seen.again, seen.refused, seen.timeouts, seen.retrained, seen.stale];
        assert!(all.iter().all(|&count| count > 10), "seed {seed}: {seen:?}");
    }
}

/// Things under way, and when each comes.
type Wire<T> = VecDeque<(u64, T)>;

/// What has come by now.
fn come<T>(wire: &mut Wire<T>, now: u64) -> Option<T> {
    let is_here = wire.front().is_some_and(|(at, _)| *at <= now);
    if is_here { wire.pop_front().map(|(_, what)| what) } else { None }
}

/// A replay buffer and a receiver, between which frames and acknowledgements are lost and damaged:
/// every frame is delivered, once and in order. When no more are lost, the buffer is empty in the
/// end.
// shows: S-16
#[test]
fn a_lossy_wire_between_replay_buffer_and_receiver_delivers_all() {
    for (depth, replay_after, delay, seed) in [(128, 206, 40, 1), (128, 206, 5, 2), (5, 60, 3, 3)] {
        let mut random = Random::new(seed);
        let mut buffer = ReplayBuf::new(depth, replay_after);
        let mut receiver = RxAck::new(replay_after / 3);
        let mut frames: Wire<(u16, u64, bool)> = Wire::new();
        let mut acks: Wire<(u16, bool)> = Wire::new();
        let (mut entered, mut delivered, mut again) = (0, 0, 0);
        let mut held = None;
        for now in 0..300_000 {
            let ends = now >= 290_000;
            let is_lost = |random: &mut Random| !ends && random.below(16) == 0;
            // Single beats, each of which is its frame's number.
            held = held.or_else(|| come(&mut acks, now));
            let (ack_sequence, ack_nak) = held.unwrap_or_default();
            let input = In {
                in_valid: !ends && random.below(2) == 0,
                in_last: true,
                in_data: [entered, 0],
                out_ready: random.below(8) > 0,
                ack_valid: held.is_some(),
                ack_nak,
                ack_sequence,
            };
            let out = buffer.cycle(input);
            entered += u64::from(input.in_valid && out.in_ready);
            held = held.filter(|_| !out.ack_ready);
            assert!(!out.refused);
            if out.out_valid && input.out_ready {
                again += u64::from(out.out_again);
                let is_damaged = is_lost(&mut random);
                if !is_lost(&mut random) {
                    frames
                        .push_back((now + delay, (out.out_sequence, out.out_data[0], is_damaged)));
                }
            }

            let frame = come(&mut frames, now);
            let (frame_sequence, number, frame_damaged) = frame.unwrap_or_default();
            let input = rx_ack::In {
                frame_valid: frame.is_some(),
                frame_damaged,
                frame_sequence,
                ack_ready: random.below(4) > 0,
            };
            let out = receiver.cycle(input);
            if out.deliver {
                assert_eq!(number, delivered, "at {now}");
                delivered += 1;
            }
            if out.ack_valid && input.ack_ready && !is_lost(&mut random) {
                acks.push_back((now + delay, (out.ack_sequence, out.ack_nak)));
            }
        }
        assert_eq!(usize::from(buffer.cycle(In::default()).room), depth);
        assert_eq!(delivered, entered);
        assert!(entered > 10_000 && again > 1_000, "{entered} and {again} again");
    }
}

/// An end of a link: all blocks of its link layer.
struct End {
    buffer: ReplayBuf,
    framer: FrameTx,
    frames: FrameRx,
    receiver: RxAck,
    packets: DllpRx,
    /// Beats of the TLP that enters, and how many TLPs have begun.
    entering: VecDeque<Beat>,
    begun: u64,
    /// The TLP that comes, and how many have been delivered.
    coming: Vec<u8>,
    delivered: u64,
    seen: [u64; 4],
}

impl End {
    fn new() -> End {
        End {
            buffer: ReplayBuf::new(64, 300),
            framer: FrameTx::new(),
            frames: FrameRx::new(34),
            receiver: RxAck::new(60),
            packets: DllpRx::new(),
            entering: VecDeque::new(),
            begun: 0,
            coming: Vec::new(),
            delivered: 0,
            seen: [0; 4],
        }
    }

    /// A cycle, in which these symbols come; the symbols that leave. With `dwords` a TLP with that
    /// payload may begin to enter.
    fn cycle(&mut self, came: Option<Beat>, dwords: Option<u64>) -> Option<Beat> {
        let beat = came.unwrap_or_default();
        let line_valid = came.is_some();
        let input = frame_rx::In { line_valid, line_k: beat.k, line_data: beat.words() };
        let frame = self.frames.cycle(input);

        // What stands at the buffer's outputs does not depend on what enters.
        let waiting = self.buffer.clone().cycle(In::default());
        let packet = self.packets.cycle(dllp_rx::In {
            dllp_valid: frame.dllp_valid,
            dllp_data: frame.dllp_data,
            ack_ready: waiting.ack_ready,
        });
        let owed = { self.receiver }.cycle(rx_ack::In::default());
        let mut news = dllp_tx::In {
            ack_valid: owed.ack_valid,
            ack_nak: owed.ack_nak,
            ack_sequence: owed.ack_sequence,
            ..Default::default()
        };
        let offered = dllp_tx::cycle(news);
        let line = self.framer.cycle(frame_tx::In {
            in_valid: waiting.out_valid,
            in_last: waiting.out_last,
            in_sequence: waiting.out_sequence,
            in_data: waiting.out_data,
            dllp_valid: offered.dllp_valid,
            dllp_data: offered.dllp_data,
            line_ready: true,
        });
        news.dllp_ready = line.dllp_ready;

        if let Some(dwords) = dwords.filter(|_| self.entering.is_empty()) {
            // A frame that begins without room for all of it might wait for the ACK of one that
            // cannot be sent again before this one has ended.
            let tlp = tlp_of(self.begun, dwords);
            if tlp.len() <= waiting.room.into() {
                self.entering = tlp;
                self.begun += 1;
            }
        }
        let entering = self.entering.front().copied();
        let out = self.buffer.cycle(In {
            in_valid: entering.is_some(),
            in_last: self.entering.len() == 1,
            in_data: entering.unwrap_or_default().words(),
            out_ready: line.in_ready,
            ack_valid: packet.ack_valid,
            ack_nak: packet.ack_nak,
            ack_sequence: packet.ack_sequence,
        });
        if entering.is_some() && out.in_ready {
            self.entering.pop_front();
        }
        assert!(!out.refused);
        let told = self.receiver.cycle(rx_ack::In {
            frame_valid: frame.frame_valid,
            frame_damaged: frame.frame_damaged,
            frame_sequence: frame.frame_sequence,
            ack_ready: dllp_tx::cycle(news).ack_ready,
        });
        self.take(frame, told.deliver);
        let again = out.out_valid && line.in_ready && out.out_again && out.out_last;
        let damaged = [frame.frame_damaged, packet.damaged, again, told.repeated];
        self.seen = std::array::from_fn(|at| self.seen[at] + u64::from(damaged[at]));
        line.line_valid.then(|| Beat::new(line.line_data, line.line_k))
    }

    /// Keeps the beats of a TLP until its verdict.
    fn take(&mut self, frame: frame_rx::Out, deliver: bool) {
        if frame.out_valid {
            let bytes = Beat::new(frame.out_data, 0).bytes;
            self.coming.extend(&bytes[..BEAT - 4 * usize::from(frame.out_empty)]);
        }
        if frame.frame_valid {
            if deliver {
                let tlp = Tlp::parse(&self.coming).expect("it is sound");
                assert_eq!(tlp.address, self.delivered);
                self.delivered += 1;
            }
            self.coming.clear();
        }
    }
}

/// The beats of a TLP with this address and length.
fn tlp_of(address: u64, dwords: u64) -> VecDeque<Beat> {
    let payload = vec![address as u8; 4 * dwords as usize];
    let tlp = Tlp { channel: 0, requester: 0, tag: 0, address, payload: &payload };
    let mut bytes = vec![0; tlp.buffer_len()];
    tlp.emit(&mut bytes).unwrap();
    let beat = |chunk: &[u8]| {
        let bytes = std::array::from_fn(|at| chunk.get(at).copied().unwrap_or(0));
        Beat { bytes, k: 0 }
    };
    bytes.chunks(BEAT).map(beat).collect()
}

/// Two ends with all blocks of their link layers, and a line each way that flips bits of symbols
/// and marks: every TLP is delivered, once, in order and as it was. In the end all is acknowledged.
// shows: S-16
#[test]
fn a_bad_line_between_two_ends_delivers_all() {
    let mut random = Random::new(5);
    let mut ends = [End::new(), End::new()];
    let mut lines: [Wire<Beat>; 2] = Default::default();
    for now in 0..60_000 {
        let is_over = now >= 55_000;
        for at in 0..2 {
            let dwords = (!is_over && random.below(4) > 0)
                .then(|| [random.below(4), random.below(129)][random.below(2) as usize]);
            let came = come(&mut lines[1 - at], now);
            if let Some(mut beat) = ends[at].cycle(came, dwords) {
                if !is_over && random.below(40) == 0 {
                    let bit = random.below(144) as usize;
                    match bit.checked_sub(128) {
                        Some(mark) => beat.k ^= 1 << mark,
                        None => beat.bytes[bit / 8] ^= 1 << (bit % 8),
                    }
                }
                lines[at].push_back((now + 12, beat));
            }
        }
    }
    for (at, end) in ends.iter_mut().enumerate() {
        assert_eq!(usize::from(end.buffer.cycle(In::default()).room), 64);
        assert!(end.seen.iter().all(|&count| count > 2), "end {at}: {:?}", end.seen);
        assert!(end.begun > 1_000, "{}", end.begun);
    }
    assert_eq!([ends[0].begun, ends[1].begun], [ends[1].delivered, ends[0].delivered]);
}

/// Gate and ledger of a channel, between which updates are lost: the sender stops exactly if its
/// credits do not suffice, the buffer has room for all that comes, and in the end all credits are
/// back.
// shows: S-15
#[test]
fn a_sender_stops_without_credits_and_a_buffer_never_overflows() {
    for (headers, data, seed) in [(32, 92, 1), (127, 2047, 2), (3, 32, 3)] {
        let mut random = Random::new(seed);
        let mut gate = CreditGate::new();
        let mut ledger = CreditLedger::new(headers, data, 500);
        let mut packets: Wire<u16> = Wire::new();
        let mut updates: Wire<(u8, u16)> = Wire::new();
        let mut buffer = VecDeque::new();
        let (mut sent, mut stalled) = (0_u64, [0_u64; 2]);
        for now in 0..200_000 {
            let ends = now >= 190_000;
            let update = come(&mut updates, now);
            let (update_headers, update_data) = update.unwrap_or_default();
            let input = credit_gate::In {
                in_valid: !ends && random.below(4) > 0,
                in_cost: random.below(33) as u16,
                update_valid: update.is_some(),
                update_headers,
                update_data,
            };
            let out = gate.cycle(input);
            assert_eq!(out.in_ready, out.left_headers > 0 && out.left_data >= input.in_cost);
            stalled[0] += u64::from(out.lacks_header);
            stalled[1] += u64::from(out.lacks_data);
            if input.in_valid && out.in_ready {
                sent += 1;
                packets.push_back((now + 20, input.in_cost));
            }

            let packet = come(&mut packets, now);
            // At times nothing leaves for long.
            let leaves =
                (ends || now & 1024 == 0 && random.below(3) == 0).then(|| buffer.pop_front());
            let leaves = leaves.flatten();
            let input = credit_ledger::In {
                in_valid: packet.is_some(),
                in_cost: packet.unwrap_or(0),
                leave_valid: leaves.is_some(),
                leave_cost: leaves.unwrap_or(0),
                update_ready: random.below(2) == 0,
            };
            let out = ledger.cycle(input);
            if let Some(cost) = packet {
                assert!(out.in_ready, "no room at {now}");
                buffer.push_back(cost);
            }
            let is_lost = !ends && random.below(4) == 0;
            if out.update_valid && input.update_ready && !is_lost {
                updates.push_back((now + 20, (out.update_headers, out.update_data)));
            }
        }
        let left = gate.cycle(credit_gate::In::default());
        assert_eq!((left.left_headers, left.left_data), (headers, data));
        assert!(
            sent > 1_000 && (headers == 127 || stalled[0] > 100) && stalled[1] > 100,
            "{stalled:?}"
        );
    }
}

/// What an end of a link knows of credits: two channels.
struct Credits {
    ledgers: [CreditLedger; 2],
    inits: [FcInit; 2],
    gates: [CreditGate; 2],
    packets: DllpRx,
}

impl Credits {
    fn new() -> Credits {
        Credits {
            ledgers: [CreditLedger::new(32, 92, 7500), CreditLedger::new(5, 8, 7500)],
            inits: [FcInit::new(34); 2],
            gates: [CreditGate::new(); 2],
            packets: DllpRx::new(),
        }
    }

    /// A cycle, in which this link packet comes: the one that leaves, and which channels are up.
    fn cycle(&mut self, came: Option<u64>, dllp_ready: bool) -> (Option<u64>, [bool; 2]) {
        let heard = self.packets.cycle(dllp_rx::In {
            dllp_valid: came.is_some(),
            dllp_data: came.unwrap_or(0),
            ack_ready: true,
        });
        // What stands at the outputs does not depend on what is taken.
        let granted = self.ledgers.map(|mut ledger| ledger.cycle(Default::default()));
        let due: [fc_init::Out; 2] = std::array::from_fn(|at| {
            let update_valid = granted[at].update_valid;
            { self.inits[at] }.cycle(fc_init::In { update_valid, ..Default::default() })
        });
        let out = dllp_tx::cycle(dllp_tx::In {
            update_valid: due.map(|out| out.send_valid),
            update_stage: due.map(|out| out.send_stage),
            update_headers: granted.map(|out| out.update_headers),
            update_data: granted.map(|out| out.update_data),
            dllp_ready,
            ..Default::default()
        });
        for (at, granted) in granted.iter().enumerate() {
            let init = self.inits[at].cycle(fc_init::In {
                update_valid: granted.update_valid,
                send_ready: out.update_ready[at],
                heard_valid: heard.update_valid[at],
                heard_stage: heard.update_stage,
                ..Default::default()
            });
            let update_ready = init.update_ready;
            self.ledgers[at].cycle(credit_ledger::In { update_ready, ..Default::default() });
            self.gates[at].cycle(credit_gate::In {
                update_valid: init.grant_valid,
                update_headers: heard.update_headers,
                update_data: heard.update_data,
                ..Default::default()
            });
        }
        let sent = (out.dllp_valid && dllp_ready).then_some(out.dllp_data);
        (sent, due.map(|out| out.up))
    }
}

/// Two ends exchange their first credits while half of all link packets are lost or damaged: both
/// channels come up at both ends, and each sender then has exactly the credits of the far buffer.
// shows: S-15
#[test]
fn both_channels_come_up_over_a_bad_line() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let mut ends = [Credits::new(), Credits::new()];
        let mut lines: [Wire<u64>; 2] = Default::default();
        let mut came_up = [[None; 2]; 2];
        for now in 0..5_000 {
            for at in 0..2 {
                let came = come(&mut lines[1 - at], now);
                let (sent, up) = ends[at].cycle(came, random.below(4) > 0);
                for channel in (0..2).filter(|&channel| up[channel]) {
                    came_up[at][channel].get_or_insert(now);
                    let left = ends[at].gates[channel].cycle(Default::default());
                    let all = [(32, 92), (5, 8)][channel];
                    assert_eq!((left.left_headers, left.left_data), all, "at {now}");
                }
                if let Some(packet) = sent.filter(|_| random.below(4) > 0) {
                    let is_damaged = random.below(4) == 0;
                    let flips = if is_damaged { 1 << random.below(64) } else { 0 };
                    lines[at].push_back((now + 17, packet ^ flips));
                }
            }
        }
        let last = came_up.as_flattened().iter().copied().max().flatten();
        assert!(came_up.as_flattened().iter().all(Option::is_some), "seed {seed}: {came_up:?}");
        assert!(last.is_some_and(|last| (38..2_000).contains(&last)), "seed {seed}: {last:?}");
    }
}
