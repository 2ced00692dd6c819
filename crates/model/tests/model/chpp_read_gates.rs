//! The cycle blocks of cHPP that read host memory with each other: the fetch of descriptors, the
//! re-order memory of data and the reader of slot addresses share an arbiter and an allocator of
//! tags, against a completer that fails, forgets, and answers what nobody asked for.

use std::collections::VecDeque;

use bellwire_model::cycle::data_reorder::{self, DataReorder, LANES};
use bellwire_model::cycle::desc_fetch::{self, DescFetch, Shape};
use bellwire_model::cycle::read_arb::{self, ReadArb};
use bellwire_model::cycle::slot_read::{self, SlotRead};
use bellwire_model::cycle::tag_alloc::{self, TagAlloc};
use bellwire_model::engine::Random;

const TAGS: usize = 8;
const SHAPE: Shape = Shape { places: 2, beats: 64, request: 8, tags: TAGS };
const TIMEOUT: u64 = 400;
/// The requesters.
const DESCRIPTORS: usize = 0;
const DATA: usize = 1;
const SLOTS: usize = 2;
const REQUESTERS: usize = 3;
/// Entries of a read of slot addresses.
const BATCH: usize = 16;
const BEAT: u64 = LANES as u64;

/// Words of the beat of host memory in which this address lies.
fn memory(address: u64) -> [u64; 2] {
    let first = address / BEAT * BEAT;
    [first, first + 8].map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Beats in which these bytes lie.
fn beats(address: u64, bytes: u64) -> u64 {
    (address % BEAT + bytes).div_ceil(BEAT)
}

/// What becomes of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Comes,
    Fails,
    IsForgotten,
}

/// A read that waits for completions: what has not come.
#[derive(Clone, Copy, Debug)]
struct Read {
    tag: u8,
    address: u64,
    bytes: u64,
    fate: Fate,
}

/// A completion that comes: what its beats say, where they lie, and how many are left.
#[derive(Clone, Copy, Debug)]
struct Piece {
    says: data_reorder::In,
    address: u64,
    beats: u64,
}

/// What a requester has asked for and not got: where it lies, and whether a read of it has failed.
#[derive(Clone, Copy, Debug)]
struct Job {
    address: u64,
    bytes: u64,
    /// Bytes that were asked for, and beats, words or entries that have left.
    asked: u64,
    left: u64,
    fails: bool,
}

/// How often something happened: by requester, whole and failed; lost tags, and strays.
#[derive(Debug, Default)]
struct Seen {
    whole: [u64; REQUESTERS],
    failed: [u64; REQUESTERS],
    lost: u64,
    strays: u64,
}

/// The blocks, connected as in gates, and what is known of their reads.
struct Path {
    fetch: DescFetch,
    reorder: DataReorder,
    slots: SlotRead,
    arb: ReadArb,
    alloc: TagAlloc,
    /// Requesters are told which of their tags are lost.
    is_told: bool,
    random: Random,
    /// By requester, what it has asked for, oldest first.
    jobs: [VecDeque<Job>; REQUESTERS],
    /// By requester, the next read that it asks for: address and bytes.
    wanted: [Option<(u64, u64)>; REQUESTERS],
    /// By tag, the requester and the number of its job since the beginning.
    held: [Option<(usize, u64)>; TAGS],
    /// By requester, the number of its oldest job.
    first: [u64; REQUESTERS],
    reads: Vec<Read>,
    piece: Option<Piece>,
    /// The completion that ended in the cycle before was for nobody.
    strayed: bool,
    seen: Seen,
}

impl Path {
    fn new(seed: u64) -> Path {
        Path {
            fetch: DescFetch::new(SHAPE),
            reorder: DataReorder::new(32, 8, TAGS),
            slots: SlotRead::new(BATCH),
            arb: ReadArb::new(REQUESTERS, TAGS),
            alloc: TagAlloc::new(TAGS, TIMEOUT),
            is_told: true,
            random: Random::new(seed),
            jobs: Default::default(),
            wanted: [None; REQUESTERS],
            held: [None; TAGS],
            first: [0; REQUESTERS],
            reads: Vec::new(),
            piece: None,
            strayed: false,
            seen: Seen::default(),
        }
    }

    fn push(&mut self, requester: usize, address: u64, bytes: u64) {
        let job = Job { address, bytes, asked: 0, left: 0, fails: false };
        self.jobs[requester].push_back(job);
    }

    fn end(&mut self, requester: usize) {
        let job = self.jobs[requester].pop_front().expect("it was asked for");
        self.first[requester] += 1;
        let seen = if job.fails { &mut self.seen.failed } else { &mut self.seen.whole };
        seen[requester] += 1;
    }

