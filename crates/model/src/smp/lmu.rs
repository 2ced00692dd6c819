//! The link management unit: selects the link to a node and queues packets that its network layer
//! cannot take yet (S-01, S-02, S-08).
//!
//! Four nodes are fully connected; two nodes are joined by all three of their links. The paper does
//! not say how traffic is spread over three parallel links. Here the number of the line or transfer
//! selects the link, so packets that must stay in order take the same one.

use std::collections::VecDeque;

use bellwire_wire::link::network::Class;

use super::cc::message::LINE_BYTES;
use super::network::NetworkPacket;
use super::transport::CHANNELS;

/// Direct interfaces of a processor (paper, section 2).
pub const INTERFACES: usize = 3;

/// Packets of the block unit in one link and channel's queue before back-pressure on the unit.
const ROOM: usize = 4;

/// One end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// The link's number in the system.
    pub link: u16,
    /// The end of this node.
    pub end: u8,
}

/// The links of a fully connected system, as pairs of nodes; the lower node is the RC. Each of N
/// processors needs N - 1 interfaces.
pub fn fully_connected(nodes: usize) -> Vec<[usize; 2]> {
    (0..nodes).flat_map(|low| (low + 1..nodes).map(move |high| [low, high])).collect()
}

/// The links of 2 to 4 processors with three interfaces each (Fig. 3); three nodes leave one
/// interface unused.
///
/// # Errors
/// A sentence, if three interfaces cannot join this number of processors.
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
    /// Ends of links, by target node.
    ways: Vec<Vec<Way>>,
    queues: Vec<[VecDeque<NetworkPacket>; CHANNELS]>,
    /// Peak length of a queue for one link and channel.
    pub longest_queue: usize,
}

impl Lmu {
    /// The unit of `node`; each link is a pair of nodes.
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

    /// The link end that a packet takes.
    ///
    /// # Errors
    /// A sentence, if no link leads to its target.
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

    /// Whether a packet of the block unit is accepted.
    pub fn has_room(&self, way: Way, channel: u8) -> bool {
        self.queues[usize::from(way.link)][usize::from(channel)].len() < ROOM
    }

    /// Queues a packet. The coherence unit is always served: its protocol bounds its packets in
    /// flight.
    pub fn send(&mut self, way: Way, packet: NetworkPacket) {
        let queue = &mut self.queues[usize::from(way.link)][usize::from(packet.channel)];
        queue.push_back(packet);
        self.longest_queue = self.longest_queue.max(queue.len());
    }

    /// The queue of a link and channel.
    pub fn queue(&mut self, link: u16, channel: u8) -> &mut VecDeque<NetworkPacket> {
        &mut self.queues[usize::from(link)][usize::from(channel)]
    }

    /// Whether all queues are empty.
    pub fn is_empty(&self) -> bool {
        self.queues.iter().flatten().all(VecDeque::is_empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each of N processors needs N - 1 interfaces, and the system N (N - 1) / 2 links: 3 and 7
    /// HyperTransport links per processor for 4 and 8. That is quadratic, not exponential as the
    /// paper says.
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

    /// Two nodes share three links: the line of a coherence packet, or the number of a transfer,
    /// says which. A queue takes four packets of the block unit.
    #[test]
    fn parallel_links_are_chosen_by_number() {
        use bellwire_wire::link::network::NetworkHeader;
        let mut lmu = Lmu::new(0, 2, &links_of(2).unwrap());
        let packet = |class, tag, address| NetworkPacket {
            header: NetworkHeader { class, operation: 0, target: 1, source: 0, tag, address },
            channel: 1,
            data: Vec::new(),
        };
        let link = |lmu: &Lmu, packet| lmu.way(&packet).map(|way| way.link);
        for (address, number) in [(0, 0), (31, 0), (32, 1), (64, 2), (96, 0), (32 * 77, 2)] {
            assert_eq!(link(&lmu, packet(Class::Coherence, 1, address)), Ok(number));
        }
        for (tag, number) in [(0, 0), (5, 2), (6, 0)] {
            assert_eq!(link(&lmu, packet(Class::Block, tag, 32)), Ok(number));
        }
        let mut nowhere = packet(Class::Block, 1, 0);
        nowhere.header.target = 0;
        assert!(lmu.way(&nowhere).is_err());
        assert!(lmu.is_empty());
        let way = Way { link: 2, end: 0 };
        for length in 1..=4 {
            assert!(lmu.has_room(way, 1));
            lmu.send(way, packet(Class::Block, 2, 0));
            assert_eq!((lmu.longest_queue, lmu.is_empty()), (length, false));
        }
        assert!(!lmu.has_room(way, 1) && lmu.has_room(way, 0));
        assert_eq!(lmu.queue(2, 1).len(), 4);
    }
}
