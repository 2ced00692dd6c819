//! Frames between functions of one interface. A card does not receive what it sends to itself, so
//! these frames take a local socket.
//!
//! The socket's abstract name belongs to the network namespace and vanishes with its process
//! (unix(7)). The name also shows that a function has an owner.

use crate::socket::{self, Name};
use std::collections::VecDeque;
use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Maximum number of frames that wait for room in a neighbour's socket.
const WAITING: usize = 256;

pub(crate) struct Local {
    socket: OwnedFd,
    _name: Name,
    interface: u32,
    buffer: Box<[u8]>,
    waiting: VecDeque<(u8, Vec<u8>)>,
}

impl Local {
    /// Opens the socket of `function` on the interface with this number.
    ///
    /// # Errors
    /// `AddrInUse` if the function is open already, in this or another process.
    pub fn open(interface: u32, function: u8, frame_bytes: usize) -> io::Result<Local> {
        let socket = socket::open(libc::AF_UNIX, libc::SOCK_DGRAM, 0)?;
        let (address, length) = name(interface, function);
        let name = socket::bind_anew(socket.as_fd(), &address, length)?;
        socket::enlarge_buffers(socket.as_fd(), 4 << 20);
        let buffer = vec![0; frame_bytes].into_boxed_slice();
        Ok(Local { socket, _name: name, interface, buffer, waiting: VecDeque::new() })
    }

    /// Sends a frame to a function of the same interface. It is lost if the function is not open,
    /// or if its socket stays full.
    pub fn send(&mut self, function: u8, frame: &[u8]) {
        if (!self.waiting.is_empty() || !self.try_send(function, frame))
            && self.waiting.len() < WAITING
        {
            self.waiting.push_back((function, frame.to_vec()));
        }
    }

    /// Retries frames that found no room.
    pub fn flush(&mut self) {
        while let Some((function, frame)) = self.waiting.pop_front() {
            if !self.try_send(function, &frame) {
                self.waiting.push_front((function, frame));
                return;
            }
        }
    }

    /// Whether frames wait for room.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// `false`: there is no room now.
    fn try_send(&self, function: u8, frame: &[u8]) -> bool {
        let (address, length) = name(self.interface, function);
        let sent = socket::send_to(self.socket.as_fd(), frame, &address, length);
        !sent.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// The next received frame.
    pub fn receive(&mut self) -> Option<&[u8]> {
        // SAFETY: the kernel writes into the buffer, at most its length.
        let got = unsafe {
            libc::recv(
                self.socket.as_raw_fd(),
                self.buffer.as_mut_ptr().cast(),
                self.buffer.len(),
                libc::MSG_DONTWAIT,
            )
        };
        usize::try_from(got).ok().and_then(|length| self.buffer.get(..length))
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The name of a function's socket, and its length.
fn name(interface: u32, function: u8) -> (libc::sockaddr_un, usize) {
    let text = format!("bellwire-eth/{interface}/{function}");
    // SAFETY: zeros are a valid address; its first zero byte makes the name abstract.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as u16;
    for (to, from) in address.sun_path[1..].iter_mut().zip(text.bytes()) {
        *to = from as libc::c_char;
    }
    let length = offset_of!(libc::sockaddr_un, sun_path) + 1 + text.len();
    debug_assert!(length <= size_of::<libc::sockaddr_un>());
    (address, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A function has one owner, receives what its neighbours send, and is free again when it is
    /// closed.
    // shows: H-22
    #[test]
    fn neighbours_reach_each_other() {
        let number = 0x7000_0000 | std::process::id();
        let mut first = Local::open(number, 1, 100).unwrap();
        let mut second = Local::open(number, 2, 100).unwrap();
        assert_eq!(Local::open(number, 2, 100).err().unwrap().kind(), io::ErrorKind::AddrInUse);
        for round in 0..100u8 {
            first.send(2, &[round; 60]);
        }
        first.send(3, b"nobody");
        for round in 0..100 {
            first.flush();
            assert_eq!(second.receive(), Some(&[round; 60][..]));
        }
        first.flush();
        assert_eq!(second.receive(), None);
        assert!(!first.is_waiting());
        drop(second);
        Local::open(number, 2, 100).unwrap();
    }

    /// Long frames fit. For a neighbour that does not read, a bounded number of frames waits, and
    /// those stay in order.
    #[test]
    fn frames_for_a_slow_neighbour_wait() {
        let number = 0x5000_0000 | std::process::id();
        let mut first = Local::open(number, 1, 100_000).unwrap();
        let mut second = Local::open(number, 2, 100_000).unwrap();
        first.send(2, &[7; 100_000]);
        assert!(!first.is_waiting());
        assert_eq!(second.receive(), Some(&[7; 100_000][..]));
        let mut sent = 0u32;
        while first.waiting.len() < WAITING {
            first.send(2, &sent.to_le_bytes());
            sent += 1;
        }
        first.send(2, b"one too many");
        assert_eq!(first.waiting.len(), WAITING);
        for number in 0..sent {
            first.flush();
            assert_eq!(second.receive(), Some(&number.to_le_bytes()[..]));
        }
        assert!(!first.is_waiting() && second.receive().is_none());
    }
}
