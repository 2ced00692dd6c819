//! The crossbar and the block `cycle::xbar` start and end every packet at the same times, over
//! random packets. What differs between the two is taken out here, and nothing else:
//!
//! - Gates tell a place free two cycles after `crossed`: it becomes known when the last beat comes
//!   out of the memory, and a port sees it a cycle later. So the sources here wait for two cycles.
//! - The crossbar moves `next_output` on with every decision, and how many a moment has depends on
//!   how many things happen in it. Gates move it on with every cycle in which a packet starts. So a
//!   decision that starts nothing moves nothing here.
//! - Arbiters start at random. Here all of them prefer number 0.
//!
//! Packets come without pauses, and outputs take every beat: the crossbar knows neither. Channels
//! have room for as many of the longest packets as they hold: the crossbar counts no beats.

use std::collections::VecDeque;

use super::*;
use crate::cycle::xbar::{CLASSES, In, PORTS, Shape, Xbar};
use crate::engine::{Model, Pool, Simulation};

/// A packet of a source.
#[derive(Clone, Copy, Debug)]
struct Packet {
    number: usize,
    /// Cycles between the packet before it and its head.
    gap: u64,
    channel: usize,
    output: u8,
    class: u8,
    beats: u64,
    /// Cycles between its tail and the return of its place.
    taken_in: u64,
}

/// Cycles until all packets have left.
const LIMIT: u64 = 40_000;

/// When the head and the tail of a packet leave.
type Times = Vec<Option<(u64, u64)>>;

/// Packets of all inputs, in order.
#[derive(Clone)]
struct Sources {
    waiting: Vec<VecDeque<Packet>>,
    /// The cycle after the tail of the last packet.
    free: Vec<u64>,
}

impl Sources {
    fn random(shape: Shape, packets: usize, random: &mut Random) -> Sources {
        let mut waiting = vec![VecDeque::new(); shape.ports];
        for number in 0..packets {
            let below = |random: &mut Random, limit: usize| random.below(limit as u64);
            let packet = Packet {
                number,
                gap: [0, 0, 0, 1, 2, 30][random.below(6) as usize],
                channel: below(random, shape.channels) as usize,
                output: below(random, shape.ports) as u8,
                class: below(random, shape.classes) as u8,
                beats: 1 + random.below(11),
                taken_in: 1 + random.below(20),
            };
            waiting[below(random, shape.ports) as usize].push_back(packet);
        }
        Sources { waiting, free: vec![0; shape.ports] }
    }

    /// The packet whose head comes in this cycle, if its channel has room.
    fn next(&mut self, input: usize, now: u64, has_room: impl Fn(usize) -> bool) -> Option<Packet> {
        let packet = *self.waiting[input].front()?;
        let comes = now >= self.free[input] + packet.gap && has_room(packet.channel);
        comes.then(|| {
            self.waiting[input].pop_front();
            self.free[input] = now + packet.beats;
            packet
        })
    }
}

/// Places that receivers give back: cycle, output and class. A receiver tells of one place of a
/// class in a cycle.
#[derive(Default)]
struct Receivers(Vec<(u64, usize, usize)>);

impl Receivers {
    fn takes_in(&mut self, packet: &Packet, tail: u64) {
        self.0.push((tail + packet.taken_in, packet.output.into(), packet.class.into()));
    }

    fn returns(&mut self, now: u64) -> [[bool; CLASSES]; PORTS] {
        let mut all = [[false; CLASSES]; PORTS];
        self.0.retain(|&(at, output, class)| {
            at > now || std::mem::replace(&mut all[output][class], true)
        });
        all
    }
}

/// The block, cycle by cycle.
fn of_cycles(shape: Shape, mut sources: Sources, packets: usize) -> Times {
    let mut xbar = Xbar::new(shape);
    let mut sending: Vec<Option<Packet>> = vec![None; shape.ports];
    let mut sent: Vec<Option<Packet>> = vec![None; packets];
    let (mut heads, mut times) = (vec![None; packets], vec![None; packets]);
    let mut receivers = Receivers::default();
    for now in 0..LIMIT {
        let ready = xbar.out().in_ready;
        let credit = receivers.returns(now);
        let mut input = In { out_ready: [true; PORTS], credit, ..In::default() };
        for at in 0..shape.ports {
            if sending[at].is_none() {
                sending[at] = sources.next(at, now, |channel| ready[at][channel]);
                if let Some(packet) = sending[at] {
                    sent[packet.number] = Some(packet);
                }
            }
            let Some(packet) = &mut sending[at] else { continue };
            input.in_valid[at] = true;
            input.in_channel[at] = packet.channel as u8;
            input.in_output[at] = packet.output;
            input.in_class[at] = packet.class;
            input.in_last[at] = packet.beats == 1;
            input.in_data[at] = packet.number as u64;
            packet.beats -= 1;
            sending[at] = sending[at].filter(|packet| packet.beats > 0);
        }
        let out = xbar.cycle(input);
        for at in (0..shape.ports).filter(|&at| out.out_valid[at]) {
            let number = out.out_data[at] as usize;
            let packet = sent[number].expect("it was sent");
            assert_eq!((at, out.out_class[at]), (packet.output.into(), packet.class));
            let head = *heads[number].get_or_insert(now);
            if out.out_last[at] {
                times[number] = Some((head, now));
                receivers.takes_in(&packet, now);
            }
        }
    }
    times
}

/// The crossbar, event by event.
struct Events {
    crossbar: Crossbar,
    shape: Shape,
    sources: Sources,
    handles: Pool<Packet>,
    times: Times,
    /// By input and channel, packets whose places are not told free.
    inside: Vec<usize>,
    /// Cycles until a place is told free.
    delay: u64,
    /// Cycle, input and channel of each place that will be.
    told: Vec<(u64, usize, usize)>,
    receivers: Receivers,
}

