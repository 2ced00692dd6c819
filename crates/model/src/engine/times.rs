//! Tests of the event core: times and turns that are computed by hand.

use super::arbiter::{first_from, nth_set};
use super::channel::{Take, Timing};
use super::{Arbiter, Chance, Channel, Ended, Event, Failures, Model, Policy, Random, Schedule};
use super::{Server, Simulation, Waits};
use crate::units::{Span, Time};

fn ns(ns: u64) -> Time {
    Time::ZERO + Span::from_ns(ns)
}

/// The first set bit from a position on, around the end; and the n-th.
#[test]
fn bits_are_found() {
    for (bits, from, first) in [
        (0b1010, 0, 1),
        (0b1010, 1, 1),
        (0b1010, 2, 3),
        (0b1010, 4, 1),
        (1 << 63, 63, 63),
        (1, 63, 0),
    ] {
        assert_eq!(first_from(bits, from), first, "{bits:b} from {from}");
    }
    assert_eq!([0, 1, 2].map(|n| nth_set(0b1010_0100, n)), [2, 5, 7]);
}

/// Round-robin grants 1, 5, 63, and again 1. A choice that is not served moves nothing.
#[test]
fn turns_go_round() {
    let requests = 1 << 1 | 1 << 5 | 1 << 63;
    let mut arbiter = Arbiter::new(Policy::RoundRobin, 1, &mut Random::new(1));
    assert_eq!(arbiter.choose(requests), Some(1));
    let grants: Vec<_> = (0..6).map(|_| arbiter.grant(requests).unwrap()).collect();
    assert_eq!(grants, [1, 5, 63, 1, 5, 63]);
    arbiter.serve(2);
    assert_eq!(arbiter.choose(requests), Some(5));
    // A lone request moves the turn behind itself.
    assert_eq!((arbiter.grant(1 << 40), arbiter.grant(requests)), (Some(40), Some(63)));
}

/// Weights 2 and 1: a round is 0, 1, 0. An input that asks for nothing keeps its turns of the
/// round, and one alone begins round after round. A weight of zero is one.
#[test]
fn weights_are_turns_of_a_round() {
    let mut arbiter = Arbiter::weighted(&[2, 0], &mut Random::new(3));
    while arbiter.grant(0b11) != Some(1) {}
    while arbiter.grant(0b11) != Some(1) {}
    // Now input 0 has at most one turn left of this round; a round of three has both.
    let grants: Vec<_> = (0..9).map(|_| arbiter.grant(0b11).unwrap()).collect();
    for round in grants.chunks(3) {
        assert_eq!(round.iter().sum::<usize>(), 1, "{grants:?}");
    }
    assert_eq!(arbiter.grant(0b10), Some(1));
    assert_eq!(arbiter.grant(0b10), Some(1));
    assert_eq!((arbiter.grant(0b11), arbiter.grant(0b11)), (Some(0), Some(0)));
}

/// Weights 3 and 1: a round is 1, 0, 0, 0. A choice of input 1 that is not served begins no round:
/// input 0 has its three turns first.
#[test]
fn a_choice_that_is_not_served_takes_no_turn() {
    let mut arbiter = Arbiter::weighted(&[3, 1], &mut Random::new(3));
    while arbiter.grant(0b11) != Some(1) {}
    while arbiter.grant(0b11) != Some(1) {}
    assert_eq!(arbiter.choose(0b10), Some(1));
    let grants: Vec<_> = (0..5).map(|_| arbiter.grant(0b11).unwrap()).collect();
    assert_eq!(grants, [0, 0, 0, 1, 0]);
}

/// A draw chooses the n-th request of the arbiter's own generator.
#[test]
fn lots_are_drawn() {
    let mut random = Random::new(9);
    let mut same = random.clone();
    let mut arbiter = Arbiter::new(Policy::Random, 7, &mut random);
    same.below(7);
    let mut same = same.fork(1);
    for _ in 0..20 {
        let expected = [1, 4, 6][same.below(3) as usize];
        assert_eq!(arbiter.grant(0b101_0010), Some(expected));
    }
}

