//! One link to a peer: its state, and its control socket.

use crate::control::Control;
use crate::epoll;
use crate::mapping::Segment;
use crate::outbound::Outbound;
use crate::socket::{self, Received};
use bellwire_device::{FunctionAddress, SendError, Status};
use bellwire_ring::memory::Memory;
use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

enum State {
    /// The peer does not listen yet, or has not answered. `pair` is the memory that we offer.
    Connecting { wait: Wait, pair: Segment },
    /// The peer connects to us, and its attempt takes precedence.
    Awaiting { wait: Wait },
    /// Packets flow.
    Up(Box<Outbound>),
    /// The peer is gone, and why; its lane may still hold packets.
    Down(Status),
}

/// Between two looks of a program that runs less time passes than this.
const STOPPED: Duration = Duration::from_millis(100);

/// How long the peer may take until packets flow.
#[derive(Clone, Copy)]
struct Wait {
    since: Instant,
    patience: Duration,
    /// When we last looked for an answer.
    looked: Instant,
    /// The wait was made longer once.
    is_excused: bool,
}

impl Wait {
    fn new(patience: Duration, now: Instant) -> Wait {
        Wait { since: now, patience, looked: now, is_excused: false }
    }

    /// Looks at the clock, and says whether it is time to give up. A program that was stopped could
    /// not see an answer: it looks for one a little longer.
    fn is_over(&mut self, now: Instant) -> bool {
        let unseen = now.saturating_duration_since(std::mem::replace(&mut self.looked, now));
        let passed = now.saturating_duration_since(self.since);
        if passed < self.patience {
            return false;
        }
        if self.is_excused || unseen < STOPPED {
            return true;
        }
        self.is_excused = true;
        self.patience = passed + STOPPED;
        false
    }
}

/// One link.
pub struct Link {
    pub peer: FunctionAddress,
    state: State,
    /// `None` while there is no connection on which an answer could come.
    pub socket: Option<Arc<OwnedFd>>,
    /// Signals the peer's death even if a forked child of it holds copies of its sockets.
    death: Option<OwnedFd>,
    /// Control messages that wait because the socket was full.
    unsent: VecDeque<(Control, Option<OwnedFd>)>,
    /// Whether the engine was told that the link is down.
    reported: bool,
    /// Whether the engine is done with the link.
    pub closed: bool,
    /// It was closed because the peer broke the rules. The peer may not know yet, and may still
    /// write where it had credit.
    pub expelled: bool,
}

impl Link {
    fn new(peer: FunctionAddress, state: State) -> Link {
        Link {
            peer,
            state,
            socket: None,
            death: None,
            unsent: VecDeque::new(),
            reported: false,
            closed: false,
            expelled: false,
        }
    }

    /// A link that we set up, in the memory `pair`, within `patience`.
    pub fn connecting(peer: FunctionAddress, patience: Duration, pair: Segment) -> Link {
        Link::new(peer, State::Connecting { wait: Wait::new(patience, Instant::now()), pair })
    }

    /// A link that the peer sets up.
    pub fn awaiting(peer: FunctionAddress) -> Link {
        let patience = Duration::from_secs(1);
        Link::new(peer, State::Awaiting { wait: Wait::new(patience, Instant::now()) })
    }

    // Set-up.

    /// Whether packets do not flow yet.
    pub fn is_setting_up(&self) -> bool {
        matches!(self.state, State::Connecting { .. } | State::Awaiting { .. })
    }

    /// Whether the set-up has taken too long.
    pub fn is_late(&mut self) -> bool {
        match &mut self.state {
            State::Connecting { wait, .. } | State::Awaiting { wait } => {
                wait.is_over(Instant::now())
            }
            State::Up(_) | State::Down(_) => false,
        }
    }

    /// The memory that we offer to the peer, if we connect.
    pub fn offer(&self) -> Option<&Segment> {
        match &self.state {
            State::Connecting { pair, .. } => Some(pair),
            _ => None,
        }
    }

    /// Our Hello was sent on `socket`.
    pub fn await_welcome(&mut self, socket: OwnedFd) {
        self.socket = Some(Arc::new(socket));
    }

    /// The attempt of the peer takes precedence over ours.
    pub fn await_hello(&mut self) {
        if let State::Connecting { wait, .. } = self.state {
            self.socket = None;
            self.state = State::Awaiting { wait };
        }
    }

    /// The socket on which our Hello was answered, and the memory that we offered.
    pub fn accepted(&mut self) -> Option<(Arc<OwnedFd>, Memory)> {
        let pair = self.offer()?.memory.clone();
        Some((self.socket.take()?, pair))
    }

