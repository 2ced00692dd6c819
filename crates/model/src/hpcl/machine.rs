//! The cluster in time: nodes around a switch, set up as an application does before its programs
//! begin.

use super::config::Config;
use super::counters::Counters;
use super::device::{Mapping, Refused};
use super::node::{CHANNEL, Node};
use super::process::Call;
use super::switch::Switch;
use crate::engine::{Event, Model, Schedule, Simulation};
use crate::stats::Imbalance;
use crate::units::{Span, Time};

/// An event in the cluster, with the number of the node or port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterEvent {
    /// A step of the processor is over.
    StepDone(u16),
    /// A transaction of the bus is over.
    BusDone(u16),
    /// The NIC raises its interrupt line.
    Interrupt(u16),
    /// The NIC may raise it again.
    GapOver(u16),
    /// A timer of the kernel may be due.
    Timer(u16),
    /// The line to the switch is free.
    LineFree(u16),
    /// A frame has arrived at the switch.
    FrameAtSwitch(u16),
    /// The switch has looked up a frame.
    LookedUp(u16),
    /// The line of a port is free.
    PortFree(u16),
    /// A frame has arrived at a NIC.
    FrameAtNode(u16),
    /// The programs begin.
    Begin(u16),
    /// A program has ended.
    Finished(u16),
}

impl ClusterEvent {
    /// Its kind as a number, and the number of the node or port.
    fn parts(self) -> (u64, u16) {
        use ClusterEvent::*;
        match self {
            StepDone(number) => (0, number),
            BusDone(number) => (1, number),
            Interrupt(number) => (2, number),
            GapOver(number) => (3, number),
            Timer(number) => (4, number),
            LineFree(number) => (5, number),
            FrameAtSwitch(number) => (6, number),
            LookedUp(number) => (7, number),
            PortFree(number) => (8, number),
            FrameAtNode(number) => (9, number),
            Begin(number) => (10, number),
            Finished(number) => (11, number),
        }
    }
}

impl Event for ClusterEvent {
    fn trace(self) -> u64 {
        let (kind, number) = self.parts();
        kind << 16 | u64::from(number)
    }
}

/// Nodes and switch.
pub struct Hardware {
    /// The nodes.
    pub nodes: Vec<Node>,
    /// The switch.
    pub switch: Switch,
    running: usize,
    /// The counts of the nodes when their programs began.
    before: Vec<Counters>,
}

impl Model for Hardware {
    type Event = ClusterEvent;

    fn handle(&mut self, event: ClusterEvent, schedule: &mut Schedule<ClusterEvent>) {
        use ClusterEvent::*;
        let (_, number) = event.parts();
        let node = &mut self.nodes[usize::from(number)];
        match event {
            StepDone(_) => node.step_done(schedule),
            BusDone(_) => node.bus_done(schedule),
            Interrupt(_) => node.go_on(schedule),
            GapOver(_) => node.nic.gap_over(schedule),
            Timer(_) => node.timer(schedule),
            LineFree(_) => node.nic.line_free(&mut node.bus, schedule),
            FrameAtSwitch(_) => {
                if let Some(frame) = node.nic.line.take(schedule) {
                    self.switch.arrive(number, frame, schedule);
                }
            }
            LookedUp(_) => self.switch.forward(number, schedule),
            PortFree(_) => self.switch.send(number, schedule),
            FrameAtNode(_) => {
                if let Some(frame) = self.switch.take(number, schedule) {
                    node.nic.arrive(frame, &mut node.bus, schedule);
                }
            }
            Begin(_) => {
                node.process.began = Some(schedule.now());
                node.go_on(schedule);
            }
            Finished(_) => self.running -= 1,
        }
    }
}

/// The cluster in time.
pub type Machine = Simulation<Hardware>;

/// Time to set up links; they need only a few frames.
const SET_UP: Span = Span::from_ns(2_000_000_000);

impl Machine {
    /// A cluster whose nodes have loaded the module, opened and mapped the channel, and linked with
    /// each other.
    ///
    /// # Errors
    /// The fault of the configuration, or that the nodes do not link.
    pub fn new(config: &Config, seed: u64) -> Result<Machine, String> {
        let mut machine = Machine::bare(config, seed)?;
        for node in 0..config.nodes {
            machine.load(node);
            machine.open(node, CHANNEL).map_err(|refused| refused.to_string())?;
        }
        for from in 0..config.nodes {
            for to in from + 1..config.nodes {
                machine.connect(CHANNEL, from, to).map_err(|refused| refused.to_string())?;
            }
        }
        let end = machine.schedule.now() + SET_UP;
        let peers = usize::from(config.nodes) - 1;
        let met = machine.run_until(end, |hardware| {
            hardware
                .nodes
                .iter_mut()
                .all(|node| node.channel().is_some_and(|channel| channel.peers() == peers))
        });
        if !met {
            return Err("the nodes do not meet: too many frames are lost, or interrupts too rare"
                .to_owned());
        }
        Ok(machine)
    }

