//! Which link leads to which peer.

use super::outbox::Outbox;
use super::undelivered::Undelivered;
use super::windows::Windows;
use bellwire_device::{FunctionAddress, LinkId, Status};
use std::collections::{HashMap, VecDeque};

/// Entries of the small cache in front of the map of peers; a power of two.
const CACHE_ENTRIES: usize = 64;
/// "No link", in the cache.
const NONE: LinkId = LinkId(u32::MAX);

/// The links of a function, by the device's numbers.
pub(crate) struct Links {
    entries: Vec<Option<Link>>,
    by_peer: HashMap<FunctionAddress, LinkId>,
    /// Direct-mapped, so that a connectionless send finds its link without hashing.
    cache: [(FunctionAddress, LinkId); CACHE_ENTRIES],
    generations: u32,
    /// Grows whenever a link is forgotten: earlier look-ups are then stale.
    pub(crate) epoch: u64,
    /// Links with something in their outbox.
    pub(crate) outgoing: VecDeque<LinkId>,
    /// Windows into regions of these peers.
    pub(super) windows: Windows,
}

/// One link.
pub(crate) struct Link {
    pub(crate) peer: FunctionAddress,
    /// Distinguishes it from an earlier link of the same number.
    pub(crate) generation: u32,
    pub(crate) outbox: Outbox,
    /// Our undelivered messages, in the order of posting.
    pub(crate) undelivered: VecDeque<Undelivered>,
    /// The peer's puts with a failed piece, until their last piece arrives.
    pub(crate) failed_puts: VecDeque<(u64, Status)>,
    /// Bytes taken from the batch at the front of the link; the rest had no room. 0: no such batch.
    pub(crate) in_batch: usize,
}

impl Links {
    pub(crate) fn new() -> Self {
        Links {
            entries: Vec::new(),
            by_peer: HashMap::new(),
            cache: [(FunctionAddress { node: 0, function: 0 }, NONE); CACHE_ENTRIES],
            generations: 0,
            epoch: 1,
            outgoing: VecDeque::new(),
            windows: Windows::new(),
        }
    }

    fn place(peer: FunctionAddress) -> usize {
        (peer.node as usize).wrapping_mul(8).wrapping_add(peer.function as usize) % CACHE_ENTRIES
    }

    /// The link to `peer`, if it is in the cache.
    #[inline(always)]
    pub(crate) fn cached(&self, peer: FunctionAddress) -> Option<LinkId> {
        let place = &self.cache[Self::place(peer)];
        (place.0 == peer && place.1 != NONE).then_some(place.1)
    }

    /// The link to `peer`, if there is one.
    pub(crate) fn to(&mut self, peer: FunctionAddress) -> Option<LinkId> {
        if let Some(link) = self.cached(peer) {
            return Some(link);
        }
        let link = *self.by_peer.get(&peer)?;
        self.cache[Self::place(peer)] = (peer, link);
        Some(link)
    }

    /// Remembers a link; `true` if it is new.
    pub(crate) fn learn(&mut self, link: LinkId, peer: FunctionAddress) -> bool {
        let index = link.0 as usize;
        if self.entries.len() <= index {
            self.entries.resize_with(index + 1, || None);
        }
        if self.entries[index].is_some() {
            return false;
        }
        self.generations += 1;
        self.entries[index] = Some(Link {
            peer,
            generation: self.generations,
            outbox: Outbox::default(),
            undelivered: VecDeque::new(),
            failed_puts: VecDeque::new(),
            in_batch: 0,
        });
        self.by_peer.entry(peer).or_insert(link);
        true
    }

    #[inline]
    pub(crate) fn find(&self, link: LinkId) -> Option<&Link> {
        self.entries.get(link.0 as usize)?.as_ref()
    }

    #[inline]
    pub(crate) fn find_mut(&mut self, link: LinkId) -> Option<&mut Link> {
        self.entries.get_mut(link.0 as usize)?.as_mut()
    }

    /// Our undelivered messages.
    pub(crate) fn undelivered(&self) -> impl Iterator<Item = &Undelivered> {
        self.entries.iter().flatten().flat_map(|link| &link.undelivered)
    }

    /// Takes out the undelivered messages of one queue pair.
    pub(crate) fn take_undelivered(&mut self, slot: u32) -> Vec<Undelivered> {
        let mut taken = Vec::new();
        for link in self.entries.iter_mut().flatten() {
            for _ in 0..link.undelivered.len() {
                match link.undelivered.pop_front() {
                    Some(message) if message.slot == slot => taken.push(message),
                    Some(message) => link.undelivered.push_back(message),
                    None => break,
                }
            }
        }
        taken
    }

    /// Forgets a link.
    pub(crate) fn forget(&mut self, link: LinkId) -> Option<Link> {
        let gone = self.entries.get_mut(link.0 as usize)?.take()?;
        self.epoch += 1;
        if self.by_peer.get(&gone.peer) == Some(&link) {
            self.by_peer.remove(&gone.peer);
        }
        let place = &mut self.cache[Self::place(gone.peer)];
        if place.1 == link {
            place.1 = NONE;
        }
        self.outgoing.retain(|&listed| listed != link);
        self.windows.close(gone.peer);
        Some(gone)
    }
}
