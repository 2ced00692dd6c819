//! Starting both sides, or one of them.

use super::follower;
use super::leader::{Leader, cpu_of};
use super::limits::Limits;
use super::plan::{PAIRS, Plan};
use super::report::Report;
use super::rounds::measure_all;
use crate::child::{Child, follow_parent};
use crate::command::Outcome;
use anyhow::{Context, Result};
use bellwire::{Device, DeviceOptions};

/// Measures as planned, with the follower that is node `connect`, or with one that is started here and ends with us.
pub fn measure(plan: &Plan, connect: Option<u32>) -> Result<Report> {
    if let Some(cpu) = cpu_of(&plan.leader_cpus, 0) {
        crate::cpu::stay_on(cpu).with_context(|| format!("cannot run on CPU {cpu}"))?;
    }
    // Ours first: if the device cannot be used here, it is said once.
    let device = open(&plan.device)?;
    let (child, node) = match connect {
        Some(node) => (None, node),
        None => {
            let mut child = Child::start(["perf", &plan.device, "--listen", "--child"])?;
            let said = child.line().context("the other side did not start")?;
            let node = said.strip_prefix("node ").and_then(|number| number.parse().ok());
            let node = node.with_context(|| format!("the other side said {said:?}"))?;
            (Some(child), node)
        }
    };
    let cpus = (&plan.leader_cpus[..], &plan.follower_cpus[..]);
    let mut leader = Leader::connect(&device, node, plan.pairs, plan.wait, cpus, &plan.sizes)?;
    let follower_cpu = cpu_of(&plan.follower_cpus, 0);
    let longest = plan.sizes.iter().copied().max().unwrap_or(0);
    let mut limits = Limits::start(follower_cpu, follower_cpu.is_some(), longest)?;
    let before = crate::cpu::interruptions();
    let findings = measure_all(plan, &mut leader, &mut limits)?;
    let interruptions = crate::cpu::interruptions().saturating_sub(before);
    leader.bye()?;
    drop(child);
    Ok(Report::new(plan, connect, device.describe(), interruptions, findings))
}

/// Serves the process that started us, which then knows our node.
pub fn serve_parent(device: &str) -> Result<Outcome> {
    follow_parent()?;
    let device = open(device)?;
    println!("node {}", device.node());
    follower::serve(&device)?;
    Ok(Outcome::Done)
}

/// Serves one leader after the other, until interrupted.
pub fn listen(name: &str) -> Result<Outcome> {
    let device = open(name)?;
    let node = device.node();
    println!("Listening as node {node} of {}. In another terminal:", device.name());
    println!("  bellwire perf {name} --connect {node}");
    println!("Ctrl-C ends this.");
    loop {
        match follower::serve(&device) {
            Ok(()) => println!("Served a measurement."),
            // The next leader may have more luck.
            Err(error) => eprintln!("bellwire: {error:#}"),
        }
    }
}

/// Opens a device with as many functions as there can be pairs. Settings in the name win.
fn open(name: &str) -> Result<Device> {
    if name.contains('?') {
        return Ok(Device::open(name)?);
    }
    let mut options = DeviceOptions::default();
    options.functions = PAIRS;
    Ok(Device::open_with(name, &options)?)
}
