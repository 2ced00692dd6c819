//! `data_reorder`: puts the data of reads back into the order of the requests (C-35; cHPP section
//! 4.1, Fig. 11), as `hardware/data_reorder` builds it.
//!
//! A read has room in the memory from its request on, so a completion never waits. Completions come
//! in pieces, in any order between tags. A piece that is not what its read needs next is dropped.

use std::collections::VecDeque;

use super::tag_alloc::TAG_BITS;

/// Bytes of a beat.
pub const LANES: usize = 16;
/// Words of 64 bits in a beat.
pub const BEAT_WORDS: usize = LANES / 8;
/// Bits of a count of bytes: a read has up to 4096.
pub const SIZE_BITS: usize = 13;
const LANE_BITS: usize = LANES.ilog2() as usize;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// A read is requested.
        read_valid: bool = 1,
        /// Its tag.
        read_tag: u8 = TAG_BITS,
        /// The lane of its first byte: its address modulo the bytes of a beat.
        read_lane: u8 = LANE_BITS,
        /// Its bytes.
        read_bytes: u16 = SIZE_BITS,
        /// A beat of a completion comes.
        in_valid: bool = 1,
        /// It is the last of this completion.
        in_last: bool = 1,
        /// The tag; counts with the first beat, as all up to `in_remaining`.
        in_tag: u8 = TAG_BITS,
        /// The read has failed, and no more completions come.
        in_failed: bool = 1,
        /// Bytes of this completion.
        in_bytes: u16 = SIZE_BITS,
        /// Bytes that the read lacks, with those of this completion: PCIe's byte count.
        in_remaining: u16 = SIZE_BITS,
        /// The beat; a byte has the lane of its address.
        in_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// The allocator has freed this tag, because its completions did not come in time.
        lost_valid: bool = 1,
        /// That tag.
        lost_tag: u8 = TAG_BITS,
        /// A beat is taken, if one is offered.
        out_ready: bool = 1,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// The read is taken.
        read_ready: bool = 1,
        /// Beats that reads can still ask for.
        room: u16 = 16,
        /// Reads that have not left.
        reads: u16 = 16,
        /// What ended in the cycle before was dropped: its tag does not wait for completions.
        unexpected: bool = 1,
        /// It was dropped: its bytes are not those that the read lacks next.
        mismatched: bool = 1,
        /// A read has got its last completion in the cycle before: its tag comes back.
        free_valid: bool = 1,
        /// That tag; zero if there is none.
        free_tag: u8 = TAG_BITS,
        /// A beat is offered.
        out_valid: bool = 1,
        /// It is the last of its read.
        out_last: bool = 1,
        /// Its read has failed: the beat has no bytes, and no more come.
        out_failed: bool = 1,
        /// Lanes of the first and the last byte; zero if there are no bytes.
        out_from: u8 = LANE_BITS,
        /// See `out_from`.
        out_to: u8 = LANE_BITS,
        /// The beat; zero if there are no bytes.
        out_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
    }
}

/// A read that has not left.
#[derive(Clone, Copy, Debug)]
struct Read {
    lane: usize,
    bytes: usize,
    /// Its place in the memory, in beats since the beginning.
    base: u64,
    /// Bytes that have come, up to the end of a piece.
    came: usize,
    failed: bool,
}

impl Read {
    /// Beats that `bytes` of it take, from its first one on.
    fn beats(&self, bytes: usize) -> u64 {
        (self.lane + bytes).div_ceil(LANES) as u64
    }

    /// Beats that can leave.
    fn beats_there(&self) -> u64 {
        if self.came > 0 { self.beats(self.came) } else { 0 }
    }
}

/// A completion whose last beat has not come.
#[derive(Clone, Copy, Debug)]
struct Piece {
    tag: u8,
    /// The number of its read, if the tag waits for completions.
    read: Option<u64>,
    failed: bool,
    /// It has what the read lacks next.
    fits: bool,
    bytes: usize,
    /// The next beat's place in the memory, and the one behind its last.
    at: u64,
    end: u64,
}

