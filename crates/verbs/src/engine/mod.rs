//! The engine: everything that is the same on every device.
//!
//! [`Core`] is a function's state. It knows no transport; the transport reports to it (`Sink`).
//! Code that needs the transport is generic over it. One dynamic call through [`Port`] reaches it,
//! so the compiler optimizes everything below that call together, the transport included.
//!
//! | file | what |
//! |---|---|
//! | `send.rs` | posting a message; the eager path |
//! | `receive.rs` | a packet arrives; matching it with a receive, or with the `backlog.rs` |
//! | `inbox.rs` | messages that the program takes in place |
//! | `batch.rs` | several short messages in one packet, at both ends |
//! | `waiting.rs` | descriptors that could not leave at once |
//! | `undelivered.rs` | short messages that have left and may still be lost |
//! | `rendezvous.rs` | messages longer than a packet |
//! | `put.rs`, `get.rs`, `atomic.rs`, `event.rs` | one-sided operations, at both ends |
//! | `outbox.rs` | answers and streams to peers |
//! | `connect.rs` | connections |
//! | `close.rs` | the end of queue pairs, connections and links |
//! | `links.rs`, `regions.rs`, `entry.rs`, `payload.rs` | state and packet layouts of the others |
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
mod entry;
mod event;
mod get;
mod inbox;
mod links;
mod objects;
mod outbox;
mod payload;
mod port;
mod put;
mod receive;
mod regions;
mod rendezvous;
mod send;
mod undelivered;
mod waiting;

pub use inbox::Inbox;
pub use port::Port;

use crate::completion_queue::{CompletionRing, Hand, Taken};
use crate::shared_receive::SharedReceives;
use crate::table::Table;
use crate::{CompletionQueue, FunctionCounters, FunctionOptions, Limits, QueuePairCounters};
use backlog::Backlog;
use batch::Batch;
use bellwire_device::{
    Completion, Error, FunctionAddress, Gate, LinkId, Result, Status, Transport, TransportLimits,
    Verdict,
};
use bellwire_protocol::{OpId, Outstanding, Signal};
use bellwire_ring::memory::View;
use close::Ending;
use connect::Listening;
use entry::{Entry, Held, HeldState, Passed, Route, Routing};
use inbox::Shown;
use links::Links;
use regions::Regions;
use rendezvous::Transfer;
use std::collections::VecDeque;
use waiting::{Operation, Stage};

/// Most packets that one call of `progress` takes.
const POLL_BUDGET: usize = 64;
/// Bytes that a direct put, get or fetch moves in one turn, so that a huge one does not delay the
/// others.
const SLICE_BYTES: usize = 1 << 20;
/// Copies of at least this size bypass the cache. Both ways are equally fast at 8 MiB, measured on
/// a machine with 32 MiB of last-level cache.
const STREAMING_BYTES: usize = 8 << 20;
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
    pub(crate) queue_pairs: Table<Entry>,
    pub(crate) completion_queues: Table<CompletionRing>,
    pub(crate) shared_receives: Table<SharedReceives>,
    /// Channels that are open: number and slot, by number.
    channels: Vec<(u32, u32)>,
    /// Takes the completion that a program is polling for, past the queue's ring.
    hand: Hand,
    links: Links,
    regions: Regions,
    /// Room for short messages that leave in one packet.
    batch: Batch,
    backlog: Backlog,
    operations: Outstanding<Operation>,
    transfers: Outstanding<Transfer>,

    /// Queue pairs with descriptors to try again, round-robin.
    pending: VecDeque<u32>,
    /// Long messages to fetch, round-robin.
    fetching: VecDeque<OpId>,
    /// Queue pairs with messages in the backlog.
    backlogged: Vec<u32>,
    /// A receive, a completion entry or a transfer that the backlog waits for may be free.
    retry_backlog: bool,
    /// Ends that a packet caused and that need the transport.
    endings: Vec<Ending>,
    /// Gates to publish.
    gates: Vec<(u32, Gate)>,
    listening: Vec<Listening>,
    /// Queue pairs that request a connection.
    connecting: Vec<u32>,
    /// Connection requests so far.
    requests: u64,

    /// The device has reported a standstill: nothing will ever happen on it again.
    pub(crate) stands_still: bool,
    pub(crate) counters: FunctionCounters,
    /// Counters of queue pairs that were destroyed.
    pub(crate) retired: QueuePairCounters,
    pub(crate) stat: crate::stat::Stat,
}

