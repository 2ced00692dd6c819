//! One open function: the reliable protocol between the engine and the network.
//!
//! ```text
//!   send --> Endpoint::send --(idle line: now, else next poll)--> pump: frames into kernel buffers
//!   poll --> FrameIo::receive --> Endpoint::handle_frame --> Sink::packet, in the frame's buffer
//! ```
//! Small packets that are sent while others are in flight are coalesced into frames, because frames
//! are the network's scarce resource.

mod delay;
mod discovery;
mod intake;
mod loopback;
mod readiness;
#[cfg(test)]
mod tests;

use crate::check_speed;
use crate::clock::Clock;
use crate::frame_io::FrameIo;
use crate::links::{Link, Links, State};
use crate::memory;
use crate::pcapng::{Capture, Direction};
use crate::route::Route;
use crate::sleep::Sleeper;
use bellwire_device::{
    Error, FunctionAddress, Gate, LinkId, PACKET_HEADER_BYTES, PacketHeader, Receipt, Rights,
    SendError, Sink, Status, Transport, TransportLimits,
};
use bellwire_protocol::Secret;
use bellwire_protocol::discovery::Discovery;
use bellwire_protocol::discovery::seek::SeekFrame;
use bellwire_protocol::reliable::{
    self, Channel, Config, DownReason, Endpoint, Event, FunctionId, GateState, PathId, PeerId,
};
use bellwire_ring::canary::planted;
use bellwire_ring::memory::{Memory, View};
use bellwire_wire::frame::check::CHECK_BYTES;
use delay::AnswerDelay;
use discovery::Search;
use intake::{Bytes, Intake};
use loopback::Loopback;
use readiness::Readiness;
use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

/// The name of no place, for frames that are only counted.
const NOWHERE: PathId = PathId(u64::MAX);

/// Longest payload of a packet in bytes, whatever the network's frames carry, so that all devices
/// agree. It takes several frames (H-25). A message of 64 KiB is one packet, without a rendezvous.
pub const PACKET_BYTES: usize = 64 << 10;
/// Maximum number of queue pairs with gates.
pub const QUEUE_PAIRS: usize = 16_384;
/// Maximum number of registered regions.
pub const REGIONS: usize = 4_096;
/// Maximum number of links of one function.
pub const LINKS: usize = 1_024;

/// Bytes of packets in one channel of a link that wait to be sent or acknowledged: some hundred
/// messages that fill a frame.
const SEND_BYTES: u32 = 1 << 20;
/// Time between two rounds of work that not every poll needs to do, in ns.
const TICK_NS: u64 = 1_000_000;
/// Without a frame for this time, in ns, a line is quiet: small packets need not wait for each
/// other.
const QUIET_NS: u64 = 10_000;
/// This many full frames are sent at once even while the line is busy: they share a system call.
const BATCH_FRAMES: usize = 8;
/// Full frames of this many bytes are sent at once if the program polls between posts: its next
/// poll sends fewer. It is more than a packet, so that packets of a stream share datagrams.
const STREAM_BATCH_BYTES: usize = 72 << 10;
/// Bounds of the retransmission timeout, in ns. Later frames reveal most losses; the timeout serves
/// the last frames of a burst. A peer that waits for a processor is not a loss.
const TIMEOUT_NS: [u64; 2] = [20_000_000, 500_000_000];
/// Delay that does not count as congestion, in ns. Peers are processes, which wait for a processor
/// some milliseconds now and then. A window that shrank each time would never grow again.
const TARGET_DELAY_NS: u64 = 10_000_000;
/// A deadline this near, in ns, is not worth a sleep. Mostly it is an acknowledgement that waits
/// for a frame to ride on.
const NEAR_NS: u64 = 30_000;
/// How long a closed function waits until its peers have all that it sent, in ns.
const LINGER_NS: u64 = 500_000_000;

