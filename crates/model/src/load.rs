//! A load for a model, read from text and run: traffic on a machine or a network of routers, or a
//! program's schedule.

use crate::chpp::loads::EAGER;
use crate::chpp::workload::{self, Execution, SchedulePlan, Workload};
use crate::chpp::{self, Config, Machine};
use crate::goal::Schedule;
use crate::network;
use serde::Serialize;
use std::path::Path;

/// A load and its model, ready to run.
pub enum Load {
    /// The cHPP machine under traffic.
    Machine(Box<Workload>),
    /// The cHPP machine under a program's schedule.
    Program(Box<Execution>),
    /// A network of routers under traffic.
    Network(Box<network::Experiment>),
}

/// The results of a run.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Outcome {
    /// Of a machine under traffic.
    Machine(workload::Report),
    /// Of a program's schedule.
    Program(workload::Outcome),
    /// Of a network of routers.
    Network(network::Report),
}

/// Why a text is no load.
#[derive(Debug, thiserror::Error)]
#[error("{why}")]
pub struct LoadError {
    /// Whether the error is in the schedule that a plan names, and not in the text itself.
    pub in_schedule: bool,
    /// The error, its line, and what to do.
    pub why: String,
}

impl LoadError {
    fn here(why: impl ToString) -> LoadError {
        LoadError { in_schedule: false, why: why.to_string() }
    }

    fn in_schedule(why: impl ToString) -> LoadError {
        LoadError { in_schedule: true, why: why.to_string() }
    }
}

impl Load {
    /// Reads a plan (TOML), or a program (GOAL), which names its ranks (`num_ranks`). `schedule`
    /// gives the text of the program that a plan names.
    ///
    /// # Errors
    /// The error, its line, and what to do.
    pub fn read(
        text: &str,
        schedule: impl FnOnce(&Path) -> Result<String, String>,
    ) -> Result<Load, LoadError> {
        if text.lines().any(|line| line.trim_start().starts_with("num_ranks")) {
            return Load::program(text, None);
        }
        if has_table(text, "schedule") {
            let (plan, config) = SchedulePlan::read(text).map_err(LoadError::here)?;
            let text = schedule(&plan.schedule.goal).map_err(LoadError::here)?;
            return Load::program(&text, Some((plan, config)));
        }
        if has_table(text, "chpp") {
            let (_, workload) = workload::Plan::read(text).map_err(LoadError::here)?;
            return Ok(Load::Machine(Box::new(workload)));
        }
        let (_, experiment) = network::Plan::read(text).map_err(LoadError::here)?;
        Ok(Load::Network(Box::new(experiment)))
    }

    /// A program on the machine of a plan, or on one with a node for each rank, up to the model's
    /// limit of nodes.
    pub fn program(text: &str, plan: Option<(SchedulePlan, Config)>) -> Result<Load, LoadError> {
        let schedule = Schedule::read(text).map_err(LoadError::in_schedule)?;
        let (config, eager, seed) = match plan {
            Some((plan, config)) => (config, plan.schedule.eager.count(), plan.seed),
            None => {
                let config = chpp::loads::machine_of(schedule.ranks.len());
                (config, EAGER.count(), 0)
            }
        };
        let execution = Execution::new(&config, schedule, eager, seed);
        Ok(Load::Program(Box::new(execution.map_err(LoadError::in_schedule)?)))
    }

    /// The machine, which records what it is told to; a network of routers alone has none.
    pub fn machine(&mut self) -> Option<&mut Machine> {
        match self {
            Load::Machine(workload) => Some(&mut workload.machine),
            Load::Program(execution) => Some(&mut execution.machine),
            Load::Network(_) => None,
        }
    }

    /// Runs to the end. Calls `done` from time to time with the share done, from 0 to 1.
    ///
    /// # Errors
    /// A sentence: a deadlock with its cycle of waits, or a violated law of conservation.
    pub fn run(&mut self, done: impl FnMut(f64)) -> Result<Outcome, String> {
        match self {
            Load::Machine(workload) => workload.run(done).map(Outcome::Machine),
            Load::Program(execution) => execution.run(done).map(Outcome::Program),
            Load::Network(experiment) => {
                experiment.run_telling(done).map(Outcome::Network).map_err(|why| why.to_string())
            }
        }
    }
}

/// Whether a text has this table. An unreadable one has none; the real parser gives the reason.
fn has_table(text: &str, name: &str) -> bool {
    toml::from_str::<toml::Table>(text).is_ok_and(|table| table.contains_key(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goal;

    /// Each example is read as what it is, and a plan gets the program that it names.
    #[test]
    fn texts_are_read_as_what_they_are() {
        let none = |_: &Path| Err("there is no schedule".to_owned());
        let read = |text, schedule: &dyn Fn(&Path) -> Result<String, String>| {
            Load::read(text, schedule).map_err(|error| error.to_string())
        };
        assert!(matches!(read(workload::EXAMPLE, &none), Ok(Load::Machine(_))));
        assert!(matches!(read(network::EXAMPLE, &none), Ok(Load::Network(_))));
        assert!(matches!(read(goal::EXAMPLE, &none), Ok(Load::Program(_))));
        let has_machine = |text| read(text, &none).is_ok_and(|mut it| it.machine().is_some());
        assert!(has_machine(workload::EXAMPLE) && has_machine(goal::EXAMPLE));
        assert!(!has_machine(network::EXAMPLE));
        let plan = chpp::workload::SCHEDULE_EXAMPLE;
        let program = |_: &Path| Ok(goal::EXAMPLE.to_owned());
        assert!(matches!(read(plan, &program), Ok(Load::Program(_))));
        assert_eq!(read(plan, &none).err().as_deref(), Some("there is no schedule"));
        assert!(Load::read(plan, |_| Ok("num_ranks x".to_owned())).is_err_and(|e| e.in_schedule));
    }
}
