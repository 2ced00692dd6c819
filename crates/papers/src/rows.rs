//! The rows: the content of each paper, in our words. The text is `rows.toml`, beside this crate's
//! sources and compiled in.

use std::fmt;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize, Serializer};

use crate::Paper;

/// All rows in the order of the scoreboard: C, D, M, S, H, B, each from 1 upwards.
pub fn rows() -> &'static [Row] {
    &ROWS
}

/// The row with this identity.
pub fn row(id: RowId) -> &'static Row {
    let before: usize = Paper::ALL
        .iter()
        .take_while(|paper| **paper != id.paper)
        .map(|paper| paper.row_count())
        .sum();
    &ROWS[before + id.number - 1]
}

/// Where the rows lie, from the top of the checkout.
pub const ROWS_PATH: &str = "crates/papers/rows.toml";

/// The line of a row in its file, counted from 1.
pub(crate) fn line_of(id: RowId) -> usize {
    let wanted = format!("id = \"{id}\"");
    EMBEDDED.lines().position(|line| line == wanted).map_or(1, |line| line + 1)
}

/// One feature, mechanism, limit or experiment of a paper.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Its identity, which never changes.
    pub id: RowId,
    /// The paper that it comes from.
    pub paper: Paper,
    /// What it is, in a few words.
    pub title: String,
    /// The observable behaviour when it works. Figures are those of the paper.
    pub works_when: String,
    /// Section, table or figure of the paper.
    #[serde(rename = "where")]
    pub place: String,
    /// Our interpretation, or its present form.
    pub note: Option<String>,
    /// Why no test shows it; only rows without a test have one.
    pub reason: Option<String>,
}

/// The identity of a row that exists, such as C-31. Shown as a letter, a hyphen and two digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId {
    paper: Paper,
    number: usize,
}

impl RowId {
    /// Parses an identity; `None` for another form or an unknown row.
    pub fn parse(text: &str) -> Option<RowId> {
        let (letter, digits) = text.split_once('-')?;
        let mut letters = letter.chars();
        let paper = Paper::of_letter(letters.next()?)?;
        let are_two_digits =
            digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_digit());
        let number = digits.parse().ok()?;
        let is_row = letters.next().is_none() && (1..=paper.row_count()).contains(&number);
        (are_two_digits && is_row).then_some(RowId { paper, number })
    }
}

impl fmt::Display for RowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:02}", self.paper.letter(), self.number)
    }
}

impl Serialize for RowId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Why a text is not a valid scoreboard.
#[derive(Debug, thiserror::Error)]
pub enum RowsError {
    /// The file is not TOML of the expected form.
    #[error("rows.toml cannot be read: {0}")]
    Form(#[from] toml::de::Error),
    /// Rows must stand in order without gap or repetition.
    #[error(
        "rows.toml has `{found}` where `{expected}` is due; rows stand in the order C, D, M, S, H, B, each numbered \
         from 01 without gap or repetition"
    )]
    Sequence {
        /// The identity expected at this place, or `the end`.
        expected: String,
        /// The identity found there, or `the end`.
        found: String,
    },
    /// A field is there but empty.
    #[error("row {id} has an empty `{field}`; fill it in")]
    Empty {
        /// The row.
        id: String,
        /// The name of the field in the file.
        field: &'static str,
    },
}

/// Reads and checks a scoreboard in the form of `rows.toml`.
pub fn parse(text: &str) -> Result<Vec<Row>, RowsError> {
    let file: File = toml::from_str(text)?;
    let due = Paper::ALL
        .into_iter()
        .flat_map(|paper| (1..=paper.row_count()).map(move |number| RowId { paper, number }));

    let mut written = file.row.into_iter();
    let mut rows = Vec::new();
    for id in due {
        let found = written.next();
        match found {
            Some(entry) if entry.id == id.to_string() => rows.push(entry.into_row(id)?),
            _ => return Err(out_of_sequence(id.to_string(), found.map(|entry| entry.id))),
        }
    }
    match written.next() {
        None => Ok(rows),
        extra => Err(out_of_sequence(THE_END.to_owned(), extra.map(|entry| entry.id))),
    }
}

const THE_END: &str = "the end";

