//! Bellwire's goals in shared memory, as ratios of medians from the same run and class of distance.

use serde::Serialize;

use super::{Line, best};
use crate::contenders::Kind;
use crate::distance::Distance;
use crate::op::{MEMORY_ROWS, Op, Row, Wire};

/// One goal and its verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Goal {
    /// The two sides of the comparison.
    pub what: String,
    /// The bound: `at most 1.5` or `at least 2`.
    pub bound: String,
    /// The ratio of near medians, and its opponent.
    pub near: Option<Ratio>,
    /// The ratio of far medians, and its opponent.
    pub far: Option<Ratio>,
}

/// A ratio and its verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// Bellwire's median divided by the opponent's.
    pub ratio: f64,
    /// The opponent's name.
    pub against: &'static str,
    /// Whether the bound is kept.
    pub met: bool,
}

enum Against {
    /// The row's yardsticks.
    Limit,
    /// The best peer in the row.
    Peer,
    /// The best peer in another row.
    PeerIn(Row),
    /// Bellwire's own figure in another row.
    Own(Row),
}

pub(super) enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Bound::AtMost(bound) => write!(f, "at most {bound}"),
            Bound::AtLeast(bound) => write!(f, "at least {bound}"),
        }
    }
}

impl Bound {
    pub fn holds(&self, ratio: f64) -> bool {
        match self {
            Bound::AtMost(bound) => ratio <= *bound,
            Bound::AtLeast(bound) => ratio >= *bound,
        }
    }
}

/// Judges every goal. Without a measurement of both sides there is no ratio.
pub fn judge(lines: &[Line]) -> Vec<Goal> {
    let mut goals = Vec::new();
    for &row in MEMORY_ROWS {
        for (against, bound) in wanted(row.op) {
            let ratio = |distance| {
                let own = best(lines, row, distance, |line| line.kind == Kind::Bellwire)?.0;
                let (other, against) = opponent(lines, row, distance, &against)?;
                let ratio = own / other;
                Some(Ratio { ratio, against, met: bound.holds(ratio) })
            };
            let opponent = match against {
                Against::Limit => format!("the limit ({})", row.yardsticks().join(", ")),
                Against::Peer => "the best peer".to_string(),
                Against::PeerIn(other) => format!("the best peer in \"{}\"", other.title()),
                Against::Own(other) => format!("\"{}\"", other.title()),
            };
            goals.push(Goal {
                what: format!("{} / {opponent}", row.title()),
                bound: bound.to_string(),
                near: ratio(Distance::Near),
                far: ratio(Distance::Far),
            });
        }
    }
    goals
}

fn wanted(op: Op) -> Vec<(Against, Bound)> {
    let one_pair = Row { wire: Wire::Memory, op: Op::Rate, bytes: 8 };
    match op {
        Op::Latency => {
            vec![(Against::Limit, Bound::AtMost(1.5)), (Against::Peer, Bound::AtMost(0.8))]
        }
        Op::PutLatency => vec![(Against::Peer, Bound::AtMost(1.0))],
        Op::Rate => vec![(Against::Peer, Bound::AtLeast(2.0))],
        // No peer has a call for several messages, so peers post theirs one by one.
        Op::BatchRate => vec![(Against::PeerIn(one_pair), Bound::AtLeast(2.0))],
        Op::FanIn => vec![(Against::Own(one_pair), Bound::AtLeast(0.8))],
        Op::Stream => {
            vec![(Against::Limit, Bound::AtLeast(0.9)), (Against::Peer, Bound::AtLeast(1.0))]
        }
        Op::PutStream => vec![(Against::Limit, Bound::AtLeast(0.95))],
        Op::BlockingLatency | Op::Idle => Vec::new(),
    }
}

fn opponent(
    lines: &[Line],
    row: Row,
    distance: Distance,
    against: &Against,
) -> Option<(f64, &'static str)> {
    match against {
        Against::Limit => {
            best(lines, row, distance, |line| row.yardsticks().contains(&line.contender))
        }
        Against::Peer => best(lines, row, distance, |line| line.kind == Kind::Peer),
        Against::PeerIn(other) => best(lines, *other, distance, |line| line.kind == Kind::Peer),
        Against::Own(other) => best(lines, *other, distance, |line| line.kind == Kind::Bellwire),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Summary;

    fn line(row: Row, contender: &'static str, kind: Kind, near: f64) -> Line {
        let about = String::new();
        let near = Summary::of(&[near]);
        Line { row, contender, kind, about, unit: row.op.unit(), near, far: None, shares: vec![] }
    }

    /// A goal is compared with the best opponent, in its own class only, and a missed goal counts
    /// as missed.
    #[test]
    fn goals_take_the_best_opponent() {
        let row = Row { wire: Wire::Memory, op: Op::Latency, bytes: 8 };
        let mut lines = vec![
            line(row, "ring", Kind::Limit, 60.0),
            line(row, "slow", Kind::Peer, 500.0),
            line(row, "fast", Kind::Peer, 120.0),
        ];
        assert_eq!(judge(&lines)[0].near, None, "Bellwire was not measured");

        lines.push(line(row, "bellwire", Kind::Bellwire, 90.0));
        let goals = judge(&lines);
        assert_eq!(goals[0].near, Some(Ratio { ratio: 1.5, against: "ring", met: true }));
        let met = false;
        assert_eq!(goals[1].near, Some(Ratio { ratio: 0.75, against: "fast", met: !met }));
        assert_eq!(goals[1].far, None);

        lines.push(line(row, "faster", Kind::Peer, 100.0));
        assert_eq!(judge(&lines)[1].near, Some(Ratio { ratio: 0.9, against: "faster", met }));
    }
}
