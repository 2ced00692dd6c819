//! Whether a wait for an event looks for a while before it sleeps.
//!
//! Two programs that answer each other wait some microseconds if both look, and ten times as long
//! if both sleep. Other events come when they come, and to look for them only costs a processor.
//! So some waits sleep, some look, and their means are compared. The better way gets longer runs.

use std::time::Duration;

/// Waits whose mean is this or longer are not worth a look.
const FAR: Duration = Duration::from_millis(1);
/// Waits in a mean. With fewer, looks would pass for worth it by luck too often.
const SAMPLE: u32 = 16;
/// Runs of looks become so many times as long if they pay, and runs of sleeps if looks do not.
/// Both sides of a pair find out together sooner if they try often.
const GROWTH: [u32; 2] = [4, 2];
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
    /// The last sample of looks did not pay.
    was_vain: bool,
    /// Since the last mean.
    total: Duration,
    count: u32,
}

impl Looks {
    pub fn new() -> Looks {
        Looks {
            limit: None,
            left: SAMPLE,
            sleeps: SAMPLE,
            looks: SAMPLE,
            was_vain: false,
            total: Duration::ZERO,
            count: 0,
        }
    }

    /// How long the wait that begins looks at most; `None`: not at all.
    pub fn limit(&self) -> Option<Duration> {
        self.limit
    }

    /// That wait has ended, by a look or a sleep.
    pub fn ended(&mut self, took: Duration) {
        // One long pause must not hide how long the others took.
        self.total += took.min(self.limit.map_or(FAR * 2, |limit| limit * 4));
        self.count += 1;
        self.left = self.left.saturating_sub(1);
        match self.limit {
            None if self.left == 0 => {
                let asleep = self.mean();
                self.limit = Some(asleep).filter(|&asleep| asleep < FAR);
                self.left = if self.limit.is_some() { self.looks } else { SAMPLE };
            }
            Some(asleep) if self.count == SAMPLE => self.judge(asleep),
            _ => {}
        }
    }

    /// Whether waits go on looking, after a sample of looks.
    fn judge(&mut self, asleep: Duration) {
        let pays = self.mean() < asleep * 3 / 4;
        // Where looks have paid, one sample may be in vain.
        let is_excused = self.looks > SAMPLE && !self.was_vain;
        self.was_vain = !pays;
        if pays && self.left == 0 {
            (self.looks, self.sleeps) = ((self.looks * GROWTH[0]).min(LONGEST), SAMPLE);
        } else if pays {
            return;
        } else if is_excused {
            self.left = self.left.max(SAMPLE);
            return;
        } else {
            (self.looks, self.sleeps) = (SAMPLE, (self.sleeps * GROWTH[1]).min(LONGEST));
        }
        (self.limit, self.left, self.was_vain) = (None, self.sleeps, false);
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
            // Runs of 64, 256, 1,024, 2,048 and 2,048 looks, and sixteen sleeps before each.
            assert_eq!(waits(&mut looks, 5 * SAMPLE + 5440, looking * US, 68 * US), 5440);
        }
    }

    /// Events that come when they come are looked for seldom, and those that come late never.
    #[test]
    fn other_events_are_slept_for() {
        for every in [60 * US, 250 * US, 999 * US] {
            // After 16, 32, 64 and so on to 2,048 that slept.
            assert_eq!(waits(&mut Looks::new(), 4208, every, every), 8 * SAMPLE, "{every:?}");
        }
        for every in [FAR, FAR * 9] {
            assert_eq!(waits(&mut Looks::new(), 20_000, every, every), 0, "{every:?}");
        }
        // By chance: the gaps of a Poisson process with a mean of 250 us, and 30 us to wake up.
        let mut random = 1u64;
        let mut looks = Looks::new();
        let mut looked = 0;
        for _ in 0..20_000 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let part = (random >> 11) as f64 / (1u64 << 53) as f64;
            let gap = (250 * US).mul_f64(-(1.0 - part).ln());
            let is_found = looks.limit().is_some_and(|limit| gap <= limit);
            looked +=
                waits(&mut looks, 1, if is_found { gap } else { gap + 30 * US }, gap + 30 * US);
        }
        assert!(looked < 4_000, "{looked}");
    }

    /// Where answers no longer come soon, two samples are enough to see it, and one of a pause is
    /// not. After a run of sleeps they are looked for again.
    #[test]
    fn a_change_is_seen() {
        let mut looks = Looks::new();
        let before = 16 + 16 + 16 + 64 + 16 + 256 + 16;
        assert_eq!(waits(&mut looks, before + 96, 5 * US, 68 * US), 16 + 64 + 256 + 96);
        assert_eq!(waits(&mut looks, SAMPLE, 9 * FAR, 68 * US), SAMPLE);
        assert_eq!(waits(&mut looks, SAMPLE, 5 * US, 68 * US), SAMPLE);
        assert_eq!(waits(&mut looks, 2 * SAMPLE + 32, 300 * US, 300 * US), 2 * SAMPLE);
        assert_eq!(waits(&mut looks, 16 + 16 + 64, 5 * US, 68 * US), 16 + 64);
    }
}
