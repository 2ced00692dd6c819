//! Values as a drawing: the model's beside the paper's, one row each; values of one unit share an
//! axis.

use std::fmt::Write;

use bellwire_model::experiment::{Axis, Origin, Report, Role, Value};
use bellwire_model::markup::escaped;
use bellwire_model::stats::Estimate;

use super::scale::{Scale, error, number, with_interval};
use super::{Chart, Key, Table, WIDTH, colour, cut, mark, origin_name, point, upright};

/// Most rows of a drawing; a longer list is split.
const ROWS: usize = 20;
/// Height of a row: a line of text, and the marks below it.
const ROW: f64 = 36.0;
const TOP: f64 = 18.0;
const LEFT: f64 = 20.0;
const RIGHT: f64 = WIDTH - 24.0;
/// From this ratio on an axis is logarithmic.
const WIDE_RATIO: f64 = 30.0;

/// Colours of the model and of the paper.
const OF_MODEL: usize = 0;
const OF_PAPER: usize = 1;

/// Charts of a report's values, one per unit; with `only_compared`, only values that the paper
/// gives too.
pub fn pairs(report: &Report, only_compared: bool) -> Vec<Chart> {
    let wanted: Vec<&Value> =
        report.values.iter().filter(|value| !only_compared || value.published.is_some()).collect();
    let mut units: Vec<&str> = Vec::new();
    for value in &wanted {
        if !units.contains(&value.unit) {
            units.push(value.unit);
        }
    }
    let mut charts = Vec::new();
    for unit in units {
        let of_unit: Vec<&Value> =
            wanted.iter().copied().filter(|value| value.unit == unit).collect();
        let scale = scale(&of_unit);
        let parts = of_unit.len().div_ceil(ROWS);
        for (part, rows) in of_unit.chunks(of_unit.len().div_ceil(parts)).enumerate() {
            let mut title = match is_bare(unit) {
                true => "Counts and ratios".to_owned(),
                false => format!("Values in {unit}"),
            };
            if parts > 1 {
                let _ = write!(title, ", {} of {parts}", part + 1);
            }
            charts.push(chart(title, rows, &scale));
        }
    }
    charts
}

/// One axis for all values of a unit.
fn scale(values: &[&Value]) -> Scale {
    let numbers = || {
        let both = values.iter().flat_map(|value| {
            let Estimate { mean, half_width } = value.estimate();
            [Some(mean - half_width), Some(mean), Some(mean + half_width), value.published]
        });
        both.flatten().filter(|number| number.is_finite())
    };
    let low = numbers().fold(f64::INFINITY, f64::min);
    let high = numbers().fold(f64::NEG_INFINITY, f64::max);
    let is_wide = low > 0.0 && high / low > WIDE_RATIO;
    match is_wide {
        true => Scale::new(&Axis::logarithmic("", ""), numbers()),
        // From zero, so that the distance of two marks is proportional to their error.
        false => Scale::new(&Axis::linear("", ""), numbers().chain([0.0])),
    }
}

fn chart(title: String, values: &[&Value], scale: &Scale) -> Chart {
    let bottom = TOP + ROW * values.len() as f64;
    let at = |place: f64| LEFT + (RIGHT - LEFT) * place;
    let mut body = String::from("<g aria-hidden=\"true\">\n");
    for tick in scale.ticks() {
        let Some(x) = scale.place(tick.at).map(at) else { continue };
        body.push_str(&upright(x, TOP, bottom, tick));
    }
    // Writing into a string cannot fail.
    let _ = writeln!(
        body,
        "<path class=\"axis\" d=\"M{LEFT} {bottom}H{RIGHT}\"/>\
         <text class=\"tick end\" x=\"{}\" y=\"12\">model / paper, error</text></g>",
        WIDTH - 4.0
    );
    for (row, value) in values.iter().enumerate() {
        let y = TOP + ROW * row as f64;
        let mut marks = format!(
            "<rect class=\"hit\" x=\"0\" y=\"{y}\" width=\"{WIDTH}\" height=\"{ROW}\"/>{}",
            texts(value, y + 15.0)
        );
        let model = scale.place(value.model).map(at);
        let paper = value.published.and_then(|number| scale.place(number)).map(at);
        let y = y + 25.0;
        if let (Some(model), Some(paper)) = (model, paper) {
            let _ = write!(marks, "<path class=\"between\" d=\"M{model:.1} {y}H{paper:.1}\"/>");
        }
        if let Some((low, high)) = interval(value, scale) {
            let (low, high) = (at(low), at(high));
            let _ = write!(
                marks,
                "<g class=\"{}\"><path class=\"interval\" d=\"M{low:.1} {:.1}v6m0 -3H{high:.1}m0 -3v6\"/></g>",
                colour(OF_MODEL),
                y - 3.0
            );
        }
        let (of_model, of_paper) = origins(value.role);
        for (place, origin, of) in [(paper, of_paper, OF_PAPER), (model, of_model, OF_MODEL)] {
            if let Some(x) = place {
                let _ = write!(marks, "<g class=\"{}\">{}</g>", colour(of), mark(origin, x, y));
            }
        }
        body.push_str(&point(&said(value), &marks));
    }
    let keys = keys(values);
    let height = bottom + 26.0;
    Chart { title, keys, has_curves: false, table: table(values), body, height }
}

