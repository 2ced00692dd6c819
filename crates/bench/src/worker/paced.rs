//! Messages at random times: when each is due, and how long after that it arrives.

use super::Outcome;
use crate::op::HALF_LOAD_NS_PER_BYTE;

/// Time on a clock that all processes of this machine share, in ns.
pub fn now_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// When messages are due. They do not depend on each other (Poisson), so that some come in bursts,
/// and are the same in each sample. A sender that is late does not shift those behind.
pub struct Schedule {
    due_ns: f64,
    mean_ns: f64,
    state: u64,
}

impl Schedule {
    /// Messages of `bytes` at half of a line of 1 Gbit/s, from now on.
    pub fn new(bytes: usize) -> Schedule {
        let mean_ns = bytes as f64 * HALF_LOAD_NS_PER_BYTE;
        Schedule { due_ns: now_ns() as f64, mean_ns, state: 0x9e37_79b9_7f4a_7c15 }
    }

    /// When the next message is due, in ns of [`now_ns`].
    pub fn next_ns(&mut self) -> u64 {
        // Xorshift (Marsaglia 2003).
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let chance = ((self.state >> 11) + 1) as f64 / (1u64 << 53) as f64;
        self.due_ns -= self.mean_ns * chance.ln();
        self.due_ns as u64
    }
}

/// Writes into a message when it was due. Its number stands before that, and at its end.
pub fn stamp(message: &mut [u8], due_ns: u64) {
    message[8..16].copy_from_slice(&due_ns.to_ne_bytes());
}

/// How late the messages of a sample came.
pub struct Delays(Vec<u64>);

impl Delays {
    /// Room for `count` messages.
    pub fn new(count: u64) -> Delays {
        Delays(Vec::with_capacity(count as usize))
    }

    /// A stamped message is here.
    pub fn arrived(&mut self, message: &[u8]) {
        let due_ns = u64::from_ne_bytes(std::array::from_fn(|i| message[8 + i]));
        self.0.push(now_ns().saturating_sub(due_ns));
    }

    /// The delay that one of 1,000 messages exceeds.
    pub fn outcome(mut self) -> Outcome {
        self.0.sort_unstable();
        let place = self.0.len() - 1 - self.0.len() / 1_000;
        Outcome { time_ns: self.0[place], shares: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean gap is that of half a line's load, and some gaps are far shorter.
    #[test]
    fn messages_come_at_half_load() {
        let mut schedule = Schedule::new(1_024);
        let first = schedule.next_ns();
        let due: Vec<u64> = (0..100_000).map(|_| schedule.next_ns()).collect();
        let mean_ns = (due[due.len() - 1] - first) as f64 / due.len() as f64;
        assert!((16_000.0..16_800.0).contains(&mean_ns), "{mean_ns}");
        let short = due.windows(2).filter(|pair| pair[1] - pair[0] < 1_638).count();
        assert!((8_500..10_500).contains(&short), "{short} of a tenth of the mean");
    }

    /// Of 2,000 delays the third longest counts: one of 1,000 is longer.
    #[test]
    fn one_of_a_thousand_is_longer() {
        let mut delays = Delays((1..=1_999).collect());
        let mut message = [0; 24];
        stamp(&mut message, now_ns() - 1_000_000_000);
        delays.arrived(&message);
        assert!(delays.0[1_999] >= 1_000_000_000);
        assert_eq!(delays.outcome().time_ns, 1_998);
    }
}
