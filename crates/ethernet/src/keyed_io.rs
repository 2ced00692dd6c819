//! Frame I/O with or without a key. With one, what leaves is sealed, and what comes counts only if
//! a peer with a key made it: there is no other way in or out.

use crate::clock::Clock;
use crate::frame_io::{FrameIo, IoCounters};
use crate::pcapng::{Direction, LinkType};
use bellwire_keys::{Counters, KeyFile, Limits, Sessions};
use bellwire_wire::frame::keyed::SEALED_OVERHEAD_BYTES;
use std::os::fd::BorrowedFd;

/// Carries frames by `Io`.
pub struct KeyedIo<Io: FrameIo> {
    io: Io,
    /// One branch per frame is what a device without a key pays.
    sealing: Option<Box<Sealing<Io>>>,
}

struct Sealing<Io: FrameIo> {
    sessions: Sessions<Io::Path>,
    clock: Clock,
}

impl<Io: FrameIo> KeyedIo<Io> {
    /// Frames by `io`, sealed if there is a key.
    pub fn new(io: Io, key: Option<&KeyFile>) -> Self {
        let sealing = key.map(|key| {
            let entropy = Box::new(|bytes: &mut [u8]| {
                bellwire_device::fill_random(bytes).expect("the kernel gives random numbers");
            });
            let sessions = Sessions::new(key.keys(), Limits::default(), has_aes(), entropy);
            Box::new(Sealing { sessions, clock: Clock::new() })
        });
        KeyedIo { io, sealing }
    }

    /// What carries the frames.
    #[cfg(test)]
    pub(crate) fn carrier(&self) -> &Io {
        &self.io
    }

    /// What is counted with a key.
    pub fn key_counters(&self) -> Option<Counters> {
        self.sealing.as_ref().map(|sealing| sealing.sessions.counters())
    }
}

impl<Io: FrameIo> Sealing<Io> {
    /// Seals and stages the frame in the room of `io`, which ends with what lies apart.
    fn stage(&mut self, io: &mut Io, to: Io::Path, length: usize, apart: &[u8]) {
        let now_ns = self.clock.now_ns();
        let room = io.room().expect("it was given before");
        if let Some(length) = self.sessions.seal(to, room, length, apart, now_ns) {
            io.stage(to, length);
        }
        self.send_requests(io);
    }

    /// Sends frames of handshakes. Those that find no room are lost, and sent again later.
    fn send_requests(&mut self, io: &mut Io) -> bool {
        let mut is_staged = false;
        while let Some((to, frame)) = self.sessions.poll_transmit() {
            if let Some(room) = io.room().and_then(|room| room.get_mut(..frame.len())) {
                room.copy_from_slice(&frame);
                io.stage(to, frame.len());
                is_staged = true;
            }
        }
        is_staged
    }

    fn receive(
        &mut self,
        io: &mut Io,
        budget: usize,
        mut take: impl FnMut(Io::Path, &[u8]),
    ) -> usize {
        let now_ns = self.clock.now_ns();
        let frames = io.receive(budget, |from, bytes| {
            if let Some(frame) = self.sessions.open(from, bytes, now_ns) {
                take(from, frame);
            }
        });
        if self.send_requests(io) {
            io.flush();
        }
        frames
    }
}

impl<Io: FrameIo> FrameIo for KeyedIo<Io> {
    type Path = Io::Path;
    const LINK_TYPE: LinkType = Io::LINK_TYPE;

    fn frame_bytes(&self) -> usize {
        let overhead = if self.sealing.is_some() { SEALED_OVERHEAD_BYTES } else { 0 };
        self.io.frame_bytes().saturating_sub(overhead)
    }

    #[inline]
    fn room(&mut self) -> Option<&mut [u8]> {
        let begin = if self.sealing.is_some() { Sessions::<Io::Path>::ROOM } else { 0 };
        self.io.room().and_then(|room| room.get_mut(begin..))
    }

    #[inline]
    fn stage(&mut self, to: Io::Path, length: usize) {
        match &mut self.sealing {
            None => self.io.stage(to, length),
            Some(sealing) => sealing.stage(&mut self.io, to, length, &[]),
        }
    }

    #[inline]
    fn stage_apart(&mut self, to: Io::Path, length: usize, apart: &[u8]) {
        let sealing = self.sealing.as_mut().expect("without a key frames are whole");
        sealing.stage(&mut self.io, to, length, apart);
    }

    #[inline]
    fn flush(&mut self) -> bool {
        self.io.flush()
    }

    #[inline]
    fn receive(&mut self, budget: usize, take: impl FnMut(Io::Path, &[u8])) -> usize {
        match &mut self.sealing {
            None => self.io.receive(budget, take),
            Some(sealing) => sealing.receive(&mut self.io, budget, take),
        }
    }

    fn take_refused(&mut self) -> Option<Io::Path> {
        self.io.take_refused()
    }

    fn wait_fds(&self) -> Vec<BorrowedFd<'_>> {
        self.io.wait_fds()
    }

    fn generation(&self) -> Option<u64> {
        self.io.generation()
    }

    fn wake(&mut self, index: usize) {
        self.io.wake(index);
    }

    fn is_ready(&self) -> bool {
        self.io.is_ready()
    }

    fn capture_header(&self, peer: Io::Path, direction: Direction, frame: &[u8]) -> Vec<u8> {
        self.io.capture_header(peer, direction, frame)
    }

    fn counters(&self) -> IoCounters {
        self.io.counters()
    }

    fn drops_altered(&self) -> bool {
        self.sealing.is_some()
    }

    fn key_rows(&self, rows: &mut Vec<(&'static str, u64)>) {
        rows.extend(self.key_counters().iter().flat_map(Counters::rows));
    }
}

/// Whether the processor has instructions for AES-GCM.
fn has_aes() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("aes")
        && std::arch::is_x86_feature_detected!("pclmulqdq");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("aes");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    false
}
