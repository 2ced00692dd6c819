//! One link: the state of its life, and the owners of its parts.
//!
//! - [`Opening`]: what both sides said of themselves in the handshake.
//! - [`Paths`]: the interfaces by which frames go.
//! - [`PathMtu`]: the longest frame that goes.
//! - [`Liveness`]: whether the peer answers.
//! - [`Sender`]: what is queued and in flight, with [`LossDetection`](loss::LossDetection).
//! - [`Receiver`]: which frame comes next, and what to acknowledge.
//! - [`Backlogs`]: packets that the user has not taken, and the credit for more.
//! - [`LinkGates`]: which queue pairs take sends.
//! - [`Notices`]: what the user has not been told.

mod backlog;
mod congestion;
mod early;
mod flight;
mod liveness;
mod loss;
mod opening;
mod parts;
mod path_mtu;
mod paths;
mod receiver;
mod rtt;
mod sender;
mod stream;
mod writer;

use bellwire_wire::frame::check::CHECK_BYTES;
use bellwire_wire::frame::finish::CLOSE_BYTES;
use bellwire_wire::frame::header::{
    FLAG_ANSWER, FLAG_DISCARDS, FLAG_LOSE, FrameHeader, FrameKind, HELD_BACK_UNIT_NS,
};
use bellwire_wire::frame::open::OpenBody;
use bellwire_wire::frame::record::{NEWS_BYTES, News};
use bellwire_wire::frame::section::{Section, SectionKind};
use bellwire_wire::frame::{FRAME_OVERHEAD_BYTES, FunctionId};

use super::gates::{FunctionGates, LinkGates};
use super::interface::NEVER;
use super::share::Shares;
use super::{Channel, Config, Counters, DownReason, PathId, PeerId, Recovery, Sink, Transmit};
use crate::canary::planted;
use backlog::Backlogs;
use liveness::Liveness;
use path_mtu::PathMtu;
use sender::Written;

pub(super) use early::EarlyFrames;
pub(super) use opening::Opening;
pub(super) use paths::Paths;
pub(super) use receiver::{Arrival, Receiver};
pub(super) use sender::Sender;
pub(super) use writer::{Left, Writer};

/// Bytes of a Close.
const CLOSE_FRAME_BYTES: usize = FRAME_OVERHEAD_BYTES + CLOSE_BYTES;
/// How long a link that our user closed may take to send what was queued, in ns.
const LINGER_NS: u64 = 5_000_000_000;

/// Where a link is in its life. PROTOCOL.md draws the transitions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// We asked, and wait for an answer.
    Opening,
    /// The peer asked and we answered. A frame with our token will confirm that it is there now.
    Accepting,
    /// Packets can be sent.
    Up,
    /// Our user has closed it; queued packets are still sent, until this time at most.
    Closing { until_ns: u64 },
    /// The link has ended.
    Down(DownReason),
}

pub(super) struct Link {
    pub id: PeerId,
    pub peer: FunctionId,
    pub state: State,
    /// How many links had come up when this one did, itself included; 0 until then.
    pub came_up: u64,
    /// An earlier link from the same function that must end first, or whose packets must be taken
    /// first.
    pub predecessor: Option<PeerId>,
    /// The span of [`Shares`] in which the peer last had more to send.
    pub sent_in_span: u32,
    pub opening: Opening,
    pub paths: Paths,
    pub sender: Sender,
    pub receiver: Receiver,
    pub gates: LinkGates,
    pub backlogs: Backlogs,
    pub notices: Notices,
    pub path_mtu: PathMtu,
    pub liveness: Liveness,
}

/// Events of a link that its user has not been told.
#[derive(Default)]
pub(super) struct Notices {
    pub up: bool,
    pub gates: bool,
    pub down: bool,
    /// `down` was set, and is not set again.
    pub has_ended: bool,
}

impl Link {
    /// A link that is not up. Frames to us will carry the token of `opening`.
    pub fn new(
        config: &Config,
        id: PeerId,
        peer: FunctionId,
        state: State,
        path: PathId,
        opening: Opening,
        now_ns: u64,
    ) -> Self {
        let first_number = opening.first_number();
        Link {
            id,
            peer,
            state,
            came_up: 0,
            predecessor: None,
            sent_in_span: 0,
            opening,
            paths: Paths::new(path, config.recovery == Recovery::GoBack),
            sender: Sender::new(config, first_number),
            receiver: Receiver::new(config),
            gates: LinkGates::new(),
            backlogs: Backlogs::new(config, first_number),
            notices: Notices::default(),
            path_mtu: PathMtu::new(config.frame_bytes),
            liveness: Liveness::new(config.keep_alive_ns, now_ns),
        }
    }

