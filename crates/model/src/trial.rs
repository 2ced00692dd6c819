//! Trials: a system with any parameters, under a load, with a seed.
//!
//! A trial gives figures and a trace hash, and takes milliseconds. A sweep is made of trials. Each
//! system has a few loads, in its `loads.rs`. A load has settings of its own, such as the length of
//! a message. Their paths begin with `load`; all other paths are those of the system's parameters.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use crate::form::fault;
use crate::sensitivity::Parameters;

/// A quantity that a trial measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Quantity {
    /// Its name, which ends in its unit.
    pub name: &'static str,
    /// What it is.
    pub what: &'static str,
    /// Which values are better.
    pub better: Better,
}

/// Which values of a quantity are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Low ones.
    Low,
    /// High ones.
    High,
    /// It depends.
    Neither,
}

/// A quantity of which low values are better.
pub const fn low(name: &'static str, what: &'static str) -> Quantity {
    Quantity { name, what, better: Better::Low }
}

/// A quantity of which high values are better.
pub const fn high(name: &'static str, what: &'static str) -> Quantity {
    Quantity { name, what, better: Better::High }
}

/// A quantity that is neither good nor bad.
pub const fn neither(name: &'static str, what: &'static str) -> Quantity {
    Quantity { name, what, better: Better::Neither }
}

/// The results of a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// A value for each quantity of the load.
    pub figures: Vec<f64>,
    /// The trace hash of the run.
    pub trace_hash: u64,
}

/// A load of a system. The fields are its settings, and `Default` has their defaults.
pub trait Load: Default + Serialize + DeserializeOwned {
    /// The parameters of the system.
    type System: Parameters;
    /// Its name.
    const NAME: &'static str;
    /// What it does, in a sentence without a full stop.
    const TITLE: &'static str;
    /// What it measures.
    const QUANTITIES: &'static [Quantity];

    /// The unchanged parameters. `changed` gives the value of a parameter that a trial changes.
    ///
    /// # Errors
    /// A sentence, if a changed parameter chooses among systems, and there is none of its name.
    fn base(changed: &dyn Fn(&str) -> Option<String>) -> Result<Self::System, String>;

    /// Runs the system under this load.
    ///
    /// # Errors
    /// A sentence: a setting out of range, or a run that fails.
    fn run(&self, system: &Self::System, seed: u64) -> Result<Measured, String>;
}

/// A load, for whoever knows its name only.
#[derive(Clone, Copy)]
pub struct Trial {
    /// The name of the load.
    pub name: &'static str,
    /// What the load does.
    pub title: &'static str,
    /// What it measures.
    pub quantities: &'static [Quantity],
    /// The unchanged parameters, and the default settings in the table `load`.
    pub defaults: fn(&[Change]) -> Result<Table, String>,
    /// Reads the changed parameters and settings, without a look at their ranges.
    pub accepts: fn(&[Change]) -> Result<(), String>,
    /// Runs with changed parameters and settings, and a seed.
    pub run: fn(&[Change], u64) -> Result<Measured, String>,
}

/// A parameter or setting with another value than the unchanged one.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Its path, such as `nic.clock` or `load.bytes`.
    pub path: String,
    /// Its value.
    pub value: Value,
}

impl Trial {
    /// The trial of a load.
    pub const fn of<L: Load>() -> Trial {
        Trial {
            name: L::NAME,
            title: L::TITLE,
            quantities: L::QUANTITIES,
            defaults: defaults::<L>,
            accepts: |changes| changed::<L>(changes).map(|_| ()),
            run: |changes, seed| {
                let (system, load) = changed::<L>(changes)?;
                match system.refusal() {
                    Some(why) => Err(why),
                    None => load.run(&system, seed),
                }
            },
        }
    }
}

impl fmt::Debug for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

fn defaults<L: Load>(changes: &[Change]) -> Result<Table, String> {
    let value_of = |path: &str| {
        let change = changes.iter().find(|change| change.path == path);
        change.and_then(|change| Some(change.value.as_str()?.to_owned()))
    };
    let table = |of: Result<Table, toml::ser::Error>| of.map_err(|error| error.to_string());
    let mut all = table(Table::try_from(L::base(&value_of)?))?;
    all.insert("load".to_owned(), Value::Table(table(Table::try_from(L::default()))?));
    Ok(all)
}

fn changed<L: Load>(changes: &[Change]) -> Result<(L::System, L), String> {
    let mut all = defaults::<L>(changes)?;
    for Change { path, value } in changes {
        set(&mut all, path, value.clone())?;
    }
    let load = all.remove("load").unwrap_or_else(|| Value::Table(Table::new()));
    let system = all.try_into().map_err(|error| fault(&error))?;
    let load = load.try_into().map_err(|error| fault(&error))?;
    Ok((system, load))
}

