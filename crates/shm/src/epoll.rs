//! The descriptors that the check reads and that wake a sleeper.

use bellwire_device::Error;
use rustix::event::{PollFd, PollFlags, epoll, poll};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// The origin of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    Listener,
    /// The control socket of a link.
    Link(u32),
    /// The process of a link's peer.
    Death(u32),
    /// A connection that has not introduced itself.
    PendingPeer(u32),
    /// A tick of the pending peers' clock.
    Tick,
}

impl Source {
    fn to_data(self) -> epoll::EventData {
        let (kind, number) = match self {
            Source::Listener => (0, 0),
            Source::Link(n) => (1, n),
            Source::Death(n) => (2, n),
            Source::PendingPeer(n) => (3, n),
            Source::Tick => (4, 0),
        };
        epoll::EventData::new_u64(kind << 32 | u64::from(number))
    }

    fn from_data(data: epoll::EventData) -> Source {
        let number = data.u64() as u32;
        match data.u64() >> 32 {
            1 => Source::Link(number),
            2 => Source::Death(number),
            3 => Source::PendingPeer(number),
            4 => Source::Tick,
            _ => Source::Listener,
        }
    }
}

/// All descriptors that are watched, each until it is closed.
pub struct Epoll(OwnedFd);

impl Epoll {
    /// Watches nothing.
    pub fn new() -> Result<Epoll, Error> {
        let fd = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|error| Error::System {
            what: "create an epoll descriptor",
            cause: error.into(),
        })?;
        Ok(Epoll(fd))
    }

    /// Watches a descriptor.
    pub fn watch(&self, fd: &OwnedFd, source: Source) -> rustix::io::Result<()> {
        epoll::add(&self.0, fd, source.to_data(), epoll::EventFlags::IN)
    }

    /// Watches a descriptor that is in the set, or pauses that.
    pub fn pause(&self, fd: &OwnedFd, source: Source, paused: bool) {
        let events = if paused { epoll::EventFlags::empty() } else { epoll::EventFlags::IN };
        // The descriptor is in the set, so this cannot fail.
        let _ = epoll::modify(&self.0, fd, source.to_data(), events);
    }

    /// Takes a descriptor out of the set.
    pub fn forget(&self, fd: &OwnedFd) {
        let _ = epoll::delete(&self.0, fd);
    }

    /// Waits for events, at most for `timeout`, and returns their origins.
    pub fn wait(&self, timeout: Option<Duration>) -> rustix::io::Result<Vec<Source>> {
        let timeout = timeout.map(|timeout| rustix::time::Timespec {
            tv_sec: timeout.as_secs() as i64,
            tv_nsec: timeout.subsec_nanos().into(),
        });
        let mut events = [const { MaybeUninit::uninit() }; 64];
        let (events, _) = epoll::wait(&self.0, &mut events, timeout.as_ref())?;
        Ok(events.iter().map(|event| Source::from_data(event.data)).collect())
    }
}

impl AsFd for Epoll {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Whether a descriptor is readable now. An event may be about another that had its place before.
pub fn is_readable(fd: &OwnedFd) -> bool {
    let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, eventfd};

    fn bell(count: u32) -> OwnedFd {
        eventfd(count, EventfdFlags::NONBLOCK).expect("a descriptor")
    }

    /// An event tells its origin, while its descriptor is watched and not paused.
    #[test]
    fn events_tell_their_origin() {
        let epoll = Epoll::new().expect("a descriptor");
        let now = Some(Duration::ZERO);
        assert_eq!(epoll.wait(now), Ok(vec![]));
        let sources = [
            Source::Listener,
            Source::Link(7),
            Source::Link(u32::MAX),
            Source::Death(7),
            Source::PendingPeer(7),
            Source::Tick,
        ];
        for source in sources {
            let (rung, quiet) = (bell(1), bell(0));
            epoll.watch(&rung, source).expect("room");
            epoll.watch(&quiet, Source::Link(1)).expect("room");
            epoll.watch(&rung, source).expect_err("it is watched already");
            assert_eq!(epoll.wait(now), Ok(vec![source]));
            assert_eq!(epoll.wait(None), Ok(vec![source]));
            assert_eq!((is_readable(&rung), is_readable(&quiet)), (true, false));
            epoll.pause(&rung, source, true);
            assert_eq!(epoll.wait(now), Ok(vec![]));
            epoll.pause(&rung, source, false);
            assert_eq!(epoll.wait(Some(Duration::from_secs(8))), Ok(vec![source]));
            assert!(is_readable(&rung));
            epoll.forget(&rung);
            assert_eq!(epoll.wait(now), Ok(vec![]));
        }
        let since = std::time::Instant::now();
        for timeout in [Duration::from_millis(30), Duration::from_micros(1_000_700)] {
            let since = std::time::Instant::now();
            assert_eq!(epoll.wait(Some(timeout)), Ok(vec![]));
            assert!(since.elapsed() >= timeout);
        }
        assert!(since.elapsed() >= Duration::from_millis(1030));
    }
}
