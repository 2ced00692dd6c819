//! A complete direct link: two ends, each with its layers, and eight lanes in each direction (S-13
//! to S-22).
//!
//! ```text
//! offer > transport > link layer > lanes > link layer > receive buffer > network layer > take
//!         SendSide    Transmitter  Lanes   Receiver     ReceiveSide
//! ```
//!
//! It is used like a bidirectional [`Channel`](crate::engine::Channel) with two virtual channels.
//! The sender *offers* a packet, and gets it back if the transport layer is full.
//! [`LinkEvent::Room`] says when a retry can succeed. Each packet that arrives raises
//! [`LinkEvent::Arrived`] and is *taken*, then or later. Bytes are real: TLPs are framed, numbered,
//! striped over lanes that may flip bits, checked, and retransmitted.
//!
//! A model gives each link a number, and a function that wraps the link's events in its own. It
//! passes these events to [`Link::handle`], and acts on `Room` and `Arrived` itself.

use std::collections::VecDeque;

use bellwire_protocol::canary::planted;
use bellwire_protocol::link_layer::{Arrival, Receiver, TimedOut, Transmitter};
use bellwire_wire::link::dllp::{DLLP_BYTES, Dllp, Stage};
use bellwire_wire::link::llp::Llp;
use bellwire_wire::link::tlp::{HEADER_BYTES, Tlp};

use crate::engine::{Chance, Event, Schedule, Server, Waits};
use crate::stats::Imbalance;
use crate::units::{Span, Time};

use super::config::Config;
use super::lanes::{Lanes, MAX_LANES};
use super::training::{Choice, Failure, Role, Trainer, train};
use super::transport::{CHANNELS, Exited, Next, Packet, ReceiveSide, SendSide, Stall};

/// An event of a link. `end` is 0 or 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// Training is over: both ends have credits, and packets may go.
    Up,
    /// An end may have something to send.
    Line {
        /// The sending end.
        end: u8,
    },
    /// A frame arrives at an end.
    Frame {
        /// The receiving end.
        end: u8,
    },
    /// A link-layer packet arrives at an end.
    LinkPacket {
        /// The receiving end.
        end: u8,
    },
    /// A packet has left the receive buffer.
    Left {
        /// The end of the buffer.
        end: u8,
    },
    /// A timer of an end may have expired.
    Timer {
        /// The end of the timer.
        end: u8,
    },
    /// For the user: a packet can be taken.
    Arrived {
        /// The receiving end.
        end: u8,
        /// On which virtual channel.
        channel: u8,
    },
    /// For the user: a packet went onto the wire for the first time, so another can be offered.
    Room {
        /// The sending end.
        end: u8,
        /// On which virtual channel.
        channel: u8,
    },
}

impl LinkEvent {
    /// A value for the trace hash: different events have different values, all below 2^8.
    pub fn trace(self) -> u64 {
        let (kind, end, channel) = match self {
            LinkEvent::Up => (0, 0, 0),
            LinkEvent::Line { end } => (1, end, 0),
            LinkEvent::Frame { end } => (2, end, 0),
            LinkEvent::LinkPacket { end } => (3, end, 0),
            LinkEvent::Left { end } => (4, end, 0),
            LinkEvent::Timer { end } => (5, end, 0),
            LinkEvent::Arrived { end, channel } => (6, end, channel),
            LinkEvent::Room { end, channel } => (7, end, channel),
        };
        kind | u64::from(end) << 4 | u64::from(channel) << 5
    }
}

/// The first time that an end had a packet and a free line but could not send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstStall {
    /// When.
    pub at: Time,
    /// Packets sent so far, by channel.
    pub sent: [u64; CHANNELS],
    /// Packets handed over by the network layer so far, by channel: sent ones, and those that wait
    /// in the transport layer.
    pub handed: [u64; CHANNELS],
    /// The missing resource of each channel that had a packet.
    pub lacks: [Option<Stall>; CHANNELS],
}

