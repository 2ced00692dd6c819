//! Shared receive queues.

use crate::abi::{self, Opaque, SrqAttr, SrqInitAttrEx};
use crate::context::ContextObject;
use crate::errno;
use crate::event::Acknowledged;
use crate::pd::Pd;
use bellwire_rdma::{Refusal, SrqId};
use std::ptr::null_mut;
use std::sync::atomic::AtomicU32;

/// A shared receive queue.
#[repr(C)]
pub struct Srq {
    abi: abi::Srq,
    pub id: SrqId,
    pub async_events: Acknowledged,
}

impl Srq {
    pub fn context(&self) -> &'static ContextObject {
        ContextObject::of(self.abi.context)
    }
}

/// A shared receive queue, or the error. Writes the sizes that it has.
pub fn create(pd: &Pd, srq_context: Opaque, attr: &mut SrqAttr) -> Result<*mut Srq, Refusal> {
    let place = Box::new(std::mem::MaybeUninit::<Srq>::uninit());
    let number = place.as_ptr() as usize;
    let (depth, parts) = ((attr.max_wr as usize).max(1), (attr.max_sge as usize).max(1));
    let id = pd.context().lock().create_shared(pd.domain, depth, parts, 0, number)?;
    (attr.max_wr, attr.max_sge) = (depth as u32, parts as u32);
    let abi = abi::Srq {
        context: pd.abi_context(),
        srq_context,
        pd,
        handle: 0,
        mutex: abi::Mutex::NEW,
        cond: abi::Cond::NEW,
        events_completed: AtomicU32::new(0),
    };
    Ok(Box::into_raw(Box::write(place, Srq { abi, id, async_events: Acknowledged::default() })))
}

/// The result of a call that returns a queue.
pub fn answer(what: &str, made: Result<*mut Srq, Refusal>) -> *mut Srq {
    made.unwrap_or_else(|refusal| {
        crate::log::refused(what, &refusal);
        errno::set(errno::of(&refusal));
        null_mut()
    })
}

pub extern "C" fn create_ex(_: &abi::Context, attr: &mut SrqInitAttrEx) -> *mut Srq {
    // IBV_SRQ_INIT_ATTR_TYPE and _PD; the type is basic.
    let basic = attr.comp_mask & 1 == 0 || attr.srq_type == 0;
    let made = match attr.pd.filter(|_| attr.comp_mask & !3 == 0 && basic) {
        Some(pd) => create(pd, attr.srq_context, &mut attr.attr),
        None => Err(Refusal::Unsupported("a shared receive queue of another type than basic")),
    };
    answer("ibv_create_srq_ex", made)
}

/// Ends a queue.
pub fn destroy(srq: *mut Srq) -> Result<(), Refusal> {
    // SAFETY: C gives back a queue of `create`.
    let object = unsafe { srq.as_ref() }.ok_or(Refusal::Invalid("no shared receive queue"))?;
    object.context().lock().destroy_shared(object.id)?;
    object.context().forget_events(srq as usize);
    object.async_events.wait();
    // SAFETY: it was made by `Box::into_raw`.
    drop(unsafe { Box::from_raw(srq) });
    Ok(())
}
