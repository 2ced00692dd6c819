//! Connections that were accepted and have not introduced themselves yet.
//!
//! A proper peer says Hello right after it has connected. A connection that says nothing costs one
//! descriptor for a short time:
//!
//! | limit | value |
//! |---|---|
//! | silent connections | [`PENDING`], of one user [`PENDING_OF_USER`]; more close the oldest |
//! | time until a silent connection is closed | [`INTRODUCTION_TIME`], then at the next tick |
//! | connections without a link in one [`TICK`] | [`BURST`]: pauses the listener for the tick |
//! | connections in one [`TICK`], if some of them are without a link | [`ACCEPTS`], likewise |
//!
//! Before the listener is paused, everything in its queue is accepted, as far as [`ACCEPTS`]
//! reaches. So a proper peer in the queue waits for one tick at most, whatever else is in the
//! queue. The clock of the ticks is a descriptor in the epoll set. It wakes a sleeping program, and
//! it stands still while there is no silent connection.

use crate::socket::BACKLOG;
use bellwire_device::Error;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// How long a pending peer may take to introduce itself.
pub const INTRODUCTION_TIME: Duration = Duration::from_secs(1);
/// Maximum number of pending peers at once.
pub const PENDING: usize = 64;
/// Maximum number of pending peers of one user at once.
pub const PENDING_OF_USER: usize = 16;
/// Time between two checks of pending peers.
pub const TICK: Duration = Duration::from_millis(250);
/// Connections without a link that are accepted as they come, in one tick.
pub const BURST: u32 = 128;
/// Maximum number of connections that are accepted in one tick, if some are without a link: the
/// length of the listener's queue.
pub const ACCEPTS: u32 = BACKLOG as u32;

/// A connection that has not introduced itself.
struct PendingPeer {
    socket: OwnedFd,
    user: u32,
    since: Instant,
}

/// All pending peers, and what they cost in this tick.
pub struct PendingPeers {
    slots: Vec<Option<PendingPeer>>,
    /// Readable when a tick ends.
    pub clock: OwnedFd,
    ticking: bool,
    /// When this tick began, its connections, and how many of them brought no link.
    since: Instant,
    accepted: u32,
    without_link: u32,
    /// Whether the listener is not watched until the next tick.
    paused: bool,
    /// Connections closed because they said nothing, since the function was opened.
    pub closed: u64,
    /// How often the listener was paused.
    pub pauses: u64,
}

