//! The thread that waits for sockets and the time, and the calls of programs.

use crate::Patience;
use crate::endpoint::{End, Event};
use crate::message::Offer;
use crate::state::{State, WAKER, source_of};
use bellwire_ring::signals;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use std::fmt;
use std::io;
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Hears of an end, from any thread. Nothing is locked meanwhile.
pub type Sink = Arc<dyn Fn(Event) + Send + Sync>;

/// All ends of a process. It lasts as long as one of its ends, or this.
#[derive(Clone)]
pub struct Manager(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// Readable when a deadline may be nearer, or all is over. The thread holds it, too: a
    /// descriptor that is closed wakes nobody.
    waker: Arc<OwnedFd>,
}

impl Manager {
    /// Starts the thread.
    ///
    /// # Errors
    /// There are no descriptors or threads left.
    pub fn new() -> io::Result<Manager> {
        let poller = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let waker = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        epoll::add(&poller, &waker, EventData::new_u64(WAKER), EventFlags::IN)?;
        let state = Mutex::new(State::new(poller.try_clone()?));
        let shared = Arc::new(Shared { state, waker: waker.clone() });
        let manager = Manager(shared.clone());
        // The thread keeps nothing alive while it sleeps.
        let weak = Arc::downgrade(&shared);
        let run = move || {
            while let Some(shared) = weak.upgrade() {
                let until = shared.with(|state| state.next_timer());
                drop(shared);
                let mut events = [const { MaybeUninit::uninit() }; 64];
                let ready = wait(&poller, until, &mut events);
                let mut count = [0; 8];
                let _ = rustix::io::read(&*waker, &mut count);
                if let Some(shared) = weak.upgrade() {
                    Manager(shared).turn(ready);
                }
            }
        };
        // From then on it has its name, by which devices know that it is not the program's.
        signals::spawn(std::thread::Builder::new().name("bellwire-cm".to_owned()), run)?;
        Ok(manager)
    }

    fn turn(&self, ready: &[epoll::Event]) {
        self.0.with(|state| {
            for (number, part) in ready.iter().filter_map(|event| source_of(event.data)) {
                state.ready(number, part);
            }
            state.expire(Instant::now());
        });
        self.deliver_requests();
    }

    /// Requests become events with an end of their own.
    fn deliver_requests(&self) {
        let made = self.0.with(|state| {
            let mut made = Vec::new();
            for (listener, number, offer) in std::mem::take(&mut state.requests) {
                let Some((local, peer)) = addresses(state, listener, number, offer.port) else {
                    state.remove(number);
                    continue;
                };
                let sink = state.end(listener).ok().and_then(|it| it.sink.clone());
                made.push((sink, number, offer, local, peer));
            }
            made
        });
        for (sink, number, offer, local, peer) in made {
            // Without a sink the end is dropped, and the request refused.
            let end = Endpoint { manager: self.clone(), number };
            if let Some(sink) = sink {
                sink(Event::Request { end, offer, local, peer });
            }
        }
    }

    /// A new end in a port space (`RDMA_PS_*`), whose events `sink` hears.
    pub fn endpoint(&self, space: u16, sink: Sink) -> Endpoint {
        let number = self.0.with(|state| state.add(End::new(space, Some(sink))));
        Endpoint { manager: self.clone(), number }
    }
}

/// The address that a request came to, with the listener's port, and that it came from.
fn addresses(
    state: &mut State,
    listener: u32,
    number: u32,
    from_port: u16,
) -> Option<(SocketAddrV4, SocketAddrV4)> {
    let v4 = |address: io::Result<std::net::SocketAddr>| match address {
        Ok(std::net::SocketAddr::V4(address)) => Some(address),
        _ => None,
    };
    let port = v4(state.end(listener).ok()?.name.as_ref()?.local_addr())?.port();
    let stream = state.end(number).ok()?.stream.as_ref()?;
    let (local, peer) = (v4(stream.local_addr())?, v4(stream.peer_addr())?);
    Some((SocketAddrV4::new(*local.ip(), port), SocketAddrV4::new(*peer.ip(), from_port)))
}

/// Waits for descriptors, at most until the deadline.
fn wait<'e>(
    poller: &OwnedFd,
    until: Option<Instant>,
    events: &'e mut [MaybeUninit<epoll::Event>],
) -> &'e [epoll::Event] {
    let timeout = until.map(|until| {
        let left = until.saturating_duration_since(Instant::now());
        rustix::time::Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: left.subsec_nanos().into(),
        }
    });
    match epoll::wait(poller, events, timeout.as_ref()) {
        Ok((ready, _)) => ready,
        // Interrupted.
        Err(_) => &[],
    }
}

