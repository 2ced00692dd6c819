//! How a link is set up: Hello from the connecting side, Welcome from the other.

use crate::bell::PeerBell;
use crate::control::{Control, Introduction, Refused, VERSION};
use crate::epoll::Source;
use crate::holder::Holders;
use crate::lanes::Lanes;
use crate::layout::{
    self, BOARD_BYTES, GATES, GEOMETRY, LINKS, PAIR_BYTES, POOL_SEGMENT_BYTES, REGIONS, Side,
};
use crate::link::Link;
use crate::links::Links;
use crate::local::Local;
use crate::mapping::{self, PAGE_BYTES, Sharing};
use crate::name;
use crate::outbound::{Outbound, Shared};
use crate::pending_peers::PendingPeers;
use crate::socket::{self, Received};
use bellwire_device::{Error, FunctionAddress, Status};
use bellwire_ring::memory::Memory;
use bellwire_ring::steps::step;
use bellwire_ring::sync::Fences;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time between two attempts while nobody listens.
const RETRY: Duration = Duration::from_millis(2);

/// The first message of a peer that connects to us.
pub struct Hello {
    connection: OwnedFd,
    peer: Introduction,
    fds: Vec<OwnedFd>,
}

impl Hello {
    /// The address that the peer claims.
    pub fn from(&self) -> FunctionAddress {
        FunctionAddress { node: self.peer.node, function: self.peer.function }
    }
}

/// The result of a look at the listener.
pub enum Accepted {
    /// A peer that introduced itself.
    Hello(Hello),
    /// A connection that has not, or none.
    Other,
    /// No more connections are accepted now.
    NoMore,
}

/// Connects to peers, and accepts those that connect to us.
pub struct Connector {
    local: Arc<Local>,
    listener: OwnedFd,
    pub pending: PendingPeers,
    last_attempt: Instant,
    pub refused_links: u64,
    pub violations: u64,
}

impl Connector {
    /// Listens at the function's name.
    pub fn open(local: Arc<Local>) -> Result<Connector, Error> {
        let system = |what| move |e: Errno| Error::System { what, cause: e.into() };
        let listener = match socket::listen(&local.node.job.function_socket(local.address)) {
            Err(Errno::ADDRINUSE) => return Err(taken(&local)),
            other => other.map_err(system("listen at the function's socket"))?,
        };
        let watch = |fd, source| local.epoll.watch(fd, source);
        watch(&listener, Source::Listener).map_err(system("watch the function's socket"))?;
        let pending = PendingPeers::new()?;
        watch(&pending.clock, Source::Tick).map_err(system("watch a timer"))?;
        let last_attempt = Instant::now();
        Ok(Connector { local, listener, pending, last_attempt, refused_links: 0, violations: 0 })
    }

    /// The link is up: packets can flow both ways.
    fn raise(
        &self,
        links: &mut Links,
        lanes: &mut Lanes,
        number: u32,
        socket: Arc<OwnedFd>,
        peer: Introduction,
        shared: Shared,
    ) {
        let pid = socket::credentials(&socket).map_or(0, |(pid, ..)| pid);
        let death = (pid > 0 && pid as u32 != std::process::id())
            .then(|| Pid::from_raw(pid))
            .flatten()
            .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let watched = self.local.epoll.watch(&socket, Source::Link(number));
        if let Some(death) = &death {
            // If this fails, the socket alone signals death.
            let _ = self.local.epoll.watch(death, Source::Death(number));
        }
        let asymmetric = self.local.introduction(number).barriers && peer.barriers;
        let fences = if asymmetric { Fences::Asymmetric } else { Fences::Symmetric };
        let doorbell = layout::doorbell_of(&shared.pool);
        let bell = Arc::new(PeerBell::new(doorbell, peer.lane as usize, socket.clone()));
        let link = links.get_mut(number).expect("the caller has it");
        link.raise(socket, death, Outbound::new(shared, fences, peer, pid, bell.clone()));
        if watched.is_err() {
            return links.fail(lanes, number, Status::ProtocolViolation);
        }
        lanes.open(number, fences, peer.weight.into(), bell);
    }

    // The connecting side.

    /// Returns the link to `peer`, and begins one if there is none.
    pub fn connect(
        &mut self,
        links: &mut Links,
        lanes: &mut Lanes,
        peer: FunctionAddress,
        patience: Duration,
    ) -> Result<u32, Error> {
        if let Some(number) = links.to(peer) {
            return Ok(number);
        }
        let pair = mapping::create("pair", PAIR_BYTES, PAGE_BYTES, Sharing::ReadWrite)?;
        let lane = layout::lane_memory(&pair.memory, Side::Accepting, self.local.pool());
        let link = Link::connecting(peer, patience, pair);
        let number = links.insert(link).ok_or(Error::Exhausted {
            what: "links",
            limit: LINKS as u64,
            hint: "Close queue pairs to peers that are no longer needed",
        })?;
        links.assign(peer, number);
        lanes.insert(number, peer, lane);
        links.urgent = true;
        self.attempt(links, lanes, number);
        Ok(number)
    }

