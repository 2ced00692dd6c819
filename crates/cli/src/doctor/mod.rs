//! `bellwire doctor`: which devices work here, and for each other device the reason and a remedy.

mod attach;
mod limits;
mod probes;
mod rdma;
mod selftest;

pub use attach::{Reader, read_from_parent};

use crate::command::{Outcome, print_json};
use anyhow::Result;
use bellwire::{Device, Error};
use serde::Serialize;
use std::net::UdpSocket;

/// Says for each device whether it can be used here, and if not, why and which command helps
#[derive(clap::Args)]
#[command(after_help = "\
Exit code 0 if the default device (shm) works, 1 if it does not.

Examples:
  bellwire doctor
  bellwire doctor --json | jq '.devices[] | select(.usable)'")]
pub struct Arguments {
    /// One JSON object instead of tables
    #[arg(long)]
    json: bool,
}

/// Examines the machine and reports; fails if the default device cannot be used.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let report = Report::look();
    if arguments.json {
        print_json(&report)?;
    } else {
        report.print();
    }
    Ok(Outcome::done_if(report.devices[0].usable))
}

#[derive(Serialize)]
struct Report {
    /// The default device first.
    devices: Vec<DeviceReport>,
    checks: Vec<Check>,
    /// What programs that exist need to run over the devices.
    programs: Vec<Check>,
}

/// Whether a device can be used.
#[derive(Serialize)]
struct DeviceReport {
    device: &'static str,
    usable: bool,
    /// The mechanism that carries the messages, or the reason for failure.
    why: String,
    hint: Option<String>,
}

/// One feature that a device relies on.
#[derive(Serialize)]
struct Check {
    name: &'static str,
    state: State,
    /// The finding, or the kernel's error.
    found: String,
    hint: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Good,
    /// Everything works, but something is slower or smaller than it could be.
    Limited,
    /// Whatever needs it does not work.
    Missing,
}

impl Check {
    fn good(name: &'static str, found: impl Into<String>) -> Check {
        Check { name, state: State::Good, found: found.into(), hint: None }
    }

    fn limited(name: &'static str, found: impl Into<String>, hint: impl Into<String>) -> Check {
        Check { name, state: State::Limited, found: found.into(), hint: Some(hint.into()) }
    }

    fn missing(name: &'static str, found: impl Into<String>, hint: impl Into<String>) -> Check {
        Check { name, state: State::Missing, found: found.into(), hint: Some(hint.into()) }
    }
}

impl Report {
    fn look() -> Report {
        let checks = vec![
            probes::memfd(),
            probes::seals(),
            probes::abstract_sockets(),
            probes::pidfd(),
            probes::membarrier(),
            attach::check(),
            probes::proc(),
            limits::descriptors(),
            limits::memory(),
            limits::cpus(),
        ];
        let devices: Vec<DeviceReport> = Device::kinds()
            .map(|(kind, forms)| match kind {
                "shm" => shm(&checks),
                "eth" => eth(),
                "udp" => udp(),
                "model" => model(),
                "rtl" => rtl(),
                _ => DeviceReport {
                    device: kind,
                    usable: true,
                    why: format!("by name, without a test of its own: {}", forms.join(", ")),
                    hint: None,
                },
            })
            .collect();
        Report { devices, checks, programs: vec![rdma::check()] }
    }

    fn print(&self) {
        println!("Devices");
        for DeviceReport { device, usable, why, hint } in &self.devices {
            println!("  {device:<6} {:<4} {why}", if *usable { "yes" } else { "no" });
            print_hint(13, hint.as_deref());
        }
        print_checks("What they rely on", &self.checks);
        print_checks("Programs that exist", &self.programs);
        if self.devices[0].usable {
            println!("\nTry: bellwire perf");
        }
    }
}

fn print_checks(title: &str, checks: &[Check]) {
    println!("\n{title}");
    for Check { name, state, found, hint } in checks {
        let state = match state {
            State::Good => "good",
            State::Limited => "limited",
            State::Missing => "missing",
        };
        println!("  {name:<22} {state:<8} {found}");
        print_hint(33, hint.as_deref());
    }
}

