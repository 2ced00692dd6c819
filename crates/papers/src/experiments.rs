//! All experiments of all papers: the list, running them on several cores, and their totals.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, OnceLock};

use bellwire_model::experiment::{Experiment, Report, Role, Value};
use bellwire_model::system::System;
use serde::Serialize;

use crate::Paper;

/// A paper with the experiments that reproduce it.
pub type Modelled = (Paper, &'static [Experiment]);

/// The papers that have a model, in the order of the scoreboard: those of [`System::of_papers`].
pub static MODELLED: LazyLock<Vec<Modelled>> = LazyLock::new(|| {
    let paper = |name: &str| name.parse().expect("each system names one of the papers");
    System::of_papers().map(|(_, of)| (paper(of.name), of.experiments)).collect()
});

/// The finished experiments of a paper.
#[derive(Clone, Debug, Serialize)]
pub struct Ran {
    /// The paper.
    pub paper: Paper,
    /// Their reports, in the order of the paper.
    pub reports: Vec<Report>,
    /// Experiments without a report.
    pub failures: Vec<Failure>,
}

/// An experiment that could not be run.
#[derive(Clone, Debug, Serialize)]
pub struct Failure {
    /// Its name.
    pub id: &'static str,
    /// Its title.
    pub title: &'static str,
    /// The reason.
    pub error: String,
}

/// Runs all experiments of `papers`, `threads` at a time, and calls `on_done` for each finished
/// one. The result does not depend on the number of threads, because experiments are independent.
pub fn run_all(
    papers: &[Modelled],
    threads: NonZero<usize>,
    on_done: impl Fn(Paper, &Experiment) + Sync,
) -> Vec<Ran> {
    let mut all = Vec::new();
    for (paper, experiments) in papers {
        all.extend(experiments.iter().map(|experiment| (*paper, experiment, OnceLock::new())));
    }
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads.get().min(all.len()) {
            scope.spawn(|| {
                // Relaxed: the threads share only a counter, which guards no other data.
                let number = || next.fetch_add(1, Ordering::Relaxed);
                while let Some((paper, experiment, result)) = all.get(number()) {
                    result.get_or_init(|| experiment.run());
                    on_done(*paper, experiment);
                }
            });
        }
    });
    let mut all = all.into_iter();
    let mut ran = Vec::new();
    for (paper, experiments) in papers {
        let mut of_paper = Ran { paper: *paper, reports: Vec::new(), failures: Vec::new() };
        for (_, Experiment { id, title, .. }, result) in all.by_ref().take(experiments.len()) {
            match result.into_inner() {
                Some(Ok(report)) => of_paper.reports.push(report),
                Some(Err(error)) => of_paper.failures.push(Failure { id, title, error }),
                None => {}
            }
        }
        ran.push(of_paper);
    }
    ran
}

/// The totals of a paper's experiments.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tally {
    /// The paper.
    pub paper: Paper,
    /// Experiments that were run.
    pub experiments: usize,
    /// Experiments that could not be run.
    pub failures: usize,
    /// Values, including those that the paper does not give.
    pub values: usize,
    /// Values beside a published one that constants were fitted to.
    pub calibrated: Compared,
    /// Values beside a published one that were put in: parameters, and formulas of the paper.
    pub given: Compared,
    /// Values that the model predicts and the paper prints.
    pub predicted: Compared,
    /// Values of the model beside a formula that we evaluated.
    pub own_formula: Compared,
    /// Values that repeat others: in another unit, as a ratio, or in another reading.
    pub derived: Compared,
    /// The largest relative error of a predicted value.
    pub worst: Option<Worst>,
    /// Statements.
    pub claims: usize,
    /// Statements that hold.
    pub holding: usize,
    /// Values and statements that miss without an explanation.
    pub unexplained: usize,
}

/// Values of one kind that stand beside another, a number other than zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Compared {
    /// All of them.
    pub values: usize,
    /// Those within [`EXPLAINED_ABOVE`](bellwire_model::experiment::EXPLAINED_ABOVE) percent.
    pub within: usize,
    /// Those that miss with an explanation.
    pub explained: usize,
}

impl Compared {
    fn add(&mut self, value: &Value) {
        self.values += 1;
        self.within += usize::from(!value.misses());
        self.explained += usize::from(value.misses() && value.explanation.is_some());
    }
}

/// The predicted value furthest from the paper's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Worst {
    /// The experiment's name.
    pub experiment: &'static str,
    /// The value's name.
    pub what: String,
    /// Its relative error in percent.
    pub error_percent: f64,
}

