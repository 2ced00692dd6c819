//! The two messages of a handshake: Noise NNpsk0 under a shared key, Noise IK with listed keys.
//!
//! In both the first message proves what its sender knows, so strangers are not answered, and both
//! sides contribute a key that is used once and forgotten (forward secrecy).
//! Noise Protocol Framework, revision 34, sections 7.5, 7.7 and 9.

use snow::params::{CipherChoice, DHChoice, HashChoice, NoiseParams};
use snow::resolvers::{CryptoResolver, DefaultResolver};
use snow::types::{Cipher, Dh, Hash, Random};
use snow::{Builder, Error, HandshakeState};

use crate::keys::{Key, Keys, Way};

/// More than a message of ours has.
const MESSAGE_BYTES: usize = 192;

/// What a handshake gives: the key of each direction.
pub(crate) struct SessionKeys {
    /// For frames from the side that asked.
    pub asking: Key,
    /// For frames from the side that answered.
    pub answering: Key,
}

/// A handshake that waits for its second message.
pub(crate) struct Handshake(HandshakeState);

impl Handshake {
    /// Begins a handshake with a peer. Returns it and the first message, which carries `payload`.
    /// `seed` is random, and used for nothing else. Both sides must have the same `context`.
    pub fn ask(
        keys: &Keys,
        pair: usize,
        seed: Key,
        context: &[u8],
        payload: &[u8],
    ) -> Option<(Handshake, Vec<u8>)> {
        let mut state = build(keys, Some(pair), seed, context)?;
        let mut message = vec![0; MESSAGE_BYTES];
        let length = state.write_message(payload, &mut message).ok()?;
        message.truncate(length);
        Some((Handshake(state), message))
    }

    /// Takes the second message. Returns its payload and the keys; `None` if the peer did not write
    /// it. The handshake goes on waiting then.
    pub fn finish(&mut self, message: &[u8]) -> Option<(Vec<u8>, SessionKeys)> {
        let payload = read(&mut self.0, message)?;
        Some((payload, split(&mut self.0)?))
    }
}

/// Answers the first message of a handshake by a peer. `reply` makes our payload from the peer's.
/// Returns the second message, what `reply` gave beside its payload, and the keys.
pub(crate) fn answer<T>(
    keys: &Keys,
    pair: usize,
    seed: Key,
    context: &[u8],
    message: &[u8],
    reply: impl FnOnce(&[u8]) -> Option<(Vec<u8>, T)>,
) -> Option<(Vec<u8>, T, SessionKeys)> {
    let mut state = build(keys, None, seed, context)?;
    let payload = read(&mut state, message)?;
    if let Way::Listed(_) = keys.way {
        // The tag said which peer it is; the proof must be of the same one.
        if state.get_remote_static() != Some(&keys.pairs[pair].public[..]) {
            return None;
        }
    }
    let (payload, told) = reply(&payload)?;
    let mut message = vec![0; MESSAGE_BYTES];
    let length = state.write_message(&payload, &mut message).ok()?;
    message.truncate(length);
    Some((message, told, split(&mut state)?))
}

/// A side of a handshake: the asking one, if `asked` names the peer.
fn build(keys: &Keys, asked: Option<usize>, seed: Key, context: &[u8]) -> Option<HandshakeState> {
    let pattern = match keys.way {
        Way::Shared(_) => "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s",
        Way::Listed(_) => "Noise_IK_25519_ChaChaPoly_BLAKE2s",
    };
    let parameters: NoiseParams = pattern.parse().ok()?;
    let builder =
        Builder::with_resolver(parameters, Box::new(Seeded(seed))).prologue(context).ok()?;
    let builder = match &keys.way {
        Way::Shared(key) => builder.psk(0, key).ok()?,
        Way::Listed(key) => builder.local_private_key(key).ok()?,
    };
    match (asked, &keys.way) {
        (Some(pair), Way::Listed(_)) => {
            builder.remote_public_key(&keys.pairs[pair].public).ok()?.build_initiator()
        }
        (Some(_), Way::Shared(_)) => builder.build_initiator(),
        (None, _) => builder.build_responder(),
    }
    .ok()
}

fn read(state: &mut HandshakeState, message: &[u8]) -> Option<Vec<u8>> {
    let mut payload = vec![0; message.len()];
    let length = state.read_message(message, &mut payload).ok()?;
    payload.truncate(length);
    Some(payload)
}

fn split(state: &mut HandshakeState) -> Option<SessionKeys> {
    if !state.is_handshake_finished() {
        return None;
    }
    // Noise leaves the transport to the application (section 11.4), which here seals frames that
    // may be lost or reordered. The keys are those of the specification.
    let (asking, answering) = state.dangerously_get_raw_split();
    Some(SessionKeys { asking, answering })
}

/// Noise's functions by `snow`, and our random bytes.
struct Seeded(Key);

impl CryptoResolver for Seeded {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Once(Some(self.0))))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        DefaultResolver.resolve_dh(choice)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        DefaultResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        DefaultResolver.resolve_cipher(choice)
    }
}

/// Gives its bytes once: a handshake needs one random key.
struct Once(Option<Key>);

