//! The engine: everything that is the same on every device.
//!
//! [`Core`] is a function's state. It knows no transport; the transport reports to it (`Sink`).
//! Code that needs the transport is generic over it. One dynamic call through [`DynTransport`]
//! reaches it, so the compiler optimizes everything below that call together, the transport
//! included.
//!
//! | file | what |
//! |---|---|
//! | `send.rs` | posting a message; the eager path |
//! | `receive.rs` | a packet arrives; matching it with a receive, or with the `backlog.rs` |
//! | `inbox.rs` | messages that the program takes in place |
//! | `batch.rs` | several short messages in one packet, at both ends |
//! | `routing.rs` | where descriptors go, and who may send to whom |
//! | `work.rs` | accepted descriptors, and the operations that they are at a peer |
//! | `schedule.rs` | when descriptors start that could not leave at once |
//! | `finish.rs` | the end of descriptors: completions and their order |
//! | `undelivered.rs` | short messages that have left and may still be lost |
//! | `rendezvous.rs` | messages longer than a packet |
//! | `put.rs`, `get.rs`, `atomic.rs`, `event.rs` | one-sided operations, at both ends |
//! | `outbox.rs` | answers and streams to peers |
//! | `connect.rs` | connections |
//! | `close.rs` | the end of queue pairs, connections and links |
//! | `windows.rs` | regions of peers that puts reach by stores |
//! | `links.rs`, `regions.rs`, `queue_pair.rs`, `payload.rs` | state and packet layouts |
//!
//! An operation is a variant of `Work` in `work.rs` and a file that starts it and takes its
//! answers. An atomic operation is an arm of [`bellwire_device::AtomicOperation`] and a constructor
//! of [`crate::Atomic`].
//!
//! The cost of an 8-byte message on the fast path: at the sender two look-ups (queue pair, gate),
//! one packet, one completion. At the receiver one look-up, one copy, one completion. No
//! allocation, lock, system call, hashing or clock.

mod atomic;
mod backlog;
mod batch;
mod chain;
mod close;
mod connect;
mod dyn_transport;
mod event;
mod finish;
mod get;
mod inbox;
mod links;
mod objects;
mod outbox;
mod payload;
mod put;
mod queue_pair;
mod receive;
mod regions;
mod rendezvous;
mod routing;
mod schedule;
mod send;
mod undelivered;
mod windows;
mod work;

pub use batch::PackedMessages;
pub use dyn_transport::{DynTransport, Handle};
pub use inbox::Inbox;

use crate::completion_queue::{CompletionBypass, CompletionRing, Found, Taken};
use crate::shared_receive::SharedReceives;
use crate::table::Table;
use crate::{CompletionQueue, FunctionCounters, FunctionOptions, Limits, QueuePairCounters};
use backlog::Backlog;
use batch::Batch;
use bellwire_device::{
    Completion, Error, FunctionAddress, Gate, Result, Status, Transport, Verdict,
};
use bellwire_protocol::{OpId, Outstanding, Signal};
use bellwire_ring::canary::planted;
use close::Teardown;
use connect::Listening;
use inbox::InboxSink;
use links::Links;
use queue_pair::QueuePairContext;
use regions::Regions;
use rendezvous::Transfer;
use std::collections::VecDeque;
use work::Operation;

/// Most packets that one call of `progress` takes.
const POLL_BUDGET: usize = 64;
/// Most completions that are taken without a look for packets.
const TAKEN_WITHOUT_LOOK: u32 = 256;
/// Bytes that a direct put, get or fetch moves in one turn, so that a huge one does not delay the
/// others.
const SLICE_BYTES: usize = 1 << 20;
/// Most slices that one call of `progress` moves for each direction.
const SLICES: usize = 4;
/// Most long messages that can be arriving at one function at once. Further ones wait in the
/// backlog.
const TRANSFERS: u16 = 256;
/// Most entries in one list of a chain descriptor.
const CHAIN_ENTRIES: usize = 1024;
/// Most private data of a connection message, in bytes.
const PRIVATE_DATA_BYTES: usize = 256;
/// Shortest packet that a device may offer, in bytes: a head and some bytes behind it.
const SHORTEST_PACKET: usize = 64;

