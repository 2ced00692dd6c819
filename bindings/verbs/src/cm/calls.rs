//! The exported calls of connections, in the order of the header.

use super::abi::{AddrInfo, CmEvent, ConnParam, JoinAttr, Kind};
use super::addrinfo::{self, AddrInfoObject};
use super::channel::{CmChannel, Joined};
use super::event::EventObject;
use super::id::{Id, service_of};
use super::{Errno, address, answer, device, endpoint, errno_of, queue_pair};
use crate::abi::{Context, Opaque, QpAttr, QpInitAttr, QpInitAttrEx, SrqInitAttr, SrqInitAttrEx};
use crate::context::ContextObject;
use crate::pd::Pd;
use crate::qp;
use bellwire_rdma::{LIMITS, QpState};
use bellwire_rdmacm::{Offer, reason, source_for};
use std::ffi::{c_char, c_int, c_void};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::ptr::null_mut;
use std::sync::Arc;

// Channels and identifiers.

pub extern "C" fn rdma_create_event_channel() -> *mut CmChannel {
    match CmChannel::new() {
        Ok(channel) => Box::into_raw(Box::new(channel)),
        Err(error) => {
            crate::errno::set(errno_of(&error));
            null_mut()
        }
    }
}

pub extern "C" fn rdma_destroy_event_channel(channel: *mut CmChannel) {
    if !channel.is_null() {
        // SAFETY: it was made by `rdma_create_event_channel`, and has no identifiers left.
        drop(unsafe { Box::from_raw(channel) });
    }
}

pub extern "C" fn rdma_create_id(
    channel: Option<&CmChannel>,
    id: Option<&mut *const Id>,
    context: Opaque,
    space: u32,
) -> c_int {
    let made = id.ok_or(libc::EINVAL).and_then(|id| {
        *id = Id::new(channel, context, space, service_of(space))?;
        Ok(())
    });
    answer(made)
}

pub extern "C" fn rdma_destroy_id(id: *mut Id) -> c_int {
    if id.is_null() {
        return answer(Err(libc::EINVAL));
    }
    Id::destroy(id);
    0
}

/// # Safety
/// Addresses in `info` are null, or as long as their families say.
pub unsafe extern "C" fn rdma_create_ep(
    id: &mut *const Id,
    info: Option<&AddrInfo>,
    pd: Option<&Pd>,
    attr: Option<&mut QpInitAttr>,
) -> c_int {
    let made = info.ok_or(libc::EINVAL).and_then(|info| {
        // SAFETY: the caller's promise.
        *id = unsafe { endpoint::create(info, pd, attr) }?;
        Ok(())
    });
    answer(made)
}

pub extern "C" fn rdma_destroy_ep(id: *mut Id) {
    // SAFETY: null, or an identifier.
    if let Some(own) = unsafe { id.as_ref() } {
        queue_pair::destroy(own);
        rdma_destroy_srq(own);
        Id::destroy(id);
    }
}

/// # Safety
/// The address is null, or as long as its family says.
pub unsafe extern "C" fn rdma_bind_addr(id: &Id, to: *const libc::sockaddr) -> c_int {
    // SAFETY: the caller's promise.
    answer(unsafe { address::read(to) }.and_then(|to| id.bind(to)))
}

// Addresses and routes.

/// # Safety
/// The addresses are null, or as long as their families say.
pub unsafe extern "C" fn rdma_resolve_addr(
    id: &Id,
    from: *const libc::sockaddr,
    to: *const libc::sockaddr,
    timeout_ms: c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    answer(unsafe { resolve_address(id, from, to, timeout_ms) })
}

