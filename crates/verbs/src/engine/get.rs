//! GET: a peer's memory into local buffers (C-25).
//!
//! If the device reaches the memory directly, the bytes are here when `Transport::get` returns.
//! Otherwise the owner's engine sends them as a stream, one piece of the chain after the other.

use super::chain::{around_cache, local_lengths, pieces, remote_lengths};
use super::close::Teardown;
use super::outbox::{Reply, Stream};
use super::payload::{Head, words};
use super::receive::Packet;
use super::regions::Request;
use super::work::{Attempt, Outcome, Posted, Work};
use super::{Core, SLICE_BYTES};
use crate::Get;
use crate::descriptor::{LocalChain, RemoteChain};
use bellwire_device::{
    Buffer, Direct, Kind, PacketFlags, PacketHeader, QueuePair, RemoteSlice, Result, Rights,
    Status, Transport, Verdict,
};
use bellwire_protocol::OpId;
use bellwire_wire::recut::Piece;

/// A get in progress.
pub(crate) struct GetWork {
    sources: RemoteChain,
    pub(crate) destinations: LocalChain,
    total: u64,
    pub(super) done: u64,
    /// The piece requested last, and the bytes of it that have come.
    asked: Option<(Piece, u64)>,
}

impl GetWork {
    fn next_piece(&self) -> Option<Piece> {
        pieces(remote_lengths(&self.sources), local_lengths(&self.destinations), self.done).next()
    }

    /// The request for a piece.
    fn request(&self, piece: Piece) -> [u64; 4] {
        let slice = &self.sources.0.items()[piece.source_index];
        let key = slice.key;
        [key.key, key.index as u64, slice.offset + piece.source_offset, piece.length]
    }
}

// The initiator's side.
impl Core {
    /// Posts a get to `queue_pair`. After an error `get` is unchanged; otherwise its lists have
    /// been taken out.
    pub(super) fn post_get<T: Transport>(
        &mut self,
        transport: &mut T,
        queue_pair: QueuePair,
        get: &mut Get,
    ) -> Result<()> {
        let slot = self.room_to_post(queue_pair)?;
        let (total, owner) = self.check_chain(&get.destinations, &get.sources, false)?;
        let (link, to) = self.route_to_owner(transport, queue_pair, owner)?;
        let empty = Get::new(Vec::<RemoteSlice>::new(), Vec::<Buffer>::new());
        let Get { sources, destinations, context, signaled } = std::mem::replace(get, empty);
        let work = Work::Get(GetWork { sources, destinations, total, done: 0, asked: None });
        self.accept(transport, slot, Posted { link, to, context, signaled, work });
        Ok(())
    }

    /// Continues a get.
    pub(super) fn attempt_get<T: Transport>(
        &mut self,
        transport: &mut T,
        slot: u32,
        mut posted: Posted,
    ) -> Attempt {
        let Work::Get(get) = &mut posted.work else { unreachable!("the caller looked") };
        let mut budget = SLICE_BYTES as u64;
        while let Some(piece) = get.next_piece() {
            if budget == 0 {
                return Attempt::Yielded(posted);
            }
            let length = piece.length.min(budget);
            let slice = get.sources.0.items()[piece.source_index];
            let buffer = &mut get.destinations.0.items_mut()[piece.destination_index];
            let into = buffer.view_mut().part(piece.destination_offset as usize, length as usize);
            let into = around_cache(into.expect("a piece lies inside its buffer"), get.total);
            let at = slice.offset + piece.source_offset;
            match transport.get(posted.link, slice.key, at, into) {
                Direct::Done(_) => {
                    get.done += length;
                    budget -= length;
                }
                Direct::Pending => return Attempt::Blocked(posted),
                Direct::ByPacket => return self.ask_owner(transport, slot, posted, piece),
                Direct::Refused(status) => return self.fail(transport, slot, posted, status),
            }
        }
        let total = get.total as usize;
        self.finish_posted(slot, posted, Outcome::success(total))
    }

    /// Requests a piece from the owner's engine. Its answers trigger the further requests.
    fn ask_owner<T: Transport>(
        &mut self,
        transport: &mut T,
        slot: u32,
        mut posted: Posted,
        piece: Piece,
    ) -> Attempt {
        let Some(id) = self.start_operation(slot, &posted) else {
            return Attempt::Blocked(posted);
        };
        let Work::Get(get) = &mut posted.work else { unreachable!("the caller looked") };
        // If the packet does not leave, the next attempt requests the piece anew.
        get.asked = Some((piece, 0));
        let header = PacketHeader::new(Kind::Get, 0, 0, id.to_bits());
        let head = Head::new(&get.request(piece));
        self.send_request(transport, (slot, id), posted, header, head)
    }

    /// Bytes for a get of ours.
    pub(super) fn on_reply_data(&mut self, packet: &Packet<'_>) -> Verdict {
        let Packet { link, header, payload, .. } = *packet;
        let id = OpId::from_bits(header.argument);
        let Some(operation) = self.operations.operation(id).ok().filter(|o| o.link == link) else {
            return self.stale_operation();
        };
        let Some(Posted { work: Work::Get(get), .. }) = &mut operation.posted else {
            return self.violation();
        };
        let Some((piece, come)) = get.asked else { return self.violation() };
        let length = payload.len() as u64;
        let last = header.flags.contains(PacketFlags::LAST);
        let expected = header.offset() == come && length <= piece.length - come;
        if !expected || last != (come + length == piece.length) {
            return self.violation();
        }
        let buffer = &mut get.destinations.0.items_mut()[piece.destination_index];
        let at = (piece.destination_offset + come) as usize;
        let into = buffer.view_mut().part(at, payload.len());
        into.expect("a piece lies inside its buffer").copy_from(payload);
        get.done += length;
        get.asked = Some((piece, come + length));
        if !last {
            return Verdict::Taken;
        }
        match get.next_piece() {
            Some(next) => {
                get.asked = Some((next, 0));
                let header = PacketHeader::new(Kind::Get, 0, 0, id.to_bits());
                let request = get.request(next);
                self.reply(link, Reply::new(header, &request));
            }
            None => {
                let length = get.done;
                get.asked = None;
                let status = Status::Success;
                self.teardowns.push(Teardown::Operation { id, status, length, value: 0 });
                self.deferred = true;
            }
        }
        Verdict::Taken
    }
}

// The owner's side.
impl Core {
    /// A peer requests bytes of our memory.
    pub(super) fn on_get(&mut self, packet: &Packet<'_>) -> Verdict {
        let Packet { link, header, payload, .. } = *packet;
        let Some([key, index, offset, length]) = words(payload) else { return self.violation() };
        let operation = header.argument;
        let request = Request { key, index, offset, length };
        if let Err(status) = self.regions.check(request, Rights::REMOTE_READ) {
            self.count_refusal(status);
            return self.answer(link, Ok(Reply::done(operation, status, 0, 0)));
        }
        self.counters.served_gets += 1;
        self.answer(link, Err(Stream::Region { operation, request, at: 0 }))
    }
}
