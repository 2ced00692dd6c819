//! One socket: its state, and each call of a program that does not wait.

use crate::connection::Connection;
use crate::datagram::{Datagrams, Received};
use crate::listener::{Accepting, Asking};
use crate::mirror::{Mirror, Shown};
use crate::options::Options;
use crate::runtime::Runtime;
use crate::state::{Inner, Phase, again, error};
use crate::stream::Stream;

use bellwire_rdma::EventQueue;
use bellwire_rdmacm::{Endpoint, Event, Patience, Sink, source_for};
use libc::{POLLERR, POLLHUP, POLLIN, POLLOUT, POLLRDHUP, c_int, c_short};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// `RDMA_PS_TCP`
const PORT_SPACE: u16 = 0x0106;

/// What the manager's thread tells a socket.
pub struct Inbox {
    events: Mutex<Vec<Event>>,
    channel: Arc<EventQueue<usize>>,
    /// Of a listener.
    accepting: OnceLock<Arc<Accepting>>,
    /// Of a connection that a listener made.
    parent: Weak<Accepting>,
    own: OnceLock<Weak<Socket>>,
}

impl Inbox {
    fn new() -> io::Result<Inbox> {
        Ok(Inbox::of_child(Arc::new(EventQueue::new()?), Weak::new()))
    }

    /// That of a connection which `parent` makes.
    pub fn of_child(channel: Arc<EventQueue<usize>>, parent: Weak<Accepting>) -> Inbox {
        let (events, accepting, own) = (Mutex::default(), OnceLock::new(), OnceLock::new());
        Inbox { events, channel, accepting, parent, own }
    }

    /// The connection that a listener made.
    pub fn belongs_to(&self, socket: &Arc<Socket>) {
        let _ = self.own.set(Arc::downgrade(socket));
    }

    /// What hears the events.
    pub fn sink(self: &Arc<Inbox>) -> Sink {
        let inbox = self.clone();
        Arc::new(move |event| inbox.hear(event))
    }

    fn hear(&self, event: Event) {
        if let Event::Request { end, offer, local, peer } = event {
            if let Some(accepting) = self.accepting.get() {
                accepting.asked(Asking { end, offer, local, peer });
            }
            return;
        }
        let (is_ready, is_over) = (
            matches!(event, Event::Ready),
            matches!(event, Event::ConnectError(_) | Event::Rejected(..) | Event::Disconnected),
        );
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
        self.channel.push(0);
        if let Some(parent) = self.parent.upgrade()
            && let Some(own) = self.own.get().and_then(Weak::upgrade)
        {
            if is_ready {
                parent.is_ready(&own);
            } else if is_over {
                parent.forget(&own);
            }
        }
    }

