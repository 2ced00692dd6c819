//! Frames whose last bytes stay where they are until a cipher moves them.

use bellwire_protocol::Secret;
use bellwire_protocol::reliable::{Channel, Config, Endpoint, FunctionId, PathId, PeerId, Verdict};
use bellwire_wire::frame::check::CHECK_BYTES;

/// All frames of a conversation without check values, and how many of their bytes lay apart. One
/// frame in 13 is lost.
fn conversation(apart: bool) -> (Vec<Vec<u8>>, usize) {
    let config = Config { has_check: false, ..Config::new(1500) };
    let address = |node| FunctionId { node, function: 0 };
    let mut ends = [1, 2].map(|node| {
        Endpoint::new(config, address(node), 1, Secret::from_seed(node as u64)).unwrap()
    });
    let mut now_ns = 1;
    let peer = ends[0].connect(address(2), PathId(0), 1 << 40, now_ns).unwrap();
    let (mut back, mut frames, mut bytes_apart) = (None, Vec::new(), 0);
    let payload: Vec<u8> = (0..=255).cycle().take(60_000).collect();
    for round in 0..120 {
        for (end, peer) in [(0, Some(peer)), (1, back)] {
            let Some(peer) = peer else { continue };
            let channel = [Channel::Request, Channel::Response][round % 3 / 2];
            for length in [8, 200, 1196, 20_000, round, 60_000 * (round % 8 / 7)] {
                let _ = ends[end].send(peer, channel, [1, 2, 3], &[], &payload[..length]);
            }
        }
        for _ in 0..6 {
            now_ns += 20_000;
            for from in [0, 1] {
                let mut buffer = vec![0; 1500];
                loop {
                    let sent = match apart {
                        false => ends[from].poll_transmit(now_ns, &mut buffer),
                        true => ends[from].poll_transmit_apart(now_ns, &mut buffer).map(
                            |(sent, apart)| {
                                let end = sent.length - CHECK_BYTES;
                                buffer[end - apart.len()..end].copy_from_slice(apart);
                                bytes_apart += apart.len();
                                sent
                            },
                        ),
                    };
                    let Some(sent) = sent else { break };
                    let end = sent.length - CHECK_BYTES;
                    frames.push(buffer[..end].to_vec());
                    if frames.len() % 13 == 0 {
                        continue;
                    }
                    buffer[end..].fill(0);
                    let mut sink = |peer: PeerId, _: Channel, _: [u64; 3], packet: &[u8]| {
                        assert_eq!(*packet, payload[..packet.len()]);
                        back = back.or((from == 0).then_some(peer));
                        Verdict::Taken
                    };
                    let frame = &buffer[..sent.length];
                    ends[1 - from].handle_frame(PathId(0), frame, now_ns, &mut sink);
                }
                while ends[from].poll_event().is_some() {}
            }
        }
    }
    (frames, bytes_apart)
}

/// With the bytes that lie apart, each frame is what it is without.
#[test]
fn frames_are_the_same() {
    let (whole, nothing) = conversation(false);
    let (parted, apart) = conversation(true);
    assert_eq!(nothing, 0);
    let all: usize = whole.iter().map(Vec::len).sum();
    assert!(apart > all / 3, "{apart} bytes of {all} lay apart");
    assert_eq!(whole.len(), parted.len());
    for (number, (whole, parted)) in whole.iter().zip(&parted).enumerate() {
        assert_eq!(whole, parted, "frame {number}");
    }
}
