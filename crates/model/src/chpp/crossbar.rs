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
use crate::engine::{Arbiter, Policy, Random, Schedule, Server, first_from, ones};
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

#[cfg(test)]
mod cycle_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Model, Pool, Simulation};

    /// A crossbar; the far end returns the credit of a packet some time after it crossed.
    struct Bench {
        crossbar: Crossbar,
        handles: Pool<()>,
        returns: Option<Span>,
        /// Nanosecond, input, output and tail of each grant.
        grants: Vec<(u64, usize, usize, u64)>,
        /// Nanosecond, input and freed channel of each packet that crossed.
        crossed: Vec<(u64, usize, Option<usize>)>,
    }

    fn ns(time: Time) -> u64 {
        time.ps() / 1000
    }

    fn at(ns: u64) -> Time {
        Time::ZERO + Span::from_ns(ns)
    }

    impl Model for Bench {
        type Event = NicEvent;

        fn handle(&mut self, event: NicEvent, schedule: &mut Schedule<NicEvent>) {
            let now = schedule.now();
            match event {
                NicEvent::CrossbarMatches { .. } => {
                    let mut grants = Vec::new();
                    self.crossbar.matches(schedule, &mut grants);
                    for it in grants {
                        let output = usize::from(it.bound.output);
                        self.grants.push((ns(now), it.input, output, ns(it.tail)));
                    }
                }
                NicEvent::Crossed { input, output, .. } => {
                    let (input, output) = (usize::from(input), usize::from(output));
                    let freed = self.crossbar.crossed(schedule, input, output);
                    self.crossed.push((ns(now), input, freed));
                    if let Some(after) = self.returns {
                        let (controller, output, channel) = (0, output as u8, 0);
                        let event = NicEvent::Credited { controller, output, channel };
                        schedule.after(after, event);
                    }
                }
                NicEvent::Credited { output, channel, .. } => {
                    self.crossbar.credit_returned(schedule, output.into(), channel.into());
                }
                _ => unreachable!("no other event is scheduled"),
            }
            self.crossbar.audit(now).unwrap();
        }
    }

    /// Three ports of three channels of two packets; a cycle is 4 ns, a module 16, the engine takes
    /// one cycle.
    fn bench(credits: usize) -> Simulation<Bench> {
        let mut config = Config::prototype();
        config.crossbar.channel_packets = 2;
        let mut random = Random::new(1);
        let crossbar = Crossbar::new(
            &config,
            (0, 3, 3),
            |output, class| credits + 10 * output + class,
            &mut random,
        );
        let model = Bench {
            crossbar,
            handles: Pool::default(),
            returns: None,
            grants: Vec::new(),
            crossed: Vec::new(),
        };
        Simulation { model, schedule: Schedule::new(1, Span::from_ns(4)) }
    }

    /// Injects a packet of `beats` whose head comes at `head` ns.
    fn inject(
        bench: &mut Simulation<Bench>,
        (input, channel): (usize, usize),
        (output, class, beats): (u8, u8, u64),
        head: u64,
    ) {
        let packet = bench.model.handles.put(());
        let bound = Bound { packet, beats, from: 0, to: 0, output, credit_class: class };
        bench.model.crossbar.inject(&mut bench.schedule, (input, channel), bound, at(head));
    }

    /// Packets of 3 beats take input and output for 4 cycles, 16 ns. They are through 24 ns after
    /// they start. Two of one channel follow each other from 8 ns on. One for another output starts
    /// beside the first, and one for the same output after it.
    #[test]
    fn packets_take_input_and_output() {
        crate::limit::limited(|| {
            let mut bench = bench(9);
            inject(&mut bench, (0, 0), (1, 0, 3), 8);
            inject(&mut bench, (0, 0), (1, 0, 3), 8);
            inject(&mut bench, (2, 1), (0, 0, 1), 8);
            assert!(!bench.model.crossbar.has_room(0, 0));
            assert_eq!(bench.model.crossbar.inside(0, 0), 2);
            assert!(bench.model.crossbar.has_room(2, 1) && bench.model.crossbar.has_room(0, 1));
            bench.run(at(10));
            assert!(bench.model.crossbar.input_busy(0) && !bench.model.crossbar.input_busy(1));
            assert!(bench.model.crossbar.output_busy(1) && !bench.model.crossbar.output_busy(2));
            // A packet that crosses keeps its place until it is through.
            assert!(!bench.model.crossbar.has_room(0, 0));
            bench.run(at(30));
            assert!(bench.model.crossbar.has_room(0, 0) && !bench.model.crossbar.input_busy(2));
            bench.run(Time::NEVER);
            let mut grants = bench.model.grants.clone();
            grants.sort_unstable();
            assert_eq!(grants, [(8, 0, 1, 32), (8, 2, 0, 24), (24, 0, 1, 48)]);
            let mut crossed = bench.model.crossed.clone();
            crossed.sort_unstable();
            assert_eq!(crossed, [(16, 2, Some(1)), (24, 0, Some(0)), (40, 0, Some(0))]);
            assert_eq!(bench.model.crossbar.crossed, [1, 2, 0]);
            assert_eq!(bench.model.crossbar.outputs[1].busy(), Span::from_ns(32));
        });
    }

    /// A head that has not come asks for nothing, and one behind it waits; another channel of the
    /// input goes first.
    #[test]
    fn heads_ask_when_they_are_there() {
        let mut bench = bench(9);
        inject(&mut bench, (0, 0), (1, 0, 1), 100);
        inject(&mut bench, (0, 2), (1, 0, 1), 20);
        inject(&mut bench, (1, 0), (1, 0, 1), 24);
        bench.run(Time::NEVER);
        assert_eq!(bench.model.grants, [(20, 0, 1, 36), (28, 1, 1, 44), (100, 0, 1, 116)]);
    }

    /// Places behind an output: output 0 has none of class 0, one of class 1 and two of class 2. A
    /// packet without a place waits until one is told of, and other channels pass it.
    #[test]
    fn places_hold_packets_back() {
        crate::limit::limited(|| {
            let mut bench = bench(0);
            assert_eq!(bench.model.crossbar.credits_behind(0), [0, 1, 2]);
            assert_eq!(bench.model.crossbar.credits_behind(2), [20, 21, 22]);
            inject(&mut bench, (0, 0), (0, 0, 1), 0);
            inject(&mut bench, (0, 1), (0, 1, 1), 0);
            inject(&mut bench, (0, 1), (0, 1, 1), 0);
            inject(&mut bench, (1, 0), (1, 0, 1), 40);
            bench.run(Time::NEVER);
            assert_eq!(bench.model.grants, [(0, 0, 0, 16), (40, 1, 1, 56)]);
            assert_eq!(bench.model.crossbar.credits_behind(0), [0, 0, 2]);
            assert_eq!(bench.model.crossbar.credits_behind(1), [9, 11, 12]);
            let waiting: Vec<_> =
                bench.model.crossbar.waiting().map(|it| (it.0, it.1, it.3)).collect();
            assert_eq!(waiting, [(0, 0, false), (0, 1, false)]);
            let event = NicEvent::Credited { controller: 0, output: 0, channel: 1 };
            bench.schedule.at(at(80), event);
            bench.run(Time::NEVER);
            assert_eq!(bench.model.grants.last(), Some(&(80, 0, 0, 96)));
            let waiting: Vec<_> =
                bench.model.crossbar.waiting().map(|it| (it.0, it.1, it.3)).collect();
            assert_eq!(waiting, [(0, 0, false)]);
            let event = NicEvent::Credited { controller: 0, output: 0, channel: 0 };
            bench.schedule.at(at(90), event);
            bench.run(Time::NEVER);
            assert_eq!(bench.model.grants.last(), Some(&(90, 0, 0, 106)));
            assert_eq!(bench.model.crossbar.waiting().count(), 0);
        });
    }

    /// One place that comes back 10 ns after a packet is through: a packet of a beat every 8 + 10.
    #[test]
    fn a_place_is_a_loop() {
        crate::limit::limited(|| {
            let mut bench = bench(1);
            bench.model.returns = Some(Span::from_ns(10));
            inject(&mut bench, (0, 0), (0, 0, 1), 0);
            inject(&mut bench, (0, 0), (0, 0, 1), 0);
            inject(&mut bench, (1, 0), (0, 0, 1), 0);
            bench.run(Time::NEVER);
            let times: Vec<u64> = bench.model.grants.iter().map(|it| it.0).collect();
            assert_eq!(times, [0, 18, 36]);
        });
    }

    /// Inputs take turns at an output, and channels at an input.
    #[test]
    fn inputs_and_channels_take_turns() {
        let mut bench = bench(9);
        for input in 0..3 {
            inject(&mut bench, (input, 0), (1, 0, 1), 0);
            inject(&mut bench, (input, 0), (1, 0, 1), 0);
        }
        bench.run(Time::NEVER);
        let inputs: Vec<usize> = bench.model.grants.iter().map(|it| it.1).collect();
        assert!(inputs.windows(2).all(|two| two[1] == (two[0] + 1) % 3), "{inputs:?}");
        let mut bench = self::bench(9);
        for channel in 0..3 {
            inject(&mut bench, (2, channel), (0, channel as u8, 1), 0);
            inject(&mut bench, (2, channel), (0, channel as u8, 1), 0);
        }
        bench.run(Time::NEVER);
        let freed: Vec<usize> = bench.model.crossed.iter().filter_map(|it| it.2).collect();
        assert_eq!(freed.len(), 6);
        assert!(freed.windows(2).all(|two| two[1] == (two[0] + 1) % 3), "{freed:?}");
    }

    /// Outputs take turns to choose first. So an input with packets for all of them serves them in
    /// turn, whatever the order of its channels.
    #[test]
    fn outputs_take_turns_to_choose() {
        let mut bench = bench(9);
        for (channel, output) in [(0, 2), (1, 0), (2, 1)] {
            inject(&mut bench, (0, channel), (output, 0, 1), 0);
            inject(&mut bench, (0, channel), (output, 0, 1), 0);
        }
        bench.run(Time::NEVER);
        let outputs: Vec<usize> = bench.model.grants.iter().map(|it| it.2).collect();
        assert_eq!(outputs, [0, 1, 2, 0, 1, 2]);
    }

    /// Wires that are busy until 60 ns, which a packet reaches 16 ns after its start, keep their
    /// output until 44. Wires that end before a packet can reach them keep nothing.
    #[test]
    fn busy_wires_keep_their_output() {
        for (left, granted) in [(60, 44), (16, 0), (12, 0)] {
            let mut bench = bench(9);
            let delay = Span::from_ns(16);
            bench.model.crossbar.hold(&mut bench.schedule, 2, at(left), delay);
            assert_eq!(bench.pending(), usize::from(granted > 0));
            inject(&mut bench, (0, 0), (2, 0, 1), 0);
            inject(&mut bench, (1, 0), (1, 0, 1), 0);
            bench.run(Time::NEVER);
            let mut grants: Vec<_> = bench.model.grants.iter().map(|it| (it.2, it.0)).collect();
            grants.sort_unstable();
            assert_eq!(grants, [(1, 0), (2, granted)]);
        }
    }

    /// Canary: a packet that leaves its channel past the counts is found, by the channel's name.
    #[test]
    fn a_lost_packet_is_found() {
        let mut bench = bench(9);
        inject(&mut bench, (1, 2), (0, 0, 1), 50);
        bench.model.crossbar.audit(at(0)).unwrap();
        let names: Vec<String> = bench.model.crossbar.occupancies().map(|it| it.0).collect();
        assert_eq!(names[5], "input 1 channel 2 of crossbar 0");
        bench.model.crossbar.inputs[5].queue.clear();
        let told = bench.model.crossbar.audit(at(0)).unwrap_err();
        assert_eq!(told.queue, names[5]);
    }
}
