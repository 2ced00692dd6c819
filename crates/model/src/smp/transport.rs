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

#[cfg(test)]
mod tests {
    use super::*;

    use bellwire_wire::link::dllp::Granted;

    fn config(change: impl FnOnce(&mut Config)) -> Config {
        let mut config = Config::recommended();
        config.clock = crate::units::Frequency::from_mhz(100);
        config.network_clock = crate::units::Frequency::from_mhz(100);
        (config.layer_cycles, config.send_packets, config.network_packets) = (4, 2, 2);
        (config.headers, config.data, config.channels) = (4, 64, 2);
        config.header = Header::Standard;
        change(&mut config);
        config
    }

    fn ns(ns: u64) -> Time {
        Time::ZERO + Span::from_ns(ns)
    }

    /// A TLP with this much payload.
    fn tlp(payload: usize) -> Vec<u8> {
        vec![0; OVERHEAD_BYTES + payload]
    }

    fn packet(payload: usize) -> Packet {
        Packet { tlp: tlp(payload), left: Time::ZERO }
    }

    /// A cycle takes 10 ns and moves 16 B. Packets of 64 B follow each other after 4 cycles, and a
    /// packet is ready 4 cycles after it began.
    #[test]
    fn packets_enter_one_after_another() {
        let config = config(|_| ());
        let mut side = SendSide::new(&config, &mut Random::new(1));
        assert!(side.is_empty() && side.has_room(0) && side.has_room(1) && !side.has_room(2));
        assert_eq!(side.enter(ns(0), 0, tlp(64), &config), ns(40));
        assert!(!side.is_empty());
        assert_eq!(side.enter(ns(0), 0, tlp(64), &config), ns(40 + 40));
        assert!(!side.has_room(0) && side.has_room(1), "two wait on one channel");
        assert_eq!(side.enter(ns(10), 1, tlp(64), &config), ns(10 + 40), "a path of its own");
        assert_eq!(side.handed, [2, 1]);
        let next = |side: &mut SendSide, now, room| side.next(ns(now), |_| room);
        // Nothing is ready before 40 ns. Then credits are missing, and at last the replay buffer.
        assert_eq!(next(&mut side, 39, true), Next::Idle(Some(ns(40))));
        let stalled = |first, second| Next::Stalled([first, second]);
        assert_eq!(next(&mut side, 40, true), stalled(Some(Stall::Headers), None));
        side.gate(0).handle_granted(Granted { headers: 4, data: 3 });
        assert_eq!(next(&mut side, 40, true), stalled(Some(Stall::Data), None));
        side.gate(0).handle_granted(Granted { headers: 4, data: 4 });
        assert_eq!(next(&mut side, 40, false), stalled(Some(Stall::Replay), None));
        assert_eq!(next(&mut side, 40, true), Next::Send(0));
        assert_eq!(side.take(0).map(|packet| packet.left), Some(ns(0)));
        assert_eq!((side.credits(0), side.sent), ((3, 0), [1, 0]));
        // The earlier of the two that come.
        assert_eq!(next(&mut side, 49, true), Next::Idle(Some(ns(50))));
    }

    /// Cut-through: a sound packet of 64 B, whose header is there at 100 ns and the rest at 200,
    /// leaves when its last flit is there. Stored and forwarded it leaves 40 ns later.
    #[test]
    fn packets_leave_with_their_last_flit() {
        for (policy, ends) in [(Receive::CutThrough, 200), (Receive::StoreAndForward, 240)] {
            let config = config(|config| config.receive = policy);
            let mut side = ReceiveSide::new(&config, &mut Random::new(1));
            assert!(side.is_empty());
            side.enter(ns(90), 1, packet(64), ns(100), ns(200)).expect("it has credits");
            assert!(!side.is_empty());
            assert_eq!(side.ledger(1).held(), (1, 4));
            assert_eq!(side.begin(ns(100), &config), Some(ns(ends)));
            assert_eq!(side.begin(ns(100), &config), None, "the exit is taken");
            assert_eq!(side.end(ns(ends - 1)), None);
            assert_eq!(side.end(ns(ends)), Some(Exited { channel: 1, is_sound: true }));
            assert_eq!((side.received, side.nullified), ([0, 1], 0));
            assert!(side.is_empty() && side.take(1).is_some() && side.take(1).is_none());
            assert_eq!(side.ledger(1).granted(), Granted { headers: 5, data: 68 });
        }
    }

    /// A damaged packet is forwarded only by cut-through, if the exit and the channel are free, the
    /// network layer has room, and its header leaves before its tail is there.
    #[test]
    fn damaged_packets_are_forwarded_if_they_have_begun() {
        let forwards = |change: fn(&mut ReceiveSide), policy, head| {
            let config = config(|config| config.receive = policy);
            let mut side = ReceiveSide::new(&config, &mut Random::new(1));
            change(&mut side);
            let forwarded = side.enter_damaged(ns(90), 0, packet(64), ns(head), ns(200));
            assert_eq!(side.buffers[0].iter().any(|it| !it.is_sound), forwarded);
            forwarded
        };
        let cut = Receive::CutThrough;
        assert!(forwards(|_| (), cut, 100) && forwards(|_| (), cut, 199));
        assert!(!forwards(|_| (), cut, 200), "it has not begun");
        assert!(!forwards(|_| (), Receive::StoreAndForward, 100));
        assert!(!forwards(|side| side.leaving = Some((1, ns(150))), cut, 100));
        let waits = |side: &mut ReceiveSide| {
            side.enter(ns(80), 0, packet(64), ns(85), ns(90)).expect("it has credits");
        };
        assert!(!forwards(waits, cut, 100));
        assert!(forwards(|side| side.done[0].push_back(packet(8)), cut, 100));
        assert!(!forwards(|side| side.done[0].extend([packet(8), packet(8)]), cut, 100));
        assert!(!forwards(|side| _ = side.exit.reserve(ns(190), Span::from_ns(10)), cut, 100));
    }

    /// Bad packets take no credits and are dropped; a network layer with two packets takes none.
    #[test]
    fn the_network_layer_has_room_for_two() {
        let config = config(|_| ());
        let mut side = ReceiveSide::new(&config, &mut Random::new(1));
        assert!(side.enter_damaged(ns(0), 0, packet(64), ns(10), ns(50)));
        side.begin(ns(10), &config).expect("it leaves");
        assert_eq!(side.end(ns(50)), Some(Exited { channel: 0, is_sound: false }));
        assert_eq!((side.nullified, side.take(0).is_none()), (1, true));
        for number in 0..3 {
            let at = 100 * (number + 1);
            side.enter(ns(at), 0, packet(64), ns(at), ns(at + 40)).expect("it has credits");
            match side.begin(ns(at), &config) {
                Some(ends) => assert!(number < 2 && side.end(ends).is_some()),
                None => assert_eq!(number, 2),
            }
        }
        assert!(side.take(0).is_some() && side.begin(ns(400), &config).is_some());
    }
}
