//! The state of one link: both ends of its two channels, and what is known of the peer.

use bellwire_wire::frame::finish::CLOSE_BYTES;
use bellwire_wire::frame::header::{FLAG_DISCARDS, FLAG_LOSE, FrameHeader, HELD_BACK_UNIT_NS};
use bellwire_wire::frame::section::RECEIVED_FIXED_BYTES;
use bellwire_wire::frame::{FRAME_OVERHEAD_BYTES, FunctionId};

use super::acknowledge::Acknowledge;
use super::backlog::Backlog;
use super::congestion::Congestion;
use super::early::EarlySet;
use super::flight::{Flight, Sent};
use super::gates::LinkGates;
use super::parts::Parts;
use super::paths::Paths;
use super::rtt::RoundTrip;
use super::stream::SendStream;
use super::{Channel, Config, Counters, PathId, PeerId, Recovery, Why};
use crate::canary::planted;

/// "Never" as a time.
pub(super) const NEVER: u64 = u64::MAX;
/// Probes of a silent peer per keep-alive interval.
const PROBES_PER_INTERVAL: u64 = 5;
/// Initial value of `attempts_to_shrink`; each shrinking adds two.
const ATTEMPTS_BEFORE_SHRINKING: u32 = 6;
/// Bytes of a Close.
const CLOSE_FRAME_BYTES: usize = FRAME_OVERHEAD_BYTES + CLOSE_BYTES;
/// After this many unanswered Opens (0.6 s after the first) the peer counts as absent from where
/// they went.
const OPENS_IN_VAIN: u32 = 8;
/// First wait before an Open or Accept is repeated, in ns; it doubles up to 64 times this value.
const FIRST_REPEAT_NS: u64 = 5_000_000;
/// The frame length is not halved below this on suspicion of a smaller path MTU.
const LEAST_SHRUNK_BYTES: usize = 512;
/// Longer frames are tried again after this time, in ns.
const REGROW_NS: u64 = 10_000_000_000;
/// Largest number of later frames of a path that must have arrived before one counts as lost.
const MOST_REORDERED: u32 = 64;

/// Where a link is in its life. PROTOCOL.md draws the transitions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// We asked, and wait for an answer.
    Opening,
    /// The peer asked and we answered. A frame with our token will confirm that it is there now.
    Accepting,
    /// Packets can be sent.
    Up,
    /// Our user has closed it; queued packets are still sent.
    Closing,
    /// The link has ended.
    Down(Why),
}

pub(super) struct Link {
    pub id: PeerId,
    pub peer: FunctionId,
    pub state: State,

    /// Frames to us carry `token`; frames to the peer carry `peer_token`.
    pub token: u64,
    pub peer_token: u64,
    pub peer_incarnation: u64,
    pub peer_opening: u64,
    /// When to forget the peer's values above, unless the link is up by then.
    pub forget_ns: u64,
    pub opening: u64,
    /// Value of `links_up` when this link came up, itself included; 0 until then.
    pub came_up: u64,
    /// The version and the features that both agreed on.
    pub version: u8,
    pub features: u32,
    /// When to give up, in a state that must end.
    pub give_up_ns: u64,
    /// How long to ask, if that time begins with the first Open.
    pub patience_ns: Option<u64>,
    /// When to repeat Open or Accept, and how often it was sent.
    pub repeat_ns: u64,
    pub repeats: u32,
    /// When Open or Accept was last sent.
    pub asked_ns: u64,
    pub open_due: bool,
    pub accept_due: bool,

