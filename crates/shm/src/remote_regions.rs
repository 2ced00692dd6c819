//! Put, get and atomics on one peer's regions, without the peer's help.

use crate::attach::Process;
use crate::control::{Control, Introduction};
use crate::key::{KeyHash, RegionInfo};
use crate::mapping;
use bellwire_device::{Direct, RemoteKey, Rights, Status};
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
    /// It is mapped.
    Mapped { key: u64, stamp: u64, rights: Rights, memory: Memory },
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

    /// The fast path: the part of the region, if it is mapped, its key still valid, and the access
    /// allowed.
    #[inline(always)]
    pub fn mapped(&self, key: RemoteKey, needed: Rights, range: Range) -> Option<View<'_>> {
        let slot = usize::from(key.index);
        let reach = self.used.get(slot)?.as_ref()?;
        let Reach::Mapped { key: known, stamp, rights, memory } = reach else { return None };
        if (*known, *stamp) != (key.key, self.board.stamp(slot)) {
            return None;
        }
        // A part that does not lie inside is refused on the slow path, with the reason.
        if !rights.contains(needed) {
            return None;
        }
        memory.view().part(range.0 as usize, range.1)
    }

    /// Runs `mapped` on the part of the region, or `attached` with its address in the peer's
    /// process. `sender` marks the region while the kernel copies. The second result is a message
    /// for the peer.
    #[cold]
    pub fn access(
        &mut self,
        sender: &LaneSender<Segment>,
        key: RemoteKey,
        needed: Rights,
        range: Range,
        mapped: impl FnOnce(View<'_>) -> Direct,
        attached: impl FnOnce(Process, u64) -> bool,
    ) -> (Direct, Option<Control>) {
        let slot = usize::from(key.index);
        let mut message = None;
        let access = || match self.reach(key, &mut message)? {
            Reach::Mapped { rights, memory, .. } => {
                allow(*rights, needed, memory.len() as u64, range)?;
                let part = memory.view().part(range.0 as usize, range.1);
                Ok(mapped(part.expect("checked above")))
            }
            Reach::Attached { stamp, region, process, .. } => {
                let (stamp, region, process) = (*stamp, *region, *process);
                allow(region.rights, needed, region.length, range)?;
                sender.mark_busy(slot as u16);
                step("attach-busy");
                if self.board.stamp(slot) != stamp {
                    sender.mark_idle();
                    return Err(Direct::Refused(Status::WrongKey));
                }
                let copied = attached(process, region.address + range.0);
                sender.mark_idle();
                Ok(if copied { Direct::Done(0) } else { Direct::ByPacket })
            }
            Reach::ByPacket { .. } | Reach::Asked { .. } => Ok(Direct::ByPacket),
        };
        let (Ok(direct) | Err(direct)) = access();
        (direct, message)
    }

    /// How the region of `key` is reached, if its key is valid now.
    fn reach(&mut self, key: RemoteKey, message: &mut Option<Control>) -> Result<&Reach, Direct> {
        let slot = usize::from(key.index);
        let identity = (key.key, self.board.stamp(slot));
        let known = self.used.get(slot).and_then(Option::as_ref).is_some_and(|reach| {
            reach.identity() == identity && !matches!(reach, Reach::Asked { .. })
        });
        if !known {
            self.find(key, message)?;
        }
        Ok(self.used[slot].as_ref().expect("found above"))
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
            let (pid, address, value) = (self.pid, self.peer.probe_address, self.peer.probe_value);
            match *self.process.get_or_insert_with(|| Process::probe(pid, address, value)) {
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
            let length = usize::try_from(region.length).ok()?;
            let memory = mapping::adopt(&fd, length, writable).ok()?;
            Some(Reach::Mapped { key, stamp, rights: region.rights, memory: memory.prefix(length) })
        });
        self.set(slot, Some(mapped.unwrap_or(Reach::ByPacket { key, stamp })));
    }
}