/// Counters of an end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Bytes of TLPs, without retransmissions.
    pub tlp_bytes: u64,
    /// Frames sent, retransmissions included.
    pub frames: u64,
    /// Frames retransmitted.
    pub repeated: u64,
    /// Link-layer packets sent.
    pub link_packets: u64,
    /// Times that the line stalled although a packet was ready.
    pub stalls: u64,
    /// Frames and link-layer packets that arrived damaged.
    pub damaged: u64,
    /// Packets that arrived without credit or were not posted writes. Always zero, unless a fault
    /// is planted.
    pub refused: u64,
    /// Times that the link retrained.
    pub retrained: u64,
}

struct Flying {
    bytes: Vec<u8>,
    /// When its packet left the sender's network layer, for the delay.
    left: Time,
    took: Span,
}

/// One end of a link.
pub struct End {
    send: SendSide,
    transmitter: Transmitter<Packet>,
    receiver: Receiver,
    /// The receive buffers and the network layer behind them.
    pub receive: ReceiveSide,
    lanes: Lanes,
    /// The line to the other end.
    pub line: Server,
    /// Pending credit updates by channel, and their remaining repetitions.
    update: [bool; CHANNELS],
    again_at: [Option<Time>; CHANNELS],
    again_left: [u32; CHANNELS],
    frames: VecDeque<Flying>,
    link_packets: VecDeque<(Time, [u8; DLLP_BYTES])>,
    timer_at: Option<Time>,
    line_at: Option<Time>,
    /// The first stall, if there was one.
    pub first_stall: Option<FirstStall>,
    /// Counters.
    pub counters: Counters,
}

/// Capabilities of an end for training.
#[derive(Clone, Copy, Debug)]
pub struct Port {
    /// Its role.
    pub role: Role,
    /// Its lanes, one bit each.
    pub lanes: u8,
    /// Its fastest lane rate, in bits per second.
    pub fastest_hz: u64,
}

impl Port {
    /// All lanes, at the configured speed.
    pub fn new(role: Role, config: &Config) -> Port {
        let lanes = u8::MAX >> (MAX_LANES as u8 - config.lanes);
        Port { role, lanes, fastest_hz: config.lane_rate.hz() }
    }
}

/// A link between two ends.
pub struct Link<E> {
    config: Config,
    index: u16,
    wrap: fn(u16, LinkEvent) -> E,
    ends: [End; 2],
    choice: Choice,
    up_at: Time,
    is_up: bool,
}

/// Duration of an ordered set: 16 symbols of 4 ns, because training begins at 2.5 Gbps.
const ORDERED_SET: Span = Span::from_ns(64);

impl<E: Event> Link<E> {
    /// Trains a link, which starts now; `wrap` makes an event of the model from the link's `index`
    /// and event.
    ///
    /// # Errors
    /// Why training fails.
    pub fn train(
        config: &Config,
        ports: [Port; 2],
        wires: u8,
        index: u16,
        wrap: fn(u16, LinkEvent) -> E,
        schedule: &mut Schedule<E>,
    ) -> Result<Link<E>, Failure> {
        let ends = ports.map(|port| Trainer::new(port.role, port.lanes, port.fastest_hz));
        let (choice, sets) = train(ends, wires)?;
        let up_at = schedule.now() + ORDERED_SET * u64::from(sets);
        schedule.at(up_at, wrap(index, LinkEvent::Up));
        let ends = [(); 2].map(|()| End::new(config, choice, schedule));
        Ok(Link { config: config.clone(), index, wrap, ends, choice, up_at, is_up: false })
    }

    /// A link that is up from the start: one RC and one EP with all lanes.
    pub fn trained(
        config: &Config,
        index: u16,
        wrap: fn(u16, LinkEvent) -> E,
        schedule: &mut Schedule<E>,
    ) -> Link<E> {
        let port = Port::new(Role::Rc, config);
        let choice = Choice { lanes: port.lanes, rate_hz: port.fastest_hz };
        let ends = [(); 2].map(|()| End::new(config, choice, schedule));
        let up_at = schedule.now();
        let mut link =
            Link { config: config.clone(), index, wrap, ends, choice, up_at, is_up: false };
        link.come_up(schedule);
        link
    }

