//! HPCL's virtual character device with its channels: open, mmap, ioctl, poll, release (H-04; HPCL
//! paper, 4.1 and Fig. 5). A channel is the virtual network of one application: a number, a
//! context, buffers (H-22; 4.3).
//!
//! The context holds the state machine of the real devices in HPCL's setting, so the model measures
//! the protocol that real wires carry.

use std::collections::{BTreeMap, VecDeque, btree_map};

use bellwire_protocol::Secret;
use bellwire_protocol::canary::planted;
use bellwire_protocol::reliable::{
    Channel as Way, Config as Protocol, Endpoint, Event as News, FunctionId, PathId, PeerId,
    Verdict,
};

use super::config::{Hpcl, Rings};
use super::frame::{Frame, Payload};
use crate::stats::{Imbalance, Occupancy};
use crate::units::{Span, Time};

/// The packet kind for the engines of the real devices: a message.
const KIND: u64 = 1;
/// Timeout for setting up a channel.
const PATIENCE_NS: u64 = 1_000_000_000;

/// Why an operation was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The module is not loaded.
    #[error("there is no such device; load the module first")]
    NoModule,
    /// Another application owns the channel.
    #[error("the channel has an owner already; take another number")]
    Owned,
    /// The channel is not open here.
    #[error("the channel is not open; open it first")]
    NotOpen,
    /// The buffers are not mapped.
    #[error("the channel's buffers are not mapped; map them first")]
    NotMapped,
    /// No such peer in this channel.
    #[error("no process of this channel is on that node")]
    NoPeer,
    /// The window is full; wait for acknowledgements.
    #[error("the window is full; receive, and try again")]
    WindowFull,
    /// The message exceeds the largest frame; the layer above cuts it (H-25).
    #[error("the message is longer than a frame; cut it")]
    TooLong,
}

/// A message in a ring: the contents of the user's descriptor (H-10; Fig. 6), and the bytes, which
/// the user reads in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Source node.
    pub from: u16,
    /// Its slot, which is its address.
    pub slot: u32,
    /// The data.
    pub bytes: Vec<u8>,
    /// When it entered the ring.
    since: Time,
}

/// The extent of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Receive rings.
    pub rings: u32,
    /// Bytes of receive rings and send buffers: fixed, locked, shared.
    pub bytes: u64,
}

/// Receive rings of a channel.
struct ReceiveRings {
    /// One ring, or one per peer, by peer number.
    rings: Vec<VecDeque<Message>>,
    slots: u32,
    next_slot: Vec<u32>,
    occupancy: Occupancy,
}

impl ReceiveRings {
    fn new(config: &Hpcl, nodes: u16) -> ReceiveRings {
        let count = match config.rings {
            Rings::Channel => 1,
            Rings::Connection => usize::from(nodes),
        };
        ReceiveRings {
            rings: vec![VecDeque::new(); count],
            slots: config.slots.into(),
            next_slot: vec![0; count],
            occupancy: Occupancy::default(),
        }
    }

    fn ring_of(&self, peer: u16) -> usize {
        usize::from(peer) % self.rings.len()
    }

    /// Copies a message from a network buffer into a ring, if there is room.
    fn put(&mut self, from: u16, bytes: &[u8], now: Time) -> bool {
        let ring = self.ring_of(from);
        if self.rings[ring].len() >= self.slots as usize {
            return false;
        }
        let slot = self.next_slot[ring];
        self.next_slot[ring] = (slot + 1) % self.slots;
        self.occupancy.enter(now);
        self.rings[ring].push_back(Message { from, slot, bytes: bytes.to_vec(), since: now });
        true
    }
}

/// The effect of a received frame or of a freed slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Brought {
    /// Messages put into the ring.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Messages that the state machine keeps until a slot is free.
    pub kept: u64,
}

/// The context of a channel.
pub struct Channel {
    number: u8,
    node: u16,
    config: Hpcl,
    mapped: bool,
    /// The protocol.
    pub endpoint: Endpoint,
    peers: BTreeMap<u16, PeerId>,
    receive: ReceiveRings,
    /// The message that the user is reading.
    reading: Option<Message>,
    buffer: Vec<u8>,
}

