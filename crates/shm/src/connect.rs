//! How a link is set up: Hello from the connecting side, Welcome from the other.

use crate::check::{Source, watch};
use crate::control::{Control, Introduction, Refused, VERSION};
use crate::holder::Holders;
use crate::link::{
    GATES, GEOMETRY, HostPages, Link, PAIR_BYTES, REGIONS, Side, State, Up, lane_memory,
};
use crate::mapping::{self, PAGE_BYTES, Sharing};
use crate::socket;
use crate::transport::{
    BOARD_BYTES, LINKS, POOL_SEGMENT_BYTES, ShmTransport, board_of, doorbell_of, pool_of,
};
use bellwire_device::{Error, FunctionAddress, Status, random};
use bellwire_ring::lane::{LaneReceiver, LaneSender};
use bellwire_ring::memory::Memory;
use bellwire_ring::steps::step;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// Time between two attempts while nobody listens.
const RETRY: Duration = Duration::from_millis(2);

impl ShmTransport {
    /// Returns the link to `peer`, and begins one if there is none.
    pub(crate) fn find_or_connect(
        &mut self,
        peer: FunctionAddress,
        patience: Duration,
    ) -> Result<u32, Error> {
        if let Some(&number) = self.by_peer.get(&peer) {
            return Ok(number);
        }
        let state = State::Connecting { since: Instant::now(), patience };
        let number =
            self.new_link(Link::new(peer, state, Side::Connecting)).ok_or(Error::Exhausted {
                what: "links",
                limit: LINKS as u64,
                hint: "Close queue pairs to peers that are no longer needed",
            })?;
        let pair = mapping::create("pair", PAIR_BYTES, PAGE_BYTES, Sharing::ReadWrite);
        let pair = match pair {
            Ok(pair) => pair,
            Err(error) => {
                self.links[number as usize] = None;
                self.free.push(number);
                return Err(error);
            }
        };
        self.by_peer.insert(peer, number);
        let own_pool = pool_of(&self.pool.memory);
        let lane = lane_memory(&pair.memory, Side::Accepting, &own_pool);
        let fences = Link::fences(false, false);
        let link = self.link_mut(number).expect("made above");
        link.receiver = Some(LaneReceiver::new(lane, GEOMETRY, fences, random(), random()));
        link.pair = Some(pair.memory);
        link.pair_fd = Some(pair.fd);
        self.urgent = true;
        self.try_connect(number);
        Ok(number)
    }

    /// Whether a process that the job admits listens at the address of `peer` now. It costs three
    /// system calls.
    pub fn is_here(&self, peer: FunctionAddress) -> bool {
        let job = &self.device.job;
        socket::connect(&job.function_socket(peer)).is_ok_and(|connection| {
            socket::credentials(&connection).is_ok_and(|(_, user, group)| job.admits(user, group))
        })
    }

    fn new_link(&mut self, link: Link) -> Option<u32> {
        let link = Some(Box::new(link));
        if let Some(number) = self.free.pop() {
            self.links[number as usize] = link;
            return Some(number);
        }
        if self.links.len() == LINKS {
            return None;
        }
        self.links.push(link);
        Some(self.links.len() as u32 - 1)
    }

    /// One attempt: connects, and says Hello if a process listens.
    fn try_connect(&mut self, number: u32) {
        let own = Introduction { lane: number, ..self.introduction };
        let Some(link) = self.links[number as usize].as_deref_mut() else { return };
        let Ok(connection) = socket::connect(&self.device.job.function_socket(link.peer)) else {
            return;
        };
        // A stranger may have taken the name first: the kernel knows who listens.
        let holder = socket::credentials(&connection).map(|(_, user, group)| (user, group));
        if !holder.is_ok_and(|(user, group)| self.device.job.admits(user, group)) {
            self.counters.refused_links += 1;
            if let (peer, Ok((user, _))) = (link.peer, holder) {
                self.accuse(peer, user);
            }
            return self.fail(number, Status::Unreachable);
        }
        step("hello");
        let Some(pair_fd) = &link.pair_fd else { return };
        let fds = [pair_fd.as_fd(), self.pool.fd.as_fd(), self.board_segment.fd.as_fd()];
        if socket::send(&connection, Control::Hello(own), &fds).is_err() {
            return;
        }
        step("hello-sent");
        if watch(&self.epoll, &connection, Source::Link(number)).is_ok() {
            link.socket = Some(connection);
        }
    }

    /// Warns that a user whom the job does not admit holds the name of `peer`.
    fn accuse(&self, peer: FunctionAddress, user: u32) {
        let job = &self.device.job.name;
        tracing::warn!("user {user}, who is not admitted, holds the name of {peer} of job {job}");
    }

