//! The objects that an endpoint is bound to, and the events that it reports to them.

use crate::abi::{CqEntry, CqErrEntry, Fid, Info, error, flag, value};
use crate::av::Av;
use crate::cntr::Cntr;
use crate::cq::Cq;
use crate::ep::Ep;
use crate::eq::{Eq, Source};
use crate::library::{Level, log};
use crate::mr::Mr;
use crate::object::object_of;
use crate::shared::{Srx, Stx};
use crate::wait::WaitObject;
use bellwire::Status;
use bellwire_tagged::{CompletionKind, ConnectionEvent, Outcome, Sink, TaggedCompletion};
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The bound objects, and the settings of their reports.
pub struct Bound {
    /// The endpoint's identity in events.
    pub fid: *mut Fid,
    pub av: *mut Av,
    srx: *mut Srx,
    pub eq: *mut Eq,
    pub tx_cq: *mut Cq,
    pub rx_cq: *mut Cq,
    tx_cntr: *mut Cntr,
    rx_cntr: *mut Cntr,
    /// Counters of accesses to peers' memory: writes, and those that fetch data.
    write_cntr: *mut Cntr,
    read_cntr: *mut Cntr,
    /// User counts of all objects that it was ever bound to, each raised by one.
    held: Vec<*const AtomicUsize>,
    /// Whether accesses by peers are reported.
    watches: bool,
    remote_write_cntr: *mut Cntr,
    remote_read_cntr: *mut Cntr,
    /// Exposed regions by key, if accesses by peers are reported.
    regions: HashMap<u64, *const Mr>,
    /// Only operations with the flag give completions.
    pub tx_selective: bool,
    pub rx_selective: bool,
    pub tx_flags: u64,
    pub rx_flags: u64,
    /// Whether receives select by source; otherwise their source address has no meaning.
    pub directed: bool,
    /// Connected: there is one peer, and an event queue gets the connection's events.
    connected: bool,
    /// Messages are short and unreliable.
    pub datagrams: bool,
    /// A multi-receive buffer ends when fewer free bytes are left.
    pub least: usize,
    /// Numbers in the address vector by peer.
    pub sources: Vec<u64>,
}

/// In a token's note: a completion is wanted. The other bits are the completion's flags; libfabric
/// has no flag of this value.
pub const WANTED: u64 = 1;

/// The objects that know an endpoint. Lock order: the lock of their endpoint list first, then the
/// endpoint's own lock, never the reverse.
pub struct Objects {
    srx: *mut Srx,
    eq: *mut Eq,
    cqs: [*mut Cq; 2],
    cntrs: [*mut Cntr; 6],
}

impl Objects {
    /// Registers an endpoint with descriptor `fd` at these objects.
    ///
    /// # Safety
    /// The objects are open, and [forget](Objects::forget) the endpoint before it is closed.
    pub unsafe fn know(&self, ep: *mut Ep, fd: c_int) {
        // SAFETY: the caller's promise.
        unsafe {
            self.cqs.iter().filter_map(|cq| cq.as_ref()).for_each(|cq| cq.add(ep));
            self.cntrs.iter().filter_map(|cntr| cntr.as_ref()).for_each(|cntr| cntr.add(ep));
            self.wait_objects().for_each(|object| object.add(fd));
            if let Some(eq) = self.eq.as_ref() {
                eq.add(Source::Ep(ep), fd);
            }
            if let Some(srx) = self.srx.as_ref() {
                srx.add(ep);
            }
        }
    }

    /// Removes an endpoint that is being closed from these objects.
    ///
    /// # Safety
    /// The objects are open.
    pub unsafe fn forget(&self, ep: *mut Ep, fd: c_int) {
        // SAFETY: the caller's promise.
        unsafe {
            self.wait_objects().for_each(|object| object.remove(fd));
            self.cqs.iter().filter_map(|cq| cq.as_ref()).for_each(|cq| cq.remove(ep));
            self.cntrs.iter().filter_map(|cntr| cntr.as_ref()).for_each(|cntr| cntr.remove(ep));
            if let Some(eq) = self.eq.as_ref() {
                eq.remove(Source::Ep(ep));
            }
            if let Some(srx) = self.srx.as_ref() {
                srx.remove(ep);
            }
        }
    }

