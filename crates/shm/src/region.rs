//! Regions: how ours are published, and how we reach those of peers.

use crate::attach::Process;
use crate::control::Control;
use crate::key::{Opened, Stamp};
use crate::link::{Link, State, Up};
use crate::mapping::{self, Sharing};
use crate::transport::ShmTransport;
use bellwire_device::{Direct, Error, LinkId, RemoteKey, Rights, Status};
use bellwire_ring::canary::planted;
use bellwire_ring::memory::{Memory, View};
use bellwire_ring::steps::step;
use std::os::fd::{AsFd, OwnedFd};

/// A region of ours that peers may reach.
pub struct Export {
    key: RemoteKey,
    memory: Memory,
    /// The segment to hand out; `None` for memory that the program brought.
    segment: Option<OwnedFd>,
    writable: bool,
}

/// A withdrawn region of ours. A peer has announced that the kernel copies to or from it. The
/// memory must not be reused until the peer is done or gone.
pub struct Quarantined {
    link: u32,
    index: u16,
    _memory: Memory,
}

/// How we reach a peer's region.
pub enum Reach {
    /// We asked to map it.
    Asked { key: u64, stamp: u64 },
    /// It is mapped.
    Mapped { key: u64, stamp: u64, rights: Rights, memory: Memory },
    /// The kernel copies for us.
    Attached { key: u64, stamp: u64, region: Opened, process: Process },
    /// Only its owner can access it.
    ByPacket { key: u64, stamp: u64 },
}

impl Reach {
    fn identity(&self) -> (u64, u64) {
        match *self {
            Reach::Asked { key, stamp }
            | Reach::Mapped { key, stamp, .. }
            | Reach::Attached { key, stamp, .. }
            | Reach::ByPacket { key, stamp } => (key, stamp),
        }
    }
}

