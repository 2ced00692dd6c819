//! `desc_fetch`: reads descriptors from host memory, one after each doorbell (C-30, C-31; cHPP
//! section 4.1, Fig. 11), as `hardware/desc_fetch` builds it.
//!
//! A descriptor has its place from its doorbell on, so a completion never waits. Completions come
//! in pieces, in any order between reads. A descriptor leaves once it is whole, in the order of the
//! doorbells. One of which a read has failed leaves as a word without data, in its turn.

use std::collections::VecDeque;

use bellwire_wire::ADDRESS_BITS;
use bellwire_wire::doorbell::DoorbellRepr;

use super::data_reorder::{BEAT_WORDS, LANES, SIZE_BITS};
use super::tag_alloc::TAG_BITS;

const ADDRESS_WIDTH: usize = ADDRESS_BITS as usize;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// A doorbell is offered.
        bell_valid: bool = 1,
        /// The function that rang.
        bell_function: u8 = 3,
        /// Its word.
        bell_word: u64 = 64,
        /// What it names does not lie in the function's window.
        bell_outside: bool = 1,
        /// The read is taken, if one is offered.
        read_ready: bool = 1,
        /// The tag that it gets.
        read_tag: u8 = TAG_BITS,
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
        /// The beat.
        in_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// The allocator has freed this tag, because its completions did not come in time.
        lost_valid: bool = 1,
        /// That tag.
        lost_tag: u8 = TAG_BITS,
        /// A word is taken, if one is offered.
        out_ready: bool = 1,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// The doorbell is taken.
        bell_ready: bool = 1,
        /// A read is offered; none is under a tag that waits.
        read_valid: bool = 1,
        /// The function that it is for; zero if there is none.
        read_function: u8 = 3,
        /// Global address of its first byte; zero if there is none.
        read_address: u64 = ADDRESS_WIDTH,
        /// Its bytes; zero if there is none.
        read_bytes: u16 = SIZE_BITS,
        /// What ended in the cycle before was dropped: its tag does not wait for completions.
        unexpected: bool = 1,
        /// It was dropped: its bytes are not those that the read lacks next.
        mismatched: bool = 1,
        /// A read has got its last completion in the cycle before: its tag comes back.
        free_valid: bool = 1,
        /// That tag; zero if there is none.
        free_tag: u8 = TAG_BITS,
        /// A word is offered.
        out_valid: bool = 1,
        /// It is the first of its descriptor.
        out_first: bool = 1,
        /// It is the last one.
        out_last: bool = 1,
        /// A read of this descriptor has failed: the word has no data, and no more come.
        out_failed: bool = 1,
        /// Its doorbell cannot be, so nothing was read: the word has no data, and no more come.
        out_refused: bool = 1,
        /// The function that rang; zero if there is no word.
        out_function: u8 = 3,
        /// Global address of the descriptor; zero if there is no word.
        out_address: u64 = ADDRESS_WIDTH,
        /// The word; zero if there is none.
        out_word: u64 = 64,
    }
}

/// What the block holds and asks for.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Descriptors.
    pub places: usize,
    /// Beats of a descriptor, at most.
    pub beats: usize,
    /// Beats of a read, at most; a read ends at a multiple of them.
    pub request: usize,
    /// Tags that reads can have.
    pub tags: usize,
}

/// A descriptor that has not left.
#[derive(Clone, Copy, Debug)]
struct Job {
    function: u8,
    address: u64,
    /// Its beats; none if it is refused.
    beats: usize,
    /// Reads that wait for completions.
    open: usize,
    failed: bool,
}

/// A read that waits for completions.
#[derive(Clone, Copy, Debug)]
struct Read {
    /// The number of its job.
    job: u64,
    /// The beat of the descriptor that comes next, and beats to come.
    at: usize,
    lacks: usize,
}

/// A completion whose last beat has not come.
#[derive(Clone, Copy, Debug)]
struct Piece {
    tag: u8,
    /// The tag waits for completions, and did so since the first beat.
    is_ours: bool,
    failed: bool,
    /// The beats that it has by its bytes; none if they are not those that the read lacks next.
    beats: usize,
    /// Those that have come.
    came: usize,
}

