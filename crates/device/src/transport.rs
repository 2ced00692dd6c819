//! What a device must do. Everything above (queue pairs, matching, rendezvous, atomics) is the engine's and is the same for all.

use crate::{Error, FunctionAddress, PacketHeader, RemoteKey, Rights, Status};
use bellwire_ring::memory::{Memory, View};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// A link to one peer function, as the device numbers it. Numbers are reused only after [`Transport::close`].
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

/// Whether a peer's queue pair takes sends (STOP and GO of HPCL, H-15 and H-16, as a state instead of two messages).
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

/// Why a packet could not be sent now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The link is being set up or is full; try again after the next poll.
    Busy,
    /// The link is down for good.
    Down(Status),
}

/// The answer to a direct operation on a peer's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direct {
    /// It is done; for an atomic, with what was in memory before.
    Done(u64),
    /// The device is still asking the peer for access; try again after the next poll.
    Pending,
    /// This memory cannot be reached directly: send the operation as packets.
    ByPacket,
    /// It is refused; nothing was changed.
    Refused(Status),
}

/// What the engine wants to happen to a packet that was offered to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It is consumed.
    Taken,
    /// No room now: keep it, and everything behind it on the same link, and offer it again at a later poll.
    Stalled,
    /// The peer broke the protocol: close the link.
    Violation,
}

/// What a device reports to while it polls. Implemented by the engine.
pub trait Sink {
    /// A packet came, with the words of its header ([`PacketHeader::from_words`]). They were copied once and will not change;
    /// `payload` may change while it is read if the peer is hostile, and has exactly as many bytes as the header says.
    fn packet(
        &mut self,
        link: LinkId,
        from: FunctionAddress,
        header: [u64; 3],
        payload: View<'_>,
    ) -> Verdict;

    /// Of the packets that [`Transport::receipt`] counted on this link, the first `count` are with the peer. Said only by devices that
    /// [deliver later](Transport::DELIVERS_LATER).
    #[inline]
    fn delivered(&mut self, link: LinkId, count: u64) {
        let _ = (link, count);
    }

    /// A link is gone: by death of the peer, by violation, or because nobody answered before the deadline.
    fn link_down(&mut self, link: LinkId, peer: FunctionAddress, why: Status);

