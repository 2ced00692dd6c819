//! Maps the links of the joined device to those of its two transports.

use bellwire_device::{FunctionAddress, LinkId, Status};
use std::collections::HashMap;
use std::time::Instant;

/// No link.
const NONE: u32 = u32::MAX;

/// One link of the joined device.
pub(crate) struct Link {
    pub(crate) peer: FunctionAddress,
    pub(crate) way: Way,
    /// It was reported to the engine as down.
    pub(crate) is_down: bool,
}

/// The route of a link's packets.
#[derive(Clone, Copy)]
pub(crate) enum Way {
    /// By this link of the shared memory.
    Near(LinkId),
    /// By this link of the network.
    Far(LinkId),
    /// No route yet: this link of the network is being set up, and the shared memory is retried
    /// from time to time.
    Sought { far: LinkId, search: Search },
    /// The link is down.
    Gone(Status),
}

/// The times of the next retry and of giving up.
#[derive(Clone, Copy)]
pub(crate) struct Search {
    pub(crate) give_up: Instant,
    pub(crate) look: Instant,
    pub(crate) pause_ms: u32,
}

/// All links of a function.
#[derive(Default)]
pub(crate) struct Links {
    entries: Vec<Option<Link>>,
    free: Vec<u32>,
    /// Our numbers, indexed by the numbers of the shared memory and of the network.
    near: Vec<u32>,
    far: Vec<u32>,
    /// The newest link of a peer that is not down.
    by_peer: HashMap<FunctionAddress, u32>,
    /// Links that are not known to be up.
    pub(crate) unsettled: Vec<u32>,
    near_count: usize,
    far_count: usize,
}

impl Links {
    /// The number of links.
    pub(crate) fn count(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// The number of links over the shared memory, and over the network.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.near_count, self.far_count)
    }

    /// The link to `peer` that is not down.
    pub(crate) fn to(&self, peer: FunctionAddress) -> Option<u32> {
        self.by_peer.get(&peer).copied()
    }

    #[inline]
    pub(crate) fn at(&self, number: u32) -> Option<&Link> {
        self.entries.get(number as usize)?.as_ref()
    }

    #[inline]
    pub(crate) fn way(&self, number: u32) -> Option<Way> {
        Some(self.at(number)?.way)
    }

    /// Our number of a link of the shared memory.
    #[inline]
    pub(crate) fn near(&self, link: LinkId) -> Option<u32> {
        self.near.get(link.0 as usize).copied().filter(|&number| number != NONE)
    }

    /// Our number of a link of the network.
    #[inline]
    pub(crate) fn far(&self, link: LinkId) -> Option<u32> {
        self.far.get(link.0 as usize).copied().filter(|&number| number != NONE)
    }

    /// Adds a link, which becomes the one to its peer.
    pub(crate) fn add(&mut self, peer: FunctionAddress, way: Way) -> u32 {
        let number = self.place(Link { peer, way, is_down: false });
        self.by_peer.insert(peer, number);
        self.unsettled.push(number);
        number
    }

    fn place(&mut self, link: Link) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() as u32 - 1
        });
        self.name(link.way, number);
        self.entries[number as usize] = Some(link);
        number
    }

    /// Marks a link as down. `known` is its number. A link that has carried nothing has no number
    /// yet; it gets one, so that the engine can close it.
    pub(crate) fn lost(&mut self, known: Option<u32>, peer: FunctionAddress, way: Way) -> u32 {
        let Some(number) = known else {
            return self.place(Link { peer, way, is_down: true });
        };
        self.lose(number);
        number
    }

    /// Changes the route of a link.
    pub(crate) fn change(&mut self, number: u32, way: Way) {
        let Some(link) = self.entries.get_mut(number as usize).and_then(Option::as_mut) else {
            return;
        };
        let old = std::mem::replace(&mut link.way, way);
        self.name(old, NONE);
        self.name(way, number);
    }

    /// Marks a link as reported down.
    pub(crate) fn lose(&mut self, number: u32) {
        let Some(link) = self.entries.get_mut(number as usize).and_then(Option::as_mut) else {
            return;
        };
        link.is_down = true;
        let peer = link.peer;
        self.leave(peer, number);
    }

    /// Forgets a link and returns it.
    pub(crate) fn remove(&mut self, number: u32) -> Option<Link> {
        let link = self.entries.get_mut(number as usize)?.take()?;
        self.leave(link.peer, number);
        self.name(link.way, NONE);
        self.free.push(number);
        Some(link)
    }

    fn leave(&mut self, peer: FunctionAddress, number: u32) {
        if self.by_peer.get(&peer) == Some(&number) {
            self.by_peer.remove(&peer);
        }
        self.unsettled.retain(|&other| other != number);
    }

    /// Maps the link of this route to our `number`, or to none.
    fn name(&mut self, way: Way, number: u32) {
        let (names, link, count) = match way {
            Way::Near(link) => (&mut self.near, link, &mut self.near_count),
            Way::Far(link) => (&mut self.far, link, &mut self.far_count),
            Way::Sought { far, .. } => {
                return set(&mut self.far, far, number);
            }
            Way::Gone(_) => return,
        };
        set(names, link, number);
        if number == NONE { *count -= 1 } else { *count += 1 }
    }
}

fn set(names: &mut Vec<u32>, link: LinkId, number: u32) {
    let index = link.0 as usize;
    if names.len() <= index {
        names.resize(index + 1, NONE);
    }
    names[index] = number;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A link keeps its number when its route changes. Numbers of both transports are found, and
    /// counts agree.
    #[test]
    fn numbers_outlast_their_ways() {
        let peer = FunctionAddress { node: 7, function: 1 };
        let mut links = Links::default();
        let now = Instant::now();
        let search = Search { give_up: now, look: now, pause_ms: 1 };
        let number = links.add(peer, Way::Sought { far: LinkId(3), search });
        assert_eq!((links.far(LinkId(3)), links.counts()), (Some(number), (0, 0)));
        links.change(number, Way::Near(LinkId(3)));
        assert_eq!((links.far(LinkId(3)), links.near(LinkId(3))), (None, Some(number)));
        assert_eq!((links.counts(), links.to(peer)), ((1, 0), Some(number)));
        let later = links.add(peer, Way::Far(LinkId(0)));
        links.lose(number);
        assert_eq!((links.to(peer), links.counts()), (Some(later), (1, 1)));
        assert!(links.remove(number).is_some_and(|link| link.is_down));
        links.remove(later);
        assert_eq!((links.count(), links.counts(), links.to(peer)), (0, (0, 0), None));
        assert!(links.unsettled.is_empty() && links.remove(later).is_none());
    }
}