/// One function of a device that carries frames.
pub struct EthernetTransport<Io: FrameIo, R: Route<Path = Io::Path>> {
    io: Io,
    endpoint: Endpoint,
    clock: Clock,
    sleeper: Sleeper,
    address: FunctionAddress,
    links: Links,
    /// Where nodes are.
    search: Search<R>,
    /// Packets to ourselves.
    loopback: Loopback,
    readiness: Readiness,
    answer_delay: AnswerDelay,
    /// Events that came up outside of a poll.
    events: VecDeque<Event>,
    capture: Option<Arc<Capture>>,
    /// The kernel did not take all staged frames.
    unsent: bool,
    /// [`STREAM_BATCH_BYTES`] in frames, and whether the program has polled since its last post.
    stream_batch_frames: usize,
    has_polled: bool,
    /// Whether packets wait for each other ([`Transport::hold`]), the bytes of those that were sent
    /// since, and whether one of them would have left at once.
    holds: bool,
    held_bytes: usize,
    has_held: bool,
    /// When frames were last sent, or there were none to send.
    pumped_ns: u64,
    next_tick_ns: u64,
    rows: Vec<(&'static str, u64)>,
}

impl<Io: FrameIo, R: Route<Path = Io::Path>> EthernetTransport<Io, R> {
    /// Function `address` over `io`.
    ///
    /// # Errors
    /// What the kernel says when it is asked for descriptors, or [`Error::OutOfRange`] if the
    /// network's frames are too short.
    pub(crate) fn new(
        address: FunctionAddress,
        io: Io,
        route: R,
        capture: Option<Arc<Capture>>,
    ) -> Result<Self, Error> {
        let config = Config {
            packet_bytes: PACKET_BYTES as u32,
            links: LINKS as u16,
            queue_pairs: QUEUE_PAIRS as u32,
            timeout_ns: TIMEOUT_NS,
            first_timeout_ns: TIMEOUT_NS[0],
            target_delay_ns: TARGET_DELAY_NS,
            send_bytes: SEND_BYTES,
            has_check: !io.drops_altered(),
            ..Config::new(io.frame_bytes())
        };
        check_speed::choose();
        let clock = Clock::new();
        let me = FunctionId { node: address.node, function: address.function };
        let secret = Secret::new([bellwire_device::random(), bellwire_device::random()]);
        let endpoint = Endpoint::new(config, me, clock.incarnation(), secret).map_err(|_| {
            Error::OutOfRange {
                parameter: "the interface's MTU",
                value: io.frame_bytes() as u64,
                range: "256 to 65535 bytes: ip link set IFACE mtu 1500",
            }
        })?;
        let discovery = Discovery::new(address.node, io.frame_bytes(), secret);
        let sleeper = Sleeper::new()
            .map_err(|cause| Error::System { what: "create descriptors to wait for", cause })?;
        let stream_batch_frames = (STREAM_BATCH_BYTES / io.frame_bytes()).max(BATCH_FRAMES);
        Ok(EthernetTransport {
            io,
            stream_batch_frames,
            has_polled: false,
            holds: false,
            held_bytes: 0,
            has_held: false,
            endpoint,
            clock,
            sleeper,
            address,
            links: Links::new(),
            search: Search::new(route, discovery),
            loopback: Loopback::default(),
            readiness: Readiness::default(),
            answer_delay: AnswerDelay::new(),
            events: VecDeque::new(),
            capture,
            unsent: false,
            pumped_ns: 0,
            next_tick_ns: 0,
            rows: Vec::new(),
        })
    }

    /// Sends all frames that the protocol has for now.
    fn pump(&mut self, now_ns: u64) {
        self.answer_delay.sent(now_ns);
        let mut staged = !self.search.answers.is_empty();
        while let Some((path, answer, function)) = self.search.answers.pop() {
            self.send_seek(path, SeekFrame::Here(answer), function);
        }
        let is_sealed = self.io.drops_altered();
        while let Some(room) = self.io.room() {
            let sent = match is_sealed {
                true => self.endpoint.poll_transmit_apart(now_ns, room),
                false => self.endpoint.poll_transmit(now_ns, room).map(|frame| (frame, &[][..])),
            };
            let Some((frame, apart)) = sent else { break };
            // Places that only answers go to may be forgotten before. The frame then counts as
            // lost.
            let Some(to) = self.search.discovery.places.place(frame.path) else { continue };
            stage(&mut self.io, self.capture.as_deref(), to, frame.length, apart);
            staged = true;
            if !self.endpoint.is_due(now_ns) {
                break;
            }
        }
        (self.held_bytes, self.has_held) = (0, false);
        self.unsent = !self.io.flush();
        // The call may have taken longer than a line needs to become quiet: count from its end.
        self.pumped_ns = if staged { self.clock.now_ns() } else { now_ns };
    }

