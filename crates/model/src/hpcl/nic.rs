//! The gigabit NIC: two descriptor rings in host memory, two DMA engines, two FIFOs between bus and
//! line, and an interrupt with a minimum gap.
//!
//! ```text
//!   driver --ring--> [fetch descriptors, fetch frame, write status] --> transmit FIFO --> line
//!   driver <--ring-- [store frame, store descriptor] <-- receive FIFO <-- line
//! ```

use std::collections::VecDeque;

use super::config;
use super::frame::Frame;
use super::machine::ClusterEvent;
use super::pci::{Bus, Job};
use super::switch::{Line, line};
use crate::engine::Schedule;
use crate::stats::{Imbalance, Queue, Watched};
use crate::units::{Span, Time};

/// Bytes of a register.
const REGISTER_BYTES: u64 = 4;

/// A frame in the transmit ring.
struct Posted {
    frame: Frame,
    descriptors: u32,
}

/// The NIC of one node.
pub struct Nic {
    node: u16,
    descriptor_bytes: u64,
    transmit_descriptors: u32,
    receive_descriptors: u32,
    transmit_fifo_bytes: u64,
    receive_fifo_bytes: u64,
    gap: Span,

    /// Frames that the driver has posted, oldest first; the NIC knows of the first `known`.
    posted: VecDeque<Posted>,
    known: u32,
    /// The frame being fetched.
    fetching: Option<Posted>,
    /// Descriptors that the NIC has completed and the driver has not reclaimed.
    sent_descriptors: u32,
    /// Frames that wait for the line.
    transmit_fifo: VecDeque<Frame>,
    transmit_fifo_fill: u64,
    /// The line to the switch.
    pub line: Line,

    /// Frames that wait for the bus.
    receive_fifo: Queue<Frame>,
    receive_fifo_fill: u64,
    storing: Option<Frame>,
    /// Buffers known to the NIC, buffers filled, buffers emptied by the driver, and buffers whose
    /// descriptors are being fetched.
    free: u32,
    stored: VecDeque<Frame>,
    emptied: u32,
    refilling: u32,

    /// An event that the processor was not told about.
    cause: bool,
    /// Whether the interrupt line is raised.
    raised: bool,
    last_raised: Option<Time>,
    gap_told: bool,

    /// Frames dropped because the receive FIFO was full.
    pub missed: u64,
    /// Frames received.
    pub received: u64,
    /// Frames whose transmission has begun.
    pub transmitted: u64,
    /// Interrupts raised, whether or not the processor took them.
    pub interrupts_raised: u64,
}

impl Nic {
    /// A NIC whose driver has filled its ring with buffers.
    pub fn new(config: &config::Nic, wire: &config::Wire, node: u16) -> Nic {
        Nic {
            node,
            descriptor_bytes: config.descriptor.count(),
            transmit_descriptors: config.transmit_descriptors,
            receive_descriptors: config.receive_descriptors,
            transmit_fifo_bytes: config.transmit_fifo.count(),
            receive_fifo_bytes: config.receive_fifo.count(),
            gap: config.interrupt_gap,
            posted: VecDeque::new(),
            known: 0,
            fetching: None,
            sent_descriptors: 0,
            transmit_fifo: VecDeque::new(),
            transmit_fifo_fill: 0,
            line: line(
                wire,
                format!("line from node {node} to the switch"),
                ClusterEvent::FrameAtSwitch(node),
                ClusterEvent::LineFree(node),
            ),
            receive_fifo: Queue::default(),
            receive_fifo_fill: 0,
            storing: None,
            free: config.receive_descriptors,
            stored: VecDeque::new(),
            emptied: 0,
            refilling: 0,
            cause: false,
            raised: false,
            last_raised: None,
            gap_told: false,
            missed: 0,
            received: 0,
            transmitted: 0,
            interrupts_raised: 0,
        }
    }

    /// Sets the minimum gap between interrupts, as a driver can at any time.
    pub fn set_interrupt_gap(&mut self, gap: Span) {
        self.gap = gap;
    }

