//! The intra-DMA crossbar with its virtual channels (C-04, C-27, C-42, C-43; cHPP sections 2.3, 3.4, 5.4).
//!
//! Ports: an interface injects a packet into a channel of its input, if the channel has room; the packet crosses when its input, its
//! output and a place in the receiver's buffer are free; input and output are then taken for its beats and one engine cycle.
//! Without a channel of their own, GET packets share those of the others and the receiver's buffer with them, and may so close a
//! ring of waits (C-26).

use std::collections::VecDeque;

use super::config::Config;
use super::{Happening, PacketHandle};
use crate::engine::{Arbiter, Policy, Random, Schedule};
use crate::stats::{Imbalance, Occupancy};
use crate::units::{Span, Time};

/// A packet that waits in a channel.
#[derive(Clone, Copy, Debug)]
struct Queued {
    packet: PacketHandle,
    output: usize,
    beats: u64,
    entered: Time,
    /// When its first beat is there.
    head: Time,
}

/// One channel of one input.
#[derive(Default)]
struct Channel {
    queue: VecDeque<Queued>,
    occupancy: Occupancy,
}

/// A packet on its way to an output.
#[derive(Clone, Copy, Debug)]
struct Crossing {
    channel: usize,
    entered: Time,
}

/// A packet that begins to cross.
#[derive(Clone, Copy, Debug)]
pub struct Grant {
    /// The packet.
    pub packet: PacketHandle,
    /// Where it comes from.
    pub input: usize,
    /// Where it goes.
    pub output: usize,
    /// Which of the receiver's buffers it takes a place in.
    pub class: usize,
    /// When its head was there; from then until now it waited.
    pub head: Time,
    /// When its last beat is in the receiver's buffer.
    pub tail: Time,
}

/// Receive buffer for NAP and PUT packets, and for GET packets if they share it.
pub const DATA: usize = 0;
/// Receive buffer for GET packets.
pub const GET: usize = 1;

/// The switch between all interfaces of a controller.
pub struct Crossbar {
    ports: usize,
    data_channels: usize,
    channels: usize,
    get_channel: bool,
    depth: usize,
    cycle: Span,
    module: Span,
    engine_cycles: u64,
    /// By input, then channel.
    inputs: Vec<Channel>,
    crossing: Vec<Option<Crossing>>,
    output_busy: Vec<bool>,
    /// Places left in the receivers' buffers, by output, then class.
    places: Vec<usize>,
    by_output: Vec<Arbiter>,
    by_input: Vec<Arbiter>,
    next_output: usize,
    /// Packets that wait in channels.
    waiting: usize,
    /// Whether a decision at this moment is asked for already.
    decides: bool,
    /// Packets that crossed, by output.
    pub crossed: Vec<u64>,
    /// How long each output was taken.
    pub busy: Vec<Span>,
    /// (channel, output) of every packet that was injected, if wanted (C-42).
    pub seen: Option<Vec<(usize, usize)>>,
}

impl Crossbar {
    /// An idle crossbar.
    pub fn new(config: &Config, random: &mut Random) -> Crossbar {
        let ports = config.crossbar.ports;
        let data_channels = config.crossbar.channels;
        let channels = data_channels + usize::from(config.crossbar.get_channel);
        Crossbar {
            ports,
            data_channels,
            channels,
            get_channel: config.crossbar.get_channel,
            depth: config.crossbar.channel_packets,
            cycle: config.nic.cycle(),
            module: config.nic.module(),
            engine_cycles: config.nic.engine_cycles,
            inputs: (0..ports * channels).map(|_| Channel::default()).collect(),
            crossing: vec![None; ports],
            output_busy: vec![false; ports],
            places: vec![config.crossbar.receive_packets; 2 * ports],
            by_output: (0..ports)
                .map(|_| Arbiter::new(Policy::RoundRobin, ports, random))
                .collect(),
            by_input: (0..ports)
                .map(|_| Arbiter::new(Policy::RoundRobin, channels, random))
                .collect(),
            next_output: 0,
            waiting: 0,
            decides: false,
            crossed: vec![0; ports],
            busy: vec![Span::ZERO; ports],
            seen: None,
        }
    }

    /// The channel for a packet to `output`: its number modulo the channels (Dest-Mod, C-42), or that of GETs (C-27).
    pub fn channel_for(&self, output: usize, is_get: bool) -> usize {
        if is_get && self.get_channel { self.data_channels } else { output % self.data_channels }
    }

    /// Whether a channel of an input has room for a packet.
    pub fn has_room(&self, input: usize, channel: usize) -> bool {
        let holds = self.inputs[input * self.channels + channel].occupancy.inside();
        (holds as usize) < self.depth
    }

    /// Takes a packet of `beats` beats into a channel that has room; its first beat comes at `head`.
    pub fn inject(
        &mut self,
        schedule: &mut Schedule<Happening>,
        (input, channel): (usize, usize),
        (packet, output, beats): (PacketHandle, usize, u64),
        head: Time,
    ) {
        let entered = schedule.now();
        let queue = &mut self.inputs[input * self.channels + channel];
        queue.occupancy.enter(entered);
        queue.queue.push_back(Queued { packet, output, beats, entered, head });
        if let Some(seen) = &mut self.seen {
            seen.push((channel, output));
        }
        self.waiting += 1;
        schedule.settle_at(head, Happening::CrossbarMatches);
    }

