//! Hosts with interfaces that go cycle by cycle: the blocks of [`cycle`](crate::cycle), or gates. A
//! switch connects them.
//!
//! | file | what |
//! |---|---|
//! | `host` | software, and a processor that takes time |
//! | `root` | root complex and memory: TLPs, with the times of the event-driven machine |
//! | `switch` | packets between interfaces |
//! | `single` | one operation between two idle nodes |
//! | `marks` | when what moves, and where the time of an operation goes |
//!
//! Software reaches an interface by TLPs only: stores into its window, and host memory. So gates
//! can take the place of the blocks. [`Taps`] alone tell what moves inside, for `marks`.
//!
//! The clock of an interface stands while it has nothing to do: if for [`QUIET`] cycles no beat was
//! offered at any port. It then waits for nothing but time-outs of reads, and hosts answer all
//! reads. It goes on with the next beat.

use std::collections::VecDeque;

use bellwire_wire::WireError;
use bellwire_wire::descriptor::DescriptorRepr;
use bellwire_wire::endpoint::Endpoint;
use bellwire_wire::event::EventRepr;

use super::config::Config;
use super::host::RingKind;
use crate::cycle::bell_decode::WINDOW_BITS;
use crate::cycle::chpp_nic::{ChppNic, In, Out};
use crate::cycle::nic_core::{CLASSES, Taps};
use crate::engine::Random;
use crate::units::{Span, Time};
use host::{Host, Lands};
use marks::Marks;
use root::{DEVICE, TlpBeat};
use switch::{PacketBeat, Switch};

mod host;
mod marks;
mod root;
pub mod single;
mod switch;

/// Cycles without any beat after which a clock stands. No block works for so long in silence.
pub const QUIET: u32 = 1024;

/// Those of the hash of Fowler, Noll and Vo.
const HASH_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const HASH_PRIME: u64 = 0x100_0000_01b3;

/// An event that software has read.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    /// Node.
    pub node: usize,
    /// Function.
    pub function: usize,
    /// Queue pair.
    pub queue_pair: usize,
    /// The event's ring.
    pub ring: RingKind,
    /// The event as it was in memory.
    pub event: EventRepr,
}

/// The interface of a node.
pub trait Interface: Send {
    /// One cycle.
    fn cycle(&mut self, input: In) -> Out;

    /// What has moved between its blocks in the last cycle.
    fn taps(&self) -> Taps;
}

impl Interface for ChppNic {
    fn cycle(&mut self, input: In) -> Out {
        self.cycle(input)
    }

    fn taps(&self) -> Taps {
        self.taps()
    }
}

/// A host and its interface.
struct Node<I> {
    host: Host,
    interface: I,
    /// Cycles since something was last offered or told at a port of the interface.
    quiet: u32,
}

impl<I> Node<I> {
    /// What the host has for the interface at an edge of the clock.
    fn input(&self, (cpu, cpus): (usize, usize), now: Time) -> In {
        let mut input = In {
            cpu: cpu as u8,
            cpus: cpus as u8,
            device: DEVICE,
            base: host::WINDOW >> WINDOW_BITS,
            read_credit: true,
            tx_ready: self.host.root.takes(now),
            to_ready: true,
            ..In::default()
        };
        if let Some(TlpBeat { last, empty, data }) = self.host.root.beat() {
            input.rx_valid = true;
            (input.rx_last, input.rx_empty, input.rx_data) = (last, empty, data);
        }
        input
    }
}

/// Hosts, interfaces and a switch.
pub struct Machine<I> {
    nodes: Vec<Node<I>>,
    switch: Switch,
    per_function: usize,
    now: Time,
    /// The next edge of the clock.
    edge: Time,
    period: Span,
    /// Cycles so far.
    cycles: u64,
    /// Whether the clock of an interface stands while it has nothing to do.
    stands: bool,
    hash: u64,
    /// Beats for the switch of this cycle, by interface.
    sent: Vec<(usize, PacketBeat)>,
    told: VecDeque<Told>,
    /// When what has moved, by node; only if somebody asked for it.
    marks: Option<Vec<Marks>>,
}

