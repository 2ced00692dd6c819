//! Two programs that share a short code, and nothing else, agree on a key.
//!
//! The exchange is SPAKE2 (Abdalla and Pointcheval, 2005; RFC 9382) by the crate `spake2`, in its
//! group Ed25519. Who listens learns nothing of the code. Who takes part can try one code, and
//! learns only whether it was right. Both sides then prove that they have the same key (RFC 9382,
//! section 4), the sender first: so a listener can count wrong codes.
//!
//! ```text
//!   sender                            listener
//!   Pairing::begin --- message --->
//!                  <-- message ---    Pairing::begin
//!   Paired::proof  ---  proof  --->   Paired::confirm   counts it, if it is wrong
//!   Paired::confirm <-- proof ---     Paired::proof
//! ```

use crate::keys::{KEY_BYTES, Key};
use bellwire_protocol::canary::planted;
use spake2::{Ed25519Group, Identity, Password, Spake2};
use std::fmt;

/// Random bytes of a code: 2^40 codes.
const CODE_BYTES: usize = 5;

/// Crockford's digits: without I, L, O and U, which people confuse.
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Bytes of [`Pairing::message`]: a letter for the side, and a point of the curve.
pub const PAIRING_BYTES: usize = 33;

/// A code that people read out or type.
#[derive(Clone, PartialEq, Eq)]
pub struct Code(String);

/// The part that a side has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// It begins, and proves its key first.
    Sender,
    /// It has made the code.
    Listener,
}

/// One side, before it has the other's message. It is good for one attempt.
pub struct Pairing {
    exchange: Spake2<Ed25519Group>,
    message: [u8; PAIRING_BYTES],
    side: Side,
}

/// One side with a key, which is right if the other proves it.
pub struct Paired {
    ours: blake3::Hash,
    theirs: blake3::Hash,
    key: Key,
}

impl Code {
    /// The code of these random bytes.
    pub fn new(random: [u8; CODE_BYTES]) -> Code {
        let bits = random.iter().fold(0_u64, |bits, &byte| bits << 8 | u64::from(byte));
        let digit = |at: u32| char::from(DIGITS[(bits >> (5 * at) & 31) as usize]);
        Code((0..8).rev().map(digit).collect())
    }

    /// Reads what somebody typed: in any case, with or without hyphens and blanks. `None` if it
    /// cannot be a code.
    pub fn parse(text: &str) -> Option<Code> {
        let mut code = String::new();
        for letter in text.chars().filter(|letter| !matches!(letter, '-' | ' ')) {
            let digit = match letter.to_ascii_uppercase() {
                'O' => '0',
                'I' | 'L' => '1',
                digit => digit,
            };
            let is_digit = u8::try_from(digit).is_ok_and(|digit| DIGITS.contains(&digit));
            if !is_digit || code.len() == 8 {
                return None;
            }
            code.push(digit);
        }
        (code.len() == 8).then_some(Code(code))
    }
}

impl fmt::Display for Code {
    /// Two groups of four digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", &self.0[..4], &self.0[4..])
    }
}

impl fmt::Debug for Code {
    /// Hides the code.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a code")
    }
}

impl Pairing {
    /// Begins an attempt with `code`. Its secret number comes from the kernel.
    pub fn begin(code: &Code, side: Side) -> Pairing {
        let code = match planted("pairing-any-code") {
            true => Password::new(b""),
            false => Password::new(code.0.as_bytes()),
        };
        let sender = Identity::new(b"bellwire pairing 1: sender");
        let listener = Identity::new(b"bellwire pairing 1: listener");
        let (exchange, message) = match side {
            Side::Sender => Spake2::start_a(&code, &sender, &listener),
            Side::Listener => Spake2::start_b(&code, &sender, &listener),
        };
        let message = message.try_into().expect("the crate's messages have one length");
        Pairing { exchange, message, side }
    }

    /// What the other side needs.
    pub fn message(&self) -> &[u8; PAIRING_BYTES] {
        &self.message
    }

    /// Goes on with the other side's message. `None` if it is none.
    pub fn finish(self, theirs: &[u8]) -> Option<Paired> {
        let shared = self.exchange.finish(theirs).ok()?;
        // `shared` covers the code and both messages already; the proofs name them once more.
        let (first, second) = match self.side {
            Side::Sender => (&self.message[..], theirs),
            Side::Listener => (theirs, &self.message[..]),
        };
        let derive = |purpose: &str| {
            let mut hasher = blake3::Hasher::new_derive_key(purpose);
            hasher.update(&shared).update(first).update(second);
            hasher.finalize()
        };
        let sender = derive("bellwire pairing 1: the sender's proof");
        let listener = derive("bellwire pairing 1: the listener's proof");
        let (ours, theirs) = match self.side {
            Side::Sender => (sender, listener),
            Side::Listener => (listener, sender),
        };
        let key = derive("bellwire pairing 1: shared key of devices");
        Some(Paired { ours, theirs, key: *key.as_bytes() })
    }
}