    /// The driver posts a frame (`pieces` of memory, one descriptor each) and rings the doorbell.
    ///
    /// # Errors
    /// The frame, if the ring is full.
    pub fn post(
        &mut self,
        frame: Frame,
        pieces: u32,
        bus: &mut Bus,
        schedule: &mut Schedule<ClusterEvent>,
    ) -> Result<(), Frame> {
        if self.descriptors_in_use() + pieces > self.transmit_descriptors {
            return Err(frame);
        }
        self.posted.push_back(Posted { frame, descriptors: pieces });
        bus.ask(Job::TransmitDoorbell(1), REGISTER_BYTES, schedule);
        Ok(())
    }

    /// The driver reclaims completed descriptors; returns their number.
    pub fn clean(&mut self) -> u32 {
        std::mem::take(&mut self.sent_descriptors)
    }

    /// The driver takes the oldest frame from the receive ring.
    pub fn take(&mut self) -> Option<Frame> {
        let frame = self.stored.pop_front()?;
        self.emptied += 1;
        Some(frame)
    }

    /// The driver replaces the buffers that it has emptied and rings the doorbell; returns their
    /// number.
    pub fn refill(&mut self, bus: &mut Bus, schedule: &mut Schedule<ClusterEvent>) -> u32 {
        let count = std::mem::take(&mut self.emptied);
        if count > 0 {
            self.refilling += count;
            bus.ask(Job::ReceiveDoorbell(count), REGISTER_BYTES, schedule);
        }
        count
    }

    /// The processor reads the interrupt cause.
    pub fn ask_cause(&self, bus: &mut Bus, schedule: &mut Schedule<ClusterEvent>) {
        bus.ask(Job::ReadCause, REGISTER_BYTES, schedule);
    }

    /// A transaction is over.
    pub fn bus_done(&mut self, job: Job, bus: &mut Bus, schedule: &mut Schedule<ClusterEvent>) {
        match job {
            Job::TransmitDoorbell(frames) => {
                self.known += frames;
                self.fetch(bus, schedule);
            }
            Job::FetchDescriptors => {
                let bytes = self.fetching.as_ref().map_or(0, |one| one.frame.memory_bytes());
                bus.ask(Job::FetchFrame, bytes as u64, schedule);
            }
            Job::FetchFrame => {
                bus.ask(Job::WriteStatus, self.descriptor_bytes, schedule);
                if let Some(Posted { frame, descriptors }) = self.fetching.take() {
                    self.sent_descriptors += descriptors;
                    self.transmit_fifo.push_back(frame);
                    self.transmit(schedule);
                }
                self.fetch(bus, schedule);
            }
            Job::WriteStatus => self.happened(schedule),
            Job::StoreFrame => bus.ask(Job::StoreDescriptor, self.descriptor_bytes, schedule),
            Job::StoreDescriptor => {
                if let Some(frame) = self.storing.take() {
                    self.stored.push_back(frame);
                    self.happened(schedule);
                }
                self.store(bus, schedule);
            }
            Job::ReceiveDoorbell(count) => {
                let bytes = self.descriptor_bytes * u64::from(count);
                bus.ask(Job::FetchBuffers(count), bytes, schedule);
            }
            Job::FetchBuffers(count) => {
                self.refilling -= count;
                self.free += count;
                self.store(bus, schedule);
            }
            Job::ReadCause => (self.cause, self.raised) = (false, false),
        }
    }

    /// Transmits the next frame if the line is free.
    pub fn transmit(&mut self, schedule: &mut Schedule<ClusterEvent>) {
        while let Some(frame) = self.transmit_fifo.pop_front() {
            let bytes = frame.memory_bytes() as u64;
            match self.line.offer(schedule, frame.wire_bytes() as u32, frame) {
                Ok(()) => {
                    self.transmit_fifo_fill -= bytes;
                    self.transmitted += 1;
                }
                Err(frame) => return self.transmit_fifo.push_front(frame),
            }
        }
    }

    /// Receives a frame from the line.
    pub fn arrive(&mut self, frame: Frame, bus: &mut Bus, schedule: &mut Schedule<ClusterEvent>) {
        self.received += 1;
        let bytes = frame.memory_bytes() as u64;
        if self.receive_fifo_fill + bytes > self.receive_fifo_bytes {
            self.missed += 1;
            return;
        }
        self.receive_fifo_fill += bytes;
        self.receive_fifo.push(schedule.now(), frame);
        self.store(bus, schedule);
    }

    /// Whether the interrupt line is raised.
    pub fn is_raised(&self) -> bool {
        self.raised
    }

