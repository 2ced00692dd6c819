//! Events for programs that sleep: a queue behind a file descriptor.

use crate::context::LONG_SLEEP;
use crate::sleep::wait;
use rustix::event::{EventfdFlags, eventfd};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A queue whose descriptor is readable exactly while an event waits.
///
/// The descriptor counts the events. Programs poll it, duplicate it, and set `O_NONBLOCK` on it.
#[derive(Debug)]
pub struct EventQueue<T> {
    fd: OwnedFd,
    events: Mutex<VecDeque<T>>,
}

/// An asynchronous event, with the values of the specification (`IBV_EVENT_*`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
#[allow(missing_docs)] // The names are the specification's.
pub enum EventKind {
    CompletionQueueError = 0,
    QueuePairFatal = 1,
    QueuePairRequestError = 2,
    QueuePairAccessError = 3,
    CommunicationEstablished = 4,
    SendQueueDrained = 5,
    SharedReceiveLimit = 15,
    LastReceiveReached = 16,
}

/// An asynchronous event and the object that it concerns, by the number of its creator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AsyncEvent {
    /// What happened.
    pub kind: EventKind,
    /// The program's number of the object.
    pub object: usize,
}

impl<T> EventQueue<T> {
    /// An empty queue.
    pub fn new() -> io::Result<EventQueue<T>> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::SEMAPHORE)?;
        Ok(EventQueue { fd, events: Mutex::default() })
    }

    /// The descriptor.
    pub fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    pub(crate) fn descriptor(&self) -> &OwnedFd {
        &self.fd
    }

    /// Whether an event waits.
    pub(crate) fn has_events(&self) -> bool {
        !self.events().is_empty()
    }

    /// Whether the program has set `O_NONBLOCK`.
    pub(crate) fn is_nonblocking(&self) -> io::Result<bool> {
        Ok(rustix::fs::fcntl_getfl(&self.fd)?.contains(rustix::fs::OFlags::NONBLOCK))
    }

    fn events(&self) -> MutexGuard<'_, VecDeque<T>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event.
    pub fn push(&self, event: T) {
        let mut events = self.events();
        events.push_back(event);
        // The counter has 64 bits, so it has room.
        let _ = rustix::io::write(self.fd.as_fd(), &1u64.to_ne_bytes());
    }

    /// The oldest event. Waits for a tenth of a second, unless the program has set `O_NONBLOCK`;
    /// `None`: no event came. In between the caller can look whether its thread is cancelled.
    ///
    /// # Errors
    /// `WouldBlock`; `Interrupted`, if a read would end with it.
    pub fn next(&self) -> io::Result<Option<T>> {
        let waits = !self.has_events() && !self.is_nonblocking()?;
        if waits && !wait(&[&self.fd], None, LONG_SLEEP, None)?.by_first {
            return Ok(None);
        }
        self.pop().map(Some)
    }

    /// The oldest event. Waits for one, unless the program has set `O_NONBLOCK`.
    ///
    /// # Errors
    /// `WouldBlock`, `Interrupted`.
    pub fn pop(&self) -> io::Result<T> {
        loop {
            let mut count = [0; 8];
            rustix::io::read(self.fd.as_fd(), &mut count)?;
            // `remove` may have taken the event between the read and here.
            if let Some(event) = self.events().pop_front() {
                return Ok(event);
            }
        }
    }

    /// Drops the events that `is_over` names.
    pub fn remove(&self, is_over: impl FnMut(&T) -> bool) {
        // They end after the queue is free again, because their end may add others.
        drop(self.take(is_over));
    }

    /// Takes the events that `is_wanted` names out, the oldest first.
    pub fn take(&self, mut is_wanted: impl FnMut(&T) -> bool) -> Vec<T> {
        let mut events = self.events();
        let (mut taken, mut left) = (Vec::new(), VecDeque::new());
        for event in events.drain(..) {
            if is_wanted(&event) { taken.push(event) } else { left.push_back(event) }
        }
        *events = left;
        for _ in &taken {
            // A descriptor without a count blocks: another thread has taken it and finds nothing.
            let mut ready = [rustix::event::PollFd::new(&self.fd, rustix::event::PollFlags::IN)];
            if rustix::event::poll(&mut ready, Some(&Default::default())) != Ok(1) {
                break;
            }
            let mut count = [0; 8];
            let _ = rustix::io::read(self.fd.as_fd(), &mut count);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};

    fn is_readable<T>(queue: &EventQueue<T>) -> bool {
        let mut fds = [PollFd::new(&queue.fd, PollFlags::IN)];
        poll(&mut fds, Some(&Default::default())) == Ok(1)
    }

    /// The descriptor is readable exactly while an event waits, whether it is taken or removed.
    #[test]
    fn readable_exactly_while_an_event_waits() {
        let queue = EventQueue::new().unwrap();
        assert!(!is_readable(&queue));
        for event in [1, 2, 3, 2] {
            queue.push(event);
        }
        assert_eq!(queue.pop().unwrap(), 1);
        queue.remove(|&event| event == 2);
        assert!(is_readable(&queue));
        assert_eq!(queue.pop().unwrap(), 3);
        assert!(!is_readable(&queue));
    }
}
