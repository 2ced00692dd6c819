//! Limit of a stream with one copy: the source buffers are in shared memory, and the receiver
//! copies directly from them.

use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::Result;

use super::{Contender, Kind, Start};
use crate::op::{Op, STREAM_WINDOW, Wire};
use crate::worker::{
    InHouse, Outcome, Party, SharedMemory, Side, check_arrived, meet, spin_until, touched,
};

pub const CONTENDER: Contender = Contender {
    name: "copy-straight",
    about: "one copy, out of the sender's shared buffer",
    kind: Kind::Limit,
    wires: &[Wire::Memory],
    start: Start::InHouse(InHouse {
        shared_bytes: STREAM_WINDOW * LARGEST_STREAM_BYTES,
        ..InHouse::pair(&[Op::Stream], |party| Ok(Box::new(Straight::open(party))))
    }),
};

/// The largest message of a stream row.
pub const LARGEST_STREAM_BYTES: usize = 1 << 20;

/// Control words after those of [`meet`]: messages offered, and messages taken.
const OFFERED: usize = 2;
const TAKEN: usize = 3;

struct Straight {
    index: usize,
    shared: SharedMemory,
    target: Vec<u8>,
}

impl Straight {
    fn open(party: &Party) -> Straight {
        let target = touched(STREAM_WINDOW * LARGEST_STREAM_BYTES);
        Straight { index: party.index, shared: party.shared, target }
    }
}

impl Side for Straight {
    fn run(&mut self, _op: Op, bytes: usize, count: u64) -> Result<Outcome> {
        one_copy(self.shared, self.index, count, |number| {
            let offset = number as usize % STREAM_WINDOW * bytes;
            let source = self.shared.data(offset, bytes);
            if self.index == 0 {
                // SAFETY: the buffer is the sender's until it is offered.
                unsafe { source.cast::<u64>().write(number) };
                return Ok(number);
            }
            let target = &mut self.target[offset..offset + bytes];
            // SAFETY: the buffer is the receiver's from the offer until it is taken; the target is
            // private.
            unsafe { std::ptr::copy_nonoverlapping(source, target.as_mut_ptr(), bytes) };
            Ok(stamp(target))
        })
    }
}

/// A stream in which the receiver fetches each message from the sender's buffers. `work` stamps the
/// message of this number at the sender; at the receiver it fetches it and returns its stamp.
pub fn one_copy(
    shared: SharedMemory,
    index: usize,
    count: u64,
    mut work: impl FnMut(u64) -> Result<u64>,
) -> Result<Outcome> {
    let (offered, taken) = (shared.word(OFFERED), shared.word(TAKEN));
    offered.store(0, Ordering::Relaxed);
    taken.store(0, Ordering::Relaxed);
    meet(shared, index);
    let start = Instant::now();
    for number in 0..count {
        if index == 0 {
            // Acquire pairs with the receiver's Release: it has read the buffer that is now
            // rewritten.
            let free = (number + 1).saturating_sub(STREAM_WINDOW as u64);
            spin_until(|| taken.load(Ordering::Acquire) >= free);
            work(number)?;
            offered.store(number + 1, Ordering::Release);
        } else {
            spin_until(|| offered.load(Ordering::Acquire) > number);
            let arrived = work(number)?;
            taken.store(number + 1, Ordering::Release);
            check_arrived(number, arrived)?;
        }
    }
    if index == 0 {
        spin_until(|| taken.load(Ordering::Acquire) == count);
    }
    Ok(Outcome::since(start))
}

/// The number that a message of a stream starts with.
pub fn stamp(message: &[u8]) -> u64 {
    u64::from_ne_bytes(message[..8].try_into().expect("eight bytes"))
}
