//! The rings that a program and the kernel share (Documentation/networking/af_xdp.rst). One side
//! produces, the other consumes, and each publishes its count.

use crate::memory::Mapping;
use rustix::mm::MapFlags;
use std::io;
use std::marker::PhantomData;
use std::mem::size_of;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// A ring of `T`: chunk addresses (`u64`) or descriptors of frames (`xdp_desc`).
pub(super) struct Ring<T> {
    memory: Mapping,
    offsets: libc::xdp_ring_offset,
    entries: u32,
    /// Our count of consumed or produced entries.
    own: u32,
    /// The kernel's count when we last read it.
    theirs: u32,
    kind: PhantomData<T>,
}

impl<T: Copy> Ring<T> {
    /// Maps the socket's ring of `entries` (a power of two) at offset `page`.
    pub fn map(
        fd: BorrowedFd<'_>,
        offsets: libc::xdp_ring_offset,
        entries: u32,
        page: u64,
    ) -> io::Result<Ring<T>> {
        assert!(entries.is_power_of_two());
        let length = offsets.desc as usize + entries as usize * size_of::<T>();
        let memory = Mapping::new(Some((fd, page)), length, MapFlags::SHARED | MapFlags::POPULATE)?;
        Ok(Ring { memory, offsets, entries, own: 0, theirs: 0, kind: PhantomData })
    }

    fn word(&self, offset: u64) -> &AtomicU32 {
        // SAFETY: the kernel told the offset; the word lies in the mapping, and both sides use it
        // as an atomic only.
        unsafe { &*self.memory.start.add(offset as usize).as_ptr().cast::<AtomicU32>() }
    }

    fn entry(&self, count: u32) -> NonNull<T> {
        let index = (count & (self.entries - 1)) as usize;
        // SAFETY: the index is below `entries`, so that the entry lies in the mapping.
        unsafe { self.memory.start.add(self.offsets.desc as usize).cast::<T>().add(index) }
    }