    /// Receives frames and delivers the packets that they complete. Returns packets, plus one if
    /// there were frames.
    fn take_frames(&mut self, sink: &mut impl Sink, budget: usize, now_ns: u64) -> usize {
        let Self { io, endpoint, links, search, capture, events, .. } = self;
        let mut intake = Intake { links, sink, search, now_ns, packets: 0 };
        // Retry stalled packets before new frames take their room.
        if endpoint.has_deliverable() {
            endpoint.deliver(&mut intake);
        }
        let mut heard = Vec::new();
        let is_sealed = io.drops_altered();
        let frames = io.receive(budget, |from, bytes| {
            if capture.is_some() {
                heard.push((from, bytes.to_vec()));
            }
            if intake.search.handle_frame(from, bytes, !intake.links.unanswered.is_empty(), now_ns)
            {
                return;
            }
            let path = match intake.search.discovery.places.known_number(from) {
                Some(path) => path,
                // A new station gets a number only with its first valid frame.
                None if !is_sealed && !reliable::is_sound_frame(bytes) => NOWHERE,
                None => intake.search.path_id(from, endpoint),
            };
            endpoint.handle_frame(path, bytes, now_ns, &mut intake);
            while let Some(event) = endpoint.poll_event() {
                // The next frame may carry packets of a new link, so the engine hears of the link
                // first. Other events can wait.
                match event {
                    Event::Up { peer, address } => {
                        intake.links.came_up(peer, address);
                        // The peer is at the place that it answered from, whatever place was
                        // announced.
                        if let Some(path) = endpoint.path_of(peer) {
                            intake.search.came_up(address.node, path);
                        }
                    }
                    other => events.push_back(other),
                }
            }
        });
        if endpoint.has_deliverable() {
            endpoint.deliver(&mut intake);
        }
        while let Some(place) = io.take_refused() {
            if let Some(path) = intake.search.discovery.places.known_number(place) {
                endpoint.refused(path, now_ns);
            }
        }
        let packets = intake.packets;
        if let Some(capture) = capture {
            for (from, bytes) in heard {
                let header = io.capture_header(from, Direction::Received, &bytes);
                capture.frame(Direction::Received, &header, &bytes);
            }
        }
        // Acknowledgements make room to send, so the caller retries what waits.
        packets + usize::from(frames > 0)
    }

    /// Whether the protocol has events, or links wait for answers.
    #[inline]
    fn has_events(&self) -> bool {
        !self.events.is_empty() || self.endpoint.has_events() || !self.links.unsettled.is_empty()
    }

    /// Handles the protocol's events. Returns their number.
    #[cold]
    fn take_events(&mut self, sink: &mut impl Sink) -> usize {
        let mut handled = 0;
        while let Some(event) = self.events.pop_front().or_else(|| self.endpoint.poll_event()) {
            handled += 1;
            match event {
                Event::Up { peer, address } => self.links.came_up(peer, address),
                Event::Gates { .. } => {}
                Event::Down { peer, reason, address } => match self.links.number_of(peer) {
                    // Another node is at the announced place.
                    Some(number)
                        if reason == DownReason::NotHere && self.links.seek_again(number) =>
                    {
                        self.search.route.forget(address.node);
                        self.endpoint.close(peer, self.clock.now_ns());
                    }
                    Some(number) => {
                        if reason == DownReason::NotHere {
                            self.search.route.forget(address.node);
                        }
                        if matches!(
                            reason,
                            DownReason::Version { .. }
                                | DownReason::Feature { .. }
                                | DownReason::Full
                                | DownReason::Elsewhere
                        ) {
                            tracing::warn!(peer = %address, %reason, "the peer refused the link");
                        }
                        self.links.lose(number, status_of(reason));
                    }
                    None => self.endpoint.close(peer, self.clock.now_ns()),
                },
            }
        }
        if !self.links.unsettled.is_empty() {
            handled += self.settle_links(sink);
        }
        handled
    }

    /// Delivers packets that we sent to ourselves.
    fn take_own(&mut self, sink: &mut impl Sink, budget: usize) -> usize {
        let Some(number) = self.links.own() else { return 0 };
        let delivered = self.loopback.deliver(LinkId(number), self.address, sink, budget);
        delivered.unwrap_or_else(|packets| {
            self.links.lose(number, Status::ProtocolViolation);
            packets
        })
    }