    /// Starts a half-open link again under another token. Its paths stay.
    pub fn renew(&mut self, config: &Config, token: u64, number: u64, now_ns: u64) {
        let opening = self.opening.renewed(token, number, self.state == State::Opening);
        let path = self.paths.proved_id();
        let new = Link::new(config, self.id, self.peer, self.state, path, opening, now_ns);
        *self = Link { paths: self.paths, predecessor: self.predecessor, ..new };
    }

    /// Whether packets can be sent.
    #[inline]
    pub fn is_up(&self) -> bool {
        self.state == State::Up
    }

    /// Whether our user has closed it.
    #[inline]
    pub fn is_closing(&self) -> bool {
        matches!(self.state, State::Closing { .. })
    }

    /// Whether it has ended.
    #[inline]
    pub fn is_down(&self) -> bool {
        matches!(self.state, State::Down(_))
    }

    /// Whether sequenced frames are sent and taken.
    #[inline]
    pub fn is_running(&self) -> bool {
        matches!(self.state, State::Up | State::Closing { .. })
    }

    /// Asks the peer, too, on a link that the peer has asked for.
    pub fn ask_too(&mut self, give_up_ns: u64) {
        self.state = State::Opening;
        self.opening.open_due = true;
        self.opening.repeats = 0;
        self.opening.give_up_ns = give_up_ns;
    }

    /// The peer has confirmed the link; it is number `came_up` of all that came up.
    pub fn come_up(&mut self, came_up: u64, now_ns: u64) {
        if let Some(round_trip_ns) = self.opening.round_trip_ns(now_ns) {
            // One Open, one answer: the first round trip (RFC 6298 takes the handshake's, too).
            self.sender.round_trip.sample(round_trip_ns, now_ns);
        }
        self.state = State::Up;
        self.came_up = came_up;
        self.opening.open_due = false;
        self.paths.forget_guesses();
        self.liveness.heard(now_ns);
        self.notices.up = true;
    }

    /// Our user has closed it while it was up.
    pub fn close(&mut self, now_ns: u64) {
        self.state = State::Closing { until_ns: now_ns.saturating_add(LINGER_NS) };
    }

    /// Takes over the values of the peer's Open or Accept. `ours` is the network's MTU.
    pub fn learn(&mut self, config: &Config, ours: usize, header: &FrameHeader, open: &OpenBody) {
        self.opening.learn(config, open);
        self.sender.learn(config, header, open);
        self.receiver.expected = header.sequence;
        self.path_mtu.peer_bytes = open.frame_bytes as usize;
        self.agree_on_frame_bytes(ours);
    }

    /// Sets the longest frame: the smaller of the peer's limit and `ours`, the network's.
    pub fn agree_on_frame_bytes(&mut self, ours: usize) {
        self.path_mtu.agree(ours);
        // The length of the frame that goes in parts may have changed.
        self.sender.part = None;
    }

    /// Another place claims to be the peer and has shown that it receives there. Asks the peer for
    /// a sign of life at once, and then at the rate for a silent peer. `true`: the peer has not
    /// answered where we ask for it.
    pub fn doubt(&mut self, now_ns: u64) -> bool {
        if self.state == State::Opening {
            return self.opening.is_in_vain();
        }
        self.liveness.doubt(now_ns);
        false
    }

    /// The host at a path says that nobody receives there.
    pub fn refused(&mut self, path: PathId, now_ns: u64) {
        if self.is_running() && self.paths.ids().all(|id| id == path) {
            self.liveness.refused(now_ns);
        }
    }

    /// The peer asks for an acknowledgement with a frame. `sequence`: that of its data, if any.
    #[inline]
    pub fn asked(&mut self, sequence: Option<u32>) {
        let acknowledge = &mut self.receiver.acknowledge;
        match sequence == Some(self.receiver.expected) {
            true => acknowledge.want(self.sender.round_trip.smooth_ns),
            false => acknowledge.due = true,
        }
    }

    /// When the link needs service next.
    #[inline]
    pub fn deadline_ns(&self) -> u64 {
        let until_ns = match self.state {
            State::Down(_) => return NEVER,
            State::Opening | State::Accepting => return self.opening.deadline_ns(),
            State::Up => NEVER,
            State::Closing { until_ns } => until_ns,
        };
        self.sender
            .timeout_ns
            .min(self.liveness.deadline_ns())
            .min(self.receiver.acknowledge.deadline_ns())
            .min(until_ns)
    }

