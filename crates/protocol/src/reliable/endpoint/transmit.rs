//! Writes outgoing frames.

use bellwire_wire::frame::check::seal;
use bellwire_wire::frame::header::{FrameHeader, FrameKind, HEADER_BYTES};
use bellwire_wire::frame::open::OPEN_BYTES;
use bellwire_wire::frame::{FRAME_OVERHEAD_BYTES, MIN_FRAME_BYTES};

use super::Endpoint;
use super::replies::{Reply, ReplyBody};
use crate::canary::planted;
use crate::reliable::link::{Left, Writer};
use crate::reliable::{PeerId, Transmit};

/// Bytes of an Open or Accept.
const OPEN_FRAME_BYTES: usize = FRAME_OVERHEAD_BYTES + OPEN_BYTES;

impl Endpoint {
    /// Writes the next frame into `buffer`, which should have room for
    /// [`crate::reliable::Config::frame_bytes`];
    /// `None` if nothing is to be sent now. The endpoint keeps what it may have to retransmit, so
    /// the buffer is free once the frame has gone.
    #[inline]
    pub fn poll_transmit(&mut self, now_ns: u64, buffer: &mut [u8]) -> Option<Transmit> {
        self.next_frame(now_ns, buffer, false).map(|(transmit, _)| transmit)
    }

    /// As [`Endpoint::poll_transmit`], for frames that are moved anyway, as by a cipher. The bytes
    /// of the frame before its check value, so many as are returned, are not in the buffer.
    #[inline]
    pub fn poll_transmit_apart(
        &mut self,
        now_ns: u64,
        buffer: &mut [u8],
    ) -> Option<(Transmit, &[u8])> {
        debug_assert!(!self.config.has_check, "it would cover bytes that are not there");
        let (transmit, left) = self.next_frame(now_ns, buffer, true)?;
        let left = left.and_then(|(slot, left)| Some(self.links.at(slot)?.sender.left(left)));
        Some((transmit, left.unwrap_or_default()))
    }

    /// Writes the next frame. What stayed in a stream of the link in a slot is told, too.
    #[inline]
    fn next_frame(
        &mut self,
        now_ns: u64,
        buffer: &mut [u8],
        may_leave: bool,
    ) -> Option<(Transmit, Option<(usize, Left)>)> {
        if now_ns >= self.links.next_timer_ns {
            self.run_timers(now_ns);
        }
        while let Some((peer, queue_pair)) = self.gates.next_wanted() {
            self.ask_gate(peer, queue_pair);
        }
        if buffer.len() < MIN_FRAME_BYTES {
            return None;
        }
        if let Some(reply) = self.replies.0.pop_front() {
            return self.write_reply(&reply, buffer).map(|transmit| (transmit, None));
        }
        while let Some(slot) = self.links.ready.front() {
            let transmit = self.transmit(slot, now_ns, buffer, may_leave);
            // Usually the link has no more to send. Checking costs less than another try, which
            // would delay this frame.
            let is_done =
                transmit.is_none() || self.links.at(slot).is_some_and(|link| !link.has_something());
            if is_done {
                self.links.ready.pop();
            } else if self.links.ready.len() > 1 && !planted("reliable-no-turns") {
                // Links take turns, one frame each.
                self.links.ready.rotate();
            }
            if let Some((transmit, left)) = transmit {
                return Some((transmit, left.map(|left| (slot, left))));
            }
        }
        None
    }

    /// Asks a peer for the gate of a queue pair.
    #[cold]
    fn ask_gate(&mut self, peer: PeerId, queue_pair: u32) {
        let index = self.gates.index(queue_pair);
        if let (Some(link), Some(index)) = (self.links.get_mut(peer), index) {
            link.gates.ask(index);
            self.links.settle(peer.slot());
        }
    }

    #[inline]
    fn transmit(
        &mut self,
        slot: usize,
        now_ns: u64,
        buffer: &mut [u8],
        may_leave: bool,
    ) -> Option<(Transmit, Option<Left>)> {
        let Endpoint { config, links, gates, shares, counters, .. } = self;
        let link = links.at_mut(slot)?;
        if link.opening.is_due() {
            return self.write_open(slot, now_ns, buffer).map(|transmit| (transmit, None));
        }
        if !link.is_running() {
            return None;
        }
        let limit = buffer.len().min(link.path_mtu.frame_bytes);
        let frame = Writer::new(&mut buffer[..limit], may_leave);
        let transmit = link.transmit(self.me.function, gates, shares, counters, now_ns, frame);
        if let Some((frame, _)) = &transmit
            && config.has_check
        {
            seal(&mut buffer[..frame.length]).ok()?;
        }
        self.links.settle_deadline(slot);
        transmit
    }

    /// Writes an Open or an Accept.
    #[cold]
    fn write_open(&mut self, slot: usize, now_ns: u64, buffer: &mut [u8]) -> Option<Transmit> {
        let link = self.links.at_mut(slot)?;
        let is_accept = link.opening.take_due();
        if !is_accept || !link.is_running() {
            link.opening.ask(now_ns);
        }
        let credit = link.backlogs.advertise(self.shares.bytes());
        let path = match is_accept {
            true => link.paths.back(OPEN_FRAME_BYTES),
            false => link.paths.ask_by(now_ns),
        };
        let (kind, token) = match is_accept {
            true => (FrameKind::Accept, link.opening.peer_token),
            false => (FrameKind::Open, link.paths.cookie(path)),
        };
        let link = self.links.at(slot)?;
        let header = FrameHeader {
            sequence: link.opening.first_number(),
            credit,
            ..FrameHeader::new(kind, link.peer.function, self.me.function, token)
        };
        let path = link.paths.id(path);
        let body = self.open_body(link, is_accept).emit();
        let length = write_whole(header, &body, buffer, self.config.has_check)?;
        self.links.settle_deadline(slot);
        Some(Transmit { path, length })
    }

    #[cold]
    fn write_reply(&mut self, reply: &Reply, buffer: &mut [u8]) -> Option<Transmit> {
        let mut write = |kind, body: &[u8]| {
            let header = FrameHeader::new(kind, reply.function, self.me.function, reply.token);
            write_whole(header, body, buffer, self.config.has_check)
        };
        let length = match reply.body {
            ReplyBody::Unknown => write(FrameKind::Unknown, &[]),
            ReplyBody::Close(reason) => write(FrameKind::Close, &[reason as u8]),
            ReplyBody::Refuse(body) => write(FrameKind::Refuse, &body.emit()),
            ReplyBody::Challenge(body) => write(FrameKind::Challenge, &body.emit()),
        }?;
        Some(Transmit { path: reply.path, length })
    }
}

/// Writes a frame with a body of fixed length.
fn write_whole(
    mut header: FrameHeader,
    body: &[u8],
    buffer: &mut [u8],
    has_check: bool,
) -> Option<usize> {
    let length = FRAME_OVERHEAD_BYTES + body.len();
    let frame = buffer.get_mut(..length)?;
    header.length = length as u16;
    header.emit(frame).ok()?;
    frame[HEADER_BYTES..HEADER_BYTES + body.len()].copy_from_slice(body);
    if has_check {
        seal(frame).ok()?;
    }
    Some(length)
}
