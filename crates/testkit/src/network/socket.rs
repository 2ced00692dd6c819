//! Packet sockets: all frames of one interface, unchanged.

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::SendFlags;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A socket for the incoming frames of one interface.
pub struct PacketSocket(OwnedFd);

/// Of linux/if_packet.h.
const PACKET_IGNORE_OUTGOING: i32 = 23;

impl PacketSocket {
    /// Opens the interface called `name` of this thread's namespace.
    #[track_caller]
    pub fn open(name: &str) -> PacketSocket {
        let name = CString::new(name).expect("a name");
        let everything = (libc::ETH_P_ALL as u16).to_be();
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: system calls; the name ends with a zero byte, and all other memory is ours and
        // has the stated length.
        unsafe {
            let fd = libc::socket(libc::AF_PACKET, kind, everything.into());
            assert!(fd >= 0, "a packet socket: {}", io::Error::last_os_error());
            let socket = PacketSocket(OwnedFd::from_raw_fd(fd));
            let one = 1i32;
            let length = size_of::<i32>() as u32;
            let option = PACKET_IGNORE_OUTGOING;
            libc::setsockopt(fd, libc::SOL_PACKET, option, (&raw const one).cast(), length);
            let buffer = 8i32 << 20;
            let (level, option) = (libc::SOL_SOCKET, libc::SO_RCVBUFFORCE);
            libc::setsockopt(fd, level, option, (&raw const buffer).cast(), length);
            let mut address: libc::sockaddr_ll = std::mem::zeroed();
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_protocol = everything;
            address.sll_ifindex = libc::if_nametoindex(name.as_ptr()) as i32;
            let length = size_of::<libc::sockaddr_ll>() as u32;
            let bound = libc::bind(fd, (&raw const address).cast(), length);
            assert!(bound == 0, "binding to {name:?}: {}", io::Error::last_os_error());
            socket
        }
    }

    /// The next frame, if any: returns its length, and copies its beginning to `into`.
    pub fn receive(&self, into: &mut [u8]) -> Option<usize> {
        // SAFETY: the kernel writes no more than the length of the slice.
        let got =
            unsafe { libc::recv(self.0.as_raw_fd(), into.as_mut_ptr().cast(), into.len(), 0) };
        usize::try_from(got).ok()
    }

    /// Sends a frame. Returns whether the kernel took it.
    pub fn send(&self, frame: &[u8]) -> bool {
        rustix::net::send(&self.0, frame, SendFlags::empty()).is_ok()
    }
}

/// Sleeps until one of two sockets has a frame, for one millisecond at most.
pub fn wait(sockets: &[PacketSocket; 2]) {
    let mut polled = [0, 1].map(|number| PollFd::new(&sockets[number].0, PollFlags::IN));
    let millisecond = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
    let _ = rustix::event::poll(&mut polled, Some(&millisecond));
}
