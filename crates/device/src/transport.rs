//! The interface of a device. The engine does the rest (queue pairs, matching, rendezvous,
//! atomics), the same for all devices.

use crate::{
    AtomicOperation, Error, FunctionAddress, Memory, PacketHeader, RemoteKey, Rights, Status, View,
    Window,
};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// A link to one peer function, as the device numbers it. Numbers are reused only after
/// [`Transport::close`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LinkId(pub u32);

/// Limits that a device states.
#[derive(Clone, Copy, Debug)]
pub struct TransportLimits {
    /// Longest payload of one packet, in bytes.
    pub packet_bytes: usize,
    /// Most queue pairs that peers can address (numbers below [`crate::Address::CHANNEL_BASE`]).
    pub queue_pairs: usize,
    /// Most registered regions at once.
    pub regions: usize,
    /// Most links at once.
    pub links: usize,
}

/// Whether a peer's queue pair takes sends (HPCL's STOP and GO, H-15 and H-16, as a state instead
/// of two messages).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Gate {
    /// There is no such queue pair.
    Closed = 0,
    /// Send.
    Open = 1,
    /// It exists, but its backlog is full: hold sends back.
    Stopped = 2,
}

/// What is known of a packet that a device has taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Receipt {
    /// It is in the peer's memory.
    Delivered,
    /// It can still be lost ([`Transport::delivers_later`]). The number counts this link's packets,
    /// answers ([`PacketHeader::is_answer`]) left out.
    Pending(u64),
}

/// The reason why a packet cannot be sent now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendError {
    /// The link is being set up or is full; try again after the next poll.
    Busy,
    /// The link is down for good.
    Down(Status),
}

/// The result of a direct operation on a peer's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direct {
    /// It is done. For an atomic: with the previous value.
    Done(u64),
    /// The device still waits for access from the peer; try again after the next poll.
    Pending,
    /// This memory cannot be reached directly: send the operation as packets.
    ByPacket,
    /// It is refused, without effect.
    Refused(Status),
}

/// The engine's decision on a packet that the device offers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It is consumed.
    Taken,
    /// No room now: keep it and all packets behind it on the link, and offer it again at a later
    /// poll.
    Stalled,
    /// The peer broke the protocol: close the link.
    Violation,
}

/// Receives a device's packets and events while it polls. Implemented by the engine.
#[allow(unused_variables)] // The names of the parameters are documentation.
pub trait Sink {
    /// A packet came, with the words of its header ([`PacketHeader::from_words`]). The words were
    /// copied once and will not change. `payload` has exactly the header's length. A hostile peer
    /// may change its bytes while they are read.
    fn packet(
        &mut self,
        link: LinkId,
        from: FunctionAddress,
        header: [u64; 3],
        payload: View<'_>,
    ) -> Verdict;

    /// The peer has the packets of this link up to [`Receipt::Pending`] with `count`. Only devices
    /// that [deliver later](Transport::delivers_later) call this.
    #[inline]
    fn delivered(&mut self, link: LinkId, count: u64) {}

    /// A link is gone: the peer died or broke the protocol, or none answered before the deadline.
    fn link_down(&mut self, link: LinkId, peer: FunctionAddress, why: Status);