/// Finds the address and the device that lead to another one.
///
/// # Safety
/// The addresses are null, or as long as their families say.
pub unsafe fn resolve_address(
    id: &Id,
    from: *const libc::sockaddr,
    to: *const libc::sockaddr,
    timeout_ms: c_int,
) -> Result<(), Errno> {
    if timeout_ms < 0 {
        return Err(libc::EINVAL);
    }
    // SAFETY: the caller's promise.
    let mut to = unsafe { address::read(to) }?;
    if to.ip().is_unspecified() {
        to.set_ip(Ipv4Addr::LOCALHOST);
    }
    let source = |wanted: Ipv4Addr| match wanted.is_unspecified() {
        true => source_for(*to.ip()).map_err(|error| errno_of(&error)),
        false => Ok(wanted),
    };
    match id.local() {
        Some(bound) => id.use_device_of(source(*bound.ip())?)?,
        None => {
            let wanted = if from.is_null() {
                SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0)
            } else {
                // SAFETY: the caller's promise.
                unsafe { address::read(from) }?
            };
            id.bind(SocketAddrV4::new(source(*wanted.ip())?, wanted.port()))?;
        }
    }
    id.set_peer(to);
    id.state().has_address = true;
    id.done(Kind::AddrResolved)
}

pub extern "C" fn rdma_resolve_route(id: &Id, timeout_ms: c_int) -> c_int {
    if timeout_ms < 0 || !id.state().has_address {
        return answer(Err(libc::EINVAL));
    }
    id.set_route();
    answer(id.done(Kind::RouteResolved))
}

// Queue pairs.

pub extern "C" fn rdma_create_qp(id: &Id, pd: Option<&Pd>, attr: Option<&mut QpInitAttr>) -> c_int {
    let made = attr.ok_or(libc::EINVAL).and_then(|attr| {
        queue_pair::create(id, pd, attr, |pd, attr| crate::calls::ibv_create_qp(pd, attr))
    });
    answer(made)
}

pub extern "C" fn rdma_create_qp_ex(id: &Id, attr: Option<&mut QpInitAttrEx>) -> c_int {
    let made = attr.ok_or(libc::EINVAL).and_then(|attr| {
        let mut base = QpInitAttr {
            qp_context: attr.qp_context,
            send_cq: attr.send_cq,
            recv_cq: attr.recv_cq,
            srq: attr.srq,
            cap: attr.cap,
            qp_type: attr.qp_type,
            sq_sig_all: attr.sq_sig_all,
        };
        /// `IBV_QP_INIT_ATTR_PD`
        const HAS_PD: u32 = 1;
        let pd = attr.pd.filter(|_| attr.comp_mask & HAS_PD != 0);
        queue_pair::create(id, pd, &mut base, |pd, base| {
            (attr.send_cq, attr.recv_cq, attr.srq) = (base.send_cq, base.recv_cq, base.srq);
            // SAFETY: a domain outlives its queue pairs.
            attr.pd = unsafe { std::ptr::from_ref(pd).as_ref() };
            attr.comp_mask |= HAS_PD;
            // SAFETY: the context of an open device.
            qp::create_ex(unsafe { &*pd.abi_context() }, attr)
        })
    });
    answer(made)
}

pub extern "C" fn rdma_destroy_qp(id: &Id) {
    queue_pair::destroy(id);
}

pub extern "C" fn rdma_create_srq(id: &Id, pd: Option<&Pd>, attr: &mut SrqInitAttr) -> c_int {
    let made = queue_pair::domain_of(id, pd).and_then(|domain| {
        // SAFETY: a domain of the program, or one that is never ended.
        let made = crate::calls::ibv_create_srq(unsafe { &*domain }, attr);
        if made.is_null() {
            return Err(queue_pair::last_errno());
        }
        id.abi.srq.set(made);
        id.abi.pd.set(domain);
        Ok(())
    });
    answer(made)
}

pub extern "C" fn rdma_create_srq_ex(id: &Id, attr: &mut SrqInitAttrEx) -> c_int {
    let made = queue_pair::domain_of(id, attr.pd).and_then(|domain| {
        // SAFETY: a domain of the program, or one that is never ended.
        let pd = unsafe { &*domain };
        attr.pd = Some(pd);
        attr.comp_mask |= 1 << 1;
        // SAFETY: the context of an open device.
        let made = crate::srq::create_ex(unsafe { &*pd.abi_context() }, attr);
        if made.is_null() {
            return Err(queue_pair::last_errno());
        }
        id.abi.srq.set(made);
        id.abi.pd.set(domain);
        Ok(())
    });
    answer(made)
}

