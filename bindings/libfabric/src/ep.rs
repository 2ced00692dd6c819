//! Endpoints, without the calls of the data path.

use crate::abi::{Fid, FidEp, Info, Ops, calls, class, enosys, error, flag, ops, value};
use crate::address;
use crate::bound::Bound;
use crate::connection::{self, Connection};
use crate::domain::Domain;
use crate::errno::{Errno, Result};
use crate::info::{self, DATAGRAM_BYTES, DEPTH};
use crate::library::{Level, log};
use crate::lock::{Guard, Lock};
use crate::object::{self, CLOSED_EP, Close, Handle, Opened, close, object};
use crate::passive::{self, Origin};
use crate::pointer::{Buffer, Out, write_bytes};
use crate::reference::{Listed, Ref};
use crate::{atomic, receive, rma, transmit};
use bellwire::{Device, Error, FunctionAddress};
use bellwire_tagged::{CONNECTION_BYTES, Endpoint, OPERAND_BYTES, Options, Peer};
use std::ffi::{c_int, c_void};
use std::net::SocketAddrV4;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};

/// An endpoint that sends and receives, unlike a passive one.
#[repr(C)]
pub struct ActiveEndpoint {
    fid: FidEp,
    domain: Ref<Domain>,
    name: SocketAddrV4,
    wait_fd: c_int,
    /// Calls of `progress`.
    turns: AtomicU64,
    state: Lock<State>,
}

object!(ActiveEndpoint, FidEp, FID, CLOSED_EP);

/// The state of an endpoint.
pub struct State {
    pub endpoint: Endpoint,
    pub bound: Bound,
    /// Its connection state, if it is of the connected kind.
    pub connection: Connection,
    kind: c_int,
    enabled: bool,
    /// Peers by their numbers in the address vector, as of `changes`.
    peers: Vec<Option<Peer>>,
    changes: u64,
}

static FID: Ops<6> = ops![close::<ActiveEndpoint>, bind, control];
/// fi_endpoint(3).
static EP: Ops<7> =
    ops![receive::cancel::<ActiveEndpoint>, getopt, setopt, enosys, enosys, size_left, size_left];
/// fi_cm(3).
static CM: Ops<9> = ops![enosys, getname];
pub static NO_CALLS: Ops<9> = ops![];
pub static NO_ATOMICS: Ops<13> = ops![];
pub static NO_COLLECTIVES: Ops<11> = ops![];

/// `fi_endpoint`.
pub extern "C" fn open(
    domain: &Domain,
    info: Option<&Info>,
    into: Out<ActiveEndpoint>,
    context: *mut c_void,
) -> c_int {
    object::open(into, || {
        let info = info.ok_or(error::EINVAL)?;
        let kind = match info.ep_attr.as_deref().map_or(value::EP_UNSPEC, |ep| ep.kind) {
            value::EP_UNSPEC => value::EP_RDM,
            kind => kind,
        };
        let (connected, datagrams) = (kind == value::EP_MSG, kind == value::EP_DGRAM);
        let (mut endpoint, name, connection) = begin(domain, info, connected)?;
        if connected {
            endpoint.restrict_to_peer();
        }
        if info.caps & flag::RMA_EVENT != 0 {
            endpoint.monitor();
        }
        let short = match () {
            _ if endpoint.operand_bytes() < OPERAND_BYTES => Some("FI_ATOMIC"),
            _ if datagrams && endpoint.eager_bytes() < DATAGRAM_BYTES => Some("datagrams"),
            _ => None,
        };
        if let Some(what) = short {
            let line = format!("the device's packets are too short for {what}: use another device");
            log(Level::Warn, &line);
            return Err(error::ENODEV);
        }
        let fid = FidEp {
            fid: Fid { class: class::EP, context, ops: &FID },
            ops: &EP,
            cm: if connected { &connection::CM } else { &CM },
            msg: &transmit::MSG,
            rma: if datagrams { &NO_CALLS } else { &rma::RMA },
            tagged: if datagrams { &NO_CALLS } else { &transmit::TAGGED },
            atomic: if datagrams { &NO_ATOMICS } else { &atomic::ATOMIC },
            collective: &NO_COLLECTIVES,
        };
        let wait_fd = endpoint.wait_fd().as_raw_fd();
        let bound = Bound::new(info, kind);
        let (enabled, peers, changes) = (false, Vec::new(), 0);
        let state = State { endpoint, bound, connection, kind, enabled, peers, changes };
        let (turns, state) = (AtomicU64::new(0), Lock::new(domain.shared, state));
        let domain = Ref::to(domain);
        let ep = Opened::new(ActiveEndpoint { fid, domain, name, wait_fd, turns, state });
        ep.lock().bound.endpoint = Handle::of(&*ep);
        if ep.domain.exposed.lock().add_endpoint(ep.listed()).is_err() {
            log(Level::Warn, "an endpoint cannot be opened: memory cannot be registered with it");
            return Err(error::ENOMEM);
        }
        if let Some(progress) = &ep.domain.progress {
            progress.add(ep.listed());
        }
        Ok(ep)
    })
}