impl Core {
    /// The state of the function at `address`.
    pub(crate) fn new(
        address: FunctionAddress,
        device: TransportLimits,
        seed: Option<u64>,
        options: &FunctionOptions,
    ) -> Result<Core> {
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
            hand: Hand::new(),
            links: Links::new(),
            regions: Regions::new(address, limits.regions, seed),
            batch: batch::room(),
            backlog: Backlog::new(options.backlog_bytes, limits.queue_pairs),
            operations: Outstanding::new(options.outstanding as u16),
            transfers: Outstanding::new(TRANSFERS),
            pending: VecDeque::new(),
            fetching: VecDeque::new(),
            backlogged: Vec::new(),
            retry_backlog: false,
            endings: Vec::new(),
            gates: Vec::new(),
            listening: Vec::new(),
            connecting: Vec::new(),
            requests: 0,
            stands_still: false,
            counters: FunctionCounters::default(),
            retired: QueuePairCounters::default(),
            stat: crate::stat::Stat::new(),
        })
    }

    /// Receives packets, then sends what waits. Returns how much it did.
    #[inline(always)]
    pub(crate) fn progress<T: Transport>(&mut self, transport: &mut T) -> usize {
        let done = self.look(transport);
        if self.has_errands() { done + self.run_errands(transport) } else { done }
    }

    /// Makes progress for a program that polls `queue`, which is empty. The first message that
    /// takes the fast path goes to the program by the hand, past the queue's ring. Returns the
    /// oldest completion, if there is one.
    #[inline(always)]
    pub(crate) fn poll<T: Transport>(
        &mut self,
        transport: &mut T,
        queue: u32,
    ) -> Option<Taken<'_>> {
        self.hand.open(queue);
        self.look(transport);
        self.found(transport, queue)
    }

    /// [`Core::poll`], which shows messages to `inbox` first.
    pub(crate) fn poll_with<T: Transport>(
        &mut self,
        transport: &mut T,
        queue: u32,
        inbox: &mut dyn Inbox,
    ) -> Option<Taken<'_>> {
        self.hand.open(queue);
        transport.poll(&mut Shown { core: self, queue, inbox }, POLL_BUDGET);
        self.note_standstill(transport);
        self.found(transport, queue)
    }

    /// Runs the errands that a look has left, and returns the oldest completion of `queue`.
    #[inline(always)]
    fn found<T: Transport>(&mut self, transport: &mut T, queue: u32) -> Option<Taken<'_>> {
        if self.has_errands() {
            self.run_errands(transport);
        }
        if self.hand.is_full() {
            return self.hand.close();
        }
        self.hand.close();
        self.take(queue)
    }

    #[inline(always)]
    fn look<T: Transport>(&mut self, transport: &mut T) -> usize {
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

    /// One test for all errands: there are nearly always none.
    #[inline(always)]
    fn has_errands(&self) -> bool {
        let errands = self.endings.len()
            | self.retry_backlog as usize
            | self.fetching.len()
            | self.connecting.len()
            | self.links.outgoing.len()
            | self.pending.len()
            | self.gates.len();
        errands != 0
    }

    /// Does the work that waits for the transport or for a free resource. Returns how much it did.
    #[cold]
    fn run_errands<T: Transport>(&mut self, transport: &mut T) -> usize {
        let mut done = 0;
        if !self.endings.is_empty() {
            done += self.carry_out_endings(transport);
        }
        if self.retry_backlog {
            done += self.drain_backlogs();
        }
        if !self.fetching.is_empty() {
            done += self.fetch(transport);
        }
        if !self.connecting.is_empty() {
            self.check_connecting(transport);
        }
        if !self.links.outgoing.is_empty() {
            done += self.flush_outboxes(transport);
        }
        if !self.pending.is_empty() {
            done += self.advance_all(transport);
        }
        if !self.gates.is_empty() {
            for (number, gate) in self.gates.drain(..) {
                transport.set_gate(number, gate);
            }
        }
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

    /// The oldest completion of a queue that exists, which the caller takes out of its place at
    /// once.
    #[inline(always)]
    pub(crate) fn take(&mut self, queue: u32) -> Option<Taken<'_>> {
        let ring = &mut self.completion_queues[queue];
        if ring.starved {
            ring.starved = false;
            self.retry_backlog = true;
        }
        ring.take()
    }

    /// The oldest completion of a queue that exists.
    #[inline(always)]
    pub(crate) fn pop(&mut self, queue: CompletionQueue) -> Option<Completion> {
        self.take(queue.slot).map(Taken::completion)
    }

    /// Ends a posted descriptor. Its reservation becomes its completion, or is released if the
    /// descriptor is unsignaled and has succeeded.
    fn finish(&mut self, slot: u32, signaled: bool, completion: Completion) {
        let entry = &mut self.queue_pairs[slot];
        entry.posted_sends -= 1;
        let tally = &mut entry.tally;
        tally.sends_completed += 1;
        if !completion.status.is_success() {
            tally.sends_failed += 1;
            entry.last_error = Some(completion.status);
        }
        let ring = &mut self.completion_queues[entry.send_completions];
        if signaled || !completion.status.is_success() {
            ring.push_reserved(completion);
        } else {
            ring.release();
            self.retry_backlog |= std::mem::take(&mut ring.starved);
        }
    }

    /// Ends a receive that has a reservation. Its completion waits while an older message of the
    /// same sender is unfinished.
    #[cold]
    fn finish_receive(&mut self, slot: u32, completion: Completion) {
        let entry = &mut self.queue_pairs[slot];
        let tally = &mut entry.tally;
        tally.receives_completed += 1;
        if !completion.status.is_success() {
            tally.receives_failed += 1;
            entry.last_error = Some(completion.status);
        }
        self.keep_order(slot, completion);
    }

    /// Reports a reserved completion of the receive side in the sender's order.
    fn keep_order(&mut self, slot: u32, completion: Completion) {
        let entry = &mut self.queue_pairs[slot];
        if entry.held.is_empty() {
            self.completion_queues[entry.receive_completions].push_reserved(completion);
        } else {
            let source = completion.peer;
            entry.held.push_back(Held { source, state: HeldState::Done(completion) });
            self.release_held(slot);
        }
    }

    /// Reports held completions that no unfinished message of the same sender precedes.
    fn release_held(&mut self, slot: u32) {
        let entry = &mut self.queue_pairs[slot];
        let ring = &mut self.completion_queues[entry.receive_completions];
        // The common case: they end in the order of arrival.
        while let Some(Held { state: HeldState::Done(_), .. }) = entry.held.front() {
            let Some(Held { state: HeldState::Done(completion), .. }) = entry.held.pop_front()
            else {
                unreachable!("it was looked at")
            };
            ring.push_reserved(completion);
        }
        if !entry.held.iter().any(|held| matches!(held.state, HeldState::Done(_))) {
            return;
        }
        let mut busy: Vec<bellwire_device::Address> = Vec::new();
        let mut kept = VecDeque::with_capacity(entry.held.len());
        for held in entry.held.drain(..) {
            match held.state {
                HeldState::Done(completion) if !busy.contains(&held.source) => {
                    ring.push_reserved(completion);
                }
                HeldState::Done(_) => kept.push_back(held),
                HeldState::UnderWay(_) => {
                    busy.push(held.source);
                    kept.push_back(held);
                }
            }
        }
        entry.held = kept;
    }

    /// The slot of the queue pair with the public number `number`.
    #[inline(always)]
    fn slot_of(&self, number: u32) -> Option<u32> {
        if number < bellwire_device::Address::CHANNEL_BASE {
            let slot = number.wrapping_sub(1);
            self.queue_pairs.at(slot).filter(|entry| entry.handle.number == number)?;
            return Some(slot);
        }
        let place = self.channels.binary_search_by_key(&number, |channel| channel.0).ok()?;
        Some(self.channels[place].1)
    }

    /// The link to `peer`. Starts one if there is none.
    #[inline]
    fn link_to<T: Transport>(
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
    fn open_link<T: Transport>(
        &mut self,
        transport: &mut T,
        peer: FunctionAddress,
        patience: std::time::Duration,
    ) -> Result<LinkId> {
        let link = transport.link(peer, patience)?;
        self.learn(link, peer);
        Ok(link)
    }

    /// Remembers a link that we opened, or that a peer did.
    #[inline]
    fn learn(&mut self, link: LinkId, peer: FunctionAddress) {
        if self.links.find(link).is_none() && self.links.learn(link, peer) {
            self.counters.links_opened += 1;
        }
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
    }

    /// The peer broke the protocol: the device closes the link.
    #[cold]
    fn violation(&mut self) -> Verdict {
        self.counters.violations += 1;
        Verdict::Violation
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

/// How long a link may take to come up before its descriptors complete as [`Status::Unreachable`].
const LINK_PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);

/// A part of a copy of `whole` bytes. Large copies bypass the cache.
fn around_cache(part: View<'_>, whole: u64) -> View<'_> {
    if whole >= STREAMING_BYTES as u64 { part.streaming() } else { part }
}
