//! Turns in virtual time. Each property is a checker that returns the violation. Rules with a
//! planted fault must fail.

use super::*;

const STEP: Duration = Duration::from_millis(500);

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A sender's behaviour in each step while it has a place.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Sender {
    asker: Asker,
    /// Bytes of progress in each step.
    bytes: u64,
    /// Bytes still to send; `u64::MAX`: never done.
    left: u64,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    Waits,
    Served,
    Done,
    /// It lost its place before it was done.
    CutOff,
}

fn sender(node: u32, function: u8, bytes: u64, left: u64) -> Sender {
    Sender { asker: Asker { node, function }, bytes, left, state: State::Waits }
}

/// Lets senders ask and send under `rules` until `end`. A sender that is cut off and never done
/// asks again.
fn simulate(rules: Rules, senders: &mut [Sender], end: Duration) {
    let mut turns = Turns::new(rules);
    let mut paces: Vec<Option<Pace>> = senders.iter().map(|_| None).collect();
    let mut now = Duration::ZERO;
    while now < end {
        for (sender, pace) in senders.iter_mut().zip(&mut paces) {
            match (sender.state, &mut *pace) {
                (State::Waits, _) if turns.ask(sender.asker, now) == Answer::Now => {
                    sender.state = State::Served;
                    *pace = Some(Pace::new(now));
                }
                (State::Served, Some(held)) => {
                    held.progress(sender.bytes, now);
                    sender.left = sender.left.saturating_sub(sender.bytes);
                    let node = sender.asker.node;
                    let lost = held.silent_for(now) >= rules.silence && turns.is_wanted(node, now);
                    if lost || sender.left == 0 {
                        turns.leave(node);
                        sender.state = match (lost, sender.left) {
                            (false, _) => State::Done,
                            // A hostile sender comes back at once.
                            (true, left) if left > u64::MAX / 2 => State::Waits,
                            (true, _) => State::CutOff,
                        };
                    }
                }
                _ => {}
            }
        }
        now += STEP;
    }
}

/// Silent senders, or senders of one byte a step, sit on as many nodes as there are places in line.
/// An honest sender behind them is still served.
fn tricklers_lose_their_places(rules: Rules, bytes: u64) -> Result<(), String> {
    let hostile = (0..16).map(|number| sender(number / 4, (number % 4) as u8, bytes, u64::MAX));
    let mut senders: Vec<Sender> = hostile.collect();
    senders.push(sender(100, 0, 1 << 20, 8 << 20));
    simulate(rules, &mut senders, seconds(120));
    match senders[16].state {
        State::Done => Ok(()),
        state => Err(format!("the honest sender {state:?}")),
    }
}

/// Senders with little but sufficient progress are never cut off, however many wait.
fn slow_senders_are_not_cut_off(rules: Rules) -> Result<(), String> {
    let slow = PACE_BYTES / 16;
    let mut senders: Vec<Sender> =
        (0..40).map(|number| sender(number, 0, slow, 100 * slow)).collect();
    simulate(rules, &mut senders, seconds(600));
    match senders.iter().find(|sender| sender.state != State::Done) {
        None => Ok(()),
        Some(sender) => Err(format!("{sender:?}")),
    }
}

/// One node holds at most its share of places, so another node is served at once.
fn one_node_does_not_take_all(rules: Rules) -> Result<(), String> {
    let mut turns = Turns::new(rules);
    for function in 0..=254 {
        turns.ask(Asker { node: 1, function }, Duration::ZERO);
    }
    match turns.ask(Asker { node: 2, function: 0 }, Duration::ZERO) {
        Answer::Now => Ok(()),
        answer => Err(format!("{answer:?}")),
    }
}