    /// One attempt: connects, and says Hello if a process listens.
    fn attempt(&mut self, links: &mut Links, lanes: &mut Lanes, number: u32) {
        let Some(link) = links.get_mut(number) else { return };
        let Ok(connection) = socket::connect(&self.local.node.job.function_socket(link.peer))
        else {
            return;
        };
        // Another user may have taken the name first: the kernel knows who listens.
        if let Err(user) = self.local.admit(&connection) {
            self.refused_links += 1;
            if let Some(user) = user {
                self.accuse(link.peer, user);
            }
            return links.fail(lanes, number, Status::Unreachable);
        }
        step("hello");
        let Some(pair) = link.offer() else { return };
        let [pool, board] = self.local.descriptors();
        let hello = Control::Hello(self.local.introduction(number));
        if socket::send(&connection, hello, &[pair.fd.as_fd(), pool, board]).is_err() {
            return;
        }
        step("hello-sent");
        if self.local.epoll.watch(&connection, Source::Link(number)).is_ok() {
            link.await_welcome(connection);
        }
    }

    /// Warns that a user whom the job does not admit holds the name of `peer`.
    fn accuse(&self, peer: FunctionAddress, user: u32) {
        let job = &self.local.node.job.name;
        tracing::warn!("user {user}, who is not admitted, holds the name of {peer} of job {job}");
    }

    /// Gives up a link whose peer never answered. Another user's socket that is bound and does not
    /// listen looks the same.
    fn give_up(&self, links: &mut Links, lanes: &mut Lanes, number: u32) {
        let unanswered = links.get(number).filter(|link| link.socket.is_none());
        if let Some(peer) = unanswered.map(|link| link.peer) {
            let user = Holders::now().user_of(&self.local.node.job.function_socket(peer));
            if let Some(user) = user.filter(|&user| self.local.node.job.refuses(user)) {
                self.accuse(peer, user);
            }
        }
        links.fail(lanes, number, Status::Unreachable);
    }

    /// Retries links whose peer did not listen, and gives up where patience has run out.
    pub fn retry(&mut self, links: &mut Links, lanes: &mut Lanes) {
        let due = self.last_attempt.elapsed() >= RETRY;
        for number in links.numbers() {
            let Some(link) = links.get_mut(number).filter(|link| link.is_setting_up()) else {
                continue;
            };
            let (late, unheard) = (link.is_late(), link.socket.is_none());
            links.urgent = true;
            if late {
                self.give_up(links, lanes, number);
            } else if unheard && due {
                self.attempt(links, lanes, number);
            }
        }
        if due {
            self.last_attempt = Instant::now();
        }
    }

    /// The peer took our Hello.
    pub fn welcomed(
        &mut self,
        links: &mut Links,
        lanes: &mut Lanes,
        number: u32,
        peer: Introduction,
        fds: &[OwnedFd],
    ) {
        let Some(link) = links.get_mut(number) else { return };
        let from = FunctionAddress { node: peer.node, function: peer.function };
        let expected = link.offer().is_some() && link.peer == from && same_layout(&peer);
        let Some((pool, board)) = adopt(fds).filter(|_| expected) else {
            return links.fail(lanes, number, Status::ProtocolViolation);
        };
        let Some((socket, pair)) = link.accepted() else { return };
        self.local.epoll.forget(&socket);
        step("welcomed");
        let shared = Shared { pair, side: Side::Connecting, pool, board };
        self.raise(links, lanes, number, socket, peer, shared);
    }

    /// The peer refused our Hello.
    pub fn refused(
        &mut self,
        links: &mut Links,
        lanes: &mut Lanes,
        number: u32,
        why: Refused,
        version: u32,
    ) {
        let Some(link) = links.get_mut(number) else { return };
        let peer = link.peer;
        match why {
            _ if link.offer().is_none() => {
                return links.fail(lanes, number, Status::ProtocolViolation);
            }
            Refused::Crossed => return link.await_hello(),
            Refused::Version => tracing::warn!(%peer, theirs = version, ours = VERSION,
                "the peer runs another version of Bellwire"),
            Refused::Full | Refused::Credentials => {
                tracing::warn!(%peer, ?why, "the peer refused the link");
            }
        }
        links.fail(lanes, number, Status::Unreachable);
    }

    // The accepting side.

