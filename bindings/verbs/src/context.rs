//! Contexts: open devices, with the tables through which the header's inline functions call.

use crate::abi::{self, ContextOps, VerbsContext};
use crate::device::DeviceObject;
use crate::dm::{self, DeviceMemory};
use crate::{cq, cq_ex, errno, mr, mw, pd, post, qp, query, srq};
use bellwire_rdma::{Adapter, AsyncEvent, EventQueue, Refusal};
use std::ffi::c_int;
use std::mem::offset_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

/// An open device. C has the address of `verbs.context`.
#[repr(C)]
pub struct ContextObject {
    verbs: VerbsContext,
    rdma: Arc<bellwire_rdma::Context>,
    pub events: Arc<EventQueue<AsyncEvent>>,
    pub device: &'static DeviceObject,
    /// Its only GID: the address of a host, or the number of a node of `shm` or `eth`.
    pub gid: [u8; 16],
    pub device_memory: DeviceMemory,
    /// Names the context for [`ContextObject::import`]; C calls it `cmd_fd`.
    descriptor: OwnedFd,
}

/// `abi_compat` of a context that has a `verbs_context` around it.
const EXTENDED: usize = usize::MAX;

impl ContextObject {
    /// Opens a device.
    pub fn open(device: &'static DeviceObject) -> Result<ContextObject, Refusal> {
        let rdma = Arc::new(bellwire_rdma::Context::open(&device.own.below)?);
        // SAFETY: memfd_create(2) takes a string.
        let descriptor = unsafe { libc::memfd_create(c"bellwire".as_ptr(), libc::MFD_CLOEXEC) };
        if descriptor < 0 {
            return Err(Refusal::System(std::io::Error::last_os_error()));
        }
        // SAFETY: it was opened here.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        Ok(ContextObject::with(device, rdma, descriptor))
    }

    /// A second context for the one whose descriptor was copied to `descriptor`, in this process.
    /// Queues and memory are shared; asynchronous events go to whoever asks first.
    pub fn import(descriptor: c_int) -> Result<ContextObject, Refusal> {
        let identity = identity(descriptor).map_err(Refusal::System)?;
        let open = open_contexts();
        let same = open.iter().map(|&context| ContextObject::of(context as *const abi::Context));
        let is_it = |own: &&ContextObject| {
            self::identity(own.descriptor.as_raw_fd()).is_ok_and(|known| known == identity)
        };
        let own = same.clone().find(is_it);
        let own =
            own.ok_or(Refusal::Unsupported("no context of this process has the descriptor"))?;
        // SAFETY: it is open, and belongs to the new context from now on: ibv_import_device(3).
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        Ok(ContextObject::with(own.device, own.rdma.clone(), descriptor))
    }

    fn with(
        device: &'static DeviceObject,
        rdma: Arc<bellwire_rdma::Context>,
        descriptor: OwnedFd,
    ) -> ContextObject {
        let (events, gid) = {
            let adapter = rdma.lock();
            (adapter.events(), adapter.host().to_ipv6_mapped().octets())
        };
        let context = abi::Context {
            device: &device.abi,
            ops: ContextOps {
                compat_0: [None; 7],
                alloc_mw: mw::alloc,
                bind_mw: mw::bind,
                dealloc_mw: mw::dealloc,
                compat_1: None,
                poll_cq: post::poll_cq,
                req_notify_cq: cq::req_notify,
                compat_2: [None; 7],
                post_srq_recv: post::post_srq_recv,
                compat_3: [None; 4],
                post_send: post::post_send,
                post_recv: post::post_recv,
                compat_4: [None; 5],
            },
            cmd_fd: descriptor.as_raw_fd(),
            async_fd: events.fd(),
            num_comp_vectors: 1,
            mutex: abi::Mutex::NEW,
            abi_compat: EXTENDED,
        };
        let verbs = VerbsContext {
            since_60: [None; 6],
            query_port: query::query_port,
            advise_mr: mr::advise,
            alloc_null_mr: None,
            counters: [None; 4],
            reg_dm_mr: dm::register,
            alloc_dm: dm::alloc,
            free_dm: dm::free,
            flow_actions: [None; 3],
            modify_qp_rate_limit: None,
            alloc_parent_domain: pd::alloc_parent_domain,
            dealloc_td: pd::dealloc_td,
            alloc_td: pd::alloc_td,
            modify_cq: None,
            post_srq_ops: None,
            destroy_rwq_ind_table: None,
            create_rwq_ind_table: None,
            destroy_wq: None,
            modify_wq: None,
            create_wq: None,
            query_rt_values: query::query_rt_values,
            create_cq_ex: cq_ex::create,
            private: 0,
            query_device_ex: query::query_device_ex,
            destroy_flow: None,
            placeholder_2: None,
            create_flow: None,
            placeholder_1: None,
            open_qp: None,
            create_qp_ex: qp::create_ex,
            get_srq_num: None,
            create_srq_ex: srq::create_ex,
            open_xrcd: None,
            close_xrcd: None,
            placeholder_3: 0,
            size: size_of::<VerbsContext>(),
            context,
        };
        let device_memory = DeviceMemory::default();
        ContextObject { verbs, rdma, events, device, gid, device_memory, descriptor }
    }

