//! One function with all its peers.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;
use core::cell::RefCell;

use bellwire_wire::frame::challenge::ChallengeBody;
use bellwire_wire::frame::finish::{CloseReason, RefuseBody};
use bellwire_wire::frame::record::{GateState, PACKET_COST_BYTES, PacketWords};
use bellwire_wire::frame::{FunctionId, MIN_FRAME_BYTES};

use super::early::EarlyFrames;
use super::gates::GateNumbers;
use super::link::{Link, NEVER, State};
use super::share::Shares;
use crate::Secret;
use crate::canary::planted;

use super::{
    Body, Channel, Config, Counters, Event, PathId, PeerId, SendError, Sink, Verdict, Why,
};

/// Most gate requests that wait for the next frame.
const WANTED_GATES: usize = 64;
/// Most queued replies that belong to no link; further ones are dropped.
const REPLIES: usize = 64;
/// Largest accepted incarnation: a clock in ns reaches it in the year 2262.
pub(super) const MOST_INCARNATION: u64 = (1 << 63) - 1;
/// How long a link that our user closed may take to send what was queued, in ns.
const LINGER_NS: u64 = 5_000_000_000;

/// The protocol state of one function of one node. See the [module](super) for how to drive it.
pub struct Endpoint {
    pub(super) config: Config,
    pub(super) me: FunctionId,
    pub(super) incarnation: u64,
    pub(super) secret: Secret,
    /// Number of tokens made so far.
    pub(super) tokens: u64,
    /// Longest frame that the network takes now.
    pub(super) frame_bytes: usize,
    pub(super) openings: u64,
    pub(super) slots: Vec<Slot>,
    pub(super) free: Vec<u16>,
    /// The link that `connect` finds: the newest that is not down.
    pub(super) by_peer: BTreeMap<FunctionId, PeerId>,
    /// Links that may have a frame to send.
    pub(super) ready: VecDeque<u16>,
    deliverable: VecDeque<u16>,
    news: VecDeque<u16>,
    pub(super) early: EarlyFrames,
    pub(super) shares: Shares,
    pub(super) counters: Counters,
    pub(super) numbers: GateNumbers,
    pub(super) own_gates: Vec<u8>,
    wanted_gates: RefCell<Vec<(PeerId, u32)>>,
    pub(super) replies: VecDeque<Reply>,
    /// When each slot needs service next. Kept apart from the links, so that a scan for expired
    /// timers is cheap.
    pub(super) deadlines_ns: Vec<u64>,
    /// A lower bound of `deadlines_ns`.
    pub(super) next_timer_ns: u64,
}

pub(super) struct Slot {
    pub generation: u16,
    pub link: Option<Box<Link>>,
}

/// A reply that belongs to no link.
#[derive(Clone, Copy)]
pub(super) struct Reply {
    pub path: PathId,
    pub function: u8,
    pub token: u64,
    pub body: ReplyBody,
}

