//! Endpoints: everything but the calls of the data path.

use crate::abi::{
    CqEntry, CqErrEntry, Fid, FidEp, Info, Ops, Slot, class, error, flag, not_offered, ops, value,
};
use crate::address;
use crate::av::Av;
use crate::cntr::Cntr;
use crate::connection::{self, Line};
use crate::cq::Cq;
use crate::domain::Domain;
use crate::eq::{Eq, Source};
use crate::info::{self, DATAGRAM_BYTES};
use crate::library::{Level, library, log};
use crate::lock::{Held, Lock};
use crate::passive::{self, Origin};
use crate::shared::{Srx, Stx};
use crate::wait::WaitObject;
use crate::{atomic, receive, rma, transmit};
use bellwire::{Device, Error, Status};
use bellwire_tagged::{
    CONNECTION_BYTES, ConnectionEvent, Done, Endpoint, OPERAND_BYTES, Options, Outcome, Peer, Sink,
    What,
};
use std::ffi::{c_char, c_int, c_void};
use std::net::SocketAddrV4;
use std::os::fd::AsRawFd;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};

/// An endpoint.
#[repr(C)]
pub struct Ep {
    fid: FidEp,
    domain: *mut Domain,
    /// What it is called.
    address: SocketAddrV4,
    wait_fd: c_int,
    /// Calls of `progress`.
    turns: AtomicU64,
    state: Lock<State>,
}

/// What an endpoint has and does.
pub struct State {
    pub endpoint: Endpoint,
    pub bound: Bound,
    /// How it comes to its peer, if it is to be connected.
    pub line: Line,
    kind: c_int,
    enabled: bool,
    /// Peers by their numbers in the address vector, as of `changes`.
    peers: Vec<Option<Peer>>,
    changes: u64,
}

/// What it is bound to, and what happens there.
pub struct Bound {
    /// The endpoint, as events call it.
    pub fid: *mut Fid,
    av: *mut Av,
    srx: *mut Srx,
    stx: *mut Stx,
    pub eq: *mut Eq,
    pub tx_cq: *mut Cq,
    pub rx_cq: *mut Cq,
    tx_cntr: *mut Cntr,
    rx_cntr: *mut Cntr,
    /// Of accesses to peers' memory that write, and that bring something back.
    write_cntr: *mut Cntr,
    read_cntr: *mut Cntr,
    /// Completions come only of operations with the flag.
    pub tx_selective: bool,
    pub rx_selective: bool,
    pub tx_flags: u64,
    pub rx_flags: u64,
    /// Whether receives look at who sent; without, the address that they name means nothing.
    pub directed: bool,
    /// Messages are short, and nobody answers for them once they are gone.
    pub datagrams: bool,
    /// Less than so many free bytes end a buffer for many messages.
    pub least: usize,
    /// Numbers in the address vector by peer.
    sources: Vec<u64>,
}

/// In a token's note: a completion is wanted. The other bits are the flags that it will have; libfabric has no flag of this value.
pub const WANTED: u64 = 1;

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
/// Tables of what an endpoint does not do.
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
    // SAFETY: the interface's pointers; the attributes are those that we gave, or a copy of them.
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
                // The name is the listener's, whose function is another.
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
            endpoint.seclude();
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
        let bound = Bound {
            fid: null_mut(),
            av: null_mut(),
            srx: null_mut(),
            stx: null_mut(),
            eq: null_mut(),
            tx_cq: null_mut(),
            rx_cq: null_mut(),
            tx_cntr: null_mut(),
            rx_cntr: null_mut(),
            write_cntr: null_mut(),
            read_cntr: null_mut(),
            tx_selective: false,
            rx_selective: false,
            tx_flags: info.tx_attr.as_ref().map_or(0, |tx| tx.op_flags),
            rx_flags: info.rx_attr.as_ref().map_or(0, |rx| rx.op_flags),
            directed: info.caps & flag::DIRECTED_RECV != 0,
            datagrams,
            least: 64,
            sources: Vec::new(),
        };
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