/// The descriptors of an interface that are being read.
///
/// A doorbell that is taken in cycle `t` has its first read offered from `t + 1` on, if all earlier
/// ones are asked for. What comes with the last beat of a descriptor in cycle `t` makes its first
/// word stand at the output from `t + 2` on, if all earlier ones have left. One read and one word
/// leave in a cycle.
#[derive(Clone, Debug)]
pub struct DescFetch {
    shape: Shape,
    memory: Vec<[u64; BEAT_WORDS]>,
    jobs: VecDeque<Job>,
    /// The number of the oldest job, and of the first one that is not asked for in full.
    first: u64,
    asking: u64,
    /// Beats that were asked for of the latter.
    asked: usize,
    /// Words of the oldest job that have left the memory.
    left: usize,
    /// By tag.
    reads: Vec<Option<Read>>,
    piece: Option<Piece>,
    unexpected: bool,
    mismatched: bool,
    free: Option<u8>,
    /// The output's register: `out_valid` and what follows.
    output: Out,
}

impl DescFetch {
    /// Empty places.
    ///
    /// # Panics
    /// Unless places and the beats of a descriptor and of a read are powers of two, at least two
    /// places, and a descriptor has at most 256 beats and a read at most as many.
    pub fn new(shape: Shape) -> DescFetch {
        let Shape { places, beats, request, tags } = shape;
        assert!([places, beats, request].iter().all(|count| count.is_power_of_two()) && places > 1);
        assert!(request <= beats && beats <= (1 << (SIZE_BITS - 1)) / LANES, "4 KiB at most");
        DescFetch {
            shape,
            memory: vec![[0; BEAT_WORDS]; places * beats],
            jobs: VecDeque::with_capacity(places),
            first: 0,
            asking: 0,
            asked: 0,
            left: 0,
            reads: vec![None; tags.next_power_of_two().max(2)],
            piece: None,
            unexpected: false,
            mismatched: false,
            free: None,
            output: Out::default(),
        }
    }

    /// What stands at the outputs in this cycle, by what enters.
    #[inline]
    pub fn out(&self, input: &In) -> Out {
        let read = self.next_read().filter(|_| self.reads[usize::from(input.read_tag)].is_none());
        let (read_function, read_address, read_beats) = read.unwrap_or((0, 0, 0));
        Out {
            bell_ready: self.jobs.len() < self.shape.places,
            read_valid: read.is_some(),
            read_function,
            read_address,
            read_bytes: (read_beats * LANES) as u16,
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
            self.output = self.next_word();
        }
        (self.unexpected, self.mismatched, self.free) = (false, false, None);
        // A tag that is lost is lost, also if its last beat comes in this cycle.
        if input.lost_valid
            && let Some(read) = self.reads[usize::from(input.lost_tag)].take()
        {
            self.ends(read, true);
            // Between its beats, too, a tag may be lost and used again.
            if let Some(piece) = self.piece.as_mut().filter(|piece| piece.tag == input.lost_tag) {
                piece.is_ours = false;
            }
        }
        if input.in_valid {
            self.beat(&input);
        }
        let read_beats = usize::from(out.read_bytes) / LANES;
        self.ask(if input.read_ready { read_beats } else { 0 }, input.read_tag);
        if input.bell_valid && out.bell_ready {
            self.jobs.push_back(self.job(&input));
        }
        out
    }

    fn entry(&mut self, number: u64) -> &mut Job {
        &mut self.jobs[(number - self.first) as usize]
    }

    /// The descriptor of a doorbell.
    fn job(&self, input: &In) -> Job {
        // A function must not make the interface read outside its window (C-39).
        let place = DoorbellRepr::parse(input.bell_word).ok().filter(|_| !input.bell_outside);
        let beats = place.map_or(0, |place| usize::from(place.length) / LANES);
        Job {
            function: input.bell_function,
            address: input.bell_word & ((1 << ADDRESS_BITS) - 1),
            beats: if beats > self.shape.beats { 0 } else { beats },
            open: 0,
            failed: false,
        }
    }

    /// Address and beats of the read that is due.
    fn next_read(&self) -> Option<(u8, u64, usize)> {
        let job = self.jobs.get((self.asking - self.first) as usize)?;
        let address = job.address + (self.asked * LANES) as u64;
        // No read crosses a page, as each ends at a multiple of its longest.
        let to_end = self.shape.request - address as usize / LANES % self.shape.request;
        let beats = to_end.min(job.beats - self.asked);
        (job.beats > 0).then_some((job.function, address, beats))
    }

