//! A paper with its experiments.

use std::fmt::Write;

use bellwire_model::experiment::{EXPLAINED_ABOVE, Report, Role, Sensitivity};
use bellwire_model::markup::escaped;

use super::chart::scale::number;
use super::chart::{self, Chart, Table};
use super::place_of;
use super::words::{count, linked};
use crate::Paper;
use crate::contradictions::{Contradiction, contradictions as all_contradictions};
use crate::experiments::{Failure, Ran};

/// A paper's part of the page.
pub fn write(out: &mut String, Ran { paper, reports, failures }: &Ran) -> std::fmt::Result {
    writeln!(
        out,
        "<section id=\"{paper}\" class=\"paper\" aria-labelledby=\"{paper}-title\">\n<h2 id=\"{paper}-title\">{}</h2>\n<p>{}</p>\n\
         <ul class=\"experiments\">",
        paper.title(),
        escaped(paper.summary())
    )?;
    for Report { id, title, .. } in reports {
        let title = escaped(title);
        writeln!(out, "<li><a href=\"#{}\">{id}</a> {title}</li>", place_of(*paper, id))?;
    }
    writeln!(out, "</ul>")?;
    contradictions(out, *paper)?;
    for Failure { id, title, error } in failures {
        writeln!(
            out,
            "<p class=\"miss\">{id} ({}) could not be run: {}</p>",
            escaped(title),
            escaped(error)
        )?;
    }
    for report in reports {
        experiment(out, *paper, report)?;
    }
    writeln!(out, "</section>")
}

/// The paper's contradictions, and the models' choices.
fn contradictions(out: &mut String, paper: Paper) -> std::fmt::Result {
    let of_paper = || all_contradictions().iter().filter(|known| known.paper == paper);
    if of_paper().next().is_none() {
        return Ok(());
    }
    writeln!(
        out,
        "<details class=\"contradictions\"><summary>Where the paper contradicts itself: {}</summary><dl>",
        count(of_paper().count(), "place")
    )?;
    for Contradiction { place, says, taken, .. } in of_paper() {
        writeln!(
            out,
            "<dt>{} <span class=\"quiet\">({})</span></dt><dd>Taken: {}</dd>",
            linked(says),
            escaped(place),
            linked(taken)
        )?;
    }
    writeln!(out, "</dl></details>")
}

fn experiment(out: &mut String, paper: Paper, report: &Report) -> std::fmt::Result {
    let Report { id, title, rows, .. } = report;
    let place = place_of(paper, id);
    writeln!(
        out,
        "<section id=\"{place}\" class=\"experiment\" aria-labelledby=\"{place}-title\">\n<h3 id=\"{place}-title\">{id}: {}</h3>\n\
         <p class=\"quiet\">{}. Rows: {}. <code>bellwire paper {paper} {id}</code></p>",
        escaped(title),
        standing(report),
        linked(rows)
    )?;
    writeln!(out, "<div class=\"charts\">")?;
    for (count, drawing) in (1..).zip(chart::charts(report)) {
        chart(out, &format!("{place}-{count}"), &drawing)?;
    }
    writeln!(out, "</div>")?;
    claims(out, report)?;
    explanations(out, report)?;
    if !report.notes.is_empty() {
        writeln!(out, "<h4>Notes</h4>\n<ul>")?;
        for note in &report.notes {
            writeln!(out, "<li>{}</li>", linked(note))?;
        }
        writeln!(out, "</ul>")?;
    }
    for Sensitivity { of, without_effect, with_effect, rests_on, not_tried } in &report.sensitivity
    {
        writeln!(out, "<details><summary>What {} depends on</summary><dl>", escaped(of))?;
        for (what, list) in [
            ("changes something", with_effect),
            ("of that, chosen or calibrated by us", rests_on),
            ("changes nothing", without_effect),
            ("was not tried", not_tried),
        ] {
            if !list.is_empty() {
                writeln!(out, "<dt>{what}</dt><dd>{}</dd>", escaped(&list.join(", ")))?;
            }
        }
        writeln!(out, "</dl></details>")?;
    }
    writeln!(out, "</section>")
}

