//! Sending: eagerly, or as an offer.

use crate::endpoint::{Endpoint, Operation};
use crate::head::{ACKNOWLEDGE, DATA, EAGER_HEAD_BYTES, Kind, PIECES, TAGGED, Writer};
use crate::peers::Known;
use crate::pieces::PIECES_BYTES;
use crate::{Peer, Span, Spans, Token};
use bellwire::{Error, Function, MemoryRegion, Message, RemoteKey, Rights, Status};

/// Context of a descriptor whose message counts as sent already. If it fails, the program does not
/// know yet.
pub(crate) const FINISHED: u64 = 1;

/// Maximum number of parts of one message.
pub(crate) const PARTS: usize = 4;

/// A message to send.
#[derive(Clone, Copy, Debug)]
pub struct TaggedMessage<'a> {
    /// The receiver.
    pub to: Peer,
    /// For receives with tags; `None`: for those without.
    pub tag: Option<u64>,
    /// A data word beside the message.
    pub data: Option<u64>,
    /// The bytes, in at most four spans.
    pub body: &'a Spans,
    /// Comes back in [`crate::Done`], if the message has not finished when the call returns.
    pub token: Token,
    /// When it counts as sent.
    pub how: How,
}

/// When a message counts as sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// When the call returns: the bytes are copied. For messages of up to
    /// [`Endpoint::inject_bytes`] bytes.
    Copied,
    /// When its memory can be reused.
    Taken,
    /// When a receive has it.
    Delivered,
}

/// The progress of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sent {
    /// It has finished; there will be no [`crate::Done`].
    Now,
    /// Its [`crate::Done`] comes, unless it was [`How::Copied`].
    Later,
}

/// Why a call was refused.
#[derive(Debug)]
pub enum Refusal {
    /// There is no room now: make progress, and try again.
    Again,
    /// A link lost messages to this peer that counted as sent. Messages that are sent now would
    /// take their place. Reported once; nothing was done.
    Lost(Status),
    /// It cannot be done.
    Failed(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        match error {
            Error::QueueFull { .. } | Error::Exhausted { .. } => Refusal::Again,
            error => Refusal::Failed(error),
        }
    }
}

impl Endpoint {
    /// Sends a message.
    ///
    /// # Errors
    /// [`Refusal::Again`] without room; nothing was done then. [`Refusal::Lost`] after others were
    /// lost.
    #[inline]
    pub fn send(&mut self, message: TaggedMessage<'_>) -> Result<Sent, Refusal> {
        if self.peers[message.to].lost.is_some() {
            return self.tell_lost(message.to);
        }
        let units = Known::units(message.body.len());
        if message.body.len() <= self.eager_bytes && self.peers[message.to].may_send(units) {
            return self.send_at_once(message, message.body.len(), units);
        }
        if message.body.len() <= PIECES_BYTES && self.peers[message.to].may_send(units) {
            return self.send_in_pieces(message, units);
        }
        self.offer(message)
    }

    #[cold]
    fn tell_lost(&mut self, to: Peer) -> Result<Sent, Refusal> {
        let lost = self.peers[to].lost.take();
        Err(Refusal::Lost(lost.expect("the caller looked")))
    }

    /// Sends a whole message in one packet, or its first piece of `length` bytes.
    #[inline(always)]
    pub(crate) fn send_at_once(
        &mut self,
        message: TaggedMessage<'_>,
        length: usize,
        units: u32,
    ) -> Result<Sent, Refusal> {
        let TaggedMessage { to, tag, data, body, how, .. } = message;
        let mut flags = if tag.is_some() { TAGGED } else { 0 };
        let peer = &mut self.peers[to];
        let pair = peer.pair(&mut self.function, self.completions)?;
        let number = match how {
            How::Delivered => {
                flags |= ACKNOWLEDGE;
                Some(start(
                    &mut self.operations,
                    self.most_operations,
                    Operation::acknowledged(&message),
                )?)
            }
            _ => None,
        };
        if data.is_some() {
            flags |= DATA;
        }
        let whole = (length < body.len()).then_some(body.len() as u64);
        if whole.is_some() {
            flags |= PIECES;
        }
        let head = peer.head(Kind::Eager, flags, self.incarnation);
        let mut words = [0; EAGER_HEAD_BYTES];
        let mut writer = Writer { bytes: &mut words, at: 0 };
        writer.word(head.to_word());
        for word in [data, number, whole].into_iter().flatten() {
            writer.word(word);
        }
        let end = writer.at;
        let send = Message::gathered(&words[..end], body.piece(0, length, &mut self.scratch))
            .to(peer.address)
            .immediate(tag.unwrap_or_default())
            .context(if number.is_none() { FINISHED } else { 0 })
            .unsignaled();
        if let Err(refused) = self.function.post_send(pair, send) {
            if let Some(number) = number {
                self.operations.remove(number);
            }
            return Err(refused.error.into());
        }
        peer.count_sent(units);
        Ok(if number.is_some() { Sent::Later } else { Sent::Now })
    }