/// The function that an address stands for; without one, any that is free, from one that differs from process to process, so that
/// an address is not used again soon.
///
/// # Errors
/// The number of the error, negative, after a line in the log.
pub fn open_function(device: &Device, wanted: Option<SocketAddrV4>) -> Result<Endpoint, c_int> {
    try_functions(device, wanted).map_err(|error| {
        log(Level::Warn, &format!("an endpoint cannot be opened: {error}"));
        match error {
            Error::BadFunction { .. } => -error::EADDRINUSE,
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
            other => return other,
        }
    }
    Err(last)
}

impl Ep {
    /// Its state, for one thread at a time.
    #[inline(always)]
    pub fn hold(&self) -> Held<'_, State> {
        self.state.hold()
    }

    /// Takes what has come, unless somebody else is at it. Returns how much was done.
    #[inline]
    pub fn progress(&self) -> usize {
        match self.state.try_hold() {
            Some(mut state) => {
                // Only whoever has the state counts. Relaxed: it is looked at now and then.
                let turns = self.turns.load(Ordering::Relaxed);
                self.turns.store(turns.wrapping_add(1), Ordering::Relaxed);
                state.progress()
            }
            None => 0,
        }
    }

    /// How often progress was made.
    pub fn turns(&self) -> u64 {
        self.turns.load(Ordering::Relaxed)
    }

    /// Asks for a wake-up. `false`: there is something to do already.
    pub fn arm(&self) -> bool {
        match self.state.try_hold() {
            Some(mut state) => state.endpoint.arm().unwrap_or(true),
            None => false,
        }
    }

    fn wait_objects(&self) -> Vec<&WaitObject> {
        let state = self.hold();
        let bound = &state.bound;
        // SAFETY: bound objects are closed after the endpoint.
        unsafe {
            let cqs = bound.cqs().map(|cq| cq.as_ref().and_then(Cq::wait_object));
            let cntrs = bound.cntrs().map(|cntr| cntr.as_ref().and_then(Cntr::wait_object));
            cqs.into_iter().chain(cntrs).flatten().collect()
        }
    }
}

impl State {
    /// Takes what has come. Returns how much was done.
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

    /// The peer that the address vector calls `number`; without a vector, the one that the endpoint is connected with.
    #[inline]
    pub fn peer(&mut self, number: u64) -> Option<Peer> {
        self.follow();
        match self.peers.get(number as usize) {
            Some(peer) => *peer,
            None => self.endpoint.connected(),
        }
    }

    /// What a program hears that sends to nobody.
    #[cold]
    pub fn no_peer(&self) -> isize {
        -(if self.kind == value::EP_MSG { error::ENOTCONN } else { error::EINVAL } as isize)
    }

    /// Whether it can be used.
    #[inline]
    pub fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Learns what has changed in the address vector.
    #[inline(always)]
    fn follow(&mut self) {
        // SAFETY: bound before it was enabled, and closed after the endpoint.
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
                // The first of equal ones.
                if bound.sources[at] == value::ADDRESS_UNKNOWN {
                    bound.sources[at] = number as u64;
                }
            }
        }
    }
}

impl Bound {
    fn cqs(&self) -> [*mut Cq; 2] {
        [self.tx_cq, self.rx_cq]
    }

    fn cntrs(&self) -> [*mut Cntr; 4] {
        [self.tx_cntr, self.rx_cntr, self.write_cntr, self.read_cntr]
    }

    /// What counts operations of ours with such a note.
    #[inline]
    fn counter(&self, note: u64) -> *mut Cntr {
        match note & (flag::WRITE | flag::READ) {
            0 => self.tx_cntr,
            flag::WRITE => self.write_cntr,
            _ => self.read_cntr,
        }
    }

