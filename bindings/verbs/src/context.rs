//! Contexts: open devices, with the tables through which the header's inline functions call.

use crate::abi::{self, ContextOps, VerbsContext};
use crate::device::DeviceObject;
use crate::{cq, cq_ex, mr, mw, post, qp, query, srq};
use bellwire_rdma::{Adapter, AsyncEvent, EventQueue, Refusal};
use std::mem::offset_of;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

/// An open device. C has the address of `verbs.context`.
#[repr(C)]
pub struct ContextObject {
    verbs: VerbsContext,
    rdma: bellwire_rdma::Context,
    pub events: Arc<EventQueue<AsyncEvent>>,
    pub device: &'static DeviceObject,
}

/// `abi_compat` of a context that has a `verbs_context` around it.
const EXTENDED: usize = usize::MAX;

impl ContextObject {
    /// Opens a device.
    pub fn open(device: &'static DeviceObject) -> Result<ContextObject, Refusal> {
        let rdma = bellwire_rdma::Context::open(&device.bellwire)?;
        let events = rdma.lock().events();
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
            cmd_fd: -1,
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
            reg_dm_mr: None,
            alloc_dm: None,
            free_dm: None,
            flow_actions: [None; 3],
            modify_qp_rate_limit: None,
            alloc_parent_domain: None,
            dealloc_td: None,
            alloc_td: None,
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
        Ok(ContextObject { verbs, rdma, events, device })
    }

    /// Remembers the context for the program's end.
    pub fn remember(&self) {
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

    /// The program may sleep now.
    pub fn sleeps(&self) {
        self.rdma.sleeps();
    }

    /// Drops the asynchronous events of an object that ends.
    pub fn forget_events(&self, object: usize) {
        self.events.remove(|event| event.object == object);
    }
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