impl PendingPeers {
    /// No pending peers, and a clock that stands still.
    pub fn new() -> Result<PendingPeers, Error> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let clock = timerfd_create(TimerfdClockId::Monotonic, flags)
            .map_err(|e| Error::System { what: "create a timer", cause: e.into() })?;
        Ok(PendingPeers {
            slots: Vec::new(),
            clock,
            ticking: false,
            since: Instant::now(),
            accepted: 0,
            without_link: 0,
            paused: false,
            closed: 0,
            pauses: 0,
        })
    }

    /// Silent connections now.
    pub fn count(&self) -> usize {
        self.slots.iter().flatten().count()
    }

    /// A connection was accepted.
    pub fn note_accepted(&mut self) {
        // The clock may stand still, or its last tick may not have been read yet.
        if !self.ticking && self.since.elapsed() >= TICK {
            self.begin_tick();
        }
        self.accepted += 1;
        self.without_link += 1;
    }

    /// The last connection brought a link.
    pub fn note_link(&mut self) {
        self.without_link = self.without_link.saturating_sub(1);
    }

    /// Whether no more may be accepted in this tick.
    pub fn is_exhausted(&self) -> bool {
        self.without_link > 0 && self.accepted >= ACCEPTS && !never_pauses()
    }

    /// Whether to pause the listener once its queue is empty.
    pub fn is_burst(&self) -> bool {
        self.without_link >= BURST && !never_pauses()
    }

    /// The listener is not watched from now on, until the tick ends.
    pub fn pause(&mut self) {
        self.paused = true;
        self.pauses += 1;
        self.start_clock();
    }

    /// Keeps a silent connection of `user` and returns its slot. If there are too many, the oldest
    /// is closed: of this user, or of the user who has the most.
    pub fn keep(&mut self, socket: OwnedFd, user: u32) -> u32 {
        let of = |slots: &[Option<PendingPeer>], user| {
            slots.iter().flatten().filter(|peer| peer.user == user).count()
        };
        if of(&self.slots, user) >= PENDING_OF_USER {
            self.close_oldest(user);
        } else if self.count() >= PENDING {
            let users = self.slots.iter().flatten().map(|peer| peer.user);
            let most = users.max_by_key(|&user| of(&self.slots, user));
            self.close_oldest(most.expect("there are some"));
        }
        let slot = self.slots.iter().position(Option::is_none).unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.start_clock();
        self.slots[slot] = Some(PendingPeer { socket, user, since: Instant::now() });
        slot as u32
    }

    /// The connection in a slot.
    pub fn socket(&self, slot: u32) -> Option<&OwnedFd> {
        Some(&self.slots.get(slot as usize)?.as_ref()?.socket)
    }

    /// Takes the connection out of a slot.
    pub fn take(&mut self, slot: u32) -> Option<OwnedFd> {
        Some(self.slots.get_mut(slot as usize)?.take()?.socket)
    }

    /// A tick ended: closes pending peers whose time is over. Returns whether to watch the listener
    /// again.
    pub fn tick(&mut self) -> bool {
        let mut word = [0; 8];
        // An error is fine: the tick was read before.
        let _ = rustix::io::read(&self.clock, &mut word);
        self.ticking = false;
        self.begin_tick();
        let kept = bellwire_ring::canary::planted("silent-kept");
        for slot in &mut self.slots {
            if !kept && slot.as_ref().is_some_and(|s| s.since.elapsed() >= INTRODUCTION_TIME) {
                *slot = None;
                self.closed += 1;
            }
        }
        if self.count() > 0 {
            self.start_clock();
        }
        std::mem::take(&mut self.paused)
    }

    fn close_oldest(&mut self, user: u32) {
        let theirs = self.slots.iter_mut().filter(|s| s.as_ref().is_some_and(|s| s.user == user));
        if let Some(oldest) = theirs.min_by_key(|slot| slot.as_ref().map(|s| s.since)) {
            *oldest = None;
            self.closed += 1;
        }
    }

    fn begin_tick(&mut self) {
        self.since = Instant::now();
        (self.accepted, self.without_link) = (0, 0);
    }

    fn start_clock(&mut self) {
        if std::mem::replace(&mut self.ticking, true) {
            return;
        }
        let once = Itimerspec {
            it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: Timespec { tv_sec: 0, tv_nsec: TICK.subsec_nanos().into() },
        };
        timerfd_settime(&self.clock, TimerfdTimerFlags::empty(), &once)
            .expect("the time is a valid one");
    }
}

