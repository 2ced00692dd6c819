//! The blocks `cycle::data_reorder` and `cycle::tag_alloc` give the bytes of reads at the same
//! times as [`DataUnit`] and its allocator, over random reads and completions.
//!
//! A completion ends in one cycle here and there. The event-driven model is told to have its bytes
//! ready two cycles later, and the packer takes one beat a cycle.

use std::collections::VecDeque;

use super::*;
use crate::chpp::tags::{Tag, TagAllocator};
use crate::cycle::data_reorder::{BEAT_WORDS, DataReorder, In, LANES};
use crate::cycle::tag_alloc::{self, TagAlloc};
use crate::engine::Random;
use crate::units::Bytes;

const LANE_COUNT: u64 = LANES as u64;

/// The byte of a read.
fn byte(read: u64, at: u64) -> u8 {
    (read * 31 + at * 7) as u8
}

/// A read that waits for completions.
#[derive(Clone, Copy, Debug)]
struct Open {
    tag: u8,
    read: u64,
    lane: u64,
    bytes: u64,
    came: u64,
}

/// A completion that comes, beat by beat.
#[derive(Clone, Copy, Debug)]
struct Piece {
    of: Open,
    bytes: u64,
    beat: u64,
}

impl Piece {
    /// The lane of its first byte, and its beats.
    fn shape(&self) -> (u64, u64) {
        let lane = (self.of.lane + self.of.came) % LANE_COUNT;
        (lane, (lane + self.bytes).div_ceil(LANE_COUNT))
    }

    fn data(&self) -> [u64; BEAT_WORDS] {
        let mut words = [0; BEAT_WORDS];
        let (lane, _) = self.shape();
        for at in 0..LANE_COUNT {
            let index = (self.beat * LANE_COUNT + at).checked_sub(lane);
            if let Some(index) = index.filter(|index| *index < self.bytes) {
                let value = u64::from(byte(self.of.read, self.of.came + index));
                words[at as usize / 8] |= value << (8 * (at % 8));
            }
        }
        words
    }
}

/// A beat that will leave: lanes of its first and last byte, and whether it is its read's last one.
type Beat = (u64, u64, bool);

struct Shape {
    beats: usize,
    reads: usize,
    tags: usize,
    /// Reads are of whole beats.
    whole: bool,
}

/// What happened in a run.
#[derive(Debug, Default)]
struct Seen {
    left: u64,
    early: u64,
    without_room: u64,
    without_tag: u64,
}

