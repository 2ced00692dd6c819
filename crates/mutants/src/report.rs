//! How many mutants are caught, and why the others are not.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::campaign::part_of;
use crate::ledger::{Ledger, Verdict};
use crate::list::{self, name_of};
use crate::scope::Scope;
use crate::{LEDGERS, PACKAGES, ledger_path};

/// What each package must reach, in percent.
const GOAL: f64 = 90.0;
/// How many of a package's mutants a ledger may lack, in percent: those of the latest changes.
const MAY_LACK: f64 = 2.0;

/// Why mutants of a package survive: each reason with its mutants.
#[derive(Deserialize, Default)]
struct Reasons {
    #[serde(default)]
    reason: Vec<Reason>,
}

#[derive(Deserialize)]
struct Reason {
    kind: Kind,
    /// A sentence that a reader can check.
    why: String,
    mutants: Vec<String>,
}

#[derive(Clone, Copy, Deserialize, Debug, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    /// Nothing that anyone can see differs.
    Equivalent,
    /// Only words for a reader differ.
    LogText,
    /// Only time or memory differs.
    SpeedOnly,
    /// A test would need what a test cannot have. It counts as missed.
    Untested,
}

impl Reasons {
    /// Those of a package; none if it has no file of them.
    fn read(top: &Path, package: &str) -> Result<Self> {
        let path = top.join(LEDGERS).join(format!("{package}.reasons.toml"));
        if !path.exists() {
            return Ok(Self::default());
        }
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        toml::from_str(&text).with_context(|| path.display().to_string())
    }

    /// The kind of each mutant's reason; `faults` gets what is wrong with the reasons.
    fn by_mutant(&self, faults: &mut Vec<String>) -> BTreeMap<&str, Kind> {
        let mut kinds = BTreeMap::new();
        for reason in &self.reason {
            if reason.why.trim().is_empty() {
                faults.push(format!("a {:?} reason says nothing", reason.kind));
            }
            for mutant in &reason.mutants {
                if kinds.insert(mutant.as_str(), reason.kind).is_some() {
                    faults.push(format!("two reasons for {mutant}"));
                }
            }
        }
        kinds
    }
}

#[derive(Serialize, Default)]
struct Line {
    package: &'static str,
    mutants: usize,
    caught: usize,
    /// Of those that are neither unviable nor excused.
    percent: f64,
    /// Those that the ledger lacks. They count as not caught.
    unknown: usize,
    missed: usize,
    unreached: usize,
    hangs: usize,
    excused: usize,
    unviable: usize,
}

/// What became of the mutants of each package, and what must not be so.
pub struct Report {
    lines: Vec<Line>,
    faults: Vec<String>,
}

impl Report {
    /// Compares all ledgers, whole or not, with the mutants that the sources have.
    ///
    /// # Errors
    /// A ledger, the reasons or the scope cannot be read, or cargo-mutants fails.
    pub fn read(top: &Path) -> Result<Self> {
        let mut mutants = BTreeMap::<_, Vec<_>>::new();
        for mutant in list::list(top, &PACKAGES.map(String::from), &Scope::read(top)?)? {
            mutants.entry(mutant.package).or_default().push((mutant.file, mutant.key));
        }
        let mut faults = Vec::new();
        let mut lines = Vec::new();
        for package in PACKAGES {
            let whole = ledger_path(top, package);
            let ledger = if whole.exists() {
                Ledger::open(&whole)?
            } else {
                faults.push(format!("{package}: its ledger is not whole"));
                Ledger::open(&part_of(&whole))?
            };
            let reasons = Reasons::read(top, package)?;
            let mutants = mutants.remove(package).unwrap_or_default();
            lines.push(judge(package, &mutants, &ledger, &reasons, &mut faults));
        }
        Ok(Self { lines, faults })
    }

