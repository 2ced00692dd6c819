//! The peer that a function hears most has a socket of its own, connected to it: the kernel then neither looks for a route for each
//! datagram nor copies addresses, which takes a tenth off the way. The two sockets share our address for that; nobody else can.

use super::address::to_native;
use super::prepare;
use crate::socket;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// So many datagrams in a row from one peer make it the favourite.
const STREAK: usize = 32;
/// At least so many datagrams come from others before another one is: a change costs several system calls.
const PAUSE: usize = 1024;

/// The favourite, if there is one.
pub(super) struct Favourite {
    connected: Option<(OwnedFd, SocketAddr)>,
    /// Who was heard last on the socket for all, and how often in a row.
    streak: Option<(SocketAddr, usize)>,
    /// Datagrams heard there since the last change.
    heard: usize,
}

impl Favourite {
    pub fn new() -> Favourite {
        Favourite { connected: None, streak: None, heard: PAUSE }
    }

    pub fn exists(&self) -> bool {
        self.connected.is_some()
    }

    /// The socket, and who is at its other end.
    #[inline]
    pub fn parts(&self) -> Option<(BorrowedFd<'_>, SocketAddr)> {
        self.connected.as_ref().map(|(socket, peer)| (socket.as_fd(), *peer))
    }

    /// The socket, if it leads to `peer`.
    #[inline]
    pub fn socket_to(&self, peer: SocketAddr) -> Option<BorrowedFd<'_>> {
        self.parts().filter(|(_, known)| *known == peer).map(|(socket, _)| socket)
    }

    /// `datagrams` came on the socket for all, the last of them from `peer`; whether that should be the favourite.
    pub fn hears(&mut self, peer: SocketAddr, datagrams: usize) -> bool {
        let before = match self.streak {
            Some((known, count)) if known == peer => count,
            _ => 0,
        };
        self.streak = Some((peer, before + datagrams));
        self.heard = self.heard.saturating_add(datagrams);
        before + datagrams >= STREAK && self.heard >= PAUSE
    }

    /// Makes `peer` the favourite of the function whose socket for all is `all`, at `address`.
    pub fn choose(
        &mut self,
        all: BorrowedFd<'_>,
        address: SocketAddr,
        peer: SocketAddr,
    ) -> io::Result<()> {
        (self.connected, self.streak, self.heard) = (None, None, 0);
        let domain = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        let own = socket::open(domain, libc::SOCK_DGRAM, 0)?;
        prepare(own.as_fd(), address)?;
        // Until it is connected it takes whatever comes, which would be mistaken for the peer's.
        take_nothing(own.as_fd())?;
        share(all, true)?;
        let connected = share(own.as_fd(), true)
            .and_then(|()| {
                let (native, length) = to_native(address);
                socket::bind(own.as_fd(), &native, length)
            })
            .and_then(|()| connect(own.as_fd(), peer));
        // From here on a second owner of the address is refused again.
        share(all, false)?;
        share(own.as_fd(), false)?;
        connected?;
        socket::set(own.as_fd(), libc::SOL_SOCKET, libc::SO_DETACH_FILTER, &0i32)?;
        self.connected = Some((own, peer));
        Ok(())
    }
}

/// Whether another socket may have the same address.
fn share(socket: BorrowedFd<'_>, shares: bool) -> io::Result<()> {
    socket::set(socket, libc::SOL_SOCKET, libc::SO_REUSEADDR, &i32::from(shares))
}

/// Has the kernel drop all that comes (socket(7), SO_ATTACH_FILTER).
fn take_nothing(socket: BorrowedFd<'_>) -> io::Result<()> {
    let give = (libc::BPF_RET | libc::BPF_K) as u16;
    let mut program = [libc::sock_filter { code: give, jt: 0, jf: 0, k: 0 }];
    let program = libc::sock_fprog { len: 1, filter: program.as_mut_ptr() };
    socket::set(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

fn connect(socket: BorrowedFd<'_>, peer: SocketAddr) -> io::Result<()> {
    let (native, length) = to_native(peer);
    // SAFETY: the kernel reads an address of that length, which is there.
    let result = unsafe {
        libc::connect(socket.as_raw_fd(), (&raw const native).cast(), length as libc::socklen_t)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