    /// Remembers the context for the program's end.
    fn remember(&self) {
        static ONCE: Once = Once::new();
        // SAFETY: a function of this library, which is not unloaded before.
        ONCE.call_once(|| unsafe {
            libc::atexit(at_exit);
        });
        open_contexts().push(self.abi() as usize);
    }

    /// What C calls the context.
    pub fn abi(&self) -> *mut abi::Context {
        (&raw const self.verbs.context).cast_mut()
    }

    /// The object that C calls `context`.
    pub fn of(context: *const abi::Context) -> &'static ContextObject {
        let offset = offset_of!(ContextObject, verbs) + offset_of!(VerbsContext, context);
        // SAFETY: all contexts are made by `open`, inside of their object, which lives until
        // `ibv_close_device`. No call comes after that: ibv_open_device(3).
        unsafe { &*context.byte_sub(offset).cast() }
    }

    /// The adapter, for one call.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, Adapter> {
        self.rdma.lock()
    }

    /// Sleeps until a packet comes, at most for `limit`.
    pub fn doze(&self, limit: Duration) {
        self.rdma.doze(limit);
    }

    /// The program may sleep at the descriptor of a channel next.
    pub fn may_sleep(&self) {
        self.rdma.may_sleep();
    }

    /// The oldest event of a channel; waits for one for a while.
    pub fn next_event(&self, channel: &EventQueue<usize>) -> std::io::Result<Option<usize>> {
        self.rdma.next_event(channel)
    }

    /// Drops the asynchronous events of an object that ends.
    pub fn forget_events(&self, object: usize) {
        self.events.remove(|event| event.object == object);
    }
}

/// What all copies of a descriptor have in common.
fn identity(descriptor: c_int) -> std::io::Result<(u64, u64)> {
    // SAFETY: all zeroes are a `stat`, which fstat(2) fills.
    let mut found: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: as above; a wrong descriptor is an error.
    match unsafe { libc::fstat(descriptor, &mut found) } {
        0 => Ok((found.st_dev, found.st_ino)),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Gives a new context to C.
pub fn publish(what: &str, made: Result<ContextObject, Refusal>) -> *mut abi::Context {
    let context = errno::object(what, made);
    // SAFETY: null, or the object that was made here.
    let Some(context) = (unsafe { context.as_ref() }) else { return std::ptr::null_mut() };
    context.remember();
    context.abi()
}

/// Contexts that are open, by address.
static OPEN: Mutex<Vec<usize>> = Mutex::new(Vec::new());

fn open_contexts() -> MutexGuard<'static, Vec<usize>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Many programs end without closing anything. A card would have acknowledged what they received,
/// and their peers would not notice.
extern "C" fn at_exit() {
    // Another thread may be opening or closing one just now.
    if let Ok(open) = OPEN.try_lock() {
        for &context in open.iter() {
            ContextObject::of(context as *const abi::Context).rdma.leave();
        }
    }
}

/// Ends a context.
pub fn close(context: NonNull<abi::Context>) {
    open_contexts().retain(|&open| open != context.as_ptr() as usize);
    let object = ContextObject::of(context.as_ptr());
    // SAFETY: it was made by `Box::into_raw`, and C gives it back.
    drop(unsafe { Box::from_raw(std::ptr::from_ref(object).cast_mut()) });
}