/// Waiting senders are served in the order of their requests, whichever asks first once a place is
/// free.
fn the_line_is_in_order(rules: Rules) -> Result<(), String> {
    let mut turns = Turns::new(rules);
    let asker = |node| Asker { node, function: 0 };
    let (places, mut now) = (rules.places as u32, Duration::ZERO);
    (0..places).for_each(|node| assert_eq!(turns.ask(asker(node), now), Answer::Now));
    for (before, node) in (places..places + 5).enumerate() {
        let answer = turns.ask(asker(node), now);
        if answer != (Answer::Later { before }) {
            return Err(format!("{answer:?} behind {before}"));
        }
    }
    let mut served = Vec::new();
    for leaving in 0..5 {
        turns.leave(leaving);
        now += STEP;
        // The last asks first.
        for node in
            (places..places + 5).rev().filter(|node| !served.contains(node)).collect::<Vec<_>>()
        {
            if turns.ask(asker(node), now) == Answer::Now {
                served.push(node);
            }
        }
    }
    let expected: Vec<u32> = (places..places + 5).collect();
    if served == expected { Ok(()) } else { Err(format!("{served:?}")) }
}

/// The rules of the listener have every property.
#[test]
fn senders_have_fair_turns() {
    for bytes in [0, 1, PACE_BYTES / 32] {
        tricklers_lose_their_places(LISTENER, bytes).expect("an honest sender is served");
    }
    slow_senders_are_not_cut_off(LISTENER).expect("all are served");
    one_node_does_not_take_all(LISTENER).expect("a place is left");
    the_line_is_in_order(LISTENER).expect("in order");
}

/// Canaries: rules with one fault each; the property's checker must notice it.
#[test]
fn unfair_rules_are_noticed() {
    let for_ever = Rules { silence: Duration::MAX, ..LISTENER };
    assert!(tricklers_lose_their_places(for_ever, 0).is_err(), "silence has no end");
    let hasty = Rules { silence: STEP, ..LISTENER };
    assert!(slow_senders_are_not_cut_off(hasty).is_err(), "progress is not waited for");
    let greedy = Rules { places_of_node: 8, ..LISTENER };
    assert!(one_node_does_not_take_all(greedy).is_err(), "one node takes all");
    let forgetful = Rules { renewal: STEP, ..LISTENER };
    assert!(the_line_is_in_order(forgetful).is_err(), "the line is forgotten");
    let no_line = Rules { line: 0, ..LISTENER };
    assert!(the_line_is_in_order(no_line).is_err(), "there is no line");
}

/// The line is bounded, and so is each node's share. A sender that stops asking leaves it.
#[test]
fn the_line_is_bounded() {
    let mut turns = Turns::new(LISTENER);
    let zero = Duration::ZERO;
    let answers: Vec<Answer> =
        (0..100).map(|function| turns.ask(Asker { node: 1, function }, zero)).collect();
    assert_eq!(answers.iter().filter(|&&answer| answer == Answer::Now).count(), 4);
    assert_eq!(answers.iter().filter(|&&answer| answer == Answer::Full).count(), 100 - 4 - 16);
    for node in 2..200 {
        turns.ask(Asker { node, function: 0 }, zero);
    }
    assert_eq!(turns.line.len(), LISTENER.line);
    assert!(!turns.line_is_empty(seconds(2)));
    assert!(turns.line_is_empty(seconds(3)));
}

/// A place counts as wanted only if a sender in line could have it.
#[test]
fn a_place_is_wanted_by_who_can_have_it() {
    let mut turns = Turns::new(LISTENER);
    let zero = Duration::ZERO;
    for function in 0..5 {
        turns.ask(Asker { node: 1, function }, zero);
    }
    assert_eq!(turns.ask(Asker { node: 2, function: 0 }, zero), Answer::Now);
    // The fifth sender of node 1 can only take a place of its own node.
    assert!(turns.is_wanted(1, zero) && !turns.is_wanted(2, zero));
    turns.close();
    assert!(turns.is_wanted(2, zero));
    assert_eq!(turns.ask(Asker { node: 3, function: 0 }, zero), Answer::Over);
}

/// A stall of the receiver counts as one step for its senders.
#[test]
fn a_stall_of_ours_is_no_silence_of_theirs() {
    let mut clock = Clock::new(seconds(5));
    assert_eq!(clock.read(seconds(5) + STEP), STEP);
    assert_eq!(clock.read(seconds(100)), STEP + Clock::STEP);
}
