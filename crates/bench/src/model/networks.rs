//! Beats through a switch and through a large network, here and in BookSim2.

use std::path::PathBuf;

use anyhow::Result;
use bellwire_model::network::{
    Allocation, Duration, Experiment, FabricConfig, Topology, TopologyError, Traffic,
};

use super::{Found, Row, booksim, cpu};

/// A load that both simulators can run.
pub struct Load {
    pub what: &'static str,
    /// Routers along a side, and dimensions; zero dimensions mean a crossbar with this many ports.
    pub radix: usize,
    pub dimensions: usize,
    /// Beats per terminal and cycle.
    pub load: f64,
    /// Cycles to simulate here; BookSim2 gets fewer, because it is slower.
    pub cycles: u64,
    pub booksim_cycles: u64,
    /// The rate of stock BookSim2 on the machine where the goal was set.
    pub stock: f64,
    /// Whether memory is part of the goal.
    pub memory: bool,
}

pub const VCS: u8 = 4;
pub const BUFFER_BEATS: u32 = 16;
pub const PACKET_BEATS: u16 = 8;
pub const ISLIP_ROUNDS: u8 = 3;

/// The loads of the goals.
pub const LOADS: &[Load] = &[
    Load {
        what: "crossbar, 16 ports, 4 VCs, load 0.6",
        radix: 16,
        dimensions: 0,
        load: 0.6,
        cycles: 300_000,
        booksim_cycles: 20_000,
        stock: 313e3,
        memory: false,
    },
    Load {
        what: "crossbar, 16 ports, 4 VCs, saturated",
        radix: 16,
        dimensions: 0,
        load: 1.0,
        cycles: 200_000,
        booksim_cycles: 20_000,
        stock: 258e3,
        memory: false,
    },
    Load {
        what: "16-ary 3-cube, 4096 routers, load 0.3",
        radix: 16,
        dimensions: 3,
        load: 0.3,
        cycles: 2_000,
        booksim_cycles: 200,
        stock: 157e3,
        memory: true,
    },
];

impl Load {
    fn topology(&self) -> Result<Topology, TopologyError> {
        match self.dimensions {
            0 => Topology::crossbar(self.radix),
            dimensions => Topology::torus(self.radix, dimensions),
        }
    }

    fn config(&self) -> FabricConfig {
        FabricConfig {
            vcs: VCS,
            buffer_beats: BUFFER_BEATS,
            allocation: Allocation::Islip,
            iterations: ISLIP_ROUNDS,
            ..FabricConfig::default()
        }
    }
}

/// Measures one load in rounds, both simulators in turn.
pub fn row(load: &'static Load, booksim: Option<&PathBuf>, rounds: usize) -> Result<Row> {
    let (mut model, mut theirs, mut found) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        let traffic = Traffic::uniform(load.load, PACKET_BEATS);
        let duration = Duration { cycles: load.cycles, warm_up_cycles: Some(load.cycles / 4) };
        let before = cpu::own();
        let mut experiment =
            Experiment::new(load.topology()?, load.config(), traffic, duration, round as u64)?;
        let report = experiment.run()?;
        let seconds = (cpu::own() - before).as_secs_f64();
        model.push(report.counters.hops as f64 / seconds);
        if round == 0 {
            found.push(Found {
                simulator: "model",
                throughput: report.throughput.mean,
                latency: report.latency_cycles.mean,
                hops: report.mean_hops,
                cycles: load.cycles as f64,
            });
        }
        if let Some(path) = booksim {
            let (rate, other) = booksim::run(path, load, round as u64)?;
            theirs.push(rate);
            if round == 0 {
                found.push(other);
            }
        }
    }
    Ok(Row {
        what: load.what.to_owned(),
        unit: "flit-hops",
        model,
        booksim: theirs,
        found,
        goal: 20.0 * load.stock,
        stock: load.stock,
        memory_mib: load.memory.then(cpu::most_memory_mib),
    })
}
