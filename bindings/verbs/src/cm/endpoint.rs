//! What several calls at once do: `rdma_create_ep(3)` and `rdma_get_request(3)`.

use super::abi::{AddrInfo, Kind};
use super::addrinfo::PASSIVE;
use super::event::EventObject;
use super::id::Id;
use super::{Errno, address, calls, queue_pair};
use crate::abi::QpInitAttr;
use crate::pd::Pd;
use std::ptr::null_mut;

/// How long addresses and routes may take, which takes no time here.
const RESOLVE_MS: i32 = 2000;

/// An identifier that is bound or has its route, with a queue pair if attributes are given.
///
/// # Safety
/// Addresses in `info` are null, or as long as their families say.
pub unsafe fn create(
    info: &AddrInfo,
    pd: Option<&Pd>,
    attr: Option<&mut QpInitAttr>,
) -> Result<&'static Id, Errno> {
    let id = Id::new(None, null_mut(), info.port_space as u32, info.qp_type as u32)?;
    // SAFETY: the caller's promise.
    let done = unsafe { set_up(id, info, pd, attr) };
    done.map(|()| id).inspect_err(|_| {
        queue_pair::destroy(id);
        Id::destroy(std::ptr::from_ref(id).cast_mut());
    })
}

/// # Safety
/// As for [`create`].
unsafe fn set_up(
    id: &Id,
    info: &AddrInfo,
    pd: Option<&Pd>,
    attr: Option<&mut QpInitAttr>,
) -> Result<(), Errno> {
    if info.connect_len > 0 && !info.connect.is_null() {
        // SAFETY: as many bytes as it says.
        let data = unsafe { std::slice::from_raw_parts(info.connect, info.connect_len) };
        id.state().data = data.to_vec();
    }
    if info.flags & PASSIVE != 0 {
        // SAFETY: the caller's promise.
        id.bind(unsafe { address::read(info.src_addr) }?)?;
        if let Some(pd) = pd {
            id.abi.pd.set(pd);
        }
        id.state().requests = attr.map(|attr| QpInitAttr { ..*attr });
        return Ok(());
    }
    // SAFETY: the caller's promise.
    unsafe { calls::resolve_address(id, info.src_addr, info.dst_addr, RESOLVE_MS) }?;
    id.set_route();
    id.done(Kind::RouteResolved)?;
    match attr {
        Some(attr) => {
            attr.qp_type = id.abi.qp_type;
            queue_pair::create(id, pd, attr, |pd, attr| crate::calls::ibv_create_qp(pd, attr))
        }
        None => Ok(()),
    }
}

/// The next request at a listener whose calls wait.
pub fn request(listener: &Id) -> Result<&'static Id, Errno> {
    if !listener.state().is_sync {
        return Err(libc::EINVAL);
    }
    listener.acknowledge();
    // SAFETY: its own channel lives as long as it does.
    let event = EventObject::wait(unsafe { &*listener.abi.channel.get() })?;
    // SAFETY: it was made just now, and its identifier waits for its acknowledgement.
    let (kind, id) = unsafe { ((*event).abi.event, &*(*event).abi.id) };
    if kind != Kind::ConnectRequest as u32 {
        EventObject::end(event);
        return Err(libc::EINVAL);
    }
    let attr = listener.state().requests.as_ref().map(|attr| QpInitAttr { ..*attr });
    if let Some(mut attr) = attr {
        attr.qp_type = id.abi.qp_type;
        // SAFETY: null, or a domain of the program, which lives as long as its listener.
        let pd = unsafe { listener.abi.pd.get().as_ref() };
        let make = |pd: &Pd, attr: &mut QpInitAttr| crate::calls::ibv_create_qp(pd, attr);
        if let Err(errno) = queue_pair::create(id, pd, &mut attr, make) {
            EventObject::end(event);
            Id::destroy(std::ptr::from_ref(id).cast_mut());
            return Err(errno);
        }
    }
    id.abi.event.set(event);
    Ok(id)
}
