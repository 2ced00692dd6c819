//! The crossbar alone under load: packets of one length for other, random outputs arrive at random
//! times, and every receiver takes them at once.

use std::collections::VecDeque;

use super::saturated::BEATS;
use crate::chpp::crossbar::{Bound, Crossbar, DATA, Grant};
use crate::chpp::{Config, NicEvent, Packet};
use crate::engine::{Model, Pool, Random, Schedule, Simulation};
use crate::units::{Span, Time};

/// Bytes of data in a packet.
pub const PACKET_BYTES: u64 = 128;

/// The results of a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Carried {
    /// Throughput of an output in bytes per nanosecond, averaged over all outputs.
    pub gigabytes_s: f64,
    /// Mean time from a packet's arrival until its last beat is through, in nanoseconds.
    pub latency_ns: f64,
}

/// A crossbar with an offered load.
struct Loaded {
    crossbar: Crossbar,
    packets: Pool<Packet>,
    grants: Vec<Grant>,
    random: Random,
    channels: usize,
    mean_gap: Span,
    /// By input, packets blocked by a full channel or by an earlier packet (head-of-line): arrival
    /// time and output.
    waiting: Vec<VecDeque<(Time, u8)>>,
    /// By place in the pool, the arrival time of the packet.
    came: Vec<Time>,
    counted_from: Time,
    crossed: u64,
    latency_ps: u128,
}

impl Loaded {
    /// Puts packets into the channels of `input` in order of arrival, until one finds no room.
    fn fill(&mut self, schedule: &mut Schedule<NicEvent>, input: usize) {
        while let Some(&(came, output)) = self.waiting[input].front() {
            let channel = usize::from(output) % self.channels;
            if !self.crossbar.has_room(input, channel) {
                return;
            }
            self.waiting[input].pop_front();
            let packet = Packet { bytes: Vec::new(), operation: 0, part: 0, is_get: false };
            let packet = self.packets.put(packet);
            let place = packet.index() as usize;
            self.came.resize(self.came.len().max(place + 1), Time::ZERO);
            self.came[place] = came;
            let (from, now) = (input as u8, schedule.now());
            let bound =
                Bound { packet, beats: BEATS, from, to: output, output, credit_class: DATA as u8 };
            self.crossbar.inject(schedule, (input, channel), bound, now);
        }
    }

    fn comes(&mut self, schedule: &mut Schedule<NicEvent>, input: usize) {
        let other = self.random.below(self.waiting.len() as u64 - 1) as usize;
        let output = if other >= input { other + 1 } else { other };
        self.waiting[input].push_back((schedule.now(), output as u8));
        self.fill(schedule, input);
        self.next(schedule, input);
    }

    fn next(&mut self, schedule: &mut Schedule<NicEvent>, input: usize) {
        let gap = Span::from_ps(self.random.exponential_of(self.mean_gap.ps()));
        schedule.after(gap, NicEvent::Wake { token: input as u32 });
    }
}

impl Model for Loaded {
    type Event = NicEvent;

    fn handle(&mut self, event: NicEvent, schedule: &mut Schedule<NicEvent>) {
        match event {
            NicEvent::Wake { token } => self.comes(schedule, token as usize),
            NicEvent::CrossbarMatches { .. } => {
                let mut grants = std::mem::take(&mut self.grants);
                self.crossbar.matches(schedule, &mut grants);
                for Grant { bound, tail, .. } in grants.drain(..) {
                    self.crossbar.credit_returned(schedule, bound.output.into(), DATA);
                    self.packets.take(bound.packet);
                    if schedule.now() >= self.counted_from {
                        let came = self.came[bound.packet.index() as usize];
                        self.crossed += 1;
                        self.latency_ps += u128::from((tail - came).ps());
                    }
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

/// Offers `gigabytes_s` to each input of the crossbar of `config` for `duration`; the first third
/// is not counted.
///
/// # Errors
/// A sentence, if the crossbar cannot be built, or it loses a packet.
pub fn carried(
    config: &Config,
    gigabytes_s: f64,
    duration: Span,
    seed: u64,
) -> Result<Carried, String> {
    config.check().map_err(|error| error.to_string())?;
    let (ports, channels) = (config.crossbar.ports, config.crossbar.channels);
    if ports < 2 {
        return Err("a crossbar has at least 2 ports".to_owned());
    }
    let mut random = Random::new(seed);
    let places = |_: usize, _: usize| config.crossbar.receive_packets;
    let until = Time::ZERO + duration;
    let mut model = Loaded {
        crossbar: Crossbar::new(config, (0, ports, channels), places, &mut random),
        packets: Pool::default(),
        grants: Vec::new(),
        random,
        channels,
        mean_gap: Span::from_ps((PACKET_BYTES as f64 / gigabytes_s * 1e3) as u64),
        waiting: vec![VecDeque::new(); ports],
        came: Vec::new(),
        counted_from: Time::ZERO + duration / 3,
        crossed: 0,
        latency_ps: 0,
    };
    let mut schedule = Schedule::new(seed, config.nic.cycle());
    for input in 0..ports {
        model.next(&mut schedule, input);
    }
    let mut simulation = Simulation { model, schedule };
    simulation.run(until);
    let Simulation { model, schedule } = simulation;
    model.crossbar.audit(schedule.now()).map_err(|imbalance| imbalance.to_string())?;
    let counted = (until - model.counted_from).as_ns() * ports as f64;
    Ok(Carried {
        gigabytes_s: (model.crossed * PACKET_BYTES) as f64 / counted,
        latency_ns: model.latency_ps as f64 / model.crossed.max(1) as f64 / 1e3,
    })
}
