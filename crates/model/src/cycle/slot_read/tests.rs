//! Tests of the reader of slot addresses.

use super::*;
use crate::chpp::Config;

/// A reader, driven with one thing a call.
struct Driven(SlotRead);

/// Whether a completion was unexpected or mismatched, and whether the tag comes back.
type Told = (bool, bool, bool);

const NOTHING: Told = (false, false, false);
const ENDED: Told = (false, false, true);
const UNEXPECTED: Told = (true, false, false);
const MISMATCHED: Told = (false, true, false);

impl Driven {
    fn new() -> Driven {
        Driven(SlotRead::new(16))
    }

    /// A read is taken, and asked for at once: address and bytes.
    fn read(&mut self, read_address: u64, read_count: u8) -> (u64, u16) {
        let read =
            In { read_valid: true, read_pair: 21, read_address, read_count, ..In::default() };
        assert!(self.0.cycle(read).read_ready);
        let out = self.0.cycle(In { ask_ready: true, ..read });
        assert!(out.ask_valid && !out.read_ready && out.ask_pair == 21);
        (out.ask_address, out.ask_bytes)
    }

    /// A completion of as many beats; its words count from a number on.
    fn complete(&mut self, says: In, beats: u64, from: u64) -> Told {
        for beat in 0..beats {
            self.beat(says, beat + 1 == beats, from + 2 * beat);
        }
        let out = self.0.cycle(In::default());
        (out.unexpected, out.mismatched, out.free_valid)
    }

    fn beat(&mut self, says: In, in_last: bool, from: u64) {
        self.0.cycle(In { in_valid: true, in_last, in_data: [from, from + 1], ..says });
    }

    /// The entries that leave until none is offered; nothing if the read has failed.
    fn entries(&mut self) -> Option<Vec<u64>> {
        let mut entries = Vec::new();
        loop {
            let out = self.0.cycle(In { entry_ready: true, ..In::default() });
            if !out.entry_valid {
                return Some(entries);
            }
            assert_eq!(out.entry_pair, 21);
            if out.entry_failed {
                assert_eq!((out.entry_word, entries.len()), (0, 0));
                assert!(!self.0.cycle(In::default()).entry_valid, "it is told once");
                return None;
            }
            entries.push(out.entry_word);
        }
    }
}

/// What the header of a completion says.
fn says(in_bytes: u16, in_remaining: u16) -> In {
    In { in_bytes, in_remaining, ..In::default() }
}

/// A batch of the model's caches fits, and other sizes that gates cannot have do not.
#[test]
fn sizes_are_bounded() {
    let builds = |batch| std::panic::catch_unwind(|| SlotRead::new(batch)).is_ok();
    assert!(builds(Config::prototype().nic.slot_batch) && builds(2));
    for batch in [0, 1, 3, 12, 32] {
        assert!(!builds(batch), "{batch}");
    }
}

/// A read is asked for until it is taken. Its entries come in pieces, and leave once all are there,
/// in their order, each until it is taken. Then the next read is taken.
#[test]
fn entries_leave_in_their_order() {
    let mut driven = Driven::new();
    let read =
        In { read_valid: true, read_pair: 3, read_address: 0x1038, read_count: 4, ..says(0, 0) };
    let asks = |out: Out| (out.read_ready, out.ask_valid, out.ask_address, out.ask_bytes);
    assert_eq!(asks(driven.0.cycle(read)), (true, false, 0, 0));
    assert_eq!(asks(driven.0.cycle(read)), (false, true, 0x1038, 32));
    assert_eq!(asks(driven.0.cycle(In { ask_ready: true, ..read })), (false, true, 0x1038, 32));
    assert_eq!(asks(driven.0.cycle(In { ask_ready: true, ..read })), (false, false, 0, 0));
    assert_eq!(driven.complete(says(8, 32), 1, 10), NOTHING);
    let last = In { in_valid: true, in_last: true, in_data: [14, 15], ..says(24, 24) };
    driven.0.cycle(In { in_last: false, in_data: [12, 13], ..last });
    assert!(!driven.0.cycle(last).entry_valid);
    let entry = |out: Out| (out.entry_valid, out.entry_pair, out.entry_word, out.free_valid);
    assert_eq!(entry(driven.0.cycle(read)), (true, 3, 11, true));
    let takes = In { entry_ready: true, ..read };
    for (word, _) in [(11, 0), (12, 0), (13, 0)] {
        assert_eq!(entry(driven.0.cycle(takes)), (true, 3, word, false));
    }
    let out = driven.0.cycle(takes);
    assert_eq!((entry(out), out.read_ready), ((true, 3, 14, false), false));
    let out = driven.0.cycle(takes);
    assert_eq!((entry(out), out.read_ready), ((false, 0, 0, false), true));
}

