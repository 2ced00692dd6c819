//! One end of a connection: its sockets, and what a frame, an error or the time does to it.

use crate::manager::{Endpoint, Sink};
use crate::message::{FRAME_BYTES, Frame, Offer};
use crate::reason;
use bellwire_ring::canary::planted;
use bellwire_ring::steps::step;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

/// What a program learns. Errors are numbers of `errno`.
#[derive(Debug)]
pub enum Event {
    /// At a listener: somebody wants to connect. The program answers at the new end.
    Request {
        /// The new end. Its events wait for [`Endpoint::adopt`].
        end: Endpoint,
        /// What the other side brings.
        offer: Offer,
        /// The address that it asked for.
        local: SocketAddrV4,
        /// Its address, with the port that its program is bound to.
        peer: SocketAddrV4,
    },
    /// The peer accepts, and waits for [`Endpoint::ready`].
    Reply(Offer),
    /// A service of datagrams answers; nothing more follows.
    Datagrams(Offer),
    /// The peer, which was accepted, is ready.
    Ready,
    /// The peer refuses: a reason of [`crate::reason`] or its own, and private data.
    Rejected(u32, Vec<u8>),
    /// The peer cannot be reached.
    Unreachable(i32),
    /// The connection broke before it stood.
    ConnectError(i32),
    /// The connection has ended.
    Disconnected,
    /// Nothing of the connection can arrive any more.
    TimeWaitExit,
}

/// How far an end is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Bound or not; nothing is under way.
    Idle,
    Listening,
    /// Active: asks where the conversation takes place.
    LookingUp,
    /// Active: the TCP connection is being made.
    Connecting,
    /// Active: the request was sent.
    Requested,
    /// Active: the reply is here.
    Replied,
    /// Passive: a connection without a request.
    Stranger,
    /// Passive: the request waits until the backlog has a place.
    Waiting,
    /// Passive: the request waits for the program.
    Asked,
    /// Passive: who asked has gone since.
    Gone,
    /// Passive: the reply was sent.
    Accepted,
    Connected,
    /// Waits for the peer's word that it has heard the end.
    Disconnecting,
    /// Waits until nothing can arrive any more.
    TimeWait,
    Over,
}

/// How long a peer may take to say that it has heard the end.
const DISCONNECT_LIMIT: Duration = Duration::from_secs(2);
/// From the end of a connection to [`Event::TimeWaitExit`].
const TIME_WAIT: Duration = Duration::from_millis(500);

/// A question that is repeated until it is answered.
pub struct Question {
    pub nonce: u64,
    /// Whom it asks, and where the conversation is to take place.
    pub to: SocketAddrV4,
    /// The next pause.
    pub pause: Duration,
    pub until: Instant,
    /// How long it is repeated once nobody is found.
    pub nobody: Duration,
    /// The answer so far is that nobody listens.
    pub finds_nobody: bool,
    /// The request that follows.
    pub offer: Offer,
}

impl Question {
    /// Nobody listens yet. The question is repeated for a while: many servers listen anew for each
    /// client, and a client that is quick comes in between.
    pub fn found_nobody(&mut self) {
        if !self.finds_nobody {
            self.finds_nobody = true;
            self.until = self.until.min(Instant::now() + self.nobody);
        }
    }
}

/// One end.
pub struct End {
    pub phase: Phase,
    /// Holds the port.
    pub name: Option<UdpSocket>,
    /// Where conversations begin.
    pub listener: Option<TcpListener>,
    /// The conversation.
    pub stream: Option<TcpStream>,
    pub question: Option<Question>,
    input: Vec<u8>,
    output: Vec<u8>,
    pub deadline: Option<Instant>,
    /// The deadline that the timers know.
    pub armed: Option<Instant>,
    /// The listener that has it in its backlog.
    pub parent: Option<u32>,
    /// The request of [`Phase::Waiting`].
    pub waiting: Option<Offer>,
    /// Of a listener: requests that the program may leave unanswered.
    pub backlog: usize,
    /// Of a listener: conversations that are not answered.
    pub unanswered: Vec<u32>,
    pub space: u16,
    /// Who hears of it.
    pub sink: Option<Sink>,
    /// What happened before anybody heard of it.
    pub held: Vec<Event>,
}

impl End {
    pub fn new(space: u16, sink: Option<Sink>) -> End {
        End {
            phase: Phase::Idle,
            name: None,
            listener: None,
            stream: None,
            question: None,
            input: Vec::new(),
            output: Vec::new(),
            deadline: None,
            armed: None,
            parent: None,
            waiting: None,
            backlog: 0,
            unanswered: Vec::new(),
            space,
            sink,
            held: Vec::new(),
        }
    }

    /// Whether frames wait for room in the socket.
    pub fn has_output(&self) -> bool {
        !self.output.is_empty()
    }

    /// Sends a frame. What the socket does not take follows later; an error shows at the next read.
    pub fn send(&mut self, frame: &Frame) {
        frame.emit(&mut self.output);
        self.flush();
    }

