//! Frames of a sender that cannot read the traffic: damaged ones, and ones with guessed tokens.

use bellwire_protocol::Secret;
use bellwire_protocol::reliable::{
    Channel, Config, Endpoint, Event, FunctionId, PathId, PeerId, Verdict,
};
use bellwire_simulator::chance::Chance;
use bellwire_wire::frame::FRAME_OVERHEAD_BYTES;
use bellwire_wire::frame::check::{is_sound, seal};
use bellwire_wire::frame::header::{FrameHeader, FrameKind, HEADER_BYTES};

fn frame(kind: FrameKind, token: u64, body: usize) -> Vec<u8> {
    let mut bytes = vec![0x5a; FRAME_OVERHEAD_BYTES + body];
    let mut header = FrameHeader::new(kind, 3, 5, token);
    header.length = bytes.len() as u16;
    header.emit(&mut bytes[..HEADER_BYTES]).unwrap();
    seal(&mut bytes).unwrap();
    bytes
}

/// Each flip of one or two bits in the header or the check value of a frame of any kind is noticed.
#[test]
fn flipped_headers_never_pass() {
    let passes = |bytes: &[u8]| {
        FrameHeader::parse(bytes).is_ok_and(|header| is_sound(&bytes[..header.length as usize]))
    };
    let kinds = [
        (FrameKind::Open, 72),
        (FrameKind::Accept, 72),
        (FrameKind::Refuse, 16),
        (FrameKind::Data, 40),
        (FrameKind::Acknowledge, 0),
        (FrameKind::Close, 1),
        (FrameKind::Unknown, 0),
        (FrameKind::Seek, 24),
        (FrameKind::Here, 24),
        (FrameKind::Challenge, 8),
    ];
    for (kind, body) in kinds {
        let mut bytes = frame(kind, 0x1122_3344_5566_7788, body);
        assert!(passes(&bytes));
        let header = 0..HEADER_BYTES * 8;
        let check = (bytes.len() - 4) * 8..bytes.len() * 8;
        let bits: Vec<usize> = header.chain(check).collect();
        for (index, &first) in bits.iter().enumerate() {
            bytes[first / 8] ^= 1 << (first % 8);
            assert!(!passes(&bytes), "{kind:?}: bit {first}");
            for &second in &bits[index + 1..] {
                bytes[second / 8] ^= 1 << (second % 8);
                assert!(!passes(&bytes), "{kind:?}: bits {first} and {second}");
                bytes[second / 8] ^= 1 << (second % 8);
            }
            bytes[first / 8] ^= 1 << (first % 8);
        }
    }
}

/// Two endpoints with a link between them.
fn linked() -> [Endpoint; 2] {
    let function = |node| FunctionId { node, function: 3 };
    let mut ends = [1, 2].map(|node| {
        Endpoint::new(Config::new(512), function(node), 1, Secret::from_seed(node as u64)).unwrap()
    });
    ends[0].connect(function(2), PathId(0), 1_000_000_000, 1).unwrap();
    let mut buffer = [0; 512];
    for _ in 0..4 {
        for from in 0..2 {
            while let Some(transmit) = ends[from].poll_transmit(1, &mut buffer) {
                let bytes = &buffer[..transmit.length];
                ends[1 - from].handle_frame(PathId(0), bytes, 1, &mut nothing);
            }
        }
    }
    for end in &mut ends {
        assert!(matches!(end.poll_event(), Some(Event::Up { .. })));
    }
    ends
}

fn nothing(_: PeerId, _: Channel, _: [u64; 3], _: &[u8]) -> Verdict {
    panic!("a guess was taken for a frame of the peer")
}

/// Guesses the token of a link `guesses` times, with the kinds of frames that only need a token.
/// Each has a packet, so that a hit would be taken or end the link.
fn guess(guesses: u64) {
    let [mut end, _] = linked();
    let mut chance = Chance::new(0x6e55);
    let mut buffer = [0; 512];
    let before = end.counters();
    let frames = [FrameKind::Data, FrameKind::Close, FrameKind::Acknowledge, FrameKind::Unknown]
        .map(|kind| frame(kind, 0, 1));
    for number in 0..guesses {
        let mut bytes = frames[number as usize & 3].clone();
        // The slot in the low 16 bits is no secret.
        let token = chance.bits() & !0xffff;
        bytes[8..16].copy_from_slice(&token.to_le_bytes());
        if number & 3 == 1 {
            bytes[HEADER_BYTES] = 1;
        }
        seal(&mut bytes).unwrap();
        end.handle_frame(PathId(0), &bytes, 2, &mut nothing);
        while end.poll_transmit(2, &mut buffer).is_some() {}
    }
    let after = end.counters();
    assert_eq!(after.links_down, 0);
    assert_eq!(after.frames_in_order, before.frames_in_order);
    let refused = after.frames_unknown + after.frames_stale;
    assert_eq!(refused - before.frames_unknown - before.frames_stale, guesses);
    assert!(end.poll_event().is_none());
}

/// A million guesses of a link's token change nothing and are counted.
#[test]
fn guessed_tokens_change_nothing() {
    guess(1_000_000);
}

/// The same with 10^9 guesses; run by name.
#[test]
#[ignore = "takes minutes in a release build: cargo test --release -p bellwire-simulator --test guesses -- --ignored"]
fn a_thousand_million_guesses_change_nothing() {
    guess(1_000_000_000);
}
