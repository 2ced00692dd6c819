//! `tag_alloc`: the central allocator of PCIe tags (C-36; cHPP section 5.1), as
//! `hardware/tag_alloc` builds it.
//!
//! Its rules are those of the event-driven model's allocator, one take and one release a cycle.
//! Besides, it frees tags whose completions do not come.

use super::stream_fifo::{self, StreamFifo};

/// Bits of a tag: PCIe's extended tags.
pub const TAG_BITS: usize = 8;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// A tag is taken, if one is offered.
        tag_ready: bool = 1,
        /// A tag comes back, because its read has ended.
        release_valid: bool = 1,
        /// The tag that comes back.
        release_tag: u8 = TAG_BITS,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// A tag is offered.
        tag_valid: bool = 1,
        /// The tag; zero if none is offered.
        tag: u8 = TAG_BITS,
        /// Tags in use.
        in_use: u16 = 9,
        /// What came back in the cycle before is not in use.
        refused: bool = 1,
        /// A tag was freed in the cycle before, because its completions did not come in time.
        lost_valid: bool = 1,
        /// That tag; zero if there is none.
        lost_tag: u8 = TAG_BITS,
    }
}

/// An allocator of up to 256 tags; all are free, and leave in the order of their numbers first.
///
/// A tag that comes back in cycle `t` is offered from `t + 2` on.
#[derive(Clone, Debug)]
pub struct TagAlloc {
    tags: usize,
    /// The first of the tags that were never taken.
    fresh: usize,
    /// The other free tags, oldest first.
    free: StreamFifo,
    /// Of each tag in use, the ticks since it was taken, up to two.
    used: Vec<Option<u8>>,
    in_use: u16,
    /// Cycles since the last tick; one comes every `timeout` cycles.
    timer: u64,
    timeout: u64,
    /// The tag that is looked at in this cycle.
    probe: usize,
    refused: bool,
    lost: Option<u8>,
}

impl TagAlloc {
    /// An allocator that waits for completions for `timeout` to 2 × `timeout` cycles.
    ///
    /// # Panics
    /// Unless there are 1 to 256 tags, and a timeout.
    pub fn new(tags: usize, timeout: u64) -> TagAlloc {
        assert!((1..=1 << TAG_BITS).contains(&tags) && timeout > 0, "1 to 256 tags, and a timeout");
        TagAlloc {
            tags,
            fresh: 0,
            free: StreamFifo::new(tags),
            used: vec![None; tags.next_power_of_two().max(2)],
            in_use: 0,
            timer: 0,
            timeout,
            probe: 0,
            refused: false,
            lost: None,
        }
    }

    /// What stands at the outputs in this cycle; it does not depend on what enters.
    #[inline]
    pub fn out(&self) -> Out {
        let old = self.free.out();
        let is_fresh = self.fresh < self.tags;
        Out {
            tag_valid: is_fresh || old.out_valid,
            tag: if is_fresh { self.fresh as u8 } else { old.out_data as u8 },
            in_use: self.in_use,
            refused: self.refused,
            lost_valid: self.lost.is_some(),
            lost_tag: self.lost.unwrap_or(0),
        }
    }

    /// One cycle.
    #[inline]
    pub fn cycle(&mut self, input: In) -> Out {
        let out = self.out();
        let is_fresh = self.fresh < self.tags;
        let takes = out.tag_valid && input.tag_ready;
        let freed = self.freed(input);
        let ticks = self.timer + 1 == self.timeout;
        self.timer = if ticks { 0 } else { self.timer + 1 };
        if ticks {
            self.used.iter_mut().flatten().for_each(|age| *age = (*age + 1).min(2));
        }
        if let Some(tag) = freed {
            self.used[usize::from(tag)] = None;
        }
        if takes {
            self.used[usize::from(out.tag)] = Some(0);
            self.fresh += usize::from(is_fresh);
        }
        self.in_use = self.in_use + u16::from(takes) - u16::from(freed.is_some());
        self.free.cycle(stream_fifo::In {
            in_valid: freed.is_some(),
            in_data: freed.unwrap_or(0).into(),
            out_ready: takes && !is_fresh,
        });
        out
    }

