//! What is behind a socket's lock, and what happens to it.

use crate::connection::{Connection, Lost};
use crate::datagram::Datagrams;
use crate::mirror::Mirror;
use crate::options::Options;
use crate::socket::Inbox;
use crate::stream::Stream;
use bellwire_rdmacm::{Endpoint, Event, Patience, reason};
use libc::{POLLERR, POLLHUP, POLLIN, POLLOUT, POLLRDHUP, c_int, c_short};
use std::io;
use std::net::SocketAddrV4;
use std::os::fd::{OwnedFd, RawFd};

/// How far a socket is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Bound or not.
    Idle,
    Listening,
    Connecting,
    Connected,
    /// A socket of datagrams, connected or not.
    Datagrams,
    /// It broke before it was connected, or was closed.
    Over,
}

/// What is behind a socket's lock.
pub struct Inner {
    pub phase: Phase,
    pub options: Options,
    pub local: Option<SocketAddrV4>,
    pub peer: Option<SocketAddrV4>,
    pub end: Option<Endpoint>,
    pub connection: Option<Connection>,
    /// Of a socket of datagrams.
    pub datagrams: Option<Box<Datagrams>>,
    /// What went wrong, until the program hears of it.
    pub error: Option<c_int>,
    pub shut_read: bool,
    pub shut_write: bool,
    pub mirror: Option<Mirror>,
    /// The descriptors of the program.
    pub numbers: Vec<RawFd>,
    /// Threads that sleep at the descriptor.
    pub sleepers: usize,
    /// Others sleep there, whom this library does not see: epoll(7).
    pub watched: bool,
    /// An ordinary socket, for peers that do not speak this protocol.
    pub beside: Option<OwnedFd>,
    pub patience: Patience,
}

/// The error of this number.
pub fn error(number: c_int) -> io::Error {
    io::Error::from_raw_os_error(number)
}

/// Would have to wait.
pub fn again() -> io::Error {
    error(libc::EAGAIN)
}

impl Inner {
    pub fn new(options: Options) -> Inner {
        // Programs of sockets expect to hear at once that nobody listens.
        let patience = Patience { nobody: std::time::Duration::ZERO, ..Patience::default() };
        Inner {
            phase: Phase::Idle,
            options,
            local: None,
            peer: None,
            end: None,
            connection: None,
            datagrams: None,
            error: None,
            shut_read: false,
            shut_write: false,
            mirror: None,
            numbers: Vec::new(),
            sleepers: 0,
            watched: false,
            beside: None,
            patience,
        }
    }

    pub fn stream(&self) -> Option<&Stream> {
        self.connection.as_ref().and_then(Connection::stream)
    }

    /// Takes into account what has happened. Whether anything has.
    pub fn pump(&mut self, inbox: &Inbox) -> bool {
        let events = inbox.take();
        let mut any = !events.is_empty();
        for event in events {
            self.heard(event);
        }
        if let Some(datagrams) = &mut self.datagrams {
            return datagrams.pump() | any;
        }
        let Some(connection) = &mut self.connection else { return any };
        let was_lost = connection.lost();
        any |= connection.pump();
        if was_lost.is_none() && connection.lost() == Some(Lost::Reset) {
            self.error = Some(libc::ECONNRESET);
        }
        any
    }

    fn heard(&mut self, event: Event) {
        match event {
            Event::Reply(offer) => {
                let (Some(connection), Some(end)) = (&mut self.connection, &self.end) else {
                    return;
                };
                let connected = connection.connect(&offer).and_then(|()| end.ready());
                match connected {
                    Ok(()) => {
                        connection.open();
                        if let Some(peer) = self.peer {
                            let device = connection.device();
                            crate::log::say(format_args!("a stream to {peer} over {device}"));
                        }
                        self.phase = Phase::Connected;
                    }
                    Err(error) => self.fail(error.raw_os_error().unwrap_or(libc::ECONNRESET)),
                }
            }
            Event::Ready => {
                if let Some(connection) = &mut self.connection {
                    connection.open();
                    if let Some(peer) = self.peer {
                        let device = connection.device();
                        crate::log::say(format_args!("a stream from {peer} over {device}"));
                    }
                }
            }
            Event::Rejected(reason::NO_SERVICE, _) => self.fail(libc::ECONNREFUSED),
            Event::Rejected(..) if self.phase == Phase::Connecting => self.fail(libc::ECONNREFUSED),
            Event::Unreachable(number) => self.fail(number.abs()),
            Event::ConnectError(number) if self.phase == Phase::Connecting => {
                self.fail(number.abs())
            }
            Event::Disconnected | Event::ConnectError(_) | Event::Rejected(..) => {
                let Some(connection) = &mut self.connection else { return };
                let was_lost = connection.lost();
                connection.peer_left();
                if was_lost.is_none() && connection.lost() == Some(Lost::Reset) {
                    self.error = Some(libc::ECONNRESET);
                }
            }
            Event::Request { .. } | Event::Datagrams(_) | Event::TimeWaitExit => {}
        }
    }

