//! Memory regions.

use crate::abi;
use crate::context::ContextObject;
use crate::dm::Dm;
use crate::errno;
use crate::pd::Pd;
use bellwire_rdma::{Access, Adapter, Domain, Refusal, Sge};
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ptr::{NonNull, null_mut};
use std::time::{Duration, Instant};

/// A memory region.
#[repr(C)]
pub struct Mr {
    abi: abi::Mr,
    /// The access flags, as the program gave them.
    access: Cell<u32>,
    domain: Cell<Domain>,
    /// The address of the first byte for peers and lists.
    iova: Cell<u64>,
    /// The device memory that it names.
    dm: Option<&'static Dm>,
}

/// Flags that change nothing here: all memory is pageable, and order is always kept.
const HINTS: u32 = 1 << 7 | 0x3ff << 20;
/// `IBV_ACCESS_ON_DEMAND`
const ON_DEMAND: u32 = 1 << 6;
/// How long the end of a region waits for descriptors that use it.
const PATIENCE: Duration = Duration::from_secs(5);

fn access_of(flags: u32) -> Result<Access, Refusal> {
    if flags & ON_DEMAND != 0 {
        return Err(Refusal::Unsupported("IBV_ACCESS_ON_DEMAND is not offered"));
    }
    let unknown = Refusal::Invalid("an access flag is not known");
    Access::from_bits(flags & !HINTS).ok_or(unknown)
}

impl Mr {
    pub fn new(
        pd: &Pd,
        addr: *mut c_void,
        length: usize,
        iova: u64,
        flags: u32,
    ) -> Result<Mr, Refusal> {
        let access = access_of(flags)?;
        let mut adapter = pd.context().lock();
        // SAFETY: the program keeps the memory mapped until `ibv_dereg_mr`: ibv_reg_mr(3).
        let key = unsafe { adapter.register(pd.domain, addr.cast(), length, iova, access) }?;
        Ok(Mr::of(pd, key, (addr, length), iova, flags, None))
    }

    /// A region of device memory, from `start` on.
    pub fn of_device_memory(
        pd: &Pd,
        dm: &'static Dm,
        start: NonNull<u8>,
        length: usize,
        flags: u32,
    ) -> Result<Mr, Refusal> {
        let access = access_of(flags)?;
        let mut adapter = pd.context().lock();
        // SAFETY: the memory ends after its regions: `Dm::begin`.
        let key = unsafe { adapter.register(pd.domain, start.as_ptr(), length, 0, access) }?;
        dm.begin();
        Ok(Mr::of(pd, key, (null_mut(), length), 0, flags, Some(dm)))
    }

    /// A second object for the region of a handle, which is its key.
    pub fn import(pd: &Pd, handle: u32) -> Result<Mr, Refusal> {
        let region = pd.context().lock().region(handle);
        let region = region.filter(|(domain, _)| *domain == pd.domain);
        let unknown = Refusal::Invalid("the domain has no region with the handle");
        let (_, length) = region.ok_or(unknown)?;
        Ok(Mr::of(pd, handle, (null_mut(), length), 0, 0, None))
    }

    fn of(
        pd: &Pd,
        key: u32,
        (addr, length): (*mut c_void, usize),
        iova: u64,
        flags: u32,
        dm: Option<&'static Dm>,
    ) -> Mr {
        let abi = abi::Mr {
            context: pd.abi_context(),
            pd: Cell::new(pd),
            addr: Cell::new(addr),
            length: Cell::new(length),
            handle: key,
            lkey: key,
            rkey: key,
        };
        let domain = Cell::new(pd.domain);
        Mr { abi, access: Cell::new(flags), domain, iova: Cell::new(iova), dm }
    }

    fn context(&self) -> &'static ContextObject {
        ContextObject::of(self.abi.context)
    }

    /// The key of a region that a window names.
    pub fn key(mr: *const abi::Mr) -> Option<u32> {
        // SAFETY: null, or a region of this library: ibv_bind_mw(3).
        unsafe { mr.as_ref() }.map(|mr| mr.lkey)
    }

    /// Ends the region. Descriptors that use it are waited for.
    pub fn end(&self) -> Result<(), Refusal> {
        self.patiently(|adapter| adapter.deregister(self.abi.lkey))?;
        self.dm.iter().for_each(|dm| dm.end());
        Ok(())
    }

    /// Does what is refused while descriptors use the region.
    fn patiently(
        &self,
        ending: impl Fn(&mut Adapter) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let started = Instant::now();
        loop {
            let mut adapter = self.context().lock();
            match ending(&mut adapter) {
                Err(Refusal::UnderWay(_)) if started.elapsed() < PATIENCE => {
                    adapter.progress();
                }
                result => return result,
            }
            drop(adapter);
            std::thread::yield_now();
        }
    }

    /// Changes domain, place or access, by `IBV_REREG_MR_CHANGE_*`. The keys stay.
    pub fn change(
        &self,
        flags: u32,
        pd: Option<&Pd>,
        place: (*mut c_void, usize),
        access: u32,
    ) -> Result<(), Refusal> {
        let [translation, domain, rights] = [1, 2, 4].map(|bit| flags & bit != 0);
        if flags == 0 || flags > 7 || (domain && pd.is_none()) {
            return Err(Refusal::Invalid("the flags of ibv_rereg_mr"));
        }
        if self.dm.is_some() {
            return Err(Refusal::Unsupported("a region of device memory stays as it is"));
        }
        let (addr, length) =
            if translation { place } else { (self.abi.addr.get(), self.abi.length.get()) };
        let iova = if translation { addr as u64 } else { self.iova.get() };
        let pd = pd.filter(|_| domain);
        let owner = pd.map_or(self.domain.get(), |pd| pd.domain);
        let flags = if rights { access } else { self.access.get() };
        let access = access_of(flags)?;
        // SAFETY: the program keeps the memory mapped until `ibv_dereg_mr`: ibv_rereg_mr(3).
        let new =
            unsafe { self.context().lock().register(owner, addr.cast(), length, iova, access) }?;
        let replaced = self.patiently(|adapter| adapter.replace(self.abi.lkey, new));
        if let Err(refused) = replaced {
            let _ = self.context().lock().deregister(new);
            return Err(refused);
        }
        self.access.set(flags);
        self.domain.set(owner);
        self.iova.set(iova);
        self.abi.addr.set(addr);
        self.abi.length.set(length);
        pd.into_iter().for_each(|pd| self.abi.pd.set(pd));
        Ok(())
    }
}

/// Advice is a hint, and memory needs none here. Only lists of regions are accepted.
pub extern "C" fn advise(_: &Pd, advice: u32, _: u32, _: *const Sge, parts: u32) -> c_int {
    match (advice, parts) {
        (0..=2, 1..) => 0,
        _ => errno::set(libc::EINVAL),
    }
}