#[derive(Clone, Copy)]
pub(super) enum ReplyBody {
    Unknown,
    Close(CloseReason),
    Refuse(RefuseBody),
    Challenge(ChallengeBody),
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
        let numbers = GateNumbers::new(config.queue_pairs);
        Ok(Endpoint {
            config,
            me,
            incarnation,
            frame_bytes: config.frame_bytes,
            secret,
            tokens: 0,
            openings: 0,
            slots: Vec::new(),
            free: Vec::new(),
            by_peer: BTreeMap::new(),
            ready: VecDeque::new(),
            deliverable: VecDeque::new(),
            news: VecDeque::new(),
            early: EarlyFrames::new(config.early_frames),
            shares: Shares::new(config.receive_bytes, config.packet_bytes + PACKET_COST_BYTES),
            counters: Counters::default(),
            numbers,
            own_gates: vec![0; numbers.count()],
            wanted_gates: RefCell::new(Vec::with_capacity(WANTED_GATES)),
            replies: VecDeque::with_capacity(REPLIES),
            deadlines_ns: Vec::new(),
            next_timer_ns: NEVER,
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
    /// goes down with [`Why::NoAnswer`] after `patience_ns`. That time counts from the first Open.
    /// The Open waits until an earlier link that our user closed has sent what was queued.
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
        if let Some(&id) = self.by_peer.get(&peer)
            && let Some(link) = self.link_mut(id).filter(|link| is_there(link))
        {
            link.paths.add(path);
            if link.state == State::Accepting {
                // The peer asked, but may be gone by now: ask it, too.
                link.state = State::Opening;
                link.open_due = true;
                link.repeats = 0;
                link.give_up_ns = now_ns.saturating_add(patience_ns);
                self.settle(id.slot());
            }
            return Some(id);
        }
        let id = self.add_link(peer, State::Opening, path, now_ns)?;
        // An Open would end an earlier link at the peer, so it waits until that link has sent what
        // was queued.
        let lingering = self.lingering(peer);
        let link = self.link_mut(id)?;
        link.open_due = lingering.is_none();
        link.after = lingering;
        if lingering.is_some() {
            link.patience_ns = Some(patience_ns);
        } else {
            link.give_up_ns = now_ns.saturating_add(patience_ns);
        }
        self.by_peer.insert(peer, id);
        self.settle(id.slot());
        Some(id)
    }

    /// Gives the link one more path (H-29). The link learns by itself the paths by which the peer
    /// sends.
    pub fn add_path(&mut self, peer: PeerId, path: PathId) {
        if let Some(link) = self.link_mut(peer) {
            link.paths.add(path);
        }
    }

    /// Adds `path` as a guess where the peer of an unanswered link may be. It is asked there at
    /// once, and then at all such paths in turn. When it answers, the paths by which nothing was
    /// heard are forgotten.
    pub fn guess_path(&mut self, peer: PeerId, path: PathId) {
        if let Some(link) = self.link_mut(peer)
            && link.state == State::Opening
            && link.paths.guess(path)
        {
            link.open_due = link.after.is_none();
            self.settle(peer.slot());
        }
    }

    /// The function at the other end of a link, down or not.
    pub fn peer_address(&self, peer: PeerId) -> Option<FunctionId> {
        self.link(peer).map(|link| link.peer)
    }

    /// A path by which the peer has shown that it receives, or by which it is being asked.
    pub fn place_of(&self, peer: PeerId) -> Option<PathId> {
        self.link(peer).map(|link| link.paths.place())
    }

    /// Whether packets can be sent.
    pub fn is_up(&self, peer: PeerId) -> bool {
        self.link(peer).is_some_and(Link::is_up)
    }

    /// Forgets a link. If it is up, queued packets are still sent, for 5 s at most, and arriving
    /// packets are dropped.
    pub fn close(&mut self, peer: PeerId, now_ns: u64) {
        let Some(link) = self.link_mut(peer) else { return };
        let address = link.peer;
        if link.is_up() {
            link.state = State::Closing;
            link.give_up_ns = now_ns.saturating_add(LINGER_NS);
        } else {
            self.count_failed(peer.slot());
            self.remove(peer.slot());
        }
        if self.by_peer.get(&address) == Some(&peer) {
            self.by_peer.remove(&address);
        }
        self.finish_closing(peer.slot());
    }

    /// Queues a packet: `words` 1 to 3 of its header, then `head`, then `body`. This call sets the
    /// payload length in the first word to that of `head` and `body`, and copies all bytes now.
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
    ) -> Result<(), SendError> {
        let separate = self.config.separate_channels;
        let Some(link) = self.link_mut(peer) else { return Err(SendError::Down) };
        match link.state {
            State::Up => {}
            State::Opening | State::Accepting => return Err(SendError::Busy),
            State::Closing | State::Down(_) => return Err(SendError::Down),
        }
        let length = head.len() + body.len();
        if length > link.peer_packet_bytes as usize {
            return Err(SendError::TooLong { limit: link.peer_packet_bytes });
        }
        let words = PacketWords(words).with_payload_bytes(length as u32);
        // Without a channel of their own, responses wait behind requests (C-26).
        let stream = if separate { channel as usize } else { 0 };
        if !link.streams[stream].push_packet(words, head, body) {
            return Err(SendError::Busy);
        }
        link.packets_unacknowledged += 1;
        link.requests_queued += (stream == Channel::Request as usize) as u64;
        if planted("reliable-queued-is-delivered") {
            link.requests_delivered = link.requests_queued - 1;
        }
        if !link.is_ready {
            link.is_ready = true;
            self.ready.push_back(peer.slot() as u16);
        }
        self.counters.packets_queued += 1;
        Ok(())
    }

