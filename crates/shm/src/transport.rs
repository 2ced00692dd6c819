//! One open function: its memory, its links, and the paths of a packet out ([`Transport::send`])
//! and in ([`crate::service`]).

use crate::control::Introduction;
use crate::device::DeviceInner;
use crate::holder::Holders;
use crate::link::{GATES, GEOMETRY, Link, QUEUE_PAIRS, REGIONS, State, Up, gate_index};
use crate::mapping::{self, PAGE_BYTES, Segment as Mapped, Sharing};
use crate::name::{self, Job};
use crate::region::{Export, Quarantined};
use crate::service::{Delivered, End};
use crate::stranger::Strangers;
use crate::{barrier, socket};
use bellwire_device::{
    AtomicOperation, Direct, Error, FunctionAddress, Gate, LinkId, PacketHeader, Receipt,
    RemoteKey, Rights, SendError, Sink, Status, Transport, TransportLimits, random,
};
use bellwire_protocol::CreditManager;
use bellwire_ring::board::Board;
use bellwire_ring::doorbell::{DOORBELL_LINES, Doorbell, LANES};
use bellwire_ring::lane::{GRANTS, Sent};
use bellwire_ring::memory::{Memory, View};
use bellwire_ring::segment::{LINE_BYTES, Segment};
use bellwire_ring::steps::step;
use rustix::event::epoll;
use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum number of links of one function: the doorbell has a bit for each.
pub const LINKS: usize = LANES;

const POOL_BYTES: usize = GEOMETRY.pool_chunks * GEOMETRY.chunk_lines * LINE_BYTES;

const _: () = assert!(DOORBELL_LINES * LINE_BYTES <= PAGE_BYTES);

/// What a function counts besides packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)] // The names say it.
pub struct ShmCounters {
    pub packets_sent: u64,
    pub packets_received: u64,
    pub lane_full: u64,
    pub rings: u64,
    pub kicks: u64,
    pub parks: u64,
    pub grants: u64,
    pub wrong_keys: u64,
    pub refused_links: u64,
    pub violations: u64,
}

/// One function of a shared-memory device.
pub struct ShmTransport {
    pub(crate) device: Arc<DeviceInner>,
    pub(crate) address: FunctionAddress,
    pub(crate) introduction: Introduction,
    pub(crate) listener: OwnedFd,
    pub(crate) epoll: OwnedFd,
    /// The doorbell's page and the pool, which peers write.
    pub(crate) pool: Mapped,
    pub(crate) doorbell: Doorbell<Segment>,
    /// What peers read.
    pub(crate) board_segment: Mapped,
    pub(crate) board: Board<Segment>,
    pub(crate) credits: CreditManager,
    pub(crate) links: Vec<Option<Box<Link>>>,
    pub(crate) by_peer: HashMap<FunctionAddress, u32>,
    pub(crate) free: Vec<u32>,
    pub(crate) strangers: Strangers,
    /// Lanes that are polled.
    pub(crate) active: Vec<u32>,
    pub(crate) turn: usize,
    /// Scratch of `answer_doorbell`.
    pub(crate) rung: Vec<u32>,
    /// Links that went down, but are not yet reported or fully delivered.
    pub(crate) downs: Vec<u32>,
    pub(crate) last_attempt: Instant,
    pub(crate) allocated: HashMap<usize, OwnedFd>,
    pub(crate) exports: Vec<Option<Export>>,
    pub(crate) quarantine: Vec<Quarantined>,
    pub(crate) pace: crate::check::Pace,
    /// Nothing was sent since the last poll, so the next packet may be a lone one.
    pub(crate) alone: bool,
    /// Control messages are awaited: check the sockets often.
    pub(crate) urgent: bool,
    /// A wake-up was asked for.
    pub(crate) armed: bool,
    /// The check after a wake-up has been put off, once.
    pub(crate) put_off: bool,
    /// What ended the last sleep, until the next check handles it.
    pub(crate) found: Vec<crate::check::Source>,
    pub(crate) counters: ShmCounters,
    /// The word that peers read to probe cross-memory attach.
    _probe: Box<u64>,
}

/// The pool of a segment whose first page is the doorbell's.
pub(crate) fn pool_of(memory: &Memory) -> Segment {
    Segment::new(memory, PAGE_BYTES, POOL_BYTES)
}

/// The doorbell of that segment.
pub(crate) fn doorbell_of(memory: &Memory) -> Doorbell<Segment> {
    Doorbell::new(Segment::new(memory, 0, PAGE_BYTES))
}

