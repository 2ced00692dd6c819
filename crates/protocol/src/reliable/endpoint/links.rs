//! The links of an endpoint: in which slot each is, when it needs service, and what it waits for.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::mem::replace;

use bellwire_wire::frame::FunctionId;

use super::slot_list::SlotList;
use crate::canary::planted;
use crate::reliable::PeerId;
use crate::reliable::interface::NEVER;
use crate::reliable::link::Link;

pub(super) struct Links {
    slots: Vec<Slot>,
    free: Vec<u16>,
    most: u16,
    /// The link that `connect` finds: the newest that is not down.
    pub newest: BTreeMap<FunctionId, PeerId>,
    /// Links that may have a frame to send.
    pub ready: SlotList,
    /// Links with packets to offer again.
    pub deliverable: SlotList,
    /// Links with events to tell.
    pub eventful: SlotList,
    /// When each slot needs service next. Kept apart from the links, so that a scan for expired
    /// timers is cheap.
    pub deadlines_ns: Vec<u64>,
    /// A lower bound of `deadlines_ns`.
    pub next_timer_ns: u64,
}

struct Slot {
    generation: u16,
    link: Option<Box<Link>>,
}

impl Links {
    /// Room for `most` links.
    pub fn new(most: u16) -> Self {
        Links {
            slots: Vec::new(),
            free: Vec::new(),
            most,
            newest: BTreeMap::new(),
            ready: SlotList::default(),
            deliverable: SlotList::default(),
            eventful: SlotList::default(),
            deadlines_ns: Vec::new(),
            next_timer_ns: NEVER,
        }
    }

    /// Takes a free slot, for [`insert`](Self::insert); `None`: all are taken.
    pub fn reserve(&mut self) -> Option<PeerId> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if !self.is_full() => {
                self.slots.push(Slot { generation: 0, link: None });
                self.deadlines_ns.push(NEVER);
                self.slots.len() as u16 - 1
            }
            None => return None,
        };
        let entry = &mut self.slots[slot as usize];
        entry.generation = entry.generation.wrapping_add(1);
        Some(PeerId::new(slot, entry.generation))
    }

    /// Puts a link into its reserved slot.
    pub fn insert(&mut self, link: Link) {
        let slot = link.id.slot();
        self.slots[slot].link = Some(Box::new(link));
    }

    /// Frees a slot; returns the link that was there.
    pub fn remove(&mut self, slot: usize) -> Option<Box<Link>> {
        let link = self.slots[slot].link.take()?;
        self.free.push(slot as u16);
        self.deadlines_ns[slot] = NEVER;
        self.ready.release(slot);
        self.deliverable.release(slot);
        self.eventful.release(slot);
        Some(link)
    }

    /// Whether all slots are taken.
    pub fn is_full(&self) -> bool {
        self.free.is_empty() && self.slots.len() >= self.most as usize
    }

    /// Number of slots, taken or free.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Links that occupy a slot, in any state.
    pub fn count(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    #[inline]
    pub fn at(&self, slot: usize) -> Option<&Link> {
        self.slots.get(slot)?.link.as_deref()
    }

    #[inline]
    pub fn at_mut(&mut self, slot: usize) -> Option<&mut Link> {
        self.slots.get_mut(slot)?.link.as_deref_mut()
    }

    /// The link that the user knows by this number, unless the user has closed it.
    #[inline]
    pub fn get(&self, id: PeerId) -> Option<&Link> {
        self.at(id.slot()).filter(|link| link.id == id && !link.is_closing())
    }

    #[inline]
    pub fn get_mut(&mut self, id: PeerId) -> Option<&mut Link> {
        self.at_mut(id.slot()).filter(|link| link.id == id && !link.is_closing())
    }

    /// All links.
    pub fn iter(&self) -> impl Iterator<Item = &Link> {
        self.slots.iter().filter_map(|slot| slot.link.as_deref())
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Link> {
        self.slots.iter_mut().filter_map(|slot| slot.link.as_deref_mut())
    }

    /// The slot of the link whose frames carry `token`.
    #[inline]
    pub fn slot_of(&self, token: u64) -> Option<usize> {
        let slot = token as usize & 0xffff;
        let link = self.at(slot)?;
        let is_same = link.opening.token == token || planted("reliable-skip-token");
        (is_same && !link.is_down()).then_some(slot)
    }

    /// The newest link to `peer` that is not down.
    pub fn newest(&self, peer: FunctionId) -> Option<PeerId> {
        self.newest.get(&peer).copied()
    }

    /// A link ends: it is not the newest to `peer` any more.
    pub fn retire(&mut self, peer: FunctionId, id: PeerId) {
        if self.newest(peer) == Some(id) {
            self.newest.remove(&peer);
        }
    }

    /// When a link needs service next.
    pub fn deadline_ns(&self) -> u64 {
        self.deadlines_ns.iter().copied().min().unwrap_or(NEVER)
    }

    /// Notes when a link needs service next.
    #[inline]
    pub fn settle_deadline(&mut self, slot: usize) {
        if let Some(link) = self.at(slot) {
            let deadline_ns = link.deadline_ns();
            self.deadlines_ns[slot] = deadline_ns;
            self.next_timer_ns = self.next_timer_ns.min(deadline_ns);
        }
    }

    /// Call it after any change of a link: puts the link on the lists where it belongs.
    #[inline]
    pub fn settle(&mut self, slot: usize) {
        self.settle_deadline(slot);
        let Some(link) = self.slots[slot].link.as_deref_mut() else { return };
        if !self.ready.contains(slot) && link.has_something() {
            self.ready.push(slot);
        }
        let waits = link.backlogs.are_waiting()
            && (link.is_running() || !planted("reliable-end-before-packets"));
        if waits {
            if link.predecessor.is_none() && !link.is_closing() {
                self.deliverable.push(slot);
            }
        } else if link.is_down() && !replace(&mut link.notices.has_ended, true) {
            link.notices.down = true;
            self.eventful.push(slot);
        }
    }
}
