//! The protocol against a plain record: the packets queued are the packets taken, per sender and
//! channel, on any network. Once the network behaves, everything finishes.

use bellwire_protocol::reliable::{Channel, Config, Event, PeerId, Recovery, SendError};
use proptest::prelude::*;

use super::net::{Chance, Faults, Net, function};

/// One run; these values determine everything.
#[derive(Clone, Debug)]
pub struct Run {
    pub seed: u64,
    pub faults: Faults,
    pub packets: usize,
    pub frame_bytes: usize,
    pub hpcl: bool,
    pub interfaces: u32,
    pub mtu_changes: bool,
}

pub fn runs() -> impl Strategy<Value = Run> {
    let faults = (0u64..300, 0u64..200, 0u64..300, 0u64..100)
        .prop_map(|(loss, repeat, late, flip)| Faults { loss, repeat, late, flip });
    let sizes = prop_oneof![Just(256usize), Just(1500), Just(9000)];
    (any::<u64>(), faults, 1usize..120, sizes, any::<bool>(), 1u32..4, any::<bool>()).prop_map(
        |(seed, faults, packets, frame_bytes, hpcl, interfaces, mtu_changes)| Run {
            seed,
            faults,
            packets,
            frame_bytes,
            hpcl,
            interfaces,
            mtu_changes,
        },
    )
}

/// The settings of a run: small, to reach every limit, and patient, because the network is bad.
pub fn config(run: &Run) -> Config {
    let base = if run.hpcl { Config::hpcl(run.frame_bytes) } else { Config::new(run.frame_bytes) };
    let mut chance = Chance(run.seed ^ 0x5eed);
    Config {
        packet_bytes: 4096,
        send_bytes: 1 << 13,
        receive_bytes: 1 << 13,
        window_frames: if run.hpcl { 8 } else { 1 + chance.below(40) as u16 },
        early_frames: chance.below(20) as u16,
        retries: 1000,
        keep_alive_probes: 1000,
        timeout_ns: [100_000, 10_000_000],
        first_timeout_ns: 1_000_000,
        recovery: if run.hpcl { Recovery::GoBack } else { Recovery::Selective },
        ..base
    }
}

/// Two nodes send each other packets of all sizes on both channels, and refuse some at first.
pub fn agree(run: Run) -> Result<(), TestCaseError> {
    let mut net = Net::new(&[config(&run), config(&run)], run.seed);
    net.extra_ns = [0, 7_000, 30_000, 0];
    let mut chance = Chance(run.seed ^ 0xabcd);
    let peers = [net.connect(0, 1), net.connect(1, 0)];
    for (node, &peer) in peers.iter().enumerate() {
        for interface in 1..run.interfaces {
            net.nodes[node].endpoint.add_path(peer, Net::path(1 - node, interface));
        }
    }
    net.faults = run.faults;
    type Queued = Vec<(Vec<u8>, u64)>;
    let mut sent: [[Queued; 2]; 2] = Default::default();
    let mut steps = 0u32;
    while sent.iter().flatten().map(Vec::len).sum::<usize>() < run.packets {
        let node = chance.below(2) as usize;
        let channel = if chance.hits(300) { Channel::Response } else { Channel::Request };
        let length = match chance.below(4) {
            0 => chance.below(16),
            1 => chance.below(300),
            2 => chance.below(1500),
            _ => chance.below(4097),
        } as usize;
        let number = sent[node][channel as usize].len() as u64;
        let payload: Vec<u8> = (0..length).map(|at| (at as u64 * 31 + number) as u8).collect();
        let words = [1 + number % 13, number << (number % 40), number * 0x1_0001];
        let peer = current(&net, node).unwrap_or(peers[node]);
        match net.nodes[node].endpoint.send(peer, channel, words, &[], &payload.as_slice()) {
            Ok(_) => sent[node][channel as usize].push((payload, number)),
            Err(SendError::Busy) => {
                for node in &mut net.nodes {
                    for appetite in &mut node.appetite {
                        *appetite = if chance.hits(300) { 0 } else { 1 + chance.below(5) as usize };
                    }
                }
                if run.mtu_changes && chance.hits(50) {
                    net.mtu = [run.frame_bytes, 1500, 700, 512][chance.below(4) as usize];
                    for node in &mut net.nodes {
                        // Not every node notices the new MTU; the others must find out.
                        if chance.hits(700) {
                            node.endpoint.set_frame_bytes(net.mtu);
                        }
                    }
                }
                step(&mut net, &mut steps)?;
            }
            Err(error) => return Err(TestCaseError::fail(format!("{error:?}"))),
        }
    }
    // Now the network and the users behave.
    net.faults = Faults::default();
    let patience_ns = net.now_ns + 1_000_000_000;
    for node in &mut net.nodes {
        node.appetite = [usize::MAX; 2];
    }
    while net.nodes.iter().map(|node| node.taken.len()).sum::<usize>() < run.packets
        || !net.is_quiet()
    {
        step(&mut net, &mut steps)?;
        prop_assert!(
            net.now_ns < patience_ns,
            "no end within a second without faults: {:?} {:?}",
            net.nodes[0].endpoint.counters(),
            net.nodes[1].endpoint.counters()
        );
    }
    for (node, sent) in sent.iter().enumerate() {
        for channel in [Channel::Request, Channel::Response] {
            let sent = &sent[channel as usize];
            let taken: Vec<_> = net.nodes[1 - node]
                .taken
                .iter()
                .filter(|packet| packet.channel == channel)
                .collect();
            prop_assert_eq!(sent.len(), taken.len());
            for ((payload, number), taken) in sent.iter().zip(taken) {
                prop_assert_eq!(taken.from, function(node as u32));
                prop_assert!(taken.payload == *payload, "payload {} is altered", number);
                let words = [
                    (1 + number % 13) | ((payload.len() as u64) << 32),
                    number << (number % 40),
                    number * 0x1_0001,
                ];
                prop_assert_eq!(taken.words, words);
            }
        }
    }
    for node in &net.nodes {
        let downs = node.events.iter().filter(|event| matches!(event, Event::Down { .. })).count();
        prop_assert_eq!(downs, 0, "no link may go down: {:?}", node.events);
    }
    net.check_books();
    Ok(())
}

fn current(net: &Net, node: usize) -> Option<PeerId> {
    net.peer_of(node, function(1 - node as u32))
}

fn step(net: &mut Net, steps: &mut u32) -> Result<(), TestCaseError> {
    *steps += 1;
    let moved = net.step();
    prop_assert!(
        moved,
        "nothing happens any more: {:?} {:?}",
        net.nodes[0].events,
        net.nodes[1].events
    );
    prop_assert!(
        *steps < 200_000,
        "no end: {:?} {:?}",
        net.nodes[0].endpoint.counters(),
        net.nodes[1].endpoint.counters()
    );
    Ok(())
}