/// Bytes of the segment with doorbell and pool.
pub(crate) const POOL_SEGMENT_BYTES: usize = PAGE_BYTES + POOL_BYTES;

/// Bytes of the board.
pub(crate) const BOARD_BYTES: usize =
    (Board::<Segment>::words(GATES, REGIONS) * 8).next_multiple_of(PAGE_BYTES);

/// The board in a segment.
pub(crate) fn board_of(memory: &Memory) -> Board<Segment> {
    Board::new(Segment::new(memory, 0, BOARD_BYTES), GATES, REGIONS)
}

/// Why a function cannot have its name.
fn taken(job: &Job, at: FunctionAddress) -> Error {
    let user = Holders::now().user_of(&job.function_socket(at));
    match user.filter(|&user| !name::is_own(user)) {
        Some(user) => Error::NameHeld {
            what: format!("node {}, function {}", at.node, at.function),
            job: job.name.clone(),
            user,
        },
        None => Error::BadFunction { function: at.function, why: "it is open already" },
    }
}

impl ShmTransport {
    pub(crate) fn open(
        device: Arc<DeviceInner>,
        function: u8,
        weight: u8,
    ) -> Result<ShmTransport, Error> {
        let address = FunctionAddress { node: device.node, function };
        let system = |what| move |e: rustix::io::Errno| Error::System { what, cause: e.into() };
        let pool =
            mapping::create("pool", POOL_SEGMENT_BYTES, POOL_SEGMENT_BYTES, Sharing::ReadWrite)?;
        let board_segment = mapping::create("board", BOARD_BYTES, BOARD_BYTES, Sharing::ReadOnly)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(system("create an epoll descriptor"))?;
        let listener = match socket::listen(&device.job.function_socket(address)) {
            Err(rustix::io::Errno::ADDRINUSE) => {
                return Err(taken(&device.job, address));
            }
            other => other.map_err(system("listen at the function's socket"))?,
        };
        crate::check::watch(&epoll, &listener, crate::check::Source::Listener)
            .map_err(system("watch the function's socket"))?;
        let strangers = Strangers::new()?;
        crate::check::watch(&epoll, strangers.clock(), crate::check::Source::Tick)
            .map_err(system("watch a timer"))?;
        let probe = Box::new(random());
        let introduction = Introduction {
            version: crate::control::VERSION,
            node: address.node,
            function,
            weight,
            barriers: barrier::available(),
            pool_chunks: GEOMETRY.pool_chunks as u32,
            gates: GATES as u32,
            regions: REGIONS as u32,
            lane: 0,
            probe_address: &raw const *probe as u64,
            probe_value: *probe,
        };
        Ok(ShmTransport {
            doorbell: doorbell_of(&pool.memory),
            board: board_of(&board_segment.memory),
            device,
            address,
            introduction,
            listener,
            epoll,
            pool,
            board_segment,
            credits: CreditManager::new(GEOMETRY.pool_chunks as u16, LINKS as u16, GRANTS as u16),
            links: Vec::new(),
            by_peer: HashMap::new(),
            free: Vec::new(),
            strangers,
            active: Vec::new(),
            turn: 0,
            rung: Vec::new(),
            downs: Vec::new(),
            last_attempt: Instant::now(),
            allocated: HashMap::new(),
            exports: Vec::new(),
            quarantine: Vec::new(),
            pace: crate::check::Pace::new(),
            alone: true,
            urgent: false,
            armed: false,
            put_off: false,
            found: Vec::new(),
            counters: ShmCounters::default(),
            _probe: probe,
        })
    }

    /// The counters.
    pub fn shm_counters(&self) -> ShmCounters {
        self.counters
    }

