//! The place of each node.

use alloc::collections::BTreeMap;

use crate::canary::planted;

/// Most nodes remembered because they were heard. Nodes that the user asked for have 16 times as
/// many entries.
pub const NEIGHBOURS: usize = 4_096;
const SOUGHT: usize = 16 * NEIGHBOURS;
/// Most nodes remembered of one station. So a station that makes names up evicts its own.
pub const STATION_NEIGHBOURS: usize = 256;

/// Where nodes were last heard. When the table is full, it evicts the node unheard for longest.
#[derive(Clone, Debug)]
pub struct Neighbours<P> {
    known: BTreeMap<u32, Entry<P>>,
    heard: usize,
    clock: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry<P> {
    place: P,
    /// When it was last heard, as a count of such events; `None`: the user asked for it, so it
    /// stays.
    heard_at: Option<u64>,
}

impl<P: Copy + Eq> Neighbours<P> {
    /// The place of a node.
    pub fn place(&self, node: u32) -> Option<P> {
        self.known.get(&node).map(|entry| entry.place)
    }

    /// The user asked for a node by another name, and it answered there.
    pub fn found(&mut self, node: u32, place: P) {
        if self.known.len() - self.heard < SOUGHT {
            self.forget(node);
            self.known.insert(node, Entry { place, heard_at: None });
        }
    }

    /// A node was heard at a place, and has proved that it receives there. `is_same`: whether
    /// another place is of the same station.
    pub fn heard(&mut self, node: u32, place: P, is_same: impl Fn(P) -> bool) {
        self.clock += 1;
        let clock = self.clock;
        if let Some(entry) = self.known.get_mut(&node) {
            entry.place = place;
            entry.heard_at = entry.heard_at.map(|_| clock);
            return;
        }
        let age = |(node, entry): (&u32, &Entry<P>)| Some((entry.heard_at?, *node));
        let of_station = self.known.iter().filter(|(_, entry)| is_same(entry.place));
        let ages = of_station.filter_map(age);
        let (count, oldest) = ages.fold((0, None), |(count, oldest), age| {
            (count + 1, Some(oldest.map_or(age, |oldest: (u64, u32)| oldest.min(age))))
        });
        let evicted = if count >= STATION_NEIGHBOURS {
            oldest
        } else if self.heard >= NEIGHBOURS {
            self.known.iter().filter_map(age).min()
        } else {
            None
        };
        if let Some((_, node)) = evicted.filter(|_| !planted("discovery-endless-nodes")) {
            self.forget(node);
        }
        self.heard += 1;
        self.known.insert(node, Entry { place, heard_at: Some(clock) });
    }

    /// The node does not answer at its place.
    pub fn forget(&mut self, node: u32) {
        if let Some(entry) = self.known.remove(&node) {
            self.heard -= entry.heard_at.is_some() as usize;
        }
    }

    /// Nodes that have a place.
    pub fn count(&self) -> usize {
        self.known.len()
    }
}

impl<P: Copy + Eq> Default for Neighbours<P> {
    fn default() -> Self {
        Neighbours { known: BTreeMap::new(), heard: 0, clock: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made-up nodes evict each other, but neither a node that is heard repeatedly nor one that the
    /// user asked for.
    #[test]
    fn made_up_nodes_are_forgotten() {
        let mut nodes = Neighbours::default();
        nodes.found(1, 1);
        nodes.heard(2, 2, |place| place == 2);
        for node in 10..10_000 {
            // Each from a station of its own.
            nodes.heard(node, node, |place| place == node);
            if node % 1_000 == 0 {
                nodes.heard(2, 3, |place| place == 3);
            }
        }
        assert_eq!((nodes.place(1), nodes.place(2)), (Some(1), Some(3)));
        assert_eq!((nodes.place(10), nodes.place(9_999)), (None, Some(9_999)));
        assert_eq!(nodes.count(), NEIGHBOURS + 1);
        nodes.forget(2);
        assert_eq!((nodes.place(2), nodes.count()), (None, NEIGHBOURS));
    }

    /// A station that makes names up evicts its own, however many.
    #[test]
    fn a_station_evicts_its_own_nodes() {
        let mut nodes = Neighbours::default();
        nodes.heard(2, 'b', |place| place == 'b');
        for node in 10..20_000 {
            nodes.heard(node, 'x', |place| place == 'x');
        }
        assert_eq!((nodes.place(2), nodes.place(10)), (Some('b'), None));
        assert_eq!(nodes.count(), STATION_NEIGHBOURS + 1);
    }
}
