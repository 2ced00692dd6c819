//! Many points over one axis, without lines between them.

use bellwire_model::experiment::Figure;

use super::curves::{Frame, HEIGHT};
use super::scale::Scale;
use super::{Chart, Key, Table};

/// Draws points without lines. `texts` stand for 0, 1, 2 and so on of the horizontal axis, if it
/// has no numbers. A table of so many points would be the file that they come from, so the caller
/// gives one that sums them up.
pub fn scatter(figure: &Figure, texts: &[String], table: Table) -> Chart {
    let Figure { title, x, y, series } = figure;
    let points = || series.iter().flat_map(|series| &series.points);
    let along = match texts {
        [] => Scale::new(x, points().map(|at| at.0)).with_margin(),
        texts => Scale::of_texts(texts),
    };
    let frame = Frame::new(along, Scale::new(y, points().map(|at| at.1)).with_margin());
    let mut body = frame.drawn(x, y);
    let key = |(colour, series): (usize, &bellwire_model::experiment::Series)| Key {
        name: series.name.clone(),
        colour,
        origin: series.origin,
    };
    let keys: Vec<Key> = series.iter().enumerate().map(key).collect();
    for (at, (series, key)) in series.iter().zip(&keys).enumerate() {
        body.push_str(&frame.series(figure, series, key, at, false));
    }
    Chart { title: title.clone(), keys, has_curves: true, table, body, height: HEIGHT }
}
