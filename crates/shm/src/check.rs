//! The periodic check of everything that is not a packet: control sockets, deaths, deadlines. It is
//! rare, and the only place that makes system calls while a function is polled.

use crate::control::{Control, Refused, VERSION};
use crate::link::{Link, State};
use crate::socket::{self, Received};
use crate::transport::ShmTransport;
use bellwire_device::{LinkId, Sink, Status};
use rustix::event::{PollFd, PollFlags, epoll, poll};
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// Time between two checks in normal operation.
const INTERVAL: Duration = Duration::from_millis(1);
/// Time between two checks while a link is set up or an answer is awaited.
const URGENT_INTERVAL: Duration = Duration::from_micros(20);

/// How long pages are kept for the next burst. Faulting them in again costs as much as many
/// messages.
pub const LINGER: Duration = Duration::from_millis(10);

/// When the next check is due, without reading the clock at every poll.
pub struct Pace {
    polls_left: u32,
    last_clock: Instant,
    last_look: Instant,
    stride: u32,
}

impl Pace {
    /// Polls between two readings of the clock while polls are frequent.
    const STRIDE: u32 = 64;

    pub fn new() -> Self {
        let now = Instant::now();
        Pace { polls_left: 0, last_clock: now, last_look: now, stride: 1 }
    }

    /// Counts one poll. Returns whether to read the clock.
    #[inline(always)]
    pub fn is_due(&mut self) -> bool {
        self.polls_left = self.polls_left.wrapping_sub(1);
        self.polls_left > Self::STRIDE
    }

    /// Reads the clock. Returns whether a check is due.
    fn look(&mut self, interval: Duration) -> bool {
        let now = Instant::now();
        // If a program polls rarely, every poll reads the clock, so that deaths are still noticed
        // in time.
        let frequent = now - self.last_clock < Duration::from_micros(200);
        self.stride = if frequent { Self::STRIDE } else { 1 };
        self.last_clock = now;
        self.polls_left = self.stride;
        let due = now - self.last_look >= interval;
        if due {
            self.last_look = now;
        }
        due
    }

    /// Makes the next poll check.
    pub fn hurry(&mut self) {
        self.polls_left = 0;
        self.last_look -= INTERVAL.min(self.last_look.elapsed() + INTERVAL);
    }
}

/// The origin of an epoll event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    Listener,
    Link(u32),
    Death(u32),
    Stranger(u32),
    /// A tick of the strangers' clock.
    Tick,
}

impl Source {
    fn to_data(self) -> epoll::EventData {
        let (kind, number) = match self {
            Source::Listener => (0, 0),
            Source::Link(n) => (1, n),
            Source::Death(n) => (2, n),
            Source::Stranger(n) => (3, n),
            Source::Tick => (4, 0),
        };
        epoll::EventData::new_u64(kind << 32 | u64::from(number))
    }

    fn from_data(data: epoll::EventData) -> Source {
        let number = data.u64() as u32;
        match data.u64() >> 32 {
            1 => Source::Link(number),
            2 => Source::Death(number),
            3 => Source::Stranger(number),
            4 => Source::Tick,
            _ => Source::Listener,
        }
    }
}

/// Adds a descriptor to the epoll set, which is checked and which wakes a sleeper.
pub fn watch(epoll: &OwnedFd, fd: &OwnedFd, source: Source) -> rustix::io::Result<()> {
    epoll::add(epoll, fd, source.to_data(), epoll::EventFlags::IN)
}

/// Waits for events, at most for `timeout`, and appends their origins to `found`.
pub fn find(
    epoll: &OwnedFd,
    timeout: Option<Duration>,
    found: &mut Vec<Source>,
) -> rustix::io::Result<()> {
    let timeout = timeout.map(|timeout| rustix::time::Timespec {
        tv_sec: timeout.as_secs() as i64,
        tv_nsec: timeout.subsec_nanos().into(),
    });
    let mut events = [const { MaybeUninit::uninit() }; 64];
    let (events, _) = epoll::wait(epoll, &mut events, timeout.as_ref())?;
    found.extend(events.iter().map(|event| Source::from_data(event.data)));
    Ok(())
}

