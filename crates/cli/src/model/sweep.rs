//! `bellwire model sweep`: a run of a model for each point of a grid, a list or a sample.

mod engine;
mod results;

use super::read_file;
use crate::command::{Outcome, WrongUsage, page_name, print_json, write_file};
use anyhow::{Context, Result, anyhow};
use bellwire_model::system::SYSTEMS;
use bellwire_sweep::{EXAMPLE, Journal, Row, Sweep, page};
use engine::Engine;
use indicatif::{ProgressBar, ProgressStyle};
use results::Found;
use serde::Serialize;
use std::num::NonZero;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::time::Instant;

#[derive(clap::Args)]
pub struct Arguments {
    /// The sweep; `--example` prints one that explains itself
    #[arg(required_unless_present_any = ["example", "list"])]
    sweep: Option<PathBuf>,
    /// The file of results; the default has the name of the sweep, and ends in .parquet
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Runs only these points, such as 0..100, the last one excluded: a part of an array job
    #[arg(long, value_name = "FIRST..END", value_parser = points, conflicts_with = "join")]
    points: Option<Range<u64>>,
    /// Runs the points on a cluster, by the Python package: dask://HOST:PORT, ray://HOST:PORT,
    /// ray:HOST:PORT or ray:auto
    #[arg(long, value_name = "ADDRESS", conflicts_with = "join")]
    engine: Option<Engine>,
    /// Runs nothing, and joins the results of all parts
    #[arg(long, value_name = "PART", num_args = 1..)]
    join: Vec<PathBuf>,
    /// Writes one page that opens offline: points, Pareto front, sensitivity; also of results that
    /// are there
    #[arg(long, value_name = "FILE", value_parser = page_name)]
    html: Option<PathBuf>,
    /// Prints a sweep that explains every line
    #[arg(long, conflicts_with_all = ["sweep", "list"])]
    example: bool,
    /// Lists the loads of each model, with their settings and what they measure
    #[arg(long, conflicts_with = "sweep")]
    list: bool,
    /// One JSON object instead of lines
    #[arg(long)]
    json: bool,
}

/// What is told at the end.
#[derive(Serialize)]
struct Told<'a> {
    results: &'a Path,
    #[serde(skip_serializing_if = "Option::is_none")]
    html: Option<&'a Path>,
    points: u64,
    /// Those of a former run.
    kept: u64,
    failed: u64,
    seconds: f64,
    /// Of this machine.
    threads: usize,
}

pub fn run(arguments: &Arguments) -> Result<Outcome> {
    if arguments.example {
        print!("{EXAMPLE}");
        return Ok(Outcome::Done);
    }
    if arguments.list {
        return list(arguments.json);
    }
    let file = arguments.sweep.as_deref().ok_or_else(|| WrongUsage::error("give a file"))?;
    let sweep = Sweep::read(&read_file(file)?).map_err(super::in_file(file))?;
    let points = match &arguments.points {
        Some(points) => within(points, &sweep)?,
        None => 0..sweep.points(),
    };
    let out = arguments.out.clone().unwrap_or_else(|| match &arguments.points {
        Some(Range { start, .. }) => file.with_extension(format!("{start}-{}.parquet", points.end)),
        None => file.with_extension("parquet"),
    });
    let began = Instant::now();
    let (rows, kept, threads) = if arguments.join.is_empty() {
        sweep.within_limit(&points).map_err(super::in_file(file))?;
        complete(&sweep, &points, &out, arguments.engine.as_ref())?
    } else {
        // A file of something else is not overwritten.
        results::find(&out, &sweep, &points)?;
        let rows = results::join(&sweep, &arguments.join)?;
        results::write(&out, &sweep, &points, rows.iter())?;
        let kept = rows.len() as u64;
        (rows, kept, 0)
    };
    if let Some(file) = &arguments.html {
        write_file(file, page::html(&sweep, &rows)).with_context(|| {
            format!("the results are in {}, but there is no page", out.display())
        })?;
    }
    let failed = rows.iter().filter(|row| row.error.is_some()).count() as u64;
    let told = Told {
        results: &out,
        html: arguments.html.as_deref(),
        points: points.end - points.start,
        kept,
        failed,
        seconds: began.elapsed().as_secs_f64(),
        threads,
    };
    tell(&told, &rows, arguments.json)?;
    Ok(Outcome::done_if(failed == 0))
}

