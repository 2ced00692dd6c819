//! NICs: one opening of a device with one function, behind a lock, and all objects made with it.

use crate::abi::{
    ErrorCode, ErrorDescriptor, NicAttributes, RELIABLE_DELIVERY, RELIABLE_RECEPTION, ResourceCode,
    Return, UNRELIABLE,
};
use crate::callback::{Call, Calls};
use crate::cq::Cq;
use crate::door::Door;
use crate::end_point::DISCRIMINATOR_BYTES;
use crate::handle::{Handle, Kind, Slab, next_generation};
use crate::mark::Marks;
use crate::memory::{Memory, PTAGS};
use crate::pointer::call;
use crate::table::REGIONS;
use crate::translate::DATA_SEGMENTS;
use crate::vi::Vi;
use crate::waiters::Waiters;
use bellwire::{CompletionQueue, Device, Error, Function};
use bellwire_ring::signals;
use std::ffi::c_char;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::thread::JoinHandle;

/// Most NICs that a process can have open.
const NICS: usize = 64;
/// Most VIs of a NIC.
pub const VIS: usize = 1024;
/// Most completion queues of a NIC.
pub const CQS: usize = 1024;
/// Most descriptors in one work queue.
pub const QUEUE_DEPTH: usize = 4096;
/// Most unfinished descriptors in all work queues of a NIC.
const COMPLETIONS: usize = 1 << 15;
/// Longest message in bytes: its length shares a word with the immediate value.
pub const TRANSFER_BYTES: u64 = 1 << 29;
/// Bytes of a host address: node, function, and a zero byte. The cards of 1998 to 2005 had six
/// bytes too.
pub const ADDRESS_BYTES: usize = 6;
/// Functions tried when a device is opened: several processes may share an interface.
const FUNCTIONS: u8 = 8;

/// A slot for a NIC. It is never moved or freed, so a stale handle finds an empty slot at worst.
pub struct Nic {
    state: Mutex<Option<State>>,
    /// Signals completions and a free [`Sleeper`](crate::waiters::Sleeper) place.
    pub changed: Condvar,
    /// The value of [`FORKS`] when the NIC was opened; [`NOBODY`] while the slot is free. A child
    /// never locks a slot of its parent: the lock may have been held at the fork.
    forks: AtomicU32,
}

/// The slot is free.
const NOBODY: u32 = u32::MAX;

static PLACES: [Nic; NICS] = [const {
    Nic { state: Mutex::new(None), changed: Condvar::new(), forks: AtomicU32::new(NOBODY) }
}; NICS];

/// Forks between this process and the one that first opened a NIC.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// An open NIC.
pub struct State {
    pub handle: Handle,
    pub device: Device,
    pub function: Function,
    /// The function's only completion queue.
    pub completions: CompletionQueue,
    name: String,
    address: [u8; ADDRESS_BYTES],
    /// The device has virtual time, and only the program's threads may drive the function.
    pub is_virtual: bool,
    pub memory: Memory,
    pub door: Door,
    pub vis: Slab<Vi>,
    /// Slots of VIs with descriptors that could not be issued yet.
    pub waiting_vis: Vec<u16>,
    pub cqs: Slab<Cq>,
    pub calls: Calls,
    pub waiters: Waiters,
    pub names_known: bool,
    pub closing: bool,
    agent: Option<JoinHandle<()>>,
}

/// A NIC while this thread holds its lock.
pub struct Entered {
    pub nic: &'static Nic,
    pub guard: MutexGuard<'static, Option<State>>,
}

impl Deref for Entered {
    type Target = State;
    fn deref(&self) -> &State {
        self.guard.as_ref().expect("a NIC is entered while it is open")
    }
}

impl DerefMut for Entered {
    fn deref_mut(&mut self) -> &mut State {
        self.guard.as_mut().expect("a NIC is entered while it is open")
    }
}

/// Locks the NIC of a handle of any kind.
pub fn enter(handle: Handle) -> Result<Entered, Return> {
    let nic = &PLACES[handle.nic as usize];
    // The lock guards the state, so this load needs no order.
    if nic.forks.load(Ordering::Relaxed) != FORKS.load(Ordering::Relaxed) {
        return Err(Return::InvalidParameter);
    }
    let guard = nic.lock();
    match &*guard {
        Some(state) if handle.kind != Kind::Nic || state.handle == handle => {}
        _ => return Err(Return::InvalidParameter),
    }
    Ok(Entered { nic, guard })
}

