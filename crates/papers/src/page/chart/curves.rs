//! A figure as a drawing: curves over one axis.

use std::fmt::Write;

use bellwire_model::experiment::{Axis, Figure, Origin, Series};
use bellwire_model::markup::escaped;

use super::mark::COLOURS;
use super::scale::{Scale, number, with_interval};
use super::{Chart, Key, Table, WIDTH, colour, mark, origin_name, point, upright};

const TOP: f64 = 26.0;
const PLOT: f64 = 210.0;
const BOTTOM: f64 = TOP + PLOT;
const RIGHT: f64 = WIDTH - 16.0;
pub(super) const HEIGHT: f64 = BOTTOM + 44.0;

/// Draws a figure. Curves of one name share a colour, whatever their origin, so model and paper can
/// be compared.
pub fn curves(figure: &Figure) -> Chart {
    let Figure { title, x, y, series } = figure;
    let points = || series.iter().flat_map(|curve| &curve.points);
    let frame = Frame::new(
        Scale::new(x, points().map(|at| at.0)),
        Scale::new(y, series.iter().flat_map(extent)),
    );
    let mut names: Vec<&str> = Vec::new();
    let keys: Vec<Key> = series
        .iter()
        .map(|curve| {
            let known = names.iter().position(|name| *name == curve.name);
            let colour = known.unwrap_or_else(|| {
                names.push(&curve.name);
                names.len() - 1
            });
            Key { name: curve.name.clone(), colour, origin: curve.origin }
        })
        .collect();
    let mut body = frame.drawn(x, y);
    for (at, (curve, key)) in series.iter().zip(&keys).enumerate() {
        // Single points of a paper make no curve.
        let is_curve = !matches!(curve.origin, Origin::Published | Origin::Calibrated)
            || curve.points.len() > 2;
        body.push_str(&frame.series(figure, curve, key, at, is_curve));
    }
    let table = table(figure);
    Chart { title: title.clone(), keys, has_curves: true, table, body, height: HEIGHT }
}

/// The half-width of the interval of a point.
fn half_width(curve: &Series, point: usize) -> Option<f64> {
    curve.half_widths.get(point).copied()
}

/// The places of a curve on the vertical axis, with the ends of its intervals.
fn extent(curve: &Series) -> impl Iterator<Item = f64> {
    curve.points.iter().enumerate().flat_map(|(point, at)| {
        let half_width = half_width(curve, point).unwrap_or(0.0);
        [at.1 - half_width, at.1, at.1 + half_width]
    })
}

/// The axes, and the corner of the plot.
pub(super) struct Frame {
    x: Scale,
    y: Scale,
    left: f64,
}

impl Frame {
    pub(super) fn new(x: Scale, y: Scale) -> Frame {
        let longest = y.ticks().iter().map(|tick| tick.label.len()).max().unwrap_or(0);
        Frame { x, y, left: 18.0 + 7.0 * longest as f64 }
    }

    fn place(&self, (x, y): (f64, f64)) -> Option<(f64, f64)> {
        Some((self.x_at(self.x.place(x)?), BOTTOM - PLOT * self.y.place(y)?))
    }

    fn x_at(&self, place: f64) -> f64 {
        self.left + (RIGHT - self.left) * place
    }

    /// Lines, numbers and labels.
    pub(super) fn drawn(&self, x: &Axis, y: &Axis) -> String {
        let left = self.left;
        let mut out = format!(
            "<g aria-hidden=\"true\"><text x=\"4\" y=\"14\">{}</text>\n",
            escaped(&label(y))
        );
        for tick in self.y.ticks() {
            let Some(place) = self.y.place(tick.at) else { continue };
            let at = BOTTOM - PLOT * place;
            // Writing into a string cannot fail.
            let _ = writeln!(
                out,
                "<path class=\"line\" d=\"M{left:.1} {at:.1}H{RIGHT}\"/>\
                 <text class=\"tick end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                left - 6.0,
                at + 4.0,
                tick.label
            );
        }
        for tick in self.x.ticks() {
            let Some(place) = self.x.place(tick.at) else { continue };
            out.push_str(&upright(self.x_at(place), TOP, BOTTOM, tick));
        }
        let _ = writeln!(
            out,
            "<path class=\"axis\" d=\"M{left:.1} {TOP}V{BOTTOM}H{RIGHT}\"/>\
             <text class=\"middle\" x=\"{:.1}\" y=\"{:.1}\">{}</text></g>",
            (left + RIGHT) / 2.0,
            BOTTOM + 36.0,
            escaped(&label(x))
        );
        out
    }

