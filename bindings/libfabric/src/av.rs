//! Address vectors: they map numbers to addresses. Maps and tables are the same here: the number is
//! the index.

use crate::abi::{AvAttr, EqEntry, Fid, FidAv, Ops, calls, class, error, flag, ops, value};
use crate::address::{self, SocketAddress};
use crate::domain::Domain;
use crate::eq::EventQueue;
use crate::errno::Result;
use crate::host;
use crate::object::{self, CLOSED_AV, Close, Handle, Opened, close, object};
use crate::pointer::{Array, Buffer, Out, Text};
use crate::reference::{AtomicRef, Ref};
use std::ffi::{c_int, c_void};
use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An address vector.
#[repr(C)]
pub struct AddressVector {
    fid: FidAv,
    _domain: Ref<Domain>,
    entries: Mutex<Vec<Option<SocketAddrV4>>>,
    /// Counts changes, so that endpoints notice.
    changes: AtomicU64,
    /// Endpoints that use it.
    users: AtomicUsize,
    /// Whether the event queue gets an event for each insertion.
    announces: bool,
    eq: AtomicRef<EventQueue>,
}

object!(AddressVector, FidAv, FID, CLOSED_AV, users);
impl Close for AddressVector {}

/// Most addresses of one call.
const ADDRESS_LIMIT: usize = 1 << 24;
const SYMMETRIC: u64 = 1 << 59;
const SYNC_ERR: u64 = 1 << 58;

static FID: Ops<6> = ops![close::<AddressVector>, bind];
/// fi_av(3).
static AV: Ops<7> = ops![insert, insertsvc, insertsym, remove, lookup, straddr];

/// `fi_av_open`.
pub extern "C" fn open(
    domain: &Domain,
    attr: Option<&mut AvAttr>,
    into: Out<AddressVector>,
    context: *mut c_void,
) -> c_int {
    object::open(into, || {
        let attr = attr.ok_or(error::EINVAL)?;
        if !attr.name.is_null() || attr.flags & flag::READ != 0 || attr.rx_ctx_bits != 0 {
            // Refused: vectors shared by processes, and endpoints with several contexts.
            return Err(error::ENOSYS);
        }
        if attr.flags & !(flag::EVENT | SYMMETRIC) != 0 {
            return Err(error::EBADFLAGS);
        }
        match attr.kind {
            0 => attr.kind = value::AV_TABLE,
            value::AV_MAP | value::AV_TABLE => {}
            _ => return Err(error::EINVAL),
        }
        Ok(Opened::new(AddressVector {
            fid: FidAv { fid: Fid { class: class::AV, context, ops: &FID }, ops: &AV },
            _domain: Ref::to(domain),
            entries: Mutex::new(Vec::with_capacity(attr.count.min(1 << 20))),
            changes: AtomicU64::new(1),
            users: AtomicUsize::new(0),
            announces: attr.flags & flag::EVENT != 0,
            eq: AtomicRef::default(),
        }))
    })
}

impl AddressVector {
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

    /// Inserts addresses, and writes their numbers. Returns how many were valid. With `SYNC_ERR`
    /// the context is an array of an error for each address.
    fn insert(
        &self,
        addresses: &[Option<SocketAddrV4>],
        numbers: Array<u64>,
        flags: u64,
        context: Array<c_int>,
    ) -> Result<usize> {
        let mut numbers = numbers.places(addresses.len());
        let mut errors = if flags & SYNC_ERR != 0 { context.places(addresses.len()) } else { None };
        let mut valid = 0;
        let mut entries = self.entries();
        for (at, address) in addresses.iter().enumerate() {
            let number = match address {
                Some(_) => {
                    entries.push(*address);
                    valid += 1;
                    entries.len() as u64 - 1
                }
                None => value::ADDRESS_UNKNOWN,
            };
            if let Some(numbers) = &mut numbers {
                numbers[at].write(number);
            }
            if let Some(errors) = &mut errors {
                errors[at].write(if address.is_some() { 0 } else { error::EINVAL.number() });
            }
        }
        drop(entries);
        self.changed();
        if !self.announces {
            return Ok(valid);
        }
        let eq = self.eq.get().ok_or(error::ENOEQ)?;
        let entry = |data| EqEntry { fid: Handle::of(self), context: context.pointer(), data };
        for (at, _) in addresses.iter().enumerate().filter(|(_, one)| one.is_none()) {
            eq.report_error(entry(at as u64), error::EINVAL, &[]);
        }
        eq.report(value::EVENT_AV_COMPLETE, entry(valid as u64));
        Ok(0)
    }

