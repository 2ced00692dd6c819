//! Device memory: for a device in software, memory of the host that only the library addresses.

use crate::abi;
use crate::context::ContextObject;
use crate::errno;
use crate::mr::Mr;
use crate::pd::Pd;
use bellwire_rdma::Refusal;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Bytes of device memory that a context has.
pub const BYTES: usize = 16 << 20;
/// Offsets and lengths of copies are multiples of it, as on cards.
const UNIT: usize = 4;
/// The largest alignment that can be asked for, as a power of two.
const ALIGNMENT: u32 = 20;

/// What a context has given away of its device memory, in bytes.
#[derive(Default)]
pub struct DeviceMemory(AtomicUsize);

impl DeviceMemory {
    fn take(&self, bytes: usize) -> Result<(), Refusal> {
        let more = |used: usize| used.checked_add(bytes).filter(|&sum| sum <= BYTES);
        // Relaxed: only the count is shared.
        let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.map(|_| ()).map_err(|_| Refusal::Full("no more device memory"))
    }

    fn give_back(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// An allocation.
#[repr(C)]
pub struct Dm {
    abi: abi::Dm,
    bytes: NonNull<u8>,
    layout: Layout,
    length: usize,
    /// Regions that name it.
    regions: AtomicU32,
}

impl Dm {
    fn new(context: &abi::Context, attr: &abi::AllocDmAttr) -> Result<Dm, Refusal> {
        if attr.comp_mask != 0 {
            return Err(Refusal::Unsupported("ibv_alloc_dm_attr has no such field"));
        }
        if attr.length == 0 || attr.log_align_req > ALIGNMENT {
            return Err(Refusal::Invalid("device memory has a length, and is aligned to 1 MiB"));
        }
        let layout = Layout::from_size_align(attr.length, 1 << attr.log_align_req.max(6));
        let layout = layout.map_err(|_| Refusal::Full("no more device memory"))?;
        let object = ContextObject::of(context);
        object.device_memory.take(attr.length)?;
        // SAFETY: the length is not 0.
        let bytes = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(|| {
            object.device_memory.give_back(attr.length);
            Refusal::Full("no more memory")
        })?;
        let abi = abi::Dm {
            context,
            memcpy_to_dm: copy_to,
            memcpy_from_dm: copy_from,
            comp_mask: 0,
            handle: 0,
        };
        Ok(Dm { abi, bytes, layout, length: attr.length, regions: AtomicU32::new(0) })
    }

    /// `length` bytes from `offset` on, if they are all there.
    fn part(&self, offset: u64, length: usize) -> Option<NonNull<u8>> {
        let offset = usize::try_from(offset).ok()?;
        let end = offset.checked_add(length)?;
        // SAFETY: the offset lies in the allocation, or at its end.
        (end <= self.length).then(|| unsafe { self.bytes.add(offset) })
    }

    /// Notes that a region begins to name it.
    pub fn begin(&self) {
        self.regions.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that a region ends.
    pub fn end(&self) {
        self.regions.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Dm {
    fn drop(&mut self) {
        ContextObject::of(self.abi.context).device_memory.give_back(self.length);
        // SAFETY: allocated with this layout, and no region names it.
        unsafe { dealloc(self.bytes.as_ptr(), self.layout) };
    }
}

pub extern "C" fn alloc(context: &abi::Context, attr: &abi::AllocDmAttr) -> *mut Dm {
    errno::object("ibv_alloc_dm", Dm::new(context, attr))
}

pub extern "C" fn free(dm: *mut Dm) -> c_int {
    // SAFETY: null, or memory of `alloc`.
    let Some(own) = (unsafe { dm.as_ref() }) else { return errno::set(libc::EINVAL) };
    // Relaxed: the program orders the calls.
    if own.regions.load(Ordering::Relaxed) > 0 {
        return errno::answer("ibv_free_dm", Err(Refusal::Busy("regions name the memory")));
    }
    // SAFETY: it was made by `Box::into_raw`.
    drop(unsafe { Box::from_raw(dm) });
    0
}

/// The bytes of a copy, or `None` if they are not all there or not aligned.
fn copied(dm: &Dm, offset: u64, length: usize) -> Option<NonNull<u8>> {
    let aligned = offset.is_multiple_of(UNIT as u64) && length.is_multiple_of(UNIT);
    dm.part(offset, length).filter(|_| aligned)
}

extern "C" fn copy_to(dm: &Dm, offset: u64, from: *const c_void, length: usize) -> c_int {
    let Some(to) = copied(dm, offset, length) else { return errno::set(libc::EINVAL) };
    // SAFETY: the program has `length` bytes: ibv_memcpy_to_dm(3); they are no device memory.
    unsafe { to.as_ptr().copy_from_nonoverlapping(from.cast(), length) };
    0
}

extern "C" fn copy_from(to: *mut c_void, dm: &Dm, offset: u64, length: usize) -> c_int {
    let Some(from) = copied(dm, offset, length) else { return errno::set(libc::EINVAL) };
    // SAFETY: as in `copy_to`.
    unsafe { to.cast::<u8>().copy_from_nonoverlapping(from.as_ptr(), length) };
    0
}

pub extern "C" fn register(
    pd: &Pd,
    dm: &'static Dm,
    offset: u64,
    length: usize,
    access: u32,
) -> *mut Mr {
    /// `IBV_ACCESS_ZERO_BASED`
    const ZERO_BASED: u32 = 1 << 5;
    let made = match dm.part(offset, length) {
        None => Err(Refusal::Invalid("the region does not lie in the device memory")),
        Some(_) if access & ZERO_BASED == 0 => {
            Err(Refusal::Invalid("device memory has no address: IBV_ACCESS_ZERO_BASED"))
        }
        Some(start) => Mr::of_device_memory(pd, dm, start, length, access),
    };
    errno::object("ibv_reg_dm_mr", made)
}