    /// The result of training.
    pub fn choice(&self) -> Choice {
        self.choice
    }

    /// When the link came up or will come up.
    pub fn up_at(&self) -> Time {
        self.up_at
    }

    /// Parameters.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// One of the two ends.
    pub fn end(&self, end: u8) -> &End {
        &self.ends[usize::from(end)]
    }

    /// Gives the lanes towards `end` an error rate each, instead of the configured one.
    pub fn disturb(&mut self, end: u8, chances: [Chance; MAX_LANES], schedule: &mut Schedule<E>) {
        let (width, rate) = (self.choice.width(), self.choice.rate_hz);
        let lanes = Lanes::with_errors(&self.config, width, rate, chances, &mut schedule.random);
        self.ends[usize::from(1 - end)].lanes = lanes;
    }

    /// Canary: the network layer at `end` accepts packets that are marked bad.
    pub fn ignore_marks(&mut self, end: u8) {
        self.ends[usize::from(end)].receive.ignores_marks = true;
    }

    /// Gives a TLP to the transport layer.
    ///
    /// # Errors
    /// The TLP itself, if the channel has no room; [`LinkEvent::Room`] says when it has.
    ///
    /// # Panics
    /// If the bytes are not a TLP of that channel, or the channel is not configured: an error in
    /// the model.
    pub fn offer(
        &mut self,
        schedule: &mut Schedule<E>,
        end: u8,
        channel: u8,
        tlp: Vec<u8>,
    ) -> Result<(), Vec<u8>> {
        assert!(channel < self.config.channels, "channel {channel} is not configured");
        debug_assert!(Tlp::parse(&tlp).is_ok_and(|tlp| tlp.channel == channel), "no such TLP");
        let at = &mut self.ends[usize::from(end)];
        if !at.send.has_room(channel.into()) {
            return Err(tlp);
        }
        let ready = at.send.enter(schedule.now(), channel.into(), tlp, &self.config);
        self.wake_line(schedule, end, ready);
        Ok(())
    }

    /// Takes the first packet of a channel, and frees its room in the network layer.
    pub fn take(&mut self, schedule: &mut Schedule<E>, end: u8, channel: u8) -> Option<Vec<u8>> {
        let packet = self.ends[usize::from(end)].receive.take(channel.into())?;
        self.begin_leaving(schedule, end);
        Some(packet.tlp)
    }

    /// Handles one of the link's events. [`LinkEvent::Arrived`] and [`LinkEvent::Room`] are the
    /// user's and do nothing here.
    pub fn handle(&mut self, schedule: &mut Schedule<E>, event: LinkEvent) {
        match event {
            LinkEvent::Up => self.come_up(schedule),
            LinkEvent::Line { end } => self.use_line(schedule, end),
            LinkEvent::Frame { end } => self.frame_comes(schedule, end),
            LinkEvent::LinkPacket { end } => self.link_packet_comes(schedule, end),
            LinkEvent::Left { end } => self.packet_left(schedule, end),
            LinkEvent::Timer { end } => self.timer_runs_out(schedule, end),
            LinkEvent::Arrived { .. } | LinkEvent::Room { .. } => {}
        }
    }

    /// Whether everything offered has been delivered and acknowledged.
    pub fn is_quiet(&self) -> bool {
        self.ends.iter().all(|end| {
            end.send.is_empty() && end.transmitter.held_frames() == 0 && end.receive.is_empty()
        })
    }

