//! A network, its traffic and a run, as a TOML file.

use serde::{Deserialize, Serialize};

use super::config::{ConfigError, FabricConfig};
use super::experiment::{Duration, Experiment};
use super::topology::{Topology, TopologyError};
use super::traffic::Traffic;
use crate::form::fault;

/// The parameters of a network: a 4-ary 3-cube.
pub const PARAMETERS: &str = include_str!("parameters.toml");

/// An example that explains every parameter: that network under uniform traffic.
pub const EXAMPLE: &str = concat!(include_str!("traffic.toml"), include_str!("parameters.toml"));

/// The contents of a file. See [`EXAMPLE`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Routers and links.
    pub topology: Shape,
    /// The routers.
    #[serde(default)]
    pub router: FabricConfig,
    /// The traffic.
    pub traffic: Traffic,
    /// The length of the run.
    pub run: Duration,
    /// The seed of all random draws.
    #[serde(default)]
    pub seed: u64,
}

/// A kind of topology with its size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Shape {
    /// One router.
    Crossbar {
        /// Terminals.
        ports: usize,
    },
    /// Routers in a ring.
    Ring {
        /// Number of routers.
        routers: usize,
    },
    /// A grid with wrap-around.
    Torus {
        /// Routers per side.
        radix: usize,
        /// Number of dimensions.
        dimensions: usize,
    },
    /// A grid.
    Mesh {
        /// Routers per side.
        radix: usize,
        /// Number of dimensions.
        dimensions: usize,
    },
    /// A hypercube.
    Hypercube {
        /// Number of dimensions.
        dimensions: usize,
    },
    /// A link between every two routers.
    FullyConnected {
        /// Number of routers.
        routers: usize,
    },
    /// Any graph.
    Links {
        /// Number of routers.
        routers: usize,
        /// Terminals per router.
        terminals: usize,
        /// Pairs of routers; each link carries both ways.
        links: Vec<(usize, usize)>,
    },
}

/// Why a file is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The syntax of the file is wrong. The text names the line.
    #[error("{0}")]
    Form(String),
    /// An impossible parameter.
    #[error("line {line}: {error}")]
    Parameter {
        /// Its line; 0 if it is absent and its default does not fit the rest.
        line: usize,
        /// What is wrong.
        error: ConfigError,
    },
    /// An impossible topology.
    #[error("line {line}: {error}")]
    Topology {
        /// Its line.
        line: usize,
        /// What is wrong.
        error: TopologyError,
    },
}

impl Shape {
    /// Its name in TOML.
    fn key(&self) -> &'static str {
        match self {
            Shape::Crossbar { .. } => "crossbar",
            Shape::Ring { .. } => "ring",
            Shape::Torus { .. } => "torus",
            Shape::Mesh { .. } => "mesh",
            Shape::Hypercube { .. } => "hypercube",
            Shape::FullyConnected { .. } => "fully-connected",
            Shape::Links { .. } => "links",
        }
    }

    /// Builds the topology.
    ///
    /// # Errors
    /// An impossible size.
    pub fn build(&self) -> Result<Topology, TopologyError> {
        match *self {
            Shape::Crossbar { ports } => Topology::crossbar(ports),
            Shape::Ring { routers } => Topology::ring(routers),
            Shape::Torus { radix, dimensions } => Topology::torus(radix, dimensions),
            Shape::Mesh { radix, dimensions } => Topology::mesh(radix, dimensions),
            Shape::Hypercube { dimensions } => Topology::hypercube(dimensions),
            Shape::FullyConnected { routers } => Topology::fully_connected(routers),
            Shape::Links { routers, terminals, ref links } => {
                Topology::from_links("links", routers, terminals, links)
            }
        }
    }
}

impl Plan {
    /// Reads a plan and prepares its run.
    ///
    /// # Errors
    /// The fault, its line, and the remedy.
    pub fn read(text: &str) -> Result<(Plan, Experiment), PlanError> {
        let plan: Plan = toml::from_str(text).map_err(|error| PlanError::Form(fault(&error)))?;
        let topology = plan.topology.build().map_err(|error| PlanError::Topology {
            line: line_of(text, plan.topology.key()),
            error,
        })?;
        let Plan { router, traffic, run, seed, .. } = plan.clone();
        let experiment =
            Experiment::new(topology, router, traffic, run, seed).map_err(|error| {
                PlanError::Parameter { line: line_of(text, error.parameter), error }
            })?;
        Ok((plan, experiment))
    }
}

/// The first line that sets `key`, as a key of its own, in an inline table, or as a table's name.
pub(crate) fn line_of(text: &str, key: &str) -> usize {
    let sets = |line: &str| {
        let line = line.split('#').next().unwrap_or("");
        let mut from = 0;
        while let Some(at) = line[from..].find(key) {
            let (before, after) = (&line[..from + at], &line[from + at + key.len()..]);
            let alone = before.chars().last().is_none_or(|c| !c.is_alphanumeric() && c != '_');
            if alone && after.trim_start().starts_with(['=', '.', ']']) {
                return true;
            }
            from += at + key.len();
        }
        false
    };
    text.lines().position(sets).map_or(0, |line| line + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example runs, and every parameter that it omits has a default.
    #[test]
    fn the_example_runs() {
        let (plan, mut experiment) = Plan::read(EXAMPLE).unwrap();
        assert_eq!(experiment.fabric().topology().terminals(), 64);
        let report = experiment.run().unwrap();
        assert!(report.settled, "{report}");
        let again = toml::to_string(&plan).unwrap();
        assert_eq!(Plan::read(&again).unwrap().0, plan, "{again}");
    }

    /// An error names the line, the fault and the remedy.
    #[test]
    fn wrong_plans_are_refused_with_their_line() {
        let change = |from: &str, to: &str| {
            assert!(EXAMPLE.contains(from), "{from}");
            let text = EXAMPLE.replacen(from, to, 1);
            let before = &EXAMPLE[..EXAMPLE.find(from).unwrap()];
            let line = before.matches('\n').count() + 1;
            (Plan::read(&text).err().expect("it is wrong").to_string(), line)
        };
        for (from, to, says) in [
            ("vcs = 4", "vcs = 0", "must be 1 to 32"),
            ("vcs = 4", "vcs = 1", "rings need 2"),
            ("vcs = 4", "vsc = 4", "unknown field `vsc`"),
            ("link_cycles = 1", "link_cycles = 0", "must be 1 to 4096"),
            ("clock = \"250 MHz\"", "clock = 250", "such as \"250 MHz\""),
            ("clock = \"250 MHz\"", "clock = \"250 ns\"", "the unit `ns` is none of Hz"),
            ("torus = { radix = 4", "torus = { radix = 2", "hypercube"),
            ("load = 0.3", "load = 1.3", "at most 1 beat"),
            ("cycles = 20000", "cycles = 20", "take 100 or more"),
        ] {
            let (said, line) = change(from, to);
            assert!(said.contains(says), "{to}: {said}");
            assert!(said.contains(&format!("line {line}")), "{to}: {said}, but it is line {line}");
        }
    }
}
