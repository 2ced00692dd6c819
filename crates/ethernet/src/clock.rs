//! The transport's clock. It reads the processor's counter where that is reliable, because every
//! poll and every message reads the clock. Where it is not, and the system's clock is slow, the
//! counter serves for short whiles between readings of that.

use std::cell::Cell;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Nanoseconds since its creation. It never goes back. Its rate is right within some hundredths of
/// a percent; between readings of a slow clock it is wrong by at most [`BETWEEN_READINGS`].
pub(crate) struct Clock {
    start: Instant,
    source: Source,
}

enum Source {
    /// The processor's counter.
    Ticks(Ticks),
    /// The system's clock.
    System,
    /// The system's clock, and the counter between two readings.
    Between(Between),
}

impl Clock {
    pub fn new() -> Clock {
        let start = Instant::now();
        let source = match Ticks::measure() {
            Some(ticks) if counter::is_steady() => Source::Ticks(ticks),
            Some(ticks) if reading() > SLOW_READING => Source::Between(Between::new(ticks)),
            _ => Source::System,
        };
        Clock { start, source }
    }

    /// Nanoseconds since its creation, plus one, because 0 means "at once".
    #[inline]
    pub fn now_ns(&self) -> u64 {
        1 + match &self.source {
            Source::Ticks(ticks) => ticks.now_ns(),
            Source::System => self.start.elapsed().as_nanos() as u64,
            Source::Between(between) => {
                between.now_ns(counter::read(), || self.start.elapsed().as_nanos() as u64)
            }
        }
    }

    /// A number that is greater in each later life of the same address: the time of day in ns.
    pub fn incarnation(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (since.as_nanos() as u64).max(1)
    }
}

/// The system's clock is slow if a reading takes longer. Emulated machines take microseconds; real
/// ones 30 ns, and those without a usable counter a microsecond.
const SLOW_READING: Duration = Duration::from_nanos(200);
/// How long the counter serves after a reading of a slow clock.
const BETWEEN_READINGS: Duration = Duration::from_micros(100);

/// The time that one reading of the system's clock takes, in the best of some cases.
fn reading() -> Duration {
    let pair = |_| {
        let first = Instant::now();
        first.elapsed()
    };
    (0..8).map(pair).min().unwrap_or_default()
}

/// The counter, where it may change its rate or differ between processors, so that it is trusted
/// for a short while only.
struct Between {
    ticks: Ticks,
    /// The counter at the last reading of the system's clock, and that reading in ns.
    reading: Cell<(u64, u64)>,
    /// The latest result, in ns.
    last_ns: Cell<u64>,
}

impl Between {
    fn new(ticks: Ticks) -> Between {
        // So long ago that the first call reads the system's clock.
        let first = ticks.first.wrapping_sub(1 << 63);
        Between { ticks, reading: Cell::new((first, 0)), last_ns: Cell::new(0) }
    }

    /// `read`: the system's clock, in ns.
    #[inline]
    fn now_ns(&self, tick: u64, read: impl FnOnce() -> u64) -> u64 {
        let (first, reading_ns) = self.reading.get();
        // A counter that went back, as on another processor, seems to be centuries ahead.
        let passed_ns = self.ticks.ns(tick.wrapping_sub(first));
        let now_ns = if u128::from(passed_ns) < BETWEEN_READINGS.as_nanos() {
            reading_ns + passed_ns
        } else {
            let now_ns = read();
            self.reading.set((tick, now_ns));
            now_ns
        };
        self.last_ns.set(now_ns.max(self.last_ns.get()));
        self.last_ns.get()
    }
}

/// How long the counter is compared with the system's clock.
const COMPARISON: Duration = Duration::from_micros(300);
/// Fraction bits of [`Ticks::ns_per_tick`].
const FRACTION_BITS: u32 = 32;

/// The processor's counter. If it is steady, its rate is constant, and the same on all processors.
struct Ticks {
    first: u64,
    /// In units of 2^-32 ns.
    ns_per_tick: u64,
}

impl Ticks {
    /// `None`: this processor has no such counter.
    fn measure() -> Option<Ticks> {
        if !counter::IS_THERE {
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
        self.ns(counter::read().wrapping_sub(self.first))
    }

    /// The nanoseconds of so many ticks.
    #[inline]
    fn ns(&self, ticks: u64) -> u64 {
        ((u128::from(ticks) * u128::from(self.ns_per_tick)) >> FRACTION_BITS) as u64
    }
}

#[cfg(target_arch = "x86_64")]
mod counter {
    use std::arch::x86_64::{__cpuid, _rdtsc};

    pub const IS_THERE: bool = true;
    const POWER: u32 = 0x8000_0007;

    /// Whether the processor reports a constant counter rate ("invariant TSC", CPUID 8000_0007h).
    pub fn is_steady() -> bool {
        // Newer compilers than the oldest that is promised call it safe.
        #[allow(unused_unsafe)]
        // SAFETY: each processor of x86-64 has the instruction.
        let leaf = |number| unsafe { __cpuid(number) };
        is_reported(leaf(0x8000_0000).eax, || leaf(POWER).edx)
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
    pub const IS_THERE: bool = false;

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
        let clock = Clock::new();
        assert_eq!(matches!(clock.source, Source::Ticks(_)), counter::is_steady());
        let still = Source::Ticks(Ticks { first: 0, ns_per_tick: 0 });
        assert_eq!(Clock { start: Instant::now(), source: still }.now_ns(), 1);
        let hour = Duration::from_secs(3600);
        let ahead = Clock { start: Instant::now() + hour, source: Source::System };
        assert_eq!(ahead.now_ns(), 1);
        let first = ahead.incarnation();
        assert!(first > 1, "{first} ns since 1970");
    }

    /// A counter that is not steady serves for 100 us after a reading of the system's clock. If it
    /// goes back or leaps, the system's clock is read, and the result never goes back.
    #[test]
    fn between_readings_the_counter_serves() {
        // Two ticks are a nanosecond.
        let ticks = Ticks { first: 1000, ns_per_tick: 1 << (FRACTION_BITS - 1) };
        let between = Between::new(ticks);
        let unread = || panic!("the system's clock is read");
        assert_eq!(between.now_ns(1000, || 50), 50);
        assert_eq!(between.now_ns(1200, unread), 150);
        assert_eq!(between.now_ns(200_999, unread), 100_049);
        // Too long after; the system's clock was slower.
        assert_eq!(between.now_ns(201_000, || 90_000), 100_049);
        assert_eq!(between.now_ns(201_010, unread), 100_049);
        assert_eq!(between.now_ns(221_200, unread), 100_100);
        // Back, and ahead by much.
        assert_eq!(between.now_ns(7, || 100_200), 100_200);
        assert_eq!(between.now_ns(27, unread), 100_210);
        assert_eq!(between.now_ns(1 << 60, || 100_220), 100_220);
    }

    /// Such a clock goes with the system's too.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_slow_clock_goes_with_the_system() {
        let ticks = Ticks::measure().expect("a counter");
        let clock = Clock { start: Instant::now(), source: Source::Between(Between::new(ticks)) };
        let mut last_ns = 0;
        while clock.start.elapsed() < Duration::from_millis(5) {
            let (least_ns, now_ns) = (clock.start.elapsed().as_nanos() as u64, clock.now_ns());
            assert!(now_ns >= last_ns);
            assert!(now_ns + 100_000 >= least_ns, "{now_ns} ns after {least_ns}");
            last_ns = now_ns;
        }
        let most_ns = clock.start.elapsed().as_nanos() as u64 + 100_000;
        assert!(last_ns <= most_ns, "{last_ns} ns of {most_ns}");
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
