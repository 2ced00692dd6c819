//! The cycle blocks of cHPP's data reads with each other: tags and re-order memory against a
//! completer that fails, lies, and forgets.

use std::collections::{HashMap, VecDeque};

use bellwire_model::cycle::data_reorder::{self, DataReorder, LANES};
use bellwire_model::cycle::tag_alloc::{self, TagAlloc};
use bellwire_model::engine::Random;

/// A read that was requested and has not left.
#[derive(Clone, Copy, Debug)]
struct Read {
    tag: u8,
    bytes: u64,
    came: u64,
    /// Its completer forgot it.
    forgotten: bool,
    /// It must end without its bytes.
    fails: bool,
}

/// A completion that comes: its read, its header, the beats that come, and what it is.
#[derive(Clone, Copy, Debug)]
struct Piece {
    read: u64,
    says: data_reorder::In,
    beats: u64,
    beat: u64,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    True,
    Fails,
    Lies,
    Stray,
}

/// How often something happened.
#[derive(Debug, Default)]
struct Seen {
    whole: u64,
    failed: u64,
    lost: u64,
    lies: u64,
    strays: u64,
    /// Tags that were taken again while the bytes of their last read waited.
    again: u64,
}

/// Both blocks, connected as in gates, and what is known of their reads.
struct DataPath {
    alloc: TagAlloc,
    reorder: DataReorder,
    tags: u8,
    /// The memory is told which tags are lost.
    is_told: bool,
    random: Random,
    /// Reads that have not left, oldest first, and the number of the oldest.
    reads: VecDeque<Read>,
    first: u64,
    /// By tag, the read that waits for completions.
    out: HashMap<u8, u64>,
    wanted: Option<u64>,
    piece: Option<Piece>,
    /// What the completion that ended in the cycle before must be called.
    told: Option<Kind>,
    word: u64,
    seen: Seen,
}

/// Words of a beat of a read: its number and place, so that no two are alike.
fn data(read: u64, beat: u64) -> [u64; 2] {
    [read, beat]
}

impl DataPath {
    fn new(beats: usize, tags: usize, timeout: u64, seed: u64) -> DataPath {
        DataPath {
            alloc: TagAlloc::new(tags, timeout),
            reorder: DataReorder::new(beats, tags, tags),
            tags: tags as u8,
            is_told: true,
            random: Random::new(seed),
            reads: VecDeque::new(),
            first: 0,
            out: HashMap::new(),
            wanted: None,
            piece: None,
            told: None,
            word: 0,
            seen: Seen::default(),
        }
    }

    fn read(&mut self, number: u64) -> &mut Read {
        &mut self.reads[(number - self.first) as usize]
    }

    /// A completion of some read, or for a tag that is not out. `None` if its completer forgets.
    fn complete(&mut self) -> Option<Piece> {
        let mut open: Vec<u64> = self.out.values().copied().collect();
        open.sort_unstable();
        open.retain(|&number| !self.reads[(number - self.first) as usize].forgotten);
        if self.random.below(16) == 0 {
            let free: Vec<u8> = (0..self.tags).filter(|tag| !self.out.contains_key(tag)).collect();
            let in_tag = *free.get(self.random.below(free.len().max(1) as u64) as usize)?;
            let bytes = 1 + self.random.below(64) as u16;
            let says = data_reorder::In {
                in_tag,
                in_bytes: bytes,
                in_remaining: bytes,
                ..data_reorder::In::default()
            };
            let beats = u64::from(bytes).div_ceil(LANES as u64);
            return Some(Piece { read: 0, says, beats, beat: 0, kind: Kind::Stray });
        }
        let number = *open.get(self.random.below(open.len().max(1) as u64) as usize)?;
        let read = *self.read(number);
        let left = read.bytes - read.came;
        let bytes = left.min(64 * (1 + self.random.below(2)));
        let mut piece = Piece {
            read: number,
            says: data_reorder::In {
                in_tag: read.tag,
                in_bytes: bytes as u16,
                in_remaining: left as u16,
                ..data_reorder::In::default()
            },
            beats: bytes.div_ceil(LANES as u64),
            beat: 0,
            kind: Kind::True,
        };
        match self.random.below(64) {
            0 => {
                self.read(number).forgotten = true;
                return None;
            }
            1 => {
                piece.kind = Kind::Fails;
                piece.says.in_failed = true;
                piece.beats = 1;
            }
            2..8 => {
                piece.kind = Kind::Lies;
                match self.random.below(5) {
                    0 => piece.says.in_remaining += 1 + self.random.below(100) as u16,
                    1 => piece.says.in_remaining -= 1,
                    2 => {
                        piece.says.in_bytes = left as u16 + 1;
                        piece.beats = (left + 1).div_ceil(LANES as u64);
                    }
                    3 => piece.beats += 1,
                    _ => piece.says.in_bytes = 0,
                }
            }
            _ => {}
        }
        Some(piece)
    }