    /// Name and value of every counter and gauge, for monitoring.
    pub fn counter_rows(&self) -> [(&'static str, u64); 18] {
        let ShmCounters {
            packets_sent,
            packets_received,
            lane_full,
            rings,
            kicks,
            parks,
            grants,
            wrong_keys,
            refused_links,
            violations,
        } = self.counters;
        let went_host = |link: &Link| link.up().map_or(0, |up| up.sender.went_host());
        [
            ("packets_sent", packets_sent),
            ("packets_received", packets_received),
            ("lane_full", lane_full),
            ("rings", rings),
            ("kicks", kicks),
            ("parks", parks),
            ("grants", grants),
            ("wrong_keys", wrong_keys),
            ("refused_links", refused_links),
            ("violations", violations),
            ("links", (self.links.len() - self.free.len()) as u64),
            ("lanes_polled", self.active.len() as u64),
            ("credit_chunks_free", self.credits.free_chunks().into()),
            ("went_to_host_memory", self.links.iter().flatten().map(|link| went_host(link)).sum()),
            ("lanes_waiting_for_credit", self.credits.waiting().into()),
            ("silent_connections", self.strangers.count() as u64),
            ("silent_connections_closed", self.strangers.closed),
            ("listener_pauses", self.strangers.pauses),
        ]
    }

    pub(crate) fn link_mut(&mut self, number: u32) -> Option<&mut Link> {
        self.links.get_mut(number as usize)?.as_deref_mut()
    }

    /// Tells the peer behind `link` of a packet on a lane that it does not poll.
    #[cold]
    fn ring(&mut self, link: LinkId) {
        step("ring");
        self.counters.rings += 1;
        let up = self.link_mut(link.0).and_then(Link::up_mut);
        if up.is_some_and(|up| up.doorbell.ring(up.remote_lane)) {
            self.kick(link.0);
        }
    }

    /// Wakes the sleeping peer behind `link`.
    #[cold]
    pub(crate) fn kick(&mut self, link: u32) {
        self.counters.kicks += 1;
        step("kick");
        self.send_control(link, crate::control::Control::Kick, None);
    }
}

impl ShmTransport {
    /// The complete poll.
    #[inline(never)]
    fn poll_all(&mut self, sink: &mut impl Sink, budget: usize) -> usize {
        let mut taken = self.serve(sink, budget);
        if self.doorbell.is_rung() {
            self.answer_doorbell();
            if taken == 0 {
                taken = self.serve(sink, budget);
            }
        }
        if self.pace.is_due() {
            self.check(sink, taken);
        }
        self.counters.packets_received += taken as u64;
        if taken == 0 {
            std::hint::spin_loop();
        }
        taken
    }
}

impl Transport for ShmTransport {
    fn address(&self) -> FunctionAddress {
        self.address
    }

    fn limits(&self) -> TransportLimits {
        TransportLimits {
            packet_bytes: GEOMETRY.packet_bytes(),
            queue_pairs: QUEUE_PAIRS,
            regions: REGIONS,
            links: LINKS,
        }
    }

    fn link(&mut self, peer: FunctionAddress, patience: Duration) -> Result<LinkId, Error> {
        self.find_or_connect(peer, patience).map(LinkId)
    }

    fn close(&mut self, link: LinkId) {
        self.close_link(link.0);
    }

    fn is_up(&self, link: LinkId) -> bool {
        let link = self.links.get(link.0 as usize).and_then(Option::as_deref);
        link.is_some_and(|link| link.up().is_some())
    }

    #[inline]
    fn watch_gate(&mut self, link: LinkId, queue_pair: u32) -> Option<Gate> {
        let link = self.link_mut(link.0)?;
        if bellwire_ring::canary::planted("gate-ignored") {
            return link.up().map(|_| Gate::Open);
        }
        Some(match link.up()?.board.gate(gate_index(queue_pair)) {
            1 => Gate::Open,
            2 => {
                link.refused = true;
                Gate::Stopped
            }
            _ => Gate::Closed,
        })
    }

    fn set_gate(&mut self, queue_pair: u32, gate: Gate) {
        self.board.set_gate(gate_index(queue_pair), gate as u8);
        if gate == Gate::Open {
            for lane in 0..self.links.len() as u32 {
                self.call_waiting(lane);
            }
        }
    }

    // Always inlined: the header stays in registers. As an argument it would be written in parts
    // and read as words, which defeats store forwarding.
    #[inline(always)]
    fn send(
        &mut self,
        link: LinkId,
        mut header: PacketHeader,
        head: &[u8],
        body: View<'_>,
    ) -> Result<Receipt, SendError> {
        debug_assert!(head.len() + body.len() <= GEOMETRY.packet_bytes(), "the engine's limit");
        header.length = (head.len() + body.len()) as u32;
        let Some(entry) = self.links.get_mut(link.0 as usize).and_then(Option::as_deref_mut) else {
            return Err(SendError::Down(Status::PeerGone));
        };
        let up = match &mut entry.state {
            State::Up(up) => up,
            State::Down(why) => return Err(SendError::Down(*why)),
            State::Connecting { .. } | State::Crossed { .. } => return Err(SendError::Busy),
        };
        let (pair, side) = (&up.pair, up.side);
        let host = || Up::populate_host(pair, side);
        match up.sender.send(header.to_words(), head, body, false, host) {
            Ok(Sent::Done) => {}
            Ok(Sent::Ring) => {
                self.counters.packets_sent += 1;
                self.ring(link);
                return Ok(Receipt::Delivered);
            }
            Err(_full) => {
                self.counters.lane_full += 1;
                entry.refused = true;
                if up.sender.is_parked() && up.doorbell.ring(up.remote_lane) {
                    self.kick(link.0);
                }
                return Err(SendError::Busy);
            }
        }
        self.counters.packets_sent += 1;
        Ok(Receipt::Delivered)
    }

