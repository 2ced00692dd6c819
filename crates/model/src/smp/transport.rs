//! The transport layer of one end: what waits to be sent, and the receive buffers (S-13 to S-15, S-20, S-21).

use std::collections::VecDeque;

use bellwire_protocol::link_layer::{Cost, CreditGate, CreditLedger, Lacking, Overflow};
use bellwire_wire::link::tlp::{CHECK_BYTES, OVERHEAD_BYTES};

use crate::engine::{Arbiter, Policy, Random};
use crate::stats::{Occupancy, Tally};
use crate::units::{Span, Time};

use super::config::{Config, Receive};

/// Most virtual channels.
pub const CHANNELS: usize = 2;

/// What a TLP costs beside its header credit.
pub fn cost(tlp: &[u8]) -> Cost {
    Cost::of(tlp.len() - OVERHEAD_BYTES)
}

/// Bytes of a TLP that cross the border to the network layer: header and payload. The check is made and looked at on this side.
fn moved(tlp: &[u8]) -> usize {
    tlp.len() - CHECK_BYTES
}

/// A packet in the transport layer, with the moment at which the network layer began to hand it over.
#[derive(Debug)]
pub struct Packet {
    /// Its bytes.
    pub tlp: Vec<u8>,
    /// When its first flit left the sender's network layer.
    pub left: Time,
}

/// The sending side: a short queue for each channel, its credits, and whose turn it is.
pub struct SendSide {
    queues: [VecDeque<(Time, Packet)>; CHANNELS],
    gates: [CreditGate; CHANNELS],
    turn: Arbiter,
    channels: usize,
    room: usize,
    layer: Span,
    /// When the path into the layer is free.
    free_at: [Time; CHANNELS],
    /// Packets sent, by channel.
    pub sent: [u64; CHANNELS],
    /// Packets taken from the network layer, by channel.
    pub handed: [u64; CHANNELS],
}

/// What the sending side would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The channel whose packet may go.
    Send(usize),
    /// Nothing is there, or not before that time.
    Idle(Option<Time>),
    /// Something is there, and cannot go: what is missing for each channel that has something.
    Stalled([Option<Stall>; CHANNELS]),
}

/// Why a packet cannot go.
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
    /// Empty, without credits.
    pub fn new(config: &Config, random: &mut Random) -> SendSide {
        SendSide {
            queues: Default::default(),
            gates: Default::default(),
            turn: Arbiter::new(Policy::RoundRobin, CHANNELS, random),
            channels: config.channels.into(),
            room: config.send_packets,
            layer: config.layer(),
            free_at: [Time::ZERO; CHANNELS],
            sent: [0; CHANNELS],
            handed: [0; CHANNELS],
        }
    }

    /// Whether another packet of the channel is taken.
    pub fn has_room(&self, channel: usize) -> bool {
        channel < self.channels && self.queues[channel].len() < self.room
    }

    /// Takes a packet from the network layer. It can be sent from the time that is returned on.
    pub fn enter(&mut self, now: Time, channel: usize, tlp: Vec<u8>, config: &Config) -> Time {
        // The layer is pipelined: a packet follows the one before as soon as that has gone in.
        let begins = now.max(self.free_at[channel]);
        self.free_at[channel] = begins + config.pass(moved(&tlp));
        let ready = begins + self.layer;
        self.handed[channel] += 1;
        self.queues[channel].push_back((ready, Packet { tlp, left: begins }));
        ready
    }

    /// The receiver granted credits.
    pub fn gate(&mut self, channel: usize) -> &mut CreditGate {
        &mut self.gates[channel]
    }

    /// Header and data credits that a channel has left.
    pub fn credits(&self, channel: usize) -> (u8, u16) {
        self.gates[channel].left()
    }

    /// What can be done now, given what the replay buffer has room for.
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

    /// Takes out the packet that [`SendSide::next`] named, and its credits.
    pub fn take(&mut self, channel: usize) -> Option<Packet> {
        let (_, packet) = self.queues[channel].pop_front()?;
        self.gates[channel].spend(cost(&packet.tlp));
        self.sent[channel] += 1;
        Some(packet)
    }

    /// Whether nothing waits to be sent.
    pub fn is_empty(&self) -> bool {
        self.queues.iter().all(VecDeque::is_empty)
    }
}

