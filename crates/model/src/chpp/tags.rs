//! The central tag allocator (C-36; cHPP section 5.1). Descriptor reads, data reads and refills of
//! slot addresses all take their tags here, so that no tag is in use twice.

use std::collections::VecDeque;

use crate::stats::{Imbalance, Occupancy};
use crate::units::Time;

/// A tag in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag(u16);

impl Tag {
    /// As an index below the number of tags.
    pub fn index(self) -> usize {
        self.0.into()
    }

    pub(super) fn of(index: usize) -> Tag {
        Tag(index as u16)
    }
}

/// A released tag is not in use.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("tag {} is not in use", .0.index())]
pub struct NotInUse(pub Tag);

/// The free tags, oldest first, and the allocation times of the others.
pub struct TagAllocator {
    free: VecDeque<Tag>,
    taken: Vec<Option<Time>>,
    /// Tags in use over time.
    pub occupancy: Occupancy,
    /// Requests without a free tag.
    pub refused: u64,
}

impl TagAllocator {
    /// `count` free tags.
    pub fn new(count: usize) -> TagAllocator {
        TagAllocator {
            free: (0..count).map(Tag::of).collect(),
            taken: vec![None; count],
            occupancy: Occupancy::default(),
            refused: 0,
        }
    }

    /// Allocates a free tag, if there is one.
    pub fn take(&mut self, now: Time) -> Option<Tag> {
        let Some(tag) = self.free.pop_front() else {
            self.refused += 1;
            return None;
        };
        debug_assert!(self.taken[tag.index()].is_none());
        self.taken[tag.index()] = Some(now);
        self.occupancy.enter(now);
        Some(tag)
    }

    /// Releases a tag.
    ///
    /// # Errors
    /// [`NotInUse`] if it is not allocated.
    pub fn release(&mut self, tag: Tag, now: Time) -> Result<(), NotInUse> {
        let taken = self.taken.get_mut(tag.index()).and_then(Option::take).ok_or(NotInUse(tag))?;
        self.occupancy.leave(taken, now);
        self.free.push_back(tag);
        Ok(())
    }

    /// Checks that free and used tags add up, and Little's law.
    ///
    /// # Errors
    /// The violated law.
    pub fn audit(&self, now: Time) -> Result<(), Imbalance> {
        let used = self.taken.iter().flatten().count();
        if used + self.free.len() != self.taken.len() {
            return Err(Imbalance {
                queue: "tags".to_owned(),
                law: "free + used = all does not hold",
                details: format!(
                    "{} free, {used} used, {} in all",
                    self.free.len(),
                    self.taken.len()
                ),
            });
        }
        self.occupancy.audit("tags", now, self.taken.iter().flatten().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cycle::tag_alloc::{In, TagAlloc};
    use crate::engine::Random;

    /// No tag is allocated twice at once, at most 32 (or 256) are, and a second release of a tag is
    /// refused.
    // shows: C-36
    #[test]
    fn tags_are_unique_and_bounded() {
        for count in [32, 256] {
            let mut tags = TagAllocator::new(count);
            let taken: Vec<Tag> = std::iter::from_fn(|| tags.take(Time::ZERO)).collect();
            let mut indices: Vec<usize> = taken.iter().map(|tag| tag.index()).collect();
            indices.sort_unstable();
            assert_eq!(indices, (0..count).collect::<Vec<_>>());
            assert_eq!(tags.refused, 1);
            tags.release(taken[3], Time::from_ps(10)).unwrap();
            assert_eq!(tags.release(taken[3], Time::from_ps(10)), Err(NotInUse(taken[3])));
            assert_eq!(tags.take(Time::from_ps(10)), Some(taken[3]));
            tags.audit(Time::from_ps(20)).unwrap();
        }
    }

    /// The block `cycle::tag_alloc` gives the same tags in the same order, refuses the same ones,
    /// and has as many in use, over random takes and releases of one a cycle. One thing differs:
    /// what came back in the cycle before is not yet offered there.
    // shows: C-36
    #[test]
    fn gates_give_the_same_tags() {
        for (count, seed) in [(32, 1), (256, 2), (5, 3)] {
            let mut random = Random::new(seed);
            let mut tags = TagAllocator::new(count);
            let mut gates = TagAlloc::new(count, u64::MAX);
            let (mut held, mut waits) = (Vec::new(), 0);
            // Of the cycle before: whether its release was refused, and whether a tag came back.
            let (mut refused, mut returned) = (false, false);
            for cycle in 0..100_000 {
                let now = Time::from_ps(4000 * cycle);
                let is_idle = cycle & 1024 == 0;
                let release = match random.below(8) {
                    0 => Some(random.below(count as u64) as u8),
                    1..5 if !held.is_empty() && !is_idle => {
                        let at = random.below(held.len() as u64);
                        Some(held.swap_remove(at as usize))
                    }
                    _ => None,
                };
                let input = In {
                    tag_ready: random.below(2) == 0,
                    release_valid: release.is_some(),
                    release_tag: release.unwrap_or(0),
                };
                let out = gates.cycle(input);
                assert_eq!(out.refused, refused, "{count} tags, cycle {cycle}");
                assert_eq!(usize::from(out.in_use) + tags.free.len(), count);
                assert!(out.tag_valid || tags.free.len() == usize::from(returned));
                waits += u64::from(!out.tag_valid);
                let takes = out.tag_valid && input.tag_ready;
                if takes {
                    let tag = tags.take(now).map(Tag::index);
                    assert_eq!(tag, Some(out.tag.into()), "{count} tags, cycle {cycle}");
                    held.push(out.tag);
                }
                returned = false;
                if let Some(tag) = release {
                    // What was taken in this very cycle is not yet in use.
                    let is_new = takes && out.tag == tag;
                    returned = !is_new && tags.release(Tag::of(tag.into()), now).is_ok();
                    held.retain(|held| is_new || *held != tag);
                }
                refused = release.is_some() && !returned;
            }
            assert!(waits > 1000, "{count} tags: {waits} cycles without a free one");
            tags.audit(Time::from_ps(4000 * 100_000)).unwrap();
        }
    }

    /// Canary: the audit finds a lost tag.
    #[test]
    fn a_lost_tag_is_found() {
        let mut tags = TagAllocator::new(4);
        let tag = tags.take(Time::ZERO).unwrap();
        tags.taken[tag.index()] = None;
        assert!(tags.audit(Time::from_ps(5)).is_err());
    }
}
