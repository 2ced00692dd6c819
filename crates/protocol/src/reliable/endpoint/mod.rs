//! One function with all its peers.

mod handshake;
mod life;
mod links;
mod receive;
mod replies;
mod slot_list;
mod transmit;

use bellwire_wire::frame::record::{GateState, PACKET_COST_BYTES};
use bellwire_wire::frame::{FunctionId, MIN_FRAME_BYTES};

use super::gates::FunctionGates;
use super::link::{EarlyFrames, Link, State};
use super::share::Shares;
use super::{Body, Channel, Config, Counters, DownReason, Event, PathId, PeerId, SendError, Sink};
use crate::Secret;
use core::mem::take;

use links::Links;
use replies::Replies;

pub use receive::is_sound_frame;

/// Largest accepted incarnation: a clock in ns reaches it in the year 2262.
const MOST_INCARNATION: u64 = (1 << 63) - 1;

/// The protocol state of one function of one node. See the [module](super) for how to drive it.
pub struct Endpoint {
    config: Config,
    me: FunctionId,
    incarnation: u64,
    secret: Secret,
    /// Number of tokens made so far, and of openings.
    tokens: u64,
    openings: u64,
    /// Longest frame that the network takes now.
    frame_bytes: usize,
    links: Links,
    early: EarlyFrames,
    shares: Shares,
    gates: FunctionGates,
    replies: Replies,
    counters: Counters,
}

