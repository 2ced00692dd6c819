//! The report as a page: whole, readable without its script, and self-contained.

use std::collections::BTreeSet;
use std::num::NonZero;
use std::path::Path;

use bellwire_model::experiment::{Axis, Origin, Report, Role};
use bellwire_model::stats::Estimate;
use bellwire_papers::experiments::{Failure, MODELLED, Ran, run_all};
use bellwire_papers::page::{Page, charts, html};
use bellwire_papers::{Board, Paper, Query, rows, scoreboard};
use roxmltree::{Document, Node, ParsingOptions};

/// A report in which every text is markup, and every number has no position.
fn hostile() -> Ran {
    let evil = "</script><img src=x onerror=\"alert(1)\"> ]]> & 'C-31' \u{1}";
    let mut report = Report::new("evil", "an <b>experiment</b> & more", "C-31, C-31");
    report.value(evil, "<u>", 2.0).beside(1.0).explain_within(100.0, evil);
    report.value(evil, "", f64::NAN).beside(f64::INFINITY).by_formula();
    report.value("nothing", "1", 0.0).beside(0.0).role = Role::Calibrated;
    report.drawn("drawn", "GB/s", &[1.0, 1.5, 1.0, 1.5, 1.0, 1.5, 1.0, 1.5]).beside(1.25);
    report.drawn("too few", "GB/s", &[1.0, 1.5]).beside(1.25);
    report.claim(evil, true);
    report.claim(evil, false);
    report.claim_of("never", 0.0, true).tries = Some(1000);
    report.claims[1].explanation = Some(evil.to_owned());
    report.note(evil);
    let figure = report.figure(evil, Axis::logarithmic("<x>", "B"), Axis::linear("y & z", "GB/s"));
    figure.series(evil, Origin::Model, [(1.0, 2.0), (f64::NAN, 1.0), (0.0, 1.0), (4.0, -3.0)]);
    figure.series(evil, Origin::Published, [(1.0, 2.0)]);
    figure.series("empty", Origin::Measured, []);
    let spread = [0.5, 9.0, f64::INFINITY, f64::NAN];
    let drawn = spread.map(|half_width| (1.0 + half_width, Estimate { mean: 2.0, half_width }));
    figure.drawn("drawn", drawn);
    figure.series("twice", Origin::Formula, [(1.0, 2.0), (1.0, 3.0)]);
    let mut many = Report::new("many", "more than one drawing has room for", "");
    for count in 0..45 {
        many.value(format!("value {count}"), "ns", f64::from(count));
    }
    let failures = vec![Failure { id: "broken", title: evil, error: evil.to_owned() }];
    Ran { paper: Paper::Myvia, reports: vec![report, many], failures }
}

/// The real papers, and the hostile one.
fn papers() -> Vec<Ran> {
    let of_smp: Vec<_> =
        MODELLED.iter().copied().filter(|(paper, _)| *paper == Paper::SmpInterconnect).collect();
    let mut papers = run_all(&of_smp, NonZero::new(2).unwrap(), |_, _| {});
    papers.push(hostile());
    papers
}

fn board() -> Board {
    scoreboard(Path::new(env!("CARGO_MANIFEST_DIR")), &Query::default()).unwrap()
}