    /// # Safety
    /// The objects are open.
    unsafe fn wait_objects(&self) -> impl Iterator<Item = &WaitObject> {
        // SAFETY: the caller's promise.
        unsafe {
            let cqs = self.cqs.iter().map(|cq| cq.as_ref().and_then(Cq::wait_object));
            let cntrs = self.cntrs.iter().map(|cntr| cntr.as_ref().and_then(Cntr::wait_object));
            cqs.chain(cntrs).flatten()
        }
    }
}

impl Bound {
    /// An endpoint of this kind without bound objects.
    ///
    /// # Safety
    /// The info's pointers are null or valid.
    pub unsafe fn new(info: &Info, kind: c_int) -> Bound {
        // SAFETY: the caller's promise.
        unsafe {
            Bound {
                fid: null_mut(),
                av: null_mut(),
                srx: null_mut(),
                eq: null_mut(),
                tx_cq: null_mut(),
                rx_cq: null_mut(),
                tx_cntr: null_mut(),
                rx_cntr: null_mut(),
                write_cntr: null_mut(),
                read_cntr: null_mut(),
                held: Vec::new(),
                watches: info.caps & flag::RMA_EVENT != 0,
                remote_write_cntr: null_mut(),
                remote_read_cntr: null_mut(),
                regions: HashMap::new(),
                tx_selective: false,
                rx_selective: false,
                tx_flags: info.tx_attr.as_ref().map_or(0, |tx| tx.op_flags),
                rx_flags: info.rx_attr.as_ref().map_or(0, |rx| rx.op_flags),
                directed: info.caps & flag::DIRECTED_RECV != 0,
                connected: kind == value::EP_MSG,
                datagrams: kind == value::EP_DGRAM,
                least: 64,
                sources: Vec::new(),
            }
        }
    }

    /// Notes an exposed region.
    ///
    /// # Safety
    /// It is [forgotten](Bound::forget_region) before it is closed.
    pub unsafe fn know_region(&mut self, key: u64, region: *const Mr) {
        if self.watches {
            self.regions.insert(key, region);
        }
    }

    /// Forgets a region that is no longer exposed.
    pub fn forget_region(&mut self, key: u64) {
        self.regions.remove(&key);
    }

    /// All objects.
    pub fn objects(&self) -> Objects {
        let Bound { srx, eq, .. } = *self;
        let cqs = [self.tx_cq, self.rx_cq];
        let cntrs = [
            self.tx_cntr,
            self.rx_cntr,
            self.write_cntr,
            self.read_cntr,
            self.remote_write_cntr,
            self.remote_read_cntr,
        ];
        Objects { srx, eq, cqs, cntrs }
    }

    /// Releases all bound objects of an endpoint that is being closed; they may be closed after it.
    ///
    /// # Safety
    /// All bound objects are open.
    pub unsafe fn release(&mut self) {
        for users in self.held.drain(..) {
            // SAFETY: the caller's promise.
            unsafe { (*users).fetch_sub(1, Ordering::Relaxed) };
        }
    }

    /// Keeps a bound object open as long as the endpoint.
    fn keep(&mut self, users: &AtomicUsize) {
        users.fetch_add(1, Ordering::Relaxed);
        self.held.push(users);
    }

    /// The error that prevents use of the endpoint; 0: none.
    pub fn check(&self) -> c_int {
        let Objects { cqs, cntrs, .. } = self.objects();
        let (error, what) = if self.connected && self.eq.is_null() {
            (error::ENOEQ, "a connected endpoint needs an event queue: fi_ep_bind it first")
        } else if !self.connected && self.av.is_null() {
            (error::ENOAV, "an endpoint needs an address vector: fi_ep_bind it first")
        } else if cqs.iter().all(|cq| cq.is_null()) && cntrs.iter().all(|cntr| cntr.is_null()) {
            (error::ENOCQ, "an endpoint needs a completion queue: fi_ep_bind one first")
        } else if !self.srx.is_null() && self.rx_selective {
            (error::EINVAL, "shared receives always complete: no FI_SELECTIVE_COMPLETION")
        } else {
            return 0;
        };
        log(Level::Warn, what);
        -error
    }

