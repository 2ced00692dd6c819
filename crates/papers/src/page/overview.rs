//! The result of each paper: a table, and the distance of its values from the published ones.

use std::fmt::Write;

use bellwire_model::experiment::{Axis, EXPLAINED_ABOVE, Figure, Origin, Role};
use bellwire_model::markup::escaped;
use bellwire_model::stats::LEAST_SEEDS;

use super::chart::scale::error;
use super::chart::{Chart, Key, curves};
use super::words::count;
use super::{Page, place_of, section};
use crate::State;
use crate::experiments::{Compared, Ran, Tally, Worst};

/// The first part of the page.
pub fn write(out: &mut String, page: &Page<'_>) -> std::fmt::Result {
    writeln!(
        out,
        "<section id=\"overview\" aria-labelledby=\"overview-title\">\n<h2 id=\"overview-title\">Overview</h2>\n\
         <p>Bellwire joins five published systems and models each of them. Every experiment below was run on these models; its values stand beside \
         those that the paper prints. A value is <em>calibrated</em> if a constant was fitted to it, an <em>input</em> if a parameter alone decides it, \
         <em>predicted</em> if it follows from the mechanism, and a <em>formula</em> if it follows from an equation of the paper. A value beside an \
         <em>own formula</em> is compared with a number that we computed and the paper does not print. A <em>derived</em> value repeats others: in another unit, \
         as a ratio, or in another reading of the paper. These kinds are counted apart. What is more than {EXPLAINED_ABOVE} % off has to say why. Nothing \
         published is shown as a result.</p>\n\
         <p>A value of a random load is a mean with its 95 % interval (Student's t), from at least {LEAST_SEEDS} independent seeds. \
         It counts as within {EXPLAINED_ABOVE} % only if its whole interval is. A statement about a random load holds only if the whole interval of what \
         it compares does. One that says always or never names its tries; n tries without an exception leave, at 95 %, fewer than 3 of n.</p>"
    )?;
    key(out)?;
    table(out, page)?;
    section::chart(out, "all-errors", &errors(page.papers))?;
    writeln!(out, "</section>")
}

/// The meaning of the marks, for the whole page.
fn key(out: &mut String) -> std::fmt::Result {
    writeln!(out, "<ul class=\"keys\" aria-label=\"Marks\">")?;
    let origins = [
        Origin::Model,
        Origin::Formula,
        Origin::Measured,
        Origin::Published,
        Origin::Calibrated,
        Origin::Input,
    ];
    for origin in origins {
        let key = Key { name: String::new(), colour: 7, origin };
        writeln!(out, "<li>{} {}</li>", key.picture(), key.text())?;
    }
    writeln!(out, "</ul>")
}

fn table(out: &mut String, Page { papers, board }: &Page<'_>) -> std::fmt::Result {
    writeln!(
        out,
        "<div class=\"scroll\" role=\"region\" aria-label=\"Results by paper\" tabindex=\"0\"><table>\n<caption>Results by paper</caption>\n<thead><tr>\
         <th scope=\"col\">paper</th><th scope=\"col\">experiments</th><th scope=\"col\">values</th><th scope=\"col\">calibrated</th>\
         <th scope=\"col\">input or formula of the paper</th><th scope=\"col\">predicted and printed</th><th scope=\"col\">of these within {EXPLAINED_ABOVE} %</th>\
         <th scope=\"col\">further, with a reason</th><th scope=\"col\">beside an own formula</th><th scope=\"col\">derived</th>\
         <th scope=\"col\">missing without a reason</th>\
         <th scope=\"col\">furthest</th><th scope=\"col\">statements that hold</th><th scope=\"col\">rows shown by tests</th></tr></thead>\n<tbody>"
    )?;
    for ran in *papers {
        let tally = ran.tally();
        let Tally {
            paper,
            values,
            calibrated,
            given,
            predicted,
            own_formula,
            derived,
            unexplained,
            claims,
            holding,
            ..
        } = tally;
        let (calibrated, given) = (calibrated.values, given.values);
        let Compared { values: printed, within, explained } = predicted;
        let of = |kind: Compared| format!("{} within of {}", kind.within, kind.values);
        let (own, derived) = (of(own_formula), of(derived));
        let failures = match tally.failures {
            0 => String::new(),
            failures => format!(", <strong class=\"miss\">{failures} failed</strong>"),
        };
        let worst = tally.worst.as_ref().map_or("-".to_owned(), |worst| {
            let Worst { experiment, what, error_percent } = worst;
            format!(
                "<a href=\"#{}\">{}</a>, {}",
                place_of(paper, experiment),
                error(*error_percent),
                escaped(what)
            )
        });
        let rows = board.map_or("-".to_owned(), |board| {
            let of_paper = || board.rows.iter().filter(|standing| standing.row.paper == paper);
            let shown = of_paper().filter(|standing| standing.state == State::Shown).count();
            format!("{shown} of {}", of_paper().count())
        });
        let missing = if unexplained > 0 { " class=\"miss\"" } else { "" };
        writeln!(
            out,
            "<tr><th scope=\"row\"><a href=\"#{paper}\">{}</a></th><td>{}{failures}</td><td>{values}</td><td>{calibrated}</td><td>{given}</td>\
             <td>{printed}</td><td>{within}</td><td>{explained}</td><td>{own}</td><td>{derived}</td><td{missing}>{unexplained}</td><td class=\"text\">{worst}</td><td>{holding} of {claims}</td><td>{rows}</td></tr>",
            paper.title(),
            tally.experiments
        )?;
    }
    writeln!(out, "</tbody></table></div>")?;
    let sum =
        |kind: fn(&Tally) -> Compared| papers.iter().map(|ran| kind(&ran.tally()).values).sum();
    let predicted: usize = sum(|tally| tally.predicted);
    let calibrated: usize = sum(|tally| tally.calibrated);
    let given: usize = sum(|tally| tally.given);
    let own: usize = sum(|tally| tally.own_formula);
    let derived: usize = sum(|tally| tally.derived);
    writeln!(
        out,
        "<p>{} are predicted. {calibrated} were calibrated on, {given} are inputs or formulas of the paper, {own} values stand beside a formula of ours, and {derived} repeat others.</p>",
        count(predicted, "published value"),
    )
}

/// The share of a paper's values below each error, of predicted values alone.
pub fn errors(papers: &[Ran]) -> Chart {
    /// A value below this counts as exact, because it is printed with only so many digits.
    const LEAST: f64 = 0.1;
    let mut figure = Figure {
        title: "How near predicted values come to printed ones".to_owned(),
        x: Axis::logarithmic("relative error of at most", "%"),
        y: Axis::linear("share of the paper's values", "%"),
        series: Vec::new(),
    };
    for Ran { paper, reports, .. } in papers {
        let values = reports.iter().flat_map(|report| &report.values);
        let judged = values.filter(|value| value.role == Role::Predicted);
        let mut errors: Vec<f64> = judged
            .filter_map(|value| value.error_percent)
            .map(|error| error.abs().max(LEAST))
            .collect();
        errors.sort_by(f64::total_cmp);
        let mut points: Vec<(f64, f64)> = Vec::new();
        for (count, error) in (1..).zip(&errors) {
            let share = 100.0 * f64::from(count) / errors.len() as f64;
            // Of equal errors only the last one counts.
            points.pop_if(|last| last.0 == *error);
            points.push((*error, share));
        }
        figure.series(paper.title(), Origin::Model, points);
    }
    curves(&figure)
}
