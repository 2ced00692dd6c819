//! The reliable protocol between endpoints; the network is a table and the clock a number.

#[path = "reliable/apart.rs"]
mod apart;
#[path = "reliable/congestion.rs"]
mod congestion;
#[path = "reliable/delivered.rs"]
mod delivered;
#[path = "reliable/flow.rs"]
mod flow;
#[path = "reliable/gates.rs"]
mod gates;
#[path = "reliable/handshake.rs"]
mod handshake;
#[path = "reliable/hostile.rs"]
mod hostile;
#[path = "reliable/identity.rs"]
mod identity;
#[path = "reliable/liveness.rs"]
mod liveness;
#[path = "reliable/lives.rs"]
mod lives;
#[path = "reliable/net.rs"]
mod net;
#[path = "reliable/oracle.rs"]
mod oracle;
#[path = "reliable/paths.rs"]
mod paths;
#[path = "reliable/sequence.rs"]
mod sequence;

use proptest::prelude::*;

use bellwire_protocol::reliable::{Channel, Config, SendError};
use net::{Net, function};

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

    /// Any network, with one path or several and with the production or HPCL's settings: every
    /// packet is taken once, in order and unaltered. When the faults stop, everything finishes.
    // shows: H-11, H-14, H-17, H-18
    #[test]
    fn any_network_is_survived(run in oracle::runs()) {
        oracle::agree(run)?;
    }

    /// Under any loss and any end of the link, what counts as delivered is at the peer.
    #[test]
    fn what_is_delivered_is_there(seed in any::<u64>(), loss in 0u64..300, repeat in 0u64..200, late in 0u64..300) {
        delivered::delivered_is_there(seed, net::Faults { loss, repeat, late, flip: 10 })?;
    }

    /// A peer that lies in frames with a right check value and token harms only its own link.
    #[test]
    fn lying_peers_do_no_harm(seed in any::<u64>(), per_mille in 1u64..1000) {
        hostile::a_lying_peer_does_no_harm(seed, per_mille)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(100) })]

    /// Four nodes connect, close, restart, sleep and send in any sequence on a bad network. Every
    /// link keeps its order, no two links mix, and the last links are up and empty.
    // shows: H-11, H-17
    #[test]
    fn any_lives_are_kept_apart(seed in any::<u64>(), loss in 0u64..300, repeat in 0u64..200, late in 0u64..300) {
        lives::any_lives(seed, net::Faults { loss, repeat, late, flip: 10 })?;
    }
}

fn numbered(number: u32, length: usize) -> Vec<u8> {
    let mut bytes = vec![number as u8; length.max(4)];
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    bytes
}

/// Packets of 0 bytes to 64 KiB arrive once, in order and whole, each with its sender and its
/// length.
// shows: H-10, H-11, H-25
#[test]
fn packets_of_all_sizes_arrive_in_order() {
    for frame_bytes in [256, 1500, 9000, 65_535] {
        let mut net = Net::new(&[Config::new(frame_bytes), Config::new(frame_bytes)], 1);
        let peer = net.link(0, 1);
        let sizes = [0, 1, 8, 100, 255, 256, 1196, 4096, 65_536];
        let mut sent = Vec::new();
        for round in 0..200u32 {
            let size = sizes[round as usize % sizes.len()];
            let payload = vec![round as u8; size];
            let words = [3 | (round as u64) << 16, round as u64, u64::MAX - round as u64];
            loop {
                let channel = if round % 3 == 0 { Channel::Response } else { Channel::Request };
                let (head, body) = payload.split_at(size / 2);
                match net.nodes[0].endpoint.send(peer, channel, words, head, &body) {
                    Ok(_) => break sent.push((channel, words, payload)),
                    Err(SendError::Busy) => assert!(net.step()),
                    Err(error) => panic!("{error:?}"),
                }
            }
        }
        net.run_until(|net| net.nodes[1].taken.len() == sent.len());
        for channel in [Channel::Request, Channel::Response] {
            let sent: Vec<_> = sent.iter().filter(|packet| packet.0 == channel).collect();
            let taken: Vec<_> =
                net.nodes[1].taken.iter().filter(|packet| packet.channel == channel).collect();
            assert_eq!(sent.len(), taken.len());
            for (sent, taken) in sent.iter().zip(taken) {
                assert_eq!(taken.from, function(0));
                assert_eq!(taken.words[0], sent.1[0] | (sent.2.len() as u64) << 32);
                assert_eq!(taken.words[1..], sent.1[1..]);
                assert!(taken.payload == sent.2);
            }
        }
        net.run_until(Net::is_quiet);
        net.check_books();
        assert_eq!(net.nodes[0].endpoint.counters().frames_resent, 0);
    }
}

/// Packets that wait for the same peer share a frame: 8-byte packets take 13 bytes each, so 112 fit
/// into 1500.
#[test]
fn small_packets_share_frames() {
    let mut net = Net::new(&[Config::new(1500); 2], 2);
    let peer = net.link(0, 1);
    net.run_until(Net::is_quiet);
    let before = net.nodes[0].endpoint.counters().frames_sent;
    for number in 0..690 {
        let words = [1, 5 | 6 << 32, 0];
        let payload = numbered(number, 8);
        net.nodes[0]
            .endpoint
            .send(peer, Channel::Request, words, &[], &payload.as_slice())
            .unwrap();
    }
    net.run_until(|net| net.nodes[1].taken.len() == 690);
    assert_eq!(net.nodes[0].endpoint.counters().frames_sent - before, 7);
}
