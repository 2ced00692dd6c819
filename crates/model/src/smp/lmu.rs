//! The link management unit: finds the link that leads to a node and keeps what its network layer cannot take yet (S-01, S-02, S-08).
//!
//! Four nodes are fully connected; two are joined by all three of their links. How traffic is spread over three parallel links, the
//! paper does not say; here a line's number, or a transfer's, decides, so that what must stay in order takes one link.

use std::collections::VecDeque;

use bellwire_wire::link::network::Class;

use super::cc::message::LINE_BYTES;
use super::network::NetworkPacket;
use super::transport::CHANNELS;

/// Direct interfaces of a processor (2).
pub const INTERFACES: usize = 3;

/// Packets of the block unit that wait for one link and channel before the unit is held back.
const ROOM: usize = 4;

/// One end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// The link's number in the system.
    pub link: u16,
    /// Our end of it.
    pub end: u8,
}

/// Links of a fully connected system: pairs of nodes, the lower of which is the RC. N processors need N - 1 interfaces each.
pub fn fully_connected(nodes: usize) -> Vec<[usize; 2]> {
    (0..nodes).flat_map(|low| (low + 1..nodes).map(move |high| [low, high])).collect()
}

/// The links of a system of 2 or 4 processors with three interfaces each (Fig. 3); three nodes leave one interface unused.
///
/// # Errors
/// A sentence, for a number of processors that three interfaces cannot join.
pub fn links_of(nodes: usize) -> Result<Vec<[usize; 2]>, String> {
    match nodes {
        2 => Ok(vec![[0, 1]; INTERFACES]),
        3 | 4 => Ok(fully_connected(nodes)),
        _ => Err(format!(
            "{nodes} processors cannot be joined directly by {INTERFACES} interfaces each; choose 2, 3 or 4"
        )),
    }
}

/// The unit of one node.
pub struct Lmu {
    /// By target node.
    ways: Vec<Vec<Way>>,
    queues: Vec<[VecDeque<NetworkPacket>; CHANNELS]>,
    /// Most packets that ever waited for one link and channel.
    pub longest_queue: usize,
}

impl Lmu {
    /// The unit of `node`, among the links given by their nodes.
    pub fn new(node: usize, nodes: usize, links: &[[usize; 2]]) -> Lmu {
        let mut ways = vec![Vec::new(); nodes];
        for (link, ends) in links.iter().enumerate() {
            if let Some(end) = ends.iter().position(|other| *other == node) {
                ways[ends[1 - end]].push(Way { link: link as u16, end: end as u8 });
            }
        }
        let queues = links.iter().map(|_| Default::default()).collect();
        Lmu { ways, queues, longest_queue: 0 }
    }

    /// The link by which a packet goes.
    ///
    /// # Errors
    /// A sentence, if none leads to its target.
    pub fn way(&self, packet: &NetworkPacket) -> Result<Way, String> {
        let header = packet.header;
        let ways = self.ways.get(usize::from(header.target)).map_or(&[][..], Vec::as_slice);
        let which = match header.class {
            Class::Coherence => header.address / LINE_BYTES as u64,
            Class::Block | Class::Guest => header.tag.into(),
        };
        let count = ways.len().max(1) as u64;
        ways.get((which % count) as usize)
            .copied()
            .ok_or_else(|| format!("no link leads to node {}", header.target))
    }

    /// Whether a packet of the block unit would be taken.
    pub fn has_room(&self, way: Way, channel: u8) -> bool {
        self.queues[usize::from(way.link)][usize::from(channel)].len() < ROOM
    }

    /// Takes a packet. The coherence unit is always served: it has no more under way than its protocol allows.
    pub fn send(&mut self, way: Way, packet: NetworkPacket) {
        let queue = &mut self.queues[usize::from(way.link)][usize::from(packet.channel)];
        queue.push_back(packet);
        self.longest_queue = self.longest_queue.max(queue.len());
    }

    /// What waits for a link and channel.
    pub fn queue(&mut self, link: u16, channel: u8) -> &mut VecDeque<NetworkPacket> {
        &mut self.queues[usize::from(link)][usize::from(channel)]
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.queues.iter().flatten().all(VecDeque::is_empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// N processors need N - 1 interfaces each and N (N - 1) / 2 links in all: HyperTransport's 3 and 7 links a processor for 4 and 8. That
    /// is quadratic, not exponential as the paper says.
    // shows: B-21
    #[test]
    fn links_grow_with_the_square() {
        for nodes in 1..=8 {
            let links = fully_connected(nodes);
            assert_eq!(links.len(), nodes * (nodes - 1) / 2);
            for node in 0..nodes {
                let of_node = links.iter().filter(|ends| ends.contains(&node)).count();
                assert_eq!(of_node, nodes - 1);
            }
        }
        assert_eq!(links_of(4).unwrap().len(), 6);
        assert_eq!(links_of(2).unwrap(), [[0, 1]; 3]);
        assert!(links_of(5).is_err() && links_of(1).is_err());
    }
}