    /// The job of the read that has this tag.
    fn job(&mut self, tag: u8) -> &mut Job {
        let (requester, number) = self.held[usize::from(tag)].expect("the tag is in use");
        &mut self.jobs[requester][(number - self.first[requester]) as usize]
    }

    /// One cycle; requesters begin something only if it `works`.
    fn cycle(&mut self, works: bool) -> tag_alloc::Out {
        let tags = self.alloc.out();
        assert!(!tags.refused, "no tag comes back twice");
        let in_use = self.arb.in_use() - usize::from(tags.lost_valid);
        assert_eq!(in_use, tags.in_use.into(), "both know the same tags");

        let bell = (works && self.random.below(16) == 0).then(|| {
            let beats = 1 + self.random.below(64);
            (BEAT * self.random.below(1 << 20), BEAT * beats)
        });
        if works && self.random.below(4) == 0 {
            let bytes = 1 + self.random.below(128);
            self.wanted[DATA].get_or_insert((self.random.below(1 << 24), bytes));
        }
        let entries = 1 + self.random.below(BATCH as u64);
        let mut slots = slot_read::In {
            read_valid: works && self.random.below(16) == 0,
            read_pair: entries as u8,
            read_address: 8 * self.random.below(1 << 20),
            read_count: entries as u8,
            entry_ready: self.random.below(4) > 0,
            ..slot_read::In::default()
        };

        // What stands at the outputs before anything is taken.
        let mut fetch = desc_fetch::In {
            bell_valid: bell.is_some(),
            bell_word: bell.map_or(0, |(address, bytes)| bytes << 48 | address),
            read_tag: tags.tag,
            out_ready: self.random.below(8) > 0,
            ..desc_fetch::In::default()
        };
        let asked = self.fetch.clone().cycle(fetch);
        self.wanted[DESCRIPTORS] =
            asked.read_valid.then_some((asked.read_address, asked.read_bytes.into()));
        let (at, bytes) = self.wanted[DATA].unwrap_or_default();
        let mut reorder = data_reorder::In {
            read_tag: tags.tag,
            read_lane: (at % BEAT) as u8,
            read_bytes: bytes as u16,
            out_ready: self.random.below(8) > 0,
            ..data_reorder::In::default()
        };
        let has_room = self.reorder.clone().cycle(reorder);

        let refill = self.slots.clone().cycle(slots);
        self.wanted[SLOTS] =
            refill.ask_valid.then_some((refill.ask_address, refill.ask_bytes.into()));

        let mut input = read_arb::In {
            tag_valid: tags.tag_valid,
            tag: tags.tag,
            read_ready: self.random.below(4) > 0,
            lost_valid: tags.lost_valid,
            lost_tag: tags.lost_tag,
            ..read_arb::In::default()
        };
        let is_there = [asked.read_valid, has_room.read_ready, true];
        let freed = [asked.free_valid, has_room.free_valid, refill.free_valid];
        for requester in 0..REQUESTERS {
            let (address, bytes) = self.wanted[requester].unwrap_or_default();
            input.ask_valid[requester] = self.wanted[requester].is_some() && is_there[requester];
            (input.ask_address[requester], input.ask_bytes[requester]) = (address, bytes as u16);
            input.free_valid[requester] = freed[requester];
        }
        let beat = self.complete(&input);
        (input.in_valid, input.in_last, input.in_tag) = (beat.in_valid, beat.in_last, beat.in_tag);
        let out = self.arb.cycle(input);
        assert_eq!(out.unexpected, std::mem::take(&mut self.strayed), "strays are told");
        let expected = if beat.in_valid { self.held[usize::from(beat.in_tag)] } else { None };
        let owner = |is: [bool; read_arb::REQUESTERS]| is.iter().position(|&it| it);
        assert_eq!(owner(out.own_valid), expected.map(|(requester, _)| requester));
        self.strayed = beat.in_valid && expected.is_none();

        let served = owner(std::array::from_fn(|at| input.ask_valid[at] && out.ask_ready[at]));
        fetch.read_ready = out.ask_ready[DESCRIPTORS];
        fetch.in_valid = out.own_valid[DESCRIPTORS];
        (fetch.in_last, fetch.in_tag, fetch.in_failed) =
            (beat.in_last, beat.in_tag, beat.in_failed);
        (fetch.in_bytes, fetch.in_remaining) = (beat.in_bytes, beat.in_remaining);
        fetch.in_data = beat.in_data;
        fetch.lost_valid = out.own_lost[DESCRIPTORS] && self.is_told;
        fetch.lost_tag = tags.lost_tag;
        let fetched = self.fetch.cycle(fetch);
        reorder.read_valid = served == Some(DATA);
        reorder.in_valid = out.own_valid[DATA];
        (reorder.in_last, reorder.in_tag) = (beat.in_last, beat.in_tag);
        (reorder.in_failed, reorder.in_data) = (beat.in_failed, beat.in_data);
        (reorder.in_bytes, reorder.in_remaining) = (beat.in_bytes, beat.in_remaining);
        reorder.lost_valid = out.own_lost[DATA] && self.is_told;
        reorder.lost_tag = tags.lost_tag;
        let ordered = self.reorder.cycle(reorder);
        slots.ask_ready = out.ask_ready[SLOTS];
        slots.in_valid = out.own_valid[SLOTS];
        (slots.in_last, slots.in_failed, slots.in_data) =
            (beat.in_last, beat.in_failed, beat.in_data);
        (slots.in_bytes, slots.in_remaining) = (beat.in_bytes, beat.in_remaining);
        slots.lost_valid = out.own_lost[SLOTS] && self.is_told;
        let listed = self.slots.cycle(slots);
        let unexpected = [fetched.unexpected, ordered.unexpected, listed.unexpected];
        let mismatched = [fetched.mismatched, ordered.mismatched, listed.mismatched];
        let wrong = [unexpected, mismatched];
        assert_eq!(wrong, [[false; 3]; 2], "each requester gets what it waits for, nothing else");

        if fetched.out_valid && fetch.out_ready {
            self.word(&fetched);
        }
        if ordered.out_valid && reorder.out_ready {
            self.beat(&ordered);
        }
        if listed.entry_valid && slots.entry_ready {
            self.entry(&listed);
        }
        if let Some((address, bytes)) = bell.filter(|_| fetched.bell_ready) {
            self.push(DESCRIPTORS, address, bytes);
        }
        if out.read_valid && input.read_ready {
            self.send(&out);
        }
        if out.release_valid {
            self.held[usize::from(out.release_tag)] = None;
        }
        if tags.lost_valid {
            self.seen.lost += 1;
            assert!(owner(out.own_lost).is_some(), "the tag is of a read");
            self.held[usize::from(tags.lost_tag)] = None;
        }
        if let Some(requester) = served {
            self.serve(requester, tags.tag);
        }
        self.alloc.cycle(tag_alloc::In {
            tag_ready: out.tag_ready,
            release_valid: out.release_valid,
            release_tag: out.release_tag,
        })
    }

