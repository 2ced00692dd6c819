//! A linked peer that sends arbitrary frames.

use bellwire_protocol::reliable::{Channel, Config, GateState};
use bellwire_wire::frame::check::seal;
use proptest::prelude::*;

use super::net::{Chance, Net};

/// Frames of a linked peer are altered anywhere, with a right check value. Nothing panics, nothing
/// waits forever, memory stays within its limits, and the link goes on or ends.
pub fn a_lying_peer_does_no_harm(seed: u64, per_mille: u64) -> Result<(), TestCaseError> {
    let config = Config {
        packet_bytes: 2000,
        send_bytes: 8192,
        receive_bytes: 8192,
        early_frames: 8,
        window_frames: 16,
        timeout_ns: [100_000, 1_000_000],
        ..Config::new(700)
    };
    let mut net = Net::new(&[config; 2], seed);
    let peers = [net.link(0, 1), net.peer_of(1, super::net::function(0)).unwrap()];
    let mut chance = Chance(seed ^ 0x1111);
    for round in 0..300u32 {
        for (node, &peer) in peers.iter().enumerate() {
            let endpoint = &mut net.nodes[node].endpoint;
            let payload = vec![round as u8; chance.below(2001) as usize];
            let channel = if chance.hits(500) { Channel::Request } else { Channel::Response };
            let _ = endpoint.send(peer, channel, [1, 2, 3], &[], &payload[..]);
            endpoint.gate(peer, chance.below(5000) as u32);
            endpoint.set_gate(chance.below(4096) as u32, GateState::Open);
            net.nodes[node].appetite = [chance.below(4) as usize, chance.below(4) as usize];
        }
        net.transmit();
        // Frames in flight to node 0 are altered.
        for (to, _, bytes) in net.wire.values_mut() {
            if *to == 0 && chance.hits(per_mille) {
                for _ in 0..=chance.below(4) {
                    let at = chance.below(bytes.len() as u64 - 4) as usize;
                    bytes[at] = match chance.below(4) {
                        0 => chance.next() as u8,
                        1 => bytes[at].wrapping_add(1),
                        2 => 0xff,
                        _ => 0,
                    };
                }
                let length = u16::from_le_bytes([bytes[4], bytes[5]]) as usize;
                let length = length.clamp(36, bytes.len());
                seal(&mut bytes[..length]).unwrap();
            }
        }
        net.step();
        if chance.hits(30) {
            net.nodes[0].endpoint.set_frame_bytes(256 + chance.below(500) as usize);
        }
    }
    for node in &mut net.nodes {
        node.appetite = [usize::MAX; 2];
    }
    net.run_for(20_000_000_000);
    let endpoint = &net.nodes[0].endpoint;
    let is_settled = !endpoint.is_up(peers[0]) || endpoint.unacknowledged(peers[0]) == 0;
    prop_assert!(is_settled, "{:?}", endpoint.counters());
    net.check_books();
    Ok(())
}