/// Runs `work` with a NIC's lock held: the frame of all calls that do not wait.
pub fn on_nic<R>(
    handle: Option<Handle>,
    work: impl FnOnce(&mut State) -> Result<R, Return>,
) -> Result<R, Return> {
    let mut entered = enter(handle.ok_or(Return::InvalidParameter)?)?;
    if entered.closing {
        return Err(Return::InvalidParameter);
    }
    entered.waiters.uses += 1;
    let result = work(&mut entered);
    entered.leave();
    result
}

/// A call of C that does not wait and gives nothing back.
pub fn call_on(
    handle: Option<Handle>,
    work: impl FnOnce(&mut State) -> Result<(), Return>,
) -> Return {
    call(|| on_nic(handle, work))
}

impl Entered {
    /// Releases the lock, notifies waiters and, with virtual time, calls the program's handlers.
    pub fn leave(mut self) {
        if std::mem::take(&mut self.waiters.news)
            && (self.waiters.count > 0 || !self.calls.due.is_empty())
        {
            self.wake_others();
        }
        if self.is_virtual {
            let calls = std::mem::take(&mut self.calls.due);
            drop(self);
            calls.into_iter().for_each(Call::run);
        }
    }

    /// Makes all waiters look again.
    pub fn wake_others(&mut self) {
        self.nic.changed.notify_all();
        self.waiters.disturb();
    }
}