    /// A read of this requester was taken.
    fn serve(&mut self, requester: usize, tag: u8) {
        let (address, bytes) = self.wanted[requester].take().expect("it asks");
        if requester != DESCRIPTORS {
            self.push(requester, address, bytes);
        }
        let is_due = |job: &&mut Job| job.asked < job.bytes;
        let mut jobs = self.jobs[requester].iter_mut().enumerate();
        let (at, job) = jobs.find(|(_, job)| is_due(job)).expect("a read is of a job");
        assert_eq!(address, job.address + job.asked, "reads keep their order");
        job.asked += bytes;
        let number = self.first[requester] + at as u64;
        assert_eq!(self.held[usize::from(tag)].replace((requester, number)), None);
    }

    /// A read leaves for the completer.
    fn send(&mut self, out: &read_arb::Out) {
        let fate = match self.random.below(64) {
            0 => Fate::Fails,
            1 => Fate::IsForgotten,
            _ => Fate::Comes,
        };
        let (tag, address, bytes) = (out.read_tag, out.read_address, out.read_bytes.into());
        let job = self.job(tag);
        assert!(
            (job.address..job.address + job.bytes).contains(&address),
            "it is of the tag's job"
        );
        job.fails |= fate != Fate::Comes;
        self.reads.push(Read { tag, address, bytes, fate });
    }

