//! Identifiers: one end of a connection, or a listener.

use super::abi::{CmId, Gids, Kind, PathRecord};
use super::channel::{CmChannel, Joined, Mailbox, What};
use super::event::EventObject;
use super::{Errno, address, device, errno_of};
use crate::abi::{Opaque, QpInitAttr};
use crate::context::ContextObject;
use crate::event::Acknowledged;
use bellwire_rdmacm::{Endpoint, Groups, Manager, Offer, Sink};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An identifier.
#[repr(C)]
pub struct Id {
    pub abi: CmId,
    pub end: Endpoint,
    mailbox: Arc<Mailbox>,
    /// Events that the program has not acknowledged.
    pub events: Acknowledged,
    state: Mutex<State>,
}

/// What the calls of an identifier share.
pub struct State {
    /// Calls wait for their event, and the channel is the identifier's own.
    pub is_sync: bool,
    pub has_address: bool,
    pub has_route: bool,
    /// Number of the first packet that this side sends.
    pub psn: u32,
    /// How long a peer may take to acknowledge: 4.096 us * 2^it.
    pub ack_timeout: u8,
    /// How often this side sends again: who asks says it.
    pub retries: u8,
    /// What this side brings.
    pub own: Option<Offer>,
    /// What the other side brings.
    pub peer: Option<Offer>,
    /// Of a listener of `rdma_create_ep`: what each new identifier's queue pair is.
    pub requests: Option<QpInitAttr>,
    /// Private data of `rdma_getaddrinfo` for the request.
    pub data: Vec<u8>,
    pub groups: Groups,
}

// SAFETY: C uses it from several threads as rdma_cm(7) permits: what they share is in `state`,
// which has a lock, and a pointer that one call writes is read by another only after that.
unsafe impl Sync for State {}
// SAFETY: the pointers of `requests` are objects of C, which have no thread.
unsafe impl Send for State {}

/// `RDMA_PS_*`
const PORT_SPACES: [u32; 4] = [PS_IPOIB, 0x0106, PS_UDP, 0x013f];
const PS_IPOIB: u32 = 0x0002;
const PS_UDP: u32 = 0x0111;
/// `IBV_QPT_*`
const RC: u32 = 2;
const UD: u32 = 4;

/// The manager of this process. A child has no thread of its parent's.
fn manager() -> Result<Manager, Errno> {
    static MANAGER: Mutex<Option<(u32, Manager)>> = Mutex::new(None);
    let mut own = MANAGER.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((_, manager)) = own.as_ref().filter(|(owner, _)| *owner == process) {
        return Ok(manager.clone());
    }
    let manager = Manager::new().map_err(|_| libc::ENOMEM)?;
    // Its end would wake the parent's thread.
    std::mem::forget(own.replace((process, manager.clone())));
    Ok(manager)
}

/// Kinds of queue pair of a port space.
pub fn service_of(space: u32) -> u32 {
    if matches!(space, PS_IPOIB | PS_UDP) { UD } else { RC }
}

