//! The table of registered memory (RMMT, M-10). The kernel agent writes it by system call. The user
//! agent reads it through a read-only mapping and translates without a system call.

use crate::abi::Return;
use crate::physical::Physical;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::io::pwrite;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The absent tag. A VI without a tag reaches every region of its NIC; only VIs without a tag reach
/// a region without one.
pub const NO_TAG: u32 = 0;

/// Most regions of a NIC: a memory handle has twelve bits for the place.
pub const REGIONS: usize = 1 << 12;

/// The table's entry of one region.
///
/// ```text
///   0        8        16       20       24       32
///   +--------+--------+--------+--------+--------+
///   |  base  | length | handle |  tag   |   0    |
///   +--------+--------+--------+--------+--------+
/// ```
#[repr(C)]
struct Entry {
    base: AtomicU64,
    length: AtomicU64,
    /// 0: there is no such region.
    handle: AtomicU32,
    tag: AtomicU32,
    _rest: u64,
}

const ENTRY_BYTES: usize = 32;
const _: () = assert!(size_of::<Entry>() == ENTRY_BYTES);
const TABLE_BYTES: usize = REGIONS * ENTRY_BYTES;

/// Why an address cannot be translated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused;

/// The table of one NIC.
pub struct Table {
    file: OwnedFd,
    start: NonNull<Entry>,
}

// SAFETY: the mapping is read through atomics only and lives as long as the table.
unsafe impl Send for Table {}

impl Table {
    pub fn new() -> Result<Table, Return> {
        let resource = |_| Return::ErrorResource;
        let file = memfd_create("bellwire-rmmt", MemfdFlags::CLOEXEC).map_err(resource)?;
        ftruncate(&file, TABLE_BYTES as u64).map_err(resource)?;
        // SAFETY: a new mapping at an address of the kernel's choice; no other mapping changes.
        let start = unsafe {
            mmap(std::ptr::null_mut(), TABLE_BYTES, ProtFlags::READ, MapFlags::SHARED, &file, 0)
        };
        let start = start.map_err(resource)?;
        let start = NonNull::new(start.cast()).ok_or(Return::ErrorResource)?;
        Ok(Table { file, start })
    }

    /// Writes the entry of `place`: the kernel agent's part.
    pub fn write(
        &self,
        place: u16,
        handle: u32,
        base: u64,
        length: u64,
        tag: u32,
    ) -> Result<(), Return> {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[0..8].copy_from_slice(&base.to_ne_bytes());
        bytes[8..16].copy_from_slice(&length.to_ne_bytes());
        bytes[16..20].copy_from_slice(&handle.to_ne_bytes());
        bytes[20..24].copy_from_slice(&tag.to_ne_bytes());
        let at = place as u64 * ENTRY_BYTES as u64;
        match pwrite(&self.file, &bytes, at) {
            Ok(ENTRY_BYTES) => Ok(()),
            _ => Err(Return::ErrorResource),
        }
    }

    /// Forgets the region of `place`.
    pub fn clear(&self, place: u16) {
        // The table's pages exist already, so this cannot fail. Even if it did, the region behind
        // the place is gone.
        let _ = self.write(place, 0, 0, 0, 0);
    }

    /// Locates `length` bytes at `address` if the region `handle` covers them and has the tag `tag`
    /// (M-05): the user agent's part. It only reads memory.
    pub fn translate(
        &self,
        handle: u32,
        address: u64,
        length: u32,
        tag: u32,
    ) -> Result<Physical, Refused> {
        let piece = self.translate_start(handle, address, length, tag)?;
        if piece.length() == length as usize { Ok(piece) } else { Err(Refused) }
    }

    /// Like [`Table::translate`], but cut at the region's end.
    pub fn translate_start(
        &self,
        handle: u32,
        address: u64,
        length: u32,
        tag: u32,
    ) -> Result<Physical, Refused> {
        let place = place_of(handle);
        // SAFETY: a place is below REGIONS; the mapping has REGIONS entries and lives as long as
        // `self`.
        let entry = unsafe { self.start.add(place as usize).as_ref() };
        // Relaxed: the NIC's lock orders writers and readers. Atomics only say that the memory can
        // change.
        let known = entry.handle.load(Ordering::Relaxed);
        if handle == 0 || known != handle {
            return Err(Refused);
        }
        // A VI without a tag reaches every region of its NIC, as on the cards of 1998 to 2005.
        if tag != NO_TAG && entry.tag.load(Ordering::Relaxed) != tag {
            return Err(Refused);
        }
        let (base, bytes) =
            (entry.base.load(Ordering::Relaxed), entry.length.load(Ordering::Relaxed));
        let offset = address.checked_sub(base).ok_or(Refused)?;
        let left = bytes.checked_sub(offset).ok_or(Refused)?;
        Ok(Physical::new(place, offset, u64::from(length).min(left) as u32))
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // SAFETY: unmaps the mapping that `new` made; no reference to it is left.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), TABLE_BYTES) };
    }
}

