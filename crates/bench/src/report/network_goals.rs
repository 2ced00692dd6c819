//! Bellwire's goals on a network.

use super::goals::{Among, Bound, Bounds, Wanted};
use crate::op::{Op, PAPER_BYTES, Row, Wire};

const ETH_XDP: &str = "bellwire-eth-xdp";
const ETH_PACKET: &str = "bellwire-eth-packet";
const ETH: &[&str] = &[ETH_XDP, ETH_PACKET];
const UDP: &[&str] = &["bellwire-udp"];
const TCP: &[&str] = &["tcp"];
const UCX: &[&str] = &["ucx-newest-tcp"];
const ETH_KEYED: &[&str] = &["bellwire-eth-xdp-key"];
const ETH_AGENT: &[&str] = &["bellwire-eth-agent"];
const UDP_KEYED: &[&str] = &["bellwire-udp-key"];

pub fn wanted() -> Vec<Wanted> {
    let frames = |op, bytes| Row { wire: Wire::Frames1500, op, bytes };
    let jumbo = |bytes| Row { wire: Wire::Frames9000, op: Op::Stream, bytes };
    let short = || [8, 128, PAPER_BYTES].map(|bytes| frames(Op::Latency, bytes)).to_vec();
    let long = || vec![frames(Op::Latency, 4 << 10)];
    let spinning = || [short(), long()].concat();
    let goal =
        |rows: Vec<Row>, own: &'static [_], against: Option<&'static [&'static str]>, bound| {
            rows.into_iter().map(move |row| {
                let sides = format!("{}: {}", row.title(), own.join(" or "));
                let what = match against {
                    Some(names) => format!("{sides} / {}", names[0]),
                    None => format!("{sides}, {}", row.op.unit().symbol()),
                };
                let against = against.map(|names| (row, Among::Names(names)));
                Wanted { what, row, own: Among::Names(own), against, bound: Bounds::from(bound) }
            })
        };
    let (most, least) = (Bound::AtMost, Bound::AtLeast);
    let small = || vec![frames(Op::Rate, 8)];
    let full = || vec![frames(Op::Rate, PAPER_BYTES)];
    let slow = || Row { wire: Wire::Slow, op: Op::Stream, bytes: 1 << 20 };
    let tail = || Row { wire: Wire::Slow, op: Op::Tail, bytes: 1 << 10 };
    let streams = || vec![frames(Op::Stream, 64 << 10), frames(Op::Stream, 1 << 20)];
    let lone = || vec![frames(Op::Latency, 8)];
    let large = || vec![jumbo(64 << 10), jumbo(1 << 20)];
    [
        goal(short(), &[ETH_XDP], Some(&["raw-xdp"]), most(1.2)),
        goal(long(), &[ETH_XDP], Some(&["raw-xdp"]), most(1.25)),
        goal(short(), &[ETH_PACKET], Some(&["raw-packet"]), most(1.2)),
        goal(long(), &[ETH_PACKET], Some(&["raw-packet"]), most(1.25)),
        goal(spinning(), ETH, Some(TCP), most(0.5)),
        goal(short(), UDP, Some(&["raw-udp"]), most(1.1)),
        goal(long(), UDP, Some(&["raw-udp"]), most(1.15)),
        goal(vec![frames(Op::BlockingLatency, 8)], ETH, Some(TCP), most(1.0)),
        goal(vec![frames(Op::BlockingLatency, 8)], UDP, Some(TCP), most(1.0)),
        goal(small(), ETH, Some(TCP), least(10.0)),
        goal(small(), UDP, Some(TCP), least(10.0)),
        goal(full(), &[ETH_XDP], Some(&["raw-xdp"]), least(0.944)),
        goal(full(), &[ETH_PACKET], Some(&["raw-packet"]), least(0.944)),
        goal(full(), ETH, Some(TCP), least(1.0)),
        goal(full(), UDP, Some(TCP), least(1.0)),
        goal(large(), ETH, Some(TCP), least(1.0)),
        goal(streams(), UDP, Some(TCP), least(1.1)),
        goal(streams(), UDP, Some(UCX), least(1.0)),
        goal(large(), UDP, Some(TCP), least(1.1)),
        goal(large(), UDP, Some(UCX), least(1.0)),
        goal(lone(), ETH_KEYED, Some(&[ETH_XDP]), most(1.15)),
        goal(lone(), UDP_KEYED, Some(UDP), most(1.15)),
        goal(lone(), ETH_AGENT, Some(&[ETH_PACKET]), most(1.15)),
        goal(full(), ETH_AGENT, Some(&[ETH_PACKET]), least(0.85)),
        goal(full(), ETH_KEYED, Some(&[ETH_XDP]), least(0.85)),
        goal(full(), UDP_KEYED, Some(UDP), least(0.85)),
        goal(streams(), ETH_KEYED, Some(&[ETH_XDP]), least(0.8)),
        goal(streams(), UDP_KEYED, Some(UDP), least(0.8)),
        goal(vec![tail()], UDP, Some(TCP), most(1.0)),
        goal(vec![tail()], &["bellwire-eth-one"], Some(TCP), most(1.0)),
        goal(vec![slow()], &["bellwire-eth-two"], Some(&["bellwire-eth-one"]), least(1.8)),
        goal(vec![frames(Op::Idle, 8)], &[ETH_XDP], None, most(1.0)),
        goal(vec![frames(Op::Idle, 8)], &[ETH_PACKET], None, most(1.0)),
        goal(vec![frames(Op::Idle, 8)], UDP, None, most(1.0)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::super::Line;
    use super::super::goals::{Ratio, judge};
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
            line(row, "tcp", Kind::Peer, 6500.0),
            line(idle, ETH_XDP, Kind::Bellwire, 0.5),
        ]);
        let judged: Vec<_> = goals.iter().filter_map(|goal| goal.far.clone()).collect();
        let ratio = |ratio, against, met| Ratio { ratio, against, met };
        assert_eq!(
            judged,
            [ratio(1.3, "raw-xdp", false), ratio(0.4, "tcp", true), ratio(0.5, ETH_XDP, true)]
        );
        assert!(goals.iter().all(|goal| goal.near.is_none()));
    }
}
