//! The coherence protocol: every state of small systems, ten million random accesses, and a canary
//! for each law.

use bellwire_model::smp::cc::Fault;
use bellwire_model::smp::cc::explore::explore;
use bellwire_model::smp::cc::tester::{Trial, try_randomly};

const FAULTS: [Fault; 5] = [
    Fault::KeepsInvalidated,
    Fault::ForgetsSharer,
    Fault::LosesWriteback,
    Fault::CountsTooFew,
    Fault::SilentToPut,
];

/// No order of accesses and messages leads one line in two, three or four nodes into a bad state.
/// Bad states are incoherent, lack a transition for a message, or cannot come to rest.
// shows: S-04
#[test]
fn every_state_of_a_small_system_is_sound() {
    let [two, three, four] = [2, 3, 4].map(|nodes| explore(nodes, None).unwrap());
    println!("{two:?} {three:?} {four:?}");
    assert!(two.states > 100 && three.states > 10 * two.states, "{two:?} {three:?}");
    // Most states have no two interchangeable nodes.
    assert!(four.states > 10 * three.states && four.states > 20 * four.classes, "{four:?}");
    // The protocol bounds the queues: per line, a node has one request in flight, and the home one
    // message to it.
    assert!(four.longest_queue <= 2, "{four:?}");
}

/// Canaries: exploring finds each planted fault.
// shows: S-04
#[test]
fn exploring_finds_planted_faults() {
    for fault in FAULTS {
        for nodes in [3, 4] {
            assert!(explore(nodes, Some(fault)).is_err(), "{fault:?}, {nodes} nodes");
        }
    }
}

/// Ten million random accesses of four nodes are coherent: every read returns the last write, and
/// nothing waits for ever. The accesses go to a few contended lines, and to more lines than the
/// caches hold.
// shows: S-04
#[test]
fn ten_million_random_accesses_are_coherent() {
    let trial =
        Trial { lines: 64, capacity: 24, accesses: 7_000_000, waiting: 4, seed: 1, fault: None };
    let wide = try_randomly(&trial).unwrap();
    let narrow = Trial { lines: 6, capacity: 4, accesses: 3_000_000, seed: 2, ..trial };
    let narrow = try_randomly(&narrow).unwrap();
    for tried in [wide, narrow] {
        assert!(tried.hits > 100_000 && tried.misses > 1_000_000, "{tried:?}");
    }
    assert_eq!(wide.hits + wide.misses + narrow.hits + narrow.misses, 10_000_000);
}

/// Canaries: the random accesses find each planted fault, too, within a hundredth of the run above.
// shows: S-04
#[test]
fn random_accesses_find_planted_faults() {
    for fault in FAULTS {
        let trial = Trial {
            lines: 16,
            capacity: 8,
            accesses: 100_000,
            waiting: 4,
            seed: 3,
            fault: Some(fault),
        };
        assert!(try_randomly(&trial).is_err(), "{fault:?}");
        assert!(try_randomly(&Trial { fault: None, ..trial }).is_ok());
    }
}
