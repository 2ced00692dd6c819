//! The engine's state of each queue pair.

use super::connect::Attempt;
use super::waiting::Posted;
use crate::QueuePairCounters;
use crate::descriptor::Destination;
use crate::device::Claim;
use crate::receive_queue::ReceiveQueue;
use bellwire_device::{Address, Completion, FunctionAddress, LinkId, QueuePair, Status};
use bellwire_protocol::OpId;
use std::collections::VecDeque;

/// Where sends go, and from which peers messages are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Route {
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
pub(crate) struct Routing {
    route: Route,
    lately: Lately,
}

/// A destination with its link, so that the next message there needs no look-up.
#[derive(Clone, Copy)]
struct Lately {
    /// The destination that the descriptor named: none, on a connected queue pair.
    named: Destination,
    /// The epoch of the look-up: see [`super::links::Links::epoch`]. 0: none.
    epoch: u64,
    to: Address,
    link: LinkId,
}

impl Routing {
    pub(crate) const NEW: Routing = Routing { route: Route::Unconnected, lately: Lately::NEVER };

    #[inline(always)]
    pub(crate) fn route(&self) -> Route {
        self.route
    }

    /// Changes the route and drops the cached destination.
    pub(crate) fn set(&mut self, route: Route) {
        *self = Routing { route, lately: Lately::NEVER };
    }

    /// The link to a descriptor's destination, if the last one named the same and no link has gone
    /// down since.
    #[inline(always)]
    pub(crate) fn again(&self, named: Destination, epoch: u64) -> Option<LinkId> {
        let Lately { named: last, epoch: then, link, .. } = self.lately;
        (last == named && then == epoch).then_some(link)
    }

    /// The destination of the last descriptor.
    #[inline(always)]
    pub(crate) fn lately(&self) -> Address {
        self.lately.to
    }

    /// Remembers link and address of a descriptor's destination, for [`Routing::again`] and
    /// [`Routing::lately`].
    pub(crate) fn remember(
        &mut self,
        named: Destination,
        epoch: u64,
        (link, to): (LinkId, Address),
    ) {
        self.lately = Lately { named, epoch, to, link };
    }
}

impl Lately {
    const NEVER: Lately = Lately {
        named: Destination::NONE,
        epoch: 0,
        to: Address::new(0, 0, 0),
        link: LinkId(u32::MAX),
    };
}

/// A queue pair.
pub(crate) struct Entry {
    pub(crate) handle: QueuePair,
    pub(crate) routing: Routing,
    /// Slots of the completion queues, which outlive their users.
    pub(crate) send_completions: u32,
    pub(crate) receive_completions: u32,
    /// Descriptors that have not left completely, oldest first.
    pub(crate) sends: VecDeque<Posted>,
    /// Whether the queue pair is in `Core::pending`.
    pub(crate) listed: bool,
    /// Receives, unless they are shared.
    pub(crate) receives: ReceiveQueue,
    /// Slot of the shared receive queue.
    pub(crate) shared_receive: Option<u32>,
    /// Whether messages wait in the backlog.
    pub(crate) backlogged: bool,
    /// Long messages that are arriving, and finished receives that wait for an earlier one of the
    /// same sender.
    pub(crate) held: VecDeque<Held>,
    pub(crate) send_depth: usize,
    pub(crate) receive_depth: usize,
    /// Descriptors in `sends`, in `operations`, and undelivered ones. Each counts once.
    pub(crate) posted_sends: usize,
    /// Operations in flight at peers.
    pub(crate) operations: Vec<OpId>,
    /// Long messages that are arriving.
    pub(crate) transfers: Vec<OpId>,
    pub(crate) attempt: Option<Box<Attempt>>,
    pub(crate) last_error: Option<Status>,
    /// The node-wide claim on the channel's number.
    pub(crate) channel: Option<Claim>,
    /// All counts except those of the fast path.
    pub(crate) tally: QueuePairCounters,
    /// Messages that were sent and received on the fast path, and their bytes. [`Entry::counters`]
    /// adds each to several rows of the tally.
    pub(crate) sent_at_once: Passed,
    pub(crate) received_at_once: Passed,
    /// Messages that the program took in place.
    pub(crate) shown: Passed,
}

/// Messages and their bytes.
#[derive(Clone, Copy, Default)]
pub(crate) struct Passed {
    pub(crate) messages: u64,
    bytes: u64,
}

impl Passed {
    #[inline(always)]
    pub(crate) fn count(&mut self, length: usize) {
        self.messages += 1;
        self.bytes += length as u64;
    }
}

/// The place of a receive in the order of completions.
pub(crate) struct Held {
    /// Order is kept per sender, so a slow sender causes no head-of-line blocking for the others.
    pub(crate) source: Address,
    pub(crate) state: HeldState,
}

pub(crate) enum HeldState {
    /// A long message is still arriving.
    UnderWay(OpId),
    Done(Completion),
}

impl Entry {
    /// The counters of the queue pair.
    pub(crate) fn counters(&self) -> QueuePairCounters {
        let Passed { messages: sent, bytes: bytes_sent } = self.sent_at_once;
        let Passed { messages: received, bytes: bytes_received } = self.received_at_once;
        let mut counters = self.tally;
        counters.add(&QueuePairCounters {
            sends_posted: sent,
            sends_completed: sent,
            messages_sent: sent,
            bytes_sent,
            receives_completed: received,
            messages_arrived: received,
            messages_received: received,
            bytes_received,
            ..Default::default()
        });
        let Passed { messages: shown, bytes: bytes_shown } = self.shown;
        counters.add(&QueuePairCounters {
            messages_arrived: shown,
            messages_received: shown,
            bytes_received: bytes_shown,
            ..Default::default()
        });
        counters
    }

    /// Received messages that the function's packet count does not include.
    pub(crate) fn passed_in(&self) -> u64 {
        self.received_at_once.messages + self.shown.messages
    }

    /// Whether a message from `source` of `from` is for this queue pair (M-03, H-22).
    #[inline(always)]
    pub(crate) fn takes_from(&self, from: FunctionAddress, source: u32) -> bool {
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
            Route::Unconnected => match self.channel {
                None => source < Address::CHANNEL_BASE,
                // Only members of the same channel exchange messages.
                Some(_) => source == self.handle.number,
            },
            Route::Connecting | Route::Disconnected { .. } => false,
        }
    }
}
