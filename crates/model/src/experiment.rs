//! An experiment of a paper and its report: values beside those published, each marked as
//! calibrated or predicted, claims that hold or fail, and figures.

use std::fmt;

use bellwire_protocol::canary::planted;
use serde::{Deserialize, Serialize};

use crate::published::Published;
use crate::sensitivity::{Parameters, sensitivity};
use crate::stats::{Estimate, LEAST_SEEDS, bound_of_never, over_seeds};

/// Runs a random load once with each of [`LEAST_SEEDS`] independent seeds.
///
/// # Errors
/// The first error of a run.
pub fn of_each_seed<T>(run: impl FnMut(u64) -> Result<T, String>) -> Result<Vec<T>, String> {
    of_seeds(LEAST_SEEDS, run)
}

/// Runs a random load once with each of `count` independent seeds.
///
/// # Errors
/// The first error of a run.
pub fn of_seeds<T>(
    count: usize,
    run: impl FnMut(u64) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    // Canary: other draws show what was drawn and has no interval. This has one.
    let count = if planted("other-draws") { 1 } else { count };
    (1..=count as u64).map(run).collect()
}

/// A quantity of each seed's run.
pub fn draws<T>(runs: &[T], of: impl Fn(&T) -> f64) -> Vec<f64> {
    runs.iter().map(of).collect()
}

/// Relative error, in percent, above which a value needs an explanation. Of a value with an
/// interval, no end may be further off.
pub const EXPLAINED_ABOVE: f64 = 5.0;

/// An experiment: its name, its title, and its function.
pub struct Experiment {
    /// Name for the command line.
    pub id: &'static str,
    /// A short description.
    pub title: &'static str,
    /// Its rows in docs/feature-rows.md.
    pub rows: &'static str,
    /// What the paper publishes of it and of others, as TOML; see [`crate::published`].
    pub published: &'static str,
    /// Runs it.
    pub run: Run,
}

/// Runs an experiment and fills its report; a sentence if it cannot run.
pub type Run = fn(&mut Report) -> Result<(), String>;

/// The origin of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// A constant was fitted to it, or a structure chosen knowing it.
    Calibrated,
    /// A parameter decides it alone: it comes out as it was put in.
    Input,
    /// It follows from the mechanism.
    #[default]
    Predicted,
    /// It follows from a formula of the paper, without the model.
    Formula,
    /// It follows from the mechanism and stands beside a formula that we evaluated, which the paper
    /// does not print as a figure. It is no prediction of a published figure.
    OwnFormula,
    /// It repeats other values: the same measurement again, in another unit, as a ratio, or in
    /// another reading of the paper. The printed figure counts with them already. Of several
    /// readings, the one that misses counts, else the first.
    Derived,
}

impl Role {
    /// The role in words.
    pub fn name(self) -> &'static str {
        match self {
            Role::Calibrated => "calibrated",
            Role::Input => "input",
            Role::Predicted => "predicted",
            Role::Formula => "formula",
            Role::OwnFormula => "own formula",
            Role::Derived => "derived",
        }
    }
}

/// A value of the model beside that of the paper.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Value {
    /// Its name.
    pub what: String,
    /// Its unit.
    pub unit: &'static str,
    /// Its origin.
    pub role: Role,
    /// The value of the model or formula; of a random load, the mean over its seeds.
    pub model: f64,
    /// The confidence in the mean; nothing if no random draw decides the value.
    pub interval: Option<Interval>,
    /// The value of the paper, or of the formula that it is compared with; nothing without either.
    pub published: Option<f64>,
    /// Relative error in percent, of the mean.
    pub error_percent: Option<f64>,
    /// Where the paper has it.
    pub section: Option<String>,
    /// The greatest error in percent that does not count as a miss, or that has an explanation.
    pub within_percent: f64,
    /// Why the two values differ, if they differ by more than [`EXPLAINED_ABOVE`] and within the
    /// bound.
    pub explanation: Option<String>,
}

/// The confidence in a mean.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// Half of the width of the 95 % interval, by Student's t, in the unit of the value. Infinite
    /// (null in JSON) with too few samples.
    pub half_width: f64,
    /// Number of independent samples: seeds.
    pub samples: usize,
}

/// A statement of the paper without a number.
#[derive(Clone, Debug, Serialize)]
pub struct Claim {
    /// The statement.
    pub claim: String,
    /// Whether it holds in the model; of a random load, in every try, or with the whole interval
    /// of what it compares.
    pub holds: bool,
    /// Number of independent tries, such as runs with different seeds, if it says that something
    /// happens always or never. Packets of one run depend on each other, so they are no tries.
    pub tries: Option<u64>,
    /// The number that it judges, if an explanation bounds it.
    pub measured: Option<f64>,
    /// Why it is known not to hold.
    pub explanation: Option<String>,
}

