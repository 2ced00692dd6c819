//! Events, as the program takes them.

use super::abi::{CmEvent, ConnParam, Kind, Param, UdParam};
use super::channel::{CmChannel, Joined, Pending, What};
use super::id::Id;
use super::{Errno, address, errno_of, queue_pair};
use bellwire_rdma::{EventQueue, GROUP_QUEUE_PAIR};
use bellwire_rdmacm::{Endpoint, Event, Offer, reason};
use std::net::SocketAddrV4;
use std::ptr::null;

/// An event. C has the address of `abi`.
#[repr(C)]
pub struct EventObject {
    pub abi: CmEvent,
    data: Vec<u8>,
    /// Whose events it counts among.
    counted: *const Id,
}

/// What of an event is not the same for all.
struct Said {
    kind: Kind,
    status: i32,
    offer: Offer,
}

impl EventObject {
    /// The next event of a channel. Waits for one unless the program has set `O_NONBLOCK`.
    pub fn wait(channel: &CmChannel) -> Result<*mut EventObject, Errno> {
        loop {
            if let Some(event) = Self::next(&channel.queue).map_err(|error| errno_of(&error))? {
                return Ok(event);
            }
        }
    }

    /// The next event of a channel. Waits for a while unless the program has set `O_NONBLOCK`.
    pub fn next(queue: &EventQueue<Pending>) -> std::io::Result<Option<*mut EventObject>> {
        loop {
            let Some(Pending { id, what }) = queue.next()? else { return Ok(None) };
            // SAFETY: an identifier takes its events along when it ends.
            let id = unsafe { &*(id as *const Id) };
            let made = match what {
                What::Done(kind) => {
                    Some(Self::new(id, None, Said { kind, status: 0, offer: Offer::default() }))
                }
                What::Came(Event::Request { end, offer, local, peer }) => {
                    Self::request(id, end, offer, (local, peer))
                }
                What::Came(event) => Some(Self::new(id, None, told(id, event))),
                What::Joined(joined) => Some(Self::of_group(id, &joined)),
            };
            if made.is_some() {
                return Ok(made);
            }
        }
    }

    fn new(id: &Id, listener: Option<&Id>, said: Said) -> *mut EventObject {
        let Said { kind, status, offer } = said;
        let counted = listener.unwrap_or(id);
        counted.events.take();
        let data = offer.data.clone();
        let private_data = if data.is_empty() { null() } else { data.as_ptr() };
        let param = if id.abi.qp_type == super::id::service_of(0x0111) {
            Param {
                ud: UdParam {
                    private_data,
                    private_data_len: data.len() as u8,
                    ah_attr: queue_pair::path_to(offer.gid),
                    qp_num: offer.queue_pair,
                    qkey: offer.qkey,
                },
            }
        } else {
            Param {
                conn: ConnParam {
                    private_data,
                    private_data_len: data.len() as u8,
                    // What the other side asks for is what this one is to answer.
                    responder_resources: offer.initiator_depth,
                    initiator_depth: offer.responder_resources,
                    flow_control: offer.flow_control,
                    retry_count: offer.retry_count,
                    rnr_retry_count: offer.rnr_retry_count,
                    srq: offer.has_shared,
                    qp_num: offer.queue_pair,
                },
            }
        };
        let listen_id = listener.map_or(null(), std::ptr::from_ref);
        let abi = CmEvent { id, listen_id, event: kind as u32, status, param };
        Box::into_raw(Box::new(EventObject { abi, data, counted }))
    }

