//! Protection tags and registered memory: the third duty of the kernel agent (M-05).

use crate::abi::{MemAttributes, Return};
use crate::directory::{Directory, Listed};
use crate::handle::{Handle, Kind, Slab, next_generation};
use crate::physical::Physical;
use crate::table::{NO_TAG, REGIONS, Table, place_of};
use bellwire::{Function, MemoryRegion, RegionSlice, RemoteKey, Rights};
use rustix::mm::{Advice, madvise};
use std::ffi::{c_ulong, c_void};
use std::ptr::NonNull;

/// Most protection tags of a NIC.
pub const PTAGS: usize = 256;

/// A protection tag.
struct Ptag {
    /// The tag's value in the table.
    tag: u32,
    /// VIs and regions with this tag.
    users: u32,
    /// The directory that peers read; made when a VI first needs it.
    directory: Option<Directory>,
}

/// A registered region.
struct Region {
    region: MemoryRegion,
    handle: u32,
    base: NonNull<u8>,
    length: usize,
    attributes: MemAttributes,
    tag: u32,
    /// Posted descriptors that lie in the region or name a part of it.
    users: u32,
}

// SAFETY: the pointers are used as numbers only; the bytes are reached through the region.
unsafe impl Send for Region {}

/// The registered memory of a NIC.
pub struct Memory {
    pub table: Table,
    regions: Slab<Region>,
    tags: Slab<Ptag>,
    /// The directory of VIs without a tag.
    open_directory: Option<Directory>,
}

impl Region {
    fn base(&self) -> u64 {
        self.base.as_ptr() as u64
    }

    /// The region's entry for peers; `None` if they may not reach it.
    fn listed(&self) -> Option<Listed> {
        let (rights, key) = (rights(&self.attributes), self.region.remote_key());
        let listed = Listed { rights, base: self.base(), length: key.length, key };
        (!rights.is_empty()).then_some(listed)
    }
}

fn rights(attributes: &MemAttributes) -> Rights {
    let mut rights = Rights::empty();
    rights.set(Rights::REMOTE_WRITE, attributes.enable_rdma_write != 0);
    rights.set(Rights::REMOTE_READ, attributes.enable_rdma_read != 0);
    rights
}

/// Registers memory that [`populate`] has found mapped and writable.
fn lend(
    function: &mut Function,
    base: NonNull<u8>,
    length: usize,
    attributes: &MemAttributes,
) -> Result<MemoryRegion, Return> {
    // SAFETY: it was mapped and writable at the check. Keeping it so while it is registered is the
    // program's duty, as with every NIC.
    let region = unsafe { function.register_foreign(base, length, rights(attributes)) };
    region.map_err(|_| Return::ErrorResource)
}

// Protection tags.
impl Memory {
    pub fn new() -> Result<Memory, Return> {
        let (regions, tags) = (Slab::new(REGIONS), Slab::new(PTAGS));
        Ok(Memory { table: Table::new()?, regions, tags, open_directory: None })
    }

    /// Makes a tag: its slot and generation.
    pub fn create_tag(&mut self) -> Result<(u16, u32), Return> {
        let new = Ptag { tag: next_generation(), users: 0, directory: None };
        self.tags.insert(new).map_err(|_| Return::ErrorResource)
    }

    pub fn destroy_tag(&mut self, function: &mut Function, tag: *mut c_void) -> Result<(), Return> {
        let handle = Handle::of(tag, Kind::Ptag).ok_or(Return::InvalidPtag)?;
        let known = self.tags.find(handle).ok_or(Return::InvalidPtag)?;
        if known.users > 0 {
            return Err(Return::ErrorResource);
        }
        let directory = self.tags.remove(handle.slot).and_then(|ptag| ptag.directory);
        if let Some(directory) = directory {
            directory.close(function);
        }
        Ok(())
    }

    /// The table's value of the tag `pointer`; [`NO_TAG`] for null.
    pub fn tag_of(&mut self, pointer: *mut c_void) -> Result<u32, Return> {
        if pointer.is_null() {
            return Ok(NO_TAG);
        }
        let known = Handle::of(pointer, Kind::Ptag).and_then(|handle| self.tags.find(handle));
        known.map(|ptag| ptag.tag).ok_or(Return::InvalidPtag)
    }

    /// Adds or removes a user of a tag.
    pub fn use_tag(&mut self, tag: u32, more: bool) {
        if let Some((_, ptag)) = self.tags.iter_mut().find(|(_, ptag)| ptag.tag == tag) {
            ptag.users = if more { ptag.users + 1 } else { ptag.users.saturating_sub(1) };
        }
    }

