//! The path of frames through the kernel. Received frames pass the NIC's unchanged driver, the
//! dispatcher behind it (H-02), and the handlers of HPCL and TCP/IP. The transmit path is here, too
//! (H-06).
//!
//! ```text
//!   ring of the NIC --driver--> dispatcher --HPCL--> handler, at once (H-24)
//!                                   |--- IP --> queue --soft interrupt--> TCP/IP --> socket
//! ```

use bellwire_wire::frame::FRAME_OVERHEAD_BYTES;

use super::config::{Buffers, HandOver};
use super::cpu::Level;
use super::device::{Brought, Channel, Module};
use super::frame::{Frame, Payload};
use super::machine::ClusterEvent;
use super::node::{Act, CHANNEL, Node, step};
use crate::engine::Schedule;
use crate::units::Span;

impl Node {
    /// The driver's handler: takes the next frame; when there is none left, it gives the NIC new
    /// buffers.
    pub(super) fn drain(&mut self, level: Level, schedule: &mut Schedule<ClusterEvent>) {
        match self.nic.take() {
            Some(frame) => {
                self.counters.network_buffers += 1;
                match level {
                    Level::Process => self.counters.frames_reaped += 1,
                    Level::Hard | Level::Soft => self.counters.frames_by_interrupt += 1,
                }
                let driver = self.config.host.driver_frame;
                self.cpu.next(
                    level,
                    [step(driver, Act::Dispatch(frame)), step(Span::ZERO, Act::Drain)],
                );
            }
            None => {
                self.nic.refill(&mut self.bus, schedule);
            }
        }
    }

    /// The dispatcher in the link layer: handles HPCL frames here, and passes all others to the
    /// network layer (H-02, H-03).
    pub(super) fn dispatch(&mut self, level: Level, frame: Frame) {
        match (&frame.payload, &self.module) {
            (Payload::Hpcl(_), None) => self.counters.frames_unclaimed += 1,
            (Payload::Hpcl(_), Some(_)) if self.config.hpcl.hand_over == HandOver::LinkLayer => {
                self.counters.frames_in_link_layer += 1;
                let protocol = self.config.hpcl.protocol;
                self.cpu.next(level, [step(protocol, Act::Hpcl(frame))]);
            }
            (Payload::Hpcl(_), Some(_)) => {
                self.counters.frames_by_soft_interrupt += 1;
                self.queue(frame);
            }
            (Payload::Ip(_), _) => {
                self.counters.frames_to_network_layer += 1;
                self.queue(frame);
            }
        }
    }

    /// The network layer's path: a queue that a soft interrupt empties.
    fn queue(&mut self, frame: Frame) {
        self.queued.push_back(frame);
        if !self.soft_raised {
            self.soft_raised = true;
            self.counters.soft_interrupts += 1;
            self.cpu.later(Level::Soft, step(self.config.host.soft_interrupt, Act::Queued));
        }
    }

    /// The soft interrupt takes the next frame.
    pub(super) fn take_queued(&mut self) {
        let Some(frame) = self.queued.pop_front() else {
            self.soft_raised = false;
            return;
        };
        let passes = self.config.host.queue_frame;
        let work = match frame.payload {
            Payload::Hpcl(_) => step(passes + self.config.hpcl.protocol, Act::Hpcl(frame)),
            Payload::Ip(_) => step(passes + self.config.tcp.input, Act::Segment(frame)),
        };
        self.cpu.next(Level::Soft, [work, step(Span::ZERO, Act::Queued)]);
    }

    /// The HPCL handler: protocol, copy into the ring, answer.
    pub(super) fn handle_hpcl(
        &mut self,
        level: Level,
        frame: &Frame,
        schedule: &mut Schedule<ClusterEvent>,
    ) {
        let Payload::Hpcl(bytes) = &frame.payload else { return };
        let number = Module::number_of(bytes);
        let channel = self.module.as_mut().and_then(|module| module.channel(number).ok());
        let Some(channel) = channel else {
            self.counters.frames_unclaimed += 1;
            return;
        };
        let brought = channel.handle(frame, schedule.now());
        self.wake_if_ready(level);
        self.transmit_hpcl(level, schedule);
        self.account(level, brought);
    }

    /// Counts the copies and charges their time.
    pub(super) fn account(&mut self, level: Level, brought: Brought) {
        self.counters.copies_to_ring += brought.messages;
        self.counters.copies_kept += brought.kept;
        self.counters.bytes_copied += brought.bytes;
        let host = &self.config.host;
        let mut time = host.copy(brought.bytes as usize);
        if self.config.hpcl.buffers == Buffers::Dynamic {
            self.counters.allocations += brought.messages;
            time += host.allocation * brought.messages;
        }
        if time > Span::ZERO {
            self.cpu.next(level, [step(time, Act::Pass)]);
        }
    }

    /// Passes a segment to TCP/IP.
    pub(super) fn handle_segment(
        &mut self,
        level: Level,
        frame: &Frame,
        schedule: &mut Schedule<ClusterEvent>,
    ) {
        let Payload::Ip(segment) = &frame.payload else { return };
        self.sockets[usize::from(frame.from)].handle(segment, schedule.now());
        self.wake_if_ready(level);
        self.transmit_segments(level, frame.from);
        self.set_timer(schedule);
    }