    /// Offers a message that is long, or exceeds the credit.
    #[cold]
    fn offer(&mut self, message: TaggedMessage<'_>) -> Result<Sent, Refusal> {
        let TaggedMessage { to, tag, data, body, how, .. } = message;
        if body.parts().len() > PARTS {
            return Err(Refusal::Failed(Error::TooLong {
                length: body.parts().len(),
                maximum: PARTS,
                what: "the stretches of memory of a message",
            }));
        }
        let pair = self.peers[to].pair(&mut self.function, self.completions)?;
        let mut operation = Operation::acknowledged(&message);
        if how == How::Copied {
            let mut copy = vec![0; body.len()].into_boxed_slice();
            body.read(&mut copy);
            // SAFETY: the copy lives in the operation, which ends after its registration.
            let span = unsafe { Span::new(copy.as_ptr(), copy.len()) };
            operation.lend(&mut self.function, &[span])?;
            operation.copy = Some(copy);
        } else {
            operation.lend(&mut self.function, body.parts())?;
        }
        let keys: Vec<RemoteKey> = operation.regions.iter().map(MemoryRegion::remote_key).collect();
        let number = match start(&mut self.operations, self.most_operations, operation) {
            Ok(number) => number,
            Err((operation, refusal)) => {
                operation.release(&mut self.function);
                return Err(refusal);
            }
        };
        let peer = &mut self.peers[to];
        let mut flags = if tag.is_some() { TAGGED } else { 0 };
        flags |= if data.is_some() { DATA } else { 0 };
        let head = peer.head(Kind::Offer, flags, self.incarnation);
        let mut writer = Writer { bytes: &mut self.scratch, at: 0 };
        writer.word(head.to_word());
        if let Some(data) = data {
            writer.word(data);
        }
        writer.word(number);
        writer.word(body.len() as u64);
        for key in keys {
            writer.key(key);
        }
        let end = writer.at;
        let send = Message::inline(&self.scratch[..end])
            .to(peer.address)
            .immediate(tag.unwrap_or_default())
            .unsignaled();
        if let Err(refused) = self.function.post_send(pair, send) {
            let operation = self.operations.remove(number).expect("just put in");
            operation.release(&mut self.function);
            return Err(refused.error.into());
        }
        Ok(Sent::Later)
    }
}

/// Numbers an operation, if there may be one more.
#[allow(clippy::result_large_err)]
fn start(
    operations: &mut crate::slots::Slots<Operation>,
    most: usize,
    operation: Operation,
) -> Result<u64, (Operation, Refusal)> {
    if operations.len() >= most {
        return Err((operation, Refusal::Again));
    }
    Ok(operations.insert(operation))
}

impl From<(Operation, Refusal)> for Refusal {
    fn from((_, refusal): (Operation, Refusal)) -> Self {
        refusal
    }
}

impl Operation {
    /// What is kept of a message until its receiver is done with it.
    fn acknowledged(message: &TaggedMessage<'_>) -> Operation {
        let TaggedMessage { to, tag, data, body, token, how } = message;
        Operation {
            peer: *to,
            token: *token,
            tag: *tag,
            data: *data,
            length: body.len(),
            silent: *how == How::Copied,
            regions: Vec::new(),
            copy: None,
        }
    }

    /// Lets the receiver read `spans`.
    fn lend(&mut self, function: &mut Function, spans: &[Span]) -> Result<(), Refusal> {
        for span in spans.iter().filter(|span| !span.is_empty()) {
            match span.register(function, Rights::REMOTE_READ) {
                Ok(region) => self.regions.push(region),
                Err(error) => {
                    self.release_regions(function);
                    return Err(error.into());
                }
            }
        }
        Ok(())
    }

    fn release_regions(&mut self, function: &mut Function) {
        for region in self.regions.drain(..) {
            // It is registered, and no descriptor of ours names it.
            let released = function.deregister_foreign(&region);
            debug_assert!(released.is_ok(), "{released:?}");
        }
    }

    /// Ends the operation: peers can no longer read its memory.
    pub(crate) fn release(mut self, function: &mut Function) -> Operation {
        self.release_regions(function);
        self
    }
}