    /// The gate of a queue pair at the other end of a link that the protocol has.
    #[inline]
    fn gate_at(&mut self, id: PeerId, queue_pair: u32, now_ns: u64) -> Option<Gate> {
        Some(match self.endpoint.gate(id, queue_pair)? {
            // An unread frame may say that it has closed.
            GateState::Open if self.readiness.has_unread(now_ns, || self.io.is_ready()) => {
                return None;
            }
            GateState::Open => Gate::Open,
            GateState::Stopped => Gate::Stopped,
            GateState::Closed => Gate::Closed,
        })
    }

    /// Queues a packet.
    #[inline]
    fn send_to(
        &mut self,
        id: PeerId,
        header: PacketHeader,
        head: &[u8],
        body: View<'_>,
        now_ns: u64,
    ) -> Result<Receipt, reliable::SendError> {
        let channel = if header.is_answer() { Channel::Response } else { Channel::Request };
        let queued = self.endpoint.send(id, channel, header.to_words(), head, &Bytes(body))?;
        if channel == Channel::Request {
            self.answer_delay.joined(now_ns);
        }
        self.queued(id, header.length, now_ns);
        Ok(Receipt::Pending(queued))
    }

    /// Queues an answer that may wait for a packet of the program.
    fn send_later_to(
        &mut self,
        id: PeerId,
        header: PacketHeader,
        head: &[u8],
        body: View<'_>,
        now_ns: u64,
    ) -> Result<Receipt, reliable::SendError> {
        // Other packets do not wait with it.
        let is_alone = self.answer_delay.is_on(now_ns) || self.endpoint.may_wait(id);
        let words = header.to_words();
        let queued = self.endpoint.send(id, Channel::Response, words, head, &Bytes(body))?;
        let round_trip_ns = self.endpoint.round_trip_ns(id);
        if !(is_alone && self.answer_delay.keeps(round_trip_ns, now_ns)) {
            self.queued(id, header.length, now_ns);
        }
        Ok(Receipt::Pending(queued))
    }

    /// A packet with a payload of `length` bytes was queued. Sends it at once, unless it should be
    /// coalesced with others, or is held.
    #[inline]
    fn queued(&mut self, id: PeerId, length: u32, now_ns: u64) {
        self.readiness.sent(now_ns);
        // A program that has posted its last message may not poll again for long. So on a quiet
        // line no packet waits. What is held is certain to leave soon.
        let frames = match std::mem::take(&mut self.has_polled) || self.holds {
            true => self.stream_batch_frames,
            false => BATCH_FRAMES,
        };
        if self.holds {
            self.held_bytes += PACKET_HEADER_BYTES + length as usize;
        }
        if now_ns >= self.pumped_ns + QUIET_NS || self.endpoint.is_urgent(id, frames) {
            self.has_held = self.holds && self.held_bytes < frames * self.io.frame_bytes();
            if !self.has_held {
                self.pump(now_ns);
            }
        }
    }

    /// When to poll again even if nothing comes, in ns of the clock.
    fn next_deadline_ns(&self) -> u64 {
        let mut next = self.endpoint.next_deadline();
        for &number in &self.links.unsettled {
            match self.links.at(number).map(|link| &link.state) {
                Some(State::Seeking { give_up_ns, ask_again_ns, .. }) => {
                    next = next.min(*give_up_ns).min(*ask_again_ns);
                }
                Some(State::Down { reported: false, .. }) => next = 0,
                _ => {}
            }
        }
        for asked in &self.links.unanswered {
            next = next.min(asked.ask_again_ns);
        }
        next.min(self.search.discovery.next_deadline())
    }