/// Faults of a page; empty if it is whole.
fn problems(page: &str) -> Vec<String> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let document = match Document::parse_with_options(page, options) {
        Ok(document) => document,
        Err(error) => return vec![format!("not well-formed: {error}")],
    };
    let mut found = Vec::new();
    let elements = || document.descendants().filter(Node::is_element);

    let mut ids = BTreeSet::new();
    for id in elements().filter_map(|node| node.attribute("id")) {
        if !ids.insert(id) {
            found.push(format!("two elements are called {id}"));
        }
    }
    let refers = |node: &Node<'_, '_>| {
        ["aria-labelledby", "aria-describedby", "for"]
            .into_iter()
            .filter_map(|name| node.attribute(name))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    for id in elements().flat_map(|node| refers(&node)) {
        if !ids.contains(id.as_str()) {
            found.push(format!("nothing is called {id}"));
        }
    }
    for node in elements() {
        found.extend(outside(&node, &ids));
    }
    for row in rows() {
        let Some(line) = elements().find(|node| node.attribute("id") == Some(&row.id.to_string()))
        else {
            found.push(format!("row {} is missing", row.id));
            continue;
        };
        let text: String = line.descendants().filter_map(|node| node.text()).collect();
        if !text.contains(&row.title) {
            found.push(format!("row {} does not say what it is", row.id));
        }
    }
    for figure in elements().filter(|node| node.has_tag_name((XHTML, "figure"))) {
        found.extend(figure_problems(&figure));
    }
    found
}

const XHTML: &str = "http://www.w3.org/1999/xhtml";

/// References to anything outside the page, or to missing parts of it.
fn outside(node: &Node<'_, '_>, ids: &BTreeSet<&str>) -> Vec<String> {
    let mut found = Vec::new();
    let name = node.tag_name().name();
    if ["link", "img", "iframe", "object", "embed", "base", "image", "audio", "video"]
        .contains(&name)
    {
        found.push(format!("<{name}> may fetch something"));
    }
    for attribute in node.attributes() {
        let (name, value) = (attribute.name(), attribute.value());
        if name == "href" && value.strip_prefix('#').is_none_or(|id| !ids.contains(id)) {
            found.push(format!("the link to {value} leads nowhere"));
        }
        if name.starts_with("on") || ["src", "srcset", "action", "data", "poster"].contains(&name) {
            found.push(format!("{name}=\"{value}\""));
        }
        if value.contains("http:") || value.contains("https:") || value.contains("url(") {
            found.push(format!("{name}=\"{value}\" is outside"));
        }
    }
    if ["style", "script"].contains(&name) {
        let text = node.text().unwrap_or_default();
        let fetches = [
            "url(",
            "@import",
            "http:",
            "https:",
            "fetch(",
            "XMLHttpRequest",
            "import(",
            "innerHTML",
        ];
        found.extend(
            fetches
                .iter()
                .filter(|word| text.contains(**word))
                .map(|word| format!("{name} has {word}")),
        );
    }
    found
}

/// A figure has a drawing with a description, keys, and the numbers as a table.
fn figure_problems(figure: &Node<'_, '_>) -> Vec<String> {
    let id = figure.attribute("id").unwrap_or("without identity");
    let mut found = Vec::new();
    let child = |name| figure.children().find(|node| node.tag_name().name() == name);
    let Some(drawing) = child("svg") else {
        return vec![format!("{id} has no drawing")];
    };
    if drawing.attribute("aria-labelledby").is_none() || drawing.attribute("tabindex") != Some("0")
    {
        found.push(format!("{id} cannot be reached, or says nothing"));
    }
    if !figure.descendants().any(|node| node.tag_name().name() == "table") {
        found.push(format!("{id} has no table"));
    }
    for point in drawing.descendants().filter(|node| node.attribute("class") == Some("point")) {
        let title = point.children().find(|node| node.tag_name().name() == "title");
        if title.and_then(|title| title.text()).is_none_or(|text| text.trim().is_empty()) {
            found.push(format!("{id} has a point that says nothing"));
        }
    }
    for attribute in drawing.descendants().flat_map(|node| node.attributes()) {
        if attribute.value().contains("NaN") || attribute.value().contains("inf") {
            found.push(format!("{id} has a place that is none: {}", attribute.value()));
        }
    }
    found
}