    /// A beat of a completion of one of the oldest reads, or at times for a tag that is free.
    fn complete(&mut self, input: &read_arb::In) -> data_reorder::In {
        if input.lost_valid {
            let at = self.reads.iter().position(|read| read.tag == input.lost_tag);
            let lost = self.reads.remove(at.expect("a tag in use is of a read"));
            assert_eq!(lost.fate, Fate::IsForgotten);
        }
        let free = (0..TAGS).find(|&tag| self.held[tag].is_none());
        if self.piece.is_none()
            && self.random.below(64) == 0
            && let Some(tag) = free
        {
            self.seen.strays += 1;
            let in_tag = tag as u8;
            return data_reorder::In {
                in_valid: true,
                in_last: true,
                in_tag,
                ..Default::default()
            };
        }
        if self.piece.is_none() {
            let comes = |read: &&mut Read| read.fate != Fate::IsForgotten;
            let count = self.reads.iter_mut().filter(comes).count();
            let at = self.random.below(count.clamp(1, 4) as u64) as usize;
            let read = self.reads.iter_mut().filter(comes).nth(at);
            self.piece = read.map(|read| {
                let cut = 64 * (1 + self.random.below(2)) - read.address % 64;
                let bytes = read.bytes.min(cut);
                let says = data_reorder::In {
                    in_tag: read.tag,
                    in_failed: read.fate == Fate::Fails,
                    in_bytes: bytes as u16,
                    in_remaining: read.bytes as u16,
                    ..Default::default()
                };
                let beats = if says.in_failed { 1 } else { beats(read.address, bytes) };
                let piece = Piece { says, address: read.address, beats };
                (read.address, read.bytes) = (read.address + bytes, read.bytes - bytes);
                piece
            });
        }
        let Some(piece) = self.piece.as_mut().filter(|_| self.random.below(8) > 0) else {
            return data_reorder::In::default();
        };
        piece.beats -= 1;
        let in_data = memory(piece.address);
        piece.address = piece.address / BEAT * BEAT + BEAT;
        let says = piece.says;
        let in_last = piece.beats == 0;
        if in_last {
            self.piece = None;
            self.reads
                .retain(|read| read.tag != says.in_tag || (read.bytes > 0 && !says.in_failed));
        }
        data_reorder::In { in_valid: true, in_last, in_data, ..says }
    }

    /// An entry of a list of slots has left.
    fn entry(&mut self, out: &slot_read::Out) {
        let job = self.jobs[SLOTS].front_mut().expect("an entry is of a read");
        assert_eq!(out.entry_failed, job.fails, "{job:?}");
        let at = job.address + 8 * job.left;
        if !job.fails {
            assert_eq!(out.entry_word, memory(at)[(at / 8 % 2) as usize], "{job:?}");
        }
        assert_eq!(8 * u64::from(out.entry_pair), job.bytes, "{job:?}");
        job.left += 1;
        if job.fails || 8 * job.left == job.bytes {
            self.end(SLOTS);
        }
    }

    /// A word of a descriptor has left.
    fn word(&mut self, out: &desc_fetch::Out) {
        let job = self.jobs[DESCRIPTORS].front_mut().expect("a word is of a descriptor");
        assert_eq!((out.out_address, out.out_failed), (job.address, job.fails), "{job:?}");
        if !job.fails {
            let at = job.address + 8 * job.left;
            assert_eq!(out.out_word, memory(at)[(at / 8 % 2) as usize], "{job:?}");
        }
        job.left += 1;
        if out.out_last {
            self.end(DESCRIPTORS);
        }
    }

    /// A beat of data has left.
    fn beat(&mut self, out: &data_reorder::Out) {
        let job = self.jobs[DATA].front_mut().expect("a beat is of a read");
        if out.out_failed {
            assert!(job.fails, "{job:?}");
        } else {
            assert_eq!(
                out.out_data,
                memory(job.address / BEAT * BEAT + BEAT * job.left),
                "{job:?}"
            );
        }
        job.left += 1;
        if out.out_last || out.out_failed {
            let is_whole = job.left == beats(job.address, job.bytes);
            assert!(job.fails || is_whole, "{job:?}");
            self.end(DATA);
        }
    }

    /// Runs it, and then lets all that was begun come to its end.
    fn run(&mut self, cycles: u64) {
        for _ in 0..cycles {
            self.cycle(true);
        }
        for _ in 0..50 * TIMEOUT {
            self.cycle(false);
        }
        let is_empty = self.jobs.iter().all(VecDeque::is_empty);
        let in_use = self.cycle(false).in_use;
        assert!(is_empty && in_use == 0, "all comes to its end: {:?}", self.jobs);
    }
}

/// Three requesters share tags and a port. Each gets the bytes that it asked for, in its order and
/// nothing else, whether reads of the others fail, are lost, or overtake. No tag is used twice at
/// once, and in the end all are back.
// shows: C-36
#[test]
fn each_requester_gets_its_own_bytes_with_any_completer() {
    for seed in 1..4 {
        let mut path = Path::new(seed);
        path.run(60_000);
        let Seen { whole, failed, lost, strays } = &path.seen;
        let all = whole.iter().chain(failed).chain([lost, strays]);
        assert!(all.into_iter().all(|&count| count > 30), "{:?}", path.seen);
    }
}

/// Canary: requesters that are not told of their lost tags are noticed.
#[test]
#[should_panic(expected = "all comes to its end")]
fn requesters_that_are_not_told_wait_for_ever() {
    let mut path = Path::new(1);
    path.is_told = false;
    path.run(2_000);
}