/// Whether `offset..offset + length` lies inside `whole` bytes, and `needed` inside `rights`.
#[inline]
fn allow(
    rights: Rights,
    needed: Rights,
    whole: u64,
    offset: u64,
    length: u64,
) -> Result<(), Direct> {
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

impl ShmTransport {
    pub(crate) fn allocate_region(
        &mut self,
        length: usize,
        rights: Rights,
    ) -> Result<Memory, Error> {
        // Without a right to change it, peers get a segment that cannot be mapped writable.
        let sharing = if rights.intersects(Rights::REMOTE_WRITE | Rights::REMOTE_ATOMIC) {
            Sharing::ReadWrite
        } else {
            Sharing::ReadOnly
        };
        let segment = mapping::create("region", length, length, sharing)?;
        let memory = segment.memory.prefix(length);
        self.allocated.insert(memory.view().as_ptr() as usize, segment.fd);
        Ok(memory)
    }

    pub(crate) fn export_region(
        &mut self,
        key: RemoteKey,
        memory: &Memory,
        rights: Rights,
    ) -> Result<(), Error> {
        let address = memory.view().as_ptr() as usize;
        let segment = self.allocated.remove(&address);
        let region = Opened {
            address: address as u64,
            length: memory.len() as u64,
            rights,
            mappable: segment.is_some(),
        };
        self.board.post(key.index.into(), Stamp::of(key).close(region));
        let slot = usize::from(key.index);
        if self.exports.len() <= slot {
            self.exports.resize_with(slot + 1, || None);
        }
        let writable = rights.intersects(Rights::REMOTE_WRITE | Rights::REMOTE_ATOMIC);
        self.exports[slot] = Some(Export { key, memory: memory.clone(), segment, writable });
        Ok(())
    }

    pub(crate) fn retract_region(&mut self, key: RemoteKey) {
        if !planted("stale-key") {
            self.board.withdraw(key.index.into());
        }
        let Some(export) = self.exports.get_mut(usize::from(key.index)).and_then(Option::take)
        else {
            return;
        };
        for (number, link) in self.links.iter().enumerate() {
            let busy = link.as_ref().and_then(|l| l.receiver.as_ref()?.busy_region());
            if busy == Some(key.index) {
                self.quarantine.push(Quarantined {
                    link: number as u32,
                    index: key.index,
                    _memory: export.memory.clone(),
                });
            }
        }
    }

    /// Frees quarantined memory whose peers are done or gone.
    pub(crate) fn review_quarantine(&mut self) {
        let links = &self.links;
        self.quarantine.retain(|held| {
            let link = links.get(held.link as usize).and_then(Option::as_ref);
            link.is_some_and(|link| {
                matches!(link.state, State::Up(_))
                    && link.receiver.as_ref().and_then(|r| r.busy_region()) == Some(held.index)
            })
        });
    }

    /// A peer asks to map one of our regions.
    pub(crate) fn answer_ask(&mut self, link: u32, index: u16, key: u64) {
        let export = self.exports.get(usize::from(index)).and_then(Option::as_ref);
        let granted = export.filter(|export| export.key.key == key && export.segment.is_some());
        let answer = match granted {
            Some(export) => {
                let length = export.memory.len() as u64;
                let fd =
                    export.segment.as_ref().and_then(|fd| fd.as_fd().try_clone_to_owned().ok());
                match fd {
                    Some(fd) => (
                        Control::Answer { index, key, length, writable: export.writable },
                        Some(fd),
                    ),
                    None => (Control::Answer { index, key, length: 0, writable: false }, None),
                }
            }
            None => {
                self.counters.wrong_keys += 1;
                (Control::Answer { index, key, length: 0, writable: false }, None)
            }
        };
        step("region-answer");
        self.send_control(link, answer.0, answer.1);
    }

    /// A peer's answer to our question.
    pub(crate) fn take_answer(
        &mut self,
        link: u32,
        (index, key, length, writable): (u16, u64, u64, bool),
        fd: Option<OwnedFd>,
    ) {
        let Some(up) = self.link_mut(link).and_then(Link::up_mut) else { return };
        let Some(Some(reach)) = up.regions.get_mut(usize::from(index)) else { return };
        let Reach::Asked { key: asked, stamp } = *reach else { return };
        if asked != key {
            return;
        }
        // The board tells the key's holder the rights and the length. What came with the answer
        // does not count.
        let remote =
            RemoteKey { node: up.peer.node, function: up.peer.function, index, key, length };
        let opened = Stamp::of(remote).open(up.board.notice(index.into()));
        let mapped = fd.zip(opened).and_then(|(fd, opened)| {
            let length = usize::try_from(opened.length).ok()?;
            let memory = mapping::adopt(&fd, length, writable).ok()?;
            Some(Reach::Mapped { key, stamp, rights: opened.rights, memory: memory.prefix(length) })
        });
        *reach = mapped.unwrap_or(Reach::ByPacket { key, stamp });
    }

    /// How the region of `key` is reached, if its key is valid now.
    #[inline]
    fn reach(&mut self, link: LinkId, key: RemoteKey) -> Result<(&mut Up, usize), Direct> {
        let slot = usize::from(key.index);
        let Some(entry) = self.links.get_mut(link.0 as usize).and_then(Option::as_mut) else {
            return Err(Direct::Refused(Status::PeerGone));
        };
        match &entry.state {
            State::Up(up) => {
                let known = up.regions.get(slot).and_then(Option::as_ref).is_some_and(|reach| {
                    reach.identity() == (key.key, up.board.stamp(slot))
                        && !matches!(reach, Reach::Asked { .. })
                });
                if !known {
                    return Err(self.find(link, key));
                }
            }
            State::Down(why) => return Err(Direct::Refused(*why)),
            State::Connecting { .. } | State::Crossed { .. } => return Err(Direct::Pending),
        }
        let entry = self.links[link.0 as usize].as_mut().expect("looked at above");
        Ok((entry.up_mut().expect("looked at above"), slot))
    }

    /// The first use of a key, or the first after its region changed.
    #[cold]
    fn find(&mut self, link: LinkId, key: RemoteKey) -> Direct {
        let slot = usize::from(key.index);
        let Some(up) = self.link_mut(link.0).and_then(Link::up_mut) else {
            return Direct::Refused(Status::PeerGone);
        };
        let stamp = Stamp::of(key);
        let Some(region) = stamp.open(up.board.notice(slot)) else {
            if let Some(known) = up.regions.get_mut(slot) {
                *known = None;
            }
            self.send_control(link.0, Control::WrongKey { index: key.index }, None);
            return Direct::Refused(Status::WrongKey);
        };
        let (key, stamp) = (key.key, stamp.stamp);
        if let Some(Some(Reach::Asked { key: asked, .. })) = up.regions.get(slot)
            && *asked == key
        {
            return Direct::Pending;
        }
        let (reach, answer) = if region.mappable {
            (Reach::Asked { key, stamp }, Direct::Pending)
        } else {
            let (address, value) = (up.peer.probe_address, up.peer.probe_value);
            let pid = up.pid;
            let process = *up.process.get_or_insert_with(|| Process::probe(pid, address, value));
            match process {
                Some(process) => (Reach::Attached { key, stamp, region, process }, Direct::Pending),
                None => (Reach::ByPacket { key, stamp }, Direct::ByPacket),
            }
        };
        let ask = matches!(reach, Reach::Asked { .. });
        if up.regions.len() <= slot {
            up.regions.resize_with(slot + 1, || None);
        }
        up.regions[slot] = Some(reach);
        if ask {
            self.urgent = true;
            let index = slot as u16;
            self.send_control(link.0, Control::Ask { index, key }, None);
        }
        answer
    }

    /// The fast path: the part of the peer's region, if it is mapped, its key still valid, and the
    /// access allowed.
    #[inline(always)]
    fn mapped(
        &self,
        link: LinkId,
        key: RemoteKey,
        needed: Rights,
        (offset, length): (u64, usize),
    ) -> Option<View<'_>> {
        let up = self.links.get(link.0 as usize)?.as_deref()?.up()?;
        let slot = usize::from(key.index);
        let reach = up.regions.get(slot)?.as_ref()?;
        let Reach::Mapped { key: known, stamp, rights, memory } = reach else { return None };
        if (*known, *stamp) != (key.key, up.board.stamp(slot)) {
            return None;
        }
        allow(*rights, needed, memory.len() as u64, offset, length as u64).ok()?;
        memory.view().part(offset as usize, length)
    }

    /// Runs `mapped` on the part of the peer's region, or `attached` with its address there.
    #[cold]
    fn direct(
        &mut self,
        link: LinkId,
        key: RemoteKey,
        needed: Rights,
        (offset, length): (u64, usize),
        mapped: impl FnOnce(View<'_>) -> Direct,
        attached: impl FnOnce(Process, u64) -> bool,
    ) -> Direct {
        let (up, slot) = match self.reach(link, key) {
            Ok(found) => found,
            // After the first attach the region is reachable at once.
            Err(Direct::Pending) => match self.reach(link, key) {
                Ok(found) => found,
                Err(direct) => return direct,
            },
            Err(direct) => return direct,
        };
        match up.regions[slot].as_ref().expect("reach found it") {
            Reach::Mapped { rights, memory, .. } => {
                if let Err(refused) =
                    allow(*rights, needed, memory.len() as u64, offset, length as u64)
                {
                    return refused;
                }
                mapped(memory.view().part(offset as usize, length).expect("checked above"))
            }
            Reach::Attached { stamp, region, process, .. } => {
                if let Err(refused) =
                    allow(region.rights, needed, region.length, offset, length as u64)
                {
                    return refused;
                }
                up.sender.mark_busy(slot as u16);
                step("attach-busy");
                if up.board.stamp(slot) != *stamp {
                    up.sender.mark_idle();
                    return Direct::Refused(Status::WrongKey);
                }
                let copied = attached(*process, region.address + offset);
                up.sender.mark_idle();
                if copied { Direct::Done(0) } else { Direct::ByPacket }
            }
            Reach::ByPacket { .. } | Reach::Asked { .. } => Direct::ByPacket,
        }
    }

    #[inline(always)]
    pub(crate) fn direct_put(
        &mut self,
        link: LinkId,
        key: RemoteKey,
        offset: u64,
        from: View<'_>,
    ) -> Direct {
        match self.mapped(link, key, Rights::REMOTE_WRITE, (offset, from.len())) {
            Some(there) => {
                there.deposit(from);
                Direct::Done(0)
            }
            None => self.first_put(link, key, offset, from),
        }
    }

    /// The slow path of a put: the memory is not mapped now, or may not be written.
    #[cold]
    fn first_put(&mut self, link: LinkId, key: RemoteKey, offset: u64, from: View<'_>) -> Direct {
        let mapped = |there: View<'_>| {
            there.deposit(from);
            Direct::Done(0)
        };
        let attached = |process: Process, address| process.write(address, from);
        self.direct(link, key, Rights::REMOTE_WRITE, (offset, from.len()), mapped, attached)
    }

    pub(crate) fn direct_get(
        &mut self,
        link: LinkId,
        key: RemoteKey,
        offset: u64,
        into: View<'_>,
    ) -> Direct {
        let mapped = |there: View<'_>| {
            into.copy_from(there);
            Direct::Done(0)
        };
        let attached = |process: Process, address| process.read(address, into);
        self.direct(link, key, Rights::REMOTE_READ, (offset, into.len()), mapped, attached)
    }

    pub(crate) fn direct_atomic(
        &mut self,
        link: LinkId,
        key: RemoteKey,
        offset: u64,
        change: impl FnOnce(View<'_>) -> Option<u64>,
    ) -> Direct {
        // A processor's atomic needs a mapping; the kernel's copies are not atomic.
        self.direct(
            link,
            key,
            Rights::REMOTE_ATOMIC,
            (offset, 8),
            |there| change(there).map_or(Direct::Refused(Status::Misaligned), Direct::Done),
            |_, _| false,
        )
    }
}
