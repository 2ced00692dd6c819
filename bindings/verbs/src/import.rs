//! Objects that are used a second time in the same process, by a copy of the context's descriptor.

use crate::abi::Context;
use crate::context::{self, ContextObject};
use crate::errno;
use crate::mr::Mr;
use crate::pd::Pd;
use std::ffi::c_int;

/// The descriptor belongs to the new context, as in the kernel.
pub extern "C" fn ibv_import_device(descriptor: c_int) -> *mut Context {
    context::publish("ibv_import_device", ContextObject::import(descriptor))
}

pub extern "C" fn ibv_import_pd(context: &Context, handle: u32) -> *mut Pd {
    errno::object("ibv_import_pd", Pd::share(context, handle))
}

pub extern "C" fn ibv_unimport_pd(pd: *mut Pd) {
    crate::calls::ibv_dealloc_pd(pd);
}

pub extern "C" fn ibv_import_mr(pd: &Pd, handle: u32) -> *mut Mr {
    errno::object("ibv_import_mr", Mr::import(pd, handle))
}

pub extern "C" fn ibv_unimport_mr(mr: *mut Mr) {
    if !mr.is_null() {
        // SAFETY: a region of `ibv_import_mr`, which C gives back. The region itself goes on.
        drop(unsafe { Box::from_raw(mr) });
    }
}
