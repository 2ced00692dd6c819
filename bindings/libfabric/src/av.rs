//! Address vectors: they map numbers to addresses. Maps and tables are the same here: the number is
//! the index.

use crate::abi::{AvAttr, EqEntry, Fid, FidAv, Ops, class, error, flag, not_offered, ops, value};
use crate::address;
use crate::domain::Domain;
use crate::eq::Eq;
use crate::host;
use crate::object::{CLOSED_AV, given, object, object_of, retire};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::net::SocketAddrV4;
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// An address vector.
#[repr(C)]
pub struct Av {
    fid: FidAv,
    domain: *mut Domain,
    entries: Mutex<Vec<Option<SocketAddrV4>>>,
    /// Counts changes, so that endpoints notice.
    changes: AtomicU64,
    /// Endpoints that use it.
    pub users: AtomicUsize,
    /// Whether the event queue gets an event for each insertion.
    announces: bool,
    events: AtomicPtr<Eq>,
}

object!(Av, FidAv, FID, CLOSED_AV);

/// Most addresses of one call.
const MOST: usize = 1 << 24;
/// Insertions are reported by events.
const EVENT: u64 = flag::EVENT;
const READ: u64 = flag::READ;
const SYMMETRIC: u64 = 1 << 59;
const SYNC_ERR: u64 = 1 << 58;

static FID: Ops<6> = ops![close, bind, not_offered, not_offered, not_offered, not_offered];
static AV: Ops<7> =
    ops![insert, insert_service, insert_symmetric, remove, look_up, to_text, not_offered];

/// `fi_av_open`.
pub unsafe extern "C" fn open(
    domain: *mut Domain,
    attr: *mut AvAttr,
    into: *mut *mut Av,
    context: *mut c_void,
) -> c_int {
    given!(attr, into);
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        let attr = &mut *attr;
        if !attr.name.is_null() || attr.flags & READ != 0 || attr.rx_ctx_bits != 0 {
            // Refused: vectors shared by processes, and endpoints with several contexts.
            return -error::ENOSYS;
        }
        if attr.flags & !(EVENT | SYMMETRIC) != 0 {
            return -error::EBADFLAGS;
        }
        match attr.kind {
            0 => attr.kind = value::AV_TABLE,
            value::AV_MAP | value::AV_TABLE => {}
            _ => return -error::EINVAL,
        }
        let fid = Fid { class: class::AV, context, ops: &FID };
        let av = Av {
            fid: FidAv { fid, ops: &AV },
            domain,
            entries: Mutex::new(Vec::with_capacity(attr.count.min(1 << 20))),
            changes: AtomicU64::new(1),
            users: AtomicUsize::new(0),
            announces: attr.flags & EVENT != 0,
            events: AtomicPtr::new(null_mut()),
        };
        (*domain).users.fetch_add(1, Ordering::Relaxed);
        into.write(Box::into_raw(Box::new(av)));
    }
    0
}

impl Av {
    /// The number of changes so far.
    #[inline(always)]
    pub fn changes(&self) -> u64 {
        // Acquire pairs with the release of `changed`.
        self.changes.load(Ordering::Acquire)
    }

    /// All addresses, by number.
    pub fn entries(&self) -> MutexGuard<'_, Vec<Option<SocketAddrV4>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self) {
        // Release pairs with the acquire of `changes`.
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// Inserts addresses, and writes their numbers. Returns how many were valid.
    ///
    /// # Safety
    /// `numbers` and `errors` are null or have a place for each address.
    unsafe fn put(
        &self,
        addresses: &[Option<SocketAddrV4>],
        numbers: *mut u64,
        errors: *mut c_int,
        context: *mut c_void,
    ) -> c_int {
        let mut good = 0;
        let mut entries = self.entries();
        for (at, address) in addresses.iter().enumerate() {
            let number = match address {
                Some(_) => {
                    entries.push(*address);
                    good += 1;
                    entries.len() as u64 - 1
                }
                None => value::ADDRESS_UNKNOWN,
            };
            // SAFETY: the caller's promise.
            unsafe {
                if !numbers.is_null() {
                    numbers.add(at).write(number);
                }
                if !errors.is_null() {
                    errors.add(at).write(if address.is_some() { 0 } else { error::EINVAL });
                }
            }
        }
        drop(entries);
        self.changed();
        if !self.announces {
            return good;
        }
        // Acquire pairs with the release of `bind`.
        // SAFETY: the queue is bound before the first insertion, and closed after the vector.
        match unsafe { self.events.load(Ordering::Acquire).as_ref() } {
            Some(events) => {
                let fid = (&raw const self.fid).cast_mut().cast();
                for (at, _) in addresses.iter().enumerate().filter(|(_, one)| one.is_none()) {
                    let entry = EqEntry { fid, context, data: at as u64 };
                    events.tell_error(entry, error::EINVAL);
                }
                events.tell(value::EVENT_AV_COMPLETE, EqEntry { fid, context, data: good as u64 });
                0
            }
            None => -error::ENOEQ,
        }
    }
}

