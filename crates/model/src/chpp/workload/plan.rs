//! A cHPP machine, its traffic and a run, as a TOML file.

use serde::{Deserialize, Serialize};

use super::Workload;
use crate::chpp::config::Config;
use crate::chpp::experiments::Kind;
use crate::form::fault;
use crate::network::{self, Pattern, line_of};
use crate::units::{Bytes, Rate, Span};

/// An example that explains every parameter.
pub const EXAMPLE: &str = include_str!("example.toml");

/// Longer runs are refused: this much virtual time takes about a day to simulate.
const LONGEST: Span = Span::from_ns(10_000_000_000);

/// More messages are refused, because each leaves a record.
const MOST_MESSAGES: f64 = 2e7;

/// Limit of all nodes' memories together; more does not fit in most computers.
const MOST_MEMORY: u64 = 16 << 30;

/// The content of a file. See [`EXAMPLE`].
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Parameters of the machine that differ from the prototype's, in the form of `chpp.toml`.
    pub chpp: toml::Table,
    /// Its load.
    pub traffic: Traffic,
    /// Its length.
    pub run: Duration,
    /// The seed of all random draws.
    #[serde(default)]
    pub seed: u64,
}

/// A program's schedule on a machine. See [`SCHEDULE_EXAMPLE`].
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchedulePlan {
    /// Parameters of the machine that differ from the prototype's, in the form of `chpp.toml`.
    pub chpp: toml::Table,
    /// The schedule.
    pub schedule: ScheduleSource,
    /// The seed of all random draws.
    #[serde(default)]
    pub seed: u64,
}

/// The file of a schedule, and how its messages are sent.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleSource {
    /// A file in GOAL; a relative path is relative to the folder of the plan.
    pub goal: std::path::PathBuf,
    /// Messages up to this length are eager (C-53).
    #[serde(default = "eager")]
    pub eager: Bytes,
}

fn eager() -> Bytes {
    Bytes::new(1024)
}

/// A plan for a schedule, which explains every parameter.
pub const SCHEDULE_EXAMPLE: &str = include_str!("schedule.toml");

impl SchedulePlan {
    /// Reads a plan; also returns the machine's parameters. The schedule itself is in another file.
    ///
    /// # Errors
    /// The error, its line, and what to do.
    pub fn read(text: &str) -> Result<(SchedulePlan, Config), PlanError> {
        let plan: SchedulePlan =
            toml::from_str(text).map_err(|error| PlanError::Form(fault(&error)))?;
        let config = configure(&plan.chpp, text)?;
        fits_memory(&config).map_err(|(parameter, why)| PlanError::Wrong {
            line: line_of(text, parameter),
            why: format!("`{parameter}` {why}"),
        })?;
        Ok((plan, config))
    }
}

/// A kind of traffic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Traffic {
    /// The operation that moves the bytes.
    pub operation: Kind,
    /// Sources and destinations: nodes are the terminals.
    pub pattern: Pattern,
    /// When messages are generated.
    pub arrival: Arrival,
    /// Their lengths.
    pub sizes: Sizes,
}

/// When messages are generated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Arrival {
    /// After exponential gaps (open loop).
    Random {
        /// Bytes of messages per second and node.
        load: Rate,
    },
    /// Several at once to one destination, with exponential pauses (open loop).
    Bursts {
        /// Bytes of messages per second and node.
        load: Rate,
        /// Mean number of messages in a burst.
        messages: f64,
    },
    /// As many in flight at each node as software allows (C-33).
    Saturated,
    /// A new one for each that ends (closed loop).
    Closed {
        /// Messages in flight at each node.
        window: u32,
    },
}

/// Lengths of messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Sizes {
    /// All equal.
    Bytes(Bytes),
    /// More than 80 % of 128 to 4096 bytes, 8 % above 8192 bytes, none above 64 KiB (M-31).
    Mix,
}

impl Sizes {
    /// The maximum.
    pub(super) fn most(&self) -> u64 {
        match self {
            Sizes::Bytes(bytes) => bytes.count(),
            Sizes::Mix => 65536,
        }
    }
}

/// The length of a run, and of its warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Duration {
    /// Total virtual time.
    pub time: Span,
    /// The warm-up at its beginning, which is not counted; if omitted, it is found by MSER-5.
    #[serde(default)]
    pub warm_up: Option<Span>,
}

/// Why a file is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The text is not a plan. The message names the line.
    #[error("{0}")]
    Form(String),
    /// A value is impossible.
    #[error("{}{why}", place(*.line))]
    Wrong {
        /// Its line; 0 if the file omits it and its default does not fit the rest.
        line: usize,
        /// The error, and what to do.
        why: String,
    },
}

