//! The busiest peer of a function has a socket of its own, connected to it. The kernel then neither
//! looks up a route for each datagram nor copies addresses, which saves a tenth of the time.
//!
//! The two sockets share our address. The second one binds while both have SO_REUSEPORT, which the
//! kernel grants to sockets of one user only. SO_REUSEADDR would let any user bind at that moment.
//! Afterwards both are without it, so that the address is refused to a second function of the same
//! user too.
//!
//! The connected peer also has a receive buffer of its own. Once others send much that is more than
//! its share, and the socket is closed.

use super::address::to_native;
use super::prepare;
use crate::socket;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// This many consecutive datagrams from one peer get it the connected socket.
const STREAK: usize = 32;
/// A change costs several system calls. So at least this many datagrams of others come between two
/// changes.
const PAUSE: usize = 1024;
/// Upper limit of the connected peer's score. Each of its datagrams adds one, each datagram of
/// another peer subtracts two. A peer of score 0 goes back to the common socket.
const MOST_SCORE: usize = 64;

/// The connected socket, if there is one.
pub(super) struct ConnectedSocket {
    connected: Option<(OwnedFd, SocketAddr)>,
    /// The last peer on the common socket, and the length of its streak.
    streak: Option<(SocketAddr, usize)>,
    /// Datagrams on the common socket since the last change.
    since_change: usize,
    score: usize,
}

/// What to do with the connected socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    Keep,
    /// Connect it to this peer.
    Connect(SocketAddr),
    /// Close it.
    Close,
}

impl ConnectedSocket {
    pub fn new() -> ConnectedSocket {
        ConnectedSocket { connected: None, streak: None, since_change: PAUSE, score: 0 }
    }

    pub fn is_open(&self) -> bool {
        self.connected.is_some()
    }

    /// The socket, and its peer.
    #[inline]
    pub fn get(&self) -> Option<(BorrowedFd<'_>, SocketAddr)> {
        self.connected.as_ref().map(|(socket, peer)| (socket.as_fd(), *peer))
    }

    /// The socket, if it leads to `peer`.
    #[inline]
    pub fn socket_to(&self, peer: SocketAddr) -> Option<BorrowedFd<'_>> {
        self.get().filter(|(_, known)| *known == peer).map(|(socket, _)| socket)
    }

    /// A datagram came from `peer` on the common socket.
    pub fn heard_other(&mut self, peer: SocketAddr) -> Change {
        let before = match self.streak {
            Some((known, count)) if known == peer => count,
            _ => 0,
        };
        self.streak = Some((peer, before + 1));
        self.since_change = self.since_change.saturating_add(1);
        self.score = self.score.saturating_sub(2);
        if before + 1 >= STREAK && self.since_change >= PAUSE {
            Change::Connect(peer)
        } else if self.score == 0 && self.is_open() {
            Change::Close
        } else {
            Change::Keep
        }
    }

    /// `datagrams` came from the connected peer.
    #[inline]
    pub fn heard(&mut self, datagrams: usize) {
        self.score = MOST_SCORE.min(self.score + datagrams);
    }

    /// Closes the socket: its peer goes back to the common one.
    pub fn close(&mut self) {
        (self.connected, self.streak, self.since_change) = (None, None, 0);
    }

    /// Connects the socket to `peer`. `all` is the function's common socket, bound to `address`.
    pub fn connect(
        &mut self,
        all: BorrowedFd<'_>,
        address: SocketAddr,
        peer: SocketAddr,
    ) -> io::Result<()> {
        self.close();
        self.score = MOST_SCORE;
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
