//! `bellwire model sensitivity`: what each parameter moves, beside what was predicted.

use crate::command::{Outcome, show};
use anyhow::{Result, anyhow};
use bellwire_model::experiment::Sensitivity;
use bellwire_model::perturbed::Perturbed;
use bellwire_model::system::System;
use serde::Serialize;
use std::fmt;

#[derive(clap::Args)]
pub struct Arguments {
    /// The model
    #[arg(value_parser = System::named)]
    model: &'static System,
    /// One JSON object instead of lines
    #[arg(long)]
    json: bool,
}

/// What is shown: the changes with their expectations, and the lists of one operation.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    perturbed: Perturbed,
    /// None for a model of no paper.
    #[serde(flatten)]
    sensitivity: Option<Sensitivity>,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.perturbed.fmt(f)?;
        self.sensitivity.iter().try_for_each(|lists| write!(f, "\n{lists}"))
    }
}

impl Shown {
    /// Runs a model with its table of expectations, or another one.
    fn of(model: &System, file: Option<&str>) -> Result<Shown, String> {
        let System { perturbations, paper, .. } = model;
        let perturbed = (perturbations.run)(file.unwrap_or(perturbations.file))?;
        let sensitivity = paper.map(|paper| (paper.sensitivity)()).transpose()?;
        Ok(Shown { perturbed, sensitivity })
    }
}

/// Runs the command.
pub fn run(Arguments { model, json }: &Arguments) -> Result<Outcome> {
    let shown = Shown::of(model, None).map_err(|error| anyhow!("{}: {error}", model.name))?;
    show(&shown, *json)?;
    Ok(judge(model.name, &shown))
}

/// Whether all predictions are met; tells how many are not.
fn judge(model: &str, shown: &Shown) -> Outcome {
    let unmet = shown.perturbed.contradictions().len();
    if unmet > 0 {
        eprintln!("bellwire: {model}: {unmet} predictions are not met");
    }
    Outcome::done_if(unmet == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Canary: a prediction that is not met is marked in the lines and in JSON, and fails.
    #[test]
    fn a_prediction_that_is_not_met_fails() {
        let network = System::named("network").unwrap();
        let file = network.perturbations.file;
        let sound = r#"double = { "link: one packet of 8 beats" = "x0.5" }"#;
        assert!(file.contains(sound));
        let shown = Shown::of(network, Some(&file.replace(sound, &sound.replace("0.5", "3"))));
        let shown = shown.unwrap();
        assert_eq!(judge("network", &shown), Outcome::Failed);
        let lines = shown.to_string();
        let marked: Vec<&str> = lines.lines().filter(|line| line.starts_with(" !")).collect();
        assert_eq!(marked.len(), 1, "{lines}");
        assert!(marked[0].contains("link: one packet") && marked[0].ends_with("expected: x3"));
        let json = serde_json::to_value(&shown).unwrap();
        let figures = json["changes"].as_array().unwrap().iter();
        let figures = figures.flat_map(|change| change["figures"].as_array().unwrap());
        let unmet: Vec<_> = figures.filter(|figure| figure["holds"] == false).collect();
        assert_eq!(unmet.len(), 1);
        assert_eq!(unmet[0]["expected"], "x3");
    }
}