    /// One cycle; requests come and completers work only if `works`.
    fn cycle(&mut self, works: bool) -> (tag_alloc::Out, data_reorder::Out) {
        if works && self.wanted.is_none() {
            self.wanted = Some(1 + self.random.below(128));
        }
        let offered = self.alloc.out();
        let mut input = data_reorder::In {
            read_valid: self.wanted.is_some() && offered.tag_valid,
            read_tag: offered.tag,
            read_bytes: self.wanted.unwrap_or(0) as u16,
            lost_valid: offered.lost_valid && self.is_told,
            lost_tag: offered.lost_tag,
            out_ready: self.random.below(4) > 0,
            ..data_reorder::In::default()
        };
        if self.piece.is_none() && works && self.random.below(2) == 0 {
            self.piece = self.complete();
        }
        if let Some(piece) = &self.piece {
            input = data_reorder::In {
                in_valid: true,
                in_last: piece.beat + 1 == piece.beats,
                in_tag: piece.says.in_tag,
                in_failed: piece.says.in_failed,
                in_bytes: piece.says.in_bytes,
                in_remaining: piece.says.in_remaining,
                ..input
            };
            if piece.kind == Kind::True {
                let came = self.reads[(piece.read - self.first) as usize].came;
                input.in_data = data(piece.read, came / LANES as u64 + piece.beat);
            }
        }

        let out = self.reorder.cycle(input);
        let told = self.told.take();
        let is = |kind| told == Some(kind);
        let expected = (is(Kind::Stray), is(Kind::Lies));
        assert_eq!((out.unexpected, out.mismatched), expected, "what completions are told as");
        if let Some(number) =
            offered.lost_valid.then(|| self.out.remove(&offered.lost_tag)).flatten()
        {
            self.read(number).fails = true;
            self.seen.lost += 1;
            // What was coming of it counts no more.
            if let Some(piece) = self.piece.as_mut().filter(|piece| piece.read == number) {
                piece.kind = Kind::Stray;
            }
        }
        self.came(input.in_last);
        self.leaves(&out, input.out_ready);
        if input.read_valid && out.read_ready {
            let number = self.first + self.reads.len() as u64;
            let tag = offered.tag;
            self.seen.again += u64::from(self.reads.iter().any(|read| read.tag == tag));
            assert_eq!(self.out.insert(tag, number), None, "tag {tag} is out");
            let bytes = self.wanted.take().expect("it is wanted");
            self.reads.push_back(Read { tag, bytes, came: 0, forgotten: false, fails: false });
        }
        let alloc = self.alloc.cycle(tag_alloc::In {
            tag_ready: input.read_valid && out.read_ready,
            release_valid: out.free_valid,
            release_tag: out.free_tag,
        });
        (alloc, out)
    }

    /// A beat of the completion has come.
    fn came(&mut self, is_last: bool) {
        let Some(mut piece) = self.piece.take() else { return };
        piece.beat += 1;
        if !is_last {
            self.piece = Some(piece);
            return;
        }
        self.told = Some(piece.kind);
        self.seen.strays += u64::from(piece.kind == Kind::Stray);
        self.seen.lies += u64::from(piece.kind == Kind::Lies);
        if piece.kind == Kind::True {
            let read = self.read(piece.read);
            read.came += u64::from(piece.says.in_bytes);
            if read.came == read.bytes {
                self.out.remove(&piece.says.in_tag);
            }
        }
        if piece.kind == Kind::Fails {
            self.read(piece.read).fails = true;
            self.out.remove(&piece.says.in_tag);
        }
    }

    /// What leaves is the next beat of the oldest read, or the end of one that fails.
    fn leaves(&mut self, out: &data_reorder::Out, is_taken: bool) {
        if !(out.out_valid && is_taken) {
            return;
        }
        let read = *self.reads.front().expect("a beat is of a read");
        if out.out_failed {
            assert!(read.fails && out.out_last, "{read:?}");
            self.seen.failed += 1;
        } else {
            assert_eq!(out.out_data, data(self.first, self.word), "{read:?}");
            let end = (LANES as u64 * (self.word + 1)).min(read.bytes);
            assert!(end <= read.came && out.out_from == 0, "{read:?}");
            assert_eq!(u64::from(out.out_to), (end - 1) % LANES as u64);
            assert_eq!(out.out_last, end == read.bytes);
            self.seen.whole += u64::from(out.out_last);
            self.word += 1;
        }
        if out.out_last {
            self.reads.pop_front();
            self.first += 1;
            self.word = 0;
        }
    }
}

/// A completer that fails, gives wrong counts, too much, too little, or answers for tags that are
/// not out, or never: each read leaves whole, or ends as failed in its turn; each wrong completion
/// is told; no tag is used by two reads at once; and in the end all tags and all room are back.
// shows: C-35, C-36
#[test]
fn no_tag_and_no_room_leaks_with_any_completer() {
    for (beats, tags, timeout, seed) in [(512, 32, 2000, 1), (64, 8, 1000, 2), (32, 5, 500, 3)] {
        let mut path = DataPath::new(beats, tags, timeout, seed);
        for _ in 0..200_000 {
            path.cycle(true);
        }
        for _ in 0..4 * timeout {
            path.cycle(false);
        }
        let (alloc, out) = path.cycle(false);
        assert_eq!((alloc.in_use, out.reads, usize::from(out.room)), (0, 0, beats));
        assert!(path.out.is_empty() && path.reads.is_empty());
        let seen = &path.seen;
        let all = [seen.whole, seen.failed, seen.lost, seen.lies, seen.strays, seen.again];
        assert!(all.iter().all(|&count| count > 50), "{tags} tags: {seen:?}");
    }
}

/// Canary: a memory that is not told of lost tags is noticed.
#[test]
#[should_panic(expected = "what completions")]
fn a_lost_tag_that_is_not_told_is_noticed() {
    let mut path = DataPath::new(512, 32, 2000, 1);
    path.is_told = false;
    for _ in 0..20_000 {
        path.cycle(true);
    }
    panic!("nothing was noticed");
}
