//! Several short messages in one packet: both ends.
//!
//! A single message costs a line of a lane, which another core must first hand over, and one pass
//! through every stage. Messages that are posted together ([`crate::Function::post_sends`]) share
//! both costs: they travel as records of one packet.
//!
//! ```text
//!        0        1        2        3        4
//!   +--------+--------+--------+--------+-- - - - - - - --+-- - - - - - - - - - - - --+
//!   |  payload bytes  | flags  |   0    |  immediate (8)  |  payload, filled up to 4  |
//!   +--------+--------+--------+--------+-- - - - - - - --+-- - - - - - - - - - - - --+
//! ```
//! All little-endian. Flags are those of a packet. The immediate is there if its flag is set. The
//! receiver treats each record as the packet of a message.
//!
//! A library that is told one by one of messages that belong together writes their records itself
//! ([`PackedMessages`]).

use super::Core;
use crate::Message;
use crate::descriptor::Destination;
use bellwire_device::{
    Kind, LinkId, PacketFlags, PacketHeader, QueuePair, Result, Transport, Verdict,
};
use bellwire_ring::canary::planted;
use bellwire_ring::memory::View;

/// Most bytes of a batch. A core reads this much as fast as it arrives, and the first message does
/// not wait long for the last.
const BATCH_BYTES: usize = 1024;
/// Longest payload of a record. A longer message gains little and would be copied twice.
const RECORD_BYTES: usize = 256;
const HEAD_BYTES: usize = 4;
const IMMEDIATE_BYTES: usize = 8;

/// The buffer in which a batch is built.
pub(super) type Batch = Box<[u8; BATCH_BYTES]>;

pub(super) fn room() -> Batch {
    Box::new([0; BATCH_BYTES])
}

/// Short unsignaled messages from one queue pair to one destination, which are gathered one by one
/// ([`crate::Function::gather`]) and posted together ([`crate::Function::post_packed`]).
pub struct PackedMessages {
    records: Batch,
    /// Bytes of the records, and of those among them that are posted.
    end: usize,
    posted: usize,
    /// Messages that are not posted, and the bytes of their payload.
    count: usize,
    bytes: usize,
}

impl PackedMessages {
    /// Longest message, in bytes.
    pub const LONGEST: usize = RECORD_BYTES;

    /// Room without a message.
    #[allow(clippy::new_without_default)] // Room is taken on purpose only.
    pub fn new() -> PackedMessages {
        PackedMessages { records: room(), end: 0, posted: 0, count: 0, bytes: 0 }
    }

    /// Whether all messages are posted.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a message of `head` and `body`. `false`: it is too long, or there is no room.
    #[inline]
    pub(crate) fn add(&mut self, immediate: u64, head: &[u8], body: View<'_>) -> bool {
        let records = &mut self.records[..];
        let Some(end) = add(records, self.end, Some(immediate), head, body) else { return false };
        self.end = end;
        self.count += 1;
        self.bytes += head.len() + body.len();
        true
    }

    /// Drops the messages that are not posted.
    pub fn clear(&mut self) {
        (self.end, self.posted, self.count, self.bytes) = (0, 0, 0, 0);
    }
}

/// The padded end of a record: the next multiple of four, in a form of two instructions.
#[inline(always)]
fn filled_up(end: usize) -> usize {
    (end + HEAD_BYTES - 1) & !(HEAD_BYTES - 1)
}

