//! Control sockets: abstract Unix sockets of sequenced packets, which carry descriptors and which
//! the kernel takes back.

use crate::control::{Control, RECORD_BYTES};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Maximum number of descriptors in one message.
const DESCRIPTORS: usize = 3;
/// Connections that wait at a listener until they are accepted.
pub const BACKLOG: i32 = 1024;

fn new_socket() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

/// Binds a socket to an abstract name; `ADDRINUSE` if the name is taken.
pub fn reserve(name: &str) -> rustix::io::Result<OwnedFd> {
    let socket = new_socket()?;
    rustix::net::bind(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
    Ok(socket)
}

/// A listening socket at an abstract name.
pub fn listen(name: &str) -> rustix::io::Result<OwnedFd> {
    let socket = reserve(name)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// Connects at once or fails: `CONNREFUSED` when nobody listens, `AGAIN` when too many connections
/// wait there.
pub fn connect(name: &str) -> rustix::io::Result<OwnedFd> {
    let socket = new_socket()?;
    rustix::net::connect(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
    Ok(socket)
}

/// The next connection, if one waits.
pub fn accept(listener: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    rustix::net::accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)
}

/// Process, user and group at the other end, as the kernel knows them. Process 0: not visible from
/// here.
pub fn credentials(socket: &OwnedFd) -> rustix::io::Result<(i32, u32, u32)> {
    let peer = rustix::net::sockopt::socket_peercred(socket)?;
    Ok((peer.pid.as_raw_nonzero().get(), peer.uid.as_raw(), peer.gid.as_raw()))
}

/// Sends a message with descriptors. `AGAIN`: no room now.
pub fn send(socket: &OwnedFd, message: Control, fds: &[BorrowedFd<'_>]) -> rustix::io::Result<()> {
    let (bytes, length) = message.to_bytes();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(fds)), "room for {DESCRIPTORS}");
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    loop {
        match rustix::net::sendmsg(
            socket.as_fd(),
            &[IoSlice::new(&bytes[..length])],
            &mut ancillary,
            flags,
        ) {
            Err(Errno::INTR) => {}
            other => return other.map(drop),
        }
    }
}

/// What came from the other end.
pub enum Received {
    /// A message and its descriptors.
    Message(Control, Vec<OwnedFd>),
    /// Nothing now.
    Nothing,
    /// The other end is closed.
    Closed,
    /// Bytes that are no message of ours.
    Garbage,
}

/// Receives one message.
pub fn receive(socket: &OwnedFd) -> Received {
    let mut bytes = [0; RECORD_BYTES + 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let answer = loop {
        let mut parts = [IoSliceMut::new(&mut bytes)];
        match rustix::net::recvmsg(socket.as_fd(), &mut parts, &mut ancillary, flags) {
            Err(Errno::INTR) => {}
            other => break other,
        }
    };
    let answer = match answer {
        Ok(answer) => answer,
        Err(Errno::AGAIN) => return Received::Nothing,
        Err(_) => return Received::Closed,
    };
    if answer.bytes == 0 {
        return Received::Closed;
    }
    let mut fds = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            fds.extend(received);
        }
    }
    if answer.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
        return Received::Garbage;
    }
    match Control::from_bytes(&bytes[..answer.bytes]) {
        Some(message) => Received::Message(message, fds),
        None => Received::Garbage,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::{Introduction, VERSION};

    fn is_closed_by_exec(fd: &OwnedFd) -> bool {
        rustix::io::fcntl_getfd(fd).expect("flags").contains(rustix::io::FdFlags::CLOEXEC)
    }

    /// Messages arrive with their descriptors, and whatever else comes is told apart.
    #[test]
    fn messages_carry_descriptors() {
        let name = format!("bellwire-socket-test-{}", std::process::id());
        let listener = listen(&name).expect("a free name");
        assert_eq!(reserve(&name).expect_err("it is taken"), Errno::ADDRINUSE);
        let is_blocking = |socket: &OwnedFd| {
            let flags = rustix::fs::fcntl_getfl(socket).expect("flags");
            !flags.contains(rustix::fs::OFlags::NONBLOCK)
        };
        assert!(is_closed_by_exec(&listener) && !is_blocking(&listener));
        assert_eq!(accept(&listener).expect_err("nobody has come"), Errno::AGAIN);
        let near = connect(&name).expect("it listens");
        let far = accept(&listener).expect("it has come");
        let own = (
            std::process::id() as i32,
            rustix::process::getuid().as_raw(),
            rustix::process::getgid().as_raw(),
        );
        assert_eq!(credentials(&near), Ok(own));
        assert!(matches!(receive(&far), Received::Nothing));
        assert!([&near, &far].into_iter().all(|it| is_closed_by_exec(it) && !is_blocking(it)));
        let hello =
            Control::Hello(Introduction { version: VERSION, node: 7, ..Introduction::default() });
        for fds in [&[][..], &[near.as_fd()], &[near.as_fd(), far.as_fd(), listener.as_fd()]] {
            send(&near, hello, fds).expect("room");
            let Received::Message(message, got) = receive(&far) else { panic!("a message") };
            assert_eq!((message, got.len()), (hello, fds.len()));
            assert!(got.iter().all(is_closed_by_exec));
        }
        send(&near, Control::Kick, &[]).expect("room");
        let Received::Message(message, _) = receive(&far) else { panic!("a message") };
        assert_eq!(message, Control::Kick);
        for length in [1, RECORD_BYTES, RECORD_BYTES + 1, RECORD_BYTES + 2, 1000] {
            rustix::io::write(&near, &vec![0; length]).expect("room");
            assert!(matches!(receive(&far), Received::Garbage), "{length} bytes");
        }
        let mut sent = 0;
        while send(&near, Control::Kick, &[]) != Err(Errno::AGAIN) {
            sent += 1;
        }
        drop(near);
        for _ in 0..sent {
            assert!(matches!(receive(&far), Received::Message(Control::Kick, _)));
        }
        assert!(matches!(receive(&far), Received::Closed));
        drop(listener);
        assert_eq!(connect(&name).expect_err("nobody listens"), Errno::CONNREFUSED);
    }

    /// A message with more descriptors than any of ours has is none.
    #[test]
    fn too_many_descriptors_are_garbage() {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let both = rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
        let (near, far) = both.expect("two sockets");
        let (bytes, length) = Control::Kick.to_bytes();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let fds = [near.as_fd(); 16];
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(&fds)));
        let bytes = [IoSlice::new(&bytes[..length])];
        rustix::net::sendmsg(&near, &bytes, &mut ancillary, SendFlags::empty()).expect("room");
        assert!(matches!(receive(&far), Received::Garbage));
    }
}
