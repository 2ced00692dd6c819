//! Fig. 19 (C-41): shares of eight functions in the bytes transferred so far, over time, with a
//! fair arbiter; also C-40.

use bellwire_wire::endpoint::Endpoint;

use super::Kind;
use super::single::post_free;
use crate::chpp::config::Arbitration;
use crate::chpp::host::{Notice, RingKind};
use crate::chpp::machine::{HostApi, Program};
use crate::chpp::{Config, Machine};
use crate::engine::Policy;
use crate::experiment::{Axis, Origin, Report, of_each_seed, of_seeds};
use crate::stats::{Estimate, over_seeds};
use crate::units::Time;

/// Longest PUT, in bytes; lengths are uniform from 1 to this. The paper does not give it.
const LONGEST: u64 = 16384;

/// Cycles at which shares are recorded.
const MOMENTS: [u64; 7] = [20_000, 50_000, 100_000, 500_000, 1_000_000, 1_500_000, 2_000_000];

/// Seeds of the shares over time: with fewer, a share's interval leaves what the figure shows.
const SEEDS: usize = 16;

/// Operations kept waiting, over all functions.
const KEPT: usize = 256;

/// Random functions of node 0 send PUTs of random length to the same function of node 1.
struct Functions {
    functions: u64,
    balanced: bool,
    bytes: Vec<u64>,
}

impl Functions {
    fn post(&mut self, api: &mut HostApi<'_>, instead_of: Option<usize>) {
        let function = match instead_of {
            Some(function) if self.balanced => function,
            _ => api.below(self.functions) as usize,
        };
        let length = 1 + api.below(LONGEST);
        let (Ok(from), Ok(to)) =
            (Endpoint::new(0, function as u8, 0), Endpoint::new(1, function as u8, 0))
        else {
            return;
        };
        // A descriptor can express every PUT of this length.
        let _ = post_free(api, Kind::Put, (from, to), length);
    }
}

impl Program for Functions {
    fn notified(&mut self, notice: &Notice, api: &mut HostApi<'_>) {
        if notice.ring == RingKind::Receive {
            self.bytes[notice.function] += api.operations()[notice.operation as usize].bytes;
            self.post(api, Some(notice.function));
        }
    }
}

/// Shares of the functions in percent at each of `moments` (cycles), with the given arbiter. With
/// `balanced`, each function always has work; otherwise each new request is from a random function.
///
/// # Errors
/// A sentence, if the machine stops.
pub fn shares(
    arbitration: &Arbitration,
    moments: &[u64],
    balanced: bool,
    seed: u64,
) -> Result<Vec<Vec<f64>>, String> {
    let mut config = Config::prototype();
    config.nic.arbitration = arbitration.clone();
    shares_of(&config, moments, balanced, seed)
}

fn shares_of(
    config: &Config,
    moments: &[u64],
    balanced: bool,
    seed: u64,
) -> Result<Vec<Vec<f64>>, String> {
    let mut machine = Machine::new(config, seed).map_err(|error| error.to_string())?;
    let functions = config.nic.functions;
    let mut program =
        Functions { functions: functions as u64, balanced, bytes: vec![0; functions] };
    for at in 0..KEPT {
        program.post(&mut machine.api(), balanced.then_some(at % functions));
    }
    let mut all = Vec::new();
    for moment in moments {
        machine
            .run_program(&mut program, Time::ZERO + config.nic.cycle() * *moment)
            .map_err(|stopped| stopped.to_string())?;
        let total: u64 = program.bytes.iter().sum();
        all.push(
            program.bytes.iter().map(|bytes| *bytes as f64 / total.max(1) as f64 * 100.0).collect(),
        );
    }
    machine.audit().map_err(|imbalance| imbalance.to_string())?;
    Ok(all)
}

/// Student's t for 7 degrees of freedom, at 97.5 % divided among the eight functions (Bonferroni).
const T: f64 = 3.75;

/// Each seed's draws of one quantity of its shares, at one moment.
fn draws(runs: &[Vec<Vec<f64>>], moment: usize, of: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    runs.iter().map(|shares| of(&shares[moment])).collect()
}

