//! Registered memory: regions and windows, by 32-bit keys.
//!
//! A key is the entry's index in the upper 16 bits and a random number below. Peers do not use it
//! on memory: they exchange it for a grant, a 64-bit key of the device below. The owner gives a
//! grant only to the queue pair that may use the memory, and ends it with that queue pair's
//! connection.

use crate::completion::Cause;
use crate::error::{Refusal, Result};
use crate::slab::Slab;
use bellwire::{Function, FunctionAddress, MemoryRegion, RemoteKey, Rights};
use bellwire_ring::canary::planted;
use bellwire_ring::memory::View;
use std::ptr::NonNull;

bitflags::bitflags! {
    /// Access flags of regions, windows and queue pairs, with the values of the specification.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Access: u32 {
        /// Receives, reads and atomics may write here.
        const LOCAL_WRITE = 1;
        /// Peers may write.
        const REMOTE_WRITE = 2;
        /// Peers may read.
        const REMOTE_READ = 4;
        /// Peers may execute atomics.
        const REMOTE_ATOMIC = 8;
        /// Windows may be bound.
        const WINDOW_BIND = 16;
        /// Addresses start at 0.
        const ZERO_BASED = 32;
    }
}

impl Access {
    fn rights(self) -> Rights {
        let mut rights = Rights::empty();
        rights.set(Rights::REMOTE_READ, self.contains(Access::REMOTE_READ));
        rights.set(Rights::REMOTE_WRITE, self.contains(Access::REMOTE_WRITE));
        rights.set(Rights::REMOTE_ATOMIC, self.contains(Access::REMOTE_ATOMIC));
        rights
    }

    const REMOTE: Access =
        Access::REMOTE_WRITE.union(Access::REMOTE_READ).union(Access::REMOTE_ATOMIC);
}

/// A part of a list: a span of registered memory. The layout is that of `struct ibv_sge`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Sge {
    /// Address of the first byte.
    pub address: u64,
    /// Bytes.
    pub length: u32,
    /// The region's local key.
    pub key: u32,
}

impl Sge {
    /// A copy, read field by field. A program has often just stored one of the fields, and a load
    /// of the whole would wait until that store has left the store buffer. The stores before it may
    /// wait for lines of another core.
    #[inline(always)]
    pub(crate) fn copied(&self) -> Sge {
        // SAFETY: references to numbers. Volatile: the compiler would join the loads.
        unsafe {
            Sge {
                address: std::ptr::read_volatile(&self.address),
                length: std::ptr::read_volatile(&self.length),
                key: std::ptr::read_volatile(&self.key),
            }
        }
    }
}

/// Handle of a protection domain.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Domain(pub(crate) u32);

impl Domain {
    /// Its number among those of the adapter.
    pub fn number(self) -> u32 {
        self.0
    }
}

/// Where a window of memory is bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Binding {
    /// The key of the region.
    pub region: u32,
    /// Address of the first byte.
    pub address: u64,
    /// Bytes; 0 unbinds.
    pub length: u64,
    /// What peers may do.
    pub access: Access,
}

/// Who asks for the memory of a key: a queue pair of ours, for the peer that it is connected to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker {
    pub(crate) queue_pair: u32,
    pub(crate) peer: FunctionAddress,
    pub(crate) domain: Domain,
    /// What the queue pair allows its peer.
    pub(crate) allowed: Access,
}

/// The bytes of a region or window, opened to one peer.
struct Grant {
    peer: FunctionAddress,
    access: Access,
    memory: MemoryRegion,
    /// Queue pairs of ours whose peer has its key.
    users: Vec<u32>,
}

/// Memory, or a window that is bound to some.
struct Bound {
    /// The address of its first byte for peers.
    base: u64,
    access: Access,
    /// For own use: it gives peers no right.
    memory: MemoryRegion,
    grants: Vec<Grant>,
    /// The index of the region of a window.
    region: Option<u32>,
}

impl Bound {
    /// Ends all its registrations.
    fn end(&mut self, function: &mut Function) -> bellwire::Result<()> {
        while let Some(grant) = self.grants.last() {
            function.deregister_foreign(&grant.memory)?;
            self.grants.pop();
        }
        function.deregister_foreign(&self.memory)
    }
}

struct Entry {
    key: u32,
    domain: Domain,
    /// `None`: a window that is not bound.
    bound: Option<Bound>,
    is_window: bool,
    /// Windows that are bound to this region.
    windows: usize,
}

