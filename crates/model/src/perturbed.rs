//! What must follow when a parameter changes, beside what does follow.
//!
//! Each model has a file `perturbed.toml` with a table for every parameter of its configuration. It
//! says which figures move when the parameter is changed, in which direction, and by how much where
//! a formula says so. Expectations come from physics and from the papers' mechanisms, never from a
//! run.
//!
//! ```toml
//! ["bus.one_way"]
//! why = "A store passes the bus once, and a read, both ways included, has a time of its own."
//! half = { "start: by PIO" = "-125", "start: by DMA" = "down" }
//!
//! ["nic.tags"]
//! why = "..."
//! double = { "rate: 4 ports by DMA" = "x2 within 5" }
//! "to 1" = { "rate: *" = "down", "rate: 1 port" = "same" }
//!
//! ["host.spare"]                       # no change: it moves nothing
//! why = "..."
//!
//! ["host.kind"]                        # it cannot be changed alone
//! why = "..."
//! alone = "is refused"
//!
//! [elsewhere]                          # experiments without a figure here
//! submission = "Its parameters are those of another model."
//! ```
//!
//! A change is `half`, `double` or `to` a value. A figure that a change does not name stays the
//! same; a name may end in `*`, and the longest name that fits counts. What may be expected of a
//! figure is in [`Expected`]. A parameter without a change moves nothing: its double, its half and
//! every other choice are tried. If all of them are refused, the row must say so.
//!
//! A figure is a short measurement: a [`Probe`] takes it, of a configuration of its own. The check
//! fails for a parameter without a table, a table without a parameter, a choice without a change,
//! an experiment without a figure, and a figure that no parameter moves.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::experiment::Experiment;
use crate::form::fault;
use crate::sensitivity::{Parameters, at, leaves, neighbours, other_choices};

/// A short measurement that belongs to an experiment.
pub struct Probe<C> {
    /// The experiment whose mechanism it shows.
    pub experiment: &'static str,
    /// What it measures, in the order of the results.
    pub figures: &'static [Figure],
    /// The configuration that is changed.
    pub base: fn() -> C,
    /// Measures.
    pub run: fn(&C) -> Result<Vec<f64>, String>,
}

/// A measured quantity.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Its name, unique in the model.
    pub name: &'static str,
    /// Its unit; `1` for counts and ratios.
    pub unit: &'static str,
    /// The change, in percent, up to which it counts as the same: 0, or what the ends of a window
    /// and the draws of a random load account for.
    pub noise: f64,
}

/// A figure that is the same only if it is exactly so.
pub const fn exact(name: &'static str, unit: &'static str) -> Figure {
    Figure { name, unit, noise: 0.0 }
}

/// A figure of a window or of a random load.
pub const fn within(noise: f64, name: &'static str, unit: &'static str) -> Figure {
    Figure { name, unit, noise }
}

/// What must happen to a figure.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub enum Expected {
    /// `same`: it stays, within its noise.
    Same,
    /// `up`: it grows by more than its noise.
    Up,
    /// `down`: it shrinks by more than its noise.
    Down,
    /// `moves`: it changes by more than its noise; physics does not say in which direction.
    Moves,
    /// `fails`: it cannot be measured, because the run does not end.
    Fails,
    /// `+12.5` or `-12.5`: it changes by this much, in its unit, and within this many percent of
    /// the change.
    By(f64, f64),
    /// `x0.5`: it is multiplied by this, within this many percent of the product.
    Times(f64, f64),
}

/// The percentage of a size that is allowed if the size names none by `within`.
const WITHIN: f64 = 1.0;

impl TryFrom<String> for Expected {
    type Error = String;

