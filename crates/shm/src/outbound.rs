//! The way to a peer that has answered: the lane to it, its gates and its regions.

use crate::attach::Part;
use crate::bell::PeerBell;
use crate::control::{Control, Introduction};
use crate::layout::{self, GEOMETRY, HOST_BYTES, Side, gate_index};
use crate::mapping;
use crate::remote_regions::{Bytes, RemoteRegions};
use bellwire_device::{Direct, Gate, PacketHeader, RemoteKey, Rights, Status, random};
use bellwire_ring::board::Board;
use bellwire_ring::canary::planted;
use bellwire_ring::lane::{Full, LaneSender, Sent};
use bellwire_ring::memory::{Memory, View};
use bellwire_ring::segment::Segment;
use bellwire_ring::sync::Fences;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long pages are kept for the next burst. Faulting them in again costs as much as many
/// messages.
pub const LINGER: Duration = Duration::from_millis(10);

/// Our sending end of a link that is up.
pub struct Outbound {
    pub sender: LaneSender<Segment>,
    board: Board<Segment>,
    pub bell: Arc<PeerBell>,
    pub regions: RemoteRegions,
    /// Identifies this opening of the peer's function.
    opening: u64,
    /// Since our last sleep a packet found no room, or a gate was not open.
    refused: bool,
    /// The peer's receiver was told that we sleep until there is room. Not so any more once we are
    /// awake, or there may be room: then it is told again after another refusal.
    pub announced: bool,
    /// The pair's memory, and our side of it, to populate and release our host chunks.
    pair: Memory,
    side: Side,
    host_pages: HostPages,
}

/// When the pages of our host chunks were used. All counts are of entries into host chunks.
struct HostPages {
    /// The count at which the pages were last given back.
    released: u64,
    /// The count at the last check.
    seen: u64,
    /// When `seen` last changed.
    since: Instant,
}

/// The memory that we share with a peer, as both have it mapped.
pub struct Shared {
    /// The pair's memory, and our side of it.
    pub pair: Memory,
    pub side: Side,
    /// The peer's pool, and its doorbell before it.
    pub pool: Memory,
    /// The peer's board.
    pub board: Memory,
}

impl Outbound {
    /// The way to `peer`, which runs in process `pid`; 0 if that is unknown.
    pub fn new(
        shared: Shared,
        fences: Fences,
        peer: Introduction,
        pid: i32,
        bell: Arc<PeerBell>,
    ) -> Outbound {
        let Shared { pair, side, pool, board } = shared;
        let lane = layout::lane_memory(&pair, side, layout::pool_of(&pool));
        Outbound {
            sender: LaneSender::new(lane, GEOMETRY, fences, random()),
            board: layout::board_of(&board),
            bell,
            regions: RemoteRegions::new(peer, pid, layout::board_of(&board)),
            opening: peer.probe_value,
            refused: false,
            announced: false,
            pair,
            side,
            host_pages: HostPages { released: 0, seen: 0, since: Instant::now() },
        }
    }

    /// Whether `peer` introduces the same opening of a function as this one.
    pub fn is_opening_of(&self, peer: &Introduction) -> bool {
        // The random probe value identifies an opening.
        self.opening == peer.probe_value
    }

    /// Whether the peer's queue pair takes sends.
    #[inline]
    pub fn watch_gate(&mut self, queue_pair: u32) -> Gate {
        if planted("gate-ignored") {
            return Gate::Open;
        }
        match self.board.gate(gate_index(queue_pair)) {
            1 => Gate::Open,
            2 => {
                self.refused = true;
                Gate::Stopped
            }
            _ => Gate::Closed,
        }
    }

    /// Whether the peer's queue pair takes sends now.
    #[inline(always)]
    pub fn is_gate_open(&self, queue_pair: u32) -> bool {
        self.board.gate(gate_index(queue_pair)) == Gate::Open as u8 || planted("gate-ignored")
    }

    /// Writes one packet, as [`LaneSender::send`].
    #[inline(always)]
    pub fn send(
        &mut self,
        mut header: PacketHeader,
        head: &[u8],
        body: View<'_>,
    ) -> Result<Sent, Full> {
        debug_assert!(head.len() + body.len() <= GEOMETRY.packet_bytes(), "the engine's limit");
        header.length = (head.len() + body.len()) as u32;
        let (pair, offset) = (&self.pair, layout::host_offset(self.side));
        let host_memory = || mapping::populate(pair, offset, HOST_BYTES);
        self.sender.send(header.to_words(), head, body, host_memory)
    }