/// The endpoint that an info means, with its name and connection: one that a handle stands for, or
/// a new one.
fn begin(
    domain: &Domain,
    info: &Info,
    connected: bool,
) -> Result<(Endpoint, SocketAddrV4, Connection)> {
    if connected && !domain.shared {
        let hint = "open the domain with an info of FI_EP_MSG";
        log(Level::Warn, &format!("no connected endpoint in a domain without locks: {hint}"));
        return Err(error::EINVAL);
    }
    let mut wanted = info::source(info);
    let (mut request, mut name) = (None, None);
    if connected && !info.handle.is_null() {
        match passive::take(info.handle) {
            // The name is the listener's, but the endpoint needs a function of its own.
            Some(Origin::Request(theirs)) => (request, name) = (Some(theirs), wanted.take()),
            Some(Origin::Replaced(endpoint, name)) => {
                return Ok((*endpoint, name, Connection::new(None)));
            }
            None => {
                log(Level::Warn, "the handle of an info is not a waiting connection request");
                return Err(error::EINVAL);
            }
        }
    }
    let endpoint = open_function(&domain.device, wanted)?;
    let name = name.unwrap_or_else(|| address::name_of(&endpoint, wanted));
    Ok((endpoint, name, Connection::new(request)))
}

/// Opens the function that an address means. Without an address, it opens any free function, and
/// the search starts at a number that differs from process to process. So an address is not reused
/// soon. Fails with `EADDRINUSE` or `ENODEV`; a line in the log says more.
pub fn open_function(device: &Device, wanted: Option<SocketAddrV4>) -> Result<Endpoint> {
    try_functions(device, wanted).map_err(|error| {
        log(Level::Warn, &format!("an endpoint cannot be opened: {error}"));
        match error {
            Error::BadFunction { .. } | Error::NameHeld { .. } => error::EADDRINUSE,
            _ => error::ENODEV,
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

impl ActiveEndpoint {
    /// Locks its state.
    #[inline(always)]
    pub fn lock(&self) -> Guard<'_, State> {
        self.state.lock()
    }

    fn listed(&self) -> Listed<ActiveEndpoint> {
        // SAFETY: `close` removes `self` from each list of `open` and `enable`.
        unsafe { Listed::new(self) }
    }

    /// `fi_enable`. Fails if a bound object is missing.
    pub fn enable(&self) -> Result {
        let lists = {
            let mut state = self.lock();
            if state.enabled {
                return Ok(());
            }
            state.bound.check()?;
            state.enabled = true;
            state.bound.lists()
        };
        lists.add(self.listed());
        Ok(())
    }

    /// Handles arrivals, unless another thread does. Returns how much was done.
    #[inline]
    pub fn progress(&self) -> usize {
        match self.state.try_lock() {
            Some(mut state) => {
                // Only the holder of the state writes this. Relaxed: others only poll it.
                let turns = self.turns.load(Ordering::Relaxed);
                self.turns.store(turns.wrapping_add(1), Ordering::Relaxed);
                state.progress()
            }
            None => 0,
        }
    }

    /// Lets messages go that it keeps back or that wait for others, whichever thread uses it now.
    pub fn let_go(&self) {
        let mut state = self.lock();
        state.progress();
        state.endpoint.flush();
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
        match self.state.try_lock() {
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
    pub fn no_peer(&self) -> Errno {
        if self.kind == value::EP_MSG { error::ENOTCONN } else { error::EINVAL }
    }

    /// Whether it is enabled.
    #[inline]
    pub fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Reads the changes of the address vector.
    #[inline(always)]
    fn follow(&mut self) {
        if let Some(av) = &self.bound.av
            && av.changes() != self.changes
        {
            self.learn();
        }
    }

    #[cold]
    fn learn(&mut self) {
        let Self { endpoint, peers, bound, .. } = self;
        let Some(av) = &bound.av else { return };
        self.changes = av.changes();
        peers.clear();
        bound.sources.clear();
        let own = endpoint.address();
        let mut on_host = 1;
        for (number, address) in av.entries().iter().enumerate() {
            let address = address.map(address::function_at);
            let peer = address.map(|address| endpoint.peer(address));
            peers.push(peer);
            if let Some(Peer(at)) = peer {
                let at = at as usize;
                if bound.sources.len() <= at {
                    bound.sources.resize(at + 1, value::ADDRESS_UNKNOWN);
                }
                // Of equal addresses, the first one counts.
                if bound.sources[at] == value::ADDRESS_UNKNOWN {
                    bound.sources[at] = number as u64;
                    let is_near = |at: FunctionAddress| at.node == own.node && at != own;
                    on_host += usize::from(address.is_some_and(is_near));
                }
            }
        }
        bound.share_host(on_host);
    }
}

impl Close for ActiveEndpoint {
    fn close(&self) {
        if let Some(progress) = &self.domain.progress {
            progress.remove(self);
        }
        self.domain.exposed.lock().remove_endpoint(self);
        let lists = {
            let mut state = self.lock();
            let State { endpoint, connection, bound, .. } = &mut *state;
            connection.end(endpoint);
            bound.lists()
        };
        lists.remove(self);
    }
}

calls! {
    ep: &ActiveEndpoint;

    fn bind(object: Handle, flags: u64) -> c_int {
        let late = {
            let mut state = ep.lock();
            if !state.enabled {
                return state.bound.bind(object, flags);
            }
            // The new counter learns how many endpoints are on this host.
            state.changes = 0;
            state.bound.bind_late(object, flags)?
        };
        if let Some(cntr) = late {
            cntr.add(ep.listed());
            cntr.waiting().add(ep.wait_fd());
        }
        Ok(())
    }

    fn control(command: c_int, argument: Buffer) -> c_int {
        match command {
            value::CONTROL_ENABLE => ep.enable(),
            value::CONTROL_GETOPSFLAG => ep.lock().bound.get_flags(argument),
            value::CONTROL_SETOPSFLAG => ep.lock().bound.set_flags(argument),
            _ => Err(error::ENOSYS),
        }
    }

    /// `fi_getname`.
    pub fn getname(into: Buffer, length: Option<&mut usize>) -> c_int {
        address::write(ep.name, into, length.ok_or(error::EINVAL)?)
    }

    fn getopt(level: c_int, which: c_int, into: Buffer, length: Option<&mut usize>) -> c_int {
        if (level, which) != (0, value::OPT_MIN_MULTI_RECV) {
            return connection_option(level, which, into, length);
        }
        write_size(into, length, ep.lock().bound.min_multi_recv)
    }

    fn setopt(level: c_int, which: c_int, from: Buffer, length: usize) -> c_int {
        if (level, which) != (0, value::OPT_MIN_MULTI_RECV) {
            return Err(error::ENOPROTOOPT);
        }
        let value = from.elements(length)?.first_chunk().ok_or(error::EINVAL)?;
        ep.lock().bound.min_multi_recv = usize::from_ne_bytes(*value);
        Ok(())
    }
}

/// `fi_getopt` of an object with this option only: how much private data a request can carry.
/// `ENOPROTOOPT`: another option. `EINVAL`, `ETOOSMALL`: no place for it.
pub fn connection_option(
    level: c_int,
    which: c_int,
    into: Buffer,
    length: Option<&mut usize>,
) -> Result {
    if (level, which) != (0, value::OPT_CM_DATA_SIZE) {
        return Err(error::ENOPROTOOPT);
    }
    write_size(into, length, CONNECTION_BYTES)
}

/// Writes the value of an option that is a size, which programs need not align.
fn write_size(into: Buffer, length: Option<&mut usize>, value: usize) -> Result {
    let (length, false) = (length.ok_or(error::EINVAL)?, into.pointer().is_null()) else {
        return Err(error::EINVAL);
    };
    if *length < size_of::<usize>() {
        return Err(error::ETOOSMALL);
    }
    *length = write_bytes(into.room(size_of::<usize>())?, &value.to_ne_bytes());
    Ok(())
}

/// How many operations can be posted, at least.
pub extern "C" fn size_left(_ep: *const c_void) -> isize {
    DEPTH as isize
}
