//! `vc_rx_buf`: the receiver's buffer of one virtual channel of the SMP link, and its credits
//! (S-15, S-20, S-21, S-26), as `hardware/vc_rx_buf` builds it.
//!
//! A packet can leave when all of it has come and its check is right. One that may leave earlier
//! leaves while it comes (cut-through). If that one proves wrong, its last beat is marked bad: the
//! network layer drops it then.

use std::collections::VecDeque;

use super::credit_gate::{DATA_BITS, HEADER_BITS};
use super::credit_ledger::{self, CreditLedger};
use super::replay_buf::BEAT_WORDS;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// A beat of a TLP has come.
        in_valid: bool = 1,
        /// It is the TLP's last one.
        in_last: bool = 1,
        /// DWs at its end that are empty.
        in_empty: u8 = 2,
        /// The beat.
        in_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// With the first beat: the packet may leave before its end has come.
        in_early: bool = 1,
        /// With the last beat: the packet is sound, and the next in order.
        in_deliver: bool = 1,
        /// A beat is taken, if one is offered.
        out_ready: bool = 1,
        /// An update of credits is taken, if one is offered.
        update_ready: bool = 1,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// The packet that ends is kept.
        kept: bool = 1,
        /// It should be, and has no credits: the sender does not count right.
        refused: bool = 1,
        /// A beat is offered.
        out_valid: bool = 1,
        /// It is its packet's last one.
        out_last: bool = 1,
        /// With that: the packet is to be dropped.
        out_bad: bool = 1,
        /// DWs at its end that are empty.
        out_empty: u8 = 2,
        /// The beat; zero if none is offered.
        out_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// The sender should be told what is granted.
        update_valid: bool = 1,
        /// The sum of all grants: headers.
        update_headers: u8 = HEADER_BITS,
        /// Data credits.
        update_data: u16 = DATA_BITS,
    }
}

#[derive(Clone, Copy, Debug)]
struct Beat {
    data: [u64; BEAT_WORDS],
    empty: u8,
    last: bool,
    bad: bool,
}

/// How much a buffer holds.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Header credits.
    pub headers: u8,
    /// Data credits.
    pub data: u16,
    /// Beats of the longest packet.
    pub longest: usize,
}

impl Room {
    /// Places for beats. A TLP has one for its header, and up to one more than its data credits for
    /// payload and check. A bad packet that leaves has no credits.
    pub const fn beats(&self) -> usize {
        2 * self.headers as usize + self.data as usize + self.longest
    }
}

/// The buffer.
///
/// A beat can leave two cycles after it came, or two cycles after its packet's last one.
#[derive(Clone, Debug)]
pub struct VcRxBuf {
    /// From `read` on.
    beats: VecDeque<Beat>,
    places: usize,
    /// Beats that have left, and those of whole packets. The packet that comes lies behind these.
    read: u64,
    whole: u64,
    out_valid: bool,
    /// A packet has begun to come and has not ended.
    mid: bool,
    /// It may leave; a beat of it was offered; a beat of it found no place.
    early: bool,
    begun: bool,
    lost: bool,
    /// Beats of the packet that leaves which have left.
    left: u16,
    ledger: CreditLedger,
}

impl VcRxBuf {
    /// An empty buffer, which tells its credits again after `again_after` cycles.
    pub fn new(room: Room, again_after: u64) -> VcRxBuf {
        VcRxBuf {
            beats: VecDeque::new(),
            places: room.beats(),
            read: 0,
            whole: 0,
            out_valid: false,
            mid: false,
            early: false,
            begun: false,
            lost: false,
            left: 0,
            ledger: CreditLedger::new(room.headers, room.data, again_after),
        }
    }

    /// What the sender should be told in this cycle.
    #[inline]
    pub fn update(&self) -> credit_ledger::Out {
        let mut ledger = self.ledger;
        ledger.cycle(credit_ledger::In::default())
    }