/// The parameters that a run depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sensitivity {
    /// A short description of the run.
    pub of: String,
    /// Parameters without effect, doubled, halved or changed otherwise.
    pub without_effect: Vec<String>,
    /// Parameters with an effect.
    pub with_effect: Vec<String>,
    /// Those of them that the paper and standards leave open: chosen or calibrated.
    pub rests_on: Vec<String>,
    /// Parameters without another valid value, and shapes of topologies.
    pub not_tried: Vec<String>,
}

/// A figure: curves over one axis.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// Its title; for a figure of the paper, with its number.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// Its curves.
    pub series: Vec<Series>,
}

/// An axis of a figure.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Axis {
    /// The quantity.
    pub label: &'static str,
    /// Its unit; empty for counts and ratios.
    pub unit: &'static str,
    /// Whether equal distances are equal ratios.
    pub logarithmic: bool,
}

/// A curve of a figure.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    /// Its name, such as a system or a setting.
    pub name: String,
    /// The origin of its points.
    pub origin: Origin,
    /// Its points, as (x, y), in the order of the line. Those of a random load are means.
    pub points: Vec<(f64, f64)>,
    /// For each point, the half-width of the 95 % interval of y; empty if no random draw decides
    /// the points.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub half_widths: Vec<f64>,
}

/// The origin of a curve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The model.
    Model,
    /// The paper.
    #[default]
    Published,
    /// The paper, with a constant of the model fitted to it.
    Calibrated,
    /// The paper, with a parameter of the model that decides it alone.
    Input,
    /// A formula of the paper.
    Formula,
    /// A program on a real device.
    Measured,
}

/// The report of an experiment.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Its name for the command line.
    pub id: &'static str,
    /// A short description.
    pub title: &'static str,
    /// Its rows in docs/feature-rows.md.
    pub rows: &'static str,
    /// Values in the order of the paper.
    pub values: Vec<Value>,
    /// Statements in the order of the paper.
    pub claims: Vec<Claim>,
    /// Figures in the order of the paper.
    pub figures: Vec<Figure>,
    /// The parameters that the runs depend on.
    pub sensitivity: Vec<Sensitivity>,
    /// Remarks, such as the second reading of a contradiction.
    pub notes: Vec<String>,
    /// What the paper publishes.
    #[serde(skip)]
    pub published: Published,
}

impl Experiment {
    /// Runs it, and adds the published curves and remarks.
    ///
    /// # Errors
    /// A sentence, if it cannot run, or does not measure what is published.
    pub fn run(&self) -> Result<Report, String> {
        let mut report = Report::new(self.id, self.title, self.rows);
        report.published = Published::read(self.published, self.id)?;
        (self.run)(&mut report)?;
        report.add_published()?;
        Ok(report)
    }
}

impl Report {
    /// An empty report.
    pub fn new(id: &'static str, title: &'static str, rows: &'static str) -> Report {
        Report { id, title, rows, ..Report::default() }
    }

    /// Adds a measured value, beside the published one of the same name and unit. Without a
    /// published one it is a prediction.
    pub fn value(&mut self, what: impl Into<String>, unit: &'static str, model: f64) -> &mut Value {
        self.add(what.into(), unit, model, None)
    }

    /// Adds a value of a random load, like [`Report::value`]: the mean of its draws, one from each
    /// of several independent seeds.
    pub fn drawn(
        &mut self,
        what: impl Into<String>,
        unit: &'static str,
        draws: &[f64],
    ) -> &mut Value {
        self.estimated(what, unit, over_seeds(draws), draws.len())
    }

    /// Adds a value of a random load, like [`Report::value`], with the confidence from this number
    /// of samples.
    pub fn estimated(
        &mut self,
        what: impl Into<String>,
        unit: &'static str,
        found: Estimate,
        samples: usize,
    ) -> &mut Value {
        let interval = Interval { half_width: found.half_width, samples };
        self.add(what.into(), unit, found.mean, Some(interval))
    }

    fn add(
        &mut self,
        what: String,
        unit: &'static str,
        model: f64,
        interval: Option<Interval>,
    ) -> &mut Value {
        let within_percent = EXPLAINED_ABOVE;
        let mut value = Value { what, unit, model, interval, within_percent, ..Value::default() };
        if let Some(found) = self.published.value(&value.what, unit) {
            value.role = found.role;
            value.section = Some(found.section.as_ref().unwrap_or(&self.published.section).clone());
            value.compare(found.value);
            if let (Some(within), Some(why)) = (found.within, &found.why) {
                value.explain_within(within, self.published.reasons[why].as_str());
            }
        }
        self.values.push(value);
        self.values.last_mut().expect("one was just added")
    }