    /// Gives up a link whose peer never listened. A stranger's socket that is bound and does not
    /// listen looks the same.
    fn give_up(&mut self, number: u32) {
        let peer = self.link_mut(number).filter(|link| link.socket.is_none()).map(|link| link.peer);
        if let Some(peer) = peer {
            let user = Holders::now().user_of(&self.device.job.function_socket(peer));
            if let Some(user) = user.filter(|&user| self.device.job.is_stranger(user)) {
                self.accuse(peer, user);
            }
        }
        self.fail(number, Status::Unreachable);
    }

    /// Retries links whose peer did not listen, and gives up where patience has run out.
    pub(crate) fn retry_connecting(&mut self) {
        for number in 0..self.links.len() as u32 {
            let Some(link) = self.links[number as usize].as_deref_mut() else { continue };
            let (State::Connecting { since, patience } | State::Crossed { since, patience }) =
                link.state
            else {
                continue;
            };
            self.urgent = true;
            if since.elapsed() >= patience {
                self.give_up(number);
            } else if link.socket.is_none()
                && matches!(link.state, State::Connecting { .. })
                && self.last_attempt.elapsed() >= RETRY
            {
                self.try_connect(number);
            }
        }
        if self.last_attempt.elapsed() >= RETRY {
            self.last_attempt = Instant::now();
        }
    }

    /// A peer wants a link.
    pub(crate) fn welcome(&mut self, connection: OwnedFd, peer: Introduction, fds: Vec<OwnedFd>) {
        let refuse = |why| {
            let _ = socket::send(&connection, Control::Refuse(why, VERSION), &[]);
        };
        if peer.version != VERSION {
            self.counters.refused_links += 1;
            tracing::warn!(
                theirs = peer.version,
                ours = VERSION,
                "refused a link of another version"
            );
            return refuse(Refused::Version);
        }
        let from = FunctionAddress { node: peer.node, function: peer.function };
        let own_address = self.address;
        let known = self.by_peer.get(&from).copied().filter(|_| from != self.address);
        let own_process = || socket::credentials(&connection).map(|(pid, ..)| pid as u32);
        if from == self.address && own_process().ok() != Some(std::process::id()) {
            self.counters.refused_links += 1;
            return;
        }
        if let Some(number) = known {
            self.hear_link(number);
            let up = self.links.get(number as usize).and_then(Option::as_deref).and_then(Link::up);
            if let Some(up) = up {
                // The known peer is alive, so nobody else can take its address. The random probe
                // value identifies an opening of the function. If it is the same, this is the
                // peer's own attempt that crossed ours; the attempt is void, because the peer took
                // ours. Otherwise it is an impostor, or a successor that will retry until we have
                // noticed its predecessor's end.
                if up.peer.probe_value == peer.probe_value {
                    self.strangers.was_peer();
                    return refuse(Refused::Crossed);
                }
                self.counters.refused_links += 1;
                return;
            }
        }
        let number = match known {
            Some(number) => {
                let link = self.link_mut(number).expect("by_peer names live links");
                match link.state {
                    // Both sides connect at once: the attempt of the lower address stands.
                    State::Connecting { .. } | State::Crossed { .. } if from < own_address => {
                        number
                    }
                    State::Connecting { .. } => {
                        step("crossed");
                        self.strangers.was_peer();
                        return refuse(Refused::Crossed);
                    }
                    _ => {
                        // The old link's peer is dead.
                        self.fail(number, Status::PeerGone);
                        self.by_peer.remove(&from);
                        match self.new_link(Link::new(from, waiting(), Side::Accepting)) {
                            Some(number) => number,
                            None => return refuse(Refused::Full),
                        }
                    }
                }
            }
            None => match self.new_link(Link::new(from, waiting(), Side::Accepting)) {
                Some(number) => number,
                None => {
                    self.counters.refused_links += 1;
                    return refuse(Refused::Full);
                }
            },
        };
        if from != self.address {
            self.by_peer.insert(from, number);
        }
        let memory = adopt(&fds, true).filter(|_| same_layout(&peer));
        let Some(memory) = memory else { return self.fail(number, Status::ProtocolViolation) };
        let own = Introduction { lane: number, ..self.introduction };
        let own_pool = pool_of(&self.pool.memory);
        let pair = memory.pair.expect("a Hello brings the pair's memory");
        let lane = lane_memory(&pair, Side::Connecting, &own_pool);
        let fences = Link::fences(own.barriers, peer.barriers);
        let link = self.link_mut(number).expect("made or found above");
        link.side = Side::Accepting;
        link.receiver = Some(LaneReceiver::new(lane, GEOMETRY, fences, random(), random()));
        link.pair = Some(pair);
        link.pair_fd = None;
        step("welcome");
        let fds = [self.pool.fd.as_fd(), self.board_segment.fd.as_fd()];
        if socket::send(&connection, Control::Welcome(own), &fds).is_err() {
            return self.fail(number, Status::PeerGone);
        }
        step("welcome-sent");
        self.strangers.was_peer();
        self.raise(number, connection, peer, memory.pool, memory.board);
    }