    /// Inserts nodes `HOST`, `HOST`+1, ... and on each of them ports `PORT`, `PORT`+1, ...
    fn insert_range(
        &self,
        (node, nodes): (Text, usize),
        (service, services): (Text, usize),
        numbers: Array<u64>,
        flags: u64,
        context: Array<c_int>,
    ) -> Result<usize> {
        check_insert_flags(flags)?;
        let (node, service) = node.get().zip(service.get()).ok_or(error::EINVAL)?;
        let fits = nodes.checked_mul(services).is_some_and(|all| all <= ADDRESS_LIMIT);
        if !fits || services > 1 << 16 {
            return Err(error::EINVAL);
        }
        let first = host::look_up(Some(node), Some(service), false).ok_or(error::EINVAL)?;
        let mut addresses = Vec::new();
        for node in 0..nodes as u32 {
            for service in 0..services {
                let ip = u32::from(*first.ip()).wrapping_add(node);
                let port = first.port().wrapping_add(service as u16);
                addresses.push(Some(SocketAddrV4::new(ip.into(), port)));
            }
        }
        self.insert(&addresses, numbers, flags, context)
    }
}

fn check_insert_flags(flags: u64) -> Result {
    if flags & !(flag::MORE | SYNC_ERR) != 0 { Err(error::EBADFLAGS) } else { Ok(()) }
}

calls! {
    av: &AddressVector;

    fn bind(eq: Handle, _flags: u64) -> c_int {
        eq.object().map(|eq| av.eq.set(Ref::to(eq))).ok_or(error::EINVAL)
    }

    fn insert(
        addresses: Array<SocketAddress>, addresses_count: usize,
        numbers: Array<u64>, flags: u64, context: Array<c_int>
    ) -> c_int {
        check_insert_flags(flags)?;
        if addresses_count > ADDRESS_LIMIT {
            return Err(error::EINVAL);
        }
        let addresses = addresses.elements(addresses_count)?;
        let addresses: Vec<_> = addresses.iter().map(|one| address::read(one)).collect();
        av.insert(&addresses, numbers, flags, context)
    }

    fn insertsvc(
        node: Text, service: Text, number: Array<u64>, flags: u64, context: Array<c_int>
    ) -> c_int {
        av.insert_range((node, 1), (service, 1), number, flags, context)
    }

    fn insertsym(
        node: Text, nodes: usize, service: Text, services: usize,
        numbers: Array<u64>, flags: u64, context: Array<c_int>
    ) -> c_int {
        av.insert_range((node, nodes), (service, services), numbers, flags, context)
    }

    fn remove(numbers: Array<u64>, count: usize, _flags: u64) -> c_int {
        let mut entries = av.entries();
        for &number in numbers.elements(count)? {
            // A removed address is as unknown as one that was never inserted.
            let entry = entries.get_mut(number as usize).and_then(Option::take);
            entry.ok_or(error::EINVAL)?;
            av.changed();
        }
        Ok(())
    }

    /// A truncated address is no error here: fi_av_lookup(3) returns the full length.
    fn lookup(number: u64, into: Buffer, length: Option<&mut usize>) -> c_int {
        let length = length.ok_or(error::EINVAL)?;
        let address = av.entries().get(number as usize).copied().flatten();
        let _ = address::write(address.ok_or(error::EINVAL)?, into, length);
        Ok(())
    }
}

extern "C" fn straddr(
    _av: &AddressVector,
    address: Option<&SocketAddress>,
    into: Buffer,
    length: Option<&mut usize>,
) -> *mut c_void {
    let Some(length) = length else { return std::ptr::null_mut() };
    let text = match address.and_then(|address| address::read(address)) {
        Some(address) => format!("fi_sockaddr_in://{address}"),
        None => "not an address".to_owned(),
    };
    into.write_text(*length, text.as_bytes());
    *length = text.len() + 1;
    into.pointer()
}
