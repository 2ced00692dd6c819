//! Which parameters have an effect on a run, and which of these are not the paper's.
//!
//! The run is repeated with one parameter changed at a time: every number of the configuration is
//! doubled and halved, every choice is changed. A parameter that changes no result has no effect.
//! Parameters and their choices come from the configuration itself, so none is missed. Where each
//! value comes from stands in the comments of its file: `key = value # chosen: ...`. A run of some
//! 100 us takes milliseconds; for a long experiment a short piece is used.

use std::collections::BTreeMap;

use bellwire_protocol::canary::planted;
use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use crate::experiment::Sensitivity;

/// The parameters of a machine, as a file and as a struct.
pub trait Parameters: Serialize + DeserializeOwned {
    /// The built-in file. The comment behind each value begins with its source.
    const FILE: &'static str;

    /// Why the values do not fit together; nothing if they do.
    fn refusal(&self) -> Option<String>;

    /// Whether the values fit together.
    fn is_valid(&self) -> bool {
        self.refusal().is_none()
    }

    /// Where the file has the parameter that the struct has at `path`, such as `nic.clock`.
    fn place(&self, path: &str) -> String {
        path.to_owned()
    }
}

/// The source of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The paper prints it.
    Paper,
    /// A standard or the maker's data have it, or it follows from other values.
    Standard,
    /// It was fitted to a published value.
    Calibrated,
    /// The paper is silent; it is our choice.
    Chosen,
}

/// The source of each parameter of a file, by its path. A section may have one for all its values,
/// `[section] # chosen`. A value without any has that of the same key above: in
/// `[system.second]` it comes from where that in `[system.first]` does.
pub fn sources(file: &str) -> BTreeMap<String, Source> {
    let mut found = BTreeMap::new();
    let (mut section, mut of_section) = (String::new(), None);
    let mut of_keys: BTreeMap<String, Source> = BTreeMap::new();
    for line in file.lines() {
        let (code, comment) = line.split_once('#').unwrap_or((line, ""));
        let word = comment.trim().split([' ', ':', ',', ';']).next().unwrap_or_default();
        let source = match word {
            "paper" => Some(Source::Paper),
            "standard" | "product" | "follows" => Some(Source::Standard),
            "calibrated" => Some(Source::Calibrated),
            "chosen" => Some(Source::Chosen),
            _ => None,
        };
        let code = code.trim();
        if let Some(name) = code.strip_prefix('[') {
            section = format!("{}.", name.trim_end_matches(']'));
            of_section = source;
        } else if let Some((key, _)) = code.split_once('=') {
            let key = key.trim();
            let kind = section.split('.').next().unwrap_or_default();
            let alike = format!("{kind}.{key}");
            if let Some(source) = source.or(of_section).or(of_keys.get(&alike).copied()) {
                of_keys.insert(alike, source);
                found.insert(format!("{section}{key}"), source);
            }
        }
    }
    found
}

/// Repeats `run` with each parameter of `config` changed, and compares the results. A failing
/// changed run counts as an effect.
///
/// # Errors
/// The error of the unchanged run; or that the configuration cannot be written.
pub fn sensitivity<C: Parameters, T: PartialEq>(
    of: impl Into<String>,
    config: &C,
    run: impl Fn(&C) -> Result<T, String>,
) -> Result<Sensitivity, String> {
    // Canary: other draws are there for the figures, and a list of parameters is none.
    if planted("other-draws") {
        return Ok(Sensitivity::default());
    }
    let unchanged = run(config)?;
    let text = Table::try_from(config).map_err(|error| error.to_string())?;
    let sources = sources(C::FILE);
    let mut found = Sensitivity { of: of.into(), ..Sensitivity::default() };
    for path in leaves(&text) {
        let with = |value| {
            let mut changed = text.clone();
            *at(&mut changed, &path) = value;
            changed.try_into::<C>()
        };
        let mut values = neighbours(at(&mut text.clone(), &path));
        values.extend(other_choices::<C>(&text, &path));
        let changed = values.into_iter().filter_map(|value| with(value).ok());
        let mut outcomes = changed
            .filter(C::is_valid)
            .map(|changed| run(&changed).map_or(true, |outcome| outcome != unchanged))
            .peekable();
        let tried = outcomes.peek().is_some();
        let name = path.join(".");
        if outcomes.any(|changes| changes) {
            let source = sources.get(&config.place(&name));
            if source.is_none_or(|source| matches!(source, Source::Calibrated | Source::Chosen)) {
                found.rests_on.push(name.clone());
            }
            found.with_effect.push(name);
        } else if tried {
            found.without_effect.push(name);
        } else {
            found.not_tried.push(name);
        }
    }
    Ok(found)
}

