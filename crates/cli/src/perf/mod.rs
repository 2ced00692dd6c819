//! `bellwire perf`: the speed of a device, beside the limits of the machine and the sockets of the
//! system.
//!
//! | module | what |
//! |---|---|
//! | `plan` | what is measured, with every default filled in |
//! | `sides` | starting both sides, or one of them |
//! | `rounds` | the order of the measurements, and their results |
//! | `leader`, `follower` | what the two sides do for each measurement |
//! | `crew` | leaders of a pair each, in step, on a simulated device |
//! | `order` | the messages between the two sides |
//! | `end`, `arena`, `data` | one end of a pair: its connections, its memory, the timed loops |
//! | `pattern` | the data, and its verification |
//! | `limits` | cache line, memcpy, Unix socket, TCP |
//! | `report`, `table`, `statistics` | figures for programs and for people |

mod arena;
mod crew;
mod data;
pub mod end;
mod follower;
mod leader;
mod limits;
mod order;
mod pattern;
mod plan;
mod report;
mod rounds;
mod sides;
mod statistics;
mod table;

use crate::command::{Outcome, print_json};
use anyhow::Result;
use plan::{Plan, Wishes};
pub use sides::is_simulated;

/// Measures latency, message rate and bandwidth, and checks the data
///
/// Starts two processes, each on a processor of its own if there are two, and measures send, put
/// and get between them. The same run also measures references: a cache line between the two
/// processors, memcpy, a Unix socket and TCP over loopback.
///
/// Latency is one way: half of a round trip (for a get: the whole operation). Round trips below 4
/// us are timed in batches of 8, longer ones one by one; min, p50 and p99 are over these. A put has
/// arrived when the other program sees its last word, or, unless both sides spin, when its event
/// arrives. Rate and bandwidth are those of a stream with a window of 4 to 64 transfers, each with
/// its completion; the median of the rounds is shown. Messages are posted together, as many as the
/// window has room for.
///
/// On a simulated device (model:chpp) all times are virtual, both sides are threads of this
/// process, and there are no references: its figures say nothing about this computer.
///
/// The receiver compares every byte in a separate pass before each size is timed. In the timed runs
/// it checks the number at the start of every message.
#[derive(clap::Args)]
#[command(after_help = "\
Virtual machines move their processors: two are at times near (a cache line takes about 40 ns) and at times far (about 210 ns).
The line's time was taken around every measurement; compare figures with the line beside them.

Examples:
  bellwire perf                          the default device, half a minute
  bellwire perf --quick                  a first impression, a few seconds
  bellwire perf --ops send --sizes 8..4MiB
  bellwire perf --wait block             both sides sleep while they wait
  bellwire perf --pairs 4                four pairs at once
  bellwire perf model:chpp --quick       the simulated interface of the cHPP paper, in virtual time
  bellwire perf --json | jq '.rows[] | select(.bytes == 8)'
In two terminals:
  bellwire perf shm:test --listen
  bellwire perf shm:test --connect 0
On two hosts, with the addresses 10.0.0.1 and 10.0.0.2:
  bellwire perf udp:10.0.0.1 --listen
  bellwire perf udp:10.0.0.2 --connect 10.0.0.1")]
pub struct Arguments {
    /// The device, for instance shm:test [default: shm:perf-PID; with --listen or --connect
    /// shm:perf]
    device: Option<String>,
    #[command(flatten)]
    wishes: Wishes,
    /// One JSON object instead of tables
    #[arg(long)]
    json: bool,
    /// Be the other side of a --connect in another terminal, until interrupted
    #[arg(long, conflicts_with_all = ["connect", "ops", "sizes", "pairs", "quick", "wait", "cpus", "json"])]
    listen: bool,
    /// Measure with the side where --listen runs: its node number, or on eth and udp its host's
    /// name or address
    #[arg(long, value_name = "NODE")]
    connect: Option<String>,
    /// Be the other side of the process that started us
    #[arg(long, hide = true, requires = "listen")]
    child: bool,
}

/// Measures, or serves measurements.
pub fn run(arguments: Arguments) -> Result<Outcome> {
    let Arguments { device, wishes, json, listen, connect, child } = arguments;
    if child {
        return sides::serve_parent(&device.unwrap_or_default());
    }
    let device = device.unwrap_or_else(|| match listen || connect.is_some() {
        true => "shm:perf".into(),
        false => format!("shm:perf-{}", std::process::id()),
    });
    if listen {
        return sides::listen(&device);
    }
    let plan = Plan::new(&device, wishes, &crate::cpu::allowed_apart())?;
    let report = sides::measure(&plan, connect.as_deref())?;
    if json {
        print_json(&report)?;
    } else {
        table::print(&report);
    }
    Ok(Outcome::Done)
}
