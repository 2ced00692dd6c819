//! The set of pending events, ordered by time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The order of an event. No two keys are equal, so the order does not depend on the sort
/// algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    /// Twice the picoseconds, plus one for events of the settling phase.
    pub moment: u64,
    /// Random upper half, running lower half: breaks ties in time at random.
    pub tie_break: u64,
}

/// Slots of the wheel: 64 words of 64 bits, and one word above them.
const SLOTS: usize = 4096;
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Node<E> {
    key: Key,
    next: u32,
    event: E,
}

/// A calendar queue. It has the sorted events of the current slot, a wheel of later slots, and a
/// heap for events beyond the wheel. Each later slot is an unsorted list; a bitmap marks the
/// occupied ones.
///
/// A slot is sorted only when it becomes current, and usually holds few events. So push and pop
/// cost the same few nanoseconds for any number of events. Nodes are recycled; after warming up
/// nothing is allocated.
pub(super) struct Calendar<E> {
    /// Events of the current slot, the next one last.
    current: Vec<(Key, E)>,
    /// Number of the current slot since time zero.
    slot: u64,
    /// The moments of a slot agree in all but their lowest `shift` bits.
    shift: u32,
    heads: Box<[u32; SLOTS]>,
    words: [u64; SLOTS / 64],
    summary: u64,
    nodes: Vec<Node<E>>,
    free: u32,
    far: BinaryHeap<Reverse<(Key, u32)>>,
    len: usize,
}

impl<E: Copy> Calendar<E> {
    /// An empty calendar with slots of at least `slot_ps` picoseconds (the next power of two).
    pub fn new(slot_ps: u64) -> Calendar<E> {
        Calendar {
            current: Vec::new(),
            slot: 0,
            shift: slot_ps.next_power_of_two().trailing_zeros() + 1,
            heads: Box::new([NONE; SLOTS]),
            words: [0; SLOTS / 64],
            summary: 0,
            nodes: Vec::new(),
            free: NONE,
            far: BinaryHeap::new(),
            len: 0,
        }
    }

    /// How many events are pending.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Adds an event. Its key must not be below that of the last event removed.
    #[inline]
    pub fn push(&mut self, key: Key, event: E) {
        self.len += 1;
        let slot = key.moment >> self.shift;
        debug_assert!(slot >= self.slot);
        // Excludes the current slot and slots beyond the wheel.
        if (slot - self.slot).wrapping_sub(1) < SLOTS as u64 - 1 {
            let next = self.heads[slot as usize % SLOTS];
            let node = self.node(key, next, event);
            self.hang(slot, node);
        } else {
            self.push_aside(slot, key, event);
        }
    }

    /// Adds an event to the current slot, or beyond the wheel.
    // Out of line, like everything that allocates: keeps the register pressure of the common path
    // low.
    #[inline(never)]
    fn push_aside(&mut self, slot: u64, key: Key, event: E) {
        if slot == self.slot {
            let place = self.current.iter().rposition(|held| held.0 > key).map_or(0, |at| at + 1);
            self.current.insert(place, (key, event));
        } else {
            let node = self.node(key, NONE, event);
            self.far.push(Reverse((key, node)));
        }
    }

    /// Removes the first event if its moment is not after `last`. Without one, the caller's present
    /// is `last` from then on.
    #[inline]
    pub fn pop(&mut self, last: u64) -> Option<(Key, E)> {
        if self.current.is_empty()
            && let Some(alone) = self.turn(last)
        {
            return Some(alone);
        }
        if self.current.last()?.0.moment > last {
            return None;
        }
        self.len -= 1;
        self.current.pop()
    }

    /// Whether surely no event is pending until `moment`, including it.
    #[inline]
    pub fn is_quiet_until(&self, moment: u64) -> bool {
        if let Some((first, _)) = self.current.last() {
            return first.moment > moment;
        }
        let slot = moment >> self.shift;
        self.next_slot().is_none_or(|near| near > slot)
            && self.far.peek().is_none_or(|Reverse((far, _))| far.moment >> self.shift > slot)
    }

    /// Makes the next occupied slot current, if it begins at or before `last`, and sorts it.
    /// Removes a due event that is alone there at once: the common case.
    #[inline]
    fn turn(&mut self, last: u64) -> Option<(Key, E)> {
        let near = self.next_slot();
        let far = self.far.peek().map(|Reverse((key, _))| key.moment >> self.shift);
        let slot = match (near, far) {
            (Some(near), Some(far)) => near.min(far),
            (Some(slot), None) | (None, Some(slot)) => slot,
            (None, None) => return None,
        };
        if slot > last >> self.shift {
            return None;
        }
        self.slot = slot;
        if far.is_some() {
            self.bring_near();
        }
        let at = slot as usize % SLOTS;
        let node = std::mem::replace(&mut self.heads[at], NONE);
        self.words[at / 64] &= !(1 << (at % 64));
        if self.words[at / 64] == 0 {
            self.summary &= !(1 << (at / 64));
        }
        let Node { key, next, event } = self.nodes[node as usize];
        if next == NONE && key.moment <= last {
            self.nodes[node as usize].next = self.free;
            self.free = node;
            self.len -= 1;
            return Some((key, event));
        }
        self.gather(node);
        None
    }

    /// Collects and sorts the list of a slot, which begins with `node`, as the current slot.
    #[inline(never)]
    fn gather(&mut self, mut node: u32) {
        while node != NONE {
            let Node { key, next, event } = self.nodes[node as usize];
            self.nodes[node as usize].next = self.free;
            self.free = node;
            self.current.push((key, event));
            node = next;
        }
        sort(&mut self.current);
    }

