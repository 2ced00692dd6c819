//! NICs: one opening of a device with one function, behind a lock, and everything that was made with it.

use crate::abi::{
    ErrorHandler, NicAttributes, RELIABLE_DELIVERY, RELIABLE_RECEPTION, Return, UNRELIABLE,
};
use crate::callback::Call;
use crate::cq::Cq;
use crate::directory::Directory;
use crate::door::{DOOR, Request, Waited};
use crate::handle::{Handle, Kind, Slab, next_generation};
use crate::mark::Marks;
use crate::memory::{Ptag, Region};
use crate::table::{REGIONS, Table};
use crate::vi::Vi;
use bellwire::{CompletionQueue, Device, Error, Function, Listener};
use std::collections::VecDeque;
use std::ffi::{CStr, c_char, c_void};
use std::ops::{Deref, DerefMut};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::thread::JoinHandle;

/// NICs that a process can have open.
const NICS: usize = 64;
/// VIs of a NIC.
pub const VIS: usize = 1024;
/// Completion queues of a NIC.
pub const CQS: usize = 1024;
/// Protection tags of a NIC.
const PTAGS: usize = 256;
/// Requests that were told to the program and not answered.
const REQUESTS: usize = 256;
/// Descriptors in one work queue.
pub const QUEUE_DEPTH: usize = 4096;
/// Posted descriptors of all work queues of a NIC that have not finished.
const COMPLETIONS: usize = 1 << 15;
/// Longest message: its length shares a word with the immediate value.
pub const TRANSFER_BYTES: u64 = 1 << 29;
/// Bytes of a host address: node, function, and one that is zero. As many as those of the cards that programs were written for.
pub const ADDRESS_BYTES: usize = 6;
/// Bytes of a discriminator at most.
pub const DISCRIMINATOR_BYTES: usize = 64;
/// Functions that are tried when a device is opened: several processes may share an interface.
const FUNCTIONS: u8 = 8;

/// A place for a NIC. It is never moved or freed, so that an old handle finds an empty place at worst.
pub struct Nic {
    state: Mutex<Option<State>>,
    /// Completions, or the end of somebody's sleep.
    pub changed: Condvar,
    /// How often the process had been forked when it was opened; [`NOBODY`] while it is free. A place of the parent's is never entered,
    /// because its lock may have been held when the child was made.
    forks: AtomicU32,
}

/// No NIC is here.
const NOBODY: u32 = u32::MAX;

static PLACES: [Nic; NICS] = [const {
    Nic { state: Mutex::new(None), changed: Condvar::new(), forks: AtomicU32::new(NOBODY) }
}; NICS];

/// How often this process is the child of a fork since it first opened a NIC.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Who sleeps at the function's descriptor. One does for all.
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
    /// Where everything completes.
    pub completions: CompletionQueue,
    pub name: String,
    pub address: [u8; ADDRESS_BYTES],
    /// Time is the machine's own, and no thread but the program's may drive the function.
    pub is_virtual: bool,
    pub table: Table,
    pub regions: Slab<Region>,
    pub tags: Slab<Ptag>,
    /// What peers of VIs without a tag are told.
    pub open_directory: Option<Directory>,
    pub vis: Slab<Vi>,
    pub cqs: Slab<Cq>,
    /// Requests that were told to the program.
    pub requests: Slab<Request>,
    /// Where requests arrive, what is waited for behind it, and where others of the node are told of that.
    pub door: Listener,
    pub waited: Vec<Waited>,
    pub marks: Marks,
    /// Slots of VIs with descriptors that could not be handed on yet.
    pub waiting_vis: Vec<u16>,
    pub error_handler: Option<(*mut c_void, ErrorHandler)>,
    /// Calls of the program's handlers that are due.
    pub calls: VecDeque<Call>,
    pub names_known: bool,
    /// Counts the program's calls, so that the agent sees whether it is active.
    pub uses: u64,
    /// Something happened that somebody may wait for.
    pub news: bool,
    pub waiters: u32,
    pub sleeper: Sleeper,
    /// Whoever sleeps there has been woken, and is on its way.
    pub kicked: bool,
    pub closing: bool,
    /// The function's descriptor, a duplicate, so that it outlives a close during somebody's sleep.
    pub wake_fd: Arc<OwnedFd>,
    /// Ends the sleep at it.
    pub kick_fd: Arc<OwnedFd>,
    agent: Option<JoinHandle<()>>,
}

// SAFETY: the pointers inside are the program's contexts, which are handed back and never followed.
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