impl Channel {
    fn new(
        config: &Hpcl,
        number: u8,
        node: u16,
        nodes: u16,
        incarnation: u64,
        seed: u64,
    ) -> Channel {
        let frame_bytes = config.frame.count() as usize;
        let me = address(node, number);
        let endpoint = Endpoint::new(protocol(config), me, incarnation, Secret::from_seed(seed))
            .expect("the configuration was checked");
        Channel {
            number,
            node,
            config: config.clone(),
            mapped: false,
            endpoint,
            peers: BTreeMap::new(),
            receive: ReceiveRings::new(config, nodes),
            reading: None,
            buffer: vec![0; frame_bytes],
        }
    }

    /// Requests a link to the process of this channel on another node.
    pub fn connect(&mut self, node: u16, now: Time) {
        let path = PathId(node.into());
        self.endpoint.connect(address(node, self.number), path, PATIENCE_NS, ns(now));
    }

    /// Messages that a node has not acknowledged.
    pub fn unacknowledged(&self, to: u16) -> u64 {
        self.peers.get(&to).map_or(0, |&peer| self.endpoint.unacknowledged(peer))
    }

    /// The number of linked peers.
    pub fn peers(&self) -> usize {
        self.peers.len()
    }

    /// Queues a message in the send buffer (ioctl HPCLSEND).
    ///
    /// # Errors
    /// Why it cannot be sent now; nothing has changed then.
    pub fn send(&mut self, to: u16, bytes: &[u8]) -> Result<(), Refused> {
        if !self.mapped {
            return Err(Refused::NotMapped);
        }
        let &peer = self.peers.get(&to).ok_or(Refused::NoPeer)?;
        if bytes.len() > longest_message(&self.config) {
            return Err(Refused::TooLong);
        }
        // At most Nasy messages in flight (H-12).
        // Canary: the window of the user's messages is not looked at.
        let endless = planted("hpcl-window-ignored");
        if self.endpoint.unacknowledged(peer) >= u64::from(self.config.window) && !endless {
            return Err(Refused::WindowFull);
        }
        let sent = self.endpoint.send(peer, Way::Request, [KIND, 0, 0], &[], bytes);
        sent.map(drop).map_err(|_| Refused::WindowFull)
    }

    /// Handles a received frame (H-03).
    pub fn handle(&mut self, frame: &Frame, now: Time) -> Brought {
        let Payload::Hpcl(bytes) = &frame.payload else { return Brought::default() };
        let before = self.endpoint.counters();
        let mut brought = Brought::default();
        let (receive, from) = (&mut self.receive, frame.from);
        let mut sink = |_: PeerId, _: Way, _: [u64; 3], payload: &[u8]| {
            put(receive, from, payload, now, &mut brought)
        };
        self.endpoint.handle_frame(PathId(from.into()), bytes, ns(now), &mut sink);
        // Here a frame is one message: accepted messages that are not in a ring are kept.
        let accepted = self.endpoint.counters().frames_in_order - before.frames_in_order;
        brought.kept = accepted.saturating_sub(brought.messages);
        self.meet(now);
        brought
    }

    /// Takes the oldest message of the first ring that has one (ioctl HPCLRECV). With one ring for
    /// all peers this is the first to arrive (H-23). The previous message's slot is freed, so kept
    /// messages may enter the ring.
    pub fn receive(&mut self, now: Time) -> (Option<Message>, Brought) {
        let brought = self.release(now);
        let message = self.receive.rings.iter_mut().find_map(VecDeque::pop_front);
        self.reading.clone_from(&message);
        (message, brought)
    }

    /// Frees the slot of the message that was read last, and admits messages that waited for room
    /// (GO, H-16).
    pub fn release(&mut self, now: Time) -> Brought {
        let mut brought = Brought::default();
        if let Some(read) = self.reading.take() {
            self.receive.occupancy.leave(read.since, now);
        }
        if self.endpoint.has_deliverable() {
            let sources: BTreeMap<PeerId, u16> =
                self.peers.iter().map(|(&node, &peer)| (peer, node)).collect();
            let receive = &mut self.receive;
            let mut sink = |peer: PeerId, _: Way, _: [u64; 3], payload: &[u8]| {
                let from = sources.get(&peer).copied().unwrap_or_default();
                put(receive, from, payload, now, &mut brought)
            };
            self.endpoint.deliver(&mut sink);
        }
        brought
    }