    /// Asks for a decision at the end of this moment, if there is anything to decide.
    fn decide(&mut self, schedule: &mut Schedule<Happening>) {
        if self.waiting > 0 && !self.decides {
            self.decides = true;
            schedule.settle(Happening::CrossbarMatches);
        }
    }

    /// Matches inputs and outputs, and gives out what begins to cross now. Call when all that happens at this moment has happened.
    ///
    /// Outputs choose in turn, beginning with another each time, among the inputs that have a packet for them at the head of
    /// a channel; whoever was served last comes last.
    pub fn matches(&mut self, schedule: &mut Schedule<Happening>, grants: &mut Vec<Grant>) {
        let now = schedule.now();
        self.decides = false;
        // By output: the inputs that have a packet for it in front.
        let mut requests = [0u64; 64];
        let mut wanted = 0u64;
        for input in 0..self.ports {
            if self.crossing[input].is_some() {
                continue;
            }
            for channel in &self.inputs[input * self.channels..][..self.channels] {
                if let Some(front) = channel.queue.front().filter(|front| front.head <= now) {
                    requests[front.output] |= 1 << input;
                    wanted |= 1 << front.output;
                }
            }
        }
        if wanted == 0 {
            return;
        }
        let first = self.next_output;
        self.next_output = (first + 1) % self.ports;
        let mut taken = 0u64;
        for output in (first..self.ports).chain(0..first) {
            let mut asking = requests[output] & !taken;
            while asking != 0 && !self.output_busy[output] {
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

    /// A packet has crossed: its input, its output and its place in the channel are free again.
    pub fn crossed(&mut self, schedule: &mut Schedule<Happening>, input: usize, output: usize) {
        self.output_busy[output] = false;
        self.crossed[output] += 1;
        if let Some(Crossing { channel, entered }) = self.crossing[input].take() {
            self.inputs[input * self.channels + channel].occupancy.leave(entered, schedule.now());
        }
        self.decide(schedule);
    }

    /// The receiver at `output` has a place free again.
    pub fn place_freed(&mut self, schedule: &mut Schedule<Happening>, output: usize, class: usize) {
        self.places[2 * output + class] += 1;
        self.decide(schedule);
    }

    /// The buffer that a packet of a channel goes to.
    fn class_of(&self, channel: usize) -> usize {
        if self.get_channel && channel == self.data_channels { GET } else { DATA }
    }

    /// The channel of `input` whose turn it is among those with a packet for `output` that may go now.
    fn channel_ready(&mut self, input: usize, output: usize, now: Time) -> Option<usize> {
        let mut ready = 0u64;
        for channel in 0..self.channels {
            let front = self.inputs[input * self.channels + channel].queue.front();
            let is_for = front.is_some_and(|front| front.output == output && front.head <= now);
            if is_for && self.places[2 * output + self.class_of(channel)] > 0 {
                ready |= 1 << channel;
            }
        }
        self.by_input[input].choose(ready)
    }

    fn cross(&mut self, schedule: &mut Schedule<Happening>, input: usize, channel: usize) -> Grant {
        let now = schedule.now();
        let front = self.inputs[input * self.channels + channel].queue.pop_front();
        let Queued { packet, output, beats, entered, head } =
            front.expect("a channel is ready if it has a packet in front");
        let class = self.class_of(channel);
        self.waiting -= 1;
        self.places[2 * output + class] -= 1;
        self.crossing[input] = Some(Crossing { channel, entered });
        self.output_busy[output] = true;
        let taken = self.cycle * (beats + self.engine_cycles);
        self.busy[output] += taken;
        schedule.after(taken, Happening::Crossed { input: input as u8, output: output as u8 });
        Grant {
            packet,
            input,
            output,
            class,
            head,
            tail: now + self.module + self.cycle * (beats - 1),
        }
    }

    /// Who waits in front of channels, for explanations: input, channel, packet, output, and whether a place there is free.
    pub fn waiting(&self) -> impl Iterator<Item = (usize, usize, PacketHandle, usize, bool)> {
        self.inputs.iter().enumerate().filter_map(|(at, queue)| {
            let (input, channel) = (at / self.channels, at % self.channels);
            let front = queue.queue.front()?;
            let has_place = self.places[2 * front.output + self.class_of(channel)] > 0;
            Some((input, channel, front.packet, front.output, has_place))
        })
    }

    /// Checks Little's law on every channel.
    ///
    /// # Errors
    /// What does not hold.
    pub fn audit(&self, now: Time) -> Result<(), Imbalance> {
        self.inputs.iter().enumerate().try_for_each(|(at, channel)| {
            let name =
                format!("crossbar input {} channel {}", at / self.channels, at % self.channels);
            let crossing = self.crossing[at / self.channels]
                .filter(|crossing| crossing.channel == at % self.channels);
            let waiting = channel.queue.iter().map(|queued| queued.entered);
            channel.occupancy.audit(
                &name,
                now,
                waiting.chain(crossing.map(|crossing| crossing.entered)),
            )
        })
    }
}