impl Endpoint {
    /// The endpoint of function `me`.
    ///
    /// `incarnation` is greater than that of any earlier endpoint with this address. It is not 0
    /// and below 2^63; the start time of the program will do. `secret` yields tokens, by which a
    /// link recognises its frames. It also yields cookies, by which a peer shows that it receives
    /// at its address.
    ///
    /// # Errors
    /// What [`Config::check`] says.
    pub fn new(
        config: Config,
        me: FunctionId,
        incarnation: u64,
        secret: Secret,
    ) -> Result<Self, &'static str> {
        config.check()?;
        if !(1..=MOST_INCARNATION).contains(&incarnation) {
            return Err("an incarnation is a number greater than 0 and less than 2^63");
        }
        Ok(Endpoint {
            config,
            me,
            incarnation,
            secret,
            tokens: 0,
            openings: 0,
            frame_bytes: config.frame_bytes,
            links: Links::new(config.links),
            early: EarlyFrames::new(config.early_frames),
            shares: Shares::new(config.receive_bytes, config.packet_bytes + PACKET_COST_BYTES),
            gates: FunctionGates::new(config.queue_pairs),
            replies: Replies::new(),
            counters: Counters::default(),
        })
    }

    /// The address of this function.
    pub fn address(&self) -> FunctionId {
        self.me
    }

    /// Our incarnation.
    pub fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// The settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What was counted so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The link to `peer`: the existing one, or a new one by way of `path`. A new link comes up, or
    /// goes down with [`DownReason::NoAnswer`] after `patience_ns`. That time counts from the first
    /// Open. The Open waits until an earlier link that our user closed has sent what was queued.
    ///
    /// # Errors
    /// `None` if all links are taken.
    pub fn connect(
        &mut self,
        peer: FunctionId,
        path: PathId,
        patience_ns: u64,
        now_ns: u64,
    ) -> Option<PeerId> {
        // A peer that asked from another place than `path` may be an impostor.
        let is_there = |link: &Link| link.state != State::Accepting || link.paths.contains(path);
        if let Some(id) = self.links.newest(peer)
            && let Some(link) = self.links.get_mut(id).filter(|link| is_there(link))
        {
            link.paths.add(path);
            if link.state == State::Accepting {
                // The peer asked, but may be gone by now: ask it, too.
                link.ask_too(now_ns.saturating_add(patience_ns));
                self.links.settle(id.slot());
            }
            return Some(id);
        }
        let id = self.add_link(peer, State::Opening, path, now_ns)?;
        // An Open would end an earlier link at the peer, so it waits until that link has sent what
        // was queued.
        let lingering = self.lingering(peer);
        let link = self.links.get_mut(id)?;
        link.predecessor = lingering;
        link.opening.open_due = lingering.is_none();
        match lingering {
            Some(_) => link.opening.patience_ns = Some(patience_ns),
            None => link.opening.give_up_ns = now_ns.saturating_add(patience_ns),
        }
        self.links.newest.insert(peer, id);
        self.links.settle(id.slot());
        Some(id)
    }

    /// Gives the link one more path (H-29). The link learns by itself the paths by which the peer
    /// sends.
    pub fn add_path(&mut self, peer: PeerId, path: PathId) {
        if let Some(link) = self.links.get_mut(peer) {
            link.paths.add(path);
        }
    }

    /// Adds `path` as a guess where the peer of an unanswered link may be. It is asked there at
    /// once, and then at all such paths in turn. When it answers, the paths by which nothing was
    /// heard are forgotten.
    pub fn guess_path(&mut self, peer: PeerId, path: PathId) {
        if let Some(link) = self.links.get_mut(peer)
            && link.state == State::Opening
            && link.paths.guess(path)
        {
            let is_first = link.predecessor.is_none();
            link.opening.open_due = is_first;
            self.links.settle(peer.slot());
        }
    }

    /// The function at the other end of a link, down or not.
    pub fn peer_address(&self, peer: PeerId) -> Option<FunctionId> {
        self.links.get(peer).map(|link| link.peer)
    }

    /// A path by which the peer has shown that it receives, or by which it is being asked.
    pub fn path_of(&self, peer: PeerId) -> Option<PathId> {
        self.links.get(peer).map(|link| link.paths.proved_id())
    }

    /// Whether packets can be sent.
    pub fn is_up(&self, peer: PeerId) -> bool {
        self.links.get(peer).is_some_and(Link::is_up)
    }

    /// Forgets a link. If it is up, queued packets are still sent, for 5 s at most, and arriving
    /// packets are dropped.
    pub fn close(&mut self, peer: PeerId, now_ns: u64) {
        let Some(link) = self.links.get_mut(peer) else { return };
        let address = link.peer;
        if link.is_up() {
            link.close(now_ns);
        } else {
            self.count_failed(peer.slot());
            self.remove(peer.slot());
        }
        self.links.retire(address, peer);
        self.finish_closing(peer.slot());
    }

    /// Queues a packet: `words` 1 to 3 of its header, then `head`, then `body`. This call sets the
    /// payload length in the first word to that of `head` and `body`, and copies all bytes now.
    ///
    /// Returns how many requests were queued for this peer on this link so far, as
    /// [`Sink::delivered`] counts them.
    ///
    /// # Errors
    /// [`SendError`]; nothing was queued then.
    #[inline]
    pub fn send(
        &mut self,
        peer: PeerId,
        channel: Channel,
        words: [u64; 3],
        head: &[u8],
        body: &(impl Body + ?Sized),
    ) -> Result<u64, SendError> {
        // Without a channel of their own, responses wait behind requests (C-26).
        let channel = if self.config.separate_channels { channel } else { Channel::Request };
        let Some(link) = self.links.get_mut(peer) else { return Err(SendError::Down) };
        match link.state {
            State::Up => {}
            State::Opening | State::Accepting => return Err(SendError::Busy),
            State::Closing { .. } | State::Down(_) => return Err(SendError::Down),
        }
        let queued = link.sender.push(channel, words, head, body)?;
        self.links.ready.push(peer.slot());
        self.counters.packets_queued += 1;
        Ok(queued)
    }

    /// Whether frames should go to this peer without waiting for the next poll: nothing is in
    /// flight to it, or `frames` frames can be filled. Otherwise wait: coalescing saves frames and
    /// system calls.
    #[inline]
    pub fn is_urgent(&self, peer: PeerId, frames: usize) -> bool {
        self.links.get(peer).is_some_and(|link| link.is_urgent(frames))
    }

    /// Whether all packets for this peer are sent, and no frame of them is known to be lost.
    #[inline]
    pub fn is_all_sent(&self, peer: PeerId) -> bool {
        self.links.get(peer).is_none_or(Link::is_all_sent)
    }

    /// Whether nothing is due but an acknowledgement to this peer, which reports no loss. A packet
    /// that goes soon takes it along.
    pub fn may_wait(&self, peer: PeerId) -> bool {
        let others = self.links.ready.len() > usize::from(self.links.ready.contains(peer.slot()));
        !others
            && self.replies.0.is_empty()
            && !self.gates.has_wanted()
            && self.links.get(peer).is_some_and(Link::owes_little)
    }

    /// The smoothed round trip to the peer, in ns; 0: none is measured.
    pub fn round_trip_ns(&self, peer: PeerId) -> u64 {
        self.links.get(peer).map_or(0, |link| link.round_trip_ns())
    }

    /// The gate of the peer's queue pair; `None` while it is not known. The first call also
    /// subscribes to the gate's changes.
    pub fn gate(&self, peer: PeerId, queue_pair: u32) -> Option<GateState> {
        let link = self.links.get(peer).filter(|link| link.is_up())?;
        let index = self.gates.index(queue_pair);
        let Some(index) = index else { return Some(GateState::Closed) };
        let state = link.gates.peer(index);
        if state.is_none() && link.gates.is_unasked(index) {
            self.gates.want(peer, queue_pair);
        }
        state
    }

    /// Sets the gate of one of our queue pairs and tells all peers that ever asked for it.
    pub fn set_gate(&mut self, queue_pair: u32, state: GateState) {
        let Some(index) = self.gates.set(queue_pair, state) else { return };
        for slot in 0..self.links.slots() {
            if self.links.at_mut(slot).is_some_and(|link| link.gates.changed(index)) {
                self.links.settle(slot);
            }
        }
    }

    /// Offers refused packets again: of each link and channel, until the sink refuses one.
    pub fn deliver(&mut self, sink: &mut impl Sink) {
        for _ in 0..self.links.deliverable.len() {
            let Some(slot) = self.links.deliverable.pop() else { break };
            let Some(link) = self.links.at_mut(slot) else { continue };
            if link.predecessor.is_some() || link.is_closing() {
                continue;
            }
            if !link.backlogs.offer(link.id, &mut self.counters, sink) {
                link.backlogs.forget();
                self.fail(slot, DownReason::Violation);
            }
            self.consumed(slot);
            self.links.settle(slot);
        }
    }

    /// Whether packets wait to be offered again.
    #[inline]
    pub fn has_deliverable(&self) -> bool {
        !self.links.deliverable.is_empty()
    }

    /// Events of links.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        if self.has_events() { self.next_event() } else { None }
    }

    /// Whether [`poll_event`](Self::poll_event) may have something.
    #[inline]
    pub fn has_events(&self) -> bool {
        !self.links.eventful.is_empty()
    }

    #[cold]
    fn next_event(&mut self) -> Option<Event> {
        while let Some(slot) = self.links.eventful.front() {
            if let Some(link) = self.links.at_mut(slot) {
                let (peer, address) = (link.id, link.peer);
                if take(&mut link.notices.up) {
                    return Some(Event::Up { peer, address });
                }
                if take(&mut link.notices.gates) {
                    return Some(Event::Gates { peer });
                }
                if take(&mut link.notices.down)
                    && let State::Down(reason) = link.state
                {
                    self.links.eventful.pop();
                    self.release_successor(peer);
                    return Some(Event::Down { peer, address, reason });
                }
            }
            self.links.eventful.pop();
        }
        None
    }

    /// When to call [`poll_transmit`](Self::poll_transmit) again if no frame comes; `u64::MAX`:
    /// never. Returns a time in the past if there is something to send already.
    pub fn next_deadline(&self) -> u64 {
        if self.has_frames() { 0 } else { self.links.deadline_ns() }
    }

    /// Whether [`poll_transmit`](Self::poll_transmit) may have something. It agrees with
    /// [`next_deadline`](Self::next_deadline), costs the same for any number of links, and is
    /// sometimes early.
    #[inline]
    pub fn is_due(&self, now_ns: u64) -> bool {
        self.has_frames() || self.links.next_timer_ns <= now_ns
    }

    /// Whether a frame may be sent at once.
    #[inline]
    fn has_frames(&self) -> bool {
        !self.links.ready.is_empty() || !self.replies.0.is_empty() || self.gates.has_wanted()
    }

    /// The host at a path says that nobody receives there any more. It may be wrong, or somebody
    /// else may say so: peers there must show a sign of life soon.
    #[cold]
    pub fn refused(&mut self, path: PathId, now_ns: u64) {
        for slot in 0..self.links.slots() {
            if let Some(link) = self.links.at_mut(slot) {
                link.refused(path, now_ns);
                self.links.settle(slot);
            }
        }
    }

    /// Makes all waiting acknowledgements due: call it before a sleep.
    pub fn flush(&mut self) {
        for slot in 0..self.links.slots() {
            if let Some(link) = self.links.at_mut(slot)
                && link.is_running()
                && link.receiver.acknowledge.flush()
            {
                self.links.settle(slot);
            }
        }
    }

    /// Packets queued for this peer and not acknowledged by it.
    pub fn unacknowledged(&self, peer: PeerId) -> u64 {
        self.links.get(peer).map_or(0, |link| link.sender.packets_unacknowledged)
    }

    /// Most frames that may be in flight to this peer now: N_asy, or less if the network is
    /// congested.
    pub fn window_frames(&self, peer: PeerId) -> u32 {
        self.links.get(peer).map_or(0, |link| link.sender.window_frames())
    }

    /// Sets the network's MTU. Frames in flight that are too long now are sent again in parts. The
    /// value is clamped to the configured length, which sized the buffers.
    pub fn set_frame_bytes(&mut self, frame_bytes: usize) {
        self.frame_bytes = frame_bytes.clamp(MIN_FRAME_BYTES, self.config.frame_bytes);
        for link in self.links.iter_mut() {
            link.agree_on_frame_bytes(self.frame_bytes);
        }
    }

    /// Whether all links, closed ones too, have nothing left to send. Check it before the program
    /// ends.
    pub fn is_drained(&self) -> bool {
        let is_done = |link: &Link| !link.is_running() || link.is_up() && link.sender.is_drained();
        self.replies.0.is_empty() && self.links.iter().all(is_done)
    }

    /// The links that our user has not closed.
    pub fn peers(&self) -> impl Iterator<Item = PeerId> {
        self.links.iter().filter(|link| !link.is_closing()).map(|link| link.id)
    }

    /// The paths of all links and of all queued replies: their numbers must keep their meaning.
    pub fn paths(&self) -> impl Iterator<Item = PathId> {
        self.links
            .iter()
            .flat_map(|link| link.paths.ids())
            .chain(self.replies.0.iter().map(|reply| reply.path))
    }

    /// Links that occupy a slot, in any state.
    pub fn link_count(&self) -> usize {
        self.links.count()
    }

    /// Packets were taken: the peer must know soon if much room became free.
    fn consumed(&mut self, slot: usize) {
        if let Some(link) = self.links.at_mut(slot)
            && link.backlogs.frees_room(self.shares.bytes())
        {
            link.receiver.acknowledge.due = true;
        }
    }
}
