//! A sweep: a file, and from it the parameters and the seed of each point.

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bellwire_model::system::System;
use bellwire_model::trial::{Change, Quantity, Trial};
use serde::Deserialize;
use toml::{Table, Value};

use crate::axis::Axis;
use crate::cell::{Cell, Column, Form, Kind};
use crate::layout::Layout;
use crate::row::Row;

/// More points than this need a `limit` in the file: who wants so many says so.
const LIMIT: u64 = 100_000;

/// The most points of a sample: the sequence has no more.
const MOST_SAMPLED: u64 = 1 << 16;

/// The most axes of a sample, for the same reason.
const MOST_SAMPLED_AXES: usize = 256;

/// Why a text is no sweep, or too large a one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SweepError(String);

/// The form of a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Plan {
    model: Option<String>,
    load: Option<String>,
    seed: Option<u32>,
    repetitions: Option<u64>,
    seeds: Option<Vec<u32>>,
    limit: Option<u64>,
    points: Option<u64>,
    #[serde(default)]
    set: Table,
    grid: Option<Table>,
    list: Option<Vec<Table>>,
    sobol: Option<Table>,
    #[serde(default)]
    minimise: Vec<String>,
    #[serde(default)]
    maximise: Vec<String>,
}

/// A sweep.
pub struct Sweep {
    system: &'static System,
    trial: &'static Trial,
    set: Vec<Change>,
    paths: Vec<String>,
    forms: Vec<Form>,
    layout: Layout,
    settings: u64,
    seeds: Vec<u32>,
    limit: u64,
    identity: String,
    text: String,
    objectives: Vec<(String, bool)>,
}

impl Sweep {
    /// Reads a sweep.
    ///
    /// # Errors
    /// What is wrong, and what to do.
    pub fn read(text: &str) -> Result<Sweep, SweepError> {
        Sweep::of(text).map_err(SweepError)
    }

    fn of(text: &str) -> Result<Sweep, String> {
        let plan: Plan = toml::from_str(text).map_err(|error| in_line(text, &error))?;
        let system = System::named(plan.model.as_deref().unwrap_or_default());
        let system = system.map_err(|names| match &plan.model {
            Some(model) => format!("there is no model \"{model}\"; {names}"),
            None => format!("it has no `model`; {names}"),
        })?;
        let is_named = |trial: &&Trial| plan.load.as_deref() == Some(trial.name);
        let trial = system.loads.iter().find(is_named).ok_or_else(|| {
            let names: Vec<&str> = system.loads.iter().map(|trial| trial.name).collect();
            let (model, names) = (system.name, names.join(", "));
            match &plan.load {
                Some(load) => format!("{model} has no load \"{load}\"; it has {names}"),
                None => format!("it has no `load`; {model} has {names}"),
            }
        })?;
        // Sections are known from the defaults, which depend on what is set.
        let plain = plan.set.iter().map(|(path, value)| change(path, value));
        let defaults = (trial.defaults)(&plain.collect::<Vec<_>>())?;
        let set = flat(&plan.set, &defaults)?;
        let defaults = (trial.defaults)(&set)?;
        let seeds = seeds(&plan)?;
        let (paths, layout) = layout(&plan, &defaults, seeds[0])?;
        let forms: Vec<Form> = forms(&paths, &layout);
        let settings = layout.settings().filter(|count| *count <= i64::MAX as u64);
        let too_many = "the grid has more points than can be numbered; take fewer values";
        let settings = settings.ok_or(too_many)?;
        let points = settings.checked_mul(seeds.len() as u64);
        points.filter(|count| *count <= i64::MAX as u64).ok_or(too_many)?;
        let sweep = Sweep {
            system,
            trial,
            set,
            paths,
            forms,
            layout,
            settings,
            seeds,
            limit: plan.limit.unwrap_or(LIMIT),
            identity: identity(text)?,
            text: text.to_owned(),
            objectives: Vec::new(),
        };
        sweep.check_paths()?;
        let objectives = sweep.objectives_of(&plan)?;
        Ok(Sweep { objectives, ..sweep })
    }