    /// A cluster without HPCL.
    ///
    /// # Errors
    /// The fault of the configuration.
    pub fn bare(config: &Config, seed: u64) -> Result<Machine, String> {
        config.check().map_err(|error| error.to_string())?;
        let mut schedule = Schedule::new(seed, Span::from_ns(100));
        let random = schedule.random.fork(0);
        let machine = Hardware {
            nodes: (0..config.nodes).map(|number| Node::new(config, number)).collect(),
            switch: Switch::new(&config.wire, config.nodes, random),
            running: 0,
            before: Vec::new(),
        };
        Ok(Machine { model: machine, schedule })
    }

    /// Loads the module on a node (H-05).
    pub fn load(&mut self, node: u16) {
        self.model.nodes[usize::from(node)].module.get_or_insert_default();
    }

    /// Unloads the module with all of its channels.
    pub fn unload(&mut self, node: u16) {
        self.model.nodes[usize::from(node)].module = None;
    }

    /// Opens a channel on a node, and maps its buffers.
    ///
    /// # Errors
    /// If the channel has an owner, or the module is not loaded.
    pub fn open(&mut self, node: u16, channel: u8) -> Result<Mapping, Refused> {
        let seed = self.schedule.random.word();
        let at = usize::from(node);
        let nodes = self.model.nodes.len() as u16;
        let Node { module, config, .. } = &mut self.model.nodes[at];
        let module = module.as_mut().ok_or(Refused::NoModule)?;
        module.open(&config.hpcl, channel, node, nodes, seed)?;
        module.map(channel)
    }

    /// Lets a channel's process on one node request a link to that on another.
    ///
    /// # Errors
    /// If the channel is not open there.
    pub fn connect(&mut self, channel: u8, from: u16, to: u16) -> Result<(), Refused> {
        let node = &mut self.model.nodes[usize::from(from)];
        let module = node.module.as_mut().ok_or(Refused::NoModule)?;
        module.channel(channel)?.connect(to, self.schedule.now());
        node.set_timer(&mut self.schedule);
        Ok(())
    }

    /// Starts programs, the first on node 0.
    pub fn begin(&mut self, programs: impl IntoIterator<Item = Vec<Call>>) {
        self.model.before = self.model.nodes.iter().map(|node| node.counters).collect();
        for (node, calls) in self.model.nodes.iter_mut().zip(programs) {
            if !calls.is_empty() {
                node.process.calls = calls;
                (node.process.at, node.process.began) = (0, None);
                node.process.returned.clear();
                self.model.running += 1;
                self.schedule.after(Span::ZERO, ClusterEvent::Begin(node.number));
            }
        }
    }

    /// Runs until all programs have ended, for at most `most`. Returns their time.
    ///
    /// # Errors
    /// The waits, if programs do not end, or the fault.
    pub fn finish(&mut self, most: Span) -> Result<Span, String> {
        let begin = self.schedule.now();
        let ended = self.run_until(begin + most, |machine| machine.running == 0);
        for node in &self.model.nodes {
            if let Some(refused) = node.process.refused {
                return Err(format!("node {}: {refused}", node.number));
            }
            if let Some(peer) = node.sockets.iter().position(|socket| socket.broken) {
                return Err(format!(
                    "node {}: a segment of node {peer} was lost, and this TCP does not send again",
                    node.number
                ));
            }
        }
        if !ended {
            let waits: Vec<String> = self
                .model
                .nodes
                .iter()
                .filter_map(|node| {
                    let (at, all) = (node.process.at + 1, node.process.calls.len());
                    let call = node.process.call()?;
                    Some(format!("node {} in call {at} of {all}: {call:?}", node.number))
                })
                .collect();
            return Err(format!("after {most} these had not ended: {}", waits.join("; ")));
        }
        Ok(self.schedule.now() - begin)
    }

    /// Runs on for `time`, so that work in flight completes.
    pub fn settle(&mut self, time: Span) {
        let end = self.schedule.now() + time;
        self.run_until(end, |_| false);
    }

    /// The counts of a node since its program began.
    pub fn counted(&self, node: u16) -> Counters {
        let node = usize::from(node);
        let before = self.model.before.get(node).copied().unwrap_or_default();
        self.model.nodes[node].counters.since(&before)
    }

    /// When a node's program began, and when its calls returned.
    pub fn returned(&self, node: u16) -> (Time, &[Time]) {
        let process = &self.model.nodes[usize::from(node)].process;
        (process.began.unwrap_or_default(), &process.returned)
    }

    /// Checks all laws.
    ///
    /// # Errors
    /// The law that does not hold.
    pub fn audit(&mut self) -> Result<(), Imbalance> {
        let now = self.schedule.now();
        self.model.switch.audit(now)?;
        self.model.nodes.iter_mut().try_for_each(|node| node.audit(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An event's word in the trace is its kind above, and the node below.
    #[test]
    fn events_are_told_apart() {
        use ClusterEvent::*;
        let all = [
            StepDone,
            BusDone,
            Interrupt,
            GapOver,
            Timer,
            LineFree,
            FrameAtSwitch,
            LookedUp,
            PortFree,
            FrameAtNode,
            Begin,
            Finished,
        ];
        for (kind, event) in (0..).zip(all) {
            assert_eq!(event(0x1234).trace(), kind * 0x1_0000 + 0x1234);
        }
    }
}
