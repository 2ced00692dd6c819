//! Packets to peers that are not the program's descriptors: answers, grants, streams of staged
//! data, connection messages.
//!
//! An unsent answer must never keep the engine from receiving: two functions that request much of
//! each other would both stop receiving and deadlock (C-26). So answers go to an outbox per link,
//! which acts as the second virtual channel (C-27). Its length is bounded: a peer has a bounded
//! number of operations in flight, and each gets one answer. A peer that exceeds the bound breaks
//! the protocol.

use super::Core;
use super::payload::{DATA_REPLY, DATA_TRANSFER, DATA_WITHDRAWN, Head, status_number};
use super::regions::Request;
use super::work::{Posted, Work};
use bellwire_device::{
    Kind, LinkId, PacketFlags, PacketHeader, Result, Rights, SendError, Status, Transport, Verdict,
};
use bellwire_protocol::OpId;
use bellwire_ring::memory::View;
use std::collections::VecDeque;

/// Most packets of streams that one call of `progress` sends on one link.
const STREAM_BURST: usize = 64;

/// Packets and streams that wait to go to one peer.
#[derive(Default)]
pub(crate) struct Outbox {
    /// Kept apart from the other replies: on a link with two channels, one may be blocked while the
    /// other is not.
    answers: VecDeque<Reply>,
    requests: VecDeque<Reply>,
    streams: VecDeque<Stream>,
    /// Whether the link is in `Links::outgoing`.
    listed: bool,
}

impl Outbox {
    /// Waiting packets and streams.
    fn len(&self) -> usize {
        self.answers.len() + self.requests.len() + self.streams.len()
    }
}

/// One packet.
pub(crate) struct Reply {
    header: PacketHeader,
    head: Head,
    private_data: Box<[u8]>,
    /// It may wait for a packet of the program.
    later: bool,
}

impl Reply {
    pub(crate) fn new(header: PacketHeader, words: &[u64]) -> Self {
        Reply { header, head: Head::new(words), private_data: Box::default(), later: false }
    }

    /// The same, of a reply that may wait for a packet of the program.
    pub(crate) fn later(self, later: bool) -> Self {
        Reply { later, ..self }
    }

    /// The end of an operation of the peer.
    pub(crate) fn done(operation: u64, status: Status, length: u64, value: u64) -> Self {
        let mut header = PacketHeader::new(Kind::Done, 0, 0, operation);
        header.aux = status_number(status);
        Self::new(header, &[length, value])
    }

    /// The end of a transfer that the peer granted.
    pub(crate) fn withdrawn(transfer: u64) -> Self {
        let mut header = PacketHeader::data(0, transfer);
        header.aux = DATA_WITHDRAWN;
        header.flags = PacketFlags::LAST;
        Self::new(header, &[])
    }

    pub(crate) fn with_private_data(header: PacketHeader, bytes: &[u8]) -> Self {
        Reply { header, head: Head::EMPTY, private_data: bytes.into(), later: false }
    }
}

/// Bytes that fill several packets. Each packet's bytes are read when it is sent.
pub(crate) enum Stream {
    /// Our long message, for the peer's transfer.
    Message { operation: OpId, transfer: u64, at: u64, end: u64 },
    /// Our memory, for the peer's get. `at` counts the bytes of `request` that have been sent.
    Region { operation: u64, request: Request, at: u64 },
}

impl Core {
    /// Queues one packet for a link.
    pub(crate) fn reply(&mut self, link: LinkId, reply: Reply) {
        self.queue(link, Ok(reply));
    }

    /// Queues a packet or a stream for a link.
    fn queue(&mut self, link: LinkId, answer: Result<Reply, Stream>) {
        let Some(entry) = self.links.find_mut(link) else { return };
        let Outbox { answers, requests, streams, listed } = &mut entry.outbox;
        match answer {
            Ok(reply) if reply.header.is_answer() => answers.push_back(reply),
            Ok(reply) => requests.push_back(reply),
            Err(stream) => streams.push_back(stream),
        }
        if !std::mem::replace(listed, true) {
            self.links.outgoing.push_back(link);
            self.deferred = true;
        }
    }

    /// Answers a peer's request, unless the peer exceeds its bound.
    pub(crate) fn answer(&mut self, link: LinkId, answer: Result<Reply, Stream>) -> Verdict {
        // All queue pairs of a peer can request a connection at once, and its window is at most the
        // largest one.
        let bound = 1024 + 2 * self.limits.queue_pairs;
        if self.links.find(link).is_some_and(|link| link.outbox.len() >= bound) {
            return self.violation();
        }
        self.queue(link, answer);
        Verdict::Taken
    }

