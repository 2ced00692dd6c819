//! Memory regions.

use crate::abi;
use crate::errno;
use crate::pd::Pd;
use bellwire_rdma::{Access, Refusal, Sge};
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::time::{Duration, Instant};

/// A memory region.
#[repr(C)]
pub struct Mr {
    abi: abi::Mr,
    /// The access flags, as the program gave them.
    access: Cell<u32>,
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

fn register(
    pd: &Pd,
    addr: *mut c_void,
    length: usize,
    iova: u64,
    flags: u32,
) -> Result<u32, Refusal> {
    let access = access_of(flags)?;
    // SAFETY: the program keeps the memory mapped until `ibv_dereg_mr`: ibv_reg_mr(3).
    unsafe { pd.context().lock().register(pd.domain, addr.cast(), length, iova, access) }
}

impl Mr {
    pub fn new(
        pd: &Pd,
        addr: *mut c_void,
        length: usize,
        iova: u64,
        flags: u32,
    ) -> Result<Mr, Refusal> {
        let key = register(pd, addr, length, iova, flags)?;
        let abi = abi::Mr {
            context: pd.abi_context(),
            pd: Cell::new(pd),
            addr: Cell::new(addr),
            length: Cell::new(length),
            handle: 0,
            lkey: Cell::new(key),
            rkey: Cell::new(key),
        };
        Ok(Mr { abi, access: Cell::new(flags) })
    }

    fn pd(&self) -> &'static Pd {
        // SAFETY: a domain lives until `ibv_dealloc_pd`, which is refused while it has regions.
        unsafe { &*self.abi.pd.get() }
    }

    /// The key of a region that a window names.
    pub fn key(mr: *const abi::Mr) -> Option<u32> {
        // SAFETY: null, or a region of this library: ibv_bind_mw(3).
        unsafe { mr.as_ref() }.map(|mr| mr.lkey.get())
    }

    /// Ends the region. Descriptors that use it are waited for.
    pub fn end(&self) -> Result<(), Refusal> {
        let started = Instant::now();
        loop {
            let mut adapter = self.pd().context().lock();
            match adapter.deregister(self.abi.lkey.get()) {
                Err(Refusal::UnderWay(_)) if started.elapsed() < PATIENCE => {
                    adapter.progress();
                }
                result => return result,
            }
            drop(adapter);
            std::thread::yield_now();
        }
    }

    /// Changes domain, place or access, by `IBV_REREG_MR_CHANGE_*`. The keys change too.
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
        let (addr, length) =
            if translation { place } else { (self.abi.addr.get(), self.abi.length.get()) };
        let pd = pd.filter(|_| domain).unwrap_or(self.pd());
        let access = if rights { access } else { self.access.get() };
        let key = register(pd, addr, length, addr as u64, access)?;
        if let Err(busy) = self.end() {
            let _ = pd.context().lock().deregister(key);
            return Err(busy);
        }
        self.access.set(access);
        self.abi.pd.set(pd);
        self.abi.addr.set(addr);
        self.abi.length.set(length);
        self.abi.lkey.set(key);
        self.abi.rkey.set(key);
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
