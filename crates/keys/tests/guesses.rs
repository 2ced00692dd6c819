//! Guesses of tags, sessions and seals, each by a stranger who has seen a session begin.

use bellwire_keys::{Keys, Limits, Sessions};
use bellwire_wire::frame::header::MAGIC;
use bellwire_wire::frame::keyed::{
    KEYED_HEADER_BYTES, KeyedHeader, KeyedStep, SEALED_OVERHEAD_BYTES,
};

const NOW_NS: u64 = 1 << 34;

struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Two functions with a session. Returns the second, and a sealed frame for it.
fn begun() -> (Sessions<u8>, Vec<u8>) {
    let side = |own: u64| {
        let mut chance = Chance(own);
        let entropy = Box::new(move |bytes: &mut [u8]| {
            bytes.fill_with(|| chance.next() as u8);
        });
        Sessions::new(Keys::shared(&[7; 32]), Limits::default(), true, entropy)
    };
    let (mut near, mut far): (Sessions<u8>, Sessions<u8>) = (side(3), side(5));
    for _ in 0..9 {
        let mut buffer = [0; 60 + SEALED_OVERHEAD_BYTES];
        buffer[KEYED_HEADER_BYTES..][..2].copy_from_slice(&[MAGIC, 4]);
        if let Some(length) = near.seal(1, &mut buffer, 60, &[], NOW_NS) {
            return (far, buffer[..length].to_vec());
        }
        while let Some((_, frame)) = near.poll_transmit() {
            far.open(0, &frame, NOW_NS);
        }
        while let Some((_, frame)) = far.poll_transmit() {
            near.open(1, &frame, NOW_NS);
        }
        while let Some((_, frame)) = near.poll_transmit() {
            far.open(0, &frame, NOW_NS);
        }
    }
    panic!("no session begins");
}

fn guess(count: u64) {
    let (mut far, sealed) = begun();
    let header = KeyedHeader::parse(&sealed).expect("a sealed frame");
    let mut chance = Chance(11);
    let before = far.counters();
    for number in 0..count {
        let mut frame = sealed.clone();
        let length = frame.len();
        match number % 3 {
            // The tag of a seal, or the content with it.
            0 => frame[length - 8..].copy_from_slice(&chance.next().to_le_bytes()),
            // The session.
            1 => frame[8..16].copy_from_slice(&(chance.next() << 16).to_le_bytes()),
            // The tag of a request.
            _ => {
                let knock = KeyedHeader { step: KeyedStep::Knock, length: 32, tags: 1, ..header };
                frame[..KEYED_HEADER_BYTES].copy_from_slice(&knock.emit());
                frame[KEYED_HEADER_BYTES..32].copy_from_slice(&chance.next().to_le_bytes());
                frame.truncate(32);
            }
        }
        assert!(far.open(0, &frame, NOW_NS).is_none(), "guess {number}");
        assert!(far.poll_transmit().is_none(), "guess {number}");
    }
    let after = far.counters();
    let refused = after.frames_forged + after.frames_of_no_session + after.requests_refused
        - (before.frames_forged + before.frames_of_no_session + before.requests_refused);
    assert_eq!(refused, count);
    assert!(far.open(0, &sealed, NOW_NS).is_some(), "the true one still opens");
}

/// No guess opens anything or is answered.
#[test]
fn guesses_open_nothing() {
    guess(300_000);
}

/// The same with a thousand million guesses (`make guesses`).
#[test]
#[ignore = "it takes minutes: make guesses"]
fn a_thousand_million_guesses_open_nothing() {
    guess(1_000_000_000);
}
