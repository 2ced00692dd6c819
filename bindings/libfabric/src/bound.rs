//! The objects that an endpoint is bound to, and the events that it reports to them.

use crate::abi::{CqEntry, CqErrEntry, Info, error, flag, value};
use crate::av::AddressVector;
use crate::cntr::Counter;
use crate::cq::CompletionQueue;
use crate::ep::ActiveEndpoint;
use crate::eq::{EventQueue, Source};
use crate::errno::{Errno, Result};
use crate::library::{Level, log};
use crate::mr::MemoryRegion;
use crate::object::Handle;
use crate::pointer::{Buffer, write_bytes};
use crate::reference::{Listed, Ref, Use};
use crate::shared::{SharedReceiveContext, SharedTransmitContext};
use crate::wait::Waiting;
use bellwire::Status;
use bellwire_tagged::{
    CompletionKind, ConnectionEvent, MemoryAccess, Outcome, Sink, TaggedCompletion,
};
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

/// The bound objects, and the settings of their reports.
#[derive(Default)]
pub struct Bound {
    /// The endpoint's identity in events.
    pub endpoint: Handle,
    pub av: Option<Ref<AddressVector>>,
    srx: Option<Ref<SharedReceiveContext>>,
    pub eq: Option<Ref<EventQueue>>,
    pub tx_cq: Option<Ref<CompletionQueue>>,
    pub rx_cq: Option<Ref<CompletionQueue>>,
    /// By what they count, as in [`COUNTED`].
    cntrs: [Option<Ref<Counter>>; 6],
    /// All objects that it was ever bound to.
    held: Vec<Use>,
    /// Whether accesses by peers are reported.
    rma_events: bool,
    /// Exposed regions by key, if accesses by peers are reported.
    regions: HashMap<u64, Listed<MemoryRegion>>,
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
    pub min_multi_recv: usize,
    /// Numbers in the address vector by peer.
    pub sources: Vec<u64>,
}

/// The flags that bind the counters of an endpoint: of messages, of accesses to peers' memory, and
/// of accesses by peers.
const COUNTED: [u64; 6] =
    [flag::SEND, flag::RECV, flag::WRITE, flag::READ, flag::REMOTE_WRITE, flag::REMOTE_READ];
const SENDS: usize = 0;
const RECEIVES: usize = 1;
const WRITES: usize = 2;
const READS: usize = 3;
const REMOTE_WRITES: usize = 4;

/// In a token's note: a completion is wanted. The other bits are the completion's flags; libfabric
/// has no flag of this value.
pub const WANTED: u64 = 1;

/// The objects that list an endpoint. Lock order: the lock of their endpoint list first, then the
/// endpoint's own lock, never the reverse.
pub struct Lists {
    srx: Option<Ref<SharedReceiveContext>>,
    eq: Option<Ref<EventQueue>>,
    cqs: [Option<Ref<CompletionQueue>>; 2],
    cntrs: [Option<Ref<Counter>>; 6],
}

impl Lists {
    /// Adds an endpoint to these objects' lists.
    pub fn add(&self, ep: Listed<ActiveEndpoint>) {
        self.cqs.iter().flatten().for_each(|cq| cq.add(ep));
        self.cntrs.iter().flatten().for_each(|cntr| cntr.add(ep));
        self.waiting().for_each(|waiting| waiting.add(ep.wait_fd()));
        if let Some(eq) = &self.eq {
            eq.add(Source::Active(ep), ep.wait_fd());
        }
        if let Some(srx) = &self.srx {
            srx.add(ep);
        }
    }

    /// Removes an endpoint that is being closed.
    pub fn remove(&self, ep: &ActiveEndpoint) {
        self.waiting().for_each(|waiting| waiting.remove(ep.wait_fd()));
        self.cqs.iter().flatten().for_each(|cq| cq.remove(ep));
        self.cntrs.iter().flatten().for_each(|cntr| cntr.remove(ep));
        if let Some(eq) = &self.eq {
            eq.remove(Handle::of(ep));
        }
        if let Some(srx) = &self.srx {
            srx.remove(ep);
        }
    }

    fn waiting(&self) -> impl Iterator<Item = &Waiting> {
        let cqs = self.cqs.iter().flatten().map(|cq| cq.waiting());
        cqs.chain(self.cntrs.iter().flatten().map(|cntr| cntr.waiting()))
    }
}

impl Bound {
    /// An endpoint of this kind without bound objects.
    pub fn new(info: &Info, kind: c_int) -> Bound {
        Bound {
            rma_events: info.caps & flag::RMA_EVENT != 0,
            tx_flags: info.tx_attr.as_ref().map_or(0, |tx| tx.op_flags),
            rx_flags: info.rx_attr.as_ref().map_or(0, |rx| rx.op_flags),
            directed: info.caps & flag::DIRECTED_RECV != 0,
            connected: kind == value::EP_MSG,
            datagrams: kind == value::EP_DGRAM,
            min_multi_recv: 64,
            ..Bound::default()
        }
    }

