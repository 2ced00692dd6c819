//! Each check of a stream objects to the fault that is planted for it, and to nothing without it.

#[allow(dead_code)]
mod calls;
#[path = "oracles/pair.rs"]
mod pair;
#[allow(dead_code)]
#[path = "oracles/stranger.rs"]
mod stranger;

use bellwire_rsockets::canary::plant;
use bellwire_rsockets::datagram::frame::Secret;
use bellwire_rsockets::message::{Hello, Kind};
use bellwire_rsockets::stream::Stream;
use proptest::test_runner::{Config, TestRng, TestRunner};

/// Whether the pair's oracle objects to any of its sequences, which are always the same.
fn objects() -> bool {
    let config = Config { failure_persistence: None, max_shrink_iters: 0, ..Config::default() };
    let rng = TestRng::deterministic_rng(config.rng_algorithm);
    TestRunner::new_with_rng(config, rng).run(&pair::steps(), pair::check).is_err()
}

/// Bytes that wrap around the ring to a wrong place, and credit that is never returned alone, are
/// noticed by the pair.
#[test]
fn the_pair_notices() {
    plant("");
    assert!(!objects(), "the oracle objects although nothing is planted");
    for fault in ["ring-wrap", "credit-kept"] {
        plant(fault);
        assert!(objects(), "{fault} was not noticed");
    }
    plant("");
}

/// A peer that sends without credit, or after its end, is taken for good if its check is gone.
#[test]
fn checks_of_peers_are_the_only_ones() {
    let hello = Hello { slots: 2, slot_bytes: 64, maps: 0 };
    let refuses = |kinds: &[Kind]| {
        let mut stream = Stream::new(64, 4, hello, hello);
        kinds.iter().any(|kind| {
            let length = u32::from(*kind == Kind::Data);
            stream.arrived(0, kind.with(0), length).is_err()
        })
    };
    for (fault, kinds) in [
        ("overrun", &[Kind::Data, Kind::Data, Kind::Data]),
        ("after-end", &[Kind::Data, Kind::End, Kind::Data]),
    ] {
        plant("");
        assert!(refuses(kinds), "{fault}: the check works");
        plant(fault);
        assert!(!refuses(kinds), "{fault}: something else refuses");
    }
    plant("");
}

/// A datagram with a seal of nobody's is heard if its check is gone, and so is an answer to no
/// question.
#[test]
fn checks_of_strangers_are_the_only_ones() {
    plant("");
    stranger::seals_are_checked(true);
    plant("token-unchecked");
    stranger::seals_are_checked(false);
    let secret = Secret::new().expect("the kernel has random bytes");
    let address = "127.0.0.1:9".parse().expect("an address");
    let wrong = secret.nonce(address) ^ 1;
    assert!(!secret.has_asked(address, wrong));
    plant("nonce-unchecked");
    assert!(secret.has_asked(address, wrong));
    plant("");
}
