//! The switch: it stores each frame as a whole, looks it up, and queues it at the output port. A
//! frame that does not fit there is dropped.

use std::collections::VecDeque;

use bellwire_protocol::canary::planted;

use super::config;
use super::frame::Frame;
use super::machine::ClusterEvent;
use crate::engine::{Chance, Channel, Random, Schedule, Timing};
use crate::stats::{Imbalance, Occupancy};
use crate::units::{Bytes, Span, Time};

/// A line of a node or of a port.
pub type Line = Channel<Frame, ClusterEvent>;

/// A predicate on frames.
pub type Choice = Box<dyn FnMut(&Frame) -> bool>;

/// A new line: a byte is a beat, and Ethernet has no credits.
pub fn line(
    wire: &config::Wire,
    name: String,
    on_arrival: ClusterEvent,
    on_room: ClusterEvent,
) -> Line {
    let timing =
        Timing { latency: wire.cable, beat: wire.rate.time(Bytes::new(1)), ..Timing::default() };
    Channel::new(name, timing, u32::MAX, on_arrival, on_room)
}

/// A port: received frames in lookup, and frames that wait to leave.
struct Port {
    looked_up: VecDeque<(Frame, Time)>,
    queue: VecDeque<(Frame, Time)>,
    queued_bytes: u64,
    occupancy: Occupancy,
    line: Line,
}

/// All ports.
pub struct Switch {
    ports: Vec<Port>,
    delay: Span,
    buffer_bytes: u64,
    loss: Chance,
    random: Random,
    /// Frames dropped for lack of room.
    pub dropped: u64,
    /// Frames lost at random or by a test.
    pub lost: u64,
    /// Frames received.
    pub arrived: u64,
    /// Frames sent.
    pub forwarded: u64,
    /// For tests: loses the received frames for which it returns true.
    pub lose_if: Option<Choice>,
}

impl Switch {
    /// A switch; its first ports have lines to the nodes.
    pub fn new(wire: &config::Wire, nodes: u16, random: Random) -> Switch {
        let port = |node: u16| Port {
            looked_up: VecDeque::new(),
            queue: VecDeque::new(),
            queued_bytes: 0,
            occupancy: Occupancy::default(),
            line: line(
                wire,
                format!("line from the switch to node {node}"),
                ClusterEvent::FrameAtNode(node),
                ClusterEvent::PortFree(node),
            ),
        };
        Switch {
            ports: (0..nodes).map(port).collect(),
            // Canary: the lookup is charged at both ports.
            delay: wire.switch_delay * if planted("hpcl-switch-twice") { 2 } else { 1 },
            buffer_bytes: wire.port_buffer.count(),
            loss: Chance::new(wire.loss),
            random,
            dropped: 0,
            lost: 0,
            arrived: 0,
            forwarded: 0,
            lose_if: None,
        }
    }

    /// Receives a frame at a port.
    pub fn arrive(&mut self, port: u16, frame: Frame, schedule: &mut Schedule<ClusterEvent>) {
        self.arrived += 1;
        schedule.witness(frame.witness());
        let is_lost = self.lose_if.as_mut().is_some_and(|lose| lose(&frame));
        if is_lost || self.random.chance(self.loss) {
            self.lost += 1;
            return;
        }
        self.ports[usize::from(port)].looked_up.push_back((frame, schedule.now()));
        schedule.after(self.delay, ClusterEvent::LookedUp(port));
    }

    /// Moves the oldest frame in a port's lookup to the queue of its output port.
    pub fn forward(&mut self, port: u16, schedule: &mut Schedule<ClusterEvent>) {
        let Some((frame, _)) = self.ports[usize::from(port)].looked_up.pop_front() else { return };
        let to = frame.to;
        let Some(out) = self.ports.get_mut(usize::from(to)) else {
            self.dropped += 1;
            return;
        };
        let bytes = frame.memory_bytes() as u64;
        if out.queued_bytes + bytes > self.buffer_bytes {
            self.dropped += 1;
            return;
        }
        out.queued_bytes += bytes;
        out.occupancy.enter(schedule.now());
        out.queue.push_back((frame, schedule.now()));
        if out.queue.len() == 1 {
            self.send(to, schedule);
        }
    }

    /// Sends the frames that wait at a port, while its line is free.
    pub fn send(&mut self, port: u16, schedule: &mut Schedule<ClusterEvent>) {
        let out = &mut self.ports[usize::from(port)];
        while let Some((frame, since)) = out.queue.pop_front() {
            let bytes = frame.memory_bytes();
            match out.line.offer(schedule, frame.wire_bytes() as u32, frame) {
                Ok(()) => {
                    out.queued_bytes -= bytes as u64;
                    out.occupancy.leave(since, schedule.now());
                    self.forwarded += 1;
                }
                Err(frame) => {
                    out.queue.push_front((frame, since));
                    return;
                }
            }
        }
    }

    /// Takes a frame that has arrived at a node.
    pub fn take(&mut self, node: u16, schedule: &mut Schedule<ClusterEvent>) -> Option<Frame> {
        self.ports[usize::from(node)].line.take(schedule)
    }