/// Requests at 0 for 10 ns, at 4 for 3 with a pause of 2, and at 20 for 5: served from 0, 12 and
/// 20. They waited 0, 8 and 0 ns. A hold until 40 is 20 ns of business, and a closed door is none.
#[test]
fn a_server_serves_one_after_another() {
    let mut server = Server::default();
    let times = |service: super::server::Service| (service.begins, service.ends);
    assert_eq!(times(server.reserve(ns(0), Span::from_ns(10))), (ns(0), ns(10)));
    let second = server.reserve_after(ns(4), Span::from_ns(2), Span::from_ns(3));
    assert_eq!(times(second), (ns(12), ns(15)));
    assert!(!server.is_free(ns(14)) && server.is_free(ns(15)) && server.is_free(ns(16)));
    assert_eq!(times(server.reserve(ns(20), Span::from_ns(5))), (ns(20), ns(25)));
    assert_eq!((server.busy(), server.waited()), (Span::from_ns(18), Span::from_ns(8)));
    server.hold(ns(20), ns(40));
    assert_eq!((server.free_at(), server.busy()), (ns(40), Span::from_ns(38)));
    server.close_until(ns(50));
    server.close_until(ns(45));
    assert_eq!((server.free_at(), server.busy()), (ns(50), Span::from_ns(38)));
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Line {
    Arrives,
    Room,
    Take,
}

impl Event for Line {
    fn trace(self) -> u64 {
        self as u64
    }
}

/// A sender with items, and a receiver that takes each some time after it came.
struct Ends {
    channel: Channel<u32, Line>,
    left: u32,
    beats: u32,
    hold: Span,
    sent: Vec<Time>,
    taken: Vec<Time>,
}

impl Model for Ends {
    type Event = Line;

    fn handle(&mut self, event: Line, schedule: &mut Schedule<Line>) {
        match event {
            Line::Room => {
                while self.left > 0 && self.channel.offer(schedule, self.beats, self.left).is_ok() {
                    self.left -= 1;
                    self.sent.push(schedule.now());
                }
            }
            Line::Arrives => schedule.after(self.hold, Line::Take),
            Line::Take => {
                self.taken.extend(self.channel.take(schedule).map(|_| schedule.now()));
            }
        }
        self.channel.audit(schedule.now()).unwrap();
    }
}

fn passes(timing: Timing, credits: u32, items: u32, beats: u32, hold: u64) -> Ends {
    let channel = Channel::new("line", timing, credits, Line::Arrives, Line::Room);
    let hold = Span::from_ns(hold);
    let ends = Ends { channel, left: items, beats, hold, sent: Vec::new(), taken: Vec::new() };
    let mut simulation = Simulation { model: ends, schedule: Schedule::new(1, Span::from_ns(4)) };
    simulation.schedule.at(Time::ZERO, Line::Room);
    assert_eq!(simulation.run(Time::NEVER), Ended::Quiet);
    simulation.model
}

/// Items of 2 beats of 4 ns over a line of 10 ns: they leave at 0, 8 and 16, come at 18, 26 and 34,
/// and are taken 5 ns later. Each was in the channel for 23 ns and waited 5. With the head alone
/// they come 4 ns earlier.
#[test]
fn a_line_takes_its_beats_and_its_way() {
    let timing = Timing {
        latency: Span::from_ns(10),
        beat: Span::from_ns(4),
        credit_latency: Span::from_ns(6),
        ..Timing::default()
    };
    let ends = passes(timing, 100, 3, 2, 5);
    assert_eq!(ends.sent, [0, 8, 16].map(ns));
    assert_eq!(ends.taken, [23, 31, 39].map(ns));
    assert_eq!(ends.channel.occupancy.mean_stay(), Span::from_ns(23));
    assert_eq!((ends.channel.waited.sum(), ends.channel.waited.count()), (15_000, 3));
    assert_eq!(
        (ends.channel.line.busy(), ends.channel.credit_stall),
        (Span::from_ns(24), Span::ZERO)
    );
    let ends = passes(Timing { take: Take::Head, ..timing }, 100, 1, 2, 5);
    assert_eq!(ends.taken, [ns(19)]);
    let ends = passes(timing, u32::MAX, 3, 2, 5);
    assert_eq!(ends.taken, [23, 31, 39].map(ns));
    // A line that is never busy.
    let ends = passes(Timing { beat: Span::ZERO, ..timing }, 100, 3, 2, 5);
    assert_eq!(ends.taken, [15; 3].map(ns));
}

/// A loop of credits. 3 credits carry one item of 2 beats: it leaves at 0, is taken at 23, and its
/// credits are back at 29. From 8 ns on, when the line is free, the sender lacks them: 21 ns an
/// item. Credits for items instead of beats: 3 items at 0, 8 and 16, the fourth at 29, 5 ns late.
#[test]
fn credits_come_back_by_their_way() {
    let timing = Timing {
        latency: Span::from_ns(10),
        beat: Span::from_ns(4),
        credit_latency: Span::from_ns(6),
        ..Timing::default()
    };
    let ends = passes(timing, 3, 3, 2, 5);
    assert_eq!(ends.sent, [0, 29, 58].map(ns));
    assert_eq!(ends.channel.credit_stall, Span::from_ns(42));
    let ends = passes(Timing { credit_per_item: true, ..timing }, 3, 5, 2, 5);
    assert_eq!(ends.sent, [0, 8, 16, 29, 37].map(ns));
    assert_eq!(ends.channel.credit_stall, Span::from_ns(5));
    // Exactly enough: 4 credits carry two items, and the third leaves when the first's are back.
    let ends = passes(timing, 4, 3, 2, 5);
    assert_eq!(ends.sent, [0, 8, 29].map(ns));
}

/// A starved sender waits for the receiver, by the credits that it lacks.
#[test]
fn a_starved_sender_is_named() {
    let mut schedule = Schedule::new(1, Span::from_ns(4));
    let mut channel = Channel::new("line", Timing::default(), 3, Line::Arrives, Line::Room);
    let told = |channel: &Channel<(), Line>| {
        let mut waits = Waits::default();
        channel.waits("sender", "receiver", &mut waits);
        waits.all().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert!(channel.is_empty() && channel.front(ns(9)).is_none());
    channel.offer(&mut schedule, 2, ()).unwrap();
    assert!(told(&channel).is_empty() && !channel.is_empty());
    channel.offer(&mut schedule, 2, ()).unwrap_err();
    assert_eq!(told(&channel).len(), 1);
    assert!(told(&channel)[0].contains("2 credits of line"), "{:?}", told(&channel));
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Number(u64);

impl Event for Number {
    fn trace(self) -> u64 {
        self.0
    }
}

/// A clocked block that asks whether it comes next: it does while nothing else is due until its
/// edge, also in the last moment of a run. Otherwise its event waits among the others.
#[test]
fn a_block_alone_goes_on_at_once() {
    let mut schedule = Schedule::in_order(1, Span::from_ns(4));
    schedule.at(ns(4), Number(1));
    schedule.at(ns(12), Number(2));
    assert_eq!(schedule.next(ns(20)), Some(Number(1)));
    assert_eq!((schedule.now(), schedule.pending(), schedule.dispatched()), (ns(4), 1, 1));
    assert!(schedule.settles_next(ns(8), Number(3)));
    assert_eq!((schedule.now(), schedule.dispatched()), (ns(8), 2));
    // At 12 ns the other comes first.
    assert!(!schedule.settles_next(ns(12), Number(4)));
    assert_eq!((schedule.now(), schedule.pending()), (ns(8), 2));
    assert_eq!(schedule.next(ns(20)), Some(Number(2)));
    assert_eq!(schedule.next(ns(20)), Some(Number(4)));
    assert!(schedule.settles_next(ns(20), Number(5)));
    assert!(!schedule.settles_next(ns(21), Number(6)));
    assert_eq!((schedule.now(), schedule.next(ns(20))), (ns(20), None));
    assert_eq!(schedule.next(ns(21)), Some(Number(6)));
}

/// A block that goes on at once leaves the same trace as one whose event waits. Another event,
/// another time or another witness leaves another.
#[test]
fn traces_tell_runs_apart() {
    let trace = |at: u64, number: u64, witness: u64, at_once: bool| {
        let mut schedule = Schedule::new(1, Span::from_ns(4));
        schedule.witness(witness);
        if !(at_once && {
            schedule.next(ns(100));
            schedule.settles_next(ns(at), Number(number))
        }) {
            schedule.settle_at(ns(at), Number(number));
            schedule.next(ns(100));
        }
        schedule.trace_hash()
    };
    let first = trace(4, 5, 6, false);
    assert_eq!(first, trace(4, 5, 6, true));
    for other in [trace(5, 5, 6, false), trace(4, 6, 6, false), trace(4, 5, 7, false)] {
        assert_ne!(first, other);
    }
}

/// The present moment's acting phase is over while it settles.
#[test]
#[should_panic(expected = "cannot be scheduled")]
fn a_settling_moment_acts_no_more() {
    let mut schedule = Schedule::new(1, Span::from_ns(4));
    schedule.settle_at(ns(4), Number(1));
    schedule.next(ns(4));
    schedule.at(ns(4), Number(2));
}

/// Nothing settles in the past.
#[test]
#[should_panic(expected = "cannot be scheduled")]
fn the_past_is_settled() {
    let mut schedule = Schedule::new(1, Span::from_ns(4));
    schedule.at(ns(4), Number(1));
    schedule.next(ns(4));
    schedule.settle_at(ns(3), Number(2));
}

struct Counting {
    left: u64,
    times: Vec<Time>,
}

impl Model for Counting {
    type Event = Number;

    fn handle(&mut self, event: Number, schedule: &mut Schedule<Number>) {
        self.times.push(schedule.now());
        if self.left > 0 {
            self.left -= 1;
            schedule.after(Span::from_ns(10), event);
        }
    }

    fn is_idle(&self) -> bool {
        self.left == 0
    }

    fn waits(&self, waits: &mut Waits) {
        waits.add("a", "b", "more");
    }
}

/// A run stops at its limit, and moves the clock to it; another goes on. A quiet one leaves the
/// clock at its last event. A standstill is one only with work left and nothing pending.
#[test]
fn a_run_stops_and_goes_on() {
    let model = Counting { left: 4, times: Vec::new() };
    let mut run = Simulation { model, schedule: Schedule::new(1, Span::from_ns(4)) };
    assert!(run.standstill().is_some());
    run.schedule.at(ns(5), Number(1));
    assert!(run.standstill().is_none());
    assert_eq!(
        (run.run(ns(20)), run.now(), run.events(), run.pending()),
        (Ended::TimeUp, ns(20), 2, 1)
    );
    assert!(run.step(ns(25)) && !run.step(ns(30)));
    assert_eq!(run.now(), ns(30));
    assert!(!run.run_until(ns(32), |model| model.left == 0));
    assert_eq!(run.now(), ns(32));
    assert_eq!(run.run(Time::NEVER), Ended::Quiet);
    assert_eq!(
        (run.model.times.clone(), run.now()),
        ([5, 15, 25, 35, 45].map(ns).to_vec(), ns(45))
    );
    assert!(run.standstill().is_none());
    assert!(run.run_until(ns(50), |model| model.left == 0));
    run.model.left = 1;
    let told = run.standstill().map(|it| it.to_string());
    assert!(told.as_deref().is_some_and(|it| it.contains("a waits for more")), "{told:?}");
}

/// The states of seed 0 are the first words of SplitMix64, as its author publishes them.
#[test]
fn seeds_are_mixed_as_published() {
    let published = [
        0xe220_a839_7b1d_cdaf_u64,
        0x6e78_9e6a_a1b9_65f4,
        0x06c4_5d18_8009_454f,
        0xf88b_b8a8_724c_81ec,
    ];
    let first = published[0].wrapping_add(published[3]).rotate_left(23).wrapping_add(published[0]);
    assert_eq!(Random::new(0).word(), first);
    // A part's generator is that of the next word, with the part mixed in.
    let mut random = Random::new(7);
    let word = random.clone().word();
    // SplitMix64 begins by adding its step, so that the mixed step is the first word of seed 0.
    let step = 0x9e37_79b9_7f4a_7c15;
    assert_eq!(random.fork(step).word(), Random::new(word ^ published[0]).word());
}

/// An exponential number counts descending runs of even length, by the words of the generator.
#[test]
fn exponentials_follow_the_words() {
    for seed in 0..200 {
        let (mut drawn, mut words) = (Random::new(seed), Random::new(seed));
        let mut whole = 0;
        let expected = loop {
            let run = {
                let mut run = vec![words.word()];
                loop {
                    let next = words.word();
                    if next >= *run.last().unwrap() {
                        break run;
                    }
                    run.push(next);
                }
            };
            if run.len() % 2 == 1 {
                break (whole << 32) + (run[0] >> 32);
            }
            whole += 1;
        };
        assert_eq!(drawn.exponential(), expected, "seed {seed}");
        let scaled = ((u128::from(expected) * 1000) >> 32) as u64;
        assert_eq!(Random::new(seed).exponential_of(1000), scaled);
    }
}

/// A chance is a share of all words; a draw is a share of a limit; failures follow from an
/// exponential number by the logarithm.
#[test]
fn draws_are_shares() {
    let mut random = Random::new(5);
    let mut words = random.clone();
    for limit in [1, 2, 7, 100, u64::MAX] {
        let expected = ((u128::from(words.word()) * u128::from(limit)) >> 64) as u64;
        assert_eq!(random.below(limit), expected);
    }
    for p in [0.25, 0.5, 0.75] {
        let word = words.word();
        let expected = (word as f64) < p * 18_446_744_073_709_551_616.0;
        assert_eq!(random.chance(Chance::new(p)), expected, "{p}");
    }
    for p in [0.001, 0.1, 0.5, 0.75, 0.99, 0.999_999] {
        for seed in 0..20 {
            let exponential = Random::new(seed).exponential() as f64 / 4_294_967_296.0;
            let expected = exponential / -(1.0_f64 - p).ln();
            let drawn = Failures::before(Chance::new(p)).draw(&mut Random::new(seed)) as f64;
            assert!((drawn - expected.floor()).abs() <= 1e-9 * expected, "{p}: {drawn} {expected}");
        }
    }
}

/// Shuffling swaps each place, from the last on, with a drawn one at or before it.
#[test]
fn shuffles_follow_the_words() {
    let mut expected: Vec<u32> = (0..9).collect();
    let mut words = Random::new(3);
    for last in (1..9).rev() {
        expected.swap(last, words.below(last as u64 + 1) as usize);
    }
    let mut shuffled: Vec<u32> = (0..9).collect();
    Random::new(3).shuffle(&mut shuffled);
    assert_eq!(shuffled, expected);
}

/// A model that says nothing else is idle, and waits for nothing.
#[test]
fn a_model_is_idle_by_default() {
    let ends = passes(Timing::default(), 4, 1, 1, 0);
    let mut waits = Waits::default();
    ends.waits(&mut waits);
    assert!(ends.is_idle() && waits.is_empty());
}
