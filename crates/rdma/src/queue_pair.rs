//! Queue pairs: their state machine and what belongs to one.

use crate::completion::WorkCompletion;
use crate::completion_queue::CqId;
use crate::error::{Refusal, Result};
use crate::head::Head;
use crate::memory::{Access, Domain};
use crate::receive_queue::{ReceiveQueue, SrqId};
use crate::remote_keys::RemoteKeys;
use crate::send_queue::SendQueue;
use bellwire::{FunctionAddress, MemoryRegion, RemoteKey};
use bellwire_ring::canary::planted;
use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

/// The service of a queue pair, with the values of `IBV_QPT_*`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Service {
    /// RC.
    ReliableConnection = 2,
    /// UC.
    UnreliableConnection = 3,
    /// UD.
    Datagram = 4,
}

/// The state of a queue pair, with the values of `IBV_QPS_*`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
#[allow(missing_docs)] // The names are the specification's.
pub enum QpState {
    Reset = 0,
    Init = 1,
    ReadyToReceive = 2,
    ReadyToSend = 3,
    SendDrained = 4,
    SendError = 5,
    Error = 6,
}

impl QpState {
    /// The state of that value.
    pub fn from_value(value: u32) -> Option<QpState> {
        use QpState::*;
        let all = [Reset, Init, ReadyToReceive, ReadyToSend, SendDrained, SendError, Error];
        all.into_iter().find(|&state| state as u32 == value)
    }

    /// Whether messages are taken.
    #[inline]
    pub(crate) fn receives(self) -> bool {
        matches!(
            self,
            QpState::ReadyToReceive
                | QpState::ReadyToSend
                | QpState::SendDrained
                | QpState::SendError
        )
    }
}

bitflags::bitflags! {
    /// Attributes that a call changes, with the values of `IBV_QP_*`.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Mask: u32 {
        /// The state.
        const STATE = 1;
        /// The state that the caller assumes.
        const CURRENT_STATE = 1 << 1;
        /// Whether an event tells of the drained state.
        const DRAINED_EVENT = 1 << 2;
        /// What the peer may do.
        const ACCESS = 1 << 3;
        /// The partition.
        const PKEY_INDEX = 1 << 4;
        /// The port.
        const PORT = 1 << 5;
        /// The key of datagrams.
        const QKEY = 1 << 6;
        /// The way to the peer.
        const PATH = 1 << 7;
        /// The path's MTU.
        const MTU = 1 << 8;
        /// The timeout code.
        const TIMEOUT = 1 << 9;
        /// The retries without an answer.
        const RETRY_COUNT = 1 << 10;
        /// The retries without a receive.
        const RNR_RETRY = 1 << 11;
        /// The peer's first number.
        const RECEIVE_PSN = 1 << 12;
        /// Own reads and atomics under way.
        const READS = 1 << 13;
        /// The timer code of RNR NAKs.
        const RNR_TIMER = 1 << 15;
        /// The first number.
        const SEND_PSN = 1 << 16;
        /// The peer's reads and atomics under way.
        const PEER_READS = 1 << 17;
        /// The peer's queue pair.
        const PEER = 1 << 20;
        const _ = !0;
    }
}

/// The attributes of a queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // The names are the specification's.
pub struct Attributes {
    pub state: QpState,
    pub access: Access,
    pub qkey: u32,
    /// The peer's host; `None`: the path has no global route.
    pub host: Option<Ipv4Addr>,
    pub peer: u32,
    /// Code of `IBV_MTU_*`, 1 to 5.
    pub mtu: u32,
    pub timeout: u8,
    pub retry_count: u8,
    pub rnr_retry: u8,
    pub rnr_timer: u8,
    pub send_psn: u32,
    pub receive_psn: u32,
    pub reads: u8,
    pub peer_reads: u8,
    pub pkey_index: u16,
    pub port: u8,
    /// An event tells when the drained state is reached.
    pub drained_event: bool,
}

impl Attributes {
    pub(crate) fn new() -> Attributes {
        Attributes {
            state: QpState::Reset,
            access: Access::empty(),
            qkey: 0,
            host: None,
            peer: 0,
            mtu: 5,
            timeout: 0,
            retry_count: 0,
            rnr_retry: 0,
            rnr_timer: 0,
            send_psn: 0,
            receive_psn: 0,
            reads: 0,
            peer_reads: 0,
            pkey_index: 0,
            port: 1,
            drained_event: false,
        }
    }

