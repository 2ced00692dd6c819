//! One transport made of two: shared memory for peers on this host, a network for the others.
//!
//! # The route of a link
//! - If the peer is in the shared memory when the link is opened, the link uses the shared memory.
//! - Otherwise the network looks for the peer. When it has found the peer, the shared memory is
//!   tried once more. An `auto` function joins the shared memory before the network. So a peer that
//!   is still absent is remote, not `auto`, or not accessible. Nothing is sent before this: no peer
//!   ever gets packets by both routes.
//! - A node that the network knows to be remote is not looked for here. A peer here that claims its
//!   address is refused. So a remote host with the same node number is not confused with this one.
//! - A peer in the network that claims the address of a live peer on this host is refused. The
//!   refusal waits until the local peer cannot have just ended.

use crate::Tally;
use crate::links::{Links, Search, Way};
use bellwire_device::{
    AtomicOperation, Direct, Error, FunctionAddress, Gate, LinkId, Memory, PacketHeader, Receipt,
    RemoteKey, Result, Rights, SendError, Sink, Status, Transport, TransportLimits, Verdict, View,
    Window, sleep_until_readable,
};
use bellwire_shm::ShmTransport;
use rustix::event::epoll;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// First and longest pause between two looks for a peer in the shared memory, in ms.
const PAUSE_MS: [u32; 2] = [2, 100];

/// How seldom the network is polled while links over memory exist. A poll of the network is a
/// system call and costs as much as many polls of memory.
const BUSY: Pace = Pace { polls: 32, time: Duration::from_micros(200) };

/// The same while no link uses the network or is being set up there. Then only a new peer can send,
/// and only its first packet is delayed.
const QUIET: Pace = Pace { polls: 256, time: Duration::from_millis(1) };

/// Polls that are further apart than this are rare: each of them polls the network.
const SELDOM: Duration = Duration::from_micros(200);

/// Longest time for which an ended peer can look alive.
const AFTERLIFE: Duration = Duration::from_secs(1);

/// Tells whether a node is known to be on another host.
pub(crate) type Elsewhere = Box<dyn Fn(u32) -> bool + Send>;