    /// The interrupt gap is over.
    pub fn gap_over(&mut self, schedule: &mut Schedule<ClusterEvent>) {
        self.gap_told = false;
        if self.cause {
            self.raise(schedule);
        }
    }

    /// Checks that frames and descriptors are conserved, and Little's law.
    ///
    /// # Errors
    /// The law that does not hold.
    pub fn audit(&self, now: Time) -> Result<(), Imbalance> {
        let queue = || format!("NIC of node {}", self.node);
        self.line.audit(now)?;
        self.receive_fifo.audit(&queue(), now)?;
        let buffers = self.free
            + u32::from(self.storing.is_some())
            + self.stored.len() as u32
            + self.emptied
            + self.refilling;
        if buffers != self.receive_descriptors {
            return Err(Imbalance {
                queue: queue(),
                law: "free, filling, filled, emptied and new buffers do not make the ring",
                details: format!("{buffers}, ring {}", self.receive_descriptors),
            });
        }
        Ok(())
    }

    /// Whether its FIFOs and rings hold no frame.
    pub fn is_empty(&self) -> bool {
        self.posted.is_empty()
            && self.fetching.is_none()
            && self.transmit_fifo.is_empty()
            && self.receive_fifo.is_empty()
            && self.storing.is_none()
            && self.stored.is_empty()
            && self.line.is_empty()
    }

    /// Canary: loses a buffer that the driver emptied.
    #[doc(hidden)]
    pub fn forget_a_buffer(&mut self) {
        self.free -= 1;
    }

    fn descriptors_in_use(&self) -> u32 {
        let posted: u32 = self.posted.iter().map(|one| one.descriptors).sum();
        let fetching = self.fetching.as_ref().map_or(0, |one| one.descriptors);
        posted + fetching + self.sent_descriptors
    }

    /// Begins to fetch the next frame, if there is one and the FIFO has room.
    fn fetch(&mut self, bus: &mut Bus, schedule: &mut Schedule<ClusterEvent>) {
        if self.fetching.is_some() || self.known == 0 {
            return;
        }
        let Some(first) = self.posted.front() else { return };
        let bytes = first.frame.memory_bytes() as u64;
        if self.transmit_fifo_fill + bytes > self.transmit_fifo_bytes {
            return;
        }
        self.transmit_fifo_fill += bytes;
        self.known -= 1;
        self.fetching = self.posted.pop_front();
        let descriptors = self.fetching.as_ref().map_or(0, |one| one.descriptors);
        let bytes = self.descriptor_bytes * u64::from(descriptors);
        bus.ask(Job::FetchDescriptors, bytes, schedule);
    }

    /// The line is free, which makes room in the transmit FIFO.
    pub fn line_free(&mut self, bus: &mut Bus, schedule: &mut Schedule<ClusterEvent>) {
        self.transmit(schedule);
        self.fetch(bus, schedule);
    }

    /// Begins to store the next frame, if there is one and a buffer is free.
    fn store(&mut self, bus: &mut Bus, schedule: &mut Schedule<ClusterEvent>) {
        if self.storing.is_some() || self.free == 0 {
            return;
        }
        let Some(frame) = self.receive_fifo.pop(schedule.now()) else { return };
        let bytes = frame.memory_bytes() as u64;
        self.receive_fifo_fill -= bytes;
        self.free -= 1;
        self.storing = Some(frame);
        bus.ask(Job::StoreFrame, bytes, schedule);
    }

    /// Notes an event for the processor, and raises the interrupt if the gap allows.
    fn happened(&mut self, schedule: &mut Schedule<ClusterEvent>) {
        self.cause = true;
        if self.raised {
            return;
        }
        let due = self.last_raised.map_or(schedule.now(), |last| last + self.gap);
        if due <= schedule.now() {
            self.raise(schedule);
        } else if !self.gap_told {
            self.gap_told = true;
            schedule.at(due, ClusterEvent::GapOver(self.node));
        }
    }

    fn raise(&mut self, schedule: &mut Schedule<ClusterEvent>) {
        if !self.raised {
            self.raised = true;
            self.last_raised = Some(schedule.now());
            self.interrupts_raised += 1;
            schedule.after(Span::ZERO, ClusterEvent::Interrupt(self.node));
        }
    }
}