    /// How long the sender waits for a peer that does not answer as it should.
    pub(crate) fn patience(&self) -> Option<Duration> {
        let once = Duration::from_nanos(4096) * (1 << self.timeout.min(31)).min(1 << 30);
        let attempts = if planted("retries-once") { 1 } else { u32::from(self.retry_count) + 1 };
        (self.timeout > 0 || planted("timeout-zero-ends")).then(|| once * attempts)
    }
}

/// The time of an RNR timer code (table 45 of the specification), in 10 us.
const RNR_TIMERS: [u32; 32] = [
    65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536,
    2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
];

/// How long the sender waits after an RNR NAK with this code.
pub(crate) fn rnr_delay(code: u8) -> Duration {
    Duration::from_micros(10) * RNR_TIMERS[usize::from(code & 31)]
}

/// The sizes of a queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // The names are the specification's.
pub struct Capacity {
    pub sends: usize,
    pub receives: usize,
    pub send_parts: usize,
    pub receive_parts: usize,
    pub inline_bytes: usize,
}

/// How to create a queue pair.
#[derive(Clone, Copy, Debug)]
pub struct QueuePairOptions {
    /// The service.
    pub service: Service,
    /// The domain whose memory it uses.
    pub domain: Domain,
    /// Where its sends complete.
    pub send_queue: CqId,
    /// Where its receives complete.
    pub receive_queue: CqId,
    /// Takes its receives from there.
    pub shared: Option<SrqId>,
    /// Its sizes.
    pub capacity: Capacity,
    /// Each send completes.
    pub signal_all: bool,
    /// The program's number of it.
    pub object: usize,
}

/// A message that arrived and whose completion is not written yet.
pub(crate) enum Arrival {
    /// No receive yet.
    Unmatched(Kept),
    /// The device fetches it.
    Fetching { psn: u32, completion: WorkCompletion, solicited: bool, inverse: Option<u32> },
    /// Complete, but an earlier one is not.
    Done { completion: WorkCompletion, solicited: bool },
}

/// What is kept of a message.
pub(crate) enum Kept {
    Message(Head, Vec<u8>),
    Offer(Head, Vec<RemoteKey>),
    WriteImmediate(Head),
}

/// Ticks in which all news of one process's end come.
const DOUBT_TICKS: u32 = 2;
/// The least time for a peer that was never heard: its process may have to wait for a processor.
const LEAST_PATIENCE: Duration = Duration::from_millis(1250);

/// Messages of one queue pair that may wait for their acknowledgement.
pub(crate) const WINDOW: u32 = 1024;

/// Messages without an acknowledgement from which on a peer is behind.
const BEHIND: u32 = 16;

/// Short messages that wait for others at most, and this one.
const TOGETHER: usize = 16;

/// Most messages of a peer that are kept while they have no receive.
pub(crate) const KEPT: usize = 64;

/// A queue pair.
pub(crate) struct QueuePair {
    pub(crate) number: u32,
    pub(crate) options: QueuePairOptions,
    pub(crate) attributes: Attributes,
    /// The peer's function, once the queue pair is ready to receive.
    pub(crate) peer: Option<FunctionAddress>,
    pub(crate) sends: SendQueue,
    pub(crate) receives: ReceiveQueue,
    /// Arrivals before `expected` that are not complete, in order.
    pub(crate) arrivals: VecDeque<Arrival>,
    /// The number of the next message.
    pub(crate) expected: u32,
    /// The first message that is not in its receive.
    pub(crate) delivered: u32,
    /// Messages that were delivered since the last acknowledgement left.
    pub(crate) owed: u32,
    /// The message that was refused last; those behind it are dropped without an answer.
    pub(crate) refused: Option<u32>,
    /// A message has arrived since it was ready to receive.
    pub(crate) established: bool,
    /// Memory of the peer.
    pub(crate) keys: RemoteKeys,
    /// Keys of own memory that was granted to the peer.
    pub(crate) granted: Vec<u32>,
    /// The key that the peer was asked for.
    pub(crate) asked: Option<u32>,
    /// No request starts before this.
    pub(crate) hold_until: Option<Instant>,
    /// When the present trouble with the peer began, and RNR NAKs since then.
    pub(crate) trouble_since: Option<Instant>,
    pub(crate) rnr_naks: u32,
    /// No request starts any more: the result of an earlier one will be an error.
    pub(crate) stopped: bool,
    /// Its requests are listed to be started.
    pub(crate) listed: bool,
    /// It is listed to acknowledge.
    pub(crate) owes: bool,
    /// An RDMA write with immediate value is on its way; nothing may pass it.
    pub(crate) writing: bool,
    /// It is about to be reset or destroyed: requests and receives end without completions.
    pub(crate) silent: bool,
    /// An event is due when the last receive is flushed.
    pub(crate) tells_last: bool,
    /// The program waits for the end of started requests (SQD).
    pub(crate) draining: bool,
    /// Messages that UC dropped behind arrivals that are not complete.
    pub(crate) dropped: u32,
    /// The peer's queue pair has ended in order.
    pub(crate) peer_left: bool,
    /// The peer was heard since the last tick.
    pub(crate) heard: bool,
    /// It does not get what it sends to a group itself.
    pub(crate) ignores_own: bool,
    /// The peer was heard since they are connected.
    pub(crate) met: bool,
    /// The tick at which a process at the peer's address was found gone, before the peer was heard.
    pub(crate) doubted: Option<u32>,
    /// When a request was first seen to wait for a peer that was never heard.
    pub(crate) silent_since: Option<Instant>,
    /// Registrations of offers to peers that must outlive their requests.
    pub(crate) leftovers: Vec<MemoryRegion>,
}