/// One function on both transports.
pub(crate) struct AutoTransport<N> {
    /// Dropped first: a function in the network must be in memory too.
    far: N,
    near: ShmTransport,
    links: Links,
    elsewhere: Elsewhere,
    /// Readable when one of the transports is.
    epoll: OwnedFd,
    turns: Turns,
    /// Links of the network to close.
    unwanted: Vec<LinkId>,
    /// Links of the network whose peers have come up in memory.
    superseded: Vec<u32>,
    conflict: Conflict,
    /// The network's counters. `shown`: all counters.
    rows: Vec<(&'static str, u64)>,
    shown: Vec<(&'static str, u64)>,
    tally: Arc<Tally>,
    tallied: (usize, usize),
}

/// A peer in the network that claims the address of a peer on this host.
#[derive(Default)]
struct Conflict {
    since: Option<Instant>,
    refused: u64,
}

impl<N: Transport> AutoTransport<N> {
    /// Joins two functions with the same address.
    pub(crate) fn new(
        near: ShmTransport,
        far: N,
        elsewhere: Elsewhere,
        tally: Arc<Tally>,
    ) -> Result<Self> {
        let system = |what| move |e: rustix::io::Errno| Error::System { what, cause: e.into() };
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(system("create an epoll descriptor"))?;
        for fd in [near.wait_fd(), far.wait_fd()] {
            epoll::add(&epoll, fd, epoll::EventData::new_u64(0), epoll::EventFlags::IN)
                .map_err(system("watch two devices at once"))?;
        }
        Ok(AutoTransport {
            far,
            near,
            links: Links::default(),
            elsewhere,
            epoll,
            turns: Turns::new(),
            unwanted: Vec::new(),
            superseded: Vec::new(),
            conflict: Conflict::default(),
            rows: Vec::new(),
            shown: Vec::new(),
            tally,
            tallied: (0, 0),
        })
    }

    /// Name and value of the counters beside those of the two devices.
    fn own_rows(&self) -> [(&'static str, u64); 3] {
        let (near, far) = self.links.counts();
        [
            ("peers_by_shared_memory", near as u64),
            ("peers_by_network", far as u64),
            ("impostors_refused", self.conflict.refused),
        ]
    }

    fn poll_near(&mut self, sink: &mut impl Sink, budget: usize) -> usize {
        self.with_near(sink, |near, sink| near.poll(sink, budget))
    }

    /// Has shared memory report to `sink`, with our links in place of its own.
    fn with_near<S: Sink, Done>(
        &mut self,
        sink: &mut S,
        work: impl FnOnce(&mut ShmTransport, &mut NearSink<'_, S>) -> Done,
    ) -> Done {
        let counts = self.own_rows();
        let Self { near, links, elsewhere, unwanted, superseded, rows, shown, .. } = self;
        let mut sink =
            NearSink { links, elsewhere, unwanted, superseded, rows, shown, counts, sink };
        work(near, &mut sink)
    }

    fn poll_far(&mut self, sink: &mut impl Sink, budget: usize) -> usize {
        let Self { far, links, near, conflict, rows, .. } = self;
        far.poll(&mut FarSink { links, near, conflict, rows, sink }, budget)
    }

    /// Closes network links that packets from memory have made obsolete.
    #[cold]
    fn clear_away(&mut self, sink: &mut impl Sink, budget: usize) {
        for link in std::mem::take(&mut self.unwanted) {
            self.far.close(link);
        }
        for number in std::mem::take(&mut self.superseded) {
            let Some(Way::Far(link)) = self.links.way(number) else { continue };
            // Packets of the old peer come before those of its successor.
            self.poll_far(sink, budget);
            let Some(peer) = self.links.at(number).filter(|l| !l.is_down).map(|l| l.peer) else {
                continue;
            };
            self.far.close(link);
            self.links.change(number, Way::Gone(Status::PeerGone));
            self.links.lose(number);
            sink.link_down(LinkId(number), peer, Status::PeerGone);
        }
    }

    /// Checks the links that are not known to be up.
    #[cold]
    fn settle(&mut self) {
        let now = Instant::now();
        for number in self.links.unsettled.clone() {
            let Some(link) = self.links.at(number) else { continue };
            let peer = link.peer;
            let settled = match link.way {
                Way::Near(near) => self.near.is_up(near),
                Way::Far(far) => self.far.is_up(far),
                Way::Sought { far, search } => {
                    let found = self.far.is_up(far);
                    if (found || now >= search.look) && self.near.is_here(peer) {
                        self.far.close(far);
                        let patience = search.give_up.saturating_duration_since(now);
                        let way = match self.near.link(peer, patience.max(AFTERLIFE)) {
                            Ok(near) => Way::Near(near),
                            Err(_) => Way::Gone(Status::Unreachable),
                        };
                        self.links.change(number, way);
                        false
                    } else if found {
                        self.links.change(number, Way::Far(far));
                        true
                    } else if now >= search.look {
                        let look = now + Duration::from_millis(search.pause_ms.into());
                        let pause_ms = (2 * search.pause_ms).min(PAUSE_MS[1]);
                        let search = Search { look, pause_ms, ..search };
                        self.links.change(number, Way::Sought { far, search });
                        false
                    } else {
                        false
                    }
                }
                Way::Gone(_) => true,
            };
            if settled {
                self.links.unsettled.retain(|&other| other != number);
                if let Some(Way::Near(_) | Way::Far(_)) = self.links.way(number) {
                    let near = matches!(self.links.way(number), Some(Way::Near(_)));
                    let way = if near { "shared memory" } else { "the network" };
                    tracing::info!(%peer, way, "a peer is reached");
                }
            }
        }
    }

    /// Keeps the device's tally up to date.
    #[cold]
    fn count(&mut self) {
        let (now, before) = (self.links.counts(), self.tallied);
        // Relaxed: only for display. Sums of differences may wrap.
        self.tally.near.fetch_add(now.0.wrapping_sub(before.0), Ordering::Relaxed);
        self.tally.far.fetch_add(now.1.wrapping_sub(before.1), Ordering::Relaxed);
        self.tallied = now;
    }

    /// Opens a link over the network. `here`: the peer may still appear in the shared memory.
    fn seek(&mut self, peer: FunctionAddress, patience: Duration, here: bool) -> Result<LinkId> {
        let far = self.far.link(peer, patience)?;
        if let Some(number) = self.links.far(far) {
            return Ok(LinkId(number));
        }
        let now = Instant::now();
        let look = now + Duration::from_millis(PAUSE_MS[0].into());
        let give_up = now.checked_add(patience).unwrap_or(now + Duration::from_secs(1 << 30));
        let search = Search { give_up, look, pause_ms: PAUSE_MS[0] };
        let way = if here { Way::Sought { far, search } } else { Way::Far(far) };
        Ok(LinkId(self.links.add(peer, way)))
    }
}

/// Calls a method of the transport that a link uses, with the link's number there. `other` answers
/// for a link without a transport.
macro_rules! by_way {
    ($auto:ident, $link:ident, $method:ident($($argument:ident),*), $other:expr) => {
        match $auto.links.way($link.0) {
            Some(Way::Near(near)) => $auto.near.$method(near, $($argument),*),
            Some(Way::Far(far)) => $auto.far.$method(far, $($argument),*),
            other => $other(other),
        }
    };
}

impl<N: Transport> Transport for AutoTransport<N> {
    #[inline(always)]
    fn delivers_later(&self) -> bool {
        self.far.delivers_later()
    }

    fn address(&self) -> FunctionAddress {
        self.far.address()
    }

    fn limits(&self) -> TransportLimits {
        let (near, far) = (self.near.limits(), self.far.limits());
        TransportLimits {
            packet_bytes: near.packet_bytes.min(far.packet_bytes),
            queue_pairs: near.queue_pairs.min(far.queue_pairs),
            regions: near.regions.min(far.regions),
            links: near.links.min(far.links),
        }
    }

    fn link(&mut self, peer: FunctionAddress, patience: Duration) -> Result<LinkId, Error> {
        if let Some(number) = self.links.to(peer) {
            return Ok(LinkId(number));
        }
        let limit = self.limits().links;
        if self.links.count() >= limit {
            return Err(Error::Exhausted {
                what: "links",
                limit: limit as u64,
                hint: "Disconnect from peers that are not needed, or open another function",
            });
        }
        if (self.elsewhere)(peer.node) {
            return self.seek(peer, patience, false);
        }
        if !self.near.is_here(peer) {
            return self.seek(peer, patience, true);
        }
        let near = self.near.link(peer, patience)?;
        let known = self.links.near(near);
        Ok(LinkId(known.unwrap_or_else(|| self.links.add(peer, Way::Near(near)))))
    }

    fn close(&mut self, link: LinkId) {
        match self.links.remove(link.0).map(|link| link.way) {
            Some(Way::Near(near)) => self.near.close(near),
            Some(Way::Far(far) | Way::Sought { far, .. }) => self.far.close(far),
            Some(Way::Gone(_)) | None => {}
        }
    }

    fn is_up(&self, link: LinkId) -> bool {
        by_way!(self, link, is_up(), |_| false)
    }

    #[inline]
    fn watch_gate(&mut self, link: LinkId, queue_pair: u32) -> Option<Gate> {
        by_way!(self, link, watch_gate(queue_pair), |_| None)
    }

    fn set_gate(&mut self, queue_pair: u32, gate: Gate) {
        self.near.set_gate(queue_pair, gate);
        self.far.set_gate(queue_pair, gate);
    }

    #[inline]
    fn send(
        &mut self,
        link: LinkId,
        header: PacketHeader,
        head: &[u8],
        body: View<'_>,
    ) -> Result<Receipt, SendError> {
        by_way!(self, link, send(header, head, body), unsent)
    }

    #[inline]
    fn send_later(
        &mut self,
        link: LinkId,
        header: PacketHeader,
        head: &[u8],
        body: View<'_>,
    ) -> Result<Receipt, SendError> {
        by_way!(self, link, send_later(header, head, body), unsent)
    }

    #[inline]
    fn send_message(
        &mut self,
        link: LinkId,
        header: PacketHeader,
        head: &[u8],
        body: View<'_>,
    ) -> Option<Receipt> {
        by_way!(self, link, send_message(header, head, body), |_| None)
    }

    #[inline]
    fn carries_batches(&self, link: LinkId) -> bool {
        by_way!(self, link, carries_batches(), |_| false)
    }

    #[inline]
    fn hold(&mut self) {
        self.near.hold();
        self.far.hold();
    }

    #[inline]
    fn let_go(&mut self, at_once: bool) {
        self.near.let_go(at_once);
        self.far.let_go(at_once);
    }

    fn flush(&mut self) {
        self.far.flush();
    }

    #[inline]
    fn has_sent_all(&self, link: LinkId) -> bool {
        by_way!(self, link, has_sent_all(), |_| true)
    }

    /// What goes by the network is done only when a poll finds its acknowledgement.
    fn look_around(&mut self, sink: &mut impl Sink) -> bool {
        self.with_near(sink, |near, sink| near.look_around(sink))
    }

    #[inline]
    fn poll(&mut self, sink: &mut impl Sink, budget: usize) -> usize {
        let mut done = self.poll_near(sink, budget);
        if !self.unwanted.is_empty() || !self.superseded.is_empty() {
            self.clear_away(sink, budget);
        }
        let (near, _) = self.links.counts();
        if self.turns.is_due(near > 0) {
            let found = self.poll_far(sink, budget);
            done += found;
            let (near, far) = self.links.counts();
            if near > 0 {
                let quiet = far == 0 && self.links.unsettled.is_empty();
                self.turns.looked(found > 0, if quiet { QUIET } else { BUSY });
            }
        }
        if !self.links.unsettled.is_empty() {
            self.settle();
        }
        if self.links.counts() != self.tallied {
            self.count();
        }
        done
    }

    // Memory that peers on this host map serves the network equally: there the owner's engine
    // accesses it.

    fn allocate(&mut self, length: usize, rights: Rights) -> Result<Memory, Error> {
        self.near.allocate(length, rights)
    }

    fn share(&mut self, key: RemoteKey, memory: &Memory, rights: Rights) {
        self.near.share(key, memory, rights);
    }

    fn unshare(&mut self, key: RemoteKey) {
        self.near.unshare(key);
    }

    fn export(&mut self, key: RemoteKey, memory: &Memory, rights: Rights) -> Result<(), Error> {
        self.near.export(key, memory, rights)?;
        self.far.export(key, memory, rights)
    }

    fn retract(&mut self, key: RemoteKey) {
        self.near.retract(key);
        self.far.retract(key);
    }

    #[inline]
    fn window(&self, link: LinkId, key: RemoteKey) -> Option<Window> {
        by_way!(self, link, window(key), |_| None)
    }

    fn put(&mut self, link: LinkId, key: RemoteKey, offset: u64, from: View<'_>) -> Direct {
        by_way!(self, link, put(key, offset, from), undecided)
    }

    #[inline]
    fn get(&mut self, link: LinkId, key: RemoteKey, offset: u64, into: View<'_>) -> Direct {
        by_way!(self, link, get(key, offset, into), undecided)
    }

    fn atomic(
        &mut self,
        link: LinkId,
        key: RemoteKey,
        offset: u64,
        operation: AtomicOperation,
    ) -> Direct {
        by_way!(self, link, atomic(key, offset, operation), undecided)
    }

    fn wrong_keys(&self) -> u64 {
        self.near.wrong_keys() + self.far.wrong_keys()
    }

    fn counters(&self, rows: &mut Vec<(&'static str, u64)>) {
        rows.extend(self.own_rows());
        self.far.counters(rows);
        let near = self.near.counter_rows();
        let named = near_names(&near).iter().zip(near);
        rows.extend(named.map(|(name, (_, count))| (name.as_str(), count)));
    }

    fn wait_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    fn arm(&mut self) -> bool {
        self.turns.hurry();
        let waits = !self.unwanted.is_empty() || !self.superseded.is_empty();
        // The network first: peers in memory need no announcement of sleep that does not happen.
        !waits && self.far.arm() && self.near.arm()
    }

    fn disarm(&mut self) {
        self.far.disarm();
        self.near.disarm();
    }

    fn sleep(&mut self, timeout: Option<Duration>) -> Result<(), Error> {
        if !self.arm() {
            return Ok(());
        }
        // No event reports that a peer has appeared in memory.
        let nap = Duration::from_millis(PAUSE_MS[0].into());
        let nap = (!self.links.unsettled.is_empty()).then_some(nap);
        sleep_until_readable(self.epoll.as_fd(), timeout.into_iter().chain(nap).min())
    }
}

impl<N> Drop for AutoTransport<N> {
    fn drop(&mut self) {
        self.tally.near.fetch_sub(self.tallied.0, Ordering::Relaxed);
        self.tally.far.fetch_sub(self.tallied.1, Ordering::Relaxed);
    }
}

#[cold]
fn unsent(way: Option<Way>) -> Result<Receipt, SendError> {
    match way {
        Some(Way::Gone(why)) => Err(SendError::Down(why)),
        None => Err(SendError::Down(Status::PeerGone)),
        Some(_) => Err(SendError::Busy),
    }
}

#[cold]
fn undecided(way: Option<Way>) -> Direct {
    match unsent(way) {
        Err(SendError::Down(why)) => Direct::Refused(why),
        _ => Direct::Pending,
    }
}

/// Passes events of the memory on under our link numbers.
struct NearSink<'a, S> {
    links: &'a mut Links,
    elsewhere: &'a Elsewhere,
    unwanted: &'a mut Vec<LinkId>,
    superseded: &'a mut Vec<u32>,
    rows: &'a [(&'static str, u64)],
    shown: &'a mut Vec<(&'static str, u64)>,
    counts: [(&'static str, u64); 3],
    sink: &'a mut S,
}

impl<S: Sink> NearSink<'_, S> {
    /// A link that a peer has set up.
    #[cold]
    fn meet(&mut self, link: LinkId, peer: FunctionAddress) -> Result<u32, Verdict> {
        if (self.elsewhere)(peer.node) {
            return Err(Verdict::Violation);
        }
        match self.links.to(peer).map(|number| (number, self.links.way(number))) {
            // The peer in memory was quicker.
            Some((number, Some(Way::Sought { far, .. }))) => {
                self.unwanted.push(far);
                self.links.change(number, Way::Near(link));
                Ok(number)
            }
            // The network link was to a predecessor, which is gone.
            Some((number, Some(Way::Far(_)))) => {
                if !self.superseded.contains(&number) {
                    self.superseded.push(number);
                }
                Err(Verdict::Stalled)
            }
            _ => Ok(self.links.add(peer, Way::Near(link))),
        }
    }
}

impl<S: Sink> Sink for NearSink<'_, S> {
    #[inline(always)]
    fn packet(
        &mut self,
        link: LinkId,
        from: FunctionAddress,
        header: [u64; 3],
        payload: View<'_>,
    ) -> Verdict {
        let known = self.links.near(link).map(Ok);
        match known.unwrap_or_else(|| self.meet(link, from)) {
            Ok(number) => self.sink.packet(LinkId(number), from, header, payload),
            Err(verdict) => verdict,
        }
    }

    fn link_down(&mut self, link: LinkId, peer: FunctionAddress, why: Status) {
        let number = self.links.lost(self.links.near(link), peer, Way::Near(link));
        self.sink.link_down(LinkId(number), peer, why);
    }

    fn tick(&mut self, counters: &[(&'static str, u64)]) {
        self.shown.clear();
        self.shown.extend(self.counts);
        self.shown.extend_from_slice(self.rows);
        let near = near_names(counters).iter().zip(counters);
        self.shown.extend(near.map(|(name, &(_, count))| (name.as_str(), count)));
        self.sink.tick(self.shown);
    }
}

/// Passes events of the network on under our link numbers.
struct FarSink<'a, S> {
    links: &'a mut Links,
    near: &'a ShmTransport,
    conflict: &'a mut Conflict,
    rows: &'a mut Vec<(&'static str, u64)>,
    sink: &'a mut S,
}

impl<S: Sink> FarSink<'_, S> {
    /// A link that a peer has set up.
    #[cold]
    fn meet(&mut self, link: LinkId, peer: FunctionAddress) -> Result<u32, Verdict> {
        let way = self.links.to(peer).and_then(|number| self.links.way(number));
        if let Some(Way::Near(near)) = way
            && self.near.is_up(near)
        {
            // The peer in memory may have ended a moment ago.
            let since = *self.conflict.since.get_or_insert_with(Instant::now);
            if since.elapsed() < AFTERLIFE {
                return Err(Verdict::Stalled);
            }
            self.conflict.since = None;
            self.conflict.refused += 1;
            tracing::warn!(%peer, "somebody in the network claims the address of a peer on this host");
            return Err(Verdict::Violation);
        }
        self.conflict.since = None;
        Ok(self.links.add(peer, Way::Far(link)))
    }
}