    /// The key of the directory for peers of VIs with this tag. VIs without a tag reach every
    /// region, so their directory lists all.
    pub fn directory_of(
        &mut self,
        function: &mut Function,
        tag: u32,
    ) -> Result<Option<RemoteKey>, Return> {
        let Memory { tags, regions, open_directory, .. } = self;
        let place = match tag {
            NO_TAG => open_directory,
            tag => match tags.iter_mut().find(|(_, ptag)| ptag.tag == tag) {
                Some((_, ptag)) => &mut ptag.directory,
                None => return Ok(None),
            },
        };
        if place.is_none() {
            let directory = Directory::open(function)?;
            for (place, region) in regions.iter_mut() {
                if tag == NO_TAG || region.tag == tag {
                    directory.enter(place, region.handle, region.listed());
                }
            }
            *place = Some(directory);
        }
        Ok(place.as_ref().map(Directory::key))
    }

    /// Adds the region of `place` to the directories that list it.
    fn tell_peers(&mut self, place: u16) {
        let Memory { tags, regions, open_directory, .. } = self;
        let Some(region) = regions.at(place) else { return };
        let tagged = tags.iter_mut().find(|(_, ptag)| ptag.tag == region.tag);
        let tagged = tagged.and_then(|(_, ptag)| ptag.directory.as_ref());
        for directory in [tagged, open_directory.as_ref()].into_iter().flatten() {
            directory.enter(place, region.handle, region.listed());
        }
    }

    /// Removes the region of `place` from all directories.
    fn hide_from_peers(&mut self, place: u16) {
        let tagged = self.tags.iter_mut().filter_map(|(_, ptag)| ptag.directory.as_ref());
        for directory in tagged.chain(self.open_directory.as_ref()) {
            directory.hide(place);
        }
    }
}

// Regions.
impl Memory {
    pub fn register(
        &mut self,
        function: &mut Function,
        address: *mut c_void,
        length: c_ulong,
        attributes: MemAttributes,
    ) -> Result<u32, Return> {
        let base = NonNull::new(address.cast::<u8>()).ok_or(Return::InvalidParameter)?;
        let length = usize::try_from(length).map_err(|_| Return::InvalidParameter)?;
        if length == 0 || length > 1 << 40 || (base.as_ptr() as usize).checked_add(length).is_none()
        {
            return Err(Return::InvalidParameter);
        }
        let tag = self.tag_of(attributes.ptag)?;
        populate(base, length)?;
        let region = lend(function, base, length, &attributes)?;
        let lent = region.clone();
        let entry = Region { region, handle: 0, base, length, attributes, tag, users: 0 };
        let Ok((place, _)) = self.regions.insert(entry) else {
            let _ = function.deregister_foreign(&lent);
            return Err(Return::ErrorResource);
        };
        // Twenty bits change with every registration, so a stale handle is noticed. Twelve bits are
        // the place. Never 0.
        let handle = (next_generation() % ((1 << 20) - 1) + 1) * REGIONS as u32 + u32::from(place);
        if let Some(entry) = self.regions.at(place) {
            entry.handle = handle;
        }
        let base = base.as_ptr() as u64;
        if let Err(code) = self.table.write(place, handle, base, length as u64, tag) {
            self.regions.remove(place);
            let _ = function.deregister_foreign(&lent);
            return Err(code);
        }
        self.use_tag(tag, true);
        self.tell_peers(place);
        Ok(handle)
    }

    /// The region `handle` that contains `address`, and its place.
    fn find(&mut self, address: *mut c_void, handle: u32) -> Result<(u16, &mut Region), Return> {
        let place = place_of(handle);
        let region = self.regions.at(place).filter(|region| region.handle == handle);
        let region = region.ok_or(Return::InvalidParameter)?;
        let offset = (address as u64).checked_sub(region.base());
        match offset {
            Some(offset) if offset < region.length as u64 => Ok((place, region)),
            _ => Err(Return::InvalidParameter),
        }
    }

    pub fn query(&mut self, address: *mut c_void, handle: u32) -> Result<MemAttributes, Return> {
        Ok(self.find(address, handle)?.1.attributes)
    }

    /// Ends a registration. Finished descriptors must not count as users any more.
    pub fn deregister(
        &mut self,
        function: &mut Function,
        address: *mut c_void,
        handle: u32,
    ) -> Result<(), Return> {
        let (place, entry) = self.find(address, handle)?;
        if entry.users > 0 {
            return Err(Return::ErrorResource);
        }
        function.deregister_foreign(&entry.region).map_err(|_| Return::ErrorResource)?;
        self.table.clear(place);
        self.hide_from_peers(place);
        if let Some(entry) = self.regions.remove(place) {
            self.use_tag(entry.tag, false);
        }
        Ok(())
    }