/// Runs both side by side; `delay` is the event-driven model's, in cycles.
fn side_by_side(shape: &Shape, delay: u64, seed: u64, cycles: u64) -> Result<Seen, String> {
    let cycle = Span::from_ns(4);
    let mut config = Config::prototype();
    config.nic.reorder = Bytes::new((shape.beats * LANES) as u64);
    let mut data = DataUnit::new(&config);
    let mut tags = TagAllocator::new(shape.tags);
    let mut alloc = TagAlloc::new(shape.tags, u64::MAX);
    let mut reorder = DataReorder::new(shape.beats, shape.reads, shape.tags);

    let mut random = Random::new(seed);
    let (mut rates, mut longest) = ([4; 4], 128);
    let (mut open, mut piece): (Vec<Open>, Option<Piece>) = (Vec::new(), None);
    let mut wanted: Option<(u64, u64)> = None;
    let (mut requested, mut to_leave, mut comes_back) = (0, VecDeque::<Beat>::new(), None);
    let (mut seen, mut taken) = (Seen::default(), Vec::new());
    for at in 0..cycles {
        let now = Time::ZERO + cycle * at;
        if random.below(512) == 0 {
            rates = [1, 2, 3, 4].map(|_| [0, 1, 4, 8, 8][random.below(5) as usize]);
            longest = [LANE_COUNT, 128, 2048][random.below(3) as usize];
        }
        let [requests, begins, brings, takes] = rates.map(|rate| random.below(8) < rate);

        // A request, with the tag that is offered.
        if requests && wanted.is_none() {
            let most = longest.min(config.nic.reorder.count());
            wanted = Some(match shape.whole {
                true => (0, LANE_COUNT * (1 + random.below(most / LANE_COUNT))),
                false => {
                    let lane = random.below(LANE_COUNT);
                    (lane, 1 + random.below(most - lane))
                }
            });
        }
        let offered = alloc.out();
        let (lane, bytes) = wanted.unwrap_or_default();
        let mut input = In {
            read_valid: wanted.is_some() && offered.tag_valid,
            read_tag: offered.tag,
            read_lane: lane as u8,
            read_bytes: bytes as u16,
            out_ready: takes,
            ..In::default()
        };

        // A completion of any read, cut where the standard may cut it.
        if piece.is_none() && begins && !open.is_empty() {
            let of = open[random.below(open.len() as u64) as usize];
            let left = of.bytes - of.came;
            let lane = (of.lane + of.came) % LANE_COUNT;
            let cut = 4 * LANE_COUNT * (1 + random.below(2)) - lane;
            piece = Some(Piece { of, bytes: left.min(cut), beat: 0 });
        }
        if let Some(piece) = piece.as_ref().filter(|_| brings) {
            input.in_valid = true;
            input.in_last = piece.beat + 1 == piece.shape().1;
            input.in_tag = piece.of.tag;
            input.in_bytes = piece.bytes as u16;
            input.in_remaining = (piece.of.bytes - piece.of.came) as u16;
            input.in_data = piece.data();
        }

        let out = reorder.cycle(input);
        assert!(!out.unexpected && !out.mismatched && !out.out_failed);
        // Tags come back in the cycle after their last completion, in the same order.
        let returned = out.free_valid.then_some(out.free_tag);
        assert_eq!(returned, comes_back.take(), "cycle {at}");
        if let Some(tag) = returned {
            tags.release(Tag::of(tag.into()), now).map_err(|error| error.to_string())?;
        }

        // A beat is offered exactly if its bytes are ready.
        let due = to_leave.front().is_some_and(|(from, to, _)| {
            data.ready(to - from + 1).is_some_and(|ready| ready <= now)
        });
        if out.out_valid != due {
            return Err(format!("cycle {at}: a beat is ready here: {due}, and in gates: {}", !due));
        }
        if shape.whole {
            let held = data.in_use / LANE_COUNT;
            assert_eq!(
                u64::from(out.room) + held,
                shape.beats as u64 + u64::from(out.out_valid),
                "cycle {at}"
            );
        }
        if out.out_valid && takes {
            let (from, to, last) = to_leave.pop_front().expect("it is due");
            let lanes = (u64::from(out.out_from), u64::from(out.out_to), out.out_last);
            assert_eq!(lanes, (from, to, last), "cycle {at}");
            taken.clear();
            data.take((to - from + 1) as usize, &mut taken);
            let bytes: Vec<u8> = out.out_data.iter().flat_map(|word| word.to_le_bytes()).collect();
            assert_eq!(taken, bytes[from as usize..=to as usize], "cycle {at}");
            seen.left += 1;
        }

        // What came, and what was requested, the event-driven model gets, too.
        if input.in_valid
            && let Some(piece) = &mut piece
        {
            piece.beat += 1;
        }
        if input.in_last
            && let Some(Piece { of, bytes, .. }) = piece.take()
        {
            let came: Vec<u8> = (0..bytes).map(|index| byte(of.read, of.came + index)).collect();
            data.completion(of.read, &came, now, cycle * delay);
            let place = open.iter().position(|open| open.read == of.read).expect("it is open");
            open[place].came += bytes;
            if open[place].came == of.bytes {
                comes_back = Some(open.remove(place).tag);
            }
        }
        let accepted = input.read_valid && out.read_ready;
        if accepted {
            // The beat at the output has left the memory.
            assert!(data.in_use + bytes <= data.reorder_bytes + LANE_COUNT, "cycle {at}");
            assert_eq!(tags.take(now), Some(Tag::of(offered.tag.into())), "cycle {at}");
            data.in_use += bytes;
            let entry = ReorderEntry { expected: bytes as usize, early: Vec::new(), passed: 0 };
            data.entries.push(now, entry);
            open.push(Open { tag: offered.tag, read: requested, lane, bytes, came: 0 });
            requested += 1;
            let beats = (lane + bytes).div_ceil(LANE_COUNT);
            for beat in 0..beats {
                let last = beat + 1 == beats;
                let end = if last { (lane + bytes - 1) % LANE_COUNT } else { LANE_COUNT - 1 };
                to_leave.push_back((if beat == 0 { lane } else { 0 }, end, last));
            }
            wanted = None;
        } else if wanted.is_some() {
            seen.without_tag += u64::from(!offered.tag_valid);
            seen.without_room += u64::from(u64::from(out.room) * LANE_COUNT < lane + bytes);
        }
        alloc.cycle(tag_alloc::In {
            tag_ready: accepted,
            release_valid: out.free_valid,
            release_tag: out.free_tag,
        });
    }
    seen.early = data.counters.early;
    Ok(seen)
}

/// Beats leave gates in the very cycles in which the event-driven model has their bytes, with the
/// same bytes and tags, over random reads that are cut, mixed between tags and taken with stalls:
/// in the paper's size, and in small ones that are mostly full.
// shows: C-35
#[test]
fn gates_give_the_same_bytes_at_the_same_times() {
    for (seed, (beats, reads, tags)) in
        (1..).zip([(512, 32, 32), (512, 64, 32), (32, 32, 4), (32, 8, 4)])
    {
        for whole in [true, false] {
            let shape = Shape { beats, reads, tags, whole };
            let seen = side_by_side(&shape, 2, seed, 60_000)
                .unwrap_or_else(|error| panic!("{beats} beats, {tags} tags: {error}"));
            let all = [seen.left, seen.early, seen.without_room, seen.without_tag];
            assert!(all.iter().all(|&count| count > 100), "{beats} beats, {tags} tags: {seen:?}");
        }
    }
}

/// Canary: a cycle more or less is noticed.
#[test]
fn another_delay_is_noticed() {
    let shape = Shape { beats: 512, reads: 32, tags: 32, whole: true };
    for delay in [1, 3] {
        side_by_side(&shape, delay, 1, 60_000).unwrap_err();
    }
}
