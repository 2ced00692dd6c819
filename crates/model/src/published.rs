//! What a paper publishes of an experiment, read from the `published.toml` of its model.
//!
//! A file has a table for each experiment, by the name of the experiment:
//!
//! ```toml
//! [table3]
//! section = "5.3, Table 3"              # of all values and curves that name no other
//! values = [
//!     { name = "PUT, 1 B", unit = "us", value = 1.762 },
//!     { name = "NAP, 1 B", unit = "us", value = 1.242, role = "calibrated" },  # else: predicted
//!     { name = "GET, 1 B", unit = "us", value = 1.838, within = 6, why = "trip" },
//! ]
//! curves = [{ figure = "Table 3", name = "PUT", points = [[1, 1.762]] }]
//! fails = [{ claim = "GET is as fast as PUT", between = [1, 1.1], why = "trip" }]
//! notes = ["A remark."]
//!
//! [table3.reasons]
//! trip = "A GET's way to the far send engine takes 23 cycles here."
//! ```
//!
//! A value belongs to the measured one of the same name and unit. It may differ by
//! [`EXPLAINED_ABOVE`](crate::experiment::EXPLAINED_ABOVE) percent, or by `within` percent for the
//! reason `why`. A claim in `fails` is known not to hold, for a reason that explains it while the
//! number that it judges lies `between` two bounds.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::experiment::{Origin, Role};
use crate::form::fault;

/// What a paper publishes of an experiment.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Published {
    /// The section, table or figure of the paper, unless a value or curve has its own.
    pub section: String,
    /// Values, each beside a measured one.
    pub values: Vec<PublishedValue>,
    /// Curves, each in a figure of the report.
    pub curves: Vec<PublishedCurve>,
    /// Claims of the paper that do not hold in the model.
    pub fails: Vec<FailingClaim>,
    /// Reasons, by the names that values and claims give.
    pub reasons: BTreeMap<String, String>,
    /// Remarks on the paper and on its reading.
    pub notes: Vec<String>,
}

/// A published value.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedValue {
    /// The name of the measured value.
    pub name: String,
    /// The unit of both.
    pub unit: String,
    /// The number.
    pub value: f64,
    /// Whether a constant was fitted to it, a parameter decides it, a formula gives it, or it
    /// repeats others.
    #[serde(default)]
    pub role: Role,
    /// Where the paper has it.
    pub section: Option<String>,
    /// The greatest error in percent that the reason excuses.
    pub within: Option<f64>,
    /// The name of the reason.
    pub why: Option<String>,
}

/// A published curve.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedCurve {
    /// The title of its figure.
    pub figure: String,
    /// Its name.
    pub name: String,
    /// Published, or calibrated if a constant was fitted to it.
    #[serde(default)]
    pub origin: Origin,
    /// Its points.
    pub points: Vec<(f64, f64)>,
}

/// A claim that is known not to hold.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailingClaim {
    /// The claim.
    pub claim: String,
    /// The least and the greatest number that the reason excuses, of those that the claim judges.
    pub between: (f64, f64),
    /// The name of the reason.
    pub why: String,
}

impl Published {
    /// Reads the table of an experiment. Nothing is published of one without a table.
    ///
    /// # Errors
    /// A sentence, if the text is not of this form, a name is there twice, or a bound has no
    /// reason.
    pub fn read(text: &str, experiment: &str) -> Result<Published, String> {
        let mut all: BTreeMap<String, Published> =
            toml::from_str(text).map_err(|error| fault(&error))?;
        let published = all.remove(experiment).unwrap_or_default();
        for value in &published.values {
            let PublishedValue { name, unit, within, why, .. } = value;
            if !published.value(name, unit).is_some_and(|first| std::ptr::eq(first, value)) {
                return Err(format!("{experiment} has `{name}` in {unit} twice"));
            }
            if within.is_some() != why.is_some() {
                return Err(format!("`{name}` in {experiment} has a bound or a reason alone"));
            }
        }
        let of_values = published.values.iter().filter_map(|value| value.why.as_ref());
        let mut reasons = of_values.chain(published.fails.iter().map(|claim| &claim.why));
        match reasons.find(|why| !published.reasons.contains_key(*why)) {
            Some(why) => Err(format!("{experiment} gives the reason `{why}`, which has no text")),
            None => Ok(published),
        }
    }

    /// The published value beside a measured one.
    pub fn value(&self, name: &str, unit: &str) -> Option<&PublishedValue> {
        self.values.iter().find(|value| value.name == name && value.unit == unit)
    }

    /// The points of a published curve; none if there is no such curve.
    pub fn curve(&self, name: &str) -> &[(f64, f64)] {
        let found = self.curves.iter().find(|curve| curve.name == name);
        found.map_or(&[], |curve| &curve.points)
    }

    /// Why a claim is known not to hold while it judges `measured`.
    pub fn why_fails(&self, claim: &str, measured: f64) -> Option<&str> {
        let excuses = |known: &&FailingClaim| {
            known.claim == claim && (known.between.0..=known.between.1).contains(&measured)
        };
        let found = self.fails.iter().find(excuses)?;
        self.reasons.get(&found.why).map(String::as_str)
    }
}
