//! Runs worlds until a number of frames was simulated, or one world fails.

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use bellwire_simulator::campaign::{self, Total};
use bellwire_simulator::ledger::Entry;
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use rustix::time::{ClockId, clock_gettime};

/// Simulate whole networks under faults and compare every byte: exit code 0 if all went well, 1 if
/// not.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// First seed; the worlds after it have the seeds after it
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Stop when so many frames were sent and the last world has finished
    #[arg(long, default_value_t = 10_000_000)]
    frames: u64,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
    /// Append what went well to this ledger
    #[arg(long)]
    ledger: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // Panics are reported with their seed, below.
    std::panic::set_hook(Box::new(|_| {}));
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let bar = ProgressBar::new(arguments.frames).with_style(ProgressStyle::with_template(
        "{wide_bar} {human_pos} of {human_len} frames, {per_sec}, {eta} left",
    )?);
    let begin = Instant::now();
    let total = campaign::run(arguments.seed, arguments.frames, |total| {
        bar.set_position(total.sum.traffic.sent.min(arguments.frames));
    })?;
    bar.finish_and_clear();
    report(arguments, &total, begin.elapsed(), processor_time());
    if let Some(path) = &arguments.ledger {
        entry(arguments.seed, &total).append(path)?;
    }
    Ok(())
}

/// Processor time of this process: other load on the machine does not distort it.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn report(arguments: &Arguments, total: &Total, elapsed: Duration, busy: Duration) {
    let Total { worlds, sum } = total;
    let rate = sum.traffic.sent as f64 / busy.as_secs_f64();
    if arguments.json {
        let line = serde_json::json!({
            "seed": arguments.seed, "worlds": worlds, "frames": sum.traffic.sent, "packets": sum.packets,
            "lost": sum.traffic.lost, "repeated": sum.traffic.repeated, "damaged": sum.traffic.damaged, "forged": sum.traffic.forged,
            "resent": sum.resent, "restarts": sum.restarts, "links_ended": sum.downs,
            "virtual_seconds": sum.ns / 1_000_000_000, "seconds": elapsed.as_secs_f64(),
            "processor_seconds": busy.as_secs_f64(), "frames_per_processor_second": rate as u64,
            "hash": format!("{:016x}", sum.hash),
        });
        println!("{line}");
        return;
    }
    println!("worlds         {worlds}, seeds from {}", arguments.seed);
    println!("frames         {} ({} bytes)", sum.traffic.sent, sum.traffic.bytes);
    println!(
        "of which       {} lost, {} damaged, {} resent; {} copies and old frames more",
        sum.traffic.lost, sum.traffic.damaged, sum.resent, sum.traffic.repeated
    );
    println!("forged         {} by adversaries", sum.traffic.forged);
    println!("packets        {}, each compared", sum.packets);
    println!("restarts       {}, links ended {}", sum.restarts, sum.downs);
    println!("virtual time   {} s", sum.ns / 1_000_000_000);
    println!("real time      {:.1} s", elapsed.as_secs_f64());
    println!("processor time {:.1} s, {rate:.0} frames/s", busy.as_secs_f64());
    println!("trace hash     {:016x}", sum.hash);
}

fn entry(seed: u64, total: &Total) -> Entry {
    Entry {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: commit(),
        seed,
        worlds: total.worlds,
        frames: total.sum.traffic.sent,
        packets: total.sum.packets,
        hash: format!("{:016x}", total.sum.hash),
    }
}

/// The commit of the checkout that this was built from, if it still exists.
fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .args(["-C", env!("CARGO_MANIFEST_DIR")])
            .args(arguments)
            .output()
            .ok()
            .filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(mut commit) = git(&["rev-parse", "--short=12", "HEAD"]) else { return String::new() };
    let changed = git(&["status", "--porcelain", "--", "../protocol", "../wire", "src"]);
    if changed.is_some_and(|changed| !changed.is_empty()) {
        commit.push('+');
    }
    commit
}
