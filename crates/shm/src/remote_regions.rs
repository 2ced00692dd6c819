//! Put, get and atomics on one peer's regions, without the peer's help.

use crate::attach::Process;
use crate::control::{Control, Introduction};
use crate::key::{KeyHash, RegionInfo};
use crate::mapping;
use crate::pages::whole_pages;
use crate::regions::is_writable;
use bellwire_device::{Direct, RemoteKey, Rights, Status, Window};
use bellwire_ring::board::Board;
use bellwire_ring::canary::planted;
use bellwire_ring::lane::LaneSender;
use bellwire_ring::memory::{Memory, View};
use bellwire_ring::segment::Segment;
use bellwire_ring::steps::step;
use std::os::fd::OwnedFd;

/// A part of a region: offset and length, in bytes.
pub type Range = (u64, usize);

/// How we reach a region.
enum Reach {
    /// We asked to map it.
    Asked { key: u64, stamp: u64 },
    /// It is mapped, or its whole pages are: the bytes from `offset` on. The kernel copies what is
    /// beside them.
    Mapped { key: u64, stamp: u64, region: RegionInfo, memory: Memory, offset: usize },
    /// The kernel copies for us.
    Attached { key: u64, stamp: u64, region: RegionInfo, process: Process },
    /// Only its owner can access it.
    ByPacket { key: u64, stamp: u64 },
}

/// Numbers of regions: mapped, reached by the kernel's copies, and by packets.
type Ways = [u64; 3];

impl Reach {
    /// Its place in [`Ways`].
    fn way(&self) -> Option<usize> {
        match self {
            Reach::Asked { .. } => None,
            Reach::Mapped { .. } => Some(0),
            Reach::Attached { .. } => Some(1),
            Reach::ByPacket { .. } => Some(2),
        }
    }

    fn identity(&self) -> (u64, u64) {
        match *self {
            Reach::Asked { key, stamp }
            | Reach::Mapped { key, stamp, .. }
            | Reach::Attached { key, stamp, .. }
            | Reach::ByPacket { key, stamp } => (key, stamp),
        }
    }
}

/// Whether `range` lies inside `whole` bytes, and `needed` inside `rights`.
#[inline]
fn allow(rights: Rights, needed: Rights, whole: u64, range: Range) -> Result<(), Direct> {
    let (offset, length) = (range.0, range.1 as u64);
    if !rights.contains(needed) && !planted("rights-ignored") {
        return Err(Direct::Refused(Status::NotPermitted));
    }
    // The planted fault is realistic: it moves the end by a word.
    let whole = if planted("wrong-bounds") { whole.saturating_add(8) } else { whole };
    if offset > whole || length > whole - offset {
        return Err(Direct::Refused(Status::OutOfBounds));
    }
    Ok(())
}

/// The peer's process, if the kernel lets us reach its memory.
fn reachable(known: &mut Option<Option<Process>>, pid: i32, peer: Introduction) -> Option<Process> {
    *known.get_or_insert_with(|| Process::probe(pid, peer.probe_address, peer.probe_value))
}

/// A part of a region, in up to three pieces.
struct Pieces<'a> {
    /// What is mapped, and where it begins in the part.
    mapped: Option<(View<'a>, usize)>,
    /// The bytes of the part before what is mapped, and behind it; all of them if nothing is.
    beside: [Bytes; 2],
}

/// Some bytes of a part.
pub type Bytes = std::ops::Range<usize>;

