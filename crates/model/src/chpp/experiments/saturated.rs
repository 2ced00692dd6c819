//! The crossbar alone, saturated: every input always has packets of one length for random outputs,
//! and every receiver takes them at once.

use crate::chpp::crossbar::{Bound, Crossbar, DATA, Grant};
use crate::chpp::{Config, NicEvent, Packet, PacketHandle};
use crate::engine::{Model, Pool, Random, Schedule, Simulation};
use crate::units::Time;

/// Beats of a packet of 128 B with its header.
pub const BEATS: u64 = 9;

/// A crossbar with saturated inputs.
struct Saturated {
    crossbar: Crossbar,
    packet: PacketHandle,
    grants: Vec<Grant>,
    random: Random,
    ports: usize,
    channels: usize,
    to_itself: bool,
    /// By input, the output of the next packet; the packet waits if its channel is full.
    next: Vec<usize>,
}

impl Saturated {
    fn draw(&mut self, input: usize) -> usize {
        if self.to_itself {
            return self.random.below(self.ports as u64) as usize;
        }
        let other = self.random.below(self.ports as u64 - 1) as usize;
        if other >= input { other + 1 } else { other }
    }

    /// Puts packets into the channels of `input` in the order of their draws, until one finds no
    /// room.
    fn fill(&mut self, schedule: &mut Schedule<NicEvent>, input: usize) {
        loop {
            let output = self.next[input];
            let channel = output % self.channels;
            if !self.crossbar.has_room(input, channel) {
                return;
            }
            let now = schedule.now();
            let (from, to, place) = (input as u8, output as u8, DATA as u8);
            let bound = Bound {
                packet: self.packet,
                beats: BEATS,
                from,
                to,
                output: to,
                credit_class: place,
            };
            self.crossbar.inject(schedule, (input, channel), bound, now);
            self.next[input] = self.draw(input);
        }
    }
}

impl Model for Saturated {
    type Event = NicEvent;

    fn handle(&mut self, event: NicEvent, schedule: &mut Schedule<NicEvent>) {
        match event {
            NicEvent::CrossbarMatches { .. } => {
                let mut grants = std::mem::take(&mut self.grants);
                self.crossbar.matches(schedule, &mut grants);
                for grant in grants.drain(..) {
                    let output = grant.bound.output.into();
                    self.crossbar.credit_returned(schedule, output, DATA);
                }
                self.grants = grants;
            }
            NicEvent::Crossed { input, output, .. } => {
                self.crossbar.crossed(schedule, input.into(), output.into());
                self.fill(schedule, input.into());
            }
            _ => {}
        }
    }
}

/// Utilisation of an output, averaged over the outputs, in a crossbar whose inputs hold `depth`
/// packets in each of their `channels`. With `to_itself`, an input also has packets for the output
/// of its own number.
///
/// # Errors
/// A sentence, if the crossbar cannot be built.
pub fn throughput(
    ports: usize,
    channels: usize,
    depth: usize,
    to_itself: bool,
    slots: u64,
    seed: u64,
) -> Result<f64, String> {
    let mut config = Config::prototype();
    config.crossbar.ports = ports;
    config.crossbar.channels = channels;
    config.crossbar.channel_packets = depth;
    config.check().map_err(|error| error.to_string())?;
    if ports < 2 {
        return Err("a crossbar has at least 2 ports".to_owned());
    }
    let mut random = Random::new(seed);
    let places = |_: usize, _: usize| config.crossbar.receive_packets;
    let crossbar = Crossbar::new(&config, (0, ports, channels), places, &mut random);
    let mut packets = Pool::default();
    let packet = packets.put(Packet { bytes: Vec::new(), operation: 0, part: 0, is_get: false });
    let next = vec![0; ports];
    let mut model = Saturated {
        crossbar,
        packet,
        grants: Vec::new(),
        random,
        ports,
        channels,
        to_itself,
        next,
    };
    let mut schedule = Schedule::new(seed, config.nic.cycle());
    model.next = (0..ports).map(|input| model.draw(input)).collect();
    for input in 0..ports {
        model.fill(&mut schedule, input);
    }
    let taken = config.nic.cycle() * (BEATS + config.nic.engine_cycles);
    // The first slots are warm-up.
    let mut simulation = Simulation { model, schedule };
    simulation.run(Time::ZERO + taken * (slots / 10));
    let before: u64 = simulation.model.crossbar.crossed.iter().sum();
    let from = simulation.now();
    simulation.run(Time::ZERO + taken * slots);
    let Simulation { model, schedule } = simulation;
    let crossed = model.crossbar.crossed.iter().sum::<u64>() - before;
    model.crossbar.audit(schedule.now()).map_err(|imbalance| imbalance.to_string())?;
    Ok((crossed * taken.ps()) as f64 / (ports as u64 * (schedule.now() - from).ps()) as f64)
}