    /// One cycle.
    #[inline]
    pub fn cycle(&mut self, input: In) -> Out {
        let written = self.read + self.beats.len() as u64;
        let has_place = self.beats.len() < self.places;
        let lost = self.lost || !has_place;
        let ends = input.in_valid && input.in_last;
        let came = (written - self.whole + 1) as u16;

        let front = self.beats.front().copied().filter(|_| self.out_valid);
        let leaves = front.filter(|_| input.out_ready);
        let gone = leaves.filter(|beat| beat.last && !beat.bad);
        let ledger = self.ledger.cycle(credit_ledger::In {
            in_valid: ends && input.in_deliver && !lost,
            in_cost: cost(came, input.in_empty),
            leave_valid: gone.is_some(),
            leave_cost: gone.map_or(0, |beat| cost(self.left + 1, beat.empty)),
            update_ready: input.update_ready,
        });
        let kept = ends && input.in_deliver && !lost && ledger.in_ready;
        let mut out = Out {
            kept,
            refused: ends && input.in_deliver && !kept,
            update_valid: ledger.update_valid,
            update_headers: ledger.update_headers,
            update_data: ledger.update_data,
            ..Out::default()
        };
        if let Some(beat) = front {
            (out.out_valid, out.out_last, out.out_bad) = (true, beat.last, beat.bad);
            (out.out_empty, out.out_data) = (beat.empty, beat.data);
        }

        if let Some(beat) = leaves {
            self.beats.pop_front();
            self.read += 1;
            self.left = if beat.last { 0 } else { self.left + 1 };
        }
        // A packet that was not offered is dropped without a trace.
        let drops = ends && !kept && !self.begun;
        // The memory is read before it is written, so this cycle's beat is not yet seen.
        // Only a packet that finds a place for each beat may leave early: its end must have one.
        let may = self.early && has_place && !drops;
        let limit = if may { written } else { self.whole };
        self.out_valid = self.read != limit;
        self.begun |= self.early && self.out_valid && self.read == self.whole;
        if drops {
            self.beats.truncate((self.whole - self.read) as usize);
        } else if input.in_valid && !lost {
            let In { in_data: data, in_empty: empty, in_last: last, .. } = input;
            self.beats.push_back(Beat { data, empty, last, bad: last && !kept });
        }
        if ends {
            self.whole = self.read + self.beats.len() as u64;
            (self.mid, self.early, self.begun, self.lost) = (false, false, false, false);
        } else if input.in_valid {
            self.early = !lost && if self.mid { self.early } else { input.in_early };
            (self.mid, self.lost) = (true, lost);
        }
        out
    }
}

