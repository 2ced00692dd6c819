//! `bellwire list`: the users of Bellwire on this host.

use crate::command::{Outcome, print_json};
use crate::perf::is_simulated;
use anyhow::{Context, Result};
use bellwire::FunctionAddress;
use bellwire_shm::name::{Listening, listening};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;

/// Lists the jobs, nodes and functions that are open on this host
#[derive(clap::Args)]
#[command(after_help = "\
The process is shown if it can be found: of other users only by root, of other containers not at all. Of the simulated device
(model:chpp), which exists inside a process, only the functions of processes that can be looked into are listed.

Examples:
  bellwire list
  bellwire list --json | jq '.functions[].pid'")]
pub struct Arguments {
    /// One JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// Prints the list; an empty list is no failure.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let functions = functions()?;
    if arguments.json {
        print_json(&serde_json::json!({ "functions": functions }))?;
    } else if functions.is_empty() {
        println!("No function is open on this host. Try: bellwire perf --listen");
    } else {
        println!(
            "{:<24} {:>5} {:>8} {:>8} {:>8}  program",
            "device", "node", "function", "user", "pid"
        );
        for Function { device, node, function, user, pid, program } in &functions {
            let pid = pid.map_or("?".into(), |pid| pid.to_string());
            let program = program.as_deref().unwrap_or("?");
            println!("{device:<24} {node:>5} {function:>8} {user:>8} {pid:>8}  {program}");
        }
    }
    Ok(Outcome::Done)
}

/// A function that listens.
#[derive(Serialize)]
pub struct Function {
    pub device: String,
    pub node: u32,
    pub function: u8,
    /// User number of the job's owner, or `any` if the job is open to others. If another user holds
    /// the name, both.
    user: String,
    pub pid: Option<i32>,
    program: Option<String>,
}

/// All functions that listen on this host.
pub fn functions() -> Result<Vec<Function>> {
    let listening = listening().context("cannot read /proc/net/unix")?;
    let inodes = listening_inodes(&fs::read_to_string("/proc/net/unix").unwrap_or_default());
    let wanted: HashSet<u64> = inodes.values().copied().collect();
    let owners = if wanted.is_empty() { HashMap::new() } else { socket_owners(&wanted) };
    let holders = bellwire_shm::Holders::now();
    let describe = |Listening { scope, job, address }: Listening| {
        let name = format!("bellwire.shm/{scope}/{job}/{}/{}", address.node, address.function);
        let pid = inodes.get(&name).and_then(|inode| owners.get(inode)).copied();
        Function {
            device: device_of(&job),
            node: address.node,
            function: address.function,
            user: user_of(scope, holders.listed_user_of(&name)),
            pid,
            program: pid.and_then(program_of),
        }
    };
    let mut functions: Vec<Function> = listening.into_iter().map(describe).collect();
    functions.extend(processes().into_iter().flat_map(simulated));
    Ok(functions)
}

/// The user of a name that says `scope` and is held by `holder`. They can differ: another user may
/// have taken the name first.
fn user_of(scope: String, holder: Option<u32>) -> String {
    match holder {
        Some(holder) if scope != "any" && scope != holder.to_string() => {
            format!("{holder}, not {scope}")
        }
        _ => scope,
    }
}

/// The simulated functions of a process. Other processes cannot reach them, and no socket shows
/// them.
fn simulated(pid: i32) -> Vec<Function> {
    let shown = u32::try_from(pid).ok().map_or_else(Vec::new, crate::stat::functions_of);
    let user = || {
        let owner = fs::metadata(format!("/proc/{pid}")).ok()?;
        Some(std::os::unix::fs::MetadataExt::uid(&owner).to_string())
    };
    let describe = |(device, address): (String, FunctionAddress)| Function {
        device,
        node: address.node,
        function: address.function,
        user: user().unwrap_or_else(|| "?".into()),
        pid: Some(pid),
        program: program_of(pid),
    };
    shown.into_iter().filter(|(device, _)| is_simulated(device)).map(describe).collect()
}

