//! The rows as a page for readers, `docs/feature-rows.md`, without states and tests. Those would
//! change the page with every commit, and `bellwire paper rows` prints them.

use std::fmt::Write;

use crate::{Paper, Row, rows};

/// Where the page lies, from the top of the checkout.
pub const DOCUMENT_PATH: &str = "docs/feature-rows.md";

/// The page in Markdown.
pub fn feature_rows_markdown() -> String {
    let mut page = String::from(OPENING);
    for paper in Paper::ALL {
        let belonging = rows().iter().filter(|row| row.paper == paper);
        let _ = write!(page, "\n## {} (`{}`)\n\n", paper.title(), paper.name());
        page.push_str("| id | feature | works when | where |\n|---|---|---|---|\n");
        for row in belonging {
            page.push_str(&table_line(row));
        }
    }
    page
}

const OPENING: &str = "\
<!-- Written by `make docs` from crates/papers/rows.toml; change that file, not this one. -->

# Feature rows

Bellwire joins five published systems. Here is every feature, mechanism, limit and experiment that
they describe, and every system that they compare themselves with, one row each. *Works when* says
what somebody outside can observe; figures in it are the paper's own. *Where* is the place in the
paper.

Code cites a row beside the mechanism, and a test that shows it says so (see CONTRIBUTING.md). To
see which rows are shown by which tests, which are only cited, and which are open, run
`bellwire paper rows` in a checkout.
";

fn table_line(row: &Row) -> String {
    let mut observation = cell(&row.works_when);
    if let Some(note) = &row.note {
        let _ = write!(observation, " *Note: {}*", cell(note));
    }
    format!("| {} | {} | {observation} | {} |\n", row.id, cell(&row.title), cell(&row.place))
}

/// A bar would end the cell, an asterisk would turn the text to italics.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('*', "\\*")
}