pub extern "C" fn rdma_destroy_srq(id: &Id) {
    let srq = id.abi.srq.replace(null_mut());
    if !srq.is_null() {
        crate::calls::ibv_destroy_srq(srq);
    }
}

pub extern "C" fn rdma_init_qp_attr(id: &Id, attr: &mut QpAttr, mask: &mut c_int) -> c_int {
    let state = QpState::from_value(attr.qp_state).ok_or(libc::EINVAL);
    answer(state.and_then(|state| queue_pair::attributes(id, state)).map(|(all, bits)| {
        *attr = all;
        *mask = bits.bits() as c_int;
    }))
}

// Connections.

/// The most private data of a message, in bytes, as the InfiniBand specification has it: of
/// connections and of datagrams.
const REQUEST_DATA: [usize; 2] = [56, 180];
const REPLY_DATA: [usize; 2] = [196, 136];
const REJECT_DATA: usize = 148;

/// Private data of the program.
///
/// # Safety
/// `data` is null, or has `length` bytes.
unsafe fn private(data: *const u8, length: u8, most: usize) -> Result<Vec<u8>, Errno> {
    let length = if data.is_null() { 0 } else { usize::from(length) };
    if length > most {
        return Err(libc::EINVAL);
    }
    let mut copy = vec![0; length];
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(data, copy.as_mut_ptr(), length) };
    Ok(copy)
}

/// What this side brings. Without parameters it is as much as the device and the other side allow.
///
/// # Safety
/// Private data is null, or as long as it says.
unsafe fn offer(id: &Id, param: Option<&ConnParam>, most: [usize; 2]) -> Result<Offer, Errno> {
    // SAFETY: null, or the context of an open device, which is never closed.
    let context = unsafe { id.abi.verbs.get().as_ref() }.ok_or(libc::EINVAL)?;
    // SAFETY: null, or a queue pair of `rdma_create_qp`.
    let own = unsafe { id.abi.qp.get().as_ref() };
    let is_datagrams = id.abi.qp_type == service_of(0x0111);
    let queue_pair = match (own, param) {
        (Some(qp), _) => qp.number(),
        (None, Some(param)) => param.qp_num & 0xff_ffff,
        (None, None) => return Err(libc::EINVAL),
    };
    let data = match param {
        // SAFETY: the caller's promise.
        Some(it) => unsafe {
            private(it.private_data, it.private_data_len, most[usize::from(is_datagrams)])
        }?,
        None => Vec::new(),
    };
    // 255 means as many as there are.
    let reads = |wanted: Option<u8>, asked: Option<u8>| {
        wanted.or(asked).unwrap_or(u8::MAX).min(LIMITS.reads)
    };
    let (psn, peer) = {
        let state = id.state();
        (state.psn, state.peer.clone())
    };
    Ok(Offer {
        queue_pair,
        psn,
        qkey: if is_datagrams { queue_pair::UDP_QKEY } else { 0 },
        gid: ContextObject::of(context).gid,
        responder_resources: reads(
            param.map(|it| it.responder_resources),
            peer.as_ref().map(|it| it.initiator_depth),
        ),
        initiator_depth: reads(
            param.map(|it| it.initiator_depth),
            peer.as_ref().map(|it| it.responder_resources),
        ),
        flow_control: param.map_or(1, |it| it.flow_control),
        retry_count: param.map_or(7, |it| it.retry_count.min(7)),
        rnr_retry_count: param.map_or(7, |it| it.rnr_retry_count.min(7)),
        has_shared: match own {
            Some(qp) => u8::from(!qp.abi.qp.srq.is_null()),
            None => param.map_or(0, |it| it.srq),
        },
        service: id.abi.qp_type as u8,
        data,
        ..Offer::default()
    })
}