    /// Queues the frames of HPCL's protocol for the driver. On the way to the NIC each gets its
    /// Ethernet header.
    pub(super) fn transmit_hpcl(&mut self, level: Level, schedule: &mut Schedule<ClusterEvent>) {
        let now = schedule.now();
        let channels = self.module.iter_mut().flat_map(Module::channels);
        let before = self.outgoing.len();
        self.outgoing
            .extend(channels.flat_map(|channel| std::iter::from_fn(move || channel.transmit(now))));
        self.go_out(level, self.outgoing.len() - before, self.config.host.driver_frame);
        self.set_timer(schedule);
    }

    /// Charges `time` for each of `frames` frames to transmit, and then posts it.
    fn go_out(&mut self, level: Level, frames: usize, time: Span) {
        self.cpu.next(level, std::iter::repeat_n(step(time, Act::Post), frames));
    }

    /// Queues the segments of the connection with a node for the driver.
    pub(super) fn transmit_segments(&mut self, level: Level, peer: u16) {
        let socket = &mut self.sockets[usize::from(peer)];
        let segments: Vec<_> = std::iter::from_fn(|| socket.transmit()).collect();
        let time = self.config.tcp.output + self.config.host.driver_frame;
        for segment in &segments {
            match segment.bytes {
                0 => self.counters.acknowledgements_sent += 1,
                _ => self.counters.segments_sent += 1,
            }
        }
        let from = self.number;
        let frame = |segment| Frame { from, to: peer, payload: Payload::Ip(segment) };
        let count = segments.len();
        self.outgoing.extend(segments.into_iter().map(frame));
        self.go_out(level, count, time);
    }

    /// Posts the oldest outgoing frame to the NIC. With fixed send buffers it has two pieces:
    /// header and data.
    pub(super) fn post(&mut self, schedule: &mut Schedule<ClusterEvent>) {
        let Some(frame) = self.outgoing.pop_front() else { return };
        let in_place = self.config.hpcl.buffers == Buffers::Fixed;
        let pieces = match &frame.payload {
            // Without a message: header, check value, and the report of a gap.
            Payload::Hpcl(bytes) if in_place && bytes.len() > FRAME_OVERHEAD_BYTES + 8 => 2,
            Payload::Hpcl(_) | Payload::Ip(_) => 1,
        };
        if self.nic.post(frame, pieces, &mut self.bus, schedule).is_err() {
            self.counters.frames_not_posted += 1;
        }
    }

    /// Wakes the process if the event that it sleeps for has happened.
    fn wake_if_ready(&mut self, level: Level) {
        if self.process.sleeps && !self.process.is_woken && self.is_ready() {
            self.process.is_woken = true;
            self.cpu.next(level, [step(self.config.host.wake_up, Act::Wake)]);
        }
    }

    /// The channel of this node's application.
    pub(super) fn channel(&mut self) -> Option<&mut Channel> {
        self.module.as_mut()?.channel(CHANNEL).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::hpcl::config::Config;
    use crate::hpcl::machine::Machine;
    use crate::units::Rate;

    /// Two nodes with the module, of which the test runs the first by hand.
    fn bare(change: impl FnOnce(&mut Config)) -> Machine {
        let mut config = Config { nodes: 2, ..Config::paper() };
        change(&mut config);
        let mut running = Machine::bare(&config, 1).unwrap();
        running.load(0);
        running
    }

    fn frame(bytes: usize) -> Frame {
        Frame { from: 0, to: 1, payload: Payload::Hpcl(vec![0; bytes].into()) }
    }

    /// A frame without a message is one piece, also with the report of a gap. A message is a second
    /// piece: of two such frames a ring of two descriptors takes one.
    #[test]
    fn a_message_is_a_piece_of_its_own() {
        const BARE: usize = FRAME_OVERHEAD_BYTES;
        for (bytes, refused) in [(BARE, 0), (BARE + 8, 0), (BARE + 9, 1)] {
            let mut running = bare(|config| config.nic.transmit_descriptors = 2);
            let node = &mut running.model.nodes[0];
            for _ in 0..2 {
                node.outgoing.push_back(frame(bytes));
                node.post(&mut running.schedule);
            }
            assert_eq!(node.counters.frames_not_posted, refused, "{bytes} B");
        }
    }

    /// A frame that already waits for the driver is not charged again.
    #[test]
    fn a_waiting_frame_is_charged_once() {
        let mut running = bare(|_| ());
        let node = &mut running.model.nodes[0];
        node.outgoing.push_back(frame(100));
        node.transmit_hpcl(Level::Process, &mut running.schedule);
        assert!(node.cpu.is_idle(Level::Process));
    }

    /// Two messages of 1000 B in all take 100 ns and a nanosecond for each byte, and with dynamic
    /// buffers 300 ns each besides.
    #[test]
    fn copies_to_the_ring_are_charged() {
        for (buffers, ns) in [(Buffers::Fixed, 1100), (Buffers::Dynamic, 1700)] {
            let mut running = bare(|config| {
                config.hpcl.buffers = buffers;
                config.host.copy_start = Span::from_ns(100);
                config.host.copy_rate = Rate::from_bytes_per_second(1_000_000_000);
                config.host.allocation = Span::from_ns(300);
            });
            let node = &mut running.model.nodes[0];
            node.account(Level::Soft, Brought { messages: 2, bytes: 1000, kept: 0 });
            assert_eq!(node.cpu.begin(), Some(Span::from_ns(ns)), "{buffers:?}");
        }
    }
}