    /// Whether the kernel needs a system call to go on.
    pub fn needs_wakeup(&self) -> bool {
        // Relaxed: a hint, which the kernel sets before it sleeps and which is read again.
        self.word(self.offsets.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }

    /// As the consumer: the oldest entry that was not consumed.
    #[inline]
    pub fn front(&mut self) -> Option<T> {
        if self.own == self.theirs {
            // Acquire: pairs with the kernel's store of its count after that of the entries.
            self.theirs = self.word(self.offsets.producer).load(Ordering::Acquire);
            if self.own == self.theirs {
                return None;
            }
        }
        // SAFETY: the kernel has written the entry and does not touch it before it is consumed.
        Some(unsafe { self.entry(self.own).read() })
    }

    /// As the consumer: whether there is an entry that was not consumed.
    pub fn has_front(&self) -> bool {
        // Acquire: as in `front`.
        self.own != self.word(self.offsets.producer).load(Ordering::Acquire)
    }

    /// As the consumer: consumes one entry. [`Ring::publish_consumed`] tells the kernel.
    #[inline]
    pub fn consume(&mut self) {
        self.own = self.own.wrapping_add(1);
    }

    #[inline]
    pub fn publish_consumed(&mut self) {
        // Release: pairs with the kernel's load before it writes these entries anew.
        self.word(self.offsets.consumer).store(self.own, Ordering::Release);
    }

    /// As the producer: adds an entry. [`Ring::publish_produced`] tells the kernel. `false`: the
    /// ring is full.
    #[inline]
    pub fn produce(&mut self, value: T) -> bool {
        if self.own.wrapping_sub(self.theirs) == self.entries {
            // Acquire: pairs with the kernel's store of its count after its reads of the entries.
            self.theirs = self.word(self.offsets.consumer).load(Ordering::Acquire);
            if self.own.wrapping_sub(self.theirs) == self.entries {
                return false;
            }
        }
        // SAFETY: the kernel has consumed what was there before, and reads it again only after the
        // count is published.
        unsafe { self.entry(self.own).write(value) };
        self.own = self.own.wrapping_add(1);
        true
    }

    #[inline]
    pub fn publish_produced(&mut self) {
        // Release: pairs with the kernel's load of the count before its reads of the entries.
        self.word(self.offsets.producer).store(self.own, Ordering::Release);
    }

    /// As the producer: whether the kernel has consumed all published entries.
    pub fn is_consumed(&self) -> bool {
        // Acquire: as in `produce`.
        self.word(self.offsets.consumer).load(Ordering::Acquire) == self.own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ring in plain memory, whose counts begin right before they wrap around.
    fn ring() -> Ring<u64> {
        let memory = Mapping::new(None, 4096, MapFlags::PRIVATE).expect("memory");
        let offsets = libc::xdp_ring_offset { producer: 0, consumer: 64, desc: 128, flags: 192 };
        let begin = u32::MAX - 5;
        let ring =
            Ring { memory, offsets, entries: 4, own: begin, theirs: begin, kind: PhantomData };
        ring.word(ring.offsets.producer).store(begin, Ordering::Relaxed);
        ring.word(ring.offsets.consumer).store(begin, Ordering::Relaxed);
        ring
    }

    fn count(ring: &Ring<u64>, offset: u64) -> u32 {
        ring.word(offset).load(Ordering::Relaxed)
    }

    /// A producer fills the ring and no more, until the consumer has made room. The consumer sees
    /// what is published.
    #[test]
    fn a_producer_waits_for_room() {
        let mut ring = ring();
        assert!(ring.is_consumed());
        for round in 0..5u64 {
            for number in 0..4 {
                assert!(ring.produce(10 * round + number));
            }
            assert!(!ring.produce(99), "it is full");
            let published = count(&ring, ring.offsets.producer);
            ring.publish_produced();
            assert_eq!(count(&ring, ring.offsets.producer), published.wrapping_add(4));
            assert!(!ring.is_consumed());
            for number in 0..4 {
                let at = published.wrapping_add(number);
                // SAFETY: the entry was written above.
                let entry = unsafe { ring.entry(at).read() };
                assert_eq!(entry, 10 * round + u64::from(number));
            }
            ring.word(ring.offsets.consumer).store(published.wrapping_add(3), Ordering::Relaxed);
            assert!(!ring.is_consumed());
            assert!(ring.produce(7) && ring.produce(8) && ring.produce(9) && !ring.produce(99));
            ring.publish_produced();
            let all = count(&ring, ring.offsets.producer);
            assert_eq!(all, published.wrapping_add(7));
            ring.word(ring.offsets.consumer).store(all, Ordering::Relaxed);
            assert!(ring.is_consumed());
        }
    }

    /// A consumer sees each entry once, and tells how far it is.
    #[test]
    fn a_consumer_takes_each_entry_once() {
        let mut ring = ring();
        let begin = ring.own;
        for round in 0..5u32 {
            assert!(ring.front().is_none() && !ring.has_front());
            for number in 0..3 {
                let at = begin.wrapping_add(3 * round + number);
                // SAFETY: the entry lies in the ring, and nobody else uses it.
                unsafe { ring.entry(at).write(u64::from(10 * round + number)) };
            }
            let all = begin.wrapping_add(3 * round + 3);
            ring.word(ring.offsets.producer).store(all, Ordering::Relaxed);
            assert!(ring.has_front());
            for number in 0..3 {
                assert_eq!(ring.front(), Some(u64::from(10 * round + number)));
                assert_eq!(ring.front(), Some(u64::from(10 * round + number)));
                ring.consume();
            }
            assert!(!ring.has_front());
            ring.publish_consumed();
            assert_eq!(count(&ring, ring.offsets.consumer), all);
        }
    }

    /// Entries lie one after the other behind the counts, and a flag asks for a call.
    #[test]
    fn entries_and_flags_lie_where_the_kernel_says() {
        let ring = ring();
        let place =
            |count| ring.entry(count).as_ptr() as usize - ring.memory.start.as_ptr() as usize;
        let places = [0, 1, 3, 4, 7, u32::MAX].map(place);
        assert_eq!(places, [128, 136, 152, 128, 152, 152]);
        assert!(!ring.needs_wakeup());
        for (flags, needs) in [(libc::XDP_RING_NEED_WAKEUP, true), (2, false), (3, true)] {
            ring.word(ring.offsets.flags).store(flags, Ordering::Relaxed);
            assert_eq!(ring.needs_wakeup(), needs);
        }
    }
}
