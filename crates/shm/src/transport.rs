//! One open function. It composes the owners of its state; each of them is one field.

use crate::connect::{Accepted, Connector, Hello};
use crate::control::Control;
use crate::epoll::Source;
use crate::lanes::Lanes;
use crate::layout::{GEOMETRY, LINKS, QUEUE_PAIRS, REGIONS, gate_index};
use crate::link::Link;
use crate::links::Links;
use crate::local::{Local, Node};
use crate::outbound::LINGER;
use crate::regions::Regions;
use crate::schedule::Schedule;
use crate::socket::Received;
use bellwire_device::{
    AtomicOperation, Direct, Error, FunctionAddress, Gate, LinkId, PacketHeader, Receipt,
    RemoteKey, Rights, SendError, Sink, Status, Transport, TransportLimits, Window,
};
use bellwire_ring::board::Board;
use bellwire_ring::canary::planted;
use bellwire_ring::memory::{Memory, View};
use bellwire_ring::segment::Segment;
use bellwire_ring::steps::step;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One function of a shared-memory device.
pub struct ShmTransport {
    local: Arc<Local>,
    /// The gates of our queue pairs, on our board.
    gates: Board<Segment>,
    connector: Connector,
    links: Links,
    lanes: Lanes,
    regions: Regions,
    schedule: Schedule,
    packets_received: u64,
}

impl ShmTransport {
    pub(crate) fn open(node: Arc<Node>, function: u8, weight: u8) -> Result<ShmTransport, Error> {
        let local = Arc::new(Local::open(node, function, weight)?);
        Ok(ShmTransport {
            gates: local.board(),
            connector: Connector::open(local.clone())?,
            links: Links::default(),
            lanes: Lanes::new(local.doorbell()),
            regions: Regions::new(local.board()),
            schedule: Schedule::new(&local.epoll),
            packets_received: 0,
            local,
        })
    }

