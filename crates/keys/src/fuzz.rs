//! The fuzz target of handshakes (`fuzz/` at the root of the project).

use std::collections::VecDeque;

use bellwire_wire::frame::header::MAGIC;
use bellwire_wire::frame::keyed::{KEYED, KEYED_HEADER_BYTES, SEALED_OVERHEAD_BYTES, TAG_BYTES};

use crate::keys::{Key, Keys, public_of};
use crate::session::Limits;
use crate::sessions::Sessions;

/// Length of the frames that are sealed.
const FRAME_BYTES: usize = 40;

/// Two functions with a key, and what is on its way to each.
struct Pair {
    sides: [Sessions<u8>; 2],
    flying: [VecDeque<Vec<u8>>; 2],
    sealed: Vec<[u8; FRAME_BYTES]>,
    now_ns: u64,
}

/// Carries out operations that `bytes` encode: frames are sealed, delivered, lost, altered and made
/// up, some with a right tag. Nothing may panic, and only what was sealed may be opened.
pub fn handshake(bytes: &[u8]) {
    let [kind, bytes @ ..] = bytes else { return };
    let keys = |own: u8| match kind % 2 {
        0 => Keys::shared(&[7; 32]),
        _ => Keys::listed(&[own; 32], &[public_of(&[3 - own; 32])]).expect("public keys"),
    };
    let side = |own: u8| {
        let mut count = u64::from(own) << 56;
        let entropy = move |bytes: &mut [u8]| {
            count += 1;
            let seed: Key = *blake3::hash(&count.to_le_bytes()).as_bytes();
            bytes.copy_from_slice(&seed[..bytes.len()]);
        };
        let limits = Limits { end_ns: 1 << 32, renew_ns: 1 << 31, ..Limits::default() };
        Sessions::new(keys(own), limits, kind & 4 == 0, Box::new(entropy))
    };
    let mut pair = Pair {
        sides: [side(1), side(2)],
        flying: Default::default(),
        sealed: Vec::new(),
        now_ns: 1 << 34,
    };
    let mut rest = bytes;
    while let [operation, argument, behind @ ..] = rest {
        rest = behind;
        let to = usize::from(operation & 1);
        match operation >> 1 & 7 {
            0 => pair.seal(1 - to),
            1 => pair.now_ns += 1 << (argument % 34),
            2 => drop(pair.flying[to].pop_front()),
            3 => {
                let data = &rest[..rest.len().min(usize::from(*argument))];
                rest = &rest[data.len()..];
                pair.deliver(to, data);
            }
            4 => {
                // Below the tag, where only a peer gets.
                let data = &rest[..rest.len().min(usize::from(*argument))];
                rest = &rest[data.len()..];
                let frame = pair.tagged(to, data);
                pair.deliver(to, &frame);
            }
            5 => {
                if let Some(mut frame) = pair.flying[to].pop_front() {
                    let at = usize::from(*argument) % frame.len();
                    frame[at] ^= 1 << (argument >> 5);
                    pair.deliver(to, &frame);
                }
            }
            6 => {
                if let Some(frame) = pair.flying[to].front().cloned() {
                    pair.deliver(to, &frame);
                }
            }
            _ => {
                if let Some(frame) = pair.flying[to].pop_front() {
                    pair.deliver(to, &frame);
                }
            }
        }
    }
}

impl Pair {
    fn seal(&mut self, from: usize) {
        let mut frame = [0; FRAME_BYTES];
        frame[..4].copy_from_slice(&[MAGIC, 1, 1 - from as u8, from as u8]);
        frame[4..8].copy_from_slice(&(self.sealed.len() as u32).to_le_bytes());
        self.sealed.push(frame);
        let mut buffer = [0; FRAME_BYTES + SEALED_OVERHEAD_BYTES];
        buffer[KEYED_HEADER_BYTES..][..FRAME_BYTES].copy_from_slice(&frame);
        let to = 1 - from;
        let sealed = self.sides[from].seal(to as u8, &mut buffer, FRAME_BYTES, &[], self.now_ns);
        if let Some(length) = sealed {
            self.flying[to].push_back(buffer[..length].to_vec());
        }
        self.transmit(from);
    }

    fn transmit(&mut self, from: usize) {
        while let Some((to, frame)) = self.sides[from].poll_transmit() {
            self.flying[usize::from(to)].push_back(frame);
        }
    }

    /// `data` as a frame to `to`, with a right tag.
    fn tagged(&self, to: usize, data: &[u8]) -> Vec<u8> {
        let mut frame = data.to_vec();
        frame.resize(frame.len().max(KEYED_HEADER_BYTES), 0);
        let length = (frame.len() + TAG_BYTES) as u16;
        frame[0] = MAGIC;
        frame[1] = KEYED | frame[1] & 0xf0;
        frame[4..6].copy_from_slice(&length.to_le_bytes());
        frame[6..8].copy_from_slice(&1_u16.to_le_bytes());
        self.sides[1 - to].tag_for_test(&mut frame);
        frame
    }

    fn deliver(&mut self, to: usize, bytes: &[u8]) {
        let opened = self.sides[to].open(1 - to as u8, bytes, self.now_ns).map(<[u8]>::to_vec);
        if let Some(frame) = opened {
            // A tag suffices for questions about places, and for nothing else.
            let is_question = frame.get(1).is_some_and(|kind| [8, 9].contains(&(kind & 0xf)));
            assert!(is_question || self.sealed.iter().any(|sealed| sealed[..] == frame[..]));
        }
        assert!(self.sides[to].peer_count() <= 1);
        self.transmit(to);
    }
}