impl<I: Interface> Machine<I> {
    /// A host for each interface. The first stores of software set them up. An interface takes
    /// `packets` packets of each class from the network.
    pub fn new(config: &Config, seed: u64, interfaces: Vec<I>, packets: usize) -> Machine<I> {
        let mut random = Random::new(seed);
        let switch = Switch::new(interfaces.len(), packets);
        let nodes = interfaces.into_iter().enumerate();
        let nodes = nodes.map(|(node, interface)| {
            let host = Host::new(config, node, &mut random);
            Node { host, interface, quiet: 0 }
        });
        Machine {
            nodes: nodes.collect(),
            switch,
            per_function: config.nic.queue_pairs,
            now: Time::ZERO,
            edge: Time::ZERO,
            period: config.nic.cycle(),
            cycles: 0,
            stands: true,
            hash: HASH_BASIS,
            sent: Vec::new(),
            told: VecDeque::new(),
            marks: None,
        }
    }

    /// Begins to note when what moves.
    fn mark(&mut self) {
        self.marks = Some(vec![Marks::default(); self.nodes.len()]);
    }

    /// The present time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Cycles so far.
    pub fn cycles(&self) -> u64 {
        self.cycles
    }

    /// A hash of all beats so far, and of their cycles.
    pub fn trace_hash(&self) -> u64 {
        self.hash
    }

    /// Whether something can still happen before software acts.
    pub fn is_pending(&self) -> bool {
        self.is_awake() || self.next().is_some()
    }

    /// Whether an interface may have something to do.
    fn is_awake(&self) -> bool {
        self.nodes.iter().any(|node| node.quiet < QUIET)
    }

    /// What is wrong with an interface, if hosts or switch have found something.
    pub fn fault(&self) -> Option<String> {
        let misrouted = self.switch.misrouted;
        let for_nobody = (misrouted > 0).then(|| format!("{misrouted} packets are for nobody"));
        for_nobody.or_else(|| self.nodes.iter().find_map(|node| node.host.fault()))
    }

    /// Goes on to the next cycle in which software gets an event or the machine comes to rest, at
    /// or before `until`. `false`: there is none, and the time is now `until`.
    pub fn step(&mut self, until: Time) -> bool {
        while self.is_pending() {
            if self.stands
                && !self.is_awake()
                && let Some(next) = self.next()
            {
                self.edge = self.edge.max(next.edge(self.period));
            }
            if self.edge > until {
                break;
            }
            if self.cycle() || !self.is_pending() {
                return true;
            }
        }
        self.now = self.now.max(until);
        false
    }

    /// The next event that software has read, with the memory of its node.
    pub fn next_told(&mut self) -> Option<Told> {
        self.told.pop_front()
    }

    /// When the next thing is due at a host.
    fn next(&self) -> Option<Time> {
        self.nodes.iter().filter_map(|node| node.host.root.next()).min()
    }