    /// The link is up. `death` signals the peer's death.
    pub fn raise(&mut self, socket: Arc<OwnedFd>, death: Option<OwnedFd>, outbound: Outbound) {
        self.socket = Some(socket);
        self.death = death;
        self.state = State::Up(Box::new(outbound));
    }

    // While it is up.

    #[inline]
    pub fn up(&self) -> Option<&Outbound> {
        match &self.state {
            State::Up(up) => Some(up),
            _ => None,
        }
    }

    #[inline(always)]
    pub fn up_mut(&mut self) -> Option<&mut Outbound> {
        match &mut self.state {
            State::Up(up) => Some(up),
            _ => None,
        }
    }

    /// The way to the peer, or why there is none.
    #[inline(always)]
    pub fn outbound(&mut self) -> Result<&mut Outbound, SendError> {
        match &mut self.state {
            State::Up(up) => Ok(up),
            State::Down(why) => Err(SendError::Down(*why)),
            State::Connecting { .. } | State::Awaiting { .. } => Err(SendError::Busy),
        }
    }

    /// Sends a control message, now or as soon as the socket has room. Returns whether it was sent.
    pub fn send(&mut self, message: Control, fd: Option<OwnedFd>) -> bool {
        self.unsent.push_back((message, fd));
        self.flush() == 0
    }

    /// Sends waiting control messages until the socket is full. Returns how many still wait.
    pub fn flush(&mut self) -> usize {
        let Some(socket) = &self.socket else {
            self.unsent.clear();
            return 0;
        };
        while let Some((message, fd)) = self.unsent.front() {
            let fds: Vec<_> = fd.iter().map(AsFd::as_fd).collect();
            match socket::send(socket, *message, &fds) {
                Err(rustix::io::Errno::AGAIN) => break,
                // The next check of the socket notices that it is closed.
                Ok(()) | Err(_) => self.unsent.pop_front(),
            };
        }
        self.unsent.len()
    }

    /// Receives a control message.
    pub fn receive(&self) -> Received {
        self.socket.as_ref().map_or(Received::Nothing, |socket| socket::receive(socket))
    }

    /// Whether the peer's process is dead.
    pub fn is_dead(&self) -> bool {
        self.death.as_ref().is_some_and(epoll::is_readable)
    }

    // The end.

    /// Why the link is down.
    pub fn down(&self) -> Option<Status> {
        match self.state {
            State::Down(why) => Some(why),
            _ => None,
        }
    }

    /// Takes the link down. Returns whether its peer is expelled: it was told to hang up, and has
    /// not done so yet.
    pub fn take_down(&mut self, why: Status) -> bool {
        self.unsent.clear();
        let told = |socket| rustix::net::shutdown(socket, rustix::net::Shutdown::Write).is_ok();
        self.expelled = why == Status::ProtocolViolation
            && self.up().is_some()
            && self.socket.as_ref().is_some_and(told);
        self.state = State::Down(why);
        if !self.expelled {
            self.let_go();
        }
        self.expelled
    }

    /// Closes our end. Returns whether the peer was expelled; from here on the link is as any that
    /// is down.
    pub fn let_go(&mut self) -> bool {
        self.socket = None;
        self.death = None;
        std::mem::take(&mut self.expelled)
    }

    /// The engine is done with the link, and needs no report.
    pub fn close(&mut self) {
        self.closed = true;
        self.reported = true;
    }

    /// Whether the engine is to be told now that the link is down.
    pub fn report(&mut self) -> bool {
        !std::mem::replace(&mut self.reported, true)
    }
}

#[cfg(test)]
mod tests {
    use super::{STOPPED, Wait};
    use std::time::{Duration, Instant};

    const MS: Duration = Duration::from_millis(1);

    /// A program that looks all the time gives up exactly at the end of its patience.
    #[test]
    fn patience_ends_exactly() {
        let start = Instant::now();
        let mut wait = Wait::new(1_000 * MS, start);
        for passed in (1..1_000).chain([999]) {
            assert!(!wait.is_over(start + passed * MS), "{passed}");
        }
        assert!(wait.is_over(start + 1_000 * MS));
    }

    /// A program that was stopped until its patience was over looks a little longer, but only once.
    #[test]
    fn a_stopped_program_looks_once_more() {
        for (stopped, is_over) in [(STOPPED - MS, true), (STOPPED, false)] {
            let start = Instant::now();
            let mut wait = Wait::new(1_000 * MS, start);
            let last = start + 999 * MS;
            assert!(!wait.is_over(last));
            assert_eq!(wait.is_over(last + stopped), is_over, "{stopped:?}");
            if !is_over {
                let more = last + stopped + STOPPED;
                assert!(!wait.is_over(more - MS));
                assert!(wait.is_over(more + 5 * STOPPED), "it is excused only once");
            }
        }
    }
}
