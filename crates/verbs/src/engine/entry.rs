//! What the engine keeps per queue pair.

use super::connect::Attempt;
use super::waiting::Posted;
use crate::QueuePairCounters;
use crate::descriptor::Destination;
use crate::device::Claim;
use crate::receive_queue::ReceiveQueue;
use bellwire_device::{Address, Completion, FunctionAddress, LinkId, QueuePair, Status};
use bellwire_protocol::OpId;
use std::collections::VecDeque;

/// Where sends go, and whose messages are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Route {
    /// To and from anybody; a channel: its other members.
    Unconnected,
    /// Nowhere yet.
    Connecting,
    /// To and from one peer.
    Connected { link: LinkId, peer: Address },
    /// Nowhere any more.
    Disconnected { why: Status },
}

/// The route of a queue pair, and where the last message went by it.
pub(crate) struct Routing {
    route: Route,
    lately: Lately,
}

/// A destination whose link was looked up, so that the next message there need not do it again.
#[derive(Clone, Copy)]
struct Lately {
    /// What the descriptor named: nothing, on a connected queue pair.
    named: Destination,
    /// When: see [`super::links::Links::epoch`]. 0: never.
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

    /// Goes another way from now on.
    pub(crate) fn set(&mut self, route: Route) {
        *self = Routing { route, lately: Lately::NEVER };
    }

    /// The link to what a descriptor names, if the last one named the same and no link went down since.
    #[inline(always)]
    pub(crate) fn again(&self, named: Destination, epoch: u64) -> Option<LinkId> {
        let Lately { named: last, epoch: then, link, .. } = self.lately;
        (last == named && then == epoch).then_some(link)
    }

    /// Whom the last descriptor was for.
    #[inline(always)]
    pub(crate) fn lately(&self) -> Address {
        self.lately.to
    }

    /// Remembers link and address of what a descriptor names, for [`Routing::again`] and [`Routing::lately`].
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
    /// Slots of the completion queues, which live as long as their users.
    pub(crate) send_completions: u32,
    pub(crate) receive_completions: u32,
    /// Descriptors that have not started, or not quite, oldest first.
    pub(crate) sends: VecDeque<Posted>,
    /// Whether the queue pair is in the list of those whose `sends` are to be tried.
    pub(crate) listed: bool,
    /// Receives, unless they are shared.
    pub(crate) receives: ReceiveQueue,
    /// Slot of the shared receive queue.
    pub(crate) shared_receive: Option<u32>,
    /// Whether messages wait in the backlog.
    pub(crate) backlogged: bool,
    /// Receives that are done, or under way, behind a long message of the same sender that is not.
    pub(crate) held: VecDeque<Held>,
    pub(crate) send_depth: usize,
    pub(crate) receive_depth: usize,
    /// Descriptors in `sends`, in `operations`, and on their way to a peer, without counting one twice.
    pub(crate) posted_sends: usize,
    /// Operations under way at peers.
    pub(crate) operations: Vec<OpId>,
    /// Long messages that are arriving.
    pub(crate) transfers: Vec<OpId>,
    pub(crate) attempt: Option<Box<Attempt>>,
    pub(crate) last_error: Option<Status>,
    /// The channel's number, node-wide.
    pub(crate) channel: Option<Claim>,
    /// All that was counted, except what went the shortest way.
    pub(crate) tally: QueuePairCounters,
    /// Messages that went and came the shortest way, and their bytes. Each counts for several rows of the tally, where
    /// [`Entry::counters`] adds them.
    pub(crate) sent_at_once: Passed,
    pub(crate) received_at_once: Passed,
    /// Messages that the program took where they lay.
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
    /// Order is kept per sender only, so that a slow one does not hold the others up.
    pub(crate) source: Address,
    pub(crate) state: HeldState,
}

pub(crate) enum HeldState {
    /// A long message is still arriving.
    UnderWay(OpId),
    Done(Completion),
}

impl Entry {
    /// What the queue pair has done.
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

    /// Messages that came and are not counted among the packets of the function.
    pub(crate) fn passed_in(&self) -> u64 {
        self.received_at_once.messages + self.shown.messages
    }

    /// Whether a message from `source` of `from` is for this queue pair (M-03, H-22).
    #[inline(always)]
    pub(crate) fn takes_from(&self, from: FunctionAddress, source: u32) -> bool {
        // Most queue pairs are of this kind; the rest would cost it a jump through a table.
        if matches!(self.routing.route, Route::Unconnected) && self.channel.is_none() {
            return source < Address::CHANNEL_BASE;
        }
        self.is_peer(from, source)
    }

    /// The same for queue pairs that are particular.
    fn is_peer(&self, from: FunctionAddress, source: u32) -> bool {
        match self.routing.route {
            Route::Connected { peer, .. } => {
                peer.queue_pair == source && peer.function_address() == from
            }
            Route::Unconnected => match self.channel {
                None => source < Address::CHANNEL_BASE,
                // The same number talks; different numbers never meet.
                Some(_) => source == self.handle.number,
            },
            Route::Connecting | Route::Disconnected { .. } => false,
        }
    }
}
