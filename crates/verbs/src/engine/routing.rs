//! Where descriptors go, and from where messages come: routes, links, and who may send to whom.

use super::Core;
use super::links::Links;
use super::queue_pair::QueuePairContext;
use crate::descriptor::Destination;
use crate::table::Table;
use bellwire_device::{
    Address, Error, FunctionAddress, LinkId, PacketHeader, QueuePair, Result, Status, Transport,
};
use std::time::Duration;

/// How long a link may take to come up before its descriptors complete as [`Status::Unreachable`].
const LINK_PATIENCE: Duration = Duration::from_secs(5);

/// Where sends go, and from which peers messages are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Route {
    /// To and from any queue pair; a channel: its other members.
    Unconnected,
    /// Nowhere yet.
    Connecting,
    /// To and from one peer.
    Connected { link: LinkId, peer: Address },
    /// Nowhere: the connection has ended.
    Disconnected { why: Status },
}

/// The route of a queue pair, and the cached destination of its last message.
pub(super) struct Routing {
    /// [`Routing::set`] changes it.
    pub(super) route: Route,
    pub(super) cache: RouteCache,
}

/// A destination with its link, so that the next message there needs no look-up.
#[derive(Clone, Copy)]
pub(super) struct RouteCache {
    /// The destination that the descriptor named: none, on a connected queue pair.
    named: Destination,
    /// The epoch of the look-up: see [`Links::epoch`]. 0: none.
    epoch: u64,
    /// The destination of the last descriptor.
    pub(super) to: Address,
    pub(super) link: LinkId,
}

impl Routing {
    pub(super) const NEW: Routing = Routing { route: Route::Unconnected, cache: RouteCache::EMPTY };

    /// Changes the route and drops the cached destination.
    pub(super) fn set(&mut self, route: Route) {
        *self = Routing { route, cache: RouteCache::EMPTY };
    }

    /// The link to a descriptor's destination, if the last one named the same and no link has gone
    /// down since.
    #[inline(always)]
    pub(super) fn cached_link(&self, named: Destination, epoch: u64) -> Option<LinkId> {
        let RouteCache { named: last, epoch: then, link, .. } = self.cache;
        (last == named && then == epoch).then_some(link)
    }
}

impl RouteCache {
    const EMPTY: RouteCache = RouteCache {
        named: Destination::NONE,
        epoch: 0,
        to: Address::new(0, 0, 0),
        link: LinkId(u32::MAX),
    };
}

// Where a queue pair's descriptors go.
impl QueuePairContext {
    /// The link to a descriptor's destination, if there is one and the queue pair may send there.
    #[inline(always)]
    pub(super) fn link_for(&mut self, links: &Links, named: Destination) -> Option<LinkId> {
        match self.routing.cached_link(named, links.epoch) {
            Some(link) => Some(link),
            None => find_link(links, self, named),
        }
    }

    /// Whether a message from `source` of `from` is for this queue pair (M-03, H-22).
    #[inline(always)]
    pub(super) fn takes_from(&self, from: FunctionAddress, source: u32) -> bool {
        // The common case, tested first: a `match` would compile to a jump table.
        if matches!(self.routing.route, Route::Unconnected) && self.channel.is_none() {
            return source < Address::CHANNEL_BASE;
        }
        self.is_peer(from, source)
    }

    /// The same for connected queue pairs and channels.
    fn is_peer(&self, from: FunctionAddress, source: u32) -> bool {
        match self.routing.route {
            Route::Connected { peer, .. } => {
                peer.queue_pair == source && peer.function_address() == from
            }
            // Only members of the same channel exchange messages.
            Route::Unconnected => source == self.handle.number,
            Route::Connecting | Route::Disconnected { .. } => false,
        }
    }
}

/// The link to a descriptor's destination, if it is in the cache and the queue pair may send there.
/// Remembers it for the next message.
#[inline(never)]
fn find_link(links: &Links, qp: &mut QueuePairContext, named: Destination) -> Option<LinkId> {
    let found = match (qp.routing.route, named.address()) {
        (Route::Connected { link, peer }, None) => (link, peer),
        (Route::Unconnected, Some(to)) => {
            let number = qp.handle.number;
            if is_channel(to.queue_pair | number) && to.queue_pair != number {
                return None;
            }
            (links.cached(to.function_address())?, to)
        }
        _ => return None,
    };
    let (link, to) = found;
    qp.routing.cache = RouteCache { named, epoch: links.epoch, to, link };
    Some(link)
}

/// The queue pair that a message names, if its sender may send there. Not a channel: its number is
/// no slot. For the fast paths.
#[inline(always)]
pub(super) fn destination<'a>(
    queue_pairs: &'a mut Table<QueuePairContext>,
    from: FunctionAddress,
    header: &PacketHeader,
) -> Option<&'a mut QueuePairContext> {
    let qp = queue_pairs.at_mut(header.destination.wrapping_sub(1))?;
    let is_meant = qp.handle.number == header.destination && qp.takes_from(from, header.source);
    if is_meant { Some(qp) } else { None }
}

