//! Control messages between endpoints: an operation has finished, units were consumed, a peer is
//! still there.

use crate::access::Access;
use crate::endpoint::{Endpoint, Operation};
use crate::head::{DATA, Kind, READ, WATCHES, Writer};
use crate::{Done, Outcome, Peer, Sink, What};
use bellwire::{Error, Message, Status};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How often to ask a peer whether it is there, while something waits for it.
const ASK_EVERY: Duration = Duration::from_millis(250);
/// Idle polls between two readings of the clock.
const LOOKS_PER_CLOCK: u32 = 1024;

/// Maximum number of control messages that wait to be sent. No proper peer causes more.
const OUTBOX: usize = 1 << 18;

/// A control message to send.
#[derive(Debug)]
pub(crate) enum Control {
    Finished {
        number: u64,
        how: u64,
    },
    Credit,
    Ask,
    Resolve {
        number: u64,
        key: u64,
    },
    Written {
        number: u64,
        key: u64,
        data: Option<u64>,
        length: u64,
        read: bool,
    },
    /// `bytes`: as long as the head says in `head.rs`.
    Answer {
        number: u64,
        status: Status,
        bytes: Box<[u8]>,
    },
    /// A message about a connection, with the program's words.
    Connect {
        number: u64,
        says: Box<[u8]>,
    },
    Accept {
        number: u64,
        says: Box<[u8]>,
    },
    Reject {
        number: u64,
        says: Box<[u8]>,
    },
    Disconnect,
}

/// The number of a status in an answer.
fn number_of(status: Status) -> u64 {
    let place = ANSWERS.iter().position(|&answer| answer == status);
    place.unwrap_or(ANSWERS.len()) as u64
}

/// The status of a number in an answer.
pub(crate) fn status_of(number: u64) -> Status {
    let known = usize::try_from(number).ok().and_then(|number| ANSWERS.get(number));
    known.copied().unwrap_or(Status::ProtocolViolation)
}

const ANSWERS: [Status; 5] = [
    Status::Success,
    Status::WrongKey,
    Status::OutOfBounds,
    Status::NotPermitted,
    Status::Misaligned,
];

/// Queues a control message until [`Endpoint::say_waiting`] sends it.
#[cold]
pub(crate) fn say_later(outbox: &mut VecDeque<(Peer, Control)>, peer: Peer, control: Control) {
    if outbox.len() >= OUTBOX {
        tracing::warn!("too many answers wait for peers; one was thrown away");
        return;
    }
    outbox.push_back((peer, control));
}

impl Endpoint {
    /// Tells a peer that we are done with its operation.
    pub(crate) fn tell_finished(&mut self, peer: Peer, number: u64, how: u64) {
        self.tell(peer, Control::Finished { number, how });
    }

    /// Tells a peer how many of its units were consumed.
    #[cold]
    pub(crate) fn tell_credit(&mut self, peer: Peer) {
        self.tell(peer, Control::Credit);
    }

    pub(crate) fn tell(&mut self, peer: Peer, control: Control) {
        // Waiting messages go first. A peer gets one answer for each of its operations, which
        // bounds the queue.
        if !self.outbox.is_empty() || !self.say(peer, &control) {
            say_later(&mut self.outbox, peer, control);
        }
    }

    /// Sends control messages that had to wait. Returns how many.
    pub(crate) fn say_waiting(&mut self) -> usize {
        let mut said = 0;
        for _ in 0..self.outbox.len() {
            let Some((peer, control)) = self.outbox.pop_front() else { break };
            if self.say(peer, &control) {
                said += 1;
            } else {
                // Others may not be blocked by this peer.
                self.outbox.push_back((peer, control));
            }
        }
        said
    }

    /// `false`: there is no room now.
    fn say(&mut self, to: Peer, control: &Control) -> bool {
        let peer = &mut self.peers[to];
        let pair = match peer.pair(&mut self.function, self.completions) {
            Ok(pair) => pair,
            Err(error) => return !matches!(error, Error::Exhausted { .. }),
        };
        let kind = match control {
            Control::Finished { .. } => Kind::Finished,
            Control::Credit => Kind::Credit,
            Control::Ask => Kind::Ask,
            Control::Resolve { .. } => Kind::Resolve,
            Control::Written { .. } => Kind::Written,
            Control::Answer { .. } => Kind::Answer,
            Control::Connect { .. } => Kind::Connect,
            Control::Accept { .. } => Kind::Accept,
            Control::Reject { .. } => Kind::Reject,
            Control::Disconnect => Kind::Disconnect,
        };
        let flags = match control {
            Control::Answer { .. } if self.watches => WATCHES,
            Control::Written { data, read, .. } => {
                (if data.is_some() { DATA } else { 0 }) | if *read { READ } else { 0 }
            }
            _ => 0,
        };
        let head = peer.head(kind, flags, self.incarnation);
        let mut writer = Writer { bytes: &mut self.scratch, at: 0 };
        writer.word(head.to_word());
        let words = match *control {
            Control::Credit | Control::Ask | Control::Disconnect => [None; 4],
            Control::Connect { number, .. }
            | Control::Accept { number, .. }
            | Control::Reject { number, .. } => [Some(number), None, None, None],
            Control::Finished { number, how } => [Some(number), Some(how), None, None],
            Control::Resolve { number, key } => [Some(number), Some(key), None, None],
            Control::Written { number, key, data, length, .. } => {
                [number, key, data.unwrap_or_default(), length].map(Some)
            }
            Control::Answer { number, status, .. } => {
                [Some(number), Some(number_of(status)), None, None]
            }
        };
        for word in words.into_iter().flatten() {
            writer.word(word);
        }
        if let Control::Answer { bytes, .. }
        | Control::Connect { says: bytes, .. }
        | Control::Accept { says: bytes, .. }
        | Control::Reject { says: bytes, .. } = control
        {
            writer.put(bytes);
        }
        let end = writer.at;
        let bytes = &self.scratch[..end];
        let send = Message::inline(bytes).to(peer.address).immediate(0).unsignaled();
        match self.function.post_send(pair, send) {
            Ok(()) => true,
            Err(refused) => !matches!(refused.error, Error::QueueFull { .. }),
        }
    }