    /// Checks that packets and credits are conserved, and Little's law on the receive buffers. Call
    /// it when the link is quiet.
    ///
    /// # Errors
    /// The law that does not hold.
    pub fn audit(&self, now: Time) -> Result<(), Imbalance> {
        for end in 0..2 {
            let (from, to) = (&self.ends[end], &self.ends[1 - end]);
            for channel in 0..usize::from(self.config.channels) {
                let queue = format!("link {}, from end {end}, VC{channel}", self.index);
                to.receive.occupancy[channel].audit(&queue, now, std::iter::empty())?;
                let sent = from.send.sent[channel];
                let received = to.receive.received[channel];
                if sent != received || to.counters.refused > 0 {
                    let law = "packets sent and packets received do not agree";
                    let details = format!("{sent} and {received}, {} refused", to.counters.refused);
                    return Err(Imbalance { queue, law, details });
                }
                let held = to.receive.ledger(channel).held();
                let left = from.send.credits(channel);
                if held != (0, 0) || left != (self.config.headers, self.config.data) {
                    let law =
                        "credits held by the sender and by the buffer do not make the capacity";
                    return Err(Imbalance { queue, law, details: format!("{left:?}, {held:?}") });
                }
            }
        }
        Ok(())
    }

    /// Adds the waits of ends that have packets to send.
    pub fn waits(&self, names: [&str; 2], waits: &mut Waits) {
        for (at, end) in self.ends.iter().enumerate() {
            if !end.send.is_empty() {
                let resource = format!("credits or replay buffer of link {}", self.index);
                waits.add(names[at], names[1 - at], resource);
            }
        }
    }

    fn come_up(&mut self, schedule: &mut Schedule<E>) {
        // InitFC1 and InitFC2 exchange the first credits; the model omits their additional
        // link-layer packets.
        for end in 0..2 {
            for channel in 0..usize::from(self.config.channels) {
                let granted = self.ends[end].receive.ledger(channel).granted();
                self.ends[1 - end].send.gate(channel).handle_granted(granted);
            }
        }
        self.is_up = true;
        for end in 0..2 {
            self.wake_line(schedule, end, schedule.now());
        }
    }

    fn use_line(&mut self, schedule: &mut Schedule<E>, end: u8) {
        let now = schedule.now();
        let at = usize::from(end);
        if self.ends[at].line_at.is_some_and(|line_at| line_at <= now) {
            self.ends[at].line_at = None;
        }
        if !self.is_up {
            return;
        }
        let free = self.ends[at].line.free_at();
        if now < free {
            return self.wake_line(schedule, end, free);
        }
        // Link-layer packets go first: they are short, and the other direction waits for them (PCIe
        // 3.5.2.1 recommends much the same).
        if let Some(packet) = self.ends[at].link_packet(now) {
            let bytes = packet.emit().expect("its numbers fit their fields");
            self.ends[at].counters.link_packets += 1;
            self.fly(schedule, end, bytes.to_vec(), None);
        } else if !self.ends[at].transmitter.is_waiting() {
            self.admit(schedule, end);
        }
        self.send_frame(schedule, end);
        self.arm_timer(schedule, end);
    }

    /// Admits the next packet of the transport layer to the replay buffer, if line, credits and
    /// buffer allow it.
    fn admit(&mut self, schedule: &mut Schedule<E>, end: u8) {
        let now = schedule.now();
        let at = &mut self.ends[usize::from(end)];
        let transmitter = &at.transmitter;
        match at.send.next(now, |bytes| transmitter.has_room(bytes)) {
            Next::Send(channel) => {
                let packet = at.send.take(channel).expect("next named it");
                at.counters.tlp_bytes += packet.tlp.len() as u64;
                let room = packet.tlp.len();
                at.transmitter.push(packet, room).expect("next asked for room");
                let event = LinkEvent::Room { end, channel: channel as u8 };
                schedule.settle((self.wrap)(self.index, event));
            }
            Next::Idle(None) => {}
            Next::Idle(Some(ready)) => self.wake_line(schedule, end, ready),
            Next::Stalled(lacks) => {
                at.counters.stalls += 1;
                let (sent, handed) = (at.send.sent, at.send.handed);
                at.first_stall.get_or_insert(FirstStall { at: now, sent, handed, lacks });
            }
        }
    }

