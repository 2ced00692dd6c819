//! Fig. 18 (C-44): latency against throughput, for five sizes of crossbar, with PUTs to random
//! ports.

use bellwire_wire::endpoint::Endpoint;

use super::Kind;
use super::saturated::{carried, throughput};
use super::single::{endpoint, post};
use crate::chpp::host::{Notice, RingKind};
use crate::chpp::machine::{HostApi, Program};
use crate::chpp::{Config, Machine};
use crate::experiment::{Axis, Report, draws, of_each_seed};
use crate::stats::{Estimate, excess, over_seeds};
use crate::units::{Bytes, Span, Time};

/// Ports and channels of the five curves.
const SIZES: [(usize, usize); 5] = [(4, 2), (4, 4), (8, 2), (8, 4), (16, 4)];

/// Bytes of a PUT. The paper does not say.
const MESSAGE: u64 = 4096;

/// Theoretical peak of a port in GB/s (5.4).
const PEAK: f64 = 4.0;

/// A name, bytes of a PUT, and a change of the configuration.
type Variation = (&'static str, u64, fn(&mut Config));

/// Settings that the paper may have used for Fig. 18.
const VARIATIONS: [Variation; 6] = [
    ("PUTs of 1 KiB", 1024, |_| {}),
    ("PUTs of 16 KiB", 16384, |_| {}),
    ("channels of 4 packets", MESSAGE, |config| config.crossbar.channel_packets = 4),
    ("channels of 256 packets", MESSAGE, |config| config.crossbar.channel_packets = 256),
    ("wires of 16 lanes", MESSAGE, |config| config.pcie.lanes = 16),
    ("channels of 256 packets and wires of 16 lanes", MESSAGE, |config| {
        config.crossbar.channel_packets = 256;
        config.pcie.lanes = 16;
    }),
];

/// Offered loads as shares of the peak, up to 1 for saturation.
const LOADS: [f64; 8] = [0.1, 0.3, 0.45, 0.55, 0.6, 0.65, 0.7, 1.0];

/// The results of a load.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Mean bandwidth of a port, as a share of the peak.
    pub throughput: f64,
    /// Mean time from posting a PUT to its event, in nanoseconds.
    pub latency_ns: f64,
    /// The busiest resource.
    pub limit: String,
}

/// Each port sends PUTs at random times to random other ports.
struct Uniform {
    ports: u64,
    message: u64,
    mean_gap: Span,
    until: Time,
    counted_from: Time,
    bytes: u64,
    measured: u64,
    latency_ps: u128,
}

impl Uniform {
    fn post(&mut self, node: u64, api: &mut HostApi<'_>) {
        let other = api.below(self.ports - 1);
        let to = if other >= node { other + 1 } else { other };
        let from = endpoint(node as u8);
        let Ok(to) = Endpoint::new(to as u8, 0, 0) else { return };
        let far = api.free_memory(to.cpu().into(), 0) + node * self.message;
        let near = api.free_memory(node as usize, 0) + 16 * self.message;
        // A descriptor can express every message of this length.
        let _ = post(api, Kind::Put, (from, to), (near, far), self.message);
    }
}

impl Program for Uniform {
    fn notified(&mut self, notice: &Notice, api: &mut HostApi<'_>) {
        let operation = &api.operations()[notice.operation as usize];
        if notice.ring == RingKind::Receive
            && notice.time >= self.counted_from
            && notice.time < self.until
        {
            self.bytes += operation.bytes;
            self.measured += 1;
            self.latency_ps += u128::from((notice.time - operation.posted).ps());
        }
    }

    fn woken(&mut self, node: u32, api: &mut HostApi<'_>) {
        self.post(node.into(), api);
        // The gap is uniform from one unit to twice the mean, so bursts are short.
        let next = api.now() + Span::from_ps(1 + api.below(2 * self.mean_gap.ps()));
        if next < self.until {
            api.wake(next, node);
        }
    }
}

/// The prototype with this crossbar, and processors that are never the bottleneck.
pub(super) fn config(ports: usize, channels: usize) -> Config {
    let mut config = Config::prototype();
    config.crossbar.ports = ports;
    config.crossbar.channels = channels;
    config.host.cpu_start = Span::ZERO;
    config.nic.functions = 1;
    config.host.window = Bytes::new(4 << 20);
    config
}