    /// Refuses parameters that do not exist, and one that is set twice.
    fn check_paths(&self) -> Result<(), String> {
        let both = self.paths.iter().find(|path| self.set.iter().any(|set| set.path == **path));
        if let Some(path) = both {
            return Err(format!("`{path}` is in [set] and an axis; remove it from one of them"));
        }
        for outer in &self.paths {
            let below = format!("{outer}.");
            if let Some(inner) = self.paths.iter().find(|path| path.starts_with(&below)) {
                return Err(format!(
                    "`{inner}` lies inside of `{outer}`; take one of them as an axis"
                ));
            }
        }
        // Types are checked at each point; here only whether all names are known.
        let first = self.layout.setting(0);
        let axes =
            self.paths.iter().zip(first).filter_map(|(path, value)| {
                Some(Change { path: path.clone(), value: value?.clone() })
            });
        for changed in self.set.iter().cloned().chain(axes) {
            let mut changes = self.set.clone();
            changes.retain(|set| set.path != changed.path);
            changes.push(changed.clone());
            if let Err(why) = (self.trial.accepts)(&changes)
                && ["unknown field", "cannot be set"].iter().any(|word| why.contains(word))
            {
                return Err(format!(
                    "`{}` is no parameter of {} under the load {} ({}); `bellwire model parameters {}` prints \
                     those of the model, and `bellwire model sweep --list` those of loads",
                    changed.path,
                    self.system.name,
                    self.trial.name,
                    one_line(&why),
                    self.system.name
                ));
            }
        }
        Ok(())
    }

    /// What is good: as the file says, or else as the load's quantities are.
    fn objectives_of(&self, plan: &Plan) -> Result<Vec<(String, bool)>, String> {
        use bellwire_model::trial::Better;
        if plan.minimise.is_empty() && plan.maximise.is_empty() {
            let judged = self.quantities().iter().filter(|of| of.better != Better::Neither);
            return Ok(judged.map(|of| (of.name.to_owned(), of.better == Better::High)).collect());
        }
        let columns = self.columns();
        let named = |names: &[String], is_high: bool| {
            let found = |name: &String| {
                let axis = self.paths.iter().position(|path| path == name);
                let column = axis.map(|at| &self.forms[at].column);
                let column = column.or_else(|| columns.iter().find(|of| of.name == *name));
                match column {
                    Some(Column { name, kind: Kind::Integer | Kind::Real }) => {
                        Ok((name.clone(), is_high))
                    }
                    _ => Err(format!("`{name}` is no column of numbers, so it cannot be judged")),
                }
            };
            names.iter().map(found).collect::<Result<Vec<_>, String>>()
        };
        let mut objectives = named(&plan.minimise, false)?;
        objectives.extend(named(&plan.maximise, true)?);
        Ok(objectives)
    }

    /// The number of points.
    pub fn points(&self) -> u64 {
        self.settings * self.seeds.len() as u64
    }

    /// Refuses more points than the limit.
    ///
    /// # Errors
    /// How many there are, and what to do.
    pub fn within_limit(&self, points: &Range<u64>) -> Result<(), SweepError> {
        let count = points.end - points.start;
        if count <= self.limit {
            return Ok(());
        }
        let (settings, seeds, limit) = (self.settings, self.seeds.len(), self.limit);
        Err(SweepError(format!(
            "that would be {count} points ({settings} settings, {seeds} seeds each), and the limit is {limit}; take fewer \
             values, or a sample by [sobol], or write `limit = {count}` into the file"
        )))
    }

    /// The setting of a point, by axis, and its seed. Repetitions of a setting are neighbours.
    pub fn point(&self, point: u64) -> (Vec<Option<Value>>, u32) {
        let seeds = self.seeds.len() as u64;
        (self.layout.setting(point / seeds), self.seeds[(point % seeds) as usize])
    }