    /// `fi_ep_bind`.
    ///
    /// # Safety
    /// As for [`object_of`].
    pub unsafe fn bind(&mut self, fid: *mut Fid, flags: u64) -> c_int {
        // SAFETY: the caller's promise.
        unsafe {
            if let Some(av) = object_of::<Av>(fid) {
                self.av = fid.cast();
                self.keep(&av.users);
            } else if let Some(cq) = object_of::<Cq>(fid) {
                return self.bind_cq(cq, flags);
            } else if let Some(cntr) = object_of::<Cntr>(fid) {
                self.bind_cntr(cntr, flags);
            } else if let Some(srx) = object_of::<Srx>(fid) {
                self.srx = fid.cast();
                self.keep(&srx.users);
            } else if let Some(stx) = object_of::<Stx>(fid) {
                self.keep(&stx.users);
            } else if let Some(eq) = object_of::<Eq>(fid) {
                // Datagram and reliable-datagram endpoints have no connection events.
                if self.connected {
                    self.eq = fid.cast();
                    self.keep(&eq.users);
                }
            } else {
                return -error::EINVAL;
            }
        }
        0
    }

    fn bind_cq(&mut self, cq: &Cq, flags: u64) -> c_int {
        if flags & !(flag::SEND | flag::RECV | flag::SELECTIVE_COMPLETION) != 0
            || flags & (flag::SEND | flag::RECV) == 0
        {
            return -error::EBADFLAGS;
        }
        let selective = flags & flag::SELECTIVE_COMPLETION != 0;
        let bound = (&raw const *cq).cast_mut();
        if flags & flag::SEND != 0 {
            (self.tx_cq, self.tx_selective) = (bound, selective);
        }
        if flags & flag::RECV != 0 {
            (self.rx_cq, self.rx_selective) = (bound, selective);
        }
        self.keep(&cq.users);
        0
    }

    fn bind_cntr(&mut self, cntr: &Cntr, flags: u64) {
        // Without FI_RMA_EVENT, a counter of accesses by peers counts nothing; MPICH binds one all
        // the same.
        let watches = self.watches;
        let places = [
            (flag::SEND, true, &mut self.tx_cntr),
            (flag::RECV, true, &mut self.rx_cntr),
            (flag::WRITE, true, &mut self.write_cntr),
            (flag::READ, true, &mut self.read_cntr),
            (flag::REMOTE_WRITE, watches, &mut self.remote_write_cntr),
            (flag::REMOTE_READ, watches, &mut self.remote_read_cntr),
        ];
        for (which, counts, place) in places {
            if counts && flags & which != 0 {
                *place = (&raw const *cntr).cast_mut();
            }
        }
        self.keep(&cntr.users);
    }

    /// The counter of our own operations with such a note.
    #[inline]
    fn counter(&self, note: u64) -> *mut Cntr {
        match note & (flag::WRITE | flag::READ) {
            0 => self.tx_cntr,
            flag::WRITE => self.write_cntr,
            _ => self.read_cntr,
        }
    }

    /// Reports a completed transmission: an entry if one is wanted, and the count.
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
    fn buffer_ended(&mut self, done: TaggedCompletion) {
        // Reported even without completions for messages.
        // SAFETY: bound objects are closed after the endpoint.
        if let Some(cq) = unsafe { self.rx_cq.as_ref() } {
            // Not FI_RECV: it contains no message.
            cq.push(entry_of(&done, flag::MULTI_RECV), value::ADDRESS_UNKNOWN);
        }
    }

