//! The load of a network, for trials with any parameters.

use serde::{Deserialize, Serialize};

use super::config::FabricConfig;
use super::experiment::{Duration, Experiment};
use super::plan::{PARAMETERS, Shape};
use super::traffic::{Arrival, Pattern, Sizes, Traffic};
use crate::form;
use crate::sensitivity::Parameters;
use crate::trial::{Load, Measured, Quantity, Trial, high, low, neither, within};

/// The loads.
pub const LOADS: [Trial; 1] = [Trial::of::<UnderTraffic>()];

/// The tables `topology` and `router` of a plan.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Network {
    topology: Shape,
    router: FabricConfig,
}

impl Parameters for Network {
    const FILE: &'static str = PARAMETERS;

    fn refusal(&self) -> Option<String> {
        let topology = self.topology.build().err().map(|why| format!("`topology`: {why}"));
        topology.or_else(|| self.router.refusal())
    }
}

/// The tables `traffic` and `run` of a plan, in one.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UnderTraffic {
    pattern: Pattern,
    arrival: Arrival,
    sizes: Sizes,
    cycles: u64,
    warm_up_cycles: u64,
}

impl Default for UnderTraffic {
    fn default() -> UnderTraffic {
        UnderTraffic {
            pattern: Pattern::Uniform,
            arrival: Arrival::Random { load: 0.3 },
            sizes: Sizes::Beats(8),
            cycles: 4000,
            warm_up_cycles: 1000,
        }
    }
}

impl Load for UnderTraffic {
    type System = Network;
    const NAME: &'static str = "traffic";
    const TITLE: &'static str = "traffic as in a plan of `bellwire model run`";
    const QUANTITIES: &'static [Quantity] = &[
        low("latency_ns", "mean time from a packet's creation to its last beat's arrival"),
        neither("latency_cycles", "the same in cycles of the routers"),
        high("throughput_beats", "beats delivered per terminal and cycle"),
        high("fairness", "least through most beats delivered from a terminal"),
        neither("hops", "mean number of routers that a delivered beat crossed"),
        neither("busiest", "share of cycles in which the busiest line carried a beat"),
    ];

    fn base(_: &dyn Fn(&str) -> Option<String>) -> Result<Network, String> {
        form::read(PARAMETERS).map_err(|error| error.to_string())
    }

    fn run(&self, system: &Network, seed: u64) -> Result<Measured, String> {
        /// Longer runs of large networks take hours.
        const MOST_CYCLES: u64 = 10_000_000;
        let UnderTraffic { pattern, arrival, sizes, cycles, warm_up_cycles } = self;
        within("cycles", *cycles, 100, MOST_CYCLES)?;
        within("warm_up_cycles", *warm_up_cycles, 0, cycles - 1)?;
        let topology = system.topology.build().map_err(|error| error.to_string())?;
        let traffic =
            Traffic { pattern: pattern.clone(), arrival: arrival.clone(), sizes: sizes.clone() };
        let duration = Duration { cycles: *cycles, warm_up_cycles: Some(*warm_up_cycles) };
        let experiment = Experiment::new(topology, system.router.clone(), traffic, duration, seed);
        let report = experiment.map_err(|error| error.to_string())?.run();
        let report = report.map_err(|error| error.to_string())?;
        // Without an arrival there is no latency.
        let came = report.latency.count() > 0;
        let latency_cycles = if came { report.latency_cycles.mean } else { f64::NAN };
        let figures = vec![
            latency_cycles * system.router.cycle().as_ns(),
            latency_cycles,
            report.throughput.mean,
            report.fairness(),
            report.mean_hops,
            report.limit.utilisation,
        ];
        Ok(Measured { figures, trace_hash: report.trace_hash })
    }
}
