//! The transport layer of one end: send queues and receive buffers (S-13 to S-15, S-20, S-21).

use std::collections::VecDeque;

use bellwire_protocol::link_layer::{Cost, CreditGate, CreditLedger, Lacking, Overflow};
use bellwire_wire::link::network::OPTIMISED_BYTES;
use bellwire_wire::link::tlp::OVERHEAD_BYTES;

use crate::engine::{Arbiter, Policy, Random, Server};
use crate::stats::{Occupancy, Tally};
use crate::units::{Span, Time};

use super::config::{Config, Header, Receive};

/// The most virtual channels.
pub const CHANNELS: usize = 2;

/// The data-credit cost of a TLP; its header costs one header credit.
pub fn cost(tlp: &[u8]) -> Cost {
    Cost::of(tlp.len() - OVERHEAD_BYTES)
}

/// Bytes of a TLP that cross between network and transport layer: the network packet. Header and
/// check of the TLP are the transport layer's own, and an optimised network header travels in that
/// header's address (S-11).
fn crossing(tlp: &[u8], header: Header) -> usize {
    let payload = tlp.len() - OVERHEAD_BYTES;
    match header {
        Header::Standard => payload,
        Header::Optimised => OPTIMISED_BYTES + payload,
    }
}

/// A packet in the transport layer, with the time when the network layer began to hand it over.
#[derive(Debug)]
pub struct Packet {
    /// Its bytes.
    pub tlp: Vec<u8>,
    /// When its first flit left the sender's network layer.
    pub left: Time,
}

/// The sending side: a short queue and credits per channel, and a round-robin pointer.
pub struct SendSide {
    queues: [VecDeque<(Time, Packet)>; CHANNELS],
    gates: [CreditGate; CHANNELS],
    turn: Arbiter,
    channels: usize,
    room: usize,
    layer: Span,
    /// Each channel's path into the layer.
    entries: [Server; CHANNELS],
    /// Packets sent, by channel.
    pub sent: [u64; CHANNELS],
    /// Packets handed over by the network layer, by channel.
    pub handed: [u64; CHANNELS],
}

/// The next step of the sending side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// This channel's packet may go.
    Send(usize),
    /// Nothing is ready, or not before that time.
    Idle(Option<Time>),
    /// Packets are ready but cannot go: the missing resource of each such channel.
    Stalled([Option<Stall>; CHANNELS]),
}

/// The missing resource of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stall {
    /// No header credit.
    Headers,
    /// Not enough data credits.
    Data,
    /// The replay buffer is full.
    Replay,
}

impl SendSide {
    /// Empty queues, without credits.
    pub fn new(config: &Config, random: &mut Random) -> SendSide {
        SendSide {
            queues: Default::default(),
            gates: Default::default(),
            turn: Arbiter::new(Policy::RoundRobin, CHANNELS, random),
            channels: config.channels.into(),
            room: config.send_packets,
            layer: config.layer(),
            entries: Default::default(),
            sent: [0; CHANNELS],
            handed: [0; CHANNELS],
        }
    }

    /// Whether the channel accepts another packet.
    pub fn has_room(&self, channel: usize) -> bool {
        channel < self.channels && self.queues[channel].len() < self.room
    }

    /// Accepts a packet from the network layer. Returns the time from which it can be sent.
    pub fn enter(&mut self, now: Time, channel: usize, tlp: Vec<u8>, config: &Config) -> Time {
        // The layer is pipelined: a packet can follow as soon as the previous one has entered. It
        // reads waiting packets at its own clock, not at the network layer's.
        let pass = config.cycle() * config.beats(crossing(&tlp, config.header));
        let begins = self.entries[channel].reserve(now, pass).begins;
        let ready = begins + self.layer;
        self.handed[channel] += 1;
        self.queues[channel].push_back((ready, Packet { tlp, left: begins }));
        ready
    }

    /// The credits that the receiver has granted.
    pub fn gate(&mut self, channel: usize) -> &mut CreditGate {
        &mut self.gates[channel]
    }