    /// Points with their tooltips, and the line through them if they are a curve.
    pub(super) fn series(
        &self,
        figure: &Figure,
        curve: &Series,
        key: &Key,
        number_of: usize,
        is_curve: bool,
    ) -> String {
        let Series { name, origin, points, .. } = curve;
        let mut path = String::new();
        let mut marks = String::new();
        let mut pen_is_down = false;
        for (place, at) in points.iter().enumerate() {
            let Some((x, y)) = self.place(*at) else {
                pen_is_down = false;
                continue;
            };
            let _ = write!(path, "{}{x:.1} {y:.1}", if pen_is_down { "L" } else { "M" });
            pen_is_down = true;
            let half_width = half_width(curve, place);
            let said = format!(
                "{name} ({}): {} {}, {} {}",
                origin_name(*origin),
                figure.x.label,
                with_unit(self.x.text(at.0), figure.x.unit),
                figure.y.label,
                with_unit(with_interval(at.1, half_width), figure.y.unit)
            );
            let mut shapes = format!("<circle class=\"hit\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"9\"/>");
            if let Some(half_width) = half_width.filter(|half_width| *half_width > 0.0) {
                // An end without a place is beyond the axis.
                let end = |y, beyond| self.place((at.0, y)).map_or(beyond, |at| at.1);
                let (low, high) = (end(at.1 - half_width, BOTTOM), end(at.1 + half_width, TOP));
                let _ =
                    write!(shapes, "<path class=\"interval\" d=\"M{x:.1} {low:.1}V{high:.1}\"/>");
            }
            marks.push_str(&point(&said, &(shapes + &mark(*origin, x, y))));
        }
        let line = match is_curve {
            true => format!("<path class=\"curve\" d=\"{path}\"/>\n"),
            false => String::new(),
        };
        let dashed = match origin {
            Origin::Published | Origin::Calibrated => " of-paper",
            Origin::Formula => " of-formula",
            _ if key.colour >= COLOURS => " again",
            _ => "",
        };
        format!(
            "<g class=\"series {}{dashed}\" data-series=\"{number_of}\">\n{line}{marks}</g>\n",
            colour(key.colour)
        )
    }
}

/// The quantity along an axis, and its unit.
fn label(axis: &Axis) -> String {
    match axis.unit {
        "" => axis.label.to_owned(),
        unit => format!("{}, {unit}", axis.label),
    }
}

fn with_unit(value: String, unit: &str) -> String {
    if unit.is_empty() { value } else { format!("{value} {unit}") }
}

/// A column for each curve if they share their horizontal positions, else a row for each point.
fn table(Figure { x, y, series, .. }: &Figure) -> Table {
    let mut places: Vec<f64> =
        series.iter().flat_map(|curve| &curve.points).map(|at| at.0).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let longest = series.iter().map(|curve| curve.points.len()).max().unwrap_or(0);
    let repeats = series.iter().any(|curve| {
        let mut of: Vec<f64> = curve.points.iter().map(|at| at.0).collect();
        of.sort_by(f64::total_cmp);
        of.windows(2).any(|pair| pair[0] == pair[1])
    });
    let name = |curve: &Series| format!("{} ({})", curve.name, origin_name(curve.origin));
    if repeats || places.len() > 2 * longest {
        let rows = series.iter().flat_map(|curve| {
            curve.points.iter().enumerate().map(|(point, at)| {
                let value = with_interval(at.1, half_width(curve, point));
                vec![name(curve), number(at.0), value]
            })
        });
        return Table { head: vec!["curve".to_owned(), label(x), label(y)], rows: rows.collect() };
    }
    let value = |curve: &Series, place: f64| {
        let found = curve.points.iter().position(|at| at.0.total_cmp(&place).is_eq());
        found.map_or(String::new(), |at| with_interval(curve.points[at].1, half_width(curve, at)))
    };
    let row = |place: &f64| {
        let values = series.iter().map(|curve| value(curve, *place));
        std::iter::once(number(*place)).chain(values).collect()
    };
    let head = std::iter::once(label(x)).chain(series.iter().map(name)).collect();
    Table { head, rows: places.iter().map(row).collect() }
}