/// Writes a record at `at`. Returns its end; `None` if the record is too long or does not fit in
/// `batch`.
#[inline(always)]
fn add(
    batch: &mut [u8],
    at: usize,
    immediate: Option<u64>,
    head: &[u8],
    body: View<'_>,
) -> Option<usize> {
    let length = head.len() + body.len();
    let start = HEAD_BYTES + if immediate.is_some() { IMMEDIATE_BYTES } else { 0 };
    if length > RECORD_BYTES {
        return None;
    }
    let end = filled_up(at + start + length);
    let record = batch.get_mut(at..end)?;
    // Zeroes the padding, before the payload covers the rest: it could hold another peer's data.
    *record.last_chunk_mut()? = [0; HEAD_BYTES];
    let flag = if immediate.is_some() { PacketFlags::IMMEDIATE.bits() } else { 0 };
    let first = length as u32 | u32::from(flag) << 16;
    record[..HEAD_BYTES].copy_from_slice(&first.to_le_bytes());
    if let Some(immediate) = immediate {
        record[HEAD_BYTES..start].copy_from_slice(&immediate.to_le_bytes());
    }
    let mut payload = &mut record[start..start + length];
    if !head.is_empty() {
        payload[..head.len()].copy_from_slice(head);
        payload = &mut payload[head.len()..];
    }
    body.read(0, payload);
    Some(end)
}

/// The next record of a batch that a peer sent, and its end; `None` if it does not lie inside.
#[inline(always)]
fn record(batch: View<'_>, at: usize) -> Option<(PacketFlags, u64, View<'_>, usize)> {
    let mut first = [0; HEAD_BYTES];
    batch.part(at, HEAD_BYTES)?.read(0, &mut first);
    let first = u32::from_le_bytes(first);
    let (length, flags) =
        (first as u16 as usize, PacketFlags::from_bits_truncate((first >> 16) as u8));
    let (mut start, mut immediate) = (at + HEAD_BYTES, [0; IMMEDIATE_BYTES]);
    if flags.contains(PacketFlags::IMMEDIATE) {
        batch.part(start, IMMEDIATE_BYTES)?.read(0, &mut immediate);
        start += IMMEDIATE_BYTES;
    }
    let payload = batch.part(start, length)?;
    Some((flags, u64::from_le_bytes(immediate), payload, filled_up(start + length)))
}

