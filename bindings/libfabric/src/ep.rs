//! Endpoints, without the calls of the data path.

use crate::abi::{Fid, FidEp, Info, Ops, Slot, class, error, flag, not_offered, ops, value};
use crate::address;
use crate::av::Av;
use crate::bound::Bound;
use crate::connection::{self, Line};
use crate::domain::Domain;
use crate::info::{self, DATAGRAM_BYTES};
use crate::library::{Level, library, log};
use crate::lock::{Held, Lock};
use crate::object::{CLOSED_EP, given, is_memory, object, retire};
use crate::passive::{self, Origin};
use crate::{atomic, receive, rma, transmit};
use bellwire::{Device, Error};
use bellwire_tagged::{CONNECTION_BYTES, Endpoint, OPERAND_BYTES, Options, Peer};
use std::ffi::{c_char, c_int, c_void};
use std::net::SocketAddrV4;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};

/// An endpoint.
#[repr(C)]
pub struct Ep {
    fid: FidEp,
    domain: *mut Domain,
    /// Its name.
    address: SocketAddrV4,
    wait_fd: c_int,
    /// Calls of `progress`.
    turns: AtomicU64,
    state: Lock<State>,
}

object!(Ep, FidEp, FID, CLOSED_EP);

/// The state of an endpoint.
pub struct State {
    pub endpoint: Endpoint,
    pub bound: Bound,
    /// Its connection state, if it is of the connected kind.
    pub line: Line,
    kind: c_int,
    enabled: bool,
    /// Peers by their numbers in the address vector, as of `changes`.
    peers: Vec<Option<Peer>>,
    changes: u64,
}

static FID: Ops<6> = ops![close, bind, control, not_offered, not_offered, not_offered];
static EP: Ops<7> =
    ops![receive::cancel::<Ep>, option, set_option, not_offered, not_offered, room, room];
static CM: Ops<9> = ops![
    not_offered,
    name,
    not_offered,
    not_offered,
    not_offered,
    not_offered,
    not_offered,
    not_offered,
    not_offered,
];
/// The slot of operations that an endpoint does not offer.
pub const NONE: Slot = Slot(not_offered as *const c_void);
pub static NO_CALLS: Ops<9> = Ops::new([NONE; 9]);
pub static NO_ATOMICS: Ops<13> = Ops::new([NONE; 13]);
pub static NO_COLLECTIVES: Ops<11> = Ops::new([NONE; 11]);