    /// Remaining header and data credits of a channel.
    pub fn credits(&self, channel: usize) -> (u8, u16) {
        self.gates[channel].left()
    }

    /// The next step; `has_room` asks for room in the replay buffer.
    pub fn next(&mut self, now: Time, has_room: impl Fn(usize) -> bool) -> Next {
        let mut stalls = [None; CHANNELS];
        let mut may_go = 0;
        let mut later = None::<Time>;
        for (channel, stall) in stalls.iter_mut().enumerate() {
            let Some((ready, packet)) = self.queues[channel].front() else { continue };
            if *ready > now {
                later = Some(later.map_or(*ready, |time| time.min(*ready)));
                continue;
            }
            match self.gates[channel].allows(cost(&packet.tlp)) {
                Err(Lacking::Header) => *stall = Some(Stall::Headers),
                Err(Lacking::Data) => *stall = Some(Stall::Data),
                Ok(()) if !has_room(packet.tlp.len()) => *stall = Some(Stall::Replay),
                Ok(()) => may_go |= 1 << channel,
            }
        }
        match self.turn.grant(may_go) {
            Some(channel) => Next::Send(channel),
            None if stalls != [None; CHANNELS] => Next::Stalled(stalls),
            None => Next::Idle(later),
        }
    }

    /// Removes the packet that [`SendSide::next`] named, and spends its credits.
    pub fn take(&mut self, channel: usize) -> Option<Packet> {
        let (_, packet) = self.queues[channel].pop_front()?;
        self.gates[channel].spend(cost(&packet.tlp));
        self.sent[channel] += 1;
        Some(packet)
    }

    /// Whether the queues are empty.
    pub fn is_empty(&self) -> bool {
        self.queues.iter().all(VecDeque::is_empty)
    }
}

/// A packet in a receive buffer.
struct Buffered {
    packet: Packet,
    /// Whether its link CRC is right. A bad packet is here only while it passes the exit, and holds
    /// no credits.
    is_sound: bool,
    entered: Time,
    /// When its header has arrived, and when all of it has.
    head: Time,
    tail: Time,
}

/// A packet that has passed the exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exited {
    /// Its channel.
    pub channel: usize,
    /// Whether it was sound; otherwise it was marked bad and the network layer has dropped it.
    pub is_sound: bool,
}

/// The receiving side: one buffer per channel, and one exit into the network layer, round-robin
/// over channels.
pub struct ReceiveSide {
    buffers: [VecDeque<Buffered>; CHANNELS],
    ledgers: [CreditLedger; CHANNELS],
    turn: Arbiter,
    /// The channel whose packet is leaving, and when it will have left.
    leaving: Option<(usize, Time)>,
    /// The exit into the network layer.
    exit: Server,
    done: [VecDeque<Packet>; CHANNELS],
    room: usize,
    policy: Receive,
    /// Packets in the buffers, and their time there.
    pub occupancy: [Occupancy; CHANNELS],
    /// Picoseconds from the first flit at the sender's network layer to the last flit at the
    /// receiver's.
    pub delays: Tally,
    /// Packets received, by channel.
    pub received: [u64; CHANNELS],
    /// Packets whose link CRC proved wrong while they were forwarded. The network layer got them
    /// marked bad, and dropped them.
    pub nullified: u64,
    /// Canary: the network layer ignores the bad mark. A checker that compares packets must notice.
    pub ignores_marks: bool,
}

impl ReceiveSide {
    /// Empty buffers.
    pub fn new(config: &Config, random: &mut Random) -> ReceiveSide {
        ReceiveSide {
            buffers: Default::default(),
            ledgers: [CreditLedger::new(config.headers, config.data); CHANNELS],
            turn: Arbiter::new(Policy::RoundRobin, CHANNELS, random),
            leaving: None,
            exit: Server::default(),
            done: Default::default(),
            room: config.network_packets,
            policy: config.receive,
            occupancy: Default::default(),
            delays: Tally::default(),
            received: [0; CHANNELS],
            nullified: 0,
            ignores_marks: false,
        }
    }