    /// A transmission has completed when its call returned.
    #[inline]
    pub fn transmitted(&mut self, note: u64, context: *mut c_void, tag: u64) {
        // SAFETY: bound objects are closed after the endpoint.
        unsafe {
            if note & WANTED != 0
                && let Some(cq) = self.tx_cq.as_ref()
            {
                let flags = note & !WANTED;
                let entry = CqEntry { context, flags, len: 0, buf: null_mut(), data: 0, tag };
                cq.push(entry, value::ADDRESS_UNKNOWN);
            }
            if let Some(cntr) = self.counter(note).as_ref() {
                cntr.count(true);
            }
        }
    }

    #[cold]
    fn failed(&mut self, done: &Done, entry: CqEntry) {
        let (err, olen) = match done.outcome {
            Outcome::Success => return,
            Outcome::Failed(_) if self.datagrams && done.what == What::Sent => {
                return self.transmitted(done.token.note, entry.context, entry.tag);
            }
            Outcome::Truncated => (error::ETRUNC, done.left),
            Outcome::Cancelled => (error::ECANCELED, 0),
            Outcome::NoMessage => (error::ENOMSG, 0),
            Outcome::Failed(Status::Unreachable) => (error::EHOSTUNREACH, 0),
            Outcome::Failed(Status::PeerGone | Status::Flushed) => (error::ECONNRESET, 0),
            Outcome::Failed(Status::WrongKey) => (error::ENOKEY, 0),
            Outcome::Failed(Status::OutOfBounds | Status::NotPermitted) => (error::EACCES, 0),
            Outcome::Failed(Status::Misaligned) => (error::EINVAL, 0),
            Outcome::Failed(_) => (error::EIO, 0),
        };
        if let Outcome::Failed(status) = done.outcome {
            log(Level::Warn, &format!("a message or an access to a peer failed: {status}"));
        }
        let (cq, cntr) = match done.what {
            What::Sent | What::Accessed => (self.tx_cq, self.counter(done.token.note)),
            _ => (self.rx_cq, self.rx_cntr),
        };
        // SAFETY: bound objects are closed after the endpoint.
        unsafe {
            if let Some(cq) = cq.as_ref() {
                let (prov_errno, err_data, err_data_size) = (err, null_mut(), 0);
                cq.push_error(CqErrEntry { entry, olen, err, prov_errno, err_data, err_data_size });
            }
            if let Some(cntr) = cntr.as_ref().filter(|_| done.what != What::Peeked) {
                cntr.count(false);
            }
        }
    }
}

impl Sink for Bound {
    fn connection(&mut self, event: ConnectionEvent<'_>) {
        self.tell_connection(event);
    }

    #[inline]
    fn done(&mut self, done: Done) {
        let mut note = done.token.note;
        let mut entry = CqEntry {
            context: done.token.context as *mut c_void,
            flags: note & !WANTED,
            len: done.length,
            buf: done.at as *mut c_void,
            data: done.data.unwrap_or_default(),
            tag: done.tag.unwrap_or_default(),
        };
        if done.outcome != Outcome::Success {
            return self.failed(&done, entry);
        }
        match done.what {
            What::Sent | What::Accessed => {
                return self.transmitted(note, entry.context, entry.tag);
            }
            What::BufferEnded => {
                // Not FI_RECV: there is no message in it.
                entry.flags = flag::MULTI_RECV;
                // It is told even to those who did not want to hear of the messages.
                // SAFETY: bound objects are closed after the endpoint.
                if let Some(cq) = unsafe { self.rx_cq.as_ref() } {
                    cq.push(entry, value::ADDRESS_UNKNOWN);
                }
                return;
            }
            What::Written => {
                // Whoever wants it told, wants it told always.
                entry.flags = flag::RMA | flag::REMOTE_WRITE;
                note = WANTED;
            }
            What::Received | What::Peeked => {}
        }
        if done.data.is_some() {
            entry.flags |= flag::REMOTE_CQ_DATA;
        }
        // SAFETY: bound objects are closed after the endpoint.
        unsafe {
            if note & WANTED != 0
                && let Some(cq) = self.rx_cq.as_ref()
            {
                let source = done.peer.and_then(|peer| self.sources.get(peer.0 as usize));
                cq.push(entry, source.copied().unwrap_or(value::ADDRESS_UNKNOWN));
            }
            if let Some(cntr) = self.rx_cntr.as_ref()
                && done.what == What::Received
            {
                cntr.count(true);
            }
        }
    }
}