    /// What has come.
    pub fn take(&self) -> Vec<Event> {
        std::mem::take(&mut *self.events.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A socket.
pub struct Socket {
    pub(crate) runtime: &'static Runtime,
    /// `AF_INET` or `AF_INET6`: how addresses are shown.
    pub family: c_int,
    /// `SOCK_STREAM` or `SOCK_DGRAM`.
    pub kind: c_int,
    pub(crate) channel: Arc<EventQueue<usize>>,
    inbox: Arc<Inbox>,
    nonblocking: AtomicBool,
    inner: Mutex<Inner>,
}

impl Socket {
    /// A new socket for a stream, without a number.
    pub fn new(runtime: &'static Runtime, family: c_int) -> io::Result<Arc<Socket>> {
        let inbox = Arc::new(Inbox::new()?);
        let inner = Inner::new(Options::new());
        Ok(Socket::with(runtime, (family, libc::SOCK_STREAM), inbox, inner))
    }

    /// A new socket of datagrams without a number.
    pub fn of_datagrams(runtime: &'static Runtime, family: c_int) -> io::Result<Arc<Socket>> {
        let inbox = Arc::new(Inbox::new()?);
        let datagrams = Datagrams::new(runtime, inbox.channel.clone())?;
        let mut inner = Inner::new(Options::new());
        inner.phase = Phase::Datagrams;
        inner.datagrams = Some(Box::new(datagrams));
        let socket = Socket::with(runtime, (family, libc::SOCK_DGRAM), inbox, inner);
        {
            let inner = socket.inner();
            let datagrams = inner.datagrams.as_ref().expect("just put there");
            runtime.service()?.attend(&socket, datagrams.udp())?;
        }
        Ok(socket)
    }

    fn with(
        runtime: &'static Runtime,
        (family, kind): (c_int, c_int),
        inbox: Arc<Inbox>,
        inner: Inner,
    ) -> Arc<Socket> {
        Arc::new(Socket {
            runtime,
            family,
            kind,
            channel: inbox.channel.clone(),
            inbox,
            nonblocking: AtomicBool::new(false),
            inner: Mutex::new(inner),
        })
    }

    /// One that a listener made, without a number.
    pub fn accepted(
        runtime: &'static Runtime,
        family: c_int,
        options: Options,
        inbox: Arc<Inbox>,
        connection: Connection,
        local: SocketAddrV4,
        peer: SocketAddrV4,
    ) -> Arc<Socket> {
        let mut inner = Inner::new(options);
        inner.phase = Phase::Connected;
        inner.connection = Some(connection);
        (inner.local, inner.peer) = (Some(local), Some(peer));
        Socket::with(runtime, (family, libc::SOCK_STREAM), inbox, inner)
    }

    /// The endpoint of one that a listener made.
    pub fn keep_end(&self, end: Endpoint) {
        self.inner().end = Some(end);
    }

    /// The lock. An endpoint may be called under it: what that tells others takes no socket's lock.
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lock, after everything that has happened was taken into account.
    pub fn look(&self) -> MutexGuard<'_, Inner> {
        let mut inner = self.inner();
        inner.pump(&self.inbox);
        inner
    }

    // Descriptors.

    /// Gives it its first number.
    pub fn number(&self, mirror: Mirror, number: OwnedFd) -> RawFd {
        let mut inner = self.inner();
        let number = number.into_raw_fd();
        inner.mirror = Some(mirror);
        inner.numbers.push(number);
        number
    }

    /// Another number is a copy.
    pub fn add_number(&self, number: RawFd) {
        self.inner().numbers.push(number);
    }

    /// A number is closed. Returns whether it was the last.
    pub fn remove_number(&self, number: RawFd) -> bool {
        let mut inner = self.inner();
        inner.numbers.retain(|&it| it != number);
        inner.numbers.is_empty()
    }

    /// Whether its calls return where they would wait.
    pub fn is_nonblocking(&self) -> bool {
        // Relaxed: nothing else depends on it.
        self.nonblocking.load(Ordering::Relaxed)
    }

    /// Lets its calls return where they would wait, or wait.
    pub fn set_nonblocking(&self, on: bool) {
        self.nonblocking.store(on, Ordering::Relaxed);
    }

    /// An ordinary socket stands beside it, for peers that do not speak this protocol: it is bound
    /// and listens alike.
    pub fn set_beside(&self, beside: OwnedFd, patience: Patience) {
        let mut inner = self.inner();
        inner.beside = Some(beside);
        inner.patience = patience;
    }

    /// Calls `with` on the ordinary socket beside it, if there is one.
    pub fn with_beside<R>(&self, with: impl FnOnce(RawFd) -> R) -> Option<R> {
        self.inner().beside.as_ref().map(|beside| with(beside.as_raw_fd()))
    }

    /// The ordinary socket beside it, which takes its place or ends.
    pub fn take_beside(&self) -> Option<OwnedFd> {
        self.inner().beside.take()
    }

    // Connections.

    /// Takes an address.
    ///
    /// # Errors
    /// `EADDRINUSE`, `EADDRNOTAVAIL`; `EINVAL`: it has one.
    pub fn bind(&self, address: SocketAddrV4) -> io::Result<()> {
        let mut inner = self.inner();
        if let Some(datagrams) = &mut inner.datagrams {
            return datagrams.bind(address);
        }
        if inner.phase != Phase::Idle || inner.end.is_some() {
            return Err(error(libc::EINVAL));
        }
        self.bind_locked(&mut inner, address)
    }

    fn bind_locked(&self, inner: &mut Inner, address: SocketAddrV4) -> io::Result<()> {
        let end = self.runtime.manager()?.endpoint(PORT_SPACE, self.inbox.sink());
        inner.local = Some(end.bind(address)?);
        inner.end = Some(end);
        Ok(())
    }

    /// Lets others connect.
    ///
    /// # Errors
    /// `EINVAL`: it is connected, or on its way. `EOPNOTSUPP`: of datagrams.
    pub fn listen(&self, backlog: c_int) -> io::Result<()> {
        let mut inner = self.inner();
        if inner.phase == Phase::Datagrams {
            return Err(error(libc::EOPNOTSUPP));
        }
        if inner.phase == Phase::Listening {
            return Ok(());
        }
        if inner.phase != Phase::Idle {
            return Err(error(libc::EINVAL));
        }
        if inner.end.is_none() {
            self.bind_locked(&mut inner, SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0))?;
        }
        let backlog = usize::try_from(backlog).unwrap_or(0).clamp(1, 1024);
        let options = inner.options.clone();
        let accepting =
            Accepting::new(self.runtime, self.channel.clone(), options, self.family, backlog);
        let _ = self.inbox.accepting.set(Arc::new(accepting));
        inner.phase = Phase::Listening;
        // All requests come here; the backlog is kept there.
        inner.end.as_ref().expect("bound above").listen(0)
    }

    /// A connection that has come.
    ///
    /// # Errors
    /// `EAGAIN`: none. `EINVAL`: it does not listen. `EOPNOTSUPP`: of datagrams.
    pub fn accept(&self) -> io::Result<Arc<Socket>> {
        match self.inner().phase {
            Phase::Listening => {}
            Phase::Datagrams => return Err(error(libc::EOPNOTSUPP)),
            _ => return Err(error(libc::EINVAL)),
        }
        let accepting = self.inbox.accepting.get().ok_or_else(|| error(libc::EINVAL))?;
        let taken = accepting.take().ok_or_else(again);
        self.update(&mut self.inner());
        taken
    }

    /// Begins to connect. A socket of datagrams is connected then.
    ///
    /// # Errors
    /// `EISCONN`, `EALREADY`; `ENETUNREACH`: there is no way there. `ENODEV`.
    pub fn begin_to_connect(&self, mut to: SocketAddrV4) -> io::Result<()> {
        let mut inner = self.look();
        match inner.phase {
            Phase::Idle => {}
            Phase::Datagrams => {
                return inner.datagrams.as_mut().map_or(Ok(()), |it| it.connect(to));
            }
            Phase::Connecting => return Err(error(libc::EALREADY)),
            Phase::Connected => return Err(error(libc::EISCONN)),
            Phase::Listening => return Err(error(libc::EISCONN)),
            Phase::Over => return Err(error(inner.error.take().unwrap_or(libc::ECONNABORTED))),
        }
        if to.ip().is_unspecified() {
            to.set_ip(Ipv4Addr::LOCALHOST);
        }
        let source = source_for(*to.ip())?;
        if inner.end.is_none() {
            self.bind_locked(&mut inner, SocketAddrV4::new(source, 0))?;
        }
        let local = inner.local.expect("bound above");
        let host = if local.ip().is_unspecified() { source } else { *local.ip() };
        let device = self.runtime.devices.of(host)?;
        let connection = Connection::new(device, inner.options.sizes, &self.channel)?;
        let offer = connection.offer();
        inner.connection = Some(connection);
        inner.local = Some(SocketAddrV4::new(host, local.port()));
        inner.peer = Some(to);
        inner.phase = Phase::Connecting;
        let patience = inner.patience;
        inner.end.as_ref().expect("bound above").connect_within(to, offer, patience)
    }

    /// Whether the connection stands.
    ///
    /// # Errors
    /// `EAGAIN`: not yet. Why it does not.
    pub fn finish_to_connect(&self) -> io::Result<()> {
        let mut inner = self.look();
        match inner.phase {
            Phase::Connected | Phase::Datagrams => Ok(()),
            Phase::Connecting => Err(again()),
            _ => Err(error(inner.error.take().unwrap_or(libc::ECONNABORTED))),
        }
    }

    /// Its own address.
    pub fn local(&self) -> SocketAddrV4 {
        let inner = self.inner();
        if let Some(datagrams) = &inner.datagrams {
            return datagrams.local();
        }
        inner.local.unwrap_or(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0))
    }

