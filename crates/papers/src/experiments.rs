//! All experiments of all papers: the list, running them on several cores, and their totals.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, OnceLock};

use bellwire_model::experiment::{Experiment, Report, Role};
use bellwire_model::system::SYSTEMS;
use serde::Serialize;

use crate::Paper;

/// A paper with the experiments that reproduce it.
pub type Modelled = (Paper, &'static [Experiment]);

/// The papers that have a model, in the order of the scoreboard: one for each of [`SYSTEMS`].
pub static MODELLED: LazyLock<Vec<Modelled>> = LazyLock::new(|| {
    let paper = |name: &str| name.parse().expect("each system names one of the papers");
    SYSTEMS.iter().map(|system| (paper(system.paper), system.experiments)).collect()
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
    /// Values that the paper gives too, as a number other than zero.
    pub compared: usize,
    /// Calibrated ones among these: constants were fitted to them.
    pub calibrated: usize,
    /// Compared values within [`EXPLAINED_ABOVE`](bellwire_model::experiment::EXPLAINED_ABOVE)
    /// percent.
    pub within: usize,
    /// Compared values that miss with an explanation.
    pub explained: usize,
    /// The largest relative error.
    pub worst: Option<Worst>,
    /// Statements.
    pub claims: usize,
    /// Statements that hold.
    pub holding: usize,
    /// Values and statements that miss without an explanation.
    pub unexplained: usize,
}

/// The value furthest from the paper's.
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
        let Ran { paper, reports, failures } = self;
        let values = || reports.iter().flat_map(|report| &report.values);
        let compared = || values().filter(|value| value.error_percent.is_some());
        let claims = || reports.iter().flat_map(|report| &report.claims);
        Tally {
            paper: *paper,
            experiments: reports.len(),
            failures: failures.len(),
            values: values().count(),
            compared: compared().count(),
            calibrated: compared().filter(|value| value.role == Role::Calibrated).count(),
            within: compared().filter(|value| !value.misses()).count(),
            explained: compared()
                .filter(|value| value.misses() && value.explanation.is_some())
                .count(),
            worst: self.worst(),
            claims: claims().count(),
            holding: claims().filter(|claim| claim.holds).count(),
            unexplained: reports.iter().map(|report| report.unexplained().len()).sum(),
        }
    }

    /// The first of the values with the largest error other than zero.
    fn worst(&self) -> Option<Worst> {
        let mut worst: Option<Worst> = None;
        for Report { id: experiment, values, .. } in &self.reports {
            for value in values {
                let Some(error_percent) = value.error_percent else { continue };
                let most = worst.as_ref().map_or(0.0, |worst| worst.error_percent.abs());
                if error_percent.abs() > most {
                    worst = Some(Worst { experiment, what: value.what.clone(), error_percent });
                }
            }
        }
        worst
    }
}

impl Tally {
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
            values = [{ name = "near", unit = "ns", value = 100, role = "calibrated" }]
        "#,
        run: |report| {
            report.value("near", "ns", 101.0);
            report.value("far", "ns", 150.0).beside(100.0).explain_within(50.0, "it is so");
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

    /// Values are counted by their error, and the worst one is named. A miss without an
    /// explanation, or a failure, is not sound.
    #[test]
    fn values_are_counted() {
        let ran = run_all(TRIAL, NonZero::new(2).unwrap(), |_, _| {});
        let (first, second) = (ran[0].tally(), ran[1].tally());
        assert_eq!((first.experiments, first.failures), (1, 1));
        assert_eq!((first.values, first.compared, first.calibrated), (3, 2, 1));
        assert_eq!((first.within, first.explained, first.unexplained), (1, 1, 0));
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