impl ShmTransport {
    /// Checks, if it is time. `taken`: packets that this poll has for the program.
    #[cold]
    pub(crate) fn check(&mut self, sink: &mut impl Sink, taken: usize) {
        // The program gets the packet that woke us first.
        if self.armed && taken > 0 && !std::mem::replace(&mut self.put_off, true) {
            return;
        }
        let interval = if self.armed {
            Duration::ZERO
        } else if self.urgent {
            URGENT_INTERVAL
        } else {
            INTERVAL
        };
        if !self.pace.look(interval) {
            return;
        }
        if self.armed {
            self.armed = false;
            self.doorbell.awake();
            for link in self.links.iter_mut().flatten() {
                link.announced = false;
            }
        }
        self.urgent = false;
        self.dispatch();
        self.retry_connecting();
        self.park_idle();
        self.tidy(LINGER);
        if !self.quarantine.is_empty() {
            self.review_quarantine();
        }
        self.report_down(sink);
        sink.tick(&self.counter_rows());
    }

    /// Gives back pages that no lane of ours has needed for `linger`. Returns whether some were
    /// needed later than that.
    pub(crate) fn tidy(&mut self, linger: Duration) -> bool {
        let ups = self.links.iter_mut().flatten().filter_map(|link| link.up_mut());
        ups.map(|up| up.tidy(linger)).filter(|&later| later).count() > 0
    }

    fn dispatch(&mut self) {
        let mut found = std::mem::take(&mut self.found);
        if found.is_empty() {
            // On failure `found` stays empty.
            let _ = find(&self.epoll, Some(Duration::ZERO), &mut found);
        }
        for source in found.drain(..) {
            match source {
                Source::Listener => self.admit(),
                Source::Stranger(number) => self.hear_stranger(number),
                Source::Link(number) => self.hear_link(number),
                Source::Death(number) => self.see_death(number),
                Source::Tick => self.tick(),
            }
        }
        self.found = found;
    }

    /// A link's peer died. The link may be another one by now: the program may have closed it since
    /// the event.
    fn see_death(&mut self, number: u32) {
        let Some(death) = self.link_mut(number).and_then(|link| link.death.as_ref()) else {
            return;
        };
        let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut fds = [PollFd::new(death, PollFlags::IN)];
        if poll(&mut fds, Some(&now)).is_ok_and(|dead| dead > 0) {
            self.hang_up(number);
        }
    }

    /// Accepts connections that wait at the listener.
    fn admit(&mut self) {
        /// Maximum in one check. Other work comes between two checks.
        const ONE_LOOK: u32 = 64;
        for _ in 0..ONE_LOOK {
            if self.strangers.is_enough() {
                return self.rest();
            }
            match socket::accept(&self.listener) {
                Ok(connection) => self.hear_newcomer(connection),
                Err(Errno::AGAIN) if self.strangers.is_burst() => return self.rest(),
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                // Out of descriptors or memory; the connection stays in the queue.
                Err(_) => return self.rest(),
            }
        }
    }

    /// Stops watching the listener until the next tick.
    fn rest(&mut self) {
        self.strangers.pause();
        self.watch_listener(epoll::EventFlags::empty());
    }

    fn watch_listener(&self, events: epoll::EventFlags) {
        let data = Source::Listener.to_data();
        // The listener is in the set, so this cannot fail.
        let _ = epoll::modify(&self.epoll, &self.listener, data, events);
    }

    /// A tick of the strangers ended.
    fn tick(&mut self) {
        if self.strangers.tick() {
            self.watch_listener(epoll::EventFlags::IN);
            self.admit();
        }
    }