/// The rows of these points: from the results if they are whole, else by running what is missing.
/// Also returns how many were there before, and the threads that ran the others.
fn complete(
    sweep: &Sweep,
    points: &Range<u64>,
    out: &Path,
    engine: Option<&Engine>,
) -> Result<(Vec<Row>, u64, usize)> {
    match results::find(out, sweep, points)? {
        Found::Rows(rows) => {
            let kept = rows.len() as u64;
            // A run that was killed before its last step left one.
            let journal = Journal::beside(out);
            if journal.exists()
                && let Ok(journal) = Journal::open(&journal, sweep, points.clone())
            {
                let _ = journal.remove();
            }
            return Ok((rows, kept, 0));
        }
        Found::Nothing => {}
    }
    let mut journal = Journal::open(&Journal::beside(out), sweep, points.clone())?;
    let missing = journal.missing();
    let kept = points.end - points.start - missing.len() as u64;
    let bar = bar(kept + missing.len() as u64, kept);
    let mut failed = None;
    let keep = |row| {
        bar.inc(1);
        match journal.append(row) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    };
    let (threads, ran) = match engine {
        Some(engine) if !missing.is_empty() => (0, engine.run(sweep, &missing, keep)),
        _ => {
            let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
            bellwire_sweep::run(sweep, &missing, threads, keep);
            (threads, Ok(()))
        }
    };
    bar.finish_and_clear();
    if let Some(error) = failed {
        return Err(error.into());
    }
    ran?;
    results::write(out, sweep, points, journal.rows())?;
    let rows = journal.rows().cloned().collect();
    journal.remove().with_context(|| format!("cannot remove the journal of {}", out.display()))?;
    Ok((rows, kept, threads))
}

/// A bar on standard error, if that is a terminal.
fn bar(all: u64, kept: u64) -> ProgressBar {
    let template = "{elapsed_precise} {wide_bar} {pos} of {len} points, {per_sec}, {eta} to go";
    let style = ProgressStyle::with_template(template);
    let bar = ProgressBar::new(all);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_position(kept);
    // The rate and the time left count from here.
    bar.reset_eta();
    bar
}

fn tell(told: &Told<'_>, rows: &[Row], json: bool) -> Result<()> {
    if json {
        return print_json(told);
    }
    let Told { results, html, points, kept, failed, seconds, threads } = told;
    let ran = points - kept;
    match ran {
        0 => println!("{points} points, all of them from before"),
        _ => {
            let on = match threads {
                0 => "the cluster".to_owned(),
                _ => format!("{threads} cores"),
            };
            println!(
                "{points} points, {kept} of them from before; {ran} in {seconds:.1} s on {on}, {:.0} a second",
                ran as f64 / seconds
            );
        }
    }
    if let Some(row) = rows.iter().find(|row| row.error.is_some()) {
        let why = row.error.as_deref().unwrap_or_default();
        eprintln!(
            "bellwire: {failed} of {points} points failed, and the column `error` says why; the first is {}: {why}",
            row.point
        );
    }
    for file in std::iter::once(*results).chain(*html) {
        println!("wrote {}", file.display());
    }
    Ok(())
}

/// A range of points that the sweep has. The last part of an array job may end beyond it.
fn within(points: &Range<u64>, sweep: &Sweep) -> Result<Range<u64>> {
    let all = sweep.points();
    if points.start >= all {
        return Err(WrongUsage::error(format!(
            "there is no point {}: the sweep has {all}, counted from 0",
            points.start
        )));
    }
    Ok(points.start..points.end.min(all))
}

fn points(text: &str) -> Result<Range<u64>, String> {
    let form = || "write two numbers, such as 0..100".to_owned();
    let (first, end) = text.split_once("..").ok_or_else(form)?;
    let number = |text: &str| text.parse::<u64>().map_err(|_| form());
    let points = number(first)?..number(end)?;
    if points.is_empty() { Err("it has no points".to_owned()) } else { Ok(points) }
}

/// A load of a model, as it is listed.
#[derive(Serialize)]
struct Listed {
    model: &'static str,
    load: &'static str,
    title: &'static str,
    settings: toml::Table,
    measures: &'static [bellwire_model::trial::Quantity],
}

fn list(json: bool) -> Result<Outcome> {
    let mut all = Vec::new();
    for system in &SYSTEMS {
        for trial in system.loads {
            let mut defaults = (trial.defaults)(&[]).map_err(|error| anyhow!(error))?;
            let settings = match defaults.remove("load") {
                Some(toml::Value::Table(settings)) => settings,
                _ => toml::Table::new(),
            };
            let (load, title, measures) = (trial.name, trial.title, trial.quantities);
            all.push(Listed { model: system.name, load, title, settings, measures });
        }
    }
    if json {
        print_json(&all)?;
        return Ok(Outcome::Done);
    }
    for Listed { model, load, title, settings, measures } in all {
        println!("{model}, load \"{load}\": {title}");
        for (name, value) in settings {
            println!("    \"load.{name}\" = {value}");
        }
        for quantity in measures {
            println!("    {:<22}{}", quantity.name, quantity.what);
        }
    }
    Ok(Outcome::Done)
}