    /// Comes about every millisecond while the function is polled, and before it sleeps, with what the device has counted: time
    /// for what is not worth doing at every packet.
    fn tick(&mut self, counters: &[(&'static str, u64)]) {
        let _ = counters;
    }
}

/// One function of one device: reliable, ordered packets to peer functions, and direct access to memory where there is one.
///
/// Single-threaded by design: a function belongs to one thread at a time, so its data path needs no lock.
pub trait Transport: Send {
    /// Whether a packet can be lost though it was taken, because it is not in the peer's memory yet when [`Transport::send`] returns.
    const DELIVERS_LATER: bool = false;

    /// Who we are.
    fn address(&self) -> FunctionAddress;

    /// What is possible.
    fn limits(&self) -> TransportLimits;

    /// What keys of memory are drawn from, on devices where one seed must always give the same run and whose peers are all in this process;
    /// `None`: from the kernel, so that nobody can guess them.
    fn seed(&self) -> Option<u64> {
        None
    }

    /// The time that deadlines and waits go by: the real one, except on devices whose time is simulated.
    #[inline]
    fn now(&self) -> Instant {
        Instant::now()
    }

    /// [`Error::Standstill`] if nothing will ever happen on this device again. Asked after each look; only a simulated device can know, and its
    /// [`Transport::sleep`] says the same.
    #[inline]
    fn standstill(&self) -> Option<Error> {
        None
    }

    /// The link to `peer`, set up if there is none. Returns at once; packets are refused with [`Refusal::Busy`] until the peer
    /// has answered, and [`Sink::link_down`] reports [`Status::Unreachable`] if it has not within `patience`. What came by an
    /// earlier link from the same function is handed out before anything that comes by a later one.
    fn link(&mut self, peer: FunctionAddress, patience: Duration) -> Result<LinkId, Error>;

    /// Forgets a link that is down, or that nobody needs.
    fn close(&mut self, link: LinkId);

    /// Whether the peer's queue pair takes sends; `None` while the link is being set up.
    fn gate(&self, link: LinkId, queue_pair: u32) -> Option<Gate>;

    /// Publishes the state of one of our queue pairs to all peers.
    fn set_gate(&mut self, queue_pair: u32, gate: Gate);

    /// Sends one packet: `header`, then `head`, then `body`. `header.length` is set by the device to their sum, which is at most
    /// `limits().packet_bytes`. Either the whole packet is on its way in order, or nothing was done.
    fn send(
        &mut self,
        link: LinkId,
        header: PacketHeader,
        head: &[u8],
        body: View<'_>,
    ) -> Result<(), Refusal>;

    /// Sends one whole message, if the gate of the queue pair that its header names is open and there is room. `false`: nothing was
    /// done; [`Transport::gate`] and [`Transport::send`] say why. Devices that find both in one place look there once.
    #[inline]
    fn send_message(
        &mut self,
        link: LinkId,
        header: PacketHeader,
        head: &[u8],
        body: View<'_>,
    ) -> bool {
        self.gate(link, header.destination) == Some(Gate::Open)
            && self.send(link, header, head, body).is_ok()
    }

    /// Whether several short messages are better sent as one packet ([`crate::Kind::Batch`]) by this link: its peer knows the kind, packets cost
    /// more than bytes, and what was taken has arrived.
    #[inline]
    fn carries_batches(&self, link: LinkId) -> bool {
        let _ = link;
        false
    }

    /// For a device that [delivers later](Transport::DELIVERS_LATER): the number of the message packet that was sent last on this link.
    /// [`Sink::delivered`] tells when the peer has it, and the device wakes a sleeper for that; if [`Sink::link_down`] comes first, it
    /// may or may not have. `None`: it is there already.
    #[inline]
    fn receipt(&self, link: LinkId) -> Option<u64> {
        let _ = link;
        None
    }

    /// Looks for packets and news, and hands at most `budget` packets to `sink`. Returns how many.
    fn poll(&mut self, sink: &mut impl Sink, budget: usize) -> usize
    where
        Self: Sized;

    /// Memory that peers can reach directly, zeroed.
    fn allocate(&mut self, length: usize, rights: Rights) -> Result<Memory, Error>;

    // Direct access. As it stands here, peers reach memory by asking its owner's engine, which knows keys and rights.

    /// Makes `memory` reachable under `key` (whose index the engine chose below `limits().regions`).
    fn export(&mut self, key: RemoteKey, memory: &Memory, rights: Rights) -> Result<(), Error> {
        let _ = (key, memory, rights);
        Ok(())
    }

    /// Ends that; returns only when no well-behaved peer touches the memory any more.
    fn retract(&mut self, key: RemoteKey) {
        let _ = key;
    }

    /// Copies `from` to the peer's memory, without its help.
    fn put(&mut self, link: LinkId, key: RemoteKey, offset: u64, from: View<'_>) -> Direct {
        let _ = (link, key, offset, from);
        Direct::ByPacket
    }

    /// Copies the peer's memory to `into`, without its help.
    fn get(&mut self, link: LinkId, key: RemoteKey, offset: u64, into: View<'_>) -> Direct {
        let _ = (link, key, offset, into);
        Direct::ByPacket
    }

    /// Adds to the word at `offset` of the peer's memory.
    fn fetch_add(&mut self, link: LinkId, key: RemoteKey, offset: u64, operand: u64) -> Direct {
        let _ = (link, key, offset, operand);
        Direct::ByPacket
    }

    /// Replaces the word at `offset` of the peer's memory if it equals `expected`.
    fn compare_swap(
        &mut self,
        link: LinkId,
        key: RemoteKey,
        offset: u64,
        expected: u64,
        new: u64,
    ) -> Direct {
        let _ = (link, key, offset, expected, new);
        Direct::ByPacket
    }

    /// How often peers used keys that were not valid here, as far as the device itself was told.
    fn wrong_keys(&self) -> u64 {
        0
    }

    /// A descriptor that becomes readable when [`Transport::poll`] has something to do, once [`Transport::arm`] said so.
    fn wait_fd(&self) -> BorrowedFd<'_>;

    /// Asks for a wake-up. `false`: there is something to do already, poll first. After `true`, waiting on
    /// [`Transport::wait_fd`] misses nothing.
    fn arm(&mut self) -> bool;

    /// Sleeps in the kernel until there is something to do or `timeout` has passed; does not sleep if there is already.
    fn sleep(&mut self, timeout: Option<Duration>) -> Result<(), Error>;
}