    /// Accepts a connection that waits at the listener, and reads its first message. A proper peer
    /// sends its Hello at once.
    pub fn accept(&mut self) -> Accepted {
        if self.pending.is_exhausted() {
            self.pause();
            return Accepted::NoMore;
        }
        match socket::accept(&self.listener) {
            Ok(connection) => {
                self.pending.note_accepted();
                self.hear_newcomer(connection).map_or(Accepted::Other, Accepted::Hello)
            }
            Err(Errno::INTR | Errno::CONNABORTED) => Accepted::Other,
            Err(Errno::AGAIN) if !self.pending.is_burst() => Accepted::NoMore,
            // The end of a burst. Or we are out of descriptors or memory; then the connection stays
            // in the queue.
            Err(_) => {
                self.pause();
                Accepted::NoMore
            }
        }
    }

    /// Stops watching the listener until the next tick.
    fn pause(&mut self) {
        self.pending.pause();
        self.local.epoll.pause(&self.listener, Source::Listener, true);
    }

    /// A tick of the pending peers ended. Returns whether the listener is watched again.
    pub fn tick(&mut self) -> bool {
        let again = self.pending.tick();
        if again {
            self.local.epoll.pause(&self.listener, Source::Listener, false);
        }
        again
    }

    fn hear_newcomer(&mut self, connection: OwnedFd) -> Option<Hello> {
        let Ok(user) = self.local.admit(&connection) else {
            self.refused_links += 1;
            refuse(&connection, Refused::Credentials);
            return None;
        };
        match self.hear_first(connection) {
            Ok(hello) => hello,
            Err(silent) => {
                let slot = self.pending.keep(silent, user);
                let kept = self.pending.socket(slot).expect("kept just now");
                let source = Source::PendingPeer(slot);
                if self.local.epoll.watch(kept, source).is_err() {
                    self.pending.take(slot);
                }
                None
            }
        }
    }

    /// Reads the first message of a pending peer.
    pub fn hear_pending(&mut self, slot: u32) -> Option<Hello> {
        // The slot may have another occupant since the event.
        self.pending.socket(slot).filter(|socket| crate::epoll::is_readable(socket))?;
        let connection = self.pending.take(slot)?;
        self.local.epoll.forget(&connection);
        self.hear_first(connection).ok().flatten()
    }

    /// Reads the first message of a connection, which makes it a peer or ends it. Returns the
    /// connection as an error if it has said nothing.
    fn hear_first(&mut self, connection: OwnedFd) -> Result<Option<Hello>, OwnedFd> {
        match socket::receive(&connection) {
            Received::Nothing => return Err(connection),
            Received::Message(Control::Hello(peer), fds) => {
                return Ok(Some(Hello { connection, peer, fds }));
            }
            Received::Message(..) | Received::Garbage => self.violations += 1,
            Received::Closed => {}
        }
        Ok(None)
    }

    /// A peer wants a link. What an earlier link to the same address has received was handled.
    pub fn welcome(&mut self, links: &mut Links, lanes: &mut Lanes, hello: Hello) {
        let number = match self.place(links, lanes, &hello) {
            Ok(number) => number,
            Err(None) => return,
            Err(Some(why)) => return refuse(&hello.connection, why),
        };
        let from = hello.from();
        if from != self.local.address {
            links.assign(from, number);
        }
        let Hello { connection, peer, fds } = hello;
        let memory = match &fds[..] {
            [pair, rest @ ..] if same_layout(&peer) => {
                mapping::adopt(pair, PAIR_BYTES, true).ok().zip(adopt(rest))
            }
            _ => None,
        };
        let Some((pair, (pool, board))) = memory else {
            return links.fail(lanes, number, Status::ProtocolViolation);
        };
        let lane = layout::lane_memory(&pair, Side::Connecting, self.local.pool());
        lanes.insert(number, from, lane);
        step("welcome");
        let welcome = Control::Welcome(self.local.introduction(number));
        if socket::send(&connection, welcome, &self.local.descriptors()).is_err() {
            return links.fail(lanes, number, Status::PeerGone);
        }
        step("welcome-sent");
        self.pending.note_link();
        let shared = Shared { pair, side: Side::Accepting, pool, board };
        self.raise(links, lanes, number, Arc::new(connection), peer, shared);
    }

