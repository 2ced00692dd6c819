//! A network that belongs to an adversary who knows no key.

#[allow(dead_code, reason = "other tests use the rest")]
mod support;

use support::run;

/// Whatever the adversary does, each frame is opened as it was sealed, at most once, by whom it was
/// meant for, and before its session ends. Nothing is readable, and strangers get no answer. When
/// the adversary stops, everybody reaches everybody.
#[test]
fn an_adversary_gets_nothing() {
    let outcome = run(1, 400_000, |_| {}).unwrap_or_else(|what| panic!("{what}"));
    assert!(outcome.opened > 50_000, "{outcome:?}");
    assert!(outcome.replayed > 10_000 && outcome.forged > 10_000, "{outcome:?}");
    assert!(outcome.sessions > 100, "{outcome:?}");
}

/// The same seed gives the same world.
#[test]
fn seeds_decide_everything() {
    assert_eq!(run(7, 30_000, |_| {}), run(7, 30_000, |_| {}));
}