    /// Adds a claim.
    pub fn claim(&mut self, claim: impl Into<String>, holds: bool) {
        let claim = claim.into();
        self.claims.push(Claim { claim, holds, tries: None, measured: None, explanation: None });
    }

    /// Adds a claim that may be known not to hold, with the number that it judges.
    pub fn claim_of(&mut self, claim: impl Into<String>, of: f64, holds: bool) -> &mut Claim {
        let (claim, measured) = (claim.into(), Some(of));
        let explanation = self.published.why_fails(&claim, of).map(str::to_owned);
        self.claims.push(Claim { claim, holds, tries: None, measured, explanation });
        self.claims.last_mut().expect("one was just added")
    }

    /// Adds a figure without curves.
    pub fn figure(&mut self, title: impl Into<String>, x: Axis, y: Axis) -> &mut Figure {
        self.figures.push(Figure { title: title.into(), x, y, series: Vec::new() });
        self.figures.last_mut().expect("one was just added")
    }

    /// Adds a note.
    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Adds the parameters of `config` with and without an effect on `run`; `of` describes it.
    ///
    /// # Errors
    /// The error of the unchanged run.
    pub fn vary<C: Parameters, T: PartialEq>(
        &mut self,
        of: &str,
        config: &C,
        run: impl Fn(&C) -> Result<T, String>,
    ) -> Result<(), String> {
        self.sensitivity.push(sensitivity(of, config, run)?);
        Ok(())
    }

    /// Adds published curves and remarks, and checks that every published value was measured.
    fn add_published(&mut self) -> Result<(), String> {
        let published = std::mem::take(&mut self.published);
        for known in &published.values {
            let measured = |value: &Value| value.what == known.name && value.unit == known.unit;
            if !self.values.iter().any(measured) {
                return Err(format!("`{}` in {} is not measured", known.name, known.unit));
            }
        }
        for known in &published.fails {
            if !self.claims.iter().any(|claim| claim.claim == known.claim) {
                return Err(format!("the claim `{}` is not checked", known.claim));
            }
        }
        for curve in &published.curves {
            let figure = self.figures.iter_mut().find(|figure| figure.title == curve.figure);
            let figure = figure.ok_or_else(|| format!("there is no figure `{}`", curve.figure))?;
            figure.series(&curve.name, curve.origin, curve.points.iter().copied());
        }
        self.notes.extend(published.notes.iter().cloned());
        self.published = published;
        Ok(())
    }

    /// Values and claims that differ from the paper without an explanation, and claims that hold
    /// though an explanation says why they do not.
    pub fn unexplained(&self) -> Vec<&str> {
        let misses = |value: &&Value| value.misses() && value.explanation.is_none();
        let values = self.values.iter().filter(misses).map(|value| value.what.as_str());
        let claims = self.claims.iter().filter(|claim| claim.holds == claim.explanation.is_some());
        values.chain(claims.map(|claim| claim.claim.as_str())).collect()
    }
}

impl Figure {
    /// Adds a curve.
    pub fn series(
        &mut self,
        name: impl Into<String>,
        origin: Origin,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) {
        let points = points.into_iter().collect();
        self.series.push(Series { name: name.into(), origin, points, half_widths: Vec::new() });
    }

    /// Adds a curve of a random load: at each x, the mean of y and its confidence.
    pub fn drawn(
        &mut self,
        name: impl Into<String>,
        points: impl IntoIterator<Item = (f64, Estimate)>,
    ) {
        let points: Vec<_> = points.into_iter().collect();
        self.series.push(Series {
            name: name.into(),
            origin: Origin::Model,
            points: points.iter().map(|(x, y)| (*x, y.mean)).collect(),
            half_widths: points.iter().map(|(_, y)| y.half_width).collect(),
        });
    }
}

impl Axis {
    /// A linear axis.
    pub const fn linear(label: &'static str, unit: &'static str) -> Axis {
        Axis { label, unit, logarithmic: false }
    }

    /// A logarithmic axis; it shows only positive values.
    pub const fn logarithmic(label: &'static str, unit: &'static str) -> Axis {
        Axis { label, unit, logarithmic: true }
    }
}

impl Claim {
    /// The greatest chance, at 95 %, that a try is an exception to a claim that held in each.
    pub fn bound(&self) -> Option<f64> {
        self.tries.filter(|_| self.holds).map(bound_of_never)
    }
}

