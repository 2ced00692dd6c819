//! Connections that come to a listener: they are made before the program accepts them, as many as
//! its backlog.

use crate::connection::Connection;
use crate::options::Options;
use crate::runtime::Runtime;
use crate::socket::{Inbox, Socket};
use bellwire_rdma::EventQueue;
use bellwire_rdmacm::{Endpoint, Offer};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddrV4;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Who wants to connect.
pub struct Asking {
    pub end: Endpoint,
    pub offer: Offer,
    pub local: SocketAddrV4,
    pub peer: SocketAddrV4,
}

/// What waits at a listener.
pub struct Accepting {
    runtime: &'static Runtime,
    channel: Arc<EventQueue<usize>>,
    inner: Mutex<Inner>,
}

struct Inner {
    /// What a new socket has from its listener.
    options: Options,
    family: i32,
    backlog: usize,
    /// Requests beyond the backlog; who asked waits.
    asking: VecDeque<Asking>,
    /// Accepted by this side, and not ready at the other.
    opening: Vec<Arc<Socket>>,
    /// Connections that the program may take.
    ready: VecDeque<Arc<Socket>>,
    closed: bool,
}

impl Accepting {
    pub fn new(
        runtime: &'static Runtime,
        channel: Arc<EventQueue<usize>>,
        options: Options,
        family: i32,
        backlog: usize,
    ) -> Accepting {
        let inner = Inner {
            options,
            family,
            backlog,
            asking: VecDeque::new(),
            opening: Vec::new(),
            ready: VecDeque::new(),
            closed: false,
        };
        Accepting { runtime, channel, inner: Mutex::new(inner) }
    }

    // It is not held while an endpoint is called: that may bring more news to this listener.
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The program has changed the options.
    pub fn set_options(&self, options: &Options) {
        self.inner().options = options.clone();
    }

    /// Somebody asks.
    pub fn asked(self: &Arc<Accepting>, asking: Asking) {
        self.inner().asking.push_back(asking);
        self.advance();
    }

    /// Answers as many as the backlog has room for.
    fn advance(self: &Arc<Accepting>) {
        loop {
            let (asking, options, family) = {
                let mut inner = self.inner();
                if inner.closed || inner.opening.len() + inner.ready.len() >= inner.backlog {
                    return;
                }
                let Some(asking) = inner.asking.pop_front() else { return };
                (asking, inner.options.clone(), inner.family)
            };
            let from = asking.peer;
            if let Err(error) = self.open(asking, options, family) {
                // The end is dropped, so that the other side learns it.
                crate::log::say(format_args!("a connection from {from} is refused: {error}"));
            }
        }
    }

    fn open(
        self: &Arc<Accepting>,
        asking: Asking,
        options: Options,
        family: i32,
    ) -> io::Result<()> {
        let Asking { end, offer, local, peer } = asking;
        let device = self.runtime.devices.of(*local.ip())?;
        let channel = Arc::new(EventQueue::new()?);
        let mut connection = Connection::new(device, options.sizes, &channel)?;
        connection.connect(&offer)?;
        let own = connection.offer();
        let inbox = Arc::new(Inbox::of_child(channel, Arc::downgrade(self)));
        let child =
            Socket::accepted(self.runtime, family, options, inbox.clone(), connection, local, peer);
        inbox.belongs_to(&child);
        self.inner().opening.push(child.clone());
        end.adopt(&inbox.sink());
        let accepted = end.accept(own);
        child.keep_end(end);
        if accepted.is_err() {
            self.forget(&child);
        }
        accepted
    }

    /// A connection is ready at both sides.
    pub fn is_ready(&self, child: &Arc<Socket>) {
        let mut inner = self.inner();
        if let Some(at) = inner.opening.iter().position(|it| Arc::ptr_eq(it, child)) {
            let child = inner.opening.swap_remove(at);
            inner.ready.push_back(child);
            drop(inner);
            self.channel.push(0);
        }
    }

    /// A connection broke before it was ready.
    pub fn forget(self: &Arc<Accepting>, child: &Arc<Socket>) {
        let mut inner = self.inner();
        let at = inner.opening.iter().position(|it| Arc::ptr_eq(it, child));
        let gone = at.map(|at| inner.opening.swap_remove(at));
        drop(inner);
        // It ends without the lock, because that calls its endpoint.
        drop(gone);
    }

    /// Whether a connection waits for the program.
    pub fn has_ready(&self) -> bool {
        !self.inner().ready.is_empty()
    }

    /// The oldest connection that waits.
    pub fn take(self: &Arc<Accepting>) -> Option<Arc<Socket>> {
        let taken = self.inner().ready.pop_front();
        if taken.is_some() {
            self.advance();
        }
        taken
    }

    /// Nothing is accepted any more; what waits ends.
    pub fn close(&self) {
        let mut inner = self.inner();
        inner.closed = true;
        let left = (
            std::mem::take(&mut inner.asking),
            std::mem::take(&mut inner.opening),
            std::mem::take(&mut inner.ready),
        );
        drop(inner);
        drop(left);
    }
}