/// The device of this job. Jobs of `auto` devices are named after their network.
fn device_of(job: &str) -> String {
    let parts: Vec<&str> = job.splitn(3, '.').collect();
    match parts[..] {
        ["auto", "udp"] => "auto:udp".into(),
        ["auto", "udp", port] => format!("auto:udp?port={port}"),
        ["auto", "eth", interface] => format!("auto:eth:{interface}"),
        _ => format!("shm:{job}"),
    }
}

/// The name (without its @) and inode of every listening abstract socket. An accepted connection
/// shows its listener's name too, so the flag must distinguish them.
fn listening_inodes(table: &str) -> BTreeMap<String, u64> {
    const ACCEPTS: u32 = 1 << 16;
    let parse = |line: &str| {
        let (fields, name) = line.split_once('@')?;
        let mut fields = fields.split_whitespace().skip(3);
        let flags = u32::from_str_radix(fields.next()?, 16).ok()?;
        let inode = fields.nth(2)?.parse().ok()?;
        (flags & ACCEPTS != 0).then(|| (name.to_owned(), inode))
    };
    table.lines().filter_map(parse).collect()
}

/// The process that holds each of the `wanted` sockets open, as far as we may see its descriptors.
fn socket_owners(wanted: &HashSet<u64>) -> HashMap<u64, i32> {
    let mut owners = HashMap::new();
    for pid in processes() {
        let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { continue };
        for descriptor in descriptors.flatten() {
            let Ok(target) = fs::read_link(descriptor.path()) else { continue };
            let inode = target
                .to_str()
                .and_then(|text| text.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok());
            if let Some(inode) = inode.filter(|inode| wanted.contains(inode)) {
                owners.entry(inode).or_insert(pid);
            }
        }
    }
    owners
}

/// The numbers of all visible processes, in order.
pub fn processes() -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut pids: Vec<i32> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    pids.sort_unstable();
    pids
}

/// The short name of a process.
pub fn program_of(pid: i32) -> Option<String> {
    Some(fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only listening sockets count, not the connections that they accepted.
    #[test]
    fn listeners_are_told_from_their_connections() {
        let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0: 00000002 00000000 00010000 0005 01 12345 @bellwire.shm/0/job/7/2\n\
            0: 00000003 00000000 00000000 0005 03 12346 @bellwire.shm/0/job/7/2\n\
            0: 00000002 00000000 00010000 0001 01 99 /run/other\n\
            0: broken @x";
        let found = listening_inodes(table);
        assert_eq!(found, BTreeMap::from([("bellwire.shm/0/job/7/2".to_owned(), 12345)]));
    }

    /// A name that another user has taken is not shown as its owner's.
    #[test]
    fn holders_are_told_from_owners() {
        let shown = |scope: &str, holder| user_of(scope.to_owned(), holder);
        assert_eq!(shown("0", Some(0)), "0");
        assert_eq!(shown("0", None), "0");
        assert_eq!(shown("any", Some(7)), "any");
        assert_eq!(shown("0", Some(7)), "7, not 0");
    }

    /// Jobs are shown as the devices that they belong to.
    #[test]
    fn jobs_belong_to_devices() {
        let pairs = [
            ("job", "shm:job"),
            ("auto.udp", "auto:udp"),
            ("auto.udp.7000", "auto:udp?port=7000"),
            ("auto.eth.eth0.5", "auto:eth:eth0.5"),
            ("auto.matic", "shm:auto.matic"),
        ];
        for (job, device) in pairs {
            assert_eq!(device_of(job), device);
        }
    }

    /// This process is among the processes.
    #[test]
    fn this_process_is_listed() {
        let own = std::process::id() as i32;
        assert!(processes().contains(&own));
        assert!(program_of(own).is_some());
    }
}