    fn try_from(text: String) -> Result<Expected, String> {
        let (size, percent) = text.split_once(" within ").unwrap_or((&text, "1"));
        let number = |number: &str| number.parse::<f64>();
        let fault = || format!("`{text}` is not an expectation, such as `up`, `x2` or `-250`");
        let within = number(percent).map_err(|_| fault())?;
        Ok(match size.split_at_checked(1).ok_or_else(fault)? {
            _ if size == "same" => Expected::Same,
            _ if size == "up" => Expected::Up,
            _ if size == "down" => Expected::Down,
            _ if size == "moves" => Expected::Moves,
            _ if size == "fails" => Expected::Fails,
            ("x", factor) => Expected::Times(number(factor).map_err(|_| fault())?, within),
            ("+" | "-", _) => Expected::By(number(size).map_err(|_| fault())?, within),
            _ => return Err(fault()),
        })
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let within = match self {
            Expected::By(size, within) => write!(f, "{size:+}").map(|()| *within)?,
            Expected::Times(factor, within) => write!(f, "x{factor}").map(|()| *within)?,
            Expected::Same => return f.write_str("same"),
            Expected::Up => return f.write_str("up"),
            Expected::Down => return f.write_str("down"),
            Expected::Moves => return f.write_str("moves"),
            Expected::Fails => return f.write_str("fails"),
        };
        if within == WITHIN { Ok(()) } else { write!(f, " within {within} %") }
    }
}

impl Expected {
    /// Whether a figure that was `before` and is `after` does what is expected.
    pub fn holds(self, before: f64, after: f64, noise_percent: f64) -> bool {
        let (change, noise) = (after - before, noise_percent / 100.0 * before.abs());
        match self {
            Expected::Same => change.abs() <= noise,
            Expected::Up => change > noise,
            Expected::Down => change < -noise,
            Expected::Moves => change.abs() > noise,
            Expected::Fails => after.is_nan(),
            Expected::By(size, within) => (change - size).abs() <= within / 100.0 * size.abs(),
            Expected::Times(factor, within) => {
                let product = before * factor;
                (after - product).abs() <= within / 100.0 * product.abs()
            }
        }
    }
}

/// The file of a model.
#[derive(Debug, Deserialize)]
struct Expectations {
    /// Experiments without a figure, and why.
    #[serde(default)]
    elsewhere: BTreeMap<String, String>,
    #[serde(flatten)]
    parameters: BTreeMap<String, Row>,
}

/// The table of a parameter.
#[derive(Debug, Deserialize)]
struct Row {
    /// Why its figures move, or why it moves nothing.
    why: String,
    /// Every other value is refused unless another parameter changes too.
    alone: Option<Refused>,
    /// What must follow from each change.
    #[serde(flatten)]
    changes: BTreeMap<String, BTreeMap<String, Expected>>,
}

#[derive(Debug, PartialEq, Deserialize)]
enum Refused {
    #[serde(rename = "is refused")]
    IsRefused,
}

impl Row {
    /// What is expected of a figure after a change.
    fn expected(&self, change: &str, figure: &str) -> Expected {
        let fits = |(name, _): &(&String, &Expected)| match name.strip_suffix('*') {
            Some(start) => figure.starts_with(start),
            None => *name == figure,
        };
        let named = self.changes.get(change).into_iter().flatten().filter(fits);
        named.max_by_key(|(name, _)| name.len()).map_or(Expected::Same, |(_, expected)| *expected)
    }

    /// Whether some change moves a figure.
    fn moves(&self, figure: &str) -> bool {
        self.changes.keys().any(|change| self.expected(change, figure) != Expected::Same)
    }
}

/// A figure before and after a change.
#[derive(Clone, Debug, Serialize)]
pub struct Moved {
    /// The experiment.
    pub experiment: &'static str,
    /// The figure.
    pub figure: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Its value without the change.
    pub before: f64,
    /// Its value with the change.
    pub after: f64,
    /// What was expected.
    pub expected: String,
    /// Whether it is so.
    pub holds: bool,
}

/// A change of a parameter, and all figures of the model.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    /// The parameter, such as `nic.clock`.
    pub parameter: String,
    /// The change, such as `double`.
    pub change: String,
    /// Why the figures must move as expected.
    pub why: String,
    /// The figures. A figure is missing if its configuration has the value already, or cannot have
    /// it.
    pub figures: Vec<Moved>,
}

/// All changes of a model, and what is wrong with its file.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Perturbed {
    /// The changes.
    pub changes: Vec<Change>,
    /// Parameters without a row, rows without a parameter, figures that nothing moves.
    pub faults: Vec<String>,
}