    /// Changes a region's attributes. Its key changes with its rights, so peers must fetch its
    /// entry again. Finished descriptors must not count as users any more.
    pub fn set_attributes(
        &mut self,
        function: &mut Function,
        address: *mut c_void,
        handle: u32,
        attributes: MemAttributes,
    ) -> Result<(), Return> {
        self.find(address, handle)?;
        let tag = self.tag_of(attributes.ptag)?;
        let (place, entry) = self.find(address, handle)?;
        if entry.users > 0 {
            return Err(Return::ErrorResource);
        }
        let region = lend(function, entry.base, entry.length, &attributes)?;
        let _ = function.deregister_foreign(&std::mem::replace(&mut entry.region, region));
        let old_tag = std::mem::replace(&mut entry.tag, tag);
        entry.attributes = attributes;
        let (base, length) = (entry.base(), entry.length as u64);
        self.hide_from_peers(place);
        self.table.write(place, handle, base, length, tag)?;
        self.use_tag(old_tag, false);
        self.use_tag(tag, true);
        self.tell_peers(place);
        Ok(())
    }
}

// Descriptors.
impl Memory {
    /// Adds or removes a descriptor, which lies in the region `handle`, as a user of its regions.
    pub fn use_regions(&mut self, pieces: &[Physical], handle: u32, more: bool) {
        let pieces = pieces.iter().map(|piece| piece.region());
        for place in pieces.chain([place_of(handle)]) {
            if let Some(region) = self.regions.at(place) {
                region.users = if more { region.users + 1 } else { region.users - 1 };
            }
        }
    }

    /// The memory that a physical descriptor names.
    pub fn slice(&mut self, piece: Physical) -> RegionSlice {
        // A region with a posted descriptor is not deregistered, and the table has checked the
        // bounds.
        let entry = self.regions.at(piece.region()).expect("a translated piece is registered");
        entry.region.slice(piece.offset(), piece.length())
    }

    pub fn gather(&mut self, pieces: &[Physical]) -> Vec<u8> {
        let mut bytes = vec![0; pieces.iter().map(|piece| piece.length()).sum()];
        let mut rest = bytes.as_mut_slice();
        for piece in pieces {
            let (here, after) = rest.split_at_mut(piece.length());
            if let Some(entry) = self.regions.at(piece.region()) {
                entry.region.read(piece.offset(), here);
            }
            rest = after;
        }
        bytes
    }

    pub fn scatter(&mut self, mut bytes: &[u8], pieces: &[Physical]) {
        for piece in pieces {
            let (here, after) = bytes.split_at(piece.length().min(bytes.len()));
            if let Some(entry) = self.regions.at(piece.region()) {
                entry.region.write(piece.offset(), here);
            }
            bytes = after;
        }
    }
}

/// Faults in the pages of a range, writable, as pinning would. [`Return::InvalidParameter`] if some
/// are not mapped or not writable.
fn populate(base: NonNull<u8>, length: usize) -> Result<(), Return> {
    // SAFETY: only reads a number. Through libc: rustix reads it from a place that valgrind does
    // not emulate, and C programs run under valgrind.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(4096) as usize;
    let start = base.as_ptr() as usize & !(page - 1);
    let end = (base.as_ptr() as usize + length).next_multiple_of(page);
    // SAFETY: populating changes no byte.
    let populated =
        unsafe { madvise(start as *mut c_void, end - start, Advice::LinuxPopulateWrite) };
    match populated {
        Ok(()) => Ok(()),
        // `EINVAL` means memory that may not be written; kernels before 5.14 return it always.
        Err(rustix::io::Errno::INVAL) => match is_writable(start, end) {
            true => Ok(()),
            false => Err(Return::InvalidParameter),
        },
        Err(rustix::io::Errno::NOMEM | rustix::io::Errno::FAULT) => Err(Return::InvalidParameter),
        Err(_) => Err(Return::ErrorResource),
    }
}

/// Whether all of a range is mapped and writable, according to the kernel's list of mappings.
fn is_writable(start: usize, end: usize) -> bool {
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return false };
    let mut covered = start;
    for line in maps.lines() {
        let Some((range, rest)) = line.split_once(' ') else { continue };
        let Some((from, to)) = range.split_once('-') else { continue };
        let number = |text| usize::from_str_radix(text, 16).unwrap_or_default();
        if rest.starts_with("rw") && (number(from)..number(to)).contains(&covered) {
            covered = number(to);
        }
    }
    covered >= end
}
