//! The process's calls: `hpclSend` and `hpclReceive` over the character device, with interrupt
//! reaping (Fig. 6 of the paper), and socket reads and writes.

use super::config::{Buffers, Receive};
use super::cpu::Level;
use super::device::Refused;
use super::machine::ClusterEvent;
use super::node::{Act, Node, step};
use super::process::{Call, content};
use crate::engine::Schedule;
use crate::units::Span;

impl Node {
    /// The process enters the kernel for its next call.
    pub(super) fn begin_call(&mut self, schedule: &mut Schedule<ClusterEvent>) {
        let Some(call) = self.process.call() else { return };
        if let Call::Compute { time } = call {
            return self.cpu.next(Level::Process, [step(time, Act::Return)]);
        }
        let entry = self.config.hpcl.library + self.system_call(schedule);
        let (host, hpcl) = (&self.config.host, &self.config.hpcl);
        let time = match call {
            Call::Send { bytes, .. } if hpcl.buffers == Buffers::Dynamic => {
                self.counters.allocations += 1;
                self.counters.copies_from_user += 1;
                self.counters.bytes_copied += u64::from(bytes);
                entry + hpcl.protocol + host.allocation + host.copy(bytes as usize)
            }
            Call::Send { .. } => entry + hpcl.protocol,
            Call::Receive | Call::Compute { .. } => entry,
            Call::Write { bytes, .. } | Call::Read { bytes, .. } => {
                self.process.left = bytes.into();
                entry + self.config.tcp.socket
            }
        };
        self.cpu.next(Level::Process, [step(time, Act::Try)]);
    }

    /// Makes progress with the call; if it cannot complete, the process reaps or sleeps.
    pub(super) fn try_call(&mut self, schedule: &mut Schedule<ClusterEvent>) {
        match self.process.call() {
            Some(Call::Send { to, bytes }) => self.try_send(to, bytes, schedule),
            Some(Call::Receive) => {
                if !self.try_receive(schedule) {
                    self.wait();
                }
            }
            Some(Call::Write { to, .. }) => self.try_write(to),
            Some(Call::Read { from, .. }) => self.try_read(from),
            Some(Call::Compute { .. }) | None => {}
        }
    }

    fn try_send(&mut self, to: u16, bytes: u32, schedule: &mut Schedule<ClusterEvent>) {
        let number = self.process.sent_to[usize::from(to)];
        let message = content(self.number, to, number, bytes as usize);
        let Some(channel) = self.channel() else {
            return self.fail(Refused::NoModule, schedule);
        };
        match channel.send(to, &message) {
            Ok(()) => {
                self.process.sent_to[usize::from(to)] += 1;
                self.counters.sent += 1;
                self.cpu.next(Level::Process, [step(Span::ZERO, Act::Return)]);
                self.transmit_hpcl(Level::Process, schedule);
            }
            // The sender enters a state in which it handles arriving acknowledgements (paper, 3).
            Err(Refused::WindowFull) => self.wait(),
            Err(refused) => self.fail(refused, schedule),
        }
    }

    /// Polls for a message (`hpcl_ethernet_recvframe`); true if there was one.
    fn try_receive(&mut self, schedule: &mut Schedule<ClusterEvent>) -> bool {
        let Some(channel) = self.channel() else {
            self.fail(Refused::NoModule, schedule);
            return true;
        };
        let (_, looked) = channel.poll();
        let (message, brought) = channel.receive(schedule.now());
        self.counters.looks += 1;
        self.counters.checks += looked;
        let looking = self.config.hpcl.check * looked;
        let mut steps = vec![step(looking, Act::Pass)];
        if let Some(message) = &message {
            let from = usize::from(message.from);
            let number = self.process.received_from[from];
            self.process.received_from[from] += 1;
            self.counters.received += 1;
            schedule.witness(u64::from(message.from) << 32 ^ message.bytes.len() as u64);
            let due = content(message.from, self.number, number, message.bytes.len());
            self.counters.mismatches += u64::from(due != message.bytes);
            if self.config.hpcl.buffers == Buffers::Dynamic {
                self.counters.copies_to_user += 1;
                self.counters.bytes_copied += message.bytes.len() as u64;
                steps.push(step(self.config.host.copy(message.bytes.len()), Act::Pass));
            }
            steps.push(step(Span::ZERO, Act::Return));
        }
        self.cpu.next(Level::Process, steps);
        self.transmit_hpcl(Level::Process, schedule);
        self.account(Level::Process, brought);
        message.is_some()
    }

