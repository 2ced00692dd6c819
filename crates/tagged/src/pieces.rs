//! Messages in pieces: too long for one packet, and short enough that a copy costs less than a
//! fetch.
//!
//! The first piece is an eager message that gives the whole length, and it matches a receive. The
//! others follow in order, each with its offset in the message. The receiver copies each straight
//! to its destination while the sender is at the next. So the whole message is in flight without a
//! round trip, and both sides copy at once.
//!
//! One message of a sender is in pieces at a time. If its packets find no room, the rest is kept
//! and sent later. Until then all heads to this receiver carry a flag. A head without it, while
//! pieces are missing, shows that a link lost them.

use crate::endpoint::Endpoint;
use crate::head::{EAGER_HEAD_BYTES, Head, Kind, Writer};
use crate::peers::{Known, WINDOW_BYTES};
use crate::receive::{Destination, Label};
use crate::send::FINISHED;
use crate::{Outcome, Peer, Refusal, Sent, Sink, TaggedMessage};
use bellwire::{Error, Message, Status};
use bellwire_ring::memory::View;

/// Longest message that is sent in pieces, in bytes. Beyond that, one copy by the kernel takes less
/// time than two of ours, and much less cache.
pub const PIECES_BYTES: usize = 32 << 10;

/// Bytes before those of each later piece: head, offset.
const NEXT_HEAD_BYTES: usize = Head::BYTES + 8;

/// The rest of a message that found no room, at its sender.
pub(crate) struct Tail {
    bytes: Box<[u8]>,
    /// Offset of `bytes` in the message.
    at: usize,
    sent: usize,
}

/// An incomplete message in pieces, at its receiver.
pub(crate) struct Coming {
    pub(crate) label: Label,
    /// Bytes that have come.
    pub(crate) come: usize,
    pub(crate) to: Destination,
}

impl Coming {
    /// Whether a message of `whole` bytes can begin with a piece of `first`.
    pub(crate) fn can_begin(whole: usize, first: usize) -> bool {
        (1..whole).contains(&first) && whole <= WINDOW_BYTES
    }

    /// Whether a piece of `length` bytes at offset `at` is the next one.
    pub(crate) fn goes_on(&self, at: usize, length: usize) -> bool {
        at == self.come && length <= self.label.length - at
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.come == self.label.length
    }
}

// The sender's side.
impl Endpoint {
    /// Sends a message of `units` in pieces.
    #[cold]
    pub(crate) fn send_in_pieces(
        &mut self,
        message: TaggedMessage<'_>,
        units: u32,
    ) -> Result<Sent, Refusal> {
        let TaggedMessage { to, body, .. } = message;
        if self.peers[to].tail.is_some() {
            return Err(Refusal::Again);
        }
        let first = self.packet_bytes - EAGER_HEAD_BYTES;
        let sent = self.send_at_once(message, first, units)?;
        let (mut at, most) = (first, self.packet_bytes - NEXT_HEAD_BYTES);
        while at < body.len() {
            let length = (body.len() - at).min(most);
            let mut scratch = std::mem::take(&mut self.scratch);
            let said = self.send_piece(to, at, body.piece(at, length, &mut scratch));
            self.scratch = scratch;
            if !said {
                let mut bytes = vec![0; body.len() - at].into_boxed_slice();
                body.read_from(at, &mut bytes);
                self.peers[to].tail = Some(Tail { bytes, at, sent: 0 });
                self.unsent.push_back(to);
                break;
            }
            at += length;
        }
        Ok(sent)
    }

    /// Sends the piece at offset `at`. `false`: there is no room now.
    fn send_piece(&mut self, to: Peer, at: usize, bytes: View<'_>) -> bool {
        let peer = &mut self.peers[to];
        let Ok(pair) = peer.pair(&mut self.function, self.completions) else { return false };
        let head = peer.head(Kind::Piece, 0, self.incarnation);
        let mut words = [0; NEXT_HEAD_BYTES];
        let mut writer = Writer { bytes: &mut words, at: 0 };
        writer.word(head.to_word());
        writer.word(at as u64);
        let send = Message::gathered(&words, bytes).to(peer.address).immediate(0);
        let send = send.context(FINISHED).unsignaled();
        match self.function.post_send(pair, send) {
            Ok(()) => true,
            // Another completion reports that the peer is gone, which voids this message too.
            Err(refused) => {
                !matches!(refused.error, Error::QueueFull { .. } | Error::Exhausted { .. })
            }
        }
    }