/// The page is XML and contains each row; for each chart it has the drawing and the numbers. Its
/// ids are unique, its links lead inside, and no text of a report becomes markup. This holds inside
/// and outside a checkout.
#[test]
fn the_page_is_whole() {
    let papers = papers();
    let board = board();
    for board in [Some(&board), None] {
        let page = html(&Page { papers: &papers, board });
        assert_eq!(problems(&page), Vec::<String>::new());
        assert_eq!(page.contains("States and tests are missing here"), board.is_none());
        for said in [
            "drawn: 1.25 ± 0.2234 GB/s at 95 %, of 8 samples",
            "In each of 1000 tries; at 95 %, fewer than 0.003 of all are exceptions.",
            "<path class=\"interval\"",
            // What stands beside a formula of ours is not in the paper.
            "5 values; 1 formula; 3 own formula; 2 of a random load",
        ] {
            assert!(page.contains(said), "{said}");
        }
        let figures = page.matches("<figure ").count();
        assert_eq!(figures, charts(&papers).len(), "each chart is on the page");
    }
}

/// Canary: faults that break the page are noticed, each with its own message.
#[test]
fn broken_pages_are_noticed() {
    let papers = vec![hostile()];
    let page = html(&Page { papers: &papers, board: None });
    assert_eq!(problems(&page), Vec::<String>::new());
    let planted = [
        ("</footer>", "", "not well-formed"),
        ("id=\"C-02\"", "id=\"C-01\"", "two elements are called C-01"),
        ("id=\"C-31\"", "id=\"C-31x\"", "the link to #C-31 leads nowhere"),
        ("<tr id=\"B-27\"", "<tr", "row B-27 is missing"),
        ("Libraries bound to one NIC", "", "row B-27 does not say what it is"),
        ("<footer>", "<footer><img/>", "<img> may fetch something"),
        ("<footer>", "<footer onclick=\"x\">", "onclick=\"x\""),
        ("<footer>", "<footer class=\"https://a.b/c\">", "is outside"),
        ("'use strict';", "fetch('x');", "script has fetch("),
        ("</style>", "@import 'a';</style>", "style has @import"),
        ("aria-labelledby=\"rows-title\"", "aria-labelledby=\"none\"", "nothing is called none"),
        ("tabindex=\"0\">\n<g aria-hidden", ">\n<g aria-hidden", "cannot be reached"),
        (
            "<title>value 3: 3 ns, predicted</title>",
            "<title> </title>",
            "a point that says nothing",
        ),
        ("class=\"hit\" cx=\"", "class=\"hit\" cx=\"NaN", "a place that is none"),
    ];
    for (from, to, says) in planted {
        assert!(page.contains(from), "{from} is on the page");
        let found = problems(&page.replacen(from, to, 1));
        assert!(found.iter().any(|problem| problem.contains(says)), "{to}: {found:?}");
    }
}

/// The same experiments give the same page and the same drawings, byte for byte.
#[test]
fn pages_repeat() {
    let (first, second) = (papers(), papers());
    let board = board();
    let page = |papers: &[Ran]| html(&Page { papers, board: Some(&board) });
    assert!(page(&first) == page(&second));
    let files = |papers: &[Ran]| -> Vec<(String, String)> {
        charts(papers).into_iter().map(|named| (named.name, named.chart.file())).collect()
    };
    assert!(files(&first) == files(&second));
}

/// Each drawing is a self-contained file: XML with a name of its own, a title, colours for light
/// and dark, and nothing from outside.
#[test]
fn drawings_stand_alone() {
    let mut names = BTreeSet::new();
    for named in charts(&papers()) {
        let file = named.chart.file();
        let drawing =
            Document::parse(&file).unwrap_or_else(|error| panic!("{}: {error}", named.name));
        let root = drawing.root_element();
        assert_eq!(
            root.first_element_child().unwrap().text(),
            Some(named.chart.title.replace('\u{1}', " ").as_str())
        );
        assert!(file.contains("prefers-color-scheme: dark"));
        for node in drawing.descendants().filter(Node::is_element) {
            assert_eq!(outside(&node, &BTreeSet::new()), Vec::<String>::new(), "{}", named.name);
        }
        assert!(names.insert(named.name.clone()), "{} names two charts", named.name);
        assert!(!named.name.contains(['/', ' ']), "{}", named.name);
    }
}