/// The result in a few words.
fn standing(report: &Report) -> String {
    let compared = |role| {
        let values = report.values.iter().filter(move |value| value.role == role);
        values.filter(|value| value.error_percent.is_some())
    };
    let predicted = compared(Role::Predicted).count();
    let misses = compared(Role::Predicted).filter(|value| value.misses()).count();
    let holding = report.claims.iter().filter(|claim| claim.holds).count();
    let mut parts = vec![count(report.values.len(), "value")];
    if predicted > 0 {
        let misses = match misses {
            0 => format!("all within {EXPLAINED_ABOVE} %"),
            misses => format!("{misses} of them more than {EXPLAINED_ABOVE} % off"),
        };
        parts.push(format!("{predicted} predicted and in the paper, {misses}"));
    }
    for role in [Role::Calibrated, Role::Input, Role::Formula, Role::OwnFormula, Role::Derived] {
        match compared(role).count() {
            0 => {}
            values => parts.push(format!("{values} {}", role.name())),
        }
    }
    let drawn = report.values.iter().filter(|value| value.interval.is_some()).count();
    if drawn > 0 {
        parts.push(format!("{drawn} of a random load"));
    }
    if !report.claims.is_empty() {
        parts.push(format!("{holding} of {} hold", count(report.claims.len(), "statement")));
    }
    parts.join("; ")
}

/// A chart with its title, its keys and its table. `place` is its id.
pub fn chart(out: &mut String, place: &str, chart: &Chart) -> std::fmt::Result {
    let title = escaped(&chart.title);
    writeln!(
        out,
        "<figure id=\"{place}\"><figcaption id=\"{place}-title\">{title}</figcaption>\n{}",
        chart.inline(&format!("{place}-title"))
    )?;
    writeln!(out, "<ul class=\"keys\">")?;
    for (at, key) in chart.keys.iter().enumerate() {
        let (picture, text) = (key.picture(), escaped(&key.text()));
        match chart.has_curves {
            true => writeln!(
                out,
                "<li><button type=\"button\" class=\"key\" aria-pressed=\"true\" data-series=\"{at}\">{picture} {text}</button></li>"
            )?,
            false => writeln!(out, "<li>{picture} {text}</li>")?,
        }
    }
    writeln!(out, "</ul>\n<details><summary>Numbers</summary>")?;
    table(out, &chart.title, &chart.table)?;
    writeln!(out, "</details></figure>")
}

fn table(out: &mut String, title: &str, Table { head, rows }: &Table) -> std::fmt::Result {
    let title = escaped(title);
    writeln!(
        out,
        "<div class=\"scroll\" role=\"region\" aria-label=\"Numbers of: {title}\" tabindex=\"0\"><table><thead><tr>"
    )?;
    for heading in head {
        write!(out, "<th scope=\"col\">{}</th>", escaped(heading))?;
    }
    writeln!(out, "</tr></thead><tbody>")?;
    for row in rows {
        let mut cells = row.iter();
        let first = cells.next().map(String::as_str).unwrap_or_default();
        write!(out, "<tr><th scope=\"row\">{}</th>", escaped(first))?;
        for cell in cells {
            let is_number = cell.starts_with(|c: char| c.is_ascii_digit() || "+-".contains(c));
            let class = if is_number { "" } else { " class=\"text\"" };
            write!(out, "<td{class}>{}</td>", escaped(cell))?;
        }
        writeln!(out, "</tr>")?;
    }
    writeln!(out, "</tbody></table></div>")
}

fn claims(out: &mut String, report: &Report) -> std::fmt::Result {
    if report.claims.is_empty() {
        return Ok(());
    }
    writeln!(out, "<h4>Statements of the paper</h4>\n<ul class=\"claims\">")?;
    for claim in &report.claims {
        let (class, verdict) =
            if claim.holds { ("good", "holds") } else { ("miss", "does not hold") };
        let why = claim.explanation.as_ref().map_or(String::new(), |why| {
            format!("<br/><span class=\"quiet\">{}</span>", linked(why))
        });
        let tries = match (claim.tries, claim.bound()) {
            (Some(tries), Some(bound)) => format!(
                "<br/><span class=\"quiet\">In each of {tries} tries; at 95 %, fewer than {} of \
                 all are exceptions.</span>",
                number(bound)
            ),
            _ => String::new(),
        };
        writeln!(
            out,
            "<li><span class=\"verdict {class}\">{verdict}</span> {}{tries}{why}</li>",
            linked(&claim.claim)
        )?;
    }
    writeln!(out, "</ul>")
}

/// Why values differ: each reason once, with its values.
fn explanations(out: &mut String, report: &Report) -> std::fmt::Result {
    let mut reasons: Vec<(Option<&str>, Vec<&str>)> = Vec::new();
    for value in report.values.iter().filter(|value| value.misses()) {
        let why = value.explanation.as_deref();
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, values)) => values.push(&value.what),
            None => reasons.push((why, vec![&value.what])),
        }
    }
    if reasons.is_empty() {
        return Ok(());
    }
    writeln!(out, "<h4>Why values differ</h4>\n<dl>")?;
    for (why, values) in reasons {
        let why =
            why.map_or("<strong class=\"miss\">No reason is known.</strong>".to_owned(), linked);
        writeln!(out, "<dt>{}</dt><dd>{why}</dd>", escaped(&values.join("; ")))?;
    }
    writeln!(out, "</dl>")
}