    /// Sends further pieces of messages that found no room. Returns how many.
    pub(crate) fn send_tails(&mut self) -> usize {
        let (mut sent, most) = (0, self.packet_bytes - NEXT_HEAD_BYTES);
        for _ in 0..self.unsent.len() {
            let Some(to) = self.unsent.pop_front() else { break };
            let Some(mut tail) = self.peers[to].tail.take() else { continue };
            while tail.sent < tail.bytes.len() {
                let length = (tail.bytes.len() - tail.sent).min(most);
                let piece = View::of(&tail.bytes[tail.sent..tail.sent + length]);
                if !self.send_piece(to, tail.at + tail.sent, piece) {
                    break;
                }
                tail.sent += length;
                sent += 1;
            }
            if tail.sent < tail.bytes.len() {
                self.peers[to].tail = Some(tail);
                self.unsent.push_back(to);
            }
        }
        sent
    }
}

// The receiver's side.
impl Endpoint {
    /// The first piece of a message has come. `None`: it is invalid, and is dropped.
    pub(crate) fn take_first_piece(
        &mut self,
        label: Label,
        bytes: &[u8],
        sink: &mut impl Sink,
    ) -> Option<()> {
        if !Coming::can_begin(label.length, bytes.len()) {
            return None;
        }
        debug_assert!(self.peers[label.peer].coming.is_none(), "this head ends what came before");
        let to = self.find_destination(&label, sink)?;
        self.peers[label.peer].coming = Some(Box::new(Coming { label, come: 0, to }));
        self.coming.push(label.peer);
        self.take_piece(label.peer, 0, bytes, sink)
    }

    /// The piece at offset `at` has come. `None`: it belongs to no message.
    pub(crate) fn take_piece(
        &mut self,
        peer: Peer,
        at: usize,
        bytes: &[u8],
        sink: &mut impl Sink,
    ) -> Option<()> {
        let coming = self.peers[peer].coming.as_mut()?;
        if !coming.goes_on(at, bytes.len()) {
            self.give_up_coming(peer, Status::PeerGone, sink);
            return Some(());
        }
        coming.come += bytes.len();
        let whole = coming.is_whole();
        match &coming.to {
            Destination::Receive(taken) => taken.into.write_at(at, View::of(bytes)),
            Destination::Unexpected(place) => {
                let side = usize::from(coming.label.tagged);
                self.matching[side].unexpected.at(*place).write(at, bytes);
            }
            Destination::Nowhere => {}
        }
        if whole {
            let coming = self.take_coming(peer)?;
            self.all_has_come(*coming, sink);
        }
        Some(())
    }

    fn take_coming(&mut self, peer: Peer) -> Option<Box<Coming>> {
        let coming = self.peers[peer].coming.take()?;
        self.coming.retain(|&other| other != peer);
        Some(coming)
    }

    fn all_has_come(&mut self, coming: Coming, sink: &mut impl Sink) {
        let Coming { label, to, .. } = coming;
        match to {
            Destination::Receive(taken) => {
                self.consumed(&label);
                let length = label.length.min(taken.into.len());
                self.received(&label, length, taken, Outcome::Success, sink);
            }
            Destination::Unexpected(place) => {
                self.matching[usize::from(label.tagged)].unexpected.at(place).is_whole();
            }
            Destination::Nowhere => self.consumed(&label),
        }
    }

    /// A receive takes over a message that waited for it and is not complete. `body` has the bytes
    /// so far.
    pub(crate) fn move_coming(&mut self, label: &Label, body: &[u8], to: Destination) {
        self.peers[label.peer].let_go(Known::units(label.length));
        let coming = self.peers[label.peer].coming.as_mut();
        let coming = coming.expect("a message that is not whole is coming");
        if let Destination::Receive(taken) = &to {
            taken.into.write_at(0, View::of(&body[..coming.come]));
        }
        coming.to = to;
    }

    /// The rest of a message will not come.
    #[cold]
    pub(crate) fn give_up_coming(&mut self, peer: Peer, why: Status, sink: &mut impl Sink) {
        let Some(coming) = self.take_coming(peer) else { return };
        let Coming { label, to, .. } = *coming;
        match to {
            Destination::Receive(taken) => {
                self.received(&label, 0, taken, Outcome::Failed(why), sink);
            }
            Destination::Unexpected(place) => {
                self.matching[usize::from(label.tagged)].unexpected.take(place);
                self.peers[peer].let_go(Known::units(label.length));
            }
            Destination::Nowhere => {}
        }
        // It counts as consumed, so that the sender's window does not shrink for good.
        self.peers[peer].count_consumed(Known::units(label.length));
    }
}