/// A memory of `beats` for up to `limit` reads.
///
/// What comes with the last beat of a completion in cycle `t` can leave from `t + 2` on, one beat a
/// cycle, if all that was requested before it has left.
#[derive(Clone, Debug)]
pub struct DataReorder {
    memory: Vec<[u64; BEAT_WORDS]>,
    limit: usize,
    reads: VecDeque<Read>,
    /// Reads that have left: the number of the oldest one.
    left: u64,
    /// Of each tag that waits for completions, the number of its read.
    tags: Vec<Option<u64>>,
    /// Beats that were reserved since the beginning.
    reserved: u64,
    /// Of them, those that have left the memory.
    read: u64,
    piece: Option<Piece>,
    unexpected: bool,
    mismatched: bool,
    free: Option<u8>,
    /// The output's register: `out_valid` and what follows.
    output: Out,
}

impl DataReorder {
    /// An empty memory; tags are below `tags`.
    pub fn new(beats: usize, limit: usize, tags: usize) -> DataReorder {
        DataReorder {
            memory: vec![[0; BEAT_WORDS]; beats],
            limit,
            reads: VecDeque::with_capacity(limit),
            left: 0,
            tags: vec![None; tags.next_power_of_two().max(2)],
            reserved: 0,
            read: 0,
            piece: None,
            unexpected: false,
            mismatched: false,
            free: None,
            output: Out::default(),
        }
    }

    /// The read that is asked for.
    fn request(&self, input: &In) -> Read {
        Read {
            lane: input.read_lane.into(),
            bytes: input.read_bytes.into(),
            base: self.reserved,
            came: 0,
            failed: false,
        }
    }

    /// What stands at the outputs in this cycle, by what enters.
    #[inline]
    pub fn out(&self, input: &In) -> Out {
        let request = self.request(input);
        let beats = request.beats(request.bytes);
        let room = self.memory.len() as u64 - (self.reserved - self.read);
        Out {
            read_ready: request.bytes > 0
                && beats <= room
                && self.reads.len() < self.limit
                && self.tags[usize::from(input.read_tag)].is_none(),
            room: room as u16,
            reads: self.reads.len() as u16,
            unexpected: self.unexpected,
            mismatched: self.mismatched,
            free_valid: self.free.is_some(),
            free_tag: self.free.unwrap_or(0),
            ..self.output
        }
    }

    /// One cycle.
    #[inline]
    pub fn cycle(&mut self, input: In) -> Out {
        let out = self.out(&input);
        if !out.out_valid || input.out_ready {
            self.output = self.next_beat();
        }
        (self.unexpected, self.mismatched, self.free) = (false, false, None);
        // A tag that is lost is lost, also if its last beat comes in this cycle.
        if input.lost_valid
            && let Some(number) = self.tags[usize::from(input.lost_tag)].take()
        {
            self.entry(number).failed = true;
        }
        if input.in_valid {
            self.beat(&input);
        }
        if input.read_valid && out.read_ready {
            self.tags[usize::from(input.read_tag)] = Some(self.left + self.reads.len() as u64);
            let request = self.request(&input);
            self.reserved += request.beats(request.bytes);
            self.reads.push_back(request);
        }
        out
    }

    fn entry(&mut self, number: u64) -> &mut Read {
        &mut self.reads[(number - self.left) as usize]
    }

    /// The next beat of the oldest read moves from the memory to the output.
    fn next_beat(&mut self) -> Out {
        let Some(&front) = self.reads.front() else { return Out::default() };
        let (at, beats) = (self.read - front.base, front.beats(front.bytes));
        let is_there = at < front.beats_there();
        if !(front.failed || is_there) {
            return Out::default();
        }
        let out_last = front.failed || at + 1 == beats;
        self.read = if front.failed { front.base + beats } else { self.read + 1 };
        if out_last {
            self.reads.pop_front();
            self.left += 1;
        }
        if front.failed {
            return Out { out_valid: true, out_last, out_failed: true, ..Out::default() };
        }
        let last_lane = (front.lane + front.bytes - 1) % LANES;
        Out {
            out_valid: true,
            out_last,
            out_from: if at == 0 { front.lane as u8 } else { 0 },
            out_to: if out_last { last_lane as u8 } else { LANES as u8 - 1 },
            out_data: self.memory[((front.base + at) % self.memory.len() as u64) as usize],
            ..Out::default()
        }
    }

