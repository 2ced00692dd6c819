//! Shows that the attacks would notice a missing check: each fault takes one check away, and the
//! attack named beside it must fail. Without the fault it passes.

mod attacks;

use std::process::Command;

/// Names the attack that a child carries out.
const ATTACK: &str = "BELLWIRE_TEST_ATTACK";

/// Fault, and the attack that notices it.
const CANARIES: [(&str, &str); 13] = [
    ("frame-magic", "lies_in_a_request"),
    ("frame-version", "lies_in_a_request"),
    ("frame-length", "lies_in_a_request"),
    ("data-length", "lies_in_a_request"),
    ("number-of-25-bits", "lies_in_a_request"),
    ("any-space", "lies_in_a_request"),
    ("look-up-longer", "lies_in_a_look_up"),
    ("look-up-version", "lies_in_a_look_up"),
    ("any-nonce", "answers_of_somebody_else"),
    ("any-port", "answers_of_somebody_else"),
    ("out-of-order", "frames_out_of_order"),
    ("strangers-kept", "a_crowd_of_strangers"),
    ("silent-kept", "a_silent_stranger"),
];

/// Every planted fault is noticed.
#[test]
fn every_canary_is_caught() {
    for (name, _) in attacks::ATTACKS {
        assert!(passes(name, None), "{name} fails although nothing is planted");
    }
    // Several at once, because they mostly sleep.
    let kept = std::thread::scope(|scope| {
        let try_one = |(fault, name): (&'static str, &'static str)| {
            scope.spawn(move || passes(name, Some(fault)).then_some((fault, name)))
        };
        let tries: Vec<_> = CANARIES.into_iter().map(try_one).collect();
        let results = tries.into_iter().map(|it| it.join().expect("no panic"));
        results.flatten().collect::<Vec<_>>()
    });
    assert!(kept.is_empty(), "not noticed: {kept:?}");
}

/// Whether an attack in a process of its own is repelled.
fn passes(name: &str, fault: Option<&str>) -> bool {
    let program = std::env::current_exe().expect("the path of this program");
    let mut child = Command::new(program);
    child.args(["--exact", "carries_out_one_attack", "--ignored"]).env(ATTACK, name);
    child.env_remove("BELLWIRE_CANARY").envs(fault.map(|fault| ("BELLWIRE_CANARY", fault)));
    child.output().expect("a child").status.success()
}

/// What a child does.
#[test]
#[ignore = "a child of `every_canary_is_caught` runs it"]
fn carries_out_one_attack() {
    let name = std::env::var(ATTACK).expect("the name of an attack");
    let known = attacks::ATTACKS.iter().find(|(known, _)| *known == name);
    known.unwrap_or_else(|| panic!("no attack {name}")).1();
}
