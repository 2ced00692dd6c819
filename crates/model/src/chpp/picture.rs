//! One operation as a picture: a self-contained SVG file, for light and dark screens.
//!
//! Each interval of the [`Explanation`] is a row on one axis of time. Service is a full bar; a wait
//! is a hatched bar with its cause. The rows follow each other without gap and add up exactly to
//! the last one. Every bar has `data-start-ps` and `data-length-ps`, so that programs need not
//! measure pixels.

use std::fmt::Write;

use super::journal::{Cause, Explanation, Interval};
use crate::markup::escaped;
use crate::units::Span;

const ROW: usize = 22;
const TOP: usize = 76;
const PLOT_LEFT: f64 = 170.0;
const PLOT_WIDTH: f64 = 560.0;
const WIDTH: usize = 1000;
/// Right edges of the columns of numbers, in nanoseconds: start, wait, service.
const COLUMNS: [(&str, usize); 3] = [("start ns", 820), ("wait ns", 905), ("service ns", 990)];

const STYLE: &str = "\
text { font: 13px system-ui, sans-serif; fill: #1d2126; }
.title { font-size: 16px; font-weight: 600; }
.quiet { fill: #5b6570; }
.number { text-anchor: end; font-variant-numeric: tabular-nums; }
.paper { fill: #ffffff; }
.line { stroke: #d5dae0; }
.band { fill: #f4f6f8; }
.service { fill: #2f6db3; }
.wait { fill: #c4552d; }
.hatch { stroke: #ffffff; }
@media (prefers-color-scheme: dark) {
text { fill: #e4e8ec; }
.quiet { fill: #9aa5b1; }
.paper { fill: #14181d; }
.line { stroke: #38414b; }
.band { fill: #1b2127; }
.service { fill: #6aa5e6; }
.wait { fill: #e8875e; }
.hatch { stroke: #14181d; }
}";

/// Draws `explanation` under `title`.
pub fn svg(title: &str, explanation: &Explanation) -> String {
    let mut out = String::new();
    // Writing into a string does not fail.
    let _ = draw(&mut out, &escaped(title), explanation);
    out
}

fn draw(out: &mut String, title: &str, explanation: &Explanation) -> std::fmt::Result {
    let Explanation { total, intervals } = explanation;
    let causes = causes(intervals);
    let bottom = TOP + ROW * (intervals.len() + 1);
    let height = bottom + 34 + ROW * causes.len();
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" data-total-ps=\"{}\">",
        total.ps()
    )?;
    writeln!(out, "<title>{title}</title>\n<style>\n{STYLE}\n</style>")?;
    writeln!(
        out,
        "<defs><pattern id=\"hatched\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
         patternTransform=\"rotate(45)\"><rect class=\"wait\" width=\"6\" height=\"6\"/>\
         <line class=\"hatch\" x1=\"0\" y1=\"0\" x2=\"0\" y2=\"6\" stroke-width=\"3\"/></pattern></defs>"
    )?;
    writeln!(out, "<rect class=\"paper\" width=\"{WIDTH}\" height=\"{height}\"/>")?;
    text(out, "title", (12, 26), title)?;
    axis(out, *total, bottom)?;
    for (name, right) in COLUMNS {
        text(out, "quiet number", (right, TOP - 12), name)?;
    }
    for (row, interval) in intervals.iter().enumerate() {
        bar(out, interval, *total, TOP + row * ROW, row % 2 == 0)?;
    }
    let y = bottom - ROW + 15;
    text(out, "title", (12, y), "end to end")?;
    let waited = explanation.waited();
    numbers(out, y, [*total, waited, explanation.accounted() - waited])?;
    let legend = if causes.is_empty() { "" } else { ", for" };
    let legend = format!("full: at work; hatched: waiting{legend}");
    text(out, "quiet", (12, bottom + 24), &legend)?;
    for (cause, line) in causes.iter().zip(1..) {
        let meaning = format!("{cause}: {}", cause.meaning());
        text(out, "quiet", (12, bottom + 24 + line * ROW), &meaning)?;
    }
    writeln!(out, "</svg>")
}

fn text(out: &mut String, class: &str, (x, y): (usize, usize), text: &str) -> std::fmt::Result {
    writeln!(out, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{text}</text>")
}

/// Start, wait and service in their columns, in nanoseconds.
fn numbers(out: &mut String, y: usize, values: [Span; 3]) -> std::fmt::Result {
    values.into_iter().zip(COLUMNS).try_for_each(|(value, (_, right))| {
        text(out, "number", (right, y), &format!("{:.3}", value.as_ns()))
    })
}

/// Lines and numbers of the axis, in nanoseconds.
fn axis(out: &mut String, total: Span, bottom: usize) -> std::fmt::Result {
    let step = step(total);
    let mut at = Span::ZERO;
    while at <= total {
        let x = position(at, total);
        writeln!(
            out,
            "<line class=\"line\" x1=\"{x:.2}\" y1=\"{}\" x2=\"{x:.2}\" y2=\"{}\"/>\
             <text class=\"quiet\" x=\"{:.2}\" y=\"{}\">{at}</text>",
            TOP - 6,
            bottom - ROW,
            x + 3.0,
            TOP - 12
        )?;
        at += step;
    }
    Ok(())
}

/// One interval: its stage, its bar, and its numbers.
fn bar(
    out: &mut String,
    &Interval { stage, cause, start, length }: &Interval,
    total: Span,
    y: usize,
    banded: bool,
) -> std::fmt::Result {
    let (x, end) = (position(start, total), position(start + length, total));
    let name = match cause {
        Some(cause) => format!("{stage}, waiting for {cause}"),
        None => format!("{stage}, at work"),
    };
    writeln!(out, "<g><title>{name}: {length} from {start} on</title>")?;
    if banded {
        writeln!(
            out,
            "<rect class=\"band\" y=\"{y}\" width=\"{WIDTH}\" height=\"{ROW}\" opacity=\"0.5\"/>"
        )?;
    }
    let base = y + 15;
    writeln!(out, "<text x=\"12\" y=\"{base}\">{stage}</text>")?;
    let fill = if cause.is_some() { "fill=\"url(#hatched)\"" } else { "class=\"service\"" };
    writeln!(
        out,
        "<rect {fill} x=\"{x:.2}\" y=\"{}\" width=\"{:.2}\" height=\"{}\" data-stage=\"{stage}\" \
         data-start-ps=\"{}\" data-length-ps=\"{}\"/>",
        y + 4,
        // A bar is at least a pixel wide; its numbers are exact.
        (end - x).max(1.0),
        ROW - 8,
        start.ps(),
        length.ps()
    )?;
    let (wait, service) = if cause.is_some() { (length, Span::ZERO) } else { (Span::ZERO, length) };
    if let Some(cause) = cause {
        // Beside the bar, on the side with room.
        let (place, anchor) = if end < PLOT_LEFT + PLOT_WIDTH * 0.7 {
            (end + 5.0, "start")
        } else {
            (x - 5.0, "end")
        };
        writeln!(
            out,
            "<text class=\"quiet\" x=\"{place:.2}\" y=\"{base}\" text-anchor=\"{anchor}\">waits for {cause}</text>"
        )?;
    }
    numbers(out, base, [start, wait, service])?;
    writeln!(out, "</g>")
}

fn position(at: Span, total: Span) -> f64 {
    PLOT_LEFT + PLOT_WIDTH * at.ps() as f64 / total.ps().max(1) as f64
}

/// 1, 2 or 5 times a power of ten, so that the axis has four to ten ticks.
fn step(total: Span) -> Span {
    let mut ten = 1;
    loop {
        for factor in [1, 2, 5] {
            if total.ps() / (ten * factor) <= 8 {
                return Span::from_ps(ten * factor);
            }
        }
        ten *= 10;
    }
}

/// The causes that occur, each once.
fn causes(intervals: &[Interval]) -> Vec<Cause> {
    let mut causes: Vec<Cause> = intervals.iter().filter_map(|interval| interval.cause).collect();
    causes.sort_unstable();
    causes.dedup();
    causes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chpp::Config;
    use crate::chpp::experiments::Kind;
    use crate::chpp::experiments::single::single;

    /// Checks a picture with an XML parser. The bars are adjacent and add up to the total, each
    /// wait has its cause, and the file fetches no resource.
    fn check(picture: &str) -> Result<usize, String> {
        let document = roxmltree::Document::parse(picture).map_err(|error| error.to_string())?;
        let number = |node: &roxmltree::Node, name: &str| {
            let text = node.attribute(name).ok_or(format!("no {name}"))?;
            text.parse::<u64>().map_err(|error| error.to_string())
        };
        let total = number(&document.root_element(), "data-total-ps")?;
        let (mut at, mut rows) = (0, 0);
        for rectangle in document.descendants().filter(|node| node.has_attribute("data-stage")) {
            rows += 1;
            if number(&rectangle, "data-start-ps")? != at {
                return Err(format!("row {rows} does not begin where the one before ends"));
            }
            at += number(&rectangle, "data-length-ps")?;
            let row = rectangle.parent().ok_or("a bar stands in its row")?;
            let says = row.descendants().any(|node| {
                node.tag_name().name() == "text"
                    && node.text().is_some_and(|text| text.starts_with("waits for "))
            });
            let waits = rectangle.attribute("fill") == Some("url(#hatched)");
            if waits != says {
                return Err(format!("row {rows} waits, or does not, and does not say so"));
            }
        }
        if at != total {
            return Err(format!("the bars add up to {at} ps of {total}"));
        }
        let foreign = |value: &str| {
            value.contains("href") || value.contains("url(") && !value.contains("url(#")
        };
        let mut attributes = document.descendants().flat_map(|node| node.attributes());
        if attributes.any(|at| at.name() == "href" || foreign(at.value())) {
            return Err("it refers to something outside of the file".to_owned());
        }
        if !picture.contains("prefers-color-scheme: dark") {
            return Err("it is made for light screens only".to_owned());
        }
        Ok(rows)
    }

    /// Pictures of all operations and lengths pass the check.
    #[test]
    fn pictures_add_up() {
        for kind in Kind::ALL {
            for bytes in [1, 64, 2048, 65536] {
                if kind.is_nap() && bytes > 2048 {
                    continue;
                }
                let run = single(&Config::prototype(), kind, bytes).unwrap();
                let rows =
                    check(&svg("an <operation> & its \"stages\"", &run.explanation)).unwrap();
                assert_eq!(rows, run.explanation.intervals.len());
            }
        }
    }

    /// Canary: an extra picosecond, a wait without its cause, and a gap are noticed.
    #[test]
    fn wrong_pictures_are_noticed() {
        crate::limit::limited(|| {
            let mut run = single(&Config::prototype(), Kind::Put, 4096).unwrap().explanation;
            let right = svg("put", &run);
            assert!(right.contains("waits for memory"));
            check(&right).unwrap();
            assert!(
                check(&right.replace(">waits for memory<", "><")).unwrap_err().contains("say so")
            );
            run.total += Span::from_ps(1);
            assert!(check(&svg("put", &run)).unwrap_err().contains("add up"));
            run.intervals[3].start += Span::from_ps(1);
            assert!(check(&svg("put", &run)).unwrap_err().contains("does not begin"));
        });
    }
}
