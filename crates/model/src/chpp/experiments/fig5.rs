//! Fig. 5 and Table 1 (C-51, B-07): latency by Eq. 1 over five topologies, and their mean distances
//! in modelled networks.

use crate::experiment::{Axis, Origin, Report, of_each_seed};
use crate::network::{self, Duration, FabricConfig, Topology, TopologyError, Traffic};
use crate::stats::{Estimate, LEAST_SEEDS, over_seeds};

/// Parameters of Eq. 1 as printed: Oc, Ods and G.
const PROCESSOR_NS: f64 = 200.0;
const START_NS: f64 = 528.0;
const GAP_NS_PER_BYTE: f64 = 0.25;
const BYTES: f64 = 2048.0;

/// Odr is printed twice and r is missing: one of the two values is r.
const READINGS: [(f64, f64); 2] = [(240.0, 160.0), (160.0, 240.0)];

/// A topology of Table 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Hypercube.
    Hypercube,
    /// Torus of three dimensions.
    Torus3,
    /// Mesh of three dimensions.
    Mesh3,
    /// Torus of two dimensions.
    Torus2,
    /// Mesh of two dimensions.
    Mesh2,
}

impl Shape {
    /// All five, in the order of Table 1.
    pub const ALL: [Shape; 5] =
        [Shape::Hypercube, Shape::Torus3, Shape::Mesh3, Shape::Torus2, Shape::Mesh2];

    /// H(P) of Table 1, with log = log2.
    pub fn mean_hops(self, processors: f64) -> f64 {
        match self {
            Shape::Hypercube => 0.5 * processors.log2(),
            Shape::Torus3 => 0.75 * processors.cbrt(),
            Shape::Mesh3 => processors.cbrt(),
            Shape::Torus2 => 0.5 * processors.sqrt(),
            Shape::Mesh2 => 2.0 / 3.0 * processors.sqrt(),
        }
    }

    /// The network with `radix` to the power of the dimensions routers; a hypercube has 2 to the
    /// power of `radix`.
    fn build(self, radix: usize) -> Result<Topology, TopologyError> {
        match self {
            Shape::Hypercube => Topology::hypercube(radix),
            Shape::Torus3 => Topology::torus(radix, 3),
            Shape::Mesh3 => Topology::mesh(radix, 3),
            Shape::Torus2 => Topology::torus(radix, 2),
            Shape::Mesh2 => Topology::mesh(radix, 2),
        }
    }

    /// Its name in Table 1.
    fn name(self) -> &'static str {
        match self {
            Shape::Hypercube => "Hypercube",
            Shape::Torus3 => "3D torus",
            Shape::Mesh3 => "3D mesh",
            Shape::Torus2 => "2D torus",
            Shape::Mesh2 => "2D mesh",
        }
    }
}

/// T(P) of Eq. 1 in nanoseconds, with receive overhead `receive_ns` and `hop_ns` for each hop.
pub fn latency_ns(shape: Shape, processors: f64, receive_ns: f64, hop_ns: f64) -> f64 {
    PROCESSOR_NS
        + START_NS
        + (BYTES - 1.0) * GAP_NS_PER_BYTE
        + shape.mean_hops(processors) * hop_ns
        + receive_ns
}

/// Mean number of links that packets of uniform traffic cross in `network`, at a load without
/// congestion, once with each seed.
fn measured_hops(network: &Topology) -> Result<Vec<f64>, String> {
    let terminals = network.terminals() as u64;
    let load = 0.01;
    // No packet is longer under way: the longest way has 126 links of 3 cycles.
    let warm_up_cycles = 500;
    // At least 100,000 packets of all seeds.
    let cycles = warm_up_cycles + (100_000 * 100 / terminals / LEAST_SEEDS as u64).max(500);
    let config = FabricConfig { vcs: 2, ..FabricConfig::default() };
    let duration = Duration { cycles, warm_up_cycles: Some(warm_up_cycles) };
    of_each_seed(|seed| {
        let (network, traffic) = (network.clone(), Traffic::uniform(load, 1));
        let mut experiment =
            network::Experiment::new(network, config.clone(), traffic, duration, seed)
                .map_err(|error| error.to_string())?;
        let report = experiment.run().map_err(|imbalance| imbalance.to_string())?;
        // A packet crosses one router more than links.
        Ok(report.mean_hops - 1.0)
    })
}

pub(super) fn run(report: &mut Report) -> Result<(), String> {
    for (receive, hop) in READINGS {
        for shape in Shape::ALL {
            for processors in [8u32, 64, 4096] {
                let name =
                    format!("{}, P = {processors}, Odr = {receive}, r = {hop}", shape.name());
                report
                    .value(name, "ns", latency_ns(shape, processors.into(), receive, hop))
                    .by_formula();
            }
        }
    }
    let mut distances = Vec::new();
    for shape in Shape::ALL {
        let radices: &[usize] = match shape {
            Shape::Hypercube => &[6, 9, 12],
            Shape::Torus3 | Shape::Mesh3 => &[4, 8, 16],
            Shape::Torus2 | Shape::Mesh2 => &[8, 16, 64],
        };
        for radix in radices {
            let network = shape.build(*radix).map_err(|error| error.to_string())?;
            let processors = network.terminals() as f64;
            let name = format!("{}, P = {processors}, mean distance as built", shape.name());
            let leading = shape.mean_hops(processors);
            report.value(name, "hops", network.mean_distance()).beside(leading).explain_within(
                7.0,
                "Compared with H(P) of Table 1, which is the leading term for many processors.",
            );
            let name = format!("{}, P = {processors}, mean distance as measured", shape.name());
            let measured = measured_hops(&network)?;
            distances.push((shape, processors, over_seeds(&measured)));
            report.drawn(name, "hops", &measured).beside(leading).explain_within(
                7.0,
                "The same: what packets of uniform traffic cross is the distance as built.",
            );
        }
    }
    for (receive, hop) in READINGS {
        let title = format!("Fig. 5, with Odr = {receive} ns and r = {hop} ns");
        let figure = report.figure(
            title,
            Axis::logarithmic("processors", ""),
            Axis::logarithmic("latency of 2 KB", "ns"),
        );
        for shape in Shape::ALL {
            let sizes = (3..=16).map(|power| f64::from(1 << power));
            let curve = sizes.map(|p| (p, latency_ns(shape, p, receive, hop)));
            figure.series(shape.name(), Origin::Formula, curve);
            let of_shape = distances.iter().filter(|(of, ..)| *of == shape);
            let built = of_shape.map(|&(_, processors, hops)| {
                let formula = latency_ns(shape, processors, receive, hop);
                let mean = formula + (hops.mean - shape.mean_hops(processors)) * hop;
                (processors, Estimate { mean, half_width: hops.half_width * hop })
            });
            figure.drawn(format!("{}, distance as measured", shape.name()), built);
        }
    }
    let lowest = |processors: f64| {
        Shape::ALL[1..]
            .iter()
            .all(|shape| shape.mean_hops(processors) > Shape::Hypercube.mean_hops(processors))
    };
    report.claim(
        "the hypercube is the lowest above 64 processors",
        [65.0, 128.0, 4096.0, 65536.0].into_iter().all(lowest),
    );
    report.claim("and grows slowly", Shape::Hypercube.mean_hops(65536.0) <= 8.0);
    Ok(())
}
