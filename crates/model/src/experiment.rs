//! An experiment of a paper and its report: values beside those published, each marked as
//! calibrated or predicted, claims that hold or fail, and figures.

use std::fmt;

use serde::Serialize;

/// Relative error, in percent, above which a value needs an explanation.
pub const EXPLAINED_ABOVE: f64 = 5.0;

/// An experiment: its name, its title, and its function.
pub struct Experiment {
    /// Name for the command line.
    pub id: &'static str,
    /// A short description.
    pub title: &'static str,
    /// Its rows in docs/feature-rows.md.
    pub rows: &'static str,
    /// Runs it and fills the report; a sentence if it cannot run.
    pub run: fn(&mut Report) -> Result<(), String>,
}

/// The origin of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// A constant was fitted to it.
    Calibrated,
    /// It follows from the mechanism.
    Predicted,
    /// It follows from a formula of the paper, without the model.
    Formula,
}

/// A value of the model beside that of the paper.
#[derive(Clone, Debug, Serialize)]
pub struct Value {
    /// Its name.
    pub what: String,
    /// Its unit.
    pub unit: &'static str,
    /// Its origin.
    pub role: Role,
    /// The value of the model or formula.
    pub model: f64,
    /// The value of the paper; nothing if the paper gives none.
    pub published: Option<f64>,
    /// Relative error in percent.
    pub error_percent: Option<f64>,
    /// Why the two values differ.
    pub explanation: Option<String>,
}

/// A statement of the paper without a number.
#[derive(Clone, Debug, Serialize)]
pub struct Claim {
    /// The statement.
    pub claim: String,
    /// Whether it holds in the model.
    pub holds: bool,
    /// Why it does not hold, or a reservation.
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
    /// Its points, as (x, y), in the order of the line.
    pub points: Vec<(f64, f64)>,
}

/// The origin of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The model.
    Model,
    /// The paper.
    Published,
    /// The paper, with a constant of the model fitted to it.
    Calibrated,
    /// A formula of the paper.
    Formula,
    /// A program on a real device.
    Measured,
}

/// The report of an experiment.
#[derive(Clone, Debug, Serialize)]
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
}

impl Experiment {
    /// Runs it.
    ///
    /// # Errors
    /// A sentence, if it cannot run.
    pub fn run(&self) -> Result<Report, String> {
        let mut report = Report::new(self.id, self.title, self.rows);
        (self.run)(&mut report)?;
        Ok(report)
    }
}

impl Report {
    /// An empty report.
    pub fn new(id: &'static str, title: &'static str, rows: &'static str) -> Report {
        Report {
            id,
            title,
            rows,
            values: Vec::new(),
            claims: Vec::new(),
            figures: Vec::new(),
            sensitivity: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Adds a value.
    pub fn value(
        &mut self,
        what: impl Into<String>,
        unit: &'static str,
        role: Role,
        model: f64,
        published: Option<f64>,
    ) -> &mut Value {
        let error_percent =
            published.filter(|value| *value != 0.0).map(|value| (model / value - 1.0) * 100.0);
        self.values.push(Value {
            what: what.into(),
            unit,
            role,
            model,
            published,
            error_percent,
            explanation: None,
        });
        self.values.last_mut().expect("one was just added")
    }

    /// Adds a claim.
    pub fn claim(&mut self, claim: impl Into<String>, holds: bool) -> &mut Claim {
        self.claims.push(Claim { claim: claim.into(), holds, explanation: None });
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

    /// Values and claims that differ from the paper without an explanation.
    pub fn unexplained(&self) -> Vec<&str> {
        let values =
            self.values.iter().filter(|value| value.misses() && value.explanation.is_none());
        let claims = self.claims.iter().filter(|claim| !claim.holds && claim.explanation.is_none());
        values
            .map(|value| value.what.as_str())
            .chain(claims.map(|claim| claim.claim.as_str()))
            .collect()
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
        self.series.push(Series { name: name.into(), origin, points });
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

impl Value {
    /// Adds an explanation if the value differs by more than [`EXPLAINED_ABOVE`].
    pub fn explain(&mut self, why: impl Into<String>) {
        if self.misses() {
            self.explanation = Some(why.into());
        }
    }

    /// Whether the value differs from the paper by more than [`EXPLAINED_ABOVE`].
    pub fn misses(&self) -> bool {
        self.error_percent.is_some_and(|error| error.abs() > EXPLAINED_ABOVE)
    }
}

impl Claim {
    /// Adds an explanation why the claim does not hold.
    pub fn explain(&mut self, why: impl Into<String>) {
        if !self.holds {
            self.explanation = Some(why.into());
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {} ({})", self.id, self.title, self.rows)?;
        if !self.values.is_empty() {
            writeln!(
                f,
                "  {:<44} {:>12} {:>12} {:>9}  {:<7} role",
                "value", "model", "published", "error", "unit"
            )?;
        }
        let mut told: Vec<&str> = Vec::new();
        for value in &self.values {
            let published = value.published.map_or("-".to_owned(), |value| format!("{value:.4}"));
            let error =
                value.error_percent.map_or("-".to_owned(), |error| format!("{error:+.1} %"));
            let role = match value.role {
                Role::Calibrated => "calibrated",
                Role::Predicted => "predicted",
                Role::Formula => "formula",
            };
            write!(
                f,
                "  {:<44} {:>12.4} {published:>12} {error:>9}  {:<7} {role}",
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
            writeln!(
                f,
                "  {} {}",
                if claim.holds { "holds:         " } else { "DOES NOT HOLD: " },
                claim.claim
            )?;
            if let Some(why) = &claim.explanation {
                writeln!(f, "                  {why}")?;
            }
        }
        for Sensitivity { of, without_effect, not_tried, .. } in &self.sensitivity {
            writeln!(f, "  no effect on {of}: {}", without_effect.join(", "))?;
            if !not_tried.is_empty() {
                writeln!(f, "  not tried: {}", not_tried.join(", "))?;
            }
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "  note: {note}"))
    }
}