/// Runs one load for `duration`; the first third is not counted.
///
/// # Errors
/// A sentence, if the machine cannot be built or stops.
pub fn point(config: &Config, load: f64, duration: Span, seed: u64) -> Result<Point, String> {
    point_of(config, MESSAGE, load, duration, seed)
}

fn point_of(
    config: &Config,
    message: u64,
    load: f64,
    duration: Span,
    seed: u64,
) -> Result<Point, String> {
    let mut machine = Machine::new(config, seed).map_err(|error| error.to_string())?;
    let ports = config.nodes();
    let mean_gap = Span::from_ps((message as f64 / (load * PEAK) * 1e3) as u64);
    let (until, counted_from) = (Time::ZERO + duration, Time::ZERO + duration / 3);
    let mut program = Uniform {
        ports: ports as u64,
        message,
        mean_gap,
        until,
        counted_from,
        bytes: 0,
        measured: 0,
        latency_ps: 0,
    };
    for node in 0..ports as u32 {
        let mut api = machine.api();
        let first = Time::from_ps(api.below(2 * mean_gap.ps()));
        api.wake(first, node);
    }
    machine.run_program(&mut program, until).map_err(|stopped| stopped.to_string())?;
    machine.audit().map_err(|imbalance| imbalance.to_string())?;
    let limit = machine
        .busiest()
        .first()
        .map_or(String::new(), |busy| format!("{} ({:.0} %)", busy.resource, busy.share * 100.0));
    let counted = (until - counted_from).as_ns();
    Ok(Point {
        throughput: program.bytes as f64 / counted / ports as f64 / PEAK,
        latency_ns: program.latency_ps as f64 / program.measured.max(1) as f64 / 1e3,
        limit,
    })
}

fn gigabytes_s(points: &[Point]) -> Vec<f64> {
    draws(points, |at| at.throughput * PEAK)
}

/// A curve of (GB/s, us), and each seed's bandwidth at saturation in GB/s.
type Curve = (Vec<(f64, Estimate)>, Vec<f64>);

/// The second reading: packets go straight into the channels, and receivers take them at once.
/// Returns a curve for each size.
fn crossbar_alone(report: &mut Report) -> Result<Vec<Curve>, String> {
    let duration = Span::from_ns(300_000);
    let mut curves = Vec::new();
    for (ports, channels) in SIZES {
        let config = config(ports, channels);
        let name = format!("{ports} ports {channels} VC, second reading: crossbar alone");
        let mut curve = Vec::new();
        for load in LOADS.into_iter().filter(|load| *load < 1.0) {
            let runs = of_each_seed(|seed| carried(&config, load * PEAK, duration, seed))?;
            let latency: Vec<f64> = runs.iter().map(|at| at.latency_ns / 1e3).collect();
            let rate: Vec<f64> = runs.iter().map(|at| at.gigabytes_s).collect();
            let what = format!("{name}, latency at {:.0} %", load * 100.0);
            let found = report.drawn(what, "us", &latency).estimate();
            curve.push((over_seeds(&rate).mean, found));
        }
        let depth = config.crossbar.channel_packets;
        // A packet of 128 B takes 10 cycles; 8 of them carry data.
        let rate = of_each_seed(|seed| {
            Ok(throughput(ports, channels, depth, false, 5_000, seed)? * 0.8 * PEAK)
        })?;
        report.drawn(name, "GB/s", &rate);
        curves.push((curve, rate));
    }
    Ok(curves)
}

