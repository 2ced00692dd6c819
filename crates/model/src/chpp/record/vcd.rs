//! Waveforms of queues and handshakes: a value change dump (IEEE 1364-2005, 18.2), which GTKWave and Surfer show.
//!
//! A scope for each node and controller, in it one for each block, in it its signals; times are in picoseconds. Depths are vectors just wide enough for the
//! largest value that they had; handshakes are single bits.

use std::fmt::Write;

use crate::chpp::machine::Machine;
use crate::units::Time;

use super::signals::{Kind, Signal, Signals, Unit};

/// Everything that the machine noted of its signals; a dump without signals if it noted none.
pub fn waveforms(machine: &Machine) -> String {
    let none = Signals::default();
    let signals = machine.signals().unwrap_or(&none);
    let mut out = String::new();
    // Writing into a string does not fail.
    let _ = write(&mut out, signals);
    out
}

fn write(out: &mut String, signals: &Signals) -> std::fmt::Result {
    let mut most = vec![0; signals.signals.len()];
    for change in &signals.changes {
        let most = &mut most[change.signal as usize];
        *most = change.value.max(*most);
    }
    let widths: Vec<usize> = most.iter().map(|most| bits(*most).len()).collect();
    let version = concat!("bellwire ", env!("CARGO_PKG_VERSION"));
    writeln!(out, "$version {version} $end\n$timescale 1 ps $end")?;
    if signals.cut {
        writeln!(
            out,
            "$comment there were too many changes: those after the last are not here $end"
        )?;
    }
    declare(out, &signals.signals, &widths)?;
    let mut now = None;
    for change in &signals.changes {
        if now != Some(change.time) {
            if now == first(signals) && now.is_some() {
                writeln!(out, "$end")?;
            }
            writeln!(out, "#{}", change.time.ps())?;
            if now.is_none() {
                writeln!(out, "$dumpvars")?;
            }
            now = Some(change.time);
        }
        let at = change.signal as usize;
        match signals.signals[at].kind {
            Kind::Bit => writeln!(out, "{}{}", change.value, code(at))?,
            Kind::Depth => writeln!(out, "b{} {}", bits(change.value), code(at))?,
        }
    }
    if now == first(signals) && now.is_some() {
        writeln!(out, "$end")?;
    }
    match signals.until {
        Some(until) if Some(until) != now => writeln!(out, "#{}", until.ps()),
        _ => Ok(()),
    }
}

fn first(signals: &Signals) -> Option<Time> {
    signals.changes.first().map(|change| change.time)
}

fn declare(out: &mut String, signals: &[Signal], widths: &[usize]) -> std::fmt::Result {
    let mut open: Option<(Unit, &str)> = None;
    for (at, signal) in signals.iter().enumerate() {
        let place = (signal.unit, signal.block);
        if open != Some(place) {
            match open {
                Some((unit, _)) if unit == signal.unit => writeln!(out, "$upscope $end")?,
                Some(_) => writeln!(out, "$upscope $end\n$upscope $end")?,
                None => {}
            }
            if open.is_none_or(|(unit, _)| unit != signal.unit) {
                let unit = signal.unit.to_string().replace(' ', "_");
                writeln!(out, "$scope module {unit} $end")?;
            }
            writeln!(out, "$scope module {} $end", signal.block)?;
            open = Some(place);
        }
        match signal.kind {
            Kind::Bit => writeln!(out, "$var wire 1 {} {} $end", code(at), signal.name)?,
            Kind::Depth => {
                let width = widths[at];
                writeln!(
                    out,
                    "$var wire {width} {} {} [{}:0] $end",
                    code(at),
                    signal.name,
                    width - 1
                )?;
            }
        }
    }
    if open.is_some() {
        writeln!(out, "$upscope $end\n$upscope $end")?;
    }
    writeln!(out, "$enddefinitions $end")
}

/// In twos, without zeros in front.
fn bits(value: u64) -> String {
    format!("{value:b}")
}

/// A short name of printable characters (21.7.2.1): a number in base 94.
fn code(mut number: usize) -> String {
    let mut code = String::new();
    loop {
        code.push((b'!' + (number % 94) as u8) as char);
        number /= 94;
        if number == 0 {
            return code;
        }
        number -= 1;
    }
}
