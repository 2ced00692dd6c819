//! The report: all experiments of all papers and the scoreboard, as one self-contained page.
//!
//! - [`frame`] is what every page has around its content;
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
pub mod frame;
mod overview;
mod scoreboard;
mod section;
mod words;

use crate::experiments::Ran;
use crate::{Board, Paper};
use chart::Chart;

pub use section::chart as write_chart;

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
    let link = |place: &dyn std::fmt::Display, text: &str| (place.to_string(), text.to_owned());
    let mut links = vec![link(&"overview", "Overview")];
    links.extend(page.papers.iter().map(|ran| link(&ran.paper, ran.paper.title())));
    links.push(link(&"rows", "Feature rows"));
    let title = "Bellwire: five papers, reproduced";
    frame::open(out, title, "Five papers, reproduced", ("Papers", &links))?;
    overview::write(out, page)?;
    for ran in page.papers {
        section::write(out, ran)?;
    }
    scoreboard::write(out, page)?;
    let version = env!("CARGO_PKG_VERSION");
    let footer = format!(
        "Written by <code>bellwire paper all --html</code>, version {version}. The models are deterministic: whoever runs the \
         command again gets the same page."
    );
    frame::close(out, &footer)
}

/// The id of an experiment's part of the page.
fn place_of(paper: Paper, experiment: &str) -> String {
    format!("{paper}-{experiment}")
}