    /// Of requests, responses and news.
    pub streams: [SendStream; 3],
    pub flight: Flight,
    pub round_trip: RoundTrip,
    pub congestion: Congestion,
    pub paths: Paths,
    pub window: u32,
    /// Longest frame sent now, and the agreed limit.
    pub frame_bytes: usize,
    pub frame_bytes_agreed: usize,
    /// Longest frame that the peer takes.
    pub peer_frame_bytes: usize,
    pub shrunk_ns: u64,
    /// Transmissions of the oldest frame after which it may be too long for the path.
    attempts_to_shrink: u32,
    /// The frame that goes in parts now: its number, the bytes sent, and its path.
    pub part: Option<(u32, usize, u8)>,
    pub peer_packet_bytes: u32,
    pub timeout_ns: u64,
    pub silent_timeouts: u32,
    /// When frames were last declared lost.
    repaired_ns: u64,
    /// Later frames of the same path that must have arrived before a frame counts as lost.
    reordered: u32,
    repetitions_heard: u32,
    resent_early: bool,
    /// Packets in `flight` and in `streams`, for the counters.
    pub packets_unacknowledged: u64,
    /// Requests queued so far, and how many of them the peer's user has taken or its endpoint
    /// keeps.
    pub requests_queued: u64,
    pub requests_delivered: u64,
    /// Our user has closed the link, and packets for it were discarded.
    pub has_discarded: bool,
    /// The peer's user has closed the link: an acknowledged packet no longer counts as delivered.
    discards: bool,

    pub expected: u32,
    /// The parts received of a frame that comes in parts.
    pub parts: Parts,
    pub first_sequence: u32,
    pub early: EarlySet,
    pub backlogs: [Backlog; 2],
    pub acknowledge: Acknowledge,
    pub repetitions: u32,
    pub repetitions_told: u32,
    pub advertised: [u32; 2],
    /// The span of [`Shares`](super::share::Shares) in which the peer last had more to send.
    pub sent_in_span: u32,
    /// The gap that was reported last, by the number then expected.
    pub lose_reported: Option<u32>,
    /// The gap that caused the last go-back, by the oldest unacknowledged number then.
    went_back: Option<u32>,
    /// An earlier link from the same function whose packets must be taken first.
    pub after: Option<PeerId>,

    pub gates: LinkGates,

    pub keep_alive_ns: u64,
    pub heard_ns: u64,
    pub probed_ns: u64,
    pub probes: u32,
    pub probe_due: bool,

    /// Whether the link is on the endpoint's lists, and which events its user has not been told.
    pub is_ready: bool,
    pub is_deliverable: bool,
    pub has_event: bool,
    pub up_untold: bool,
    pub down_untold: bool,
    pub down_told: bool,
    pub gates_untold: bool,
}

impl Link {
    pub fn new(
        config: &Config,
        id: PeerId,
        peer: FunctionId,
        state: State,
        path: PathId,
        token: u64,
        now_ns: u64,
    ) -> Self {
        let first_number = first_number(token);
        let mut paths = Paths::new(path);
        if config.recovery == Recovery::GoBack {
            paths.narrow_for_good();
        }
        let backlog = || Backlog::new(config.receive_bytes, config.packet_bytes, first_number);
        let stream = || SendStream::new(config.send_bytes);
        Link {
            id,
            peer,
            state,
            token,
            peer_token: 0,
            peer_incarnation: 0,
            peer_opening: 0,
            forget_ns: NEVER,
            opening: 0,
            came_up: 0,
            version: 0,
            features: 0,
            give_up_ns: NEVER,
            patience_ns: None,
            repeat_ns: NEVER,
            repeats: 0,
            asked_ns: 0,
            open_due: false,
            accept_due: false,
            streams: [stream(), stream(), SendStream::new(config.send_bytes.min(1 << 14))],
            flight: Flight::new(first_number),
            round_trip: RoundTrip::new(config.timeout_ns, config.first_timeout_ns),
            congestion: Congestion::new(
                config.window_frames,
                config.congestion.then_some(config.target_delay_ns),
            ),
            paths,
            window: config.window_frames as u32,
            frame_bytes: config.frame_bytes,
            frame_bytes_agreed: config.frame_bytes,
            peer_frame_bytes: config.frame_bytes,
            shrunk_ns: 0,
            attempts_to_shrink: ATTEMPTS_BEFORE_SHRINKING,
            part: None,
            peer_packet_bytes: 0,
            timeout_ns: NEVER,
            silent_timeouts: 0,
            repaired_ns: 0,
            reordered: 1,
            repetitions_heard: 0,
            resent_early: false,
            packets_unacknowledged: 0,
            requests_queued: 0,
            requests_delivered: 0,
            has_discarded: false,
            discards: false,
            expected: 0,
            parts: Parts::new(),
            first_sequence: first_number,
            early: EarlySet::new(config.window_frames),
            backlogs: [backlog(), backlog()],
            acknowledge: Acknowledge::new(config.acknowledge_every, config.acknowledge_delay_ns),
            repetitions: 0,
            repetitions_told: 0,
            advertised: [first_number; 2],
            sent_in_span: 0,
            lose_reported: None,
            went_back: None,
            after: None,
            gates: LinkGates::new(),
            keep_alive_ns: config.keep_alive_ns,
            heard_ns: now_ns,
            probed_ns: now_ns,
            probes: 0,
            probe_due: false,
            is_ready: false,
            is_deliverable: false,
            has_event: false,
            up_untold: false,
            down_untold: false,
            down_told: false,
            gates_untold: false,
        }
    }