impl Ran {
    /// Counts values and statements.
    pub fn tally(&self) -> Tally {
        let mut tally = Tally {
            paper: self.paper,
            experiments: self.reports.len(),
            failures: self.failures.len(),
            values: 0,
            calibrated: Compared::default(),
            given: Compared::default(),
            predicted: Compared::default(),
            own_formula: Compared::default(),
            derived: Compared::default(),
            worst: None,
            claims: 0,
            holding: 0,
            unexplained: 0,
        };
        for report in &self.reports {
            tally.add(report);
        }
        tally
    }
}

impl Tally {
    fn add(&mut self, report: &Report) {
        self.values += report.values.len();
        for value in &report.values {
            let Some(error) = value.error_percent else { continue };
            let kind = match value.role {
                Role::Calibrated => &mut self.calibrated,
                Role::Input | Role::Formula => &mut self.given,
                Role::Predicted => &mut self.predicted,
                Role::OwnFormula => &mut self.own_formula,
                Role::Derived => &mut self.derived,
            };
            kind.add(value);
            let worst = self.worst.as_ref().map_or(0.0, |worst| worst.error_percent.abs());
            if value.role == Role::Predicted && error.abs() > worst {
                self.worst = Some(Worst {
                    experiment: report.id,
                    what: value.what.clone(),
                    error_percent: error,
                });
            }
        }
        self.claims += report.claims.len();
        self.holding += report.claims.iter().filter(|claim| claim.holds).count();
        self.unexplained += report.unexplained().len();
    }

    /// Whether nothing failed and every miss has an explanation.
    pub fn is_sound(&self) -> bool {
        self.failures == 0 && self.unexplained == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: Experiment = Experiment {
        id: "good",
        title: "values",
        rows: "C-01",
        published: r#"
            [good]
            values = [
                { name = "near", unit = "ns", value = 100, role = "calibrated" },
                { name = "given", unit = "ns", value = 100, role = "input" },
                { name = "far", unit = "ns", value = 100, within = 50, why = "so" },
                { name = "close", unit = "ns", value = 100 },
                { name = "close", unit = "us", value = 0.1, role = "derived" },
            ]
            [good.reasons]
            so = "it is so"
        "#,
        run: |report| {
            report.value("near", "ns", 101.0);
            report.value("given", "ns", 100.0);
            report.value("far", "ns", 150.0);
            report.value("close", "ns", 101.0);
            report.value("close", "us", 0.101);
            report.value("ours", "ns", 170.0).beside(100.0).explain_within(70.0, "it is so");
            report.value("alone", "ns", 1.0);
            report.claim("it holds", true);
            Ok(())
        },
    };

    const STRANGE: Experiment = Experiment {
        id: "strange",
        title: "misses without a word",
        rows: "C-01",
        published: "",
        run: |report| {
            report.value("far", "ns", 20.0).beside(100.0).explain_within(79.0, "it is nearly so");
            report.claim("it does not hold", false);
            Ok(())
        },
    };

    const BROKEN: Experiment = Experiment {
        id: "broken",
        title: "",
        rows: "",
        published: "",
        run: |_| Err("packets were lost".to_owned()),
    };

    const TRIAL: &[Modelled] = &[(Paper::DamqPd, &[GOOD, BROKEN]), (Paper::Myvia, &[STRANGE])];

    /// Values are counted apart by their kind, and by their error. The worst predicted one is
    /// named, not a worse one beside a formula of ours. A miss without an explanation, or a
    /// failure, is not sound.
    #[test]
    fn values_are_counted() {
        let ran = run_all(TRIAL, NonZero::new(2).unwrap(), |_, _| {});
        let (first, second) = (ran[0].tally(), ran[1].tally());
        assert_eq!((first.experiments, first.failures), (1, 1));
        let of = |values, within, explained| Compared { values, within, explained };
        assert_eq!((first.values, first.unexplained), (7, 0));
        assert_eq!((first.calibrated, first.given), (of(1, 1, 0), of(1, 1, 0)));
        assert_eq!((first.predicted, first.own_formula), (of(2, 1, 1), of(1, 0, 1)));
        assert_eq!(first.derived, of(1, 1, 0));
        assert_eq!((first.claims, first.holding), (1, 1));
        assert_eq!(first.worst.clone().unwrap().what, "far");
        assert!(!first.is_sound(), "one failed");
        assert_eq!((second.unexplained, second.holding), (2, 0));
        assert!(!second.is_sound(), "one misses without a word");
    }

    /// The result does not depend on the number of threads, and each experiment is reported once.
    #[test]
    fn threads_change_nothing() {
        let told = AtomicUsize::new(0);
        let text = |threads| {
            let ran = run_all(TRIAL, NonZero::new(threads).unwrap(), |_, _| {
                told.fetch_add(1, Ordering::Relaxed);
            });
            serde_json::to_string(&ran).unwrap()
        };
        assert_eq!(text(1), text(4));
        assert_eq!(told.into_inner(), 6);
    }
}
