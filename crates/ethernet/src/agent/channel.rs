//! The Unix socket between programs and the agent: sequenced packets, which carry a descriptor.

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

fn new_socket() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

/// A listener at `path`, which does not listen yet.
pub(super) fn bind(path: &Path) -> io::Result<OwnedFd> {
    let socket = new_socket()?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

/// Connects at once or fails.
pub(super) fn connect(path: &Path) -> io::Result<OwnedFd> {
    let socket = new_socket()?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

/// The next connection, if one waits.
pub(super) fn accept(listener: &OwnedFd) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(rustix::net::accept_with(listener, flags)?)
}

/// Who connected, as the kernel knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Peer {
    pub user: u32,
    /// The main group, and all others.
    pub groups: Vec<u32>,
}

impl Peer {
    pub fn of(connection: &OwnedFd) -> io::Result<Peer> {
        let told = rustix::net::sockopt::socket_peercred(connection)?;
        let mut groups = more_groups(connection)?;
        groups.push(told.gid.as_raw());
        Ok(Peer { user: told.uid.as_raw(), groups })
    }
}

/// The supplementary groups of the other end (SO_PEERGROUPS, Linux 4.13).
fn more_groups(connection: &OwnedFd) -> io::Result<Vec<u32>> {
    // The kernel says how many there are; a process has at most 65,536.
    let mut groups = vec![0u32; 64];
    loop {
        let mut bytes = (groups.len() * size_of::<u32>()) as u32;
        // SAFETY: the kernel writes at most `bytes` bytes, which are there.
        let result = unsafe {
            libc::getsockopt(
                connection.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERGROUPS,
                groups.as_mut_ptr().cast(),
                &mut bytes,
            )
        };
        let count = bytes as usize / size_of::<u32>();
        if result == 0 {
            groups.truncate(count);
            return Ok(groups);
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::ERANGE) || count <= groups.len() {
            return Err(error);
        }
        groups.resize(count, 0);
    }
}

/// Sends one record, with a descriptor if there is one. `WouldBlock`: no room now.
pub(super) fn send(to: &OwnedFd, bytes: &[u8], fd: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let fds: Vec<BorrowedFd<'_>> = fd.into_iter().collect();
    if !fds.is_empty() {
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(&fds)), "room for one");
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    loop {
        match rustix::net::sendmsg(to.as_fd(), &[IoSlice::new(bytes)], &mut ancillary, flags) {
            Err(Errno::INTR) => {}
            other => return Ok(other.map(drop)?),
        }
    }
}

/// What came from the other end.
pub(super) enum Received<const BYTES: usize> {
    /// A record and its descriptors, which are closed unless they are taken.
    Record(Vec<u8>, Vec<OwnedFd>),
    /// Nothing now.
    Nothing,
    /// The other end is closed, or the record was too long.
    Closed,
}

/// Receives one record of at most `BYTES` bytes, and one descriptor.
pub(super) fn receive<const BYTES: usize>(from: &OwnedFd) -> Received<BYTES> {
    let mut bytes = vec![0; BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let answer = loop {
        let mut parts = [IoSliceMut::new(&mut bytes)];
        match rustix::net::recvmsg(from.as_fd(), &mut parts, &mut ancillary, flags) {
            Err(Errno::INTR) => {}
            other => break other,
        }
    };
    let answer = match answer {
        Ok(answer) => answer,
        Err(Errno::AGAIN) => return Received::Nothing,
        Err(_) => return Received::Closed,
    };
    let mut fds = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            fds.extend(received);
        }
    }
    if answer.bytes == 0 || answer.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
        return Received::Closed;
    }
    bytes.truncate(answer.bytes);
    Received::Record(bytes, fds)
}