    #[inline(always)]
    fn send_message(
        &mut self,
        link: LinkId,
        mut header: PacketHeader,
        head: &[u8],
        body: View<'_>,
    ) -> Option<Receipt> {
        debug_assert!(head.len() + body.len() <= GEOMETRY.packet_bytes(), "the engine's limit");
        header.length = (head.len() + body.len()) as u32;
        let entry = self.links.get_mut(link.0 as usize).and_then(Option::as_deref_mut)?;
        let State::Up(up) = &mut entry.state else { return None };
        if up.board.gate(gate_index(header.destination)) != Gate::Open as u8
            && !bellwire_ring::canary::planted("gate-ignored")
        {
            return None;
        }
        let (pair, side) = (&up.pair, up.side);
        let follows = !std::mem::replace(&mut self.alone, false);
        let host = || Up::populate_host(pair, side);
        match up.sender.send(header.to_words(), head, body, follows, host) {
            Ok(Sent::Done) => self.counters.packets_sent += 1,
            Ok(Sent::Ring) => {
                self.counters.packets_sent += 1;
                self.ring(link);
            }
            Err(_full) => return None,
        }
        Some(Receipt::Delivered)
    }

    #[inline(always)]
    fn carries_batches(&self, _link: LinkId) -> bool {
        true
    }

    /// The fast path for a pair that is alone: it looks at one line, and takes one packet at most.
    /// All other work is left to `poll_all`, in this call or in the next.
    #[inline(always)]
    fn poll(&mut self, sink: &mut impl Sink, budget: usize) -> usize {
        self.alone = true;
        if let [lane] = self.active[..]
            && let Some(link) = self.links[lane as usize].as_deref_mut()
            && !link.streaming
        {
            let mut looked = false;
            loop {
                match link.deliver_one(lane, sink) {
                    Delivered::Packet(_) => {
                        link.streaming = true;
                        link.recent += 1;
                        self.counters.packets_received += 1;
                        return 1;
                    }
                    Delivered::Not(End::Empty) if !looked => {
                        // A second look finds what has just come, without a return to the program.
                        // The pause matters: a reader that polls the line without one takes it away
                        // from the sender between two of its stores. The message then arrives a
                        // whole line transfer later.
                        std::hint::spin_loop();
                        looked = true;
                    }
                    Delivered::Not(End::Empty)
                        if !self.doorbell.is_rung() && !self.pace.is_due() =>
                    {
                        return 0;
                    }
                    Delivered::Not(end) => {
                        self.goes_on(lane, end);
                        break;
                    }
                }
            }
        }
        self.poll_all(sink, budget)
    }

    fn allocate(&mut self, length: usize, rights: Rights) -> Result<Memory, Error> {
        self.allocate_region(length, rights)
    }

    fn export(&mut self, key: RemoteKey, memory: &Memory, rights: Rights) -> Result<(), Error> {
        self.export_region(key, memory, rights)
    }

    fn retract(&mut self, key: RemoteKey) {
        self.retract_region(key);
    }

    #[inline(always)]
    fn put(&mut self, link: LinkId, key: RemoteKey, offset: u64, from: View<'_>) -> Direct {
        self.direct_put(link, key, offset, from)
    }

    #[inline]
    fn get(&mut self, link: LinkId, key: RemoteKey, offset: u64, into: View<'_>) -> Direct {
        self.direct_get(link, key, offset, into)
    }

    fn atomic(
        &mut self,
        link: LinkId,
        key: RemoteKey,
        offset: u64,
        operation: AtomicOperation,
    ) -> Direct {
        self.direct_atomic(link, key, offset, |word| operation.apply(word, 0))
    }

    fn wrong_keys(&self) -> u64 {
        self.counters.wrong_keys
    }

    fn wait_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    fn arm(&mut self) -> bool {
        let armed = self.prepare_sleep();
        if armed {
            // The program may not poll again for long.
            self.tidy(Duration::ZERO);
        }
        armed
    }

    fn sleep(&mut self, timeout: Option<Duration>) -> Result<(), Error> {
        self.sleep_until_woken(timeout.map(|t| Instant::now() + t))
    }
}
