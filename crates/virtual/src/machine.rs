//! What the device needs of a machine: hosts with interfaces, in virtual time. The event-driven
//! machine of `bellwire_model::chpp` is one, and the one that goes cycle by cycle is another.

use bellwire_model::chpp::clocked::{self, Interface, Told};
use bellwire_model::chpp::host::{Notice, RingKind};
use bellwire_model::chpp::machine::{HostApi, Program};
use bellwire_model::chpp::{self, Config};
use bellwire_model::units::Time;
use bellwire_wire::WireError;
use bellwire_wire::descriptor::DescriptorRepr;
use bellwire_wire::endpoint::Endpoint;

/// Hosts and their interfaces.
pub trait Machine: Send {
    /// The present time.
    fn now(&self) -> Time;

    /// Goes on to the next thing that happens, at or before `until`, and tells what software has
    /// read. `false`: nothing happens until then, and the time is now `until`.
    fn step(&mut self, until: Time, tell: Tell<'_>) -> bool;

    /// Whether something can still happen before a program acts.
    fn is_pending(&self) -> bool;

    /// The cycle of waits of a permanent deadlock.
    fn deadlock(&self) -> Option<String>;

    /// How much has happened: events or cycles.
    fn events(&self) -> u64;

    /// A hash of all that has happened.
    fn trace_hash(&self) -> u64;

    /// The key of a queue pair (C-09).
    fn key(&mut self, of: Endpoint) -> u8;

    /// The first address of a function's window, and the first one that programs may use.
    fn window(&mut self, node: usize, function: usize) -> [u64; 2];

    /// Writes bytes at a global address (C-05) of a function's window.
    fn write(&mut self, address: u64, bytes: &[u8]);

    /// Posts a descriptor. Returns when the processor starts it.
    ///
    /// # Errors
    /// [`WireError`] if the descriptor cannot be written.
    fn post(
        &mut self,
        node: usize,
        function: usize,
        descriptor: &DescriptorRepr<'_>,
    ) -> Result<Time, WireError>;

    /// Whether the next operation of this function would start at once.
    fn has_place(&self, node: usize, function: usize) -> bool;

    /// Events of a ring that software has not read.
    fn unread(&self, of: Endpoint, ring: RingKind) -> usize;

    /// Makes the program of a queue pair read its rings now and from now on, or stop that.
    fn consumes(&mut self, of: Endpoint, yes: bool, tell: Tell<'_>);
}

/// Takes an event that software has read, with the memory of its node at this moment.
pub type Tell<'a> = &'a mut dyn FnMut(&Told, &mut dyn FnMut(u64, usize) -> Vec<u8>);

/// A program of the event-driven machine that passes on what it is told.
struct Teller<'a>(Tell<'a>);

impl Program for Teller<'_> {
    fn notified(&mut self, notice: &Notice, api: &mut HostApi<'_>) {
        let Notice { node, function, queue_pair, ring, event, .. } = *notice;
        let told = Told { node, function, queue_pair, ring, event };
        let mut bytes = |address, length| api.memory(address, length).unwrap_or_default().to_vec();
        (self.0)(&told, &mut bytes);
    }
}

/// The event-driven machine.
///
/// # Errors
/// [`chpp::ConfigError`].
pub(crate) fn event_driven(config: &Config, seed: u64) -> Result<chpp::Machine, chpp::ConfigError> {
    let mut machine = chpp::Machine::new(config, seed)?;
    machine.forget_operations();
    Ok(machine)
}

impl Machine for chpp::Machine {
    fn now(&self) -> Time {
        self.now()
    }

    fn step(&mut self, until: Time, tell: Tell<'_>) -> bool {
        self.step_program(&mut Teller(tell), until)
    }

    fn is_pending(&self) -> bool {
        self.pending() > 0
    }

    fn deadlock(&self) -> Option<String> {
        self.deadlock().map(|cycle| cycle.to_string())
    }

