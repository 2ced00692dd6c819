//! `data_join`: joins immediate data with the data of reads in front of the packer (C-34, C-35;
//! cHPP section 4.1, Fig. 11), as `hardware/data_join` builds it.
//!
//! Both come in the order of operations, each at a port of its own. A queue of one bit a read knows
//! which read is the last of its operation. Immediate data goes when no read is in front of it.

use std::collections::VecDeque;

use super::data_reorder::{BEAT_WORDS, LANES};

const LANE_BITS: usize = LANES.ilog2() as usize;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// A read is requested.
        read_valid: bool = 1,
        /// It is the last of its operation.
        read_ends: bool = 1,
        /// A beat of the oldest read is offered.
        data_valid: bool = 1,
        /// It is the last of its read.
        data_last: bool = 1,
        /// Its read has failed: the beat has no bytes.
        data_failed: bool = 1,
        /// Lanes of its first and last byte.
        data_from: u8 = LANE_BITS,
        /// See `data_from`.
        data_to: u8 = LANE_BITS,
        /// The beat.
        data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// A beat of immediate data is offered.
        put_valid: bool = 1,
        /// It is the last of its operation.
        put_ends: bool = 1,
        /// The lane of its last byte.
        put_to: u8 = LANE_BITS,
        /// The beat.
        put_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// A beat is taken, if one is offered.
        out_ready: bool = 1,
    }

    /// What stands at the outputs in a cycle. What stands beside an `out_valid` of zero is that of
    /// the port whose beat would go.
    pub struct Out {
        /// There is room for a read.
        read_ready: bool = 1,
        /// The beat of the read is taken, if one is offered.
        data_ready: bool = 1,
        /// The beat of immediate data is taken, if one is offered.
        put_ready: bool = 1,
        /// A beat is offered to the packer.
        out_valid: bool = 1,
        /// It is the last of its operation.
        out_ends: bool = 1,
        /// A read of the operation has failed: the beat has no bytes.
        out_failed: bool = 1,
        /// Lanes of its first and last byte.
        out_from: u8 = LANE_BITS,
        /// See `out_from`.
        out_to: u8 = LANE_BITS,
        /// The beat.
        out_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
    }
}

/// From where the beats of an operation come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Port {
    Reads,
    Puts,
}

/// A joiner with room for so many reads.
///
/// A beat goes in the cycle in which it comes.
#[derive(Clone, Debug)]
pub struct DataJoin {
    depth: usize,
    /// Of each read that has not left, whether it is the last of its operation.
    ends: VecDeque<bool>,
    /// The operation of which some beats have gone.
    mid: Option<Port>,
}

impl DataJoin {
    /// A joiner without reads.
    ///
    /// # Panics
    /// Unless there is room for 2 to 256 reads, a power of two.
    pub fn new(depth: usize) -> DataJoin {
        assert!((2..=256).contains(&depth) && depth.is_power_of_two(), "2 to 256 reads");
        DataJoin { depth, ends: VecDeque::with_capacity(depth), mid: None }
    }

    /// The port whose operation goes.
    fn port(&self) -> Port {
        let idle = if self.ends.is_empty() { Port::Puts } else { Port::Reads };
        self.mid.unwrap_or(idle)
    }

    /// What stands at the outputs in this cycle, by what enters.
    #[inline]
    pub fn out(&self, input: &In) -> Out {
        let read_ready = self.ends.len() < self.depth;
        match self.port() {
            Port::Puts => Out {
                read_ready,
                put_ready: input.out_ready,
                out_valid: input.put_valid,
                out_ends: input.put_ends,
                out_to: input.put_to,
                out_data: input.put_data,
                ..Out::default()
            },
            Port::Reads => Out {
                read_ready,
                data_ready: input.out_ready && !self.ends.is_empty(),
                out_valid: input.data_valid && !self.ends.is_empty(),
                out_ends: input.data_last && self.ends.front().is_some_and(|&ends| ends),
                out_failed: input.data_failed,
                out_from: input.data_from,
                out_to: input.data_to,
                out_data: input.data,
                ..Out::default()
            },
        }
    }