/// The other values of a choice; none if the value at `path` is not a choice.
pub(crate) fn other_choices<C: Parameters>(text: &Table, path: &[String]) -> Vec<Value> {
    let mut changed = text.clone();
    let value = at(&mut changed, path);
    let Value::String(chosen) = std::mem::replace(value, Value::String("?".to_owned())) else {
        return Vec::new();
    };
    let error = changed.try_into::<C>().err();
    let choices = error.map_or(Vec::new(), |error| choices(&error.to_string()));
    choices.into_iter().filter(|choice| *choice != chosen).map(Value::String).collect()
}

/// The names of a choice, from the error that a wrong name gives: "unknown variant `?`, expected
/// one of `a`, `b`". None if the text is not a choice.
fn choices(error: &str) -> Vec<String> {
    let told = error.lines().find_map(|line| line.split_once("unknown variant `?`, expected "));
    let names = told.map_or("", |(_, names)| names).split('`');
    names.skip(1).step_by(2).map(str::to_owned).collect()
}

/// Paths of all values that are not tables; the shape of a topology counts as one value.
pub(crate) fn leaves(table: &Table) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for (key, value) in table {
        match value {
            Value::Table(inner) if key != "topology" => {
                found.extend(leaves(inner).into_iter().map(|mut path| {
                    path.insert(0, key.clone());
                    path
                }));
            }
            _ => found.push(vec![key.clone()]),
        }
    }
    found
}

/// The value at a path of [`leaves`].
pub(crate) fn at<'a>(table: &'a mut Table, path: &[String]) -> &'a mut Value {
    let (first, rest) = path.split_first().expect("a path has a part at least");
    rest.iter().fold(&mut table[first.as_str()], |value, key| &mut value[key])
}

/// Other values of a number, a Boolean or an array: the double and the half, or what differs.
pub(crate) fn neighbours(value: &Value) -> Vec<Value> {
    match value {
        Value::Boolean(yes) => vec![Value::Boolean(!yes)],
        Value::Integer(0) => vec![Value::Integer(1)],
        // The double may exceed a limit of the machine, and the half of 1 is zero.
        Value::Integer(number) => [number * 2, number / 2, number - 1].map(Value::Integer).into(),
        Value::Float(0.0) => vec![Value::Float(0.01)],
        Value::Float(number) => [number * 2.0, number / 2.0].map(Value::Float).into(),
        Value::String(text) => quantities(text).into_iter().map(Value::String).collect(),
        // Weights of all, where none has one.
        Value::Array(none) if none.is_empty() => {
            vec![Value::Array((1..=8).map(Value::Integer).collect())]
        }
        // Another line code, the only pair of numbers.
        Value::Array(_) => vec![Value::Array([128, 130].map(Value::Integer).into())],
        _ => Vec::new(),
    }
}