/// The places of the ends of the model's interval; an end without a place is at the low end.
fn interval(value: &Value, scale: &Scale) -> Option<(f64, f64)> {
    let Estimate { mean, half_width } = value.estimate();
    let high = scale.place(mean + half_width).filter(|_| half_width > 0.0)?;
    Some((scale.place(mean - half_width).unwrap_or(0.0), high))
}

/// The model's number with the half-width of its interval.
fn of_model(value: &Value) -> String {
    with_interval(value.model, value.interval.map(|interval| interval.half_width))
}

/// The value's name, and the two numbers.
fn texts(value: &Value, y: f64) -> String {
    let mut numbers = of_model(value);
    if let Some(published) = value.published {
        let _ = write!(numbers, " / {}", number(published));
    }
    if let Some(percent) = value.error_percent {
        let _ = write!(numbers, ", {}", error(percent));
    }
    let room = 63usize.saturating_sub(numbers.chars().count());
    format!(
        "<text x=\"2\" y=\"{y}\">{}</text><text class=\"number end{}\" x=\"{}\" y=\"{y}\">{}</text>",
        escaped(&cut(&value.what, room)),
        if value.misses() { " miss" } else { "" },
        WIDTH - 4.0,
        escaped(&numbers)
    )
}

/// The marks of the model's value and the paper's.
fn origins(role: Role) -> (Origin, Origin) {
    match role {
        Role::Calibrated => (Origin::Model, Origin::Calibrated),
        Role::Input => (Origin::Model, Origin::Input),
        Role::OwnFormula | Role::Derived => (Origin::Model, Origin::Formula),
        Role::Predicted => (Origin::Model, Origin::Published),
        Role::Formula => (Origin::Formula, Origin::Published),
    }
}

/// The value in words.
fn said(value: &Value) -> String {
    let mut said = format!("{}: {}", value.what, of_model(value));
    if !is_bare(value.unit) {
        let _ = write!(said, " {}", value.unit);
    }
    if let Some(interval) = value.interval {
        let _ = write!(said, " at 95 %, of {} samples", interval.samples);
    }
    if let Some(published) = value.published {
        let whose = match origins(value.role) {
            (_, Origin::Formula) => "formula",
            _ => "paper",
        };
        let _ = write!(said, ", {whose} {}", number(published));
        if let Some(section) = &value.section {
            let _ = write!(said, " ({section})");
        }
    }
    if let Some(percent) = value.error_percent {
        let _ = write!(said, ", error {}", error(percent));
    }
    let _ = write!(said, ", {}", value.role.name());
    if let Some(why) = &value.explanation {
        let _ = write!(said, ". {why}");
    }
    said
}

/// Whether this is the unit of counts and ratios, which is not printed.
fn is_bare(unit: &str) -> bool {
    ["", "1"].contains(&unit)
}

/// The marks that occur.
fn keys(values: &[&Value]) -> Vec<Key> {
    let mut keys: Vec<Key> = Vec::new();
    for value in values {
        let (of_model, of_paper) = origins(value.role);
        let paper = value.published.is_some().then_some((of_paper, OF_PAPER));
        for (origin, colour) in [Some((of_model, OF_MODEL)), paper].into_iter().flatten() {
            if keys.iter().all(|key| key.origin != origin) {
                keys.push(Key { name: String::new(), colour, origin });
            }
        }
    }
    keys.sort_by_key(|key| origin_name(key.origin));
    keys
}

/// The numbers, with all significant digits.
fn table(values: &[&Value]) -> Table {
    let head = [
        "value",
        "model",
        "95 % interval ±",
        "samples",
        "paper or formula",
        "error",
        "unit",
        "role",
        "why it differs",
    ];
    let row = |value: &&Value| {
        vec![
            value.what.clone(),
            number(value.model),
            value.interval.map_or(String::new(), |interval| number(interval.half_width)),
            value.interval.map_or(String::new(), |interval| interval.samples.to_string()),
            value.published.map_or(String::new(), number),
            value.error_percent.map_or(String::new(), error),
            if is_bare(value.unit) { String::new() } else { value.unit.to_owned() },
            value.role.name().to_owned(),
            value.explanation.clone().unwrap_or_default(),
        ]
    };
    Table {
        head: head.iter().map(|text| (*text).to_owned()).collect(),
        rows: values.iter().map(row).collect(),
    }
}
