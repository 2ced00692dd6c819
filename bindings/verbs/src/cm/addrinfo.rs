//! Addresses by names: `rdma_getaddrinfo(3)`.

use super::abi::{AddrInfo, Storage};
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

/// Looks names up. Only IPv4 addresses are found, because devices have no others.
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
    // SAFETY: zeros are a structure without hints.
    let mut wanted: libc::addrinfo = unsafe { std::mem::zeroed() };
    wanted.ai_family = libc::AF_INET;
    wanted.ai_flags = if is_passive { libc::AI_PASSIVE } else { 0 }
        | if flags & NUMERIC_HOST != 0 { libc::AI_NUMERICHOST } else { 0 };
    let mut space = hints.map_or(0, |hints| hints.port_space);
    let mut qp_type = hints.map_or(0, |hints| hints.qp_type);
    if space == 0 {
        let is_datagrams = qp_type == service_of(PS_UDP as u32) as c_int;
        space = if is_datagrams { PS_UDP } else { PS_TCP };
    }
    if qp_type == 0 {
        qp_type = service_of(space as u32) as c_int;
    }
    wanted.ai_socktype = if space == PS_UDP { libc::SOCK_DGRAM } else { libc::SOCK_STREAM };
    let mut found = null_mut();
    // SAFETY: the caller's promise; getaddrinfo(3) writes `found`.
    let status = unsafe { libc::getaddrinfo(node, service, &wanted, &mut found) };
    if status != 0 {
        return Err(status);
    }
    let mut address = Storage::NONE;
    // SAFETY: a list with one entry at least, whose address has the family that was asked for.
    unsafe {
        let bytes = (*found).ai_addr.cast::<u8>();
        std::ptr::copy_nonoverlapping(bytes, address.0.as_mut_ptr(), LENGTH as usize);
        libc::freeaddrinfo(found);
    }
    // Of an active side, the source may be given.
    let given = hints.filter(|it| !is_passive && it.src_len == LENGTH && !it.src_addr.is_null());
    let mut source = Storage::NONE;
    if let Some(given) = given {
        // SAFETY: it has as many bytes as `src_len` says.
        unsafe {
            let bytes = given.src_addr.cast::<u8>();
            std::ptr::copy_nonoverlapping(bytes, source.0.as_mut_ptr(), LENGTH as usize);
        }
    }
    let (src, dst) = if is_passive { (address, Storage::NONE) } else { (source, address) };
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
    if is_passive || given.is_some() {
        (own.abi.src_len, own.abi.src_addr) = (LENGTH, (&raw const own.src).cast());
    }
    if !is_passive {
        (own.abi.dst_len, own.abi.dst_addr) = (LENGTH, (&raw const own.dst).cast());
    }
    Ok(made)
}