    /// One cycle.
    #[inline]
    pub fn cycle(&mut self, input: In) -> Out {
        let (out, port) = (self.out(&input), self.port());
        if out.out_valid && input.out_ready {
            self.mid = (!out.out_ends).then_some(port);
            if port == Port::Reads && input.data_last {
                self.ends.pop_front();
            }
        }
        if input.read_valid && out.read_ready {
            self.ends.push_back(input.read_ends);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A read is requested, which is the last of its operation or not.
    fn read(read_ends: bool) -> In {
        In { read_valid: true, read_ends, out_ready: true, ..In::default() }
    }

    /// A beat of a read and one of immediate data, which both end what they are of or not.
    fn both(data_last: bool, put_ends: bool) -> In {
        In {
            data_valid: true,
            data_last,
            data_from: 3,
            data_to: 12,
            data: [1, 2],
            put_valid: true,
            put_ends,
            put_to: 7,
            put_data: [3, 4],
            out_ready: true,
            ..In::default()
        }
    }

    /// Which port a beat comes from, and whether it ends its operation.
    fn gone(out: Out) -> (&'static str, bool) {
        match (out.out_valid, out.data_ready, out.put_ready) {
            (true, true, false) => {
                assert_eq!((out.out_from, out.out_to, out.out_data), (3, 12, [1, 2]));
                ("read", out.out_ends)
            }
            (true, false, true) => {
                assert_eq!((out.out_from, out.out_to, out.out_data), (0, 7, [3, 4]));
                ("put", out.out_ends)
            }
            _ => ("none", out.out_ends),
        }
    }

    /// Sizes that gates cannot have are refused.
    #[test]
    fn sizes_are_bounded() {
        let builds = |depth| std::panic::catch_unwind(|| DataJoin::new(depth)).is_ok();
        assert!(builds(2) && builds(256));
        assert!(!builds(0) && !builds(1) && !builds(3) && !builds(512));
    }

    /// Data of reads goes before immediate data behind them. It ends its operation with the last
    /// beat of the read that was marked so.
    #[test]
    fn reads_go_before_immediate_data_behind_them() {
        let mut join = DataJoin::new(4);
        join.cycle(read(false));
        join.cycle(read(true));
        assert_eq!(gone(join.cycle(both(false, true))), ("read", false));
        assert_eq!(gone(join.cycle(both(true, true))), ("read", false));
        assert_eq!(gone(join.cycle(both(false, true))), ("read", false));
        assert_eq!(gone(join.cycle(both(true, true))), ("read", true));
        assert_eq!(gone(join.cycle(both(true, true))), ("put", true));
    }

    /// Between the beats of an operation goes none of another one, whatever comes at the other
    /// port.
    #[test]
    fn an_operation_stays_whole() {
        let mut join = DataJoin::new(4);
        assert_eq!(gone(join.cycle(both(true, false))), ("put", false));
        join.cycle(In { put_valid: false, ..read(false) });
        assert_eq!(gone(join.cycle(both(true, false))), ("put", false));
        assert_eq!(gone(join.cycle(both(true, true))), ("put", true));
        assert_eq!(gone(join.cycle(both(true, true))), ("read", false));
        // The next read of the operation has not been requested yet.
        let out = join.cycle(both(true, true));
        assert!(!out.out_valid && !out.data_ready && !out.put_ready);
        join.cycle(read(true));
        assert_eq!(gone(join.cycle(both(true, true))), ("read", true));
        assert_eq!(gone(join.cycle(both(true, true))), ("put", true));
    }

    /// A read that failed is told so in its turn, and its mark stands with it.
    #[test]
    fn a_failed_read_keeps_its_mark() {
        for ends in [false, true] {
            let mut join = DataJoin::new(2);
            join.cycle(read(ends));
            let failed = In { data_failed: true, ..both(true, true) };
            let out = join.cycle(failed);
            assert!(out.out_valid && out.out_failed && out.out_ends == ends);
            assert!(!join.cycle(failed).data_ready);
        }
    }

    /// What is not taken stays, and so does its read.
    #[test]
    fn what_is_not_taken_stays() {
        let mut join = DataJoin::new(2);
        join.cycle(read(true));
        let waits = In { out_ready: false, ..both(true, true) };
        for _ in 0..3 {
            let out = join.cycle(waits);
            assert!(out.out_valid && out.out_ends && !out.data_ready && !out.put_ready);
        }
        assert_eq!(gone(join.cycle(both(true, true))), ("read", true));
        let out = join.cycle(waits);
        assert!(out.out_valid && !out.put_ready && out.out_to == 7);
        assert_eq!(gone(join.cycle(In { put_valid: false, ..both(true, false) })), ("none", false));
        assert_eq!(gone(join.cycle(both(true, true))), ("put", true));
    }

    /// There is room for as many reads as were asked for. A place is free a cycle after its read
    /// has left.
    #[test]
    fn reads_wait_for_room() {
        let mut join = DataJoin::new(2);
        assert!(join.cycle(read(true)).read_ready && join.cycle(read(true)).read_ready);
        assert!(!join.cycle(read(false)).read_ready);
        assert!(!join.cycle(In { read_valid: true, ..both(true, true) }).read_ready);
        assert!(join.cycle(read(false)).read_ready);
        assert!(!join.cycle(read(false)).read_ready);
        assert_eq!(gone(join.cycle(both(true, true))), ("read", true));
        assert_eq!(gone(join.cycle(both(true, true))), ("read", false));
    }
}
