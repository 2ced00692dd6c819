//! The key of a world: what its functions send is sealed, and what does not open is dropped.

use bellwire_keys::{Keys, Limits, Sessions};
use bellwire_wire::frame::check::CHECK_BYTES;
use bellwire_wire::frame::header::HEADER_BYTES;
use bellwire_wire::frame::keyed::SEALED_OVERHEAD_BYTES;
use bellwire_wire::frame::section::SECTION_BYTES;

use crate::chance::{Chance, scatter};
use crate::device::Place;

/// The sessions of one function.
pub struct Sealing(Sessions<Place>);

/// When functions of a world change their keys.
pub fn limits(world: u64) -> Limits {
    // Half of all worlds change keys all the time.
    match world & 16 {
        0 => Limits::default(),
        _ => Limits {
            renew_ns: 1_000_000_000,
            end_ns: 1_500_000_000,
            renew_frames: 500,
            end_frames: 2_000,
            ..Limits::default()
        },
    }
}

impl Sealing {
    /// For a function in the world of seed `world`. `own` is different in each of its lives.
    pub fn new(world: u64, own: u64) -> Sealing {
        let key = [world as u8; 32];
        let mut chance = Chance::new(scatter(own ^ 0x5ea1));
        let entropy = Box::new(move |bytes: &mut [u8]| {
            for chunk in bytes.chunks_mut(8) {
                chunk.copy_from_slice(&chance.bits().to_le_bytes()[..chunk.len()]);
            }
        });
        Sealing(Sessions::new(Keys::shared(&key), limits(world), world & 32 == 0, entropy))
    }

    /// Seals the frame of `length` bytes in `buffer`, and returns its length then; `None` if there
    /// is no session yet.
    pub fn seal(
        &mut self,
        to: Place,
        buffer: &mut [u8],
        length: usize,
        now_ns: u64,
    ) -> Option<usize> {
        let room = Sessions::<Place>::ROOM;
        let mut frame = vec![0; room + length + SEALED_OVERHEAD_BYTES];
        // As a device does it: most of a long frame comes to its place as it is sealed.
        let end = length - CHECK_BYTES;
        let apart = &buffer[end.min(HEADER_BYTES + SECTION_BYTES)..end];
        for written in [0..end - apart.len(), end..length] {
            frame[room + written.start..room + written.end].copy_from_slice(&buffer[written]);
        }
        let length = self.0.seal(to, &mut frame, length, apart, now_ns)?;
        buffer[..length].copy_from_slice(&frame[..length]);
        Some(length)
    }

    /// The frame in what came; empty if there is none.
    pub fn open(&mut self, from: Place, bytes: &[u8], now_ns: u64) -> Vec<u8> {
        self.0.open(from, bytes, now_ns).map(<[u8]>::to_vec).unwrap_or_default()
    }

    /// The next frame of a handshake, and where to.
    pub fn poll_transmit(&mut self) -> Option<(Place, Vec<u8>)> {
        self.0.poll_transmit()
    }
}