/// The mean share furthest from an eighth, in percent, if each function always has work, with its
/// interval and the number of seeds. No draw decides who sends, only the arbiter. The eight
/// intervals together hold at 95 %.
fn busy_shares() -> Result<(Estimate, usize), String> {
    let fair = Arbitration { policy: Policy::RoundRobin, weights: Vec::new() };
    let runs = of_each_seed(|seed| shares(&fair, &[1_500_000], true, seed))?;
    let count = runs.len() as f64;
    let of_function = |function: usize| {
        let shares = draws(&runs, 0, |shares| shares[function]);
        let mean = shares.iter().sum::<f64>() / count;
        let squares = shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>();
        Estimate { mean, half_width: T * (squares / (count - 1.0) / count).sqrt() }
    };
    let all = (0..Config::prototype().nic.functions).map(of_function);
    let from_equal = |share: &Estimate| (share.mean - 12.5).abs();
    let furthest = all.max_by(|a, b| from_equal(a).total_cmp(&from_equal(b)));
    Ok((furthest.ok_or("no function")?, runs.len()))
}

fn least(shares: &[f64]) -> f64 {
    shares.iter().copied().fold(100.0, f64::min)
}

fn greatest(shares: &[f64]) -> f64 {
    shares.iter().copied().fold(0.0, f64::max)
}

pub(super) fn run(report: &mut Report) -> Result<(), String> {
    let fair = Arbitration { policy: Policy::RoundRobin, weights: Vec::new() };
    let runs = of_seeds(SEEDS, |seed| shares(&fair, &MOMENTS, false, seed))?;
    for (at, moment) in MOMENTS.iter().enumerate() {
        let of = |of: fn(&[f64]) -> f64| draws(&runs, at, of);
        report.drawn(format!("least share at {moment} cycles"), "%", &of(least));
        report.drawn(format!("greatest share at {moment} cycles"), "%", &of(greatest));
    }
    for (at, moment) in MOMENTS.iter().enumerate().filter(|(_, moment)| **moment >= 1_500_000) {
        for function in 0..runs[0][at].len() {
            let of_function = draws(&runs, at, |shares| shares[function]);
            let what = format!("share of function {function} at {moment} cycles");
            report.drawn(what, "%", &of_function);
        }
    }
    let figure = report.figure(
        "Fig. 19: shares of eight functions in the bytes so far",
        Axis::linear("time", "cycles"),
        Axis::linear("share", "%"),
    );
    // One run, as in the paper: the mean over seeds would hide the swings.
    for function in 0..runs[0][0].len() {
        let curve = MOMENTS.iter().zip(&runs[0]);
        let curve = curve.map(|(moment, shares)| (*moment as f64, shares[function]));
        figure.series(format!("function {function}, first seed"), Origin::Model, curve);
    }
    let swing = |shares: &[f64]| greatest(shares) - least(shares);
    let (early, late) = (draws(&runs, 0, swing), draws(&runs, MOMENTS.len() - 1, swing));
    let beyond: Vec<f64> = early.iter().zip(late).map(|(early, late)| early - 3.0 * late).collect();
    report.claim("shares swing at the start and then equalise", over_seeds(&beyond).is_above(0.0));
    let (furthest, seeds) = busy_shares()?;
    report.estimated("always busy: mean share furthest from 12.5 %", "%", furthest, seeds);
    report.claim(
        "functions that are always busy get 12.5 % each, by the arbiter alone",
        (furthest.mean - 12.5).abs() <= furthest.half_width.max(0.125),
    );
    let mut first = |what: &str, policy, weights: &[u32]| {
        let arbitration = Arbitration { policy, weights: weights.to_vec() };
        let runs = of_each_seed(|seed| shares(&arbitration, &[500_000], true, seed))?;
        let of_first = draws(&runs, 0, |shares| shares[0]);
        Ok::<Estimate, String>(report.drawn(what, "%", &of_first).estimate())
    };
    let weighted = first(
        "share of function 0 with weight 3 of 10",
        Policy::Weighted,
        &[3, 1, 1, 1, 1, 1, 1, 1],
    )?;
    let strict = first("share of function 0 with strict priority", Policy::Strict, &[])?;
    report.claim(
        "with priority, function 0 gets more than with a fair arbiter (3.5)",
        strict.is_above(20.0) && weighted.is_above(20.0),
    );
    report.vary("shares after 20,000 cycles", &Config::prototype(), |config| {
        shares_of(config, &[20_000], false, 5)
    })
}