    #[cold]
    fn failed(&mut self, done: TaggedCompletion) {
        let entry = entry_of(&done, done.token.note & !WANTED);
        let (err, olen) = match done.outcome {
            Outcome::Success => return,
            Outcome::Failed(_) if self.datagrams && done.kind == CompletionKind::Sent => {
                return self.transmitted(done.token.note, entry.context, entry.tag);
            }
            Outcome::Truncated => (error::ETRUNC, done.overflow),
            Outcome::Cancelled => (error::ECANCELED, 0),
            Outcome::NoMessage => (error::ENOMSG, 0),
            Outcome::Failed(status) => (number_of(status), 0),
        };
        if let Outcome::Failed(status) = done.outcome {
            log(Level::Warn, &format!("a message or an access to a peer failed: {status}"));
        }
        let (cq, cntr) = match done.kind {
            CompletionKind::Sent | CompletionKind::AccessCompleted => {
                (self.tx_cq, self.counter(done.token.note))
            }
            _ => (self.rx_cq, self.rx_cntr),
        };
        // SAFETY: bound objects are closed after the endpoint.
        unsafe {
            if let Some(cq) = cq.as_ref() {
                let (prov_errno, err_data, err_data_size) = (err, null_mut(), 0);
                cq.push_error(CqErrEntry { entry, olen, err, prov_errno, err_data, err_data_size });
            }
            if let Some(cntr) = cntr.as_ref().filter(|_| done.kind != CompletionKind::Peeked) {
                cntr.count(false);
            }
        }
    }
}

/// libfabric's error number of a failed status.
pub fn number_of(status: Status) -> c_int {
    match status {
        Status::Unreachable => error::EHOSTUNREACH,
        Status::PeerGone | Status::Flushed => error::ECONNRESET,
        Status::WrongKey => error::ENOKEY,
        Status::OutOfBounds | Status::NotPermitted => error::EACCES,
        Status::Misaligned => error::EINVAL,
        _ => error::EIO,
    }
}

/// The completion entry for it.
#[inline(always)]
fn entry_of(done: &TaggedCompletion, flags: u64) -> CqEntry {
    CqEntry {
        context: done.token.context as *mut c_void,
        flags,
        len: done.length,
        buf: done.address as *mut c_void,
        data: done.data.unwrap_or_default(),
        tag: done.tag.unwrap_or_default(),
    }
}

impl Sink for Bound {
    fn memory_accessed(&mut self, key: u64, read: bool) {
        let cntr = if read { self.remote_read_cntr } else { self.remote_write_cntr };
        // SAFETY: bound objects are closed after the endpoint, and regions are forgotten before
        // they are closed.
        unsafe {
            if let Some(cntr) = cntr.as_ref() {
                cntr.count(true);
            }
            if let Some(region) = self.regions.get(&key) {
                (**region).count(read);
            }
        }
    }

    fn connection(&mut self, event: ConnectionEvent<'_>) {
        self.tell_connection(event);
    }

    // Always inlined: then `TaggedCompletion` reaches the queue in registers.
    #[inline(always)]
    fn completed(&mut self, done: TaggedCompletion) {
        if done.outcome != Outcome::Success {
            return self.failed(done);
        }
        let mut note = done.token.note;
        let mut flags = note & !WANTED;
        match done.kind {
            CompletionKind::Received | CompletionKind::Peeked => {}
            CompletionKind::Sent | CompletionKind::AccessCompleted => {
                let context = done.token.context as *mut c_void;
                return self.transmitted(note, context, done.tag.unwrap_or_default());
            }
            CompletionKind::BufferReleased => return self.buffer_ended(done),
            CompletionKind::Written => {
                // Reported always, also with selective completions.
                flags = flag::RMA | flag::REMOTE_WRITE;
                note = WANTED;
            }
        }
        if done.data.is_some() {
            flags |= flag::REMOTE_CQ_DATA;
        }
        // SAFETY: bound objects are closed after the endpoint.
        unsafe {
            if note & WANTED != 0
                && let Some(cq) = self.rx_cq.as_ref()
            {
                let source = done.peer.and_then(|peer| self.sources.get(peer.0 as usize));
                let source = source.copied().unwrap_or(value::ADDRESS_UNKNOWN);
                cq.push(entry_of(&done, flags), source);
            }
            if let Some(cntr) = self.rx_cntr.as_ref()
                && done.kind == CompletionKind::Received
            {
                cntr.count(true);
            }
        }
    }
}