    /// Moves events that the wheel now covers from the heap into it.
    #[cold]
    fn bring_near(&mut self) {
        while let Some(&Reverse((key, node))) = self.far.peek() {
            let slot = key.moment >> self.shift;
            if slot - self.slot >= SLOTS as u64 {
                break;
            }
            self.far.pop();
            self.nodes[node as usize].next = self.heads[slot as usize % SLOTS];
            self.hang(slot, node);
        }
    }

    #[inline]
    fn hang(&mut self, slot: u64, node: u32) {
        let at = slot as usize % SLOTS;
        self.heads[at] = node;
        self.words[at / 64] |= 1 << (at % 64);
        self.summary |= 1 << (at / 64);
    }

    #[inline]
    fn node(&mut self, key: Key, next: u32, event: E) -> u32 {
        let at = self.free;
        // `NONE` is no node's number and marks an empty free list.
        let Some(place) = self.nodes.get_mut(at as usize) else {
            return self.another(key, next, event);
        };
        self.free = place.next;
        *place = Node { key, next, event };
        at
    }

    // The parts are passed in registers: one wide load of recent narrow stores would defeat store
    // forwarding.
    #[cold]
    #[inline(never)]
    fn another(&mut self, key: Key, next: u32, event: E) -> u32 {
        self.nodes.push(Node { key, next, event });
        // A pending event takes at least 32 bytes, so 2^32 of them exceed any memory that runs
        // this.
        (self.nodes.len() - 1) as u32
    }

    /// The first occupied slot after the current one, by the bitmap.
    #[inline]
    fn next_slot(&self) -> Option<u64> {
        if self.summary == 0 {
            return None;
        }
        let from = (self.slot as usize + 1) % SLOTS;
        let (word, bit) = (from / 64, from % 64);
        let rest = self.words[word] >> bit;
        let at = if rest != 0 {
            from + rest.trailing_zeros() as usize
        } else {
            // The words after this one, then around to the words before it and its lower bits.
            let turned = self.summary.rotate_right((word as u32 + 1) % 64);
            let next = (word + 1 + turned.trailing_zeros() as usize) % 64;
            next * 64 + self.words[next].trailing_zeros() as usize
        };
        Some(self.slot + 1 + ((at + SLOTS - from) % SLOTS) as u64)
    }
}

/// Sorts in descending order. Insertion is fastest for the usual few events of a slot.
#[inline]
fn sort<E: Copy>(events: &mut [(Key, E)]) {
    if events.len() > 24 {
        events.sort_unstable_by_key(|event| Reverse(event.0));
        return;
    }
    for next in 1..events.len() {
        let taken = events[next];
        let mut at = next;
        while at > 0 && events[at - 1].0 < taken.0 {
            events[at] = events[at - 1];
            at -= 1;
        }
        events[at] = taken;
    }
}

#[cfg(test)]
mod tests {
    use super::super::Random;
    use super::*;

    /// Events come out in the order of a plain sorted list, near and far, over many turns of the
    /// wheel.
    #[test]
    fn agrees_with_a_sorted_list() {
        crate::limit::limited(|| {
            for seed in 0..20 {
                let mut random = Random::new(seed);
                let mut calendar = Calendar::new(1 << random.below(12));
                let mut list: Vec<(Key, u32)> = Vec::new();
                let mut now = 0;
                for step in 0..20_000u32 {
                    if list.is_empty() || (list.len() < 300 && random.below(2) == 0) {
                        let reach = 1 << random.below(34);
                        let key =
                            Key { moment: now + random.below(reach), tie_break: random.word() };
                        calendar.push(key, step);
                        let place = list.partition_point(|held| held.0 > key);
                        list.insert(place, (key, step));
                    } else {
                        let last = now + random.below(1 << 20);
                        let expected = list.last().copied().filter(|held| held.0.moment <= last);
                        assert_eq!(calendar.pop(last), expected, "seed {seed} step {step}");
                        now = expected.map_or(last, |(key, _)| key.moment);
                        list.pop_if(|_| expected.is_some());
                    }
                    assert_eq!(calendar.len(), list.len());
                }
            }
        });
    }

    /// An event is due at its moment and not before, in whichever part of the calendar it waits.
    /// Slots have two moments; 4096 are on the wheel.
    #[test]
    fn an_event_is_due_at_its_moment() {
        let key = |moment| Key { moment, tie_break: 0 };
        let mut calendar = Calendar::new(1);
        calendar.push(key(20_000), 'a');
        // Beyond the wheel a slot counts as a whole.
        let quiet = [19_999, 20_000, 20_001, 40_000].map(|moment| calendar.is_quiet_until(moment));
        assert_eq!(quiet, [true, false, false, false]);
        calendar.push(key(20_001), 'b');
        assert_eq!(calendar.pop(20_000), Some((key(20_000), 'a')));
        // In the current slot each moment counts.
        let quiet = [20_000, 20_001, 20_002].map(|moment| calendar.is_quiet_until(moment));
        assert_eq!(quiet, [true, false, false]);
        assert_eq!(calendar.pop(20_000), None);
        assert_eq!(calendar.pop(20_001), Some((key(20_001), 'b')));
        // Once around the wheel, and one slot more.
        for (moment, event) in [(20_002 + 2 * 4096, 'd'), (20_004, 'c')] {
            calendar.push(key(moment), event);
        }
        let events: Vec<char> =
            std::iter::from_fn(|| calendar.pop(u64::MAX / 2)).map(|(_, event)| event).collect();
        assert_eq!(events, ['c', 'd']);
    }
}