    /// The number of the link for a peer that wants one.
    ///
    /// # Errors
    /// The reason to tell the peer, or `None` to hang up without a word.
    fn place(
        &mut self,
        links: &mut Links,
        lanes: &mut Lanes,
        hello: &Hello,
    ) -> Result<u32, Option<Refused>> {
        let (peer, from, own) = (&hello.peer, hello.from(), self.local.address);
        if peer.version != VERSION {
            self.refused_links += 1;
            let theirs = peer.version;
            tracing::warn!(
                theirs,
                ours = VERSION,
                "refused a peer that runs another version of Bellwire"
            );
            return Err(Some(Refused::Version));
        }
        let pid = socket::credentials(&hello.connection).map(|(pid, ..)| pid as u32);
        if from == own && pid.ok() != Some(std::process::id()) {
            self.refused_links += 1;
            return Err(None);
        }
        if let Some(number) = links.to(from).filter(|_| from != own)
            && let Some(link) = links.get(number)
        {
            if let Some(up) = link.up() {
                // The known peer is alive, so nobody else can take its address. If this is the same
                // opening of its function, this is its own attempt that crossed ours; the attempt
                // is void, because the peer took ours. Otherwise it is an impostor, or a successor
                // that will retry until we have noticed its predecessor's end.
                if up.is_opening_of(peer) {
                    self.pending.note_link();
                    return Err(Some(Refused::Crossed));
                }
                self.refused_links += 1;
                return Err(None);
            }
            // Both sides connect at once: the attempt of the lower address stands.
            if link.is_setting_up() && from < own {
                return Ok(number);
            }
            if link.offer().is_some() {
                step("crossed");
                self.pending.note_link();
                return Err(Some(Refused::Crossed));
            }
            // The old link's peer is dead.
            links.fail(lanes, number, Status::PeerGone);
            links.unassign(from, number);
        }
        links.insert(Link::awaiting(from)).ok_or_else(|| {
            self.refused_links += 1;
            Some(Refused::Full)
        })
    }
}

/// Why a function cannot have its name.
fn taken(local: &Local) -> Error {
    let (job, at) = (&local.node.job, local.address);
    let user = Holders::now().user_of(&job.function_socket(at));
    match user.filter(|&user| !name::is_own(user)) {
        Some(user) => Error::NameHeld {
            what: format!("node {}, function {}", at.node, at.function),
            job: job.name.clone(),
            user,
        },
        None => Error::BadFunction { function: at.function, why: "it is open already" },
    }
}

fn refuse(connection: &OwnedFd, why: Refused) {
    // If this fails, the peer sees that its connection is closed.
    let _ = socket::send(connection, Control::Refuse(why, VERSION), &[]);
}

/// Whether the peer's memory layout is ours. A peer's field is never trusted, not even if every
/// Bellwire of this version writes the same value.
fn same_layout(peer: &Introduction) -> bool {
    peer.version == VERSION
        && peer.pool_chunks as usize == GEOMETRY.pool_chunks
        && peer.gates as usize == GATES
        && peer.regions as usize == REGIONS
        && (peer.lane as usize) < LINKS
}

/// Maps a peer's pool and board.
fn adopt(fds: &[OwnedFd]) -> Option<(Memory, Memory)> {
    let [pool, board] = fds else { return None };
    Some((
        mapping::adopt(pool, POOL_SEGMENT_BYTES, true).ok()?,
        mapping::adopt(board, BOARD_BYTES, false).ok()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::Node;
    use crate::name::Job;
    use bellwire_device::AccessMode;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    /// A function has a limited number of links. One more is an error here, and a refusal there.
    #[test]
    fn links_are_limited() {
        let name = format!("limited-{}", std::process::id());
        let job = Job::new(&name, AccessMode::Owner).expect("a good name");
        let node = Arc::new(Node { job, number: 1, _socket: None });
        let local = Arc::new(Local::open(node, 0, 16).expect("memory"));
        let mut connector = Connector::open(local.clone()).expect("a free name");
        let (mut links, mut lanes) = (Links::default(), Lanes::new(local.doorbell()));
        let peer = |node| FunctionAddress { node, function: 7 };
        for node in 0..LINKS as u32 {
            assert_eq!(links.insert(Link::awaiting(peer(node))), Some(node));
        }
        let more = peer(LINKS as u32);
        let refused = connector.connect(&mut links, &mut lanes, more, Duration::from_secs(8));
        assert!(matches!(refused, Err(Error::Exhausted { what: "links", .. })), "{refused:?}");
        assert_eq!(connector.refused_links, 0);
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let both = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
        let (connection, far) = both.expect("two sockets");
        let FunctionAddress { node, function } = more;
        let peer = Introduction { version: VERSION, node, function, ..Introduction::default() };
        connector.welcome(&mut links, &mut lanes, Hello { connection, peer, fds: Vec::new() });
        let Received::Message(told, _) = socket::receive(&far) else { panic!("no answer") };
        assert_eq!(told, Control::Refuse(Refused::Full, VERSION));
        assert_eq!((connector.refused_links, links.count()), (1, LINKS));
    }
}
