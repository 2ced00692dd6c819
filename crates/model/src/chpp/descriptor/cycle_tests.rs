//! The block `cycle::desc_fetch`, with `cycle::tag_alloc`, asks for the same reads as
//! [`DescriptorUnit`] with its allocator, and gives the same descriptors at the same times, over
//! random doorbells and completions.
//!
//! A word takes a cycle here and there. The event-driven model is asked for its next descriptor
//! when the last word of the one before moves to the output.

use std::collections::VecDeque;

use bellwire_wire::doorbell::DoorbellRepr;

use super::*;
use crate::chpp::config::Config;
use crate::chpp::pcie::first_request;
use crate::chpp::tags::{Tag, TagAllocator};
use crate::cycle::data_reorder::LANES;
use crate::cycle::desc_fetch::{DescFetch, In, Shape};
use crate::cycle::tag_alloc::{self, TagAlloc};
use crate::engine::Random;

const BEAT: u64 = LANES as u64;

/// A byte of host memory.
fn byte(address: u64) -> u8 {
    (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

fn bytes(run: Run) -> Vec<u8> {
    (run.address..run.address + run.length).map(byte).collect()
}

/// A read that waits for completions.
#[derive(Clone, Copy, Debug)]
struct Open {
    tag: u8,
    job: u64,
    run: Run,
    /// What has not come.
    left: Run,
}

/// A word at the output: whether it is the first and the last of its descriptor, function, address
/// and data. That of a refused doorbell has no data.
type Word = (bool, bool, u8, u64, Option<u64>);

/// What happened in a run.
#[derive(Debug, Default)]
struct Seen {
    rung: u64,
    refused: u64,
    fetched: u64,
    without_place: u64,
    without_tag: u64,
    overtook: u64,
}

/// Runs both side by side. The event-driven model has a descriptor `delay` cycles later.
fn side_by_side(shape: Shape, delay: usize, seed: u64) -> Result<Seen, String> {
    const CYCLES: u64 = 200_000;
    let mut unit = DescriptorUnit::default();
    let mut tags = TagAllocator::new(shape.tags);
    let mut alloc = TagAlloc::new(shape.tags, u64::MAX);
    let mut gates = DescFetch::new(shape);

    let mut random = Random::new(seed);
    let (mut rates, mut longest) = ([4; 5], shape.beats as u64);
    let mut bell: Option<In> = None;
    // Doorbells that the read module has not finished, and those whose last word has not moved to
    // the output: whether each is refused, with its function and address.
    let (mut asking, mut turns) = (VecDeque::<bool>::new(), VecDeque::<(bool, u8, u64)>::new());
    let (mut open, mut piece): (Vec<Open>, Option<(Open, u64, u64)>) = (Vec::new(), None);
    let mut late: VecDeque<Vec<(u64, Run)>> = VecDeque::from(vec![Vec::new(); delay]);
    let (mut words, mut at_output) = (VecDeque::<Word>::new(), None::<Word>);
    let (mut comes_back, mut seen) = (None, Seen::default());
    for cycle in 0..CYCLES {
        let now = Time::from_ps(4000 * cycle);
        if random.below(512) == 0 {
            rates = rates.map(|_| [0, 1, 4, 8, 8][random.below(5) as usize]);
            longest = [1, 4, shape.beats as u64][random.below(3) as usize];
        }
        if cycle + 8000 > CYCLES {
            // All that was begun comes to its end.
            rates = [0, 8, 8, 8, 8];
        }
        let [rings, asks, begins, brings, takes] = rates.map(|rate| random.below(8) < rate);

        // A doorbell, at times one that cannot be.
        if rings && bell.is_none() {
            let length = BEAT * (1 + random.below(longest));
            let address = BEAT * (random.below((1 << 36) - shape.beats as u64));
            let wrong = if random.below(8) == 0 { 1 << random.below(64) } else { 0 };
            bell = Some(In {
                bell_function: random.below(8) as u8,
                bell_word: (length << 48 | address) ^ wrong,
                bell_outside: random.below(16) == 0,
                ..In::default()
            });
        }
        let offered = alloc.out();
        let mut input = In {
            bell_valid: bell.is_some(),
            read_ready: asks && offered.tag_valid,
            read_tag: offered.tag,
            out_ready: takes,
            ..bell.unwrap_or_default()
        };

        // A completion of any read, cut where the standard may cut it.
        if piece.is_none() && begins && !open.is_empty() {
            let of = open[random.below(open.len() as u64) as usize];
            let cut = 64 * (1 + random.below(2)) - of.left.address % 64;
            piece = Some((of, of.left.length.min(cut), 0));
        }
        if let Some((Open { tag, left, .. }, length, came)) = piece.filter(|_| brings) {
            let beat = bytes(Run { address: left.address + came, length: BEAT });
            let (parts, _) = beat.as_chunks();
            input.in_valid = true;
            input.in_last = came + BEAT == length;
            (input.in_tag, input.in_bytes) = (tag, length as u16);
            input.in_remaining = left.length as u16;
            input.in_data = [0, 1].map(|at: usize| u64::from_le_bytes(parts[at]));
        }

        let out = gates.cycle(input);
        assert!(!out.unexpected && !out.mismatched && !out.out_failed);
        assert_eq!(out.bell_ready, turns.len() < shape.places, "cycle {cycle}");
        let returned = out.free_valid.then_some(out.free_tag);
        assert_eq!(returned, comes_back.take(), "cycle {cycle}");
        if let Some(tag) = returned {
            tags.release(Tag::of(tag.into()), now).map_err(|error| error.to_string())?;
        }

        // The word of this cycle, and the next one.
        let (first, last, function) = (out.out_first, out.out_last, out.out_function);
        let data = (!out.out_refused).then_some(out.out_word);
        let word = out.out_valid.then_some((first, last, function, out.out_address, data));
        if word != at_output {
            return Err(format!("cycle {cycle}: {word:x?} in gates, and here {at_output:x?}"));
        }
        if at_output.is_none() || takes {
            let is_asked = turns.len() > asking.len();
            match turns.front() {
                Some(&(true, function, address)) if is_asked => {
                    words.push_back((true, true, function, address, None));
                }
                Some((false, ..)) if words.is_empty() && unit.begin(now).is_some() => {
                    let Some(Extracting::Local(job)) = unit.extracting.take() else {
                        panic!("there are no GETs from elsewhere")
                    };
                    let (parts, _) = job.bytes.as_chunks();
                    let last = parts.len() - 1;
                    let function = job.function as u8;
                    words.extend(parts.iter().enumerate().map(|(at, &part)| {
                        let data = Some(u64::from_le_bytes(part));
                        (at == 0, at == last, function, job.address, data)
                    }));
                    seen.fetched += 1;
                }
                _ => {}
            }
            at_output = words.pop_front();
            if at_output.is_some_and(|(_, last, ..)| last) {
                turns.pop_front();
            }
        }

        // A read is offered exactly if one is due there, with the same bytes.
        let is_job = asking.front().is_some_and(|is_refused| !is_refused);
        let due = unit.next_to_ask().filter(|_| is_job).map(|(number, job)| {
            let (at, left) = (job.address + job.asked, job.bytes.len() as u64 - job.asked);
            (number, first_request(at, left, (shape.request * LANES) as u64))
        });
        let run = Run { address: out.read_address, length: out.read_bytes.into() };
        if offered.tag_valid {
            assert_eq!(out.read_valid.then_some(run), due.map(|(_, run)| run), "cycle {cycle}");
        }
        seen.without_tag += u64::from(due.is_some() && !offered.tag_valid);
        let mut is_done = asking.front() == Some(&true);
        let accepted = out.read_valid && input.read_ready;
        if let Some((number, run)) = due.filter(|_| accepted) {
            assert_eq!(tags.take(now), Some(Tag::of(offered.tag.into())), "cycle {cycle}");
            let (_, job) = unit.next_to_ask().expect("it is due");
            job.asked += run.length;
            is_done = job.asked == job.bytes.len() as u64;
            open.push(Open { tag: offered.tag, job: number, run, left: run });
        }
        if is_done {
            asking.pop_front();
        }

        // What came, the event-driven model gets, too.
        late.push_back(Vec::new());
        if input.in_valid
            && let Some((_, _, came)) = &mut piece
        {
            *came += BEAT;
        }
        if input.in_last
            && let Some((of, length, _)) = piece.take()
        {
            let at = open.iter().position(|open| open.tag == of.tag).expect("it is open");
            let left = &mut open[at].left;
            *left = Run { address: left.address + length, length: left.length - length };
            if left.length == 0 {
                let Open { tag, job, run, .. } = open.remove(at);
                seen.overtook += u64::from(open.iter().any(|open| open.job < job));
                late.back_mut().expect("this cycle's").push((job, run));
                comes_back = Some(tag);
            }
        }
        for (job, run) in late.pop_front().unwrap_or_default() {
            unit.received(job, run.address, &bytes(run));
        }

        if let Some(rung) = bell.take_if(|_| out.bell_ready) {
            let In { bell_function, bell_word, bell_outside, .. } = rung;
            let place = DoorbellRepr::parse(bell_word).ok().filter(|_| !bell_outside);
            let place = place.filter(|at| usize::from(at.length) <= shape.beats * LANES);
            let address = bell_word & ((1 << 40) - 1);
            asking.push_back(place.is_none());
            turns.push_back((place.is_none(), bell_function, address));
            (seen.rung, seen.refused) = (seen.rung + 1, seen.refused + u64::from(place.is_none()));
            if let Some(DoorbellRepr { address, length }) = place {
                let job = Job {
                    operation: 0,
                    function: bell_function.into(),
                    address,
                    bytes: vec![0; length.into()],
                    asked: 0,
                    received: 0,
                    stored_words: 0,
                };
                unit.jobs.push(now, job);
                unit.reached += 1;
            }
        } else {
            seen.without_place += u64::from(bell.is_some());
        }
        alloc.cycle(tag_alloc::In {
            tag_ready: accepted,
            release_valid: out.free_valid,
            release_tag: out.free_tag,
        });
    }
    assert!(turns.is_empty() && unit.jobs.is_empty() && at_output.is_none());
    Ok(seen)
}

/// The model's places, with requests and tags of the paper's system.
fn papers() -> Shape {
    let Config { nic, pcie, .. } = Config::prototype();
    let request = pcie.read_request.count() as usize / LANES;
    Shape { places: nic.descriptors_in_flight, beats: 256, request, tags: nic.tags }
}

/// Gates ask for the same reads and give the same words in the same cycles as the event-driven
/// model, over random doorbells, and completions that are cut and overtake each other: in the
/// paper's size, and in small ones. Each doorbell is carried out exactly once.
// shows: C-30, C-31
#[test]
fn gates_give_the_same_descriptors() {
    let small = |places, beats, request, tags| Shape { places, beats, request, tags };
    let shapes = [papers(), small(4, 256, 256, 32), small(2, 8, 2, 3), small(4, 4, 4, 2)];
    for (seed, shape) in (1..).zip(shapes) {
        let seen = side_by_side(shape, 0, seed).unwrap_or_else(|it| panic!("{shape:?}: {it}"));
        assert_eq!(seen.rung, seen.fetched + seen.refused, "{shape:?}");
        let all = [seen.fetched, seen.refused, seen.without_place, seen.overtook];
        assert!(all.iter().all(|&count| count > 20), "{shape:?}: {seen:?}");
        assert!(seen.without_tag > 20 || shape.request == 256, "{shape:?}: {seen:?}");
    }
}

/// Canary: a cycle more is noticed.
#[test]
fn another_delay_is_noticed() {
    side_by_side(papers(), 1, 1).unwrap_err();
}