    /// Time that the line to a node was busy.
    pub fn line_busy(&self, node: u16) -> Span {
        self.ports[usize::from(node)].line.line.busy()
    }

    /// Checks that frames are conserved, and Little's law.
    ///
    /// # Errors
    /// The law that does not hold.
    pub fn audit(&self, now: Time) -> Result<(), Imbalance> {
        let mut inside = 0;
        for (number, port) in self.ports.iter().enumerate() {
            let name = format!("queue of port {number}");
            port.occupancy.audit(&name, now, port.queue.iter().map(|one| one.1))?;
            port.line.audit(now)?;
            inside += (port.looked_up.len() + port.queue.len()) as u64;
        }
        if self.arrived != self.forwarded + self.dropped + self.lost + inside {
            return Err(Imbalance {
                queue: "switch".to_owned(),
                law: "frames in = frames out, dropped, lost and inside does not hold",
                details: format!(
                    "{} in, {} out, {} dropped, {} lost, {inside} inside",
                    self.arrived, self.forwarded, self.dropped, self.lost
                ),
            });
        }
        Ok(())
    }

    /// Canary: drops a frame that waits at a port.
    #[doc(hidden)]
    pub fn forget_one(&mut self) -> bool {
        self.ports.iter_mut().any(|port| port.queue.pop_front().is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use super::super::config::Config;
    use super::super::frame::Payload;
    use crate::engine::{Ended, Model, Simulation};
    use crate::units::Rate;

    /// A switch alone, whose frames are taken as they come: the node, and the ns.
    struct Rig {
        switch: Switch,
        came: Vec<(u16, u64)>,
    }

    impl Model for Rig {
        type Event = ClusterEvent;

        fn handle(&mut self, event: ClusterEvent, schedule: &mut Schedule<ClusterEvent>) {
            match event {
                ClusterEvent::LookedUp(port) => self.switch.forward(port, schedule),
                ClusterEvent::PortFree(port) => self.switch.send(port, schedule),
                ClusterEvent::FrameAtNode(node) => {
                    while self.switch.take(node, schedule).is_some() {
                        self.came.push((node, schedule.now().ps() / 1000));
                    }
                }
                event => panic!("{event:?}"),
            }
        }

        fn is_idle(&self) -> bool {
            true
        }
    }

    /// A byte takes 8 ns, a look-up 1 us, a cable 50 ns. Frames of 200 B in memory take 224 on the
    /// line. The queue holds 400 B, the frame on the line included until it has begun.
    #[test]
    fn frames_are_stored_and_sent_on() {
        let mut wire = Config::paper().wire;
        wire.rate = Rate::from_bytes_per_second(125_000_000);
        (wire.switch_delay, wire.cable) = (Span::from_ns(1000), Span::from_ns(50));
        (wire.port_buffer, wire.loss) = (Bytes::new(400), 0.0);
        let frame =
            |to, bytes| Frame { from: 0, to, payload: Payload::Hpcl(vec![0; bytes].into()) };
        let model = Rig { switch: Switch::new(&wire, 3, Random::new(1)), came: Vec::new() };
        let mut it = Simulation { model, schedule: Schedule::new(1, Span::from_ns(10)) };
        let Simulation { model, schedule } = &mut it;
        // The first is sent, two more wait, and the fourth is dropped; so is one to nowhere.
        for _ in 0..4 {
            model.switch.arrive(0, frame(1, 186), schedule);
        }
        model.switch.arrive(2, frame(9, 186), schedule);
        assert_eq!(it.run(Time::NEVER), Ended::Quiet);
        let line = 224 * 8;
        let at = |frames: u64| (1, 1000 + frames * line + 50);
        assert_eq!(it.model.came, [at(1), at(2), at(3)]);
        let switch = &it.model.switch;
        assert_eq!((switch.arrived, switch.forwarded, switch.dropped, switch.lost), (5, 3, 2, 0));
        assert_eq!(switch.ports[1].queued_bytes, 0);
        assert_eq!(switch.line_busy(1), Span::from_ns(3 * line));
        assert!(switch.audit(it.now()).is_ok());
        // One byte more does not fit beside another.
        let Simulation { model, schedule } = &mut it;
        for bytes in [186, 186, 187] {
            model.switch.arrive(0, frame(1, bytes), schedule);
        }
        it.schedule.witness(0);
        assert_eq!(it.run(Time::NEVER), Ended::Quiet);
        assert_eq!((it.model.switch.forwarded, it.model.switch.dropped), (5, 3));
        // Canary: a frame that is forgotten is noticed.
        let Simulation { model, schedule } = &mut it;
        assert!(!model.switch.forget_one(), "none waits");
        for _ in 0..2 {
            model.switch.arrive(0, frame(1, 186), schedule);
            model.switch.forward(0, schedule);
        }
        assert!(model.switch.forget_one());
        assert!(model.switch.audit(schedule.now()).is_err());
    }
}