    /// Name and value of every counter and gauge, for monitoring.
    pub fn counter_rows(&self) -> [(&'static str, u64); 23] {
        let ShmTransport { links, lanes, connector, schedule, .. } = self;
        let pending = &connector.pending;
        let [mapped, attached, by_packet] = links.regions_by_way();
        [
            ("packets_sent", links.packets),
            ("packets_received", self.packets_received),
            ("lane_full", links.lane_full),
            ("rings", links.rings),
            ("kicks", links.kicks + lanes.kicks),
            ("parks", lanes.parks),
            ("grants", lanes.grants),
            ("wrong_keys", self.regions.wrong_keys),
            ("refused_links", connector.refused_links),
            ("violations", links.violations + connector.violations),
            ("links", links.count() as u64),
            ("lanes_polled", lanes.polled.len() as u64),
            ("credit_chunks_free", lanes.credits.free_chunks().into()),
            ("went_to_host_memory", links.host_fallbacks()),
            ("lanes_waiting_for_credit", lanes.credits.waiting().into()),
            ("silent_connections", pending.count() as u64),
            ("silent_connections_closed", pending.closed),
            ("listener_pauses", pending.pauses),
            ("regions_mapped", mapped),
            ("regions_attached", attached),
            ("regions_by_packet", by_packet),
            ("looks_at_control_sockets", schedule.looks),
            ("watched", schedule.is_watched().into()),
        ]
    }

    /// Whether a process that the job admits listens at the address of `peer` now. It costs three
    /// system calls.
    pub fn is_here(&self, peer: FunctionAddress) -> bool {
        !planted("nobody-is-here") && self.local.is_here(peer)
    }

    /// The complete poll.
    #[inline(never)]
    fn poll_all(&mut self, sink: &mut impl Sink, budget: usize) -> usize {
        let mut taken = self.lanes.serve(sink, budget);
        if self.lanes.doorbell.is_rung() {
            let links = &mut self.links;
            self.lanes.answer_doorbell(|lane| links.rang(lane));
            if taken == 0 {
                taken = self.lanes.serve(sink, budget);
            }
        }
        if !self.lanes.violators.is_empty() {
            self.close_violators();
        }
        if self.schedule.is_due() {
            self.check(sink, taken);
        }
        self.packets_received += taken as u64;
        if taken == 0 {
            std::hint::spin_loop();
        }
        taken
    }

    #[cold]
    fn close_violators(&mut self) {
        for number in std::mem::take(&mut self.lanes.violators) {
            self.links.fail(&mut self.lanes, number, Status::ProtocolViolation);
        }
    }

    /// Checks everything that is not a packet, if it is time: control sockets, deaths, deadlines.
    /// It is rare, and the only place that makes system calls while a function is polled. It makes
    /// none while only packets come. `taken`: packets that this poll has for the program.
    #[cold]
    fn check(&mut self, sink: &mut impl Sink, taken: usize) {
        if !self.schedule.begin_check(self.links.urgent, taken) {
            return;
        }
        if std::mem::take(&mut self.schedule.asleep) {
            self.lanes.doorbell.end_sleep();
            self.links.end_sleep();
        }
        self.links.begin_check(&mut self.lanes);
        for source in self.schedule.take_events(&self.local.epoll) {
            match source {
                Source::Listener => self.accept(),
                Source::PendingPeer(slot) => {
                    if let Some(hello) = self.connector.hear_pending(slot) {
                        self.welcome(hello);
                    }
                }
                Source::Link(number) => self.hear(number),
                Source::Death(number) => self.links.see_death(&mut self.lanes, number),
                Source::Tick => {
                    if self.connector.tick() {
                        self.accept();
                    }
                }
            }
        }
        self.connector.retry(&mut self.links, &mut self.lanes);
        self.lanes.park_idle();
        self.links.tidy(LINGER);
        let (links, lanes) = (&self.links, &self.lanes);
        let is_up = |link| links.get(link).and_then(Link::up).is_some();
        self.regions
            .review_quarantine(|link, index| is_up(link) && lanes.busy_region(link) == Some(index));
        self.links.report_down(&mut self.lanes, sink);
        sink.tick(&self.counter_rows());
    }

    /// Accepts connections that wait at the listener.
    fn accept(&mut self) {
        /// Maximum in one check. Other work comes between two checks.
        const IN_ONE_CHECK: u32 = 64;
        for _ in 0..IN_ONE_CHECK {
            match self.connector.accept() {
                Accepted::Hello(hello) => self.welcome(hello),
                Accepted::Other => {}
                Accepted::NoMore => return,
            }
        }
    }

    fn welcome(&mut self, hello: Hello) {
        // The socket of an earlier link tells whether its peer is gone.
        if let Some(known) = self.links.to(hello.from()) {
            self.hear(known);
        }
        self.connector.welcome(&mut self.links, &mut self.lanes, hello);
    }

    /// Reads the control messages of a link.
    fn hear(&mut self, number: u32) {
        // Enough for any orderly peer in one check. The rest of a flood waits for the next check.
        for _ in 0..64 {
            match self.links.receive(&mut self.lanes, number) {
                Received::Nothing | Received::Closed => return,
                Received::Garbage => {}
                Received::Message(message, fds) => {
                    self.obey(number, message, fds);
                    // A Kick is usually alone. The next check finds messages behind it.
                    if message == Control::Kick {
                        return;
                    }
                }
            }
        }
    }

    fn obey(&mut self, number: u32, message: Control, mut fds: Vec<OwnedFd>) {
        let ShmTransport { connector, links, lanes, regions, .. } = self;
        match message {
            Control::Kick => {
                links.rang(number);
                lanes.look_at(number);
            }
            Control::Ask { index, key } => {
                let (answer, fd) = regions.answer(index, key);
                links.send_control(number, answer, fd);
            }
            Control::Answer { index, key, length, writable } => {
                if let Some(up) = links.get_mut(number).and_then(Link::up_mut) {
                    up.regions.take_answer((index, key, length, writable), fds.pop());
                }
            }
            Control::WrongKey { .. } => regions.wrong_keys += 1,
            Control::Welcome(peer) => connector.welcomed(links, lanes, number, peer, &fds),
            Control::Refuse(why, version) => connector.refused(links, lanes, number, why, version),
            Control::Hello(_) => links.fail(lanes, number, Status::ProtocolViolation),
        }
    }

    /// Parks all lanes and announces sleep. `false`: there is something to do first.
    ///
    /// Before sleep every lane is parked, so that each sender must ring. A sender that finds the
    /// sleep announced wakes the sleeper by a message on the control socket, which the sleeper's
    /// epoll descriptor sees.
    ///
    /// Two processes that sleep between any two messages make two system calls for each: one wakes,
    /// one sleeps. All other work waits until the program has its message and has answered it. So
    /// the socket is read afterwards. The lanes stay parked while they deliver a few messages,
    /// because parking a lane needs a barrier, which interrupts the sender.
    fn prepare_sleep(&mut self) -> bool {
        if !self.links.downs.is_empty() {
            self.schedule.hurry();
            return false;
        }
        if self.links.announce_waiting() || !self.lanes.prepare_sleep() {
            return false;
        }
        step("asleep");
        self.schedule.fall_asleep();
        true
    }

    fn sleep_until(&mut self, deadline: Option<Instant>) -> Result<(), Error> {
        if !self.prepare_sleep() {
            return Ok(());
        }
        // Neither a peer that does not exist yet nor pages to give back ring a bell: wake up for
        // them by time.
        let nap = match (self.links.is_setting_up(), self.links.tidy(LINGER)) {
            (true, _) => Some(Duration::from_millis(2)),
            (false, true) => Some(LINGER),
            (false, false) => None,
        };
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        self.schedule.sleep(&self.local.epoll, left.into_iter().chain(nap).min())
    }

    /// Simulates SIGSTOP between the first and the last store of a packet (1), or its end (0).
    #[cfg(test)]
    pub(crate) fn set_intent(&self, link: LinkId, intent: u64) {
        let up = self.links.get(link.0).and_then(Link::up).expect("it is up");
        up.set_intent(self.local.pool(), intent);
    }
}

impl Transport for ShmTransport {
    fn address(&self) -> FunctionAddress {
        self.local.address
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
        let (links, lanes) = (&mut self.links, &mut self.lanes);
        self.connector.connect(links, lanes, peer, patience).map(LinkId)
    }

