//! What has to go to a peer and is no descriptor of the program: answers, grants, streams of staged data, connection messages.
//!
//! Answering must never keep the engine from taking packets, or two functions that ask each other for much would both stop
//! taking and wait for ever (C-26). So answers go to an outbox per link, which plays the part of the second virtual channel
//! (C-27). It needs no limit of its own: a peer has a bounded number of operations under way, each is owed one answer, and one
//! that asks for more breaks the protocol.

use super::payload::{DATA_REPLY, DATA_TRANSFER, DATA_WITHDRAWN, Head, status_number};
use super::regions::Request;
use super::{Core, Stage};
use bellwire_device::{
    Kind, LinkId, PacketFlags, PacketHeader, Refusal, Rights, Status, Transport, Verdict,
};
use bellwire_protocol::OpId;
use bellwire_ring::memory::View;
use std::collections::VecDeque;

/// Packets of streams that one call of `progress` sends on one link at most.
const STREAM_BURST: usize = 64;

/// What waits to go to one peer.
#[derive(Default)]
pub(crate) struct Outbox {
    /// Apart, as on a link with two channels one of them may be stuck while the other is not.
    answers: VecDeque<Reply>,
    requests: VecDeque<Reply>,
    streams: VecDeque<Stream>,
    /// Whether the link is in the list of those with something to send.
    listed: bool,
}

impl Outbox {
    /// Packets and streams that wait.
    fn len(&self) -> usize {
        self.answers.len() + self.requests.len() + self.streams.len()
    }
}

/// One packet.
pub(crate) struct Reply {
    header: PacketHeader,
    head: Head,
    private_data: Box<[u8]>,
}

impl Reply {
    pub(crate) fn new(header: PacketHeader, words: &[u64]) -> Self {
        Reply { header, head: Head::new(words), private_data: Box::default() }
    }

    /// The end of an operation of the peer.
    pub(crate) fn done(operation: u64, status: Status, length: u64, value: u64) -> Self {
        let mut header = PacketHeader::new(Kind::Done, 0, 0, operation);
        header.aux = status_number(status);
        Self::new(header, &[length, value])
    }

    /// The end of a transfer that the peer granted.
    pub(crate) fn withdrawn(transfer: u64) -> Self {
        let mut header = PacketHeader::new(Kind::Data, 0, 0, transfer);
        header.aux = DATA_WITHDRAWN;
        header.flags = PacketFlags::LAST;
        Self::new(header, &[])
    }

    pub(crate) fn with_private_data(header: PacketHeader, bytes: &[u8]) -> Self {
        Reply { header, head: Head::EMPTY, private_data: bytes.into() }
    }
}

/// Bytes that go as many packets as they need, and are read when each packet is sent.
pub(crate) enum Stream {
    /// Our long message, which the peer's transfer asked for.
    Message { operation: OpId, transfer: u64, at: u64, end: u64 },
    /// Our memory, which the peer's get asked for: `left` bytes of `request` are still to go.
    Region { operation: u64, request: Request, at: u64 },
}

impl Core {
    /// Queues one packet for a link.
    pub(crate) fn reply(&mut self, link: LinkId, reply: Reply) {
        let Some(entry) = self.links.find_mut(link) else { return };
        let Outbox { answers, requests, .. } = &mut entry.outbox;
        if reply.header.is_answer() { answers } else { requests }.push_back(reply);
        if !std::mem::replace(&mut entry.outbox.listed, true) {
            self.links.outgoing.push_back(link);
        }
    }

    /// Queues a stream for a link.
    pub(crate) fn stream(&mut self, link: LinkId, stream: Stream) {
        let Some(entry) = self.links.find_mut(link) else { return };
        entry.outbox.streams.push_back(stream);
        if !std::mem::replace(&mut entry.outbox.listed, true) {
            self.links.outgoing.push_back(link);
        }
    }

    /// Answers a request of the peer, if it has not asked for more than it may.
    pub(crate) fn answer(&mut self, link: LinkId, answer: Result<Reply, Stream>) -> Verdict {
        if self.owes_too_much(link) {
            return self.violation();
        }
        match answer {
            Ok(reply) => self.reply(link, reply),
            Err(stream) => self.stream(link, stream),
        }
        Verdict::Taken
    }

    fn owes_too_much(&self, link: LinkId) -> bool {
        // A peer's queue pairs can all ask for a connection at once, and its window is at most the largest one.
        let bound = 1024 + 2 * self.limits.queue_pairs;
        self.links.find(link).is_some_and(|link| link.outbox.len() >= bound)
    }

    /// Sends what fits. Returns how many packets went.
    pub(super) fn flush_outboxes<T: Transport>(&mut self, transport: &mut T) -> usize {
        let mut sent = 0;
        for _ in 0..self.links.outgoing.len() {
            let Some(link) = self.links.outgoing.pop_front() else { break };
            let Some(entry) = self.links.find_mut(link) else { continue };
            entry.outbox.listed = false;
            let mut outbox = std::mem::take(&mut entry.outbox);
            sent += self.flush_outbox(transport, link, &mut outbox);
            // Sending adds nothing to outboxes, so the old one is put back as it is.
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
            // Streams would go the same way.
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
    ) -> Result<bool, Refusal> {
        let packet_bytes = self.limits.packet_bytes as u64;
        match *stream {
            Stream::Message { operation, transfer, ref mut at, end } => {
                let mut header =
                    PacketHeader::new(Kind::Data, *at as u32, (*at >> 32) as u32, transfer);
                header.aux = DATA_TRANSFER;
                let body = match self.operations.operation(operation) {
                    Ok(operation) => match &operation.stage {
                        Stage::Offered { message, .. } => Some(message.data.view()),
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
                let mut header =
                    PacketHeader::new(Kind::Data, *at as u32, (*at >> 32) as u32, operation);
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

/// Sends packets from the front on as long as the transport takes them. Returns how many went.
fn send_all<T: Transport>(transport: &mut T, link: LinkId, replies: &mut VecDeque<Reply>) -> usize {
    let mut sent = 0;
    while let Some(reply) = replies.front() {
        let body = View::of(&reply.private_data);
        // Busy, or over: the link's end is reported by the next poll, and takes the outbox with it.
        if transport.send(link, reply.header, reply.head.as_slice(), body).is_err() {
            break;
        }
        replies.pop_front();
        sent += 1;
    }
    sent
}
