//! The intra-DMA crossbar with its virtual channels (C-04, C-27, C-42, C-43; cHPP sections 2.3,
//! 3.4, 5.4).
//!
//! Ports: an interface, or a link from another controller, injects a packet into a channel of its
//! input. The packet crosses when its input, its output and a place behind the output are free.
//! Input and output are then taken for its beats and `engine_cycles` cycles. Behind the output of
//! an interface is its receive buffer; behind that of a link are the channels at its far end.
//! [`Controllers`](super::controllers::Controllers) routes: it decides output, channel and place of
//! a packet. Without a channel of their own, GET packets share the channels of the others and the
//! receive buffer, and can so deadlock (C-26).

use std::collections::VecDeque;

use super::config::Config;
use super::{NicEvent, PacketHandle};
use crate::engine::{Arbiter, Policy, Random, Schedule, Server, first_from};
use crate::stats::{Imbalance, Occupancy};
use crate::units::{Span, Time};

/// A packet and its route through this controller.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    pub packet: PacketHandle,
    /// Header and data, in beats of the bus.
    pub beats: u64,
    pub from: u8,
    pub to: u8,
    pub output: u8,
    /// Class of the credit that it takes, for a place behind the output: in a receive buffer, or in
    /// a channel at the far end of a link.
    pub credit_class: u8,
}

/// A packet that waits in a channel.
#[derive(Clone, Copy, Debug)]
struct Queued {
    bound: Bound,
    entered: Time,
    /// When its first beat arrives.
    head: Time,
}

/// One channel of one input.
#[derive(Default)]
struct Channel {
    queue: VecDeque<Queued>,
    occupancy: Occupancy,
}

/// A packet that is crossing to an output.
#[derive(Clone, Copy, Debug)]
struct Crossing {
    channel: usize,
    output: usize,
    entered: Time,
}

/// A packet that starts to cross.
#[derive(Clone, Copy, Debug)]
pub struct Grant {
    /// The packet, its route and the place that it takes.
    pub bound: Bound,
    pub input: usize,
    /// When its head arrived; it waits from then until now.
    pub head: Time,
    /// When its last beat is through.
    pub tail: Time,
}

/// Receive buffer for NAP and PUT packets, and for GET packets if they share it.
pub const DATA: usize = 0;
/// Receive buffer for GET packets.
pub const GET: usize = 1;

/// The switch of one controller: inputs and outputs of its interfaces first, then of its links.
pub struct Crossbar {
    controller: u8,
    pub ports: usize,
    /// Channels of each input, including that of GETs.
    pub channels: usize,
    depth: usize,
    cycle: Span,
    module: Span,
    engine_cycles: u64,
    /// By input, then channel.
    inputs: Vec<Channel>,
    /// By input, bitmask of the channels with waiting packets.
    filled: Vec<u64>,
    /// Bitmask: idle inputs with waiting packets.
    asking: u64,
    /// By output, bitmask of the inputs with a packet for it in front; stale for an output that no
    /// input wants in this decision.
    requests: Vec<u64>,
    crossing: Vec<Option<Crossing>>,
    /// By output; closed while the wires behind it are busy.
    pub outputs: Vec<Server>,
    /// Free places behind the outputs, by output, then class. An output has as many classes as a
    /// port has channels, at least two.
    credits: Vec<usize>,
    credit_classes: usize,
    by_output: Vec<Arbiter>,
    by_input: Vec<Arbiter>,
    next_output: usize,
    /// Packets that wait in channels.
    waiting: usize,
    /// Whether a decision at this moment is already scheduled.
    decides: bool,
    /// Packets that crossed, by output.
    pub crossed: Vec<u64>,
}

impl Crossbar {
    /// An idle crossbar of `controller` with `ports` ports of `channels` channels each;
    /// `credits(output, class)` is the number of places behind an output.
    pub fn new(
        config: &Config,
        (controller, ports, channels): (usize, usize, usize),
        credits: impl Fn(usize, usize) -> usize,
        random: &mut Random,
    ) -> Crossbar {
        let credit_classes = channels.max(2);
        Crossbar {
            controller: controller as u8,
            ports,
            channels,
            depth: config.crossbar.channel_packets,
            cycle: config.nic.cycle(),
            module: config.nic.module(),
            engine_cycles: config.nic.engine_cycles,
            inputs: (0..ports * channels).map(|_| Channel::default()).collect(),
            filled: vec![0; ports],
            asking: 0,
            requests: vec![0; ports],
            crossing: vec![None; ports],
            outputs: vec![Server::default(); ports],
            credits: (0..ports * credit_classes)
                .map(|at| credits(at / credit_classes, at % credit_classes))
                .collect(),
            credit_classes,
            by_output: (0..ports)
                .map(|_| config.crossbar.arbitration.arbiter(ports, random))
                .collect(),
            by_input: (0..ports)
                .map(|_| Arbiter::new(Policy::RoundRobin, channels, random))
                .collect(),
            next_output: 0,
            waiting: 0,
            decides: false,
            crossed: vec![0; ports],
        }
    }