unsafe extern "C" fn close(ep: *mut Ep) -> c_int {
    // SAFETY: made by `open`, and closed once, before what it is bound to.
    unsafe {
        if let Some(progress) = &(*(*ep).domain).progress {
            progress.remove(ep);
        }
        (*(*ep).domain).exposed.hold().remove_endpoint(ep);
        for set in (*ep).wait_objects() {
            set.remove((*ep).wait_fd);
        }
        {
            let mut state = (*ep).hold();
            let State { endpoint, line, .. } = &mut *state;
            line.end(endpoint);
        }
        let (eq, srx, stx) = {
            let bound = &(*ep).hold().bound;
            (bound.eq, bound.srx, bound.stx)
        };
        if let Some(eq) = eq.as_ref() {
            eq.remove(Source::Ep(ep));
        }
        if let Some(srx) = srx.as_ref() {
            srx.remove(ep);
        }
        if let Some(stx) = stx.as_ref() {
            stx.users.fetch_sub(1, Ordering::Relaxed);
        }
        let (av, cqs, cntrs) = {
            let bound = &(*ep).hold().bound;
            (bound.av, bound.cqs(), bound.cntrs())
        };
        for cq in cqs {
            if let Some(cq) = cq.as_ref() {
                cq.remove(ep);
            }
        }
        for cntr in cntrs {
            if let Some(cntr) = cntr.as_ref() {
                cntr.remove(ep);
            }
        }
        if let Some(av) = av.as_ref() {
            av.users.fetch_sub(1, Ordering::Relaxed);
        }
        (*(*ep).domain).users.fetch_sub(1, Ordering::Relaxed);
        drop(Box::from_raw(ep));
    }
    0
}

unsafe extern "C" fn bind(ep: *mut Ep, fid: *mut Fid, flags: u64) -> c_int {
    // SAFETY: the interface's pointers.
    unsafe {
        let mut state = (*ep).hold();
        if state.enabled {
            return -error::EOPBADSTATE;
        }
        let State { bound, kind, .. } = &mut *state;
        match (*fid).class {
            class::AV => {
                bound.av = fid.cast();
                (*bound.av).users.fetch_add(1, Ordering::Relaxed);
            }
            class::CQ => {
                if flags & !(flag::SEND | flag::RECV | flag::SELECTIVE_COMPLETION) != 0
                    || flags & (flag::SEND | flag::RECV) == 0
                {
                    return -error::EBADFLAGS;
                }
                let selective = flags & flag::SELECTIVE_COMPLETION != 0;
                if flags & flag::SEND != 0 {
                    (bound.tx_cq, bound.tx_selective) = (fid.cast(), selective);
                }
                if flags & flag::RECV != 0 {
                    (bound.rx_cq, bound.rx_selective) = (fid.cast(), selective);
                }
            }
            class::CNTR => {
                if flags & flag::SEND != 0 {
                    bound.tx_cntr = fid.cast();
                }
                if flags & flag::RECV != 0 {
                    bound.rx_cntr = fid.cast();
                }
                if flags & flag::WRITE != 0 {
                    bound.write_cntr = fid.cast();
                }
                if flags & flag::READ != 0 {
                    bound.read_cntr = fid.cast();
                }
                // One for accesses by peers counts only with FI_RMA_EVENT, which is not offered; MPICH binds one all the same.
            }
            // Nothing is ever told of an endpoint without connections.
            class::SRX_CTX => bound.srx = fid.cast(),
            class::STX_CTX => {
                bound.stx = fid.cast();
                (*bound.stx).users.fetch_add(1, Ordering::Relaxed);
            }
            class::EQ if *kind != value::EP_MSG => {}
            class::EQ => bound.eq = fid.cast(),
            _ => return -error::EINVAL,
        }
    }
    0
}