pub(super) fn run(report: &mut Report) -> Result<(), String> {
    let duration = Span::from_ns(75_000);
    let mut saturated = Vec::new();
    let mut curves = Vec::new();
    for (ports, channels) in SIZES {
        let mut curve = Vec::new();
        let config = config(ports, channels);
        let mut knee = None;
        let mut idle = 0.0;
        let name = format!("{ports} ports {channels} VC");
        for load in LOADS {
            // At saturation the queues of the hosts take longer to become steady.
            let lasts = if load < 1.0 { duration } else { duration * 6 };
            let runs = of_each_seed(|seed| point(&config, load, lasts, seed))?;
            let latency = draws(&runs, |at| at.latency_ns / 1e3);
            let (rate, found) = (gigabytes_s(&runs), over_seeds(&latency));
            curve.push((over_seeds(&rate).mean, found));
            if load == LOADS[0] {
                idle = found.mean;
            }
            if load < 1.0 {
                report.drawn(format!("{name}, latency at {:.0} %", load * 100.0), "us", &latency);
                if knee.is_none() && found.mean > 3.0 * idle {
                    knee = Some(load);
                }
            } else {
                report.drawn(format!("{name}, saturated"), "GB/s", &rate);
                saturated.push(rate);
                report.note(format!(
                    "{name}, saturated: busiest with the first seed is the {}.",
                    runs[0].limit
                ));
            }
        }
        curves.push((name.clone(), curve));
        let at = knee.map_or("beyond 70 %".to_owned(), |load| format!("at {:.0} %", load * 100.0));
        report.note(format!(
            "{name}: latency first exceeds three times that of an idle network {at} of the peak."
        ));
    }
    let [small, small_more, middle, middle_more, large_more] = &saturated[..] else {
        return Err("five sizes".to_owned());
    };
    let gain = small_more.iter().zip(small).map(|(more, less)| (more / less - 1.0) * 100.0);
    let gain: Vec<f64> = gain.collect();
    report.drawn("gain of 4 VC over 2 VC at 4 ports", "%", &gain);
    let alone = crossbar_alone(report)?;
    let figure = report.figure(
        "Fig. 18: latency against throughput",
        Axis::linear("bandwidth of a port", "GB/s"),
        Axis::logarithmic("latency", "us"),
    );
    for (name, curve) in curves {
        figure.drawn(name, curve);
    }
    let figure = report.figure(
        "Fig. 18, second reading: the crossbar alone",
        Axis::linear("bandwidth of a port", "GB/s"),
        Axis::logarithmic("latency of a packet", "us"),
    );
    let mut second = Vec::new();
    for ((ports, channels), (curve, saturated)) in SIZES.into_iter().zip(alone) {
        figure.drawn(format!("{ports} ports {channels} VC"), curve);
        second.push(saturated);
    }
    let figure = report.figure(
        "Fig. 18: bandwidth at saturation, 4 ports",
        Axis::linear("virtual channels", ""),
        Axis::linear("bandwidth of a port", "GB/s"),
    );
    let with_four = |of: &[Vec<f64>]| [(2.0, over_seeds(&of[0])), (4.0, over_seeds(&of[1]))];
    figure.drawn("the whole interface", with_four(&saturated));
    figure.drawn("the crossbar alone", with_four(&second));
    // Of a random load, an order holds if the interval of the difference does not reach zero.
    let exceeds = |more: &[f64], less: &[f64]| excess(more, less).is_above(0.0);
    report.claim("at 4 ports, throughput grows with the channels", exceeds(small_more, small));
    report.claim("at 8 ports, throughput grows with the channels", exceeds(middle_more, middle));
    report.claim("at 2 channels, throughput falls with the ports", exceeds(small, middle));
    report.claim(
        "at 4 channels, throughput falls with the ports",
        exceeds(small_more, middle_more) && exceeds(middle_more, large_more),
    );
    let knee = over_seeds(&second[0]);
    report.claim(
        "second reading: with 4 ports and 2 VC latency turns up near 65 % of the peak",
        knee.is_above(0.60 * PEAK) && knee.is_below(0.70 * PEAK),
    );
    report.claim(
        "second reading: more channels get further, more ports less far",
        exceeds(&second[1], &second[0])
            && exceeds(&second[3], &second[2])
            && exceeds(&second[0], &second[2])
            && exceeds(&second[1], &second[3])
            && exceeds(&second[3], &second[4]),
    );
    // Parameters that the paper does not give, one at a time.
    for (what, message, change) in VARIATIONS {
        for channels in [2, 4] {
            let mut config = config(4, channels);
            change(&mut config);
            let runs = of_each_seed(|seed| point_of(&config, message, 1.0, duration * 3, seed))?;
            let what = format!("4 ports {channels} VC with {what}, saturated");
            report.drawn(what, "GB/s", &gigabytes_s(&runs));
        }
    }
    report.vary("4 ports 2 VC, saturated for 5 us", &config(4, 2), |config| {
        point(config, 1.0, Span::from_ns(5_000), 1)
    })
}