    /// Does what is due. Returns the reason if the link is over.
    pub fn run_timers(
        &mut self,
        config: &Config,
        counters: &mut Counters,
        now_ns: u64,
    ) -> Option<DownReason> {
        match self.state {
            State::Down(_) => return None,
            State::Opening | State::Accepting => {
                return self.opening.run_timer(self.state == State::Opening, now_ns);
            }
            State::Closing { until_ns } if now_ns >= until_ns => return Some(DownReason::Closed),
            State::Closing { .. } | State::Up => {}
        }
        if now_ns >= self.receiver.acknowledge.deadline_ns() {
            self.receiver.acknowledge.due = true;
        }
        if now_ns >= self.sender.timeout_ns && !self.timed_out(config, counters, now_ns) {
            return Some(DownReason::Dead);
        }
        self.path_mtu.regrow(now_ns);
        if now_ns >= self.liveness.deadline_ns() {
            if !self.liveness.probe(config.keep_alive_probes, now_ns) {
                return Some(DownReason::Dead);
            }
            counters.probes_sent += 1;
        }
        None
    }

    /// The wait for an acknowledgement, or for credit, timed out. `false`: the limit of retries is
    /// exceeded.
    fn timed_out(&mut self, config: &Config, counters: &mut Counters, now_ns: u64) -> bool {
        counters.timeouts += 1;
        let is_alive = self.liveness.timed_out(config.retries);
        let attempts = self.sender.timed_out(&mut self.paths, now_ns);
        self.path_mtu.timed_out(attempts, now_ns);
        if self.sender.flight.is_empty() {
            self.liveness.probe_due = true;
        }
        is_alive && attempts / 8 <= config.retries
    }

    /// Whether a frame must go now, as far as the window allows.
    #[inline]
    pub fn has_something(&self) -> bool {
        self.opening.is_due()
            || self.is_running()
                && (self.receiver.acknowledge.due
                    || self.liveness.probe_due
                    || self.sender.may_send() && self.sender.has_data(self.gates.is_owing()))
    }

    /// Whether all packets are sent, and no frame of them is known to be lost.
    #[inline]
    pub fn is_all_sent(&self) -> bool {
        self.sender.is_all_sent()
    }

    /// Whether nothing must go but an acknowledgement, which reports no loss.
    pub fn owes_little(&self) -> bool {
        let has_data = self.sender.may_send() && self.sender.has_data(self.gates.is_owing());
        let reports = self.opening.is_due() || self.liveness.probe_due;
        !(has_data || reports || self.receiver.acknowledge.lose)
    }

    /// The smoothed round trip, in ns; 0: none is measured.
    pub fn round_trip_ns(&self) -> u64 {
        self.sender.round_trip.smooth_ns
    }

    /// Whether frames should go without waiting for more packets: nothing is in flight, or `frames`
    /// frames can be filled.
    #[inline]
    pub fn is_urgent(&self, frames: usize) -> bool {
        self.is_running() && self.sender.is_urgent(frames * self.path_mtu.frame_bytes)
    }

    /// The path by which the peer was last heard.
    pub fn way_back(&self) -> PathId {
        self.paths.id(self.paths.back(CLOSE_FRAME_BYTES))
    }

    /// Takes in the acknowledgement and the credit of a frame. `received` is the selective
    /// acknowledgement. `false`: it acknowledges a frame that was never sent.
    #[inline]
    pub fn acknowledged(
        &mut self,
        header: &FrameHeader,
        received: Option<&[u8]>,
        counters: &mut Counters,
        now_ns: u64,
    ) -> bool {
        let advance = self.sender.acknowledged(header, received, &mut self.paths, counters, now_ns);
        if advance.is_some_and(|advance| advance > 0) {
            self.path_mtu.arrived();
        }
        advance.is_some()
    }

    /// Takes in the sections of a frame whose turn has come. `false`: the peer broke the protocol.
    #[inline]
    pub fn take_sections(
        &mut self,
        body: &[u8],
        gates: &FunctionGates,
        counters: &mut Counters,
        sink: &mut impl Sink,
    ) -> bool {
        let mut rest = body;
        loop {
            let (section, behind) = match Section::split(rest) {
                Ok(Some(split)) => split,
                Ok(None) => return true,
                Err(_) => return false,
            };
            rest = behind;
            let channel = match section.kind {
                SectionKind::Requests => Channel::Request,
                SectionKind::Responses if planted("reliable-mix-channels") => Channel::Request,
                SectionKind::Responses => Channel::Response,
                SectionKind::Received => continue,
                SectionKind::News if self.take_news(section.bytes, gates) => continue,
                // A part is alone in its frame, and parts were joined before.
                SectionKind::News | SectionKind::Part => return false,
            };
            let is_sound = if self.is_closing() {
                self.backlogs.discard(self.id, channel, &section)
            } else {
                let may_offer = self.predecessor.is_none();
                self.backlogs.arrive(self.id, channel, &section, may_offer, counters, sink)
            };
            if !is_sound {
                return false;
            }
        }
    }