    /// Runs a point. What the model refuses, and what it cannot do, stands in the row.
    ///
    /// # Panics
    /// If there is no such point.
    pub fn run(&self, point: u64) -> Row {
        assert!(point < self.points(), "point {point} of {}", self.points());
        let (setting, seed) = self.point(point);
        let mut changes = self.set.clone();
        for (path, value) in self.paths.iter().zip(setting) {
            changes.extend(value.map(|value| Change { path: path.clone(), value }));
        }
        // One point must not end the others.
        let outcome = catch_unwind(AssertUnwindSafe(|| (self.trial.run)(&changes, seed.into())));
        let outcome = outcome.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(format!("the model broke off: {}", text.unwrap_or("without a reason")))
        });
        Row::new(point, outcome.map_err(|why| one_line(&why)))
    }

    /// The columns of a table of results.
    pub fn columns(&self) -> Vec<Column> {
        let column = |name: &str, kind| Column { name: name.to_owned(), kind };
        let mut columns = vec![column("point", Kind::Integer)];
        columns.extend(self.forms.iter().map(|form| form.column.clone()));
        columns.push(column("seed", Kind::Integer));
        columns.extend(self.quantities().iter().map(|of| column(of.name, Kind::Real)));
        columns.extend(["trace_hash", "version", "error"].map(|name| column(name, Kind::Text)));
        columns
    }

    /// A row of that table.
    pub fn cells(&self, row: &Row) -> Vec<Cell> {
        let (setting, seed) = self.point(row.point);
        let mut cells = vec![Cell::Integer(row.point as i64)];
        cells.extend(
            self.forms
                .iter()
                .zip(setting)
                .map(|(form, value)| value.map_or(Cell::Nothing, |value| form.cell(&value))),
        );
        cells.push(Cell::Integer(seed.into()));
        let figure = |at: usize| row.figures.get(at).copied().flatten();
        let figures = (0..self.quantities().len()).map(figure);
        cells.extend(figures.map(|figure| figure.map_or(Cell::Nothing, Cell::Real)));
        let text = |text: &Option<String>| text.clone().map_or(Cell::Nothing, Cell::Text);
        cells.push(text(&row.trace_hash));
        cells.push(Cell::Text(crate::VERSION.to_owned()));
        cells.push(text(&row.error));
        cells
    }

    /// The columns of the axes.
    pub fn axes(&self) -> impl ExactSizeIterator<Item = &Column> {
        self.forms.iter().map(|form| &form.column)
    }

    /// The quantities that its load measures.
    pub fn quantities(&self) -> &'static [Quantity] {
        self.trial.quantities
    }

    /// The columns by which points are judged, and whether high values are good.
    pub fn objectives(&self) -> &[(String, bool)] {
        &self.objectives
    }

    /// The name of the model.
    pub fn model(&self) -> &'static str {
        self.system.name
    }

    /// The name of the load.
    pub fn load(&self) -> &'static str {
        self.trial.name
    }

    /// A hash of all that decides the points: sweeps of one identity have the same points.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The file.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// The seeds of each setting.
fn seeds(plan: &Plan) -> Result<Vec<u32>, String> {
    const MOST: u64 = 1_000_000;
    let Plan { seed, repetitions, seeds, .. } = plan;
    match (seeds, repetitions.unwrap_or(1)) {
        (Some(_), _) if seed.is_some() || repetitions.is_some() => {
            Err("`seeds` lists all seeds, so `seed` and `repetitions` must not stand beside it"
                .to_owned())
        }
        (Some(seeds), _) if seeds.is_empty() => {
            Err("`seeds` is empty, so there would be no point; give one or more".to_owned())
        }
        (Some(seeds), _) => {
            match seeds.iter().enumerate().find(|(at, of)| seeds[..*at].contains(of)) {
                Some((_, twice)) => Err(format!("`seeds` has {twice} twice")),
                None => Ok(seeds.clone()),
            }
        }
        (None, repetitions) if !(1..=MOST).contains(&repetitions) => {
            Err(format!("`repetitions` is {repetitions}; it must lie in 1..={MOST}"))
        }
        (None, repetitions) => {
            let first = seed.unwrap_or(1);
            let end = u64::from(first) + repetitions;
            u32::try_from(end).map_err(|_| {
                format!("`seed` is {first}, too large for {repetitions} repetitions")
            })?;
            Ok((first..end as u32).collect())
        }
    }
}

