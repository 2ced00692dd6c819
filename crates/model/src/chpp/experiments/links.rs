//! Several controllers linked in six topologies (C-02, B-07): complete interfaces and crossbars,
//! PUTs between all pairs of 16 nodes.

use super::Kind;
use super::fig18::point;
use super::single::{endpoint, post_free};
use crate::chpp::config::LinksConfig;
use crate::chpp::{Config, Machine};
use crate::experiment::{Report, of_each_seed};
use crate::network::Shape;
use crate::stats::{Estimate, over_seeds};
use crate::units::{Bytes, Span};

/// Controllers with one node each.
fn topologies() -> [(&'static str, Shape); 6] {
    // Four squares of four, joined by a square, as a user would write it in a file.
    let mut links = Vec::new();
    for square in 0..4 {
        links.extend((0..4).map(|at| (4 * square + at, 4 * square + (at + 1) % 4)));
        links.push((4 * square + 1, (4 * square + 7) % 16));
    }
    [
        ("ring", Shape::Ring { routers: 16 }),
        ("2D mesh", Shape::Mesh { radix: 4, dimensions: 2 }),
        ("2D torus", Shape::Torus { radix: 4, dimensions: 2 }),
        ("hypercube", Shape::Hypercube { dimensions: 4 }),
        ("fully connected", Shape::FullyConnected { routers: 16 }),
        ("four squares", Shape::Links { routers: 16, terminals: 1, links }),
    ]
}

/// The prototype's interfaces at controllers in this topology.
pub(super) fn config(topology: Shape, nodes: usize) -> Config {
    let mut config = Config::prototype();
    config.crossbar.ports = nodes;
    // The links are PCIe links, so a hop has the latency of the wires to a host.
    let latency = config.pcie.latency;
    let channel_packets = config.crossbar.channel_packets;
    config.links = Some(LinksConfig { topology, channel_packets, latency });
    config.host.cpu_start = Span::ZERO;
    config.nic.functions = 1;
    config.host.window = Bytes::new(4 << 20);
    config
}

/// For each ordered pair of different nodes: the links that a packet crosses, and the latency of a
/// PUT of one byte in nanoseconds.
fn pairs_of(config: &Config) -> Result<Vec<(u64, f64)>, String> {
    let mut machine = Machine::new(config, 1).map_err(|error| error.to_string())?;
    let crossed = |machine: &Machine| -> u64 {
        machine.controllers().crossbars.iter().flat_map(|crossbar| &crossbar.crossed).sum()
    };
    let mut pairs = Vec::new();
    for from in 0..config.nodes() {
        for to in (0..config.nodes()).filter(|to| *to != from) {
            let before = crossed(&machine);
            let ends = (endpoint(from as u8), endpoint(to as u8));
            let put = post_free(&mut machine.api(), Kind::Put, ends, 1);
            let put = put.map_err(|error| error.to_string())?;
            machine.run_to_end(&mut ()).map_err(|stopped| stopped.to_string())?;
            let latency = machine.operations()[put as usize].latency();
            let latency = latency.ok_or("the operation is not over")?.as_ns();
            // A packet crosses one crossbar more than links.
            pairs.push((crossed(&machine) - before - 1, latency));
        }
    }
    machine.audit().map_err(|imbalance| imbalance.to_string())?;
    Ok(pairs)
}

/// Nanoseconds for each additional link, by least squares.
fn slope(pairs: &[(u64, f64)]) -> f64 {
    let count = pairs.len() as f64;
    let mean_links = pairs.iter().map(|pair| pair.0 as f64).sum::<f64>() / count;
    let mean_ns = pairs.iter().map(|pair| pair.1).sum::<f64>() / count;
    let both: f64 =
        pairs.iter().map(|pair| (pair.0 as f64 - mean_links) * (pair.1 - mean_ns)).sum();
    both / pairs.iter().map(|pair| (pair.0 as f64 - mean_links).powi(2)).sum::<f64>()
}

/// With each seed, the bandwidth of a port in GB/s, saturated with PUTs to random nodes; and the
/// busiest resource with the first one.
fn carried(config: &Config) -> Result<(Vec<f64>, String), String> {
    let runs = of_each_seed(|seed| point(config, 1.0, Span::from_ns(200_000), seed))?;
    let limit = runs[0].limit.clone();
    Ok((runs.into_iter().map(|at| at.throughput * 4.0).collect(), limit))
}

pub(super) fn run(report: &mut Report) -> Result<(), String> {
    let mut saturated = Vec::new();
    for (name, topology) in topologies() {
        let config = config(topology, 1);
        let pairs = pairs_of(&config)?;
        // As in Table 1, the route from a node to itself counts, with zero links.
        let links = pairs.iter().map(|pair| pair.0 as f64).sum::<f64>()
            / (config.nodes() * config.nodes()) as f64;
        let name_of = |what: &str| format!("{name}, {what}");
        report.value(name_of("mean distance as measured"), "hops", links);
        let mean = pairs.iter().map(|pair| pair.1).sum::<f64>() / pairs.len() as f64;
        report.value(name_of("mean latency of 1 B"), "ns", mean);
        if name == "2D torus" {
            let hop = slope(&pairs);
            for r in [160, 240] {
                report.value(format!("a hop, against r = {r}"), "ns", hop);
            }
        }
        let (throughput, limit) = carried(&config)?;
        report.drawn(name_of("random PUTs, saturated"), "GB/s", &throughput);
        saturated.push((links, throughput));
        report.note(format!("{name}, saturated: busiest with the first seed is the {limit}."));
        if name == "2D torus" {
            let mut small = config.clone();
            if let Some(links) = &mut small.links {
                links.topology = Shape::Torus { radix: 3, dimensions: 2 };
            }
            report.vary("latency in a 2D torus of 9", &small, pairs_of)?;
        }
    }
    let four = config(Shape::FullyConnected { routers: 4 }, 4);
    let what = "4 controllers of 4 nodes, fully connected, saturated";
    report.drawn(what, "GB/s", &carried(&four)?.0);
    let [ring, mesh, torus, cube, full, _] = &saturated[..] else {
        return Err("six topologies".to_owned());
    };
    report.claim("the more links a network has, the nearer its nodes", {
        full.0 < cube.0 && cube.0 <= torus.0 && torus.0 < mesh.0 && mesh.0 < ring.0
    });
    let beyond = torus.1.iter().zip(&mesh.1).map(|(torus, mesh)| torus - mesh);
    let beyond: Vec<f64> = beyond.collect();
    let beyond = report.drawn("2D torus beyond 2D mesh, saturated", "GB/s", &beyond).estimate();
    // An order holds if the intervals do not meet. Mesh and torus are too near for that: their
    // order is not contradicted.
    let [ring, mesh, torus, full] = [ring, mesh, torus, full].map(|of| over_seeds(&of.1));
    let ends = |of: &Estimate| (of.mean - of.half_width, of.mean + of.half_width);
    report.claim("and the more its nodes can send", {
        ring.is_below(ends(&mesh).0)
            && !beyond.is_below(0.0)
            && full.is_above(ends(&mesh).1)
            && full.is_above(ends(&torus).1)
    });
    Ok(())
}
