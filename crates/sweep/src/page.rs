//! The results of a sweep as one page that opens offline: each figure against each axis, the Pareto
//! front, and how much of a figure each axis explains.

use crate::effect::{effect, numbered};
use crate::front::front;
use crate::{Cell, Row, Sweep};
use bellwire_model::experiment::{Axis, Figure, Origin, Series};
use bellwire_model::markup::escaped;
use bellwire_papers::page::chart::scale::number;
use bellwire_papers::page::chart::{Chart, Table, scatter};
use bellwire_papers::page::{frame, write_chart};
use std::fmt::Write;

/// Points that a chart draws, at most: a browser becomes slow with more.
const DRAWN: usize = 1000;

/// Points of the front that are listed, at most.
const LISTED: usize = 50;

/// Values of an axis that a table lists, at most; more are divided into as many ranges.
const GROUPS: usize = 16;

/// A column as numbers, over all points that have results.
struct Numbers {
    name: String,
    values: Vec<f64>,
    /// The texts behind the numbers, if the column has texts.
    words: Vec<String>,
}

/// Each figure against each axis, over the points that have results.
pub fn charts(sweep: &Sweep, rows: &[Row]) -> Vec<Chart> {
    let cells = cells(sweep, rows);
    let (axes, figures) = numbers(sweep, &cells);
    let of = |figure| axes.iter().map(move |axis| drawn(figure, axis));
    figures.iter().flat_map(of).collect()
}

/// The columns of each point that has results.
fn cells(sweep: &Sweep, rows: &[Row]) -> Vec<Vec<Cell>> {
    rows.iter().filter(|row| row.error.is_none()).map(|row| sweep.cells(row)).collect()
}

/// The axes and the figures.
fn numbers(sweep: &Sweep, cells: &[Vec<Cell>]) -> (Vec<Numbers>, Vec<Numbers>) {
    let columns = sweep.columns();
    let column = |at: usize| Numbers::of(&columns[at].name, cells.iter().map(|row| &row[at]));
    let axes_end = 1 + sweep.axes().len();
    let figures = (0..sweep.quantities().len()).map(|at| column(axes_end + 1 + at));
    ((1..axes_end).map(column).collect(), figures.collect())
}

/// The page. The same results give the same bytes.
pub fn html(sweep: &Sweep, rows: &[Row]) -> String {
    let mut out = String::new();
    // Writing into a string cannot fail.
    let _ = write(&mut out, sweep, rows);
    out
}

fn write(out: &mut String, sweep: &Sweep, rows: &[Row]) -> std::fmt::Result {
    let (cells, columns) = (cells(sweep, rows), sweep.columns());
    let column = |at: usize| Numbers::of(&columns[at].name, cells.iter().map(|row| &row[at]));
    let (axes, figures) = numbers(sweep, &cells);
    let objectives: Vec<(Numbers, bool)> = sweep
        .objectives()
        .iter()
        .filter_map(|(name, is_high)| {
            Some((column(columns.iter().position(|of| of.name == *name)?), *is_high))
        })
        .collect();

    let heading = format!("{} under the load {}", sweep.model(), sweep.load());
    let links = [
        ("points", "Points"),
        ("front", "Pareto front"),
        ("effects", "Sensitivity"),
        ("file", "The sweep"),
    ];
    let links = links.map(|(place, text)| (place.to_owned(), text.to_owned()));
    let title = format!("Bellwire sweep: {heading}");
    frame::open(out, &escaped(&title), &escaped(&heading), ("Parts", &links))?;
    overview(out, sweep, rows)?;
    points(out, &axes, &figures)?;
    pareto(
        out,
        &objectives,
        &cells,
        &columns.iter().map(|of| of.name.as_str()).collect::<Vec<_>>(),
    )?;
    effects(out, &axes, &figures)?;
    writeln!(
        out,
        "<section id=\"file\"><h2>The sweep</h2>\n<pre class=\"scroll\"><code>{}</code></pre></section>",
        sweep.text().lines().map(escaped).collect::<Vec<_>>().join("\n")
    )?;
    let footer = format!(
        "Written by <code>bellwire model sweep --html</code>, version {}. The model is deterministic: the same file gives the \
         same points.",
        crate::VERSION
    );
    frame::close(out, &footer)
}

