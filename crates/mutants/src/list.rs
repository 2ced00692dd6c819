//! The mutants of a tree, as cargo-mutants lists them.

use std::collections::HashMap;
use std::fs;
use std::hash::Hasher;
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use siphasher::sip::SipHasher13;

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
    /// but with a number if the function has several of this name. Behind it stands a code of the
    /// function's text, because a verdict holds only for the code that was judged.
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
    span: Span,
}

/// What stands between a mutant's name and the code of its function.
const CODE: &str = " @";

/// The name of a mutant in the ledger, without the code of its function.
pub fn name_of(key: &str) -> &str {
    key.rsplit_once(CODE).map_or(key, |(name, _)| name)
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
    /// A code of the lines of `source` that the span touches. Comments and indentation do not
    /// matter. `None` if it is no span of `source`.
    fn code(self, source: &str) -> Option<String> {
        let count = self.end.line.checked_sub(self.start.line)? + 1;
        let mut hasher = SipHasher13::new();
        let mut lines = source.lines().skip(self.start.line.checked_sub(1)?);
        for _ in 0..count {
            let line = lines.next()?.trim();
            if !line.starts_with("//") {
                hasher.write(line.as_bytes());
                hasher.write_u8(b'\n');
            }
        }
        Some(format!("{:08x}", hasher.finish() as u32))
    }

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
    let mut mutants =
        parse(&listed.stdout, |file| fs::read_to_string(top.join(file)).context(file.to_owned()))?;
    mutants.retain(|it| scope.follows(it));
    Ok(mutants)
}

/// Reads a list; `source` gives the text of a file.
fn parse(json: &[u8], source: impl Fn(&str) -> Result<String>) -> Result<Vec<Mutant>> {
    let mut mutants: Vec<Mutant> =
        serde_json::from_slice(json).context("what cargo-mutants lists")?;
    let mut seen: HashMap<String, u32> = HashMap::new();
    let mut sources: HashMap<String, String> = HashMap::new();
    for mutant in &mut mutants {
        if !sources.contains_key(&mutant.file) {
            sources.insert(mutant.file.clone(), source(&mutant.file)?);
        }
        let span = mutant.function.as_ref().map_or(mutant.span, |it| it.span);
        let code = span
            .code(&sources[&mutant.file])
            .with_context(|| format!("{} has not the lines of {}", mutant.file, mutant.name))?;
        let change = mutant.name.splitn(4, ':').nth(3).unwrap_or(&mutant.name).trim();
        let key = format!("{}: {change}", mutant.file).replace(['\n', '\t'], " ");
        let count = seen.entry(key.clone()).or_default();
        *count += 1;
        let number = if *count == 1 { String::new() } else { format!(" #{count}") };
        mutant.key = format!("{key}{number}{CODE}{code}");
    }
    Ok(mutants)
}

#[cfg(test)]
pub mod made {
    //! Mutants as cargo-mutants would list them, for tests.

    use super::{Function, Genre, Mutant, name_of, parse};

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
            "function": { "return_type": "", "span": span },
        }]);
        list(&listed, source).remove(0)
    }

    /// The mutants in `listed`, all of files with this text.
    fn list(listed: &serde_json::Value, source: &str) -> Vec<Mutant> {
        parse(listed.to_string().as_bytes(), |_| Ok(source.to_owned())).expect("a list")
    }

    /// The body of a function that returns `impl Trait`.
    pub fn opaque(file: &str, source: &str, what: (&str, usize), replacement: &str) -> Mutant {
        let it = mutant(file, source, what, replacement, Genre::FnValue);
        let function = Function { return_type: "-> impl Trait".to_owned(), span: it.span };
        Mutant { function: Some(function), ..it }
    }

    /// The same, outside of any function.
    pub fn constant(file: &str, source: &str, what: (&str, usize), replacement: &str) -> Mutant {
        let it = mutant(file, source, what, replacement, Genre::BinaryOperator);
        Mutant { function: None, ..it }
    }

    /// The keys of two equal changes in lines 3 and 4 of a function in lines 2 to 5.
    fn keys(source: &str) -> [String; 2] {
        let one = |line| {
            serde_json::json!({
                "package": "p",
                "file": "src/a.rs",
                "name": format!("src/a.rs:{line}:7: replace == with != in a::b"),
                "span": { "start": { "line": line, "column": 7 },
                          "end": { "line": line, "column": 9 } },
                "replacement": "!=",
                "genre": "BinaryOperator",
                "function": {
                    "return_type": "",
                    "span": { "start": { "line": 2, "column": 1 },
                              "end": { "line": 5, "column": 2 } },
                },
            })
        };
        let listed = serde_json::json!([one(3), one(4)]);
        let keys: Vec<String> = list(&listed, source).into_iter().map(|it| it.key).collect();
        keys.try_into().expect("two")
    }

    #[test]
    fn a_key_has_no_position_and_counts_what_is_alike() {
        let keys = keys("\nfn b() {\na == b;\nc == d;\n}\n");
        let first = "src/a.rs: replace == with != in a::b";
        assert_eq!(keys.each_ref().map(|it| name_of(it)), [first, &format!("{first} #2")]);
    }

    #[test]
    fn a_key_changes_with_its_function_and_with_nothing_else() {
        let before = keys("\nfn b() {\na == b;\nc == d;\n}\n");
        assert_eq!(keys("// New.\nfn b() {\n    a == b;\nc == d;\n}\nfn c() {}"), before);
        assert_eq!(
            keys("\nfn b() {\n// New.\nc == d;\n}"),
            keys("\nfn b() {\nc == d;\n// Old.\n}")
        );
        let after = keys("\nfn b() {\na == c;\nc == d;\n}\n");
        for (before, after) in before.iter().zip(&after) {
            assert_ne!(before, after);
            assert_eq!(name_of(before), name_of(after));
        }
    }
}