    /// Notes an exposed region.
    pub fn add_region(&mut self, key: u64, region: Listed<MemoryRegion>) {
        if self.rma_events {
            self.regions.insert(key, region);
        }
    }

    /// Forgets a region that is no longer exposed.
    pub fn remove_region(&mut self, key: u64) {
        self.regions.remove(&key);
    }

    /// The objects that list the endpoint once it is enabled.
    pub fn lists(&self) -> Lists {
        Lists {
            srx: self.srx.clone(),
            eq: self.eq.clone(),
            cqs: [self.tx_cq.clone(), self.rx_cq.clone()],
            cntrs: self.cntrs.clone(),
        }
    }

    /// Fails if the endpoint cannot be used; a line in the log says what is missing.
    pub fn check(&self) -> Result {
        let Lists { cqs, cntrs, .. } = self.lists();
        let (error, what) = if self.connected && self.eq.is_none() {
            (error::ENOEQ, "a connected endpoint needs an event queue: call fi_ep_bind first")
        } else if !self.connected && self.av.is_none() {
            (error::ENOAV, "an endpoint needs an address vector: call fi_ep_bind first")
        } else if cqs.iter().all(Option::is_none) && cntrs.iter().all(Option::is_none) {
            (error::ENOCQ, "an endpoint needs a completion queue: call fi_ep_bind first")
        } else if self.srx.is_some() && self.rx_selective {
            (error::EINVAL, "FI_SELECTIVE_COMPLETION is not supported with shared receives")
        } else {
            return Ok(());
        };
        log(Level::Warn, what);
        Err(error)
    }

    /// `fi_ep_bind`. `EINVAL`: null, of another kind, not ours, or closed. `EBADFLAGS`: flags.
    pub fn bind(&mut self, object: Handle, flags: u64) -> Result {
        let held = if let Some(av) = object.object() {
            self.av = Some(Ref::to(av));
            Use::of(av)
        } else if let Some(cq) = object.object() {
            self.bind_cq(cq, flags)?;
            Use::of(cq)
        } else if let Some(cntr) = object.object() {
            self.bind_cntr(cntr, flags);
            Use::of(cntr)
        } else if let Some(srx) = object.object() {
            self.srx = Some(Ref::to(srx));
            Use::of(srx)
        } else if let Some(stx) = object.object::<SharedTransmitContext>() {
            Use::of(stx)
        } else if let Some(eq) = object.object() {
            // Datagram and reliable-datagram endpoints have no connection events.
            if !self.connected {
                return Ok(());
            }
            self.eq = Some(Ref::to(eq));
            Use::of(eq)
        } else {
            return Err(error::EINVAL);
        };
        self.held.push(held);
        Ok(())
    }

    /// `fi_ep_bind` of an endpoint that is enabled: counters and shared transmit contexts. Returns
    /// the counter that has to list the endpoint. `EOPBADSTATE`: another object. `EINVAL`: there is
    /// a counter already.
    pub fn bind_late(&mut self, object: Handle, flags: u64) -> Result<Option<Ref<Counter>>> {
        let Some(cntr) = object.object::<Counter>() else {
            // The context is not kept open: Sandia OpenSHMEM closes it before such an endpoint.
            return object
                .object::<SharedTransmitContext>()
                .map(|_| None)
                .ok_or(error::EOPBADSTATE);
        };
        if self.counters_of(flags).any(|place| place.is_some()) {
            return Err(error::EINVAL);
        }
        self.bind(object, flags)?;
        Ok(self.counters_of(flags).next().map(|_| Ref::to(cntr)))
    }

    /// `FI_GETOPSFLAG`: replaces the flags that name a direction by its flags. `EINVAL`: null.
    pub fn get_flags(&self, place: Buffer) -> Result {
        let transmits = read_flags(place)? & flag::SEND != 0;
        let flags = if transmits { self.tx_flags } else { self.rx_flags };
        write_bytes(place.room(size_of::<u64>())?, &flags.to_ne_bytes());
        Ok(())
    }

    /// `FI_SETOPSFLAG`: sets the flags of the one direction that they name. `EINVAL`: null, or not
    /// one direction.
    pub fn set_flags(&mut self, place: Buffer) -> Result {
        let flags = read_flags(place)?;
        match (flags & flag::SEND != 0, flags & flag::RECV != 0) {
            (true, false) => self.tx_flags = flags & !flag::SEND,
            (false, true) => self.rx_flags = flags & !flag::RECV,
            _ => return Err(error::EINVAL),
        }
        Ok(())
    }

    fn bind_cq(&mut self, cq: &CompletionQueue, flags: u64) -> Result {
        if flags & !(flag::SEND | flag::RECV | flag::SELECTIVE_COMPLETION) != 0
            || flags & (flag::SEND | flag::RECV) == 0
        {
            return Err(error::EBADFLAGS);
        }
        let selective = flags & flag::SELECTIVE_COMPLETION != 0;
        if flags & flag::SEND != 0 {
            (self.tx_cq, self.tx_selective) = (Some(Ref::to(cq)), selective);
        }
        if flags & flag::RECV != 0 {
            (self.rx_cq, self.rx_selective) = (Some(Ref::to(cq)), selective);
        }
        Ok(())
    }