    /// Whether packets can be sent.
    #[inline]
    pub fn is_up(&self) -> bool {
        self.state == State::Up
    }

    /// Whether sequenced frames are sent and taken.
    #[inline]
    pub fn is_running(&self) -> bool {
        matches!(self.state, State::Up | State::Closing)
    }

    /// Sets the time at which Open or Accept is repeated.
    pub fn wait_to_ask(&mut self, now_ns: u64) {
        if let Some(patience_ns) = self.patience_ns.take() {
            self.give_up_ns = now_ns.saturating_add(patience_ns);
        }
        self.repeat_ns = now_ns + (FIRST_REPEAT_NS << self.repeats.min(6));
        self.repeats += 1;
    }

    /// Another place claims to be the peer and has shown that it receives there. Asks the peer for
    /// a sign of life at once, and then at the rate for a silent peer. `true`: the peer has not
    /// answered where we ask for it.
    pub fn doubt(&mut self, now_ns: u64) -> bool {
        if self.state == State::Opening {
            return self.repeats >= OPENS_IN_VAIN;
        }
        if self.probes == 0 && now_ns >= self.probed_ns + self.keep_alive_ns / PROBES_PER_INTERVAL {
            self.probes = 1;
            self.probed_ns = now_ns;
            self.probe_due = true;
        }
        false
    }

    /// When the link needs service next.
    #[inline]
    pub fn deadline_ns(&self) -> u64 {
        match self.state {
            State::Down(_) => NEVER,
            State::Opening | State::Accepting => self.give_up_ns.min(self.repeat_ns),
            State::Up | State::Closing => self
                .timeout_ns
                .min(self.keep_alive_deadline_ns())
                .min(self.acknowledge.deadline_ns())
                .min(self.give_up_ns),
        }
    }

    /// When the keep-alive interval of a silent peer ends.
    #[inline]
    pub fn keep_alive_deadline_ns(&self) -> u64 {
        if planted("reliable-no-keep-alive") {
            return NEVER;
        }
        let interval_ns = if self.probes == 0 {
            self.keep_alive_ns
        } else {
            self.keep_alive_ns / PROBES_PER_INTERVAL
        };
        self.heard_ns.max(self.probed_ns).saturating_add(interval_ns)
    }

    /// Whether all that was queued is acknowledged.
    pub fn is_drained(&self) -> bool {
        self.flight.len() == 0 && self.streams.iter().all(SendStream::is_empty)
    }

    /// Whether all that was queued is sent, so that the user can only wait.
    #[inline]
    pub fn is_all_sent(&self) -> bool {
        self.flight.lost == 0 && self.streams.iter().all(|stream| stream.waiting_bytes() == 0)
    }

    /// Whether a frame must go now, as far as the window allows.
    #[inline]
    pub fn has_something(&self) -> bool {
        self.open_due
            || self.accept_due
            || self.is_running()
                && (self.acknowledge.due || self.probe_due || self.may_send() && self.has_data())
    }

    /// Whether the windows allow one more frame.
    #[inline]
    pub fn may_send(&self) -> bool {
        self.flight.in_flight < self.congestion.frames().min(self.window)
            || planted("reliable-ignore-window")
    }

    #[inline]
    fn has_data(&self) -> bool {
        self.flight.lost > 0
            || ((self.flight.len() as u32) < self.window || planted("reliable-ignore-window"))
                && (self.gates.is_owing()
                    || self
                        .streams
                        .iter()
                        .any(|stream| stream.waiting_bytes() > 0 && !stream.stopped))
    }