fn cycle_of(time: Time) -> u64 {
    time.ps() / 4000
}

impl Model for Events {
    type Event = NicEvent;

    fn handle(&mut self, event: NicEvent, schedule: &mut Schedule<NicEvent>) {
        let now = cycle_of(schedule.now());
        match event {
            NicEvent::Wake { .. } => self.cycle(schedule, now),
            NicEvent::CrossbarMatches { .. } => {
                let (first, mut grants) = (self.crossbar.next_output, Vec::new());
                self.crossbar.matches(schedule, &mut grants);
                if grants.is_empty() {
                    self.crossbar.next_output = first;
                }
                for Grant { bound, tail, .. } in grants {
                    let packet = self.handles.take(bound.packet);
                    let tail = cycle_of(tail);
                    self.times[packet.number] = Some((now + 4, tail));
                    self.receivers.takes_in(&packet, tail);
                }
            }
            NicEvent::Crossed { input, output, .. } => {
                let channel = self.crossbar.crossed(schedule, input.into(), output.into());
                self.told.push((now + self.delay, input.into(), channel.expect("it was crossing")));
            }
            _ => unreachable!("no other event is scheduled"),
        }
    }
}

impl Events {
    /// What the sources and receivers do in a cycle.
    fn cycle(&mut self, schedule: &mut Schedule<NicEvent>, now: u64) {
        let Events { crossbar, told, inside, receivers, shape, .. } = self;
        told.retain(|&(at, input, channel)| {
            inside[input * shape.channels + channel] -= usize::from(at == now);
            at > now
        });
        for (output, classes) in receivers.returns(now).iter().enumerate() {
            for (class, _) in classes.iter().enumerate().filter(|(_, returned)| **returned) {
                crossbar.credit_returned(schedule, output, class);
            }
        }
        for input in 0..shape.ports {
            let first = input * shape.channels;
            let has_room = |channel| inside[first + channel] < shape.depth;
            let Some(packet) = self.sources.next(input, now, has_room) else { continue };
            inside[first + packet.channel] += 1;
            let handle = self.handles.put(packet);
            let Packet { beats, output, class, .. } = packet;
            let bound =
                Bound { packet: handle, beats, from: 0, to: 0, output, credit_class: class };
            let head = schedule.now();
            crossbar.inject(schedule, (input, packet.channel), bound, head);
        }
        schedule.after(Span::from_ns(4), NicEvent::Wake { token: 0 });
    }
}

/// The crossbar, with arbiters that prefer number 0, and places that are told free after `delay`.
fn of_events(shape: Shape, sources: Sources, packets: usize, delay: u64) -> Times {
    let mut config = Config::prototype();
    config.crossbar.channel_packets = shape.depth;
    let places = |_: usize, _: usize| shape.credits;
    let random = &mut Random::new(1);
    let mut crossbar = Crossbar::new(&config, (0, shape.ports, shape.channels), places, random);
    crossbar.by_output.iter_mut().for_each(|arbiter| arbiter.serve(shape.ports - 1));
    crossbar.by_input.iter_mut().for_each(|arbiter| arbiter.serve(shape.channels - 1));
    let model = Events {
        crossbar,
        shape,
        sources,
        handles: Pool::default(),
        times: vec![None; packets],
        inside: vec![0; shape.ports * shape.channels],
        delay,
        told: Vec::new(),
        receivers: Receivers::default(),
    };
    let mut simulation = Simulation { model, schedule: Schedule::new(1, Span::from_ns(4)) };
    simulation.schedule.at(Time::ZERO, NicEvent::Wake { token: 0 });
    simulation.run(Time::ZERO + Span::from_ns(4) * LIMIT);
    simulation.model.times
}

/// Heads and tails of thousands of random packets leave both in the same cycles: in the paper's
/// shape, in small ones that are mostly full, and with few places behind the outputs.
#[test]
fn packets_leave_gates_and_events_at_the_same_times() {
    let paper =
        Shape { ports: 4, channels: 3, classes: 2, depth: 32, room: 352, beats: 11, credits: 4 };
    let shapes = [
        paper,
        Shape { depth: 1, credits: 1, ..paper },
        Shape { ports: 3, depth: 2, classes: 3, ..paper },
        Shape { ports: 2, channels: 1, classes: 1, depth: 3, credits: 2, ..paper },
        Shape { channels: 4, depth: 2, ..paper },
    ];
    for (seed, shape) in (1..).zip(shapes) {
        let packets = 3000;
        let sources = Sources::random(shape, packets, &mut Random::new(seed));
        let gates = of_cycles(shape, sources.clone(), packets);
        let events = of_events(shape, sources, packets, 2);
        let differs = gates
            .iter()
            .zip(&events)
            .position(|(gates, events)| gates != events || gates.is_none());
        if let Some(number) = differs {
            panic!(
                "{shape:?}, seed {seed}, packet {number}: {:?} in gates, {:?} in events",
                gates[number], events[number]
            );
        }
    }
}

/// Canary: places that are told free a cycle sooner give other times.
#[test]
fn a_cycle_less_is_noticed() {
    let shape =
        Shape { ports: 4, channels: 3, classes: 2, depth: 1, room: 11, beats: 11, credits: 4 };
    let sources = Sources::random(shape, 100, &mut Random::new(1));
    let gates = of_cycles(shape, sources.clone(), 100);
    assert_eq!(gates, of_events(shape, sources.clone(), 100, 2));
    assert_ne!(gates, of_events(shape, sources, 100, 1));
}
