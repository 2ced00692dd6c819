//! What the kernel reports about datagrams that left: a host answered that nobody receives at that
//! port, so that the peer's process has ended (ip(7), IP_RECVERR).

use super::address::from_native;
use super::{CONTROL_BYTES, Control, empty_header};
use crate::socket;
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

/// A report.
pub(super) struct Report {
    /// Another host has sent it, or this one as the receiver.
    pub is_from_host: bool,
    /// Nobody receives there.
    pub refused: Option<SocketAddr>,
}

/// Asks for reports.
pub(super) fn ask(socket: BorrowedFd<'_>, address: SocketAddr) -> io::Result<()> {
    let (level, name) = match address {
        SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_RECVERR),
        SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_RECVERR),
    };
    socket::set(socket, level, name, &1i32)
}

/// The next report.
pub(super) fn next(socket: BorrowedFd<'_>) -> Option<Report> {
    let mut place = MaybeUninit::<libc::sockaddr_storage>::zeroed();
    let mut control = Control([0; CONTROL_BYTES]);
    let mut header = empty_header();
    header.msg_name = place.as_mut_ptr().cast();
    header.msg_namelen = size_of::<libc::sockaddr_storage>() as u32;
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = CONTROL_BYTES;
    // SAFETY: the header points to an address and to control messages, both of the lengths that it
    // says, which live until the end of this function.
    let result = unsafe {
        let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
        libc::recvmsg(socket.as_raw_fd(), &raw mut header, flags)
    };
    if result < 0 {
        return None;
    }
    let error = read(&control.0[..header.msg_controllen.min(CONTROL_BYTES)]);
    let is_from_host = error.is_some_and(|error| {
        matches!(error.ee_origin, libc::SO_EE_ORIGIN_ICMP | libc::SO_EE_ORIGIN_ICMP6)
    });
    let is_refusal = error.is_some_and(|error| error.ee_errno == libc::ECONNREFUSED as u32);
    // SAFETY: zeros and what the kernel wrote are a valid storage of an address.
    let place = unsafe { place.assume_init() };
    let refused = (is_from_host && is_refusal).then(|| from_native(&place)).flatten();
    Some(Report { is_from_host, refused })
}

/// The error that control messages carry.
fn read(control: &[u8]) -> Option<libc::sock_extended_err> {
    const HEADER: usize = size_of::<libc::cmsghdr>();
    let mut rest = control;
    while rest.len() >= HEADER {
        // SAFETY: enough bytes are there, and all of them are a value of this plain structure.
        let found: libc::cmsghdr =
            unsafe { rest.as_ptr().cast::<libc::cmsghdr>().read_unaligned() };
        let kind = (found.cmsg_level, found.cmsg_type);
        let is_error = kind == (libc::IPPROTO_IP, libc::IP_RECVERR)
            || kind == (libc::IPPROTO_IPV6, libc::IPV6_RECVERR);
        if is_error && let Some(bytes) = rest.get(HEADER..HEADER + ERROR_BYTES) {
            // SAFETY: as above.
            return Some(unsafe {
                bytes.as_ptr().cast::<libc::sock_extended_err>().read_unaligned()
            });
        }
        let step = found.cmsg_len.max(HEADER).next_multiple_of(size_of::<usize>());
        rest = rest.get(step..)?;
    }
    None
}

const ERROR_BYTES: usize = size_of::<libc::sock_extended_err>();

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::os::fd::AsFd;
    use std::time::{Duration, Instant};

    /// A datagram to a port that nobody has is reported with that place, and one that arrives is
    /// not.
    #[test]
    fn a_port_that_nobody_has_is_reported() {
        for local in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(own) = UdpSocket::bind(local) else {
                assert!(local.starts_with('['), "every host has IPv4");
                continue;
            };
            ask(own.as_fd(), own.local_addr().unwrap()).unwrap();
            let other = UdpSocket::bind(local).unwrap();
            let place = other.local_addr().unwrap();
            own.send_to(b"arrives", place).unwrap();
            assert!(next(own.as_fd()).is_none());
            drop(other);
            own.send_to(b"does not", place).unwrap();
            let deadline = Instant::now() + Duration::from_secs(8);
            let report = loop {
                if let Some(report) = next(own.as_fd()) {
                    break report;
                }
                assert!(Instant::now() < deadline, "no report");
                std::thread::yield_now();
            };
            assert!(report.is_from_host);
            assert_eq!(report.refused, Some(place));
        }
    }
}