    #[cold]
    fn tick(&mut self, sink: &mut impl Sink, now_ns: u64) {
        self.next_tick_ns = now_ns + TICK_NS;
        self.ask_for_further_places(now_ns);
        let mut rows = std::mem::take(&mut self.rows);
        rows.clear();
        self.counters(&mut rows);
        sink.tick(&rows);
        self.rows = rows;
        if let Some(capture) = &self.capture {
            capture.flush();
        }
    }
}

/// Stages the frame in the room that was given, which ends with what lies apart.
#[inline]
fn stage<Io: FrameIo>(
    io: &mut Io,
    capture: Option<&Capture>,
    to: Io::Path,
    length: usize,
    apart: &[u8],
) {
    if let Some(capture) = capture {
        let mut bytes = io.room().expect("it was given before")[..length].to_vec();
        let place = length - CHECK_BYTES - apart.len();
        bytes[place..][..apart.len()].copy_from_slice(apart);
        let header = io.capture_header(to, Direction::Sent, &bytes);
        capture.frame(Direction::Sent, &header, &bytes);
    }
    match apart {
        [] => io.stage(to, length),
        apart => io.stage_apart(to, length, apart),
    }
}

/// Why the endpoint takes no packet, for the engine.
fn refusal_of(error: reliable::SendError) -> SendError {
    match error {
        // The next poll reports why it is down.
        reliable::SendError::Busy | reliable::SendError::Down => SendError::Busy,
        // A peer that takes shorter packets speaks another version.
        reliable::SendError::TooLong { .. } => SendError::Down(Status::ProtocolViolation),
    }
}

fn status_of(reason: DownReason) -> Status {
    match reason {
        DownReason::NoAnswer
        | DownReason::Version { .. }
        | DownReason::Feature { .. }
        | DownReason::NotHere
        | DownReason::Full
        | DownReason::Elsewhere => Status::Unreachable,
        DownReason::Closed | DownReason::Dead | DownReason::Restarted => Status::PeerGone,
        DownReason::Accused | DownReason::Violation => Status::ProtocolViolation,
    }
}

impl<Io: FrameIo, R: Route<Path = Io::Path>> Transport for EthernetTransport<Io, R> {
    /// Frames get lost, and peers die.
    #[inline(always)]
    fn delivers_later(&self) -> bool {
        true
    }

    fn address(&self) -> FunctionAddress {
        self.address
    }

    fn limits(&self) -> TransportLimits {
        TransportLimits {
            packet_bytes: PACKET_BYTES,
            queue_pairs: QUEUE_PAIRS,
            regions: REGIONS,
            links: LINKS,
        }
    }

    fn link(&mut self, peer: FunctionAddress, patience: Duration) -> Result<LinkId, Error> {
        if let Some(number) = self.links.to(peer) {
            return Ok(LinkId(number));
        }
        let full = Error::Exhausted {
            what: "links",
            limit: LINKS as u64,
            hint: "Disconnect from peers that are not needed, or open another function",
        };
        if self.links.count() >= LINKS {
            return Err(full);
        }
        let now_ns = self.clock.now_ns();
        let patience_ns = patience.as_nanos().min(u64::MAX.into()) as u64;
        let state = if peer == self.address {
            self.loopback.reset();
            State::Own
        } else if let Some(path) = self.search.route.find(peer) {
            let id = self.connect(peer, path, patience_ns, now_ns).ok_or(full)?;
            let number = self.links.add(peer, State::Known(id));
            self.doubt(number, patience_ns, now_ns);
            return Ok(LinkId(number));
        } else {
            let give_up_ns = now_ns.saturating_add(patience_ns);
            State::Seeking {
                give_up_ns,
                ask_again_ns: now_ns,
                pause_ns: discovery::ASK_PAUSE_NS[0],
            }
        };
        Ok(LinkId(self.links.add(peer, state)))
    }

    fn close(&mut self, link: LinkId) {
        if let Some(id) = self.links.remove(link.0).and_then(|link| link.id()) {
            let now_ns = self.clock.now_ns();
            self.endpoint.close(id, now_ns);
            self.pump(now_ns);
        }
    }

    fn is_up(&self, link: LinkId) -> bool {
        match self.links.at(link.0).map(|link| &link.state) {
            Some(State::Known(id)) => self.endpoint.is_up(*id),
            Some(State::Own) => true,
            Some(State::Seeking { .. } | State::Down { .. }) | None => false,
        }
    }

    #[inline]
    fn watch_gate(&mut self, link: LinkId, queue_pair: u32) -> Option<Gate> {
        match self.links.at(link.0)?.state {
            State::Known(id) => self.gate_at(id, queue_pair, self.clock.now_ns()),
            State::Own => Some(self.loopback.gate(queue_pair)),
            State::Seeking { .. } | State::Down { .. } => None,
        }
    }

    fn set_gate(&mut self, queue_pair: u32, gate: Gate) {
        let state = match gate {
            Gate::Open => GateState::Open,
            Gate::Stopped => GateState::Stopped,
            Gate::Closed => GateState::Closed,
        };
        self.endpoint.set_gate(queue_pair, state);
        self.loopback.set_gate(queue_pair, gate);
        if gate == Gate::Closed {
            // At once, so that peers send as little as possible that nobody will receive.
            self.pump(self.clock.now_ns());
        }
    }

