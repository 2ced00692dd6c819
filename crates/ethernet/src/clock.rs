//! The transport's clock: the processor's own counter where it is fit for that, because every poll and every message reads it.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Nanoseconds since it was made. It never goes back, and its rate is right within some hundredths of a percent.
pub(crate) struct Clock {
    start: Instant,
    ticks: Option<Ticks>,
}

impl Clock {
    pub fn new() -> Clock {
        Clock { start: Instant::now(), ticks: Ticks::measure() }
    }

    /// Nanoseconds since it was made, plus one, as 0 means "at once".
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
/// Bits behind the point of [`Ticks::ns_per_tick`].
const FRACTION_BITS: u32 = 32;

/// The processor's counter, whose ticks are of one length and the same on all processors.
struct Ticks {
    first: u64,
    /// In units of 2^-32 ns.
    ns_per_tick: u64,
}

impl Ticks {
    /// `None`: there is no such counter here.
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

    /// A counter that was set back, as after the machine has slept, leaps ahead by centuries here: links end then, as their peers
    /// have ended them.
    #[inline]
    fn now_ns(&self) -> u64 {
        let ticks = counter::read().wrapping_sub(self.first);
        ((u128::from(ticks) * u128::from(self.ns_per_tick)) >> FRACTION_BITS) as u64
    }
}

#[cfg(target_arch = "x86_64")]
mod counter {
    use std::arch::x86_64::{__cpuid, _rdtsc};

    /// Whether the processor says that its counter never changes its rate ("invariant TSC", CPUID 8000_0007h).
    pub fn is_steady() -> bool {
        const POWER: u32 = 0x8000_0007;
        __cpuid(0x8000_0000).eax >= POWER && __cpuid(POWER).edx & 1 << 8 != 0
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

    /// The clock goes as the system's does, and never back.
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
        // Both readings enclose the time between, whatever the machine does meanwhile; the rate may be wrong by a hundredth.
        let enclosed_ns = clock.now_ns() - first_ns;
        assert!(enclosed_ns >= 19_800_000, "{enclosed_ns} ns in more than 20 ms");
    }
}
