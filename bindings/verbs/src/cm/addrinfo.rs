//! Addresses by names: `rdma_getaddrinfo(3)`.

use super::abi::{AddrInfo, Storage};
use super::address;
use super::id::service_of;
use std::ffi::{c_char, c_int};
use std::ptr::{null, null_mut};

/// `RAI_*`
pub const PASSIVE: c_int = 1;
const NUMERIC_HOST: c_int = 2;
/// `RDMA_PS_TCP`, `RDMA_PS_UDP`
const PS_TCP: c_int = 0x0106;
const PS_UDP: c_int = 0x0111;

/// An answer. C has the address of `abi`.
#[repr(C)]
pub struct AddrInfoObject {
    pub abi: AddrInfo,
    src: Storage,
    dst: Storage,
}

/// Bytes of a `sockaddr_in`.
const LENGTH: u32 = size_of::<libc::sockaddr_in>() as u32;

/// Looks names up. Only IPv4 addresses are found, because devices have no others. Without names the
/// answer has the addresses of the hints.
///
/// # Errors
/// The number that `getaddrinfo(3)` gives (`EAI_*`).
///
/// # Safety
/// The names are null or strings; addresses in `hints` are null or as long as `hints` says.
pub unsafe fn look_up(
    node: *const c_char,
    service: *const c_char,
    hints: Option<&AddrInfo>,
) -> Result<*mut AddrInfoObject, c_int> {
    let flags = hints.map_or(0, |hints| hints.flags);
    let is_passive = flags & PASSIVE != 0;
    let (qp_type, space) = kind_of(hints);
    // SAFETY: the caller's promise.
    let given = |address: *const libc::sockaddr, length| unsafe { copy(address, length) };
    let mut src = hints.map_or(Storage::NONE, |it| given(it.src_addr, it.src_len));
    let mut dst = hints.map_or(Storage::NONE, |it| given(it.dst_addr, it.dst_len));
    if !node.is_null() || !service.is_null() {
        // SAFETY: the caller's promise.
        let found = unsafe { find(node, service, flags, space) }?;
        if is_passive { src = found } else { dst = found }
    } else if hints.is_none() {
        return Err(libc::EAI_NONAME);
    }
    let made = Box::into_raw(Box::new(AddrInfoObject {
        abi: AddrInfo {
            flags,
            family: libc::AF_INET,
            qp_type,
            port_space: space,
            src_len: 0,
            dst_len: 0,
            src_addr: null(),
            dst_addr: null(),
            src_canonname: null(),
            dst_canonname: null(),
            route_len: 0,
            route: null_mut(),
            connect_len: 0,
            connect: null(),
            next: null(),
        },
        src,
        dst,
    }));
    // SAFETY: it was made just now.
    let own = unsafe { &mut *made };
    if address::parse(&src).is_some() {
        (own.abi.src_len, own.abi.src_addr) = (LENGTH, (&raw const own.src).cast());
    }
    if address::parse(&dst).is_some() {
        (own.abi.dst_len, own.abi.dst_addr) = (LENGTH, (&raw const own.dst).cast());
    }
    Ok(made)
}

/// The kind of queue pair and the port space that hints ask for; each follows from the other one.
fn kind_of(hints: Option<&AddrInfo>) -> (c_int, c_int) {
    let (mut qp_type, mut space) = hints.map_or((0, 0), |it| (it.qp_type, it.port_space));
    if space == 0 {
        let is_datagrams = qp_type == service_of(PS_UDP as u32) as c_int;
        space = if is_datagrams { PS_UDP } else { PS_TCP };
    }
    if qp_type == 0 {
        qp_type = service_of(space as u32) as c_int;
    }
    (qp_type, space)
}

/// An IPv4 address of C; nothing for any other.
///
/// # Safety
/// It is null, or has as many bytes.
unsafe fn copy(address: *const libc::sockaddr, length: u32) -> Storage {
    let mut storage = Storage::NONE;
    if !address.is_null() && length >= LENGTH {
        // SAFETY: the caller's promise.
        unsafe {
            let bytes = address.cast::<u8>();
            std::ptr::copy_nonoverlapping(bytes, storage.0.as_mut_ptr(), LENGTH as usize);
        }
    }
    match address::parse(&storage) {
        Some(_) => storage,
        None => Storage::NONE,
    }
}

/// Looks names up, as `getaddrinfo(3)` does.
///
/// # Safety
/// The names are null or strings.
unsafe fn find(
    node: *const c_char,
    service: *const c_char,
    flags: c_int,
    space: c_int,
) -> Result<Storage, c_int> {
    // SAFETY: zeros are a structure without hints.
    let mut wanted: libc::addrinfo = unsafe { std::mem::zeroed() };
    wanted.ai_family = libc::AF_INET;
    wanted.ai_flags = if flags & PASSIVE != 0 { libc::AI_PASSIVE } else { 0 }
        | if flags & NUMERIC_HOST != 0 { libc::AI_NUMERICHOST } else { 0 };
    wanted.ai_socktype = if space == PS_UDP { libc::SOCK_DGRAM } else { libc::SOCK_STREAM };
    let mut found = null_mut();
    // SAFETY: the caller's promise; getaddrinfo(3) writes `found`.
    let status = unsafe { libc::getaddrinfo(node, service, &wanted, &mut found) };
    if status != 0 {
        return Err(status);
    }
    // SAFETY: a list with one entry at least, whose address is as long as it says.
    unsafe {
        let address = copy((*found).ai_addr, (*found).ai_addrlen);
        libc::freeaddrinfo(found);
        Ok(address)
    }
}
