//! Addresses as the kernel reads and writes them, and headers for captures.

use std::mem::size_of;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// An address as the kernel reads it, and its length in bytes.
pub(super) fn to_native(address: SocketAddr) -> (libc::sockaddr_storage, usize) {
    // SAFETY: zeros are a valid storage of an address.
    let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let place = &raw mut storage;
    let length = match address {
        SocketAddr::V4(v4) => {
            let native = libc::sockaddr_in {
                sin_family: libc::AF_INET as u16,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from(*v4.ip()).to_be() },
                sin_zero: [0; 8],
            };
            // SAFETY: the storage is large enough and aligned for every kind of address.
            unsafe { place.cast::<libc::sockaddr_in>().write(native) };
            size_of::<libc::sockaddr_in>()
        }
        SocketAddr::V6(v6) => {
            let native = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as u16,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: v6.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                sin6_scope_id: v6.scope_id(),
            };
            // SAFETY: as above.
            unsafe { place.cast::<libc::sockaddr_in6>().write(native) };
            size_of::<libc::sockaddr_in6>()
        }
    };
    (storage, length)
}

/// Converts an address that the kernel wrote; `None` if it is not an IP address.
pub(super) fn from_native(storage: &libc::sockaddr_storage) -> Option<SocketAddr> {
    let place = std::ptr::from_ref(storage);
    match i32::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says which structure it is; the storage is large enough and
            // aligned for it.
            let native = unsafe { &*place.cast::<libc::sockaddr_in>() };
            let ip = Ipv4Addr::from(u32::from_be(native.sin_addr.s_addr));
            Some(SocketAddr::new(IpAddr::V4(ip), u16::from_be(native.sin_port)))
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let native = unsafe { &*place.cast::<libc::sockaddr_in6>() };
            let ip = Ipv6Addr::from(native.sin6_addr.s6_addr);
            let port = u16::from_be(native.sin6_port);
            Some(std::net::SocketAddrV6::new(ip, port, 0, native.sin6_scope_id).into())
        }
        _ => None,
    }
}

/// Headers of IP (RFC 791, RFC 8200) and UDP (RFC 768) as they are on the wire, but without check
/// values.
pub(super) fn headers(from: SocketAddr, to: SocketAddr, length: usize) -> Vec<u8> {
    const UDP: u8 = 17;
    const HOPS: u8 = 64;
    let udp = (8 + length) as u16;
    let mut bytes = match (from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let [high, low] = (20 + udp).to_be_bytes();
            // Version and header length, no service, length; do not fragment.
            let mut bytes = vec![0x45, 0, high, low, 0, 0, 0x40, 0, HOPS, UDP, 0, 0];
            bytes.extend(from.octets());
            bytes.extend(to.octets());
            bytes
        }
        (from, to) => {
            let [high, low] = udp.to_be_bytes();
            let mut bytes = vec![0x60, 0, 0, 0, high, low, UDP, HOPS];
            for ip in [from, to] {
                let ip = match ip {
                    IpAddr::V4(ip) => ip.to_ipv6_mapped(),
                    IpAddr::V6(ip) => ip,
                };
                bytes.extend(ip.octets());
            }
            bytes
        }
    };
    for word in [from.port(), to.port(), udp, 0] {
        bytes.extend(word.to_be_bytes());
    }
    bytes
}