    /// Whether frames should go to this peer without waiting for the next poll: nothing is in
    /// flight to it, or `frames` frames can be filled. Otherwise wait: coalescing saves frames and
    /// system calls.
    #[inline]
    pub fn is_urgent(&self, peer: PeerId, frames: usize) -> bool {
        self.link(peer).is_some_and(|link| {
            link.is_running()
                && link.may_send()
                && (link.flight.in_flight == 0
                    || link.streams.iter().any(|stream| {
                        stream.waiting_bytes() as usize + 64 >= frames * link.frame_bytes
                            && !stream.stopped
                    }))
        })
    }

    /// The gate of the peer's queue pair; `None` while it is not known. The first call also
    /// subscribes to the gate's changes.
    pub fn gate(&self, peer: PeerId, queue_pair: u32) -> Option<GateState> {
        let link = self.link(peer).filter(|link| link.is_up())?;
        let Some(place) = self.numbers.place(queue_pair) else { return Some(GateState::Closed) };
        let state = link.gates.peer(place);
        if state.is_none() && link.gates.is_unasked(place) {
            let mut wanted = self.wanted_gates.borrow_mut();
            if wanted.len() < WANTED_GATES && !wanted.contains(&(peer, queue_pair)) {
                wanted.push((peer, queue_pair));
            }
        }
        state
    }

    /// Sets the gate of one of our queue pairs and tells all peers that ever asked for it.
    pub fn set_gate(&mut self, queue_pair: u32, state: GateState) {
        let Some(place) = self.numbers.place(queue_pair) else { return };
        if self.own_gates[place] == state as u8 {
            return;
        }
        self.own_gates[place] = state as u8;
        for slot in 0..self.slots.len() {
            if let Some(link) = &mut self.slots[slot].link
                && link.gates.changed(place)
            {
                self.settle(slot);
            }
        }
    }

    /// Offers refused packets again: of each link and channel, until the sink refuses one.
    pub fn deliver(&mut self, sink: &mut impl Sink) {
        for _ in 0..self.deliverable.len() {
            let Some(slot) = self.deliverable.pop_front() else { break };
            let Some(link) = &mut self.slots[slot as usize].link else { continue };
            link.is_deliverable = false;
            if link.after.is_some() || link.state == State::Closing {
                continue;
            }
            let mut is_sound = true;
            let before = link.backlogs[0].packets + link.backlogs[1].packets;
            for channel in [Channel::Request, Channel::Response] {
                let backlog = &mut link.backlogs[channel as usize];
                if backlog.is_waiting() {
                    is_sound &= backlog.offer(link.id, channel, sink);
                }
            }
            self.counters.packets_delivered +=
                link.backlogs[0].packets + link.backlogs[1].packets - before;
            if !is_sound {
                for backlog in &mut link.backlogs {
                    backlog.forget();
                }
                self.fail(slot as usize, Why::Violation);
            }
            self.consumed(slot as usize);
            self.settle(slot as usize);
        }
    }

    /// Whether packets wait to be offered again.
    pub fn has_deliverable(&self) -> bool {
        !self.deliverable.is_empty()
    }

    /// News of links.
    pub fn poll_event(&mut self) -> Option<Event> {
        while let Some(&slot) = self.news.front() {
            if let Some(link) = &mut self.slots[slot as usize].link {
                let (peer, address) = (link.id, link.peer);
                if core::mem::take(&mut link.up_untold) {
                    return Some(Event::Up { peer, address });
                }
                if core::mem::take(&mut link.gates_untold) {
                    return Some(Event::Gates { peer });
                }
                link.has_event = false;
                if core::mem::take(&mut link.down_untold)
                    && let State::Down(why) = link.state
                {
                    self.news.pop_front();
                    self.release_successor(peer);
                    return Some(Event::Down { peer, address, why });
                }
            }
            self.news.pop_front();
        }
        None
    }

