//! Seals frames and opens them, by an AEAD of `aws-lc-rs`. Both also move bytes to where they
//! belong, so that this costs no copy.
//!
//! The nonce is the frame's counter, laid out as the Noise specification has it (sections 12.3 and
//! 12.4). [`Sealer`] counts by itself, so no counter is used twice under one key.

use aws_lc_rs::aead::{AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use bellwire_protocol::canary::planted;
use bellwire_wire::frame::keyed::{KEYED_HEADER_BYTES, SEAL_BYTES};

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
    /// the last [`SEAL_BYTES`] become the tag. What is encrypted ends with `apart`, whose place in
    /// the frame is written here only.
    #[inline]
    pub fn seal(&mut self, frame: &mut [u8], apart: &[u8]) {
        let (header, body) = frame.split_at_mut(KEYED_HEADER_BYTES);
        header[COUNTER..].copy_from_slice(&self.next.to_le_bytes());
        self.seal_body(header, body, apart);
    }

    /// Seals `body`, which ends with `apart` and the tag, beside `header`.
    #[inline]
    pub(crate) fn seal_body(&mut self, header: &[u8], body: &mut [u8], apart: &[u8]) {
        let nonce = self.suite.nonce(self.next);
        if !planted("keys-nonce-reuse") || self.next % 64 != 7 {
            self.next += 1;
        }
        let header = Aad::from(if planted("keys-header-open") { &[][..] } else { header });
        let (here, rest) = body.split_at_mut(body.len() - SEAL_BYTES - apart.len());
        let sealed = self.key.seal_in_place_scatter(nonce, header, here, apart, rest);
        sealed.expect("a frame has less than 64 KiB");
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

    /// Opens `sealed`, the encrypted frame and its tag, into `frame`, which is shorter by
    /// [`SEAL_BYTES`]. After an error `frame` is worthless.
    #[inline]
    pub fn open(
        &mut self,
        header: &[u8],
        counter: u64,
        sealed: &[u8],
        frame: &mut [u8],
    ) -> Result<(), Unopened> {
        if !self.window.is_new(counter) {
            return Err(Unopened::Repeated);
        }
        self.open_any(header, counter, sealed, frame).ok_or(Unopened::Forged)?;
        // Only a frame of the peer moves the window.
        self.window.mark(counter);
        Ok(())
    }

    #[inline]
    fn open_any(&self, header: &[u8], counter: u64, sealed: &[u8], frame: &mut [u8]) -> Option<()> {
        let nonce = self.suite.nonce(counter);
        let (body, tag) = sealed.split_at(frame.len());
        if planted("keys-skip-seal") {
            // Sealing again deciphers, and compares no tag.
            frame.copy_from_slice(body);
            let _ = self.key.seal_in_place_separate_tag(nonce, Aad::from(header), frame).ok()?;
            return Some(());
        }
        let header = if planted("keys-header-open") { &[][..] } else { header };
        self.key.open_separate_gather(nonce, Aad::from(header), body, tag, frame).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `apart`: so many of the last bytes are not in the frame before.
    fn sealed(sealer: &mut Sealer, body: &[u8], apart: usize) -> Vec<u8> {
        let (here, apart) = body.split_at(body.len() - apart);
        let mut frame = vec![9; KEYED_HEADER_BYTES];
        frame.extend_from_slice(here);
        frame.resize(frame.len() + apart.len() + SEAL_BYTES, 0xee);
        sealer.seal(&mut frame, apart);
        frame
    }

    fn open(opener: &mut Opener, frame: &[u8]) -> Result<Vec<u8>, Unopened> {
        let (header, body) = frame.split_at(KEYED_HEADER_BYTES);
        let counter = u64::from_le_bytes(header[COUNTER..].try_into().expect("8 bytes"));
        let mut opened = vec![0xdd; body.len() - SEAL_BYTES];
        opener.open(header, counter, body, &mut opened).map(|()| opened)
    }

    /// Each frame opens once, in any order, and with any bit flipped not at all.
    #[test]
    fn frames_open_once() {
        for suite in [Suite::Aes256Gcm, Suite::ChaCha20Poly1305] {
            let mut sealer = Sealer::new(suite, &[1; 32]);
            let mut opener = Opener::new(suite, &[1; 32]);
            let frames: Vec<Vec<u8>> = (0..3).map(|_| sealed(&mut sealer, b"bell", 0)).collect();
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

    /// A frame is the same wherever the last of its bytes lay before.
    #[test]
    fn what_lies_apart_is_sealed_as_the_rest() {
        let body: Vec<u8> = (0..=255).cycle().take(1500).collect();
        for suite in [Suite::Aes256Gcm, Suite::ChaCha20Poly1305] {
            for length in (0..300).chain([511, 1024, 1499, 1500]) {
                let body = &body[..length];
                let mut frames = (0..=length).step_by(1 + length / 40).map(|apart| {
                    let mut sealer = Sealer::new(suite, &[1; 32]);
                    sealed(&mut sealer, body, apart)
                });
                let first = frames.next().expect("with nothing apart");
                assert!(frames.all(|frame| frame == first), "{length} bytes");
                let mut opener = Opener::new(suite, &[1; 32]);
                assert_eq!(open(&mut opener, &first).as_deref(), Ok(body));
            }
        }
    }
}
