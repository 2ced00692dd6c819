//! All ends of a process, and what they wait for.

use crate::endpoint::{End, Event, Phase, Question, refused_or_unreachable};
use crate::manager::Sink;
use crate::message::{Frame, LOOK_UP_BYTES, LookUp, LookUpKind, Offer};
use crate::{Patience, REQUEST_LIMIT, STRANGERS, reason};
use bellwire_ring::canary::planted;
use bellwire_ring::steps::step;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, sockopt};
use std::collections::{BTreeSet, HashMap};
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// What of an end is ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    Name,
    Listener,
    Stream,
}

/// A descriptor's number in the set.
fn data_of(number: u32, part: Part) -> EventData {
    EventData::new_u64(u64::from(number) << 2 | part as u64)
}

/// What [`data_of`] made. The manager's own descriptor has a part that no end has.
pub fn source_of(data: EventData) -> Option<(u32, Part)> {
    let part = match data.u64() & 3 {
        0 => Part::Name,
        1 => Part::Listener,
        2 => Part::Stream,
        _ => return None,
    };
    Some(((data.u64() >> 2) as u32, part))
}

/// The number of the descriptor that wakes the manager.
pub const WAKER: u64 = 3;
/// The first pause between two questions.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// The longest.
const LAST_PAUSE: Duration = Duration::from_millis(500);
/// Datagrams that are read at a time.
const BURST: usize = 64;
/// The largest backlog, and the most conversations of a listener that are not answered.
const BACKLOG: usize = 1024;

/// All ends.
pub struct State {
    ends: HashMap<u32, End>,
    last: u32,
    timers: BTreeSet<(Instant, u32)>,
    poller: OwnedFd,
    /// What programs are to learn, once nobody holds this.
    pub news: Vec<(Sink, Event)>,
    /// Requests at listeners, which become events.
    pub requests: Vec<(u32, u32, Offer)>,
}

impl State {
    pub fn new(poller: OwnedFd) -> State {
        State {
            ends: HashMap::new(),
            last: 0,
            timers: BTreeSet::new(),
            poller,
            news: Vec::new(),
            requests: Vec::new(),
        }
    }

    /// The next deadline.
    pub fn next_timer(&self) -> Option<Instant> {
        self.timers.first().map(|&(at, _)| at)
    }

    pub fn add(&mut self, end: End) -> u32 {
        loop {
            self.last = self.last.wrapping_add(1);
            if !self.ends.contains_key(&self.last) {
                self.ends.insert(self.last, end);
                return self.last;
            }
        }
    }

    pub fn end(&mut self, number: u32) -> io::Result<&mut End> {
        self.ends.get_mut(&number).ok_or_else(|| ErrorKind::NotFound.into())
    }

    fn watch(&self, fd: impl AsFd, number: u32, part: Part, flags: EventFlags) -> io::Result<()> {
        Ok(epoll::add(&self.poller, fd, data_of(number, part), flags)?)
    }

    /// Takes what an end waits for into account, after it has changed.
    fn settle(&mut self, number: u32) {
        let Some(end) = self.ends.get_mut(&number) else { return };
        if end.armed != end.deadline {
            if let Some(at) = end.armed {
                self.timers.remove(&(at, number));
            }
            self.timers.extend(end.deadline.map(|at| (at, number)));
            end.armed = end.deadline;
        }
        if let Some(stream) = &end.stream {
            let mut flags = EventFlags::IN;
            flags.set(EventFlags::OUT, end.has_output() || end.phase == Phase::Connecting);
            let _ = epoll::modify(&self.poller, stream, data_of(number, Part::Stream), flags);
        }
    }

    /// Tells the program, or holds the event until it has adopted the end.
    fn tell(&mut self, number: u32, event: Option<Event>) {
        if let (Some(event), Some(end)) = (event, self.ends.get_mut(&number)) {
            match &end.sink {
                Some(sink) => self.news.push((sink.clone(), event)),
                None => end.held.push(event),
            }
        }
    }

    /// Binds an end: takes a port.
    pub fn bind(&mut self, number: u32, address: SocketAddrV4) -> io::Result<SocketAddrV4> {
        if self.end(number)?.name.is_some() {
            return Err(ErrorKind::InvalidInput.into());
        }
        let name = UdpSocket::bind(address)?;
        name.set_nonblocking(true)?;
        let bound = v4(name.local_addr()?)?;
        self.watch(&name, number, Part::Name, EventFlags::IN)?;
        self.end(number)?.name = Some(name);
        step("cm-bound");
        Ok(bound)
    }

