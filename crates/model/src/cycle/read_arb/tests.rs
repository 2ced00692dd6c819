//! The arbiter by itself: requesters that ask, tags, and completions.

use super::*;
use crate::chpp::Config;

/// Of each requester, whether something is so.
fn by_requester(of: &[usize]) -> [bool; REQUESTERS] {
    std::array::from_fn(|at| of.contains(&at))
}

/// These requesters ask, each for as many bytes as its number and one, under this tag.
fn ask(of: &[usize], tag: u8) -> In {
    In {
        ask_valid: by_requester(of),
        ask_function: std::array::from_fn(|at| 4 + at as u8),
        ask_address: std::array::from_fn(|at| 0x1000 * at as u64),
        ask_bytes: std::array::from_fn(|at| 1 + at as u16),
        tag_valid: true,
        tag,
        read_ready: true,
        ..In::default()
    }
}

/// A beat of a completion.
fn beat(in_tag: u8, in_last: bool) -> In {
    In { in_valid: true, in_last, in_tag, read_ready: true, ..In::default() }
}

/// These requesters say that their reads have ended.
fn free(of: &[usize]) -> In {
    In { free_valid: by_requester(of), ..In::default() }
}

/// What comes, and these say that their reads have ended.
fn with(input: In, freeing: &[usize]) -> In {
    In { free_valid: by_requester(freeing), ..input }
}

/// This tag is lost.
fn lose(lost_tag: u8) -> In {
    In { lost_valid: true, lost_tag, ..In::default() }
}

/// Who is served if these ask: one at most.
fn served(out: Out, asking: &[usize]) -> Option<usize> {
    let mut all = asking.iter().filter(|&&at| out.ask_ready[at]);
    let first = all.next().copied();
    assert_eq!((all.next(), out.tag_ready), (None, first.is_some()));
    first
}

/// Those of whom it is true.
fn named(all: [bool; REQUESTERS]) -> Vec<usize> {
    (0..REQUESTERS).filter(|&at| all[at]).collect()
}

fn released(out: Out) -> Option<u8> {
    out.release_valid.then_some(out.release_tag)
}

/// An arbiter whose requesters have the tags that equal their numbers.
fn with_reads(requesters: usize) -> ReadArb {
    let mut arb = ReadArb::new(requesters, 8);
    for requester in 0..requesters {
        arb.cycle(ask(&[requester], requester as u8));
    }
    arb.cycle(beat(7, true));
    arb.cycle(In::default());
    assert_eq!(arb.in_use(), requesters);
    arb
}

/// There is a tag for each one of the paper's interface, and of extended ones, too.
#[test]
fn all_tags_of_the_model_have_numbers() {
    let mut arb = ReadArb::new(REQUESTERS, Config::prototype().nic.tags);
    assert_eq!(served(arb.cycle(ask(&[0], 31)), &[0]), Some(0));
    let mut arb = ReadArb::new(1, 256);
    assert_eq!(served(arb.cycle(ask(&[0], 255)), &[0]), Some(0));
    // Numbers are rounded up to a power of two.
    let mut arb = ReadArb::new(1, 1);
    assert_eq!(served(arb.cycle(ask(&[0], 1)), &[0]), Some(0));
    assert_eq!(arb.in_use(), 1);
}

/// Requesters take turns, the first one after reset. Those that do not ask are passed over. Each
/// read is offered in the next cycle, as it was asked for, with the tag that was offered.
#[test]
fn requesters_take_turns() {
    let mut arb = ReadArb::new(3, 32);
    let mut tag = 0;
    let mut last = None;
    for (asking, expected) in [
        (&[][..], None),
        (&[0, 1, 2], Some(0)),
        (&[0, 1, 2], Some(1)),
        (&[0, 1, 2], Some(2)),
        (&[0, 1, 2], Some(0)),
        (&[0, 2], Some(2)),
        (&[1], Some(1)),
        (&[1], Some(1)),
        (&[0, 1], Some(0)),
        (&[], None),
        (&[0, 2], Some(2)),
        (&[], None),
    ] {
        tag += 1;
        let out = arb.cycle(ask(asking, tag));
        assert_eq!(served(out, asking), expected, "{asking:?}");
        let read =
            out.read_valid.then_some((out.read_address, usize::from(out.read_bytes), out.read_tag));
        let function = last.map_or(0, |(address, _, _)| 4 + (address / 0x1000) as u8);
        assert_eq!((read, out.read_function), (last, function));
        last = expected.map(|at| (0x1000 * at as u64, 1 + at, tag));
    }
    assert_eq!(arb.in_use(), 9);
}

