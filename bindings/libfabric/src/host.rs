//! Addresses of this host, and name resolution.

use std::ffi::{CStr, CString};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::ptr::null_mut;

/// The address of `interface`. Without one, the address of the first interface that is up and not
/// loopback, or else of loopback.
pub fn own_address(interface: Option<&str>) -> Option<Ipv4Addr> {
    let mut first = null_mut();
    // SAFETY: the list is read before it is freed.
    unsafe {
        if libc::getifaddrs(&mut first) != 0 {
            return Some(Ipv4Addr::LOCALHOST);
        }
        let (mut found, mut at) = (None, first.cast_const());
        while !at.is_null() && found.is_none() {
            found = address_of(&*at, interface);
            at = (*at).ifa_next;
        }
        libc::freeifaddrs(first);
        found.or(interface.is_none().then_some(Ipv4Addr::LOCALHOST))
    }
}

/// # Safety
/// The entry is from a list of `getifaddrs` that has not been freed.
unsafe fn address_of(entry: &libc::ifaddrs, wanted: Option<&str>) -> Option<Ipv4Addr> {
    // SAFETY: the name is a string; the address is null or as long as its family requires.
    unsafe {
        if entry.ifa_addr.is_null() || i32::from((*entry.ifa_addr).sa_family) != libc::AF_INET {
            return None;
        }
        let flags = entry.ifa_flags as i32;
        let good = match wanted {
            Some(wanted) => CStr::from_ptr(entry.ifa_name).to_string_lossy() == wanted,
            None => flags & libc::IFF_UP != 0 && flags & libc::IFF_LOOPBACK == 0,
        };
        let address = crate::address::read(entry.ifa_addr.cast())?;
        good.then_some(*address.ip())
    }
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
    let node = node.to_str().ok()?;
    if let Ok(ip) = node.parse::<Ipv4Addr>() {
        return Some(SocketAddrV4::new(ip, port));
    }
    if numeric {
        return None;
    }
    let name = CString::new(node).ok()?;
    let mut hints: libc::addrinfo = {
        // SAFETY: a structure of numbers and null pointers.
        unsafe { std::mem::zeroed() }
    };
    hints.ai_family = libc::AF_INET;
    let mut found = null_mut();
    // SAFETY: the answer is read before it is freed.
    unsafe {
        if libc::getaddrinfo(name.as_ptr(), std::ptr::null(), &hints, &mut found) != 0 {
            return None;
        }
        let address = crate::address::read((*found).ai_addr.cast());
        libc::freeaddrinfo(found);
        address.map(|address| SocketAddrV4::new(*address.ip(), port))
    }
}