impl Shared {
    /// Does something with all ends, then tells programs what came of it.
    fn with<R>(&self, work: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let result = work(&mut state);
        let news = std::mem::take(&mut state.news);
        drop(state);
        for (sink, event) in news {
            sink(event);
        }
        result
    }

    /// Lets the thread look at the deadlines, and whether anybody is left.
    fn wake(&self) {
        let _ = rustix::io::write(&*self.waker, &1u64.to_ne_bytes());
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.wake();
    }
}

/// One end of a connection, or a listener. Dropping it ends what is under way.
pub struct Endpoint {
    manager: Manager,
    number: u32,
}

impl Endpoint {
    fn with<R>(&self, work: impl FnOnce(&mut State, u32) -> R) -> R {
        let result = self.manager.0.with(|state| work(state, self.number));
        self.manager.0.wake();
        result
    }

    /// Takes a port of an address of this host; 0 for either: any. Returns what it took.
    ///
    /// # Errors
    /// `AddrInUse`, `AddrNotAvailable`, `PermissionDenied`; `InvalidInput`: it is bound already.
    pub fn bind(&self, address: SocketAddrV4) -> io::Result<SocketAddrV4> {
        self.with(|state, number| state.bind(number, address))
    }

    /// Lets others connect to the port. The program may leave `backlog` requests unanswered; 0: as
    /// many as there can be.
    ///
    /// # Errors
    /// `InvalidInput`: it is not bound, or used already.
    pub fn listen(&self, backlog: usize) -> io::Result<()> {
        self.with(|state, number| state.listen(number, backlog))
    }

    /// Asks whoever listens at `to` for a connection. The bound port and the port space are added
    /// to the offer.
    ///
    /// # Errors
    /// `InvalidInput`: it is not bound, or used already.
    pub fn connect(&self, to: SocketAddrV4, offer: Offer) -> io::Result<()> {
        self.connect_within(to, offer, Patience::default())
    }

    /// As [`Endpoint::connect`], and gives up as `patience` says.
    ///
    /// # Errors
    /// `InvalidInput`: it is not bound, or used already.
    pub fn connect_within(
        &self,
        to: SocketAddrV4,
        offer: Offer,
        patience: Patience,
    ) -> io::Result<()> {
        self.with(|state, number| state.connect(number, to, offer, patience))
    }

    /// Accepts a request. A service of datagrams is done then.
    ///
    /// # Errors
    /// `ConnectionReset`: who asked has gone. `InvalidInput`: nobody asked.
    pub fn accept(&self, offer: Offer) -> io::Result<()> {
        self.with(|state, number| state.accept(number, offer))
    }

    /// Refuses a request or a reply.
    ///
    /// # Errors
    /// `InvalidInput`: there is neither.
    pub fn reject(&self, reason: u32, data: Vec<u8>) -> io::Result<()> {
        self.with(|state, number| state.reject(number, reason, data))
    }

    /// Says that the queue pair is connected as the reply wants it.
    ///
    /// # Errors
    /// `InvalidInput`: there is no reply.
    pub fn ready(&self) -> io::Result<()> {
        self.with(|state, number| state.connected(number))
    }

    /// Ends the connection; [`Event::Disconnected`] follows on both sides.
    ///
    /// # Errors
    /// `NotConnected`.
    pub fn disconnect(&self) -> io::Result<()> {
        self.with(|state, number| state.disconnect(number))
    }

    /// Lets `sink` hear of this end, also of what happened before.
    pub fn adopt(&self, sink: &Sink) {
        let held = self.with(|state, number| {
            state.end(number).map_or_else(
                |_| Vec::new(),
                |end| {
                    end.sink = Some(sink.clone());
                    std::mem::take(&mut end.held)
                },
            )
        });
        held.into_iter().for_each(|event| sink(event));
    }

    /// The address that it is bound to.
    pub fn local(&self) -> Option<SocketAddrV4> {
        self.with(|state, number| {
            let name = state.end(number).ok()?.name.as_ref()?.local_addr().ok()?;
            match name {
                std::net::SocketAddr::V4(name) => Some(name),
                std::net::SocketAddr::V6(_) => None,
            }
        })
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({})", self.number)
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.with(|state, number| state.remove(number));
    }
}

/// The address from which packets to `to` leave this host.
///
/// # Errors
/// There is no way there.
pub fn source_for(to: Ipv4Addr) -> io::Result<Ipv4Addr> {
    let socket = std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // Sends nothing; any port will do.
    socket.connect((to, 9))?;
    match socket.local_addr()? {
        std::net::SocketAddr::V4(address) => Ok(*address.ip()),
        std::net::SocketAddr::V6(_) => Err(io::ErrorKind::Unsupported.into()),
    }
}
