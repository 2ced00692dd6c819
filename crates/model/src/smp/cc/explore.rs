//! Every reachable state of one line: a few nodes read, write and evict whenever they can, and
//! messages arrive in every possible order.
//!
//! Data is reduced to one fact: whether it is the last write. A write makes all other copies stale,
//! in caches, memory and messages.
//!
//! Nodes are interchangeable (symmetry reduction): states that differ only by a permutation of
//! nodes form one class. The representative of a class has its nodes in ascending order of their
//! state. With four nodes about a twenty-fourth of the states remain.

use std::cmp::Ordering;
use std::collections::{HashMap, VecDeque};

use super::cache::{Access, CacheLine, State};
use super::checker::check_copies;
use super::home::HomeLine;
use super::message::Kind;
use super::{Fault, NODES};

/// The last content written, and any other content.
const FRESH: u64 = 1;
const STALE: u64 = 0;

/// One state of the whole system: caches, directory, and messages in flight. Each direction and
/// channel is a queue.
#[derive(Clone, PartialEq, Eq, Hash)]
struct System {
    caches: Vec<CacheLine>,
    home: HomeLine,
    /// Requests and answers of each node to the home.
    requests: Vec<VecDeque<(Kind, u64)>>,
    answers: Vec<VecDeque<(Kind, u64)>>,
    /// From the home, to each node.
    orders: Vec<VecDeque<(Kind, u64)>>,
}

/// The result of an exploration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explored {
    /// States, modulo permutations of nodes.
    pub classes: usize,
    /// States, with nodes told apart.
    pub states: usize,
    /// Transitions out of the representatives.
    pub steps: usize,
    /// The most messages in flight in one direction and channel.
    pub longest_queue: usize,
}

/// Visits every reachable state of one line in `nodes` caches. In each it checks that copies are
/// coherent, that reads return the last write, and that every message has a transition. It also
/// checks that a state of rest is reachable from every state.
///
/// # Errors
/// A sentence that names the fault.
///
/// # Panics
/// If `nodes` is not 1 to 4.
pub fn explore(nodes: usize, fault: Option<Fault>) -> Result<Explored, String> {
    visit(nodes, fault, System::into_ordered)
}

/// Visits states; `represent` maps each to the representative of its class.
fn visit(
    nodes: usize,
    fault: Option<Fault>,
    represent: fn(System) -> System,
) -> Result<Explored, String> {
    assert!((1..=NODES).contains(&nodes), "1 to 4 nodes");
    let mut first = System {
        caches: vec![CacheLine::default(); nodes],
        home: HomeLine::default(),
        requests: vec![VecDeque::new(); nodes],
        answers: vec![VecDeque::new(); nodes],
        orders: vec![VecDeque::new(); nodes],
    };
    first.home.memory = FRESH;
    let mut numbers: HashMap<System, u32> = HashMap::from([(first.clone(), 0)]);
    let mut came_from: Vec<Vec<u32>> = vec![Vec::new()];
    let mut at_rest = vec![0];
    let mut queue = VecDeque::from([(0, first)]);
    let (mut states, mut steps, mut longest_queue) = (1, 0, 0);
    while let Some((number, system)) = queue.pop_front() {
        for next in system.successors(fault)? {
            next.check()?;
            steps += 1;
            let next = represent(next);
            let count = numbers.len() as u32;
            let entry = *numbers.entry(next.clone()).or_insert(count);
            if entry == count {
                states += next.arrangements();
                longest_queue = longest_queue.max(next.longest_queue());
                came_from.push(Vec::new());
                if next.is_at_rest() {
                    at_rest.push(entry);
                }
                queue.push_back((entry, next));
            }
            came_from[entry as usize].push(number);
        }
    }
    // Search backwards from the states of rest: it must reach every state.
    let mut ends = vec![false; numbers.len()];
    let mut stack = at_rest;
    while let Some(number) = stack.pop() {
        if !std::mem::replace(&mut ends[number as usize], true) {
            stack.extend(&came_from[number as usize]);
        }
    }
    let stuck = ends.iter().filter(|ends| !**ends).count();
    if stuck > 0 {
        return Err(format!("{stuck} of {} states never come to rest", numbers.len()));
    }
    Ok(Explored { classes: numbers.len(), states, steps, longest_queue })
}

impl System {
    fn successors(&self, fault: Option<Fault>) -> Result<Vec<System>, String> {
        let mut found = Vec::new();
        for node in 0..self.caches.len() {
            self.accesses(node, &mut found)?;
            for queue in [Queue::Request, Queue::Answer, Queue::Order] {
                found.extend(self.deliver(node, queue, fault)?);
            }
        }
        Ok(found)
    }

    /// Adds the states after each access that the node's processor can make now.
    fn accesses(&self, node: usize, found: &mut Vec<System>) -> Result<(), String> {
        type Does = fn(&mut CacheLine) -> Access;
        let all: [Does; 3] = [CacheLine::read, |line| line.write(FRESH), CacheLine::evict];
        for (which, does) in all.into_iter().enumerate() {
            let mut next = self.clone();
            let data = next.caches[node].data;
            match does(&mut next.caches[node]) {
                Access::Busy => continue,
                Access::Asks(kind) => next.requests[node].push_back((kind, sent(kind, data))),
                Access::Hit if which == 0 => self.check_read(node)?,
                Access::Hit if which == 1 => next.grow_stale(node),
                Access::Hit => {}
            }
            if next != *self {
                next.forget_unused();
                found.push(next);
            }
        }
        Ok(())
    }