    /// Sends what waits.
    pub fn flush(&mut self) {
        let Some(stream) = &mut self.stream else { return };
        while !self.output.is_empty() {
            match stream.write(&self.output) {
                Ok(count @ 1..) => drop(self.output.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                _ => self.output.clear(),
            }
        }
    }

    /// Reads what is there, and returns the frames. An error, the end of the stream or nonsense
    /// follows them as `Err`.
    pub fn read(&mut self) -> (Vec<Frame>, io::Result<()>) {
        let mut frames = Vec::new();
        let Some(stream) = &mut self.stream else { return (frames, Ok(())) };
        let mut part = [0; FRAME_BYTES];
        loop {
            match stream.read(&mut part) {
                Ok(0) => return (frames, Err(ErrorKind::ConnectionReset.into())),
                Ok(count) => self.input.extend(&part[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return (frames, Ok(())),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return (frames, Err(error)),
            }
            loop {
                match Frame::parse(&self.input) {
                    Ok(None) => break,
                    Ok(Some((frame, length))) => {
                        self.input.drain(..length);
                        frames.push(frame);
                    }
                    Err(_) => return (frames, Err(ErrorKind::InvalidData.into())),
                }
            }
        }
    }

    /// Ends the conversation without a word.
    pub fn hang_up(&mut self, phase: Phase) {
        (self.stream, self.question) = (None, None);
        self.input.clear();
        self.output.clear();
        self.phase = phase;
        self.deadline = None;
    }

    /// A frame came. Returns what the program learns; `Err`: the peer broke the protocol.
    pub fn arrived(&mut self, frame: Frame) -> Result<Option<Event>, ()> {
        Ok(match (self.phase, frame) {
            (Phase::Requested, Frame::Reply(offer)) if self.is_datagrams() => {
                self.hang_up(Phase::Idle);
                Some(Event::Datagrams(offer))
            }
            (Phase::Requested, Frame::Reply(offer)) => {
                self.phase = Phase::Replied;
                step("cm-replied");
                Some(Event::Reply(offer))
            }
            (Phase::Requested, Frame::Reject(reason, data)) => {
                self.hang_up(Phase::Idle);
                Some(Event::Rejected(reason, data))
            }
            (Phase::Accepted, Frame::Reject(reason, data)) => {
                self.hang_up(Phase::Over);
                Some(Event::Rejected(reason, data))
            }
            (Phase::Accepted, Frame::Ready) => {
                self.phase = Phase::Connected;
                step("cm-connected");
                Some(Event::Ready)
            }
            (Phase::Connected, Frame::Disconnect) => {
                self.send(&Frame::Disconnected);
                Some(self.ended())
            }
            (Phase::Disconnecting, Frame::Disconnect | Frame::Disconnected) => Some(self.ended()),
            _ if planted("out-of-order") => None,
            _ => return Err(()),
        })
    }

    /// Whether its port space is that of datagrams (`RDMA_PS_UDP`, `RDMA_PS_IPOIB`).
    pub fn is_datagrams(&self) -> bool {
        matches!(self.space, 0x0111 | 0x0002)
    }

    /// The conversation broke. Returns what the program learns.
    pub fn broke(&mut self, error: &io::Error) -> Option<Event> {
        let number = error.raw_os_error().unwrap_or(libc::ECONNRESET);
        match self.phase {
            Phase::Connected | Phase::Disconnecting => Some(self.ended()),
            Phase::Connecting => {
                self.hang_up(Phase::Idle);
                Some(refused_or_unreachable(number))
            }
            // Its program has ended.
            Phase::Requested => {
                self.hang_up(Phase::Idle);
                Some(Event::Rejected(reason::CONSUMER, Vec::new()))
            }
            Phase::Replied | Phase::Accepted => {
                self.hang_up(Phase::Over);
                Some(Event::ConnectError(number))
            }
            Phase::Asked => {
                self.hang_up(Phase::Gone);
                None
            }
            _ => {
                self.hang_up(Phase::Over);
                None
            }
        }
    }

    /// The connection has ended.
    fn ended(&mut self) -> Event {
        self.hang_up(Phase::TimeWait);
        self.deadline = Some(Instant::now() + TIME_WAIT);
        step("cm-ended");
        Event::Disconnected
    }

    /// Ends the connection. `false`: there is none.
    pub fn disconnect(&mut self) -> bool {
        match self.phase {
            Phase::Connected | Phase::Accepted => {
                self.send(&Frame::Disconnect);
                step("cm-disconnects");
                self.phase = Phase::Disconnecting;
                self.deadline = Some(Instant::now() + DISCONNECT_LIMIT);
                true
            }
            Phase::Disconnecting | Phase::TimeWait | Phase::Over => true,
            _ => false,
        }
    }

    /// The deadline has passed. Returns what the program learns.
    pub fn expired(&mut self) -> Option<Event> {
        match self.phase {
            Phase::Disconnecting => Some(self.ended()),
            Phase::TimeWait => {
                self.hang_up(Phase::Over);
                Some(Event::TimeWaitExit)
            }
            Phase::LookingUp => {
                let finds_nobody = self.question.as_ref().is_some_and(|it| it.finds_nobody);
                self.hang_up(Phase::Idle);
                let errno = if finds_nobody { libc::ECONNREFUSED } else { libc::ETIMEDOUT };
                Some(refused_or_unreachable(errno))
            }
            _ => {
                self.hang_up(Phase::Over);
                None
            }
        }
    }
}

/// What an error of a look-up or of a connection means.
pub fn refused_or_unreachable(errno: i32) -> Event {
    match errno {
        libc::ECONNREFUSED => Event::Rejected(reason::NO_SERVICE, Vec::new()),
        errno => Event::Unreachable(errno),
    }
}