impl Perturbed {
    /// The faults, and the figures that do not what is expected: a line each.
    pub fn contradictions(&self) -> Vec<String> {
        let mut found = self.faults.clone();
        for Change { parameter, change, figures, .. } in &self.changes {
            found.extend(figures.iter().filter(|moved| !moved.holds).map(|moved| {
                let Moved { figure, unit, before, after, expected, .. } = moved;
                format!(
                    "{parameter}, {change}: `{figure}` should be {expected}: {before} -> {after} \
                     {unit}, x{:.4}",
                    after / before
                )
            }));
        }
        found
    }
}

impl fmt::Display for Perturbed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Change { parameter, change, why, figures } in &self.changes {
            writeln!(f, "{parameter}, {change}: {why}")?;
            for moved in figures {
                let Moved { figure, unit, before, after, expected, holds, .. } = moved;
                if *holds && expected == "same" {
                    continue;
                }
                let mark = if *holds { ' ' } else { '!' };
                writeln!(
                    f,
                    " {mark} {figure:<46} {before:>12.3} -> {after:>12.3} {unit:<7} expected: {expected}"
                )?;
            }
        }
        self.faults.iter().try_for_each(|fault| writeln!(f, "! {fault}"))
    }
}

/// Changes each parameter as the file says, and measures all figures.
///
/// # Errors
/// If the file is not of its form, or an unchanged measurement fails.
pub fn perturbed<C: Parameters>(
    file: &str,
    experiments: &[Experiment],
    probes: &[Probe<C>],
) -> Result<Perturbed, String> {
    let expectations = read(file)?;
    let bases = probes.iter().map(Base::of).collect::<Result<Vec<_>, _>>()?;
    let mut found =
        Perturbed { faults: faults(&expectations, experiments, probes, &bases), ..<_>::default() };
    for (parameter, row) in &expectations.parameters {
        let path: Vec<String> = parameter.split('.').map(str::to_owned).collect();
        if row.changes.is_empty() {
            let unmoved = unmoved(parameter, &path, row, probes, &bases);
            if unmoved.figures.is_empty() != row.alone.is_some() {
                found.faults.push(format!(
                    "{parameter}: its row must say that it `is refused` alone if, and only if, no \
                     other value is valid"
                ));
            }
            found.changes.push(unmoved);
        }
        for change in row.changes.keys() {
            let mut moved = Vec::new();
            for (probe, base) in probes.iter().zip(&bases) {
                let Some(value) = base.value(&path) else { continue };
                let after = match changed(value, change) {
                    Some(after) if after != *value => after,
                    _ => continue,
                };
                let Some(config) = base.with::<C>(&path, after) else { continue };
                moved.extend(base.compare(probe, row, change, &config));
            }
            if moved.is_empty() {
                found.faults.push(format!("{parameter} has no valid value `{change}`"));
            }
            found.changes.push(Change {
                parameter: parameter.clone(),
                change: change.clone(),
                why: row.why.clone(),
                figures: moved,
            });
        }
    }
    Ok(found)
}

/// Tries all other values of a parameter that moves nothing. A figure that moves is reported with
/// the value that moves it.
fn unmoved<C: Parameters>(
    parameter: &str,
    path: &[String],
    row: &Row,
    probes: &[Probe<C>],
    bases: &[Base],
) -> Change {
    let mut figures = Vec::new();
    for (probe, base) in probes.iter().zip(bases) {
        let Some(value) = base.value(path) else { continue };
        let mut others = neighbours(value);
        others.extend(other_choices::<C>(&base.text, path));
        if let (true, Value::String(text)) = (others.is_empty(), value) {
            others.push(Value::String(format!("not {text}")));
        }
        let mut last = Vec::new();
        for config in others.into_iter().filter_map(|other| base.with::<C>(path, other)) {
            last = base.compare(probe, row, "any", &config);
            if last.iter().any(|moved| !moved.holds) {
                break;
            }
        }
        figures.extend(last);
    }
    let (parameter, why) = (parameter.to_owned(), row.why.clone());
    Change { parameter, change: "any".to_owned(), why, figures }
}