    #[inline]
    fn send(
        &mut self,
        link: LinkId,
        mut header: PacketHeader,
        head: &[u8],
        body: View<'_>,
    ) -> Result<Receipt, SendError> {
        let length = head.len() + body.len();
        assert!(length <= PACKET_BYTES, "the engine keeps to the limits");
        header.length = length as u32;
        match &mut self.links.at_mut(link.0).ok_or(SendError::Down(Status::PeerGone))?.state {
            State::Known(id) => {
                let id = *id;
                let sent = self.send_to(id, header, head, body, self.clock.now_ns());
                sent.map_err(refusal_of)
            }
            State::Seeking { .. } => Err(SendError::Busy),
            State::Own => self.loopback.send(header, head, body),
            State::Down { why, .. } => Err(SendError::Down(*why)),
        }
    }

    fn send_later(
        &mut self,
        link: LinkId,
        mut header: PacketHeader,
        head: &[u8],
        body: View<'_>,
    ) -> Result<Receipt, SendError> {
        let Some(&Link { state: State::Known(id), .. }) = self.links.at(link.0) else {
            return self.send(link, header, head, body);
        };
        header.length = (head.len() + body.len()) as u32;
        let sent = self.send_later_to(id, header, head, body, self.clock.now_ns());
        sent.map_err(refusal_of)
    }

    #[inline]
    fn send_message(
        &mut self,
        link: LinkId,
        mut header: PacketHeader,
        head: &[u8],
        body: View<'_>,
    ) -> Option<Receipt> {
        let Some(&Link { state: State::Known(id), .. }) = self.links.at(link.0) else {
            let is_open = self.watch_gate(link, header.destination) == Some(Gate::Open);
            return if is_open { self.send(link, header, head, body).ok() } else { None };
        };
        assert!(head.len() + body.len() <= PACKET_BYTES, "the engine keeps to the limits");
        header.length = (head.len() + body.len()) as u32;
        let now_ns = self.clock.now_ns();
        let is_open = self.gate_at(id, header.destination, now_ns) == Some(Gate::Open);
        if is_open { self.send_to(id, header, head, body, now_ns).ok() } else { None }
    }

    #[inline]
    fn hold(&mut self) {
        self.holds = true;
    }

    #[inline]
    fn let_go(&mut self, at_once: bool) {
        self.holds = false;
        if at_once && self.has_held && !planted("held-kept") {
            self.pump(self.clock.now_ns());
        }
    }

    fn flush(&mut self) {
        self.holds = false;
        self.pump(self.clock.now_ns());
    }

    #[inline]
    fn has_sent_all(&self, link: LinkId) -> bool {
        match self.links.at(link.0) {
            Some(&Link { state: State::Known(id), .. }) => {
                !self.unsent && self.endpoint.is_all_sent(id)
            }
            _ => true,
        }
    }

    fn poll(&mut self, sink: &mut impl Sink, budget: usize) -> usize {
        let now_ns = self.clock.now_ns();
        self.has_polled = true;
        let mut done = self.take_frames(sink, budget, now_ns);
        // Packets that came want an acknowledgement, and room.
        let is_delayed = done < 2 && self.answer_delay.is_on(now_ns);
        self.readiness.received(now_ns);
        if !self.search.further.is_empty() {
            self.add_paths();
        }
        if !self.links.unanswered.is_empty() {
            self.retry_seeks(now_ns);
        }
        if now_ns >= self.search.discovery.next_deadline() {
            self.ask_old_places(now_ns);
        }
        if self.has_events() {
            done += self.take_events(sink);
        }
        done += self.take_own(sink, budget);
        if now_ns >= self.next_tick_ns {
            self.tick(sink, now_ns);
        }
        let is_due = !is_delayed && self.endpoint.is_due(now_ns);
        if self.unsent || !self.search.answers.is_empty() || is_due {
            self.pump(now_ns);
        }
        done
    }

    fn allocate(&mut self, length: usize, _: Rights) -> Result<Memory, Error> {
        memory::allocate(length)
    }

    fn counters(&self, rows: &mut Vec<(&'static str, u64)>) {
        rows.extend(self.endpoint.counters().rows());
        rows.extend(self.io.counters().rows());
        self.io.key_rows(rows);
        rows.extend(self.sleeper.rows());
        rows.push(("links", self.links.count() as u64));
    }

    fn wait_fd(&self) -> BorrowedFd<'_> {
        self.sleeper.wait_fd()
    }

