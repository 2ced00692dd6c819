//! The result of a point.

use bellwire_model::trial::Measured;
use serde::{Deserialize, Serialize};

/// The result of a point, as a line of a journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The number of the point.
    pub point: u64,
    /// The figures of its load; none if it failed. A figure without a value is nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Option<f64>>,
    /// The trace hash, as 16 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_hash: Option<String>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Row {
    /// The row of a point that ran, or failed.
    pub fn new(point: u64, outcome: Result<Measured, String>) -> Row {
        match outcome {
            Ok(Measured { figures, trace_hash }) => Row {
                point,
                figures: figures.into_iter().map(|of| of.is_finite().then_some(of)).collect(),
                trace_hash: Some(format!("{trace_hash:016x}")),
                error: None,
            },
            Err(why) => Row { point, figures: Vec::new(), trace_hash: None, error: Some(why) },
        }
    }
}
