//! NICs: one opening of a device with one function, behind a lock, and all objects made with it.

use crate::abi::{
    ErrorHandler, NicAttributes, RELIABLE_DELIVERY, RELIABLE_RECEPTION, Return, UNRELIABLE,
};
use crate::callback::Call;
use crate::cq::Cq;
use crate::directory::Directory;
use crate::door::{DOOR, Request, Waited};
use crate::end_point::DISCRIMINATOR_BYTES;
use crate::handle::{Handle, Kind, Slab, next_generation, nic_of};
use crate::mark::Marks;
use crate::memory::{Ptag, Region};
use crate::pointer::{Out, Text, call};
use crate::table::{REGIONS, Table};
use crate::translate::DATA_SEGMENTS;
use crate::vi::Vi;
use bellwire::{CompletionQueue, Device, Error, Function, Listener};
use std::collections::VecDeque;
use std::ffi::{c_char, c_void};
use std::ops::{Deref, DerefMut};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::thread::JoinHandle;

/// Most NICs that a process can have open.
const NICS: usize = 64;
/// Most VIs of a NIC.
pub const VIS: usize = 1024;
/// Most completion queues of a NIC.
pub const CQS: usize = 1024;
/// Most protection tags of a NIC.
const PTAGS: usize = 256;
/// Most requests that the program has been given and not answered.
const REQUESTS: usize = 256;
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
    /// Signals completions and a free [`Sleeper`] place.
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

/// Which thread sleeps at the function's descriptor. One thread sleeps there for all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sleeper {
    Nobody,
    Program,
    Agent,
}

/// An open NIC.
pub struct State {
    pub handle: Handle,
    pub device: Device,
    pub function: Function,
    /// The function's only completion queue.
    pub completions: CompletionQueue,
    pub name: String,
    pub address: [u8; ADDRESS_BYTES],
    /// The device has virtual time, and only the program's threads may drive the function.
    pub is_virtual: bool,
    pub table: Table,
    pub regions: Slab<Region>,
    pub tags: Slab<Ptag>,
    /// The directory of VIs without a tag.
    pub open_directory: Option<Directory>,
    pub vis: Slab<Vi>,
    pub cqs: Slab<Cq>,
    /// Requests that the program has been given and not answered.
    pub requests: Slab<Request>,
    /// Where requests arrive; the end points behind it are in `waited`, and `marks` tells the
    /// node's other functions of them.
    pub door: Listener,
    pub waited: Vec<Waited>,
    pub marks: Marks,
    /// Slots of VIs with descriptors that could not be issued yet.
    pub waiting_vis: Vec<u16>,
    pub error_handler: Option<(*mut c_void, ErrorHandler)>,
    /// Calls of the program's handlers that are due.
    pub calls: VecDeque<Call>,
    pub names_known: bool,
    /// Counts the program's calls, so that the agent sees whether the program is active.
    pub uses: u64,
    /// An event that a waiter may want has happened.
    pub news: bool,
    pub waiters: u32,
    pub sleeper: Sleeper,
    /// The sleeper at the descriptor has been woken and is on its way.
    pub kicked: bool,
    pub closing: bool,
    /// The function's descriptor, duplicated so that it outlives a close during a sleep.
    pub wake_fd: Arc<OwnedFd>,
    /// Ends the sleep at `wake_fd`.
    pub kick_fd: Arc<OwnedFd>,
    agent: Option<JoinHandle<()>>,
}

// SAFETY: the pointers inside are the program's contexts, which are handed back and never
// dereferenced.
unsafe impl Send for State {}

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
    entered.uses += 1;
    let result = work(&mut entered);
    entered.leave();
    result
}

impl Entered {
    /// Releases the lock, notifies waiters and, with virtual time, calls the program's handlers.
    pub fn leave(mut self) {
        if std::mem::take(&mut self.news) && (self.waiters > 0 || !self.calls.is_empty()) {
            self.wake_others();
        }
        if self.is_virtual {
            let calls = std::mem::take(&mut self.calls);
            drop(self);
            calls.into_iter().for_each(Call::run);
        }
    }

    /// Makes all waiters look again.
    pub fn wake_others(&mut self) {
        self.nic.changed.notify_all();
        self.disturb();
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

/// Opens a NIC.
pub fn open(name: &str) -> Result<Handle, Return> {
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
    let resource = |_| Return::ErrorResource;
    let wake_fd = function.wait_fd().try_clone_to_owned().map_err(|_| Return::ErrorResource)?;
    let flags = rustix::event::EventfdFlags::NONBLOCK | rustix::event::EventfdFlags::CLOEXEC;
    let kick_fd = rustix::event::eventfd(0, flags).map_err(resource)?;
    let table = Table::new()?;
    let at = function.address();
    let mut address = [0; ADDRESS_BYTES];
    address[..4].copy_from_slice(&at.node.to_be_bytes());
    address[4] = at.function;
    let is_virtual = device.virtual_time().is_some();
    let door = function.listen(DOOR).map_err(refused)?;
    let marks = Marks::new(&name, at, FUNCTIONS);

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
                let agent = named.spawn(move || crate::wait::agent(handle));
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
            table,
            regions: Slab::new(REGIONS),
            tags: Slab::new(PTAGS),
            open_directory: None,
            vis: Slab::new(VIS),
            cqs: Slab::new(CQS),
            requests: Slab::new(REQUESTS),
            door,
            waited: Vec::new(),
            marks,
            waiting_vis: Vec::new(),
            error_handler: None,
            calls: VecDeque::new(),
            names_known: false,
            uses: 0,
            news: false,
            waiters: 0,
            sleeper: Sleeper::Nobody,
            kicked: false,
            closing: false,
            wake_fd: Arc::new(wake_fd),
            kick_fd: Arc::new(kick_fd),
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
    while guard.as_ref().is_some_and(|state| state.waiters > 0) {
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
    /// Wakes the thread that sleeps at the function's descriptor before the function makes
    /// progress. Progress tells peers that we are awake, and then they would not wake the sleeper.
    pub fn disturb(&mut self) {
        if self.sleeper != Sleeper::Nobody && !self.kicked {
            self.kicked = true;
            // A full counter wakes as well.
            let _ = rustix::io::write(&self.kick_fd, &1u64.to_ne_bytes());
        }
    }

    fn attributes(&self) -> NicAttributes {
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

/// Opens the device `name` as a NIC.
///
/// # Safety
/// `name` is null or ends with a zero; `nic` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipOpenNic(name: Text<'_>, nic: Out<'_, *mut c_void>) -> Return {
    call(|| {
        nic.check()?;
        nic.write(open(&name.to_text())?.to_pointer())
    })
}

/// Closes a NIC and releases all objects made with it.
#[unsafe(no_mangle)]
pub extern "C" fn VipCloseNic(nic: *mut c_void) -> Return {
    call(|| close(nic_of(nic)))
}

/// The limits of a NIC.
///
/// # Safety
/// `attributes` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipQueryNic(
    nic: *mut c_void,
    attributes: Out<'_, NicAttributes>,
) -> Return {
    call(|| attributes.write(on_nic(nic_of(nic), |state| Ok(state.attributes()))?))
}

/// Management information. The specification names one kind, and this library has none of it.
#[unsafe(no_mangle)]
pub extern "C" fn VipQuerySystemManagementInfo(
    nic: *mut c_void,
    kind: std::ffi::c_ulong,
    info: *mut c_void,
) -> Return {
    call(|| {
        on_nic(nic_of(nic), |_| match kind {
            1 if !info.is_null() => Err(Return::ErrorNotSupported),
            _ => Err(Return::InvalidParameter),
        })
    })
}
