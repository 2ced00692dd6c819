//! Memory windows.

use crate::abi::{self, MwBind, MwBindInfo};
use crate::context::ContextObject;
use crate::errno;
use crate::pd::Pd;
use crate::qp::Qp;
use bellwire_rdma::{Access, Binding, Bytes, Operation, Refusal, SendRequest};
use std::cell::Cell;
use std::ffi::c_int;
use std::ptr::NonNull;

/// A window, of type 1 or 2.
#[repr(C)]
pub struct Mw {
    abi: abi::Mw,
}

/// `IBV_SEND_SIGNALED`, `IBV_SEND_FENCE`
const SIGNALED: u32 = 2;
const FENCE: u32 = 1;

impl Mw {
    /// Its first key, which names it for ever. The program changes `rkey` as it likes.
    pub fn key(&self) -> u32 {
        self.abi.handle
    }

    /// The key by which a request binds it.
    ///
    /// # Errors
    /// A window of type 1 is bound by a call.
    pub fn posted_key(&self) -> Result<u32, Refusal> {
        match self.abi.kind {
            2 => Ok(self.key()),
            _ => Err(Refusal::Invalid("a window of type 1 is bound by ibv_bind_mw")),
        }
    }
}

/// Where a window is to be bound.
pub fn binding(info: &MwBindInfo) -> Result<Binding, Refusal> {
    let flags = Access::from_bits(info.access);
    let access = flags.ok_or(Refusal::Invalid("an access flag is not known"))?;
    let region = crate::mr::Mr::key(info.mr).unwrap_or(0);
    Ok(Binding { region, address: info.addr, length: info.length, access })
}

pub extern "C" fn alloc(pd: &Pd, kind: u32) -> *mut Mw {
    let made = match kind {
        1 | 2 => pd.context().lock().allocate_window(pd.domain),
        _ => Err(Refusal::Invalid("a window has type 1 or 2")),
    };
    let context = pd.abi_context();
    let window =
        |rkey| Mw { abi: abi::Mw { context, pd, rkey: Cell::new(rkey), handle: rkey, kind } };
    errno::object("ibv_alloc_mw", made.map(window))
}

/// Binds a window of type 1: a request of the queue pair that changes the key.
pub extern "C" fn bind(qp: &Qp, mw: &Mw, bind: &MwBind) -> c_int {
    let result = binding(&bind.info).and_then(|to| {
        if mw.abi.kind != 1 {
            return Err(Refusal::Invalid("ibv_bind_mw is for windows of type 1"));
        }
        let window = mw.abi.rkey.get();
        // The lowest byte belongs to the owner of the key.
        let key = (window & !0xff) | (window.wrapping_add(1) & 0xff);
        let request = SendRequest {
            id: bind.wr_id,
            operation: Operation::BindWindow { window: mw.key(), key, to },
            bytes: Bytes::Listed(&[]),
            signaled: bind.send_flags & SIGNALED != 0,
            solicited: false,
            fence: bind.send_flags & FENCE != 0,
            to: None,
        };
        qp.context().lock().post_send(qp.number(), &request)?;
        mw.abi.rkey.set(key);
        Ok(())
    });
    errno::answer("ibv_bind_mw", result)
}

pub extern "C" fn dealloc(mw: *mut Mw) -> c_int {
    let Some(object) = NonNull::new(mw) else { return errno::set(libc::EINVAL) };
    // SAFETY: C gives back a window of `alloc`.
    let window = unsafe { object.as_ref() };
    let ended = ContextObject::of(window.abi.context).lock().deregister(window.key());
    if ended.is_ok() {
        // SAFETY: it was made by `Box::into_raw`.
        drop(unsafe { Box::from_raw(mw) });
    }
    errno::answer("ibv_dealloc_mw", ended)
}