    /// When to call [`poll_transmit`](Self::poll_transmit) again if no frame comes; `u64::MAX`:
    /// never. Returns a time in the past if there is something to send already.
    pub fn next_deadline(&self) -> u64 {
        let now = !self.ready.is_empty()
            || !self.replies.is_empty()
            || !self.wanted_gates.borrow().is_empty();
        if now { 0 } else { self.deadlines_ns.iter().copied().min().unwrap_or(NEVER) }
    }

    /// Whether [`poll_transmit`](Self::poll_transmit) may have something. It agrees with
    /// [`next_deadline`](Self::next_deadline), costs the same for any number of links, and is
    /// sometimes early.
    #[inline]
    pub fn is_due(&self, now_ns: u64) -> bool {
        !self.ready.is_empty()
            || !self.replies.is_empty()
            || self.has_wanted()
            || self.next_timer_ns <= now_ns
    }

    /// Makes all waiting acknowledgements due: call it before a sleep.
    pub fn flush(&mut self) {
        for slot in 0..self.slots.len() {
            if let Some(link) = &mut self.slots[slot].link
                && link.is_running()
                && link.acknowledge.is_waiting()
            {
                link.acknowledge.due = true;
                self.settle(slot);
            }
        }
    }

    /// Packets queued for this peer and not acknowledged by it.
    pub fn unacknowledged(&self, peer: PeerId) -> u64 {
        self.link(peer).map_or(0, |link| link.packets_unacknowledged)
    }

    /// Requests queued for this peer on this link so far: the number of the last one, as
    /// [`Sink::delivered`] counts.
    #[inline]
    pub fn requests_queued(&self, peer: PeerId) -> u64 {
        self.link(peer).map_or(0, |link| link.requests_queued)
    }

    /// Most frames that may be in flight to this peer now: N_asy, or less if the network is
    /// congested.
    pub fn window_frames(&self, peer: PeerId) -> u32 {
        self.link(peer).map_or(0, |link| link.congestion.frames().min(link.window))
    }

    /// Longest frame that goes to this peer now, in bytes.
    pub fn frame_bytes_to(&self, peer: PeerId) -> usize {
        self.link(peer).map_or(0, |link| link.frame_bytes)
    }

    /// Sets the network's MTU. Frames in flight that are too long now are sent again in parts. The
    /// value is clamped to the configured length, which sized the buffers.
    pub fn set_frame_bytes(&mut self, frame_bytes: usize) {
        self.frame_bytes = frame_bytes.clamp(MIN_FRAME_BYTES, self.config.frame_bytes);
        for link in self.slots.iter_mut().filter_map(|slot| slot.link.as_mut()) {
            link.agree_on_frame_bytes(self.frame_bytes);
        }
    }

    /// Whether all links, closed ones too, have nothing left to send. Check it before the program
    /// ends.
    pub fn is_drained(&self) -> bool {
        self.replies.is_empty()
            && self
                .slots
                .iter()
                .filter_map(|slot| slot.link.as_ref())
                .all(|link| !link.is_running() || link.is_drained() && link.state != State::Closing)
    }

    /// The links that our user has not closed.
    pub fn peers(&self) -> impl Iterator<Item = PeerId> {
        self.slots
            .iter()
            .filter_map(|slot| slot.link.as_ref())
            .filter(|link| link.state != State::Closing)
            .map(|link| link.id)
    }

    /// The paths of all links and of all queued replies: their numbers must keep their meaning.
    pub fn paths(&self) -> impl Iterator<Item = PathId> {
        let links = self.slots.iter().filter_map(|slot| slot.link.as_ref());
        let replies = self.replies.iter().map(|reply| reply.path);
        links.flat_map(|link| link.paths.ids()).chain(replies)
    }