/// The unchanged configuration of a probe, and its figures.
struct Base {
    text: Table,
    figures: Vec<f64>,
}

impl Base {
    fn of<C: Parameters>(probe: &Probe<C>) -> Result<Base, String> {
        let config = (probe.base)();
        let text = Table::try_from(&config).map_err(|error| error.to_string())?;
        let figures = (probe.run)(&config)?;
        if figures.len() != probe.figures.len() || figures.iter().any(|of| !of.is_finite()) {
            return Err(format!("{}: {figures:?} are not its figures", probe.experiment));
        }
        Ok(Base { text, figures })
    }

    fn value(&self, path: &[String]) -> Option<&Value> {
        let (last, sections) = path.split_last()?;
        let section = sections.iter().try_fold(&self.text, |of, key| of.get(key)?.as_table())?;
        section.get(last)
    }

    /// The configuration with another value, if that is valid.
    fn with<C: Parameters>(&self, path: &[String], value: Value) -> Option<C> {
        let mut changed = self.text.clone();
        *at(&mut changed, path) = value;
        changed.try_into::<C>().ok().filter(C::is_valid)
    }

    fn compare<C>(&self, probe: &Probe<C>, row: &Row, change: &str, config: &C) -> Vec<Moved> {
        let none = vec![f64::NAN; probe.figures.len()];
        let after = (probe.run)(config).unwrap_or(none);
        let values = self.figures.iter().zip(after);
        let compared = probe.figures.iter().zip(values).map(|(figure, (before, after))| {
            let expected = row.expected(change, figure.name);
            Moved {
                experiment: probe.experiment,
                figure: figure.name,
                unit: figure.unit,
                before: *before,
                after,
                expected: expected.to_string(),
                holds: expected.holds(*before, after, figure.noise),
            }
        });
        compared.collect()
    }
}

fn read(file: &str) -> Result<Expectations, String> {
    toml::from_str(file).map_err(|error| fault(&error))
}

/// The value after a change; `None` if it cannot be changed so.
fn changed(value: &Value, change: &str) -> Option<Value> {
    let factor = match change {
        "double" => 2.0,
        "half" => 0.5,
        _ => {
            let to = change.strip_prefix("to ")?;
            return Some(match value {
                Value::String(_) => Value::String(to.to_owned()),
                _ => to.parse().ok()?,
            });
        }
    };
    match value {
        Value::Integer(number) => Some(Value::Integer((*number as f64 * factor) as i64)),
        Value::Float(number) => Some(Value::Float(number * factor)),
        Value::String(text) => {
            let (number, unit) = text.split_once(' ')?;
            let number: f64 = number.parse().ok()?;
            Some(Value::String(format!("{} {unit}", number * factor)))
        }
        _ => None,
    }
}