/// Data credits of a TLP of `beats` beats with so many empty DWs at its end. One beat is its
/// header, and the last DW its check. In two beats of another length there is no TLP.
fn cost(beats: u16, empty: u8) -> u16 {
    beats.wrapping_sub(2).wrapping_add(u16::from(empty != 3)) % (1 << DATA_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room { headers: 2, data: 4, longest: 34 };

    struct Driven {
        buffer: VcRxBuf,
        next: u64,
    }

    impl Driven {
        fn new() -> Driven {
            Driven { buffer: VcRxBuf::new(ROOM, 1000), next: 1 }
        }

        fn idle(&mut self, out_ready: bool) -> Out {
            self.buffer.cycle(In { out_ready, update_ready: true, ..In::default() })
        }

        /// A packet of `beats` beats with so many empty DWs comes, while what leaves is taken or
        /// not. What leaves in each cycle, and whether the packet is kept or refused at last.
        fn comes(
            &mut self,
            beats: usize,
            in_empty: u8,
            [in_early, in_deliver, out_ready]: [bool; 3],
        ) -> (Vec<Option<u64>>, [bool; 2]) {
            let one = |at| {
                let in_last = at + 1 == beats;
                let input = In {
                    in_valid: true,
                    in_last,
                    in_empty: if in_last { in_empty } else { 0 },
                    in_data: [self.next, 0],
                    in_early: in_early && at == 0,
                    in_deliver: in_deliver && in_last,
                    out_ready,
                    update_ready: true,
                };
                self.next += 1;
                self.buffer.cycle(input)
            };
            let outs: Vec<Out> = (0..beats).map(one).collect();
            let last = outs.last().expect("a packet has beats");
            let is_quiet = outs[..beats - 1].iter().all(|out| !(out.kept || out.refused));
            assert!(is_quiet, "the verdict comes with the last beat");
            (outs.iter().map(leaves).collect(), [last.kept, last.refused])
        }

        /// What leaves in each of the next cycles, and whether it ends a bad packet.
        fn left(&mut self, cycles: usize) -> Vec<Option<(u64, bool)>> {
            let one = |out: Out| leaves(&out).map(|beat| (beat, out.out_bad));
            (0..cycles).map(|_| one(self.idle(true))).collect()
        }
    }

    fn leaves(out: &Out) -> Option<u64> {
        out.out_valid.then_some(out.out_data[0])
    }

    const STORED: [bool; 3] = [false, true, true];
    const EARLY: [bool; 3] = [true, true, true];

    /// A stored packet leaves two cycles after its last beat. One that may leave early does so two
    /// cycles after its first beat.
    // shows: S-20, S-21
    #[test]
    fn a_packet_leaves_behind_its_end_or_its_beginning() {
        let mut driven = Driven::new();
        assert_eq!(driven.comes(3, 3, STORED), (vec![None; 3], [true, false]));
        let beats = |first: u64| (first..first + 3).map(|beat| Some((beat, false)));
        let all: Vec<_> = [None].into_iter().chain(beats(1)).chain([None]).collect();
        assert_eq!(driven.left(5), all);
        let came = driven.comes(3, 3, EARLY);
        assert_eq!(came, (vec![None, None, Some(4)], [true, false]));
        assert_eq!(driven.left(3), [Some((5, false)), Some((6, false)), None]);
        assert_eq!(driven.comes(2, 3, STORED).1, [true, false]);
        assert_eq!(driven.left(4), [None, Some((7, false)), Some((8, false)), None]);
    }

    /// A wrong packet leaves no trace if none of it was offered, and is marked bad otherwise. It
    /// takes no credits in either case.
    // shows: S-21
    #[test]
    fn a_wrong_packet_is_dropped_or_marked() {
        let mut driven = Driven::new();
        driven.idle(true);
        assert_eq!(driven.comes(4, 0, [false, false, true]), (vec![None; 4], [false; 2]));
        assert_eq!(driven.left(4), [None; 4]);
        // Two beats have come when the verdict does, and the first one is offered.
        let came = driven.comes(3, 0, [true, false, false]);
        assert_eq!(came, (vec![None, None, Some(5)], [false; 2]));
        assert_eq!(driven.left(4), [Some((5, false)), Some((6, false)), Some((7, true)), None]);
        // With its second beat none of it is offered yet.
        assert_eq!(driven.comes(2, 0, [true, false, true]), (vec![None; 2], [false; 2]));
        assert_eq!(driven.left(4), [None; 4]);
        assert!(!driven.idle(true).update_valid);
    }

    /// A packet that may leave early waits for those in front of it, and goes on behind them while
    /// it comes.
    #[test]
    fn an_early_packet_follows_a_stored_one() {
        let mut driven = Driven::new();
        driven.comes(2, 3, STORED);
        let came = driven.comes(4, 0, [true, false, true]).0;
        assert_eq!(came, [None, Some(1), Some(2), Some(3)]);
        let left = [4, 5, 6].map(|beat| Some((beat, beat == 6)));
        assert_eq!(driven.left(3), left);
    }

    /// A packet takes a header credit and its data credits until its last beat has left. One that
    /// has none is refused.
    // shows: S-15
    #[test]
    fn credits_are_given_back_with_the_last_beat() {
        let credits = |out: Out| out.update_valid.then_some((out.update_headers, out.update_data));
        let mut driven = Driven::new();
        assert_eq!(credits(driven.idle(false)), Some((2, 4)));
        // Payloads of 3, 4 and 0 DWs cost 1, 1 and 0.
        assert_eq!(driven.comes(2, 0, [false, true, false]).1, [true, false]);
        assert_eq!(driven.comes(3, 3, [false, true, false]).1, [true, false]);
        assert_eq!(driven.comes(2, 3, [false, true, false]).1, [false, true]);
        let told: Vec<_> = (0..7).map(|_| credits(driven.idle(true))).collect();
        assert_eq!(told, [None, None, Some((3, 5)), None, None, Some((4, 6)), None]);
        // Payloads of 12 and 8 DWs: three credits are there for the first, and one is left.
        assert_eq!(driven.comes(5, 3, [false, true, false]).1, [true, false]);
        assert_eq!(driven.comes(4, 3, [false, true, false]).1, [false, true]);
        assert_eq!(driven.comes(3, 3, [false, true, false]).1, [true, false]);
        // What is no TLP costs more than any buffer has.
        assert_eq!(driven.comes(1, 3, [false, true, false]).1, [false, true]);
    }

    /// A frame that nobody granted cannot write over others: it finds no place.
    #[test]
    fn a_packet_without_a_place_is_dropped() {
        let mut driven = Driven::new();
        driven.comes(6, 3, [false, true, false]);
        driven.comes(34, 0, [false, false, false]);
        assert_eq!(driven.comes(37, 0, [false, true, false]).1, [false, true]);
        assert_eq!(driven.comes(2, 3, [false, true, false]).1, [true, false]);
        let left = driven.left(9);
        let kept = (1..=6).chain([78, 79]).map(|beat| Some((beat, false)));
        assert_eq!(left, kept.chain([None]).collect::<Vec<_>>());
    }

    /// A packet that has once found no place does not leave early, and so it leaves no trace.
    #[test]
    fn a_packet_without_a_place_does_not_leave_early() {
        let mut driven = Driven::new();
        driven.comes(6, 3, [false, true, false]);
        driven.comes(34, 0, [false, false, false]);
        let mut beat = |at: u64, out_ready| {
            let (in_early, in_last) = (at == 0, at == 60);
            let in_data = [at, 0];
            let input =
                In { in_valid: true, in_last, in_data, in_early, out_ready, ..In::default() };
            driven.buffer.cycle(input)
        };
        let left: Vec<_> = (0..=60).map(|at| leaves(&beat(at, at > 40))).collect();
        assert!(left[..=46].iter().all(Option::is_some), "what was there before leaves");
        assert_eq!(left[47..], [None; 14]);
        assert_eq!(driven.left(4), [None; 4]);
    }

    /// The paper's buffer.
    #[test]
    fn the_papers_buffer_has_190_places() {
        assert_eq!(Room { headers: 32, data: 92, longest: 34 }.beats(), 190);
    }
}