impl QueuePair {
    pub(crate) fn new(number: u32, options: QueuePairOptions) -> QueuePair {
        let Capacity { sends, receives, inline_bytes, .. } = options.capacity;
        QueuePair {
            number,
            options,
            attributes: Attributes::new(),
            peer: None,
            sends: SendQueue::new(sends.max(1), inline_bytes),
            receives: ReceiveQueue::new(receives),
            arrivals: VecDeque::new(),
            expected: 0,
            delivered: 0,
            owed: 0,
            refused: None,
            established: false,
            keys: RemoteKeys::default(),
            granted: Vec::new(),
            asked: None,
            hold_until: None,
            trouble_since: None,
            rnr_naks: 0,
            stopped: false,
            listed: false,
            owes: false,
            writing: false,
            silent: false,
            tells_last: false,
            draining: false,
            dropped: 0,
            peer_left: false,
            ignores_own: false,
            heard: false,
            met: false,
            doubted: None,
            silent_since: None,
            leftovers: Vec::new(),
        }
    }

    #[inline]
    pub(crate) fn state(&self) -> QpState {
        self.attributes.state
    }

    pub(crate) fn is_reliable(&self) -> bool {
        self.options.service == Service::ReliableConnection
    }

    /// Whether the device may read or write memory that requests or receives name.
    pub(crate) fn is_in_device(&self) -> bool {
        self.sends.is_in_device() || self.is_fetching()
    }

    /// Whether the device fetches messages into receives.
    pub(crate) fn is_fetching(&self) -> bool {
        self.arrivals.iter().any(|kept| matches!(kept, Arrival::Fetching { .. }))
    }

    /// Whether a packet is the next message of the peer, and nothing waits before it.
    #[inline(always)]
    pub(crate) fn is_next(&self, from: FunctionAddress, head: &Head) -> bool {
        head.psn == self.expected
            && self.peer == Some(from)
            && head.from == self.attributes.peer
            && self.established
            && self.state().receives()
            && self.arrivals.is_empty()
            && self.options.shared.is_none()
    }

    /// Arrivals that have no receive yet.
    pub(crate) fn unmatched(&self) -> usize {
        self.arrivals.iter().filter(|kept| matches!(kept, Arrival::Unmatched(_))).count()
    }

    /// The next request, if it may start now.
    #[inline]
    pub(crate) fn next_request(&mut self) -> Option<u32> {
        if self.stopped || self.writing || self.hold_until.is_some() || self.asked.is_some() {
            return None;
        }
        let serial = self.sends.next_waiting()?;
        match self.state() {
            QpState::ReadyToSend => Some(serial),
            // The drained state ends what was started before.
            QpState::SendDrained
                if self.sends.get(serial)?.has_started() || planted("drained-starts") =>
            {
                Some(serial)
            }
            _ => None,
        }
    }

    /// Whether the waiting requests are short messages that can wait for others to share a packet
    /// with: the peer has many to take before them. [`crate::Adapter::start`] says how long.
    #[inline]
    pub(crate) fn coalesces(&self) -> bool {
        self.sends.unacknowledged >= BEHIND
            && self.state() == QpState::ReadyToSend
            && self.options.service != Service::Datagram
            && self.sends.waiting() < TOGETHER
            && self.sends.ends_with_short_message()
    }

    /// Ends the requests of the send queue, as [`SendQueue::flush`] says.
    pub(crate) fn end_sends(&mut self, has_failed: bool) {
        self.sends.flush(has_failed);
        (self.asked, self.writing) = (None, false);
    }