/// The state of a function.
pub struct Core {
    pub(crate) address: FunctionAddress,
    pub(crate) limits: Limits,
    queue_pairs: Table<QueuePairContext>,
    completion_queues: Table<CompletionRing>,
    shared_receives: Table<SharedReceives>,
    /// Channels that are open: number and slot, by number.
    channels: Vec<(u32, u32)>,
    /// Takes the completion that a program is polling for, past the queue's ring.
    bypass: CompletionBypass,
    links: Links,
    regions: Regions,
    /// Room for short messages that leave in one packet.
    batch: Batch,
    backlog: Backlog,
    operations: Outstanding<Operation>,
    transfers: Outstanding<Transfer>,

    /// Some of the lists below may have an entry. Whoever adds one sets this.
    deferred: bool,
    /// Completions taken since the last look.
    taken: u32,
    /// Queue pairs with descriptors to try again, round-robin.
    pending: VecDeque<u32>,
    /// Long messages to fetch, round-robin.
    fetching: VecDeque<OpId>,
    /// Queue pairs with messages in the backlog.
    backlogged: Vec<u32>,
    /// A receive, a completion entry or a transfer that the backlog waits for may be free.
    retry_backlog: bool,
    /// Ends that a packet caused and that need the transport.
    teardowns: Vec<Teardown>,
    /// Peers whose links have ended, for a program that asks.
    pub(crate) lost: Vec<(FunctionAddress, Status)>,
    /// Gates to publish.
    gates: Vec<(u32, Gate)>,
    listening: Vec<Listening>,
    /// Queue pairs that request a connection.
    connecting: Vec<u32>,
    /// Connection requests so far.
    requests: u64,

    /// Answers to puts may wait a moment for packets of the program.
    pub(crate) answers_wait: bool,
    /// The device has reported a standstill: nothing will ever happen on it again.
    pub(crate) stands_still: bool,
    counters: FunctionCounters,
    /// Counters of queue pairs that were destroyed.
    retired: QueuePairCounters,
    pub(crate) stat: crate::stat::Stat,
}

impl Core {
    /// The state of the function of `transport`, whose device has this name.
    pub(crate) fn new(
        transport: &dyn Transport,
        name: &str,
        options: &FunctionOptions,
    ) -> Result<Core> {
        let (address, device) = (transport.address(), transport.limits());
        let unusable = |why: String| Error::DeviceUnavailable {
            device: format!("function {address}"),
            why,
            hint: "larger packets or a larger backlog".to_owned(),
        };
        if device.packet_bytes < SHORTEST_PACKET || device.queue_pairs < 2 {
            return Err(unusable(format!(
                "its packets carry {} bytes and it has {} queue pairs; {SHORTEST_PACKET} and 2 are the least",
                device.packet_bytes, device.queue_pairs
            )));
        }
        if options.backlog_bytes < 4 * device.packet_bytes {
            return Err(unusable(format!(
                "its backlog of {} bytes holds fewer than four packets of {} bytes",
                options.backlog_bytes, device.packet_bytes
            )));
        }
        let limits = Limits {
            eager_bytes: device.packet_bytes,
            message_bytes: 1 << 40,
            packet_bytes: device.packet_bytes,
            // No queue pair has number 0.
            queue_pairs: device.queue_pairs - 1,
            completion_queues: device.queue_pairs,
            shared_receive_queues: device.queue_pairs,
            listeners: 64,
            regions: device.regions.min(1 << 16),
            links: device.links,
            chain_entries: CHAIN_ENTRIES,
            private_data_bytes: PRIVATE_DATA_BYTES.min(device.packet_bytes),
            queue_depth: 1 << 16,
            outstanding: options.outstanding,
        };
        Ok(Core {
            address,
            limits,
            queue_pairs: Table::new(limits.queue_pairs),
            completion_queues: Table::new(limits.completion_queues),
            shared_receives: Table::new(limits.shared_receive_queues),
            channels: Vec::new(),
            bypass: CompletionBypass::new(),
            links: Links::new(),
            regions: Regions::new(address, limits.regions, transport.seed()),
            batch: batch::room(),
            backlog: Backlog::new(options.backlog_bytes, limits.queue_pairs),
            operations: Outstanding::new(options.outstanding as u16),
            transfers: Outstanding::new(TRANSFERS),
            deferred: false,
            taken: 0,
            pending: VecDeque::new(),
            fetching: VecDeque::new(),
            backlogged: Vec::new(),
            retry_backlog: false,
            teardowns: Vec::new(),
            lost: Vec::new(),
            gates: Vec::new(),
            listening: Vec::new(),
            connecting: Vec::new(),
            requests: 0,
            answers_wait: false,
            stands_still: false,
            counters: FunctionCounters::default(),
            retired: QueuePairCounters::default(),
            stat: crate::stat::Stat::new(name),
        })
    }

