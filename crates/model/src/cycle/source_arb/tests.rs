//! Tests of the arbiter of sources.

use super::*;

/// Both descriptor extracts have words and take them, and these ask.
fn asks(ask_valid: [bool; 2]) -> In {
    In {
        word_valid: [true; 2],
        to_ready: [true; 2],
        ask_valid,
        ask_function: [1, 2],
        ask_address: [0x1000, 0x2000],
        ask_length: [0x10, 0x20],
        bell_function: 3,
        bell_word: 0x30 << 48 | 0xff << 40 | 0x3000,
        ..In::default()
    }
}

/// Function, address and length.
type Source = (u8, u64, u64);

/// The same with a doorbell.
fn rings(ask_valid: [bool; 2]) -> In {
    In { bell_valid: true, ..asks(ask_valid) }
}

/// The source that is asked about, and whose words go on.
fn seen(out: &Out) -> (u8, u64, u64, [bool; 2]) {
    let asks = out.source_valid;
    let (function, address, length) = match asks {
        true => (out.source_function, out.source_address, out.source_length),
        false => NONE,
    };
    (function, address, length, out.to_valid)
}

const FIRST: Source = (1, 0x1000, 0x10);
const SECOND: Source = (2, 0x2000, 0x20);
const BELL: Source = (3, 0x3000, 0x30);
const NONE: Source = (0, 0, 0);

/// What is asked, if this enters in each cycle, and whose words go on.
fn run(arb: &mut SourceArb, inputs: &[In], wanted: &[(Source, [bool; 2])]) {
    for (at, (input, &(source, words))) in inputs.iter().zip(wanted).enumerate() {
        let (function, address, length) = source;
        let out = arb.cycle(*input);
        assert_eq!(seen(&out), (function, address, length, words), "cycle {at}");
        let taken = [0, 1].map(|each| input.word_valid[each] && out.word_ready[each]);
        let given = [0, 1].map(|each| input.to_ready[each] && out.to_valid[each]);
        assert_eq!(taken, given, "what is taken goes on");
    }
}

/// Whoever asks alone is heard at once. A doorbell is asked about if no descriptor extract asks.
#[test]
fn who_is_alone_does_not_wait() {
    let mut arb = SourceArb::default();
    let alone = In { word_valid: [true, false], ..asks([true, false]) };
    let second = In { word_valid: [false, true], ..asks([false, true]) };
    run(
        &mut arb,
        &[asks([false; 2]), alone, alone, second, second],
        &[
            (NONE, [true; 2]),
            (FIRST, [true, false]),
            (FIRST, [true, false]),
            (SECOND, [false, true]),
            (SECOND, [false, true]),
        ],
    );
    let out = arb.cycle(rings([false; 2]));
    assert_eq!(seen(&out), (3, 0x3000, 0x30, [true; 2]));
    assert!(!out.out_valid && !out.bell_ready);
}

/// The word of the second descriptor extract waits while the first one asks, and goes before it in
/// the next cycle. Without such a word, or if it would not be taken, nothing waits.
#[test]
fn descriptor_extracts_take_turns() {
    let both = asks([true; 2]);
    run(
        &mut SourceArb::default(),
        &[both, both, both, asks([true, false]), asks([true, false]), both],
        &[
            (FIRST, [true, false]),
            (SECOND, [false, true]),
            (FIRST, [true, false]),
            (NONE, [false, true]),
            (FIRST, [true, false]),
            (SECOND, [false, true]),
        ],
    );
    for alone in [In { word_valid: [true, false], ..both }, In { to_ready: [true, false], ..both }]
    {
        let mut arb = SourceArb::default();
        for _ in 0..3 {
            assert_eq!(arb.cycle(alone).source_function, 1);
        }
    }
}

/// A doorbell that others go before goes before them: it waits for one of each at most.
#[test]
fn a_doorbell_waits_for_one_of_each() {
    let both = rings([true; 2]);
    let mut arb = SourceArb::default();
    run(
        &mut arb,
        &[both, both, both],
        &[(FIRST, [true, false]), (SECOND, [false, true]), (BELL, [false; 2])],
    );
    let out = arb.cycle(In { out_ready: true, ..both });
    assert!(out.out_valid && out.bell_ready);
    assert_eq!(seen(&out), (1, 0x1000, 0x10, [true, false]));
    run(
        &mut SourceArb::default(),
        &[rings([false, true]), both, both],
        &[(SECOND, [true; 2]), (BELL, [false; 2]), (FIRST, [true, false])],
    );
}

/// The answer of the cycle behind the question counts, and stays until the doorbell leaves. Only
/// then is the next one asked about.
#[test]
fn the_answer_stays_with_its_doorbell() {
    for fits in [false, true] {
        let mut arb = SourceArb::default();
        let mut cycle = |source_fits, out_ready| {
            let out = arb.cycle(In { source_fits, out_ready, ..rings([false; 2]) });
            (out.source_valid, out.out_valid, out.out_outside, out.bell_ready)
        };
        assert_eq!(cycle(!fits, true), (true, false, false, false));
        assert_eq!(cycle(fits, false), (false, true, !fits, false));
        assert_eq!(cycle(!fits, false), (false, true, !fits, false));
        assert_eq!(cycle(!fits, true), (false, true, !fits, true));
        assert_eq!(cycle(!fits, true), (true, false, false, false));
        assert_eq!(cycle(fits, true), (false, true, !fits, true));
        assert_eq!(cycle(fits, true), (true, false, false, false));
    }
}

/// A descriptor extract that may take no word is not heard, and a doorbell that was asked about
/// does not ask for a turn.
#[test]
fn what_has_no_word_is_not_heard() {
    let mut arb = SourceArb::default();
    assert_eq!(arb.may_take(false), [true; 2]);
    assert_eq!(arb.may_take(true), [true, false]);
    arb.cycle(rings([false; 2]));
    // The doorbell has its answer, so it does not wait.
    assert_eq!(arb.cycle(rings([true, false])).source_function, 1);
    assert_eq!(arb.may_take(false), [false, true], "the second one waited");
    assert_eq!(arb.may_take(true), [false; 2]);
    assert!(!arb.cycle(asks([true, false])).source_valid);
    arb.cycle(rings([false, true]));
    assert_eq!(arb.may_take(false), [true; 2]);
}