impl Entry {
    /// Ends what it names. Nothing changes if that is refused.
    fn end(&mut self, function: &mut Function) -> Result<()> {
        if self.windows > 0 && !planted("region-ends-early") {
            return Err(Refusal::Busy("windows are bound to the region"));
        }
        let Some(bound) = &mut self.bound else { return Ok(()) };
        match bound.end(function) {
            Err(bellwire::Error::InUse { .. }) => {
                Err(Refusal::UnderWay("descriptors use the memory"))
            }
            // In a child of the process that registered it nothing is left to end.
            Ok(()) | Err(bellwire::Error::Forked) => Ok(()),
            Err(other) => Err(other.into()),
        }
    }
}

const NO_KEY: Refusal = Refusal::Invalid("there is no such key");

/// The memory of an adapter.
pub(crate) struct Memory {
    entries: Slab<Entry>,
}

/// A peer's view of a key: what its owner answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RemoteMemory {
    pub(crate) key: RemoteKey,
    pub(crate) base: u64,
    pub(crate) access: Access,
}

impl RemoteMemory {
    /// Bytes of [`RemoteMemory::emit`].
    pub(crate) const BYTES: usize = RemoteKey::BYTES + 12;

    pub(crate) fn emit(&self) -> Vec<u8> {
        let mut bytes = self.key.to_bytes().to_vec();
        bytes.extend(self.base.to_le_bytes());
        bytes.extend(self.access.bits().to_le_bytes());
        bytes
    }

    pub(crate) fn parse(bytes: &[u8]) -> Option<RemoteMemory> {
        let (key, rest) = bytes.split_at_checked(RemoteKey::BYTES)?;
        let (base, access) = rest.split_at_checked(8)?;
        Some(RemoteMemory {
            key: RemoteKey::from_bytes(key)?,
            base: u64::from_le_bytes(base.try_into().ok()?),
            access: Access::from_bits_truncate(u32::from_le_bytes(access.try_into().ok()?)),
        })
    }

    /// The offset of an access, or why its owner would refuse it.
    #[inline]
    pub(crate) fn offset(&self, address: u64, length: u64, needs: Access) -> Result<u64, Cause> {
        if !self.access.contains(needs) {
            return Err(Cause::NotPermitted);
        }
        let offset = address.wrapping_sub(self.base);
        match offset.checked_add(length) {
            Some(end) if end <= self.key.length => Ok(offset),
            _ => Err(Cause::OutOfBounds),
        }
    }
}

impl Memory {
    pub(crate) fn new(limit: usize) -> Memory {
        Memory { entries: Slab::new(limit.min(1 << 16)) }
    }

    fn insert(&mut self, mut entry: Entry) -> Result<u32> {
        let random = (random_word()? as u32 & 0xffff).max(1);
        let full = Refusal::Full("no more memory regions and windows");
        entry.key = random;
        let index = self.entries.insert(entry).ok_or(full)?;
        let key = index << 16 | random;
        self.entries.get_mut(index).expect("it was inserted").key = key;
        Ok(key)
    }

    /// Registers `length` bytes at `start`, which peers and lists name from `base` on. Returns the
    /// key.
    ///
    /// # Safety
    /// As for [`Function::register_foreign`].
    pub(crate) unsafe fn register(
        &mut self,
        function: &mut Function,
        domain: Domain,
        start: *mut u8,
        length: usize,
        base: u64,
        access: Access,
    ) -> Result<u32> {
        let needs_local = Access::REMOTE_WRITE | Access::REMOTE_ATOMIC;
        if access.intersects(needs_local) && !access.contains(Access::LOCAL_WRITE) {
            return Err(Refusal::Invalid("remote writing needs IBV_ACCESS_LOCAL_WRITE"));
        }
        // A region without a byte can be named where nothing is transferred, as on cards.
        if length == 0 {
            let entry = Entry { key: 0, domain, bound: None, is_window: false, windows: 0 };
            return self.insert(entry);
        }
        let start = NonNull::new(start).ok_or(Refusal::Invalid("a region has an address"))?;
        let base = if access.contains(Access::ZERO_BASED) { 0 } else { base };
        // SAFETY: the caller's promise.
        let memory = unsafe { function.register_for_long(start, length, access.rights()) }?;
        let bound =
            Bound { base, access, memory: memory.clone(), grants: Vec::new(), region: None };
        let entry = Entry { key: 0, domain, bound: Some(bound), is_window: false, windows: 0 };
        self.insert(entry).inspect_err(|_| {
            let _ = function.deregister_foreign(&memory);
        })
    }