/// The place that a memory handle names.
pub fn place_of(handle: u32) -> u16 {
    (handle % REGIONS as u32) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let table = Table::new().unwrap();
        table.write(7, 5 << 12 | 7, 0x10_0000, 8192, 3).unwrap();
        table
    }

    /// Inside its region an address becomes region and offset. Outside it, or with another tag or
    /// handle, it is refused.
    // shows: M-05, M-10, M-11
    #[test]
    fn translation_checks_handle_tag_and_bounds() {
        let table = table();
        let handle = 5 << 12 | 7;
        let found = table.translate(handle, 0x10_0000 + 4096, 4096, 3).unwrap();
        assert_eq!((found.region(), found.offset(), found.length()), (7, 4096, 4096));
        assert_eq!(size_of_val(&found), 16);
        assert!(table.translate(handle, 0x10_2000, 0, 3).is_ok(), "no bytes, at the end");
        for (handle, address, length, tag) in [
            (handle, 0x10_0000 + 4096, 4097, 3),
            (handle, 0x0f_ffff, 1, 3),
            (handle, u64::MAX, u32::MAX, 3),
            (handle, 0x10_0000, 1, 4),
            (6 << 12 | 7, 0x10_0000, 1, 3),
            (5 << 12 | 8, 0x10_0000, 1, 3),
            (0, 0, 0, NO_TAG),
        ] {
            assert_eq!(table.translate(handle, address, length, tag), Err(Refused));
        }
        let start = table.translate_start(handle, 0x10_1fff, 100, 3).unwrap();
        assert_eq!((start.offset(), start.length()), (8191, 1), "what is there of it");
        assert_eq!(table.translate_start(handle, 0x10_2001, 1, 3), Err(Refused));
        table.clear(7);
        assert_eq!(table.translate(handle, 0x10_0000, 1, 3), Err(Refused));
    }

    /// Under strict seccomp, which allows only read, write and exit, translation succeeds: it needs
    /// no system call. A child that makes another system call is killed, so the check works.
    // shows: M-10
    #[test]
    fn translation_needs_no_system_call() {
        let table = table();
        let translates = in_strict_child(|| {
            (0..1000).all(|at| table.translate(5 << 12 | 7, 0x10_0000 + at, 8, 3).is_ok())
        });
        assert_eq!(translates, Some(true));
        let canary = in_strict_child(|| table.write(7, 1, 1, 1, 1).is_ok());
        assert_eq!(canary, None, "writing the table is a system call");
    }

    /// The program's mapping is read-only: a write ends the process with a memory fault.
    // shows: M-10
    #[test]
    fn writing_to_the_mapping_faults() {
        let table = table();
        let status = in_child(|| {
            // SAFETY: it faults on purpose, in a process made for that.
            unsafe { table.start.cast::<u8>().as_ptr().write_volatile(1) };
            true
        });
        assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSEGV, "{status}");
        let harmless = in_child(|| table.translate(5 << 12 | 7, 0x10_0000, 1, 3).is_ok());
        assert!(libc::WIFEXITED(harmless) && libc::WEXITSTATUS(harmless) == 0);
    }

    fn in_strict_child(work: impl FnOnce() -> bool) -> Option<bool> {
        let status = in_child(|| {
            // SAFETY: affects this child only.
            unsafe { libc::prctl(libc::PR_SET_SECCOMP, 1, 0, 0, 0) == 0 && work() }
        });
        libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status) == 0)
    }

    /// The wait status of a child that does `work` and exits with 0 if it is true.
    fn in_child(work: impl FnOnce() -> bool) -> i32 {
        // SAFETY: the child makes no call that could need another thread's lock, and leaves without
        // running destructors.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                let code = !work() as i32;
                // Not `exit_group`, which strict seccomp forbids.
                libc::syscall(libc::SYS_exit, code);
            }
            let mut status = 0;
            assert_eq!(libc::waitpid(child, &mut status, 0), child);
            status
        }
    }
}