    /// Whether a message waits, and the number of rings checked (poll).
    pub fn poll(&self) -> (bool, u64) {
        let rings = &self.receive.rings;
        match rings.iter().position(|ring| !ring.is_empty()) {
            Some(at) => (true, at as u64 + 1),
            None => (false, rings.len() as u64),
        }
    }

    /// The next frame from the protocol.
    pub fn transmit(&mut self, now: Time) -> Option<Frame> {
        let transmit = self.endpoint.poll_transmit(ns(now), &mut self.buffer)?;
        let payload = Payload::Hpcl(self.buffer[..transmit.length].into());
        Some(Frame { from: self.node, to: transmit.path.0 as u16, payload })
    }

    /// When the protocol must be called even if nothing arrives.
    pub fn deadline(&self) -> Option<Time> {
        match self.endpoint.next_deadline() {
            u64::MAX => None,
            deadline_ns => Some(Time::ZERO + Span::from_ns(deadline_ns)),
        }
    }

    /// The peak number of messages in the rings.
    pub fn most_waiting(&self) -> u64 {
        self.receive.occupancy.most()
    }

    /// Fixed memory: receive rings, and send buffers for the messages in flight.
    pub fn mapping(&self) -> Mapping {
        let slot = self.config.frame.count();
        let rings = self.receive.rings.len() as u64;
        let receive = rings * u64::from(self.config.slots) * slot;
        let send = (u64::from(self.config.window) * slot).next_power_of_two();
        Mapping { rings: rings as u32, bytes: receive + send }
    }

    /// Checks the protocol's counters, and Little's law for the rings.
    ///
    /// # Errors
    /// The law that does not hold.
    pub fn audit(&self, now: Time) -> Result<(), Imbalance> {
        let queue = format!("channel {} of node {}", self.number, self.node);
        let inside = self.receive.rings.iter().flatten().chain(&self.reading);
        self.receive.occupancy.audit(&queue, now, inside.map(|one| one.since))?;
        let books = self.endpoint.counters();
        let waiting: u64 =
            self.endpoint.peers().map(|peer| self.endpoint.unacknowledged(peer)).sum();
        let accounted = books.packets_acknowledged + books.packets_failed + waiting;
        if books.packets_queued != accounted {
            return Err(Imbalance {
                queue,
                law: "messages queued = acknowledged + failed + waiting does not hold",
                details: format!("{} queued, {accounted} accounted for", books.packets_queued),
            });
        }
        if books.packets_delivered != self.receive.occupancy.entered() {
            return Err(Imbalance {
                queue,
                law: "messages delivered = messages put into rings does not hold",
                details: format!(
                    "{} delivered, {} put",
                    books.packets_delivered,
                    self.receive.occupancy.entered()
                ),
            });
        }
        Ok(())
    }

    /// Canary: drops the oldest message of a ring.
    #[doc(hidden)]
    pub fn forget_one(&mut self) -> bool {
        self.receive.rings.iter_mut().any(|ring| ring.pop_front().is_some())
    }

    /// Notes links that are up.
    fn meet(&mut self, now: Time) {
        while let Some(news) = self.endpoint.poll_event() {
            match news {
                News::Up { peer, address } => {
                    self.peers.insert((address.node - 1) as u16, peer);
                }
                News::Down { peer, address, .. } => {
                    self.peers.remove(&((address.node - 1) as u16));
                    self.endpoint.close(peer, ns(now));
                }
                News::Gates { .. } => {}
            }
        }
    }
}

/// The module: the device, its channels, and the hook in the link layer (H-02, H-05).
#[derive(Default)]
pub struct Module {
    channels: BTreeMap<u8, Channel>,
    opened: u64,
}