/// What the file lacks, and what it has too much.
fn faults<C: Parameters>(
    expectations: &Expectations,
    experiments: &[Experiment],
    probes: &[Probe<C>],
    bases: &[Base],
) -> Vec<String> {
    let Expectations { parameters, elsewhere } = expectations;
    let mut found = Vec::new();
    let known: BTreeSet<String> =
        bases.iter().flat_map(|base| leaves(&base.text)).map(|path| path.join(".")).collect();
    found.extend(
        known
            .iter()
            .filter(|name| !parameters.contains_key(*name))
            .map(|name| format!("the parameter {name} has no row")),
    );
    found.extend(
        parameters
            .keys()
            .filter(|name| !known.contains(*name))
            .map(|name| format!("there is no parameter {name}")),
    );
    let figures: Vec<&str> =
        probes.iter().flat_map(|probe| probe.figures).map(|figure| figure.name).collect();
    for (parameter, row) in parameters {
        for (change, names) in &row.changes {
            let fits = |name: &str| match name.strip_suffix('*') {
                Some(start) => figures.iter().any(|figure| figure.starts_with(start)),
                None => figures.contains(&name),
            };
            found.extend(
                names
                    .keys()
                    .filter(|name| !fits(name))
                    .map(|name| format!("{parameter}, {change}: there is no figure `{name}`")),
            );
        }
        if !row.changes.is_empty() && !figures.iter().any(|figure| row.moves(figure)) {
            found.push(format!("{parameter} moves nothing: its row must have no changes"));
        }
        if row.changes.is_empty() {
            continue;
        }
        let path: Vec<String> = parameter.split('.').map(str::to_owned).collect();
        let mut choices = BTreeSet::new();
        for base in bases.iter().filter(|base| base.value(&path).is_some()) {
            let valid = |choice: &Value| base.with::<C>(&path, choice.clone()).is_some();
            let others = other_choices::<C>(&base.text, &path).into_iter().filter(valid);
            choices.extend(others.filter_map(|choice| Some(choice.as_str()?.to_owned())));
        }
        found.extend(
            choices
                .iter()
                .filter(|choice| !row.changes.contains_key(&format!("to {choice}")))
                .map(|choice| format!("{parameter}: nothing is expected of `{choice}`")),
        );
    }
    for figure in &figures {
        if !parameters.values().any(|row| row.moves(figure)) {
            found.push(format!("nothing moves `{figure}`"));
        }
        if figures.iter().filter(|other| *other == figure).count() > 1 {
            found.push(format!("there are two figures `{figure}`"));
        }
    }
    for Experiment { id, .. } in experiments {
        let measured = probes.iter().any(|probe| probe.experiment == *id);
        if measured == elsewhere.contains_key(*id) {
            found.push(format!("the experiment {id} has no figure, or one and a reason"));
        }
    }
    found
}

/// The section of a model's page: what moves each figure, and what moves nothing, and why.
///
/// # Errors
/// If the file is not of its form.
pub fn section<C>(file: &str, probes: &[Probe<C>]) -> Result<String, String> {
    let Expectations { parameters, elsewhere } = read(file)?;
    let mut page = format!("{HEADING}\n\n{OPENING}\n| figure | moved by |\n|---|---|\n");
    let (mut still, mut refused) = (String::new(), String::new());
    for (parameter, Row { why, alone, changes }) in &parameters {
        if changes.is_empty() {
            let list = if alone.is_some() { &mut refused } else { &mut still };
            let _ = writeln!(list, "| `{parameter}` | {} |", why.trim());
        }
    }
    for figure in probes.iter().flat_map(|probe| probe.figures) {
        let moving = parameters.iter().filter(|(_, row)| row.moves(figure.name));
        let moving: Vec<String> = moving.map(|(parameter, _)| format!("`{parameter}`")).collect();
        let _ = writeln!(page, "| {} | {} |", figure.name, moving.join(", "));
    }
    if !still.is_empty() {
        let _ = write!(page, "\n{STILL}\n\n| moves nothing | why |\n|---|---|\n{still}");
    }
    if !refused.is_empty() {
        let _ = write!(page, "\n| cannot be changed alone | why |\n|---|---|\n{refused}");
    }
    if !elsewhere.is_empty() {
        page.push_str("\n| experiment without a figure here | why |\n|---|---|\n");
        for (experiment, why) in &elsewhere {
            let _ = writeln!(page, "| `{experiment}` | {} |", why.trim());
        }
    }
    Ok(page)
}

/// A page with this [`section`] in place of the one that it has, or at its end.
pub fn with_section(page: &str, section: &str) -> String {
    let (before, after) = match page.split_once(HEADING) {
        Some((before, rest)) => (before, rest.find("\n## ").map_or("", |at| &rest[at..])),
        None => (page, ""),
    };
    format!("{}\n\n{section}{after}", before.trim_end())
}

/// The heading of [`section`].
pub const HEADING: &str = "## What each parameter moves";

const OPENING: &str = "\
<!-- Written by `make docs` from perturbed.toml; change that file, not this section. -->

Each parameter is halved, doubled or set otherwise in short runs, one at a time. `perturbed.toml`
says beforehand what must follow, and a test compares. So a figure that is missing behind a
parameter stays the same.
";

const STILL: &str = "These move no figure, doubled, halved or set otherwise:";
