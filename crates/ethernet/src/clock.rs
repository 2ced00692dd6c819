//! The transport's clock. It reads the processor's counter where that is reliable, because every
//! poll and every message reads the clock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Nanoseconds since its creation. It never goes back, and its rate is right within some hundredths
/// of a percent.
pub(crate) struct Clock {
    start: Instant,
    ticks: Option<Ticks>,
}

impl Clock {
    pub fn new() -> Clock {
        Clock { start: Instant::now(), ticks: Ticks::measure() }
    }

    /// Nanoseconds since its creation, plus one, because 0 means "at once".
    #[inline]
    pub fn now_ns(&self) -> u64 {
        1 + match &self.ticks {
            Some(ticks) => ticks.now_ns(),
            None => self.start.elapsed().as_nanos() as u64,
        }
    }

    /// A number that is greater in each later life of the same address: the time of day in ns.
    pub fn incarnation(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (since.as_nanos() as u64).max(1)
    }
}

/// How long the counter is compared with the system's clock.
const COMPARISON: Duration = Duration::from_micros(300);
/// Fraction bits of [`Ticks::ns_per_tick`].
const FRACTION_BITS: u32 = 32;

/// The processor's counter: its rate is constant, and the same on all processors.
struct Ticks {
    first: u64,
    /// In units of 2^-32 ns.
    ns_per_tick: u64,
}

impl Ticks {
    /// `None`: this processor has no such counter.
    fn measure() -> Option<Ticks> {
        if !counter::is_steady() {
            return None;
        }
        let (since, first) = (Instant::now(), counter::read());
        while since.elapsed() < COMPARISON {
            std::hint::spin_loop();
        }
        let (time, last) = (since.elapsed(), counter::read());
        let ns_per_tick = ((time.as_nanos() as u64) << FRACTION_BITS)
            .checked_div(last.checked_sub(first)?)
            .filter(|&ns_per_tick| ns_per_tick > 0)?;
        Some(Ticks { first, ns_per_tick })
    }

    /// If the counter was reset, for instance by a suspend of the machine, the result leaps ahead
    /// by centuries. Links then end, as their peers have ended them already.
    #[inline]
    fn now_ns(&self) -> u64 {
        let ticks = counter::read().wrapping_sub(self.first);
        ((u128::from(ticks) * u128::from(self.ns_per_tick)) >> FRACTION_BITS) as u64
    }
}

#[cfg(target_arch = "x86_64")]
mod counter {
    use std::arch::x86_64::{__cpuid, _rdtsc};

    const POWER: u32 = 0x8000_0007;

    /// Whether the processor reports a constant counter rate ("invariant TSC", CPUID 8000_0007h).
    pub fn is_steady() -> bool {
        is_reported(__cpuid(0x8000_0000).eax, || __cpuid(POWER).edx)
    }

    /// The same, of a processor whose last extended leaf is `last` and whose leaf 8000_0007h is
    /// `power`.
    pub fn is_reported(last: u32, power: impl FnOnce() -> u32) -> bool {
        last >= POWER && power() & 1 << 8 != 0
    }

    #[inline]
    pub fn read() -> u64 {
        // SAFETY: every x86-64 processor has this instruction.
        unsafe { _rdtsc() }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod counter {
    pub fn is_steady() -> bool {
        false
    }

    pub fn read() -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The clock keeps the system's rate and never goes back.
    #[test]
    fn it_goes_with_the_system() {
        let clock = Clock::new();
        let (since, first_ns) = (Instant::now(), clock.now_ns());
        let mut last_ns = first_ns;
        while since.elapsed() < Duration::from_millis(20) {
            let now_ns = clock.now_ns();
            assert!(now_ns >= last_ns);
            last_ns = now_ns;
        }
        // Both readings enclose the interval, whatever the machine does meanwhile. The rate may be
        // wrong by one percent.
        let enclosed_ns = clock.now_ns() - first_ns;
        assert!(enclosed_ns >= 19_800_000, "{enclosed_ns} ns in more than 20 ms");
    }

    /// The counter is used wherever the processor has a steady one. No reading is 0, not even one
    /// at the very beginning.
    #[test]
    fn the_counter_is_used_and_no_reading_is_zero() {
        assert_eq!(Ticks::measure().is_some(), counter::is_steady());
        let still = Some(Ticks { first: 0, ns_per_tick: 0 });
        assert_eq!(Clock { start: Instant::now(), ticks: still }.now_ns(), 1);
        let ahead = Clock { start: Instant::now() + Duration::from_secs(3600), ticks: None };
        assert_eq!(ahead.now_ns(), 1);
        let first = ahead.incarnation();
        assert!(first > 1, "{first} ns since 1970");
    }

    /// Linux lists the same bit of the processor by name.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_steady_counter_is_what_linux_calls_nonstop() {
        let told = std::fs::read_to_string("/proc/cpuinfo").expect("it is always there");
        let flags = told.lines().find(|line| line.starts_with("flags")).expect("a processor");
        let is_listed = flags.split_whitespace().any(|flag| flag == "nonstop_tsc");
        assert_eq!(counter::is_steady(), is_listed);
    }

    /// Only a processor that has the leaf is asked, and only that bit counts.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_processor_reports_a_steady_counter_in_one_bit() {
        assert!(!counter::is_reported(0x8000_0006, || panic!("it has no such leaf")));
        assert!(counter::is_reported(0x8000_0007, || 0x100));
        assert!(counter::is_reported(0x8000_0008, || 0xffff_ffff));
        assert!(!counter::is_reported(0x8000_0008, || !0x100));
    }
}
