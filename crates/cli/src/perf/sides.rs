//! Starting both sides, or one of them.

use super::crew::board;
use super::end::{End, PATIENCE};
use super::follower::{self, serve_one};
use super::leader::{Leader, cpu_of, join_all};
use super::limits::Limits;
use super::plan::{PAIRS, Plan};
use super::report::{Report, Simulated};
use super::rounds::measure_all;
use crate::child::{Child, follow_parent};
use crate::command::{Outcome, WrongUsage, complain};
use crate::host::{Elsewhere, is_local, node_of};
use anyhow::{Context, Result};
use bellwire::{Address, Device, DeviceOptions};
use std::thread::{Scope, ScopedJoinHandle};

/// Runs the plan with the follower called `connect`, or with one that is started here and ends with
/// us.
pub fn measure(plan: &Plan, connect: Option<&str>) -> Result<Report> {
    if is_simulated(&plan.device) {
        if connect.is_some() {
            return Err(in_one_process());
        }
        return simulate(plan);
    }
    if let Some(cpu) = cpu_of(&plan.leader_cpus, 0) {
        crate::cpu::stay_on(cpu).with_context(|| format!("cannot run on CPU {cpu}"))?;
    }
    // The leader's side first: if the device cannot be used here, the error appears once.
    let device = open(&plan.device, PAIRS)?;
    let (child, node, first) = match connect {
        Some(name) => (None, node_of(&device, name, 0, PATIENCE, "`bellwire perf --listen`")?, 0),
        None => {
            let mut child = Child::start(["perf", &plan.device, "--listen", "--child"])?;
            let said = child.line().context("the other side did not start")?;
            let node = said.strip_prefix("node ").and_then(|number| number.parse().ok());
            let node = node.with_context(|| format!("the other side said {said:?}"))?;
            (Some(child), node, child_function(&device))
        }
    };
    let follower = Address::new(node, first, 0);
    let cpus = (&plan.leader_cpus[..], &plan.follower_cpus[..]);
    let mut leader = Leader::connect(&device, follower, plan.pairs, plan.wait, cpus, &plan.sizes)?;
    let follower_cpu = cpu_of(&plan.follower_cpus, 0);
    let longest = plan.sizes.iter().copied().max().unwrap_or(0);
    let mut limits = Some(Limits::start(follower_cpu, follower_cpu.is_some(), longest)?);
    let before = crate::cpu::interruptions();
    let findings = measure_all(plan, &mut leader, &mut limits)?;
    let interruptions = crate::cpu::interruptions().saturating_sub(before);
    leader.bye()?;
    drop(child);
    Ok(Report::new(plan, connect, device.describe(), interruptions, None, findings))
}

/// Measures a simulated device, which exists in one process only. Each side of each pair is a
/// thread, and the threads wait for each other only through the device. Time begins when all
/// threads have begun, so every run is the same.
fn simulate(plan: &Plan) -> Result<Report> {
    let name = match plan.device.contains("programs=") {
        true => plan.device.clone(),
        false => {
            let joint = if plan.device.contains('?') { '&' } else { '?' };
            format!("{}{joint}programs={}", plan.device, 2 * u32::from(plan.pairs))
        }
    };
    let (device, other) = (open(&name, PAIRS)?, open(&name, PAIRS)?);
    let (first, to) = (Address::new(device.node(), 0, 0), Address::new(other.node(), 0, 0));
    let board = board(plan.pairs);
    let lead = |end, number| {
        let mut leader = Leader::join(end, (number, board.clone()), (first, to), plan)?;
        let findings = measure_all(plan, &mut leader, &mut None)?;
        leader.bye()?;
        Ok(findings)
    };
    let (led, served) = std::thread::scope(|scope| -> Result<_> {
        let (mut leaders, mut followers) = (Vec::new(), Vec::new());
        for number in 0..plan.pairs {
            followers.push(start(scope, &other, number, serve_one)?);
            leaders.push(start(scope, &device, number, move |end| lead(end, number))?);
        }
        Ok((join_all(leaders), join_all(followers)))
    })?;
    // A follower's own error explains more than the leader's.
    let findings = led.map_err(|error| served.err().unwrap_or(error))?;
    let findings = findings.into_iter().next().context("no pair")?;
    let time = device.virtual_time().context("the device's time is not virtual")?;
    let simulated = Simulated {
        virtual_ns: time.now_ps as f64 / 1e3,
        packets: time.packets,
        events: time.events,
        trace_hash: time.trace_hash,
    };
    Ok(Report::new(plan, None, device.describe(), 0, Some(simulated), findings))
}

/// Starts a thread with a function of its own, and waits until the function is open: functions then
/// take their places in the order of their numbers.
fn start<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    device: &'scope Device,
    number: u8,
    work: impl FnOnce(End) -> Result<T> + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, Result<T>>> {
    let (tell, opened) = std::sync::mpsc::channel();
    let thread = std::thread::Builder::new().name(format!("pair {number}"));
    let thread = thread.spawn_scoped(scope, move || {
        let end = End::open(device, number)?;
        // Without a listener this thread is still joined.
        let _ = tell.send(());
        work(end)
    });
    // The join returns an error of the thread.
    let _ = opened.recv();
    thread.context("cannot start a thread for a pair")
}

/// Whether a device of this name is simulated.
pub fn is_simulated(device: &str) -> bool {
    ["model:", "rtl:"].iter().any(|kind| device.starts_with(kind))
}

/// The error that another process cannot be the other side.
fn in_one_process() -> anyhow::Error {
    WrongUsage::error(
        "model:chpp exists inside one process, and perf runs both sides there: leave out --listen and --connect",
    )
}

/// Serves the process that started us; it reads our node from standard output.
pub fn serve_parent(device: &str) -> Result<Outcome> {
    follow_parent()?;
    let device = open(device, 2 * PAIRS)?;
    println!("node {}", device.node());
    follower::serve(&device, child_function(&device))?;
    Ok(Outcome::Done)
}

/// Serves one leader after the other, until interrupted.
pub fn listen(name: &str) -> Result<Outcome> {
    if is_simulated(name) {
        return Err(in_one_process());
    }
    let device = open(name, PAIRS)?;
    let Elsewhere { place, device: other, us } = Elsewhere::of(&device, name);
    println!("Listening as node {} of {}. {place}:", device.node(), device.name());
    println!("  bellwire perf {other} --connect {us}");
    println!("Ctrl-C ends this.");
    loop {
        match follower::serve(&device, 0) {
            Ok(()) => println!("Served a measurement."),
            // The next leader may succeed.
            Err(error) => complain(&error),
        }
    }
}

/// The first function of a follower that its leader starts on the same host.
fn child_function(device: &Device) -> u8 {
    if is_local(device) { 0 } else { PAIRS }
}

/// Opens a device with this many functions, unless settings in the name say otherwise.
fn open(name: &str, functions: u8) -> Result<Device> {
    Ok(Device::open_with(name, &DeviceOptions::default().functions(functions))?)
}