/// A packet in a receive buffer.
struct Buffered {
    packet: Packet,
    /// Whether its link CRC was right. One that was not is here only while it goes through the exit, and has no credits.
    is_sound: bool,
    entered: Time,
    /// When its header is there, and when all of it is.
    head: Time,
    tail: Time,
}

/// A packet that has gone through the exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exited {
    /// Its channel.
    pub channel: usize,
    /// Whether it was whole; else its tail was marked, and the network layer has dropped it.
    pub is_sound: bool,
}

/// The receiving side: a buffer for each channel, and one exit into the network layer, which channels use in turn.
pub struct ReceiveSide {
    buffers: [VecDeque<Buffered>; CHANNELS],
    ledgers: [CreditLedger; CHANNELS],
    turn: Arbiter,
    /// The channel whose packet is leaving, until when.
    leaving: Option<(usize, Time)>,
    /// When the exit can begin with the next packet.
    exit_free: Time,
    done: [VecDeque<Packet>; CHANNELS],
    room: usize,
    policy: Receive,
    gap: Span,
    /// Packets in the buffers, and how long they stay.
    pub occupancy: [Occupancy; CHANNELS],
    /// Picoseconds from the first flit's leaving the sender's network layer to the last flit's reaching this one.
    pub delays: Tally,
    /// Packets that came, by channel.
    pub received: [u64; CHANNELS],
    /// Packets that were being passed on when their link CRC proved wrong: the network layer got them with a bad tail, and dropped them.
    pub nullified: u64,
    /// Canary: the network layer does not look at the mark of a bad tail. Whoever compares what comes must notice.
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
            exit_free: Time::ZERO,
            done: Default::default(),
            room: config.network_packets,
            policy: config.receive,
            gap: config.drain_gap(),
            occupancy: Default::default(),
            delays: Tally::default(),
            received: [0; CHANNELS],
            nullified: 0,
            ignores_marks: false,
        }
    }

    /// The buffer's credits.
    pub fn ledger(&self, channel: usize) -> &CreditLedger {
        &self.ledgers[channel]
    }

    /// A packet comes into its buffer now, of which the header is there at `head` and all at `tail`.
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

    /// A packet has come to its end at `tail`, and its link CRC is wrong. Under cut-through its header, which was there at `head`, may have
    /// gone through the exit by then (S-21): the rest follows, and the last flit has a mark by which the network layer drops all of it, as
    /// PCIe's cut-through switches nullify what they have begun to send. It gets no credits: those that the sender spent are good for the
    /// packet when it comes again. Whether it is passed on; if not, its buffer is free again as if it had not come.
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
        let has_begun = head.max(self.exit_free) < tail;
        if self.policy == Receive::StoreAndForward || !exit_is_free || !has_begun {
            return false;
        }
        let buffered = Buffered { packet, is_sound: false, entered: now, head, tail };
        self.buffers[channel].push_back(buffered);
        true
    }

    /// Begins with the next packet if the exit is free and the network layer has room; when it will have left.
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
        let bytes =
            front.packet.tlp.len() - OVERHEAD_BYTES + bellwire_wire::link::tlp::HEADER_BYTES;
        let pass = config.pass(bytes);
        let ends = match self.policy {
            // Flits leave while others still come in; the last leaves when it is there.
            Receive::CutThrough => (front.head.max(self.exit_free) + pass).max(front.tail),
            Receive::StoreAndForward => front.tail.max(self.exit_free) + pass,
        };
        let ends = ends.max(now);
        self.leaving = Some((channel, ends));
        Some(ends)
    }

    /// The packet that was leaving has left.
    pub fn end(&mut self, now: Time) -> Option<Exited> {
        let (channel, ends) = self.leaving.filter(|leaving| leaving.1 <= now)?;
        self.leaving = None;
        self.exit_free = ends + self.gap;
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

    /// What the network layer has for its user.
    pub fn take(&mut self, channel: usize) -> Option<Packet> {
        self.done[channel].pop_front()
    }

    /// Whether the buffers hold nothing.
    pub fn is_empty(&self) -> bool {
        self.buffers.iter().all(VecDeque::is_empty)
    }
}