unsafe extern "C" fn close(av: *mut Av) -> c_int {
    // SAFETY: made by `open`, and open, and so is its domain.
    unsafe {
        if (*av).users.load(Ordering::Relaxed) > 0 {
            return -error::EBUSY;
        }
        if let Some(events) = (*av).events.load(Ordering::Acquire).as_ref() {
            events.users.fetch_sub(1, Ordering::Relaxed);
        }
        (*(*av).domain).users.fetch_sub(1, Ordering::Relaxed);
        retire(av);
    }
    0
}

unsafe extern "C" fn bind(av: *mut Av, fid: *mut Fid, _flags: u64) -> c_int {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        let Some(events) = object_of::<Eq>(fid) else { return -error::EINVAL };
        events.users.fetch_add(1, Ordering::Relaxed);
        // Release pairs with the acquire of `put`.
        if let Some(before) = (*av).events.swap(fid.cast(), Ordering::AcqRel).as_ref() {
            before.users.fetch_sub(1, Ordering::Relaxed);
        }
    }
    0
}

unsafe extern "C" fn insert(
    av: *mut Av,
    addresses: *const c_void,
    count: usize,
    numbers: *mut u64,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    if flags & !(flag::MORE | SYNC_ERR) != 0 {
        return -error::EBADFLAGS;
    }
    if count > MOST {
        return -error::EINVAL;
    }
    if count > 0 {
        given!(addresses);
    }
    // SAFETY: there are `count` addresses and places.
    unsafe {
        let read = |at: usize| address::read(addresses.byte_add(at * address::BYTES));
        let addresses: Vec<_> = (0..count).map(read).collect();
        let errors = if flags & SYNC_ERR != 0 { context.cast() } else { null_mut() };
        (*av).put(&addresses, numbers, errors, context)
    }
}

unsafe extern "C" fn insert_service(
    av: *mut Av,
    node: *const c_char,
    service: *const c_char,
    number: *mut u64,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    // SAFETY: as below.
    unsafe { insert_symmetric(av, node, 1, service, 1, number, flags, context) }
}

/// Inserts nodes `HOST`, `HOST`+1, ... and on each of them ports `PORT`, `PORT`+1, ...
#[allow(clippy::too_many_arguments)]
unsafe extern "C" fn insert_symmetric(
    av: *mut Av,
    node: *const c_char,
    nodes: usize,
    service: *const c_char,
    services: usize,
    numbers: *mut u64,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    if flags & !(flag::MORE | SYNC_ERR) != 0 {
        return -error::EBADFLAGS;
    }
    given!(node, service);
    if nodes.checked_mul(services).is_none_or(|all| all > MOST) || services > 1 << 16 {
        return -error::EINVAL;
    }
    // SAFETY: strings, and a place for each node and service.
    unsafe {
        let (node, service) = (CStr::from_ptr(node), CStr::from_ptr(service));
        let Some(first) = host::look_up(Some(node), Some(service), false) else {
            return -error::EINVAL;
        };
        let mut addresses = Vec::new();
        for node in 0..nodes as u32 {
            for service in 0..services {
                let ip = u32::from(*first.ip()).wrapping_add(node);
                let port = first.port().wrapping_add(service as u16);
                addresses.push(Some(SocketAddrV4::new(ip.into(), port)));
            }
        }
        let errors = if flags & SYNC_ERR != 0 { context.cast() } else { null_mut() };
        (*av).put(&addresses, numbers, errors, context)
    }
}

unsafe extern "C" fn remove(av: *mut Av, numbers: *mut u64, count: usize, _flags: u64) -> c_int {
    if count > 0 {
        given!(numbers);
    }
    // SAFETY: there are `count` numbers.
    unsafe {
        let mut entries = (*av).entries();
        for at in 0..count {
            // A removed address is as unknown as one that was never inserted.
            match entries.get_mut(*numbers.add(at) as usize).map(Option::take) {
                Some(Some(_)) => (*av).changed(),
                _ => return -error::EINVAL,
            }
        }
    }
    0
}

unsafe extern "C" fn look_up(
    av: *mut Av,
    number: u64,
    into: *mut c_void,
    length: *mut usize,
) -> c_int {
    given!(length);
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        let address = (*av).entries().get(number as usize).copied().flatten();
        let Some(address) = address else { return -error::EINVAL };
        address::write(address, into, length);
    }
    0
}

unsafe extern "C" fn to_text(
    _av: *mut Av,
    address: *const c_void,
    into: *mut c_char,
    length: *mut usize,
) -> *const c_char {
    if length.is_null() {
        return null_mut();
    }
    // SAFETY: an address or null, and a buffer with the stated length.
    unsafe {
        let text = match address::read(address) {
            Some(address) => format!("fi_sockaddr_in://{address}"),
            None => "not an address".to_owned(),
        };
        let room = *length;
        if !into.is_null() && room > 0 {
            let kept = text.len().min(room - 1);
            std::ptr::copy_nonoverlapping(text.as_ptr(), into.cast(), kept);
            into.add(kept).write(0);
        }
        *length = text.len() + 1;
    }
    into
}
