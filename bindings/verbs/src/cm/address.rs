//! Addresses of C.

use super::Errno;
use super::abi::Storage;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4};

/// Reads a `sockaddr`: IPv4, or IPv6 that stands for it.
///
/// # Errors
/// `EINVAL` for none, `EAFNOSUPPORT` for another family, `EADDRNOTAVAIL` for true IPv6.
///
/// # Safety
/// `address` is null, or an address as long as its family says.
pub unsafe fn read(address: *const libc::sockaddr) -> Result<SocketAddrV4, Errno> {
    // SAFETY: null, or it begins with a family.
    let family = unsafe { address.as_ref() }.ok_or(libc::EINVAL)?.sa_family;
    match i32::from(family) {
        libc::AF_INET => {
            // SAFETY: its family says so.
            let it = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            let host = Ipv4Addr::from(u32::from_be(it.sin_addr.s_addr));
            Ok(SocketAddrV4::new(host, u16::from_be(it.sin_port)))
        }
        libc::AF_INET6 => {
            // SAFETY: its family says so.
            let it = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            let host = match Ipv6Addr::from(it.sin6_addr.s6_addr) {
                Ipv6Addr::UNSPECIFIED => Some(Ipv4Addr::UNSPECIFIED),
                Ipv6Addr::LOCALHOST => Some(Ipv4Addr::LOCALHOST),
                other => other.to_ipv4_mapped(),
            };
            let host = host.ok_or(libc::EADDRNOTAVAIL)?;
            Ok(SocketAddrV4::new(host, u16::from_be(it.sin6_port)))
        }
        _ => Err(libc::EAFNOSUPPORT),
    }
}

/// As a `sockaddr_in`.
pub fn write(address: SocketAddrV4) -> Storage {
    let mut storage = Storage::NONE;
    let family = libc::AF_INET as libc::sa_family_t;
    storage.0[..2].copy_from_slice(&family.to_ne_bytes());
    storage.0[2..4].copy_from_slice(&address.port().to_be_bytes());
    storage.0[4..8].copy_from_slice(&address.ip().octets());
    storage
}

/// The port of what [`write`] made, in the order of bytes of the network; 0: there is none.
pub fn port(storage: &Storage) -> u16 {
    u16::from_ne_bytes([storage.0[2], storage.0[3]])
}

/// What [`write`] wrote.
pub fn parse(storage: &Storage) -> Option<SocketAddrV4> {
    let family = u16::from_ne_bytes([storage.0[0], storage.0[1]]);
    if i32::from(family) != libc::AF_INET {
        return None;
    }
    let host = <[u8; 4]>::try_from(&storage.0[4..8]).expect("4 bytes");
    Some(SocketAddrV4::new(host.into(), u16::from_be(port(storage))))
}