fn overview(out: &mut String, sweep: &Sweep, rows: &[Row]) -> std::fmt::Result {
    let failed: Vec<&Row> = rows.iter().filter(|row| row.error.is_some()).collect();
    writeln!(
        out,
        "<section id=\"overview\"><p>{} points, identity <code>{}</code>.</p>",
        rows.len(),
        sweep.identity()
    )?;
    if let Some(first) = failed.first() {
        writeln!(
            out,
            "<p class=\"miss\">{} points failed and are left out. The first is point {}: {}</p>",
            failed.len(),
            first.point,
            escaped(first.error.as_deref().unwrap_or_default())
        )?;
    }
    writeln!(out, "</section>")
}

/// Each figure against each axis.
fn points(out: &mut String, axes: &[Numbers], figures: &[Numbers]) -> std::fmt::Result {
    let count = figures.first().map_or(0, |figure| figure.values.len());
    let thinned = match count > DRAWN {
        true => format!(" Of {count} points, {DRAWN} are drawn; tables and all below count all."),
        false => String::new(),
    };
    writeln!(
        out,
        "<section id=\"points\"><h2>Points</h2>\n<p>Each figure against each parameter.{thinned}</p>\n<div class=\"charts\">"
    )?;
    for (at, figure) in figures.iter().enumerate() {
        for (number_of, axis) in axes.iter().enumerate() {
            write_chart(out, &format!("points-{at}-{number_of}"), &drawn(figure, axis))?;
        }
    }
    writeln!(out, "</div></section>")
}

/// A figure against an axis.
fn drawn(figure: &Numbers, axis: &Numbers) -> Chart {
    let drawing = Figure {
        title: format!("{} against {}", figure.name, axis.name),
        x: axis.axis(axis.is_by_ratio()),
        y: figure.axis(false),
        series: vec![series("point", thin(axis, figure))],
    };
    scatter(&drawing, &axis.words, summary(axis, figure))
}

/// Points that no other point beats, of each two objectives as a chart, of all as a table.
fn pareto(
    out: &mut String,
    objectives: &[(Numbers, bool)],
    cells: &[Vec<Cell>],
    names: &[&str],
) -> std::fmt::Result {
    writeln!(out, "<section id=\"front\"><h2>Pareto front</h2>")?;
    let goals: Vec<String> = objectives
        .iter()
        .map(|(of, is_high)| {
            let way = if *is_high { "high" } else { "low" };
            format!("{way} <code>{}</code>", escaped(&of.name))
        })
        .collect();
    if goals.is_empty() {
        return writeln!(out, "<p>Nothing says which points are good.</p></section>");
    }
    let signed = |of: &[&(Numbers, bool)], row: usize| {
        of.iter()
            .map(|(of, is_high)| if *is_high { -of.values[row] } else { of.values[row] })
            .collect()
    };
    let all: Vec<&(Numbers, bool)> = objectives.iter().collect();
    let values: Vec<Vec<f64>> = (0..cells.len()).map(|row| signed(&all, row)).collect();
    let is_on = front(&values);
    let on: Vec<usize> = (0..cells.len()).filter(|row| is_on[*row]).collect();
    let listed = match on.len() > LISTED {
        true => format!(" The first {LISTED} are listed."),
        false => String::new(),
    };
    writeln!(
        out,
        "<p>Good are {}. No other point is as good in all of it as one of these {} of {} points.{listed}</p>\n<div class=\"charts\">",
        goals.join(", "),
        on.len(),
        cells.len()
    )?;
    for (at, second) in objectives.iter().enumerate() {
        for (other, first) in objectives[..at].iter().enumerate() {
            let pair = [first, second];
            let values: Vec<Vec<f64>> = (0..cells.len()).map(|row| signed(&pair, row)).collect();
            let best: Vec<(f64, f64)> = front(&values)
                .into_iter()
                .enumerate()
                .filter(|(_, on)| *on)
                .map(|(row, _)| (first.0.values[row], second.0.values[row]))
                .collect();
            let drawing = Figure {
                title: format!("{} against {}", second.0.name, first.0.name),
                x: first.0.axis(false),
                y: second.0.axis(false),
                series: vec![
                    series("point", thin(&first.0, &second.0)),
                    series("front of these two", best),
                ],
            };
            let chart = scatter(&drawing, &first.0.words, summary(&first.0, &second.0));
            write_chart(out, &format!("front-{other}-{at}"), &chart)?;
        }
    }
    writeln!(
        out,
        "</div>\n<div class=\"scroll\" role=\"region\" aria-label=\"Pareto front\" tabindex=\"0\"><table><thead><tr>"
    )?;
    let shown = names.len() - 2;
    for name in &names[..shown] {
        write!(out, "<th scope=\"col\">{}</th>", escaped(name))?;
    }
    writeln!(out, "</tr></thead><tbody>")?;
    for row in on.iter().take(LISTED) {
        write!(out, "<tr>")?;
        for cell in &cells[*row][..shown] {
            let (class, text) = match cell {
                Cell::Text(text) => (" class=\"text\"", escaped(text)),
                Cell::Integer(value) => ("", value.to_string()),
                Cell::Real(value) => ("", number(*value)),
                Cell::Flag(yes) => (" class=\"text\"", yes.to_string()),
                Cell::Nothing => ("", "-".to_owned()),
            };
            write!(out, "<td{class}>{text}</td>")?;
        }
        writeln!(out, "</tr>")?;
    }
    writeln!(out, "</tbody></table></div></section>")
}

