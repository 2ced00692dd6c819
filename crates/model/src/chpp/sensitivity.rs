//! Which parameters have no effect on a run.
//!
//! The run is repeated with one parameter changed at a time: every number of the configuration is
//! doubled and halved, every choice is changed. A parameter that changes no result has no effect.
//! The parameters come from the configuration's own text, so none is missed. A run of some 100 us
//! takes milliseconds; for a long experiment a short piece is used.

use toml::{Table, Value};

use super::Config;
use crate::experiment::{Report, Sensitivity};

/// Choices that are neither numbers nor Booleans: the key, and its values.
const CHOICES: [(&str, &[&str]); 4] = [
    ("memory_distribution", &["uniform", "exponential"]),
    ("submission", &["doorbell", "descriptor"]),
    ("link", &["pcie", "smp"]),
    ("policy", &["round-robin", "weighted", "strict", "random"]),
];

/// Adds the parameters without effect on `run` to a report; `of` describes the run.
///
/// # Errors
/// The error of the unchanged run; or that the configuration cannot be written.
pub fn without_effect<T: PartialEq>(
    report: &mut Report,
    of: &str,
    config: &Config,
    run: impl Fn(&Config) -> Result<T, String>,
) -> Result<(), String> {
    report.sensitivity.push(sensitivity(of, config, run)?);
    Ok(())
}

/// Repeats `run` with each parameter of `config` changed, and compares the results. A failing
/// changed run counts as an effect.
///
/// # Errors
/// The error of the unchanged run; or that the configuration cannot be written.
pub fn sensitivity<T: PartialEq>(
    of: impl Into<String>,
    config: &Config,
    run: impl Fn(&Config) -> Result<T, String>,
) -> Result<Sensitivity, String> {
    let unchanged = run(config)?;
    let text = Table::try_from(config).map_err(|error| error.to_string())?;
    let mut found = Sensitivity { of: of.into(), ..Sensitivity::default() };
    for path in leaves(&text) {
        let mut tried = false;
        let mut changes = false;
        for value in neighbours(&path, at(&mut text.clone(), &path)) {
            let mut changed = text.clone();
            *at(&mut changed, &path) = value;
            let Some(changed) =
                changed.try_into::<Config>().ok().filter(|config| config.check().is_ok())
            else {
                continue;
            };
            tried = true;
            changes = run(&changed).map_or(true, |outcome| outcome != unchanged);
            if changes {
                break;
            }
        }
        let list = match (tried, changes) {
            (false, _) => &mut found.not_tried,
            (true, false) => &mut found.without_effect,
            (true, true) => &mut found.with_effect,
        };
        list.push(path.join("."));
    }
    Ok(found)
}

/// Paths of all values that are not tables; the shape of a topology counts as one value.
fn leaves(table: &Table) -> Vec<Vec<String>> {
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

fn at<'a>(table: &'a mut Table, path: &[String]) -> &'a mut Value {
    let (first, rest) = path.split_first().expect("a path has a part at least");
    let value = table.get_mut(first).expect("the path was found in this table");
    if rest.is_empty() {
        return value;
    }
    at(value.as_table_mut().expect("what has a part is a table"), rest)
}

/// Other values of a parameter: the double and the half, or the other choices.
fn neighbours(path: &[String], value: &Value) -> Vec<Value> {
    let key = path.last().map_or("", String::as_str);
    match value {
        Value::Boolean(yes) => vec![Value::Boolean(!yes)],
        Value::Integer(0) => vec![Value::Integer(1)],
        // The double may exceed a limit of the machine, and the half of 1 is zero.
        Value::Integer(number) => [number * 2, number / 2, number - 1].map(Value::Integer).into(),
        Value::String(text) => match CHOICES.iter().find(|(choice, _)| *choice == key) {
            Some((_, choices)) => {
                let others = choices.iter().filter(|choice| *choice != text);
                others.map(|choice| Value::String((*choice).to_owned())).collect()
            }
            None => quantities(text).into_iter().map(Value::String).collect(),
        },
        Value::Array(_) if key == "weights" => {
            vec![Value::Array((1..=8).map(Value::Integer).collect())]
        }
        Value::Array(_) if key == "coding" => {
            vec![Value::Array([128, 130].map(Value::Integer).into())]
        }
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
}
