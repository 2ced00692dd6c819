//! The scoreboard: each row with its state, and the tests that show it.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use serde::Serialize;

use crate::checkout::{self, NotACheckout};
use crate::evidence::{Evidence, Fault, Problem, ScanError};
use crate::rows::{ROWS_PATH, line_of};
use crate::{Paper, Row, rows, scan};

/// Finds the checkout that holds the folder `start`, reads it, and returns the rows of `query`.
pub fn scoreboard(start: &Path, query: &Query) -> Result<Board, BoardError> {
    let mut evidence = scan(&checkout::find(start)?)?;
    let faults = faults_of_reasons(rows(), &evidence);
    evidence.problems.extend(faults);
    Ok(Board::new(evidence, query))
}

/// Rows that no test shows without a reason, and rows that a test shows but have a reason.
fn faults_of_reasons(rows: &[Row], evidence: &Evidence) -> Vec<Problem> {
    let fault = |row: &Row| {
        let name = row.id.to_string();
        match (evidence.tests.get(&row.id).and_then(|tests| tests.first()), &row.reason) {
            (None, None) => Some(Fault::NoReason(name)),
            (Some(test), Some(_)) => Some(Fault::NeedlessReason { row: name, test: test.clone() }),
            (None, Some(_)) | (Some(_), None) => None,
        }
    };
    let problem =
        |row: &Row, fault| Problem { file: ROWS_PATH.to_owned(), line: line_of(row.id), fault };
    rows.iter().filter_map(|row| fault(row).map(|fault| problem(row, fault))).collect()
}

/// The selected rows; the default is all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Query {
    /// Only the rows of this paper.
    pub paper: Option<Paper>,
    /// Only the rows in this state.
    pub state: Option<State>,
}

/// The state of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// At least one test shows it.
    Shown,
    /// Code cites it; no test shows it yet.
    Cited,
    /// Neither.
    Open,
}

/// Rows with their state. `Display` gives a table for people, `Serialize` an object for programs:
/// `{"rows": [{"id", "paper", "title", "works_when", "where", "note", "state", "tests",
/// "properties", "cited_at"}], "totals": {"shown", "cited", "open"}, "problems": [..]}`.
#[derive(Debug, Serialize)]
pub struct Board {
    /// The selected rows, in the order of the scoreboard.
    pub rows: Vec<Standing>,
    /// How many of these are in each state.
    pub totals: Totals,
    /// Faults of citations and shows lines anywhere in the project, for every query. A command
    /// should fail if there are any.
    pub problems: Vec<Problem>,
}

/// A row and its state.
#[derive(Debug, Serialize)]
pub struct Standing {
    /// The row.
    #[serde(flatten)]
    pub row: &'static Row,
    /// The state.
    pub state: State,
    /// The tests that show it, as `path::function`.
    pub tests: Vec<String>,
    /// The properties of gates that show it, as `path::property`.
    pub properties: Vec<String>,
    /// The places in code that cite it, as `path:line`.
    pub cited_at: Vec<String>,
}

/// Number of rows in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// With a test.
    pub shown: usize,
    /// With a citation but without a test.
    pub cited: usize,
    /// With neither.
    pub open: usize,
}

/// The reason why there is no scoreboard.
#[derive(Debug, thiserror::Error)]
pub enum BoardError {
    /// The command was not run inside a checkout.
    #[error(transparent)]
    NotACheckout(#[from] NotACheckout),
    /// The checkout could not be read.
    #[error(transparent)]
    Scan(#[from] ScanError),
}

impl Board {
    /// Joins all rows with the evidence, and keeps those of `query`.
    pub fn new(mut evidence: Evidence, query: &Query) -> Board {
        let mut board =
            Board { rows: Vec::new(), totals: Totals::default(), problems: evidence.problems };
        for row in rows() {
            let tests = evidence.tests.remove(&row.id).unwrap_or_default();
            let properties = evidence.properties.remove(&row.id).unwrap_or_default();
            let cited_at = evidence.citations.remove(&row.id).unwrap_or_default();
            let state = match (tests.is_empty(), cited_at.is_empty()) {
                (false, _) => State::Shown,
                (true, false) => State::Cited,
                (true, true) => State::Open,
            };
            let is_wanted = query.paper.is_none_or(|paper| paper == row.paper)
                && query.state.is_none_or(|wanted| wanted == state);
            if is_wanted {
                board.totals.count(state);
                board.rows.push(Standing { row, state, tests, properties, cited_at });
            }
        }
        board
    }
}

impl Totals {
    fn count(&mut self, state: State) {
        match state {
            State::Shown => self.shown += 1,
            State::Cited => self.cited += 1,
            State::Open => self.open += 1,
        }
    }
}

impl fmt::Display for Board {
    /// One line for each row; indented below it its tests, or the reason for having none. Then the
    /// problems, then the totals.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "id    state  title, and below it the tests and properties that show it")?;
        for Standing { row, state, tests, properties, .. } in &self.rows {
            writeln!(f, "{:<6}{state:<7}{}", row.id.to_string(), row.title)?;
            for by in tests.iter().chain(properties) {
                writeln!(f, "{:13}{by}", "")?;
            }
            if let Some(reason) = &row.reason {
                writeln!(f, "{:13}because: {reason}", "")?;
            }
        }
        for problem in &self.problems {
            writeln!(f, "error: {problem}")?;
        }
        let Totals { shown, cited, open } = self.totals;
        let count = self.rows.len();
        let proved = self.rows.iter().filter(|standing| !standing.properties.is_empty()).count();
        write!(
            f,
            "rows: {count} ({shown} shown by tests, {cited} only cited, {open} open; {proved} by properties of gates, too)"
        )
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            State::Shown => "shown",
            State::Cited => "cited",
            State::Open => "open",
        })
    }
}

