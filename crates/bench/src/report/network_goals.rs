//! Bellwire's goals on a network, as ratios of medians from the same run and class of distance.

use super::goals::{Bound, Goal, Ratio};
use super::{Line, best};
use crate::distance::Distance;
use crate::op::{Op, PAPER_BYTES, Row, Wire};

const ETH_XDP: &str = "bellwire-eth-xdp";
const ETH_PACKET: &str = "bellwire-eth-packet";
const ETH: &[&str] = &[ETH_XDP, ETH_PACKET];
const UDP: &[&str] = &["bellwire-udp"];
const TCP: &str = "tcp";
const RAW_UDP: &str = "raw-udp";

/// One goal: in these rows the best of `own` against `against`.
struct Wanted {
    rows: Vec<Row>,
    own: &'static [&'static str],
    /// `None`: the figure itself is compared with the bound.
    against: Option<&'static str>,
    bound: Bound,
}

/// Judges every goal. Without a measurement of both sides there is no ratio.
pub fn judge(lines: &[Line]) -> Vec<Goal> {
    let mut goals = Vec::new();
    for Wanted { rows, own, against, bound } in wanted() {
        for row in rows {
            let median = |distance, names: &[&str]| {
                best(lines, row, distance, |line| names.contains(&line.contender))
            };
            let ratio = |distance: Distance| {
                let own = median(distance, own)?;
                let ratio = match against {
                    Some(name) => own.0 / median(distance, &[name])?.0,
                    None => own.0,
                };
                Some(Ratio { ratio, against: against.unwrap_or(own.1), met: bound.holds(ratio) })
            };
            let what = match against {
                Some(name) => format!("{}: {} / {name}", row.title(), own.join(" or ")),
                None => {
                    format!("{}: {}, {}", row.title(), own.join(" or "), row.op.unit().symbol())
                }
            };
            let [near, far] = Distance::REPORTED.map(ratio);
            goals.push(Goal { what, bound: bound.to_string(), near, far });
        }
    }
    goals
}

fn wanted() -> Vec<Wanted> {
    let frames = |op, bytes| Row { wire: Wire::Frames1500, op, bytes };
    let jumbo = |bytes| Row { wire: Wire::Frames9000, op: Op::Stream, bytes };
    let spinning =
        || [8, 128, PAPER_BYTES, 4 << 10].map(|bytes| frames(Op::Latency, bytes)).to_vec();
    let goal = |rows, own, against, bound| Wanted { rows, own, against, bound };
    let (most, least) = (Bound::AtMost, Bound::AtLeast);
    let small = || vec![frames(Op::Rate, 8)];
    let full = || vec![frames(Op::Rate, PAPER_BYTES)];
    let slow = || Row { wire: Wire::Slow, op: Op::Stream, bytes: 1 << 20 };
    let large = || vec![jumbo(64 << 10), jumbo(1 << 20)];
    vec![
        goal(spinning(), &[ETH_XDP], Some("raw-xdp"), most(1.25)),
        goal(spinning(), &[ETH_PACKET], Some("raw-packet"), most(1.25)),
        goal(spinning(), ETH, Some(TCP), most(0.5)),
        goal(spinning(), UDP, Some(RAW_UDP), most(1.15)),
        goal(vec![frames(Op::BlockingLatency, 8)], ETH, Some(TCP), most(1.0)),
        goal(vec![frames(Op::BlockingLatency, 8)], UDP, Some(TCP), most(1.0)),
        goal(small(), ETH, Some(TCP), least(10.0)),
        goal(small(), UDP, Some(TCP), least(10.0)),
        goal(full(), &[ETH_XDP], Some("raw-xdp"), least(0.944)),
        goal(full(), &[ETH_PACKET], Some("raw-packet"), least(0.944)),
        goal(full(), ETH, Some(TCP), least(1.0)),
        goal(full(), UDP, Some(TCP), least(1.0)),
        goal(large(), ETH, Some(TCP), least(1.0)),
        goal(large(), UDP, Some(TCP), least(1.0)),
        goal(vec![slow()], &["bellwire-eth-two"], Some("bellwire-eth-one"), least(1.8)),
        goal(vec![frames(Op::Idle, 8)], &[ETH_XDP], None, most(1.0)),
        goal(vec![frames(Op::Idle, 8)], &[ETH_PACKET], None, most(1.0)),
        goal(vec![frames(Op::Idle, 8)], UDP, None, most(1.0)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contenders::Kind;
    use crate::statistics::Summary;

    /// A goal is compared with the contender that it names, in its own row and class, and a missed
    /// goal counts as missed.
    #[test]
    fn goals_name_their_opponents() {
        let line = |row: Row, contender, kind, far| Line {
            row,
            contender,
            kind,
            about: String::new(),
            unit: row.op.unit(),
            near: None,
            far: Summary::of(&[far]),
            shares: vec![],
        };
        let row = Row { wire: Wire::Frames1500, op: Op::Latency, bytes: 8 };
        let idle = Row { wire: Wire::Frames1500, op: Op::Idle, bytes: 8 };
        let goals = judge(&[
            line(row, "raw-xdp", Kind::Limit, 2000.0),
            line(row, "raw-packet", Kind::Limit, 1000.0),
            line(row, ETH_XDP, Kind::Bellwire, 2600.0),
            line(row, TCP, Kind::Peer, 6500.0),
            line(idle, ETH_XDP, Kind::Bellwire, 0.5),
        ]);
        let judged: Vec<_> = goals.iter().filter_map(|goal| goal.far.clone()).collect();
        let ratio = |ratio, against, met| Ratio { ratio, against, met };
        assert_eq!(
            judged,
            [ratio(1.3, "raw-xdp", false), ratio(0.4, TCP, true), ratio(0.5, ETH_XDP, true)]
        );
        assert!(goals.iter().all(|goal| goal.near.is_none()));
    }
}
