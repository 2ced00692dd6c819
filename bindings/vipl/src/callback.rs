//! Calls of the program's handlers: completion notifications and asynchronous errors.

use crate::abi::{CqCallback, Descriptor, ErrorDescriptor, ErrorHandler, ViCallback};
use crate::handle::Handle;
use std::collections::VecDeque;
use std::ffi::c_void;

/// Most calls that wait at once; later ones are dropped, like an interrupt that is not served.
const CALLS: usize = 1 << 16;

/// A call that is due. It runs without the NIC's lock.
pub enum Call {
    Vi {
        handler: ViCallback,
        context: *mut c_void,
        nic: Handle,
        vi: Handle,
        descriptor: *mut Descriptor,
    },
    Cq {
        handler: CqCallback,
        context: *mut c_void,
        nic: Handle,
        vi: Handle,
        receives: bool,
    },
    Error {
        handler: ErrorHandler,
        context: *mut c_void,
        error: ErrorDescriptor,
    },
}

// SAFETY: the pointers are the program's own contexts; they are only handed back.
unsafe impl Send for Call {}

impl Call {
    pub fn run(self) {
        match self {
            // SAFETY: the program registered the handler for this call.
            Call::Vi { handler, context, nic, vi, descriptor } => unsafe {
                handler(context, nic.to_pointer(), vi.to_pointer(), descriptor)
            },
            // SAFETY: as above.
            Call::Cq { handler, context, nic, vi, receives } => unsafe {
                handler(context, nic.to_pointer(), vi.to_pointer(), receives.into())
            },
            // SAFETY: as above.
            Call::Error { handler, context, mut error } => unsafe { handler(context, &mut error) },
        }
    }
}

/// The handlers of a NIC, and their calls that are due.
#[derive(Default)]
pub struct Calls {
    pub error_handler: Option<(*mut c_void, ErrorHandler)>,
    pub due: VecDeque<Call>,
}

// SAFETY: the pointers are the program's contexts, which are handed back and never dereferenced.
unsafe impl Send for Calls {}

impl Calls {
    pub fn add(&mut self, call: Call) {
        if self.due.len() < CALLS {
            self.due.push_back(call);
        }
    }
}