    /// Gives what `key` names the memory, domain and flags of `new`, whose own key ends. What peers
    /// knew of `key` is over; they ask again. Refused as by [`Memory::deregister`].
    pub(crate) fn replace(&mut self, function: &mut Function, key: u32, new: u32) -> Result<()> {
        let [Some(old), Some(new)] = [key, new].map(|key| self.index(key)) else {
            return Err(NO_KEY);
        };
        self.entries.get_mut(old).ok_or(NO_KEY)?.end(function)?;
        let new = self.entries.remove(new).ok_or(NO_KEY)?;
        let entry = self.entries.get_mut(old).ok_or(NO_KEY)?;
        (entry.domain, entry.bound) = (new.domain, new.bound);
        Ok(())
    }

    /// The domain and the bytes of a region.
    pub(crate) fn region(&self, key: u32) -> Option<(Domain, usize)> {
        let entry = self.entry(key).filter(|entry| !entry.is_window)?;
        Some((entry.domain, entry.bound.as_ref().map_or(0, |bound| bound.memory.len())))
    }

    fn index(&self, key: u32) -> Option<u32> {
        let index = key >> 16;
        self.entries.get(index).is_some_and(|entry| entry.key == key).then_some(index)
    }

    /// The index of a window, whatever the lowest byte of its key is by now: that byte belongs to
    /// the program.
    fn window(&self, key: u32) -> Option<u32> {
        let is_it = |entry: &Entry| entry.is_window && entry.key >> 8 == key >> 8;
        self.entries.get(key >> 16).is_some_and(is_it).then_some(key >> 16)
    }

    fn entry(&self, key: u32) -> Option<&Entry> {
        self.entries.get(key >> 16).filter(|entry| entry.key == key)
    }

    /// Ends a region, or a window by any of its keys. [`Refusal::Busy`]: windows use it.
    /// [`Refusal::UnderWay`]: descriptors do.
    pub(crate) fn deregister(&mut self, function: &mut Function, key: u32) -> Result<()> {
        let index = self.index(key).or_else(|| self.window(key)).ok_or(NO_KEY)?;
        self.entries.get_mut(index).ok_or(NO_KEY)?.end(function)?;
        let entry = self.entries.remove(index).ok_or(NO_KEY)?;
        if let Some(region) = entry.bound.and_then(|bound| bound.region) {
            self.entries.get_mut(region).into_iter().for_each(|region| region.windows -= 1);
        }
        Ok(())
    }

    /// A window that is not bound. Returns its key.
    pub(crate) fn allocate_window(&mut self, domain: Domain) -> Result<u32> {
        self.insert(Entry { key: 0, domain, bound: None, is_window: true, windows: 0 })
    }

    /// Binds the window with any key `window` under `key`, or unbinds it. The window's earlier key
    /// is dead after this.
    pub(crate) fn bind(
        &mut self,
        function: &mut Function,
        domain: Domain,
        window: u32,
        key: u32,
        to: &Binding,
    ) -> Result<(), Cause> {
        let index = self.window(window).ok_or(Cause::LocalKey)?;
        let entry = self.entries.get(index).expect("it has an index");
        if entry.domain != domain || key >> 8 != window >> 8 {
            return Err(Cause::LocalKey);
        }
        let bound = match to.length {
            0 => None,
            _ => Some(self.bound(function, domain, to)?),
        };
        if self.unbind(function, index).is_err() {
            if let Some(new) = bound {
                let _ = function.deregister_foreign(&new.memory);
            }
            return Err(Cause::Device);
        }
        if let Some(region) = bound.as_ref().and_then(|bound| bound.region) {
            self.entries.get_mut(region).into_iter().for_each(|region| region.windows += 1);
        }
        let entry = self.entries.get_mut(index).expect("it has an index");
        entry.bound = bound;
        entry.key = key;
        Ok(())
    }