    fn send_frame(&mut self, schedule: &mut Schedule<E>, end: u8) {
        let now = schedule.now();
        let at = &mut self.ends[usize::from(end)];
        if !at.line.is_free(now) {
            return;
        }
        let Some((sequence, packet, first)) = at.transmitter.poll(now.ps()) else { return };
        let frame = Llp { sequence, tlp: &packet.tlp };
        let mut bytes = vec![0; frame.buffer_len()];
        frame.emit(&mut bytes).expect("the buffer has its length and the number 12 bits");
        let left = packet.left;
        at.counters.frames += 1;
        at.counters.repeated += u64::from(!first);
        self.fly(schedule, end, bytes, Some(left));
    }

    /// Puts bytes on the line: a frame, whose packet `left` its network layer at that time, or a
    /// link-layer packet.
    fn fly(&mut self, schedule: &mut Schedule<E>, end: u8, mut bytes: Vec<u8>, left: Option<Time>) {
        let now = schedule.now();
        let at = &mut self.ends[usize::from(end)];
        let took = at.lanes.time(bytes.len());
        let line_free = at.line.reserve(now, took).ends;
        at.lanes.carry(&mut bytes);
        let other = 1 - end;
        // Canary: each Serdes is charged twice.
        let serdes = if planted("smp-serdes-twice") { 4 } else { 2 };
        let wires = self.config.serdes * serdes + took;
        let far = &mut self.ends[usize::from(other)];
        let event = match left {
            Some(left) => {
                let arrives = now + wires + self.config.layer() * 2;
                far.frames.push_back(Flying { bytes, left, took });
                (arrives, LinkEvent::Frame { end: other })
            }
            None => {
                let arrives = now + wires + self.config.link_packet;
                let bytes = bytes.try_into().expect("it was made from such an array");
                far.link_packets.push_back((arrives, bytes));
                (arrives, LinkEvent::LinkPacket { end: other })
            }
        };
        schedule.at(event.0, (self.wrap)(self.index, event.1));
        self.wake_line(schedule, end, line_free);
    }

    fn frame_comes(&mut self, schedule: &mut Schedule<E>, end: u8) {
        let now = schedule.now();
        let at = &mut self.ends[usize::from(end)];
        let Some(Flying { bytes, left, took, .. }) = at.frames.pop_front() else { return };
        match Llp::parse(&bytes) {
            Ok(frame) => {
                if at.receiver.handle_frame(now.ps(), frame.sequence) == Arrival::Deliver {
                    self.packet_comes(schedule, end, frame.tlp, left, took);
                }
            }
            // Without its first symbol a frame is not recognised; the gap in sequence numbers
            // reveals it.
            Err(_) if bytes[0] != FIRST_SYMBOL => at.counters.damaged += 1,
            Err(_) => {
                at.counters.damaged += 1;
                self.damaged_comes(schedule, end, &bytes, left, took);
                self.ends[usize::from(end)].receiver.handle_damaged();
            }
        }
        self.wake_line(schedule, end, now);
        self.arm_timer(schedule, end);
    }

    /// Handles a frame with a wrong CRC. With cut-through its first bytes were forwarded before the
    /// CRC arrived (S-21).
    fn damaged_comes(
        &mut self,
        schedule: &mut Schedule<E>,
        end: u8,
        bytes: &[u8],
        left: Time,
        took: Span,
    ) {
        let now = schedule.now();
        let at = &mut self.ends[usize::from(end)];
        let Some((sequence, tlp)) = Llp::glance(bytes) else { return };
        let channel = Tlp::glance_channel(tlp).filter(|channel| *channel < self.config.channels);
        let Some(channel) = channel.filter(|_| at.receiver.expects(sequence)) else { return };
        let (head, tail) = (at.head(now + self.config.layer(), took), now + self.config.layer());
        let packet = Packet { tlp: tlp.to_vec(), left };
        if at.receive.enter_damaged(now, channel.into(), packet, head, tail) {
            self.begin_leaving(schedule, end);
        }
    }