    /// Reads the first message of a new connection. A proper peer sends its Hello at once.
    fn hear_newcomer(&mut self, connection: OwnedFd) {
        self.strangers.came();
        let (user, admitted) = match socket::credentials(&connection) {
            Ok((_, user, group)) => (user, self.device.job.admits(user, group)),
            Err(_) => (u32::MAX, false),
        };
        if !admitted {
            self.counters.refused_links += 1;
            let _ = socket::send(&connection, Control::Refuse(Refused::Credentials, VERSION), &[]);
            return;
        }
        if let Some(connection) = self.hear_silent(connection) {
            let slot = self.strangers.keep(connection, user);
            let kept = self.strangers.socket(slot).expect("kept just now");
            if watch(&self.epoll, kept, Source::Stranger(slot)).is_err() {
                self.strangers.take(slot);
            }
        }
    }

    fn hear_stranger(&mut self, slot: u32) {
        let Some(socket) = self.strangers.socket(slot) else { return };
        // The slot may have another occupant since the event.
        let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
        if !poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
        {
            return;
        }
        let Some(connection) = self.strangers.take(slot) else { return };
        let _ = epoll::delete(&self.epoll, &connection);
        self.hear_silent(connection);
    }

    /// Reads the first message of a connection, which makes it a peer or ends it. Returns the
    /// connection if it has said nothing.
    fn hear_silent(&mut self, connection: OwnedFd) -> Option<OwnedFd> {
        match socket::receive(&connection) {
            Received::Nothing => return Some(connection),
            Received::Message(Control::Hello(peer), fds) => self.welcome(connection, peer, fds),
            Received::Message(..) | Received::Garbage => self.counters.violations += 1,
            Received::Closed => {}
        }
        None
    }

    pub(crate) fn hear_link(&mut self, number: u32) {
        // Enough for any orderly peer in one check. The rest of a flood waits for the next check.
        for _ in 0..64 {
            let Some(link) = self.link_mut(number) else { return };
            let Some(socket) = &link.socket else { return };
            match socket::receive(socket) {
                Received::Nothing => return,
                Received::Closed => return self.hang_up(number),
                Received::Garbage | Received::Message(..) if link.expelled => {}
                Received::Garbage => return self.fail(number, Status::ProtocolViolation),
                Received::Message(message, fds) => {
                    self.obey(number, message, fds);
                    // A Kick is usually alone. The next check finds messages behind it.
                    if message == Control::Kick {
                        return;
                    }
                }
            }
        }
    }

    fn obey(&mut self, number: u32, message: Control, mut fds: Vec<OwnedFd>) {
        match message {
            Control::Kick => self.look_at(number),
            Control::Ask { index, key } => self.answer_ask(number, index, key),
            Control::Answer { index, key, length, writable } => {
                self.take_answer(number, (index, key, length, writable), fds.pop());
            }
            Control::WrongKey { .. } => self.counters.wrong_keys += 1,
            Control::Welcome(peer) => self.welcomed(number, peer, fds),
            Control::Refuse(why, version) => self.refused(number, why, version),
            Control::Hello(_) => self.fail(number, Status::ProtocolViolation),
        }
    }

    /// Sends a control message, now or as soon as the socket has room.
    pub(crate) fn send_control(&mut self, number: u32, message: Control, fd: Option<OwnedFd>) {
        /// A peer that lets this many pile up violates the protocol: each of its questions has one
        /// answer at most.
        const UNSENT: usize = 8_192;
        let Some(link) = self.link_mut(number) else { return };
        link.unsent.push_back((message, fd));
        Self::flush(link);
        let (left, too_many) = (!link.unsent.is_empty(), link.unsent.len() > UNSENT);
        if too_many {
            self.fail(number, Status::ProtocolViolation);
        } else if left {
            self.urgent = true;
        }
    }

    /// Sends waiting messages until the socket is full.
    fn flush(link: &mut Link) {
        let Some(socket) = &link.socket else {
            link.unsent.clear();
            return;
        };
        while let Some((message, fd)) = link.unsent.front() {
            let fds: Vec<_> = fd.iter().map(AsFd::as_fd).collect();
            match socket::send(socket, *message, &fds) {
                Err(rustix::io::Errno::AGAIN) => return,
                // The next check of the socket notices that it is closed.
                Ok(()) | Err(_) => link.unsent.pop_front(),
            };
        }
    }

