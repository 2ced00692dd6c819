//! Which way long packets are copied into a lane: by ordinary stores, or past the cache.
//!
//! The lines of a lane are in the cache of the processor that read them last. An ordinary store
//! waits until that one has given its line up. A store past the cache does not wait, and the
//! receiver then reads from memory. Which way is quicker depends on where the two processors are,
//! and a virtual machine is moved while it runs. So a sender times some of its ordinary copies.
//!
//! 64 KiB in packets of 8 KiB through room for 10, on an AMD EPYC 9004, in microseconds (the
//! sender's copies alone, and the whole way, with copies on both sides at once):
//!
//! | the two processors | ordinary | past the cache |
//! |---|---|---|
//! | share the third-level cache | 7.4, 8.0 | 2.9, 5.5 |
//! | share none | 29, 32 | 3.0, 5.7 |
//!
//! Through room for two packets ordinary copies are the quicker ones where processors share a
//! cache: 8 against 9 microseconds. So only much slower ones go past it.

use crate::memory::{LONG_BYTES, View};
use std::time::{Duration, Instant};

/// Nanoseconds that an ordinary copy of a KiB takes, above which copies go past the cache. Within
/// a cache that processors share it takes 115, between caches 450.
const SLOW_NS: u32 = 200;
/// The most that one copy counts, in nanoseconds a KiB. It may have been interrupted.
const MOST_NS: u32 = 1000;
/// One ordinary copy of so many is timed. A clock costs a twentieth of a copy.
const TIMED: u32 = 8;
/// One copy of so many is an ordinary one while the others go past the cache. It may take ten
/// times as long.
const TRIED: u32 = 128;

/// What a sender knows of its copies.
pub(super) struct Copies {
    /// Whether this processor is one where copies past the cache were seen to be quicker.
    may_stream: bool,
    /// The mean of ordinary copies, in nanoseconds a KiB.
    cost: u32,
    /// Copies until the next one is timed.
    left: u32,
}

impl Copies {
    pub(super) fn new() -> Copies {
        Copies { may_stream: is_amd(), cost: 0, left: TIMED }
    }

    /// Copies a long packet's `body` by `copy`, which heeds [`View::streaming`].
    #[inline(never)]
    pub(super) fn copy<'v>(&mut self, body: View<'v>, copy: impl FnOnce(View<'v>)) {
        debug_assert!(body.len() >= LONG_BYTES);
        if !self.may_stream {
            return copy(body);
        }
        self.left -= 1;
        if self.left == 0 {
            let begin = Instant::now();
            copy(body);
            self.note(body.len(), begin.elapsed());
        } else if self.cost > SLOW_NS {
            copy(body.streaming());
        } else {
            copy(body);
        }
    }

    /// An ordinary copy of `bytes` bytes took `time`.
    fn note(&mut self, bytes: usize, time: Duration) {
        let ns = time.as_nanos() * 1024 / bytes as u128;
        let ns = ns.min(MOST_NS.into()) as u32;
        self.cost = (3 * self.cost + ns) / 4;
        self.left = if self.cost > SLOW_NS { TRIED } else { TIMED };
    }
}

/// Elsewhere no copy past the cache has been measured.
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn is_amd() -> bool {
    use std::sync::OnceLock;
    // The question costs a virtual machine an exit.
    static IS_AMD: OnceLock<bool> = OnceLock::new();
    *IS_AMD.get_or_init(|| {
        let id = std::arch::x86_64::__cpuid(0);
        [id.ebx, id.edx, id.ecx].map(u32::to_le_bytes).as_flattened() == b"AuthenticAMD"
    })
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn is_amd() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Copies `count` long packets and returns how many went past the cache, if each ordinary copy
    /// that is timed takes `ns` a KiB.
    fn streamed(copies: &mut Copies, count: u32, ns: u64) -> u32 {
        let body = [0; LONG_BYTES];
        let mut streamed = 0;
        for _ in 0..count {
            if copies.left == 1 {
                copies.note(1 << 10, Duration::from_nanos(ns));
            } else {
                copies.copy(View::of(&body), |body| streamed += u32::from(body.is_streaming()));
            }
        }
        streamed
    }

    /// Slow copies go past the cache soon, but for one in [`TRIED`]. All are ordinary again when
    /// those are quick.
    #[test]
    fn slow_copies_go_past_the_cache() {
        let mut copies = Copies { may_stream: true, cost: 0, left: TIMED };
        assert_eq!(streamed(&mut copies, 1000, SLOW_NS.into()), 0);
        let many = 10 * TRIED;
        copies = Copies { may_stream: true, cost: 0, left: TIMED };
        // The mean after each timed copy is 112, 196 and 259.
        assert_eq!(streamed(&mut copies, 3 * TIMED, 450), 0);
        assert_eq!(streamed(&mut copies, many, 450), many - 10);
        // From 438 on it is 353, 289, 241, 205 and 178.
        assert_eq!(streamed(&mut copies, many, 100), 5 * (TRIED - 1));
        assert_eq!(streamed(&mut copies, many, 100), 0);
    }

    /// One copy that was interrupted counts as a slow one and no more, and a clock that shows no
    /// time as a quick one.
    #[test]
    fn one_copy_counts_for_a_quarter() {
        let mut copies = Copies { may_stream: true, cost: 0, left: TIMED };
        copies.note(8 << 10, Duration::from_secs(1));
        assert_eq!((copies.cost, copies.left), (MOST_NS / 4, TRIED));
        copies.note(8 << 10, Duration::ZERO);
        assert_eq!((copies.cost, copies.left), (187, TIMED));
    }

    /// A mean at the limit is not above it.
    #[test]
    fn the_limit_is_not_slow() {
        let mut copies = Copies { may_stream: true, cost: SLOW_NS, left: TIMED };
        assert_eq!(streamed(&mut copies, 1, 0), 0);
        copies.note(1 << 10, Duration::from_nanos(SLOW_NS.into()));
        assert_eq!((copies.cost, copies.left), (SLOW_NS, TIMED));
    }

    /// The kernel names the same maker of this processor.
    #[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
    #[test]
    fn the_maker_is_that_which_the_kernel_names() {
        let processor = std::fs::read_to_string("/proc/cpuinfo").expect("the kernel's list");
        assert_eq!(is_amd(), processor.contains("AuthenticAMD"));
    }

    /// Where nothing was measured every copy is an ordinary one, and no clock is read.
    #[test]
    fn other_processors_copy_as_ever() {
        let mut copies = Copies { may_stream: false, cost: MOST_NS, left: TIMED };
        let body = [0; LONG_BYTES];
        for _ in 0..2 * TIMED {
            copies.copy(View::of(&body), |body| assert!(!body.is_streaming()));
        }
        assert_eq!((copies.cost, copies.left), (MOST_NS, TIMED));
    }
}