    fn bound(&self, function: &mut Function, domain: Domain, to: &Binding) -> Result<Bound, Cause> {
        let region = self.index(to.region).ok_or(Cause::LocalKey)?;
        let entry = self.entries.get(region).expect("it has an index");
        let Some(whole) = entry.bound.as_ref().filter(|_| !entry.is_window) else {
            return Err(Cause::LocalKey);
        };
        if entry.domain != domain && !planted("window-any-domain") {
            return Err(Cause::LocalKey);
        }
        let writes = to.access.intersects(Access::REMOTE_WRITE | Access::REMOTE_ATOMIC);
        let may_bind = whole.access.contains(Access::WINDOW_BIND) || planted("window-unasked");
        let may_write = whole.access.contains(Access::LOCAL_WRITE) || planted("window-writes");
        if !may_bind || (writes && !may_write) {
            return Err(Cause::NotPermitted);
        }
        let offset = usize::try_from(to.address.wrapping_sub(whole.base)).ok();
        let length = usize::try_from(to.length).ok();
        let part = offset.zip(length).and_then(|(at, length)| whole.memory.view().part(at, length));
        let mut part = part.ok_or(Cause::LocalBounds)?;
        if planted("window-bounds") {
            part = whole.memory.view();
        }
        let start = NonNull::new(part.as_ptr()).ok_or(Cause::LocalBounds)?;
        // SAFETY: the bytes lie in a region of the program, which promised that they stay until it
        // is deregistered; that is refused while a window is bound.
        let memory = unsafe { function.register_foreign(start, part.len(), Rights::empty()) };
        let memory = memory.map_err(|_| Cause::Device)?;
        let base = if to.access.contains(Access::ZERO_BASED) { 0 } else { to.address };
        Ok(Bound { base, access: to.access, memory, grants: Vec::new(), region: Some(region) })
    }

    fn unbind(&mut self, function: &mut Function, index: u32) -> Result<(), Cause> {
        let Some(entry) = self.entries.get_mut(index) else { return Ok(()) };
        let Some(old) = &mut entry.bound else { return Ok(()) };
        if !planted("window-kept") {
            old.end(function).map_err(|_| Cause::Device)?;
        }
        let region = old.region;
        entry.bound = None;
        if let Some(region) = region.and_then(|region| self.entries.get_mut(region)) {
            region.windows -= 1;
        }
        Ok(())
    }

    /// Unbinds the window of `key`, at the request of a peer or of the program.
    pub(crate) fn invalidate(
        &mut self,
        function: &mut Function,
        domain: Domain,
        key: u32,
    ) -> Result<(), Cause> {
        let index = self.index(key).ok_or(Cause::WrongKey)?;
        let entry = self.entries.get(index).expect("it has an index");
        let is_window = entry.is_window || planted("invalidate-region");
        let is_own = entry.domain == domain || planted("invalidate-foreign");
        if !is_window || !is_own {
            return Err(Cause::WrongKey);
        }
        self.unbind(function, index)
    }

    /// The memory of a part of a list, or why it cannot be used.
    #[inline]
    pub(crate) fn local(
        &self,
        domain: Domain,
        part: &Sge,
        writes: bool,
    ) -> Result<(&MemoryRegion, usize), Cause> {
        let Some(Entry { domain: owner, bound: Some(bound), is_window: false, .. }) =
            self.entry(part.key)
        else {
            return Err(Cause::LocalKey);
        };
        if *owner != domain {
            return Err(Cause::LocalKey);
        }
        if writes && !bound.access.contains(Access::LOCAL_WRITE) {
            return Err(Cause::NotPermitted);
        }
        let offset = part.address.wrapping_sub(bound.base);
        match offset.checked_add(u64::from(part.length)) {
            Some(end) if end <= bound.memory.len() as u64 => Ok((&bound.memory, offset as usize)),
            _ => Err(Cause::LocalBounds),
        }
    }

