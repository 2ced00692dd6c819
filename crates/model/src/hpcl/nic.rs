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

#[cfg(test)]
mod tests {
    use super::*;

    use super::super::config::Config;
    use super::super::frame::Payload;
    use crate::engine::{Ended, Model, Simulation};
    use crate::units::{Bytes, Frequency, Rate};

    /// A NIC and its bus alone. A cycle of the bus takes 10 ns and moves 8 B; no burst costs more.
    /// A byte takes 8 ns on the line.
    struct Rig {
        nic: Nic,
        bus: Bus,
        interrupts: Vec<u64>,
        /// The last bytes of frames on the line, and when they arrive, in ns.
        left: Vec<(u64, u64)>,
    }

    impl Model for Rig {
        type Event = ClusterEvent;

        fn handle(&mut self, event: ClusterEvent, schedule: &mut Schedule<ClusterEvent>) {
            match event {
                ClusterEvent::BusDone(_) => {
                    let job = self.bus.done(schedule).expect("a transaction");
                    self.nic.bus_done(job, &mut self.bus, schedule);
                }
                ClusterEvent::Interrupt(_) => self.interrupts.push(schedule.now().ps() / 1000),
                ClusterEvent::GapOver(_) => self.nic.gap_over(schedule),
                ClusterEvent::LineFree(_) => self.nic.line_free(&mut self.bus, schedule),
                ClusterEvent::FrameAtSwitch(_) => {
                    while let Some(frame) = self.nic.line.take(schedule) {
                        self.left.push((frame.witness() & 0xff, schedule.now().ps() / 1000));
                    }
                }
                event => panic!("{event:?}"),
            }
        }

        fn is_idle(&self) -> bool {
            self.bus.is_idle()
        }
    }

    fn rig(change: impl FnOnce(&mut Config)) -> Simulation<Rig> {
        let mut config = Config::paper();
        config.wire.rate = Rate::from_bytes_per_second(125_000_000);
        config.wire.cable = Span::ZERO;
        config.pci.clock = Frequency::from_mhz(100);
        config.pci.width = Bytes::new(8);
        (config.pci.overhead_cycles, config.pci.read_cycles) = (0, 0);
        config.pci.burst = Bytes::new(1 << 16);
        (config.nic.transmit_descriptors, config.nic.receive_descriptors) = (4, 4);
        config.nic.descriptor = Bytes::new(16);
        (config.nic.transmit_fifo, config.nic.receive_fifo) = (Bytes::new(2048), Bytes::new(2048));
        config.nic.interrupt_gap = Span::from_ns(5000);
        change(&mut config);
        let nic = Nic::new(&config.nic, &config.wire, 0);
        let model =
            Rig { nic, bus: Bus::new(&config.pci, 0), interrupts: Vec::new(), left: Vec::new() };
        Simulation { model, schedule: Schedule::new(1, Span::from_ns(10)) }
    }

    /// A frame that takes this many bytes in memory, and ends with `last`.
    fn frame(memory_bytes: usize, last: u8) -> Frame {
        let mut bytes = vec![0; memory_bytes - 14];
        let at = bytes.len() - 4;
        bytes[at] = last;
        let frame = Frame { from: 0, to: 1, payload: Payload::Hpcl(bytes.into()) };
        assert_eq!(frame.memory_bytes(), memory_bytes);
        frame
    }

    impl Simulation<Rig> {
        fn post(&mut self, frame: Frame, pieces: u32) -> bool {
            let Simulation { model, schedule } = self;
            model.nic.post(frame, pieces, &mut model.bus, schedule).is_ok()
        }

        fn arrive(&mut self, frame: Frame) {
            let Simulation { model, schedule } = self;
            model.nic.arrive(frame, &mut model.bus, schedule);
        }

        fn settle(&mut self) {
            assert_eq!(self.run(Time::NEVER), Ended::Quiet);
            assert_eq!(self.model.nic.audit(self.now()).map_err(|it| it.to_string()), Ok(()));
        }
    }

    /// One frame of 800 B in two pieces: the doorbell takes a cycle, two descriptors of 16 B four,
    /// the frame 100 cycles. Then it is on the line for 824 B of 8 ns, while the status is written
    /// in two cycles, which interrupts.
    #[test]
    fn a_frame_is_fetched_and_sent() {
        let mut it = rig(|_| ());
        assert!(it.model.nic.is_empty());
        assert!(it.post(frame(800, 7), 2));
        assert!(!it.model.nic.is_empty());
        assert_eq!(it.model.nic.descriptors_in_use(), 2);
        it.settle();
        let on_line = 10 + 40 + 1000;
        assert_eq!(it.model.left, [(7, on_line + 824 * 8)]);
        assert_eq!(it.model.interrupts, [on_line + 20]);
        let nic = &mut it.model.nic;
        assert_eq!((nic.transmitted, nic.interrupts_raised, nic.transmit_fifo_fill), (1, 1, 0));
        assert_eq!((nic.known, nic.posted.len(), nic.is_raised()), (0, 0, true));
        assert_eq!((nic.descriptors_in_use(), nic.clean(), nic.descriptors_in_use()), (2, 2, 0));
        assert!(nic.is_empty());
    }

    /// The ring has four descriptors: in use are those posted, fetched, and not reclaimed.
    #[test]
    fn the_transmit_ring_is_bounded() {
        let mut it = rig(|_| ());
        assert!(it.post(frame(100, 1), 1) && it.post(frame(100, 2), 2));
        assert!(!it.post(frame(100, 3), 2), "five are more than four");
        assert_eq!(it.run(Time::ZERO + Span::from_ns(15)), Ended::TimeUp);
        assert_eq!(it.model.nic.descriptors_in_use(), 3, "one is being fetched");
        assert!(it.post(frame(100, 4), 1) && !it.post(frame(100, 5), 1));
        it.settle();
        assert!(it.model.left.iter().map(|it| it.0).eq([1, 2, 4]));
        assert!(!it.post(frame(100, 6), 1), "none is reclaimed");
        assert_eq!(it.model.nic.clean(), 4);
        assert!(it.post(frame(100, 6), 4));
    }