    /// The peer took our Hello.
    pub(crate) fn welcomed(&mut self, number: u32, peer: Introduction, fds: Vec<OwnedFd>) {
        let Some(link) = self.link_mut(number) else { return };
        let from = FunctionAddress { node: peer.node, function: peer.function };
        let expected = matches!(link.state, State::Connecting { .. }) && link.peer == from;
        let memory = adopt(&fds, false).filter(|_| expected && same_layout(&peer));
        let Some(memory) = memory else { return self.fail(number, Status::ProtocolViolation) };
        let Some(connection) = link.socket.take() else { return };
        let _ = rustix::event::epoll::delete(&self.epoll, &connection);
        step("welcomed");
        self.raise(number, connection, peer, memory.pool, memory.board);
    }

    /// The peer refused our Hello.
    pub(crate) fn refused(&mut self, number: u32, why: Refused, version: u32) {
        let Some(link) = self.link_mut(number) else { return };
        let State::Connecting { since, patience } = link.state else {
            return self.fail(number, Status::ProtocolViolation);
        };
        match why {
            Refused::Crossed => {
                link.socket = None;
                link.state = State::Crossed { since, patience };
            }
            Refused::Version => {
                tracing::warn!(peer = %link.peer, theirs = version, ours = VERSION,
                    "the peer runs another version of Bellwire");
                self.fail(number, Status::Unreachable);
            }
            Refused::Full | Refused::Credentials => {
                tracing::warn!(peer = %link.peer, ?why, "the peer refused the link");
                self.fail(number, Status::Unreachable);
            }
        }
    }

    /// The link is up: packets can flow both ways.
    fn raise(
        &mut self,
        number: u32,
        connection: OwnedFd,
        peer: Introduction,
        pool: Memory,
        board: Memory,
    ) {
        let pid = socket::credentials(&connection).map_or(0, |(pid, ..)| pid);
        let own = self.introduction;
        let death = (pid > 0 && pid as u32 != std::process::id())
            .then(|| rustix::process::Pid::from_raw(pid))
            .flatten()
            .and_then(|pid| {
                rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()
            });
        let watched = watch(&self.epoll, &connection, Source::Link(number));
        if let Some(death) = &death {
            // If this fails, the socket alone signals death.
            let _ = watch(&self.epoll, death, Source::Death(number));
        }
        let link = self.link_mut(number).expect("the caller has it");
        let fences = Link::fences(own.barriers, peer.barriers);
        let pair = link.pair.clone().expect("the pair's memory comes first");
        let lane = lane_memory(&pair, link.side, &pool_of(&pool));
        if let Some(receiver) = &mut link.receiver {
            receiver.settle(fences);
        }
        link.weight = u32::from(peer.weight.max(1));
        link.pair_fd = None;
        link.death = death;
        link.socket = Some(connection);
        link.state = State::Up(Box::new(Up {
            sender: LaneSender::new(lane, GEOMETRY, fences, random()),
            pair,
            side: link.side,
            board: board_of(&board),
            doorbell: doorbell_of(&pool),
            remote_lane: peer.lane as usize,
            peer,
            process: None,
            pid,
            regions: Vec::new(),
            host_pages: HostPages { released: 0, seen: 0, since: Instant::now() },
        }));
        if watched.is_err() {
            return self.fail(number, Status::ProtocolViolation);
        }
        // The peer may have sent and rung already, before the link was up here.
        self.look_at(number);
    }
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

fn waiting() -> State {
    State::Connecting { since: Instant::now(), patience: Duration::from_secs(1) }
}

struct Adopted {
    pair: Option<Memory>,
    pool: Memory,
    board: Memory,
}

/// Maps the segments of a Hello (`with_pair`) or a Welcome.
fn adopt(fds: &[OwnedFd], with_pair: bool) -> Option<Adopted> {
    let (pair, rest) = match (with_pair, fds) {
        (true, [pair, rest @ ..]) => (Some(mapping::adopt(pair, PAIR_BYTES, true).ok()?), rest),
        (false, rest) => (None, rest),
        _ => return None,
    };
    let [pool, board] = rest else { return None };
    Some(Adopted {
        pair,
        pool: mapping::adopt(pool, POOL_SEGMENT_BYTES, true).ok()?,
        board: mapping::adopt(board, BOARD_BYTES, false).ok()?,
    })
}
