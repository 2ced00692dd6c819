//! The project's evidence for the rows: citations in code, tests that show them, and properties of
//! gates that do.
//!
//! It reads three forms.
//!
//! - A *citation* is an identity such as C-28 anywhere in a source file: code and comments of Rust,
//!   C, Python and SystemVerilog, Make files, and Markdown. Every citation must name a row that
//!   exists. Those in code count as "this mechanism is here"; those in Markdown and in this crate
//!   do not, as no mechanism lives there.
//! - A *shows line* stands above a Rust test:
//!
//!   ```text
//!   // shows: C-28, C-29
//!   #[test]
//!   fn lists_are_cut_anew() {}
//!   ```
//!
//!   Between it and the `fn` there may be attributes and comments, but no blank line. A function
//!   without `#[test]` can carry one only if it is a conformance case of the test kit, which the
//!   tests of every device call. A test that is ignored by default shows nothing.
//! - The same line stands above an assertion in `hardware/*/formal`, whose name begins with `p_`.
//!   Such a property is proved of gates. It makes no row shown, as not all of them are proved
//!   in `make test`.
//!
//! Whether such a test is really run, the test programs say: [`mod@crate::runs`].

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use crate::RowId;
use crate::document::DOCUMENT_PATH;

/// The evidence in a source tree.
#[derive(Debug, Default)]
pub struct Evidence {
    /// For each row, the places in code that cite it, as `path:line`, in order.
    pub citations: BTreeMap<RowId, Vec<String>>,
    /// For each row, the tests that show it, as `path::function`, in order.
    pub tests: BTreeMap<RowId, Vec<String>>,
    /// For each row, the properties of gates that show it, as `path::property`, in order.
    pub properties: BTreeMap<RowId, Vec<String>>,
    /// Faults of citations and shows lines; empty in a sound tree.
    pub problems: Vec<Problem>,
}

/// Reads every source file below `root` except hidden folders and build output. Symbolic links are
/// not followed.
pub fn scan(root: &Path) -> Result<Evidence, ScanError> {
    let mut evidence = Evidence::default();
    for path in source_files(root)? {
        let failed = |source| ScanError { path: path.clone(), source };
        let bytes = match fs::read(&path) {
            // An editor may have removed its temporary file between listing and reading.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            other => other.map_err(failed)?,
        };
        let relative = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
        if relative != DOCUMENT_PATH {
            evidence.add_file(&relative, &String::from_utf8_lossy(&bytes));
        }
    }
    Ok(evidence)
}

/// A file or folder could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}: {source}", path.display())]
pub struct ScanError {
    path: PathBuf,
    source: io::Error,
}

/// An invalid citation or shows line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {fault}")]
pub struct Problem {
    /// Path from the top of the checkout.
    pub file: String,
    /// Line, counted from 1.
    pub line: usize,
    /// What is wrong.
    pub fault: Fault,
}

/// The faults of a citation or shows line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// An identity that no row has.
    #[error(
        "there is no row {0}; correct the identity (docs/feature-rows.md lists all rows), or write it \
         differently if no row is meant"
    )]
    UnknownRow(String),
    /// A shows line that is not in the one accepted form.
    #[error(
        "this line is not read as it stands; write `// shows: C-28, C-29` in a Rust file, or in one of \
         hardware/*/formal: two slashes, each row by itself, no ranges and nothing after the last row"
    )]
    Form,
    /// A shows line with no function below it.
    #[error(
        "this line stands above no test; put it directly above the attributes of one, without a blank line"
    )]
    NoFunction,
    /// A shows line in the formal part of a block with no property below it.
    #[error(
        "this line stands above no property; put it directly above one, as `p_name : assert (..)`"
    )]
    NoProperty,
    /// A shows line above a function, named here, that is not a test.
    #[error(
        "`{0}` is not a test, so it cannot show a row; add #[test], or move the line to the test"
    )]
    NotATest(String),
    /// A shows line above a test, named here, that is ignored by default.
    #[error(
        "`{0}` is ignored by default, so it cannot show a row; move the line to a test that always runs"
    )]
    IgnoredTest(String),
    /// A row, named here, that no test shows and that has no reason.
    #[error(
        "no test shows {0}, and its entry does not say why; add a test with a shows line, or a `reason`"
    )]
    NoReason(String),
    /// A row that a test shows and that has a reason.
    #[error(
        "{row} is shown by {test}, but its entry gives a `reason` why no test shows it; delete that line"
    )]
    NeedlessReason {
        /// The row.
        row: String,
        /// The test.
        test: String,
    },
}

impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Evidence {
    fn add_file(&mut self, file: &str, text: &str) {
        let is_code = !file.ends_with(".md");
        let holds_mechanisms = is_code && !file.starts_with("crates/papers/");
        let lines: Vec<&str> = text.lines().collect();

        for (index, line) in lines.iter().enumerate() {
            let mut report = |fault| {
                self.problems.push(Problem { file: file.to_owned(), line: index + 1, fault })
            };
            // Markdown explains the form and may contain it.
            let shows = if is_code { ShowsLine::read(line) } else { ShowsLine::Absent };
            let mut known = Vec::new();
            for text in identities(line) {
                match RowId::parse(text) {
                    Some(id) => known.push(id),
                    None => report(Fault::UnknownRow(text.to_owned())),
                }
            }
            match shows {
                ShowsLine::Absent if holds_mechanisms => {
                    for id in known {
                        self.citations.entry(id).or_default().push(format!("{file}:{}", index + 1));
                    }
                }
                ShowsLine::Absent => {}
                ShowsLine::Malformed => report(Fault::Form),
                ShowsLine::Sound => {
                    let below = &lines[index + 1..];
                    let (found, into) = if is_formal(file) {
                        let found = property_below(below).ok_or(Fault::NoProperty);
                        (found, &mut self.properties)
                    } else if file.ends_with(".rs") {
                        (test_below(file, below), &mut self.tests)
                    } else {
                        (Err(Fault::Form), &mut self.tests)
                    };
                    match found {
                        Err(fault) => report(fault),
                        Ok(name) => {
                            for id in known {
                                into.entry(id).or_default().push(format!("{file}::{name}"));
                            }
                        }
                    }
                }
            }
        }
    }
}

enum ShowsLine {
    Absent,
    Malformed,
    Sound,
}

impl ShowsLine {
    /// A line that looks like a shows line must be one: otherwise a typing error would silently
    /// show nothing.
    fn read(line: &str) -> ShowsLine {
        let line = line.trim();
        // Only the first comment sign is removed: inside a doc comment, a whole line is an example.
        let comment = line.trim_start_matches(['/', '!', '#', '*']).trim_start();
        if comment.len() == line.len() || !comment.to_ascii_lowercase().starts_with("shows:") {
            return ShowsLine::Absent;
        }
        let is_sound = line.strip_prefix("// shows: ").is_some_and(|list| {
            // Existence is checked elsewhere: any identity of the right form passes here.
            list.split(", ").all(|item| identities(item).eq([item]))
        });
        if is_sound { ShowsLine::Sound } else { ShowsLine::Malformed }
    }
}

/// Whether the file states properties of a block of gates.
fn is_formal(file: &str) -> bool {
    let mut parts = file.split('/');
    parts.next() == Some("hardware") && parts.nth(1) == Some("formal")
}

/// The name of the property in the first of these lines that is no comment. What it asserts may
/// stand in the next one.
fn property_below(lines: &[&str]) -> Option<String> {
    let mut lines = lines.iter().skip_while(|line| line.trim_start().starts_with("//"));
    let text = [*lines.next()?, lines.next().unwrap_or(&"")].join(" ");
    let (before, _) = text.split_once("assert")?;
    let name = before.trim_end().strip_suffix(':')?.split_whitespace().last()?;
    name.starts_with("p_").then(|| name.to_owned())
}

/// The name of the test that starts with these lines.
fn test_below(file: &str, lines: &[&str]) -> Result<String, Fault> {
    let mut attributes = Vec::new();
    let mut open_brackets = 0;
    for line in lines.iter().map(|line| line.trim()) {
        let is_attribute = open_brackets > 0 || line.starts_with("#[");
        if is_attribute {
            attributes.push(line);
            // Every second piece between quotes is a string, whose brackets do not count.
            for piece in line.split('"').step_by(2) {
                open_brackets += piece.matches('[').count();
                open_brackets = open_brackets.saturating_sub(piece.matches(']').count());
            }
        } else if !line.starts_with("//") {
            let name = function_name(line).ok_or(Fault::NoFunction)?;
            let is_test = attributes.iter().any(|line| is_test_attribute(line));
            let is_conformance_case = file.starts_with("crates/testkit/src/conformance/")
                && line.contains("(fixture: &dyn Fixture)");
            if attributes.iter().any(|line| line.starts_with("#[ignore")) {
                return Err(Fault::IgnoredTest(name.to_owned()));
            }
            if !is_test && !is_conformance_case {
                return Err(Fault::NotATest(name.to_owned()));
            }
            return Ok(name.to_owned());
        }
    }
    Err(Fault::NoFunction)
}

/// `#[test]`, or the attribute of a test framework, whose last word is also `test`.
fn is_test_attribute(line: &str) -> bool {
    let path = line.trim_start_matches("#[");
    let path = path.split(['(', ']']).next().unwrap_or(path);
    path.rsplit("::").next().is_some_and(|word| word.trim() == "test")
}

