//! Calls of the program's handlers: completion notifications and asynchronous errors.

use crate::abi::{
    CqCallback, Descriptor, ErrorCode, ErrorDescriptor, ErrorHandler, ResourceCode, Return,
    ViCallback,
};
use crate::handle::{Handle, nic_of};
use crate::nic::{State, on_nic};
use crate::pointer::call;
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

impl State {
    pub fn due(&mut self, call: Call) {
        if self.calls.len() < CALLS {
            self.calls.push_back(call);
        }
        self.news = true;
    }

    /// Reports an asynchronous error: one that no call of the program returns.
    pub fn tell_error(
        &mut self,
        vi: Handle,
        resource: ResourceCode,
        code: ErrorCode,
        descriptor: *mut Descriptor,
        op_code: u32,
    ) {
        tracing::warn!(nic = %self.name, ?code, "asynchronous error of a VI");
        let Some((context, handler)) = self.error_handler else { return };
        let error = ErrorDescriptor {
            nic: self.handle.to_pointer(),
            vi: vi.to_pointer(),
            cq: std::ptr::null_mut(),
            descriptor,
            op_code: op_code.into(),
            resource,
            error: code,
        };
        self.due(Call::Error { handler, context, error });
    }
}

/// Sets the handler of asynchronous errors. Without a handler they go to the log only.
#[unsafe(no_mangle)]
pub extern "C" fn VipErrorCallback(
    nic: *mut c_void,
    context: *mut c_void,
    handler: Option<ErrorHandler>,
) -> Return {
    call(|| {
        on_nic(nic_of(nic), |state| {
            state.error_handler = handler.map(|handler| (context, handler));
            Ok(())
        })
    })
}