    pub fn listen(&mut self, number: u32, backlog: usize) -> io::Result<()> {
        let end = self.end(number)?;
        let Some(name) = end.name.as_ref().filter(|_| end.phase == Phase::Idle) else {
            return Err(ErrorKind::InvalidInput.into());
        };
        let at = v4(name.local_addr()?)?;
        let listener = TcpListener::bind(SocketAddrV4::new(*at.ip(), 0))?;
        listener.set_nonblocking(true)?;
        end.backlog = if backlog == 0 { BACKLOG } else { backlog.min(BACKLOG) };
        end.phase = Phase::Listening;
        self.watch(&listener, number, Part::Listener, EventFlags::IN)?;
        self.end(number)?.listener = Some(listener);
        step("cm-listens");
        Ok(())
    }

    /// Asks `to` for a connection.
    pub fn connect(
        &mut self,
        number: u32,
        to: SocketAddrV4,
        mut offer: Offer,
        patience: Patience,
    ) -> io::Result<()> {
        let nonce = nonce()?;
        let end = self.end(number)?;
        let Some(name) = end.name.as_ref().filter(|_| end.phase == Phase::Idle) else {
            return Err(ErrorKind::InvalidInput.into());
        };
        offer.port = v4(name.local_addr()?)?.port();
        offer.space = end.space;
        receive_errors(name)?;
        let until = Instant::now() + patience.silent;
        let (pause, nobody, finds_nobody) = (FIRST_PAUSE, patience.nobody, false);
        end.question = Some(Question { nonce, to, pause, until, nobody, finds_nobody, offer });
        end.phase = Phase::LookingUp;
        self.ask(number);
        step("cm-asks");
        Ok(())
    }

    /// Asks once more, unless the time is over.
    fn ask(&mut self, number: u32) {
        let Some(end) = self.ends.get_mut(&number) else { return };
        let (Some(name), Some(question)) = (&end.name, &mut end.question) else { return };
        let who =
            LookUp { kind: LookUpKind::Who, space: end.space, nonce: question.nonce, port: 0 };
        let asked = name.send_to(&who.emit(), question.to);
        let now = Instant::now();
        end.deadline = Some((now + question.pause).min(question.until));
        question.pause = (question.pause * 2).min(LAST_PAUSE);
        let event = match asked.as_ref().map_err(io::Error::kind) {
            Ok(_) | Err(ErrorKind::WouldBlock) => None,
            // The answer to the question before.
            Err(ErrorKind::ConnectionRefused) => {
                question.found_nobody();
                None
            }
            Err(_) => {
                let errno = asked.err().and_then(|error| error.raw_os_error());
                end.hang_up(Phase::Idle);
                Some(refused_or_unreachable(errno.unwrap_or(libc::EHOSTUNREACH)))
            }
        };
        self.tell(number, event);
        self.settle(number);
    }

    /// Something of an end is ready.
    pub fn ready(&mut self, number: u32, part: Part) {
        match part {
            Part::Name => self.name_is_ready(number),
            Part::Listener => self.listener_is_ready(number),
            Part::Stream => self.stream_is_ready(number),
        }
        self.settle(number);
    }

    fn name_is_ready(&mut self, number: u32) {
        self.read_name(number);
        if let Some(name) = self.ends.get(&number).and_then(|end| end.name.as_ref()) {
            forget_errors(name);
        }
    }

    fn read_name(&mut self, number: u32) {
        for _ in 0..BURST {
            let Some(end) = self.ends.get_mut(&number) else { return };
            let Some(name) = &end.name else { return };
            // One byte more, so that a longer datagram is seen to be one.
            let mut bytes = [0; LOOK_UP_BYTES + 1];
            match name.recv_from(&mut bytes) {
                Ok((length, SocketAddr::V4(from))) => {
                    if let Some(look_up) = LookUp::parse(&bytes[..length]) {
                        self.looked_up(number, look_up, from);
                    }
                }
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if end.phase == Phase::LookingUp => {
                    if let Some(question) = &mut end.question
                        && error.kind() == ErrorKind::ConnectionRefused
                    {
                        question.found_nobody();
                        continue;
                    }
                    let errno = error.raw_os_error().unwrap_or(libc::EHOSTUNREACH);
                    end.hang_up(Phase::Idle);
                    return self.tell(number, Some(refused_or_unreachable(errno)));
                }
                // A listener's answer did not arrive; who asked will ask again.
                Err(_) => {}
            }
        }
    }