    fn events(&self) -> u64 {
        self.events()
    }

    fn trace_hash(&self) -> u64 {
        self.trace_hash()
    }

    fn key(&mut self, of: Endpoint) -> u8 {
        self.api().key(of)
    }

    fn window(&mut self, node: usize, function: usize) -> [u64; 2] {
        let api = self.api();
        [api.window(node, function), api.free_memory(node, function)]
    }

    fn write(&mut self, address: u64, bytes: &[u8]) {
        let mut api = self.api();
        let memory = api.memory_mut(address, bytes.len());
        memory.expect("windows lie in memory").copy_from_slice(bytes);
    }

    fn post(
        &mut self,
        node: usize,
        function: usize,
        descriptor: &DescriptorRepr<'_>,
    ) -> Result<Time, WireError> {
        let operation = self.api().post(node, function, descriptor)?;
        // `post` has just made the operation.
        Ok(self.operation(operation).map_or(self.now(), |operation| operation.started))
    }

    fn has_place(&self, node: usize, function: usize) -> bool {
        self.nodes()[node].host.has_place(function)
    }

    fn unread(&self, of: Endpoint, ring: RingKind) -> usize {
        let (node, function, queue_pair) = parts(of);
        self.nodes()[node].host.unread(function, queue_pair, ring)
    }

    fn consumes(&mut self, of: Endpoint, yes: bool, tell: Tell<'_>) {
        let (node, function, pair) = parts(of);
        self.api().consumes(node, function, pair, yes);
        self.tell(&mut Teller(tell));
    }
}

impl<I: Interface> Machine for clocked::Machine<I> {
    fn now(&self) -> Time {
        self.now()
    }

    fn step(&mut self, until: Time, tell: Tell<'_>) -> bool {
        let stepped = self.step(until);
        tell_all(self, tell);
        stepped
    }

    fn is_pending(&self) -> bool {
        self.is_pending()
    }

    /// A fault of the interface, which no program can get over, either.
    fn deadlock(&self) -> Option<String> {
        self.fault()
    }

    fn events(&self) -> u64 {
        self.cycles()
    }

    fn trace_hash(&self) -> u64 {
        self.trace_hash()
    }

    fn key(&mut self, of: Endpoint) -> u8 {
        clocked::Machine::key(self, of)
    }

    fn window(&mut self, node: usize, function: usize) -> [u64; 2] {
        clocked::Machine::window(self, node, function)
    }

    fn write(&mut self, address: u64, bytes: &[u8]) {
        let memory = self.memory_mut(address, bytes.len());
        memory.expect("windows lie in memory").copy_from_slice(bytes);
    }

    fn post(
        &mut self,
        node: usize,
        function: usize,
        descriptor: &DescriptorRepr<'_>,
    ) -> Result<Time, WireError> {
        clocked::Machine::post(self, node, function, descriptor)
    }

    fn has_place(&self, node: usize, function: usize) -> bool {
        self.has_place(node, function)
    }

    fn unread(&self, of: Endpoint, ring: RingKind) -> usize {
        self.unread(of, ring)
    }

    fn consumes(&mut self, of: Endpoint, yes: bool, tell: Tell<'_>) {
        clocked::Machine::consumes(self, of, yes);
        tell_all(self, tell);
    }
}

/// Tells what software has read.
fn tell_all<I: Interface>(machine: &mut clocked::Machine<I>, tell: Tell<'_>) {
    while let Some(told) = machine.next_told() {
        let mut bytes =
            |address, length| machine.memory(address, length).unwrap_or_default().to_vec();
        tell(&told, &mut bytes);
    }
}

/// The numbers of node, function and queue pair.
pub(crate) fn parts(endpoint: Endpoint) -> (usize, usize, usize) {
    (endpoint.cpu().into(), endpoint.function().into(), endpoint.queue_pair().into())
}
