//! A node: processor, bus, NIC, and a kernel with HPCL's module beside TCP/IP. This file is the
//! processor's scheduler, and the parts that belong to no protocol. `driver` is the path of frames,
//! `library` the calls of the process.

use std::collections::VecDeque;

use super::config::Config;
use super::counters::Counters;
use super::cpu::{Cpu, Level, Step};
use super::device::Module;
use super::frame::Frame;
use super::machine::ClusterEvent;
use super::nic::Nic;
use super::pci::{Bus, Job};
use super::process::Process;
use super::tcp::Socket;
use crate::engine::Schedule;
use crate::stats::Imbalance;
use crate::units::{Span, Time};

/// The channel of the application whose programs run.
pub const CHANNEL: u8 = 1;

/// The action at the end of a step.
#[derive(Clone, Debug)]
pub(super) enum Act {
    /// Nothing: only time has passed.
    Pass,
    /// Read the interrupt cause; the processor waits for the bus.
    ReadCause,
    /// Reclaim descriptors of transmitted frames.
    Clean,
    /// Take the next frame from the NIC's ring, and repeat until it is empty.
    Drain,
    /// Pass a frame from the driver to the link layer.
    Dispatch(Frame),
    /// Take the next queued frame in the soft interrupt, and repeat.
    Queued,
    /// Handle an HPCL frame.
    Hpcl(Frame),
    /// Handle a TCP segment.
    Segment(Frame),
    /// Post the oldest outgoing frame to the NIC.
    Post,
    /// Check the timers.
    Timers,
    /// Wake the process.
    Wake,
    /// Begin or retry a call.
    Try,
    /// Call the interrupt handler from the process, with interrupts off.
    Reap,
    /// Turn interrupts on again.
    Reaped,
    /// This many bytes have been copied to the socket.
    Written(u64),
    /// This many bytes have been copied from the socket.
    Read(u64),
    /// Return from the call.
    Return,
}

/// A node.
pub struct Node {
    pub(super) number: u16,
    pub(super) config: Config,
    pub(super) cpu: Cpu<Act>,
    /// The bus.
    pub bus: Bus,
    /// The NIC.
    pub nic: Nic,
    /// HPCL's module, if it is loaded (H-05).
    pub module: Option<Module>,
    /// Connections, by the number of the other node.
    pub(super) sockets: Vec<Socket>,
    /// The queue between link layer and network layer.
    pub(super) queued: VecDeque<Frame>,
    pub(super) soft_raised: bool,
    /// Outgoing frames, in order, from all levels.
    pub(super) outgoing: VecDeque<Frame>,
    pub(super) process: Process,
    timer_at: Option<Time>,
    /// Its counters.
    pub counters: Counters,
}

/// A step.
pub(super) fn step(time: Span, act: Act) -> Step<Act> {
    Step { time, act }
}

impl Node {
    /// An idle node.
    pub fn new(config: &Config, number: u16) -> Node {
        let sockets = (0..config.nodes).map(|_| Socket::new(&config.tcp)).collect();
        Node {
            number,
            config: config.clone(),
            cpu: Cpu::default(),
            bus: Bus::new(&config.pci, number),
            nic: Nic::new(&config.nic, &config.wire, number),
            module: None,
            sockets,
            queued: VecDeque::new(),
            soft_raised: false,
            outgoing: VecDeque::new(),
            process: Process::new(config.nodes),
            timer_at: None,
            counters: Counters::default(),
        }
    }

    /// Starts the processor's next step, unless it is busy.
    pub fn go_on(&mut self, schedule: &mut Schedule<ClusterEvent>) {
        if self.cpu.is_busy() {
            return;
        }
        if !self.cpu.is_masked && self.cpu.is_idle(Level::Hard) && self.nic.is_raised() {
            self.counters.interrupts += 1;
            let interrupt = self.config.host.interrupt;
            self.cpu.next(
                Level::Hard,
                [
                    step(interrupt, Act::ReadCause),
                    step(Span::ZERO, Act::Clean),
                    step(Span::ZERO, Act::Drain),
                ],
            );
        }
        if self.process.began.is_some()
            && !self.process.sleeps
            && !self.process.is_done()
            && self.cpu.is_idle(Level::Process)
        {
            self.begin_call(schedule);
        }
        if let Some(time) = self.cpu.begin() {
            schedule.after(time, ClusterEvent::StepDone(self.number));
        }
    }