    /// The credits of a channel's buffer.
    pub fn ledger(&self, channel: usize) -> &CreditLedger {
        &self.ledgers[channel]
    }

    /// Puts an arriving packet into its buffer; its header is there at `head`, all of it at `tail`.
    ///
    /// # Errors
    /// [`Overflow`] if the sender had no credit for it.
    pub fn enter(
        &mut self,
        now: Time,
        channel: usize,
        packet: Packet,
        head: Time,
        tail: Time,
    ) -> Result<(), Overflow> {
        self.ledgers[channel].enter(cost(&packet.tlp))?;
        self.occupancy[channel].enter(now);
        let buffered = Buffered { packet, is_sound: true, entered: now, head, tail };
        self.buffers[channel].push_back(buffered);
        Ok(())
    }

    /// Handles a packet with a wrong link CRC that is complete at `tail`. With cut-through its
    /// header, there at `head`, may have passed the exit by then (S-21). In that case the rest
    /// follows, and the last flit is marked bad. The network layer then drops the whole packet, as
    /// PCIe's cut-through switches nullify a packet that they have begun to send. The packet takes
    /// no credits: those that the sender spent serve the retransmission. Returns whether the packet
    /// is forwarded; if not, its buffer stays free.
    pub fn enter_damaged(
        &mut self,
        now: Time,
        channel: usize,
        packet: Packet,
        head: Time,
        tail: Time,
    ) -> bool {
        let exit_is_free = self.leaving.is_none()
            && self.buffers[channel].is_empty()
            && self.done[channel].len() < self.room;
        let has_begun = head.max(self.exit.free_at()) < tail;
        if self.policy == Receive::StoreAndForward || !exit_is_free || !has_begun {
            return false;
        }
        let buffered = Buffered { packet, is_sound: false, entered: now, head, tail };
        self.buffers[channel].push_back(buffered);
        true
    }

    /// Starts the next packet if the exit is free and the network layer has room. Returns when it
    /// will have left.
    pub fn begin(&mut self, now: Time, config: &Config) -> Option<Time> {
        if self.leaving.is_some() {
            return None;
        }
        let ready = |channel: &usize| {
            let there = self.buffers[*channel].front().is_some();
            there && self.done[*channel].len() < self.room
        };
        let requests = (0..CHANNELS).filter(ready).fold(0, |bits, channel| bits | 1 << channel);
        let channel = self.turn.grant(requests)?;
        let front = self.buffers[channel].front()?;
        let pass = config.pass(crossing(&front.packet.tlp, config.header));
        let free_at = self.exit.free_at();
        let ends = match self.policy {
            // Flits leave while others still arrive; the last leaves once it is there.
            Receive::CutThrough => (front.head.max(free_at) + pass).max(front.tail),
            Receive::StoreAndForward => front.tail.max(free_at) + pass,
        };
        let ends = ends.max(now);
        self.exit.reserve(ends.saturating_sub(pass), pass);
        self.leaving = Some((channel, ends));
        Some(ends)
    }

    /// Ends the packet that was leaving.
    pub fn end(&mut self, now: Time) -> Option<Exited> {
        let (channel, _) = self.leaving.take_if(|leaving| leaving.1 <= now)?;
        let gone = self.buffers[channel].pop_front()?;
        if !gone.is_sound {
            self.nullified += 1;
            if self.ignores_marks {
                self.done[channel].push_back(gone.packet);
            }
            return Some(Exited { channel, is_sound: false });
        }
        self.ledgers[channel].leave(cost(&gone.packet.tlp));
        self.occupancy[channel].leave(gone.entered, now);
        self.delays.add((now - gone.packet.left).ps());
        self.received[channel] += 1;
        self.done[channel].push_back(gone.packet);
        Some(Exited { channel, is_sound: true })
    }

    /// Takes the first packet that the network layer holds for its user.
    pub fn take(&mut self, channel: usize) -> Option<Packet> {
        self.done[channel].pop_front()
    }

    /// Whether the buffers are empty.
    pub fn is_empty(&self) -> bool {
        self.buffers.iter().all(VecDeque::is_empty)
    }
}
