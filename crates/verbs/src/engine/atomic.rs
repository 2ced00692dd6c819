//! Atomics on a peer's words of 8 bytes.
//!
//! If the memory is directly reachable, the processor's atomic instruction works on the shared
//! word. Otherwise the owner's engine uses the same instruction on the same word. So both ways are
//! atomic with respect to each other.

use super::chain::check_bounds;
use super::outbox::Reply;
use super::payload::{ATOMIC_ADD, ATOMIC_SWAP, Head, words};
use super::regions::Request;
use super::waiting::{Outcome, Posted, Tried, Work};
use super::*;
use bellwire_device::{
    AtomicOperation, Direct, Kind, Operation as Finished, PacketHeader, QueuePair, RemoteAt,
    Rights, SendError,
};
use bellwire_ring::memory::View;

/// An atomic in progress.
#[derive(Clone, Copy)]
pub(crate) struct AtomicWork {
    at: RemoteAt,
    operation: AtomicOperation,
}

impl AtomicWork {
    pub(super) fn operation(&self) -> Finished {
        match self.operation {
            AtomicOperation::FetchAdd(_) => Finished::FetchAdd,
            AtomicOperation::CompareSwap { .. } => Finished::CompareSwap,
        }
    }
}

impl Core {
    /// Posts an atomic to `queue_pair`.
    pub(super) fn post_atomic<T: Transport>(
        &mut self,
        transport: &mut T,
        queue_pair: QueuePair,
        at: RemoteAt,
        operation: AtomicOperation,
        context: u64,
    ) -> Result<()> {
        let slot = self.room_to_post(queue_pair)?;
        if !at.offset.is_multiple_of(8) {
            let parameter = "offset of an atomic";
            return Err(Error::OutOfRange {
                parameter,
                value: at.offset,
                range: "a multiple of 8",
            });
        }
        check_bounds(at.key, at.offset, 8)?;
        let (link, to) = self.route_to_owner(transport, queue_pair, at.key.owner())?;
        let work = Work::Atomic(AtomicWork { at, operation });
        self.accept(transport, slot, Posted { link, to, context, signaled: true, work });
        Ok(())
    }

    /// Carries out an atomic, if possible now.
    pub(super) fn attempt_atomic<T: Transport>(
        &mut self,
        transport: &mut T,
        slot: u32,
        posted: Posted,
    ) -> Tried {
        let Work::Atomic(AtomicWork { at, operation }) = posted.work else {
            unreachable!("the caller looked")
        };
        let RemoteAt { key, offset } = at;
        match transport.atomic(posted.link, key, offset, operation) {
            Direct::Done(value) => {
                let outcome = Outcome { status: Status::Success, length: 8, value };
                self.finish_posted(slot, posted, outcome);
                return Tried::Gone;
            }
            Direct::Pending => return Tried::Waits(posted),
            Direct::Refused(status) => return self.give_up(transport, slot, posted, status),
            Direct::ByPacket => {}
        }
        let Some(id) = self.start_operation(slot, &posted) else { return Tried::Waits(posted) };
        let mut header = PacketHeader::new(Kind::Atomic, 0, 0, id.to_bits());
        let (aux, operand, expected) = match operation {
            AtomicOperation::FetchAdd(operand) => (ATOMIC_ADD, operand, 0),
            AtomicOperation::CompareSwap { expected, new } => (ATOMIC_SWAP, new, expected),
        };
        header.aux = aux;
        let head = Head::new(&[key.key, key.index as u64, offset, operand, expected]);
        match transport.send(posted.link, header, head.as_slice(), View::empty()) {
            Ok(_) => {
                self.hand_over(id, Stage::Atomic(AtomicWork { at, operation }));
                Tried::Gone
            }
            Err(error) => {
                self.end_operation(id);
                match error {
                    SendError::Busy => Tried::Waits(posted),
                    SendError::Down(status) => self.give_up(transport, slot, posted, status),
                }
            }
        }
    }

    /// A peer requests an atomic on our memory.
    pub(super) fn on_atomic(
        &mut self,
        link: LinkId,
        header: PacketHeader,
        payload: View<'_>,
    ) -> Verdict {
        let Some([key, index, offset, operand, expected]) = words(payload) else {
            return self.violation();
        };
        let request = Request { key, index, offset, length: 8 };
        let done = self.regions.check(request, Rights::REMOTE_ATOMIC).and_then(|region| {
            let operation = match header.aux {
                ATOMIC_ADD => AtomicOperation::FetchAdd(operand),
                ATOMIC_SWAP => AtomicOperation::CompareSwap { expected, new: operand },
                _ => return Err(Status::ProtocolViolation),
            };
            operation.apply(region.view(), offset as usize).ok_or(Status::Misaligned)
        });
        let reply = match done {
            Ok(before) => {
                self.counters.served_atomics += 1;
                Reply::done(header.argument, Status::Success, 8, before)
            }
            Err(Status::ProtocolViolation) => return self.violation(),
            Err(status) => {
                self.count_refusal(status);
                Reply::done(header.argument, status, 0, 0)
            }
        };
        self.answer(link, Ok(reply))
    }
}