    fn deliver(
        &self,
        node: usize,
        queue: Queue,
        fault: Option<Fault>,
    ) -> Result<Option<System>, String> {
        let mut next = self.clone();
        let from = match queue {
            Queue::Request => &mut next.requests[node],
            Queue::Answer => &mut next.answers[node],
            Queue::Order => &mut next.orders[node],
        };
        let Some((kind, data)) = from.pop_front() else { return Ok(None) };
        if queue != Queue::Order {
            let mut said = Vec::new();
            let handled = next.home.handle(node as u8, kind, data, fault, &mut said);
            handled.map_err(|error| error.to_string())?;
            for (to, kind, data) in said {
                next.orders[usize::from(to)].push_back((kind, data));
            }
            return Ok(Some(next));
        }
        let wanted = next.caches[node].state;
        let answer = next.caches[node].handle(kind, data, fault);
        if let Some(kind) = answer.map_err(|error| error.to_string())? {
            let data = next.caches[node].data;
            next.answers[node].push_back((kind, sent(kind, data)));
        } else if kind != Kind::PutDone {
            // The answer has arrived: the access is done before anything else happens.
            next.check_read(node)?;
            if matches!(wanted, State::WantsExclusive | State::Upgrades) {
                next.caches[node].write(FRESH);
                next.grow_stale(node);
            }
        }
        next.forget_unused();
        Ok(Some(next))
    }

    fn check_read(&self, node: usize) -> Result<(), String> {
        match self.caches[node].data {
            FRESH => Ok(()),
            _ => Err(format!("node {node} reads what was overwritten: {:?}", self.caches)),
        }
    }

    /// A node has written: all other content becomes stale.
    fn grow_stale(&mut self, writer: usize) {
        let queues = [&mut self.requests, &mut self.answers, &mut self.orders];
        for message in queues.into_iter().flatten().flatten() {
            message.1 = STALE;
        }
        self.caches.iter_mut().for_each(|line| line.data = STALE);
        self.home.memory = STALE;
        self.home.replace_data(STALE);
        self.caches[writer].data = FRESH;
    }

    /// Clears content that nothing reads any more, so that it does not distinguish states.
    fn forget_unused(&mut self) {
        for line in &mut self.caches {
            if !line.state.is_readable() && line.state != State::GivesUp {
                line.data = STALE;
            }
        }
    }

    /// The representative of its class: nodes renumbered into ascending order.
    fn into_ordered(mut self) -> System {
        let mut order: Vec<usize> = (0..self.caches.len()).collect();
        order.sort_by(|one, other| self.compare(*one, *other));
        if order.is_sorted() {
            return self;
        }
        let mut numbers = vec![0; order.len()];
        for (number, node) in (0..).zip(&order) {
            numbers[*node] = number;
        }
        self.home.renumber(&numbers);
        self.caches = order.iter().map(|node| self.caches[*node]).collect();
        for queues in [&mut self.requests, &mut self.answers, &mut self.orders] {
            *queues = order.iter().map(|node| std::mem::take(&mut queues[*node])).collect();
        }
        self
    }

    /// Orders two nodes by all of their state.
    fn compare(&self, one: usize, other: usize) -> Ordering {
        self.caches[one]
            .cmp(&self.caches[other])
            .then_with(|| self.requests[one].cmp(&self.requests[other]))
            .then_with(|| self.answers[one].cmp(&self.answers[other]))
            .then_with(|| self.orders[one].cmp(&self.orders[other]))
            .then_with(|| self.home.compare(one as u8, other as u8))
    }

    /// The number of different states that permutations of an ordered state's nodes give.
    fn arrangements(&self) -> usize {
        let (mut ways, mut alike) = (1, 0);
        for node in 0..self.caches.len() {
            let same = node > 0 && self.compare(node - 1, node) == Ordering::Equal;
            alike = if same { alike + 1 } else { 1 };
            // n! over the factorials of the sizes of groups of equal nodes. One node at a time
            // keeps each step a whole number.
            ways = ways * (node + 1) / alike;
        }
        ways
    }

    fn check(&self) -> Result<(), String> {
        check_copies(0, self.caches.iter()).map_err(|error| error.to_string())
    }

    fn longest_queue(&self) -> usize {
        let queues = [&self.requests, &self.answers, &self.orders];
        queues.into_iter().flatten().map(VecDeque::len).max().unwrap_or(0)
    }

    fn is_at_rest(&self) -> bool {
        self.longest_queue() == 0
            && self.home.is_idle()
            && self.caches.iter().all(|line| line.state.is_stable())
    }
}

/// The content of a message; kinds without data get a fixed one.
fn sent(kind: Kind, data: u64) -> u64 {
    if kind.has_data() { data } else { STALE }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Queue {
    Request,
    Answer,
    Order,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Symmetry reduction loses nothing: the classes, each counted with its permutations, add up to
    /// the states found with nodes told apart.
    // shows: S-04
    #[test]
    fn classes_stand_for_all_their_states() {
        for nodes in 1..=3 {
            let told_apart = visit(nodes, None, |system| system).unwrap();
            let ordered = explore(nodes, None).unwrap();
            assert_eq!(ordered.states, told_apart.classes, "{nodes} nodes");
            assert_eq!(ordered.longest_queue, told_apart.longest_queue);
            assert!(nodes == 1 || ordered.classes < told_apart.classes);
        }
    }

    /// Canary: without the ordering of nodes, the counts differ.
    // shows: S-04
    #[test]
    fn a_missing_order_is_noticed() {
        let told_apart = visit(2, None, |system| system).unwrap();
        assert_ne!(told_apart.states, told_apart.classes);
    }
}