/// `fi_endpoint`.
pub unsafe extern "C" fn open(
    domain: *mut Domain,
    info: *mut Info,
    into: *mut *mut Ep,
    context: *mut c_void,
) -> c_int {
    given!(info, into);
    // SAFETY: the interface's contract for pointers, see `lib.rs`. The attributes are those that we
    // gave, or a copy.
    unsafe {
        let info = &*info;
        let kind = match info.ep_attr.as_ref().map_or(value::EP_UNSPEC, |ep| ep.kind) {
            value::EP_UNSPEC => value::EP_RDM,
            kind => kind,
        };
        let connected = kind == value::EP_MSG;
        let datagrams = kind == value::EP_DGRAM;
        if connected && !(*domain).shared {
            let hint = "open the domain with an info of FI_EP_MSG";
            log(Level::Warn, &format!("no connected endpoint in a domain without locks: {hint}"));
            return -error::EINVAL;
        }
        let mut wanted = info::source(info);
        let (mut request, mut given) = (None, None);
        if connected && !info.handle.is_null() {
            match passive::take(info.handle) {
                // The name is the listener's, but the endpoint needs a function of its own.
                Some(Origin::Request(theirs)) => request = Some((theirs, wanted.take())),
                Some(Origin::Place(endpoint, name)) => given = Some((*endpoint, name)),
                None => {
                    log(Level::Warn, "the handle of an info is no request that waits, or was used");
                    return -error::EINVAL;
                }
            }
        }
        let (mut endpoint, mut address) = match given {
            Some(given) => given,
            None => match open_function(&(*domain).device, wanted) {
                Ok(endpoint) => {
                    let name = address::name_of(&endpoint, wanted);
                    (endpoint, name)
                }
                Err(error) => return error,
            },
        };
        if let Some((_, Some(name))) = request {
            address = name;
        }
        if connected {
            endpoint.restrict_to_peer();
        }
        if info.caps & flag::RMA_EVENT != 0 {
            endpoint.monitor();
        }
        if endpoint.operand_bytes() < OPERAND_BYTES {
            log(Level::Warn, "the device's packets are too short for FI_ATOMIC: use another one");
            return -error::ENODEV;
        }
        if datagrams && endpoint.eager_bytes() < DATAGRAM_BYTES {
            log(Level::Warn, "the device's packets are too short for datagrams: use another one");
            return -error::ENODEV;
        }
        let fid = Fid { class: class::EP, context, ops: &FID };
        let fid = FidEp {
            fid,
            ops: &EP,
            cm: if connected { &connection::CM } else { &CM },
            msg: &transmit::MSG,
            rma: if datagrams { &NO_CALLS } else { &rma::RMA },
            tagged: if datagrams { &NO_CALLS } else { &transmit::TAGGED },
            atomic: if datagrams { &NO_ATOMICS } else { &atomic::ATOMIC },
            collective: &NO_COLLECTIVES,
        };
        let bound = Bound::new(info, kind);
        let wait_fd = endpoint.wait_fd().as_raw_fd();
        let line = Line::new(request.map(|(request, _)| request));
        let peers = Vec::new();
        let state = State { endpoint, bound, line, kind, enabled: false, peers, changes: 0 };
        let state = Lock::new((*domain).shared, state);
        let turns = AtomicU64::new(0);
        let ep = Box::into_raw(Box::new(Ep { fid, domain, address, wait_fd, turns, state }));
        (*ep).hold().bound.fid = ep.cast();
        if (*domain).exposed.hold().add_endpoint(ep).is_err() {
            drop(Box::from_raw(ep));
            log(Level::Warn, "an endpoint cannot be opened: memory cannot be registered with it");
            return -error::ENOMEM;
        }
        (*domain).users.fetch_add(1, Ordering::Relaxed);
        if let Some(progress) = &(*domain).progress {
            progress.add(ep);
        }
        into.write(ep);
    }
    0
}

/// Opens the function that an address means. Without an address, it opens any free function, and
/// the search starts at a number that differs from process to process. So an address is not reused
/// soon.
///
/// # Errors
/// The negative error number, after a line in the log.
pub fn open_function(device: &Device, wanted: Option<SocketAddrV4>) -> Result<Endpoint, c_int> {
    try_functions(device, wanted).map_err(|error| {
        log(Level::Warn, &format!("an endpoint cannot be opened: {error}"));
        match error {
            Error::BadFunction { .. } | Error::NameHeld { .. } => -error::EADDRINUSE,
            _ => -error::ENODEV,
        }
    })
}

fn try_functions(device: &Device, wanted: Option<SocketAddrV4>) -> bellwire::Result<Endpoint> {
    let options = Options::default();
    if let Some(wanted) = wanted {
        return Endpoint::open(device, address::function_of(wanted.port()), &options);
    }
    let first = std::process::id() % u32::from(address::FUNCTIONS);
    let mut last = Error::BadFunction { function: 0, why: "all are open already" };
    for step in 0..u32::from(address::FUNCTIONS) {
        let function = ((first + step) % u32::from(address::FUNCTIONS)) as u8;
        match Endpoint::open(device, function, &options) {
            Err(error @ Error::BadFunction { .. }) => last = error,
            // Another user can hold some names; a program that accepts any function tries the next
            // one.
            Err(error @ Error::NameHeld { .. }) => {
                log(Level::Warn, &error.to_string());
                last = error;
            }
            other => return other,
        }
    }
    Err(last)
}

