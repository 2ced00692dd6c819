//! `replay_buf`: the replay buffer of the SMP link (S-16, S-17), as `hardware/replay_buf` builds
//! it.
//!
//! Its rules are those of [`Transmitter`](bellwire_protocol::link_layer::Transmitter), in beats and
//! cycles. Frames and words have numbers here that never wrap; gates have those of the ports.

use bellwire_wire::link::llp::SEQUENCES;

/// Bits of a sequence number.
pub const SEQUENCE_BITS: usize = SEQUENCES.ilog2() as usize;
/// Words of 64 bits in a beat: the layers move 16 bytes per cycle.
pub const BEAT_WORDS: usize = 2;

/// Frames whose acknowledgements can be told from late ones.
const WINDOW: u16 = SEQUENCES / 2;
/// Timeouts in a row without progress after which the link should be retrained.
const FRUITLESS_REPLAYS: u8 = 4;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// A beat of a frame is offered.
        in_valid: bool = 1,
        /// It is the frame's last one.
        in_last: bool = 1,
        /// The beat.
        in_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// A beat is taken, if one is offered.
        out_ready: bool = 1,
        /// An ACK or a NAK has come.
        ack_valid: bool = 1,
        /// It is a NAK: what it does not acknowledge is sent again.
        ack_nak: bool = 1,
        /// All frames up to this number have come.
        ack_sequence: u16 = SEQUENCE_BITS,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// The offered beat is taken.
        in_ready: bool = 1,
        /// Beats that can enter.
        room: u16 = 16,
        /// A beat is offered.
        out_valid: bool = 1,
        /// It is its frame's last one.
        out_last: bool = 1,
        /// The frame has been sent before.
        out_again: bool = 1,
        /// The frame's number; zero if no beat is offered.
        out_sequence: u16 = SEQUENCE_BITS,
        /// The beat; zero if none is offered.
        out_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// The ACK or NAK is taken.
        ack_ready: bool = 1,
        /// What was taken in the cycle before names a frame that was never sent.
        refused: bool = 1,
        /// The replay timer expires.
        timed_out: bool = 1,
        /// It expires for the fourth time without progress: the link should be retrained.
        retrain: bool = 1,
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Beat {
    data: [u64; BEAT_WORDS],
    last: bool,
}

/// An ACK or NAK in its second cycle.
#[derive(Clone, Copy, Debug)]
struct Acknowledged {
    /// The oldest frame that it does not acknowledge.
    oldest: u64,
    nak: bool,
}

/// A buffer of `depth` beats.
///
/// A beat that enters in cycle `t` can leave from `t + 2` on, also before the rest of its frame has
/// entered. A frame whose first beat is offered is sent to its end, whatever comes meanwhile.
#[derive(Clone, Debug)]
pub struct ReplayBuf {
    beats: Vec<Beat>,
    /// Of each frame, the number of the beat behind its last one.
    ends: Vec<u64>,
    /// Beats that have entered, and frames that have entered whole.
    written: u64,
    filled: u64,
    /// The oldest frame that is not acknowledged, and the number of its first beat.
    oldest: u64,
    base: u64,
    /// The frame and the beat that leave next.
    current: u64,
    read: u64,
    /// Frames that have been sent whole.
    sent: u64,
    out_valid: bool,
    /// A frame has begun to leave and has not ended.
    mid: bool,
    /// After the frame that leaves, the oldest one follows.
    jump: bool,
    acknowledged: Option<Acknowledged>,
    refused: bool,
    /// Cycles since the timer was started; zero while it stands.
    timer: u64,
    replay_after: u64,
    fruitless: u8,
}