    /// A completion begins.
    fn piece(&mut self, input: &In) -> Piece {
        let (bytes, remaining) = (usize::from(input.in_bytes), usize::from(input.in_remaining));
        let read = self.tags[usize::from(input.in_tag)];
        let mut piece = Piece {
            tag: input.in_tag,
            read,
            failed: input.in_failed,
            fits: false,
            bytes,
            at: 0,
            end: 0,
        };
        if let Some(number) = read {
            let read = *self.entry(number);
            let came = read.came + bytes;
            // A completion that is not the last one ends between beats: at a multiple of 64 bytes,
            // says the standard.
            let is_cut_well = bytes == remaining || (read.lane + came).is_multiple_of(LANES);
            piece.fits = bytes > 0
                && bytes <= remaining
                && read.came + remaining == read.bytes
                && is_cut_well;
            piece.at = read.base + read.beats_there();
            piece.end = read.base + read.beats(came);
        }
        piece
    }

    /// A beat of a completion.
    fn beat(&mut self, input: &In) {
        let mut piece = self.piece.take().unwrap_or_else(|| self.piece(input));
        let is_ours = piece.read.is_some() && self.tags[usize::from(piece.tag)] == piece.read;
        let fits = is_ours && piece.fits && !piece.failed && piece.at < piece.end;
        if fits {
            let beats = self.memory.len() as u64;
            self.memory[(piece.at % beats) as usize] = input.in_data;
        }
        piece.at += 1;
        if !input.in_last {
            self.piece = Some(piece);
            return;
        }
        let Some(number) = piece.read.filter(|_| is_ours) else {
            self.unexpected = true;
            return;
        };
        let comes = fits && piece.at == piece.end;
        self.mismatched = !(piece.failed || comes);
        let read = self.entry(number);
        read.failed = piece.failed;
        if comes {
            read.came += piece.bytes;
        }
        if read.failed || read.came == read.bytes {
            self.tags[usize::from(piece.tag)] = None;
            self.free = Some(piece.tag);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chpp::Config;

    /// Some reads and completions, one a call.
    struct Driven(DataReorder);

    impl Driven {
        fn new() -> Driven {
            Driven(DataReorder::new(8, 4, 4))
        }

        /// Whether a read is taken.
        fn read(&mut self, tag: u8, lane: u8, bytes: u16) -> bool {
            let input = In {
                read_valid: true,
                read_tag: tag,
                read_lane: lane,
                read_bytes: bytes,
                ..In::default()
            };
            self.0.cycle(input).read_ready
        }

        /// A completion of as many beats; its words count from 1 on. Whether it was unexpected or
        /// mismatched, and the tag that comes back.
        fn complete(&mut self, says: In, beats: u64) -> (bool, bool, Option<u8>) {
            for beat in 1..=beats {
                let in_last = beat == beats;
                self.0.cycle(In { in_valid: true, in_last, in_data: [beat, 0], ..says });
            }
            let out = self.0.cycle(In::default());
            (out.unexpected, out.mismatched, out.free_valid.then_some(out.free_tag))
        }

        /// The first word and lanes of each beat that leaves, until none does.
        fn leaves(&mut self) -> Vec<(u64, u8, u8)> {
            let next = || self.0.cycle(In { out_ready: true, ..In::default() });
            std::iter::repeat_with(next)
                .skip_while(|out| !out.out_valid)
                .take_while(|out| out.out_valid)
                .map(|out| (out.out_data[0], out.out_from, out.out_to))
                .collect()
        }
    }

    fn says(tag: u8, bytes: u16, remaining: u16) -> In {
        In { in_tag: tag, in_bytes: bytes, in_remaining: remaining, ..In::default() }
    }

    const NOTHING: (bool, bool, Option<u8>) = (false, false, None);
    const MISMATCHED: (bool, bool, Option<u8>) = (false, true, None);
    const UNEXPECTED: (bool, bool, Option<u8>) = (true, false, None);

    /// A beat has the bytes of the model's bus, and a count those of the longest read.
    #[test]
    fn a_beat_is_one_of_the_papers_bus() {
        assert_eq!(Config::prototype().nic.bus.count(), LANES as u64);
        assert_eq!((LANE_BITS, SIZE_BITS), (4, 4096_u16.ilog2() as usize + 1));
    }

    /// A beat leaves two cycles after its completion has ended, with the lanes of its bytes, and
    /// then one in every cycle. Its place is free when it moves to the output.
    #[test]
    fn a_beat_takes_two_cycles() {
        let mut driven = Driven::new();
        assert!(driven.read(3, 13, 20));
        let mut cycle = |in_last: bool, word: u64| {
            let input = In {
                in_valid: word > 0,
                in_last,
                in_data: [word, 0],
                out_ready: true,
                ..says(3, 20, 20)
            };
            let out = driven.0.cycle(input);
            let beat = (out.out_valid, out.out_last, out.out_data[0], out.out_from, out.out_to);
            (out.room, out.reads, out.free_valid, beat)
        };
        let none = (false, false, 0, 0, 0);
        assert_eq!(cycle(false, 7), (5, 1, false, none));
        assert_eq!(cycle(false, 8), (5, 1, false, none));
        assert_eq!(cycle(true, 9), (5, 1, false, none));
        assert_eq!(cycle(false, 0), (5, 1, true, none));
        assert_eq!(cycle(false, 0), (6, 1, false, (true, false, 7, 13, 15)));
        assert_eq!(cycle(false, 0), (7, 1, false, (true, false, 8, 0, 15)));
        assert_eq!(cycle(false, 0), (8, 0, false, (true, true, 9, 0, 0)));
        assert_eq!(cycle(false, 0), (8, 0, false, none));
    }

    /// What was requested first leaves first, whatever comes first, and a completion that does not
    /// end its read leaves before the rest has come. A tag is used again while its bytes wait.
    #[test]
    fn reads_leave_in_the_order_of_the_requests() {
        let mut driven = Driven::new();
        assert!(driven.read(0, 0, 48) && driven.read(1, 0, 16));
        assert_eq!(driven.complete(says(1, 16, 16), 1), (false, false, Some(1)));
        assert!(driven.read(1, 0, 32));
        assert_eq!(driven.complete(says(1, 32, 32), 2), (false, false, Some(1)));
        assert_eq!(driven.complete(says(0, 16, 48), 1), NOTHING);
        assert_eq!(driven.leaves(), [(1, 0, 15)]);
        assert_eq!(driven.complete(says(0, 32, 32), 2), (false, false, Some(0)));
        assert_eq!(driven.leaves(), [1, 2, 1, 1, 2].map(|word| (word, 0, 15)));
    }

    /// A read waits for room, for its tag and for a place among the reads. One without bytes is
    /// never taken.
    #[test]
    fn a_read_waits_for_room_and_its_tag() {
        let mut driven = Driven::new();
        assert!(!driven.read(0, 1, 128) && !driven.read(0, 0, 0) && driven.read(0, 1, 100));
        assert!(!driven.read(0, 0, 16) && !driven.read(1, 15, 2) && driven.read(1, 15, 1));
        driven.complete(says(0, 100, 100), 7);
        assert_eq!(driven.leaves().len(), 7);
        assert!(driven.read(0, 0, 1) && driven.read(2, 0, 1) && driven.read(3, 0, 1));
        driven.complete(says(3, 1, 1), 1);
        assert!(!driven.read(3, 0, 1));
    }

    /// A completion that failed gives its tag back. Its read ends in its turn, with a beat without
    /// bytes, and gives its places back.
    #[test]
    fn a_failed_completion_frees_its_tag() {
        let mut driven = Driven::new();
        assert!(driven.read(0, 0, 16) && driven.read(1, 0, 64) && driven.read(2, 0, 16));
        assert_eq!(driven.complete(says(1, 16, 64), 1), NOTHING);
        let failed = In { in_failed: true, ..says(1, 0, 48) };
        assert_eq!(driven.complete(failed, 1), (false, false, Some(1)));
        assert_eq!(driven.complete(says(1, 48, 48), 3), UNEXPECTED);
        driven.complete(says(2, 16, 16), 1);
        assert_eq!(driven.0.cycle(In::default()).reads, 3);
        driven.complete(says(0, 16, 16), 1);
        let next = || driven.0.cycle(In { out_ready: true, ..In::default() });
        let outs: Vec<Out> = std::iter::repeat_with(next).take(5).collect();
        let ends = outs.iter().map(|out| (out.out_last, out.out_failed)).collect::<Vec<_>>();
        let rest = [(true, false), (true, true), (true, false), (false, false)];
        assert_eq!(&ends[..4], rest);
        assert_eq!((outs[4].room, outs[4].reads), (8, 0));
    }

    /// Completions with more bytes than the read lacks, with fewer, with other counts, of other
    /// lengths, cut within a beat, or for a tag that is not out change nothing: the read then gets
    /// its own bytes.
    #[test]
    fn a_completer_that_lies_is_not_believed() {
        let mut driven = Driven::new();
        assert!(driven.read(0, 8, 40));
        for (tag, bytes, remaining, beats, expected) in [
            (0, 41, 41, 4, MISMATCHED),
            (0, 24, 24, 2, MISMATCHED),
            (0, 41, 40, 4, MISMATCHED),
            (0, 24, 41, 2, MISMATCHED),
            (0, 24, 39, 2, MISMATCHED),
            (0, 0, 40, 1, MISMATCHED),
            (0, 25, 40, 3, MISMATCHED),
            (0, 24, 40, 1, MISMATCHED),
            (0, 24, 40, 3, MISMATCHED),
            (0, 40, 40, 2, MISMATCHED),
            (0, 40, 40, 5, MISMATCHED),
            (1, 40, 40, 3, UNEXPECTED),
            (0, 24, 40, 2, NOTHING),
            (0, 24, 40, 2, MISMATCHED),
            (0, 16, 16, 1, (false, false, Some(0))),
            (0, 16, 16, 1, UNEXPECTED),
        ] {
            let what = driven.complete(says(tag, bytes, remaining), beats);
            assert_eq!(what, expected, "{bytes} of {remaining} bytes in {beats} beats");
        }
        assert_eq!(driven.leaves(), [(1, 8, 15), (2, 0, 15), (1, 0, 15)]);
    }

    /// A read whose tag is lost ends, and the completion that was coming counts no more, also if
    /// the tag is used again meanwhile. The allocator has the tag already: it is not told.
    #[test]
    fn a_lost_tag_ends_its_read() {
        let mut driven = Driven::new();
        let lost = In { lost_valid: true, lost_tag: 2, ..In::default() };
        assert!(driven.read(2, 0, 32));
        driven.0.cycle(In { in_valid: true, ..says(2, 32, 32) });
        driven.0.cycle(lost);
        assert!(driven.read(2, 0, 32));
        assert_eq!(driven.complete(says(2, 32, 32), 1), UNEXPECTED);
        let out = driven.0.cycle(In { out_ready: true, ..In::default() });
        assert!(out.out_failed && out.out_last && !out.free_valid);
        assert_eq!(driven.complete(says(2, 32, 32), 2), (false, false, Some(2)));
        assert_eq!(driven.leaves().len(), 2);

        // In the very cycle of the last beat, too; and a tag that is not out changes nothing.
        assert!(driven.read(2, 0, 16));
        driven.0.cycle(In {
            in_valid: true,
            in_last: true,
            lost_valid: true,
            lost_tag: 2,
            ..says(2, 16, 16)
        });
        let out = driven.0.cycle(lost);
        assert!(out.unexpected && !out.free_valid);
        assert!(driven.0.cycle(In::default()).out_failed);
    }
}