    /// Whether a channel of an input has room for a packet.
    pub fn has_room(&self, input: usize, channel: usize) -> bool {
        (self.inside(input, channel) as usize) < self.depth
    }

    /// Packets in a channel of an input, including one that crosses.
    pub fn inside(&self, input: usize, channel: usize) -> u64 {
        self.inputs[input * self.channels + channel].occupancy.inside()
    }

    /// Puts a packet into a channel with room; its first beat arrives at `head`.
    pub fn inject(
        &mut self,
        schedule: &mut Schedule<NicEvent>,
        (input, channel): (usize, usize),
        bound: Bound,
        head: Time,
    ) {
        let entered = schedule.now();
        let queue = &mut self.inputs[input * self.channels + channel];
        queue.occupancy.enter(entered);
        queue.queue.push_back(Queued { bound, entered, head });
        self.filled[input] |= 1 << channel;
        if self.crossing[input].is_none() {
            self.asking |= 1 << input;
        }
        self.waiting += 1;
        schedule.settle_at(head, NicEvent::CrossbarMatches { controller: self.controller });
    }

    /// Schedules a decision at the end of this moment, if packets wait.
    fn decide(&mut self, schedule: &mut Schedule<NicEvent>) {
        if self.waiting > 0 && !self.decides {
            self.decides = true;
            schedule.settle(NicEvent::CrossbarMatches { controller: self.controller });
        }
    }

    /// Matches inputs and outputs, and adds the packets that start to cross now to `grants`. Call
    /// it in the settling phase, after all arrivals of this moment.
    ///
    /// Outputs choose one after the other, and each decision starts with the next output. The
    /// arbiter of an output chooses among the inputs with a packet for it in front of a channel.
    pub fn matches(&mut self, schedule: &mut Schedule<NicEvent>, grants: &mut Vec<Grant>) {
        let now = schedule.now();
        self.decides = false;
        let mut wanted = 0u64;
        for input in ones(self.asking) {
            for channel in ones(self.filled[input]) {
                let front = self.inputs[input * self.channels + channel].queue.front();
                if let Some(front) = front.filter(|front| front.head <= now) {
                    let output = front.bound.output;
                    let requests = &mut self.requests[usize::from(output)];
                    let others = if wanted >> output & 1 == 1 { *requests } else { 0 };
                    *requests = others | 1 << input;
                    wanted |= 1 << output;
                }
            }
        }
        if wanted == 0 {
            return;
        }
        let first = self.next_output;
        self.next_output = (first + 1) % self.ports;
        let mut taken = 0u64;
        while wanted != 0 {
            let output = first_from(wanted, first as u32);
            wanted &= !(1 << output);
            let mut asking = self.requests[output] & !taken;
            while asking != 0 && self.outputs[output].is_free(now) {
                let Some(input) = self.by_output[output].choose(asking) else { break };
                asking &= !(1 << input);
                if let Some(channel) = self.channel_ready(input, output, now) {
                    self.by_output[output].serve(input);
                    self.by_input[input].serve(channel);
                    taken |= 1 << input;
                    grants.push(self.cross(schedule, input, channel));
                }
            }
        }
    }

    /// A packet has crossed: frees its input, its output and its place in the channel. Returns the
    /// channel.
    pub fn crossed(
        &mut self,
        schedule: &mut Schedule<NicEvent>,
        input: usize,
        output: usize,
    ) -> Option<usize> {
        self.crossed[output] += 1;
        let freed = self.crossing[input].take().map(|Crossing { channel, entered, .. }| {
            self.inputs[input * self.channels + channel].occupancy.leave(entered, schedule.now());
            channel
        });
        if self.filled[input] != 0 {
            self.asking |= 1 << input;
        }
        self.decide(schedule);
        freed
    }

    /// A place of a class behind `output` is free again.
    pub fn credit_returned(
        &mut self,
        schedule: &mut Schedule<NicEvent>,
        output: usize,
        credit_class: usize,
    ) {
        self.credits[output * self.credit_classes + credit_class] += 1;
        self.decide(schedule);
    }

