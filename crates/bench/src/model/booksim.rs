//! BookSim2 as a program: its configuration for a load, and its output.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::networks::{BUFFER_BEATS, ISLIP_ROUNDS, Load, PACKET_BEATS, VCS};
use super::{Found, cpu};

/// Runs a load; returns flit-hops per second of its CPU time, and its results.
pub fn run(binary: &Path, load: &Load, seed: u64) -> Result<(f64, Found)> {
    let file = std::env::temp_dir().join(format!("bellwire-bench-{}.booksim", std::process::id()));
    std::fs::write(&file, configuration(load, seed)).context("writing BookSim2's configuration")?;
    let before = cpu::children();
    let output = Command::new(binary).arg(&file).output();
    let _ = std::fs::remove_file(&file);
    let output = output.with_context(|| format!("starting {}", binary.display()))?;
    let seconds = (cpu::children() - before).as_secs_f64();
    let said = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&said);
    // Above saturation it reports instability and exits with an error, but it still prints its
    // figures.
    let last = |name: &str| -> Result<f64> {
        let line = text.lines().rev().find(|line| line.trim_start().starts_with(name));
        let line = line.with_context(|| format!("BookSim2 printed no `{name}`:\n{text}"))?;
        let value = line.split(['=', ' ']).find_map(|word| word.parse().ok());
        value.with_context(|| format!("BookSim2 printed no number in `{line}`"))
    };
    let found = Found {
        simulator: "BookSim2",
        throughput: last("Accepted flit rate average")?,
        latency: last("Packet latency average")?,
        hops: last("Hops average")?,
        cycles: last("Time taken is")?,
    };
    ensure!(found.cycles > 0.0 && seconds > 0.0, "BookSim2 simulated nothing:\n{text}");
    let terminals = load.radix.pow(load.dimensions.max(1) as u32) as f64;
    let hops = found.throughput * terminals * found.cycles * found.hops;
    Ok((hops / seconds, found))
}

/// The same topology, packets, buffers, channels, load, and number of iSLIP iterations. The
/// iterations are part of the allocator's name, because `alloc_iters` has no effect.
fn configuration(load: &Load, seed: u64) -> String {
    let network = match load.dimensions {
        0 => format!("topology = fly; k = {}; n = 1; routing_function = dest_tag;", load.radix),
        n => {
            format!("topology = torus; k = {}; n = {n}; routing_function = dim_order;", load.radix)
        }
    };
    let period = load.booksim_cycles / 2;
    format!(
        "{network}
num_vcs = {VCS}; vc_buf_size = {BUFFER_BEATS}; packet_size = {PACKET_BEATS}; wait_for_tail_credit = 0;
vc_allocator = separable_input_first; sw_allocator = islip({ISLIP_ROUNDS});
routing_delay = 0; vc_alloc_delay = 1; sw_alloc_delay = 1; st_final_delay = 1; credit_delay = 1;
input_speedup = 1; output_speedup = 1; internal_speedup = 1.0; speculative = 0;
traffic = uniform; use_read_write = 0; injection_process = bernoulli;
injection_rate_uses_flits = 1; injection_rate = {:.2};
sim_type = throughput; sample_period = {period}; warmup_periods = 1; max_samples = 2; sim_count = 1; seed = {seed};
",
        load.load
    )
}
