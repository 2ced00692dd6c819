//! The doorbell in one thread, step by step.

use super::{DOORBELL_LINES, Doorbell, LANES};
use crate::memory::View;
use crate::segment::{LINE_WORDS, Segment, Words, zeroed as segment};
use crate::sync::{AtomicU64, Ordering};
use std::sync::atomic::AtomicUsize;

/// Every lane's bell is answered once, and only a ring to a sleeper asks for a wake-up.
#[test]
fn bells() {
    let doorbell = Doorbell::new(segment(DOORBELL_LINES));
    for lane in (0..LANES).step_by(if cfg!(miri) { 777 } else { 1 }) {
        assert!(!doorbell.is_rung() && !doorbell.ring(lane) && doorbell.is_rung());
        assert!(!doorbell.prepare_sleep(), "a bell is not answered yet");
        let mut rang = Vec::new();
        doorbell.answer(|lane| {
            rang.push(lane);
            assert!(rang.len() == 1, "a bell is answered again");
        });
        assert_eq!(rang, [lane]);
        assert!(doorbell.prepare_sleep());
        assert!(doorbell.ring(lane) && !doorbell.ring(lane), "one ringer wakes the sleeper");
        doorbell.end_sleep();
        doorbell.answer(|_| ());
    }
}

/// The summary and the sleeper have a line each, and the bits of all lanes fill the other lines.
/// Processes share these words.
#[test]
fn words_of_bells() {
    let words = segment(DOORBELL_LINES);
    let doorbell = Doorbell::new(words.clone());
    let set = || -> Vec<usize> {
        let all = 0..DOORBELL_LINES * LINE_WORDS;
        all.filter(|&word| words.word(word).load(Ordering::Relaxed) != 0).collect()
    };
    for (lane, word) in [(0, 16), (63, 16), (64, 17), (4095, 79)] {
        doorbell.ring(lane);
        assert_eq!(set(), [0, word], "lane {lane}");
        doorbell.answer(|_| ());
    }
    assert!(doorbell.prepare_sleep());
    assert_eq!(set(), [8]);
    assert_eq!(words.lines(), 10);
}

/// The words of a doorbell, each look counted: an endless answer fails instead of hanging.
struct Counted(Segment, AtomicUsize);

impl Words for Counted {
    type Payload<'a> = ();

    fn lines(&self) -> usize {
        self.0.lines()
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        assert!(self.1.fetch_add(1, Ordering::Relaxed) < 100, "the answer does not end");
        self.0.word(index)
    }

    unsafe fn line(&self, _: usize) -> &[AtomicU64; LINE_WORDS] {
        unreachable!("a doorbell is words")
    }

    fn front(&self) -> &[AtomicU64; 2 * LINE_WORDS] {
        self.0.front()
    }

    unsafe fn payload(&self, _: usize, _: usize) {}

    unsafe fn fill(&self, _: usize, _: &[u8], _: View<'_>) {}
}

/// Bells that ring together are answered together, each once, in the order of their lanes.
#[test]
fn bells_of_several_lanes() {
    let doorbell = Doorbell::new(Counted(segment(DOORBELL_LINES), AtomicUsize::new(0)));
    for lane in [4095, 65, 63, 0, 64, 65] {
        assert!(!doorbell.ring(lane));
    }
    let mut rang = Vec::new();
    doorbell.answer(|lane| {
        rang.push(lane);
        assert!(rang.len() <= 5, "a bell is answered again: {rang:?}");
    });
    assert_eq!(rang, [0, 63, 64, 65, 4095]);
    assert!(!doorbell.is_rung());
    doorbell.answer(|lane| panic!("lane {lane} did not ring"));
}

/// A sleep that ended, or that a bell prevented, is not announced any more: nobody is asked to wake
/// the receiver.
#[test]
fn a_sleep_that_ended_is_withdrawn() {
    let doorbell = Doorbell::new(segment(DOORBELL_LINES));
    assert!(doorbell.prepare_sleep());
    doorbell.end_sleep();
    assert!(!doorbell.ring(1));
    assert!(!doorbell.prepare_sleep(), "a bell is not answered yet");
    assert!(!doorbell.ring(2));
}
