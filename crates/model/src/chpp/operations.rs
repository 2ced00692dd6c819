//! What programs asked for, by number.

use bellwire_wire::primitive::Primitive;

use crate::units::{Span, Time};

/// What a program asked for, and what became of it.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// Who asked.
    pub node: usize,
    /// Function.
    pub function: usize,
    /// To or from which node; nothing if the descriptor does not say.
    pub peer: Option<usize>,
    /// What.
    pub primitive: Primitive,
    /// Bytes to move.
    pub bytes: u64,
    /// When the program posted it.
    pub posted: Time,
    /// When the processor began with its descriptor.
    pub started: Time,
    /// When its last packet left the packer.
    pub sent: Option<Time>,
    /// Bytes of data that are visible where they should be.
    pub landed_bytes: u64,
    /// When the latest of them became visible, and with which packet.
    pub landed: Option<(Time, u32)>,
    /// When the receiver's event was visible, and with which packet.
    pub finished: Option<(Time, u32)>,
}

impl Operation {
    /// From the processor's start to the receiver's event, or to the last byte of data if there is no event; nothing if it is not over.
    pub fn latency(&self) -> Option<Span> {
        let (end, _) = self.finished.or(self.landed.filter(|_| self.landed_bytes == self.bytes))?;
        Some(end - self.started)
    }
}

/// All operations, or those that may still be asked for.
#[derive(Default)]
pub struct Operations {
    /// In the order of their numbers, which begin with `first`.
    records: Vec<Operation>,
    first: u32,
    /// Of each, how many of its two ends programs have been told of, if they are to be forgotten then.
    told: Option<Vec<u8>>,
    /// How many at the front are over.
    over: usize,
}

/// The send event and the receive event.
const ENDS: u8 = 2;

/// Forgotten operations are taken out so many at a time: enough for little to be moved, and few enough for all to stay in a processor's nearest cache.
const AT_ONCE: usize = 64;

impl Operations {
    /// One more; gives its number.
    pub fn add(&mut self, operation: Operation) -> u32 {
        let number = self.first.wrapping_add(self.records.len() as u32);
        self.records.push(operation);
        if let Some(told) = &mut self.told {
            told.push(0);
        }
        number
    }

    /// Those that are known, in the order of their numbers.
    pub fn all(&self) -> &[Operation] {
        &self.records
    }

    /// The one of this number, if it is known.
    pub fn get(&self, number: u32) -> Option<&Operation> {
        self.records.get(number.wrapping_sub(self.first) as usize)
    }

    /// Forgets operations from now on when programs have been told of both of their ends.
    pub fn forget_told(&mut self) {
        self.told.get_or_insert_with(|| vec![0; self.records.len()]);
    }

    /// A program was told of one end of an operation.
    pub fn told(&mut self, number: u32) {
        let Some(told) = &mut self.told else { return };
        if let Some(ends) = told.get_mut(number.wrapping_sub(self.first) as usize) {
            *ends += 1;
        }
        while told.get(self.over).is_some_and(|ends| *ends >= ENDS) {
            self.over += 1;
        }
        // Half of them or more, so that what is moved is less than what goes.
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

    /// Operations that are over are forgotten, whatever the order in which they end, those that are not stay; and numbers go on past the largest.
    #[test]
    fn what_is_over_is_forgotten() {
        let mut operations = Operations { first: u32::MAX - 5_000, ..Operations::default() };
        operations.forget_told();
        let mut open = std::collections::VecDeque::new();
        for at in 0..20_000 {
            let number = operations.add(operation(at));
            open.push_back((number, at));
            if open.len() > 40 {
                // The second of the open ones first.
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
    }
}