impl Module {
    /// The operation *open*: creates a channel's context and buffers.
    ///
    /// # Errors
    /// [`Refused::Owned`].
    pub fn open(
        &mut self,
        config: &Hpcl,
        number: u8,
        node: u16,
        nodes: u16,
        seed: u64,
    ) -> Result<(), Refused> {
        if self.channels.contains_key(&number) {
            return Err(Refused::Owned);
        }
        self.opened += 1;
        let channel = Channel::new(config, number, node, nodes, self.opened, seed);
        self.channels.insert(number, channel);
        Ok(())
    }

    /// The operation *mmap*: the user can read the channel's buffers from now on.
    ///
    /// # Errors
    /// [`Refused::NotOpen`].
    pub fn map(&mut self, number: u8) -> Result<Mapping, Refused> {
        let channel = self.channels.get_mut(&number).ok_or(Refused::NotOpen)?;
        channel.mapped = true;
        Ok(channel.mapping())
    }

    /// The operation *poll*: whether a message waits.
    ///
    /// # Errors
    /// [`Refused::NotOpen`].
    pub fn poll(&self, number: u8) -> Result<bool, Refused> {
        self.channels.get(&number).map(|channel| channel.poll().0).ok_or(Refused::NotOpen)
    }

    /// The channel for an *ioctl* or a frame.
    ///
    /// # Errors
    /// [`Refused::NotOpen`].
    pub fn channel(&mut self, number: u8) -> Result<&mut Channel, Refused> {
        self.channels.get_mut(&number).ok_or(Refused::NotOpen)
    }

    /// The operation *release*: frees the channel and its buffers.
    ///
    /// # Errors
    /// [`Refused::NotOpen`].
    pub fn release(&mut self, number: u8) -> Result<(), Refused> {
        self.channels.remove(&number).map(|_| ()).ok_or(Refused::NotOpen)
    }

    /// All channels.
    pub fn channels(&mut self) -> btree_map::ValuesMut<'_, u8, Channel> {
        self.channels.values_mut()
    }

    /// Fixed memory of all channels.
    pub fn bytes(&self) -> u64 {
        self.channels.values().map(|channel| channel.mapping().bytes).sum()
    }

    /// The channel in a frame's header.
    pub fn number_of(frame: &[u8]) -> u8 {
        // Byte 2 of the protocol's header is the function (PROTOCOL.md); here it is the channel.
        frame.get(2).copied().unwrap_or_default()
    }
}

/// The longest message in one frame.
pub fn longest_message(config: &Hpcl) -> usize {
    use bellwire_wire::frame::FRAME_OVERHEAD_BYTES;
    use bellwire_wire::frame::section::SECTION_BYTES;
    /// A packet header with a length of two bytes and no other field.
    const PACKET_BYTES: usize = 4;
    config.frame.count() as usize - FRAME_OVERHEAD_BYTES - SECTION_BYTES - PACKET_BYTES
}

/// The state machine's configuration: HPCL's, with this window and these buffers.
fn protocol(config: &Hpcl) -> Protocol {
    let frame_bytes = config.frame.count() as usize;
    // Canary: neither is the protocol's.
    let window_frames = if planted("hpcl-window-ignored") { 64 } else { config.window };
    let window = u64::from(window_frames) * config.frame.count();
    Protocol {
        window_frames,
        packet_bytes: longest_message(config) as u32,
        receive_bytes: config.credit.count() as u32,
        send_bytes: window.next_power_of_two() as u32,
        links: 64,
        queue_pairs: 1,
        early_frames: 1,
        ..Protocol::hpcl(frame_bytes)
    }
}

fn put(
    receive: &mut ReceiveRings,
    from: u16,
    payload: &[u8],
    now: Time,
    brought: &mut Brought,
) -> Verdict {
    if receive.put(from, payload, now) {
        brought.messages += 1;
        brought.bytes += payload.len() as u64;
        Verdict::Taken
    } else {
        Verdict::Stalled
    }
}

fn address(node: u16, channel: u8) -> FunctionId {
    FunctionId { node: u32::from(node) + 1, function: channel }
}

fn ns(now: Time) -> u64 {
    now.ps() / 1000
}