/// Sets the value at a path. A section that is missing is added: whoever reads the table knows
/// whether it has one.
fn set(table: &mut Table, path: &str, value: Value) -> Result<(), String> {
    let mut parts: Vec<&str> = path.split('.').collect();
    let last = parts.pop().unwrap_or_default();
    let mut section = table;
    for part in parts {
        let inner = section.entry(part).or_insert_with(|| Value::Table(Table::new()));
        section = inner.as_table_mut().ok_or_else(|| {
            format!("`{path}` cannot be set: `{part}` is one value, so set it as a whole")
        })?;
    }
    section.insert(last.to_owned(), value);
    Ok(())
}

/// Refuses a setting out of range.
///
/// # Errors
/// A sentence with its name, value and limits.
pub(crate) fn within(name: &str, value: u64, least: u64, most: u64) -> Result<(), String> {
    match (least..=most).contains(&value) {
        true => Ok(()),
        false => Err(format!("`load.{name}` is {value}; it must lie in {least}..={most}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::SYSTEMS;

    fn change(path: &str, value: impl Into<Value>) -> Change {
        Change { path: path.to_owned(), value: value.into() }
    }

    /// Every system has loads. Each measures all that it names, its defaults run, the same seed
    /// gives the same run, and another seed another trace.
    #[test]
    fn every_load_runs_and_repeats() {
        for system in &SYSTEMS {
            assert!(!system.loads.is_empty(), "{}", system.name);
            for trial in system.loads {
                let of = |seed| (trial.run)(&[], seed).unwrap();
                let (first, again, other) = (of(1), of(1), of(2));
                assert_eq!(first.figures.len(), trial.quantities.len(), "{trial:?}");
                assert!(first.figures.iter().all(|figure| figure.is_finite()), "{trial:?}");
                assert_eq!(first, again, "{trial:?}");
                assert_ne!(first.trace_hash, other.trace_hash, "{trial:?}");
            }
        }
    }

    /// Parameters and settings change what is measured; what does not exist, has another type or
    /// another range is refused in a sentence that names it.
    #[test]
    fn changes_are_made_or_refused() {
        let hpcl = crate::system::System::named("hpcl").unwrap();
        let trial = hpcl.loads.iter().find(|trial| trial.name == "round-trip").unwrap();
        let us = |changes: &[Change]| (trial.run)(changes, 1).map(|measured| measured.figures[0]);
        let unchanged = us(&[]).unwrap();
        assert!(us(&[change("load.bytes", "1 KiB")]).unwrap() > unchanged);
        assert!(us(&[change("wire.switch_delay", "100 us")]).unwrap() > unchanged + 100.0);
        let refused = |path: &str, value: Value| us(&[change(path, value)]).unwrap_err();
        assert!(refused("nic.speed", 1.into()).contains("unknown field `speed`"));
        assert!(refused("load.byte", 1.into()).contains("unknown field `byte`"));
        assert!(refused("nodes.first", 1.into()).contains("`nodes` is one value"));
        assert!(refused("nodes", true.into()).contains("nodes"));
        assert!(refused("nodes", 1.into()).starts_with("`nodes` is 1; it must lie in 2..="));
        assert_eq!(
            refused("load.rounds", 0.into()),
            "`load.rounds` is 0; it must lie in 1..=100000"
        );
    }

    /// A system that cannot be is refused before it runs, in a sentence that names the parameter.
    #[test]
    fn impossible_systems_are_refused() {
        let wrong: [(&str, &str, Value); 6] = [
            ("chpp", "nic.functions", 0.into()),
            ("damq-pd", "nic.ports", 0.into()),
            ("myvia", "bus.width", "3 B".into()),
            ("smp", "lanes", 3.into()),
            ("hpcl", "nodes", 1.into()),
            ("network", "router.vcs", 0.into()),
        ];
        assert_eq!(wrong.len(), SYSTEMS.len());
        for (system, path, value) in wrong {
            let system = crate::system::System::named(system).unwrap();
            let why = (system.loads[0].run)(&[change(path, value)], 1).unwrap_err();
            assert!(why.contains(path.rsplit('.').next().unwrap()), "{}: {why}", system.name);
        }
    }

    /// The name of a setup chooses among the paper's systems.
    #[test]
    fn a_name_chooses_a_system() {
        let myvia = crate::system::System::named("myvia").unwrap();
        let trial = myvia.loads.iter().find(|trial| trial.name == "ping-pong").unwrap();
        let of = |name: &str| (trial.run)(&[change("name", name)], 1);
        assert_ne!(of("myvia-a").unwrap().figures, of("myvia-b").unwrap().figures);
        assert!(of("myvia-c").unwrap_err().contains("myvia-c"));
    }
}
