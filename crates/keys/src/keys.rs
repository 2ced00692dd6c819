//! What a function knows about keys.

use snow::params::DHChoice;
use snow::resolvers::{CryptoResolver, DefaultResolver};

use crate::tags::TagKey;

/// Bytes of a key.
pub const KEY_BYTES: usize = 32;

/// A key: shared, private or public.
pub type Key = [u8; KEY_BYTES];

/// Which peers may talk to us, and how we show them who we are.
pub struct Keys {
    pub(crate) way: Way,
    /// Under a shared key there is one, for all peers.
    pub(crate) pairs: Vec<Pair>,
}

/// How a handshake proves what its sides know.
pub(crate) enum Way {
    /// Both know this key (Noise NNpsk0).
    Shared(Key),
    /// Each has a private key and knows the other's public key (Noise IK).
    Listed(Key),
}

/// What we share with one peer, or with all under a shared key.
pub(crate) struct Pair {
    pub tags: TagKey,
    /// Under a shared key unused.
    pub public: Key,
}

impl Keys {
    /// Peers that know `key` may talk.
    pub fn shared(key: &Key) -> Keys {
        // Noise and the tags have keys of their own, so neither reveals anything of the other.
        let psk = blake3::derive_key("bellwire 1: pre-shared key of Noise NNpsk0", key);
        let tags = TagKey::derive("bellwire 1: tags under a shared key", &[key]);
        Keys { way: Way::Shared(psk), pairs: vec![Pair { tags, public: [0; KEY_BYTES] }] }
    }

    /// The owner of `private` talks to the owners of the private keys of `peers`.
    ///
    /// # Errors
    /// The first of `peers` that is no public key, or our own one.
    pub fn listed(private: &Key, peers: &[Key]) -> Result<Keys, Key> {
        let own = public_of(private);
        let pair = |public: &Key| {
            let mut shared = [0; KEY_BYTES];
            let dh = dh_of(private);
            // A point of small order gives zeros with every private key (RFC 7748, 6.1).
            if *public == own || dh.dh(public, &mut shared).is_err() || shared == [0; KEY_BYTES] {
                return Err(*public);
            }
            let tags = TagKey::derive("bellwire 1: tags of two listed keys", &[&shared]);
            Ok(Pair { tags, public: *public })
        };
        let pairs = peers.iter().map(pair).collect::<Result<_, _>>()?;
        Ok(Keys { way: Way::Listed(*private), pairs })
    }
}

impl core::fmt::Debug for Keys {
    /// Hides the keys.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self.way {
            Way::Shared(_) => "a shared key",
            Way::Listed(_) => "a private key",
        })
    }
}

/// The public key that belongs to a private one.
pub fn public_of(private: &Key) -> Key {
    let mut public = [0; KEY_BYTES];
    public.copy_from_slice(&dh_of(private).pubkey()[..KEY_BYTES]);
    public
}

fn dh_of(private: &Key) -> Box<dyn snow::types::Dh> {
    let mut dh = DefaultResolver.resolve_dh(&DHChoice::Curve25519).expect("it is compiled in");
    dh.set(private);
    dh
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The public key is that of the test vectors of cacophony, and keys that prove nothing are
    /// refused.
    #[test]
    fn public_keys_are_checked() {
        let hex = |text: &str| crate::parse_key(text).expect("a key");
        let alice = hex("4a3acbfdb163dec651dfa3194dece676d437029c62a408b4c5ea9114246e4893");
        let told = hex("31e0303fd6418d2f8c0e78b91f22e8caed0fbe48656dcf4767e4834f701b8f62");
        assert_eq!(public_of(&alice), told);
        let public = public_of(&[9; KEY_BYTES]);
        assert!(Keys::listed(&alice, &[public]).is_ok());
        for bad in [[0; KEY_BYTES], public_of(&alice)] {
            assert_eq!(Keys::listed(&alice, &[public, bad]).err(), Some(bad));
        }
        let mut one = [0; KEY_BYTES];
        one[0] = 1;
        assert_eq!(Keys::listed(&alice, &[one]).err(), Some(one));
        assert_eq!(format!("{:?}", Keys::shared(&alice)), "a shared key");
    }

    /// Two owners of listed keys have the same tags, and a third has others.
    #[test]
    fn two_share_what_a_third_does_not() {
        let keys = |own: u8, peers: &[u8]| {
            let peers: Vec<Key> = peers.iter().map(|&peer| public_of(&[peer; 32])).collect();
            Keys::listed(&[own; 32], &peers).expect("public keys")
        };
        let (a, b, c) = (keys(1, &[2, 3]), keys(2, &[1]), keys(3, &[1, 2]));
        let tag = |keys: &Keys, pair: usize| keys.pairs[pair].tags.tag(&[b"x"]);
        assert_eq!(tag(&a, 0), tag(&b, 0));
        assert_eq!(tag(&a, 1), tag(&c, 0));
        assert_ne!(tag(&a, 0), tag(&a, 1));
    }
}