    /// Links that occupy a slot, in any state.
    pub fn link_count(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    #[inline]
    pub(super) fn link(&self, id: PeerId) -> Option<&Link> {
        let link = self.slots.get(id.slot())?.link.as_deref()?;
        (link.id == id && link.state != State::Closing).then_some(link)
    }

    #[inline]
    pub(super) fn link_mut(&mut self, id: PeerId) -> Option<&mut Link> {
        let link = self.slots.get_mut(id.slot())?.link.as_deref_mut()?;
        (link.id == id && link.state != State::Closing).then_some(link)
    }

    /// The slot of the link whose frames carry `token`.
    #[inline]
    pub(super) fn slot_of(&self, token: u64) -> Option<usize> {
        let slot = token as usize & 0xffff;
        let link = self.slots.get(slot)?.link.as_deref()?;
        let is_same = link.token == token || planted("reliable-skip-token");
        (is_same && !matches!(link.state, State::Down(_))).then_some(slot)
    }

    /// Queues a reply that belongs to no link, unless the queue is full.
    pub(super) fn reply(&mut self, reply: Reply) {
        if self.replies.len() < REPLIES {
            self.replies.push_back(reply);
        }
    }

    /// Moves the gate requests that `gate` noted to their links.
    pub(super) fn collect_wanted(&mut self) {
        let mut wanted = self.wanted_gates.take();
        for (peer, queue_pair) in wanted.drain(..) {
            let place = self.numbers.place(queue_pair);
            if let (Some(link), Some(place)) = (self.link_mut(peer), place) {
                link.gates.ask(place);
                self.settle(peer.slot());
            }
        }
        self.wanted_gates.replace(wanted);
    }

    #[inline]
    pub(super) fn has_wanted(&self) -> bool {
        !self.wanted_gates.borrow().is_empty()
    }

    /// Packets were taken. If much room, or all of it, became free, the peer must know soon (GO,
    /// H-16).
    pub(super) fn consumed(&mut self, slot: usize) {
        let Some(link) = &mut self.slots[slot].link else { return };
        let share = self.shares.bytes();
        for (backlog, advertised) in link.backlogs.iter().zip(link.advertised) {
            let more = backlog.credit(share, advertised).wrapping_sub(advertised);
            if more >= share / 4 || more > 0 && backlog.just_emptied {
                link.acknowledge.due = true;
            }
        }
        for backlog in &mut link.backlogs {
            backlog.just_emptied = false;
        }
    }

    /// Notes when a link needs service next.
    #[inline]
    pub(super) fn settle_deadline(&mut self, slot: usize) {
        if let Some(link) = &self.slots[slot].link {
            let deadline_ns = link.deadline_ns();
            self.deadlines_ns[slot] = deadline_ns;
            self.next_timer_ns = self.next_timer_ns.min(deadline_ns);
        }
    }

    /// Call it after any change of a link: puts the link on the lists where it belongs.
    #[inline]
    pub(super) fn settle(&mut self, slot: usize) {
        let Some(link) = &mut self.slots[slot].link else { return };
        if !link.is_ready && link.has_something() {
            link.is_ready = true;
            self.ready.push_back(slot as u16);
        }
        let deadline_ns = link.deadline_ns();
        self.deadlines_ns[slot] = deadline_ns;
        self.next_timer_ns = self.next_timer_ns.min(deadline_ns);
        let waits = (link.backlogs[0].is_waiting() || link.backlogs[1].is_waiting())
            && (link.is_running() || !planted("reliable-end-before-packets"));
        if waits {
            if !link.is_deliverable && link.after.is_none() && link.state != State::Closing {
                link.is_deliverable = true;
                self.deliverable.push_back(slot as u16);
            }
        } else if matches!(link.state, State::Down(_)) && !link.down_told {
            link.down_told = true;
            link.down_untold = true;
            self.tell(slot);
        }
    }

    /// Puts the link on the list of links with events.
    pub(super) fn tell(&mut self, slot: usize) {
        if let Some(link) = &mut self.slots[slot].link
            && !link.has_event
        {
            link.has_event = true;
            self.news.push_back(slot as u16);
        }
    }
}

/// Takes and drops all packets, for a link that its user has closed.
pub(super) struct Discard;

impl Sink for Discard {
    fn packet(&mut self, _: PeerId, _: Channel, _: [u64; 3], _: &[u8]) -> Verdict {
        Verdict::Taken
    }
}
