//! Links that come and go: any sequence of connecting, closing, restarting, sleeping and sending
//! among four nodes.

use std::collections::HashMap;

use bellwire_protocol::reliable::{Channel, Config, Event, FunctionId, PeerId};
use proptest::prelude::*;

use super::net::{Chance, Faults, Net, Node, function};

const NODES: usize = 4;

/// The sender of a packet: node, life of the node, link of that life, channel.
type Source = (u32, u64, u32, u8);

struct World {
    net: Net,
    chance: Chance,
    /// Next number of each source.
    sent: HashMap<Source, u64>,
    taken: HashMap<Source, u64>,
    /// For each node: its links, and the sender's link that each carries. An ended link carries
    /// nothing.
    brings: Vec<HashMap<PeerId, (u32, u64, u32)>>,
    ended: Vec<Vec<PeerId>>,
    seen: [usize; NODES],
    told: [usize; NODES],
}

impl World {
    fn config() -> Config {
        Config {
            packet_bytes: 1000,
            send_bytes: 4096,
            receive_bytes: 4096,
            links: 6,
            early_frames: 16,
            window_frames: 12,
            timeout_ns: [100_000, 5_000_000],
            first_timeout_ns: 1_000_000,
            ..Config::new(600)
        }
    }

    /// Checks what nodes took and were told since the last call.
    fn check(&mut self) -> Result<(), TestCaseError> {
        for node in 0..NODES {
            // Events and packets have orders of their own; packets that came with an end came
            // before it.
            for packet in &self.net.nodes[node].taken[self.seen[node]..] {
                let bytes = &packet.payload;
                let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
                let link = (word(0) as u32, word(8), word(16) as u32);
                let source = (link.0, link.1, link.2, packet.channel as u8);
                prop_assert_eq!(packet.from, function(link.0), "the sender is right");
                let next = self.taken.entry(source).or_default();
                prop_assert_eq!(word(24), *next, "in order and once: {:?} to {}", source, node);
                *next += 1;
                prop_assert!(
                    self.sent.get(&source).is_some_and(|sent| *next <= *sent),
                    "only what was sent"
                );
                prop_assert!(!self.ended[node].contains(&packet.by), "nothing comes after the end");
                let known = self.brings[node].entry(packet.by).or_insert(link);
                prop_assert_eq!(*known, link, "one link brings one link's packets");
            }
            self.seen[node] = self.net.nodes[node].taken.len();
            let now_ns = self.net.now_ns;
            let Node { endpoint, events, .. } = &mut self.net.nodes[node];
            for event in &events[self.told[node]..] {
                if let Event::Down { peer, .. } = *event {
                    self.ended[node].push(peer);
                    endpoint.close(peer, now_ns);
                }
            }
            self.told[node] = events.len();
        }
        Ok(())
    }

    /// Advances to the next event; `false` if there will be none.
    fn step(&mut self) -> Result<bool, TestCaseError> {
        let moved = self.net.step();
        self.net.transmit();
        self.check()?;
        Ok(moved)
    }

    /// A live link of `node` to `address`, if it has one.
    fn link_to(&self, node: usize, address: FunctionId) -> Option<PeerId> {
        let endpoint = &self.net.nodes[node].endpoint;
        endpoint
            .peers()
            .find(|&peer| endpoint.peer_address(peer) == Some(address) && endpoint.is_up(peer))
    }

    fn send(&mut self, from: usize, to: usize) {
        let Some(peer) = self.link_to(from, function(to as u32)) else { return };
        let channel = if self.chance.hits(500) { Channel::Request } else { Channel::Response };
        let incarnation = self.net.nodes[from].endpoint.incarnation();
        let source = (from as u32, incarnation, peer.0, channel as u8);
        let next = self.sent.entry(source).or_default();
        let mut payload = vec![7; 32 + self.chance.below(900) as usize];
        for (at, word) in [from as u64, incarnation, peer.0 as u64, *next].into_iter().enumerate() {
            payload[at * 8..at * 8 + 8].copy_from_slice(&word.to_le_bytes());
        }
        let sent = self.net.nodes[from].endpoint.send(peer, channel, [1, 0, 0], &[], &payload[..]);
        *next += sent.is_ok() as u64;
    }