    /// The FIFO for the line holds 2,048 B: two frames of 1,024, and the third is fetched when the
    /// first has begun to leave.
    #[test]
    fn the_transmit_fifo_is_bounded() {
        for (third, at_once) in [(1024, true), (1025, false)] {
            let mut it = rig(|config| config.wire.rate = Rate::from_bytes_per_second(1_000_000));
            // The first leaves at once, and takes the line for a millisecond.
            assert!(it.post(frame(100, 1), 1) && it.post(frame(1024, 2), 1));
            assert!(it.post(frame(third, 3), 1));
            assert_eq!(it.run(Time::ZERO + Span::from_ns(90_000)), Ended::TimeUp);
            let nic = &it.model.nic;
            let waiting = if at_once { 2 } else { 1 };
            assert_eq!((nic.transmitted, nic.transmit_fifo.len()), (1, waiting), "{third}");
            assert_eq!(nic.transmit_fifo_fill, if at_once { 2048 } else { 1024 });
            assert_eq!((nic.known, nic.posted.len()), (3 - 1 - waiting as u32, 2 - waiting));
            it.settle();
            assert!(it.model.left.iter().map(|it| it.0).eq([1, 2, 3]));
            assert_eq!((it.model.nic.transmit_fifo_fill, it.model.nic.transmitted), (0, 3));
        }
    }

    /// A frame of 800 B is stored in 100 cycles and its descriptor in two. Then it interrupts; the
    /// next interrupt comes 5 us later, if something happened by then.
    #[test]
    fn frames_are_stored() {
        let mut it = rig(|_| ());
        it.arrive(frame(800, 1));
        assert_eq!((it.model.nic.receive_fifo_fill, it.model.nic.free), (0, 3), "it is on the bus");
        it.arrive(frame(80, 2));
        assert_eq!(it.model.nic.receive_fifo_fill, 80);
        assert!(!it.model.nic.is_empty());
        it.settle();
        assert_eq!(it.model.interrupts, [1020]);
        assert_eq!((it.model.nic.received, it.model.nic.missed), (2, 0));
        assert_eq!((it.model.nic.receive_fifo_fill, it.model.nic.free), (0, 2));
        let Simulation { model, schedule } = &mut it;
        model.nic.ask_cause(&mut model.bus, schedule);
        it.settle();
        assert!(!it.model.nic.is_raised());
        it.arrive(frame(80, 3));
        it.settle();
        assert_eq!(it.model.interrupts, [1020, 6020]);
        let taken = std::iter::from_fn(|| it.model.nic.take()).map(|it| it.witness() & 0xff);
        assert!(taken.eq([1, 2, 3]));
        assert!(it.model.nic.is_empty());
        assert_eq!((it.model.nic.free, it.model.nic.emptied), (1, 3));
        // The doorbell takes a cycle, and three descriptors six.
        let before = it.now();
        let Simulation { model, schedule } = &mut it;
        assert_eq!(model.nic.refill(&mut model.bus, schedule), 3);
        assert_eq!((model.nic.emptied, model.nic.refilling), (0, 3));
        it.settle();
        assert_eq!(it.now().since(before), Span::from_ns(70));
        assert_eq!((it.model.nic.free, it.model.nic.refilling), (4, 0));
        let Simulation { model, schedule } = &mut it;
        assert_eq!(model.nic.refill(&mut model.bus, schedule), 0);
        assert!(it.model.bus.is_idle(), "no doorbell without a buffer");
        it.model.nic.set_interrupt_gap(Span::from_ns(7000));
        let Simulation { model, schedule } = &mut it;
        model.nic.ask_cause(&mut model.bus, schedule);
        it.arrive(frame(80, 4));
        it.settle();
        assert_eq!(it.model.interrupts, [1020, 6020, 13_020]);
        assert_eq!(it.model.nic.interrupts_raised, 3);
    }

    /// The FIFO for the bus holds 2,048 B, and what does not fit is missed. Frames without a buffer
    /// stay there.
    #[test]
    fn the_receive_fifo_is_bounded() {
        let mut it = rig(|config| config.nic.receive_descriptors = 2);
        it.arrive(frame(100, 1));
        it.arrive(frame(1024, 2));
        it.arrive(frame(1025, 3));
        assert_eq!((it.model.nic.missed, it.model.nic.receive_fifo_fill), (1, 1024));
        it.arrive(frame(1024, 4));
        assert_eq!((it.model.nic.missed, it.model.nic.receive_fifo_fill), (1, 2048));
        it.settle();
        assert_eq!((it.model.nic.stored.len(), it.model.nic.receive_fifo_fill), (2, 1024));
        assert!(!it.model.nic.is_empty());
        it.model.nic.stored.clear();
        assert!(!it.model.nic.is_empty(), "one waits in the FIFO");
        it.model.nic.stored.push_back(frame(100, 1));
        // Canary: a lost buffer is noticed.
        it.model.nic.emptied = 1;
        assert!(it.model.nic.audit(it.now()).is_ok());
        it.model.nic.free += 2;
        it.model.nic.forget_a_buffer();
        assert_eq!(it.model.nic.free, 1);
        assert!(it.model.nic.audit(it.now()).is_err());
    }
}
