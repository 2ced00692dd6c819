//! Random accesses of four nodes over a network without time. The next message to arrive is random,
//! within the order of each direction and channel. The tests of the system have links and time;
//! this one is faster and tries more orders.

use std::collections::VecDeque;

use crate::engine::{Random, nth_set};

use super::checker::{Golden, check_copies};
use super::message::Message;
use super::unit::{Outcome, Unit, Want};
use super::{Fault, NODES};

/// The parameters of a trial.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    /// Lines: few cause contention, many cause evictions.
    pub lines: u32,
    /// Lines in a cache.
    pub capacity: usize,
    /// Total accesses.
    pub accesses: u64,
    /// The most waiting accesses of a node.
    pub waiting: usize,
    /// The seed of all random draws.
    pub seed: u64,
    /// The planted fault.
    pub fault: Option<Fault>,
}

/// The result of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tried {
    /// Accesses done at once.
    pub hits: u64,
    /// Accesses that waited.
    pub misses: u64,
    /// Messages delivered.
    pub messages: u64,
    /// The most steps that one access waited.
    pub longest_wait: u64,
}

/// Steps after which a waiting access counts as lost.
const PATIENCE: u64 = 100_000;

/// Makes random accesses and checks each step.
///
/// # Errors
/// A sentence that names the fault: incoherent copies, a stale read, a message without transition,
/// or an access that never completes.
pub fn try_randomly(trial: &Trial) -> Result<Tried, String> {
    let mut random = Random::new(trial.seed);
    let unit = |node| Unit::new(node as u8, NODES as u8, trial.lines, trial.capacity, trial.fault);
    let mut units: Vec<Unit> = (0..NODES).map(unit).collect();
    let mut ways: Vec<VecDeque<Message>> = vec![VecDeque::new(); NODES * NODES * 2];
    let mut busy_ways = 0u64;
    let mut golden = Golden::new(trial.lines as usize);
    let mut waiting: Vec<Vec<(u32, u64)>> = vec![Vec::new(); NODES];
    let mut tried = Tried { hits: 0, misses: 0, messages: 0, longest_wait: 0 };
    let mut out = Vec::new();
    let mut step = 0u64;
    let mut left = trial.accesses;
    let mut last_progress = 0;
    while left > 0 || busy_ways != 0 {
        step += 1;
        if step - last_progress > PATIENCE {
            return Err("no access is done and no message is on its way".into());
        }
        if left > 0 && (busy_ways == 0 || random.below(3) > 0) {
            let node = random.below(NODES as u64) as usize;
            let line = random.below(trial.lines.into()) as u32;
            if waiting[node].len() < trial.waiting {
                let is_write = random.below(3) == 0;
                let want = if is_write { Want::Write(golden.fresh()) } else { Want::Read };
                match units[node].access(line, want, &mut out) {
                    Outcome::Busy => {}
                    Outcome::Waits => {
                        left -= 1;
                        tried.misses += 1;
                        waiting[node].push((line, step));
                    }
                    Outcome::Done(data) => {
                        left -= 1;
                        last_progress = step;
                        tried.hits += 1;
                        settle(&mut golden, node, line, want, data)?;
                    }
                }
                check(line, &units)?;
            }
            if let Some((line, _)) = waiting[node].iter().find(|one| step - one.1 > PATIENCE) {
                return Err(format!("node {node} waits for line {line} for ever"));
            }
        } else {
            let way = nth_set(busy_ways, random.below(busy_ways.count_ones().into()) as u32);
            let message = ways[way].pop_front().expect("its bit is set");
            if ways[way].is_empty() {
                busy_ways &= !(1 << way);
            }
            tried.messages += 1;
            let node = usize::from(message.to);
            let done = units[node].handle(message, &mut out).map_err(|error| error.to_string())?;
            if let Some(done) = done {
                settle(&mut golden, node, done.line, done.want, done.data)?;
                let at = waiting[node].iter().position(|one| one.0 == done.line);
                let (_, since) = waiting[node].swap_remove(at.expect("it waited"));
                tried.longest_wait = tried.longest_wait.max(step - since);
            }
            check(message.line, &units)?;
        }
        if !out.is_empty() || busy_ways != 0 {
            last_progress = step;
        }
        for message in out.drain(..) {
            let pair = usize::from(message.from) * NODES + usize::from(message.to);
            let way = pair * 2 + usize::from(message.kind.channel());
            ways[way].push_back(message);
            busy_ways |= 1 << way;
        }
    }
    if waiting.iter().any(|waiting| !waiting.is_empty()) || !units.iter().all(Unit::is_idle) {
        return Err("something waits, and no message is on its way".into());
    }
    Ok(tried)
}

fn settle(
    golden: &mut Golden,
    node: usize,
    line: u32,
    want: Want,
    data: u64,
) -> Result<(), String> {
    match want {
        Want::Read => golden.read(node as u8, line, data).map_err(|error| error.to_string()),
        Want::Write(value) => {
            golden.wrote(line, value);
            Ok(())
        }
    }
}

fn check(line: u32, units: &[Unit]) -> Result<(), String> {
    check_copies(line, units.iter().map(|unit| unit.cached(line)))
        .map_err(|error| error.to_string())
}
