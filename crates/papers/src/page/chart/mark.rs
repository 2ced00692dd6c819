//! Marks: the shape shows a point's origin, the colour its curve.

use bellwire_model::experiment::Origin;

/// Colours of a chart; further curves reuse them, dashed.
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
        Origin::Input => {
            format!("<path class=\"hollow\" d=\"M{:.1} {:.1}h8l-4 7.4z\"/>", x - 4.0, y - 3.4)
        }
    }
}

/// The origin in words.
pub fn origin_name(origin: Origin) -> &'static str {
    match origin {
        Origin::Model => "model",
        Origin::Measured => "measured",
        Origin::Formula => "formula of the paper",
        Origin::Published => "paper",
        Origin::Calibrated => "paper, calibrated on",
        Origin::Input => "paper, an input",
    }
}