    /// A peer is done with an operation of ours.
    pub(crate) fn finished(&mut self, from: Peer, number: u64, how: u64, sink: &mut impl Sink) {
        // A number that belongs to another peer ends nothing.
        if self.operations.find(number).is_none_or(|operation| operation.peer != from) {
            return;
        }
        let outcome = match how {
            0 => Outcome::Success,
            _ => Outcome::Failed(Status::ProtocolViolation),
        };
        self.end_operation(number, outcome, sink);
    }

    fn end_operation(&mut self, number: u64, outcome: Outcome, sink: &mut impl Sink) {
        let Some(operation) = self.operations.remove(number) else { return };
        let Operation { peer, token, tag, data, length, silent, .. } =
            operation.release(&mut self.function);
        if silent && outcome == Outcome::Success {
            return;
        }
        let what = What::Sent;
        sink.done(Done {
            token,
            what,
            outcome,
            peer: Some(peer),
            tag,
            data,
            length,
            left: 0,
            at: 0,
        });
    }

    /// The endpoint at a peer's address is gone: operations that wait for it fail.
    #[cold]
    pub(crate) fn peer_gone(&mut self, peer: Peer, why: Status, sink: &mut impl Sink) {
        for number in self.operations.numbers(|operation| operation.peer == peer) {
            self.end_operation(number, Outcome::Failed(why), sink);
        }
        // Posted fetches end by themselves.
        let waiting: Vec<u64> = self.unfetched.iter().copied().collect();
        for number in waiting {
            if self.transfers.find(number).is_some_and(|transfer| transfer.is_from(peer)) {
                self.unfetched.retain(|&other| other != number);
                self.fetched(number, why, sink);
            }
        }
        self.access_peer_gone(peer, why, sink);
        self.give_up_coming(peer, why, sink);
        if self.peers[peer].tail.take().is_some() {
            self.peers[peer].lost = Some(why);
        }
        self.outbox.retain(|(to, _)| *to != peer);
        // Credit counts stay: if the same endpoint comes back, its counts have gone on too.
        self.forget(peer, false);
        self.connection_lost(peer, sink);
    }

    /// Another endpoint is at a peer's address: the previous one's messages are void.
    #[cold]
    pub(crate) fn peer_replaced(&mut self, peer: Peer, sink: &mut impl Sink) {
        self.peer_gone(peer, Status::PeerGone, sink);
        self.forget(peer, true);
        self.peers[peer].meet_again();
    }

    /// A poll found nothing to do: does the periodic work when it is due. Returns how much was
    /// done.
    #[inline]
    pub(crate) fn idle(&mut self, sink: &mut impl Sink) -> usize {
        self.looks = self.looks.wrapping_add(1);
        if self.looks.is_multiple_of(LOOKS_PER_CLOCK) { self.look_around(sink) } else { 0 }
    }

    /// Asks peers that keep us waiting, and cancels what waits for a peer that has left.
    #[cold]
    fn look_around(&mut self, sink: &mut impl Sink) -> usize {
        if self.is_waiting_for_answers() {
            self.ask();
        }
        if std::mem::take(&mut self.parted) { self.cancel_all(sink) } else { 0 }
    }

    /// Asks all peers that keep us waiting whether they are there, unless that was done recently.
    #[cold]
    pub(crate) fn ask(&mut self) {
        let now = Instant::now();
        if now.duration_since(self.asked) < ASK_EVERY {
            return;
        }
        self.asked = now;
        let mut peers: Vec<Peer> = self.operations.iter().map(|operation| operation.peer).collect();
        peers.extend(self.accesses.iter().map(Access::peer));
        peers.extend(self.companion());
        peers.extend(&self.coming);
        peers.sort_unstable();
        peers.dedup();
        for peer in peers {
            // Without room for it, a question is already in flight.
            self.say(peer, &Control::Ask);
        }
    }
}
