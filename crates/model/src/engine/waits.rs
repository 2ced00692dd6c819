//! Waits between blocks when nothing moves, and the search for a deadlock.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

/// One edge: `waiter` cannot continue before `holder` does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The waiting block, by its printed name: `node 3, input 1, VC 0`.
    pub waiter: String,
    /// The block that holds the resource; empty if it is none of the model.
    pub holder: String,
    /// The resource: `a credit`, `the output VC`.
    pub resource: String,
}

/// All waits of a model at a moment. Blocks add their own; a cycle among them is a deadlock (C-26).
#[derive(Clone, Debug, Default)]
pub struct Waits {
    waits: Vec<Wait>,
}

/// A cycle of waits: each holder is the next waiter, and the last holder is the first waiter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle {
    /// The edges in order.
    pub waits: Vec<Wait>,
}

impl Waits {
    /// Adds a wait of `waiter` for `resource`, held by `holder`; an empty name is no block.
    pub fn add(
        &mut self,
        waiter: impl Into<String>,
        holder: impl Into<String>,
        resource: impl Into<String>,
    ) {
        let (waiter, holder, resource) = (waiter.into(), holder.into(), resource.into());
        self.waits.push(Wait { waiter, holder, resource });
    }

    /// Whether there are no waits.
    pub fn is_empty(&self) -> bool {
        self.waits.is_empty()
    }

    /// All edges, in the order of their addition.
    pub fn all(&self) -> &[Wait] {
        &self.waits
    }

    /// A shortest cycle of waits through the earliest waiter on any cycle, if there is one.
    pub fn cycle(&self) -> Option<Cycle> {
        let mut leaving: BTreeMap<&str, Vec<&Wait>> = BTreeMap::new();
        for wait in &self.waits {
            leaving.entry(&wait.waiter).or_default().push(wait);
        }
        // Waiters that are on no cycle: a search need not pass them.
        let mut outside = BTreeSet::new();
        self.waits.iter().find_map(|wait| {
            let is_new = outside.insert(wait.waiter.as_str());
            is_new.then(|| shortest_cycle(&leaving, &wait.waiter, &outside)).flatten()
        })
    }
}

/// A shortest cycle through `start`: a breadth-first search from there back to it.
fn shortest_cycle<'a>(
    leaving: &BTreeMap<&str, Vec<&'a Wait>>,
    start: &'a str,
    outside: &BTreeSet<&str>,
) -> Option<Cycle> {
    let mut came_by: BTreeMap<&str, &Wait> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(mut at) = queue.pop_front() {
        for &wait in leaving.get(at).into_iter().flatten() {
            if wait.holder == start {
                let mut waits = vec![wait.clone()];
                while at != start {
                    waits.push(came_by[at].clone());
                    at = &came_by[at].waiter;
                }
                waits.reverse();
                return Some(Cycle { waits });
            }
            if !outside.contains(wait.holder.as_str()) && !came_by.contains_key(&*wait.holder) {
                came_by.insert(&wait.holder, wait);
                queue.push_back(&wait.holder);
            }
        }
    }
    None
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} waits for {}", self.waiter, self.resource)?;
        if self.holder.is_empty() { Ok(()) } else { write!(f, ", which {} has", self.holder) }
    }
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "deadlock: {} wait for each other", self.waits.len())?;
        for wait in &self.waits {
            writeln!(f, "  {} waits for {}, held by {}", wait.waiter, wait.resource, wait.holder)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cycle is found among waits that lead into it and out of it, and printed in order.
    #[test]
    fn a_cycle_is_found_and_explained() {
        crate::limit::limited(|| {
            let mut waits = Waits::default();
            assert!(waits.is_empty());
            waits.add("x", "a", "the door");
            assert!(!waits.is_empty());
            waits.add("a", "b", "a credit");
            waits.add("a", "z", "a tag");
            waits.add("b", "c", "a slot");
            waits.add("c", "a", "the bus");
            let cycle = waits.cycle().expect("a, b and c wait for each other");
            let said = cycle.to_string();
            let waiters: Vec<&str> = cycle.waits.iter().map(|wait| &*wait.waiter).collect();
            assert_eq!(waiters, ["a", "b", "c"]);
            assert!(said.contains("a waits for a credit, held by b"), "{said}");
            assert!(said.contains("c waits for the bus, held by a"), "{said}");
            assert!(!said.contains('x'));
        });
    }

    /// A chain of waits is no deadlock.
    #[test]
    fn a_chain_is_not_a_cycle() {
        let mut waits = Waits::default();
        waits.add("a", "b", "r");
        waits.add("b", "c", "r");
        waits.add("a", "c", "r");
        assert_eq!(waits.cycle(), None);
    }
}