/// A requester is ready if no other one before it asks, whether it asks itself or not.
#[test]
fn a_requester_is_ready_before_it_asks() {
    let mut arb = ReadArb::new(3, 32);
    assert_eq!(named(arb.cycle(ask(&[], 0)).ask_ready), [0, 1, 2]);
    assert_eq!(named(arb.cycle(ask(&[1], 0)).ask_ready), [0, 1]);
    // Requester 2 is the next one.
    assert_eq!(named(arb.cycle(ask(&[1], 1)).ask_ready), [0, 1, 2]);
    assert_eq!(named(arb.cycle(ask(&[0, 1], 2)).ask_ready), [0, 2]);
}

/// Nothing is taken without a tag, under a tag that waits, or while a read waits at the output. In
/// the cycle in which that one leaves, the next one is taken. No turn is lost meanwhile.
#[test]
fn a_read_needs_a_tag_and_the_output() {
    let mut arb = ReadArb::new(2, 4);
    let out = arb.cycle(In { tag_valid: false, ..ask(&[0, 1], 0) });
    assert_eq!((out.ask_ready, out.tag_ready), ([false; REQUESTERS], true));
    assert_eq!(served(arb.cycle(ask(&[0, 1], 0)), &[0, 1]), Some(0));
    assert_eq!(served(arb.cycle(ask(&[0, 1], 0)), &[0, 1]), None);
    // The read left in the cycle before, so the output is free also without `read_ready`.
    let out = arb.cycle(In { read_ready: false, ..ask(&[0, 1], 1) });
    assert_eq!((served(out, &[0, 1]), out.read_valid), (Some(1), false));
    for _ in 0..3 {
        let out = arb.cycle(In { read_ready: false, ..ask(&[0, 1], 2) });
        assert_eq!((served(out, &[0, 1]), out.read_valid), (None, true));
        assert_eq!((out.read_address, out.read_bytes, out.read_tag), (0x1000, 2, 1));
    }
    let out = arb.cycle(ask(&[0, 1], 2));
    assert_eq!((served(out, &[0, 1]), out.read_tag), (Some(0), 1));
    let out = arb.cycle(ask(&[], 3));
    assert_eq!((out.read_valid, out.read_tag, out.tag_ready), (true, 2, false));
    assert!(!arb.cycle(ask(&[], 3)).read_valid);
}

/// Each beat goes to the requester whose read has the tag of the completion's first beat, and to
/// nobody in cycles without a beat.
#[test]
fn completions_go_to_their_requester() {
    let mut arb = with_reads(3);
    for (input, expected) in [
        (beat(1, false), &[1][..]),
        (In::default(), &[]),
        // Only the first beat's tag counts.
        (beat(0, false), &[1]),
        (beat(2, true), &[1]),
        (beat(2, true), &[2]),
        (beat(0, true), &[0]),
        (In { in_tag: 1, ..In::default() }, &[]),
    ] {
        let out = arb.cycle(input);
        assert_eq!((named(out.own_valid), out.unexpected), (expected.to_vec(), false));
    }
    assert_eq!(arb.in_use(), 3);
}

/// A completion of which nobody's read has the tag goes to nobody, and is told when it has ended.
#[test]
fn what_nobody_waits_for_is_told() {
    let mut arb = with_reads(1);
    for (input, is_told) in [
        (beat(5, false), false),
        // The tag of a read: but this beat is the second one of a completion.
        (beat(0, false), false),
        (In::default(), false),
        (beat(0, true), false),
        (In::default(), true),
        (beat(6, true), false),
        (beat(0, true), true),
        (In::default(), false),
    ] {
        let is_last = input.in_valid && input.in_tag == 0 && is_told;
        let out = arb.cycle(input);
        assert_eq!((out.unexpected, named(out.own_valid)), (is_told, vec![0; is_last.into()]));
    }
}