    /// The end of a call that joins a group: how to reach it, and the call's number.
    fn of_group(id: &Id, joined: &Joined) -> *mut EventObject {
        id.events.take();
        let kind = if joined.status == 0 { Kind::MulticastJoin } else { Kind::MulticastError };
        let ud = UdParam {
            private_data: joined.context as *const u8,
            private_data_len: 0,
            ah_attr: queue_pair::path_to(joined.group.to_ipv6_mapped().octets()),
            qp_num: GROUP_QUEUE_PAIR,
            qkey: queue_pair::UDP_QKEY,
        };
        let (event, status, param) = (kind as u32, joined.status, Param { ud });
        let abi = CmEvent { id, listen_id: null(), event, status, param };
        Box::into_raw(Box::new(EventObject { abi, data: Vec::new(), counted: id }))
    }

    /// A request makes an identifier. `None`: it cannot be served, and the other side is told.
    fn request(
        listener: &Id,
        end: Endpoint,
        offer: Offer,
        (local, peer): (SocketAddrV4, SocketAddrV4),
    ) -> Option<*mut EventObject> {
        // An end that is dropped refuses.
        let id = Id::of_request(listener, end).ok()?;
        id.abi.route.addr.src.set(address::write(local));
        if id.use_device_of(*local.ip()).is_err() {
            Id::destroy(std::ptr::from_ref(id).cast_mut());
            return None;
        }
        id.set_peer(peer);
        id.set_route();
        {
            let mut state = id.state();
            state.retries = offer.retry_count;
            state.peer = Some(offer.clone());
        }
        let said = Said { kind: Kind::ConnectRequest, status: 0, offer };
        Some(Self::new(id, Some(listener), said))
    }

    /// The program is done with it.
    pub fn end(this: *mut EventObject) {
        // SAFETY: C gives back an event of `new`, whose identifier waits for it.
        unsafe {
            let event = Box::from_raw(this);
            debug_assert!(event.data.len() <= usize::from(u8::MAX));
            (*event.counted).events.acknowledge(1);
        }
    }
}

/// What the other side did, and what that does to the identifier's queue pair.
fn told(id: &Id, event: Event) -> Said {
    let plain = |kind, status| Said { kind, status, offer: Offer::default() };
    match event {
        Event::Request { .. } => unreachable!("requests have an identifier of their own"),
        Event::Reply(offer) => replied(id, offer),
        Event::Datagrams(offer) => Said { kind: Kind::Established, status: 0, offer },
        Event::Ready => plain(Kind::Established, 0),
        Event::Rejected(reason, data) => {
            queue_pair::fail(id);
            // As the kernel has it: a service of datagrams that refuses cannot be reached.
            let is_datagrams = id.abi.qp_type == super::id::service_of(0x0111);
            let kind = if is_datagrams { Kind::Unreachable } else { Kind::Rejected };
            Said { kind, status: reason as i32, offer: Offer { data, ..Offer::default() } }
        }
        Event::Unreachable(errno) => plain(Kind::Unreachable, -errno),
        Event::ConnectError(errno) => {
            queue_pair::fail(id);
            plain(Kind::ConnectError, -errno)
        }
        Event::Disconnected => plain(Kind::Disconnected, 0),
        Event::TimeWaitExit => plain(Kind::TimeWaitExit, 0),
    }
}

/// The other side accepts. A queue pair of the identifier is connected here, in the program's own
/// thread; another one is the program's business.
fn replied(id: &Id, offer: Offer) -> Said {
    id.state().peer = Some(offer.clone());
    // SAFETY: null, or a queue pair of `rdma_create_qp`.
    let Some(qp) = (unsafe { id.abi.qp.get().as_ref() }) else {
        return Said { kind: Kind::ConnectResponse, status: 0, offer };
    };
    let done =
        queue_pair::connect(qp, id).and_then(|()| id.end.ready().map_err(|error| errno_of(&error)));
    match done {
        Ok(()) => Said { kind: Kind::Established, status: 0, offer },
        Err(errno) => {
            // It may be over already.
            let _ = id.end.reject(reason::CONSUMER, Vec::new());
            queue_pair::fail(id);
            Said { kind: Kind::ConnectError, status: -errno, offer: Offer::default() }
        }
    }
}
