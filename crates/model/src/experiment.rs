//! An experiment of a paper, and what it says: values beside those published, each marked as calibrated or predicted, claims that hold or do
//! not, and figures.

use std::fmt;

use serde::Serialize;

/// Relative error, in percent, above which a value needs an explanation.
pub const EXPLAINED_ABOVE: f64 = 5.0;

/// An experiment: its name, what it is, and how to run it.
pub struct Experiment {
    /// Name, as the command takes it.
    pub id: &'static str,
    /// What it is.
    pub title: &'static str,
    /// The rows that it is about.
    pub rows: &'static str,
    /// Runs it and fills the report; a sentence if it cannot be run.
    pub run: fn(&mut Report) -> Result<(), String>,
}

/// How a value came about.
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
    /// What it is.
    pub what: String,
    /// Its unit.
    pub unit: &'static str,
    /// How it came about.
    pub role: Role,
    /// What the model (or formula) gives.
    pub model: f64,
    /// What the paper gives; nothing where it gives no number.
    pub published: Option<f64>,
    /// Relative error in percent.
    pub error_percent: Option<f64>,
    /// Why the two differ.
    pub explanation: Option<String>,
}

/// A statement of the paper without a number.
#[derive(Clone, Debug, Serialize)]
pub struct Claim {
    /// What it says.
    pub claim: String,
    /// Whether the model does that.
    pub holds: bool,
    /// Why not, or with which reservation.
    pub explanation: Option<String>,
}

/// What a run depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sensitivity {
    /// What the run was, in a few words.
    pub of: String,
    /// Parameters that changed nothing, whether doubled or halved, or chosen otherwise.
    pub without_effect: Vec<String>,
    /// Parameters that changed something.
    pub with_effect: Vec<String>,
    /// Parameters for which no other value makes a machine, and shapes, which have no neighbours.
    pub not_tried: Vec<String>,
}

/// A figure: curves over one axis.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// What it shows; of a figure of the paper, its number too.
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
    /// What is along it.
    pub label: &'static str,
    /// The unit of its numbers; empty for counts and ratios.
    pub unit: &'static str,
    /// Whether equal distances are equal ratios.
    pub logarithmic: bool,
}

/// A curve of a figure.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    /// What it is of, such as a system or a setting.
    pub name: String,
    /// Where its points come from.
    pub origin: Origin,
    /// Its points, as (x, y), in the order in which they are joined.
    pub points: Vec<(f64, f64)>,
}

/// Where the points of a curve come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The model.
    Model,
    /// The paper.
    Published,
    /// The paper, and a constant of the model was fitted to it.
    Calibrated,
    /// A formula of the paper.
    Formula,
    /// A program on a real device.
    Measured,
}

/// An experiment that was run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Its name, as the command takes it.
    pub id: &'static str,
    /// What it is.
    pub title: &'static str,
    /// The rows that it is about.
    pub rows: &'static str,
    /// Values in the order of the paper.
    pub values: Vec<Value>,
    /// Statements in the order of the paper.
    pub claims: Vec<Claim>,
    /// Figures in the order of the paper.
    pub figures: Vec<Figure>,
    /// What the runs depend on.
    pub sensitivity: Vec<Sensitivity>,
    /// What one should know, such as the second reading of a contradiction.
    pub notes: Vec<String>,
}

impl Experiment {
    /// Runs it.
    ///
    /// # Errors
    /// A sentence, if it cannot be run.
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

    /// Values and claims that miss what was published and say nothing of why.
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
    /// An axis on which equal distances are equal differences.
    pub const fn linear(label: &'static str, unit: &'static str) -> Axis {
        Axis { label, unit, logarithmic: false }
    }

    /// An axis on which equal distances are equal ratios; what is not above nothing has no place on it.
    pub const fn logarithmic(label: &'static str, unit: &'static str) -> Axis {
        Axis { label, unit, logarithmic: true }
    }
}

impl Value {
    /// Says why the value differs, if it does by more than [`EXPLAINED_ABOVE`].
    pub fn explain(&mut self, why: impl Into<String>) {
        if self.misses() {
            self.explanation = Some(why.into());
        }
    }

    /// Whether the model is further from the paper than [`EXPLAINED_ABOVE`].
    pub fn misses(&self) -> bool {
        self.error_percent.is_some_and(|error| error.abs() > EXPLAINED_ABOVE)
    }
}

impl Claim {
    /// Says why the claim does not hold.
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