    fn looked_up(&mut self, number: u32, look_up: LookUp, from: SocketAddrV4) {
        let Some(end) = self.ends.get_mut(&number) else { return };
        let Some(name) = &end.name else { return };
        if look_up.kind == LookUpKind::Who {
            let port = end
                .listener
                .as_ref()
                .filter(|_| end.space == look_up.space)
                .and_then(|listener| listener.local_addr().ok())
                .map(|at| at.port());
            let kind = if port.is_some() { LookUpKind::Here } else { LookUpKind::Nobody };
            let answer = LookUp { kind, port: port.unwrap_or(0), ..look_up };
            step("cm-answers");
            // If it is lost, the question comes again.
            let _ = name.send_to(&answer.emit(), from);
            return;
        }
        // Who asks knows the nonce. An answer may come from another address of the same host.
        let Some(question) = &mut end.question else { return };
        let is_answer = end.phase == Phase::LookingUp
            && (look_up.nonce == question.nonce || planted("any-nonce"))
            && (from.port() == question.to.port() || planted("any-port"));
        if !is_answer {
            return;
        }
        if look_up.kind == LookUpKind::Nobody {
            return question.found_nobody();
        }
        let own = name.local_addr().and_then(v4).map_or(Ipv4Addr::UNSPECIFIED, |at| *at.ip());
        let to = SocketAddrV4::new(*question.to.ip(), look_up.port);
        end.phase = Phase::Connecting;
        end.deadline = None;
        let event = match begin_to_connect(own, to) {
            Ok(stream) => {
                let flags = EventFlags::OUT;
                let data = data_of(number, Part::Stream);
                let watched = epoll::add(&self.poller, &stream, data, flags);
                end.stream = Some(stream);
                step("cm-connects");
                watched.err().and_then(|error| end.broke(&error.into()))
            }
            Err(error) => end.broke(&error),
        };
        self.tell(number, event);
    }

