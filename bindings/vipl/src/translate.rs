//! Translation (M-11): checks a VI descriptor, and makes physical descriptors of it.

use crate::abi::{ControlSegment, Descriptor, Return, Segment, control, status};
use crate::physical::Physical;
use crate::table::{Refused, Table};

/// Most segments of a descriptor, without the address segment.
pub const DATA_SEGMENTS: usize = 252;

/// The pieces of one descriptor. Up to two need no allocation, which covers most descriptors.
#[derive(Clone, Debug)]
pub enum Pieces {
    Few { pieces: [Physical; 2], count: usize },
    Many(Vec<Physical>),
}

impl Pieces {
    pub const NONE: Pieces = Pieces::Few { pieces: [Physical::EMPTY; 2], count: 0 };

    fn push(&mut self, piece: Physical) {
        match self {
            Pieces::Few { pieces, count } if *count < 2 => {
                pieces[*count] = piece;
                *count += 1;
            }
            Pieces::Few { pieces, .. } => {
                let mut all = pieces.to_vec();
                all.push(piece);
                *self = Pieces::Many(all);
            }
            Pieces::Many(pieces) => pieces.push(piece),
        }
    }

    pub fn all(&self) -> &[Physical] {
        match self {
            Pieces::Few { pieces, count } => &pieces[..*count],
            Pieces::Many(pieces) => pieces,
        }
    }
}

/// The operation that a descriptor asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    Send,
    Receive,
    Write { address: u64, handle: u32 },
    Read { address: u64, handle: u32 },
}

impl Operation {
    /// The operation's bits in the status field.
    pub fn status(self) -> u32 {
        match self {
            Operation::Send => status::OP_SEND,
            Operation::Receive => status::OP_RECEIVE,
            Operation::Write { .. } => status::OP_RDMA_WRITE,
            Operation::Read { .. } => status::OP_RDMA_READ,
        }
    }
}

/// A VI descriptor after translation. The program's descriptor is not read again; only its outcome
/// is written to it.
#[derive(Debug)]
pub struct Translated {
    pub operation: Operation,
    pub pieces: Pieces,
    pub length: u32,
    /// This receive reaches beyond registered memory; its pieces end where the region ends.
    pub is_cut: bool,
    pub immediate: Option<u32>,
    pub fence: bool,
    /// Error bits to complete with instead of being carried out; 0: none.
    pub fault: u32,
}

/// What translation needs of the NIC and the VI.
pub struct Agent<'a> {
    pub table: &'a Table,
    pub tag: u32,
    /// Longest message of the VI, in bytes.
    pub limit: u64,
}