    /// Sends what fits. Returns the number of packets sent.
    pub(super) fn flush_outboxes<T: Transport>(&mut self, transport: &mut T) -> usize {
        let mut sent = 0;
        for _ in 0..self.links.outgoing.len() {
            let Some(link) = self.links.outgoing.pop_front() else { break };
            let Some(entry) = self.links.find_mut(link) else { continue };
            entry.outbox.listed = false;
            let mut outbox = std::mem::take(&mut entry.outbox);
            sent += self.flush_outbox(transport, link, &mut outbox);
            // Sending adds nothing to outboxes, so the old one is put back unchanged.
            let Some(entry) = self.links.find_mut(link) else { continue };
            let listed = outbox.len() > 0;
            outbox.listed = listed;
            entry.outbox = outbox;
            if listed {
                self.links.outgoing.push_back(link);
            }
        }
        sent
    }

    fn flush_outbox<T: Transport>(
        &mut self,
        transport: &mut T,
        link: LinkId,
        outbox: &mut Outbox,
    ) -> usize {
        let mut sent = send_all(transport, link, &mut outbox.answers);
        sent += send_all(transport, link, &mut outbox.requests);
        if !outbox.answers.is_empty() {
            // Streams use the same channel.
            return sent;
        }
        for _ in 0..STREAM_BURST {
            let Some(mut stream) = outbox.streams.pop_front() else { break };
            match self.send_piece(transport, link, &mut stream) {
                Ok(true) => {}
                Ok(false) => outbox.streams.push_back(stream),
                Err(_) => {
                    outbox.streams.push_front(stream);
                    break;
                }
            }
            sent += 1;
        }
        sent
    }

    /// Sends the next packet of a stream; `true` if it was the last.
    fn send_piece<T: Transport>(
        &mut self,
        transport: &mut T,
        link: LinkId,
        stream: &mut Stream,
    ) -> Result<bool, SendError> {
        let packet_bytes = self.limits.packet_bytes as u64;
        match *stream {
            Stream::Message { operation, transfer, ref mut at, end } => {
                let mut header = PacketHeader::data(*at, transfer);
                header.aux = DATA_TRANSFER;
                let body = match self.operations.operation(operation) {
                    Ok(operation) => match &operation.posted {
                        Some(Posted { work: Work::Message(message), .. }) => {
                            Some(message.data.view())
                        }
                        _ => None,
                    },
                    Err(_) => None,
                };
                let length = packet_bytes.min(end - *at);
                let body = body.and_then(|body| body.part(*at as usize, length as usize));
                let Some(body) = body else {
                    let header = Reply::withdrawn(transfer).header;
                    transport.send(link, header, &[], View::empty())?;
                    return Ok(true);
                };
                let last = *at + length == end;
                header.flags.set(PacketFlags::LAST, last);
                transport.send(link, header, &[], body)?;
                *at += length;
                Ok(last)
            }
            Stream::Region { operation, request, ref mut at } => {
                // The region may have been deregistered since the request came.
                let region = match self.regions.check(request, Rights::REMOTE_READ) {
                    Ok(region) => region,
                    Err(status) => {
                        let reply = Reply::done(operation, status, *at, 0);
                        transport.send(link, reply.header, reply.head.as_slice(), View::empty())?;
                        return Ok(true);
                    }
                };
                let mut header = PacketHeader::data(*at, operation);
                header.aux = DATA_REPLY;
                let length = packet_bytes.min(request.length - *at);
                let last = *at + length == request.length;
                header.flags.set(PacketFlags::LAST, last);
                let start = (request.offset + *at) as usize;
                let body = region.view().part(start, length as usize).expect("checked above");
                transport.send(link, header, &[], body)?;
                *at += length;
                Ok(last)
            }
        }
    }
}

/// Sends packets from the front while the transport takes them. Returns the number sent.
fn send_all<T: Transport>(transport: &mut T, link: LinkId, replies: &mut VecDeque<Reply>) -> usize {
    let mut sent = 0;
    while let Some(reply) = replies.front() {
        let (header, head) = (reply.header, reply.head.as_slice());
        let body = View::of(&reply.private_data);
        let taken = match reply.later {
            true => transport.send_later(link, header, head, body),
            false => transport.send(link, header, head, body),
        };
        // Busy, or down: the next poll reports the end of the link, which drops the outbox.
        if taken.is_err() {
            break;
        }
        replies.pop_front();
        sent += 1;
    }
    sent
}
