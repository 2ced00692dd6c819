//! A record of all uses of the NIC's units, separate from the code that schedules them. It allows
//! the check that no unit is used twice at one time (M-18), and shows overlap (M-20, M-21).

use super::pipeline::{Step, Unit};
use crate::units::{Span, Time};

/// One use of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// The host.
    pub host: u8,
    /// The unit.
    pub unit: Unit,
    /// The step.
    pub step: Step,
    /// The job.
    pub job: u64,
    /// Its beginning.
    pub from: Time,
    /// Its end.
    pub to: Time,
}

/// All uses, while it is open.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    open: bool,
    uses: Vec<Use>,
}

/// Two uses of one unit overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("host {}: {:?} did {:?} until {} and {:?} from {}", .0.host, .0.unit, .0.step, .0.to, .1.step, .1.from)]
pub struct DoubleUse(pub Use, pub Use);

impl Journal {
    /// Starts recording.
    pub fn open(&mut self) {
        self.open = true;
    }

    /// Records a use.
    pub(super) fn note(&mut self, entry: Use) {
        if self.open {
            self.uses.push(entry);
        }
    }

    /// The uses, in order of their ends.
    pub fn uses(&self) -> &[Use] {
        &self.uses
    }

    /// Checks that no unit was used twice at one time.
    ///
    /// # Errors
    /// The first two uses that overlap.
    pub fn check(&self) -> Result<(), DoubleUse> {
        let mut uses = self.uses.clone();
        uses.sort_by_key(|entry| (entry.host, entry.unit, entry.from, entry.to));
        let overlaps = |pair: &&[Use]| {
            let (one, other) = (pair[0], pair[1]);
            (one.host, one.unit) == (other.host, other.unit) && other.from < one.to
        };
        match uses.windows(2).find(overlaps) {
            Some(pair) => Err(DoubleUse(pair[0], pair[1])),
            None => Ok(()),
        }
    }

    /// The time in which all of `units` were busy, on one host.
    pub fn overlap(&self, host: u8, units: &[Unit]) -> Span {
        let mut edges: Vec<(Time, bool)> = Vec::new();
        for entry in &self.uses {
            if entry.host == host && units.contains(&entry.unit) && entry.from < entry.to {
                edges.extend([(entry.from, true), (entry.to, false)]);
            }
        }
        // At one time, ends sort before beginnings.
        edges.sort_unstable();
        let (mut busy, mut since, mut total) = (0, Time::ZERO, Span::ZERO);
        for (at, begins) in edges {
            if busy == units.len() {
                total += at.since(since);
            }
            busy = if begins { busy + 1 } else { busy - 1 };
            since = at;
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(unit: Unit, from: u64, to: u64) -> Use {
        let (from, to) = (Time::from_ps(from), Time::from_ps(to));
        Use { host: 0, unit, step: Step::Fetch, job: 0, from, to }
    }

    /// Adjacent uses pass, overlapping uses are found, and the overlap of two units is measured.
    #[test]
    fn overlaps_are_found() {
        let mut journal = Journal::default();
        journal.open();
        journal.note(entry(Unit::HostDma, 0, 10));
        journal.note(entry(Unit::HostDma, 10, 20));
        journal.note(entry(Unit::SendDma, 5, 12));
        journal.check().unwrap();
        let both = [Unit::HostDma, Unit::SendDma];
        assert_eq!(journal.overlap(0, &both), Span::from_ps(7));
        assert_eq!(journal.overlap(1, &both), Span::ZERO);
        journal.note(entry(Unit::HostDma, 19, 21));
        assert!(journal.check().unwrap_err().to_string().contains("HostDma did Fetch until 20 ps"));
    }
}
