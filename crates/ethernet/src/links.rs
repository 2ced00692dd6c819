//! Links, by the engine's numbers. A link exists from before its peer's place is known until both
//! sides have forgotten it.

use bellwire_device::{FunctionAddress, Status};
use bellwire_protocol::reliable::{FunctionId, PeerId};
use std::collections::HashMap;

/// One link.
pub(crate) struct Link {
    pub peer: FunctionAddress,
    pub state: State,
}

/// The state of a link. All times are in ns of the transport's clock.
pub(crate) enum State {
    /// The node's place is not known yet.
    Seeking { give_up_ns: u64, ask_again_ns: u64, pause_ns: u64 },
    /// The protocol has the link.
    Known(PeerId),
    /// A link to ourselves.
    Own,
    /// It is down, and the engine knows or will be told.
    Down { id: Option<PeerId>, why: Status, reported: bool },
}

impl Link {
    /// The protocol's number of the link, if it has one.
    pub fn id(&self) -> Option<PeerId> {
        match self.state {
            State::Known(id) => Some(id),
            State::Down { id, .. } => id,
            State::Seeking { .. } | State::Own => None,
        }
    }
}

/// A link with an announced place, where its connection request is not answered yet.
#[derive(Clone, Copy)]
pub(crate) struct Unanswered {
    pub number: u32,
    pub give_up_ns: u64,
    /// When to ask again for the node's place, and the pause after that.
    pub ask_again_ns: u64,
    pub pause_ns: u64,
}

/// All links of a function.
pub(crate) struct Links {
    links: Vec<Option<Link>>,
    free: Vec<u32>,
    /// Indexed by the low half of the protocol's number.
    by_slot: Vec<Option<(PeerId, u32)>>,
    /// The newest link to each peer that is not down.
    by_peer: HashMap<FunctionAddress, u32>,
    /// The link to ourselves, which every poll needs.
    own: Option<u32>,
    /// Links whose place is sought, or whose end must be reported.
    pub unsettled: Vec<u32>,
    /// Links whose peers may be elsewhere.
    pub unanswered: Vec<Unanswered>,
}

impl Links {
    pub fn new() -> Links {
        Links {
            links: Vec::new(),
            free: Vec::new(),
            by_slot: Vec::new(),
            by_peer: HashMap::new(),
            own: None,
            unsettled: Vec::new(),
            unanswered: Vec::new(),
        }
    }

    /// Number of links.
    pub fn count(&self) -> usize {
        self.links.len() - self.free.len()
    }

    /// The link to `peer` that is not down.
    pub fn to(&self, peer: FunctionAddress) -> Option<u32> {
        self.by_peer.get(&peer).copied()
    }

    /// The link to ourselves, if we have one.
    #[inline]
    pub fn own(&self) -> Option<u32> {
        self.own
            .filter(|&number| self.at(number).is_some_and(|link| matches!(link.state, State::Own)))
    }

    #[inline]
    pub fn at(&self, number: u32) -> Option<&Link> {
        self.links.get(number as usize)?.as_ref()
    }

    #[inline]
    pub fn at_mut(&mut self, number: u32) -> Option<&mut Link> {
        self.links.get_mut(number as usize)?.as_mut()
    }

    /// The number of the link that the protocol calls `id`.
    #[inline]
    pub fn number_of(&self, id: PeerId) -> Option<u32> {
        let (known, number) = (*self.by_slot.get(slot(id))?)?;
        (known == id).then_some(number)
    }

    /// Adds a link, which becomes the link to its peer.
    pub fn add(&mut self, peer: FunctionAddress, state: State) -> u32 {
        let id = if let State::Known(id) = state { Some(id) } else { None };
        let seeks = matches!(state, State::Seeking { .. });
        let own = matches!(state, State::Own);
        let link = Some(Link { peer, state });
        let number = match self.free.pop() {
            Some(number) => {
                self.links[number as usize] = link;
                number
            }
            None => {
                self.links.push(link);
                self.links.len() as u32 - 1
            }
        };
        self.by_peer.insert(peer, number);
        if own {
            self.own = Some(number);
        }
        if seeks {
            self.unsettled.push(number);
        }
        if let Some(id) = id {
            self.name(id, number);
        }
        number
    }

