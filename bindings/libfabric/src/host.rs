//! Addresses of this host, and name resolution.

use crate::address::SocketAddress;
use std::ffi::CStr;
use std::iter::successors;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::ptr::null_mut;

/// The address of `interface`. Without one, the address of the first interface that is up and not
/// loopback, or else of loopback.
pub fn own_address(interface: Option<&str>) -> Option<Ipv4Addr> {
    let mut first = null_mut();
    // SAFETY: getifaddrs(3) writes `first`.
    if unsafe { libc::getifaddrs(&mut first) } != 0 {
        return Some(Ipv4Addr::LOCALHOST);
    }
    let found = {
        // SAFETY: the pointers of the list are null or valid until freeifaddrs(3).
        let next = |entry: *const libc::ifaddrs| unsafe { entry.as_ref() };
        let mut list = successors(next(first), |entry| next(entry.ifa_next));
        list.find_map(|entry| address_of(entry, interface))
    };
    // SAFETY: `first` is the list, which is no longer used.
    unsafe { libc::freeifaddrs(first) };
    found.or(interface.is_none().then_some(Ipv4Addr::LOCALHOST))
}

fn address_of(entry: &libc::ifaddrs, wanted: Option<&str>) -> Option<Ipv4Addr> {
    // SAFETY: `ifa_addr` is null, or as long as its family requires: getifaddrs(3).
    let address = unsafe { read(entry.ifa_addr) }?;
    let flags = entry.ifa_flags as i32;
    let suits = match wanted {
        // SAFETY: `ifa_name` is a string: getifaddrs(3).
        Some(wanted) => unsafe { CStr::from_ptr(entry.ifa_name) }.to_string_lossy() == wanted,
        None => flags & libc::IFF_UP != 0 && flags & libc::IFF_LOOPBACK == 0,
    };
    suits.then_some(*address.ip())
}

/// # Safety
/// `at` is null, or as long as its family requires.
unsafe fn read(at: *const libc::sockaddr) -> Option<SocketAddrV4> {
    // SAFETY: the caller's promise: a family is part of each address.
    let family = unsafe { at.as_ref() }?.sa_family;
    // SAFETY: an address of this family is a `sockaddr_in`.
    (i32::from(family) == libc::AF_INET)
        .then(|| unsafe { &*at.cast::<SocketAddress>() })
        .and_then(|raw| crate::address::read(raw))
}

/// The address of this host on the route to `to`.
pub fn address_towards(to: Ipv4Addr) -> Option<Ipv4Addr> {
    // Connecting a datagram socket sends nothing; the kernel chooses the address.
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect(SocketAddr::from((to, 9))).ok()?;
    match socket.local_addr().ok()?.ip() {
        IpAddr::V4(ip) => Some(ip),
        IpAddr::V6(_) => None,
    }
}

/// Resolves a name and a service; `None`: no such address.
pub fn look_up(node: Option<&CStr>, service: Option<&CStr>, numeric: bool) -> Option<SocketAddrV4> {
    let port = match service {
        None => 0,
        Some(service) => service.to_str().ok()?.parse().ok()?,
    };
    let Some(node) = node else { return Some(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port)) };
    if let Ok(ip) = node.to_str().ok()?.parse::<Ipv4Addr>() {
        return Some(SocketAddrV4::new(ip, port));
    }
    if numeric {
        return None;
    }
    // SAFETY: a structure of numbers and pointers, where zero and null mean: not given.
    let mut hints: libc::addrinfo = unsafe { std::mem::zeroed() };
    hints.ai_family = libc::AF_INET;
    let mut found = null_mut();
    // SAFETY: `node` is a string, and getaddrinfo(3) writes `found`.
    if unsafe { libc::getaddrinfo(node.as_ptr(), std::ptr::null(), &hints, &mut found) } != 0 {
        return None;
    }
    // SAFETY: `found` is a list of one address at least, as long as its family requires.
    let address = unsafe { read((*found).ai_addr) };
    // SAFETY: `found` is no longer used.
    unsafe { libc::freeaddrinfo(found) };
    address.map(|address| SocketAddrV4::new(*address.ip(), port))
}