impl<'a> Pieces<'a> {
    /// `pages`: what is mapped of the region, and where it begins there.
    fn of(part: Bytes, pages: Option<(View<'a>, usize)>) -> Pieces<'a> {
        let length = part.len();
        let nothing = Pieces { mapped: None, beside: [0..length, length..length] };
        let Some((view, offset)) = pages else { return nothing };
        if length == 0 {
            return Pieces { mapped: Some((View::empty(), 0)), ..nothing };
        }
        let (first, end) = (part.start.max(offset), part.end.min(offset + view.len()));
        if first >= end {
            return nothing;
        }
        let inside = view.part(first - offset, end - first).expect("both are inside");
        let (before, behind) = (first - part.start, end - part.start);
        Pieces { mapped: Some((inside, before)), beside: [0..before, behind..length] }
    }
}

/// The regions of one peer.
pub struct RemoteRegions {
    peer: Introduction,
    pid: i32,
    /// The peer's process, if the kernel lets us reach its memory; probed on first use.
    process: Option<Option<Process>>,
    board: Board<Segment>,
    /// The regions that were used, by index.
    used: Vec<Option<Reach>>,
    /// Counted whenever `used` changes: its table is long, and the counters are read often.
    ways: Ways,
}

impl RemoteRegions {
    /// The regions that `board` shows, of the peer in process `pid`; 0 if that is unknown.
    pub fn new(peer: Introduction, pid: i32, board: Board<Segment>) -> RemoteRegions {
        RemoteRegions { peer, pid, process: None, board, used: Vec::new(), ways: [0; 3] }
    }

    /// The regions that were used.
    pub fn by_way(&self) -> Ways {
        self.ways
    }

    /// Enters how the region at an index is reached, and forgets how that was before.
    fn set(&mut self, slot: usize, reach: Option<Reach>) {
        if self.used.len() <= slot {
            if reach.is_none() {
                return;
            }
            self.used.resize_with(slot + 1, || None);
        }
        let before = std::mem::replace(&mut self.used[slot], reach);
        if let Some(way) = before.and_then(|reach| reach.way()) {
            self.ways[way] -= 1;
        }
        if let Some(way) = self.used[slot].as_ref().and_then(Reach::way) {
            self.ways[way] += 1;
        }
    }

    /// Puts to this region by stores, if its memory is mapped and may be written.
    pub fn window(&self, key: RemoteKey) -> Option<Window> {
        let slot = usize::from(key.index);
        let reach = self.used.get(slot)?.as_ref()?;
        let Reach::Mapped { key: known, stamp, region, memory, offset } = reach else {
            return None;
        };
        if *known != key.key || !region.rights.contains(Rights::REMOTE_WRITE) {
            return None;
        }
        let stamp = self.board.watch(slot, *stamp)?;
        Some(Window::new(key, stamp, memory.clone(), *offset))
    }

    /// Runs `mapped` on the part of the region, or `attached` with its address in the peer's
    /// process. If only pages inside are mapped, both run, and are told on which bytes of the part.
    /// `sender` marks the region while the kernel copies. The second result is a message for the
    /// peer.
    #[cold]
    pub fn access(
        &mut self,
        sender: &LaneSender<Segment>,
        key: RemoteKey,
        needed: Rights,
        range: Range,
        mut mapped: impl FnMut(View<'_>, usize) -> Direct,
        mut attached: impl FnMut(Process, u64, &[Bytes; 2]) -> bool,
    ) -> (Direct, Option<Control>) {
        let mut message = None;
        let mut access = || {
            self.reach(key, &mut message)?;
            let slot = usize::from(key.index);
            let (stamp, region, pages, process) = match self.used[slot].as_ref() {
                Some(Reach::Mapped { stamp, region, memory, offset, .. }) => {
                    (*stamp, *region, Some((memory.view(), *offset)), None)
                }
                Some(Reach::Attached { stamp, region, process, .. }) => {
                    (*stamp, *region, None, Some(*process))
                }
                _ => return Ok(Direct::ByPacket),
            };
            allow(region.rights, needed, region.length, range)?;
            let start = range.0 as usize;
            let Pieces { mapped: pages, beside } = Pieces::of(start..start + range.1, pages);
            if let Some((part, at)) = pages
                && beside.iter().all(Bytes::is_empty)
            {
                return Ok(mapped(part, at));
            }
            let Some(process) =
                process.or_else(|| reachable(&mut self.process, self.pid, self.peer))
            else {
                return Ok(Direct::ByPacket);
            };
            sender.mark_busy(slot as u16);
            step("attach-busy");
            if self.board.stamp(slot) != stamp {
                sender.mark_idle();
                return Err(Direct::Refused(Status::WrongKey));
            }
            let address = region.address.wrapping_add(range.0);
            let mut by_kernel = || match attached(process, address, &beside) {
                true => Direct::Done(0),
                false => Direct::ByPacket,
            };
            // The last byte is copied last: whoever watches it knows that all are there.
            let is_mapped_last = beside[1].is_empty();
            let mut direct = if is_mapped_last { by_kernel() } else { Direct::Done(0) };
            if let (Direct::Done(_), Some((part, at))) = (direct, pages) {
                direct = mapped(part, at);
            }
            if !is_mapped_last && matches!(direct, Direct::Done(_)) {
                direct = by_kernel();
            }
            sender.mark_idle();
            Ok(direct)
        };
        let (Ok(direct) | Err(direct)) = access();
        (direct, message)
    }

    /// Finds how the region of `key` is reached, if its key is valid now.
    fn reach(&mut self, key: RemoteKey, message: &mut Option<Control>) -> Result<(), Direct> {
        let slot = usize::from(key.index);
        let identity = (key.key, self.board.stamp(slot));
        let known = self.used.get(slot).and_then(Option::as_ref).is_some_and(|reach| {
            reach.identity() == identity && !matches!(reach, Reach::Asked { .. })
        });
        if !known {
            self.find(key, message)?;
        }
        Ok(())
    }

    /// The first use of a key, or the first after its region changed.
    #[cold]
    fn find(&mut self, key: RemoteKey, message: &mut Option<Control>) -> Result<(), Direct> {
        let (index, slot) = (key.index, usize::from(key.index));
        let hash = KeyHash::of(key);
        let Some(region) = hash.unmask(self.board.notice(slot)) else {
            self.set(slot, None);
            *message = Some(Control::WrongKey { index });
            return Err(Direct::Refused(Status::WrongKey));
        };
        let (key, stamp) = (key.key, hash.stamp);
        if let Some(Some(Reach::Asked { key: asked, .. })) = self.used.get(slot)
            && *asked == key
        {
            return Err(Direct::Pending);
        }
        let reach = if region.mappable {
            *message = Some(Control::Ask { index, key });
            Reach::Asked { key, stamp }
        } else {
            match reachable(&mut self.process, self.pid, self.peer) {
                Some(process) => Reach::Attached { key, stamp, region, process },
                None => Reach::ByPacket { key, stamp },
            }
        };
        self.set(slot, Some(reach));
        if region.mappable { Err(Direct::Pending) } else { Ok(()) }
    }

    /// The peer's answer to [`Control::Ask`]: index, key, length and whether it is writable.
    pub fn take_answer(
        &mut self,
        (index, key, length, writable): (u16, u64, u64, bool),
        fd: Option<OwnedFd>,
    ) {
        let slot = usize::from(index);
        let Some(Some(Reach::Asked { key: asked, stamp })) = self.used.get(slot) else { return };
        let (asked, stamp) = (*asked, *stamp);
        if asked != key {
            return;
        }
        // The board tells the key's holder the rights and the length. What came with the answer
        // does not count.
        let Introduction { node, function, .. } = self.peer;
        let remote = RemoteKey { node, function, index, key, length };
        let region = KeyHash::of(remote).unmask(self.board.notice(index.into()));
        let mapped = fd.zip(region).and_then(|(fd, region)| {
            // Otherwise a put would be allowed, and could not be done.
            if writable != is_writable(region.rights) {
                return None;
            }
            let whole = usize::try_from(region.length).ok()?;
            // Less than all is what lies in whole pages.
            let (offset, length) = match length == region.length {
                true => (0, whole),
                false => whole_pages(usize::try_from(region.address).ok()?, whole)?,
            };
            let memory = mapping::adopt(&fd, length, writable).ok()?.prefix(length);
            Some(Reach::Mapped { key, stamp, region, memory, offset })
        });
        self.set(slot, Some(mapped.unwrap_or(Reach::ByPacket { key, stamp })));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A part of a region is reached in order: before the pages, in them, behind them.
    #[test]
    fn parts_divide_into_pieces() {
        let memory = Memory::from_vec(vec![0; 100]);
        // Bytes 10 to 110 are mapped.
        let of = |part| {
            let Pieces { mapped, beside } = Pieces::of(part, Some((memory.view(), 10)));
            let [before, behind] = beside;
            (before, mapped.map(|(view, at)| (at, view.len())), behind)
        };
        assert_eq!(of(0..120), (0..10, Some((10, 100)), 110..120));
        assert_eq!(of(10..110), (0..0, Some((0, 100)), 100..100));
        assert_eq!(of(30..31), (0..0, Some((0, 1)), 1..1));
        assert_eq!(of(9..11), (0..1, Some((1, 1)), 2..2));
        assert_eq!(of(109..111), (0..0, Some((0, 1)), 1..2));
        assert_eq!(of(0..10), (0..10, None, 10..10));
        assert_eq!(of(110..120), (0..10, None, 10..10));
        assert_eq!(of(3..3), (0..0, Some((0, 0)), 0..0));
        let nothing = Pieces::of(3..9, None);
        assert!(nothing.mapped.is_none() && nothing.beside == [0..6, 6..6]);
    }
}
