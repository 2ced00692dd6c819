//! The calls of registered memory.

use crate::abi::{MemAttributes, Return};
use crate::handle::{Handle, Kind, nic_of};
use crate::nic::{call_on, on_nic};
use crate::pointer::{Out, call};
use std::ffi::{c_ulong, c_void};

/// Makes a protection tag.
///
/// # Safety
/// `ptag` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipCreatePtag(nic: *mut c_void, ptag: Out<'_, *mut c_void>) -> Return {
    call(|| {
        ptag.check()?;
        let handle = on_nic(nic_of(nic), |state| {
            let (slot, generation) = state.memory.create_tag()?;
            Ok(Handle { kind: Kind::Ptag, nic: state.handle.nic, slot, generation })
        })?;
        ptag.write(handle.to_pointer())
    })
}

/// Destroys a protection tag that no VI and no region uses.
#[unsafe(no_mangle)]
pub extern "C" fn VipDestroyPtag(nic: *mut c_void, ptag: *mut c_void) -> Return {
    call_on(nic_of(nic), |state| state.memory.destroy_tag(&mut state.function, ptag))
}

/// Registers memory of the program in place.
///
/// # Safety
/// `attributes` is null or valid; `handle` is null or writable. The memory stays mapped and
/// writable until it is deregistered.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipRegisterMem(
    nic: *mut c_void,
    address: *mut c_void,
    length: c_ulong,
    attributes: Option<&MemAttributes>,
    handle: Out<'_, u32>,
) -> Return {
    call(|| {
        handle.check()?;
        let none =
            MemAttributes { ptag: std::ptr::null_mut(), enable_rdma_write: 0, enable_rdma_read: 0 };
        let attributes = attributes.copied().unwrap_or(none);
        handle.write(on_nic(nic_of(nic), |state| {
            state.memory.register(&mut state.function, address, length, attributes)
        })?)
    })
}

/// Ends a registration that no posted descriptor uses.
#[unsafe(no_mangle)]
pub extern "C" fn VipDeregisterMem(nic: *mut c_void, address: *mut c_void, handle: u32) -> Return {
    call_on(nic_of(nic), |state| {
        state.drain();
        state.memory.deregister(&mut state.function, address, handle)
    })
}

/// The attributes of a registration.
///
/// # Safety
/// `attributes` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipQueryMem(
    nic: *mut c_void,
    address: *mut c_void,
    handle: u32,
    attributes: Out<'_, MemAttributes>,
) -> Return {
    call(|| attributes.write(on_nic(nic_of(nic), |state| state.memory.query(address, handle))?))
}

/// Changes the attributes of a registration that no posted descriptor uses.
///
/// # Safety
/// `attributes` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipSetMemAttributes(
    nic: *mut c_void,
    address: *mut c_void,
    handle: u32,
    attributes: Option<&MemAttributes>,
) -> Return {
    call(|| {
        let attributes = *attributes.ok_or(Return::InvalidParameter)?;
        on_nic(nic_of(nic), |state| {
            state.drain();
            state.memory.set_attributes(&mut state.function, address, handle, attributes)
        })
    })
}
