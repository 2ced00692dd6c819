//! Seals frames and opens them, by an AEAD of `ring`.
//!
//! The nonce is the frame's counter, laid out as the Noise specification has it (sections 12.3 and
//! 12.4). [`Sealer`] counts by itself, so no counter is used twice under one key.

use bellwire_protocol::canary::planted;
use bellwire_wire::frame::keyed::{KEYED_HEADER_BYTES, SEAL_BYTES};
use ring::aead::{AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};

use crate::keys::Key;
use crate::window::Window;

/// Offset of the counter in the header.
const COUNTER: usize = 16;

/// An AEAD.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Suite {
    /// AES-256-GCM: the faster one where both processors have instructions for it.
    Aes256Gcm = 1,
    /// ChaCha20-Poly1305: without instructions the faster one, and its time tells nothing of keys.
    ChaCha20Poly1305 = 2,
}

impl Suite {
    /// The suite with this code.
    pub(crate) fn from_code(code: u8) -> Option<Suite> {
        match code {
            1 => Some(Suite::Aes256Gcm),
            2 => Some(Suite::ChaCha20Poly1305),
            _ => None,
        }
    }

    fn key(self, key: &Key) -> LessSafeKey {
        let algorithm = match self {
            Suite::Aes256Gcm => &AES_256_GCM,
            Suite::ChaCha20Poly1305 => &CHACHA20_POLY1305,
        };
        LessSafeKey::new(UnboundKey::new(algorithm, key).expect("keys have 32 bytes"))
    }

    fn nonce(self, counter: u64) -> Nonce {
        let mut nonce = [0; 12];
        nonce[4..].copy_from_slice(&match self {
            Suite::Aes256Gcm => counter.to_be_bytes(),
            Suite::ChaCha20Poly1305 => counter.to_le_bytes(),
        });
        Nonce::assume_unique_for_key(nonce)
    }
}

/// Seals the frames of one direction.
pub(crate) struct Sealer {
    suite: Suite,
    key: LessSafeKey,
    next: u64,
}

impl Sealer {
    pub fn new(suite: Suite, key: &Key) -> Sealer {
        Sealer { suite, key: suite.key(key), next: 0 }
    }

    /// How many frames were sealed.
    #[inline]
    pub fn count(&self) -> u64 {
        self.next
    }

    /// Numbers `frame` and seals it: its header is authenticated, what follows is encrypted, and
    /// the last [`SEAL_BYTES`] become the tag.
    #[inline]
    pub fn seal(&mut self, frame: &mut [u8]) {
        let (header, body) = frame.split_at_mut(KEYED_HEADER_BYTES);
        let (body, tag) = body.split_at_mut(body.len() - SEAL_BYTES);
        header[COUNTER..].copy_from_slice(&self.next.to_le_bytes());
        let tag_of = self.seal_apart(header, body);
        tag.copy_from_slice(&tag_of);
    }

    /// Seals `body` beside `header`, and returns the tag.
    #[inline]
    pub(crate) fn seal_apart(&mut self, header: &[u8], body: &mut [u8]) -> [u8; SEAL_BYTES] {
        let nonce = self.suite.nonce(self.next);
        if !planted("keys-nonce-reuse") || self.next % 64 != 7 {
            self.next += 1;
        }
        let header = if planted("keys-header-open") { &[][..] } else { header };
        let tag = self.key.seal_in_place_separate_tag(nonce, Aad::from(header), body);
        let mut bytes = [0; SEAL_BYTES];
        bytes.copy_from_slice(tag.expect("a frame has less than 64 KiB").as_ref());
        bytes
    }
}

/// Opens the frames of one direction, each once.
pub(crate) struct Opener {
    suite: Suite,
    key: LessSafeKey,
    window: Window,
}

/// Why a frame was not opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unopened {
    /// It came before, or too late to tell.
    Repeated,
    /// It was not sealed with this key, or was altered.
    Forged,
}

impl Opener {
    pub fn new(suite: Suite, key: &Key) -> Opener {
        Opener { suite, key: suite.key(key), window: Window::new() }
    }

    /// Opens `sealed`, the encrypted frame and its tag, in place.
    #[inline]
    pub fn open<'a>(
        &mut self,
        header: &[u8],
        counter: u64,
        sealed: &'a mut [u8],
    ) -> Result<&'a [u8], Unopened> {
        if !self.window.is_new(counter) {
            return Err(Unopened::Repeated);
        }
        let frame = self.open_any(header, counter, sealed).ok_or(Unopened::Forged)?;
        // Only a frame of the peer moves the window.
        self.window.mark(counter);
        Ok(frame)
    }

    #[inline]
    fn open_any<'a>(&self, header: &[u8], counter: u64, sealed: &'a mut [u8]) -> Option<&'a [u8]> {
        let nonce = self.suite.nonce(counter);
        if planted("keys-skip-seal") {
            // Sealing again deciphers, and compares no tag.
            let body = sealed.len() - SEAL_BYTES;
            let body = &mut sealed[..body];
            let _ = self.key.seal_in_place_separate_tag(nonce, Aad::from(header), body).ok()?;
            return Some(body);
        }
        let header = if planted("keys-header-open") { &[][..] } else { header };
        Some(self.key.open_in_place(nonce, Aad::from(header), sealed).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(sealer: &mut Sealer, body: &[u8]) -> Vec<u8> {
        let mut frame = vec![9; KEYED_HEADER_BYTES];
        frame.extend_from_slice(body);
        frame.resize(frame.len() + SEAL_BYTES, 0);
        sealer.seal(&mut frame);
        frame
    }

    fn open(opener: &mut Opener, frame: &[u8]) -> Result<Vec<u8>, Unopened> {
        let (header, body) = frame.split_at(KEYED_HEADER_BYTES);
        let counter = u64::from_le_bytes(header[COUNTER..].try_into().expect("8 bytes"));
        opener.open(header, counter, &mut body.to_vec()).map(<[u8]>::to_vec)
    }

    /// Each frame opens once, in any order, and with any bit flipped not at all.
    #[test]
    fn frames_open_once() {
        for suite in [Suite::Aes256Gcm, Suite::ChaCha20Poly1305] {
            let mut sealer = Sealer::new(suite, &[1; 32]);
            let mut opener = Opener::new(suite, &[1; 32]);
            let frames: Vec<Vec<u8>> = (0..3).map(|_| sealed(&mut sealer, b"bell")).collect();
            assert_ne!(frames[0][KEYED_HEADER_BYTES..], frames[1][KEYED_HEADER_BYTES..]);
            for bit in 0..8 * frames[1].len() {
                let mut altered = frames[1].clone();
                altered[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(open(&mut opener, &altered), Err(Unopened::Forged), "bit {bit}");
            }
            for number in [2, 0, 1] {
                assert_eq!(open(&mut opener, &frames[number]), Ok(b"bell".to_vec()));
            }
            for frame in &frames {
                assert_eq!(open(&mut opener, frame), Err(Unopened::Repeated));
            }
            let mut other = Opener::new(suite, &[2; 32]);
            assert_eq!(open(&mut other, &frames[0]), Err(Unopened::Forged));
        }
    }
}