    /// The link fails: its peer is gone or broke the rules.
    pub(crate) fn fail(&mut self, number: u32, why: Status) {
        if why == Status::PeerGone && bellwire_ring::canary::planted("death-unnoticed") {
            return;
        }
        let Some(link) = self.links.get_mut(number as usize).and_then(Option::as_deref_mut) else {
            return;
        };
        if matches!(link.state, State::Down(_)) {
            if why == Status::ProtocolViolation {
                // The lane of a dead peer breaks the rules: the rest of it is not read.
                self.counters.violations += 1;
                self.abandon_lane(number);
            }
            return;
        }
        if why == Status::ProtocolViolation {
            self.counters.violations += 1;
            tracing::warn!(peer = %link.peer, "the peer broke the protocol; its link is closed");
        }
        link.unsent.clear();
        let told = |socket| rustix::net::shutdown(socket, rustix::net::Shutdown::Write).is_ok();
        link.expelled = why == Status::ProtocolViolation
            && matches!(link.state, State::Up(_))
            && link.socket.as_ref().is_some_and(told);
        link.state = State::Down(why);
        if !link.expelled {
            link.socket = None;
            link.death = None;
        }
        let expelled = link.expelled;
        self.downs.push(number);
        self.urgent = true;
        if expelled {
            self.stop_polling(number);
        } else if why == Status::ProtocolViolation {
            self.abandon_lane(number);
        } else {
            // Packets that the peer sent before it went are still delivered.
            self.look_at(number);
        }
    }

    /// The peer closed its end, or died.
    fn hang_up(&mut self, number: u32) {
        let Some(link) = self.link_mut(number) else { return };
        match link.state {
            // It went away before it answered. It may come back within our patience.
            State::Connecting { .. } | State::Crossed { .. } => {
                link.socket = None;
                self.urgent = true;
            }
            State::Down(_) if link.expelled => self.let_go(number),
            _ => self.fail(number, Status::PeerGone),
        }
    }

    /// Reports down links to the engine, once their packets are delivered or cannot be delivered
    /// now.
    fn report_down(&mut self, sink: &mut impl Sink) {
        let mut kept = Vec::new();
        for number in std::mem::take(&mut self.downs) {
            let Some(link) = self.link_mut(number) else { continue };
            let State::Down(why) = link.state else { continue };
            let undelivered = link.receiver.as_ref().is_some_and(|r| link.polled && r.is_ready());
            if undelivered && !link.stalled {
                kept.push(number);
                continue;
            }
            let (peer, expelled) = (link.peer, link.expelled);
            if !std::mem::replace(&mut link.reported, true) {
                if self.by_peer.get(&peer) == Some(&number) {
                    self.by_peer.remove(&peer);
                }
                sink.link_down(LinkId(number), peer, why);
            }
            if undelivered {
                kept.push(number);
            } else if !expelled {
                self.abandon_lane(number);
                self.reap(number);
            }
        }
        if !kept.is_empty() {
            self.urgent = true;
        }
        self.downs.extend(kept);
    }

    /// The peer of a link that was closed for breaking the rules has hung up, or died.
    fn let_go(&mut self, number: u32) {
        let Some(link) = self.link_mut(number) else { return };
        link.expelled = false;
        link.socket = None;
        link.death = None;
        // From here on it is like any link that is down.
        self.downs.push(number);
        self.urgent = true;
    }

    /// Frees the slot of a link that is down, fully delivered, and closed by the engine.
    pub(crate) fn reap(&mut self, number: u32) {
        let done = self.link_mut(number).is_some_and(|link| {
            link.closed
                && link.reported
                && !link.expelled
                && matches!(link.state, State::Down(_))
                && !link.polled
        });
        if done {
            self.links[number as usize] = None;
            self.free.push(number);
        }
    }

    /// The engine is done with a link.
    pub(crate) fn close_link(&mut self, number: u32) {
        let Some(link) = self.link_mut(number) else { return };
        link.closed = true;
        link.reported = true;
        let peer = link.peer;
        if self.by_peer.get(&peer) == Some(&number) {
            self.by_peer.remove(&peer);
        }
        self.fail(number, Status::PeerGone);
        self.reap(number);
    }
}