fn print_hint(indent: usize, hint: Option<&str>) {
    if let Some(hint) = hint {
        println!("{:indent$}try: {hint}", "");
    }
}

/// A device judged by its self-test. `works`: how it works, if not as the test finds; `hint`: what
/// helps if the test, called `test`, fails.
fn tested(
    device: &'static str,
    name: &str,
    works: Option<&str>,
    (test, hint): (&str, Option<String>),
) -> DeviceReport {
    match selftest::run(name) {
        Ok(carried_by) => {
            let why = works.map_or(carried_by, str::to_owned);
            DeviceReport { device, usable: true, why, hint: None }
        }
        Err(error) => {
            let why = format!("{test} failed: {}", crate::command::sentence(&error));
            DeviceReport { device, usable: false, why, hint }
        }
    }
}

/// A failed check explains more than the error of the self-test.
fn shm(checks: &[Check]) -> DeviceReport {
    let cause = checks.iter().find(|check| check.state == State::Missing);
    let hint = cause.and_then(|check| check.hint.clone());
    let name = format!("shm:doctor-{}", std::process::id());
    tested("shm", &name, None, ("its self-test", hint))
}

fn udp() -> DeviceReport {
    // Two free ports. If another program takes one meanwhile, the self-test fails and says so.
    let port = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    let port = port.map_or(50_000, |address| address.port().min(u16::MAX - 1));
    let works = "any address of this host, for instance udp:127.0.0.1; no privileges are needed";
    let hint = "ip link set lo up, and a firewall that lets UDP pass on lo";
    let test = ("its self-test on 127.0.0.1", Some(hint.to_owned()));
    tested("udp", &format!("udp:127.0.0.1?port={port}"), Some(works), test)
}

fn model() -> DeviceReport {
    let works = "model:chpp, simulated inside one process, in virtual time";
    let hint = "more memory: a modelled host needs 64 MiB of addresses";
    tested("model", "model:chpp:doctor", Some(works), ("its self-test", Some(hint.to_owned())))
}

fn rtl() -> DeviceReport {
    let works = "rtl:chpp, the same interface in gates, simulated inside one process";
    tested("rtl", "rtl:chpp:doctor", Some(works), ("its self-test", None))
}

/// The eth device: whether any interface can be used. It sends no frame and attaches nothing to an
/// interface.
fn eth() -> DeviceReport {
    const ETHERNET: &str = "1";
    let report = |usable, why: String, hint| DeviceReport { device: "eth", usable, why, hint };
    let mut names: Vec<String> = std::fs::read_dir("/sys/class/net")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| {
            let kind = std::fs::read_to_string(format!("/sys/class/net/{name}/type"));
            kind.is_ok_and(|kind| kind.trim() == ETHERNET)
        })
        .collect();
    names.sort();
    let (mut usable, mut refused) = (Vec::new(), None);
    for name in names {
        let name = format!("eth:{name}");
        match Device::open(&name) {
            Ok(device) => {
                // What follows the interface's description: who gives the sockets.
                let describe = device.describe();
                usable.push(match describe.split_once("; ") {
                    Some((_, by)) => format!("{name} ({by})"),
                    None => name,
                });
            }
            Err(Error::DeviceUnavailable { why, hint, .. }) => {
                refused.get_or_insert((format!("{name}: {why}"), Some(hint)));
            }
            Err(error) => {
                refused.get_or_insert((format!("{name}: {error}"), None));
            }
        }
    }
    match refused {
        _ if !usable.is_empty() => report(true, usable.join(", "), None),
        Some((why, hint)) => report(false, why, hint),
        None => report(false, "this host has no Ethernet interface".into(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every check has a finding, and every finding that is not good has a remedy.
    #[test]
    fn whatever_is_not_good_comes_with_advice() {
        let checks =
            [probes::memfd(), probes::seals(), probes::pidfd(), limits::memory(), limits::cpus()];
        for check in checks {
            assert!(!check.found.is_empty(), "{}", check.name);
            assert_eq!(check.state == State::Good, check.hint.is_none(), "{}", check.name);
        }
    }
}