fn function_name(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let is_qualifier = |word: &str| {
        word.starts_with("pub") || ["async", "unsafe", "const", "extern", "\"C\""].contains(&word)
    };
    if words.by_ref().find(|word| !is_qualifier(word)) != Some("fn") {
        return None;
    }
    let name = words.next()?;
    Some(name.split(['(', '<']).next().unwrap_or(name))
}

/// All text in a line with the form of an identity: one of the six letters, a hyphen and at least
/// two digits. Neither side may touch a letter, digit, `_` or hyphen, which excludes names such as
/// CRC-32.
fn identities(line: &str) -> impl Iterator<Item = &str> {
    identity_places(line).map(|place| &line[place])
}

/// Their positions in the line.
pub(crate) fn identity_places(line: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = line.as_bytes();
    let joins = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    line.match_indices('-').filter_map(move |(hyphen, _)| {
        let start = hyphen.checked_sub(1)?;
        let digits = bytes[hyphen + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let end = hyphen + 1 + digits;
        let is_letter = b"CDMSHB".contains(&bytes[start]);
        let stands_alone = !bytes[..start].last().is_some_and(|byte| joins(byte) || *byte == b'-')
            && !bytes.get(end).is_some_and(joins);
        (is_letter && digits >= 2 && stands_alone).then_some(start..end)
    })
}

/// All files to read below `root`, in the order of their names.
fn source_files(root: &Path) -> Result<Vec<PathBuf>, ScanError> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let failed = |source| ScanError { path: folder.clone(), source };
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let kind = entry.file_type().map_err(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if kind.is_dir() && !name.starts_with('.') && !is_build_output(&entry.path()) {
                folders.push(entry.path());
            } else if kind.is_file() && is_source(&name) {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Cargo and other tools mark folders that can be made again with a tag file
/// (<https://bford.info/cachedir/>).
fn is_build_output(folder: &Path) -> bool {
    folder.ends_with("target") || folder.join("CACHEDIR.TAG").exists()
}

fn is_source(name: &str) -> bool {
    let suffixes = [".rs", ".c", ".h", ".py", ".md", ".sv", ".svh"];
    suffixes.iter().any(|suffix| name.ends_with(suffix)) || name == "Makefile"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence_of(file: &str, text: &str) -> Evidence {
        let mut evidence = Evidence::default();
        evidence.add_file(file, text);
        evidence
    }

    fn faults(file: &str, text: &str) -> Vec<Fault> {
        evidence_of(file, text).problems.into_iter().map(|problem| problem.fault).collect()
    }

    /// Identities are found, and look-alikes are not.
    #[test]
    fn identities_are_told_from_look_alikes() {
        let found = |line: &str| identities(line).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(
            found("as C-28, (D-02) and M-10: S-14..S-16."),
            ["C-28", "D-02", "M-10", "S-14", "S-16"]
        );
        assert_eq!(
            found(&format!("{0}-99 and {0}-991", 'C')),
            [["C", "99"].join("-"), ["C", "991"].join("-")]
        );
        for other in [
            "CRC-32",
            "crc-32",
            "C-2",
            "C-x1",
            "X-01",
            "2024-C-01",
            "C-01a",
            "C-01_",
            "-01",
            "é-01",
            "B-",
        ] {
            assert!(found(other).is_empty(), "{other}");
        }
    }

    /// A test is found below its line, with attributes and comments between, in code of several
    /// shapes.
    #[test]
    fn tests_are_found_below_their_line() {
        let text = [
            "// shows: C-28, C-29",
            "#[test]",
            "fn one() {}",
            "",
            "/// Words.",
            "    // shows: D-01",
            "    /// More words.",
            "    #[test]",
            "    #[should_panic(",
            "        expected = \"[\"",
            "    )]",
            "    fn two<T>() {}",
            "",
            "// shows: D-02",
            "#[tokio::test]",
            "async fn three() {}",
        ]
        .join("\n");
        let evidence = evidence_of("crates/shm/tests/x.rs", &text);
        assert_eq!(evidence.problems, []);
        let tests: Vec<String> =
            evidence.tests.iter().map(|(id, tests)| format!("{id} {}", tests.join(" "))).collect();
        assert_eq!(
            tests,
            [
                "C-28 crates/shm/tests/x.rs::one",
                "C-29 crates/shm/tests/x.rs::one",
                "D-01 crates/shm/tests/x.rs::two",
                "D-02 crates/shm/tests/x.rs::three"
            ]
        );
        assert!(evidence.citations.is_empty(), "a shows line is not a citation");
    }

    /// A property of gates is found below its line, behind a condition, too.
    #[test]
    fn properties_are_found_below_their_line() {
        let text = [
            "    // shows: C-28, D-01",
            "    // Words.",
            "    if (y) p_x : assert (z);",
            "// shows: D-02",
            "p_long :",
            "assert (z);",
        ]
        .join("\n");
        let evidence = evidence_of("hardware/x/formal/x_proof.sv", &text);
        assert_eq!((evidence.problems, evidence.tests.len()), (vec![], 0));
        let found: Vec<String> =
            evidence.properties.iter().map(|(id, names)| format!("{id} {}", names[0])).collect();
        let [x, long] = ["x", "long"].map(|name| format!("hardware/x/formal/x_proof.sv::p_{name}"));
        assert_eq!(found, [format!("C-28 {x}"), format!("D-01 {x}"), format!("D-02 {long}")]);
    }

    /// Canary: every planted fault in a shows line is caught and named.
    #[test]
    fn planted_faults_in_shows_lines_are_caught() {
        let name = || "f".to_owned();
        let rust = "crates/shm/src/x.rs";
        let shows = |rest: &str| format!("// shows: {rest}");
        assert_eq!(faults(rust, &shows("C-28\n")), [Fault::NoFunction]);
        assert_eq!(faults(rust, &shows("C-28\n\n#[test]\nfn f() {}")), [Fault::NoFunction]);
        assert_eq!(faults(rust, &shows("C-28\nstruct S;")), [Fault::NoFunction]);
        assert_eq!(faults(rust, &shows("C-28\nfn f() {}")), [Fault::NotATest(name())]);
        assert_eq!(
            faults(rust, &shows("C-28\n#[cfg(test)]\nfn f() {}")),
            [Fault::NotATest(name())]
        );
        assert_eq!(
            faults(rust, &shows("C-28\n#[test]\n#[ignore = \"slow\"]\nfn f() {}")),
            [Fault::IgnoredTest(name())]
        );
        for list in ["", "C-28 C-29", "C-28,C-29", "C-28..C-30", "C-28, and more", "C-28."] {
            let text = shows(list) + "\n#[test]\nfn f() {}";
            assert_eq!(faults(rust, &text), [Fault::Form], "{list}");
        }
        for line in ["//shows: C-28", "/// shows: C-28", "// Shows: C-28", "// shows:C-28"] {
            assert_eq!(
                faults(rust, &format!("{line}\n#[test]\nfn f() {{}}")),
                [Fault::Form],
                "{line}"
            );
        }
        let formal = "hardware/x/formal/x_formal.svh";
        for below in ["", "\n", "wire p_x = y;", "cover (y);", "assert (y);", "x : assert (y);"] {
            let text = format!("{}\n{below}", shows("C-28"));
            assert_eq!(faults(formal, &text), [Fault::NoProperty], "{below}");
        }
        let text = shows("C-28") + "\np_x : assert (y);";
        assert_eq!(faults("hardware/x/src/x.sv", &text), [Fault::Form]);
        assert_eq!(faults("bindings/x.py", "# shows: C-28\ndef test_f(): pass"), [Fault::Form]);
        assert_eq!(faults("bindings/x.c", &shows("C-28\nvoid f(void) {}")), [Fault::Form]);

        let unknown = format!("C-{}", 99);
        let text = shows(&format!("{unknown}, C-28\n#[test]\nfn f() {{}}"));
        assert_eq!(faults(rust, &text), [Fault::UnknownRow(unknown)]);
    }

    /// A conformance case counts in the test kit only. Prose and this crate contain no mechanism.
    #[test]
    fn place_decides_what_counts() {
        let case = "// shows: C-28\npub fn case(fixture: &dyn Fixture) {}";
        assert_eq!(evidence_of("crates/testkit/src/conformance/put.rs", case).tests.len(), 1);
        let helper = "// shows: C-28\npub fn case(device: &str) {}";
        for (file, text) in [
            ("crates/shm/src/put.rs", case),
            ("crates/testkit/src/put.rs", case),
            ("crates/testkit/src/conformance/put.rs", helper),
        ] {
            assert_eq!(faults(file, text), [Fault::NotATest("case".to_owned())], "{file}");
        }

        assert_eq!(evidence_of("crates/wire/src/x.rs", "// C-06").citations.len(), 1);
        assert_eq!(evidence_of("crates/papers/src/x.rs", "// C-06").citations.len(), 0);
        assert_eq!(evidence_of("docs/x.md", "C-06\n// shows: C-06\n").citations.len(), 0);
        assert_eq!(faults("docs/x.md", "C-06\n// shows: C-06\n"), []);
    }
}