impl Agent<'_> {
    /// Checks that the descriptor at `descriptor` lies in the region `handle`, reads it and
    /// translates it. [`Return::InvalidParameter`] if no descriptor can be at that address. Faults
    /// of its content are in the result.
    pub fn translate(
        &self,
        descriptor: *mut Descriptor,
        handle: u32,
        receives: bool,
    ) -> Result<Translated, Return> {
        let address = descriptor as u64;
        if descriptor.is_null() || !address.is_multiple_of(64) {
            return Err(Return::InvalidParameter);
        }
        let lies_in =
            |bytes: usize| self.table.translate(handle, address, bytes as u32, self.tag).is_ok();
        if !lies_in(size_of::<ControlSegment>()) {
            return Err(Return::InvalidParameter);
        }
        // SAFETY: aligned, and inside a registered region. The program keeps that mapped, as it
        // promises in `VipRegisterMem`.
        let head = unsafe { descriptor.cast::<ControlSegment>().read_volatile() };
        let count = head.segment_count as usize;
        if !lies_in(size_of::<ControlSegment>() + count * size_of::<Segment>()) {
            return Err(Return::InvalidParameter);
        }
        // SAFETY: the segments follow the control segment, and `count` of them lie inside the
        // region.
        let segment = |number: usize| unsafe {
            let first = descriptor.cast::<u8>().add(size_of::<ControlSegment>()).cast::<Segment>();
            first.add(number).read_volatile()
        };
        Ok(self.convert(&head, count, segment, receives))
    }

    fn convert(
        &self,
        head: &ControlSegment,
        count: usize,
        segment: impl Fn(usize) -> Segment,
        receives: bool,
    ) -> Translated {
        let mut translated = Translated {
            operation: if receives { Operation::Receive } else { Operation::Send },
            pieces: Pieces::NONE,
            length: 0,
            is_cut: false,
            immediate: None,
            fence: head.control & control::QFENCE != 0,
            fault: 0,
        };
        let bits = head.control & control::OP_MASK;
        let remote = (count > 0).then(|| segment(0));
        let first = match (receives, bits, remote) {
            (_, 0, _) => 0,
            (false, control::RDMA_WRITE, Some(Segment { data: address, handle, .. })) => {
                translated.operation = Operation::Write { address, handle };
                1
            }
            (false, control::RDMA_READ, Some(Segment { data: address, handle, .. })) => {
                translated.operation = Operation::Read { address, handle };
                1
            }
            _ => {
                translated.fault = status::FORMAT_ERROR;
                return translated;
            }
        };
        if head.control & control::RESERVED != 0 || count - first > DATA_SEGMENTS {
            translated.fault = status::FORMAT_ERROR;
            return translated;
        }
        if head.control & control::IMMEDIATE != 0 {
            if let Operation::Read { .. } = translated.operation {
                translated.fault = status::FORMAT_ERROR;
                return translated;
            }
            translated.immediate = (!receives).then_some(head.immediate_data);
        }
        let mut total = 0u64;
        for number in first..count {
            let Segment { data, handle, length } = segment(number);
            total += u64::from(length);
            if length == 0 {
                continue;
            }
            // A message cannot continue past the end of a region.
            if translated.is_cut {
                continue;
            }
            match self.table.translate_start(handle, data, length, self.tag) {
                Ok(piece) if piece.length() == length as usize => translated.pieces.push(piece),
                // Memory is checked when it is accessed, and a short message does not reach the
                // missing part.
                Ok(piece) if receives && piece.length() > 0 => {
                    translated.pieces.push(piece);
                    translated.is_cut = true;
                }
                Ok(_) | Err(Refused) => {
                    translated.fault = status::PROTECTION_ERROR;
                    return translated;
                }
            }
        }
        // A sender states the total twice, and both must agree. A receiver may offer any total.
        if !receives && (total != u64::from(head.length) || total > self.limit) {
            translated.fault = status::LENGTH_ERROR;
        }
        translated.length = total.min(u64::from(u32::MAX)) as u32;
        translated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(control: u16, length: u32) -> ControlSegment {
        ControlSegment {
            next: 0,
            next_handle: 0,
            segment_count: 0,
            control,
            reserved: 0,
            immediate_data: 7,
            length,
            status: 0,
        }
    }

    /// Each piece of a VI descriptor becomes 16 bytes with the right region and offset. Each fault
    /// sets its bit.
    // shows: M-11
    #[test]
    fn descriptors_become_physical() {
        let table = Table::new().unwrap();
        table.write(1, 1 << 12 | 1, 0x1000, 0x1000, 9).unwrap();
        table.write(2, 2 << 12 | 2, 0x8000, 0x100, 9).unwrap();
        let agent = Agent { table: &table, tag: 9, limit: 1000 };
        let at = |data, handle, length| Segment { data, handle, length };
        let (one, two) = (1 << 12 | 1, 2 << 12 | 2);
        let segments =
            [at(0x1010, one, 5), at(0x8000, two, 0), at(0x80ff, two, 1), at(0x1fff, one, 1)];
        let convert = |control, length, count: usize, receives| {
            agent.convert(&head(control, length), count, |number| segments[number], receives)
        };
        let sent = convert(control::IMMEDIATE, 7, 4, false);
        assert_eq!((sent.fault, sent.length, sent.immediate), (0, 7, Some(7)));
        let pieces = [(1, 0x10, 5), (2, 0xff, 1), (1, 0xfff, 1)];
        assert_eq!(sent.pieces.all(), pieces.map(|(r, o, l)| Physical::new(r, o, l)));

        let write = convert(control::RDMA_WRITE, 2, 4, false);
        assert_eq!(write.operation, Operation::Write { address: 0x1010, handle: one });
        assert_eq!(write.pieces.all().len(), 2);

        assert_eq!(convert(0, 8, 4, false).fault, status::LENGTH_ERROR, "the sum is 7");
        assert_eq!(convert(0, 0, 4, true).fault, 0, "a receive has no length yet");
        assert_eq!(convert(3, 0, 0, false).fault, status::FORMAT_ERROR);
        assert_eq!(convert(control::RDMA_WRITE, 0, 0, false).fault, status::FORMAT_ERROR);
        assert_eq!(convert(control::RDMA_READ, 0, 1, true).fault, status::FORMAT_ERROR);
        assert_eq!(convert(0x10, 7, 4, false).fault, status::FORMAT_ERROR);
        let over = [at(0x1ff0, one, 17), at(0x8000, two, 8)];
        let receive = agent.convert(&head(0, 0), 2, |number| over[number], true);
        assert_eq!((receive.fault, receive.is_cut), (0, true));
        assert_eq!(receive.pieces.all(), [Physical::new(1, 0xff0, 16)]);
        let send = agent.convert(&head(0, 25), 2, |number| over[number], false);
        assert_eq!(send.fault, status::PROTECTION_ERROR, "a sender touches all of it");
        let stranger = Agent { tag: 8, ..agent };
        let refused = stranger.convert(&head(0, 7), 4, |number| segments[number], false);
        assert_eq!(refused.fault, status::PROTECTION_ERROR);
    }
}