impl Plan {
    /// Reads a plan and prepares its run.
    ///
    /// # Errors
    /// The error, its line, and what to do.
    pub fn read(text: &str) -> Result<(Plan, Workload), PlanError> {
        let plan: Plan = toml::from_str(text).map_err(|error| PlanError::Form(fault(&error)))?;
        let config = configure(&plan.chpp, text)?;
        plan.check(&config).map_err(|(parameter, why)| PlanError::Wrong {
            line: line_of(text, parameter),
            why: format!("`{parameter}` {why}"),
        })?;
        let workload = Workload::new(&config, &plan).map_err(PlanError::Form)?;
        Ok((plan, workload))
    }

    /// Prepares the run of a plan on a machine whose parameters were read elsewhere.
    ///
    /// # Errors
    /// A sentence that names the impossible value.
    pub fn prepare(&self, config: &Config) -> Result<Workload, String> {
        self.check(config).map_err(|(parameter, why)| format!("`{parameter}` {why}"))?;
        Workload::new(config, self)
    }

    fn check(&self, config: &Config) -> Result<(), (&'static str, String)> {
        let Plan { traffic, run, .. } = self;
        let nodes = config.nodes();
        fits_memory(config)?;
        // The pattern's limits are checked by the module that draws from it.
        network::Traffic { pattern: traffic.pattern.clone(), ..network::Traffic::uniform(0.5, 1) }
            .check(nodes as u32)
            .map_err(|error| (error.parameter, error.why))?;
        let most = traffic.sizes.most();
        if most == 0 {
            return Err((
                "bytes",
                "is 0, so that nothing would be moved; take 1 B or more".to_owned(),
            ));
        }
        if traffic.operation.is_nap() && most > 2048 {
            let why = format!(
                "is a NAP, which carries 2048 B at most, but sizes are up to {most} B; take \"put\" or \"get\""
            );
            return Err(("operation", why));
        }
        // One part for a node's own messages, and one for each source.
        let room = config.host.window.count() / 2 / (nodes as u64 + 1);
        if most > room {
            let why = format!(
                "is {most} B, but only {room} B of each have room in `host.window`; give it more, or take shorter messages"
            );
            return Err(("bytes", why));
        }
        if let Arrival::Bursts { messages, .. } = traffic.arrival
            && !(1.0..1e6).contains(&messages)
        {
            return Err(("messages", format!("is {messages}, but a burst has 1 message or more")));
        }
        if traffic.arrival == (Arrival::Closed { window: 0 }) {
            let why = "is 0, so that nothing would ever be sent; take 1 or more".to_owned();
            return Err(("window", why));
        }
        if run.time < Span::from_ns(1000) || run.time > LONGEST {
            return Err(("time", format!("is {}, but must be 1 us to {LONGEST}", run.time)));
        }
        if run.warm_up.is_some_and(|warm_up| warm_up >= run.time) {
            return Err(("warm_up", "leaves nothing to measure; take less than `time`".to_owned()));
        }
        if let Arrival::Random { load } | Arrival::Bursts { load, .. } = traffic.arrival {
            let seconds = run.time.ps() as f64 / 1e12;
            let messages = load.bytes_per_second() as f64 * seconds * nodes as f64
                / super::traffic::mean_bytes(&traffic.sizes);
            if messages > MOST_MESSAGES {
                let why = format!(
                    "makes about {messages:.1e} messages of it, but {MOST_MESSAGES:.0e} is the most; run shorter or offer less"
                );
                return Err(("time", why));
            }
        }
        Ok(())
    }
}

/// Refuses more memory than the computer that simulates is likely to have.
fn fits_memory(config: &Config) -> Result<(), (&'static str, String)> {
    let functions = (config.nodes() * config.nic.functions) as u64;
    let memory = functions * config.host.window.count();
    if memory <= MOST_MEMORY {
        return Ok(());
    }
    let why = format!(
        "makes memories of {} altogether, but {} is the most; give each function less, or take fewer",
        Bytes::new(memory),
        Bytes::new(MOST_MEMORY)
    );
    Err(("window", why))
}

fn place(line: usize) -> String {
    if line == 0 { String::new() } else { format!("line {line}: ") }
}

/// The prototype with changes.
fn configure(changes: &toml::Table, text: &str) -> Result<Config, PlanError> {
    let wrong = |error: crate::chpp::ConfigError| {
        let why = error.to_string();
        // Names are in backquotes; the file contains the last part of a name.
        let names = why.split('`').skip(1).step_by(2);
        let keys = names.map(|name| name.rsplit('.').next().unwrap_or_default());
        let lines = keys.filter(|key| !key.is_empty()).map(|key| line_of(text, key));
        let line = lines.filter(|line| *line > 0).last().unwrap_or(0);
        PlanError::Wrong { line, why: why.trim_end().to_owned() }
    };
    Config::prototype_with(changes).map_err(wrong)
}
