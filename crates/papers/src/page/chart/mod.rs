//! Charts: one drawing for the page and for a separate file, with its table of numbers.
//!
//! A drawing is 420 units wide, so its text is readable on a phone; a wide page puts two side by
//! side. Every mark is a group of class `point` with a `title`, for mouse, keyboard and screen
//! reader.

mod curves;
mod mark;
mod pairs;
pub mod scale;
mod scatter;

use bellwire_model::experiment::{Origin, Report};
use bellwire_model::markup::escaped;
use std::fmt::Write;

pub use curves::curves;
use mark::{colour, mark, origin_name};
use scale::Tick;
pub use scatter::scatter;

/// Width of every drawing.
pub const WIDTH: f64 = 420.0;

/// Strokes and text of a drawing, in the colours of [`LIGHT`] or [`DARK`].
pub const STYLE: &str = include_str!("chart.css");

/// Colours on white, for screens and paper.
pub const LIGHT: &str = "\
--ink: #1d2126; --quiet: #55606b; --paper: #ffffff; --band: #f4f6f8; --line: #dfe3e8; --axis: #8a949e; --miss: #b3261e; --good: #1f7a4c;
--link: #1d5aa8; --c0: #2563ad; --c1: #c2491d; --c2: #1f7a4c; --c3: #7d3fa8; --c4: #8a6500; --c5: #04747f; --c6: #ad2a62; --c7: #55606b;";

/// Colours on black.
pub const DARK: &str = "\
--ink: #e4e8ec; --quiet: #a3aeb9; --paper: #14181d; --band: #1b2127; --line: #2c343d; --axis: #74808c; --miss: #ff8a80; --good: #5cc98f;
--link: #82b4f5; --c0: #6fabf0; --c1: #ee8d63; --c2: #5cc98f; --c3: #c593ea; --c4: #dcb64a; --c5: #4cc6d2; --c6: #f083b2; --c7: #a9b4bf;";

/// A chart: the drawing, the meaning of its marks, and the numbers.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Its title.
    pub title: String,
    /// The meaning of its marks, in the order of the drawing.
    pub keys: Vec<Key>,
    /// Whether each key is a curve that can be hidden; otherwise all marks belong together.
    pub has_curves: bool,
    /// The numbers.
    pub table: Table,
    body: String,
    height: f64,
}

/// A mark and its meaning.
#[derive(Clone, Debug)]
pub struct Key {
    /// Name of the curve, or meaning of the mark.
    pub name: String,
    /// The number of its colour.
    pub colour: usize,
    /// The origin of its points.
    pub origin: Origin,
}

/// Numbers as text, under headings.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// A heading for each column.
    pub head: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<String>>,
}

/// The charts of an experiment: its figures, then its values beside the paper's. If there are
/// figures, only values that the paper gives too are drawn again.
pub fn charts(report: &Report) -> Vec<Chart> {
    let mut charts: Vec<Chart> = report.figures.iter().map(curves).collect();
    charts.extend(pairs::pairs(report, !report.figures.is_empty()));
    charts
}

impl Key {
    /// The key in words.
    pub fn text(&self) -> String {
        match self.name.is_empty() {
            true => origin_name(self.origin).to_owned(),
            false => format!("{} ({})", self.name, origin_name(self.origin)),
        }
    }

    /// A small drawing of the mark, at this position.
    fn sample(&self, x: f64, y: f64) -> String {
        format!("<g class=\"{}\">{}</g>", colour(self.colour), mark(self.origin, x, y))
    }

    /// The mark as a separate picture.
    pub fn picture(&self) -> String {
        format!(
            "<svg class=\"chart\" width=\"16\" height=\"16\" viewBox=\"0 0 16 16\" aria-hidden=\"true\">{}</svg>",
            self.sample(8.0, 8.0)
        )
    }
}

impl Chart {
    /// The drawing for a page that has this chart's title beside it and [`STYLE`] in its head.
    /// `labelled_by` is the id of that title.
    pub fn inline(&self, labelled_by: &str) -> String {
        format!(
            "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {:.0}\" role=\"group\" aria-roledescription=\"chart\" \
             aria-labelledby=\"{labelled_by}\" tabindex=\"0\">\n{}</svg>",
            self.height, self.body
        )
    }

    /// The drawing as a separate file, with title and keys.
    pub fn file(&self) -> String {
        const TOP: f64 = 34.0;
        const KEY: f64 = 18.0;
        let height = TOP + self.height + 8.0 + KEY * self.keys.len() as f64;
        let title = escaped(&self.title);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" width=\"{:.0}\" height=\"{:.0}\" \
             viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\">\n<title>{title}</title>\n<style>\n.chart {{ {LIGHT} }}\n\
             @media (prefers-color-scheme: dark) {{ .chart {{ {DARK} }} }}\n{STYLE}</style>\n\
             <rect class=\"paper\" width=\"{WIDTH}\" height=\"{height:.0}\"/>\n\
             <text class=\"heading\" x=\"8\" y=\"22\">{title}</text>\n<g transform=\"translate(0 {TOP})\">\n{}</g>\n",
            WIDTH * 1.5,
            height * 1.5,
            self.body
        );
        for (line, key) in self.keys.iter().enumerate() {
            let y = TOP + self.height + KEY * (line as f64 + 0.5);
            // Writing into a string cannot fail.
            let _ = writeln!(
                out,
                "{}<text x=\"30\" y=\"{:.1}\">{}</text>",
                key.sample(18.0, y),
                y + 4.0,
                escaped(&key.text())
            );
        }
        out.push_str("</svg>\n");
        out
    }
}

/// Text truncated to the available room.
fn cut(text: &str, letters: usize) -> String {
    if text.chars().count() <= letters {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(letters.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// The line and the label of a tick on the horizontal axis.
fn upright(x: f64, top: f64, bottom: f64, tick: &Tick) -> String {
    let (below, label) = (bottom + 16.0, escaped(&tick.label));
    format!(
        "<path class=\"line\" d=\"M{x:.1} {top}V{bottom}\"/>\
         <text class=\"tick middle\" x=\"{x:.1}\" y=\"{below:.1}\">{label}</text>\n"
    )
}

/// A point with a tooltip.
fn point(title: &str, marks: &str) -> String {
    format!("<g class=\"point\"><title>{}</title>{marks}</g>\n", escaped(title))
}