    /// A packet found no room. Returns whether the peer slept and had to be woken.
    pub fn note_refusal(&mut self) -> bool {
        self.refused = true;
        // A parked lane gets credit only when it rings.
        self.sender.is_parked() && self.bell.ring()
    }

    /// Before sleep: tells the receiver if it had no room for us. `true`: it was told now, so retry
    /// the refused packets once.
    pub fn announce_waiting(&mut self) -> bool {
        let tell = std::mem::take(&mut self.refused) && !self.announced;
        if tell {
            self.sender.announce_waiting();
            self.announced = true;
        }
        tell
    }

    /// Gives the host chunks' pages back if they were unused for `linger`, so that an idle pair
    /// costs one page. `true`: they were used since, so try again.
    pub fn tidy(&mut self, linger: Duration) -> bool {
        let entered = self.sender.host_fallbacks();
        let pages = &mut self.host_pages;
        if entered == pages.released {
            return false;
        }
        if entered != pages.seen {
            pages.seen = entered;
            pages.since = Instant::now();
        }
        if pages.since.elapsed() < linger {
            return true;
        }
        if self.sender.tidy() {
            mapping::release(&self.pair, layout::host_offset(self.side), HOST_BYTES);
            pages.released = entered;
        }
        false
    }

    /// Copies to the peer's region. The second result is a message for the peer, as in the next
    /// two.
    pub fn put(
        &mut self,
        key: RemoteKey,
        offset: u64,
        from: View<'_>,
    ) -> (Direct, Option<Control>) {
        self.regions.access(
            &self.sender,
            key,
            Rights::REMOTE_WRITE,
            (offset, from.len()),
            |there, at| {
                there.deposit(from.part(at, there.len()).expect("a piece of it"));
                Direct::Done(0)
            },
            |process, address, beside| process.write(&parts(from, address, beside)),
        )
    }

    /// Copies from the peer's region.
    pub fn get(
        &mut self,
        key: RemoteKey,
        offset: u64,
        into: View<'_>,
    ) -> (Direct, Option<Control>) {
        self.regions.access(
            &self.sender,
            key,
            Rights::REMOTE_READ,
            (offset, into.len()),
            |there, at| {
                into.part(at, there.len()).expect("a piece of it").copy_from(there);
                Direct::Done(0)
            },
            |process, address, beside| process.read(&parts(into, address, beside)),
        )
    }

    /// Changes a word of the peer's region. `change` returns its previous value, or `None` if it is
    /// misaligned.
    pub fn atomic(
        &mut self,
        key: RemoteKey,
        offset: u64,
        mut change: impl FnMut(View<'_>) -> Option<u64>,
    ) -> (Direct, Option<Control>) {
        self.regions.access(
            &self.sender,
            key,
            Rights::REMOTE_ATOMIC,
            (offset, 8),
            |there, _| change(there).map_or(Direct::Refused(Status::Misaligned), Direct::Done),
            // A processor's atomic needs a mapping; the kernel's copies are not atomic.
            |_, _, _| false,
        )
    }

    /// Simulates SIGSTOP between the first and the last store of a packet (1), or its end (0).
    #[cfg(test)]
    pub fn set_intent(&self, own_pool: Segment, intent: u64) {
        use bellwire_ring::segment::{LINE_WORDS, Words};
        let lane = layout::lane_memory(&self.pair, self.side, own_pool);
        lane.control.word(LINE_WORDS).store(intent, bellwire_ring::sync::Ordering::SeqCst);
    }
}

/// Some bytes of `here`, which as a whole is at `address` in the peer's process.
fn parts<'a>(here: View<'a>, address: u64, bytes: &[Bytes; 2]) -> [Part<'a>; 2] {
    let part = |of: &Bytes| {
        let here = here.part(of.start, of.len()).expect("bytes of it");
        (address.wrapping_add(of.start as u64), here)
    };
    [part(&bytes[0]), part(&bytes[1])]
}
