//! `bellwire paper all`: every experiment of every paper, as a table, as one page, as drawings.

use crate::command::{Outcome, page_name, print_json, write_file};
use anyhow::{Context, Result};
use bellwire_papers::experiments::{MODELLED, Ran, Tally, run_all};
use bellwire_papers::page::{self, Page};
use bellwire_papers::{BoardError, Query, scoreboard};
use indicatif::{ProgressBar, ProgressStyle};
use std::num::NonZero;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub struct Arguments {
    /// Writes one self-contained page with all charts, numbers and rows to this file
    #[arg(long, value_name = "FILE", value_parser = page_name)]
    html: Option<PathBuf>,
    /// Writes each chart into this folder, as a separate drawing
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
    /// One JSON array with all reports instead of a table
    #[arg(long)]
    json: bool,
}

/// Runs all experiments and writes the requested files; fails if one could not run, or misses its
/// paper without an explanation.
pub fn run(Arguments { html, svg, json }: &Arguments) -> Result<Outcome> {
    if let Some(folder) = svg {
        // Before the work: a bad folder must not cost a minute's results.
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    }
    let papers = run_with_bar();
    if let Some(file) = html {
        write_page(file, &papers)?;
    }
    if let Some(folder) = svg {
        for named in page::charts(&papers) {
            write_file(&folder.join(format!("{}.svg", named.name)), named.chart.file())?;
        }
    }
    let tallies: Vec<Tally> = papers.iter().map(Ran::tally).collect();
    if *json {
        print_json(&papers)?;
    } else {
        print_table(&tallies);
        tell_of_misses(&papers);
        for file in [html, svg].into_iter().flatten() {
            println!("wrote {}", file.display());
        }
    }
    Ok(Outcome::done_if(tallies.iter().all(Tally::is_sound)))
}

fn run_with_bar() -> Vec<Ran> {
    let threads = std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
    let all: usize = MODELLED.iter().map(|(_, experiments)| experiments.len()).sum();
    let bar = ProgressBar::new(all as u64);
    let template = "{bar:30} {pos} of {len} experiments, {elapsed}  {msg}";
    bar.set_style(
        ProgressStyle::with_template(template)
            .unwrap_or_else(|error| unreachable!("the template is a constant: {error}")),
    );
    bar.enable_steady_tick(std::time::Duration::from_millis(200));
    let papers = run_all(&MODELLED, threads, |paper, experiment| {
        bar.set_message(format!("{paper} {}", experiment.id));
        bar.inc(1);
    });
    bar.finish_and_clear();
    papers
}

/// Without a checkout the page has the rows, but not their states.
fn write_page(file: &Path, papers: &[Ran]) -> Result<()> {
    let board = match scoreboard(&std::env::current_dir()?, &Query::default()) {
        Ok(board) => Some(board),
        Err(BoardError::NotACheckout(_)) => None,
        Err(error) => return Err(error.into()),
    };
    write_file(file, page::html(&Page { papers, board: board.as_ref() }))
}

fn print_table(tallies: &[Tally]) {
    println!(
        "{:<17}{:>12}{:>8}{:>12}{:>7}{:>11}{:>12}{:>11}{:>13}{:>9}{:>13}{:>14}   furthest",
        "paper",
        "experiments",
        "values",
        "calibrated",
        "given",
        "predicted",
        "within 5 %",
        "explained",
        "own formula",
        "derived",
        "unexplained",
        "claims hold"
    );
    for tally in tallies {
        let furthest = tally.worst.as_ref().map_or("-".to_owned(), |worst| {
            format!("{:+.1} % {}: {}", worst.error_percent, worst.experiment, worst.what)
        });
        println!(
            "{:<17}{:>12}{:>8}{:>12}{:>7}{:>11}{:>12}{:>11}{:>13}{:>9}{:>13}{:>14}   {furthest}",
            tally.paper.name(),
            tally.experiments,
            tally.values,
            tally.calibrated.values,
            tally.given.values,
            tally.predicted.values,
            tally.predicted.within,
            tally.predicted.explained,
            tally.own_formula.values,
            tally.derived.values,
            tally.unexplained,
            format!("{} of {}", tally.holding, tally.claims),
        );
    }
}

fn tell_of_misses(papers: &[Ran]) {
    for Ran { paper, reports, failures } in papers {
        for failure in failures {
            println!("{paper} {} could not be run: {}", failure.id, failure.error);
        }
        for report in reports {
            for what in report.unexplained() {
                println!("{paper} {} misses without a reason: {what}", report.id);
            }
        }
    }
}