    fn bind_cntr(&mut self, cntr: &Counter, flags: u64) {
        self.counters_of(flags).for_each(|place| *place = Some(Ref::to(cntr)));
    }

    /// The places of the counters that these flags bind.
    fn counters_of(&mut self, flags: u64) -> impl Iterator<Item = &mut Option<Ref<Counter>>> {
        // Without FI_RMA_EVENT, a counter of accesses by peers counts nothing; MPICH binds one all
        // the same.
        let counted = if self.rma_events { COUNTED.len() } else { REMOTE_WRITES };
        let places = self.cntrs[..counted].iter_mut().zip(COUNTED);
        places.filter(move |(_, which)| flags & which != 0).map(|(place, _)| place)
    }

    /// The counter of our own operations with such a note.
    #[inline]
    fn counter(&self, note: u64) -> Option<&Counter> {
        match note & (flag::WRITE | flag::READ) {
            0 => self.cntrs[SENDS].as_deref(),
            flag::WRITE => self.cntrs[WRITES].as_deref(),
            _ => self.cntrs[READS].as_deref(),
        }
    }

    /// So many endpoints of the job are on this host.
    pub fn share_host(&self, endpoints: usize) {
        self.tx_cq.iter().chain(&self.rx_cq).for_each(|cq| cq.share_host(endpoints));
        self.cntrs.iter().flatten().for_each(|cntr| cntr.share_host(endpoints));
    }

    /// Whether the transmit queue has room for the completion of another operation.
    #[inline(always)]
    pub fn tx_has_room(&self) -> bool {
        self.tx_cq.as_ref().is_none_or(|cq| cq.has_room())
    }

    /// Messages are kept back that count as sent.
    #[cold]
    pub fn owe(&self) {
        self.tx_cq.iter().chain(&self.rx_cq).for_each(|cq| cq.owe());
    }

    /// Reports a completed transmission: an entry if one is wanted, and the count.
    #[inline]
    pub fn transmitted(&mut self, note: u64, context: *mut c_void, tag: u64) {
        if note & WANTED != 0
            && let Some(cq) = &self.tx_cq
        {
            let flags = note & !WANTED;
            let entry = CqEntry { context, flags, len: 0, buf: null_mut(), data: 0, tag };
            cq.push(entry, value::ADDRESS_UNKNOWN);
        }
        if let Some(cntr) = self.counter(note) {
            cntr.count(true);
        }
    }

    #[cold]
    fn buffer_ended(&mut self, done: TaggedCompletion) {
        // Reported even without completions for messages.
        if let Some(cq) = &self.rx_cq {
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
            Outcome::Failed(status) => (errno_of(status), 0),
        };
        if let Outcome::Failed(status) = done.outcome {
            log(Level::Warn, &format!("a message or an access to a peer failed: {status}"));
        }
        let (cq, cntr) = match done.kind {
            CompletionKind::Sent | CompletionKind::AccessCompleted => {
                (&self.tx_cq, self.counter(done.token.note))
            }
            _ => (&self.rx_cq, self.cntrs[RECEIVES].as_deref()),
        };
        if let Some(cq) = cq {
            let (err, err_data, err_data_size) = (err.number(), Buffer::NULL, 0);
            let prov_errno = err;
            cq.push_error(CqErrEntry { entry, olen, err, prov_errno, err_data, err_data_size });
        }
        if let Some(cntr) = cntr.filter(|_| done.kind != CompletionKind::Peeked) {
            cntr.count(false);
        }
    }
}

fn read_flags(place: Buffer) -> Result<u64> {
    let bytes = place.elements(size_of::<u64>())?.first_chunk().ok_or(error::EINVAL)?;
    Ok(u64::from_ne_bytes(*bytes))
}

/// libfabric's error number of a failed status.
pub fn errno_of(status: Status) -> Errno {
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
    fn memory_accessed(&mut self, key: u64, access: MemoryAccess) {
        let [.., writes, reads] = &self.cntrs;
        Counter::count_access(access, writes.as_deref(), reads.as_deref());
        if let Some(region) = self.regions.get(&key) {
            region.count(access);
        }
    }

    fn connection(&mut self, event: ConnectionEvent<'_>) {
        self.report_connection(event);
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
        if note & WANTED != 0
            && let Some(cq) = &self.rx_cq
        {
            let source = done.peer.and_then(|peer| self.sources.get(peer.0 as usize));
            let source = source.copied().unwrap_or(value::ADDRESS_UNKNOWN);
            cq.push(entry_of(&done, flags), source);
        }
        if let Some(cntr) = &self.cntrs[RECEIVES]
            && done.kind == CompletionKind::Received
        {
            cntr.count(true);
        }
    }
}