    /// It does not get connected.
    fn fail(&mut self, number: c_int) {
        self.error = Some(number);
        self.finish();
    }

    /// Nothing follows.
    pub fn finish(&mut self) {
        self.phase = Phase::Over;
        self.connection = None;
        self.datagrams = None;
        self.end = None;
    }

    /// The next completion raises an event of the channel. `false`: it does already.
    pub fn arm(&mut self) -> bool {
        match (&mut self.datagrams, &mut self.connection) {
            (Some(datagrams), _) => datagrams.arm(),
            (None, Some(connection)) => connection.arm(),
            (None, None) => false,
        }
    }

    /// The program sleeps, so the device's thread makes progress.
    pub fn sleeps(&self) {
        if let Some(connection) = &self.connection {
            connection.sleeps();
        }
        if let Some(datagrams) = &self.datagrams {
            datagrams.sleeps();
        }
    }

    pub fn is_drained(&self) -> bool {
        if let Some(datagrams) = &self.datagrams {
            return datagrams.is_sent();
        }
        match &self.connection {
            Some(it) => it.lost().is_some() || it.stream().is_none_or(Stream::is_delivered),
            None => true,
        }
    }

    fn is_connected(&self) -> io::Result<()> {
        match self.phase {
            Phase::Connected => Ok(()),
            Phase::Connecting => Err(again()),
            _ => Err(error(libc::ENOTCONN)),
        }
    }

    pub fn send(
        &mut self,
        write: impl FnOnce(&mut Connection) -> io::Result<usize>,
    ) -> io::Result<usize> {
        if let Some(number) = self.error.take() {
            return Err(error(number));
        }
        self.is_connected()?;
        let Some(connection) = &mut self.connection else { return Err(error(libc::ENOTCONN)) };
        let is_ending = connection.stream().is_some_and(Stream::is_ending);
        if is_ending || connection.lost().is_some() {
            return Err(error(libc::EPIPE));
        }
        match write(connection)? {
            0 => Err(again()),
            count => Ok(count),
        }
    }

    pub fn receive(&mut self, to: &mut [u8], peeks: bool) -> io::Result<usize> {
        if let Some(connection) = &mut self.connection {
            match connection.read(to, peeks) {
                0 => {}
                count => return Ok(count),
            }
        }
        if let Some(number) = self.error.take() {
            return Err(error(number));
        }
        self.is_connected()?;
        if self.shut_read || self.has_ended() || to.is_empty() {
            return Ok(0);
        }
        Err(again())
    }

    fn has_ended(&self) -> bool {
        self.connection.as_ref().is_none_or(|it| it.lost().is_some())
            || self.stream().is_some_and(Stream::has_ended)
    }

    pub fn stream_readiness(&self) -> c_short {
        let Some(stream) = self.stream() else { return POLLHUP };
        let is_lost = self.connection.as_ref().is_some_and(|it| it.lost().is_some());
        let reads_end = self.shut_read || self.has_ended();
        let mut ready = 0;
        if stream.unread_bytes() > 0 {
            ready |= POLLIN;
        }
        if reads_end {
            ready |= POLLIN | POLLRDHUP;
        }
        // A writer is woken once there is room for more than a few bytes.
        if is_lost || stream.is_ending() || stream.has_much_room() {
            ready |= POLLOUT;
        }
        // A program that is told of a hang-up may read no more, so it has to have read all before.
        let all_read = stream.unread_bytes() == 0;
        if (is_lost && all_read) || (reads_end && stream.is_ending()) {
            ready |= POLLHUP;
        }
        if self.error.is_some() {
            ready |= POLLERR;
        }
        ready
    }

    pub fn datagram_readiness(&self) -> c_short {
        let Some(datagrams) = &self.datagrams else { return POLLHUP };
        let mut ready = 0;
        if datagrams.next_bytes().is_some() || self.shut_read {
            ready |= POLLIN;
        }
        if datagrams.has_room() {
            ready |= POLLOUT;
        }
        if datagrams.is_refused() {
            ready |= POLLIN | POLLOUT | POLLERR;
        }
        ready
    }

    pub fn beside_is_ready(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, poll};
        self.beside.as_ref().is_some_and(|beside| {
            let mut fds = [PollFd::new(beside, PollFlags::IN)];
            poll(&mut fds, Some(&Default::default())) == Ok(1)
        })
    }
}
