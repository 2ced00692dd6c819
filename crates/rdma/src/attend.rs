//! When the thread looks although the program calls now and then.
//!
//! A program that polls takes its packets itself, and a thread that is woken for each would only
//! cost time. A program that watches its memory between calls, as `ib_write_lat` does, needs the
//! thread at once. What comes tells the two apart: packets that nobody looks for mean the second
//! kind. From then on each packet wakes the thread. It leaves those alone that come while the
//! program looks for them in a loop.

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::time::Timespec;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Packets that the program takes itself, after which it is left alone again.
const PATIENCE: u32 = 64;
/// Those that one for the thread outweighs.
const WEIGHT: u32 = 8;

/// Whether the thread is woken by packets while the program is active.
pub(crate) struct Attention {
    /// The thread's own descriptor, and the function's by edges: what the program takes itself must
    /// not keep the thread awake.
    poller: Option<OwnedFd>,
    /// Packets in vain until it is off.
    left: u32,
}

impl Attention {
    /// Without a descriptor for it the thread looks at active programs once in a pause.
    pub(crate) fn new(wake: &OwnedFd, function: &OwnedFd) -> Attention {
        let poller = || -> rustix::io::Result<OwnedFd> {
            let poller = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            epoll::add(&poller, wake, EventData::new_u64(0), EventFlags::IN)?;
            let edges = EventFlags::IN | EventFlags::ET;
            epoll::add(&poller, function, EventData::new_u64(1), edges)?;
            Ok(poller)
        };
        Attention { poller: poller().ok(), left: 0 }
    }

    /// Whether packets wake the thread.
    pub(crate) fn is_on(&self) -> bool {
        self.left > 0
    }

    /// A packet came while the program did not look for a pause.
    pub(crate) fn turn_on(&mut self) {
        if self.poller.is_some() {
            self.left = PATIENCE;
        }
    }

    /// The thread was woken by a packet, and took it (`stood_in`) or left it to the program.
    pub(crate) fn looked(&mut self, stood_in: bool) {
        self.left = match stood_in {
            true => (self.left + WEIGHT).min(PATIENCE),
            false => self.left.saturating_sub(1),
        };
    }

    /// Sleeps until something comes, or until the thread is woken. Returns whether something came.
    pub(crate) fn sleep(&self, limit: Duration) -> bool {
        let limit = Timespec { tv_sec: 0, tv_nsec: limit.subsec_nanos().into() };
        let mut events = [const { MaybeUninit::uninit() }; 2];
        let Some(poller) = &self.poller else { return false };
        match epoll::wait(poller, &mut events, Some(&limit)) {
            Ok((ready, _)) => ready.iter().any(|event| event.data.u64() == 1),
            Err(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, eventfd};

    /// Packets that the program does not look for turn it on, and those that it takes itself off; a
    /// packet that stays is told once.
    #[test]
    fn packets_for_the_thread_turn_it_on() {
        let made = || eventfd(0, EventfdFlags::NONBLOCK).unwrap();
        let (wake, function) = (made(), made());
        let mut attention = Attention::new(&wake, &function);
        attention.looked(false);
        assert!(!attention.is_on());
        attention.turn_on();
        // One in four is for the thread.
        for _ in 0..1000 {
            (0..3).for_each(|_| attention.looked(false));
            attention.looked(true);
            assert!(attention.is_on());
        }
        // One in ten is.
        for _ in 0..100 {
            (0..9).for_each(|_| attention.looked(false));
            attention.looked(attention.is_on());
        }
        assert!(!attention.is_on());
        let come = || rustix::io::write(&function, &1u64.to_ne_bytes()).unwrap();
        let day = Duration::from_millis(999);
        for _ in 0..2 {
            come();
            assert!(attention.sleep(day));
            assert!(!attention.sleep(Duration::from_millis(1)), "it was told");
        }
        rustix::io::write(&wake, &1u64.to_ne_bytes()).unwrap();
        assert!(!attention.sleep(day), "the thread is woken, and nothing has come");
    }
}