impl ReplayBuf {
    /// An empty buffer. All frames are sent again if nothing is acknowledged for `replay_after`
    /// cycles after the end of a frame.
    ///
    /// # Panics
    /// Unless the numbers of all frames that it can hold differ from late ones.
    pub fn new(depth: usize, replay_after: u64) -> ReplayBuf {
        assert!(depth > 0 && depth < usize::from(WINDOW), "1 to {} beats", WINDOW - 1);
        ReplayBuf {
            beats: vec![Beat::default(); depth],
            ends: vec![0; depth],
            written: 0,
            filled: 0,
            oldest: 0,
            base: 0,
            current: 0,
            read: 0,
            sent: 0,
            out_valid: false,
            mid: false,
            jump: false,
            acknowledged: None,
            refused: false,
            timer: 0,
            replay_after,
            fruitless: 0,
        }
    }

    /// Beats that can enter in this cycle.
    #[inline]
    pub fn room(&self) -> u16 {
        // Until it has left, a frame is kept that was acknowledged while it was sent again.
        let kept = self.base.min(self.read);
        (self.beats.len() as u64 - (self.written - kept)) as u16
    }

    /// Whether an ACK or NAK is taken in this cycle.
    #[inline]
    pub fn ack_ready(&self) -> bool {
        self.acknowledged.is_none()
    }

    /// One cycle.
    #[inline]
    pub fn cycle(&mut self, input: In) -> Out {
        let ack_ready = self.ack_ready();
        let done = self.acknowledged.take();
        let progress = done.is_some_and(|done| done.oldest > self.oldest);
        let is_nak = done.is_some_and(|done| done.nak);
        // What an ACK or NAK does in the same cycle goes first.
        let timed_out = self.timer == self.replay_after && !(progress || is_nak);
        let out = self.outputs(ack_ready, timed_out);

        self.refused = false;
        if input.ack_valid && out.ack_ready {
            self.look_up(input.ack_sequence, input.ack_nak);
        }
        let starts_timer = self.leave(input.out_ready);
        if let Some(done) = done {
            self.forget(done.oldest);
            self.jump |= self.current < self.oldest;
        }
        let replays = is_nak || timed_out;
        self.jump |= replays;

        let is_under_way = self.oldest < self.sent;
        self.timer = match self.timer {
            _ if replays => 0,
            _ if progress => u64::from(is_under_way),
            0 => u64::from(starts_timer),
            time => time + 1,
        };
        if progress || out.retrain {
            self.fruitless = 0;
        } else if timed_out {
            self.fruitless += 1;
        }

        // The memory is read before it is written, so this cycle's beat is not yet seen.
        self.out_valid = self.read < self.written;
        if input.in_valid && out.in_ready {
            self.enter(Beat { data: input.in_data, last: input.in_last });
        }
        out
    }

    fn outputs(&self, ack_ready: bool, timed_out: bool) -> Out {
        let room = self.room();
        let mut out = Out {
            in_ready: room > 0,
            room,
            out_valid: self.out_valid,
            ack_ready,
            refused: self.refused,
            timed_out,
            retrain: timed_out && self.fruitless == FRUITLESS_REPLAYS - 1,
            ..Out::default()
        };
        if self.out_valid {
            let beat = self.beats[place(self.read, self.beats.len())];
            out.out_last = beat.last;
            out.out_data = beat.data;
            out.out_again = self.current < self.sent;
            out.out_sequence = (self.current % u64::from(SEQUENCES)) as u16;
        }
        out
    }

    /// The first cycle of an ACK or NAK: which frames it acknowledges.
    fn look_up(&mut self, sequence: u16, nak: bool) {
        let from = (self.oldest % u64::from(SEQUENCES)) as u16;
        let count = sequence.wrapping_add(1).wrapping_sub(from) % SEQUENCES;
        // Older than all kept frames: a late or repeated one.
        let count = if count < WINDOW { u64::from(count) } else { 0 };
        self.refused = self.oldest + count > self.sent;
        if !self.refused {
            self.acknowledged = Some(Acknowledged { oldest: self.oldest + count, nak });
        }
    }