/// Enters the NIC of a handle, whatever its kind.
pub fn enter(handle: Handle) -> Result<Entered, Return> {
    let nic = &PLACES[handle.nic as usize];
    // Of the state that the lock guards, so it needs no order of its own.
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

/// Does `work` with a NIC: the frame of all calls that do not wait.
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
    /// Lets the lock go, tells those who wait, and on a device of virtual time calls the program's handlers.
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

    /// Has everybody who waits look again.
    pub fn wake_others(&mut self) {
        self.nic.changed.notify_all();
        self.disturb();
    }
}

impl Nic {
    pub fn lock(&'static self) -> MutexGuard<'static, Option<State>> {
        // A panic inside the library is caught at its border; the state is in order, since nothing is half done across calls.
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
            // The device says what is missing.
            false => format!("{name}:"),
        };
    }
    match std::env::var("BELLWIRE_DEVICE") {
        Ok(known) if is_known(known.split(':').next().unwrap_or_default()) => device_name(&known),
        Ok(other) if !other.is_empty() => other,
        _ => "shm:vipl".to_owned(),
    }
}

/// The device of that name, if this process has a NIC of it. A card of the time could be opened again, with the same address: what is opened again
/// here is another function of the same node. On a model each opening is a node, because it is one program's.
fn opened_before(name: &str) -> Option<Device> {
    let forks = FORKS.load(Ordering::Relaxed);
    PLACES.iter().filter(|nic| nic.forks.load(Ordering::Relaxed) == forks).find_map(|nic| {
        let guard = nic.lock();
        let state = guard.as_ref().filter(|state| state.name == name && !state.is_virtual)?;
        Some(state.device.clone())
    })
}

/// Opens a device, and the first of its functions that nobody has.
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

/// Closes a NIC with everything that was made with it. Whoever waits there is told that it does not exist.
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
    // A handler may close its own NIC; the agent ends when that has returned.
    if let Some(agent) = agent
        && agent.thread().id() != std::thread::current().id()
    {
        let _ = agent.join();
    }
    let mut guard = nic.lock();
    let state = guard.take();
    nic.forks.store(NOBODY, Ordering::Relaxed);
    drop(guard);
    // After the lock, because the end of links takes a while.
    drop(state);
    Ok(())
}

/// Has a forked child notice that the NICs are its parent's, whose lock may be held for ever here.
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
    /// Wakes whoever sleeps at the function's descriptor, because the function makes progress: then peers are told that we are awake, and
    /// would not wake the sleeper any more.
    pub fn disturb(&mut self) {
        if self.sleeper != Sleeper::Nobody && !self.kicked {
            self.kicked = true;
            // A counter that is full wakes as well.
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
            max_segments_per_desc: crate::physical::DATA_SEGMENTS as _,
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

/// The text at `text`; empty for null.
///
/// # Safety
/// Null, or a string that ends with a zero.
pub unsafe fn text_of(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// Writes `value` to `place`.
///
/// # Errors
/// [`Return::InvalidParameter`] for null.
///
/// # Safety
/// Null, or a place for a `T`.
pub unsafe fn write_to<T>(place: *mut T, value: T) -> Result<(), Return> {
    if place.is_null() {
        return Err(Return::InvalidParameter);
    }
    // SAFETY: the caller's promise; C may have aligned it less than we would.
    unsafe { place.write_unaligned(value) };
    Ok(())
}

/// Carries out a call from C: nothing unwinds into it.
pub fn call(work: impl FnOnce() -> Result<(), Return>) -> Return {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
        Ok(Ok(())) => Return::Success,
        Ok(Err(code)) => code,
        Err(_) => Return::Error,
    }
}

/// The NIC that `pointer` names.
pub fn nic_of(pointer: *mut c_void) -> Option<Handle> {
    Handle::of(pointer, Kind::Nic)
}

/// Opens the device `name` as a NIC.
///
/// # Safety
/// `name` is null or ends with a zero; `nic` is null or a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipOpenNic(name: *const c_char, nic: *mut *mut c_void) -> Return {
    call(|| {
        if nic.is_null() {
            return Err(Return::InvalidParameter);
        }
        // SAFETY: the caller's promise.
        let handle = open(&unsafe { text_of(name) })?;
        // SAFETY: likewise.
        unsafe { write_to(nic, handle.to_pointer()) }
    })
}

/// Closes a NIC and releases everything made with it.
#[unsafe(no_mangle)]
pub extern "C" fn VipCloseNic(nic: *mut c_void) -> Return {
    call(|| close(nic_of(nic)))
}

/// The limits of a NIC.
///
/// # Safety
/// `attributes` is null or a place for them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipQueryNic(nic: *mut c_void, attributes: *mut NicAttributes) -> Return {
    call(|| {
        let known = on_nic(nic_of(nic), |state| Ok(state.attributes()))?;
        // SAFETY: the caller's promise.
        unsafe { write_to(attributes, known) }
    })
}

/// Management information: there is none of the one kind that the specification names.
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