impl Ep {
    /// Locks its state.
    #[inline(always)]
    pub fn hold(&self) -> Held<'_, State> {
        self.state.hold()
    }

    /// Handles arrivals, unless another thread does. Returns how much was done.
    #[inline]
    pub fn progress(&self) -> usize {
        match self.state.try_hold() {
            Some(mut state) => {
                // Only the holder of the state writes this. Relaxed: others only poll it.
                let turns = self.turns.load(Ordering::Relaxed);
                self.turns.store(turns.wrapping_add(1), Ordering::Relaxed);
                state.progress()
            }
            None => 0,
        }
    }

    /// The descriptor to sleep on.
    pub fn wait_fd(&self) -> c_int {
        self.wait_fd
    }

    /// The number of calls of `progress`.
    pub fn turns(&self) -> u64 {
        self.turns.load(Ordering::Relaxed)
    }

    /// Arms the wake-up. `false`: there is work already.
    pub fn arm(&self) -> bool {
        match self.state.try_hold() {
            Some(mut state) => state.endpoint.arm().unwrap_or(true),
            None => false,
        }
    }
}

impl State {
    /// Handles arrivals. Returns how much was done.
    #[inline]
    pub fn progress(&mut self) -> usize {
        if !self.enabled {
            return 0;
        }
        self.follow();
        match self.endpoint.progress(&mut self.bound) {
            Ok(done) => done,
            Err(error) => {
                log(Level::Warn, &format!("no progress: {error}"));
                0
            }
        }
    }

    /// The peer with this number in the address vector; without a vector, the connected peer.
    #[inline]
    pub fn peer(&mut self, number: u64) -> Option<Peer> {
        self.follow();
        match self.peers.get(number as usize) {
            Some(peer) => *peer,
            None => self.endpoint.connected(),
        }
    }

    /// The error of a send without a peer.
    #[cold]
    pub fn no_peer(&self) -> isize {
        -(if self.kind == value::EP_MSG { error::ENOTCONN } else { error::EINVAL } as isize)
    }

    /// Whether it is enabled.
    #[inline]
    pub fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Reads the changes of the address vector.
    #[inline(always)]
    fn follow(&mut self) {
        // SAFETY: the vector is bound before the endpoint is enabled, and closed after it.
        if let Some(av) = unsafe { self.bound.av.as_ref() }
            && av.changes() != self.changes
        {
            self.learn(av);
        }
    }

    #[cold]
    fn learn(&mut self, av: &Av) {
        self.changes = av.changes();
        let Self { endpoint, peers, bound, .. } = self;
        peers.clear();
        bound.sources.clear();
        for (number, address) in av.entries().iter().enumerate() {
            let peer = address.map(|address| endpoint.peer(address::function_at(address)));
            peers.push(peer);
            if let Some(Peer(at)) = peer {
                let at = at as usize;
                if bound.sources.len() <= at {
                    bound.sources.resize(at + 1, value::ADDRESS_UNKNOWN);
                }
                // Of equal addresses, the first one counts.
                if bound.sources[at] == value::ADDRESS_UNKNOWN {
                    bound.sources[at] = number as u64;
                }
            }
        }
    }
}

unsafe extern "C" fn close(ep: *mut Ep) -> c_int {
    // SAFETY: made by `open`, and open, and so are its bound objects.
    unsafe {
        if let Some(progress) = &(*(*ep).domain).progress {
            progress.remove(ep);
        }
        (*(*ep).domain).exposed.hold().remove_endpoint(ep);
        {
            let mut state = (*ep).hold();
            let State { endpoint, line, .. } = &mut *state;
            line.end(endpoint);
        }
        let objects = (*ep).hold().bound.objects();
        objects.forget(ep, (*ep).wait_fd);
        (*ep).hold().bound.release();
        (*(*ep).domain).users.fetch_sub(1, Ordering::Relaxed);
        retire(ep);
    }
    0
}

unsafe extern "C" fn bind(ep: *mut Ep, fid: *mut Fid, flags: u64) -> c_int {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        let mut state = (*ep).hold();
        match state.enabled {
            true => -error::EOPBADSTATE,
            false => state.bound.bind(fid, flags),
        }
    }
}

