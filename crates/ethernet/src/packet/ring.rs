//! The mapped receive ring of a packet socket (packet(7),
//! Documentation/networking/packet_mmap.rst). All slots have one size. The kernel marks a slot as
//! ours when it has written a frame; we give the slot back when we are done.

use crate::memory::Mapping;
use crate::socket;
use rustix::mm::MapFlags;
use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// Approximate size of all slots together, in bytes.
const RING_BYTES: usize = 4 << 20;
const PAGE_BYTES: usize = 4096;
/// What precedes a frame in its slot: the kernel's header, an address, and padding.
const PREFIX_BYTES: usize =
    size_of::<libc::tpacket2_hdr>() + size_of::<libc::sockaddr_ll>() + 3 * libc::TPACKET_ALIGNMENT;

pub(super) struct Ring {
    memory: Mapping,
    slot_bytes: usize,
    slots_per_block: usize,
    block_bytes: usize,
    slots: usize,
    next: usize,
}

/// A received frame, in place.
pub(super) struct Slot<'a> {
    pub bytes: &'a [u8],
    /// The ring was full, and frames before this one were lost.
    pub lost: bool,
}

impl Ring {
    /// Maps a ring for frames of at most `largest` bytes.
    pub fn map(fd: BorrowedFd<'_>, largest: usize) -> io::Result<Ring> {
        let version = libc::tpacket_versions::TPACKET_V2 as i32;
        socket::set(fd, libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        let slot_bytes = (PREFIX_BYTES + largest).next_multiple_of(256);
        let slot_bytes = if slot_bytes > PAGE_BYTES {
            slot_bytes.next_multiple_of(PAGE_BYTES)
        } else {
            slot_bytes
        };
        let block_bytes = slot_bytes.max(16 * PAGE_BYTES).next_multiple_of(PAGE_BYTES);
        let slots_per_block = block_bytes / slot_bytes;
        let blocks = (RING_BYTES / block_bytes).max(64_usize.div_ceil(slots_per_block));
        let slots = blocks * slots_per_block;
        let request = libc::tpacket_req {
            tp_block_size: block_bytes as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: slot_bytes as u32,
            tp_frame_nr: slots as u32,
        };
        socket::set(fd, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let memory = Mapping::new(Some((fd, 0)), blocks * block_bytes, MapFlags::SHARED)?;
        Ok(Ring { memory, slot_bytes, slots_per_block, block_bytes, slots, next: 0 })
    }

    fn slot(&self, number: usize) -> NonNull<u8> {
        let block = number / self.slots_per_block * self.block_bytes;
        let offset = block + number % self.slots_per_block * self.slot_bytes;
        // SAFETY: `number` is below `slots`, so that the slot lies inside the mapping.
        unsafe { self.memory.start.add(offset) }
    }

    fn status(&self, number: usize) -> &AtomicU32 {
        let at = offset_of!(libc::tpacket2_hdr, tp_status);
        // SAFETY: inside the slot, aligned because slots are, and only ever read and written as an
        // atomic on both sides.
        unsafe { &*self.slot(number).add(at).as_ptr().cast::<AtomicU32>() }
    }

    /// The oldest frame that was not released.
    #[inline]
    pub fn front(&self) -> Option<Slot<'_>> {
        // Acquire: pairs with the kernel's write of the status after that of the frame.
        let status = self.status(self.next).load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        let slot = self.slot(self.next);
        // SAFETY: the kernel has written a header there, and writes nothing to the slot until it is
        // released.
        let header = unsafe { slot.cast::<libc::tpacket2_hdr>().read() };
        let start = header.tp_mac as usize;
        let length = (header.tp_snaplen as usize).min(self.slot_bytes.saturating_sub(start));
        // SAFETY: start and length were cut to the slot, and nobody writes to it while it is ours.
        let bytes = unsafe { std::slice::from_raw_parts(slot.add(start).as_ptr(), length) };
        // The kernel truncated the frame: the slot is too short for it.
        let cut = header.tp_snaplen < header.tp_len;
        Some(Slot {
            bytes: if cut { &[] } else { bytes },
            lost: status & libc::TP_STATUS_LOSING != 0,
        })
    }

    /// Gives the oldest frame's slot back to the kernel.
    #[inline]
    pub fn release(&mut self) {
        // Release: pairs with the kernel's read of the status before it writes a new frame.
        self.status(self.next).store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = if self.next + 1 == self.slots { 0 } else { self.next + 1 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes what the kernel writes for a frame: its header, its bytes and then its status.
    fn put(ring: &Ring, number: usize, (start, kept, length): (u16, u32, u32), status: u32) {
        // SAFETY: zeros are a valid header.
        let mut header: libc::tpacket2_hdr = unsafe { std::mem::zeroed() };
        header.tp_mac = start;
        header.tp_snaplen = kept;
        header.tp_len = length;
        let slot = ring.slot(number);
        // SAFETY: all of it lies in the slot, which nobody else uses.
        unsafe {
            slot.cast::<libc::tpacket2_hdr>().write(header);
            for at in usize::from(start)..ring.slot_bytes {
                slot.add(at).write(number as u8);
            }
        }
        ring.status(number).store(status, Ordering::Release);
    }

    /// A slot has 100 bytes before its frame, and blocks of 64 KiB hold as many slots as fit, or
    /// one.
    #[test]
    fn slots_fill_blocks() {
        for (largest, slot_bytes, slots_per_block, block_bytes, slots) in [
            (1436, 1536, 42, 65_536, 64 * 42),
            (1437, 1792, 36, 65_536, 64 * 36),
            (3996, 4096, 16, 65_536, 64 * 16),
            (3997, 8192, 8, 65_536, 64 * 8),
            (65_436, 65_536, 1, 65_536, 64),
            (65_437, 69_632, 1, 69_632, 64),
        ] {
            let socket = socket::open(libc::AF_PACKET, libc::SOCK_RAW, 0);
            let socket = socket.expect("NOT RUN: a packet socket needs root");
            let ring = Ring::map(std::os::fd::AsFd::as_fd(&socket), largest).expect("a ring");
            assert_eq!(
                (ring.slot_bytes, ring.slots_per_block, ring.block_bytes, ring.slots),
                (slot_bytes, slots_per_block, block_bytes, slots),
                "{largest}"
            );
        }
    }

    /// A slot is ours while the kernel says so. What is longer than the slot, or was cut, is not
    /// handed out, and losses are told.
    #[test]
    fn slots_are_read_as_the_kernel_marks_them() {
        let memory = Mapping::new(None, 2 * 8192, MapFlags::PRIVATE).expect("memory");
        let (slot_bytes, slots_per_block, block_bytes) = (2048, 3, 8192);
        let mut ring = Ring { memory, slot_bytes, slots_per_block, block_bytes, slots: 6, next: 0 };
        let places: Vec<usize> = (0..6)
            .map(|number| ring.slot(number).as_ptr() as usize - ring.slot(0).as_ptr() as usize)
            .collect();
        assert_eq!(places, [0, 2048, 4096, 8192, 10_240, 12_288]);
        let user = libc::TP_STATUS_USER;
        for round in 0..2 {
            for number in 0..6 {
                assert!(ring.front().is_none());
                put(&ring, number, (66, 100, 100), user);
                let Slot { bytes, lost } = ring.front().expect("a frame");
                assert_eq!((bytes, lost), (&[number as u8; 100][..], false), "round {round}");
                ring.release();
                assert_eq!(ring.status(number).load(Ordering::Acquire), libc::TP_STATUS_KERNEL);
            }
        }
        put(&ring, 0, (66, 100, 101), user | libc::TP_STATUS_LOSING);
        let Slot { bytes, lost } = ring.front().expect("a frame");
        assert_eq!((bytes.len(), lost), (0, true));
        for (number, (start, length), kept) in
            [(1, (2000, 100), 48), (2, (2048, 100), 0), (3, (3000, 100), 0), (4, (66, 60), 60)]
        {
            ring.release();
            put(&ring, number, (start, length, length), user | libc::TP_STATUS_COPY);
            let Slot { bytes, lost } = ring.front().expect("a frame");
            assert_eq!((bytes.len(), lost), (kept, false));
        }
    }
}
