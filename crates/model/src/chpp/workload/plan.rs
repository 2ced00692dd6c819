//! A cHPP machine, its traffic and a run, as a TOML file.

use serde::{Deserialize, Serialize};

use super::Workload;
use crate::chpp::config::Config;
use crate::chpp::experiments::Kind;
use crate::form::fault;
use crate::network::{self, Pattern, line_of};
use crate::units::{Bytes, Rate, Span};

/// An example that says what every parameter means.
pub const EXAMPLE: &str = include_str!("example.toml");

/// Longer runs are refused: of virtual time, this is what a day of computing does.
const LONGEST: Span = Span::from_ns(10_000_000_000);

/// More messages than this are refused, because each leaves a record.
const MOST_MESSAGES: f64 = 2e7;

/// Memories of all nodes: more than this does not fit many machines.
const MOST_MEMORY: u64 = 16 << 30;

/// What a file describes. See [`EXAMPLE`].
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Parameters of the machine that differ from the prototype's, in the form of `chpp.toml`.
    pub chpp: toml::Table,
    /// What it carries.
    pub traffic: Traffic,
    /// How long.
    pub run: Duration,
    /// Decides everything that is drawn.
    #[serde(default)]
    pub seed: u64,
}

/// A program's schedule on a machine. See [`SCHEDULE_EXAMPLE`].
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchedulePlan {
    /// Parameters of the machine that differ from the prototype's, in the form of `chpp.toml`.
    pub chpp: toml::Table,
    /// What runs on it.
    pub schedule: ScheduleSource,
    /// Decides everything that is drawn.
    #[serde(default)]
    pub seed: u64,
}

/// Where a schedule is, and how its messages are sent.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleSource {
    /// A file in GOAL; a relative path begins at the folder of the plan.
    pub goal: std::path::PathBuf,
    /// Messages up to this length are sent at once (C-53).
    #[serde(default = "eager")]
    pub eager: Bytes,
}

fn eager() -> Bytes {
    Bytes::new(1024)
}

/// A plan for a schedule, that says what every parameter means.
pub const SCHEDULE_EXAMPLE: &str = include_str!("schedule.toml");

impl SchedulePlan {
    /// Reads a plan; gives the machine's parameters too. The schedule itself is in another file.
    ///
    /// # Errors
    /// What is wrong, in which line, and what to do.
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
    /// How bytes are moved.
    pub operation: Operation,
    /// Between whom: nodes are the terminals.
    pub pattern: Pattern,
    /// When messages are made.
    pub arrival: Arrival,
    /// How long they are.
    pub sizes: Sizes,
}

/// How bytes are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// NAP with its data inside the descriptor.
    NapImmediate,
    /// NAP with its data in memory.
    NapIndirect,
    /// PUT.
    Put,
    /// GET: bytes move from the destination to the one who asks.
    Get,
}

impl Operation {
    /// The same, as experiments call it.
    pub fn kind(self) -> Kind {
        match self {
            Operation::NapImmediate => Kind::NapImmediate,
            Operation::NapIndirect => Kind::NapIndirect,
            Operation::Put => Kind::Put,
            Operation::Get => Kind::Get,
        }
    }
}

/// When messages are made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Arrival {
    /// After exponential gaps (open loop).
    Random {
        /// Bytes of messages for each node.
        load: Rate,
    },
    /// Several at once to one destination, with exponential pauses (open loop).
    Bursts {
        /// Bytes of messages for each node.
        load: Rate,
        /// Mean number of messages in a burst.
        messages: f64,
    },
    /// As many under way at each node as software allows (C-33).
    Saturated,
    /// A new one for each that is over (closed loop).
    Closed {
        /// Messages under way at each node.
        window: u32,
    },
}

/// How long messages are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Sizes {
    /// All alike.
    Bytes(Bytes),
    /// More than 80 % of 128 to 4096 bytes, 8 % above 8192 bytes, none above 64 KiB (M-31).
    Mix,
}

impl Sizes {
    /// The longest.
    pub(super) fn most(&self) -> u64 {
        match self {
            Sizes::Bytes(bytes) => bytes.count(),
            Sizes::Mix => 65536,
        }
    }
}

/// How long to run, and what of it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Duration {
    /// Virtual time altogether.
    pub time: Span,
    /// Of this, the beginning that does not count; without it, it is found (MSER-5).
    #[serde(default)]
    pub warm_up: Option<Span>,
}

/// Why a file makes no run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// It is not what a plan looks like. The text names the line.
    #[error("{0}")]
    Form(String),
    /// Something that cannot be.
    #[error("{}{why}", place(*.line))]
    Wrong {
        /// Where it stands; 0 if the file does not have it and its default does not fit the rest.
        line: usize,
        /// What is wrong, and what to do.
        why: String,
    },
}

impl Plan {
    /// Reads a plan and prepares its run.
    ///
    /// # Errors
    /// What is wrong, in which line, and what to do.
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

    fn check(&self, config: &Config) -> Result<(), (&'static str, String)> {
        let Plan { traffic, run, .. } = self;
        let nodes = config.nodes();
        fits_memory(config)?;
        // What a pattern can be is known where it is drawn from.
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
        if traffic.operation.kind().is_nap() && most > 2048 {
            let why = format!(
                "is a NAP, which carries 2048 B at most, but sizes are up to {most} B; take \"put\" or \"get\""
            );
            return Err(("operation", why));
        }
        // A part for what is sent, and one for what each node receives from each.
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

/// Refuses more memory than a machine that simulates has.
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
        // Names stand in backquotes; the last part of one is what the file says.
        let names = why.split('`').skip(1).step_by(2);
        let keys = names.map(|name| name.rsplit('.').next().unwrap_or_default());
        let lines = keys.filter(|key| !key.is_empty()).map(|key| line_of(text, key));
        let line = lines.filter(|line| *line > 0).last().unwrap_or(0);
        PlanError::Wrong { line, why: why.trim_end().to_owned() }
    };
    Config::prototype_with(changes).map_err(wrong)
}