    fn take_news(&mut self, bytes: &[u8], gates: &FunctionGates) -> bool {
        let (records, []) = bytes.as_chunks::<NEWS_BYTES>() else { return false };
        for &record in records {
            let Ok(news) = News::parse(record) else { return false };
            match news {
                News::Gate { queue_pair, state } => {
                    // A peer tells only what was asked for, and we ask only for numbers that exist
                    // here.
                    let Some(index) = gates.index(queue_pair) else { return false };
                    if self.gates.told(index, state) {
                        self.notices.gates = true;
                    }
                }
                News::Ask { queue_pair } => {
                    if let Some(index) = gates.index(queue_pair) {
                        self.gates.asked(index);
                    }
                }
            }
        }
        true
    }

    /// Writes the next sequenced frame, or an acknowledgement, from our function `from`; `None` if
    /// none is to be sent now. The check value is still to be written.
    #[inline]
    pub fn transmit(
        &mut self,
        from: u8,
        gates: &FunctionGates,
        shares: &Shares,
        counters: &mut Counters,
        now_ns: u64,
        mut frame: Writer<'_>,
    ) -> Option<(Transmit, Option<Left>)> {
        let (mut is_whole, sent) = self.write_data(&mut frame, gates, counters, now_ns);
        if sent.is_none() {
            let is_due = self.receiver.acknowledge.due && !planted("reliable-drop-acknowledgement");
            if !is_due && !self.liveness.probe_due {
                self.sender.arm_timeout(now_ns);
                return None;
            }
            // A section without data behind it: the frame that was begun gives way to this one.
            if frame.length() > FRAME_OVERHEAD_BYTES {
                self.receiver.unwrite();
                frame.clear();
            }
            is_whole = self.receiver.write(&mut frame, 0);
            counters.acknowledgements_sent += 1;
            counters.loses_sent += self.receiver.acknowledge.lose as u64;
        }
        let (path, sequence) = sent.unwrap_or_else(|| {
            let path = self.paths.back(frame.length());
            self.paths.spend(path, frame.length());
            (path, self.sender.flight.next())
        });
        let asks = self.liveness.probe_due || sent.is_some() && self.sender.is_all_sent();
        self.liveness.probe_due = false;
        let (loses, held_back_ns) = self.receiver.went(is_whole, sent.is_some(), now_ns);
        let header = FrameHeader {
            kind: if sent.is_some() { FrameKind::Data } else { FrameKind::Acknowledge },
            function: self.peer.function,
            from,
            flags: if loses { FLAG_LOSE } else { 0 }
                | if asks { FLAG_ANSWER } else { 0 }
                | if self.backlogs.has_discarded { FLAG_DISCARDS } else { 0 },
            length: frame.length() as u16,
            held_back: (held_back_ns / HELD_BACK_UNIT_NS).min(u16::MAX as u64) as u16,
            token: self.opening.peer_token,
            sequence,
            acknowledged: self
                .receiver
                .expected
                .wrapping_add(planted("reliable-acknowledge-ahead") as u32),
            credit: self.backlogs.advertise(shares.bytes()),
        };
        let (frame, left) = frame.finish();
        header.emit(frame).ok()?;
        let length = frame.len();
        if planted("reliable-corrupt-before-check") && sequence % 16 == 15 {
            frame[length - CHECK_BYTES - 1] ^= 0x40;
        }
        self.sender.arm_timeout(now_ns);
        Some((Transmit { path: self.paths.id(path), length }, left))
    }

    /// Fills a frame with data, if some is to be sent and the windows allow it. Returns also
    /// whether the selective acknowledgement is told as far as it must be.
    #[inline]
    fn write_data(
        &mut self,
        frame: &mut Writer<'_>,
        gates: &FunctionGates,
        counters: &mut Counters,
        now_ns: u64,
    ) -> (bool, Option<Written>) {
        let Link { sender, receiver, paths, .. } = self;
        if !sender.may_send() || receiver.acknowledge.is_next {
            return (true, None);
        }
        if let Some(index) = sender.flight.first_lost() {
            let content = sender.content_bytes(index);
            let (is_whole, sent) = if content > frame.room() {
                // A part is alone in its frame.
                let is_whole = receiver.early.is_empty() || planted("reliable-lose-without-bitmap");
                (is_whole, sender.send_part(index, frame, paths, now_ns))
            } else {
                let is_whole = receiver.write(frame, content);
                (is_whole, sender.resend(index, frame, paths, now_ns))
            };
            counters.frames_resent += sent.is_some() as u64;
            return (is_whole, sent);
        }
        if !sender.may_send_new() {
            return (true, None);
        }
        // News tell the current state, so they are queued only when a frame has room for them.
        while self.gates.is_owing() && sender.takes_news() {
            let Some((index, is_question)) = self.gates.next_owed() else { break };
            sender.push_news(gates.news(index, is_question));
        }
        let is_whole = receiver.write(frame, 0);
        (is_whole, sender.send_new(frame, paths, counters, now_ns))
    }
}