    /// A read of so many beats is taken, if there are any. Then the next descriptor has its turn,
    /// if this one is asked for in full.
    fn ask(&mut self, beats: usize, tag: u8) {
        let number = self.asking;
        let Some(job) = self.jobs.get_mut((number - self.first) as usize) else { return };
        if beats > 0 {
            job.open += 1;
            let read = Read { job: number, at: self.asked, lacks: beats };
            self.reads[usize::from(tag)] = Some(read);
            self.asked += beats;
        }
        if self.asked == job.beats {
            self.asking += 1;
            self.asked = 0;
        }
    }

    /// The next word of the oldest descriptor moves from the memory to the output, if that is whole
    /// or has failed, and no completion for it can come any more.
    fn next_word(&mut self) -> Out {
        let Some(&job) = self.jobs.front().filter(|job| self.first < self.asking && job.open == 0)
        else {
            return Out::default();
        };
        let (at, is_refused) = (self.left, job.beats == 0);
        let has_data = !is_refused && !job.failed;
        let out_last = !has_data || at + 1 == BEAT_WORDS * job.beats;
        let place = self.first as usize % self.shape.places * self.shape.beats;
        let out_word =
            if has_data { self.memory[place + at / BEAT_WORDS][at % BEAT_WORDS] } else { 0 };
        self.left += 1;
        if out_last {
            self.jobs.pop_front();
            self.first += 1;
            self.left = 0;
        }
        Out {
            out_valid: true,
            out_first: at == 0,
            out_last,
            out_failed: job.failed,
            out_refused: is_refused,
            out_function: job.function,
            out_address: job.address,
            out_word,
            ..Out::default()
        }
    }

    /// A read ends.
    fn ends(&mut self, read: Read, failed: bool) {
        let job = self.entry(read.job);
        job.open -= 1;
        job.failed |= failed;
    }

    /// A completion begins.
    fn piece(&self, input: &In) -> Piece {
        let (bytes, remaining) = (usize::from(input.in_bytes), usize::from(input.in_remaining));
        let lacks = self.reads[usize::from(input.in_tag)].map(|read| read.lacks * LANES);
        // The standard cuts completions at multiples of 64 bytes, so at the end of a beat.
        let fits = lacks == Some(remaining) && bytes <= remaining && bytes.is_multiple_of(LANES);
        Piece {
            tag: input.in_tag,
            is_ours: lacks.is_some(),
            failed: input.in_failed,
            beats: if fits { bytes / LANES } else { 0 },
            came: 0,
        }
    }