impl Core {
    /// The link and the address to send to.
    pub(super) fn route<T: Transport>(
        &mut self,
        transport: &mut T,
        queue_pair: QueuePair,
        to: Option<Address>,
    ) -> Result<(LinkId, Address)> {
        let qp = self.queue_pairs.of(queue_pair)?;
        match (qp.routing.route, to) {
            (Route::Connected { link, peer }, None) => Ok((link, peer)),
            (Route::Unconnected, Some(to)) => {
                if is_channel(to.queue_pair) || qp.channel.is_some() {
                    same_channel(queue_pair.number, to.queue_pair)?;
                }
                Ok((self.link_to(transport, to.function_address())?, to))
            }
            (route, to) => Err(no_route(route, to)),
        }
    }

    /// The link to the owner of remote memory, and the peer that the completion names.
    #[inline]
    pub(super) fn route_to_owner<T: Transport>(
        &mut self,
        transport: &mut T,
        queue_pair: QueuePair,
        owner: FunctionAddress,
    ) -> Result<(LinkId, Address)> {
        let qp = self.queue_pairs.of(queue_pair)?;
        match qp.routing.route {
            Route::Connected { link, peer } if peer.function_address() == owner => Ok((link, peer)),
            Route::Connected { .. } => Err(Error::BadDestination(
                "this queue pair is connected, and the key belongs to another function than its peer",
            )),
            Route::Unconnected => {
                let link = self.link_to(transport, owner)?;
                Ok((link, Address::new(owner.node, owner.function, 0)))
            }
            route => Err(no_route(route, None)),
        }
    }

    /// The slot of the queue pair with the public number `number`.
    #[inline(always)]
    pub(super) fn slot_of(&self, number: u32) -> Option<u32> {
        if number < Address::CHANNEL_BASE {
            let slot = number.wrapping_sub(1);
            self.queue_pairs.at(slot).filter(|qp| qp.handle.number == number)?;
            return Some(slot);
        }
        let place = self.channels.binary_search_by_key(&number, |channel| channel.0).ok()?;
        Some(self.channels[place].1)
    }

    /// The link to `peer`. Starts one if there is none.
    #[inline]
    pub(super) fn link_to<T: Transport>(
        &mut self,
        transport: &mut T,
        peer: FunctionAddress,
    ) -> Result<LinkId> {
        match self.links.to(peer) {
            Some(link) => Ok(link),
            None => self.open_link(transport, peer, LINK_PATIENCE),
        }
    }

    #[cold]
    pub(super) fn open_link(
        &mut self,
        transport: &mut dyn Transport,
        peer: FunctionAddress,
        patience: Duration,
    ) -> Result<LinkId> {
        let link = transport.link(peer, patience)?;
        self.learn(link, peer);
        Ok(link)
    }

    /// Remembers a link that we opened, or that a peer did.
    #[inline]
    pub(super) fn learn(&mut self, link: LinkId, peer: FunctionAddress) {
        if self.links.find(link).is_none() && self.links.learn(link, peer) {
            self.counters.links_opened += 1;
        }
    }

    /// The destination of a message, if it exists and takes messages from this sender. Otherwise
    /// the message is counted and dropped.
    #[inline(always)]
    pub(super) fn admit(&mut self, from: FunctionAddress, header: &PacketHeader) -> Option<u32> {
        let Some(slot) = self.slot_of(header.destination) else {
            self.counters.no_such_queue_pairs += 1;
            return None;
        };
        if !self.queue_pairs[slot].takes_from(from, header.source) {
            self.queue_pairs[slot].tally.messages_refused += 1;
            return None;
        }
        Some(slot)
    }
}

#[inline]
fn is_channel(number: u32) -> bool {
    number >= Address::CHANNEL_BASE
}

/// Members of different channels never exchange messages (H-22).
fn same_channel(ours: u32, theirs: u32) -> Result<()> {
    match (is_channel(ours), is_channel(theirs)) {
        (true, true) if ours == theirs => Ok(()),
        (true, _) => Err(Error::BadDestination(
            "a channel sends only to its own number: name an address of that channel",
        )),
        _ => Err(Error::BadDestination(
            "only a member of a channel can send to it: open the channel first",
        )),
    }
}

#[cold]
fn no_route(route: Route, to: Option<Address>) -> Error {
    let wrong = |state, hint| Error::WrongState { call: "posting a send", state, hint };
    match (route, to) {
        (Route::Connecting, _) => wrong("connecting", "wait for the connection first"),
        (Route::Disconnected { .. }, _) => {
            wrong("disconnected", "connect it again, or use another one")
        }
        (Route::Connected { .. }, _) => Error::BadDestination(
            "this queue pair is connected and sends to its peer only: name no destination",
        ),
        (Route::Unconnected, _) => Error::BadDestination(
            "this queue pair is not connected: name a destination (`to`), or connect it",
        ),
    }
}