    fn listener_is_ready(&mut self, number: u32) {
        let Some(end) = self.ends.get_mut(&number) else { return };
        let Some(listener) = &end.listener else { return };
        let (stream, _) = match listener.accept() {
            Ok(accepted) => accepted,
            Err(error) => {
                // Without descriptors it would be ready for ever.
                if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) {
                    std::thread::sleep(FIRST_PAUSE);
                }
                return;
            }
        };
        if prepare(&stream).is_err() {
            return;
        }
        let mut child = End::new(end.space, None);
        child.phase = Phase::Stranger;
        child.deadline = (!planted("silent-kept")).then(|| Instant::now() + REQUEST_LIMIT);
        child.parent = Some(number);
        child.stream = Some(stream);
        step("cm-stranger");
        let child = self.add(child);
        let made = &self.ends[&child];
        let stream = made.stream.as_ref().expect("set above");
        if self.watch(stream, child, Part::Stream, EventFlags::IN).is_err() {
            self.ends.remove(&child);
            return;
        }
        self.settle(child);
        if let Some(end) = self.ends.get_mut(&number) {
            end.unanswered.push(child);
        }
        self.drop_strangers(number);
        if self.ends.get(&number).is_some_and(|it| it.unanswered.len() > BACKLOG + STRANGERS) {
            self.remove(child);
        }
    }

    /// Of more strangers than a listener keeps, the oldest go.
    fn drop_strangers(&mut self, number: u32) {
        let Some(listener) = self.ends.get(&number) else { return };
        let is_stranger =
            |child: &&u32| self.ends.get(child).is_some_and(|it| it.phase == Phase::Stranger);
        let strangers: Vec<u32> = listener.unanswered.iter().filter(is_stranger).copied().collect();
        let most = if planted("strangers-kept") { usize::MAX } else { STRANGERS };
        for &stranger in strangers.iter().rev().skip(most) {
            self.remove(stranger);
        }
    }

    /// Requests that wait become the program's, as long as it leaves fewer unanswered than its
    /// backlog.
    fn promote(&mut self, number: u32) {
        let Some(listener) = self.ends.get(&number) else { return };
        let (unanswered, backlog) = (listener.unanswered.clone(), listener.backlog);
        let phase = |child: &u32| self.ends.get(child).map(|it| it.phase);
        // Also those that the program hears of at the end of this turn.
        let asked = unanswered
            .iter()
            .filter(|child| matches!(phase(child), Some(Phase::Asked | Phase::Gone)))
            .count();
        let mut places = backlog.saturating_sub(asked);
        for child in unanswered {
            if places == 0 {
                return;
            }
            if let Some(end) = self.ends.get_mut(&child)
                && let Some(offer) = end.waiting.take()
            {
                end.phase = Phase::Asked;
                self.requests.push((number, child, offer));
                places -= 1;
            }
        }
    }

    fn stream_is_ready(&mut self, number: u32) {
        let Some(end) = self.ends.get_mut(&number) else { return };
        if end.phase == Phase::Connecting {
            let Some(stream) = &end.stream else { return };
            let event = match stream.take_error() {
                Ok(None) => match (end.question.take(), prepare(stream)) {
                    (Some(question), Ok(())) => {
                        end.phase = Phase::Requested;
                        end.send(&Frame::Request(question.offer));
                        step("cm-requests");
                        None
                    }
                    (_, Err(error)) => end.broke(&error),
                    (None, _) => None,
                },
                Ok(Some(error)) | Err(error) => end.broke(&error),
            };
            return self.tell(number, event);
        }
        end.flush();
        let (frames, result) = end.read();
        for frame in frames {
            self.arrived(number, frame);
        }
        if let Err(error) = result {
            self.broke(number, &error);
        }
    }

    fn arrived(&mut self, number: u32, frame: Frame) {
        let Some(end) = self.ends.get_mut(&number) else { return };
        if let (Phase::Stranger, Frame::Request(offer)) = (end.phase, &frame)
            && let Some(parent) = end.parent
            && (offer.space == end.space || planted("any-space"))
        {
            end.phase = Phase::Waiting;
            end.deadline = None;
            end.waiting = Some(offer.clone());
            step("cm-requested");
            return self.promote(parent);
        }
        match end.arrived(frame) {
            Ok(event) => self.tell(number, event),
            Err(()) => self.broke(number, &ErrorKind::InvalidData.into()),
        }
    }

    fn broke(&mut self, number: u32, error: &io::Error) {
        let Some(end) = self.ends.get_mut(&number) else { return };
        if matches!(end.phase, Phase::Stranger | Phase::Waiting) {
            return self.remove(number);
        }
        if end.stream.is_none() {
            return;
        }
        let event = end.broke(error);
        self.tell(number, event);
    }

    /// Deadlines that have passed.
    pub fn expire(&mut self, now: Instant) {
        while let Some(&(at, number)) = self.timers.first() {
            if at > now {
                return;
            }
            self.timers.pop_first();
            let Some(end) = self.ends.get_mut(&number) else { continue };
            (end.deadline, end.armed) = (None, None);
            match end.phase {
                Phase::Stranger => self.remove(number),
                Phase::LookingUp if end.question.as_ref().is_some_and(|it| now < it.until) => {
                    self.ask(number);
                }
                _ => {
                    let event = end.expired();
                    self.tell(number, event);
                    self.settle(number);
                }
            }
        }
    }

    /// Accepts a request.
    pub fn accept(&mut self, number: u32, offer: Offer) -> io::Result<()> {
        let end = self.end(number)?;
        if end.phase != Phase::Asked {
            let gone = end.phase == Phase::Gone;
            let kind = if gone { ErrorKind::ConnectionReset } else { ErrorKind::InvalidInput };
            return Err(kind.into());
        }
        end.send(&Frame::Reply(offer));
        end.phase = Phase::Accepted;
        step("cm-accepts");
        if end.is_datagrams() {
            end.hang_up(Phase::Over);
        }
        self.answered(number);
        Ok(())
    }

    /// Refuses a request, or a reply.
    pub fn reject(&mut self, number: u32, reason: u32, data: Vec<u8>) -> io::Result<()> {
        let end = self.end(number)?;
        match end.phase {
            Phase::Asked | Phase::Replied => {
                end.send(&Frame::Reject(reason, data));
                end.hang_up(Phase::Over);
            }
            Phase::Gone => end.hang_up(Phase::Over),
            _ => return Err(ErrorKind::InvalidInput.into()),
        }
        self.answered(number);
        Ok(())
    }

    /// The queue pair of a reply is connected.
    pub fn connected(&mut self, number: u32) -> io::Result<()> {
        let end = self.end(number)?;
        if end.phase != Phase::Replied {
            return Err(ErrorKind::InvalidInput.into());
        }
        end.phase = Phase::Connected;
        end.send(&Frame::Ready);
        step("cm-ready");
        self.settle(number);
        Ok(())
    }

    /// Ends a connection.
    pub fn disconnect(&mut self, number: u32) -> io::Result<()> {
        if !self.end(number)?.disconnect() {
            return Err(ErrorKind::NotConnected.into());
        }
        self.settle(number);
        Ok(())
    }

    /// A conversation leaves its listener's backlog.
    fn answered(&mut self, number: u32) {
        self.settle(number);
        let parent = self.ends.get_mut(&number).and_then(|end| end.parent.take());
        if let Some(listener) = parent.and_then(|parent| self.ends.get_mut(&parent)) {
            listener.unanswered.retain(|&child| child != number);
        }
        if let Some(parent) = parent {
            self.promote(parent);
        }
    }

    /// An end is no longer used.
    pub fn remove(&mut self, number: u32) {
        step("cm-removed");
        if let Some(end) = self.ends.get_mut(&number) {
            match end.phase {
                Phase::Waiting | Phase::Asked | Phase::Replied => {
                    end.send(&Frame::Reject(reason::CONSUMER, Vec::new()));
                }
                Phase::Connected | Phase::Accepted => {
                    end.disconnect();
                }
                _ => {}
            }
        }
        self.answered(number);
        let Some(end) = self.ends.remove(&number) else { return };
        if let Some(at) = end.armed {
            self.timers.remove(&(at, number));
        }
        for child in end.unanswered {
            // What the program was told of is its own.
            let Some(it) = self.ends.get_mut(&child) else { continue };
            it.parent = None;
            if matches!(it.phase, Phase::Stranger | Phase::Waiting) {
                self.remove(child);
            }
        }
    }
}