    /// Prints how many mutants of each package are caught.
    ///
    /// # Errors
    /// They cannot be written as JSON.
    pub fn print(&self, json: bool) -> Result<()> {
        if json {
            println!("{}", serde_json::to_string_pretty(&self.lines)?);
            return Ok(());
        }
        println!(
            "package             mutants  caught       %  missed  unreached  hangs  unknown  excused  unviable"
        );
        for it in &self.lines {
            println!(
                "{:<18} {:>8} {:>7} {:>7.1} {:>7} {:>10} {:>6} {:>8} {:>8} {:>9}",
                it.package,
                it.mutants,
                it.caught,
                it.percent,
                it.missed,
                it.unreached,
                it.hangs,
                it.unknown,
                it.excused,
                it.unviable
            );
        }
        Ok(())
    }

    /// Says what must not be so. Returns whether each ledger is whole and reaches its goal, and
    /// each mutant that survives has a reason, and no other.
    pub fn is_good(&self) -> bool {
        for fault in &self.faults {
            eprintln!("error: {fault}");
        }
        self.faults.is_empty()
    }
}

/// Counts what became of a package's mutants, given by their files and names; `faults` gets what
/// must not be so.
fn judge(
    package: &'static str,
    mutants: &[(String, String)],
    ledger: &Ledger,
    reasons: &Reasons,
    faults: &mut Vec<String>,
) -> Line {
    let mut line = Line { package, mutants: mutants.len(), ..Line::default() };
    let mut kinds = reasons.by_mutant(faults);
    let mut unjudged = 0;
    let mut unknown = BTreeMap::<&str, usize>::new();
    for (file, key) in mutants {
        let Some(verdict) = ledger.verdicts.get(key) else {
            *unknown.entry(file).or_default() += 1;
            // Its reason may hold: the function has changed, and nobody has judged it again.
            kinds.remove(name_of(key));
            continue;
        };
        match verdict {
            Verdict::Caught(_) => {
                line.caught += 1;
                continue;
            }
            Verdict::Unviable => {
                line.unviable += 1;
                continue;
            }
            _ => {}
        }
        unjudged += usize::from(*verdict == Verdict::Passed);
        let kind = kinds.remove(name_of(key));
        match (kind, verdict) {
            (Some(Kind::Equivalent | Kind::LogText | Kind::SpeedOnly), _) => line.excused += 1,
            (_, Verdict::Unreached) => line.unreached += 1,
            (_, Verdict::Hangs(_)) => line.hangs += 1,
            _ => line.missed += 1,
        }
        if kind.is_none() {
            faults.push(format!("it survives without a reason: {}", name_of(key)));
        }
    }
    line.unknown = unknown.values().sum();
    if 100.0 * line.unknown as f64 > MAY_LACK * line.mutants as f64 {
        let files: Vec<String> =
            unknown.iter().map(|(file, count)| format!("{count} in {file}")).collect();
        faults.push(format!(
            "{package}: its ledger lacks {} of {} mutants ({}); run `make mutants PACKAGE={package}`",
            line.unknown,
            line.mutants,
            files.join(", ")
        ));
    }
    let of = line.mutants - line.unviable - line.excused;
    line.percent = 100.0 * line.caught as f64 / of.max(1) as f64;
    if line.percent < GOAL {
        faults.push(format!("{package}: {:.1} % of {of} are caught", line.percent));
    }
    if unjudged > 0 {
        faults
            .push(format!("{package}: conformance has not judged {unjudged}; run `make mutants`"));
    }
    faults.extend(
        kinds.keys().map(|key| format!("a reason for a mutant that does not survive: {key}")),
    );
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of mutants that the ledger has, and of `unknown` ones.
    fn line_and_faults(
        verdicts: &[(&str, Verdict)],
        unknown: &[&str],
        reasons: &str,
    ) -> (Line, Vec<String>) {
        let mut ledger = Ledger { path: Path::new("unused").into(), verdicts: BTreeMap::new() };
        for (key, verdict) in verdicts {
            ledger.verdicts.insert((*key).to_owned(), verdict.clone());
        }
        let keys = verdicts.iter().map(|(key, _)| key).chain(unknown);
        let mutants: Vec<_> = keys.map(|key| ("lib.rs".to_owned(), (*key).to_owned())).collect();
        let reasons = toml::from_str(reasons).expect("TOML");
        let mut faults = Vec::new();
        (judge("bellwire-wire", &mutants, &ledger, &reasons, &mut faults), faults)
    }

    fn caught() -> Verdict {
        Verdict::Caught("a test".to_owned())
    }

    #[test]
    fn a_survivor_needs_a_reason() {
        let verdicts = [("one", caught()), ("other", Verdict::Missed)];
        let (line, faults) = line_and_faults(&verdicts, &[], "");
        assert_eq!((line.caught, line.missed), (1, 1));
        assert_eq!(faults.len(), 2);
        assert_eq!(faults[0], "it survives without a reason: other");
        assert_eq!(faults[1], "bellwire-wire: 50.0 % of 2 are caught");
        let (line, faults) = line_and_faults(
            &verdicts,
            &[],
            "[[reason]]\nkind = \"equivalent\"\nwhy = \"Both are zero.\"\nmutants = [\"other\"]",
        );
        assert_eq!((line.percent, line.excused, line.missed), (100.0, 1, 0));
        assert_eq!(faults, [""; 0]);
    }

    #[test]
    fn what_cannot_be_tested_counts_as_missed() {
        let (line, faults) = line_and_faults(
            &[("one", Verdict::Unreached)],
            &[],
            "[[reason]]\nkind = \"untested\"\nwhy = \"It needs a full disk.\"\nmutants = [\"one\"]",
        );
        assert_eq!((line.unreached, line.excused), (1, 0));
        assert_eq!(faults, ["bellwire-wire: 0.0 % of 1 are caught"]);
    }

    #[test]
    fn a_reason_needs_a_survivor_and_words() {
        let (_, faults) = line_and_faults(
            &[("one", caught())],
            &[],
            "[[reason]]\nkind = \"log-text\"\nwhy = \" \"\nmutants = [\"one\"]",
        );
        assert_eq!(faults[0], "a LogText reason says nothing");
        assert_eq!(faults[1], "a reason for a mutant that does not survive: one");
    }

    #[test]
    fn a_reason_waits_for_a_verdict() {
        let reason = "[[reason]]\nkind = \"log-text\"\nwhy = \"Words.\"\nmutants = [\"new\"]";
        let keys: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        let verdicts: Vec<_> = keys.iter().map(|key| (key.as_str(), caught())).collect();
        let (line, faults) = line_and_faults(&verdicts, &["new @0123abcd"], reason);
        assert_eq!((line.unknown, line.excused), (1, 0));
        assert_eq!(faults, [""; 0]);
    }

    #[test]
    fn what_conformance_has_not_judged_is_told() {
        let verdicts = [("one", caught()), ("two", Verdict::Passed)];
        let (_, faults) = line_and_faults(&verdicts, &[], "");
        assert!(faults.iter().any(|it| it.contains("has not judged 1")), "{faults:?}");
    }

    #[test]
    fn what_the_ledger_lacks_is_not_caught() {
        let keys: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        let verdicts: Vec<_> = keys.iter().map(|key| (key.as_str(), caught())).collect();
        let (line, faults) = line_and_faults(&verdicts, &["new", "newer"], "");
        assert_eq!((line.mutants, line.caught, line.unknown), (102, 100, 2));
        assert!(line.percent < 99.0, "{}", line.percent);
        assert_eq!(faults, [""; 0]);
        let (_, faults) = line_and_faults(&verdicts, &["new", "newer", "newest"], "");
        assert_eq!(
            faults,
            ["bellwire-wire: its ledger lacks 3 of 103 mutants (3 in lib.rs); \
              run `make mutants PACKAGE=bellwire-wire`"]
        );
    }

    #[test]
    fn what_is_no_mutant_any_more_does_not_count() {
        let mut ledger = Ledger { path: Path::new("unused").into(), verdicts: BTreeMap::new() };
        ledger.verdicts.insert("gone".to_owned(), caught());
        ledger.verdicts.insert("one".to_owned(), Verdict::Missed);
        let mutants = [("lib.rs".to_owned(), "one".to_owned())];
        let line = judge("bellwire-wire", &mutants, &ledger, &Reasons::default(), &mut Vec::new());
        assert_eq!((line.mutants, line.caught, line.missed), (1, 0, 1));
    }
}