    /// The protocol has a link with `peer`. Either side requested it.
    pub fn came_up(&mut self, id: PeerId, peer: FunctionId) {
        if self.number_of(id).is_some() {
            return;
        }
        let peer = FunctionAddress { node: peer.node, function: peer.function };
        let sought = self.to(peer).filter(|&number| {
            self.at(number).is_some_and(|link| matches!(link.state, State::Seeking { .. }))
        });
        match sought {
            Some(number) => self.found(number, id),
            None => {
                self.add(peer, State::Known(id));
            }
        }
    }

    /// The links that the protocol has with functions of `node`.
    pub fn of_node(&self, node: u32) -> Vec<PeerId> {
        let links = self.links.iter().flatten().filter(|link| link.peer.node == node);
        links
            .filter_map(|link| if let State::Known(id) = link.state { Some(id) } else { None })
            .collect()
    }

    /// The nodes that the protocol has links with, each once.
    pub fn nodes(&self) -> Vec<u32> {
        let links = self.links.iter().flatten();
        let known = links.filter(|link| matches!(link.state, State::Known(_)));
        let mut nodes: Vec<u32> = known.map(|link| link.peer.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// The numbers of all links.
    pub fn numbers(&self) -> Vec<u32> {
        let links = self.links.iter().enumerate();
        links.filter(|(_, link)| link.is_some()).map(|(number, _)| number as u32).collect()
    }

    /// The protocol has taken over a link whose place was sought.
    pub fn found(&mut self, number: u32, id: PeerId) {
        if let Some(link) = self.at_mut(number) {
            link.state = State::Known(id);
            self.unsettled.retain(|&other| other != number);
            self.name(id, number);
        }
    }

    /// The peer is not at the place that the protocol tried: seek the node again. `false`: that
    /// place was not an announced one.
    pub fn seek_again(&mut self, number: u32) -> bool {
        let Some(index) = self.unanswered.iter().position(|asked| asked.number == number) else {
            return false;
        };
        let Unanswered { give_up_ns, ask_again_ns, pause_ns, .. } =
            self.unanswered.swap_remove(index);
        let Some(link) = self.at_mut(number) else { return false };
        link.state = State::Seeking { give_up_ns, ask_again_ns, pause_ns };
        if !self.unsettled.contains(&number) {
            self.unsettled.push(number);
        }
        true
    }

    /// The link is down; the engine must still be told.
    pub fn lose(&mut self, number: u32, why: Status) {
        let Some(link) = self.at_mut(number) else { return };
        let peer = link.peer;
        let id = if let State::Known(id) = link.state { Some(id) } else { None };
        link.state = State::Down { id, why, reported: false };
        self.leave(peer, number);
        if !self.unsettled.contains(&number) {
            self.unsettled.push(number);
        }
    }

    /// Removes a link and returns it.
    pub fn remove(&mut self, number: u32) -> Option<Link> {
        let link = self.links.get_mut(number as usize)?.take()?;
        self.leave(link.peer, number);
        self.unsettled.retain(|&other| other != number);
        self.unanswered.retain(|asked| asked.number != number);
        if let Some(id) = link.id()
            && self.number_of(id) == Some(number)
        {
            self.by_slot[slot(id)] = None;
        }
        self.free.push(number);
        Some(link)
    }

    fn name(&mut self, id: PeerId, number: u32) {
        if self.by_slot.len() <= slot(id) {
            self.by_slot.resize(slot(id) + 1, None);
        }
        self.by_slot[slot(id)] = Some((id, number));
    }

    fn leave(&mut self, peer: FunctionAddress, number: u32) {
        if self.by_peer.get(&peer) == Some(&number) {
            self.by_peer.remove(&peer);
        }
    }
}

fn slot(id: PeerId) -> usize {
    id.0 as usize & 0xffff
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: FunctionAddress = FunctionAddress { node: 9, function: 1 };

    /// A number names one link at a time. A peer's address leads to the newest link that is not
    /// down.
    #[test]
    fn a_later_link_takes_over() {
        let mut links = Links::new();
        let first = links.add(PEER, State::Known(PeerId(5)));
        links.lose(first, Status::PeerGone);
        assert_eq!((links.to(PEER), links.unsettled.len()), (None, 1));
        let second = links.add(PEER, State::Known(PeerId(1 << 16 | 5)));
        assert_ne!(first, second);
        assert_eq!(links.number_of(PeerId(5)), None, "the protocol's number has a new owner");
        assert_eq!(links.number_of(PeerId(1 << 16 | 5)), Some(second));
        links.remove(first);
        assert_eq!((links.to(PEER), links.count()), (Some(second), 1));
    }

    fn seeking() -> State {
        State::Seeking { give_up_ns: 9, ask_again_ns: 5, pause_ns: 3 }
    }

    /// A link whose node is sought becomes the protocol's once it is found, by whichever side.
    #[test]
    fn a_sought_link_is_found() {
        let mut links = Links::new();
        let other = FunctionAddress { node: 8, function: 2 };
        let sought = links.add(PEER, seeking());
        let second = links.add(other, seeking());
        assert_eq!(links.unsettled, [sought, second]);
        assert_eq!((links.of_node(9), links.nodes()), (vec![], vec![]));
        links.found(sought, PeerId(3));
        assert_eq!(
            (links.number_of(PeerId(3)), &links.unsettled[..]),
            (Some(sought), &[second][..])
        );
        // The peer asked first.
        links.came_up(PeerId(4), FunctionId { node: 8, function: 2 });
        assert_eq!((links.number_of(PeerId(4)), links.count()), (Some(second), 2));
        assert!(links.unsettled.is_empty());
        // Nobody sought this one, and it is told twice.
        for _ in 0..2 {
            links.came_up(PeerId(6), FunctionId { node: 8, function: 7 });
        }
        let third = links.number_of(PeerId(6)).expect("a link");
        assert_eq!(links.to(FunctionAddress { node: 8, function: 7 }), Some(third));
        assert_eq!((links.count(), links.numbers()), (3, vec![sought, second, third]));
        assert_eq!((links.of_node(8), links.nodes()), (vec![PeerId(4), PeerId(6)], vec![8, 9]));
        // A new link beside one that is up does not take its number.
        links.came_up(PeerId(7), FunctionId { node: 8, function: 7 });
        assert_eq!((links.count(), links.number_of(PeerId(6))), (4, Some(third)));
        for number in links.numbers() {
            links.remove(number);
        }
        assert_eq!((links.count(), links.numbers()), (0, vec![]));
        assert_eq!(links.number_of(PeerId(6)), None);
    }

    /// Only a link that was announced at a wrong place is sought again, and where it was left.
    #[test]
    fn a_wrong_place_is_given_up() {
        let mut links = Links::new();
        let number = links.add(PEER, State::Known(PeerId(3)));
        assert!(!links.seek_again(number), "its place was not announced");
        for asked in [number + 1, number] {
            let other = u64::from(asked - number) * 100;
            let (give_up_ns, ask_again_ns, pause_ns) = (9 + other, 5, 3);
            links.unanswered.push(Unanswered { number: asked, give_up_ns, ask_again_ns, pause_ns });
        }
        assert!(links.seek_again(number));
        assert!(matches!(
            links.at(number).expect("a link").state,
            State::Seeking { give_up_ns: 9, ask_again_ns: 5, pause_ns: 3 }
        ));
        assert_eq!((&links.unsettled[..], links.unanswered.len()), (&[number][..], 1));
        assert!(!links.seek_again(number + 1), "there is no such link");
        // Losing it twice reports it once.
        links.lose(number, Status::Unreachable);
        links.lose(number, Status::Unreachable);
        assert_eq!(links.unsettled, [number]);
        assert!(links.remove(number).expect("a link").id().is_none());
        assert!(links.unsettled.is_empty() && links.remove(number).is_none());
    }

    /// The link to ourselves is found until it is down. Removing a link frees its number, and what
    /// waits for it goes with it.
    #[test]
    fn our_own_link_is_known() {
        let mut links = Links::new();
        assert_eq!(links.own(), None);
        let other = links.add(PEER, State::Known(PeerId(3)));
        assert_eq!(links.own(), None);
        let own = links.add(FunctionAddress { node: 1, function: 1 }, State::Own);
        assert_eq!((links.own(), links.count()), (Some(own), 2));
        links.lose(own, Status::ProtocolViolation);
        assert_eq!(links.own(), None);
        for number in [other, own] {
            let (give_up_ns, ask_again_ns, pause_ns) = (9, 5, 3);
            links.unanswered.push(Unanswered { number, give_up_ns, ask_again_ns, pause_ns });
        }
        links.lose(other, Status::PeerGone);
        assert_eq!(links.remove(other).and_then(|link| link.id()), Some(PeerId(3)));
        assert_eq!(links.unsettled, [own]);
        assert_eq!(links.unanswered.iter().map(|it| it.number).collect::<Vec<_>>(), [own]);
        assert_eq!(links.number_of(PeerId(3)), None);
        assert_eq!(links.add(PEER, seeking()), other, "a number is used again");
    }
}