    fn arm(&mut self) -> bool {
        let Some(deadline_ns) = self.settle_down() else { return false };
        if self.io.is_ready() {
            return false;
        }
        if !self.sleeper.watch(&self.io.wait_fds(), self.io.generation()) {
            return false;
        }
        self.sleeper.set_alarm(deadline_ns, self.clock.now_ns())
    }

    fn disarm(&mut self) {
        self.sleeper.unwatch(&self.io.wait_fds());
    }

    fn sleep(&mut self, timeout: Option<Duration>) -> Result<(), Error> {
        let Some(deadline_ns) = self.settle_down() else { return Ok(()) };
        let left = deadline_ns.map(|at| at.saturating_sub(self.clock.now_ns()));
        let left = left.map(Duration::from_nanos);
        let timeout = match (timeout, left) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        // If something is there already, this returns at once.
        let mut woken = Vec::new();
        self.sleeper
            .sleep(&self.io.wait_fds(), timeout, |index| woken.push(index))
            .map_err(|cause| Error::System { what: "wait for frames", cause })?;
        woken.into_iter().for_each(|index| self.io.wake(index));
        Ok(())
    }
}

impl<Io: FrameIo, R: Route<Path = Io::Path>> EthernetTransport<Io, R> {
    /// Sends all that is due before a sleep. Returns the time until which to sleep, `Some(None)`
    /// for ever; `None`: something must be done first.
    fn settle_down(&mut self) -> Option<Option<u64>> {
        if self.links.own().is_some() && self.loopback.is_waiting() {
            return None;
        }
        let now_ns = self.clock.now_ns();
        let delayed_ns = self.answer_delay.until_ns(now_ns);
        if delayed_ns.is_none() {
            self.endpoint.flush();
            self.pump(now_ns);
        }
        self.events.extend(self.endpoint.poll_event());
        if !self.events.is_empty() {
            return None;
        }
        // Even if it is near: the program needs the processor to send what takes the answer along.
        if delayed_ns.is_some() {
            return Some(delayed_ns);
        }
        let next_ns = self.next_deadline_ns();
        if next_ns <= now_ns + NEAR_NS {
            return None;
        }
        // The kernel does not signal that it takes more again, so retry after a tick.
        let next_ns = if self.unsent { next_ns.min(now_ns + TICK_NS) } else { next_ns };
        Some((next_ns != u64::MAX).then_some(next_ns))
    }
}

impl<Io: FrameIo, R: Route<Path = Io::Path>> Drop for EthernetTransport<Io, R> {
    /// Tells peers, and waits a bounded time until they have what was sent to them.
    fn drop(&mut self) {
        let until_ns = self.clock.now_ns() + LINGER_NS;
        // Acknowledges what was delivered before packets arrive that the engine will not read.
        self.endpoint.flush();
        self.pump(self.clock.now_ns());
        for number in self.links.numbers() {
            if let Some(id) = self.links.remove(number).and_then(|link| link.id()) {
                self.endpoint.close(id, self.clock.now_ns());
            }
        }
        let mut nobody = |_: PeerId, _: Channel, _: [u64; 3], _: &[u8]| reliable::Verdict::Taken;
        loop {
            let now_ns = self.clock.now_ns();
            self.pump(now_ns);
            if self.endpoint.is_drained() || now_ns >= until_ns || std::thread::panicking() {
                break;
            }
            let Self { io, endpoint, search, .. } = self;
            io.receive(64, |from, bytes| {
                // Frames of unknown stations are ignored.
                if let Some(path) = search.discovery.places.known_number(from) {
                    endpoint.handle_frame(path, bytes, now_ns, &mut nobody);
                }
            });
            while self.endpoint.poll_event().is_some() {}
        }
        if let Some(capture) = &self.capture {
            capture.flush();
        }
    }
}

/// A failed request to the kernel as an error of a device. `hint` names the missing capability and
/// the command that gives it.
pub(crate) fn unavailable(device: &str, what: &str, error: &io::Error, hint: &str) -> Error {
    Error::DeviceUnavailable {
        device: device.to_owned(),
        why: format!("{what}: {error}"),
        hint: hint.to_owned(),
    }
}