impl Id {
    /// A new identifier. Without a channel it gets one of its own, and its calls wait.
    pub fn new(
        channel: Option<&CmChannel>,
        context: Opaque,
        space: u32,
        qp_type: u32,
    ) -> Result<&'static Id, Errno> {
        if !PORT_SPACES.contains(&space) {
            return Err(libc::EPROTONOSUPPORT);
        }
        let space_number = space as u16;
        Self::make(channel, (context, space, qp_type), |sink| {
            Ok(manager()?.endpoint(space_number, sink))
        })
    }

    /// The identifier of a request that came to `listener`.
    pub fn of_request(listener: &Id, end: Endpoint) -> Result<&'static Id, Errno> {
        let own = &listener.abi;
        // SAFETY: a channel outlives its identifiers.
        let channel = unsafe { own.channel.get().as_ref() };
        let channel = channel.filter(|_| !listener.state().is_sync);
        Self::make(channel, (own.context.get(), own.ps, own.qp_type), |sink| {
            end.adopt(&sink);
            Ok(end)
        })
    }

    fn make(
        channel: Option<&CmChannel>,
        (context, space, qp_type): (Opaque, u32, u32),
        end: impl FnOnce(Sink) -> Result<Endpoint, Errno>,
    ) -> Result<&'static Id, Errno> {
        let mut psn = [0; 4];
        rustix::rand::getrandom(&mut psn[..3], rustix::rand::GetRandomFlags::empty())
            .map_err(|error| error.raw_os_error())?;
        let psn = u32::from_le_bytes(psn);
        let is_sync = channel.is_none();
        let channel: *const CmChannel = match channel {
            Some(channel) => channel,
            None => Box::into_raw(Box::new(CmChannel::new().map_err(|error| errno_of(&error))?)),
        };
        let place = Box::<Id>::new_uninit();
        let mailbox = Arc::new(Mailbox::new(place.as_ptr() as usize, channel));
        let to = mailbox.clone();
        let sink: Sink = Arc::new(move |event| to.put(What::Came(event)));
        let end = end(sink).inspect_err(|_| {
            if is_sync {
                // SAFETY: it was made above.
                drop(unsafe { Box::from_raw(channel.cast_mut()) });
            }
        })?;
        let state = State {
            is_sync,
            has_address: false,
            has_route: false,
            psn,
            ack_timeout: super::queue_pair::ACK_TIMEOUT,
            retries: 7,
            own: None,
            peer: None,
            requests: None,
            data: Vec::new(),
            groups: Groups::default(),
        };
        let id = Box::write(
            place,
            Id {
                abi: CmId::new(channel, context, space, qp_type),
                end,
                mailbox,
                events: Acknowledged::default(),
                state: Mutex::new(state),
            },
        );
        Ok(Box::leak(id))
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call of this side is done: its event comes next.
    pub fn done(&self, kind: Kind) -> Result<(), Errno> {
        self.mailbox.put(What::Done(kind));
        self.complete()
    }

    /// A group was joined or not: that event comes next.
    pub fn joined(&self, joined: Joined) -> Result<(), Errno> {
        self.mailbox.put(What::Joined(joined));
        self.complete()
    }

    /// Leaves a group: an event of it that waits is dropped.
    pub fn left(&self, group: Ipv4Addr) {
        self.mailbox.forget(group);
    }

    /// Waits for the event of a call, if the identifier has no channel of the program.
    pub fn complete(&self) -> Result<(), Errno> {
        if !self.state().is_sync {
            return Ok(());
        }
        self.acknowledge();
        // SAFETY: its own channel lives as long as it does.
        let channel = unsafe { &*self.abi.channel.get() };
        let event = EventObject::wait(channel)?;
        self.abi.event.set(event);
        // SAFETY: it was made just now.
        let (kind, status) = unsafe { ((*event).abi.event, (*event).abi.status) };
        match status {
            0 => Ok(()),
            _ if kind == Kind::Rejected as u32 => Err(libc::ECONNREFUSED),
            status => Err(status.abs()),
        }
    }

    /// Acknowledges the event of the last call that waited.
    pub fn acknowledge(&self) {
        let event = self.abi.event.replace(null_mut());
        if !event.is_null() {
            EventObject::end(event);
        }
    }

    /// Takes a port of an address, and the device of the address.
    pub fn bind(&self, wanted: SocketAddrV4) -> Result<(), Errno> {
        let bound = self.end.bind(wanted).map_err(|error| errno_of(&error))?;
        self.abi.route.addr.src.set(address::write(bound));
        self.use_device_of(*bound.ip())
    }

    /// Takes the device of an address of this host; none for all of them.
    pub fn use_device_of(&self, host: Ipv4Addr) -> Result<(), Errno> {
        if host.is_unspecified() {
            return Ok(());
        }
        let context = device::context(host)?;
        self.abi.verbs.set(context);
        // Programs read it before they have a queue pair.
        self.abi.pd.set(device::domain(context)?);
        self.abi.port_num.set(1);
        let sgid = ContextObject::of(context).gid;
        let gids = Gids { sgid, pkey: u16::MAX, ..self.abi.route.addr.gids.get() };
        self.abi.route.addr.gids.set(gids);
        Ok(())
    }

    /// Where it is bound.
    pub fn local(&self) -> Option<SocketAddrV4> {
        address::parse(&self.abi.route.addr.src.get())
    }

    /// Remembers whom it talks to.
    pub fn set_peer(&self, to: SocketAddrV4) {
        let route = &self.abi.route;
        route.addr.dst.set(address::write(to));
        let dgid = to.ip().to_ipv6_mapped().octets();
        route.addr.gids.set(Gids { dgid, ..route.addr.gids.get() });
    }

    /// The route is known: one path, over which everything goes.
    pub fn set_route(&self) {
        let route = &self.abi.route;
        let Gids { sgid, dgid, pkey } = route.addr.gids.get();
        let path = PathRecord {
            dgid,
            sgid,
            hop_limit: 64,
            reversible: 1 << 24,
            numb_path: 1,
            pkey,
            mtu_selector: EXACTLY,
            mtu: super::queue_pair::MTU_4096 as u8,
            packet_life_time_selector: EXACTLY,
            ..PathRecord::default()
        };
        self.end_route();
        route.path_rec.set(Box::into_raw(Box::new(path)));
        route.num_paths.set(1);
        self.state().has_route = true;
    }

    fn end_route(&self) {
        let path = self.abi.route.path_rec.replace(null_mut());
        if !path.is_null() {
            // SAFETY: `set_route` made it.
            drop(unsafe { Box::from_raw(path) });
        }
    }

    /// Moves its events to another channel. Without one it gets its own, and its calls wait.
    pub fn migrate(&self, channel: Option<&CmChannel>) -> Result<(), Errno> {
        self.acknowledge();
        let new: *const CmChannel = match channel {
            Some(channel) => channel,
            None => Box::into_raw(Box::new(CmChannel::new().map_err(|error| errno_of(&error))?)),
        };
        self.mailbox.move_to(Some(new));
        let old = self.abi.channel.replace(new);
        let was_sync = std::mem::replace(&mut self.state().is_sync, channel.is_none());
        if was_sync {
            // SAFETY: it was its own, and nobody puts anything into it any more.
            drop(unsafe { Box::from_raw(old.cast_mut()) });
        }
        Ok(())
    }

    /// Ends an identifier, as soon as the program has acknowledged its events.
    pub fn destroy(this: *mut Id) {
        // SAFETY: C gives back an identifier.
        let own = unsafe { &*this };
        own.acknowledge();
        own.mailbox.move_to(None);
        own.events.wait();
        own.end_route();
        let channel = own.state().is_sync.then(|| own.abi.channel.get());
        // SAFETY: it was made by `make`.
        drop(unsafe { Box::from_raw(this) });
        if let Some(channel) = channel {
            // SAFETY: it was its own.
            drop(unsafe { Box::from_raw(channel.cast_mut()) });
        }
    }
}

/// `IBV_SA_EXACTLY`: a selector of [`PathRecord`].
const EXACTLY: u8 = 2;