    /// The bytes of a part of a list.
    #[inline]
    pub(crate) fn view(&self, domain: Domain, part: &Sge, writes: bool) -> Result<View<'_>, Cause> {
        if part.length == 0 {
            return Ok(View::empty());
        }
        let (memory, offset) = self.local(domain, part, writes)?;
        memory.view().part(offset, part.length as usize).ok_or(Cause::LocalBounds)
    }

    /// What a peer may do by `key` through a queue pair: the owner's check of domain and flags.
    fn for_asker(&mut self, asker: &Asker, key: u32) -> Result<(&mut Bound, Access), Cause> {
        let entry = self.entries.get_mut(key >> 16).filter(|entry| {
            (entry.key == key || planted("key-unknown"))
                && (entry.domain == asker.domain || planted("key-foreign"))
        });
        let bound = entry.and_then(|entry| entry.bound.as_mut()).ok_or(Cause::WrongKey)?;
        let of_memory = if planted("region-rights") { Access::REMOTE } else { bound.access };
        let of_pair = if planted("queue-pair-rights") { Access::REMOTE } else { asker.allowed };
        match of_memory & of_pair & Access::REMOTE {
            access if access.is_empty() => Err(Cause::NotPermitted),
            access => Ok((bound, access)),
        }
    }

    /// Opens the memory of `key` to the peer of a queue pair.
    pub(crate) fn grant(
        &mut self,
        function: &mut Function,
        asker: &Asker,
        key: u32,
    ) -> Result<RemoteMemory, Cause> {
        let (bound, access) = self.for_asker(asker, key)?;
        let base = bound.base;
        // All queue pairs of one peer share the grant: they belong to one process.
        let is_it = |grant: &&mut Grant| grant.peer == asker.peer && grant.access == access;
        if let Some(grant) = bound.grants.iter_mut().find(is_it) {
            if !grant.users.contains(&asker.queue_pair) {
                grant.users.push(asker.queue_pair);
            }
            return Ok(RemoteMemory { key: grant.memory.remote_key(), base, access });
        }
        let view = bound.memory.view();
        let start = NonNull::new(view.as_ptr()).ok_or(Cause::Device)?;
        // SAFETY: the bytes of a region or window of the program; this registration ends with it.
        let memory = unsafe { function.register_foreign(start, view.len(), access.rights()) };
        let memory = memory.map_err(|_| Cause::Device)?;
        let key = memory.remote_key();
        let users = vec![asker.queue_pair];
        bound.grants.push(Grant { peer: asker.peer, access, memory, users });
        Ok(RemoteMemory { key, base, access })
    }

    /// Ends what a queue pair was granted by `keys`, unless another one of the same peer has it.
    pub(crate) fn revoke(&mut self, function: &mut Function, queue_pair: u32, keys: &[u32]) {
        for &key in keys {
            let entry = self.entries.get_mut(key >> 16);
            let Some(bound) = entry.and_then(|entry| entry.bound.as_mut()) else { continue };
            let mut ended = Vec::new();
            bound.grants.retain_mut(|grant| {
                grant.users.retain(|&user| user != queue_pair);
                let is_used = !grant.users.is_empty() || planted("grant-kept");
                if !is_used {
                    ended.push(grant.memory.clone());
                }
                is_used
            });
            withdraw(function, ended);
        }
    }

    /// Checks a write that a peer says it has done, by its key, address and length.
    pub(crate) fn check_write(
        &mut self,
        asker: &Asker,
        (key, address, length): (u32, u64, u64),
    ) -> Result<(), Cause> {
        let (bound, access) = self.for_asker(asker, key)?;
        if !access.contains(Access::REMOTE_WRITE) {
            return Err(Cause::NotPermitted);
        }
        let end = address.wrapping_sub(bound.base).checked_add(length);
        match end {
            Some(end) if end <= bound.memory.len() as u64 => Ok(()),
            _ => Err(Cause::OutOfBounds),
        }
    }

    /// Whether a region or window of `domain` exists.
    pub(crate) fn uses(&self, domain: Domain) -> bool {
        self.entries.iter().any(|(_, entry)| entry.domain == domain)
    }
}

/// Registers parts of lists for one message that a peer fetches.
pub(crate) fn offer(
    memory: &Memory,
    function: &mut Function,
    domain: Domain,
    parts: &[Sge],
) -> Result<Vec<MemoryRegion>, Cause> {
    let mut offered = Vec::with_capacity(parts.len());
    for part in parts.iter().filter(|part| part.length > 0) {
        let region = memory.view(domain, part, false).and_then(|view| {
            let start = NonNull::new(view.as_ptr()).ok_or(Cause::LocalBounds)?;
            // SAFETY: the bytes lie in a region of the program. The program keeps it until the work
            // request completes, and this registration ends before that.
            unsafe { function.register_foreign(start, view.len(), Rights::REMOTE_READ) }
                .map_err(|_| Cause::Device)
        });
        match region {
            Ok(region) => offered.push(region),
            Err(cause) => {
                withdraw(function, offered);
                return Err(cause);
            }
        }
    }
    Ok(offered)
}

/// Ends the registrations of [`offer`].
pub(crate) fn withdraw(function: &mut Function, offered: Vec<MemoryRegion>) {
    for region in offered {
        let ended = function.deregister_foreign(&region);
        debug_assert!(ended.is_ok(), "{ended:?}");
    }
}

/// Eight unpredictable random bytes.
pub(crate) fn random_word() -> std::io::Result<u64> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(u64::from_le_bytes(bytes))
}