    /// Receives packets, then sends what waits. Returns how much it did.
    #[inline(always)]
    pub(crate) fn progress<T: Transport>(&mut self, transport: &mut T) -> usize {
        let done = self.poll_transport(transport);
        if self.may_have_deferred_work() { done + self.run_deferred_work(transport) } else { done }
    }

    /// Makes progress for a program that polls `queue`. If that is empty, the first message that
    /// takes the fast path bypasses the queue's ring on its way to the program. Returns the
    /// oldest completion, if there is one.
    #[inline(always)]
    pub(crate) fn poll<T: Transport>(
        &mut self,
        transport: &mut T,
        queue: u32,
        found: Found,
    ) -> Option<Taken<'_>> {
        if found == Found::Nothing {
            self.bypass.open(queue);
        }
        self.poll_transport(transport);
        self.finish_poll(transport, queue)
    }

    /// [`Core::poll`], which shows messages to `inbox` first if the queue is empty.
    pub(crate) fn poll_with<T: Transport>(
        &mut self,
        transport: &mut T,
        queue: u32,
        found: Found,
        inbox: &mut dyn Inbox,
    ) -> Option<Taken<'_>> {
        if found != Found::Nothing {
            return self.poll(transport, queue, found);
        }
        self.bypass.open(queue);
        self.taken = 0;
        transport.poll(&mut InboxSink { core: self, queue, inbox }, POLL_BUDGET);
        self.note_standstill(transport);
        self.finish_poll(transport, queue)
    }

    /// Does the work that a poll has deferred, and returns the oldest completion of `queue`.
    #[inline(always)]
    fn finish_poll<T: Transport>(&mut self, transport: &mut T, queue: u32) -> Option<Taken<'_>> {
        if self.may_have_deferred_work() {
            self.run_deferred_work(transport);
        }
        if self.bypass.is_full() {
            return self.bypass.close();
        }
        self.bypass.close();
        self.take(queue)
    }

    #[inline(always)]
    fn poll_transport<T: Transport>(&mut self, transport: &mut T) -> usize {
        self.taken = 0;
        let done = transport.poll(self, POLL_BUDGET);
        self.note_standstill(transport);
        done
    }

    /// A real device never stands still: there the compiler removes this.
    #[inline(always)]
    fn note_standstill<T: Transport>(&mut self, transport: &mut T) {
        if transport.standstill().is_some() {
            self.stands_still = true;
        }
    }

    /// One test for all deferred work: there is nearly always none.
    #[inline(always)]
    fn may_have_deferred_work(&self) -> bool {
        debug_assert!(self.deferred || !self.has_deferred_work(), "work would wait for ever");
        self.deferred
    }

    fn has_deferred_work(&self) -> bool {
        self.waits_for_peers()
            || self.retry_backlog
            || !self.teardowns.is_empty()
            || !self.gates.is_empty()
    }

    /// Does the work that waits for the transport or for a free resource. Returns how much it did.
    #[cold]
    fn run_deferred_work<T: Transport>(&mut self, transport: &mut T) -> usize {
        let mut done = self.run_teardowns(transport);
        if self.retry_backlog {
            done += self.drain_backlogs();
        }
        done += self.fetch(transport);
        if !self.connecting.is_empty() {
            self.check_connecting(transport);
        }
        // A stream's packets share datagrams.
        transport.hold();
        done += self.flush_outboxes(transport);
        done += self.advance_all(transport);
        transport.let_go(true);
        for (number, gate) in self.gates.drain(..) {
            transport.set_gate(number, gate);
        }
        self.deferred = self.has_deferred_work();
        done
    }

    /// Whether something here waits for a peer. Then sleep is short, in case the device misses a
    /// wake-up.
    pub(crate) fn waits_for_peers(&self) -> bool {
        !(self.pending.is_empty()
            && self.fetching.is_empty()
            && self.links.outgoing.is_empty()
            && self.connecting.is_empty())
    }

    /// Whether a queue has a completion; `None`: there is no such queue.
    #[inline(always)]
    pub(crate) fn has_completion(&self, queue: CompletionQueue) -> Option<bool> {
        let ring = self.completion_queues.find(queue.slot, queue.generation)?;
        Some(!ring.is_empty())
    }

    /// What a poll finds in a queue; `None`: there is no such queue.
    #[inline(always)]
    pub(crate) fn found(&self, queue: CompletionQueue) -> Option<Found> {
        let ring = self.completion_queues.find(queue.slot, queue.generation)?;
        Some(if ring.is_empty() {
            Found::Nothing
        } else if self.taken >= TAKEN_WITHOUT_LOOK && !planted("looks-when-empty") {
            Found::Many
        } else {
            Found::Completion
        })
    }

    /// The oldest completion of a queue that exists, which the caller takes out of its place at
    /// once.
    #[inline(always)]
    pub(crate) fn take(&mut self, queue: u32) -> Option<Taken<'_>> {
        self.taken = self.taken.wrapping_add(1);
        let ring = &mut self.completion_queues[queue];
        if ring.starved {
            ring.starved = false;
            self.retry_backlog = true;
            self.deferred = true;
        }
        ring.take()
    }

    /// The oldest completion of a queue that exists.
    #[inline(always)]
    pub(crate) fn pop(&mut self, queue: CompletionQueue) -> Option<Completion> {
        self.take(queue.slot).map(Taken::completion)
    }

    /// Tells the senders of a queue pair that its backlog grew or shrank: STOP or GO.
    fn signal(&mut self, slot: u32, signal: Option<Signal>) {
        let Some(signal) = signal else { return };
        let gate = match signal {
            Signal::Stop => {
                self.queue_pairs[slot].tally.stops += 1;
                Gate::Stopped
            }
            Signal::Go => Gate::Open,
        };
        self.gates.push((self.queue_pairs[slot].handle.number, gate));
        self.deferred = true;
    }

    /// The peer broke the protocol: the device closes the link.
    #[cold]
    fn violation(&mut self) -> Verdict {
        self.counters.violations += 1;
        Verdict::Violation
    }

    /// An answer to an operation that is unknown, or has ended.
    #[cold]
    fn stale_operation(&mut self) -> Verdict {
        self.counters.stale_operations += 1;
        Verdict::Taken
    }

    /// The packet stays in its link until there is room.
    #[cold]
    fn stalled(&mut self) -> Verdict {
        self.counters.packets_stalled += 1;
        Verdict::Stalled
    }

    /// Counts why a peer's request was refused.
    #[cold]
    fn count_refusal(&mut self, status: Status) {
        match status {
            Status::WrongKey => self.counters.wrong_keys += 1,
            Status::OutOfBounds => self.counters.out_of_bounds += 1,
            Status::NotPermitted => self.counters.not_permitted += 1,
            Status::Misaligned => self.counters.misaligned += 1,
            _ => {}
        }
    }
}