    /// Sets the credit that the next frame advertises. `share` is the peer's share of the credit
    /// now.
    #[inline]
    pub fn advertise(&mut self, share: u32) {
        for (backlog, advertised) in self.backlogs.iter().zip(&mut self.advertised) {
            *advertised = backlog.credit(share, *advertised);
        }
    }

    /// The path by which the peer was last heard.
    pub fn way_back(&mut self) -> PathId {
        let back = self.paths.back(CLOSE_FRAME_BYTES);
        self.paths.at(back).id
    }

    /// A sign of life.
    #[inline]
    pub fn heard(&mut self, now_ns: u64) {
        self.heard_ns = now_ns;
        self.probes = 0;
        self.silent_timeouts = 0;
    }

    /// Takes in the acknowledgement and the credit of a frame. `received` is the selective
    /// acknowledgement. `false`: it acknowledges a frame that was never sent.
    #[inline]
    pub fn acknowledged(
        &mut self,
        header: &FrameHeader,
        received: Option<&[u8]>,
        config: &Config,
        counters: &mut Counters,
        now_ns: u64,
    ) -> bool {
        for (stream, credit) in self.streams.iter_mut().zip(header.credit) {
            if stream.grant(credit) && stream.stopped {
                stream.stopped = false;
                counters.gos += 1;
            }
        }
        let advance = header.acknowledged.wrapping_sub(self.flight.oldest);
        if advance as usize > self.flight.len() {
            // A reordered older acknowledgement says nothing new.
            return (advance as i32) < 0;
        }
        if advance > 0 {
            self.attempts_to_shrink = ATTEMPTS_BEFORE_SHRINKING;
        }
        self.discards |=
            header.flags & FLAG_DISCARDS != 0 && !planted("reliable-discarded-is-delivered");
        let limited = self.flight.in_flight + 1 >= self.congestion.frames().min(self.window);
        let mut newest: Option<Sent> = None;
        let mut count = 0;
        for _ in 0..advance {
            let Some(sent) = self.flight.pop() else { break };
            for (index, (stream, piece)) in self.streams.iter_mut().zip(&sent.pieces).enumerate() {
                if piece.length > 0 {
                    stream.release(piece);
                    if index == Channel::Request as usize
                        && (!self.discards || planted("reliable-deliver-discarded"))
                    {
                        self.requests_delivered += piece.packets as u64;
                    }
                    if index < 2 {
                        counters.packets_acknowledged += piece.packets as u64;
                        self.packets_unacknowledged -= piece.packets as u64;
                    }
                }
            }
            count += self.arrived(sent, &mut newest, now_ns);
        }
        if let Some(received) = received {
            count += self.take_bitmap(received, &mut newest, now_ns);
        }
        if count > 0 {
            self.progress(header, count, limited, newest, now_ns);
        }
        if received.is_some() || header.flags & FLAG_LOSE != 0 {
            self.find_losses(header, received, config, counters, now_ns);
        }
        true
    }

    /// Records that a frame has arrived at the peer; 1 if that is news.
    #[inline]
    fn arrived(&mut self, sent: Sent, newest: &mut Option<Sent>, now_ns: u64) -> u32 {
        use super::flight::SentState;
        if sent.state == SentState::Received {
            return 0;
        }
        let path = self.paths.at(sent.path);
        if sent.state == SentState::InFlight {
            path.in_flight -= 1;
        }
        // Of several transmissions the last one arrived only if it went long enough ago (RFC 8985,
        // 6.2). Even then its round trip stays unknown (Karn).
        let is_last = sent.attempts == 1
            || now_ns.saturating_sub(sent.sent_at_ns) >= self.round_trip.minimum_ns;
        if is_last {
            path.arrive(sent.stamp);
        }
        if sent.attempts == 1 {
            path.prove();
        }
        if sent.attempts == 1 && newest.is_none_or(|newest| sent.sent_at_ns >= newest.sent_at_ns) {
            *newest = Some(sent);
        }
        1
    }