    /// The tag that is free from the next cycle on: one that comes back, or else one that is late.
    fn freed(&mut self, input: In) -> Option<u8> {
        (self.refused, self.lost) = (false, None);
        if input.release_valid {
            let is_used =
                self.used.get(usize::from(input.release_tag)).is_some_and(Option::is_some);
            self.refused = !is_used;
            return is_used.then_some(input.release_tag);
        }
        self.lost = (self.used[self.probe] == Some(2)).then_some(self.probe as u8);
        self.probe = (self.probe + 1) % self.used.len();
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chpp::Config;

    const TAKE: In = In { tag_ready: true, release_valid: false, release_tag: 0 };

    fn release(tag: u8) -> In {
        In { tag_ready: false, release_valid: true, release_tag: tag }
    }

    /// The tag that is offered.
    fn offered(out: Out) -> Option<u8> {
        out.tag_valid.then_some(out.tag)
    }

    /// The paper's interface has 32 tags, and 256 if they are extended.
    #[test]
    fn the_papers_interface_has_32_tags() {
        assert_eq!(Config::prototype().nic.tags, 32);
        TagAlloc::new(256, 1);
    }

    /// Tags leave in the order of their numbers first, and then in the order in which they came
    /// back, two cycles later at the earliest.
    #[test]
    fn the_tag_that_was_free_longest_goes_first() {
        let mut tags = TagAlloc::new(3, 1000);
        assert_eq!([(); 2].map(|()| offered(tags.cycle(TAKE))), [Some(0), Some(1)]);
        tags.cycle(release(1));
        let last = tags.cycle(TAKE);
        assert_eq!((offered(last), last.in_use), (Some(2), 1));
        tags.cycle(release(0));
        assert_eq!(offered(tags.cycle(TAKE)), Some(1));
        let next = tags.cycle(TAKE);
        assert_eq!((offered(next), next.in_use), (Some(0), 2));
        let none = tags.cycle(TAKE);
        assert_eq!((offered(none), none.in_use), (None, 3));
        assert_eq!(offered(tags.cycle(release(2))), None);
        assert_eq!([(); 2].map(|()| offered(tags.cycle(TAKE))), [None, Some(2)]);
    }

    /// A tag that is not in use is refused, also one that does not exist, and nothing changes.
    #[test]
    fn what_is_not_in_use_is_refused() {
        let mut tags = TagAlloc::new(2, 1000);
        tags.cycle(TAKE);
        for (tag, is_refused) in [(1, true), (2, true), (255, true), (0, false), (0, true)] {
            tags.cycle(release(tag));
            assert_eq!(tags.cycle(In::default()).refused, is_refused, "{tag}");
        }
        let out = [(); 3].map(|()| offered(tags.cycle(TAKE)));
        assert_eq!(out, [Some(1), Some(0), None]);
    }

    /// A tag whose completions do not come is freed between one and two timeouts after it was
    /// taken, and four cycles at most, if four are looked at. A release goes first.
    #[test]
    fn a_tag_that_does_not_come_back_is_freed_and_told() {
        for start in 0..10 {
            let mut tags = TagAlloc::new(4, 10);
            (0..start).for_each(|_| _ = tags.cycle(In::default()));
            tags.cycle(TAKE);
            let mut waited = 0;
            while !tags.cycle(In::default()).lost_valid {
                waited += 1;
                assert!(waited < 26, "from {start} on");
            }
            assert!(waited > 10, "from {start} on");
            let after = tags.cycle(release(0));
            assert_eq!((after.in_use, after.lost_valid), (0, false));
            assert!(tags.cycle(In::default()).refused);
        }
        let mut tags = TagAlloc::new(4, 10);
        tags.cycle(TAKE);
        for _ in 0..100 {
            assert!(!tags.cycle(release(3)).lost_valid);
        }
        let lost = (0..6).position(|_| tags.cycle(In::default()).lost_valid);
        assert!(lost.is_some());
    }

    /// Of one tag the age is looked at in every cycle. It is taken in the first of ten cycles, late
    /// after the second ten, found in the next cycle, and told in the one behind that.
    #[test]
    fn a_timeout_has_its_cycles() {
        let mut tags = TagAlloc::new(1, 10);
        tags.cycle(TAKE);
        let lost = (1..).find(|_| tags.cycle(In::default()).lost_valid);
        assert_eq!(lost, Some(21));
    }
}
