//! The bus between memory, processor and NIC: one transaction at a time, first come, first served.
//! A transaction is one or more bursts, without bursts of others in between.

use super::config;
use crate::engine::{Schedule, Server};
use crate::stats::{Imbalance, Queue, Watched};
use crate::units::{Span, Time};

use super::machine::ClusterEvent;

/// What a transaction is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// The driver announces frames to transmit.
    TransmitDoorbell(u32),
    /// The NIC fetches the descriptors of a frame.
    FetchDescriptors,
    /// The NIC reads a frame.
    FetchFrame,
    /// The NIC writes a transmit completion.
    WriteStatus,
    /// The NIC writes a frame to memory.
    StoreFrame,
    /// The NIC writes a receive completion.
    StoreDescriptor,
    /// The driver announces new receive buffers.
    ReceiveDoorbell(u32),
    /// The NIC fetches their descriptors.
    FetchBuffers(u32),
    /// The processor reads and clears the interrupt cause, and waits for the answer.
    ReadCause,
}

struct Transaction {
    job: Job,
    time: Span,
}

/// The bus of one node.
pub struct Bus {
    node: u16,
    cycle: Span,
    width: u64,
    overhead: Span,
    read_wait: Span,
    burst: u64,
    /// Transactions, from request to end.
    queue: Queue<Transaction>,
    server: Server,
}

impl Bus {
    /// The idle bus of a node.
    pub fn new(config: &config::Pci, node: u16) -> Bus {
        let cycle = config.clock.period();
        Bus {
            node,
            cycle,
            width: config.width.count(),
            overhead: cycle * config.overhead_cycles,
            read_wait: cycle * config.read_cycles,
            burst: config.burst.count(),
            queue: Queue::default(),
            server: Server::default(),
        }
    }

    /// Requests a transaction; the event `BusDone` ends it.
    pub fn ask(&mut self, job: Job, bytes: u64, schedule: &mut Schedule<ClusterEvent>) {
        let reads = matches!(
            job,
            Job::FetchDescriptors | Job::FetchFrame | Job::FetchBuffers(_) | Job::ReadCause
        );
        let wait = if reads { self.read_wait } else { Span::ZERO };
        let bursts = bytes.div_ceil(self.burst).max(1);
        let time = (self.overhead + wait) * bursts + self.cycle * bytes.div_ceil(self.width);
        self.queue.push(schedule.now(), Transaction { job, time });
        if self.queue.len() == 1 {
            self.begin(schedule);
        }
    }

    /// Ends the transaction and starts the next one.
    pub fn done(&mut self, schedule: &mut Schedule<ClusterEvent>) -> Option<Job> {
        let Transaction { job, .. } = self.queue.pop(schedule.now())?;
        self.begin(schedule);
        Some(job)
    }

    /// Whether no transaction is requested.
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// Checks Little's law.
    ///
    /// # Errors
    /// The law that does not hold.
    pub fn audit(&self, now: Time) -> Result<(), Imbalance> {
        self.queue.audit(&format!("bus of node {}", self.node), now)
    }

    fn begin(&mut self, schedule: &mut Schedule<ClusterEvent>) {
        if let Some((asked, first)) = self.queue.front_since() {
            let ends = self.server.reserve(asked, first.time).ends;
            schedule.at(ends, ClusterEvent::BusDone(self.node));
        }
    }
}
