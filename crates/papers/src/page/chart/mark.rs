//! Marks: the shape says where a point comes from, the colour what it is of.

use bellwire_model::experiment::Origin;

/// Colours that a chart can tell apart; further curves begin anew, dashed.
pub const COLOURS: usize = 8;

/// The class of the colour.
pub fn colour(of: usize) -> String {
    format!("c{}", of % COLOURS)
}

/// The mark of this origin around a place, as an SVG element.
pub fn mark(origin: Origin, x: f64, y: f64) -> String {
    match origin {
        Origin::Model => format!("<circle class=\"full\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.4\"/>"),
        Origin::Measured => {
            format!("<path class=\"full\" d=\"M{:.1} {:.1}h6.4v6.4h-6.4z\"/>", x - 3.2, y - 3.2)
        }
        Origin::Formula => {
            format!("<path class=\"full\" d=\"M{x:.1} {:.1}l4 7h-8z\"/>", y - 4.4)
        }
        Origin::Published => {
            format!(
                "<path class=\"hollow\" d=\"M{x:.1} {:.1}l5.2 5.2l-5.2 5.2l-5.2 -5.2z\"/>",
                y - 5.2
            )
        }
        Origin::Calibrated => {
            format!("<path class=\"hollow\" d=\"M{:.1} {:.1}h8v8h-8z\"/>", x - 4.0, y - 4.0)
        }
    }
}

/// How a reader is told of the origin.
pub fn origin_name(origin: Origin) -> &'static str {
    match origin {
        Origin::Model => "model",
        Origin::Measured => "measured",
        Origin::Formula => "formula of the paper",
        Origin::Published => "paper",
        Origin::Calibrated => "paper, calibrated on",
    }
}