/// The share of each figure's variance that each axis explains alone.
fn effects(out: &mut String, axes: &[Numbers], figures: &[Numbers]) -> std::fmt::Result {
    writeln!(
        out,
        "<section id=\"effects\"><h2>Sensitivity</h2>\n<p>How much of a figure's variance each parameter explains alone (epsilon squared). \
         What is missing to 100 % is the work of several parameters together, or of the seeds.</p>\n\
         <div class=\"scroll\" role=\"region\" aria-label=\"Sensitivity\" tabindex=\"0\"><table><thead><tr><th scope=\"col\">parameter</th>"
    )?;
    for figure in figures {
        write!(out, "<th scope=\"col\">{}</th>", escaped(&figure.name))?;
    }
    writeln!(out, "</tr></thead><tbody>")?;
    for axis in axes {
        write!(out, "<tr><th scope=\"row\">{}</th>", escaped(&axis.name))?;
        for figure in figures {
            match effect(&axis.values, &figure.values) {
                Some(share) => {
                    let (width, percent) = (share * 100.0, share * 100.0);
                    write!(
                        out,
                        "<td><svg class=\"chart c0\" width=\"100\" height=\"10\" viewBox=\"0 0 100 10\" aria-hidden=\"true\">\
                         <rect class=\"full\" width=\"{width:.1}\" height=\"10\"/></svg> {percent:.0} %</td>"
                    )?;
                }
                None => write!(out, "<td>it is constant</td>")?,
            }
        }
        writeln!(out, "</tr>")?;
    }
    writeln!(out, "</tbody></table></div></section>")
}

