//! The feature rows, with their state and tests where these are known.

use std::collections::BTreeMap;
use std::fmt::Write;

use bellwire_model::markup::escaped;

use super::words::{linked, rows_in};
use super::{Page, place_of};
use crate::board::Standing;
use crate::experiments::Ran;
use crate::{Board, Paper, Row, RowId, rows};

/// The last part of the page.
pub fn write(out: &mut String, Page { papers, board }: &Page<'_>) -> std::fmt::Result {
    writeln!(
        out,
        "<section id=\"rows\" aria-labelledby=\"rows-title\">\n<h2 id=\"rows-title\">Feature rows</h2>\n<p>Every feature, mechanism, limit and \
         experiment of the five papers, and every system that they compare themselves with. <em>Works when</em> says what somebody outside can \
         observe; figures in it are the paper's own. A row is <em>shown</em> if a test observes just that, <em>cited</em> if code names it only, else \
         <em>open</em>. {}</p>",
        match board {
            Some(board) => totals(board),
            None => "<strong>States and tests are missing here: they are read from the sources, and this page was written outside of a checkout. Run \
                     the command inside one to see them.</strong>"
                .to_owned(),
        }
    )?;
    search(out, board.is_some())?;
    let experiments = experiments_of(papers);
    for paper in Paper::ALL {
        writeln!(
            out,
            "<h3>{}</h3>\n<table class=\"board\"><caption class=\"unseen\">Rows of {0}</caption><thead><tr><th scope=\"col\">row</th>\
             <th scope=\"col\">state</th><th scope=\"col\">what</th><th scope=\"col\">shown by</th></tr></thead><tbody>",
            paper.title()
        )?;
        for row in rows().iter().filter(|row| row.paper == paper) {
            write_row(out, row, *board, experiments.get(&row.id).map_or(&[], Vec::as_slice))?;
        }
        writeln!(out, "</tbody></table>")?;
    }
    writeln!(out, "</section>")
}

fn totals(board: &Board) -> String {
    let totals = board.totals;
    let mut text = format!(
        "Of {} rows, {} are shown, {} cited and {} open.",
        board.rows.len(),
        totals.shown,
        totals.cited,
        totals.open
    );
    if !board.problems.is_empty() {
        text.push_str(&format!(
            " <strong class=\"miss\">{} citations are wrong; <code>bellwire paper rows</code> says which.</strong>",
            board.problems.len()
        ));
    }
    text
}

/// Input fields that filter the list; the script activates them.
fn search(out: &mut String, has_states: bool) -> std::fmt::Result {
    writeln!(
        out,
        "<form id=\"search\" hidden=\"hidden\" role=\"search\" aria-label=\"Rows\"><label>Words <input type=\"search\" id=\"words\"/></label>"
    )?;
    if has_states {
        writeln!(
            out,
            "<label>State <select id=\"state\"><option value=\"\">any</option><option>shown</option><option>cited</option>\
             <option>open</option></select></label>"
        )?;
    }
    writeln!(out, "<output id=\"found\"></output></form>")
}

/// For each row, the experiments that are about it.
fn experiments_of(papers: &[Ran]) -> BTreeMap<RowId, Vec<(Paper, &'static str)>> {
    let mut found: BTreeMap<RowId, Vec<(Paper, &'static str)>> = BTreeMap::new();
    for Ran { paper, reports, .. } in papers {
        for report in reports {
            for row in rows_in(report.rows) {
                found.entry(row).or_default().push((*paper, report.id));
            }
        }
    }
    found
}

fn write_row(
    out: &mut String,
    Row { id, title, works_when, place, note, reason, .. }: &Row,
    board: Option<&Board>,
    experiments: &[(Paper, &str)],
) -> std::fmt::Result {
    let standing = board.and_then(|board| board.rows.iter().find(|row| row.row.id == *id));
    let state = standing.map_or("-".to_owned(), |standing| standing.state.to_string());
    writeln!(
        out,
        "<tr id=\"{id}\" data-state=\"{state}\"><th scope=\"row\">{id}</th><td><span class=\"state {state}\">{state}</span></td>\
         <td><strong>{}</strong> <span class=\"quiet\">({})</span><br/>{}",
        escaped(title),
        escaped(place),
        linked(works_when)
    )?;
    if let Some(note) = note {
        writeln!(out, "<br/><em>{}</em>", linked(note))?;
    }
    write!(out, "</td><td>")?;
    for (paper, experiment) in experiments {
        let place = place_of(*paper, experiment);
        writeln!(out, "<a href=\"#{place}\">{paper} {experiment}</a><br/>")?;
    }
    if let Some(reason) = reason {
        writeln!(out, "Not shown, because: {}<br/>", linked(reason))?;
    }
    if let Some(Standing { tests, properties, .. }) = standing {
        list(out, tests)?;
        if !properties.is_empty() {
            writeln!(out, "Properties of gates:<br/>")?;
            list(out, properties)?;
        }
    }
    writeln!(out, "</td></tr>")
}

/// What shows a row. A few are visible, the others unfold.
fn list(out: &mut String, paths: &[String]) -> std::fmt::Result {
    const SEEN: usize = 3;
    let (seen, folded) = paths.split_at(if paths.len() > SEEN + 1 { SEEN } else { paths.len() });
    for path in seen {
        writeln!(out, "<code>{}</code><br/>", breakable(path))?;
    }
    if folded.is_empty() {
        return Ok(());
    }
    writeln!(out, "<details><summary>and {} more</summary>", folded.len())?;
    for path in folded {
        writeln!(out, "<code>{}</code><br/>", breakable(path))?;
    }
    writeln!(out, "</details>")
}

/// A path that may break after its slashes and colons.
fn breakable(path: &str) -> String {
    escaped(path).replace('/', "/<wbr/>").replace("::", "::<wbr/>")
}
