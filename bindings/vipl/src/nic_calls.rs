//! The calls of NICs.

use crate::abi::{ErrorHandler, NicAttributes, Return};
use crate::handle::nic_of;
use crate::nic::{call_on, close, on_nic, open};
use crate::pointer::{Out, Text, call};
use crate::wait::agent;
use std::ffi::c_void;

/// Opens the device `name` as a NIC.
///
/// # Safety
/// `name` is null or ends with a zero; `nic` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipOpenNic(name: Text<'_>, nic: Out<'_, *mut c_void>) -> Return {
    call(|| {
        nic.check()?;
        nic.write(open(&name.to_text(), agent)?.to_pointer())
    })
}

/// Closes a NIC and releases all objects made with it.
#[unsafe(no_mangle)]
pub extern "C" fn VipCloseNic(nic: *mut c_void) -> Return {
    call(|| close(nic_of(nic)))
}

/// The limits of a NIC.
///
/// # Safety
/// `attributes` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipQueryNic(
    nic: *mut c_void,
    attributes: Out<'_, NicAttributes>,
) -> Return {
    call(|| attributes.write(on_nic(nic_of(nic), |state| Ok(state.attributes()))?))
}

/// Management information. The specification names one kind, and this library has none of it.
#[unsafe(no_mangle)]
pub extern "C" fn VipQuerySystemManagementInfo(
    nic: *mut c_void,
    kind: std::ffi::c_ulong,
    info: *mut c_void,
) -> Return {
    call(|| {
        on_nic(nic_of(nic), |_| match kind {
            1 if !info.is_null() => Err(Return::ErrorNotSupported),
            _ => Err(Return::InvalidParameter),
        })
    })
}

/// Sets the handler of asynchronous errors. Without a handler they go to the log only.
#[unsafe(no_mangle)]
pub extern "C" fn VipErrorCallback(
    nic: *mut c_void,
    context: *mut c_void,
    handler: Option<ErrorHandler>,
) -> Return {
    call_on(nic_of(nic), |state| {
        state.calls.error_handler = handler.map(|handler| (context, handler));
        Ok(())
    })
}