/// # Safety
/// Private data is null, or as long as it says.
pub unsafe extern "C" fn rdma_connect(id: &Id, param: Option<&ConnParam>) -> c_int {
    // SAFETY: the caller's promise.
    let offered = unsafe { offer(id, param, REQUEST_DATA) };
    let done = offered.and_then(|mut offer| {
        let to = address::parse(&id.abi.route.addr.dst.get()).ok_or(libc::EINVAL)?;
        {
            let mut state = id.state();
            if !state.has_route {
                return Err(libc::EINVAL);
            }
            // What `rdma_getaddrinfo` gave comes first.
            offer.data.splice(0..0, state.data.iter().copied());
            state.retries = offer.retry_count;
            state.own = Some(offer.clone());
        }
        id.end.connect(to, offer).map_err(|error| errno_of(&error))?;
        id.complete()
    });
    answer(done)
}

pub extern "C" fn rdma_establish(id: &Id) -> c_int {
    answer(id.end.ready().map_err(|error| errno_of(&error)))
}

pub extern "C" fn rdma_listen(id: &Id, backlog: c_int) -> c_int {
    let bound = match id.local() {
        Some(_) => Ok(()),
        None => id.bind(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0)),
    };
    let backlog = usize::try_from(backlog).unwrap_or(0);
    answer(bound.and_then(|()| id.end.listen(backlog).map_err(|error| errno_of(&error))))
}

pub extern "C" fn rdma_get_request(listener: &Id, id: &mut *const Id) -> c_int {
    answer(endpoint::request(listener).map(|new| *id = new))
}

/// # Safety
/// Private data is null, or as long as it says.
pub unsafe extern "C" fn rdma_accept(id: &Id, param: Option<&ConnParam>) -> c_int {
    // SAFETY: the caller's promise.
    let offered = unsafe { offer(id, param, REPLY_DATA) };
    let is_datagrams = id.abi.qp_type == service_of(0x0111);
    let done = offered.and_then(|offer| {
        if id.state().peer.is_none() {
            return Err(libc::EINVAL);
        }
        id.state().own = Some(offer.clone());
        // SAFETY: null, or a queue pair of `rdma_create_qp`.
        if let Some(qp) = unsafe { id.abi.qp.get().as_ref() }.filter(|_| !is_datagrams) {
            queue_pair::connect(qp, id).inspect_err(|_| {
                // The other side learns it; that it has gone meanwhile changes nothing.
                let _ = id.end.reject(reason::CONSUMER, Vec::new());
            })?;
        }
        id.end.accept(offer).map_err(|error| errno_of(&error))?;
        if is_datagrams { Ok(()) } else { id.complete() }
    });
    answer(done)
}

/// # Safety
/// `data` is null, or has `length` bytes.
pub unsafe extern "C" fn rdma_reject(id: &Id, data: *const u8, length: u8) -> c_int {
    // SAFETY: the caller's promise.
    let data = unsafe { private(data, length, REJECT_DATA) };
    answer(
        data.and_then(|data| {
            id.end.reject(reason::CONSUMER, data).map_err(|error| errno_of(&error))
        }),
    )
}

/// The event is the queue pair's own.
pub extern "C" fn rdma_notify(_: &Id, _: u32) -> c_int {
    0
}

/// The queue pair fails first, so that the peer has its acknowledgements before it learns of this.
pub extern "C" fn rdma_disconnect(id: &Id) -> c_int {
    queue_pair::fail(id);
    let ended = id.end.disconnect().map_err(|error| errno_of(&error));
    answer(ended.and_then(|()| id.complete()))
}

// Groups.

/// # Safety
/// The address is null, or as long as its family says.
pub unsafe extern "C" fn rdma_join_multicast(
    id: &Id,
    group: *const libc::sockaddr,
    context: Opaque,
) -> c_int {
    // SAFETY: the caller's promise.
    answer(unsafe { join(id, group, true, context) })
}