impl Core {
    /// Posts messages in turn. `posted` counts the posted ones, after an error too. The others are
    /// unchanged.
    pub(super) fn post_sends<T: Transport>(
        &mut self,
        transport: &mut T,
        queue_pair: QueuePair,
        sends: &mut [Message<'_>],
        posted: &mut usize,
    ) -> Result<()> {
        transport.hold();
        let ended = self.post_in_turn(transport, queue_pair, sends, posted);
        transport.let_go(true);
        ended
    }

    #[inline(always)]
    fn post_in_turn<T: Transport>(
        &mut self,
        transport: &mut T,
        queue_pair: QueuePair,
        sends: &mut [Message<'_>],
        posted: &mut usize,
    ) -> Result<()> {
        while *posted < sends.len() {
            let together = self.send_batch(transport, queue_pair, &mut sends[*posted..]);
            *posted += together;
            if together == 0 {
                // A single message is posted, or returns its error.
                self.post_send(transport, queue_pair, &mut sends[*posted])?;
                *posted += 1;
            }
        }
        Ok(())
    }

    /// Sends the first messages in one packet, as many as have the same destination and fit. Sends
    /// none if they are fewer than two or cannot leave at once. Returns the number sent.
    #[inline(always)]
    fn send_batch<T: Transport>(
        &mut self,
        transport: &mut T,
        queue_pair: QueuePair,
        sends: &mut [Message<'_>],
    ) -> usize {
        let QueuePair { slot, generation, .. } = queue_pair;
        let to = match sends {
            [first, _, ..] => first.to,
            _ => return 0,
        };
        let Some(qp) = self.queue_pairs.find_mut(slot, generation) else { return 0 };
        let Some(link) = qp.link_for(&self.links, to) else { return 0 };
        if !qp.sends.is_empty() || !transport.carries_batches(link) {
            return 0;
        }
        let batch = &mut self.batch[..BATCH_BYTES.min(self.limits.eager_bytes)];
        let mut room = self.completion_queues[qp.send_completions].room();
        let (mut count, mut length) = (0, 0);
        for send in &*sends {
            let Some((head, body)) = send.payload.parts(&self.regions) else { break };
            if send.to != to || send.signaled && room == 0 {
                break;
            }
            let Some(end) = add(batch, length, send.immediate, head, body) else { break };
            length = end;
            room -= usize::from(send.signaled);
            count += 1;
        }
        let (from, to) = (qp.handle.number, qp.routing.cache.to.queue_pair);
        let header = PacketHeader::new(Kind::Batch, to, from, 0);
        let records = View::of(&batch[..length]);
        if count < 2 || transport.send_message(link, header, &[], records).is_none() {
            return 0;
        }
        for send in &mut sends[..count] {
            let length = send.len();
            qp.complete_sent(&mut self.completion_queues, send, length);
        }
        count
    }

    /// Posts gathered messages in turn, each with this context. `more`: others follow at once, for
    /// which these may wait. After an error, those that are not posted are still there.
    pub(super) fn post_packed<T: Transport>(
        &mut self,
        transport: &mut T,
        from: QueuePair,
        to: Destination,
        packed: &mut PackedMessages,
        (context, more): (u64, bool),
    ) -> Result<()> {
        transport.hold();
        let ended = self.post_records(transport, from, to, packed, context);
        transport.let_go(!more);
        if ended.is_ok() {
            packed.clear();
        }
        ended
    }

    /// Sends gathered messages in one packet. `false`: they are fewer than two, or cannot leave at
    /// once, and nothing has changed.
    fn sends_packed<T: Transport>(
        &mut self,
        transport: &mut T,
        from: QueuePair,
        to: Destination,
        packed: &PackedMessages,
    ) -> bool {
        let QueuePair { slot, generation, .. } = from;
        let records = View::of(&packed.records[packed.posted..packed.end]);
        let Some(qp) = self.queue_pairs.find_mut(slot, generation) else { return false };
        let Some(link) = qp.link_for(&self.links, to) else { return false };
        if packed.count < 2
            || records.len() > self.limits.eager_bytes
            || !qp.sends.is_empty()
            || !transport.carries_batches(link)
        {
            return false;
        }
        let (from, to) = (qp.handle.number, qp.routing.cache.to.queue_pair);
        let header = PacketHeader::new(Kind::Batch, to, from, 0);
        let is_sent = transport.send_message(link, header, &[], records).is_some();
        if is_sent {
            qp.fast_sends.count_several(packed.count, packed.bytes);
        }
        is_sent
    }

    /// Posts gathered messages one by one, until the rest leaves in one packet.
    fn post_records<T: Transport>(
        &mut self,
        transport: &mut T,
        from: QueuePair,
        to: Destination,
        packed: &mut PackedMessages,
        context: u64,
    ) -> Result<()> {
        while !self.sends_packed(transport, from, to, packed) {
            let records = View::of(&packed.records[..packed.end]);
            let Some((_, immediate, payload, end)) = record(records, packed.posted) else { break };
            let length = payload.len();
            let send = Message::gathered(&[], payload).immediate(immediate);
            let mut send = send.context(context).unsignaled();
            send.to = to;
            self.post_send(transport, from, &mut send)?;
            packed.posted = end;
            packed.count -= 1;
            packed.bytes -= length;
        }
        Ok(())
    }

    /// Offers the messages of a batch in turn. Resumes at the message that had no room last time.
    #[inline(always)]
    pub(super) fn on_batch(
        &mut self,
        link: LinkId,
        header: PacketHeader,
        batch: View<'_>,
        mut offer: impl FnMut(&mut Core, [u64; 3], View<'_>) -> Verdict,
    ) -> Verdict {
        let place = self.links.find_mut(link).map(|entry| &mut entry.in_batch);
        let mut at = place.map_or(0, std::mem::take);
        while at < batch.len() {
            let Some((flags, immediate, payload, end)) = record(batch, at) else {
                return self.violation();
            };
            let mut message =
                PacketHeader::new(Kind::Send, header.destination, header.source, immediate);
            message.flags = flags;
            message.length = payload.len() as u32;
            match offer(self, message.to_words(), payload) {
                Verdict::Taken => at = end,
                Verdict::Stalled => {
                    if let Some(entry) = self.links.find_mut(link)
                        && !planted("batch-starts-again")
                    {
                        entry.in_batch = at;
                    }
                    return Verdict::Stalled;
                }
                Verdict::Violation => return Verdict::Violation,
            }
        }
        Verdict::Taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records stand side by side, each filled up to four bytes with zeroes, and are read back.
    #[test]
    fn records_are_read_as_they_were_written() {
        let mut batch = [0xff; 48];
        let end = add(&mut batch, 0, None, &[1, 2], View::of(&[3, 4, 5]));
        assert_eq!(end, Some(12));
        assert_eq!(batch[..12], [5, 0, 0, 0, 1, 2, 3, 4, 5, 0, 0, 0]);
        let end = add(&mut batch, 12, Some(0x0102), &[], View::of(&[9; 8]));
        assert_eq!(end, Some(32));
        let flag = PacketFlags::IMMEDIATE.bits();
        let second = [&[8, 0, flag, 0, 2, 1, 0, 0, 0, 0, 0, 0][..], &[9; 8]].concat();
        assert_eq!((&batch[12..32], batch[32]), (&second[..], 0xff));
        assert_eq!(add(&mut batch, 32, None, &[], View::of(&[7; 13])), None, "no room");
        assert_eq!(add(&mut batch, 32, None, &[], View::of(&[7; 12])), Some(48));

        let batch = View::of(&batch);
        let (flags, _, payload, end) = record(batch, 0).expect("a record");
        assert_eq!((flags, payload.to_vec(), end), (PacketFlags::empty(), vec![1, 2, 3, 4, 5], 12));
        let (flags, immediate, payload, end) = record(batch, 12).expect("a record");
        assert_eq!((flags, immediate), (PacketFlags::IMMEDIATE, 0x0102));
        assert_eq!((payload.to_vec(), end), (vec![9; 8], 32));
        assert!(record(View::of(&[5, 0, 0, 0, 1, 2, 3, 4]), 0).is_none(), "cut short");
        assert!(record(View::of(&[0, 0, flag, 0, 1]), 0).is_none(), "cut short");
        let (.., end) = record(View::of(&[0, 0, flag, 0, 1, 0, 0, 0, 0, 0, 0, 0]), 0).expect("one");
        assert_eq!(end, 12);
    }

    /// Gathered messages are counted with their bytes, up to the room that there is.
    #[test]
    fn gathered_messages_have_a_limit() {
        let mut packed = PackedMessages::new();
        assert!(packed.is_empty());
        assert!(!packed.add(1, &[1], View::of(&[1; PackedMessages::LONGEST])), "too long");
        let added = (0..).find(|&n| !packed.add(n, &[1, 2, 3], View::of(&[4])));
        assert_eq!((added, packed.count), (Some(64), BATCH_BYTES / 16));
        assert_eq!((packed.end, packed.bytes), (BATCH_BYTES, 256));
        packed.clear();
        assert!(packed.is_empty() && packed.add(1, &[], View::empty()));
        assert_eq!((packed.end, packed.bytes, packed.count), (12, 0, 1));
    }

    /// The longest record has 256 bytes.
    #[test]
    fn records_have_a_longest() {
        let (mut batch, body) = ([0; BATCH_BYTES], [1; RECORD_BYTES]);
        assert_eq!(add(&mut batch, 0, None, &[], View::of(&body)), Some(260));
        assert_eq!(add(&mut batch, 0, None, &[1], View::of(&body)), None);
        assert_eq!(add(&mut batch, 0, Some(7), &[1], View::of(&body[1..])), Some(268));
    }
}