    fn packet_comes(
        &mut self,
        schedule: &mut Schedule<E>,
        end: u8,
        tlp: &[u8],
        left: Time,
        took: Span,
    ) {
        let tail = schedule.now() + self.config.layer();
        let at = &mut self.ends[usize::from(end)];
        let head = at.head(tail, took);
        let Ok(parsed) = Tlp::parse(tlp) else {
            at.counters.refused += 1;
            return;
        };
        let packet = Packet { tlp: tlp.to_vec(), left };
        if at.receive.enter(schedule.now(), parsed.channel.into(), packet, head, tail).is_err() {
            at.counters.refused += 1;
            return;
        }
        self.begin_leaving(schedule, end);
    }

    fn begin_leaving(&mut self, schedule: &mut Schedule<E>, end: u8) {
        let at = &mut self.ends[usize::from(end)];
        if let Some(ends) = at.receive.begin(schedule.now(), &self.config) {
            schedule.settle_at(ends, (self.wrap)(self.index, LinkEvent::Left { end }));
        }
    }

    fn packet_left(&mut self, schedule: &mut Schedule<E>, end: u8) {
        let now = schedule.now();
        let at = &mut self.ends[usize::from(end)];
        let Some(Exited { channel, is_sound }) = at.receive.end(now) else { return };
        if is_sound {
            at.update[channel] = true;
            at.again_at[channel] = Some(now + self.config.update_again_after);
            at.again_left[channel] = self.config.updates_repeated;
            let event = LinkEvent::Arrived { end, channel: channel as u8 };
            schedule.settle((self.wrap)(self.index, event));
        }
        self.begin_leaving(schedule, end);
        self.wake_line(schedule, end, now);
        self.arm_timer(schedule, end);
    }

    fn link_packet_comes(&mut self, schedule: &mut Schedule<E>, end: u8) {
        let now = schedule.now();
        let at = &mut self.ends[usize::from(end)];
        let Some((_, bytes)) = at.link_packets.pop_front() else { return };
        let done = match Dllp::parse(&bytes) {
            Ok(Dllp::Ack { sequence }) => at.transmitter.handle_ack(now.ps(), sequence, drop),
            Ok(Dllp::Nak { sequence }) => at.transmitter.handle_nak(now.ps(), sequence, drop),
            Ok(Dllp::Credits { channel, granted, .. }) => {
                at.send.gate(channel.into()).handle_granted(granted);
                Ok(())
            }
            Err(_) => {
                at.counters.damaged += 1;
                Ok(())
            }
        };
        at.counters.refused += u64::from(done.is_err());
        self.wake_line(schedule, end, now);
        self.arm_timer(schedule, end);
    }

    fn timer_runs_out(&mut self, schedule: &mut Schedule<E>, end: u8) {
        let now = schedule.now();
        let at = &mut self.ends[usize::from(end)];
        if at.timer_at.is_some_and(|timer_at| timer_at <= now) {
            at.timer_at = None;
        }
        if at.transmitter.handle_timeout(now.ps()) == TimedOut::Retrain {
            at.counters.retrained += 1;
            at.line.close_until(now + self.config.retrain);
        }
        for channel in 0..CHANNELS {
            if at.again_at[channel].is_some_and(|again| again <= now) {
                at.update[channel] = true;
                at.again_left[channel] -= 1;
                let again = at.again_left[channel] > 0;
                at.again_at[channel] = again.then_some(now + self.config.update_again_after);
            }
        }
        self.wake_line(schedule, end, now);
        self.arm_timer(schedule, end);
    }

    /// Schedules `Line` at `time`, behind the other events of that time, unless it is scheduled
    /// earlier already.
    fn wake_line(&mut self, schedule: &mut Schedule<E>, end: u8, time: Time) {
        let line_at = &mut self.ends[usize::from(end)].line_at;
        let time = time.max(schedule.now());
        if line_at.is_none_or(|ordered| time < ordered) {
            *line_at = Some(time);
            schedule.settle_at(time, (self.wrap)(self.index, LinkEvent::Line { end }));
        }
    }