impl Value {
    /// The mean and its confidence. Without a random draw the confidence is complete.
    pub fn estimate(&self) -> Estimate {
        let half_width = self.interval.map_or(0.0, |interval| interval.half_width);
        Estimate { mean: self.model, half_width }
    }

    /// Compares it with a value that the paper does not print, such as that of a formula.
    pub fn beside(&mut self, reference: f64) -> &mut Value {
        self.role = Role::OwnFormula;
        self.compare(reference)
    }

    fn compare(&mut self, reference: f64) -> &mut Value {
        self.published = Some(reference);
        self.error_percent = (reference != 0.0).then(|| (self.model / reference - 1.0) * 100.0);
        self
    }

    /// Marks it as the result of a formula of the paper, without the model.
    pub fn by_formula(&mut self) -> &mut Value {
        self.role = Role::Formula;
        self
    }

    /// Explains an error above [`EXPLAINED_ABOVE`] and up to `percent`, of both ends of an
    /// interval. A greater error stays unexplained.
    pub fn explain_within(&mut self, percent: f64, why: impl Into<String>) {
        self.within_percent = percent;
        let excused = self.furthest_percent().is_some_and(|error| error <= percent);
        self.explanation = (self.misses() && excused).then(|| why.into());
    }

    /// The error in percent, without sign, of the end of the interval that is further off.
    fn furthest_percent(&self) -> Option<f64> {
        let width_percent = self.estimate().half_width / self.published?.abs() * 100.0;
        self.error_percent.map(|error| error.abs() + width_percent)
    }

    /// Whether the value differs from the paper by more than [`EXPLAINED_ABOVE`], or at all from a
    /// published zero. A value with an interval does not differ only if its whole interval is that
    /// near: a wide interval needs more seeds, or an explanation.
    pub fn misses(&self) -> bool {
        match self.furthest_percent() {
            Some(error) => error.is_nan() || error > EXPLAINED_ABOVE,
            // No percentage of zero bounds anything.
            None => self.published.is_some_and(|published| self.model != published),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {} ({})", self.id, self.title, self.rows)?;
        if !self.values.is_empty() {
            writeln!(
                f,
                "  {:<44} {:>12} {:>10} {:>12} {:>9}  {:<7} role",
                "value", "model", "95 % +-", "published", "error", "unit"
            )?;
        }
        let mut told: Vec<&str> = Vec::new();
        for value in &self.values {
            let published = value.published.map_or("-".to_owned(), |value| format!("{value:.4}"));
            let error =
                value.error_percent.map_or("-".to_owned(), |error| format!("{error:+.1} %"));
            let interval = value
                .interval
                .map_or("-".to_owned(), |interval| format!("{:.4}", interval.half_width));
            let role = value.role.name();
            write!(
                f,
                "  {:<44} {:>12.4} {interval:>10} {published:>12} {error:>9}  {:<7} {role}",
                value.what, value.model, value.unit
            )?;
            match value.explanation.as_deref() {
                None => writeln!(f)?,
                Some(why) => {
                    let number = told.iter().position(|known| *known == why).unwrap_or_else(|| {
                        told.push(why);
                        told.len() - 1
                    });
                    writeln!(f, " [{}]", number + 1)?;
                }
            }
        }
        for (number, why) in told.iter().enumerate() {
            writeln!(f, "  [{}] {why}", number + 1)?;
        }
        for claim in &self.claims {
            let holds = if claim.holds { "holds:         " } else { "DOES NOT HOLD: " };
            writeln!(f, "  {holds} {}", claim.claim)?;
            if let (Some(tries), Some(bound)) = (claim.tries, claim.bound()) {
                writeln!(
                    f,
                    "                  in each of {tries} tries: an exception has p < {bound:.1e} at 95 %"
                )?;
            }
            if let Some(why) = &claim.explanation {
                writeln!(f, "                  {why}")?;
            }
        }
        self.sensitivity.iter().try_for_each(|found| write!(f, "{found}"))?;
        self.notes.iter().try_for_each(|note| writeln!(f, "  note: {note}"))
    }
}

impl fmt::Display for Sensitivity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sensitivity { of, without_effect, rests_on, not_tried, .. } = self;
        let lists = [
            ("chosen or calibrated by us, with an effect", rests_on),
            ("no effect", without_effect),
            ("not tried", not_tried),
        ];
        for (what, names) in lists.into_iter().filter(|(_, names)| !names.is_empty()) {
            writeln!(f, "  {what} on {of}: {}", names.join(", "))?;
        }
        Ok(())
    }
}
