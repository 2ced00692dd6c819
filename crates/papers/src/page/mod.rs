//! The report: all experiments of all papers and the scoreboard, as one self-contained page.
//!
//! - [`chart`] draws figures and values as SVG, and keeps the table behind each drawing;
//! - `overview` sums up each paper;
//! - `section` is a paper with its experiments;
//! - `scoreboard` lists the feature rows;
//! - `words` turns text into markup, with a link for each row that it names.
//!
//! The page is both HTML and XML, so a test can read it with a strict parser. All content is there
//! without the script, which adds tooltips, hiding curves, searching rows, and the choice between
//! light and dark.

pub mod chart;
mod overview;
mod scoreboard;
mod section;
mod words;

use std::fmt::Write;

use crate::experiments::Ran;
use crate::{Board, Paper};
use chart::{Chart, DARK, LIGHT};

/// The content of the page.
pub struct Page<'a> {
    /// The papers, with the results of their experiments.
    pub papers: &'a [Ran],
    /// The scoreboard with all rows; `None` without a checkout, and then rows have no state.
    pub board: Option<&'a Board>,
}

/// A chart with the name of its file, without ending.
pub struct Named {
    /// For instance `damq-pd-rate-1`.
    pub name: String,
    /// The chart; its title names paper and experiment.
    pub chart: Chart,
}

/// Every chart of the page, in its order.
pub fn charts(papers: &[Ran]) -> Vec<Named> {
    let mut named = vec![Named { name: "all-errors".to_owned(), chart: overview::errors(papers) }];
    for Ran { paper, reports, .. } in papers {
        for report in reports {
            for (count, mut chart) in (1..).zip(chart::charts(report)) {
                chart.title = format!("{}, {}: {}", paper.title(), report.id, chart.title);
                named.push(Named { name: format!("{paper}-{}-{count}", report.id), chart });
            }
        }
    }
    named
}

/// The page. The same reports and the same rows give the same bytes.
pub fn html(page: &Page<'_>) -> String {
    let mut out = String::new();
    // Writing into a string cannot fail.
    let _ = write(&mut out, page);
    out
}

fn write(out: &mut String, page: &Page<'_>) -> std::fmt::Result {
    head(out)?;
    contents(out, page.papers)?;
    writeln!(out, "<main id=\"content\">")?;
    overview::write(out, page)?;
    for ran in page.papers {
        section::write(out, ran)?;
    }
    scoreboard::write(out, page)?;
    let version = env!("CARGO_PKG_VERSION");
    writeln!(
        out,
        "</main>\n<footer><p>Written by <code>bellwire paper all --html</code>, version {version}. The models are deterministic: whoever runs the \
         command again gets the same page.</p></footer>\n\
         <p id=\"told\" class=\"unseen\" aria-live=\"polite\"></p>\n<div id=\"tip\" aria-hidden=\"true\" hidden=\"hidden\"></div>\n\
         <script>//<![CDATA[\n{}//]]></script>\n</body>\n</html>",
        include_str!("page.js")
    )
}

fn head(out: &mut String) -> std::fmt::Result {
    // The policy makes the browser itself prevent any download.
    writeln!(
        out,
        "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<meta name=\"color-scheme\" content=\"light dark\"/>\n\
         <title>Bellwire: five papers, reproduced</title>\n<style>\n\
         :root {{ {LIGHT} }}\n\
         @media (prefers-color-scheme: dark) {{ :root:not([data-theme=light]) {{ {DARK} }} }}\n\
         :root[data-theme=dark] {{ {DARK} }}\n\
         @media print {{ :root, :root:not([data-theme=light]) {{ {LIGHT} }} }}\n\
         {}{}</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#content\">To the content</a>",
        include_str!("page.css"),
        chart::STYLE
    )
}

/// Title, choice of theme, and the table of contents.
fn contents(out: &mut String, papers: &[Ran]) -> std::fmt::Result {
    writeln!(
        out,
        "<header><h1>Five papers, reproduced</h1>\n<button type=\"button\" id=\"theme\" hidden=\"hidden\">Dark</button></header>\n\
         <nav aria-label=\"Papers\"><ul>\n<li><a href=\"#overview\">Overview</a></li>"
    )?;
    for Ran { paper, .. } in papers {
        writeln!(out, "<li><a href=\"#{paper}\">{}</a></li>", paper.title())?;
    }
    writeln!(out, "<li><a href=\"#rows\">Feature rows</a></li>\n</ul></nav>")
}

/// The id of an experiment's part of the page.
fn place_of(paper: Paper, experiment: &str) -> String {
    format!("{paper}-{experiment}")
}