/// A tag comes back in the cycle in which its requester says that the completion of the cycle
/// before was the last one, and not else. Then it can be used again.
#[test]
fn a_tag_comes_back_when_its_requester_says_so() {
    let mut arb = with_reads(2);
    // Nothing ended, not yet ended, or another one says so.
    assert_eq!(released(arb.cycle(free(&[0, 1]))), None);
    arb.cycle(beat(1, false));
    assert_eq!(released(arb.cycle(free(&[1]))), None);
    arb.cycle(beat(1, true));
    assert_eq!(released(arb.cycle(free(&[0]))), None);
    // Too late.
    assert_eq!(released(arb.cycle(free(&[1]))), None);
    assert_eq!((served(arb.cycle(ask(&[0], 1)), &[0]), arb.in_use()), (None, 2));
    arb.cycle(beat(1, true));
    let out = arb.cycle(free(&[0, 1]));
    assert_eq!((released(out), out.unexpected), (Some(1), false));
    assert_eq!(released(arb.cycle(free(&[0, 1]))), None);
    assert_eq!(arb.in_use(), 1);
    assert_eq!(served(arb.cycle(ask(&[0], 1)), &[0]), Some(0));
    assert_eq!(named(arb.cycle(beat(1, true)).own_valid), [0]);
    // Also from one completion to the next, of which each ends a read.
    assert_eq!(released(arb.cycle(with(beat(0, true), &[0]))), Some(1));
    assert_eq!(released(arb.cycle(free(&[0]))), Some(0));
    assert_eq!(arb.in_use(), 0);
}

/// Only the requester whose read has it is told of a lost tag, which can be used again. Of a tag
/// without a read nobody is told.
#[test]
fn a_lost_tag_is_told_to_its_requester() {
    let mut arb = with_reads(3);
    assert_eq!(named(arb.cycle(In { lost_tag: 2, ..In::default() }).own_lost), []);
    assert_eq!(named(arb.cycle(lose(2)).own_lost), [2]);
    assert_eq!((named(arb.cycle(lose(2)).own_lost), arb.in_use()), (vec![], 2));
    arb.cycle(beat(2, true));
    assert!(arb.cycle(In::default()).unexpected);
    assert_eq!(served(arb.cycle(ask(&[0], 2)), &[0]), Some(0));
    assert_eq!(named(arb.cycle(lose(2)).own_lost), [0]);
}

/// If a tag is lost while a completion for it comes, the beats still go to the old requester, also
/// if another one has the tag by then. What that one says of it frees no tag.
#[test]
fn a_completion_goes_on_when_its_tag_is_lost() {
    for at in 0..3 {
        let mut arb = with_reads(2);
        let beats = [beat(1, false), beat(1, false), beat(1, true)];
        for (step, &input) in beats.iter().enumerate() {
            let is_lost = step == at;
            let out = arb.cycle(In { lost_valid: is_lost, lost_tag: 1, ..input });
            assert_eq!(named(out.own_valid), [1]);
            assert_eq!(named(out.own_lost), vec![1; is_lost.into()]);
        }
        let out = arb.cycle(with(ask(&[0], 1), &[1]));
        assert_eq!((released(out), out.unexpected), (None, false), "{at}");
        assert_eq!(arb.in_use(), 2);
    }
    // It is used again between the beats.
    let mut arb = with_reads(2);
    arb.cycle(beat(1, false));
    arb.cycle(lose(1));
    assert_eq!(served(arb.cycle(ask(&[0], 1)), &[0]), Some(0));
    assert_eq!(named(arb.cycle(beat(1, true)).own_valid), [1]);
    assert_eq!(released(arb.cycle(free(&[0, 1]))), None);
    assert_eq!(named(arb.cycle(beat(1, true)).own_valid), [0]);
    assert_eq!(released(arb.cycle(free(&[0]))), Some(1));
}

/// A tag that is lost in the cycle in which it comes back does so only once: the allocator has it,
/// and its requester is not told. Another one that is lost then changes nothing.
#[test]
fn a_tag_comes_back_once() {
    let mut arb = with_reads(2);
    arb.cycle(beat(1, true));
    let out = arb.cycle(In { lost_valid: true, lost_tag: 1, ..free(&[1]) });
    assert_eq!((released(out), named(out.own_lost)), (None, vec![]));
    assert_eq!(arb.in_use(), 1);

    let mut arb = with_reads(2);
    arb.cycle(beat(1, true));
    let out = arb.cycle(In { lost_valid: true, lost_tag: 0, ..free(&[1]) });
    assert_eq!((released(out), named(out.own_lost)), (Some(1), vec![0]));
    assert_eq!(arb.in_use(), 0);

    // A completion that comes while the tag comes back frees nothing.
    let mut arb = with_reads(2);
    arb.cycle(beat(1, true));
    let out = arb.cycle(with(beat(1, true), &[1]));
    assert_eq!((released(out), named(out.own_valid)), (Some(1), vec![1]));
    assert_eq!(served(arb.cycle(with(ask(&[0], 1), &[1])), &[0]), Some(0));
    assert_eq!(arb.in_use(), 2);
    let mut arb = with_reads(2);
    arb.cycle(beat(1, true));
    arb.cycle(with(beat(1, true), &[1]));
    assert_eq!(released(arb.cycle(free(&[1]))), None);
}