    fn take_bitmap(&mut self, received: &[u8], newest: &mut Option<Sent>, now_ns: u64) -> u32 {
        let Some((fixed, bitmap)) = received.split_first_chunk::<RECEIVED_FIXED_BYTES>() else {
            return 0;
        };
        let repetitions = u32::from_le_bytes(*fixed);
        if repetitions != self.repetitions_heard {
            self.repetitions_heard = repetitions;
            // The retransmitted frame had not been lost: the path reorders. Wait for more later
            // frames before the next gap counts as loss.
            if self.resent_early {
                self.reordered = (self.reordered * 2).min(MOST_REORDERED);
                self.resent_early = false;
            }
        }
        let mut count = 0;
        for (byte, &bits) in bitmap.iter().enumerate() {
            let mut bits = bits;
            while bits != 0 {
                let index = byte * 8 + bits.trailing_zeros() as usize + 1;
                bits &= bits - 1;
                if let Some(sent) = self.flight.received(index) {
                    count += self.arrived(sent, newest, now_ns);
                }
            }
        }
        count
    }

    #[inline]
    fn progress(
        &mut self,
        header: &FrameHeader,
        count: u32,
        limited: bool,
        newest: Option<Sent>,
        now_ns: u64,
    ) {
        self.round_trip.backoff = 0;
        let mut round_trip_ns = self.round_trip.smooth_ns;
        // Frames sent before a loss was noticed may have waited for the repair. Their round trips
        // say nothing about the path.
        if let Some(newest) = newest.filter(|newest| newest.sent_at_ns >= self.repaired_ns) {
            let held_back_ns = header.held_back as u64 * HELD_BACK_UNIT_NS;
            round_trip_ns = now_ns.saturating_sub(newest.sent_at_ns).saturating_sub(held_back_ns);
            self.round_trip.sample(round_trip_ns, now_ns);
        }
        self.congestion.acknowledged(
            count,
            round_trip_ns,
            self.round_trip.minimum_ns.min(round_trip_ns),
            limited,
            now_ns,
        );
        self.timeout_ns = NEVER;
        self.arm_timeout(now_ns);
    }

    /// Arms the timeout if there is something that it must recover (H-17).
    #[inline]
    pub fn arm_timeout(&mut self, now_ns: u64) {
        let waits = self.flight.len() > 0 || self.streams.iter().any(|stream| stream.stopped);
        if !waits {
            self.timeout_ns = NEVER;
        } else if self.timeout_ns == NEVER && !planted("reliable-no-timeout") {
            self.timeout_ns = now_ns + self.round_trip.timeout_ns();
        }
    }

    /// Finds the missing frames by what the peer has (H-14).
    #[cold]
    fn find_losses(
        &mut self,
        header: &FrameHeader,
        received: Option<&[u8]>,
        config: &Config,
        counters: &mut Counters,
        now_ns: u64,
    ) {
        let is_lose = header.flags & FLAG_LOSE != 0;
        counters.loses_received += is_lose as u64;
        let empty = received.is_none_or(|received| received.len() <= RECEIVED_FIXED_BYTES);
        if is_lose && empty {
            self.paths.narrow(now_ns);
        }
        let Link { flight, paths, congestion, went_back, .. } = self;
        let mut sent_at_ns = None;
        let count = match config.recovery {
            // Go back once for each gap: a peer that keeps early frames may report it often. A
            // timeout covers the rest.
            Recovery::GoBack if is_lose && *went_back != Some(flight.oldest) => {
                *went_back = Some(flight.oldest);
                flight.lose(
                    |_| true,
                    |sent| {
                        paths.at(sent.path).in_flight -= 1;
                        sent_at_ns = Some(sent.sent_at_ns);
                    },
                )
            }
            Recovery::GoBack => 0,
            Recovery::Selective => {
                let mut arrived = [0; super::PATHS];
                for (index, arrived) in arrived.iter_mut().enumerate() {
                    *arrived = paths.at(index as u8).arrived;
                }
                // Either the peer misses the oldest and had no room for a later one, or the last
                // frame of all was lost.
                let oldest = flight.oldest;
                let round_trip_ns = self.round_trip.smooth_ns * 2;
                let stuck = is_lose && empty && header.acknowledged == oldest;
                let reordered = self.reordered;
                let mut is_first = true;
                // A dead path gives no evidence about itself. Progress on other paths does (H-29).
                let patience_ns = self.round_trip.patience_ns();
                let may_be_dead = paths.are_several();
                let mut dead = [false; super::PATHS];
                let count = flight.lose(
                    |sent| {
                        let first = core::mem::take(&mut is_first);
                        let behind = arrived[sent.path as usize].wrapping_sub(sent.stamp) as i32;
                        let age_ns = now_ns.saturating_sub(sent.sent_at_ns);
                        let is_stranded = may_be_dead && age_ns > patience_ns;
                        dead[sent.path as usize] |= is_stranded && behind < 0;
                        behind >= reordered as i32
                            || is_stranded
                            || stuck && first && age_ns > round_trip_ns
                    },
                    |sent| {
                        paths.at(sent.path).in_flight -= 1;
                        sent_at_ns = Some(sent_at_ns.unwrap_or(0).max(sent.sent_at_ns));
                    },
                );
                for (index, _) in dead.iter().enumerate().filter(|(_, dead)| **dead) {
                    paths.at(index as u8).fail(patience_ns, now_ns);
                }
                count
            }
        };
        if count > 0 {
            self.repaired_ns = now_ns;
            self.resent_early = true;
            congestion.lost(sent_at_ns.unwrap_or(now_ns), now_ns);
        }
    }

