//! The peer that a function hears most has a socket of its own, connected to it. The kernel then
//! neither looks up a route for each datagram nor copies addresses, which saves a tenth of the
//! time.
//!
//! The two sockets share our address. The second one binds while both have SO_REUSEPORT, which the
//! kernel grants to sockets of one user only. SO_REUSEADDR would let any user bind at that moment.
//! Afterwards both are without it, so that the address is refused to a second function of the same
//! user too.
//!
//! The favourite also has a receive buffer of its own. Once others send much that is more than its
//! share, and it stops being the favourite.

use super::address::to_native;
use super::prepare;
use crate::socket;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// This many consecutive datagrams from one peer make it the favourite.
const STREAK: usize = 32;
/// A change costs several system calls. So at least this many datagrams of others come between two
/// changes.
const PAUSE: usize = 1024;
/// Upper limit of a favourite's worth. Each of its datagrams adds one, each datagram of another
/// peer subtracts two. A favourite of worth 0 goes back to the common socket.
const WORTH: usize = 64;

/// The favourite, if there is one.
pub(super) struct Favourite {
    connected: Option<(OwnedFd, SocketAddr)>,
    /// The last peer on the common socket, and the length of its streak.
    streak: Option<(SocketAddr, usize)>,
    /// Datagrams on the common socket since the last change.
    heard: usize,
    worth: usize,
}

/// What to do with the favourite.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    None,
    /// Choose this peer.
    To(SocketAddr),
    /// Dismiss it.
    Away,
}

impl Favourite {
    pub fn new() -> Favourite {
        Favourite { connected: None, streak: None, heard: PAUSE, worth: 0 }
    }

    pub fn exists(&self) -> bool {
        self.connected.is_some()
    }

    /// The socket, and its peer.
    #[inline]
    pub fn parts(&self) -> Option<(BorrowedFd<'_>, SocketAddr)> {
        self.connected.as_ref().map(|(socket, peer)| (socket.as_fd(), *peer))
    }

    /// The socket, if it leads to `peer`.
    #[inline]
    pub fn socket_to(&self, peer: SocketAddr) -> Option<BorrowedFd<'_>> {
        self.parts().filter(|(_, known)| *known == peer).map(|(socket, _)| socket)
    }

    /// A datagram came from `peer` on the common socket.
    pub fn hears(&mut self, peer: SocketAddr) -> Change {
        let before = match self.streak {
            Some((known, count)) if known == peer => count,
            _ => 0,
        };
        self.streak = Some((peer, before + 1));
        self.heard = self.heard.saturating_add(1);
        self.worth = self.worth.saturating_sub(2);
        if before + 1 >= STREAK && self.heard >= PAUSE {
            Change::To(peer)
        } else if self.worth == 0 && self.exists() {
            Change::Away
        } else {
            Change::None
        }
    }

    /// `datagrams` came from the favourite.
    #[inline]
    pub fn is_heard(&mut self, datagrams: usize) {
        self.worth = WORTH.min(self.worth + datagrams);
    }

    /// Dismisses the favourite.
    pub fn dismiss(&mut self) {
        (self.connected, self.streak, self.heard) = (None, None, 0);
    }

    /// Makes `peer` the favourite. `all` is the function's common socket, bound to `address`.
    pub fn choose(
        &mut self,
        all: BorrowedFd<'_>,
        address: SocketAddr,
        peer: SocketAddr,
    ) -> io::Result<()> {
        self.dismiss();
        self.worth = WORTH;
        let own = connected(all, address, peer, libc::SO_REUSEPORT, |_| ())?;
        self.connected = Some((own, peer));
        Ok(())
    }
}

/// Opens a socket connected to `peer` and bound to `address`, which `all` has too. `sharing`: the
/// option by which both share the address. `after` is called after each of [`STEPS`], for tests.
pub(super) fn connected(
    all: BorrowedFd<'_>,
    address: SocketAddr,
    peer: SocketAddr,
    sharing: i32,
    mut after: impl FnMut(&'static str),
) -> io::Result<OwnedFd> {
    let [prepared, shared, bound, ready, separate] = STEPS;
    let share = |socket: BorrowedFd<'_>, shares: bool| {
        socket::set(socket, libc::SOL_SOCKET, sharing, &i32::from(shares))
    };
    let domain = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let own = socket::open(domain, libc::SOCK_DGRAM, 0)?;
    prepare(own.as_fd(), address)?;
    // Until it is connected it would receive datagrams of any source, and take them for the peer's.
    take_nothing(own.as_fd())?;
    share(own.as_fd(), true)?;
    after(prepared);
    share(all, true)?;
    after(shared);
    let (native, length) = to_native(address);
    let result = socket::bind(own.as_fd(), &native, length);
    after(bound);
    let result = result.and_then(|()| connect(own.as_fd(), peer));
    after(ready);
    // From here on a second owner of the address is refused again, also one of our user.
    share(all, false)?;
    share(own.as_fd(), false)?;
    after(separate);
    result?;
    socket::set(own.as_fd(), libc::SOL_SOCKET, libc::SO_DETACH_FILTER, &0i32)?;
    Ok(own)
}

/// The steps of [`connected`]: the new socket is prepared, both share, it is bound, it is
/// connected, both share no longer.
pub(super) const STEPS: [&str; 5] = ["prepared", "shared", "bound", "connected", "separate"];

/// Makes the kernel drop every incoming datagram (socket(7), SO_ATTACH_FILTER).
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
