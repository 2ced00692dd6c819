//! What a check found of one block, configuration or property, as a line or as JSON.

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value, json};

/// One thing that was checked, with its figures.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// What was checked.
    pub what: String,
    /// Name and number, in the order of the line.
    pub figures: Map<String, Value>,
}

impl Finding {
    /// A finding without figures.
    pub fn new(what: impl Into<String>) -> Finding {
        Finding { what: what.into(), figures: Map::new() }
    }

    /// Adds a figure.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Finding {
        self.figures.insert(name.to_owned(), value.into());
        self
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        for (place, (name, value)) in self.figures.iter().enumerate() {
            f.write_str(if place == 0 { ": " } else { ", " })?;
            match value.as_f64().filter(|_| value.is_f64()) {
                Some(number) => write!(f, "{number:.2} {name}")?,
                None => write!(f, "{value} {name}")?,
            }
        }
        Ok(())
    }
}

/// Prints what a check found: an object of JSON, or lines of which the last has the form of `cargo
/// test`, so that they can be added up.
pub fn report(check: &str, findings: &[Finding], as_json: bool) {
    if as_json {
        println!("{}", json!({ "check": check, "passed": findings.len(), "findings": findings }));
        return;
    }
    findings.iter().for_each(|finding| println!("{finding}"));
    println!("== hardware: {check}");
    println!("test result: ok. {} passed; 0 failed", findings.len());
}