    /// Forgets everything of the last connection.
    pub(crate) fn reset(&mut self) {
        self.arrivals.clear();
        self.receives.clear();
        self.keys.clear();
        self.peer = None;
        (self.asked, self.hold_until, self.trouble_since) = (None, None, None);
        (self.owed, self.rnr_naks) = (0, 0);
        (self.refused, self.established, self.stopped) = (None, false, false);
        (self.writing, self.draining, self.heard) = (false, false, false);
        (self.silent, self.tells_last) = (false, false);
        (self.met, self.doubted, self.silent_since) = (false, None, None);
        self.peer_left = false;
        self.sends.fetching = 0;
    }

    /// Whether it is connected with a peer that was heard, and that has not ended it.
    pub(crate) fn hears(&self, peer: FunctionAddress) -> bool {
        let was_heard = self.heard || self.met;
        self.peer == Some(peer) && self.state().receives() && was_heard && !self.peer_left
    }

    /// Whether the process that was found gone at the peer's address may have been there before the
    /// peer. A new process has the address of one that was killed, and its first packet can be what
    /// ends the link to that one. If a process is gone once more, it is the peer.
    pub(crate) fn is_of_earlier_process(&mut self, ticks: u32) -> bool {
        if self.heard || self.met || !self.is_reliable() {
            return false;
        }
        ticks.wrapping_sub(*self.doubted.get_or_insert(ticks)) < DOUBT_TICKS
    }

    /// Whether a request has waited long enough for a peer that was never heard, or that has ended
    /// in order. The device below would wait until a function of that address opens.
    pub(crate) fn is_over(&mut self, now: Instant) -> bool {
        let waits = self.sends.unacknowledged > 0 || self.asked.is_some();
        let is_there = self.met && !self.peer_left;
        if is_there || !waits || !self.is_reliable() {
            return false;
        }
        let since = *self.silent_since.get_or_insert(now);
        let patience = self.attributes.patience().map(|patience| patience.max(LEAST_PATIENCE));
        patience.is_some_and(|patience| now.saturating_duration_since(since) > patience)
    }

    /// Checks a change of attributes: the table of the specification. Returns the new ones.
    pub(crate) fn change(&self, mask: Mask, new: &Attributes) -> Result<Attributes> {
        let mut next = self.attributes;
        let from = self.attributes.state;
        let to = if mask.contains(Mask::STATE) { new.state } else { from };
        let (needed, more) = needs(self.options.service, from, to)
            .ok_or(Refusal::Invalid("the queue pair's state does not allow this change"))?;
        let allowed = needed | more | Mask::STATE | Mask::CURRENT_STATE;
        if !mask.contains(needed) {
            return Err(Refusal::Invalid("the change lacks attributes that it requires"));
        }
        if !allowed.contains(mask) {
            return Err(Refusal::Invalid("the change has attributes that it does not allow"));
        }
        if to == QpState::Reset {
            return Ok(Attributes::new());
        }
        next.state = to;
        macro_rules! take {
            ($($bit:ident: $($field:ident),+;)*) => {
                $(if mask.contains(Mask::$bit) { $(next.$field = new.$field;)+ })*
            };
        }
        take! {
            ACCESS: access;
            PKEY_INDEX: pkey_index;
            PORT: port;
            DRAINED_EVENT: drained_event;
            QKEY: qkey;
            PATH: host;
            MTU: mtu;
            TIMEOUT: timeout;
            RETRY_COUNT: retry_count;
            RNR_RETRY: rnr_retry;
            RECEIVE_PSN: receive_psn;
            READS: reads;
            RNR_TIMER: rnr_timer;
            SEND_PSN: send_psn;
            PEER_READS: peer_reads;
            PEER: peer;
        }
        let good = next.port == 1
            && next.pkey_index == 0
            && (1..=5).contains(&next.mtu)
            && next.retry_count <= 7
            && next.rnr_retry <= 7
            && next.rnr_timer <= 31
            && next.timeout <= 31
            && (!mask.contains(Mask::PATH) || next.host.is_some());
        if !good {
            return Err(Refusal::Invalid("an attribute of the queue pair is out of range"));
        }
        (next.send_psn, next.receive_psn) =
            (next.send_psn & 0xff_ffff, next.receive_psn & 0xff_ffff);
        next.peer &= 0xff_ffff;
        Ok(next)
    }
}

