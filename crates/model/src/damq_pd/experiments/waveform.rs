//! The run of 3.3 as a waveform: a value change dump for GTKWave (IEEE 1364-2005, 18.2), and a drawing.

use std::fmt::Write;

use super::fig9::{PORTS, Sample};
use crate::damq_pd::Config;

/// The samples as a value change dump. Times are those of the paper's clock, in picoseconds.
pub fn vcd(samples: &[Sample]) -> String {
    let period = Config::paper().nic.clock.period().ps();
    let mut out = String::from(
        "$timescale 1 ps $end\n$scope module damq_pd $end\n\
         $var wire 1 c clock $end\n\
         $var wire 1 w write_valid $end\n$var wire 2 k write_port $end\n\
         $var wire 1 r read_valid $end\n$var wire 2 v read_port $end\n\
         $var wire 11 n words_inside $end\n\
         $upscope $end\n$enddefinitions $end\n",
    );
    let mut line = |text: std::fmt::Arguments<'_>| {
        // Writing into a string does not fail.
        let _ = writeln!(out, "{text}");
    };
    let port = |port: Option<u8>, code: char| match port {
        Some(port) => format!("b{port:02b} {code}"),
        None => format!("bxx {code}"),
    };
    for (at, sample) in samples.iter().enumerate() {
        let at = at as u64 * period;
        line(format_args!("#{at}\n1c"));
        line(format_args!("{}w", u8::from(sample.wrote.is_some())));
        line(format_args!("{}", port(sample.wrote, 'k')));
        line(format_args!("{}r", u8::from(sample.left.is_some())));
        line(format_args!("{}", port(sample.left, 'v')));
        line(format_args!("b{:b} n", sample.inside));
        line(format_args!("#{}\n0c", at + period / 2));
    }
    out
}

/// The samples as a drawing: a box for each word that goes in and comes out, in the colour of its port, and the number of words inside.
pub fn svg(samples: &[Sample]) -> String {
    const CELL: usize = 14;
    const LEFT: usize = 70;
    const COLOURS: [&str; PORTS] = ["#4477aa", "#ee6677", "#228833", "#ccbb44"];
    let width = LEFT + samples.len() * CELL + 10;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"150\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"{width}\" height=\"150\" fill=\"white\"/>\n"
    );
    for (y, name) in [(31, "cycle"), (57, "written"), (87, "read"), (125, "inside")] {
        let _ = writeln!(out, "<text x=\"6\" y=\"{y}\">{name}</text>");
    }
    let most = samples.iter().map(|sample| sample.inside).max().unwrap_or(0).max(1);
    for (at, sample) in samples.iter().enumerate() {
        let x = LEFT + at * CELL;
        if at % 10 == 0 {
            let _ = writeln!(out, "<text x=\"{x}\" y=\"31\">{at}</text>");
        }
        for (y, port) in [(44, sample.wrote), (74, sample.left)] {
            if let Some(port) = port {
                let colour = COLOURS[port as usize % PORTS];
                let (box_width, text) = (CELL - 1, x + 4);
                let _ = writeln!(
                    out,
                    "<rect x=\"{x}\" y=\"{y}\" width=\"{box_width}\" height=\"18\" fill=\"{colour}\"/>\
                     <text x=\"{text}\" y=\"{}\" fill=\"white\">{port}</text>",
                    y + 13
                );
            }
        }
        let height = 36 * usize::from(sample.inside) / usize::from(most);
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"{}\" width=\"{}\" height=\"{height}\" fill=\"#bbbbbb\"/>",
            140 - height,
            CELL - 1
        );
    }
    out.push_str("</svg>\n");
    out
}