fn out_of_sequence(expected: String, found: Option<String>) -> RowsError {
    RowsError::Sequence { expected, found: found.unwrap_or_else(|| THE_END.to_owned()) }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    row: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    id: String,
    title: String,
    works_when: String,
    #[serde(rename = "where")]
    place: String,
    note: Option<String>,
    reason: Option<String>,
}

impl Entry {
    fn into_row(self, id: RowId) -> Result<Row, RowsError> {
        for (field, text) in [
            ("title", &self.title),
            ("works_when", &self.works_when),
            ("where", &self.place),
            ("note", self.note.as_ref().unwrap_or(&self.title)),
            ("reason", self.reason.as_ref().unwrap_or(&self.title)),
        ] {
            if text.trim().is_empty() {
                return Err(RowsError::Empty { id: self.id, field });
            }
        }
        let Entry { title, works_when, place, note, reason, .. } = self;
        Ok(Row { id, paper: id.paper, title, works_when, place, note, reason })
    }
}

/// The text is part of this program, not input: `embedded_rows_are_sound` shows that it parses.
static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    parse(EMBEDDED).unwrap_or_else(|error| unreachable!("checked by the tests: {error}"))
});

const EMBEDDED: &str = include_str!("../rows.toml");

#[cfg(test)]
mod tests {
    use super::*;

    /// The project's rows are complete, in order, filled in, and found by identity.
    #[test]
    fn embedded_rows_are_sound() {
        let rows = parse(EMBEDDED).unwrap();
        assert_eq!(rows.len(), 207);
        for listed in &rows {
            assert_eq!(row(listed.id).title, listed.title);
            assert_eq!(RowId::parse(&listed.id.to_string()), Some(listed.id));
        }
        assert_eq!(row(RowId::parse("B-27").unwrap()).id.to_string(), "B-27");
    }

    /// Only the exact form of an existing row is an identity.
    #[test]
    fn identities_are_exact() {
        for wrong in ["", "C", "C-", "C-1", "C-0", "C-+1", "c-01", "CC-01", "X-01", "C_01"] {
            assert_eq!(RowId::parse(wrong), None, "{wrong}");
        }
        for digits in ["00", "001", "56", "99"] {
            assert_eq!(RowId::parse(&format!("C-{digits}")), None, "{digits}");
        }
        for paper in Paper::ALL {
            let beyond = format!("{}-{:02}", paper.letter(), paper.row_count() + 1);
            assert_eq!(RowId::parse(&beyond), None);
        }
    }

    /// Canary: a row that is missing, repeated, added, blank or misspelt is noticed, each by its
    /// own error.
    #[test]
    fn planted_faults_in_rows_are_caught() {
        let first = EMBEDDED.split_once("[[row]]").unwrap().0.to_owned();
        let blocks: Vec<&str> = EMBEDDED.split("[[row]]").skip(1).collect();
        let join = |blocks: &[&str]| {
            blocks.iter().fold(first.clone(), |text, block| text + "[[row]]" + block)
        };
        assert!(parse(&join(&blocks)).is_ok(), "taking apart and joining changes nothing");

        let sequence = |blocks: &[&str]| match parse(&join(blocks)) {
            Err(RowsError::Sequence { expected, found }) => (expected, found),
            other => panic!("not noticed: {:?}", other.map(|rows| rows.len())),
        };
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());

        let mut left_out = blocks.clone();
        left_out.remove(1);
        assert_eq!(sequence(&left_out), pair("C-02", "C-03"));
        let mut repeated = blocks.clone();
        repeated.insert(1, blocks[0]);
        assert_eq!(sequence(&repeated), pair("C-02", "C-01"));
        let mut added = blocks.clone();
        added.push(blocks[0]);
        assert_eq!(sequence(&added), pair("the end", "C-01"));
        assert_eq!(sequence(&blocks[..206]), pair("B-27", "the end"));

        let blank = "\nid = \"C-01\"\ntitle = \" \"\nworks_when = \"x\"\nwhere = \"x\"\n";
        assert!(matches!(parse(&join(&[blank])), Err(RowsError::Empty { field: "title", .. })));
        let misspelt = "\nid = \"C-01\"\ntitel = \"x\"\nworks_when = \"x\"\nwhere = \"x\"\n";
        assert!(matches!(parse(&join(&[misspelt])), Err(RowsError::Form(_))));
    }
}
