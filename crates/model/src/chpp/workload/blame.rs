//! Why a message-passing program deadlocks: the cycle of waits, or the messages never sent or
//! received.

use crate::engine::Waits;
use crate::goal::{Schedule, Work};

/// At most this many operations are named.
const NAMED: usize = 8;

/// One or more sentences, if an operation has not ended. `states` say of each rank's operations
/// whether they have begun, and ended. `unreceived` are sends, by rank and operation, whose eager
/// messages no receive matched.
pub(super) fn stuck(
    schedule: &Schedule,
    states: &[Vec<(bool, bool)>],
    unreceived: impl Iterator<Item = (usize, usize)>,
) -> Option<String> {
    let open = |rank: usize, at: usize| !states[rank][at].1;
    let name = |rank: usize, at: usize| {
        let operation = &schedule.ranks[rank].operations[at];
        format!("rank {rank}, line {}: {}", operation.line, operation.work)
    };
    let mut waits = Waits::default();
    let mut alone = Vec::new();
    let (mut left, mut all) = (0, 0);
    for (rank, operations) in schedule.ranks.iter().enumerate() {
        for (at, operation) in operations.operations.iter().enumerate() {
            all += 1;
            if !open(rank, at) {
                continue;
            }
            left += 1;
            let begun = states[rank][at].0;
            if !begun {
                for &on in operation.requires.iter().filter(|on| open(rank, **on)) {
                    waits.add(name(rank, at), name(rank, on), "its end");
                }
                for &on in operation.irequires.iter().filter(|on| !states[rank][**on].0) {
                    waits.add(name(rank, at), name(rank, on), "its beginning");
                }
                continue;
            }
            match partner(schedule, states, rank, operation.work) {
                Some((peer, with)) => waits.add(name(rank, at), name(peer, with), "the other side"),
                None => match operation.work {
                    Work::Send { .. } => {
                        alone.push(format!("{} is never received", name(rank, at)))
                    }
                    Work::Receive { .. } => alone.push(format!("{} is never sent", name(rank, at))),
                    Work::Calculate { .. } => {}
                },
            }
        }
    }
    alone.extend(unreceived.map(|(rank, at)| format!("{} is never received", name(rank, at))));
    if left == 0 && alone.is_empty() {
        return None;
    }
    let mut told = match left {
        0 => "the schedule does not fit together".to_owned(),
        _ => format!("the schedule does not end: {left} of {all} operations are not over"),
    };
    if let Some(cycle) = waits.cycle() {
        told += &format!("; {cycle}");
    }
    let more = alone.len().saturating_sub(NAMED);
    for sentence in alone.into_iter().take(NAMED) {
        told += &format!("; {sentence}");
    }
    if more > 0 {
        told += &format!("; and {more} more");
    }
    Some(told)
}

/// The other side of a send or receive that has begun: the peer's first matching operation that has
/// not begun.
fn partner(
    schedule: &Schedule,
    states: &[Vec<(bool, bool)>],
    rank: usize,
    work: Work,
) -> Option<(usize, usize)> {
    let rank = rank as u32;
    let fits = |peer: u32, other: Work| match (work, other) {
        (Work::Send { to, tag, .. }, Work::Receive { from, tag: wanted, .. }) => {
            to == peer
                && from.is_none_or(|from| from == rank)
                && wanted.is_none_or(|wanted| wanted == tag)
        }
        (Work::Receive { from, tag: wanted, .. }, Work::Send { to, tag, .. }) => {
            to == rank
                && from.is_none_or(|from| from == peer)
                && wanted.is_none_or(|wanted| wanted == tag)
        }
        _ => false,
    };
    schedule.ranks.iter().enumerate().find_map(|(peer, operations)| {
        let found = operations
            .operations
            .iter()
            .enumerate()
            .position(|(at, other)| !states[peer][at].0 && fits(peer as u32, other.work));
        found.map(|at| (peer, at))
    })
}
