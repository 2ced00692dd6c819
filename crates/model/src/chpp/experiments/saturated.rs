//! The crossbar alone: packets of one length for random outputs, and every receiver takes them at
//! once. Every input always has packets, or they arrive at random times.

use std::collections::VecDeque;

use crate::chpp::crossbar::{Bound, Crossbar, DATA, Grant};
use crate::chpp::{Config, NicEvent};
use crate::engine::{Model, Pool, Random, Schedule, Simulation};
use crate::units::{Span, Time};

/// Bytes of data in a packet.
const PACKET_BYTES: u64 = 128;

/// Beats of such a packet with its header.
const BEATS: u64 = 9;

/// The results of a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Carried {
    /// Throughput of an output in bytes per nanosecond, averaged over all outputs.
    pub gigabytes_s: f64,
    /// Mean time from a packet's arrival until its last beat is through, in nanoseconds.
    pub latency_ns: f64,
}

/// A crossbar without interfaces.
struct Alone {
    crossbar: Crossbar,
    /// The arrival times of the packets in the channels.
    packets: Pool<Time>,
    grants: Vec<Grant>,
    random: Random,
    /// Mean time between packets of an input; nothing if an input always has one.
    mean_gap: Option<Span>,
    to_itself: bool,
    /// By input, packets blocked by a full channel or by an earlier packet (head-of-line): arrival
    /// time and output.
    waiting: Vec<VecDeque<(Time, usize)>>,
    counted_from: Time,
    crossed: u64,
    latency_ps: u128,
}

impl Alone {
    /// The crossbar of `config`, whose inputs have their first packets.
    fn start(
        config: &Config,
        seed: u64,
        mean_gap: Option<Span>,
        to_itself: bool,
    ) -> Result<Simulation<Alone>, String> {
        config.check().map_err(|error| error.to_string())?;
        let (ports, channels) = (config.crossbar.ports, config.crossbar.channels);
        if ports < 2 {
            return Err("a crossbar has at least 2 ports".to_owned());
        }
        let mut random = Random::new(seed);
        let places = |_: usize, _: usize| config.crossbar.receive_packets;
        let mut model = Alone {
            crossbar: Crossbar::new(config, (0, ports, channels), places, &mut random),
            packets: Pool::default(),
            grants: Vec::new(),
            random,
            mean_gap,
            to_itself,
            waiting: vec![VecDeque::new(); ports],
            counted_from: Time::ZERO,
            crossed: 0,
            latency_ps: 0,
        };
        let mut schedule = Schedule::new(seed, config.nic.cycle());
        (0..ports).for_each(|input| model.next(&mut schedule, input));
        (0..ports).for_each(|input| model.fill(&mut schedule, input));
        Ok(Simulation { model, schedule })
    }

    /// The next packet of an input arrives after a random gap, or at once.
    fn next(&mut self, schedule: &mut Schedule<NicEvent>, input: usize) {
        match self.mean_gap {
            Some(mean) => {
                let gap = Span::from_ps(self.random.exponential_of(mean.ps()));
                schedule.after(gap, NicEvent::Wake { token: input as u32 });
            }
            None => self.comes(schedule.now(), input),
        }
    }

    /// A packet for a random output arrives at an input.
    fn comes(&mut self, now: Time, input: usize) {
        let others = self.waiting.len() as u64 - u64::from(!self.to_itself);
        let other = self.random.below(others) as usize;
        let output = if !self.to_itself && other >= input { other + 1 } else { other };
        self.waiting[input].push_back((now, output));
    }

    /// Puts packets into the channels of `input` in order of arrival, until one finds no room.
    fn fill(&mut self, schedule: &mut Schedule<NicEvent>, input: usize) {
        while let Some(&(came, output)) = self.waiting[input].front() {
            let channel = output % self.crossbar.channels;
            if !self.crossbar.has_room(input, channel) {
                return;
            }
            self.waiting[input].pop_front();
            let (packet, now) = (self.packets.put(came), schedule.now());
            let (from, to, credit_class) = (input as u8, output as u8, DATA as u8);
            let bound = Bound { packet, beats: BEATS, from, to, output: to, credit_class };
            self.crossbar.inject(schedule, (input, channel), bound, now);
            if self.mean_gap.is_none() {
                self.next(schedule, input);
            }
        }
    }
}

impl Model for Alone {
    type Event = NicEvent;

    fn handle(&mut self, event: NicEvent, schedule: &mut Schedule<NicEvent>) {
        match event {
            NicEvent::Wake { token } => {
                let input = token as usize;
                self.comes(schedule.now(), input);
                self.fill(schedule, input);
                self.next(schedule, input);
            }
            NicEvent::CrossbarMatches { .. } => {
                let mut grants = std::mem::take(&mut self.grants);
                self.crossbar.matches(schedule, &mut grants);
                for Grant { bound, tail, .. } in grants.drain(..) {
                    self.crossbar.credit_returned(schedule, bound.output.into(), DATA);
                    let came = self.packets.take(bound.packet);
                    if schedule.now() >= self.counted_from {
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
/// is not counted. A packet goes to another, random output.
///
/// # Errors
/// A sentence, if the crossbar cannot be built, or it loses a packet.
pub fn carried(
    config: &Config,
    gigabytes_s: f64,
    duration: Span,
    seed: u64,
) -> Result<Carried, String> {
    let mean_gap = Span::from_ps((PACKET_BYTES as f64 / gigabytes_s * 1e3) as u64);
    let mut simulation = Alone::start(config, seed, Some(mean_gap), false)?;
    let until = Time::ZERO + duration;
    simulation.model.counted_from = Time::ZERO + duration / 3;
    simulation.run(until);
    let Simulation { model, schedule } = simulation;
    model.crossbar.audit(schedule.now()).map_err(|imbalance| imbalance.to_string())?;
    let counted = (until - model.counted_from).as_ns() * config.crossbar.ports as f64;
    Ok(Carried {
        gigabytes_s: (model.crossed * PACKET_BYTES) as f64 / counted,
        latency_ns: model.latency_ps as f64 / model.crossed.max(1) as f64 / 1e3,
    })
}

/// Utilisation of an output, averaged over the outputs, in a saturated crossbar whose inputs hold
/// `depth` packets in each of their `channels`. With `to_itself`, an input also has packets for the
/// output of its own number.
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
    let mut simulation = Alone::start(&config, seed, None, to_itself)?;
    let taken = config.nic.cycle() * (BEATS + config.nic.engine_cycles);
    // The first slots are warm-up.
    simulation.run(Time::ZERO + taken * (slots / 10));
    let before: u64 = simulation.model.crossbar.crossed.iter().sum();
    let from = simulation.now();
    simulation.run(Time::ZERO + taken * slots);
    let Simulation { model, schedule } = simulation;
    let crossed = model.crossbar.crossed.iter().sum::<u64>() - before;
    model.crossbar.audit(schedule.now()).map_err(|imbalance| imbalance.to_string())?;
    Ok((crossed * taken.ps()) as f64 / (ports as u64 * (schedule.now() - from).ps()) as f64)
}