/// The double and the half of a number with a unit. For zero, a large and a small value: a short
/// time may vanish between two clock edges.
fn quantities(text: &str) -> Vec<String> {
    let Some((number, unit)) = text.split_once(' ') else { return Vec::new() };
    match number.parse::<f64>() {
        Ok(0.0) => vec![format!("100000 {unit}"), format!("100 {unit}")],
        Ok(number) => vec![format!("{} {unit}", number * 2.0), format!("{} {unit}", number / 2.0)],
        Err(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chpp::Config;
    use crate::chpp::experiments::Kind;
    use crate::chpp::experiments::single::single;

    fn of(kind: Kind, bytes: u64) -> Sensitivity {
        sensitivity("one operation", &Config::prototype(), |config| {
            Ok(single(config, kind, bytes)?.latency)
        })
        .unwrap()
    }

    /// Every parameter of the prototype is in exactly one of the three lists. Parameters known to
    /// matter have an effect; those that a single PUT does not use have none.
    #[test]
    fn parameters_without_effect_are_named() {
        let put = of(Kind::Put, 4096);
        let listed = put.without_effect.len() + put.with_effect.len() + put.not_tried.len();
        let text = Table::try_from(Config::prototype()).unwrap();
        assert_eq!(listed, leaves(&text).len());
        assert!(listed > 50 && put.not_tried.is_empty(), "{put:?}");
        for name in ["nic.clock", "nic.submission", "pcie.latency", "host.memory_jitter"] {
            assert!(put.with_effect.iter().any(|with| with == name), "{name} {put:?}");
        }
        for name in ["nic.tags", "nic.slot_batch", "nic.arbitration.policy", "io.latency"] {
            assert!(put.without_effect.iter().any(|without| without == name), "{name} {put:?}");
        }
    }

    /// Canary: a run that reads no parameter depends on none, and a run that reads one depends on
    /// that one.
    #[test]
    fn a_run_that_looks_at_one_parameter_depends_on_it() {
        let config = Config::prototype();
        let nothing = sensitivity("nothing", &config, |_| Ok(())).unwrap();
        assert!(nothing.with_effect.is_empty());
        let tags = sensitivity("tags", &config, |config| Ok(config.nic.tags)).unwrap();
        assert_eq!(tags.with_effect, ["nic.tags"]);
    }

    /// Every value of every built-in file has a source.
    #[test]
    fn every_parameter_has_a_source() {
        for system in crate::system::SYSTEMS {
            let sources = sources(system.parameters);
            let without: Vec<String> = leaves(&toml::from_str(system.parameters).unwrap())
                .into_iter()
                .map(|path| path.join("."))
                .filter(|path| !path.starts_with("setup.") && !sources.contains_key(path))
                // A topology is one value, of which the file has the kind.
                .filter(|path| path != "topology" || !sources.contains_key("topology.torus"))
                .collect();
            assert_eq!(without, Vec::<String>::new(), "{}", system.name);
        }
    }

    /// All choices are found, without a list: also the ways of submission that came later. Canary:
    /// a run that depends on one of them alone is seen to depend on it.
    #[test]
    fn all_choices_are_tried() {
        let config = Config::prototype();
        for name in ["descriptor", "damq-pd", "ring"] {
            let of = sensitivity("submission", &config, |config| {
                let text = Table::try_from(config).map_err(|error| error.to_string())?;
                Ok(text["nic"]["submission"].as_str() == Some(name))
            });
            assert_eq!(of.unwrap().with_effect, ["nic.submission"], "{name}");
        }
    }

    /// Of the parameters with an effect, those that are chosen or calibrated are named.
    #[test]
    fn what_a_result_rests_on_is_named() {
        let put = of(Kind::Put, 4096);
        for name in ["nic.module_cycles", "pcie.latency", "host.memory_rate"] {
            assert!(put.rests_on.iter().any(|on| on == name), "{name} {put:?}");
        }
        assert!(put.rests_on.iter().all(|name| put.with_effect.contains(name)));
        assert!(!put.rests_on.iter().any(|name| name == "nic.clock"), "the paper has it");
    }

    /// Each model of a paper has a run whose parameters were varied, and which depends on some of
    /// them.
    #[test]
    fn every_model_is_varied() {
        for (system, paper) in crate::system::System::of_papers() {
            let found = (paper.sensitivity)().unwrap();
            assert!(found.with_effect.len() > 5, "{} {found:?}", system.name);
            assert!(!found.rests_on.is_empty(), "{} {found:?}", system.name);
        }
    }
}
