//! The run of Section 3.3 as a waveform: a value change dump for GTKWave, and a drawing.

use std::fmt::Write;

use super::fig9::{PORTS, Sample};
use crate::damq_pd::Config;
use crate::units::Time;
use crate::vcd::Dump;

/// The samples as a value change dump, on the paper's clock in picoseconds.
pub fn vcd(samples: &[Sample]) -> String {
    let period = Config::paper().nic.clock.period();
    let most = samples.iter().map(|sample| u64::from(sample.inside)).max().unwrap_or(0);
    let mut dump = Dump::new(None);
    dump.open("damq_pd");
    let clock = dump.bit("clock");
    let write = (dump.bit("write_valid"), dump.number("write_port", PORTS as u64 - 1));
    let read = (dump.bit("read_valid"), dump.number("read_port", PORTS as u64 - 1));
    let inside = dump.number("words_inside", most);
    dump.close();
    dump.begin();
    for (sample, at) in samples.iter().zip(0..) {
        let edge = Time::ZERO + period * at;
        dump.at(edge);
        dump.set_bit(clock, true);
        for ((valid, number), port) in [(write, sample.wrote), (read, sample.left)] {
            dump.set_bit(valid, port.is_some());
            dump.set_number(number, port.map(u64::from));
        }
        dump.set_number(inside, Some(sample.inside.into()));
        dump.at(edge + period / 2);
        dump.set_bit(clock, false);
    }
    dump.end(None)
}

/// The samples as a drawing. Each word that enters or leaves is a box in the colour of its port; a
/// grey bar shows the words inside.
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
