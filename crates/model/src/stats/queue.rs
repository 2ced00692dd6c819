//! A queue that records the arrival time of each item.

use std::collections::VecDeque;

use serde::Serialize;

use super::{Imbalance, Occupancy};
use crate::units::Time;

/// A FIFO queue with arrival times, which keeps the counts of Little's law.
#[derive(Clone, Debug)]
pub struct Queue<T> {
    items: VecDeque<(Time, T)>,
    occupancy: Occupancy,
}

/// The use of a queue in a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueueUse {
    /// Its name.
    pub queue: String,
    /// How many items arrived.
    pub came: u64,
    /// The mean number inside, over all time.
    pub mean: f64,
    /// The maximum number inside at once.
    pub most: u64,
    /// The mean stay of the items that have left, in nanoseconds.
    pub mean_stay_ns: f64,
}

/// A queue, pool or buffer with an [`Occupancy`].
pub trait Watched {
    /// Counts.
    fn occupancy(&self) -> &Occupancy;

    /// Checks Little's law and the balance of the counts against the items inside; `name` is the
    /// queue's name.
    ///
    /// # Errors
    /// The violated law.
    fn audit(&self, name: &str, now: Time) -> Result<(), Imbalance>;
}

impl QueueUse {
    /// The use of the queue with these counts until `now`.
    pub fn of(queue: String, occupancy: &Occupancy, now: Time) -> QueueUse {
        QueueUse {
            queue,
            came: occupancy.entered(),
            mean: occupancy.mean(now),
            most: occupancy.most(),
            mean_stay_ns: occupancy.mean_stay().as_ns(),
        }
    }
}

impl<T> Default for Queue<T> {
    fn default() -> Queue<T> {
        Queue { items: VecDeque::new(), occupancy: Occupancy::default() }
    }
}

impl<T> Queue<T> {
    /// Appends an item, now.
    #[inline]
    pub fn push(&mut self, now: Time, item: T) {
        self.occupancy.enter(now);
        self.items.push_back((now, item));
    }

    /// Removes the first item, now.
    #[inline]
    pub fn pop(&mut self, now: Time) -> Option<T> {
        let (came, item) = self.items.pop_front()?;
        self.occupancy.leave(came, now);
        Some(item)
    }

    /// Canary: the first item vanishes, and nothing counts it.
    #[cfg(test)]
    pub(crate) fn lose(&mut self) {
        self.items.pop_front();
    }

    /// The number of waiting items.
    #[inline]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether no item waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The first item.
    #[inline]
    pub fn front(&self) -> Option<&T> {
        self.items.front().map(|(_, item)| item)
    }

    /// The first item, and its arrival time.
    #[inline]
    pub fn front_since(&self) -> Option<(Time, &T)> {
        self.items.front().map(|(came, item)| (*came, item))
    }

    /// The first item.
    #[inline]
    pub fn front_mut(&mut self) -> Option<&mut T> {
        self.items.front_mut().map(|(_, item)| item)
    }

    /// The item at a position; 0 is the first.
    #[inline]
    pub fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.items.get_mut(at).map(|(_, item)| item)
    }

    /// All items, in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.iter().map(|(_, item)| item)
    }

    /// All items, in order.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.items.iter_mut().map(|(_, item)| item)
    }
}

impl<T> Watched for Queue<T> {
    fn occupancy(&self) -> &Occupancy {
        &self.occupancy
    }

    fn audit(&self, name: &str, now: Time) -> Result<(), Imbalance> {
        self.occupancy.audit(name, now, self.items.iter().map(|(came, _)| *came))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Items leave in order, and the use of the queue is reported.
    #[test]
    fn queues_count_what_they_hold() {
        let time = Time::from_ps;
        let mut queue = Queue::default();
        queue.push(time(1_000), "a");
        queue.push(time(3_000), "b");
        assert_eq!((queue.front_since(), queue.len()), (Some((time(1_000), &"a")), 2));
        assert_eq!(queue.pop(time(5_000)), Some("a"));
        queue.audit("queue", time(7_000)).unwrap();
        let QueueUse { came, mean, most, mean_stay_ns, .. } =
            QueueUse::of("queue".to_owned(), queue.occupancy(), time(8_000));
        assert_eq!((came, most, mean_stay_ns), (2, 2, 4.0));
        assert_eq!(mean, (2.0 + 2.0 * 2.0 + 3.0) / 8.0);
    }

    /// Canary: an item that bypasses the counts is found.
    #[test]
    fn what_vanishes_is_found() {
        let mut queue = Queue::default();
        queue.push(Time::ZERO, 1);
        queue.push(Time::ZERO, 2);
        queue.items.pop_back();
        let told = queue.audit("commands", Time::from_ps(5)).unwrap_err();
        assert!(told.to_string().contains("commands"), "{told}");
    }
}
