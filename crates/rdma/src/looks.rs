//! Whether a wait for an event looks for a while before it sleeps.
//!
//! Two programs that answer each other wait some microseconds if both look, and ten times as long
//! if both sleep. Other events come when they come, and to look for them only costs a processor.
//! So some waits sleep, some look, and their means are compared. The better way gets longer runs.

use std::time::Duration;

/// Waits whose mean is this or longer are not worth a look.
const FAR: Duration = Duration::from_millis(1);
/// Waits in a mean. With fewer, looks would pass for worth it by luck too often.
const SAMPLE: u32 = 8;
/// A run of the better way is so many times as long as its last one.
const GROWTH: u32 = 4;
/// Longest run.
const LONGEST: u32 = 2048;

/// What the waits of one context do, of which one at a time counts.
pub(crate) struct Looks {
    /// Mean of the last run of waits that slept. They look no longer than that. `None`: they sleep.
    limit: Option<Duration>,
    /// Waits of the current run that are left.
    left: u32,
    /// The next runs.
    sleeps: u32,
    looks: u32,
    /// Since the last mean.
    total: Duration,
    count: u32,
}

impl Looks {
    pub fn new() -> Looks {
        let (total, count) = (Duration::ZERO, 0);
        Looks { limit: None, left: SAMPLE, sleeps: SAMPLE, looks: SAMPLE, total, count }
    }

    /// How long the wait that begins looks at most; `None`: not at all.
    pub fn limit(&self) -> Option<Duration> {
        self.limit
    }

    /// That wait has ended, by a look or a sleep.
    pub fn ended(&mut self, took: Duration) {
        // One long pause must not hide how long the others took.
        self.total += took.min(FAR * 2);
        self.count += 1;
        self.left = self.left.saturating_sub(1);
        match self.limit {
            None if self.left > 0 => {}
            None => {
                let asleep = self.mean();
                self.limit = Some(asleep).filter(|&asleep| asleep < FAR);
                self.left = if self.limit.is_some() { self.looks } else { SAMPLE };
            }
            Some(asleep) if self.count == SAMPLE => {
                if self.mean() >= asleep * 2 / 3 {
                    (self.looks, self.sleeps) = (SAMPLE, (self.sleeps * GROWTH).min(LONGEST));
                } else if self.left > 0 {
                    return;
                } else {
                    (self.looks, self.sleeps) = ((self.looks * GROWTH).min(LONGEST), SAMPLE);
                }
                (self.limit, self.left) = (None, self.sleeps);
            }
            Some(_) => {}
        }
    }

    /// The mean since the last one.
    fn mean(&mut self) -> Duration {
        let mean = self.total / self.count;
        (self.total, self.count) = (Duration::ZERO, 0);
        mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Duration = Duration::from_micros(1);

    /// So many waits for an event that comes after `looking` if the wait looks, and after
    /// `sleeping` if it sleeps. Returns how many looked.
    fn waits(looks: &mut Looks, count: u32, looking: Duration, sleeping: Duration) -> u32 {
        let mut looked = 0;
        for _ in 0..count {
            let looks_now = looks.limit().is_some();
            looked += u32::from(looks_now);
            looks.ended(if looks_now { looking } else { sleeping });
        }
        looked
    }

    /// Waits that become shorter by looks look, except for some that are compared.
    #[test]
    fn answers_are_looked_for() {
        for looking in [5, 39] {
            let mut looks = Looks::new();
            assert_eq!(waits(&mut looks, SAMPLE, looking * US, 68 * US), 0);
            assert_eq!(waits(&mut looks, SAMPLE, looking * US, 68 * US), SAMPLE);
            assert_eq!(looks.limit(), None);
            // Runs of 32, 128, 512, 2,048, 2,048, 2,048, and eight waits before each.
            assert_eq!(waits(&mut looks, 6 * 8 + 6816, looking * US, 68 * US), 6816);
        }
    }

    /// Events that come when they come are looked for seldom, and those that come late never.
    #[test]
    fn other_events_are_slept_for() {
        for every in [60 * US, 250 * US, 999 * US] {
            // After 8, 32, 128, 512, and twice 2,048 that slept.
            assert_eq!(waits(&mut Looks::new(), 4824, every, every), 6 * SAMPLE, "{every:?}");
        }
        for every in [FAR, FAR * 9] {
            assert_eq!(waits(&mut Looks::new(), 20_000, every, every), 0, "{every:?}");
        }
        // By chance: the gaps of a Poisson process with a mean of 250 us.
        let mut random = 1u64;
        let mut looks = Looks::new();
        let mut looked = 0;
        for _ in 0..20_000 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let part = (random >> 11) as f64 / (1u64 << 53) as f64;
            let gap = (250 * US).mul_f64(-(1.0 - part).ln());
            looked += waits(&mut looks, 1, gap, gap);
        }
        assert!(looked < 600, "{looked}");
    }

    /// Where answers no longer come soon, eight looks are enough to see it. After a run of sleeps
    /// they are looked for again.
    #[test]
    fn a_change_is_seen() {
        let mut looks = Looks::new();
        let before = 8 + 8 + 8 + 32 + 8 + 128 + 8;
        assert_eq!(waits(&mut looks, before + 100, 5 * US, 68 * US), 8 + 32 + 128 + 100);
        assert_eq!(waits(&mut looks, 4 + 32, 300 * US, 300 * US), 4);
        assert_eq!(waits(&mut looks, 8 + 8 + 32, 5 * US, 68 * US), 8 + 32);
    }
}
