//! What counts as delivered is at the peer, whatever the network does and however the link ends.

use bellwire_protocol::reliable::Config;
use proptest::prelude::*;

use super::net::{Chance, Faults, Net};

/// Node 0 sends requests over a bad network to node 1, which takes some, keeps some, and may close
/// the link. Then the wire may be cut. Node 1 has, or still gets, all requests that node 0 was told
/// are delivered. If nothing is cut and the link stays up, everything queued is delivered.
pub fn delivered_is_there(seed: u64, faults: Faults) -> Result<(), TestCaseError> {
    let config = Config { packet_bytes: 4096, send_bytes: 1 << 14, ..Config::new(1500) };
    let mut chance = Chance(seed);
    let mut net = Net::new(&[config; 2], seed);
    let peer = net.link(0, 1);
    net.run_until(Net::is_quiet);
    net.faults = faults;
    let back = net.nodes[1].endpoint.peers().next();
    let (mut queued, ends) = (0, 100 + chance.below(400));
    for step in 0..ends {
        net.nodes[1].appetite = [chance.below(4) as usize; 2];
        for _ in 0..chance.below(4) {
            let payload = vec![1; chance.below(3000) as usize];
            queued += net.send(0, peer, &payload).is_ok() as u64;
        }
        if chance.hits(3) || step + 20 == ends && chance.hits(300) {
            // Requests kept for it are in its memory; later arrivals are not.
            net.nodes[1].appetite = [usize::MAX; 2];
            net.deliver(1);
            let now_ns = net.now_ns;
            if let Some(back) = back {
                // The link lingers until this is sent.
                while net.send(1, back, &[2; 3000]).is_ok() {}
                net.nodes[1].endpoint.close(back, now_ns);
            }
        }
        net.step();
    }
    let is_cut = chance.hits(700);
    if is_cut {
        // Frames in flight are lost.
        net.wire.clear();
    } else {
        net.faults = Faults::default();
        net.nodes[1].appetite = [usize::MAX; 2];
        net.run_for(3_000_000_000);
    }
    let told = net.nodes[0].delivered.get(&peer).copied().unwrap_or(0);
    net.nodes[1].appetite = [usize::MAX; 2];
    net.deliver(1);
    let there = net.nodes[1].taken.len() as u64;
    prop_assert!(told <= there, "{told} are said to be delivered, and {there} of {queued} are");
    let is_up = net.nodes[0].endpoint.is_up(peer);
    prop_assert!(is_cut || !is_up || told == queued, "{told} of {queued} although all is well");
    Ok(())
}
