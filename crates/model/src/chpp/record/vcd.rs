//! Waveforms of queues and handshakes, for GTKWave and Surfer.
//!
//! Each node and controller is a scope with one scope for each block, which holds the block's
//! signals. Depths are vectors just wide enough for their largest value; handshakes are single
//! bits.

use super::signals::{Kind, Signals, Unit};
use crate::chpp::machine::Machine;
use crate::vcd::{Dump, Var};

/// The recorded signals of a machine; a dump without signals if none were recorded.
pub fn waveforms(machine: &Machine) -> String {
    let none = Signals::default();
    let signals = machine.signals().unwrap_or(&none);
    let cut = "there were too many changes: those after the last are not here";
    let mut dump = Dump::new(signals.cut.then_some(cut));
    let vars = declare(&mut dump, signals);
    for change in &signals.changes {
        dump.at(change.time);
        let at = change.signal as usize;
        match signals.signals[at].kind {
            Kind::Bit => dump.set_bit(vars[at], change.value != 0),
            Kind::Depth => dump.set_number(vars[at], Some(change.value)),
        }
    }
    dump.end(signals.until)
}

fn declare(dump: &mut Dump, signals: &Signals) -> Vec<Var> {
    let mut most = vec![0; signals.signals.len()];
    for change in &signals.changes {
        let most = &mut most[change.signal as usize];
        *most = change.value.max(*most);
    }
    let mut open: Option<(Unit, &str)> = None;
    let mut vars = Vec::new();
    for (signal, most) in signals.signals.iter().zip(most) {
        let place = (signal.unit, signal.block);
        if open != Some(place) {
            if open.is_some() {
                dump.close();
            }
            if open.is_none_or(|(unit, _)| unit != signal.unit) {
                if open.is_some() {
                    dump.close();
                }
                dump.open(&signal.unit.to_string());
            }
            dump.open(signal.block);
            open = Some(place);
        }
        vars.push(match signal.kind {
            Kind::Bit => dump.bit(&signal.name),
            Kind::Depth => dump.number(&signal.name, most),
        });
    }
    if open.is_some() {
        dump.close();
        dump.close();
    }
    dump.begin();
    vars
}
