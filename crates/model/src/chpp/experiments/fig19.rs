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
use crate::experiment::{Axis, Origin, Report};
use crate::units::Time;

/// Longest PUT, in bytes; lengths are uniform from 1 to this. The paper does not give it.
const LONGEST: u64 = 16384;

/// Cycles at which shares are recorded.
const MOMENTS: [u64; 7] = [20_000, 50_000, 100_000, 500_000, 1_000_000, 1_500_000, 2_000_000];

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
    arbitration: Arbitration,
    moments: &[u64],
    balanced: bool,
) -> Result<Vec<Vec<f64>>, String> {
    let mut config = Config::prototype();
    config.nic.arbitration = arbitration;
    shares_of(&config, moments, balanced, 5)
}

pub(super) fn shares_of(
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

/// Seeds of the runs in which each function always has work.
const SEEDS: u64 = 8;

/// Student's t for 7 degrees of freedom, at 97.5 % divided among the eight functions (Bonferroni).
const T: f64 = 3.75;

/// The mean share furthest from an eighth, in percent, if each function always has work, and the
/// half-width of its interval. No draw decides who sends, only the arbiter. The eight intervals
/// together hold at 95 %.
fn busy_shares() -> Result<(f64, f64), String> {
    let mut config = Config::prototype();
    config.nic.arbitration = Arbitration { policy: Policy::RoundRobin, weights: Vec::new() };
    let runs: Vec<Vec<f64>> = (1..=SEEDS)
        .map(|seed| Ok(shares_of(&config, &[1_500_000], true, seed)?.remove(0)))
        .collect::<Result<_, String>>()?;
    let count = SEEDS as f64;
    let of_function = |function: usize| {
        let mean = runs.iter().map(|shares| shares[function]).sum::<f64>() / count;
        let squares = runs.iter().map(|shares| (shares[function] - mean).powi(2)).sum::<f64>();
        (mean, T * (squares / (count - 1.0) / count).sqrt())
    };
    let all = (0..config.nic.functions).map(of_function);
    let from_equal = |share: &(f64, f64)| (share.0 - 12.5).abs();
    all.max_by(|a, b| from_equal(a).total_cmp(&from_equal(b))).ok_or("no function".to_owned())
}

pub(super) fn run(report: &mut Report) -> Result<(), String> {
    let fair = Arbitration { policy: Policy::RoundRobin, weights: Vec::new() };
    let over_time = shares(fair, &MOMENTS, false)?;
    let spread = |shares: &[f64]| {
        let most = shares.iter().copied().fold(0.0, f64::max);
        let least = shares.iter().copied().fold(100.0, f64::min);
        (least, most)
    };
    for (moment, shares) in MOMENTS.iter().zip(&over_time) {
        let (least, most) = spread(shares);
        report.value(format!("least share at {moment} cycles"), "%", least);
        report.value(format!("greatest share at {moment} cycles"), "%", most);
    }
    let settled = MOMENTS.iter().zip(&over_time).filter(|(moment, _)| **moment >= 1_500_000);
    for (moment, shares) in settled {
        for (function, share) in shares.iter().enumerate() {
            report.value(format!("share of function {function} at {moment} cycles"), "%", *share);
        }
    }
    let figure = report.figure(
        "Fig. 19: shares of eight functions in the bytes so far",
        Axis::linear("time", "cycles"),
        Axis::linear("share", "%"),
    );
    for function in 0..over_time[0].len() {
        let curve = MOMENTS.iter().zip(&over_time);
        let curve = curve.map(|(moment, shares)| (*moment as f64, shares[function]));
        figure.series(format!("function {function}"), Origin::Model, curve);
    }
    let early = spread(&over_time[0]);
    let late = spread(&over_time[over_time.len() - 1]);
    report.claim(
        "shares swing at the start and then equalise",
        early.1 - early.0 > 3.0 * (late.1 - late.0),
    );
    let (furthest, half_width) = busy_shares()?;
    report.value("always busy: mean share furthest from 12.5 %", "%", furthest);
    report.value("always busy: half-width of its 95 % interval", "%", half_width);
    report.claim(
        "functions that are always busy get 12.5 % each, by the arbiter alone",
        (furthest - 12.5).abs() <= half_width.max(0.125),
    );
    let weighted = shares(
        Arbitration { policy: Policy::Weighted, weights: vec![3, 1, 1, 1, 1, 1, 1, 1] },
        &[500_000],
        true,
    )?;
    report.value("share of function 0 with weight 3 of 10", "%", weighted[0][0]);
    let strict =
        shares(Arbitration { policy: Policy::Strict, weights: Vec::new() }, &[500_000], true)?;
    report.value("share of function 0 with strict priority", "%", strict[0][0]);
    report.claim(
        "with priority, function 0 gets more than with a fair arbiter (3.5)",
        strict[0][0] > 20.0 && weighted[0][0] > 20.0,
    );
    report.vary("shares after 20,000 cycles", &Config::prototype(), |config| {
        shares_of(config, &[20_000], false, 5)
    })
}