/// A planted fault, for the canaries.
fn never_pauses() -> bool {
    bellwire_ring::canary::planted("listener-never-rests")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(users: &[u32]) -> (PendingPeers, Vec<OwnedFd>) {
        let mut pending = PendingPeers::new().expect("a timer");
        let others = users.iter().map(|&user| {
            let (near, far) = std::os::unix::net::UnixStream::pair().expect("a pair");
            pending.keep(near.into(), user);
            far.into()
        });
        let others = others.collect();
        (pending, others)
    }

    fn is_closed(end: &OwnedFd) -> bool {
        let flags = rustix::net::RecvFlags::DONTWAIT;
        rustix::net::recv(end, &mut [0; 1], flags).is_ok_and(|(bytes, _)| bytes == 0)
    }

    /// A user who has too many silent connections loses its own oldest, in order. Other users lose
    /// none.
    #[test]
    fn each_user_has_a_limit() {
        let users: Vec<u32> = std::iter::once(7).chain([8; 3 * PENDING_OF_USER]).collect();
        let (pending, others) = pending(&users);
        assert_eq!(pending.count(), 1 + PENDING_OF_USER);
        assert_eq!(pending.closed, 2 * PENDING_OF_USER as u64);
        for (number, other) in others.iter().enumerate() {
            let gone = (1..=2 * PENDING_OF_USER).contains(&number);
            assert_eq!(is_closed(other), gone, "connection {number}");
        }
    }

    /// When all slots are taken, the oldest connection of the user with the most goes.
    #[test]
    fn the_user_with_the_most_gives_way() {
        let mut users: Vec<u32> = (0..3).flat_map(|user| [user; PENDING_OF_USER]).collect();
        users.extend([3; PENDING - 3 * PENDING_OF_USER - 1]);
        users.extend([4, 5]);
        let (pending, others) = pending(&users);
        assert_eq!(pending.count(), PENDING);
        let gone: Vec<u32> = others
            .iter()
            .zip(&users)
            .filter(|(o, _)| is_closed(o))
            .map(|(_, &user)| user)
            .collect();
        assert_eq!(gone.len(), 1);
        assert!(gone[0] < 3, "{gone:?}");
    }

    /// The listener rests when a tick had too many connections without a link.
    #[test]
    fn a_burst_pauses_the_listener() {
        let (mut pending, _) = pending(&[]);
        for _ in 0..BURST - 1 {
            pending.note_accepted();
        }
        assert!(!pending.is_burst() && !pending.is_exhausted());
        pending.note_accepted();
        assert!(pending.is_burst());
        pending.note_link();
        assert!(!pending.is_burst());
        for _ in BURST..ACCEPTS {
            pending.note_accepted();
            pending.note_link();
        }
        assert!(pending.is_exhausted() && !pending.is_burst());
        (0..ACCEPTS).for_each(|_| pending.note_link());
        assert!(!pending.is_exhausted(), "each of them brought a link");
        // A tick forgets all of them. Only a listener that was paused is watched again.
        assert!(!pending.tick());
        (0..ACCEPTS).for_each(|_| pending.note_accepted());
        assert!(pending.is_exhausted());
        pending.pause();
        assert_eq!((pending.pauses, pending.ticking), (1, true));
        assert!(pending.tick() && !pending.tick());
        assert!(!pending.is_exhausted() && !pending.ticking);
        // Without a clock, time alone ends a tick.
        (0..BURST).for_each(|_| pending.note_accepted());
        pending.since -= TICK;
        pending.note_accepted();
        assert_eq!((pending.accepted, pending.without_link), (1, 1));
        pending.pause();
        pending.since -= TICK;
        pending.note_accepted();
        assert_eq!(pending.accepted, 2, "the clock ends the tick");
    }

    /// A silent connection is closed after a second, at a tick, and a slot is used again.
    #[test]
    fn silence_ends_a_connection() {
        let (mut pending, others) = pending(&[7, 8]);
        assert!(pending.ticking);
        assert!(pending.socket(0).is_some() && pending.socket(2).is_none());
        assert!(!pending.tick() && pending.ticking, "two are left to watch");
        let old = pending.slots[0].as_mut().expect("it is kept");
        old.since -= INTRODUCTION_TIME;
        pending.tick();
        assert_eq!((pending.count(), pending.closed), (1, 1));
        assert_eq!(others.iter().map(is_closed).collect::<Vec<_>>(), [true, false]);
        assert!(pending.socket(0).is_none() && pending.take(0).is_none());
        let (near, _far) = std::os::unix::net::UnixStream::pair().expect("a pair");
        assert_eq!(pending.keep(near.into(), 9), 0);
        assert!(pending.take(1).is_some() && pending.take(1).is_none());
        assert_eq!(pending.count(), 1);
        pending.take(0).expect("it is kept");
        pending.tick();
        assert!(!pending.ticking, "nothing is left to watch");
        assert_eq!(pending.closed, 1);
    }

    /// The clock makes its descriptor readable once a tick has passed.
    #[test]
    fn the_clock_ticks() {
        let since = Instant::now();
        let (mut pending, _others) = pending(&[7]);
        let epoll = crate::epoll::Epoll::new().expect("a descriptor");
        epoll.watch(&pending.clock, crate::epoll::Source::Tick).expect("room");
        let events = epoll.wait(Some(Duration::from_secs(8))).expect("a wait");
        assert_eq!(events, [crate::epoll::Source::Tick]);
        assert!(since.elapsed() >= TICK);
        pending.tick();
        assert!(!crate::epoll::is_readable(&pending.clock), "the tick was read");
    }
}
