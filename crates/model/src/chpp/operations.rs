//! The operations of programs, by number.

use bellwire_wire::primitive::Primitive;

use crate::units::{Span, Time};

/// An operation of a program, and its state.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// Node that posted it.
    pub node: usize,
    /// Function.
    pub function: usize,
    /// The node at the other end; nothing if the descriptor does not name it.
    pub peer: Option<usize>,
    /// Its primitive.
    pub primitive: Primitive,
    /// Bytes to move.
    pub bytes: u64,
    /// When the program posted it.
    pub posted: Time,
    /// When the processor started its descriptor.
    pub started: Time,
    /// When its last packet left the packer.
    pub sent: Option<Time>,
    /// Bytes of data visible at the destination.
    pub landed_bytes: u64,
    /// When the latest of them became visible, and with which packet.
    pub landed: Option<(Time, u32)>,
    /// When the receiver's event became visible, and with which packet.
    pub finished: Option<(Time, u32)>,
}

impl Operation {
    /// From the processor's start to the receiver's event, or to the last byte of data if there is
    /// no event; nothing before that.
    pub fn latency(&self) -> Option<Span> {
        let (end, _) = self.finished.or(self.landed.filter(|_| self.landed_bytes == self.bytes))?;
        Some(end - self.started)
    }
}

/// All operations, or those not forgotten yet.
#[derive(Default)]
pub struct Operations {
    /// In the order of their numbers, from `first` on.
    records: Vec<Operation>,
    first: u32,
    /// If ended operations are forgotten: of each, for how many of its two ends programs were
    /// notified.
    told: Option<Vec<u8>>,
    /// How many at the front have ended.
    over: usize,
}

/// The send event and the receive event.
const ENDS: u8 = 2;

/// Forgotten operations are removed in batches of at least this size. It is large enough to move
/// little, and small enough for all records to fit in a processor's L1 cache.
const AT_ONCE: usize = 64;

impl Operations {
    /// Adds an operation and returns its number.
    pub fn add(&mut self, operation: Operation) -> u32 {
        let number = self.first.wrapping_add(self.records.len() as u32);
        self.records.push(operation);
        if let Some(told) = &mut self.told {
            told.push(0);
        }
        number
    }

    /// The known operations, in the order of their numbers.
    pub fn all(&self) -> &[Operation] {
        &self.records
    }

    /// The operation with this number, if it is known.
    pub fn get(&self, number: u32) -> Option<&Operation> {
        self.records.get(number.wrapping_sub(self.first) as usize)
    }

    /// From now on forgets operations when programs were notified of both ends.
    pub fn forget_told(&mut self) {
        self.told.get_or_insert_with(|| vec![0; self.records.len()]);
    }

    /// A program was notified of one end of an operation.
    pub fn told(&mut self, number: u32) {
        let Some(told) = &mut self.told else { return };
        if let Some(ends) = told.get_mut(number.wrapping_sub(self.first) as usize) {
            *ends += 1;
        }
        while told.get(self.over).is_some_and(|ends| *ends >= ENDS) {
            self.over += 1;
        }
        // At least half of the records, so that fewer are moved than removed.
        if self.over >= AT_ONCE && 2 * self.over >= self.records.len() {
            self.records.drain(..self.over);
            told.drain(..self.over);
            self.first = self.first.wrapping_add(self.over as u32);
            self.over = 0;
        }
    }
}

impl std::ops::Index<u32> for Operations {
    type Output = Operation;

    fn index(&self, number: u32) -> &Operation {
        &self.records[number.wrapping_sub(self.first) as usize]
    }
}

impl std::ops::IndexMut<u32> for Operations {
    fn index_mut(&mut self, number: u32) -> &mut Operation {
        &mut self.records[number.wrapping_sub(self.first) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(bytes: u64) -> Operation {
        Operation {
            node: 0,
            function: 0,
            peer: None,
            primitive: Primitive::Nap,
            bytes,
            posted: Time::ZERO,
            started: Time::ZERO,
            sent: None,
            landed_bytes: 0,
            landed: None,
            finished: None,
        }
    }

    /// Ended operations are forgotten in any order of their ends, and the others stay; numbers wrap
    /// around.
    #[test]
    fn what_is_over_is_forgotten() {
        crate::limit::limited(|| {
            let mut operations = Operations { first: u32::MAX - 5_000, ..Operations::default() };
            operations.forget_told();
            let mut open = std::collections::VecDeque::new();
            for at in 0..20_000 {
                let number = operations.add(operation(at));
                open.push_back((number, at));
                if open.len() > 40 {
                    // The second of the open ones ends first.
                    let (over, _) = open.remove(1).unwrap();
                    operations.told(over);
                    operations.told(over);
                }
                if at % 1_000 == 999 {
                    let (over, _) = open.pop_front().unwrap();
                    operations.told(over);
                    assert!(operations.get(over).is_some(), "one end is not both");
                    operations.told(over);
                }
            }
            assert!(open.iter().all(|&(number, at)| operations[number].bytes == at));
            assert!(operations.all().len() < 5_000, "{}", operations.all().len());
        });
    }
}