    fn close(&mut self, link: LinkId) {
        self.links.close(&mut self.lanes, link.0);
    }

    fn is_up(&self, link: LinkId) -> bool {
        self.links.get(link.0).is_some_and(|link| link.up().is_some())
    }

    #[inline]
    fn watch_gate(&mut self, link: LinkId, queue_pair: u32) -> Option<Gate> {
        Some(self.links.up_mut(link.0)?.watch_gate(queue_pair))
    }

    fn set_gate(&mut self, queue_pair: u32, gate: Gate) {
        self.gates.set_gate(gate_index(queue_pair), gate as u8);
        if gate == Gate::Open {
            self.lanes.call_senders();
        }
    }

    // Always inlined: the header stays in registers. As an argument it would be written in parts
    // and read as words, which defeats store forwarding.
    #[inline(always)]
    fn send(
        &mut self,
        link: LinkId,
        header: PacketHeader,
        head: &[u8],
        body: View<'_>,
    ) -> Result<Receipt, SendError> {
        self.links.send(link.0, header, head, body)
    }

    #[inline(always)]
    fn send_message(
        &mut self,
        link: LinkId,
        header: PacketHeader,
        head: &[u8],
        body: View<'_>,
    ) -> Option<Receipt> {
        self.links.send_message(link.0, header, head, body)
    }

    #[inline(always)]
    fn carries_batches(&self, _link: LinkId) -> bool {
        true
    }

    /// The fast path for a pair that is alone. All other work is left to `poll_all`, in this call
    /// or in the next.
    #[inline(always)]
    fn poll(&mut self, sink: &mut impl Sink, budget: usize) -> usize {
        match self.lanes.poll_alone(sink) {
            Some(1) => {
                self.packets_received += 1;
                1
            }
            Some(_) if !self.schedule.is_due() => 0,
            _ => self.poll_all(sink, budget),
        }
    }

    fn look_around(&mut self, sink: &mut impl Sink) -> bool {
        // A sleeper that has just been woken: the next poll looks, once the program has answered.
        if !self.schedule.asleep {
            self.check(sink, 0);
        }
        self.schedule.is_rare()
    }

    fn allocate(&mut self, length: usize, rights: Rights) -> Result<Memory, Error> {
        self.regions.allocate(length, rights)
    }

    fn share(&mut self, key: RemoteKey, memory: &Memory, rights: Rights) {
        self.regions.share(key, memory, rights);
    }

    fn unshare(&mut self, key: RemoteKey) {
        self.regions.unshare(key);
    }

    fn export(&mut self, key: RemoteKey, memory: &Memory, rights: Rights) -> Result<(), Error> {
        self.regions.export(key, memory, rights);
        Ok(())
    }

    fn retract(&mut self, key: RemoteKey) {
        self.regions.retract(key, || self.lanes.busy_with(key.index));
    }

    fn window(&self, link: LinkId, key: RemoteKey) -> Option<Window> {
        self.links.get(link.0)?.up()?.regions.window(key)
    }

    fn put(&mut self, link: LinkId, key: RemoteKey, offset: u64, from: View<'_>) -> Direct {
        self.links.access(link.0, |up| up.put(key, offset, from))
    }

    #[inline]
    fn get(&mut self, link: LinkId, key: RemoteKey, offset: u64, into: View<'_>) -> Direct {
        self.links.access(link.0, |up| up.get(key, offset, into))
    }

    fn atomic(
        &mut self,
        link: LinkId,
        key: RemoteKey,
        offset: u64,
        operation: AtomicOperation,
    ) -> Direct {
        self.links.access(link.0, |up| up.atomic(key, offset, |word| operation.apply(word, 0)))
    }

    fn wrong_keys(&self) -> u64 {
        self.regions.wrong_keys
    }

    fn counters(&self, rows: &mut Vec<(&'static str, u64)>) {
        rows.extend(self.counter_rows());
    }

    fn wait_fd(&self) -> BorrowedFd<'_> {
        self.local.epoll.as_fd()
    }

    fn arm(&mut self) -> bool {
        let armed = self.prepare_sleep();
        if armed {
            // The program may not poll again for long.
            self.links.tidy(Duration::ZERO);
        }
        armed
    }

    fn sleep(&mut self, timeout: Option<Duration>) -> Result<(), Error> {
        self.sleep_until(timeout.map(|timeout| Instant::now() + timeout))
    }
}