    /// Waits: reaps, or sleeps. Interrupts go off together with the poll that found nothing.
    /// Otherwise an interrupt in between could bring a message, and the reap would be needless
    /// (H-09).
    fn wait(&mut self) {
        match self.config.hpcl.receive {
            Receive::Reap => {
                self.cpu.is_masked = true;
                self.cpu.later(Level::Process, step(Span::ZERO, Act::Reap));
            }
            Receive::Interrupt => self.process.sleeps = true,
        }
    }

    /// Calls the interrupt handler, with interrupts off (H-08).
    pub(super) fn reap(&mut self) {
        self.counters.reaps += 1;
        if self.process.call() == Some(Call::Receive)
            && self.channel().is_some_and(|channel| channel.poll().0)
        {
            self.counters.needless_reaps += 1;
        }
        self.cpu.next(
            Level::Process,
            [
                step(Span::ZERO, Act::ReadCause),
                step(Span::ZERO, Act::Clean),
                step(Span::ZERO, Act::Drain),
                step(Span::ZERO, Act::Reaped),
            ],
        );
    }

    /// Polls a second time and returns to the library, which calls again (the paper's figure calls
    /// the handler once).
    pub(super) fn look_again(&mut self, schedule: &mut Schedule<ClusterEvent>) {
        let found = match self.process.call() {
            Some(Call::Receive) if self.soft_raised => false,
            Some(Call::Receive) => self.try_receive(schedule),
            _ => false,
        };
        if !found {
            let entry = self.config.hpcl.library + self.system_call(schedule);
            self.cpu.later(Level::Process, step(entry, Act::Try));
        }
    }

    fn try_write(&mut self, to: u16) {
        let bytes = self.sockets[usize::from(to)].room().min(self.process.left);
        if bytes == 0 {
            self.process.sleeps = true;
            return;
        }
        let time = self.config.host.copy_and_sum(bytes as usize);
        self.cpu.next(Level::Process, [step(time, Act::Written(bytes))]);
    }

    pub(super) fn written(&mut self, bytes: u64, schedule: &mut Schedule<ClusterEvent>) {
        let Some(Call::Write { to, .. }) = self.process.call() else { return };
        self.sockets[usize::from(to)].write(bytes);
        self.counters.copies_from_user += 1;
        self.counters.bytes_copied += bytes;
        self.process.left -= bytes;
        let rest = if self.process.left == 0 { Act::Return } else { Act::Try };
        self.counters.sent += u64::from(self.process.left == 0);
        self.cpu.next(Level::Process, [step(Span::ZERO, rest)]);
        self.transmit_segments(Level::Process, to);
        self.set_timer(schedule);
    }

    fn try_read(&mut self, from: u16) {
        let bytes = self.sockets[usize::from(from)].readable().min(self.process.left);
        if bytes == 0 {
            self.process.sleeps = true;
            return;
        }
        let time = self.config.host.copy_and_sum(bytes as usize);
        self.cpu.next(Level::Process, [step(time, Act::Read(bytes))]);
    }

    pub(super) fn read(&mut self, bytes: u64, schedule: &mut Schedule<ClusterEvent>) {
        let Some(Call::Read { from, .. }) = self.process.call() else { return };
        self.sockets[usize::from(from)].read(bytes);
        self.counters.copies_to_user += 1;
        self.counters.bytes_copied += bytes;
        self.process.left -= bytes;
        if self.process.left == 0 {
            self.counters.received += 1;
            self.cpu.next(Level::Process, [step(Span::ZERO, Act::Return)]);
        } else {
            // A call returns the bytes available, and the program calls again.
            let entry = self.system_call(schedule) + self.config.tcp.socket;
            self.cpu.next(Level::Process, [step(entry, Act::Try)]);
        }
        self.transmit_segments(Level::Process, from);
        self.set_timer(schedule);
    }