impl Nic {
    pub fn lock(&'static self) -> MutexGuard<'static, Option<State>> {
        // The C boundary catches a panic of the library. The state is consistent, because no call
        // leaves work half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The device that a VIA device name means.
fn device_name(name: &str) -> String {
    let is_known = |name: &str| ["shm", "eth", "udp", "model", "auto"].contains(&name);
    let kind = name.split(':').next().unwrap_or_default();
    if is_known(kind) {
        return match name.contains(':') {
            true => name.to_owned(),
            false if kind == "shm" => "shm:vipl".to_owned(),
            false if kind == "model" => "model:chpp".to_owned(),
            // The device's error names what is missing.
            false => format!("{name}:"),
        };
    }
    match std::env::var("BELLWIRE_DEVICE") {
        Ok(known) if is_known(known.split(':').next().unwrap_or_default()) => device_name(&known),
        Ok(other) if !other.is_empty() => other,
        _ => "shm:vipl".to_owned(),
    }
}

/// The device of that name, if this process has a NIC of it. A card of 1998 to 2005 could be opened
/// again with the same address; here a second opening is another function of the same node. On a
/// model each opening is a node, because a model serves one program.
fn opened_before(name: &str) -> Option<Device> {
    let forks = FORKS.load(Ordering::Relaxed);
    PLACES.iter().filter(|nic| nic.forks.load(Ordering::Relaxed) == forks).find_map(|nic| {
        let guard = nic.lock();
        let state = guard.as_ref().filter(|state| state.name == name && !state.is_virtual)?;
        Some(state.device.clone())
    })
}

/// Opens a device, and the first of its functions that is free.
fn open_device(name: &str) -> Result<(Device, Function), Error> {
    let device = match opened_before(name) {
        Some(device) => device,
        None => Device::open(name)?,
    };
    let mut number = 0;
    loop {
        match device.open_function(number) {
            Ok(function) => return Ok((device, function)),
            Err(error) if number + 1 == FUNCTIONS => return Err(error),
            Err(_) => number += 1,
        }
    }
}

/// Opens a NIC. `agent` runs in a thread of its own, unless time is virtual.
pub fn open(name: &str, agent: fn(Handle)) -> Result<Handle, Return> {
    count_forks();
    let name = device_name(name);
    let refused = |error: Error| {
        tracing::error!(%name, %error, "VipOpenNic");
        match error {
            Error::BadDeviceName { .. } => Return::InvalidParameter,
            _ => Return::ErrorResource,
        }
    };
    let (device, mut function) = open_device(&name).map_err(refused)?;
    let completions = function.create_completion_queue(COMPLETIONS).map_err(refused)?;
    let (waiters, memory) = (Waiters::new(&function)?, Memory::new()?);
    let at = function.address();
    let mut address = [0; ADDRESS_BYTES];
    address[..4].copy_from_slice(&at.node.to_be_bytes());
    address[4] = at.function;
    let is_virtual = device.virtual_time().is_some();
    let marks = (!is_virtual).then(|| Marks::new(&name, at, FUNCTIONS));
    let door = Door::new(&mut function, marks).map_err(refused)?;

    for (place, nic) in PLACES.iter().enumerate() {
        if nic.forks.load(Ordering::Relaxed) != NOBODY {
            continue;
        }
        let mut guard = nic.lock();
        if guard.is_some() {
            continue;
        }
        let handle =
            Handle { kind: Kind::Nic, nic: place as u8, slot: 0, generation: next_generation() };
        nic.forks.store(FORKS.load(Ordering::Relaxed), Ordering::Relaxed);
        let agent = match is_virtual {
            true => None,
            false => {
                let named = std::thread::Builder::new().name("vipl-agent".to_owned());
                let agent = signals::spawn(named, move || agent(handle));
                Some(agent.map_err(|_| Return::ErrorResource)?)
            }
        };
        *guard = Some(State {
            handle,
            device,
            function,
            completions,
            name,
            address,
            is_virtual,
            memory,
            door,
            vis: Slab::new(VIS),
            waiting_vis: Vec::new(),
            cqs: Slab::new(CQS),
            calls: Calls::default(),
            waiters,
            names_known: false,
            closing: false,
            agent,
        });
        return Ok(handle);
    }
    Err(Return::ErrorResource)
}

/// Closes a NIC with all objects made with it. A thread that waits there is told that the NIC does
/// not exist.
pub fn close(handle: Option<Handle>) -> Result<(), Return> {
    let mut entered = enter(handle.ok_or(Return::InvalidParameter)?)?;
    if entered.closing {
        return Err(Return::InvalidParameter);
    }
    entered.closing = true;
    entered.wake_others();
    let nic = entered.nic;
    let mut guard = entered.guard;
    while guard.as_ref().is_some_and(|state| state.waiters.count > 0) {
        guard = nic.changed.wait(guard).unwrap_or_else(PoisonError::into_inner);
    }
    let agent = guard.as_mut().and_then(|state| state.agent.take());
    drop(guard);
    // A handler may close its own NIC; then the agent ends once the handler has returned.
    if let Some(agent) = agent
        && agent.thread().id() != std::thread::current().id()
    {
        let _ = agent.join();
    }
    let mut guard = nic.lock();
    let state = guard.take();
    nic.forks.store(NOBODY, Ordering::Relaxed);
    drop(guard);
    // After the lock, because closing links takes time.
    drop(state);
    Ok(())
}

/// Makes a forked child notice that the NICs are its parent's: in the child their locks may be held
/// for ever.
fn count_forks() {
    static ONCE: Once = Once::new();
    extern "C" fn in_child() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    // SAFETY: the handler only counts.
    ONCE.call_once(|| unsafe {
        libc::pthread_atfork(None, None, Some(in_child));
    });
}

impl State {
    /// The VI of a handle.
    pub fn vi(&mut self, handle: Option<Handle>) -> Result<&mut Vi, Return> {
        handle.and_then(|handle| self.vis.find(handle)).ok_or(Return::InvalidParameter)
    }

    /// A call of a handler is due.
    pub fn due(&mut self, call: Call) {
        self.calls.add(call);
        self.waiters.news = true;
    }

    /// Reports an asynchronous error of a VI: one that no call of the program returns.
    pub fn tell_error(&mut self, vi: Handle, error: ErrorCode) {
        tracing::warn!(nic = %self.name, code = ?error, "asynchronous error of a VI");
        let Some((context, handler)) = self.calls.error_handler else { return };
        let (cq, descriptor, op_code) = (std::ptr::null_mut(), std::ptr::null_mut(), 0);
        let (nic, vi, resource) = (self.handle.to_pointer(), vi.to_pointer(), ResourceCode::Vi);
        let error = ErrorDescriptor { nic, vi, cq, descriptor, op_code, resource, error };
        self.due(Call::Error { handler, context, error });
    }

    pub fn attributes(&self) -> NicAttributes {
        let mut name = [0 as c_char; 64];
        for (to, from) in name.iter_mut().take(63).zip(self.name.bytes()) {
            *to = from as c_char;
        }
        let limits = self.function.limits();
        let reliable = RELIABLE_DELIVERY | RELIABLE_RECEPTION;
        NicAttributes {
            name,
            hardware_version: 0,
            provider_version: 0x0001_0000,
            nic_address_len: ADDRESS_BYTES as u16,
            local_nic_address: self.address.as_ptr(),
            thread_safe: 1,
            max_discriminator_len: DISCRIMINATOR_BYTES as u16,
            max_register_bytes: 1 << 40,
            max_register_regions: REGIONS.min(limits.regions) as _,
            max_register_block_bytes: 1 << 40,
            max_vi: VIS.min(limits.queue_pairs) as _,
            max_descriptors_per_queue: QUEUE_DEPTH as _,
            max_segments_per_desc: DATA_SEGMENTS as _,
            max_cq: CQS as _,
            max_cq_entries: COMPLETIONS as _,
            max_transfer_size: TRANSFER_BYTES as _,
            native_mtu: limits.packet_bytes as _,
            max_ptags: PTAGS as _,
            reliability_level_support: UNRELIABLE | reliable,
            rdma_read_support: reliable,
        }
    }
}
