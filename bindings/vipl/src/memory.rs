//! Protection tags and registered memory: the third duty of the kernel agent (M-05).

use crate::abi::{MemAttributes, Return};
use crate::directory::Directory;
use crate::handle::{Handle, Kind, next_generation, nic_of};
use crate::nic::{State, on_nic};
use crate::pointer::{Out, call};
use crate::table::{NO_TAG, REGIONS, place_of};
use bellwire::{MemoryRegion, Rights};
use rustix::mm::{Advice, madvise};
use std::ffi::{c_ulong, c_void};
use std::ptr::NonNull;

/// A protection tag.
pub struct Ptag {
    /// The tag's value in the table.
    pub tag: u32,
    /// VIs and regions with this tag.
    pub users: u32,
    /// The directory that peers read; made when a VI first needs it.
    pub directory: Option<Directory>,
}

/// A registered region.
pub struct Region {
    /// `None` only during re-registration.
    pub region: Option<MemoryRegion>,
    handle: u32,
    base: NonNull<u8>,
    length: usize,
    attributes: MemAttributes,
    tag: u32,
    /// Posted descriptors that lie in the region or name a part of it.
    pub users: u32,
}

// SAFETY: the pointers are used as numbers only; the bytes are reached through the region.
unsafe impl Send for Region {}

impl Region {
    /// The rights of peers.
    pub fn rights(&self) -> Rights {
        rights(&self.attributes)
    }

    pub fn tag(&self) -> u32 {
        self.tag
    }

    pub fn handle(&self) -> u32 {
        self.handle
    }

    pub fn base(&self) -> u64 {
        self.base.as_ptr() as u64
    }
}

fn rights(attributes: &MemAttributes) -> Rights {
    let mut rights = Rights::empty();
    rights.set(Rights::REMOTE_WRITE, attributes.enable_rdma_write != 0);
    rights.set(Rights::REMOTE_READ, attributes.enable_rdma_read != 0);
    rights
}

impl State {
    /// The table's value of the tag `pointer`; [`NO_TAG`] for null.
    pub fn tag_of(&mut self, pointer: *mut c_void) -> Result<u32, Return> {
        if pointer.is_null() {
            return Ok(NO_TAG);
        }
        let handle = Handle::of(pointer, Kind::Ptag).filter(|handle| handle.nic == self.handle.nic);
        let known = handle.and_then(|handle| self.tags.find(handle));
        known.map(|ptag| ptag.tag).ok_or(Return::InvalidPtag)
    }

    /// Adds or removes a user of a tag.
    pub fn use_tag(&mut self, tag: u32, more: bool) {
        if let Some((_, ptag)) = self.tags.iter_mut().find(|(_, ptag)| ptag.tag == tag) {
            ptag.users = if more { ptag.users + 1 } else { ptag.users.saturating_sub(1) };
        }
    }

    fn register(
        &mut self,
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
        // SAFETY: the check above found it mapped and writable. Keeping it so while it is
        // registered is the program's duty, as with every NIC.
        let region = unsafe { self.function.register_foreign(base, length, rights(&attributes)) };
        let region = region.map_err(|_| Return::ErrorResource)?;
        let entry = Region {
            region: Some(region.clone()),
            handle: 0,
            base,
            length,
            attributes,
            tag,
            users: 0,
        };
        let Ok((place, _)) = self.regions.insert(entry) else {
            let _ = self.function.deregister_foreign(&region);
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
            let _ = self.function.deregister_foreign(&region);
            return Err(code);
        }
        self.use_tag(tag, true);
        self.tell_peers(place);
        Ok(handle)
    }

    /// The place of the region `handle` that contains `address`.
    fn find_region(&mut self, address: *mut c_void, handle: u32) -> Result<u16, Return> {
        let place = place_of(handle);
        let region = self.regions.at(place).filter(|region| region.handle == handle);
        let region = region.ok_or(Return::InvalidParameter)?;
        let offset = (address as usize).checked_sub(region.base.as_ptr() as usize);
        match offset {
            Some(offset) if offset < region.length => Ok(place),
            _ => Err(Return::InvalidParameter),
        }
    }

    fn deregister(&mut self, address: *mut c_void, handle: u32) -> Result<(), Return> {
        let place = self.find_region(address, handle)?;
        // Finished descriptors must not count as users.
        self.drain();
        let entry = self.regions.at(place).ok_or(Return::InvalidParameter)?;
        if entry.users > 0 {
            return Err(Return::ErrorResource);
        }
        if let Some(region) = entry.region.clone() {
            self.function.deregister_foreign(&region).map_err(|_| Return::ErrorResource)?;
        }
        self.table.clear(place);
        self.hide_from_peers(place);
        if let Some(entry) = self.regions.remove(place) {
            self.use_tag(entry.tag, false);
        }
        Ok(())
    }