impl Paired {
    /// Shows the other side that we have the key.
    pub fn proof(&self) -> [u8; KEY_BYTES] {
        *self.ours.as_bytes()
    }

    /// The key, if `proof` is the other side's. Otherwise its code was wrong.
    pub fn confirm(self, proof: &[u8; KEY_BYTES]) -> Option<Key> {
        // The comparison takes the same time for all proofs.
        (self.theirs == *proof || planted("pairing-no-proof")).then_some(self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(last: u8) -> Code {
        Code::new([0xab, 1, 2, 3, last])
    }

    /// Both sides after the two messages, with the codes that they use.
    fn both(sender: &Code, listener: &Code) -> (Paired, Paired) {
        let near = Pairing::begin(sender, Side::Sender);
        let far = Pairing::begin(listener, Side::Listener);
        let (ours, theirs) = (*near.message(), *far.message());
        (near.finish(&theirs).expect("a message"), far.finish(&ours).expect("a message"))
    }

    /// With one code both sides have one key, and each time another.
    #[test]
    fn one_code_gives_one_key() {
        let mut keys = Vec::new();
        for _ in 0..3 {
            let (near, far) = both(&code(4), &code(4));
            let (ours, theirs) = (near.proof(), far.proof());
            assert_ne!(ours, theirs);
            let key = far.confirm(&ours).expect("the same code");
            assert_eq!(near.confirm(&theirs), Some(key));
            assert!(!keys.contains(&key));
            keys.push(key);
        }
    }

    /// Another code proves nothing, and neither do our own proof and message.
    #[test]
    fn other_codes_prove_nothing() {
        let (near, far) = both(&code(4), &code(5));
        let proofs = (near.proof(), far.proof());
        assert_eq!((far.confirm(&proofs.0), near.confirm(&proofs.1)), (None, None));
        let (near, _) = both(&code(4), &code(4));
        let own = near.proof();
        assert_eq!(near.confirm(&own), None);
        let near = Pairing::begin(&code(4), Side::Sender);
        let own = *near.message();
        assert!(near.finish(&own).is_none());
    }

    /// Bytes that are no message are refused, and those of a point of small order prove nothing.
    #[test]
    fn strange_messages_are_refused() {
        let mut messages = vec![Vec::new(), vec![b'B'], vec![b'B'; 32], vec![b'B'; 34]];
        // No point has this coordinate.
        messages.push([&[b'B', 2][..], &[0; 31]].concat());
        for message in messages {
            assert!(Pairing::begin(&code(1), Side::Sender).finish(&message).is_none());
        }
        // The neutral element: both sides' key would be known if the code were not mixed in.
        let neutral = [&[b'B', 1][..], &[0; 31]].concat();
        let paired = Pairing::begin(&code(1), Side::Sender).finish(&neutral).expect("a point");
        let (_, other) = both(&code(1), &code(1));
        assert_eq!(paired.confirm(&other.proof()), None);
    }

    proptest::proptest! {
        /// No message makes a side panic, or agree with it by chance.
        #[test]
        fn any_message_is_harmless(theirs in proptest::collection::vec(0_u8.., 0..40), side: bool) {
            let side = if side { Side::Sender } else { Side::Listener };
            if let Some(paired) = Pairing::begin(&code(1), side).finish(&theirs) {
                proptest::prop_assert_eq!(paired.confirm(&[0; KEY_BYTES]), None);
            }
        }
    }

    /// Codes are read as people type them.
    #[test]
    fn codes_are_read_as_typed() {
        assert_eq!(Code::new([0; 5]).to_string(), "0000-0000");
        assert_eq!(Code::new([255; 5]).to_string(), "ZZZZ-ZZZZ");
        let one = Code::new([0x08, 0x42, 0x10, 0x84, 0x21]);
        assert_eq!(one.to_string(), "1111-1111");
        for typed in ["1111-1111", "11111111", "il1I L111", "1-1-1-1-1-1-1-1"] {
            assert_eq!(Code::parse(typed).as_ref(), Some(&one), "{typed}");
        }
        for random in 0..=255 {
            let code = code(random);
            let typed = code.to_string().to_lowercase();
            assert_eq!(Code::parse(&typed), Some(code));
        }
        for bad in ["", "1111", "1111-11111", "1111-111U", "1111-111\u{e9}", "1111_1111"] {
            assert!(Code::parse(bad).is_none(), "{bad}");
        }
    }
}
