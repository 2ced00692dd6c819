//! The speed of the model, per second of CPU time: events of its core, messages through its
//! interfaces, and beats through its switches and networks. Also the duration of the papers'
//! experiments.
//!
//! BookSim2, a network simulator that papers use, runs the same load in the same run if the path of
//! its binary is given. Nothing is downloaded. The simulators take turns, and the median of their
//! rounds counts.

mod booksim;
mod cpu;
mod events;
mod experiments;
mod interfaces;
mod networks;
mod page;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;

#[derive(Serialize)]
struct Measured<'a> {
    rows: &'a [Row],
    experiments: &'a [experiments::Run],
}

/// One line of the comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub what: String,
    /// The counted unit.
    pub unit: &'static str,
    /// The model's rates, one for each round, per second of CPU time.
    pub model: Vec<f64>,
    /// BookSim2's, if it ran.
    pub booksim: Vec<f64>,
    /// The results of both simulators, which show that they did the same work.
    pub found: Vec<Found>,
    /// The goal: a rate; for networks a multiple of the rate of BookSim2 with its stock settings.
    pub goal: f64,
    /// The stock rate that the goal is a multiple of; zero if the goal is a plain rate.
    pub stock: f64,
    /// Peak memory of the process in MiB, if it has a goal.
    pub memory_mib: Option<u64>,
}

impl Row {
    /// A row that only the model ran.
    fn alone(what: String, unit: &'static str, model: Vec<f64>, goal: f64) -> Row {
        let (booksim, found) = (Vec::new(), Vec::new());
        Row { what, unit, model, booksim, found, goal, stock: 0.0, memory_mib: None }
    }
}

/// Results of one simulator.
#[derive(Clone, Debug, Serialize)]
pub struct Found {
    pub simulator: &'static str,
    /// Beats delivered per terminal and cycle.
    pub throughput: f64,
    /// Mean latency of packets in cycles, from their creation.
    pub latency: f64,
    /// Routers crossed.
    pub hops: f64,
    pub cycles: f64,
}

/// Measures, prints a table, and writes the page and `out/bench-model.json`.
pub fn run(root: &Path, booksim: Option<&PathBuf>, quick: bool) -> Result<()> {
    let rounds = if quick { 1 } else { 5 };
    let mut rows = vec![events::row(rounds)];
    rows.extend(interfaces::messages(rounds)?);
    rows.push(interfaces::buffer(rounds));
    for load in networks::LOADS {
        rows.push(networks::row(load, booksim, rounds)?);
    }
    let experiments = experiments::all()?;
    let out = root.join("out");
    std::fs::create_dir_all(&out).context("making the folder out")?;
    std::fs::write(
        out.join("bench-model.json"),
        serde_json::to_string_pretty(&Measured { rows: &rows, experiments: &experiments })?,
    )
    .context("writing out/bench-model.json")?;
    let page = page::markdown(&rows, &experiments);
    if !quick && booksim.is_some() {
        std::fs::write(root.join("docs/performance-model.md"), &page)
            .context("writing docs/performance-model.md")?;
    }
    print!("{page}");
    Ok(())
}