impl<S: Sink> Sink for FarSink<'_, S> {
    #[inline]
    fn packet(
        &mut self,
        link: LinkId,
        from: FunctionAddress,
        header: [u64; 3],
        payload: View<'_>,
    ) -> Verdict {
        let known = self.links.far(link).map(Ok);
        let number = match known.unwrap_or_else(|| self.meet(link, from)) {
            Ok(number) => number,
            Err(verdict) => return verdict,
        };
        if let Some(Way::Sought { far, .. }) = self.links.way(number) {
            // The peer has chosen the network.
            self.links.change(number, Way::Far(far));
        }
        self.sink.packet(LinkId(number), from, header, payload)
    }

    fn delivered(&mut self, link: LinkId, count: u64) {
        if let Some(number) = self.links.far(link) {
            self.sink.delivered(LinkId(number), count);
        }
    }

    fn link_down(&mut self, link: LinkId, peer: FunctionAddress, why: Status) {
        let number = self.links.lost(self.links.far(link), peer, Way::Far(link));
        self.sink.link_down(LinkId(number), peer, why);
    }

    fn tick(&mut self, counters: &[(&'static str, u64)]) {
        // Shown with the memory's counters, which come equally often.
        self.rows.clear();
        self.rows.extend_from_slice(counters);
    }
}

/// The names of the shared memory's counters, distinct from those of the network.
fn near_names(rows: &[(&'static str, u64)]) -> &'static [String] {
    static NAMES: OnceLock<Vec<String>> = OnceLock::new();
    NAMES.get_or_init(|| rows.iter().map(|(name, _)| format!("shm_{name}")).collect())
}

/// The most from one poll of the network to the next: polls of the memory, and about the time that
/// they may take. Many processes on few processors poll once in a time slice.
#[derive(Clone, Copy)]
struct Pace {
    polls: u32,
    time: Duration,
}

/// Decides which polls include the network.
struct Turns {
    left: u32,
    stride: u32,
    last: Instant,
}

impl Turns {
    fn new() -> Turns {
        Turns { left: 0, stride: 0, last: Instant::now() }
    }

    /// Counts one poll. Returns whether it includes the network.
    #[inline]
    fn is_due(&mut self, has_near: bool) -> bool {
        if !has_near || self.left == 0 {
            return true;
        }
        self.left -= 1;
        false
    }

    /// Records a poll of the network. `found`: it brought something.
    fn looked(&mut self, found: bool, pace: Pace) {
        let now = Instant::now();
        self.looked_after(now - self.last, found, pace);
        self.last = now;
    }

    /// The same, so long after the one before.
    fn looked_after(&mut self, passed: Duration, found: bool, pace: Pace) {
        let is_rare = passed > SELDOM * (self.stride + 1);
        self.stride = if found || is_rare {
            0
        } else if passed > pace.time {
            self.stride / 2
        } else {
            (2 * self.stride + 1).min(pace.polls)
        };
        self.left = self.stride;
    }

    /// The next poll includes the network.
    fn hurry(&mut self) {
        self.left = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No counter of the shared memory has the name of a network's counter.
    #[test]
    fn counts_have_names_of_their_own() {
        let device = bellwire_shm::ShmDevice::share(
            &format!("auto-names-{}", std::process::id()),
            bellwire_device::AccessMode::Owner,
            1 << 20,
        );
        let function = device.expect("a job").open_function(3, 1).expect("a function");
        let rows = function.counter_rows();
        assert_eq!(near_names(&rows).len(), rows.len());
        for ((name, _), near) in rows.iter().zip(near_names(&rows)) {
            assert_ne!(near, name);
        }
    }

    /// Every poll includes the network unless links over memory exist. Then the network is polled
    /// less and less often while nothing comes.
    #[test]
    fn the_network_has_its_turns() {
        let mut turns = Turns::new();
        for _ in 0..100 {
            assert!(turns.is_due(false));
            turns.looked_after(Duration::ZERO, false, BUSY);
        }
        assert_eq!(turns.stride, BUSY.polls);
        let looks = (0..33 * 10).filter(|_| {
            let due = turns.is_due(true);
            if due {
                turns.looked_after(Duration::ZERO, false, BUSY);
            }
            due
        });
        assert!((9..=11).contains(&looks.count()));
        turns.hurry();
        assert!(turns.is_due(true));
        turns.looked_after(Duration::ZERO, true, BUSY);
        assert!(turns.is_due(true), "where there is something, there is more");
    }

    /// Polls that take long are fewer until the network has its turn. Polls that are rare all
    /// include it.
    #[test]
    fn slow_polls_leave_the_network_no_longer_alone() {
        for (pace, poll_us, least, most) in
            [(BUSY, 10, 100, 210), (QUIET, 10, 500, 1_010), (QUIET, 100, 300, 1_100)]
        {
            let mut turns = Turns::new();
            let strides: Vec<u32> = (0..20)
                .map(|_| {
                    let passed = Duration::from_micros(poll_us) * (turns.stride + 1);
                    turns.looked_after(passed, false, pace);
                    turns.stride
                })
                .collect();
            let us = strides[10..].iter().map(|&stride| poll_us * u64::from(stride + 1));
            let us: Vec<u64> = us.collect();
            let (shortest, longest) = (us.iter().min().unwrap(), us.iter().max().unwrap());
            assert!(*shortest >= least && *longest <= 2 * most, "{us:?}");
        }
        let mut turns = Turns::new();
        for _ in 0..10 {
            turns.looked_after(SELDOM + Duration::from_micros(1), false, QUIET);
            assert_eq!(turns.stride, 0);
        }
    }
}