    /// Ends a step.
    pub fn step_done(&mut self, schedule: &mut Schedule<ClusterEvent>) {
        if let Some((level, act)) = self.cpu.end() {
            self.act(level, act, schedule);
        }
        self.go_on(schedule);
    }

    /// Ends a transaction of the bus.
    pub fn bus_done(&mut self, schedule: &mut Schedule<ClusterEvent>) {
        if let Some(job) = self.bus.done(schedule) {
            self.nic.bus_done(job, &mut self.bus, schedule);
            if job == Job::ReadCause {
                self.cpu.resume(schedule.now());
            }
        }
        self.go_on(schedule);
    }

    /// A timer may be due.
    pub fn timer(&mut self, schedule: &mut Schedule<ClusterEvent>) {
        if self.timer_at.is_some_and(|at| at <= schedule.now()) {
            self.timer_at = None;
            self.cpu.later(Level::Hard, step(self.config.host.interrupt, Act::Timers));
        }
        self.go_on(schedule);
    }

    /// Time that the processor was busy, for interrupts and for the process.
    pub fn busy(&self) -> Span {
        self.cpu.busy.into_iter().sum()
    }

    /// Checks conservation, Little's law, and that data is copied no more often than the setting
    /// says.
    ///
    /// # Errors
    /// The law that does not hold.
    pub fn audit(&mut self, now: Time) -> Result<(), Imbalance> {
        self.bus.audit(now)?;
        self.nic.audit(now)?;
        for channel in self.module.iter_mut().flat_map(Module::channels) {
            channel.audit(now)?;
        }
        super::audit::copies(self)
    }

    fn act(&mut self, level: Level, act: Act, schedule: &mut Schedule<ClusterEvent>) {
        match act {
            Act::Pass => {}
            Act::ReadCause => {
                self.cpu.stalled = Some((level, schedule.now()));
                self.nic.ask_cause(&mut self.bus, schedule);
            }
            Act::Clean => {
                self.nic.clean();
            }
            Act::Drain => self.drain(level, schedule),
            Act::Dispatch(frame) => self.dispatch(level, frame),
            Act::Queued => self.take_queued(),
            Act::Hpcl(frame) => self.handle_hpcl(level, &frame, schedule),
            Act::Segment(frame) => self.handle_segment(level, &frame, schedule),
            Act::Post => self.post(schedule),
            Act::Timers => self.look_at_timers(level, schedule),
            Act::Wake => {
                (self.process.sleeps, self.process.is_woken) = (false, false);
                self.counters.wake_ups += 1;
                let switch = self.config.host.context_switch;
                self.cpu.next(Level::Process, [step(switch, Act::Try)]);
            }
            Act::Try => self.try_call(schedule),
            Act::Reap => self.reap(),
            Act::Reaped => {
                self.cpu.is_masked = false;
                self.look_again(schedule);
            }
            Act::Written(bytes) => self.written(bytes, schedule),
            Act::Read(bytes) => self.read(bytes, schedule),
            Act::Return => {
                self.process.at += 1;
                self.process.returned.push(schedule.now());
                if self.process.is_done() {
                    schedule.after(Span::ZERO, ClusterEvent::Finished(self.number));
                }
            }
        }
    }

    /// Handles all timers that are due.
    fn look_at_timers(&mut self, level: Level, schedule: &mut Schedule<ClusterEvent>) {
        for peer in 0..self.sockets.len() {
            self.sockets[peer].look(schedule.now());
            self.transmit_segments(level, peer as u16);
        }
        self.transmit_hpcl(level, schedule);
    }

    /// Schedules a check of the timers for the next one due, at a tick of the clock.
    pub(super) fn set_timer(&mut self, schedule: &mut Schedule<ClusterEvent>) {
        let channels = self.module.iter_mut().flat_map(Module::channels);
        let protocol = channels.filter_map(|channel| channel.deadline()).min();
        let sockets = self.sockets.iter().filter_map(|socket| socket.acknowledge_at).min();
        let Some(due) = [protocol, sockets].into_iter().flatten().min() else { return };
        let due = due.max(schedule.now()).edge(self.config.host.tick);
        if self.timer_at.is_none_or(|at| due < at) {
            self.timer_at = Some(due);
            schedule.at(due, ClusterEvent::Timer(self.number));
        }
    }
}
