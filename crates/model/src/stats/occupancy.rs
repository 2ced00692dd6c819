//! The occupancy of a queue over time, and Little's law as a check on it.

use crate::units::{Span, Time};

/// Counts the items in a queue, a pool of tags or a buffer.
///
/// Two sums are kept independently. One is the number inside over time, by this struct's count. The
/// other is the stay of each item, from the entry time that travels with it. By Little's law the
/// sums are equal for any traffic. If they differ, an item was lost, invented or counted twice.
#[derive(Clone, Debug, Default)]
pub struct Occupancy {
    inside: u64,
    most: u64,
    entered: u64,
    left: u64,
    /// The area under the number inside, in items times picoseconds, minus that number times the
    /// present. This equals the sum of all exit times minus the sum of all entry times, so an
    /// update needs no multiplication.
    moments: i128,
    stayed: u128,
}

/// A violated law of conservation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{queue}: {law} ({details})")]
pub struct Imbalance {
    /// The queue.
    pub queue: String,
    /// The law.
    pub law: &'static str,
    /// The two sides that differ.
    pub details: String,
}

impl Occupancy {
    /// An item enters, now. The caller stores `now` with it.
    #[inline]
    pub fn enter(&mut self, now: Time) {
        self.moments -= i128::from(now.ps());
        self.inside += 1;
        self.entered += 1;
        self.most = self.most.max(self.inside);
    }

    /// An item that entered at `entered` leaves, now.
    #[inline]
    pub fn leave(&mut self, entered: Time, now: Time) {
        self.moments += i128::from(now.ps());
        self.inside -= 1;
        self.left += 1;
        self.stayed += u128::from(now.since(entered).ps());
    }

    /// How many are inside.
    pub fn inside(&self) -> u64 {
        self.inside
    }

    /// The maximum number inside at once.
    pub fn most(&self) -> u64 {
        self.most
    }

    /// How many have entered.
    pub fn entered(&self) -> u64 {
        self.entered
    }

    /// How many have left.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// The mean number inside, over all time until `now`.
    pub fn mean(&self, now: Time) -> f64 {
        let area = self.area(now);
        if now == Time::ZERO { 0.0 } else { area as f64 / now.ps() as f64 }
    }

    /// The mean stay of the items that have left.
    pub fn mean_stay(&self) -> Span {
        Span::from_ps((self.stayed / u128::from(self.left.max(1))) as u64)
    }

    /// Checks Little's law and the balance of the counts, exactly. `inside` gives the entry times
    /// of the items inside, from the items themselves.
    ///
    /// # Errors
    /// The violated law, with both sides.
    pub fn audit(
        &self,
        queue: &str,
        now: Time,
        inside: impl IntoIterator<Item = Time>,
    ) -> Result<(), Imbalance> {
        let wrong = |law, details| Err(Imbalance { queue: queue.to_owned(), law, details });
        let (mut found, mut stays) = (0, self.stayed);
        for entered in inside {
            found += 1;
            stays += u128::from(now.since(entered).ps());
        }
        if self.entered != self.left + self.inside || found != self.inside {
            let details = format!(
                "{} entered, {} left, {} inside, {found} found there",
                self.entered, self.left, self.inside
            );
            return wrong("entered = left + inside does not hold", details);
        }
        let area = self.area(now);
        if area != stays {
            let details = format!("number over time {area} ps, sum of stays {stays} ps");
            return wrong("Little's law does not hold", details);
        }
        Ok(())
    }

    /// The number inside over all time until `now`, in items times picoseconds.
    fn area(&self, now: Time) -> u128 {
        (self.moments + i128::from(self.inside) * i128::from(now.ps())) as u128
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(ns: u64) -> Time {
        Time::from_ps(ns * 1000)
    }

    /// The mean is taken over time, and the law holds with items still inside.
    #[test]
    fn little_holds() {
        let mut queue = Occupancy::default();
        queue.enter(ns(0));
        queue.enter(ns(10));
        queue.leave(ns(0), ns(20));
        assert_eq!(queue.mean(ns(40)), 50.0 / 40.0);
        assert_eq!(queue.mean_stay(), Span::from_ns(20));
        assert_eq!((queue.inside(), queue.most(), queue.entered(), queue.left()), (1, 2, 2, 1));
        queue.audit("queue", ns(40), [ns(10)]).unwrap();
    }

    /// Canary: an item with a wrong entry time breaks the law, and so does a lost one.
    #[test]
    fn a_wrong_stay_is_caught() {
        let mut queue = Occupancy::default();
        queue.enter(ns(5));
        queue.enter(ns(7));
        queue.leave(ns(4), ns(9));
        let error = queue.audit("tags", ns(9), [ns(7)]).unwrap_err();
        assert!(error.to_string().contains("tags: Little's law"), "{error}");
        let error = queue.audit("tags", ns(9), []).unwrap_err();
        assert!(error.to_string().contains("0 found there"), "{error}");
    }
}
