//! Waits between blocks when nothing moves, and the search for a deadlock.

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
        // Maps names to numbers in sorted order: the answer depends only on the edges.
        let mut names: Vec<&str> = Vec::new();
        for wait in &self.waits {
            names.extend([wait.waiter.as_str(), wait.holder.as_str()]);
        }
        names.sort_unstable();
        names.dedup();
        let number = |name: &str| names.binary_search(&name).expect("all names are listed");
        let ends: Vec<(usize, usize)> =
            self.waits.iter().map(|wait| (number(&wait.waiter), number(&wait.holder))).collect();
        let mut leaving = vec![Vec::new(); names.len()];
        for (edge, &(from, _)) in ends.iter().enumerate() {
            leaving[from].push(edge);
        }
        let on_cycle = on_cycles(&leaving, &ends);
        let start = ends.iter().map(|&(from, _)| from).find(|&node| on_cycle[node])?;
        // Breadth-first search from the start back to itself, among nodes on cycles.
        let mut came_by = vec![None; names.len()];
        let mut queue = std::collections::VecDeque::from([start]);
        while let Some(node) = queue.pop_front() {
            for &edge in &leaving[node] {
                let to = ends[edge].1;
                if to == start {
                    let mut edges = vec![edge];
                    let mut at = node;
                    while at != start {
                        let edge: usize = came_by[at].expect("reached by some edge");
                        edges.push(edge);
                        at = ends[edge].0;
                    }
                    edges.reverse();
                    let waits = edges.into_iter().map(|edge| self.waits[edge].clone()).collect();
                    return Some(Cycle { waits });
                }
                if on_cycle[to] && came_by[to].is_none() {
                    came_by[to] = Some(edge);
                    queue.push_back(to);
                }
            }
        }
        None
    }
}

/// The nodes on a cycle. Removing nodes without an outgoing edge leaves the nodes that lead into a
/// cycle. So a search from each remaining node decides.
fn on_cycles(leaving: &[Vec<usize>], ends: &[(usize, usize)]) -> Vec<bool> {
    let mut out_degree: Vec<usize> = leaving.iter().map(Vec::len).collect();
    let mut entering = vec![Vec::new(); leaving.len()];
    for &(from, to) in ends {
        entering[to].push(from);
    }
    // A node that waits only for nodes without waits will continue: remove it.
    let mut done: Vec<usize> = (0..leaving.len()).filter(|&node| out_degree[node] == 0).collect();
    let mut alive = vec![true; leaving.len()];
    while let Some(node) = done.pop() {
        alive[node] = false;
        for &from in &entering[node] {
            out_degree[from] -= 1;
            if out_degree[from] == 0 {
                done.push(from);
            }
        }
    }
    (0..leaving.len()).map(|start| alive[start] && reaches_itself(start, leaving, ends)).collect()
}

fn reaches_itself(start: usize, leaving: &[Vec<usize>], ends: &[(usize, usize)]) -> bool {
    let mut seen = vec![false; leaving.len()];
    let mut stack = vec![start];
    while let Some(node) = stack.pop() {
        for &edge in &leaving[node] {
            let to = ends[edge].1;
            if to == start {
                return true;
            }
            if !seen[to] {
                seen[to] = true;
                stack.push(to);
            }
        }
    }
    false
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
        let mut waits = Waits::default();
        waits.add("x", "a", "the door");
        waits.add("a", "b", "a credit");
        waits.add("a", "z", "a tag");
        waits.add("b", "c", "a slot");
        waits.add("c", "a", "the bus");
        let cycle = waits.cycle().expect("a, b and c wait for each other");
        let said = cycle.to_string();
        assert_eq!(cycle.waits.len(), 3);
        assert!(said.contains("a waits for a credit, held by b"), "{said}");
        assert!(said.contains("c waits for the bus, held by a"), "{said}");
        assert!(!said.contains('x'));
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
