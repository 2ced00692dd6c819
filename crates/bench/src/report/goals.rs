//! Bellwire's goals in shared memory, and the judgement of all goals, as ratios of medians from the
//! same run and class of distance.

use serde::Serialize;

use super::{Line, best, network_goals};
use crate::contenders::Kind;
use crate::distance::Distance;
use crate::op::{MEMORY_ROWS, Op, Row, Wire};

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Goal {
    /// The two sides of the comparison.
    pub what: String,
    /// The bound: `at most 1.5`, or `at least 2; far 1.5`.
    pub bound: String,
    /// The ratio of near medians, and its opponent.
    pub near: Option<Ratio>,
    /// The ratio of far medians, and its opponent.
    pub far: Option<Ratio>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// Bellwire's median divided by the opponent's.
    pub ratio: f64,
    /// The opponent's name.
    pub against: &'static str,
    /// Whether the bound is kept.
    pub met: bool,
}

/// A goal to be judged.
pub(super) struct Wanted {
    pub what: String,
    pub row: Row,
    pub own: Among,
    /// The opponents and their row. `None`: the figure itself is compared with the bound.
    pub against: Option<(Row, Among)>,
    pub bound: Bounds,
}

/// The contenders on one side of a comparison, of which the best counts.
#[derive(Clone, Copy)]
pub(super) enum Among {
    Kind(Kind),
    Names(&'static [&'static str]),
}

impl Among {
    fn has(self, line: &Line) -> bool {
        match self {
            Among::Kind(kind) => line.kind == kind,
            Among::Names(names) => names.contains(&line.contender),
        }
    }
}

#[derive(Clone, Copy)]
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

/// The bounds with near and with far cores.
#[derive(Clone, Copy)]
pub(super) struct Bounds(pub [Bound; 2]);

impl From<Bound> for Bounds {
    fn from(both: Bound) -> Bounds {
        Bounds([both; 2])
    }
}

impl std::fmt::Display for Bounds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Bounds([near, far]) = self;
        let (Bound::AtMost(a) | Bound::AtLeast(a)) = *near;
        let (Bound::AtMost(b) | Bound::AtLeast(b)) = *far;
        if a == b { near.fmt(f) } else { write!(f, "{near}; far {b}") }
    }
}

/// Judges every goal. Without a measurement of both sides there is no ratio.
pub fn judge(lines: &[Line]) -> Vec<Goal> {
    let verdict = |Wanted { what, row, own, against, bound }| {
        let ratio = |(distance, bound): (Distance, Bound)| {
            let best_of = |row, among: Among| best(lines, row, distance, |line| among.has(line));
            let own = best_of(row, own)?;
            let other = match against {
                Some((row, among)) => best_of(row, among)?,
                None => (1.0, own.1),
            };
            let ratio = own.0 / other.0;
            Some(Ratio { ratio, against: other.1, met: bound.holds(ratio) })
        };
        let [near, far] = Distance::REPORTED;
        let Bounds(bounds) = bound;
        let (near, far) = (ratio((near, bounds[0])), ratio((far, bounds[1])));
        Goal { what, bound: bound.to_string(), near, far }
    };
    MEMORY_ROWS
        .iter()
        .flat_map(|&row| wanted(row))
        .chain(network_goals::wanted())
        .map(verdict)
        .collect()
}

/// The goals of a row of shared memory.
fn wanted(row: Row) -> Vec<Wanted> {
    let one_pair = Row { wire: Wire::Memory, op: Op::Rate, bytes: 8 };
    let own = Among::Kind(Kind::Bellwire);
    let goal = |opponent: String, other, among, bound: Bounds| Wanted {
        what: format!("{} / {opponent}", row.title()),
        row,
        own,
        against: Some((other, among)),
        bound,
    };
    let limit = |bound| {
        let names = row.yardsticks();
        goal(format!("the limit ({})", names.join(", ")), row, Among::Names(names), bound)
    };
    let peers = Among::Kind(Kind::Peer);
    let peer = |bound| goal("the best peer".to_string(), row, peers, bound);
    let most = |near, far| Bounds([near, far].map(Bound::AtMost));
    let least = |near, far| Bounds([near, far].map(Bound::AtLeast));
    match row.op {
        Op::Latency => vec![limit(most(1.25, 1.05)), peer(most(0.85, 0.75))],
        Op::PutLatency => vec![peer(most(0.95, 0.95))],
        Op::PutRate => vec![peer(least(1.2, 1.2))],
        Op::Rate => vec![peer(least(2.0, 1.5))],
        // No peer has a call for several messages, so peers post theirs one by one.
        Op::BatchRate => {
            let opponent = format!("the best peer in \"{}\"", one_pair.title());
            vec![goal(opponent, one_pair, peers, least(3.0, 4.0))]
        }
        Op::FanIn => {
            vec![goal(format!("\"{}\"", one_pair.title()), one_pair, own, least(0.8, 0.8))]
        }
        Op::Stream => vec![limit(least(0.9, 0.9)), peer(least(1.0, 1.0))],
        Op::PutStream => vec![limit(least(0.95, 0.95))],
        Op::BlockingLatency | Op::Tail | Op::Idle => Vec::new(),
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

        lines.push(line(row, "bellwire", Kind::Bellwire, 75.0));
        let goals = judge(&lines);
        assert_eq!(goals[0].near, Some(Ratio { ratio: 1.25, against: "ring", met: true }));
        let met = false;
        assert_eq!(goals[1].near, Some(Ratio { ratio: 0.625, against: "fast", met: !met }));
        assert_eq!(goals[1].far, None);

        lines.push(line(row, "faster", Kind::Peer, 80.0));
        assert_eq!(judge(&lines)[1].near, Some(Ratio { ratio: 0.9375, against: "faster", met }));
    }
}
