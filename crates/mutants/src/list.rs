//! The mutants of a tree, as cargo-mutants lists them.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::scope::Scope;

/// One change to one place of the sources.
#[derive(Clone, Debug, Deserialize)]
pub struct Mutant {
    /// The package that it belongs to.
    pub package: String,
    /// Its source file, from the top of the checkout.
    pub file: String,
    /// File, line and column, and what is replaced by what in which function.
    name: String,
    /// The text that is replaced.
    pub span: Span,
    /// What stands there instead.
    pub replacement: String,
    pub genre: Genre,
    /// The function that it is in; none for a constant.
    function: Option<Function>,
    /// Its name in the ledger: `name` without a position, which any edit of the file would change,
    /// but with a number if the function has several of this name.
    #[serde(skip)]
    pub key: String,
}

impl Mutant {
    /// Whether it needs a build of its own. No switch works in a constant, because the compiler
    /// computes it, nor beside a body whose type only that body says.
    pub fn is_alone(&self) -> bool {
        self.function
            .as_ref()
            .is_none_or(|it| self.genre == Genre::FnValue && it.return_type.contains("impl "))
    }
}

/// A function with a mutant.
#[derive(Clone, Debug, Deserialize)]
struct Function {
    /// With its arrow; empty if it returns nothing.
    return_type: String,
}

/// The kinds of change that cargo-mutants makes.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Hash)]
pub enum Genre {
    FnValue,
    BinaryOperator,
    UnaryOperator,
    MatchArm,
    MatchArmGuard,
    StructField,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Span {
    start: Position,
    end: Position,
}

/// Both count from 1; the column counts characters.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Position {
    line: usize,
    column: usize,
}

impl Span {
    /// The bytes of `source` that the span covers.
    pub fn bytes(self, source: &str) -> Option<Range<usize>> {
        Some(self.start.offset(source)?..self.end.offset(source)?)
    }
}

impl Position {
    fn offset(self, source: &str) -> Option<usize> {
        let line = source.split_inclusive('\n').nth(self.line.checked_sub(1)?)?;
        let within: usize =
            line.chars().take(self.column.checked_sub(1)?).map(char::len_utf8).sum();
        // Both point into `source`.
        Some(line.as_ptr() as usize - source.as_ptr() as usize + within)
    }
}

/// Lists the mutants of `packages` that `scope` follows, in the order of their places.
///
/// # Errors
/// cargo-mutants is not there, or fails.
pub fn list(top: &Path, packages: &[String], scope: &Scope) -> Result<Vec<Mutant>> {
    let mut command = Command::new("cargo");
    command.args(["mutants", "--list", "--json", "--no-config", "--dir"]).arg(top);
    for package in packages {
        command.args(["--package", package]);
    }
    let listed = command.stderr(Stdio::inherit()).output().context("cargo mutants")?;
    ensure!(
        listed.status.success(),
        "`cargo mutants --list` ended with {}; `tools/need.sh mutants` installs it",
        listed.status
    );
    let mut mutants = parse(&listed.stdout)?;
    mutants.retain(|it| scope.follows(it));
    Ok(mutants)
}

fn parse(json: &[u8]) -> Result<Vec<Mutant>> {
    let mut mutants: Vec<Mutant> =
        serde_json::from_slice(json).context("what cargo-mutants lists")?;
    let mut seen: HashMap<String, u32> = HashMap::new();
    for mutant in &mut mutants {
        let change = mutant.name.splitn(4, ':').nth(3).unwrap_or(&mutant.name).trim();
        let key = format!("{}: {change}", mutant.file).replace(['\n', '\t'], " ");
        let count = seen.entry(key.clone()).or_default();
        *count += 1;
        mutant.key = if *count == 1 { key } else { format!("{key} #{count}") };
    }
    Ok(mutants)
}

#[cfg(test)]
pub mod made {
    //! Mutants as cargo-mutants would list them, for tests.

    use super::{Function, Genre, Mutant, parse};

    /// A mutant of `file` that replaces the `nth` place (from 0) of `what` in `source`.
    pub fn mutant(
        file: &str,
        source: &str,
        (what, nth): (&str, usize),
        replacement: &str,
        genre: Genre,
    ) -> Mutant {
        let begin = source.match_indices(what).nth(nth).expect("the text is there").0;
        let position = |at: usize| {
            let before = &source[..at];
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
            serde_json::json!({ "line": line, "column": column })
        };
        let span = serde_json::json!({
            "start": position(begin),
            "end": position(begin + what.len()),
        });
        let listed = serde_json::json!([{
            "package": "fixture",
            "file": file,
            "name": format!("{file}:1:1: replace {what} with {replacement}"),
            "span": span,
            "replacement": replacement,
            "genre": format!("{genre:?}"),
            "function": { "return_type": "" },
        }]);
        parse(listed.to_string().as_bytes()).expect("a list").remove(0)
    }

    /// The body of a function that returns `impl Trait`.
    pub fn opaque(file: &str, source: &str, what: (&str, usize), replacement: &str) -> Mutant {
        let it = mutant(file, source, what, replacement, Genre::FnValue);
        Mutant { function: Some(Function { return_type: "-> impl Trait".to_owned() }), ..it }
    }

    /// The same, outside of any function.
    pub fn constant(file: &str, source: &str, what: (&str, usize), replacement: &str) -> Mutant {
        let it = mutant(file, source, what, replacement, Genre::BinaryOperator);
        Mutant { function: None, ..it }
    }

    #[test]
    fn a_key_has_no_position_and_counts_what_is_alike() {
        let one = |line| {
            serde_json::json!({
                "package": "p",
                "file": "src/a.rs",
                "name": format!("src/a.rs:{line}:7: replace == with != in a::b"),
                "span": { "start": { "line": line, "column": 7 },
                          "end": { "line": line, "column": 9 } },
                "replacement": "!=",
                "genre": "BinaryOperator",
            })
        };
        let listed = serde_json::json!([one(3), one(9)]).to_string();
        let keys: Vec<String> =
            parse(listed.as_bytes()).expect("a list").into_iter().map(|it| it.key).collect();
        let first = "src/a.rs: replace == with != in a::b";
        assert_eq!(keys, [first.to_owned(), format!("{first} #2")]);
    }
}
