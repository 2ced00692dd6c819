//! The thread that sees to sockets while no call of the program does: those that epoll(7) watches,
//! those with bytes that wait for credit, what comes by UDP to sockets of datagrams, and closed
//! ones whose bytes have not arrived.

use crate::socket::Socket;
use bellwire_ring::signals;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use std::collections::HashMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Between two looks at sockets that nothing announces.
const TICK: Duration = Duration::from_millis(2);
/// How long a closed socket may take until all has arrived.
const LINGER: Duration = Duration::from_secs(60);
/// How long the end of a program waits for that.
const LAST_LINGER: Duration = Duration::from_secs(2);

/// The service of a process.
pub struct Service {
    poller: OwnedFd,
    waker: OwnedFd,
    lists: Mutex<Lists>,
}

#[derive(Default)]
struct Lists {
    watched: HashMap<u64, Weak<Socket>>,
    last: u64,
    behind: Vec<Weak<Socket>>,
    closed: Vec<(Arc<Socket>, Instant)>,
}

/// The waker's number.
const WAKER: u64 = 0;
/// A number of a socket with this bit means its socket of UDP.
const UDP: u64 = 1 << 63;

impl Service {
    /// Starts the thread.
    pub fn new() -> io::Result<Arc<Service>> {
        let poller = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let waker = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&poller, &waker, EventData::new_u64(WAKER), EventFlags::IN)?;
        let service = Arc::new(Service { poller, waker, lists: Mutex::default() });
        let own = service.clone();
        let thread = std::thread::Builder::new().name("bellwire-sockets".to_owned());
        signals::spawn(thread, move || own.run())?;
        Ok(service)
    }

    fn lists(&self) -> MutexGuard<'_, Lists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a socket's number up to date, and looks at the ordinary listener beside it.
    pub fn watch(&self, socket: &Arc<Socket>, beside: Option<&OwnedFd>) -> io::Result<()> {
        let mut lists = self.lists();
        lists.last += 1;
        let data = lists.last;
        lists.watched.insert(data, Arc::downgrade(socket));
        // SAFETY: the channel lasts as long as the socket; the kernel forgets it when it ends.
        let channel = unsafe { BorrowedFd::borrow_raw(socket.channel.fd()) };
        epoll::add(&self.poller, channel, EventData::new_u64(data), EventFlags::IN)?;
        if let Some(beside) = beside {
            // Each connection is told once; the number stays readable until all are taken.
            let flags = EventFlags::IN | EventFlags::ET;
            epoll::add(&self.poller, beside, EventData::new_u64(data), flags)?;
        }
        Ok(())
    }

    /// Looks at what comes by UDP to a socket of datagrams.
    pub fn attend(&self, socket: &Arc<Socket>, udp: BorrowedFd<'_>) -> io::Result<()> {
        let mut lists = self.lists();
        lists.last += 1;
        let data = lists.last;
        lists.watched.insert(data, Arc::downgrade(socket));
        // By edges: a process that was forked may keep it open for longer than the socket lasts.
        epoll::add(
            &self.poller,
            udp,
            EventData::new_u64(data | UDP),
            EventFlags::IN | EventFlags::ET,
        )?;
        Ok(())
    }

    /// Sees to a socket whose bytes wait for credit.
    pub fn tend(&self, socket: Arc<Socket>) {
        let mut lists = self.lists();
        let own = Arc::downgrade(&socket);
        if !lists.behind.iter().any(|it| it.ptr_eq(&own)) {
            lists.behind.push(own);
            drop(lists);
            self.wake();
        }
    }

    /// Sees to a closed socket until all has arrived, for a minute.
    pub fn drain(&self, socket: Arc<Socket>) {
        self.lists().closed.push((socket, Instant::now() + LINGER));
        self.wake();
    }

    fn wake(&self) {
        let _ = rustix::io::write(self.waker.as_fd(), &1u64.to_ne_bytes());
    }

    fn run(&self) {
        // Sockets of UDP that may have more than one look takes. All others have their turn first.
        let mut more: Vec<u64> = Vec::new();
        loop {
            let ticks = {
                let lists = self.lists();
                !lists.behind.is_empty() || !lists.closed.is_empty() || !more.is_empty()
            };
            let tick = if more.is_empty() { TICK } else { Duration::ZERO };
            let tick = rustix::time::Timespec { tv_sec: 0, tv_nsec: tick.as_nanos() as i64 };
            let mut events = [const { MaybeUninit::uninit() }; 64];
            let mut ready: Vec<u64> =
                match epoll::wait(&self.poller, &mut events, ticks.then_some(&tick)) {
                    Ok((ready, _)) => ready.iter().map(|event| event.data.u64()).collect(),
                    // Interrupted.
                    Err(_) => Vec::new(),
                };
            if ready.contains(&WAKER) {
                let _ = rustix::io::read(&self.waker, &mut [0; 8]);
            }
            ready.append(&mut more);
            ready.sort_unstable();
            ready.dedup();
            for number in ready {
                let socket = self.lists().watched.get(&(number & !UDP)).and_then(Weak::upgrade);
                let Some(socket) = socket else { continue };
                if number & UDP == 0 {
                    socket.serve();
                } else if socket.attend() {
                    more.push(number);
                }
            }
            self.tick();
        }
    }

    fn tick(&self) {
        let behind = std::mem::take(&mut self.lists().behind);
        let still: Vec<Weak<Socket>> = behind
            .into_iter()
            .filter(|it| it.upgrade().is_some_and(|socket| !socket.tend()))
            .collect();
        let closed = std::mem::take(&mut self.lists().closed);
        let now = Instant::now();
        let mut left = Vec::new();
        for (socket, until) in closed {
            if socket.drain() {
                continue;
            }
            if now < until {
                left.push((socket, until));
            } else {
                socket.abort();
            }
        }
        let mut lists = self.lists();
        lists.behind.extend(still);
        lists.closed.extend(left);
        lists.watched.retain(|_, socket| socket.strong_count() > 0);
    }

    /// Closed sockets whose bytes have not arrived.
    fn closed(&self) -> Vec<Arc<Socket>> {
        self.lists().closed.iter().map(|(socket, _)| socket.clone()).collect()
    }
}

/// The program ends: what was written is to arrive, also of sockets that it has not closed.
pub fn leave(service: Option<&Service>, open: Vec<Arc<Socket>>) {
    open.iter().for_each(|socket| socket.end());
    let closed = service.map(Service::closed).unwrap_or_default();
    let until = Instant::now() + LAST_LINGER;
    let is_over = || open.iter().chain(&closed).all(|socket| socket.is_drained());
    while !is_over() && Instant::now() < until {
        std::thread::sleep(Duration::from_micros(100));
    }
}
