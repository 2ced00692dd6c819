//! Limit of a stream between private buffers. The sender copies piece by piece into a small ring in
//! shared memory; at the same time the receiver copies out of it.

use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::Result;

use super::copy_straight::{LARGEST_STREAM_BYTES, stamp};
use super::{Contender, Kind, Start};
use crate::op::{Op, STREAM_WINDOW, Wire};
use crate::worker::{
    InHouse, Outcome, Party, SharedMemory, Side, check_arrived, meet, spin_until, touched,
};

/// The pipelined pair of copies.
pub const CONTENDER: Contender = Contender {
    name: "copy-through",
    about: "copied in and out of a shared ring, pipelined",
    kind: Kind::Limit,
    wires: &[Wire::Memory],
    start: Start::InHouse(InHouse {
        shared_bytes: PIECES * PIECE_BYTES,
        ..InHouse::pair(&[Op::Stream], |party| Ok(Box::new(Through::open(party))))
    }),
};

/// Bytes of a piece of the ring. Pieces of 4 to 256 KiB and rings of 16 KiB to 4 MiB were tried. A
/// ring of 1 MiB is 1.5 times as fast as one of 128 KiB: in the small ring the sender writes lines
/// that the receiver has only just read. Larger rings gain nothing more.
const PIECE_BYTES: usize = 32 << 10;
const PIECES: usize = 32;

/// Control words after those of [`meet`]: pieces put in, pieces taken out, and runs finished by the
/// receiver.
const IN: usize = 2;
const OUT: usize = 3;

struct Through {
    index: usize,
    shared: SharedMemory,
    /// The sender's source buffers, or the receiver's target buffers.
    private: Vec<u8>,
}

impl Through {
    fn open(party: &Party) -> Through {
        let private = touched(STREAM_WINDOW * LARGEST_STREAM_BYTES);
        Through { index: party.index, shared: party.shared, private }
    }
}

impl Side for Through {
    fn run(&mut self, _op: Op, bytes: usize, count: u64) -> Result<Outcome> {
        let (put_in, taken_out) = (self.shared.word(IN), self.shared.word(OUT));
        put_in.store(0, Ordering::Relaxed);
        taken_out.store(0, Ordering::Relaxed);
        meet(self.shared, self.index);
        let start = Instant::now();
        let mut piece = 0_u64;
        for number in 0..count {
            let offset = number as usize % STREAM_WINDOW * bytes;
            let message = &mut self.private[offset..offset + bytes];
            if self.index == 0 {
                message[..8].copy_from_slice(&number.to_ne_bytes());
            }
            for part in message.chunks_mut(PIECE_BYTES) {
                let place = self.shared.data(piece as usize % PIECES * PIECE_BYTES, part.len());
                if self.index == 0 {
                    // Acquire pairs with the receiver's Release: it has read the piece that is now
                    // rewritten.
                    let free = (piece + 1).saturating_sub(PIECES as u64);
                    spin_until(|| taken_out.load(Ordering::Acquire) >= free);
                    // SAFETY: the piece is the sender's until it is put in; the source is private.
                    unsafe { std::ptr::copy_nonoverlapping(part.as_ptr(), place, part.len()) };
                    put_in.store(piece + 1, Ordering::Release);
                } else {
                    spin_until(|| put_in.load(Ordering::Acquire) > piece);
                    // SAFETY: the piece is the receiver's until it is taken out; the target is
                    // private.
                    unsafe { std::ptr::copy_nonoverlapping(place, part.as_mut_ptr(), part.len()) };
                    taken_out.store(piece + 1, Ordering::Release);
                }
                piece += 1;
            }
            if self.index == 1 {
                check_arrived(number, stamp(message))?;
            }
        }
        if self.index == 0 {
            spin_until(|| taken_out.load(Ordering::Acquire) == piece);
        }
        Ok(Outcome::since(start))
    }
}