/// The attributes that a transition requires, and those that it allows besides. `None`: there is no
/// such transition.
fn needs(service: Service, from: QpState, to: QpState) -> Option<(Mask, Mask)> {
    use QpState::*;
    let empty = Mask::empty();
    let reliable = service == Service::ReliableConnection;
    let datagram = service == Service::Datagram;
    let own = if datagram { Mask::QKEY } else { Mask::ACCESS };
    let init = Mask::PKEY_INDEX | Mask::PORT | own;
    let alternate = Mask::from_bits_retain(1 << 14 | 1 << 18);
    Some(match (from, to) {
        (_, Reset) | (_, Error) => (empty, empty),
        (Reset, Init) => (init, empty),
        (Init, Init) => (empty, init),
        (Init, ReadyToReceive) => {
            let path = Mask::PATH | Mask::MTU | Mask::PEER | Mask::RECEIVE_PSN;
            let required = match service {
                Service::ReliableConnection => path | Mask::PEER_READS | Mask::RNR_TIMER,
                Service::UnreliableConnection => path,
                Service::Datagram => empty,
            };
            (required, Mask::PKEY_INDEX | own | alternate)
        }
        (ReadyToReceive, ReadyToSend) => {
            let retries = Mask::TIMEOUT | Mask::RETRY_COUNT | Mask::RNR_RETRY | Mask::READS;
            let required = if reliable { Mask::SEND_PSN | retries } else { Mask::SEND_PSN };
            let timer = if reliable { Mask::RNR_TIMER } else { empty };
            (required, own | timer | alternate)
        }
        (ReadyToSend | SendDrained | SendError, ReadyToSend) => {
            let timer = if reliable { Mask::RNR_TIMER } else { empty };
            (empty, own | timer | alternate)
        }
        (ReadyToSend, SendDrained) => (empty, Mask::DRAINED_EVENT),
        (SendDrained, SendDrained) => (empty, own | Mask::PATH | Mask::RNR_TIMER),
        // Only a failure leads to SQE, and only services without acknowledgements have it.
        (Reset, _) | (Init, _) | (ReadyToReceive, _) | (ReadyToSend, _) => return None,
        (SendDrained | SendError | Error, _) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue_pair(service: Service) -> QueuePair {
        let capacity =
            Capacity { sends: 1, receives: 1, send_parts: 1, receive_parts: 1, inline_bytes: 0 };
        QueuePair::new(
            2,
            QueuePairOptions {
                service,
                domain: Domain(0),
                send_queue: CqId(0),
                receive_queue: CqId(0),
                shared: None,
                capacity,
                signal_all: false,
                object: 0,
            },
        )
    }

    /// Transitions need their attributes, allow no others, and may not be skipped.
    #[test]
    fn transitions_follow_the_table() {
        let mut qp = queue_pair(Service::ReliableConnection);
        let mut new = Attributes::new();
        let init = Mask::STATE | Mask::PKEY_INDEX | Mask::PORT | Mask::ACCESS;
        new.state = QpState::ReadyToSend;
        assert!(qp.change(init, &new).is_err(), "states were skipped");
        new.state = QpState::Init;
        assert!(qp.change(init.difference(Mask::PORT), &new).is_err(), "the port is missing");
        assert!(qp.change(init | Mask::QKEY, &new).is_err(), "RC has no Q_Key");
        qp.attributes = qp.change(init, &new).unwrap();
        new.state = QpState::ReadyToReceive;
        let path = Mask::PATH | Mask::MTU | Mask::PEER | Mask::RECEIVE_PSN;
        let receive = Mask::STATE | path | Mask::PEER_READS | Mask::RNR_TIMER;
        assert!(qp.change(receive, &new).is_err(), "the path has no global route");
        new.host = Some(Ipv4Addr::LOCALHOST);
        qp.attributes = qp.change(receive, &new).unwrap();
        assert!(qp.state().receives());
        new.state = QpState::ReadyToSend;
        let retries = Mask::TIMEOUT | Mask::RETRY_COUNT | Mask::RNR_RETRY | Mask::READS;
        new.retry_count = 8;
        assert!(qp.change(Mask::STATE | Mask::SEND_PSN | retries, &new).is_err(), "three bits");
        new.retry_count = 7;
        qp.attributes = qp.change(Mask::STATE | Mask::SEND_PSN | retries, &new).unwrap();
        new.state = QpState::Reset;
        assert_eq!(qp.change(Mask::STATE, &new).unwrap().state, QpState::Reset);
    }

    /// A timeout of 0 waits for ever, and others double with each step.
    #[test]
    fn patience_has_the_specified_length() {
        let mut attributes = Attributes::new();
        assert_eq!(attributes.patience(), None);
        (attributes.timeout, attributes.retry_count) = (14, 6);
        assert_eq!(attributes.patience(), Some(Duration::from_nanos(4096 * (1 << 14) * 7)));
        assert_eq!(rnr_delay(12), Duration::from_micros(640));
        assert_eq!(rnr_delay(0), Duration::from_micros(655_360));
    }
}
