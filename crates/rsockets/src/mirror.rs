//! The descriptor of a socket: what the kernel says of it is what the socket is.
//!
//! A socket's number is one end of a pair of connected sockets of the kernel; this has the other
//! end. A byte from here makes the number readable; bytes that fill its buffer make it not
//! writable. So poll(2) and epoll(7) work on the number. This costs system calls, so the pair is
//! brought up to date only while somebody sleeps there.

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair, sockopt,
};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

/// What a descriptor shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shown {
    pub readable: bool,
    pub writable: bool,
    /// The peer sends nothing any more.
    pub ended: bool,
    /// Nothing works in either direction.
    pub hung: bool,
}

/// The far end of a socket's number.
pub struct Mirror {
    far: Option<OwnedFd>,
    shown: Shown,
}

impl Mirror {
    /// A mirror, and the number's descriptor.
    pub fn new(flags: SocketFlags) -> io::Result<(Mirror, OwnedFd)> {
        let (near, far) = socketpair(
            AddressFamily::UNIX,
            SocketType::STREAM,
            flags | SocketFlags::CLOEXEC,
            None,
        )?;
        if !flags.contains(SocketFlags::CLOEXEC) {
            rustix::io::fcntl_setfd(&near, rustix::io::FdFlags::empty())?;
        }
        // The kernel makes it as small as it can, and so quick to fill.
        sockopt::set_socket_send_buffer_size(&near, 1)?;
        let shown = Shown { readable: false, writable: true, ended: false, hung: false };
        Ok((Mirror { far: Some(far), shown }, near))
    }

    /// Lets the number `near` show this.
    pub fn show(&mut self, near: RawFd, want: Shown) {
        let Some(far) = &self.far else { return };
        // SAFETY: the program has not closed the number: its socket knows it.
        let near = unsafe { BorrowedFd::borrow_raw(near) };
        if want.hung {
            self.far = None;
            return;
        }
        // The end makes it readable for good, and is told by one edge.
        if want.ended && !self.shown.ended {
            let _ = rustix::net::shutdown(far, rustix::net::Shutdown::Write);
        }
        if want.readable != self.shown.readable && !want.ended {
            if want.readable {
                let _ = send(far, &[0], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
            } else {
                drain(near);
            }
        }
        if want.writable != self.shown.writable {
            if want.writable {
                drain(far);
            } else {
                let part = [0; 2048];
                while send(near, &part, SendFlags::DONTWAIT | SendFlags::NOSIGNAL).is_ok() {}
            }
        }
        self.shown = Shown { ended: self.shown.ended || want.ended, ..want };
    }
}

/// Takes what is there.
fn drain(fd: impl std::os::fd::AsFd) {
    let mut bytes = [0; 4096];
    loop {
        match recv(&fd, &mut bytes[..], RecvFlags::DONTWAIT) {
            Ok((1.., _)) | Err(Errno::INTR) => {}
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};
    use std::os::fd::AsRawFd;

    /// The kernel says of the number what the mirror shows, whatever was shown before.
    #[test]
    fn the_kernel_says_what_is_shown() {
        let (mut mirror, near) = Mirror::new(SocketFlags::empty()).unwrap();
        let all = PollFlags::IN | PollFlags::OUT | PollFlags::RDHUP;
        let mut said = |readable, writable, ended, hung| {
            mirror.show(near.as_raw_fd(), Shown { readable, writable, ended, hung });
            let mut fds = [PollFd::new(&near, all)];
            poll(&mut fds, Some(&Default::default())).unwrap();
            fds[0].revents()
        };
        for _ in 0..3 {
            assert_eq!(said(false, true, false, false), PollFlags::OUT);
            assert_eq!(said(true, true, false, false), PollFlags::IN | PollFlags::OUT);
            assert_eq!(said(true, false, false, false), PollFlags::IN);
            assert_eq!(said(false, false, false, false), PollFlags::empty());
        }
        assert_eq!(said(true, true, true, false), all);
        assert!(said(true, true, true, true).contains(PollFlags::HUP));
    }
}