impl Random for Once {
    fn try_fill_bytes(&mut self, dest: &mut [u8]) -> Result<(), Error> {
        let seed = self.0.take().filter(|seed| seed.len() == dest.len()).ok_or(Error::Rng)?;
        dest.copy_from_slice(&seed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cipher::{Opener, Sealer, Suite};
    use crate::keys::{Pair, public_of};
    use crate::tags::TagKey;
    use bellwire_wire::frame::keyed::SEAL_BYTES;

    /// Test vectors of cacophony, another implementation of Noise.
    struct Vector {
        shared: &'static str,
        privates: [&'static str; 2],
        seeds: [&'static str; 2],
        /// Payload and message: two of the handshake, then of both sides in turn.
        messages: [[&'static str; 2]; 6],
    }

    const PAYLOADS: [&str; 6] = [
        "4c756477696720766f6e204d69736573",
        "4d757272617920526f746862617264",
        "462e20412e20486179656b",
        "4361726c204d656e676572",
        "4a65616e2d426170746973746520536179",
        "457567656e2042f6686d20766f6e2042617765726b",
    ];
    const SEEDS: [&str; 2] = [
        "893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a",
        "bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b",
    ];
    const VECTORS: [Vector; 2] = [
        Vector {
            shared: "54686973206973206d7920417573747269616e20706572737065637469766521",
            privates: ["", ""],
            seeds: SEEDS,
            messages: [
                [
                    PAYLOADS[0],
                    "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944fda936bec35a8adfdff198386f7d5475880897edaaf7495314c99095a2e4d66a",
                ],
                [
                    PAYLOADS[1],
                    "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f1448088434cd2a371993ba41ea11448024fca32766b169183c9e691a7a433279da7e729",
                ],
                [PAYLOADS[2], "bc44da303ae0beb08075fc4eb4e58235c67c2d1f53a4f2fff0bca7"],
                [PAYLOADS[3], "416d1af83e9fa6966ce4e871156b131aa9bd7e9a1d6f8794f4872a"],
                [PAYLOADS[4], "8a7d81b77bcc6c072f2b807da066efba6b5fab9edf71a7faceb2c8454b0cfef608"],
                [
                    PAYLOADS[5],
                    "1e2ee010f72894824a25a867664ff298f2548a145dc4e9d27b1cad83f32fa7c54d69dc3279",
                ],
            ],
        },
        Vector {
            shared: "",
            privates: [
                "e61ef9919cde45dd5f82166404bd08e38bceb5dfdfded0a34c8df7ed542214d1",
                "4a3acbfdb163dec651dfa3194dece676d437029c62a408b4c5ea9114246e4893",
            ],
            seeds: SEEDS,
            messages: [
                [
                    PAYLOADS[0],
                    "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c79440b03ddc7aac5123d06a1b23b71670e32e76c28239a7ca4ac8f784de7e44c1adbfc6e83fef7352a58d9d56157400c0a737b1d171ce368229c7b752ac25b8faf4eca690f6d896f543be02c996ab2b86b76",
                ],
                [
                    PAYLOADS[1],
                    "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843d9b5a8927f0ac9655ef76833bc7e5561f42e691ac8404efd6fbd6308b6a27c",
                ],
                [PAYLOADS[2], "2c256ed08fcd08c2980f954ee4beaccb61c9581340f5dd2fd1cf3b"],
                [PAYLOADS[3], "d6033f70eee20945c7c9dba304e397ee3b284ff5e00fd9efb095d3"],
                [PAYLOADS[4], "a9c068ca5d8babf72560652d8e851adbfac35c8a66e810d560863173e96adf4cfe"],
                [
                    PAYLOADS[5],
                    "2a09d8f459e5927e40fdd2eddc99bdafb04e13a26f145cb5cfe9e6ba34c94331ebc17d5156",
                ],
            ],
        },
    ];

    fn bytes(digits: &str) -> Vec<u8> {
        let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("digits");
        (0..digits.len()).step_by(2).map(byte).collect()
    }

    fn key(digits: &str) -> Key {
        bytes(digits).try_into().expect("32 bytes")
    }

    fn keys_of(vector: &Vector, side: usize) -> Keys {
        let tags = TagKey::derive("a test", &[]);
        if !vector.shared.is_empty() {
            let pairs = vec![Pair { tags, public: [0; 32] }];
            return Keys { way: Way::Shared(key(vector.shared)), pairs };
        }
        let public = public_of(&key(vector.privates[1 - side]));
        Keys { way: Way::Listed(key(vector.privates[side])), pairs: vec![Pair { tags, public }] }
    }

    /// The handshakes, and frames under their keys, are byte for byte those of another
    /// implementation.
    #[test]
    fn handshakes_are_noise() {
        let context = b"John Galt";
        for vector in &VECTORS {
            let [ask, answer, rest @ ..] = vector.messages.map(|it| it.map(bytes));
            let (near, far) = (keys_of(vector, 0), keys_of(vector, 1));
            let (mut asked, first) =
                Handshake::ask(&near, 0, key(vector.seeds[0]), context, &ask[0])
                    .expect("a message");
            assert_eq!(first, ask[1]);
            let reply = |payload: &[u8]| {
                assert_eq!(payload, ask[0]);
                Some((answer[0].clone(), ()))
            };
            let (second, (), far_keys) =
                super::answer(&far, 0, key(vector.seeds[1]), context, &first, reply).expect("one");
            assert_eq!(second, answer[1]);
            // A forged second message does not spoil the true one.
            for at in [0, 31, 32, 60] {
                let mut forged = second.clone();
                forged[at] ^= 1;
                assert!(asked.finish(&forged).is_none());
            }
            let (payload, near_keys) = asked.finish(&second).expect("it is the peer's");
            assert_eq!(payload, answer[0]);
            assert_eq!(
                (near_keys.asking, near_keys.answering),
                (far_keys.asking, far_keys.answering)
            );
            let suite = Suite::ChaCha20Poly1305;
            let mut sealers =
                [near_keys.asking, near_keys.answering].map(|it| Sealer::new(suite, &it));
            let mut openers =
                [far_keys.asking, far_keys.answering].map(|it| Opener::new(suite, &it));
            for (number, [plain, message]) in rest.iter().enumerate() {
                let (from, counter) = (number % 2, number as u64 / 2);
                let mut sealed = vec![0; plain.len() + SEAL_BYTES];
                sealers[from].seal_body(&[], &mut sealed, plain);
                assert_eq!(sealed, *message, "message {number}");
                let mut opened = vec![0; plain.len()];
                assert_eq!(openers[from].open(&[], counter, message, &mut opened), Ok(()));
                assert_eq!(opened, *plain);
            }
        }
    }

    /// AES-256-GCM with the nonce of Noise (section 12.4): frames of both directions in turn, byte
    /// for byte those of cacophony's vector for Noise_NNpsk0_25519_AESGCM_BLAKE2s. The
    /// specification has no vectors of its own. The keys follow from that vector's handshake.
    #[test]
    fn aes_frames_are_those_of_noise() {
        let keys = [
            "38f26376ea6e923c39591af65a2637541873cb2327694c4b2b48d885ebbb87ac",
            "51280db9f554807dd6b1b05f705b41dee8a8bbfd6945a5003d14a31a81a9605e",
        ]
        .map(key);
        let frames = [
            ["462e20412e20486179656b", "a7d888f419cc6fb45c0cea1fd1b74c33217337fcdbe823ad9dfea8"],
            ["4361726c204d656e676572", "e43ae5bc1ace948f71a2875f781dc75277a4a98f60e9a175902cca"],
            [
                "4a65616e2d426170746973746520536179",
                "889bbc831c45b2168a910164d2f5b8cda488584526d53499c53755572469bbe852",
            ],
            [
                "457567656e2042f6686d20766f6e2042617765726b",
                "e7091fab6faeb14559bc1df688cc4589d8476da9f2fac2e71dc5a51bab4038b30f4b54ddab",
            ],
        ];
        let mut sealers = keys.map(|key| Sealer::new(Suite::Aes256Gcm, &key));
        let mut openers = keys.map(|key| Opener::new(Suite::Aes256Gcm, &key));
        for (number, [plain, expected]) in frames.map(|frame| frame.map(bytes)).iter().enumerate() {
            let mut sealed = vec![0; plain.len() + SEAL_BYTES];
            sealers[number % 2].seal_body(&[], &mut sealed, plain);
            assert_eq!(sealed, *expected, "frame {number}");
            let mut opened = vec![0; plain.len()];
            let counter = number as u64 / 2;
            assert_eq!(openers[number % 2].open(&[], counter, expected, &mut opened), Ok(()));
            assert_eq!(opened, *plain, "frame {number}");
        }
    }

    /// Who has another key, another context, or proves to be another listed peer, gets no answer.
    #[test]
    fn strangers_are_not_answered() {
        let private = |number: u8| [number; 32];
        let listed = |own: u8, peers: &[u8]| {
            let peers: Vec<Key> = peers.iter().map(|&peer| public_of(&private(peer))).collect();
            Keys::listed(&private(own), &peers).expect("public keys")
        };
        let answers = |from: &Keys, to: &Keys, pair: usize, context: &[u8]| {
            let (_, message) = Handshake::ask(from, 0, [9; 32], b"here", b"").expect("a message");
            super::answer(to, pair, [8; 32], context, &message, |_| Some((Vec::new(), ())))
                .is_some()
        };
        let host = listed(1, &[2, 3]);
        assert!(answers(&listed(2, &[1]), &host, 0, b"here"));
        assert!(!answers(&listed(2, &[1]), &host, 0, b"there"));
        assert!(!answers(&listed(3, &[1]), &host, 0, b"here"), "it is the other peer");
        assert!(!answers(&listed(4, &[1]), &host, 0, b"here"));
        let shared = Keys::shared(&[1; 32]);
        assert!(answers(&Keys::shared(&[1; 32]), &shared, 0, b"here"));
        assert!(!answers(&Keys::shared(&[2; 32]), &shared, 0, b"here"));
        assert!(!answers(&listed(2, &[1]), &shared, 0, b"here"));
    }
}
