//! What of a package is followed, and by which tests, if not all of it: `ledger/scope.toml`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::list::Mutant;
use crate::{LEDGERS, PACKAGES};

/// The limits of some packages, by name.
#[derive(Default, Deserialize)]
#[serde(transparent)]
pub struct Scope(BTreeMap<String, Limits>);

/// The limits of a package.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Limits {
    /// Whether conformance is tried where the package's own tests miss a mutant.
    conformance: bool,
    /// Whether its tests may look at a clock.
    #[serde(default = "yes")]
    clock: bool,
    /// How many of the package's own tests are tried on a mutant, the most promising first; all
    /// without it.
    #[serde(default)]
    tries: Option<usize>,
    /// The same for cases of conformance.
    #[serde(default)]
    cases: Option<usize>,
    /// Sources whose mutants are not followed.
    #[serde(default)]
    outside: Vec<Outside>,
    /// Tests that are not run.
    #[serde(default)]
    slow: Vec<Slow>,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Outside {
    why: String,
    /// Files, and folders with a slash at their end, from the top of the checkout.
    paths: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Slow {
    why: String,
    /// Parts of their names in the ledger.
    tests: Vec<String>,
}

impl Scope {
    /// Reads the file in the checkout at `top`; without one all is followed.
    ///
    /// # Errors
    /// The file is wrong: an unknown package, a path that is not there, or no reason.
    pub fn read(top: &Path) -> Result<Self> {
        let path = top.join(LEDGERS).join("scope.toml");
        if !path.exists() {
            return Ok(Self::default());
        }
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Self::parse(top, &text).with_context(|| path.display().to_string())
    }

    fn parse(top: &Path, text: &str) -> Result<Self> {
        let scope: Self = toml::from_str(text)?;
        for (package, limits) in &scope.0 {
            ensure!(PACKAGES.contains(&package.as_str()), "{package} is not followed at all");
            let reasons = limits.outside.iter().map(|it| &it.why);
            for why in reasons.chain(limits.slow.iter().map(|it| &it.why)) {
                ensure!(!why.trim().is_empty(), "a reason of {package} says nothing");
            }
            for path in limits.outside.iter().flat_map(|it| &it.paths) {
                let there = top.join(path);
                let is_there = if path.ends_with('/') { there.is_dir() } else { there.is_file() };
                ensure!(is_there, "{path} is not there; a folder ends with a slash");
            }
        }
        Ok(scope)
    }

    /// Whether this mutant is followed.
    pub fn follows(&self, mutant: &Mutant) -> bool {
        let covers = |path: &String| match path.strip_suffix('/') {
            Some(_) => mutant.file.starts_with(path.as_str()),
            None => mutant.file == *path,
        };
        let limits = self.0.get(&mutant.package);
        !limits.is_some_and(|it| it.outside.iter().flat_map(|it| &it.paths).any(covers))
    }

    /// Whether conformance is tried on mutants of this package.
    pub fn has_conformance(&self, package: &str) -> bool {
        self.0.get(package).is_none_or(|limits| limits.conformance)
    }

    /// Whether tests of this package may look at a clock.
    pub fn has_clock(&self, package: &str) -> bool {
        self.0.get(package).is_none_or(|limits| limits.clock)
    }

    /// How many tests of this package are tried on a mutant of it.
    pub fn tries(&self, package: &str) -> usize {
        self.0.get(package).and_then(|limits| limits.tries).unwrap_or(usize::MAX)
    }

    /// How many cases of conformance are tried on a mutant of this package.
    pub fn cases(&self, package: &str) -> usize {
        self.0.get(package).and_then(|limits| limits.cases).unwrap_or(usize::MAX)
    }

    /// Parts of the names, as in the ledger, of tests that are not run.
    pub fn slow(&self, package: &str) -> Vec<&str> {
        let limits = self.0.get(package);
        limits.iter().flat_map(|it| &it.slow).flat_map(|it| &it.tests).map(String::as_str).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::Genre;
    use crate::list::made::mutant;

    fn top() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
    }

    /// The limits of the checkout are right, and are those of the model.
    #[test]
    fn the_scope_of_the_checkout_is_right() {
        let scope = Scope::read(top()).expect("a scope");
        assert!(!scope.has_conformance("bellwire-model"));
        assert!(scope.has_conformance("bellwire-wire"));
        let follows = |file: &str| {
            let mut it = mutant(file, "a + b", ("+", 0), "-", Genre::BinaryOperator);
            it.package = "bellwire-model".to_owned();
            scope.follows(&it)
        };
        assert!(follows("crates/model/src/chpp/packer.rs"));
        assert!(follows("crates/model/src/units.rs"));
        assert!(!follows("crates/model/src/chpp/experiments/fig5.rs"));
        assert!(!follows("crates/model/src/vcd.rs"));
    }

    /// Canary: a path that nobody finds would leave nothing out, and is refused.
    #[test]
    fn faults_of_a_scope_are_told() {
        let limits = |path: &str, why: &str| {
            let text = format!(
                "[bellwire-model]\nconformance = true\n\
                 [[bellwire-model.outside]]\nwhy = \"{why}\"\npaths = [\"{path}\"]\n"
            );
            Scope::parse(top(), &text).map(drop)
        };
        assert!(limits("crates/model/src/vcd.rs", "a reason").is_ok());
        assert!(limits("crates/model/src/chpp", "a reason").is_err());
        assert!(limits("crates/model/src/gone.rs", "a reason").is_err());
        assert!(limits("crates/model/src/vcd.rs", " ").is_err());
        assert!(Scope::parse(top(), "[bellwire-cli]\nconformance = true\n").is_err());
    }
}
