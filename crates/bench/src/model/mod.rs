//! How fast the model is: events of its core, messages through its interfaces, and beats through its switches and networks, per second of CPU
//! time; and how long the papers' experiments take.
//!
//! BookSim2, the network simulator that papers use, runs the same load in the same run if the path of its binary is given. Nothing is
//! fetched. Contenders take turns, and the median of their rounds counts.

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

/// All that is measured.
#[derive(Serialize)]
struct Measured<'a> {
    rows: &'a [Row],
    experiments: &'a [experiments::Run],
}

/// One line of the comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What was run.
    pub what: String,
    /// What is counted.
    pub unit: &'static str,
    /// The model's rates, one for each round, per second of CPU time.
    pub model: Vec<f64>,
    /// BookSim2's, if it ran.
    pub booksim: Vec<f64>,
    /// What the two found, to show that they did the same work.
    pub found: Vec<Found>,
    /// The goal: a rate, or a multiple of BookSim2's rate here of stock settings.
    pub goal: f64,
    /// What that multiple is of; zero where the goal is a rate.
    pub stock: f64,
    /// The most memory that the process had, MiB, where there is a goal for it.
    pub memory_mib: Option<u64>,
}

impl Row {
    /// One that the model ran alone.
    fn alone(what: String, unit: &'static str, model: Vec<f64>, goal: f64) -> Row {
        let (booksim, found) = (Vec::new(), Vec::new());
        Row { what, unit, model, booksim, found, goal, stock: 0.0, memory_mib: None }
    }
}

/// Results of one simulator.
#[derive(Clone, Debug, Serialize)]
pub struct Found {
    /// Which.
    pub simulator: &'static str,
    /// Beats delivered per terminal and cycle.
    pub throughput: f64,
    /// Mean latency of packets in cycles, from their making.
    pub latency: f64,
    /// Routers crossed.
    pub hops: f64,
    /// Cycles simulated.
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

/// The middle one.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}