impl Numbers {
    fn of<'a>(name: &str, cells: impl Iterator<Item = &'a Cell> + Clone) -> Numbers {
        let is_text = cells.clone().any(|cell| matches!(cell, Cell::Text(_) | Cell::Flag(_)));
        let word = |cell: &Cell| match cell {
            Cell::Text(text) => text.clone(),
            Cell::Flag(yes) => yes.to_string(),
            _ => "-".to_owned(),
        };
        let (values, words) = if is_text {
            let texts: Vec<String> = cells.map(word).collect();
            let values = numbered(texts.iter().map(String::as_str));
            let mut words = texts;
            words.sort();
            words.dedup();
            (values, words)
        } else {
            let value = |cell: &Cell| match cell {
                Cell::Integer(number) => *number as f64,
                Cell::Real(number) => *number,
                _ => f64::NAN,
            };
            (cells.map(value).collect(), Vec::new())
        };
        Numbers { name: name.to_owned(), values, words }
    }

    /// An axis of the drawing, logarithmic if that is asked for, or if its values span two decades.
    fn axis(&self, is_logarithmic: bool) -> Axis {
        let finite = || self.values.iter().copied().filter(|value| value.is_finite());
        let (low, high) = (finite().fold(f64::INFINITY, f64::min), finite().fold(0.0, f64::max));
        let is_wide = self.words.is_empty() && low > 0.0 && high / low >= 100.0;
        // An axis has a name for as long as the program runs; a page has few axes.
        let label: &'static str = self.name.clone().leak();
        match is_logarithmic || is_wide {
            true => Axis::logarithmic(label, ""),
            false => Axis::linear(label, ""),
        }
    }

    /// Whether the values of a parameter lie by ratio, as on a logarithmic scale: their median is
    /// nearer to the geometric than to the arithmetic mean of their ends. So a range with that
    /// scale is known, a sample of it, and also a list that doubles. Below four times the least,
    /// both scales look alike.
    fn is_by_ratio(&self) -> bool {
        let mut values = self.values.clone();
        values.retain(|value| value.is_finite());
        values.sort_by(f64::total_cmp);
        values.dedup();
        let [low, .., high] = values[..] else { return false };
        if !self.words.is_empty() || low <= 0.0 || high < 4.0 * low {
            return false;
        }
        let half = values.len() / 2;
        let median = (values[half] + values[values.len() - 1 - half]) / 2.0;
        (median - (low * high).sqrt()).abs() < (median - (low + high) / 2.0).abs()
    }

    fn text(&self, value: f64) -> String {
        self.words.get(value as usize).cloned().unwrap_or_else(|| number(value))
    }
}

fn series(name: &str, points: Vec<(f64, f64)>) -> Series {
    Series { name: name.to_owned(), origin: Origin::Model, points, half_widths: Vec::new() }
}

/// Evenly chosen points, if there are too many.
fn thin(x: &Numbers, y: &Numbers) -> Vec<(f64, f64)> {
    let all: Vec<(f64, f64)> = x.values.iter().copied().zip(y.values.iter().copied()).collect();
    match all.len() > DRAWN {
        true => (0..DRAWN).map(|at| all[at * all.len() / DRAWN]).collect(),
        false => all,
    }
}

/// Least, mean and most of a figure for each value or range of an axis.
fn summary(axis: &Numbers, figure: &Numbers) -> Table {
    let mut points: Vec<(f64, f64)> = axis
        .values
        .iter()
        .copied()
        .zip(figure.values.iter().copied())
        .filter(|(at, value)| at.is_finite() && value.is_finite())
        .collect();
    points.sort_by(|one, two| one.0.total_cmp(&two.0));
    let mut groups: Vec<&[(f64, f64)]> = points.chunk_by(|one, two| one.0 == two.0).collect();
    if groups.len() > GROUPS {
        groups = points.chunks(points.len().div_ceil(GROUPS)).collect();
    }
    let row = |group: &&[(f64, f64)]| {
        let (first, last) = (group[0].0, group[group.len() - 1].0);
        let place = match first == last {
            true => axis.text(first),
            false => format!("{} to {}", axis.text(first), axis.text(last)),
        };
        let values = || group.iter().map(|point| point.1);
        let least = values().fold(f64::INFINITY, f64::min);
        let most = values().fold(f64::NEG_INFINITY, f64::max);
        let mean = values().sum::<f64>() / group.len() as f64;
        vec![place, group.len().to_string(), number(least), number(mean), number(most)]
    };
    let head = [axis.name.as_str(), "points", "least", "mean", "most"].map(str::to_owned).into();
    Table { head, rows: groups.iter().map(row).collect() }
}
