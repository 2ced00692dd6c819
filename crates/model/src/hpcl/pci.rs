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

#[cfg(test)]
mod tests {
    use super::*;

    use crate::units::{Bytes, Frequency};

    /// A cycle takes 10 ns and moves 8 B. A burst of at most 64 B costs 3 cycles more, and 5 more
    /// if it reads.
    #[test]
    fn bursts_take_their_cycles() {
        let mut config = config::Config::paper().pci;
        (config.clock, config.width) = (Frequency::from_mhz(100), Bytes::new(8));
        (config.overhead_cycles, config.read_cycles) = (3, 5);
        config.burst = Bytes::new(64);
        let mut schedule = Schedule::new(1, Span::from_ns(10));
        let mut bus = Bus::new(&config, 0);
        assert!(bus.is_idle());
        for (job, bytes, cycles) in [
            (Job::StoreFrame, 64, 3 + 8),
            (Job::StoreFrame, 65, 2 * 3 + 9),
            (Job::StoreFrame, 0, 3),
            (Job::FetchFrame, 128, 2 * (3 + 5) + 16),
            (Job::FetchDescriptors, 8, 3 + 5 + 1),
            (Job::FetchBuffers(1), 8, 3 + 5 + 1),
            (Job::ReadCause, 4, 3 + 5 + 1),
            (Job::WriteStatus, 16, 3 + 2),
            (Job::TransmitDoorbell(1), 4, 3 + 1),
        ] {
            bus.ask(job, bytes, &mut schedule);
            let time = bus.queue.front_since().expect("it was asked for").1.time;
            assert_eq!(time, Span::from_ns(10) * cycles, "{job:?} of {bytes} B");
            assert!(!bus.is_idle());
            assert_eq!(bus.done(&mut schedule), Some(job));
        }
        assert!(bus.audit(schedule.now()).is_ok());

        // Canary: a transaction vanishes.
        bus.ask(Job::StoreFrame, 64, &mut schedule);
        bus.queue.lose();
        assert!(bus.audit(schedule.now()).is_err());
    }
}