    /// Keeps `output` from granting while the wires behind it are busy until `left`; a packet
    /// reaches them `delay` after it starts to cross.
    pub fn hold(
        &mut self,
        schedule: &mut Schedule<NicEvent>,
        output: usize,
        left: Time,
        delay: Span,
    ) {
        let until = left.saturating_sub(delay);
        if until > schedule.now() {
            self.outputs[output].close_until(until);
            schedule.settle_at(until, NicEvent::CrossbarMatches { controller: self.controller });
        }
    }

    /// The channel of `input` that its arbiter chooses among those with a packet for `output` and a
    /// free place.
    fn channel_ready(&mut self, input: usize, output: usize, now: Time) -> Option<usize> {
        let mut ready = 0u64;
        for channel in ones(self.filled[input]) {
            let front = self.inputs[input * self.channels + channel].queue.front();
            let front = front
                .filter(|front| usize::from(front.bound.output) == output && front.head <= now);
            if front.is_some_and(|front| self.has_credit(&front.bound)) {
                ready |= 1 << channel;
            }
        }
        self.by_input[input].choose(ready)
    }

    fn cross(&mut self, schedule: &mut Schedule<NicEvent>, input: usize, channel: usize) -> Grant {
        let now = schedule.now();
        let queue = &mut self.inputs[input * self.channels + channel].queue;
        let front = queue.pop_front();
        if queue.is_empty() {
            self.filled[input] &= !(1 << channel);
        }
        self.asking &= !(1 << input);
        let Queued { bound, entered, head } =
            front.expect("a channel is ready if it has a packet in front");
        let Bound { beats, output, credit_class, .. } = bound;
        let output = usize::from(output);
        self.waiting -= 1;
        self.credits[output * self.credit_classes + usize::from(credit_class)] -= 1;
        self.crossing[input] = Some(Crossing { channel, output, entered });
        let taken = self.cycle * (beats + self.engine_cycles);
        let ends = self.outputs[output].reserve(now, taken).ends;
        let (input_port, output_port) = (input as u8, output as u8);
        let controller = self.controller;
        schedule.at(ends, NicEvent::Crossed { controller, input: input_port, output: output_port });
        let tail = now + self.module + self.cycle * (beats - 1);
        Grant { bound, input, head, tail }
    }

    /// Packets in front of channels, for explanations: input, channel, packet, and whether a place
    /// is free for it.
    pub fn waiting(&self) -> impl Iterator<Item = (usize, usize, Bound, bool)> {
        self.inputs.iter().enumerate().filter_map(|(at, queue)| {
            let (input, channel) = (at / self.channels, at % self.channels);
            let bound = queue.queue.front()?.bound;
            Some((input, channel, bound, self.has_credit(&bound)))
        })
    }

    /// Whether the place that a packet needs behind its output is free.
    fn has_credit(&self, bound: &Bound) -> bool {
        let first = usize::from(bound.output) * self.credit_classes;
        self.credits[first + usize::from(bound.credit_class)] > 0
    }

    /// Free places behind an output, by class.
    pub fn credits_behind(&self, output: usize) -> &[usize] {
        &self.credits[output * self.credit_classes..][..self.credit_classes]
    }

    /// Whether a packet of this input is crossing.
    pub fn input_busy(&self, input: usize) -> bool {
        self.crossing[input].is_some()
    }

    /// Whether a packet is crossing to this output.
    pub fn output_busy(&self, output: usize) -> bool {
        self.crossing.iter().flatten().any(|crossing| crossing.output == output)
    }

    /// The occupancy of each channel of each input, with its name.
    pub fn occupancies(&self) -> impl Iterator<Item = (String, &Occupancy)> {
        self.inputs.iter().enumerate().map(|(at, channel)| (self.name(at), &channel.occupancy))
    }

    fn name(&self, at: usize) -> String {
        let (input, channel) = (at / self.channels, at % self.channels);
        format!("input {input} channel {channel} of crossbar {}", self.controller)
    }

    /// Checks Little's law on every channel.
    ///
    /// # Errors
    /// The violated law.
    pub fn audit(&self, now: Time) -> Result<(), Imbalance> {
        self.inputs.iter().enumerate().try_for_each(|(at, channel)| {
            let crossing = self.crossing[at / self.channels]
                .filter(|crossing| crossing.channel == at % self.channels);
            let waiting = channel.queue.iter().map(|queued| queued.entered);
            channel.occupancy.audit(
                &self.name(at),
                now,
                waiting.chain(crossing.map(|crossing| crossing.entered)),
            )
        })
    }
}

/// The set bits, lowest first.
fn ones(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
        bits &= bits - 1;
        Some(lowest)
    })
}