    /// The wait for an acknowledgement, or for credit, timed out. `false`: the limit of retries is
    /// exceeded.
    pub fn timed_out(&mut self, config: &Config, counters: &mut Counters, now_ns: u64) -> bool {
        counters.timeouts += 1;
        self.silent_timeouts += 1;
        self.repaired_ns = now_ns;
        self.round_trip.backoff += 1;
        let timeout_ns = self.round_trip.timeout_ns();
        let Link { flight, paths, .. } = self;
        let mut used = [false; super::PATHS];
        let lost = flight.lose(
            |_| true,
            |sent| {
                let path = paths.at(sent.path);
                path.in_flight -= 1;
                // Nothing sent later by the same path has arrived.
                used[sent.path as usize] |= (path.arrived.wrapping_sub(sent.stamp) as i32) < 0;
            },
        );
        for (index, _) in used.iter().enumerate().filter(|(_, used)| **used) {
            paths.at(index as u8).fail(timeout_ns, now_ns);
        }
        if lost > 0 {
            paths.timed_out(timeout_ns, now_ns);
            self.congestion.timed_out(now_ns);
        }
        let attempts = self.flight.at(0).map_or(0, |oldest| oldest.attempts as u32);
        if attempts >= self.attempts_to_shrink {
            self.attempts_to_shrink = attempts + 2;
            self.shrink(now_ns);
        }
        if self.flight.len() == 0 {
            self.probe_due = true;
        }
        self.timeout_ns = NEVER;
        self.arm_timeout(now_ns);
        self.silent_timeouts <= config.retries && attempts / 8 <= config.retries
    }

    /// A long frame that never arrives at a living peer may exceed a hop's MTU (RFC 4821, 7.7):
    /// halve the length.
    fn shrink(&mut self, now_ns: u64) {
        self.frame_bytes = (self.frame_bytes / 2).max(LEAST_SHRUNK_BYTES).min(self.frame_bytes);
        self.shrunk_ns = now_ns;
    }

    /// Sets the longest frame: the smaller of the peer's limit and `ours`, the network's.
    pub fn agree_on_frame_bytes(&mut self, ours: usize) {
        self.frame_bytes = ours.min(self.peer_frame_bytes);
        self.frame_bytes_agreed = self.frame_bytes;
        self.part = None;
    }

    /// Tries longer frames again after [`REGROW_NS`].
    pub fn regrow(&mut self, now_ns: u64) {
        if self.frame_bytes < self.frame_bytes_agreed
            && now_ns.saturating_sub(self.shrunk_ns) > REGROW_NS
        {
            self.frame_bytes = (self.frame_bytes * 2).min(self.frame_bytes_agreed);
            self.shrunk_ns = now_ns;
        }
    }
}

/// First frame number and first sum of credit that the owner of `token` counts. Half of all links
/// start within 256 of the wrap, so that wrapping happens every day.
pub(super) fn first_number(token: u64) -> u32 {
    let number = (token >> 32) as u32;
    if token & 1 << 31 != 0 { number | 0xffff_ff00 } else { number }
}