unsafe extern "C" fn control(ep: *mut Ep, command: c_int, argument: *mut c_void) -> c_int {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        match command {
            value::CONTROL_ENABLE => enable(ep),
            value::CONTROL_GETOPSFLAG | value::CONTROL_SETOPSFLAG if argument.is_null() => {
                -error::EINVAL
            }
            value::CONTROL_GETOPSFLAG => {
                let flags = argument.cast::<u64>();
                let bound = &(*ep).hold().bound;
                let transmits = *flags & flag::SEND != 0;
                flags.write(if transmits { bound.tx_flags } else { bound.rx_flags });
                0
            }
            value::CONTROL_SETOPSFLAG => {
                let flags = *argument.cast::<u64>();
                let bound = &mut (*ep).hold().bound;
                match (flags & flag::SEND != 0, flags & flag::RECV != 0) {
                    (true, false) => bound.tx_flags = flags & !flag::SEND,
                    (false, true) => bound.rx_flags = flags & !flag::RECV,
                    _ => return -error::EINVAL,
                }
                0
            }
            _ => -error::ENOSYS,
        }
    }
}

/// `fi_enable`.
pub unsafe fn enable(ep: *mut Ep) -> c_int {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        let this = &*ep;
        let objects = {
            let mut state = this.hold();
            if state.enabled {
                return 0;
            }
            let missing = state.bound.check();
            if missing != 0 {
                return missing;
            }
            state.enabled = true;
            state.bound.objects()
        };
        objects.know(ep, this.wait_fd);
    }
    0
}

/// `fi_getname`.
pub unsafe extern "C" fn name(ep: *mut Ep, into: *mut c_void, length: *mut usize) -> c_int {
    given!(length);
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    match unsafe { address::write((*ep).address, into, length) } {
        true => 0,
        false => -error::ETOOSMALL,
    }
}

unsafe extern "C" fn option(
    ep: *mut Ep,
    level: c_int,
    which: c_int,
    into: *mut c_void,
    length: *mut usize,
) -> c_int {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        if (level, which) != (0, value::OPT_MIN_MULTI_RECV) {
            return cm_data_size(&raw mut (*ep).fid.fid, level, which, into, length);
        }
        size(into, length, (*ep).hold().bound.least)
    }
}

/// `fi_getopt` of an object with only this option.
pub unsafe extern "C" fn cm_data_size(
    _fid: *mut Fid,
    level: c_int,
    which: c_int,
    into: *mut c_void,
    length: *mut usize,
) -> c_int {
    if (level, which) != (0, value::OPT_CM_DATA_SIZE) {
        return -error::ENOPROTOOPT;
    }
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { size(into, length, CONNECTION_BYTES) }
}

/// Writes the value of an option that is a size.
///
/// # Safety
/// Each is null, or `into` has as many bytes as `length` says.
unsafe fn size(into: *mut c_void, length: *mut usize, value: usize) -> c_int {
    given!(into, length);
    // SAFETY: the caller's promise.
    unsafe {
        if *length < size_of::<usize>() {
            return -error::ETOOSMALL;
        }
        into.cast::<usize>().write_unaligned(value);
        length.write(size_of::<usize>());
    }
    0
}

unsafe extern "C" fn set_option(
    ep: *mut Ep,
    level: c_int,
    which: c_int,
    from: *const c_void,
    length: usize,
) -> c_int {
    if (level, which) != (0, value::OPT_MIN_MULTI_RECV) {
        return -error::ENOPROTOOPT;
    }
    if length < size_of::<usize>() || !is_memory(from, length) {
        return -error::EINVAL;
    }
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { (*ep).hold().bound.least = from.cast::<usize>().read_unaligned() };
    0
}

/// SendMode many operations can be posted, at least.
pub unsafe extern "C" fn room(_ep: *mut Ep) -> isize {
    crate::info::DEPTH as isize
}

/// The meaning of an error in the library's words, also in `into` as far as there is room.
///
/// # Safety
/// `into` has `length` bytes, or is null.
pub unsafe fn strerror(number: c_int, into: *mut c_char, length: usize) -> *const c_char {
    let Some(library) = library() else { return c"unknown error".as_ptr() };
    let text = library.strerror(number.abs());
    if into.is_null() || length == 0 {
        return text;
    }
    // SAFETY: the caller's; the text is a string.
    unsafe {
        libc::strncpy(into, text, length - 1);
        into.add(length - 1).write(0);
    }
    into
}