    /// One cycle. Returns whether software has got events.
    fn cycle(&mut self) -> bool {
        let now = self.edge;
        self.now = now;
        self.edge = now + self.period;
        self.cycles += 1;
        let number = now.ps() / self.period.ps();
        let mut has_come = false;
        let count = self.nodes.len();
        for (at, node) in self.nodes.iter_mut().enumerate() {
            let lands = node.host.advance(now, &mut self.told);
            has_come |= lands == Lands::Event;
            if let Some(marks) = &mut self.marks
                && lands == Lands::Data
            {
                marks[at].lands.push(now);
            }
            let mut input = node.input((at, count), now);
            input.to_credit = self.switch.credit(at);
            if let Some(beat) = self.switch.beat(at) {
                input.from_valid = true;
                (input.from_class, input.from_last) = (beat.class, beat.last);
                (input.from_to, input.from_data) = (beat.to, beat.data);
            }
            let comes = input.rx_valid || input.from_valid || input.to_credit != [false; CLASSES];
            if node.quiet >= QUIET && self.stands && !comes {
                continue;
            }
            let out = node.interface.cycle(input);
            // A place that is free again lets the switch go on.
            let goes = out.tx_valid || out.to_valid || out.from_credit != [false; CLASSES];
            node.quiet = if comes || goes { 0 } else { node.quiet.saturating_add(1) };
            if let Some(marks) = &mut self.marks {
                marks[at].note(self.edge, (&input, &out), node.interface.taps());
            }
            if input.rx_valid && out.rx_ready {
                node.host.root.took();
            }
            if input.from_valid && out.from_ready[usize::from(input.from_class)] {
                self.switch.took(at);
            }
            self.switch.free(at, out.from_credit);
            if out.tx_valid && input.tx_ready {
                let beat = TlpBeat { last: out.tx_last, empty: out.tx_empty, data: out.tx_data };
                node.host.root.take(now, beat);
                for word in [number, at as u64, beat.data[0], beat.data[1]] {
                    self.hash = (self.hash ^ word).wrapping_mul(HASH_PRIME);
                }
            }
            if out.to_valid {
                let beat = PacketBeat {
                    class: out.to_class,
                    last: out.to_last,
                    to: out.to_to,
                    data: out.to_data,
                };
                self.sent.push((at, beat));
            }
        }
        // A beat is offered from the next cycle on.
        for (from, beat) in self.sent.drain(..) {
            self.switch.take(from, beat);
        }
        has_come
    }

    /// The key of a queue pair (C-09).
    pub fn key(&self, of: Endpoint) -> u8 {
        self.nodes[usize::from(of.cpu())].host.keys[self.pair(of)]
    }

    /// The first address of a function's window, and the first one that programs may use.
    pub fn window(&self, node: usize, function: usize) -> [u64; 2] {
        let layout = &self.nodes[node].host.layouts[function];
        [layout.base, layout.free]
    }

    /// Bytes of memory at a global address (C-05); nothing if they do not exist.
    pub fn memory(&self, address: u64, length: usize) -> Option<&[u8]> {
        self.nodes.iter().find_map(|node| node.host.root.memory.slice(address, length))
    }

    /// The same for writing, as a program of that node would.
    pub fn memory_mut(&mut self, address: u64, length: usize) -> Option<&mut [u8]> {
        self.nodes.iter_mut().find_map(|node| node.host.root.memory.slice_mut(address, length))
    }

    /// Posts a descriptor. Returns when the processor starts it.
    ///
    /// # Errors
    /// [`WireError`] if the descriptor cannot be written.
    ///
    /// # Panics
    /// If there is no such node or function, or it [has no place](Machine::has_place).
    pub fn post(
        &mut self,
        node: usize,
        function: usize,
        descriptor: &DescriptorRepr<'_>,
    ) -> Result<Time, WireError> {
        let mut bytes = vec![0; descriptor.buffer_len()];
        descriptor.emit(&mut bytes)?;
        Ok(self.nodes[node].host.post(self.now, function, &bytes))
    }

    /// Whether the next operation of this function would start at once.
    pub fn has_place(&self, node: usize, function: usize) -> bool {
        self.nodes[node].host.has_place(function)
    }

    /// Events of a ring that software has not read.
    pub fn unread(&self, of: Endpoint, ring: RingKind) -> usize {
        self.nodes[usize::from(of.cpu())].host.unread(self.pair(of), ring)
    }

    /// Makes the program of a queue pair read its rings now and from now on, or stop that.
    pub fn consumes(&mut self, of: Endpoint, yes: bool) {
        let pair = self.pair(of);
        self.nodes[usize::from(of.cpu())].host.consumes(self.now, pair, yes, &mut self.told);
    }

    fn pair(&self, of: Endpoint) -> usize {
        usize::from(of.function()) * self.per_function + usize::from(of.queue_pair())
    }
}

#[cfg(test)]
mod tests;