    /// Moves on behind a beat that leaves. Whether a frame ends that starts the timer: a replay
    /// starts it with its first frame.
    fn leave(&mut self, out_ready: bool) -> bool {
        let leaves = self.out_valid && out_ready;
        let ends = leaves && self.beats[place(self.read, self.beats.len())].last;
        let is_between = ends || !(self.out_valid || self.mid);
        self.mid = (self.mid || leaves) && !ends;
        self.read += u64::from(leaves);
        self.current += u64::from(ends);
        self.sent = self.sent.max(self.current);
        let starts_timer = ends && !self.jump;
        if is_between && self.jump {
            self.jump = false;
            self.current = self.oldest;
            self.read = self.base;
        }
        starts_timer
    }

    /// All frames before `oldest` are acknowledged.
    fn forget(&mut self, oldest: u64) {
        if oldest > self.oldest {
            self.oldest = oldest;
            self.base = self.ends[place(oldest - 1, self.ends.len())];
        }
    }

    fn enter(&mut self, beat: Beat) {
        let depth = self.beats.len();
        self.beats[place(self.written, depth)] = beat;
        self.written += 1;
        if beat.last {
            self.ends[place(self.filled, depth)] = self.written;
            self.filled += 1;
        }
    }
}

fn place(number: u64, places: usize) -> usize {
    (number % places as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::smp::config::Config;

    /// A buffer, and what stands at its outputs in the cycle.
    struct Driven {
        buffer: ReplayBuf,
        next: u64,
    }

    impl Driven {
        fn new(depth: usize, replay_after: u64) -> Driven {
            Driven { buffer: ReplayBuf::new(depth, replay_after), next: 1 }
        }

        /// A cycle in which the next beat enters if `enters` says so, which is its frame's last one
        /// or not.
        fn cycle(&mut self, enters: Option<bool>, ack: Option<(u16, bool)>) -> Out {
            let (ack_sequence, ack_nak) = ack.unwrap_or((0, false));
            let input = In {
                in_valid: enters.is_some(),
                in_last: enters == Some(true),
                in_data: [self.next, 0],
                out_ready: true,
                ack_valid: ack.is_some(),
                ack_nak,
                ack_sequence,
            };
            let out = self.buffer.cycle(input);
            self.next += u64::from(enters.is_some() && out.in_ready);
            out
        }

        fn idle(&mut self) -> Out {
            self.cycle(None, None)
        }

        /// The frame and beat that leave, and whether again, in each of the next cycles.
        fn leaves(&mut self, cycles: usize) -> Vec<Option<(u16, u64, bool)>> {
            let one = |out: Out| (out.out_sequence, out.out_data[0], out.out_again);
            (0..cycles).map(|_| Some(self.idle()).filter(|out| out.out_valid).map(one)).collect()
        }
    }

    /// The paper's link: 2 KiB are 128 beats of 16 bytes, and its timer runs for 206 of its cycles.
    #[test]
    fn the_papers_buffer_has_128_beats() {
        let config = Config::recommended();
        assert_eq!(config.path.count() as usize, 8 * BEAT_WORDS);
        assert_eq!(config.beats(config.replay_buffer.count() as usize), 128);
        assert_eq!(config.replay_after.ps().div_ceil(config.cycle().ps()), 206);
        assert_eq!(SEQUENCE_BITS, 12);
    }

    /// A beat leaves two cycles after it entered, before the rest of its frame has come. Its place
    /// is free two cycles after its acknowledgement.
    #[test]
    fn a_beat_takes_two_cycles_and_stays_until_it_is_acknowledged() {
        let mut driven = Driven::new(3, 100);
        let first = driven.cycle(Some(false), None);
        assert!(first.in_ready && !first.out_valid);
        assert!(!driven.idle().out_valid);
        let third = driven.cycle(Some(true), None);
        assert_eq!((third.out_valid, third.out_last, third.room), (true, false, 2));
        assert_eq!(driven.leaves(3), [None, Some((0, 2, false)), None]);
        let ack = driven.cycle(Some(true), Some((0, false)));
        assert_eq!((ack.ack_ready, ack.room), (true, 1));
        // The second cycle takes no other one.
        let second = driven.cycle(None, Some((0, false)));
        assert_eq!((second.ack_ready, second.room), (false, 0));
        assert_eq!(driven.idle().room, 2);
    }

    /// Behind the frame that leaves when a NAK comes follows the oldest one that it does not
    /// acknowledge, then those behind that one.
    #[test]
    fn a_nak_sends_the_oldest_frame_again() {
        let mut driven = Driven::new(8, 100);
        for _ in 0..4 {
            driven.cycle(Some(true), None);
        }
        assert_eq!(driven.leaves(3), [Some((2, 3, false)), Some((3, 4, false)), None]);
        driven.cycle(None, Some((0, true)));
        let again = [None, None, Some((1, 2, true)), Some((2, 3, true)), Some((3, 4, true)), None];
        assert_eq!(driven.leaves(6), again);
    }

    /// A frame that waits for its next beat when a NAK comes is not cut off.
    #[test]
    fn a_frame_is_sent_again_behind_its_end() {
        let mut driven = Driven::new(4, 100);
        driven.cycle(Some(false), None);
        assert_eq!(driven.leaves(3), [None, Some((0, 1, false)), None]);
        driven.cycle(None, Some((4095, true)));
        assert_eq!(driven.leaves(4), [None; 4]);
        driven.cycle(Some(true), None);
        let again = [None, Some((0, 2, false)), Some((0, 1, true)), Some((0, 2, true)), None];
        assert_eq!(driven.leaves(5), again);
    }

    /// A frame that is acknowledged while it is sent again leaves to its end, and keeps its places
    /// until then. Acknowledged frames behind it are not sent again.
    #[test]
    fn an_acknowledged_frame_is_not_sent_again() {
        let mut driven = Driven::new(8, 100);
        for last in [false, false, false, true, true, true] {
            driven.cycle(Some(last), None);
        }
        driven.leaves(4);
        driven.cycle(None, Some((4095, true)));
        assert_eq!(driven.leaves(3), [None, None, Some((0, 1, true))]);
        driven.cycle(None, Some((1, false)));
        let rooms: Vec<_> =
            (0..5).map(|_| driven.idle()).map(|out| (out.room, out.out_sequence)).collect();
        assert_eq!(rooms, [(2, 0), (5, 0), (7, 2), (7, 0), (7, 0)]);
    }

    /// The timer starts with the end of a frame. The fourth timeout without progress asks for
    /// training. Without an unacknowledged frame the timer stands.
    #[test]
    fn four_timeouts_ask_for_training() {
        let mut driven = Driven::new(4, 10);
        driven.cycle(Some(true), None);
        driven.idle();
        let mut expiries = Vec::new();
        for cycle in 0..66 {
            let out = driven.idle();
            if out.timed_out {
                expiries.push((cycle, out.retrain));
            }
        }
        let expected = [(10, false), (22, false), (34, false), (46, true), (58, false)];
        assert_eq!(expiries, expected);
        driven.cycle(None, Some((0, false)));
        assert!((0..50).all(|_| !driven.idle().timed_out));
    }

    /// A number that was never sent is refused and changes nothing; a late one is taken and changes
    /// nothing either.
    #[test]
    fn what_was_never_sent_is_refused() {
        let mut driven = Driven::new(4, 100);
        driven.cycle(Some(true), None);
        driven.leaves(3);
        for (sequence, is_refused) in [(1, true), (2046, true), (2047, false), (4095, false)] {
            assert!(driven.cycle(None, Some((sequence, false))).ack_ready);
            assert_eq!(driven.idle().refused, is_refused, "{sequence}");
            assert_eq!(driven.idle().room, 3);
        }
        driven.cycle(None, Some((0, false)));
        driven.idle();
        assert_eq!(driven.idle().room, 4);
    }
}