/// The given word is no state.
#[derive(Debug, thiserror::Error)]
#[error("there is no state `{0}`; choose one of shown, cited, open")]
pub struct UnknownState(String);

impl FromStr for State {
    type Err = UnknownState;

    fn from_str(text: &str) -> Result<State, UnknownState> {
        [State::Shown, State::Cited, State::Open]
            .into_iter()
            .find(|state| state.to_string() == text)
            .ok_or_else(|| UnknownState(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RowId;

    fn evidence() -> Evidence {
        let id = |text| RowId::parse(text).unwrap();
        let mut evidence = Evidence::default();
        evidence.citations.insert(id("C-06"), vec!["crates/wire/src/header.rs:1".to_owned()]);
        evidence.citations.insert(id("C-28"), vec!["crates/wire/src/chain.rs:9".to_owned()]);
        evidence.tests.insert(id("C-28"), vec!["crates/wire/src/chain.rs::one".to_owned()]);
        let property = "hardware/x/formal/x.svh::p_x".to_owned();
        evidence.properties.insert(id("C-28"), vec![property]);
        evidence
    }

    /// A test makes a row shown, a citation alone makes it cited, and filters select by both state
    /// and paper.
    #[test]
    fn states_follow_from_evidence() {
        let all = Board::new(evidence(), &Query::default());
        assert_eq!(all.rows.len(), 207);
        assert_eq!(all.totals, Totals { shown: 1, cited: 1, open: 205 });

        let cited = Query { paper: Some(Paper::ChppNic), state: Some(State::Cited) };
        let cited = Board::new(evidence(), &cited);
        assert_eq!(cited.rows.len(), 1);
        assert_eq!(cited.rows[0].row.id.to_string(), "C-06");

        let open = Query { paper: Some(Paper::Baselines), state: Some("open".parse().unwrap()) };
        assert_eq!(Board::new(evidence(), &open).totals, Totals { shown: 0, cited: 0, open: 27 });
    }

    /// Canary: a row that no test shows needs a reason, and a shown row must have none. Each fault
    /// is reported with its line.
    #[test]
    fn reasons_stand_where_they_must() {
        let id = |text| RowId::parse(text).unwrap();
        let row = |text: &'static str, reason: Option<&str>| Row {
            reason: reason.map(str::to_owned),
            ..crate::rows::row(id(text)).clone()
        };
        let found = |rows: &[Row]| {
            let faults = faults_of_reasons(rows, &evidence());
            faults.iter().map(ToString::to_string).collect::<Vec<String>>()
        };
        assert!(found(&[row("C-28", None), row("C-06", Some("it is late"))]).is_empty());
        let faults = found(&[row("C-06", None), row("C-28", Some("it is late"))]);
        assert_eq!(faults.len(), 2);
        assert!(faults[0].starts_with("crates/papers/rows.toml:"), "{faults:?}");
        assert!(faults[0].contains("no test shows C-06"), "{faults:?}");
        assert!(faults[1].contains("C-28 is shown by crates/wire/src/chain.rs::one"), "{faults:?}");
        assert!(line_of(id("C-06")) > line_of(id("C-05")));
    }

    /// The table for people and the object for programs contain the same.
    #[test]
    fn table_and_object_say_the_same() {
        let shown = Query { paper: None, state: Some(State::Shown) };
        let board = Board::new(evidence(), &shown);
        let table = board.to_string();
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[1].starts_with("C-28  shown  Chain-DMA descriptor"), "{table}");
        assert_eq!(lines[2].trim(), "crates/wire/src/chain.rs::one");
        assert_eq!(lines[3].trim(), "hardware/x/formal/x.svh::p_x");
        let count =
            "rows: 1 (1 shown by tests, 0 only cited, 0 open; 1 by properties of gates, too)";
        assert_eq!(lines[4], count);

        let object = serde_json::to_value(&board).unwrap();
        assert_eq!(object["rows"][0]["id"], "C-28");
        assert_eq!(object["rows"][0]["paper"], "chpp-nic");
        assert_eq!(object["rows"][0]["where"], "3.4, Tab. 2");
        assert_eq!(object["rows"][0]["state"], "shown");
        assert_eq!(object["rows"][0]["tests"][0], "crates/wire/src/chain.rs::one");
        assert_eq!(object["rows"][0]["properties"][0], "hardware/x/formal/x.svh::p_x");
        assert_eq!(object["rows"][0]["cited_at"][0], "crates/wire/src/chain.rs:9");
        assert_eq!(object["totals"]["shown"], 1);
        assert_eq!(object["problems"].as_array().unwrap().len(), 0);
    }
}