/// The paths of the axes, and where the points lie.
fn layout(plan: &Plan, defaults: &Table, seed: u32) -> Result<(Vec<String>, Layout), String> {
    let Plan { grid, list, sobol, points, .. } = plan;
    if points.is_some() && sobol.is_none() {
        return Err(
            "`points` belongs to [sobol]; a grid and a list have as many as they have".to_owned()
        );
    }
    let empty = |what: &str| format!("{what} has no axis; name a parameter and its values");
    let axes = |table: &Table, what: &str, axis: fn(&Value) -> Result<Axis, String>| {
        let changes = flat(table, defaults)?;
        if changes.is_empty() {
            return Err(empty(what));
        }
        let axis = |change: Change| {
            let axis = axis(&change.value).map_err(|why| format!("`{}` {why}", change.path))?;
            Ok((change.path, axis))
        };
        changes.into_iter().map(axis).collect::<Result<Vec<_>, String>>()
    };
    match (grid, list, sobol) {
        (Some(grid), None, None) => {
            let axes = axes(grid, "[grid]", Axis::of_grid)?;
            let values = axes.iter().map(|(_, axis)| axis.values().to_vec()).collect();
            Ok((axes.into_iter().map(|(path, _)| path).collect(), Layout::Grid(values)))
        }
        (None, Some(list), None) => {
            let settings = list.iter().map(|setting| flat(setting, defaults));
            let settings = settings.collect::<Result<Vec<_>, _>>()?;
            let mut paths: Vec<String> =
                settings.iter().flatten().map(|of| of.path.clone()).collect();
            paths.sort();
            paths.dedup();
            if paths.is_empty() {
                return Err(empty("[[list]]"));
            }
            let of = |setting: &Vec<Change>, path: &String| {
                setting.iter().find(|of| of.path == *path).map(|of| of.value.clone())
            };
            let setting = |setting| paths.iter().map(|path| of(setting, path)).collect();
            let settings = settings.iter().map(setting).collect();
            Ok((paths, Layout::List(settings)))
        }
        (None, None, Some(sobol)) => {
            let points =
                points.ok_or("[sobol] needs `points`, the number of settings, above it")?;
            if !(1..=MOST_SAMPLED).contains(&points) {
                return Err(format!("`points` is {points}; a sample has 1 to {MOST_SAMPLED}"));
            }
            let axes = axes(sobol, "[sobol]", Axis::of_sample)?;
            if axes.len() > MOST_SAMPLED_AXES {
                return Err(format!(
                    "[sobol] has {} axes; {MOST_SAMPLED_AXES} are the most",
                    axes.len()
                ));
            }
            let (paths, axes) = axes.into_iter().unzip();
            Ok((paths, Layout::Sobol { axes, points: points as u32, seed }))
        }
        (None, None, None) => {
            Err("it has no points; give it one of [grid], [[list]] and [sobol]".to_owned())
        }
        _ => {
            Err("it has more than one of [grid], [[list]] and [sobol]; make a file of each"
                .to_owned())
        }
    }
}

/// How the values of each axis become cells.
fn forms(paths: &[String], layout: &Layout) -> Vec<Form> {
    let of = |(at, path): (usize, &String)| match layout {
        Layout::Grid(axes) => Form::of(path, axes[at].iter()),
        Layout::List(settings) => {
            Form::of(path, settings.iter().filter_map(|setting| setting[at].as_ref()))
        }
        Layout::Sobol { axes, .. } => Form::of(path, axes[at].values().iter()),
    };
    paths.iter().enumerate().map(of).collect()
}

fn change(path: &str, value: &Value) -> Change {
    Change { path: path.to_owned(), value: value.clone() }
}

/// Paths and values of a table. A path is a key in quotes, or keys with points between them: tables
/// are entered as far as the parameters have sections.
fn flat(table: &Table, defaults: &Table) -> Result<Vec<Change>, String> {
    let mut found = BTreeMap::new();
    enter(table, "", defaults, &mut found)?;
    Ok(found.into_iter().map(|(path, value)| Change { path, value }).collect())
}

fn enter(
    table: &Table,
    above: &str,
    defaults: &Table,
    found: &mut BTreeMap<String, Value>,
) -> Result<(), String> {
    for (key, value) in table {
        let path = if above.is_empty() { key.clone() } else { format!("{above}.{key}") };
        match value {
            Value::Table(inner) if is_section(&path, defaults) => {
                enter(inner, &path, defaults, found)?;
            }
            _ => {
                if found.insert(path.clone(), value.clone()).is_some() {
                    return Err(format!("`{path}` stands there twice; remove one of them"));
                }
            }
        }
    }
    Ok(())
}

/// Whether a path leads to a section. A choice that has values of its own is one value.
fn is_section(path: &str, defaults: &Table) -> bool {
    const CHOICES: [&str; 5] = ["topology", "pattern", "arrival", "sizes", "allocation"];
    let mut parts = path.split('.');
    let inside = parts.try_fold(defaults, |table, part| match table.get(part)? {
        Value::Table(inner) if !CHOICES.contains(&part) => Some(inner),
        _ => None,
    });
    inside.is_some()
}

/// A hash of the content of a file, whatever its order, its comments and its limit.
fn identity(text: &str) -> Result<String, String> {
    let mut table: Table = toml::from_str(text).map_err(|error| in_line(text, &error))?;
    for key in ["limit", "minimise", "maximise"] {
        table.remove(key);
    }
    let text = toml::to_string(&table).map_err(|error| one_line(&error.to_string()))?;
    Ok(blake3::hash(text.as_bytes()).to_hex()[..32].to_owned())
}

/// Why a text cannot be read, and in which of its lines.
fn in_line(text: &str, error: &toml::de::Error) -> String {
    let why = one_line(error.message());
    let before = error.span().and_then(|span| text.get(..span.start));
    match before.filter(|before| !before.is_empty()) {
        Some(before) => format!("line {}: {why}", before.matches('\n').count() + 1),
        None => why,
    }
}

fn one_line(text: &str) -> String {
    text.trim_end().replace('\n', ", ")
}
