//! Atomics on a peer's words of 8 bytes.
//!
//! If the memory is directly reachable, the processor's atomic instruction works on the shared
//! word. Otherwise the owner's engine uses the same instruction on the same word. So both ways are
//! atomic with respect to each other.

use super::Core;
use super::chain::check_bounds;
use super::outbox::Reply;
use super::payload::{Head, words};
use super::receive::Packet;
use super::regions::Request;
use super::work::{Attempt, Outcome, Posted, Work};
use crate::Atomic;
use bellwire_device::{
    AtomicOperation, Direct, Error, Kind, PacketHeader, QueuePair, RemoteAt, Result, Rights,
    Status, Transport, Verdict,
};

/// An atomic in progress.
pub(crate) struct AtomicWork {
    at: RemoteAt,
    pub(super) operation: AtomicOperation,
}

impl Core {
    /// Posts an atomic to `queue_pair`.
    pub(super) fn post_atomic<T: Transport>(
        &mut self,
        transport: &mut T,
        queue_pair: QueuePair,
        atomic: &Atomic,
    ) -> Result<()> {
        let Atomic { at, operation, context, signaled } = *atomic;
        let slot = self.room_to_post(queue_pair)?;
        if !at.offset.is_multiple_of(8) {
            let (parameter, range) = ("offset of an atomic", "a multiple of 8");
            return Err(Error::OutOfRange { parameter, value: at.offset, range });
        }
        check_bounds(at.key, at.offset, 8)?;
        let (link, to) = self.route_to_owner(transport, queue_pair, at.key.owner())?;
        let work = Work::Atomic(AtomicWork { at, operation });
        self.accept(transport, slot, Posted { link, to, context, signaled, work });
        Ok(())
    }

    /// Carries out an atomic, if possible now.
    pub(super) fn attempt_atomic<T: Transport>(
        &mut self,
        transport: &mut T,
        slot: u32,
        posted: Posted,
    ) -> Attempt {
        let Work::Atomic(AtomicWork { at, operation }) = posted.work else {
            unreachable!("the caller looked")
        };
        let RemoteAt { key, offset } = at;
        match transport.atomic(posted.link, key, offset, operation) {
            Direct::Done(value) => {
                let outcome = Outcome { status: Status::Success, length: 8, value };
                return self.finish_posted(slot, posted, outcome);
            }
            Direct::Pending => return Attempt::Blocked(posted),
            Direct::Refused(status) => return self.fail(transport, slot, posted, status),
            Direct::ByPacket => {}
        }
        let Some(id) = self.start_operation(slot, &posted) else { return Attempt::Blocked(posted) };
        let mut header = PacketHeader::new(Kind::Atomic, 0, 0, id.to_bits());
        let (number, [operand, expected]) = operation.to_packet();
        header.aux = number;
        let head = Head::new(&[key.key, key.index as u64, offset, operand, expected]);
        self.send_request(transport, (slot, id), posted, header, head)
    }

    /// A peer requests an atomic on our memory.
    pub(super) fn on_atomic(&mut self, packet: &Packet<'_>) -> Verdict {
        let Packet { link, header, payload, .. } = *packet;
        let Some([key, index, offset, operand, expected]) = words(payload) else {
            return self.violation();
        };
        let Some(operation) = AtomicOperation::from_packet(header.aux, [operand, expected]) else {
            return self.violation();
        };
        let request = Request { key, index, offset, length: 8 };
        let done = self.regions.check(request, Rights::REMOTE_ATOMIC).and_then(|region| {
            operation.apply(region.view(), offset as usize).ok_or(Status::Misaligned)
        });
        let reply = match done {
            Ok(before) => {
                self.counters.served_atomics += 1;
                Reply::done(header.argument, Status::Success, 8, before)
            }
            Err(status) => {
                self.count_refusal(status);
                Reply::done(header.argument, status, 0, 0)
            }
        };
        self.answer(link, Ok(reply))
    }
}