    /// Called about every millisecond while the function is polled, and before it sleeps, with the
    /// device's counters. For work that is too rare to check at every packet.
    fn tick(&mut self, counters: &[(&'static str, u64)]) {}
}

/// One function of one device: reliable, ordered packets to peer functions.
///
/// Single-threaded by design: a function belongs to one thread at a time, so its data path needs no
/// lock.
///
/// Every device has the methods without defaults. The others are abilities, and the engine does
/// without those that a device lacks:
///
/// | ability | methods |
/// |---|---|
/// | links that are set up and closed | `is_up`, `close` |
/// | gates: senders hold back, or learn that nobody receives | `watch_gate`, `set_gate` |
/// | waiting: a sleep ends when there is something to do | `wait_fd`, `arm`, `sleep` |
/// | delivery reports | `delivers_later`, with [`Receipt::Pending`] and [`Sink::delivered`] |
/// | faster messages | `send_message` |
/// | answers that share a frame with what follows | `send_later` |
/// | batches | `carries_batches` |
/// | packets that leave together | `hold`, `let_go` |
/// | memory for peers | `allocate`, `share`, `unshare`, `export`, `retract`, `wrong_keys` |
/// | direct access | `put`, `get`, `atomic` |
/// | counters of its own | `counters` |
/// | simulated time | `now`, `seed`, `standstill` |
///
/// # A complete device
/// ```
#[doc = include_str!("../examples/loopback.rs")]
/// ```
#[allow(unused_variables)] // The names of the parameters are documentation.
pub trait Transport: Send {
    /// This function's address.
    fn address(&self) -> FunctionAddress;

    /// The device's limits.
    fn limits(&self) -> TransportLimits;

    // Links.

    /// The link to `peer`. Sets one up if there is none, and returns at once. Packets are refused
    /// with [`SendError::Busy`] until the peer has answered. If it does not within `patience`,
    /// [`Sink::link_down`] reports [`Status::Unreachable`]. Packets of an earlier link from the
    /// same function are handed out before those of a later one.
    fn link(&mut self, peer: FunctionAddress, patience: Duration) -> Result<LinkId, Error>;

    /// Whether the peer has answered and the link is not down. By default links need no set-up.
    fn is_up(&self, link: LinkId) -> bool {
        true
    }

    /// Forgets a link that is down or no longer needed.
    fn close(&mut self, link: LinkId) {}

    // Gates. Without them the engine of the peer drops what nobody receives, and a queue pair with
    // a full backlog blocks its link.

    /// Whether the peer's queue pair takes sends; `None`: not known now, ask again after the next
    /// poll. Unless the gate is open, the device wakes a sleeper when it changes.
    #[inline]
    fn watch_gate(&mut self, link: LinkId, queue_pair: u32) -> Option<Gate> {
        Some(Gate::Open)
    }

    /// Publishes the state of one of our queue pairs to all peers.
    fn set_gate(&mut self, queue_pair: u32, gate: Gate) {}

    // Packets.

    /// Sends one packet: `header`, then `head`, then `body`. The device sets `header.length` to the
    /// length of `head` and `body` together, at most `limits().packet_bytes`. After an error
    /// nothing was sent. After [`SendError::Busy`] the device wakes a sleeper when there is room.
    fn send(
        &mut self,
        link: LinkId,
        header: PacketHeader,
        head: &[u8],
        body: View<'_>,
    ) -> Result<Receipt, SendError>;

    /// As [`Transport::send`], for an answer that the peer does not need at once. The device may
    /// keep it a moment for a packet of the program, which then takes it along. Who sends so polls
    /// or [arms](Transport::arm) again.
    #[inline]
    fn send_later(
        &mut self,
        link: LinkId,
        header: PacketHeader,
        head: &[u8],
        body: View<'_>,
    ) -> Result<Receipt, SendError> {
        self.send(link, header, head, body)
    }

    /// Looks for packets and events, and passes at most `budget` packets to `sink`. Returns their
    /// number.
    fn poll(&mut self, sink: &mut impl Sink, budget: usize) -> usize
    where
        Self: Sized;

    /// Looks at everything but packets, if it is time: above all, whether peers live. It is for a
    /// program that posts and does not poll, where a message is sent and done within the post.
    /// Returns whether the program calls so rarely that each post shall look. By default a program
    /// must poll to see a message done, and so polling looks.
    fn look_around(&mut self, sink: &mut impl Sink) -> bool
    where
        Self: Sized,
    {
        false
    }

    // Waiting. By default a device is polled: there may always be something to do.

    /// A descriptor that becomes readable when [`Transport::poll`] has something to do, after
    /// [`Transport::arm`] has returned `true`.
    fn wait_fd(&self) -> BorrowedFd<'_> {
        static READABLE: LazyLock<OwnedFd> =
            LazyLock::new(|| eventfd(1, EventfdFlags::CLOEXEC).expect("one more descriptor"));
        READABLE.as_fd()
    }

    /// Requests a wake-up. `false`: there is something to do already; poll first. After `true`,
    /// waiting on [`Transport::wait_fd`] misses no event.
    fn arm(&mut self) -> bool {
        false
    }

    /// Nobody waits on [`Transport::wait_fd`] until the next [`Transport::arm`]. The device need
    /// not make it readable, which may cost the kernel work for each packet.
    fn disarm(&mut self) {}

    /// Sleeps in the kernel until there is something to do or `timeout` has passed; returns at once
    /// if there is already.
    fn sleep(&mut self, timeout: Option<Duration>) -> Result<(), Error> {
        if self.arm() { sleep_until_readable(self.wait_fd(), timeout) } else { Ok(()) }
    }

    // Delivery reports.

    /// Whether a taken packet can still be lost, because [`Transport::send`] returns before it is
    /// in the peer's memory. [`Sink::delivered`] reports when it is there, and the device wakes a
    /// sleeper for that. If [`Sink::link_down`] comes first, the peer may or may not have it.
    #[inline(always)]
    fn delivers_later(&self) -> bool {
        false
    }

    // Faster messages.

    /// Sends one whole message, if the gate of its destination is open and there is room. `None`:
    /// nothing was sent; [`Transport::watch_gate`] and [`Transport::send`] give the reason. A
    /// device can override this to combine both look-ups.
    #[inline]
    fn send_message(
        &mut self,
        link: LinkId,
        header: PacketHeader,
        head: &[u8],
        body: View<'_>,
    ) -> Option<Receipt> {
        let is_open = self.watch_gate(link, header.destination) == Some(Gate::Open);
        if is_open { self.send(link, header, head, body).ok() } else { None }
    }

    // Batches.

    /// Whether several short messages should share a packet ([`crate::Kind::Batch`]) on this link.
    /// Requires that the peer knows the kind, packets cost more than bytes, and a taken packet has
    /// arrived.
    #[inline]
    fn carries_batches(&self, link: LinkId) -> bool {
        false
    }

    // Packets that leave together. By default each leaves when it is sent.

    /// Packets that are sent from now on may wait for each other: more follow at once. Those that
    /// wait leave at the latest with the next poll.
    #[inline(always)]
    fn hold(&mut self) {}

    /// Ends [`Transport::hold`]. `at_once`: what it kept back leaves now. Otherwise it leaves with
    /// the next packet or poll.
    #[inline(always)]
    fn let_go(&mut self, at_once: bool) {}

    /// Ends [`Transport::hold`], and sends all packets that wait for further ones, as far as there
    /// is room.
    fn flush(&mut self) {}

    /// Whether all packets of a link have left this process, as far as their sender can know.
    #[inline]
    fn has_sent_all(&self, link: LinkId) -> bool {
        true
    }

    // Direct access. By default peers send requests to the owner's engine, which checks keys and
    // rights.

    /// Memory that peers can reach directly, zeroed.
    fn allocate(&mut self, length: usize, rights: Rights) -> Result<Memory, Error> {
        if length == 0 {
            let (parameter, range) = ("length", "at least 1 byte");
            return Err(Error::OutOfRange { parameter, value: 0, range });
        }
        Memory::zeroed(length).ok_or_else(|| Error::NoMemory {
            bytes: length,
            purpose: "region",
            why: "this process cannot have so much".to_owned(),
        })
    }

    /// Makes memory that the program brought as directly reachable as allocated memory, where the
    /// device can. It does not change for the program. Exports of the same bytes then use it, until
    /// `unshare`. `key` is that of a region without rights.
    fn share(&mut self, key: RemoteKey, memory: &Memory, rights: Rights) {}

    /// Ends what `share` did for this key, if it was called.
    fn unshare(&mut self, key: RemoteKey) {}

    /// Makes `memory` reachable under `key`. The engine has chosen its index below
    /// `limits().regions`.
    fn export(&mut self, key: RemoteKey, memory: &Memory, rights: Rights) -> Result<(), Error> {
        Ok(())
    }

    /// Ends the export. Returns only when no well-behaved peer accesses the memory any more.
    fn retract(&mut self, key: RemoteKey) {}

    /// Copies `from` to the peer's memory, without involving the peer.
    fn put(&mut self, link: LinkId, key: RemoteKey, offset: u64, from: View<'_>) -> Direct {
        Direct::ByPacket
    }

    /// The region's memory, if it is mapped here and puts may write it. The caller drops it when
    /// the link is down.
    fn window(&self, link: LinkId, key: RemoteKey) -> Option<Window> {
        None
    }

    /// Copies the peer's memory to `into`, without involving the peer.
    fn get(&mut self, link: LinkId, key: RemoteKey, offset: u64, into: View<'_>) -> Direct {
        Direct::ByPacket
    }

    /// Changes the word at `offset` of the peer's memory, without involving the peer.
    fn atomic(
        &mut self,
        link: LinkId,
        key: RemoteKey,
        offset: u64,
        operation: AtomicOperation,
    ) -> Direct {
        Direct::ByPacket
    }

    /// The number of invalid keys in peers' requests, as far as the device itself sees them.
    fn wrong_keys(&self) -> u64 {
        0
    }

    // Counters.

    /// Adds name and value of each of the device's counters, the same as [`Sink::tick`] gets, as
    /// they are now. They also tell which way was taken, where a device has several.
    fn counters(&self, rows: &mut Vec<(&'static str, u64)>) {
        let _ = rows;
    }

    // Simulated time.

    /// The clock of deadlines and waits: real time, except on devices that simulate time.
    #[inline]
    fn now(&self) -> Instant {
        Instant::now()
    }

    /// The seed of memory keys, on devices with repeatable runs, whose peers are all in this
    /// process. `None`: keys come from the kernel and cannot be guessed.
    fn seed(&self) -> Option<u64> {
        None
    }

    /// [`Error::Standstill`] if nothing will ever happen on this device again. The engine asks
    /// after each poll. Only simulated devices implement it. Their [`Transport::sleep`] returns the
    /// same error.
    #[inline]
    fn standstill(&self) -> Option<Error> {
        None
    }
}

/// Sleeps until `fd` is readable, a signal comes or `timeout` has passed. For
/// [`Transport::sleep`].
///
/// # Errors
/// [`Error::System`] with what the kernel says.
pub fn sleep_until_readable(fd: BorrowedFd<'_>, timeout: Option<Duration>) -> Result<(), Error> {
    // A time that the kernel cannot count is as good as none.
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    match poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(Error::System { what: "wait for events", cause: error.into() }),
    }
}