unsafe extern "C" fn control(ep: *mut Ep, command: c_int, argument: *mut c_void) -> c_int {
    // SAFETY: the interface's pointers.
    unsafe {
        match command {
            value::CONTROL_ENABLE => enable(ep),
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
    // SAFETY: the interface's pointer.
    unsafe {
        let this = &*ep;
        {
            let mut state = this.hold();
            if state.enabled {
                return 0;
            }
            let (cqs, cntrs) = (state.bound.cqs(), state.bound.cntrs());
            if state.kind == value::EP_MSG && state.bound.eq.is_null() {
                log(Level::Warn, "a connected endpoint needs an event queue: fi_ep_bind it first");
                return -error::ENOEQ;
            }
            if !state.bound.srx.is_null() && state.bound.rx_selective {
                log(Level::Warn, "shared receives always complete: no FI_SELECTIVE_COMPLETION");
                return -error::EINVAL;
            }
            if state.kind != value::EP_MSG && state.bound.av.is_null() {
                log(Level::Warn, "an endpoint needs an address vector: fi_ep_bind it first");
                return -error::ENOAV;
            }
            if cqs.iter().all(|cq| cq.is_null()) && cntrs.iter().all(|cntr| cntr.is_null()) {
                log(Level::Warn, "an endpoint needs a completion queue: fi_ep_bind one first");
                return -error::ENOCQ;
            }
            state.enabled = true;
            for cq in cqs {
                if let Some(cq) = cq.as_ref() {
                    cq.add(ep);
                }
            }
            for cntr in cntrs {
                if let Some(cntr) = cntr.as_ref() {
                    cntr.add(ep);
                }
            }
        }
        for set in this.wait_objects() {
            set.add(this.wait_fd);
        }
        let (kind, eq, srx) = {
            let state = this.hold();
            (state.kind, state.bound.eq, state.bound.srx)
        };
        if let Some(srx) = srx.as_ref() {
            srx.add(ep);
        }
        if kind == value::EP_MSG {
            (*eq).add(Source::Ep(ep), this.wait_fd);
        }
    }
    0
}

/// `fi_getname`.
pub unsafe extern "C" fn name(ep: *mut Ep, into: *mut c_void, length: *mut usize) -> c_int {
    // SAFETY: the interface's pointers.
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
    // SAFETY: the interface's pointers.
    unsafe {
        if (level, which) != (0, value::OPT_MIN_MULTI_RECV) {
            return cm_data_size(&raw mut (*ep).fid.fid, level, which, into, length);
        }
        size(into, length, (*ep).hold().bound.least)
    }
}

/// `fi_getopt` of an endpoint that has only this one.
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
    // SAFETY: the interface's pointers.
    unsafe { size(into, length, CONNECTION_BYTES) }
}

/// Writes a size that an option has.
///
/// # Safety
/// `into` has as many bytes as `length` says.
unsafe fn size(into: *mut c_void, length: *mut usize, value: usize) -> c_int {
    // SAFETY: the caller's.
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
    if length < size_of::<usize>() {
        return -error::EINVAL;
    }
    // SAFETY: the interface's pointers.
    unsafe { (*ep).hold().bound.least = from.cast::<usize>().read_unaligned() };
    0
}

/// How much can be posted, at least.
pub unsafe extern "C" fn room(_ep: *mut Ep) -> isize {
    crate::info::DEPTH as isize
}

/// What an error means, in the library's words, in `into` if there is room.
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