/// A number that a stranger cannot guess.
fn nonce() -> io::Result<u64> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(u64::from_ne_bytes(bytes))
}

fn v4(address: SocketAddr) -> io::Result<SocketAddrV4> {
    match address {
        SocketAddr::V4(address) => Ok(address),
        SocketAddr::V6(_) => Err(ErrorKind::Unsupported.into()),
    }
}

/// Lets the socket report that nobody holds the port that it asked, without being connected to it.
fn receive_errors(socket: &UdpSocket) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the descriptor is open, and the option is an `int`.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_RECVERR,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Empties the queue in which the kernel keeps errors beside those that a read reports. The socket
/// would be ready for ever, and its memory full.
fn forget_errors(socket: &UdpSocket) {
    let flags = RecvFlags::ERRQUEUE | RecvFlags::DONTWAIT;
    while rustix::net::recv(socket, &mut [0; 1], flags).is_ok() {}
}

/// Begins a TCP connection from an address of ours.
fn begin_to_connect(own: Ipv4Addr, to: SocketAddrV4) -> io::Result<TcpStream> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    rustix::net::bind(&socket, &SocketAddrV4::new(own, 0))?;
    match rustix::net::connect(&socket, &to) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(socket.into()),
        Err(error) => Err(error.into()),
    }
}

/// Frames go at once, and a host that died is noticed.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    /// Quiet before the kernel asks, and pauses between its questions.
    const QUIET: Duration = Duration::from_secs(5);
    const PAUSE: Duration = Duration::from_secs(1);
    const QUESTIONS: u32 = 5;
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, QUIET)?;
    sockopt::set_tcp_keepintvl(stream, PAUSE)?;
    sockopt::set_tcp_keepcnt(stream, QUESTIONS)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    /// What a look-up at a port of nobody leaves in the socket is read and forgotten, so that the
    /// manager sleeps again.
    #[test]
    fn errors_do_not_stay() {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        socket.set_nonblocking(true).expect("an option");
        receive_errors(&socket).expect("an option");
        let nobody = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let to = nobody.local_addr().expect("bound");
        drop(nobody);
        socket.send_to(b"?", to).expect("sent");
        let ready = |seconds| {
            let limit = Timespec { tv_sec: seconds, tv_nsec: 0 };
            poll(&mut [PollFd::new(&socket, PollFlags::IN)], Some(&limit)) == Ok(1)
        };
        assert!(ready(60), "the kernel reports it");
        let error = socket.recv_from(&mut [0; 8]).expect_err("nobody answers");
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        assert!(ready(0), "the queue has it still");
        forget_errors(&socket);
        assert!(!ready(0));
    }
}
