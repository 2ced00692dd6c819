//! Tests of the statistics: figures that are computed by hand.

use super::steady::Window;
use super::*;
use crate::units::{Span, Time};

fn near(got: f64, expected: f64) {
    assert!((got - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{got}, not {expected}");
}

/// An interval of 10 +- 2 holds its ends, and is above 7 and below 13, but not above 8 or below 12.
#[test]
fn intervals_have_ends() {
    let ten = Estimate { mean: 10.0, half_width: 2.0 };
    for (value, widths, holds) in [
        (8.0, 1.0, true),
        (12.0, 1.0, true),
        (7.9, 1.0, false),
        (12.1, 1.0, false),
        (6.0, 2.0, true),
    ] {
        assert_eq!(ten.holds(value, widths), holds, "{value}");
    }
    assert!(ten.is_above(7.0) && !ten.is_above(8.0) && !ten.is_above(9.0));
    assert!(ten.is_below(13.0) && !ten.is_below(12.0) && !ten.is_below(11.0));
    near(bound_of_never(300), 0.01);
    assert_eq!(bound_of_never(2), 1.0);
}

/// 42 observations make 20 batches of 2; the first two are left out. Batch k has 2k and 2k + 1:
/// means 0.5, 2.5, to 38.5. Their mean is 19.5, their sample variance 4 * 20 * 21 / 12 = 140, and t
/// with 19 degrees 2.093: 2.093 * sqrt(140 / 20) = 5.537.
#[test]
fn batches_are_equal_and_last() {
    let series: Vec<f64> = [1e6, 1e6].into_iter().chain((0..40).map(f64::from)).collect();
    let found = batch_means(&series).unwrap();
    near(found.mean, 19.5);
    assert!((found.half_width - 5.537).abs() < 0.01, "{found:?}");
}

/// MSER-5 by its definition: the cut of the least standard error among those that leave 5 groups of
/// 5. A first half of other values is cut where it ends, and no settled series is found beyond the
/// middle.
#[test]
fn warm_up_ends_where_the_error_is_least() {
    let series = |first: usize, all: usize| -> Vec<f64> {
        (0..all).map(|at| if at < first { 100.0 } else { [1.0, 2.0][at / 5 % 2] }).collect()
    };
    for (first, all) in [(0, 100), (10, 100), (20, 100), (25, 60), (30, 60), (35, 60), (50, 60)] {
        let groups: Vec<f64> =
            series(first, all).chunks(5).map(|five| five.iter().sum::<f64>() / 5.0).collect();
        let error = |cut: usize| {
            let rest = &groups[cut..];
            let mean = rest.iter().sum::<f64>() / rest.len() as f64;
            rest.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (rest.len() as f64).powi(2)
        };
        let best = (0..=groups.len() - 5)
            .min_by(|a, b| error(*a).total_cmp(&error(*b)))
            .filter(|cut| cut * 2 <= groups.len());
        assert_eq!(warm_up(&series(first, all)), best.map(|cut| cut * 5), "{first} of {all}");
    }
    assert_eq!(warm_up(&[1.0; 24]), None);
    assert_eq!(warm_up(&[1.0; 25]), Some(0));
}

/// A mean over seeds needs eight; with fewer the mean is known, and no interval.
#[test]
fn few_seeds_give_a_mean() {
    let found = over_seeds(&[1.0, 2.0, 6.0]);
    assert_eq!((found.mean, found.half_width), (3.0, f64::INFINITY));
    assert_eq!(over_seeds(&[]).mean, 0.0);
    // Eight draws, four of 1 and four of 3: variance 8 / 7, so 2.365 * sqrt(1 / 7) = 0.894.
    let found = over_seeds(&[1.0, 3.0, 1.0, 3.0, 1.0, 3.0, 1.0, 3.0]);
    near(found.mean, 2.0);
    assert!((found.half_width - 0.8939).abs() < 1e-3, "{found:?}");
}

fn window(count: u64, latency: u64, amount: u64) -> Window {
    Window { count, latency, amount }
}

/// Latencies of 10 and amounts of 5, after three windows that are told to be the warm-up. An empty
/// window has no latency, but an amount. A batch's latency is the ratio of its sums.
#[test]
fn a_steady_state_has_its_means() {
    let mut windows = vec![window(1, 1_000, 900); 3];
    windows.extend([window(2, 20, 5); 40]);
    let steady = Steady::of(&windows, Some(3));
    assert_eq!((steady.latency.mean, steady.amount.mean), (10.0, 5.0));
    assert_eq!((steady.warm_up, steady.settled), (3, true));
    assert_eq!((steady.latency.half_width, steady.amount.half_width), (0.0, 0.0));
    // The means of all, and not of the windows: (40 * 20 + 60) / (40 * 2 + 2).
    windows.push(window(2, 60, 5));
    near(Steady::of(&windows, Some(3)).latency.mean, 860.0 / 82.0);
    // Found by itself, in fives: the first group holds the three windows.
    let found = Steady::of(&windows, None);
    assert_eq!((found.warm_up, found.settled), (5, true));
    // Too few windows: means without an interval.
    let few = Steady::of(&windows[3..8], Some(1));
    assert_eq!((few.latency.mean, few.amount.mean), (10.0, 5.0));
    assert_eq!(few.latency.half_width, f64::INFINITY);
    // A ramp never settles; the means are those of the second half.
    let ramp: Vec<Window> = (0..100).map(|at| window(1, at, 2 * at)).collect();
    let steady = Steady::of(&ramp, None);
    assert_eq!((steady.warm_up, steady.settled), (50, false));
    near(steady.latency.mean, 74.5);
    // Of the 50 windows 20 batches of 2 are the last 40.
    near(steady.amount.mean, 159.0);
    // Nothing ended at all.
    let none = Steady::of(&[window(0, 0, 3); 40], Some(0));
    assert!(!none.settled && none.latency.mean == 0.0);
    near(none.amount.mean, 3.0);
    assert_eq!(Steady::of(&[window(1, 1, 1); 4], Some(9)).warm_up, 4);
}

/// Sums of a tally: 3 and 5 have mean 4 and variance 2; none has zeros. What is merged counts once.
#[test]
fn tallies_add_up() {
    let mut tally = Tally::default();
    assert_eq!((tally.mean(), tally.variance(), tally.least(), tally.most()), (0.0, 0.0, 0, 0));
    tally.add(5);
    assert_eq!((tally.variance(), tally.least(), tally.most()), (0.0, 5, 5));
    tally.add(3);
    assert_eq!((tally.count(), tally.sum(), tally.mean()), (2, 8, 4.0));
    assert_eq!((tally.variance(), tally.least(), tally.most()), (2.0, 3, 5));
    let mut other = Tally::default();
    other.merge(&tally);
    assert_eq!(other, tally);
    other.merge(&tally);
    assert_eq!((other.count(), other.sum(), other.least(), other.most()), (4, 16, 3, 5));
    near(other.variance(), 4.0 / 3.0);
    other.merge(&Tally::default());
    assert_eq!((other.count(), other.least()), (4, 3));
}

/// Two items from 2 to 8 ns and from 4 on: at 10 ns 6 + 6 = 12 ns of items, in the mean 1.2. The
/// counts balance only with the item that is inside, with its own time.
#[test]
fn occupancies_integrate() {
    let ns = |ns: u64| Time::ZERO + Span::from_ns(ns);
    let mut queue = Occupancy::default();
    assert_eq!((queue.mean(ns(0)), queue.mean_stay()), (0.0, Span::ZERO));
    queue.enter(ns(2));
    queue.enter(ns(4));
    queue.leave(ns(2), ns(8));
    near(queue.mean(ns(10)), 1.2);
    assert_eq!((queue.inside(), queue.most(), queue.entered(), queue.left()), (1, 2, 2, 1));
    assert_eq!(queue.mean_stay(), Span::from_ns(6));
    queue.audit("q", ns(10), [ns(4)]).unwrap();
    assert!(queue.audit("q", ns(10), [ns(5)]).unwrap_err().law.contains("Little"));
    assert!(queue.audit("q", ns(10), [ns(4), ns(4)]).unwrap_err().law.contains("entered"));
    queue.leave(ns(4), ns(9));
    near(queue.mean(ns(10)), 1.1);
    near(queue.mean_stay().as_ns(), 5.5);
}

/// What a queue holds is found by position and by name.
#[test]
fn queues_are_looked_into() {
    let mut queue = Queue::default();
    assert!(queue.is_empty() && queue.front().is_none() && queue.pop(Time::ZERO).is_none());
    for item in [10, 20, 30] {
        queue.push(Time::ZERO, item);
    }
    assert!(!queue.is_empty());
    *queue.get_mut(1).unwrap() += 1;
    *queue.front_mut().unwrap() += 2;
    queue.iter_mut().for_each(|item| *item += 100);
    assert_eq!(queue.iter().copied().collect::<Vec<_>>(), [112, 121, 130]);
    assert_eq!((queue.front(), queue.len(), queue.occupancy().entered()), (Some(&112), 3, 3));
    let used = QueueUse::of("a".to_owned(), queue.occupancy(), Time::from_ps(4));
    assert_eq!((used.queue.as_str(), used.came, used.mean, used.most), ("a", 3, 3.0, 3));
}

/// Fairness is the smallest share of the largest.
#[test]
fn fairness_is_a_ratio() {
    near(fairness(&[4, 2, 8]), 0.25);
    assert_eq!((fairness(&[]), fairness(&[0, 0]), fairness(&[0, 5])), (1.0, 1.0, 0.0));
}