    /// Changes a region's attributes. Its key changes with its rights, so peers must fetch its
    /// entry again.
    fn set_attributes(
        &mut self,
        address: *mut c_void,
        handle: u32,
        attributes: MemAttributes,
    ) -> Result<(), Return> {
        let place = self.find_region(address, handle)?;
        let tag = self.tag_of(attributes.ptag)?;
        self.drain();
        let State { regions, function, .. } = self;
        let entry = regions.at(place).ok_or(Return::InvalidParameter)?;
        if entry.users > 0 {
            return Err(Return::ErrorResource);
        }
        // SAFETY: as in `register`.
        let region =
            unsafe { function.register_foreign(entry.base, entry.length, rights(&attributes)) };
        let region = region.map_err(|_| Return::ErrorResource)?;
        if let Some(old) = entry.region.replace(region) {
            let _ = function.deregister_foreign(&old);
        }
        let old_tag = std::mem::replace(&mut entry.tag, tag);
        entry.attributes = attributes;
        let (base, length) = (entry.base.as_ptr() as u64, entry.length as u64);
        self.hide_from_peers(place);
        self.table.write(place, handle, base, length, tag)?;
        self.use_tag(old_tag, false);
        self.use_tag(tag, true);
        self.tell_peers(place);
        Ok(())
    }
}

/// Faults in the pages of a range, writable, as pinning would.
///
/// # Errors
/// [`Return::InvalidParameter`] if some are not mapped or not writable.
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

/// Makes a protection tag.
///
/// # Safety
/// `ptag` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipCreatePtag(nic: *mut c_void, ptag: Out<'_, *mut c_void>) -> Return {
    call(|| {
        ptag.check()?;
        let handle = on_nic(nic_of(nic), |state| {
            let new = Ptag { tag: next_generation(), users: 0, directory: None };
            let (slot, generation) = state.tags.insert(new).map_err(|_| Return::ErrorResource)?;
            Ok(Handle { kind: Kind::Ptag, nic: state.handle.nic, slot, generation })
        })?;
        ptag.write(handle.to_pointer())
    })
}

/// Destroys a protection tag that no VI and no region uses.
#[unsafe(no_mangle)]
pub extern "C" fn VipDestroyPtag(nic: *mut c_void, ptag: *mut c_void) -> Return {
    call(|| {
        on_nic(nic_of(nic), |state| {
            let handle = Handle::of(ptag, Kind::Ptag).filter(|ptag| ptag.nic == state.handle.nic);
            let handle = handle.ok_or(Return::InvalidPtag)?;
            let known = state.tags.find(handle).ok_or(Return::InvalidPtag)?;
            if known.users > 0 {
                return Err(Return::ErrorResource);
            }
            if let Some(ptag) = state.tags.remove(handle.slot)
                && let Some(directory) = ptag.directory
            {
                directory.close(&mut state.function);
            }
            Ok(())
        })
    })
}

/// Registers memory of the program in place.
///
/// # Safety
/// `attributes` is null or valid; `handle` is null or writable. The memory stays mapped and
/// writable until it is deregistered.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipRegisterMem(
    nic: *mut c_void,
    address: *mut c_void,
    length: c_ulong,
    attributes: Option<&MemAttributes>,
    handle: Out<'_, u32>,
) -> Return {
    call(|| {
        handle.check()?;
        let none =
            MemAttributes { ptag: std::ptr::null_mut(), enable_rdma_write: 0, enable_rdma_read: 0 };
        let attributes = attributes.copied().unwrap_or(none);
        let known = on_nic(nic_of(nic), |state| state.register(address, length, attributes))?;
        handle.write(known)
    })
}

/// Ends a registration that no posted descriptor uses.
#[unsafe(no_mangle)]
pub extern "C" fn VipDeregisterMem(nic: *mut c_void, address: *mut c_void, handle: u32) -> Return {
    call(|| on_nic(nic_of(nic), |state| state.deregister(address, handle)))
}

/// The attributes of a registration.
///
/// # Safety
/// `attributes` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipQueryMem(
    nic: *mut c_void,
    address: *mut c_void,
    handle: u32,
    attributes: Out<'_, MemAttributes>,
) -> Return {
    call(|| {
        let known = on_nic(nic_of(nic), |state| {
            let place = state.find_region(address, handle)?;
            state.regions.at(place).map(|region| region.attributes).ok_or(Return::InvalidParameter)
        })?;
        attributes.write(known)
    })
}

/// Changes the attributes of a registration that no posted descriptor uses.
///
/// # Safety
/// `attributes` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipSetMemAttributes(
    nic: *mut c_void,
    address: *mut c_void,
    handle: u32,
    attributes: Option<&MemAttributes>,
) -> Return {
    call(|| {
        let attributes = *attributes.ok_or(Return::InvalidParameter)?;
        on_nic(nic_of(nic), |state| state.set_attributes(address, handle, attributes))
    })
}