/// # Safety
/// The address in `attr` is null, or as long as its family says.
pub unsafe extern "C" fn rdma_join_multicast_ex(
    id: &Id,
    attr: Option<&JoinAttr>,
    context: Opaque,
) -> c_int {
    /// `RDMA_CM_JOIN_MC_ATTR_*`
    const HAS_ADDRESS: u32 = 1;
    const HAS_FLAGS: u32 = 2;
    /// `RDMA_MC_JOIN_FLAG_*`
    const SEND_ONLY: u32 = 1;
    let Some(attr) = attr.filter(|attr| attr.comp_mask & HAS_ADDRESS != 0) else {
        return answer(Err(libc::EINVAL));
    };
    let flags = if attr.comp_mask & HAS_FLAGS == 0 { 0 } else { attr.join_flags };
    if attr.comp_mask & !(HAS_ADDRESS | HAS_FLAGS) != 0 || flags > SEND_ONLY {
        return answer(Err(libc::EOPNOTSUPP));
    }
    // SAFETY: the caller's promise.
    answer(unsafe { join(id, attr.addr, flags != SEND_ONLY, context) })
}

/// Joins a group. That it cannot be received from is told by an event, as rdma_join_multicast(3)
/// says.
///
/// # Safety
/// The address is null, or as long as its family says.
unsafe fn join(
    id: &Id,
    group: *const libc::sockaddr,
    receives: bool,
    context: Opaque,
) -> Result<(), Errno> {
    // SAFETY: the caller's promise.
    let group = *unsafe { address::read(group) }?.ip();
    if id.abi.verbs.get().is_null() || id.abi.qp_type != service_of(0x0111) {
        return Err(libc::EINVAL);
    }
    id.state().groups.check(group).map_err(|error| errno_of(&error))?;
    let attached = if receives { queue_pair::attach(id, group) } else { Ok(false) };
    let status = attached.err().map_or(0, |errno| -errno);
    if let Ok(attached) = attached {
        id.state().groups.join(group, attached);
    }
    id.joined(Joined { group, context: context as usize, status })
}

/// # Safety
/// The address is null, or as long as its family says.
pub unsafe extern "C" fn rdma_leave_multicast(id: &Id, group: *const libc::sockaddr) -> c_int {
    // SAFETY: the caller's promise.
    let group = unsafe { address::read(group) };
    answer(group.and_then(|group| {
        let group = *group.ip();
        let is_last = id.state().groups.leave(group).map_err(|error| errno_of(&error))?;
        id.left(group);
        if is_last { queue_pair::detach(id, group) } else { Ok(()) }
    }))
}

// Events.

pub extern "C-unwind" fn rdma_get_cm_event(
    channel: &CmChannel,
    event: Option<&mut *mut EventObject>,
) -> c_int {
    let Some(event) = event else { return answer(Err(libc::EINVAL)) };
    // A program may destroy its channel while a thread waits here, and end soon. With rdma-core
    // that thread waits on. The count is given back by hand: a thread that is cancelled runs no
    // destructor, and keeps the queue.
    let queue = Arc::into_raw(channel.queue.clone());
    // SAFETY: the count that was just taken keeps it.
    let next = crate::cancel::repeat(|| EventObject::next(unsafe { &*queue }));
    // SAFETY: as above; it is given back once.
    drop(unsafe { Arc::from_raw(queue) });
    answer(next.map(|next| *event = next).map_err(|error| errno_of(&error)))
}

pub extern "C" fn rdma_ack_cm_event(event: *mut EventObject) -> c_int {
    if event.is_null() {
        return answer(Err(libc::EINVAL));
    }
    EventObject::end(event);
    0
}

pub extern "C" fn rdma_event_str(event: u32) -> *const c_char {
    super::names::event(event).as_ptr()
}

// Attributes.

pub extern "C" fn rdma_get_src_port(id: &Id) -> u16 {
    address::port(&id.abi.route.addr.src.get())
}

pub extern "C" fn rdma_get_dst_port(id: &Id) -> u16 {
    address::port(&id.abi.route.addr.dst.get())
}