    fn arm_timer(&mut self, schedule: &mut Schedule<E>, end: u8) {
        let now = schedule.now();
        let at = &mut self.ends[usize::from(end)];
        let replay = at.transmitter.deadline().map(Time::from_ps);
        // An overdue acknowledgement waits for the line, not for a timer.
        let acknowledge = at.receiver.deadline(now.ps()).map(Time::from_ps);
        let acknowledge = acknowledge.filter(|deadline| *deadline > now);
        let again = at.again_at.into_iter().flatten().min();
        let Some(first) = [replay, acknowledge, again].into_iter().flatten().min() else { return };
        let first = first.max(now);
        if at.timer_at.is_none_or(|ordered| first < ordered) {
            at.timer_at = Some(first);
            schedule.settle_at(first, (self.wrap)(self.index, LinkEvent::Timer { end }));
        }
    }
}

/// The longest payload (512) and 28 bytes of overhead: the standard's basis for acknowledgement
/// timeouts (3.5.3.1).
const PATIENCE_BYTES: usize = 540;

/// STP, as the lanes carry it.
const FIRST_SYMBOL: u8 = 0xfb;

impl End {
    fn new<E: Event>(config: &Config, choice: Choice, schedule: &mut Schedule<E>) -> End {
        // Canary: the replay buffer has room for everything.
        let roomy = planted("smp-replay-ignored");
        let replay = if roomy { 1 << 20 } else { config.replay_buffer.count() as usize };
        let random = &mut schedule.random;
        let lanes = Lanes::new(config, choice.width(), choice.rate_hz, random);
        // Fewer or slower lanes need longer timeouts, by the standard's formula for the longest
        // packet and its overhead.
        let whole = Lanes::new(config, MAX_LANES as u8, config.lane_rate.hz(), random);
        let slower = lanes.time(PATIENCE_BYTES).saturating_sub(whole.time(PATIENCE_BYTES));
        let acknowledge_after = config.acknowledge_after + slower;
        let replay_after = config.replay_after + slower * 3;
        End {
            send: SendSide::new(config, random),
            transmitter: Transmitter::new(replay, replay_after.ps()),
            receiver: Receiver::new(acknowledge_after.ps()),
            receive: ReceiveSide::new(config, random),
            lanes,
            line: Server::default(),
            update: [false; CHANNELS],
            again_at: [None; CHANNELS],
            again_left: [0; CHANNELS],
            frames: VecDeque::new(),
            link_packets: VecDeque::new(),
            timer_at: None,
            line_at: None,
            first_stall: None,
            counters: Counters::default(),
        }
    }

    /// Packets sent, by channel.
    pub fn sent(&self) -> [u64; CHANNELS] {
        self.send.sent
    }

    /// Packets handed over by the network layer, by channel.
    pub fn handed(&self) -> [u64; CHANNELS] {
        self.send.handed
    }

    /// Bit errors on the lanes towards the other end.
    pub fn bits_flipped(&self) -> u64 {
        self.lanes.bits_flipped
    }

    /// Bytes in the replay buffer.
    pub fn replay_held(&self) -> usize {
        self.transmitter.held_bytes()
    }

    /// Remaining header and data credits of a channel.
    pub fn credits(&self, channel: u8) -> (u8, u16) {
        self.send.credits(channel.into())
    }

    /// When the header of a packet arrived that was complete at `tail` and took `took` on the line.
    /// With cut-through the rest arrives while the header is forwarded.
    fn head(&self, tail: Time, took: Span) -> Time {
        (tail + self.lanes.time(HEADER_BYTES)).saturating_sub(took)
    }

    /// The next link-layer packet that is due: acknowledgements first, then credits.
    fn link_packet(&mut self, now: Time) -> Option<Dllp> {
        if let Some(packet) = self.receiver.poll(now.ps()) {
            return Some(packet);
        }
        let channel = self.update.iter().position(|due| *due)?;
        self.update[channel] = false;
        let granted = self.receive.ledger(channel).granted();
        Some(Dllp::Credits { stage: Stage::Update, channel: channel as u8, granted })
    }
}

#[cfg(test)]
mod line_tests;
#[cfg(test)]
mod tests;