    /// A beat of a completion.
    fn beat(&mut self, input: &In) {
        let mut piece = self.piece.take().unwrap_or_else(|| self.piece(input));
        let read = self.reads[usize::from(piece.tag)].filter(|_| piece.is_ours);
        piece.is_ours = read.is_some();
        let fits = piece.came < piece.beats && !piece.failed;
        if let Some(read) = read.filter(|_| fits) {
            let place = read.job as usize % self.shape.places * self.shape.beats;
            self.memory[place + read.at + piece.came] = input.in_data;
        }
        piece.came += 1;
        if !input.in_last {
            self.piece = Some(piece);
            return;
        }
        let Some(mut read) = read else {
            self.unexpected = true;
            return;
        };
        let comes = fits && piece.came == piece.beats;
        self.mismatched = !(piece.failed || comes);
        if comes {
            read.at += piece.beats;
            read.lacks -= piece.beats;
        }
        if piece.failed || read.lacks == 0 {
            self.ends(read, piece.failed);
            self.reads[usize::from(piece.tag)] = None;
            self.free = Some(piece.tag);
        } else {
            self.reads[usize::from(piece.tag)] = Some(read);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chpp::Config;

    const SHAPE: Shape = Shape { places: 2, beats: 8, request: 4, tags: 4 };

    /// Some doorbells, reads and completions, one a call.
    struct Driven(DescFetch);

    impl Driven {
        fn new() -> Driven {
            Driven(DescFetch::new(SHAPE))
        }

        /// Whether a doorbell is taken.
        fn ring(&mut self, bell_word: u64) -> bool {
            self.0.cycle(bell(3, bell_word)).bell_ready
        }

        /// Address and bytes of the next read, which gets this tag.
        fn read(&mut self, read_tag: u8) -> Option<(u64, u16)> {
            let out = self.0.cycle(In { read_ready: true, read_tag, ..In::default() });
            assert_eq!(out.read_function, if out.read_valid { 3 } else { 0 });
            out.read_valid.then_some((out.read_address, out.read_bytes))
        }

        /// A completion of as many beats; its words count from a number on. Whether it was
        /// unexpected or mismatched, and the tag that comes back.
        fn complete(&mut self, says: In, beats: u64, from: u64) -> (bool, bool, Option<u8>) {
            for beat in 0..beats {
                let in_data = [from + 2 * beat, from + 2 * beat + 1];
                self.0.cycle(In { in_valid: true, in_last: beat + 1 == beats, in_data, ..says });
            }
            let out = self.0.cycle(In::default());
            (out.unexpected, out.mismatched, out.free_valid.then_some(out.free_tag))
        }

        /// The words of the next descriptor; none if it has failed.
        fn leaves(&mut self) -> Option<Vec<u64>> {
            let mut words = Vec::new();
            for _ in 0..100 {
                let out = self.0.cycle(In { out_ready: true, ..In::default() });
                if !out.out_valid {
                    continue;
                }
                assert_eq!(out.out_first, words.is_empty());
                if out.out_failed || out.out_refused {
                    assert!(words.is_empty() && out.out_last);
                    return None;
                }
                words.push(out.out_word);
                if out.out_last {
                    return Some(words);
                }
            }
            panic!("nothing leaves");
        }

        fn lose(&mut self, lost_tag: u8) {
            self.0.cycle(In { lost_valid: true, lost_tag, ..In::default() });
        }
    }

    /// A doorbell's word.
    fn word(address: u64, length: u64) -> u64 {
        length << 48 | address
    }

    fn bell(bell_function: u8, bell_word: u64) -> In {
        In { bell_valid: true, bell_function, bell_word, ..In::default() }
    }

    fn says(in_tag: u8, in_bytes: u16, in_remaining: u16) -> In {
        In { in_tag, in_bytes, in_remaining, ..In::default() }
    }

    const NOTHING: (bool, bool, Option<u8>) = (false, false, None);
    const MISMATCHED: (bool, bool, Option<u8>) = (false, true, None);
    const UNEXPECTED: (bool, bool, Option<u8>) = (true, false, None);

    const fn ended(tag: u8) -> (bool, bool, Option<u8>) {
        (false, false, Some(tag))
    }

    /// A word has the bytes of the model's descriptor path, and a beat those of its bus.
    #[test]
    fn a_word_is_one_of_the_papers_path() {
        let nic = Config::prototype().nic;
        assert_eq!(nic.descriptor_path.count() * BEAT_WORDS as u64, nic.bus.count());
        assert_eq!(nic.bus.count(), LANES as u64);
    }

    /// A read is offered one cycle after its doorbell, and stays. The first word stands at the
    /// output two cycles after the last beat, and stays; the others follow one a cycle. The place
    /// is free when the last one moves to the output.
    #[test]
    fn a_cycle_is_a_cycle() {
        let mut fetch = DescFetch::new(SHAPE);
        let mut cycle = |input: In| {
            let out = fetch.cycle(input);
            let word = (out.out_valid, out.out_first, out.out_last, out.out_word);
            ((out.bell_ready, out.read_valid, out.read_bytes), out.free_valid, word)
        };
        let none = (false, false, false, 0);
        let nothing = In::default();
        assert_eq!(cycle(bell(1, word(0x1000, 32))), ((true, false, 0), false, none));
        assert_eq!(cycle(bell(1, word(0x1000, 64))), ((true, true, 32), false, none));
        assert_eq!(cycle(nothing), ((false, true, 32), false, none));
        let ready = In { read_ready: true, read_tag: 2, ..nothing };
        assert_eq!(cycle(ready), ((false, true, 32), false, none));
        // The second one's turn; no read is offered under the tag that waits.
        assert_eq!(cycle(ready), ((false, false, 0), false, none));
        let beat = In { in_valid: true, in_data: [5, 6], ..says(2, 32, 32) };
        assert_eq!(cycle(beat), ((false, true, 64), false, none));
        assert_eq!(cycle(In { in_last: true, in_data: [7, 8], ..beat }).2, none);
        assert_eq!(cycle(nothing), ((false, true, 64), true, none));
        let takes = In { out_ready: true, ..nothing };
        assert_eq!(cycle(nothing).2, (true, true, false, 5));
        assert_eq!(cycle(takes).2, (true, true, false, 5));
        assert_eq!(cycle(takes).2, (true, false, false, 6));
        assert_eq!(cycle(takes), ((false, true, 64), false, (true, false, false, 7)));
        assert_eq!(cycle(nothing), ((true, true, 64), false, (true, false, true, 8)));
        assert_eq!(cycle(takes).2, (true, false, true, 8));
        assert_eq!(cycle(takes).2, none);
    }

    /// Reads end at multiples of the longest one, and the next descriptor is asked for behind the
    /// last one of this.
    #[test]
    fn reads_are_cut() {
        let mut driven = Driven::new();
        assert!(driven.ring(word(0x1030, 112)) && driven.ring(word(0x2000, 16)));
        let reads = [0, 1, 2, 3].map(|tag| driven.read(tag));
        let wanted = [(0x1030, 16), (0x1040, 64), (0x1080, 32), (0x2000, 16)];
        assert_eq!(reads, wanted.map(Some));
        assert!(!driven.ring(word(0x3000, 16)), "both places are taken");
    }

    /// Descriptors leave whole, in the order of their doorbells, whatever comes first. Completions
    /// of a read come in pieces. A tag is used again meanwhile.
    #[test]
    fn descriptors_leave_in_the_order_of_their_doorbells() {
        let mut driven = Driven::new();
        assert!(driven.ring(word(0x1020, 64)) && driven.ring(word(0x2000, 16)));
        let reads = [3, 1, 0].map(|tag| driven.read(tag));
        assert_eq!(reads, [(0x1020, 32), (0x1040, 32), (0x2000, 16)].map(Some));
        assert_eq!(driven.complete(says(0, 16, 16), 1, 50), ended(0));
        assert_eq!(driven.complete(says(1, 16, 32), 1, 5), NOTHING);
        assert_eq!(driven.complete(says(3, 32, 32), 2, 1), ended(3));
        assert_eq!(driven.complete(says(1, 16, 16), 1, 7), ended(1));
        assert_eq!(driven.leaves(), Some((1..=8).collect()));
        assert!(driven.ring(word(0x3000, 16)));
        assert_eq!(driven.read(1), Some((0x3000, 16)));
        assert_eq!(driven.leaves(), Some(vec![50, 51]));
        assert_eq!(driven.complete(says(1, 16, 16), 1, 60), ended(1));
        assert_eq!(driven.leaves(), Some(vec![60, 61]));
    }

    /// A doorbell that cannot be, or that names a place outside of its function's window, is
    /// refused in its turn, with function and address, and nothing is read.
    #[test]
    fn wrong_doorbells_are_refused() {
        let mut driven = Driven::new();
        let wrong = [
            word(0x1000, 0),
            word(0x1000, 24),
            word(0x1008, 16),
            word(0x1000, 16) | 1 << 40,
            word((1 << 40) - 16, 32),
            word(0x1000, 16 * 8 + 16),
        ];
        for (bell_word, bell_outside) in
            wrong.map(|word| (word, false)).into_iter().chain([(word(0x1000, 16), true)])
        {
            driven.0.cycle(In { bell_outside, ..bell(5, bell_word) });
            assert!(driven.ring(word(0x2000, 16)));
            assert_eq!((driven.read(0), driven.read(1)), (Some((0x2000, 16)), None));
            let out = driven.0.cycle(In { out_ready: true, ..In::default() });
            assert!(out.out_valid && out.out_first && out.out_last, "{bell_word:x}");
            assert!(out.out_refused && !out.out_failed);
            let address = bell_word & 0xff_ffff_ffff;
            assert_eq!((out.out_function, out.out_address, out.out_word), (5, address, 0));
            assert_eq!(driven.complete(says(0, 16, 16), 1, 1), ended(0));
            assert_eq!(driven.leaves(), Some(vec![1, 2]));
        }
    }

    /// A descriptor of which a read fails, or is lost, leaves as failed once no completion for it
    /// can come any more. Those behind it leave as they came.
    #[test]
    fn a_failure_hurts_its_descriptor_only() {
        for is_lost in [false, true] {
            let mut driven = Driven::new();
            assert!(driven.ring(word(0x1000, 128)) && driven.ring(word(0x2000, 16)));
            assert_eq!([0, 1, 2].map(|tag| driven.read(tag).is_some()), [true; 3]);
            assert_eq!(driven.complete(says(2, 16, 16), 1, 5), ended(2));
            if is_lost {
                driven.lose(0);
                assert_eq!(driven.complete(says(0, 64, 64), 4, 1), UNEXPECTED);
            } else {
                let fails = In { in_failed: true, ..says(0, 64, 64) };
                assert_eq!(driven.complete(fails, 1, 1), ended(0));
            }
            for _ in 0..5 {
                assert!(!driven.0.cycle(In { out_ready: true, ..In::default() }).out_valid);
            }
            assert_eq!(driven.complete(says(1, 64, 64), 4, 1), ended(1));
            assert_eq!((driven.leaves(), driven.leaves()), (None, Some(vec![5, 6])));
            // Its place has no trace of it.
            assert!(driven.ring(word(0x1000, 32)));
            assert_eq!(driven.read(0), Some((0x1000, 32)));
            assert_eq!(driven.complete(says(0, 32, 32), 2, 20), ended(0));
            assert_eq!(driven.leaves(), Some(vec![20, 21, 22, 23]));
        }
    }

    /// A completion that is not what its read lacks next is told and changes nothing, and so is one
    /// for a tag that does not wait.
    #[test]
    fn completions_that_lie_are_dropped() {
        let mut driven = Driven::new();
        assert!(driven.ring(word(0x1000, 64)));
        assert_eq!(driven.read(1), Some((0x1000, 64)));
        assert_eq!(driven.complete(says(0, 64, 64), 4, 90), UNEXPECTED);
        assert_eq!(driven.complete(says(1, 48, 48), 3, 90), MISMATCHED);
        assert_eq!(driven.complete(says(1, 80, 64), 5, 90), MISMATCHED);
        assert_eq!(driven.complete(says(1, 20, 64), 2, 90), MISMATCHED);
        assert_eq!(driven.complete(says(1, 0, 64), 1, 90), MISMATCHED);
        assert_eq!(driven.complete(says(1, 32, 64), 1, 90), MISMATCHED);
        assert_eq!(driven.complete(says(1, 32, 64), 3, 90), MISMATCHED);
        assert_eq!(driven.complete(says(1, 32, 64), 2, 1), NOTHING);
        assert_eq!(driven.complete(says(1, 32, 64), 2, 90), MISMATCHED);
        assert_eq!(driven.complete(says(1, 32, 32), 2, 5), ended(1));
        assert_eq!(driven.leaves(), Some((1..=8).collect()));
    }

    /// A completion with more beats than it says does not reach the place of the next descriptor.
    #[test]
    fn a_long_completion_stays_in_its_place() {
        let mut driven = Driven::new();
        assert!(driven.ring(word(0x1000, 128)) && driven.ring(word(0x2000, 16)));
        assert_eq!([0, 1, 2].map(|tag| driven.read(tag).is_some()), [true; 3]);
        assert_eq!(driven.complete(says(2, 16, 16), 1, 50), ended(2));
        assert_eq!(driven.complete(says(1, 64, 64), 5, 90), MISMATCHED);
        assert_eq!(driven.complete(says(1, 64, 64), 4, 9), ended(1));
        assert_eq!(driven.complete(says(0, 64, 64), 4, 1), ended(0));
        assert_eq!(driven.leaves(), Some((1..=16).collect()));
        assert_eq!(driven.leaves(), Some(vec![50, 51]));
    }

    /// A tag that is lost between the beats of a completion, and used again, does not get the rest
    /// of it.
    #[test]
    fn a_lost_tag_may_be_used_again_at_once() {
        let mut driven = Driven::new();
        assert!(driven.ring(word(0x1000, 32)) && driven.ring(word(0x2000, 32)));
        assert_eq!(driven.read(1), Some((0x1000, 32)));
        driven.0.cycle(In { in_valid: true, in_data: [90, 91], ..says(1, 32, 32) });
        driven.lose(1);
        assert_eq!(driven.read(1), Some((0x2000, 32)));
        assert_eq!(driven.complete(says(1, 32, 32), 1, 92), UNEXPECTED);
        assert_eq!(driven.complete(says(1, 32, 32), 2, 1), ended(1));
        assert_eq!((driven.leaves(), driven.leaves()), (None, Some(vec![1, 2, 3, 4])));
    }
}