    /// The peer's.
    ///
    /// # Errors
    /// `ENOTCONN`.
    pub fn peer(&self) -> io::Result<SocketAddrV4> {
        let inner = self.look();
        let peer = match (inner.phase, &inner.datagrams) {
            (Phase::Datagrams, Some(datagrams)) => datagrams.peer(),
            (Phase::Connected, _) => inner.peer,
            _ => None,
        };
        peer.ok_or_else(|| error(libc::ENOTCONN))
    }

    // Data.

    /// Sends what there is room for.
    ///
    /// # Errors
    /// `EAGAIN`, `ENOTCONN`; `EPIPE`: it does not send any more. `ECONNRESET`.
    pub fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut inner = self.look();
        let result = inner.send(|connection| Ok(connection.write(bytes)));
        let has_room = inner.stream().is_some_and(|stream| stream.room() > 0);
        self.behind(&inner);
        if inner.watched && !has_room {
            self.update(&mut inner);
        }
        result
    }

    /// Writes to memory that the peer has mapped at `offset`.
    ///
    /// # Errors
    /// As [`Socket::send`]; `EINVAL`: nothing is mapped there.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut inner = self.look();
        inner.send(|connection| connection.write_at(bytes, offset))
    }

    /// Receives what is there, or looks at it. 0: the peer sends nothing any more.
    ///
    /// # Errors
    /// `EAGAIN`, `ENOTCONN`, `ECONNRESET`.
    pub fn receive(&self, to: &mut [u8], peeks: bool) -> io::Result<usize> {
        let mut inner = self.look();
        let result = inner.receive(to, peeks);
        if inner.watched {
            self.update(&mut inner);
        }
        result
    }

    /// Whether it is one of datagrams.
    pub fn is_of_datagrams(&self) -> bool {
        self.kind == libc::SOCK_DGRAM
    }

    /// Sends the parts as one datagram, to the address or to that which it is connected to.
    ///
    /// # Errors
    /// `EAGAIN`; `EPIPE`: it was shut. Those of [`Datagrams::send`].
    pub fn send_datagram(&self, parts: &[&[u8]], to: Option<SocketAddrV4>) -> io::Result<usize> {
        let mut inner = self.look();
        if inner.shut_write {
            return Err(error(libc::EPIPE));
        }
        let sizes = inner.options.sizes;
        let Some(datagrams) = &mut inner.datagrams else { return Err(error(libc::ENOTCONN)) };
        let result = datagrams.send(parts, to, sizes);
        let has_room = datagrams.has_room();
        if inner.watched && !has_room {
            self.update(&mut inner);
        }
        result
    }

    /// Receives the oldest datagram into the parts, or looks at it. `None`: it was shut.
    ///
    /// # Errors
    /// `EAGAIN`; `ECONNREFUSED`: nobody was there for an earlier one of its own.
    pub fn receive_datagram(
        &self,
        parts: &mut [&mut [u8]],
        peeks: bool,
    ) -> io::Result<Option<Received>> {
        let mut inner = self.look();
        let is_shut = inner.shut_read;
        let Some(datagrams) = &mut inner.datagrams else { return Err(error(libc::ENOTCONN)) };
        let result = match datagrams.receive(parts, peeks) {
            Err(_) if is_shut => Ok(None),
            result => result.map(Some),
        };
        if inner.watched {
            self.update(&mut inner);
        }
        result
    }

    /// Something has come by UDP. Returns whether more may be there.
    pub fn attend(&self) -> bool {
        let mut inner = self.look();
        let sizes = inner.options.sizes;
        let Some(datagrams) = &mut inner.datagrams else { return false };
        let more = datagrams.look_at_udp(sizes);
        self.update(&mut inner);
        more
    }

    /// Ends one direction or both.
    ///
    /// # Errors
    /// `ENOTCONN`, `EINVAL`.
    pub fn shutdown(&self, how: c_int) -> io::Result<()> {
        let mut inner = self.look();
        let (reads, writes) = match how {
            libc::SHUT_RD => (true, false),
            libc::SHUT_WR => (false, true),
            libc::SHUT_RDWR => (true, true),
            _ => return Err(error(libc::EINVAL)),
        };
        if inner.phase == Phase::Listening {
            if let Some(accepting) = self.inbox.accepting.get() {
                accepting.close();
            }
            (inner.phase, inner.end) = (Phase::Over, None);
            self.update(&mut inner);
            return Ok(());
        }
        let peer = inner.datagrams.as_ref().and_then(|datagrams| datagrams.peer());
        if inner.phase != Phase::Connected && peer.is_none() {
            return Err(error(libc::ENOTCONN));
        }
        inner.shut_write |= writes;
        if let Some(connection) = &mut inner.connection {
            if reads {
                connection.discard();
            }
            if writes {
                connection.end();
            }
        }
        inner.shut_read |= reads;
        self.behind(&inner);
        // Sleepers in other threads are to see it.
        self.channel.push(0);
        self.update(&mut inner);
        Ok(())
    }

    /// Lets the peer write to memory of the program.
    ///
    /// # Errors
    /// `ENOTCONN`, `ENOMEM`.
    ///
    /// # Safety
    /// The memory stays mapped until [`Socket::unmap`], or until the socket is closed.
    pub unsafe fn map(&self, start: *mut u8, length: usize, offset: u64) -> io::Result<()> {
        let mut inner = self.look();
        let connection = inner.connection.as_mut().ok_or_else(|| error(libc::ENOTCONN))?;
        // SAFETY: the caller's promise.
        unsafe { connection.map(start, length, offset) }
    }

    /// Takes a mapping back.
    ///
    /// # Errors
    /// `EINVAL`: there is none.
    pub fn unmap(&self, start: *mut u8, length: usize) -> io::Result<()> {
        let mut inner = self.look();
        let connection = inner.connection.as_mut().ok_or_else(|| error(libc::EINVAL))?;
        connection.unmap(start, length)
    }

    /// Bytes that wait to be read.
    pub fn unread_bytes(&self) -> usize {
        let inner = self.look();
        match &inner.datagrams {
            Some(datagrams) => datagrams.next_bytes().unwrap_or(0),
            None => inner.stream().map_or(0, Stream::unread_bytes),
        }
    }

    /// What went wrong since the program asked last: `SO_ERROR`.
    pub fn take_error(&self) -> c_int {
        let mut inner = self.look();
        if inner.datagrams.as_mut().is_some_and(|datagrams| datagrams.take_refused()) {
            return libc::ECONNREFUSED;
        }
        inner.error.take().unwrap_or(0)
    }

    /// Whether others can connect to it.
    pub fn is_listening(&self) -> bool {
        self.inner().phase == Phase::Listening
    }

    /// Whether a connection stands, so that to wait a moment may be enough.
    pub fn is_busy(&self) -> bool {
        matches!(self.inner().phase, Phase::Connected | Phase::Datagrams)
    }

    /// The options, to be read or set.
    pub fn with_options<R>(&self, with: impl FnOnce(&mut Options) -> R) -> R {
        let mut inner = self.inner();
        let result = with(&mut inner.options);
        if let Some(accepting) = self.inbox.accepting.get() {
            accepting.set_options(&inner.options);
        }
        result
    }

    // Waiting.

    /// What poll(2) says of it.
    pub fn ready(&self) -> c_short {
        let inner = self.look();
        self.readiness(&inner)
    }

    fn readiness(&self, inner: &Inner) -> c_short {
        match inner.phase {
            Phase::Idle => POLLOUT | POLLHUP,
            Phase::Connecting => 0,
            Phase::Over => {
                POLLIN | POLLOUT | POLLHUP | if inner.error.is_some() { POLLERR } else { 0 }
            }
            Phase::Listening => {
                let accepting = self.inbox.accepting.get();
                let has_ready = accepting.is_some_and(|accepting| accepting.has_ready());
                if has_ready || inner.beside_is_ready() { POLLIN } else { 0 }
            }
            Phase::Connected => inner.stream_readiness(),
            Phase::Datagrams => inner.datagram_readiness(),
        }
    }

    /// Prepares a sleep at the number, its channel, and an ordinary descriptor. `None`: something
    /// has happened, or it has no number.
    pub fn prepare(&self) -> Option<(RawFd, Option<RawFd>)> {
        let mut inner = self.inner();
        let near = *inner.numbers.first()?;
        if inner.arm() {
            // What completed before that raises no event.
            inner.pump(&self.inbox);
        }
        inner.sleepers += 1;
        self.update(&mut inner);
        inner.sleeps();
        let beside = inner.beside.as_ref().filter(|_| inner.phase == Phase::Listening);
        Some((near, beside.map(|beside| beside.as_raw_fd())))
    }

    /// The sleep is over. `woken`: an event waits in the channel.
    pub fn woken(&self, woken: bool) {
        let mut inner = self.inner();
        inner.sleepers -= 1;
        if woken {
            self.channel.remove(|_| true);
        }
        inner.pump(&self.inbox);
        // Others sleep on: the event that this one took was theirs, too.
        if inner.sleepers > 0 && inner.arm() {
            inner.pump(&self.inbox);
        }
        self.update(&mut inner);
    }

    /// Brings the number up to date, if somebody sleeps there.
    fn update(&self, inner: &mut Inner) {
        if inner.sleepers == 0 && !inner.watched {
            return;
        }
        let ready = self.readiness(inner);
        let Some(&near) = inner.numbers.first() else { return };
        let shown = Shown {
            readable: ready & (POLLIN | POLLRDHUP) != 0,
            writable: ready & POLLOUT != 0,
            ended: ready & POLLRDHUP != 0 && inner.phase == Phase::Connected,
            hung: ready & POLLHUP != 0 && inner.phase != Phase::Idle,
        };
        if let Some(mirror) = &mut inner.mirror {
            mirror.show(near, shown);
        }
    }

    /// From now on the number is kept up to date: epoll(7) looks at it.
    ///
    /// # Errors
    /// The service has no descriptors left.
    pub fn watch(self: &Arc<Socket>) -> io::Result<()> {
        {
            let mut inner = self.inner();
            if std::mem::replace(&mut inner.watched, true) {
                return Ok(());
            }
            let beside = inner.beside.as_ref().filter(|_| inner.phase == Phase::Listening);
            self.runtime.service()?.watch(self, beside)?;
        }
        self.serve();
        Ok(())
    }

    /// Something happened at a socket that is watched.
    pub fn serve(&self) {
        let mut inner = self.inner();
        self.channel.remove(|_| true);
        inner.pump(&self.inbox);
        while inner.arm() && inner.pump(&self.inbox) {}
        self.update(&mut inner);
        inner.sleeps();
    }

    /// If bytes wait for credit, somebody is to see to them while the program is elsewhere.
    fn behind(&self, inner: &Inner) {
        if inner.stream().is_some_and(|stream| !stream.is_posted())
            && let Some(own) = inner.numbers.first().and_then(|&it| self.runtime.find(it))
            && let Ok(service) = self.runtime.service()
        {
            service.tend(own);
        }
    }

    /// Sends what waits. Whether nothing does.
    pub fn tend(&self) -> bool {
        let inner = self.look();
        inner.stream().is_none_or(Stream::is_posted)
    }

    // The end.

    /// Its last number is closed. Returns whether it must still be driven, by [`Socket::drain`].
    pub fn close(&self) -> bool {
        let mut inner = self.look();
        inner.mirror = None;
        inner.beside = None;
        if let Some(accepting) = self.inbox.accepting.get() {
            accepting.close();
        }
        let is_abort = inner.options.linger.is_some_and(|time| time.is_zero());
        if matches!(inner.phase, Phase::Connected | Phase::Datagrams) && !is_abort {
            if let Some(connection) = &mut inner.connection {
                connection.discard();
                connection.end();
            }
            if !inner.is_drained() {
                return true;
            }
        }
        inner.finish();
        false
    }

    /// Drives a closed socket. Returns whether all has arrived, or never will.
    pub fn drain(&self) -> bool {
        let mut inner = self.look();
        let done = inner.is_drained();
        if done {
            inner.finish();
        }
        done
    }

    /// Ends the stream in order, at the end of the program.
    pub fn end(&self) {
        let mut inner = self.look();
        if inner.phase == Phase::Connected
            && let Some(connection) = &mut inner.connection
        {
            connection.end();
        }
    }

    /// Whether all that was written, and the end, has arrived or never will.
    pub fn is_drained(&self) -> bool {
        self.look().is_drained()
    }

    /// Breaks the connection.
    pub fn abort(&self) {
        self.inner().finish();
    }
}
