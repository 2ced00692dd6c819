//! What an experiment says: values beside those published, each marked as calibrated or predicted, and claims that hold or do not.

use std::fmt;

use serde::Serialize;

use crate::chpp::Config;
use crate::chpp::sensitivity::{Sensitivity, sensitivity};

/// Relative error, in percent, above which a value needs an explanation.
pub const EXPLAINED_ABOVE: f64 = 5.0;

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
    /// What the runs depend on.
    pub sensitivity: Vec<Sensitivity>,
    /// What one should know, such as the second reading of a contradiction.
    pub notes: Vec<String>,
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

    /// Finds the parameters that had no effect on `run`, of which `of` says what it is.
    ///
    /// # Errors
    /// What the run says, if it fails.
    pub fn without_effect<T: PartialEq>(
        &mut self,
        of: &str,
        config: &Config,
        run: impl Fn(&Config) -> Result<T, String>,
    ) -> Result<(), String> {
        self.sensitivity.push(sensitivity(of, config, run)?);
        Ok(())
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
