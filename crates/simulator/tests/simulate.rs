//! Worlds of many seeds, the same in every run.

use std::path::Path;

use bellwire_simulator::campaign::{self, run_world};
use bellwire_simulator::ledger::Entry;
use bellwire_simulator::{Scenario, world};

/// Frames that one test runs. All together take about a minute of one core in a build for tests.
const FRAMES: u64 = 5_000_000;

fn all_goes_well(seed: u64) {
    let total = campaign::run(seed, FRAMES, |_| {}).unwrap_or_else(|failure| panic!("{failure}"));
    assert!(total.sum.packets > 0 && total.worlds > 10);
    println!("{total:?}");
}

/// Nothing is lost, repeated, reordered or altered, and everything finishes, on any network and
/// with any program.
// shows: H-12, H-14, H-15, H-16, H-17, H-18, H-25
#[test]
fn worlds_go_well() {
    all_goes_well(1_000_000);
}

/// As above, with other seeds, so that two cores share the work.
#[test]
fn other_worlds_go_well() {
    all_goes_well(2_000_000);
}

/// Worlds that once failed. In two, functions asked each other in step, and an Open always replaced
/// the answer. In one, a half-open twin of a link made the next link seem older, so that its
/// packets came first. In one, acknowledgements that came late made a stranger's address seem to be
/// the peer's.
#[test]
fn worlds_that_once_went_wrong_go_well() {
    for seed in [428_000_528, 716_000_425, 853_000_445, 1_600_042_408] {
        let outcome = run_world(seed).unwrap_or_else(|failure| panic!("{failure}"));
        assert!(outcome.packets > 0);
    }
}

/// A sender that joins seven others soon gets as much of the line as they do, and no more.
#[test]
fn a_latecomer_gets_its_share() {
    for seed in 0..4 {
        let outcome = world::run(&Scenario::latecomer(seed));
        let outcome = outcome.unwrap_or_else(|failure| panic!("{failure}"));
        // The line was busy: it carries 80 MB in 80 ms.
        assert!(outcome.traffic.bytes > 60_000_000, "{outcome:?}");
    }
}

/// Canary: a latecomer whose window does not grow is starved, and the oracle notices.
#[test]
fn a_starved_latecomer_is_noticed() {
    let mut scenario = Scenario::latecomer(1);
    let (_, config) = scenario.functions.last_mut().unwrap();
    config.window_frames = 1;
    let failure = world::run(&scenario).unwrap_err();
    assert!(failure.what.contains("a fair share is"), "{failure}");
}

/// The same seed gives the same history: every frame at the same time with the same bytes, every
/// packet in the same order.
#[test]
fn histories_repeat() {
    for seed in 0..20 {
        let first = run_world(seed).unwrap_or_else(|failure| panic!("{failure}"));
        let second = run_world(seed).unwrap_or_else(|failure| panic!("{failure}"));
        assert_eq!(first, second, "seed {seed}");
    }
}

/// The committed ledger can be read, has no seed twice for one commit, and its entries name their
/// code.
#[test]
fn the_ledger_is_sound() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("simulator-ledger.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let entries = Entry::parse_all(&text).unwrap_or_else(|line| panic!("line {line} is no entry"));
    for (index, entry) in entries.iter().enumerate() {
        assert!(entry.frames > 0 && entry.worlds > 0 && !entry.commit.is_empty(), "{entry:?}");
        for earlier in &entries[..index] {
            let apart = earlier.commit != entry.commit
                || earlier.seed + earlier.worlds <= entry.seed
                || entry.seed + entry.worlds <= earlier.seed;
            assert!(apart, "{entry:?} and {earlier:?}");
        }
    }
    assert!(Entry::parse_all("{}").is_err());
}