/// Entries that begin and end in the middle of a beat, and a whole batch.
#[test]
fn entries_lie_anywhere() {
    let mut driven = Driven::new();
    for (address, count) in [(0x1000, 1), (0x1008, 1), (0x1008, 2), (0x1000, 16), (0x1fe8, 3)] {
        assert_eq!(driven.read(address, count), (address, 8 * u16::from(count)));
        let high = address / 8 % 2;
        let (bytes, words) = (8 * u16::from(count), u64::from(count) + high);
        assert_eq!(driven.complete(says(bytes, bytes), words.div_ceil(2), 40), ENDED);
        assert_eq!(driven.entries(), Some((40 + high..40 + words).collect()));
    }
    assert_eq!(driven.read(0x1008, 16), (0x1008, 128));
    assert_eq!(driven.complete(says(56, 128), 4, 10), NOTHING);
    assert_eq!(driven.complete(says(64, 72), 4, 18), NOTHING);
    assert_eq!(driven.complete(says(8, 8), 1, 26), ENDED);
    assert_eq!(driven.entries(), Some((11..27).collect()));
}

/// A read that fails or whose tag is lost is told once, in the place of its entries. The tag comes
/// back if it failed, and not if it is lost. The next read has no trace of it.
#[test]
fn a_failure_is_told_once() {
    let lost = In { lost_valid: true, ..In::default() };
    let fails = In { in_failed: true, ..says(8, 16) };
    let mut driven = Driven::new();
    for is_lost in [true, false] {
        driven.read(0x1000, 10);
        assert_eq!(driven.complete(says(64, 80), 4, 1), NOTHING);
        if is_lost {
            driven.0.cycle(lost);
            assert_eq!(driven.complete(says(16, 16), 1, 50), UNEXPECTED);
        } else {
            assert_eq!(driven.complete(fails, 2, 50), ENDED);
        }
        assert_eq!(driven.entries(), None);
        driven.read(0x2000, 2);
        assert_eq!(driven.complete(says(16, 16), 1, 70), ENDED);
        assert_eq!(driven.entries(), Some(vec![70, 71]));
    }
    // A tag of another read may be lost while none waits.
    driven.0.cycle(lost);
    assert_eq!(driven.entries(), Some(vec![]));
    let read = In { read_valid: true, read_count: 1, ..lost };
    driven.0.cycle(read);
    assert!(driven.0.cycle(lost).ask_valid);
    assert!(driven.0.cycle(lost).ask_valid);
}

/// A tag that is lost in the cycle of its last beat is lost. One that is lost between beats may be
/// used by the next read, which does not get the rest.
#[test]
fn what_comes_behind_a_loss_is_dropped() {
    let mut driven = Driven::new();
    driven.read(0x1000, 2);
    driven.0.cycle(In { lost_valid: true, in_valid: true, in_last: true, ..says(16, 16) });
    let out = driven.0.cycle(In::default());
    assert_eq!((out.unexpected, out.free_valid, out.entry_failed), (true, false, true));
    assert_eq!(driven.entries(), None);
    driven.read(0x1000, 4);
    driven.beat(says(32, 32), false, 80);
    driven.0.cycle(In { lost_valid: true, ..In::default() });
    assert_eq!(driven.entries(), None);
    driven.read(0x2000, 4);
    assert_eq!(driven.complete(says(32, 32), 1, 90), UNEXPECTED);
    assert_eq!(driven.complete(says(32, 32), 2, 1), ENDED);
    assert_eq!(driven.entries(), Some(vec![1, 2, 3, 4]));
}

/// A completion that is not what the read lacks next is told and changes nothing. So is one that
/// comes while none waits.
#[test]
fn completions_that_lie_are_dropped() {
    let mut driven = Driven::new();
    assert_eq!(driven.complete(says(16, 16), 1, 90), UNEXPECTED);
    driven.read(0x1008, 7);
    // A byte count that is not what lacks, more than that, and a part of an entry or of a beat.
    for (bytes, remaining, beats) in [
        (40, 40, 3),
        (64, 64, 4),
        (64, 56, 4),
        (28, 56, 2),
        (16, 56, 2),
        (0, 56, 1),
        // Beats that lack, and more than there are.
        (56, 56, 3),
        (56, 56, 5),
        (8, 56, 2),
    ] {
        assert_eq!(driven.complete(says(bytes, remaining), beats, 90), MISMATCHED, "{bytes}");
    }
    assert_eq!(driven.complete(says(24, 56), 2, 10), NOTHING);
    assert_eq!(driven.complete(says(0, 32), 1, 90), MISMATCHED);
    assert_eq!(driven.complete(says(32, 56), 2, 90), MISMATCHED);
    assert_eq!(driven.complete(says(32, 32), 3, 90), MISMATCHED);
    assert_eq!(driven.complete(says(32, 32), 2, 14), ENDED);
    assert_eq!(driven.entries(), Some((11..18).collect()));
}