    fn act(&mut self) -> Result<(), TestCaseError> {
        let node = self.chance.below(NODES as u64) as usize;
        let other = self.chance.below(NODES as u64) as usize;
        let now_ns = self.net.now_ns;
        match self.chance.below(100) {
            0..60 => self.send(node, other),
            60..75 => {
                let address = function(other as u32);
                let path = Net::path(other, 0);
                let patience_ns = 1_000_000_000;
                self.net.nodes[node].endpoint.connect(address, path, patience_ns, now_ns);
            }
            75..78 => {
                let links: Vec<_> = self.net.nodes[node].endpoint.peers().collect();
                if let Some(&peer) = links.get(self.chance.below(6) as usize) {
                    self.net.nodes[node].endpoint.close(peer, now_ns);
                    self.ended[node].push(peer);
                }
            }
            78 => {
                let incarnation = self.net.nodes[node].endpoint.incarnation() + 1;
                let seed = self.chance.next();
                self.net.nodes[node] = Node::new(Self::config(), node as u32, incarnation, seed);
                self.brings[node].clear();
                self.ended[node].clear();
                (self.seen[node], self.told[node]) = (0, 0);
            }
            79 => self.net.nodes[node].is_asleep = self.chance.hits(500),
            80..84 => {
                let appetite = [self.chance.below(3) as usize, self.chance.below(3) as usize];
                self.net.nodes[node].appetite = appetite;
            }
            84..86 => {
                for _ in 0..200 {
                    self.step()?;
                }
            }
            86 => {
                let state = [
                    bellwire_protocol::reliable::GateState::Open,
                    bellwire_protocol::reliable::GateState::Stopped,
                ][self.chance.below(2) as usize];
                self.net.nodes[node].endpoint.set_gate(5, state);
                if let Some(peer) = self.link_to(node, function(other as u32)) {
                    self.net.nodes[node].endpoint.gate(peer, 5);
                }
            }
            _ => {
                self.step()?;
            }
        }
        Ok(())
    }
}

/// Packets of one link of one life arrive in order and once, from their true sender, by one link,
/// and none after its end. When the faults stop, the links that are up deliver everything.
pub fn any_lives(seed: u64, faults: Faults) -> Result<(), TestCaseError> {
    let mut world = World {
        net: Net::new(&[World::config(); NODES], seed),
        chance: Chance(seed ^ 0x77),
        sent: HashMap::new(),
        taken: HashMap::new(),
        brings: vec![HashMap::new(); NODES],
        ended: vec![Vec::new(); NODES],
        seen: [0; NODES],
        told: [0; NODES],
    };
    world.net.faults = faults;
    for _ in 0..1500 {
        world.act()?;
    }
    world.net.faults = Faults::default();
    for node in &mut world.net.nodes {
        node.is_asleep = false;
        node.appetite = [usize::MAX; 2];
    }
    let end_ns = world.net.now_ns + 30_000_000_000;
    let mut steps = 0;
    while world.net.now_ns < end_ns && world.step()? {
        steps += 1;
        prop_assert!(steps < 200_000, "time does not pass");
    }
    for node in 0..NODES {
        let endpoint = &world.net.nodes[node].endpoint;
        for peer in endpoint.peers() {
            prop_assert!(endpoint.is_up(peer), "neither up nor told to be down");
            prop_assert_eq!(endpoint.unacknowledged(peer), 0);
            for channel in 0..2 {
                let source = (node as u32, endpoint.incarnation(), peer.0, channel);
                prop_assert_eq!(world.sent.get(&source), world.taken.get(&source));
            }
        }
        prop_assert!(endpoint.link_count() <= NODES);
    }
    world.net.check_books();
    Ok(())
}