pub extern "C" fn rdma_get_devices(count: Option<&mut c_int>) -> *mut *const Context {
    let contexts = device::contexts();
    // SAFETY: malloc(3) takes any size.
    let list: *mut *const Context =
        unsafe { libc::malloc((contexts.len() + 1) * size_of::<usize>()) }.cast();
    if list.is_null() || contexts.is_empty() {
        // SAFETY: null, or what malloc(3) made.
        unsafe { libc::free(list.cast()) };
        crate::errno::set(if list.is_null() { libc::ENOMEM } else { libc::ENODEV });
        return null_mut();
    }
    let entries = contexts.iter().map(|context| std::ptr::from_ref(*context));
    for (index, entry) in entries.chain([std::ptr::null()]).enumerate() {
        // SAFETY: the list has a place for each and one more.
        unsafe { list.add(index).write(entry) };
    }
    if let Some(count) = count {
        *count = contexts.len() as c_int;
    }
    list
}

pub extern "C" fn rdma_free_devices(list: *mut *const Context) {
    // SAFETY: C gives back what malloc(3) made.
    unsafe { libc::free(list.cast()) };
}

/// Options change nothing that Bellwire has: a type of service, whether a port may be taken again
/// at once, which it always may, the family, and a time that the queue pair has.
pub extern "C" fn rdma_set_option(
    id: &Id,
    level: c_int,
    option: c_int,
    value: *const c_void,
    length: usize,
) -> c_int {
    /// `RDMA_OPTION_ID`
    const OF_IDENTIFIER: c_int = 0;
    /// `RDMA_OPTION_ID_TOS`, `_REUSEADDR`, `_AFONLY`: nothing here depends on them.
    const WITHOUT_EFFECT: std::ops::RangeInclusive<c_int> = 0..=2;
    const ACK_TIMEOUT: c_int = 3;
    if value.is_null() || length == 0 {
        return answer(Err(libc::EINVAL));
    }
    answer(match (level, option) {
        (OF_IDENTIFIER, option) if WITHOUT_EFFECT.contains(&option) => Ok(()),
        (OF_IDENTIFIER, ACK_TIMEOUT) => {
            // SAFETY: a number of a byte: rdma_set_option(3).
            let timeout = unsafe { value.cast::<u8>().read() };
            if timeout > 31 || id.abi.qp_type == service_of(0x0111) {
                Err(libc::EINVAL)
            } else {
                id.state().ack_timeout = timeout;
                Ok(())
            }
        }
        _ => Err(libc::ENOSYS),
    })
}

pub extern "C" fn rdma_migrate_id(id: &Id, channel: Option<&CmChannel>) -> c_int {
    answer(id.migrate(channel))
}

/// # Safety
/// The names are null or strings; addresses in `hints` are null, or as long as `hints` says.
pub unsafe extern "C" fn rdma_getaddrinfo(
    node: *const c_char,
    service: *const c_char,
    hints: Option<&AddrInfo>,
    info: &mut *mut AddrInfoObject,
) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { addrinfo::look_up(node, service, hints) } {
        Ok(found) => {
            *info = found;
            0
        }
        Err(status) => status,
    }
}

pub extern "C" fn rdma_freeaddrinfo(info: *mut AddrInfoObject) {
    if !info.is_null() {
        // SAFETY: it was made by `rdma_getaddrinfo`.
        drop(unsafe { Box::from_raw(info) });
    }
}

/// There are no options of a vendor.
pub extern "C" fn rdma_set_local_ece(_: &Id, ece: &[u32; 3]) -> c_int {
    answer(if *ece == [0; 3] { Ok(()) } else { Err(libc::EOPNOTSUPP) })
}

pub extern "C" fn rdma_get_remote_ece(_: &Id, ece: &mut [u32; 3]) -> c_int {
    *ece = [0; 3];
    0
}

/// # Safety
/// As for [`rdma_reject`].
pub unsafe extern "C" fn rdma_reject_ece(id: &Id, data: *const u8, length: u8) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { rdma_reject(id, data, length) }
}

// An event begins with what C sees of it.
const _: () = assert!(std::mem::offset_of!(EventObject, abi) == 0);
const _: () = assert!(size_of::<CmEvent>() == 80);