    /// Whether the event that the process sleeps for has happened.
    pub(super) fn is_ready(&mut self) -> bool {
        let window = u64::from(self.config.hpcl.window);
        let third = self.config.tcp.send_buffer.count() / 3;
        match self.process.call() {
            Some(Call::Receive) => self.channel().is_some_and(|channel| channel.poll().0),
            Some(Call::Send { to, .. }) => {
                self.channel().is_some_and(|channel| channel.unacknowledged(to) < window)
            }
            Some(Call::Write { to, .. }) => self.sockets[usize::from(to)].room() >= third,
            Some(Call::Read { from, .. }) => self.sockets[usize::from(from)].readable() > 0,
            Some(Call::Compute { .. }) | None => false,
        }
    }

    /// The time of this system call, drawn within the spread.
    fn system_call(&mut self, schedule: &mut Schedule<ClusterEvent>) -> Span {
        self.counters.system_calls += 1;
        let spread = self.config.host.system_call_spread;
        let by_lot = Span::from_ps(schedule.random.below(spread.ps() + 1));
        (self.config.host.system_call + by_lot).saturating_sub(spread / 2)
    }

    /// The program made an error: it ends here.
    fn fail(&mut self, refused: Refused, schedule: &mut Schedule<ClusterEvent>) {
        self.process.refused = Some(refused);
        self.process.at = self.process.calls.len();
        schedule.after(Span::ZERO, ClusterEvent::Finished(self.number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::hpcl::config::Config;
    use crate::hpcl::machine::Machine;
    use crate::hpcl::tcp::Segment;
    use crate::units::{Bytes, Time};

    /// Canary: a message that is not the expected one is counted.
    #[test]
    fn another_message_is_a_mismatch() {
        crate::limit::limited(|| {
            let config = Config { nodes: 2, ..Config::paper() };
            let mut running = Machine::new(&config, 25).unwrap();
            running.begin([vec![Call::Send { to: 1, bytes: 100 }], vec![Call::Receive]]);
            running.model.nodes[1].process.received_from[0] = 7;
            // The run says that it failed.
            let _ = running.finish(Span::from_ns(1_000_000_000));
            let counters = &running.model.nodes[1].counters;
            assert_eq!((counters.received, counters.mismatches), (1, 1));
        });
    }

    /// A call can go on with a message in a ring, with fewer messages in flight than the window
    /// has, with a third of the send buffer free, or with a byte to read.
    #[test]
    fn calls_wait_for_their_turn() {
        crate::limit::limited(|| {
            let mut config = Config { nodes: 2, ..Config::paper() };
            config.hpcl.window = 3;
            config.tcp.send_buffer = Bytes::new(9000);
            let mut running = Machine::new(&config, 26).unwrap();
            let node = &mut running.model.nodes[0];
            let ready = |node: &mut Node, call| {
                node.process.calls = vec![call];
                node.is_ready()
            };
            let send = Call::Send { to: 1, bytes: 8 };
            for in_flight in 0..3 {
                assert!(ready(node, send), "{in_flight} of 3");
                node.channel().unwrap().send(1, b"message").unwrap();
            }
            assert!(!ready(node, send) && !ready(node, Call::Receive));
            let write = Call::Write { to: 1, bytes: 8 };
            node.sockets[1].write(6000);
            assert!(ready(node, write));
            node.sockets[1].write(1);
            assert!(!ready(node, write));
            let read = Call::Read { from: 1, bytes: 8 };
            assert!(!ready(node, read));
            let segment = Segment { sequence: 0, bytes: 1, acknowledged: 0, window_end: 0 };
            node.sockets[1].handle(&segment, Time::ZERO);
            assert!(ready(node, read));
            assert!(!ready(node, Call::Compute { time: Span::ZERO }));
        });
    }

    /// A reap is needless if the process waits for a message and one is in the ring.
    #[test]
    fn needless_reaps_are_counted() {
        crate::limit::limited(|| {
            let config = Config { nodes: 2, ..Config::paper() };
            let mut running = Machine::new(&config, 27).unwrap();
            running.begin([vec![Call::Send { to: 1, bytes: 8 }], vec![]]);
            running.settle(Span::from_ns(1_000_000_000));
            let send = Call::Send { to: 0, bytes: 8 };
            for (node, call, needless) in
                [(1, send, 0), (1, Call::Receive, 1), (0, Call::Receive, 0)]
            {
                let node = &mut running.model.nodes[node];
                let before = node.counters;
                (node.process.calls, node.process.at) = (vec![call], 0);
                node.reap();
                let counted = node.counters.since(&before);
                assert_eq!((counted.reaps, counted.needless_reaps), (1, needless), "{call:?}");
            }
        });
    }
}
