//! What became of each mutant: one line each, which a later run reads.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// What became of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// This test fails with it.
    Caught(String),
    /// All tests that reach it pass.
    Missed,
    /// No test reaches it.
    Unreached,
    /// This test does not end with it, and has no limit of its own.
    Hangs(String),
    /// It does not compile.
    Unviable,
    /// The package's own tests do not catch it; conformance has not judged it yet.
    Passed,
}

impl Verdict {
    fn write(&self) -> (&'static str, &str) {
        match self {
            Self::Caught(test) => ("caught", test),
            Self::Missed => ("missed", ""),
            Self::Unreached => ("unreached", ""),
            Self::Hangs(test) => ("hangs", test),
            Self::Unviable => ("unviable", ""),
            Self::Passed => ("passed", ""),
        }
    }

    fn read(word: &str, test: &str) -> Result<Self> {
        Ok(match word {
            "caught" => Self::Caught(test.to_owned()),
            "missed" => Self::Missed,
            "unreached" => Self::Unreached,
            "hangs" => Self::Hangs(test.to_owned()),
            "unviable" => Self::Unviable,
            "passed" => Self::Passed,
            _ => bail!("a verdict `{word}`"),
        })
    }
}

/// The verdicts by the names of the mutants, in a file.
pub struct Ledger {
    pub path: PathBuf,
    pub verdicts: BTreeMap<String, Verdict>,
}

impl Ledger {
    /// Reads the ledger, or begins one.
    ///
    /// # Errors
    /// A line is not one of a ledger's.
    pub fn open(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).unwrap_or_default();
        let mut verdicts = BTreeMap::new();
        for (number, line) in text.lines().enumerate() {
            let mut fields = line.split('\t');
            let (Some(word), Some(key)) = (fields.next(), fields.next()) else {
                bail!(
                    "{}:{}: a verdict, a tab and a mutant are missing",
                    path.display(),
                    number + 1
                );
            };
            let verdict = Verdict::read(word, fields.next().unwrap_or_default())
                .with_context(|| format!("{}:{}", path.display(), number + 1))?;
            verdicts.insert(key.to_owned(), verdict);
        }
        Ok(Self { path: path.to_owned(), verdicts })
    }

    /// Adds a verdict, at once to the file, so that a run that is cut off goes on there.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, key: &str, verdict: Verdict) -> Result<()> {
        let mut file = OpenOptions::new().create(true).append(true).open(&self.path)?;
        file.write_all(line(key, &verdict).as_bytes())?;
        self.verdicts.insert(key.to_owned(), verdict);
        Ok(())
    }

    /// Goes on in the file at `path`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn move_to(&mut self, path: &Path) -> Result<()> {
        if self.path != path {
            fs::rename(&self.path, path).with_context(|| path.display().to_string())?;
            self.path = path.to_owned();
        }
        Ok(())
    }

    /// Writes the file anew: sorted, and with the mutants that still are.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn tidy(&mut self, is: impl Fn(&str) -> bool) -> Result<()> {
        self.verdicts.retain(|key, _| is(key));
        let text: String = self.verdicts.iter().map(|(key, it)| line(key, it)).collect();
        fs::write(&self.path, text).with_context(|| self.path.display().to_string())
    }
}

fn line(key: &str, verdict: &Verdict) -> String {
    let (word, test) = verdict.write();
    format!("{word}\t{key}\t{test}\n")
}
