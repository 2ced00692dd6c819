//! Two streams and the queues between them, against what was written. Any order of writes, reads,
//! deliveries and completions gives each side the other's bytes, and balances the credit.

use bellwire_rsockets::message::{Hello, Kind, RESERVE};
use bellwire_rsockets::stream::{Slot, Stream};
use proptest::prelude::*;
use std::collections::VecDeque;

/// What happens next; the side is 0 or 1.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    Write(usize, usize),
    Read(usize, usize),
    /// The oldest message to this side arrives.
    Arrive(usize),
    /// The side hears that its oldest message has arrived.
    Complete(usize),
    End(usize),
}

pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    let side = 0usize..2;
    let step = prop_oneof![
        4 => (side.clone(), 1usize..400).prop_map(|(side, length)| Step::Write(side, length)),
        3 => (side.clone(), 1usize..400).prop_map(|(side, length)| Step::Read(side, length)),
        6 => side.clone().prop_map(Step::Arrive),
        6 => side.clone().prop_map(Step::Complete),
    ];
    let most = prop::collection::vec(step, 0..400);
    (most, prop::collection::vec(side.prop_map(Step::End), 0..2)).prop_map(|(mut steps, ends)| {
        let at = steps.len() * 2 / 3;
        steps.splice(at..at, ends);
        steps
    })
}

const SLOT: usize = 64;
const SLOTS: u16 = 4;
const RING: usize = 300;
const HELLO: Hello = Hello { slots: SLOTS, slot_bytes: SLOT as u32, maps: 0 };

/// One side: its stream, its memory, and what it has written and read.
struct Side {
    stream: Stream,
    ring: Vec<u8>,
    slots: Vec<Vec<u8>>,
    free: VecDeque<u16>,
    next_byte: u8,
    wrote: VecDeque<u8>,
    ended: bool,
    /// Messages to this side that have not arrived.
    coming: VecDeque<(u32, Vec<u8>)>,
    /// Own messages that arrived, of which it has not heard.
    arrived: usize,
}

impl Side {
    fn new() -> Side {
        let receives = SLOTS + RESERVE;
        Side {
            stream: Stream::new(RING, 16, HELLO, HELLO),
            ring: vec![0; RING],
            slots: vec![Vec::new(); receives.into()],
            free: (0..receives).collect(),
            next_byte: 0,
            wrote: VecDeque::new(),
            ended: false,
            coming: VecDeque::new(),
            arrived: 0,
        }
    }

    fn write(&mut self, length: usize) {
        let length = length.min(self.stream.room());
        for part in self.stream.put(length) {
            for at in part {
                self.ring[at] = self.next_byte;
                self.wrote.push_back(self.next_byte);
                self.next_byte = self.next_byte.wrapping_mul(31).wrapping_add(7);
            }
        }
    }

    /// What it posts now.
    fn posts(&mut self) -> Vec<(u32, Vec<u8>)> {
        let mut posted = Vec::new();
        while let Some(message) = self.stream.transmit() {
            let bytes = message.parts.into_iter().flat_map(|part| self.ring[part].to_vec());
            posted.push((message.immediate, bytes.collect()));
        }
        posted
    }
}

/// Runs the steps, then all that is left, and compares.
pub fn check(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut sides = [Side::new(), Side::new()];
    for step in steps {
        run(&mut sides, step)?;
    }
    // The rest arrives, and is read. What hangs does not end.
    for _ in 0..2000 {
        for side in 0..2 {
            for step in [Step::Arrive(side), Step::Complete(side), Step::Read(side, 50)] {
                run(&mut sides, step)?;
            }
        }
    }
    for (at, side) in sides.iter().enumerate() {
        let other = &sides[1 - at];
        prop_assert!(side.wrote.is_empty(), "{} bytes of {at} did not arrive", side.wrote.len());
        prop_assert!(side.stream.is_delivered(), "side {at} waits");
        prop_assert_eq!(other.stream.has_ended(), side.ended);
        prop_assert_eq!(side.free.len(), usize::from(SLOTS + RESERVE), "all slots are posted");
    }
    Ok(())
}

fn run(sides: &mut [Side; 2], step: Step) -> Result<(), TestCaseError> {
    match step {
        Step::Write(side, length) => sides[side].write(length),
        Step::End(side) => {
            sides[side].stream.end();
            sides[side].ended = true;
        }
        Step::Complete(side) if sides[side].arrived > 0 => {
            sides[side].arrived -= 1;
            sides[side].stream.completed();
        }
        Step::Arrive(side) => arrive(sides, side)?,
        Step::Read(side, length) => read(sides, side, length)?,
        Step::Complete(_) => {}
    }
    for side in 0..2 {
        let posted = sides[side].posts();
        sides[1 - side].coming.extend(posted);
    }
    Ok(())
}

fn arrive(sides: &mut [Side; 2], side: usize) -> Result<(), TestCaseError> {
    let Some((immediate, bytes)) = sides[side].coming.pop_front() else { return Ok(()) };
    sides[1 - side].arrived += 1;
    let own = &mut sides[side];
    let slot = own.free.pop_front();
    let slot = slot.ok_or_else(|| TestCaseError::fail("a message without a receive"))?;
    prop_assert!(bytes.len() <= SLOT, "a message longer than its slot");
    let became = own.stream.arrived(slot, immediate, bytes.len() as u32);
    let became = became.map_err(|broken| TestCaseError::fail(broken.0))?;
    own.slots[usize::from(slot)] = bytes;
    if became != Slot::Kept {
        own.free.push_back(slot);
    }
    let (kind, _) = Kind::parse(immediate).expect("it was just taken");
    prop_assert_eq!(became == Slot::Kept, kind == Kind::Data);
    Ok(())
}

fn read(sides: &mut [Side; 2], side: usize, length: usize) -> Result<(), TestCaseError> {
    let [first, second] = sides;
    let (own, other) = if side == 0 { (first, second) } else { (second, first) };
    let Some((slot, range)) = own.stream.unread().next() else { return Ok(()) };
    let length = length.min(range.len());
    for &byte in &own.slots[usize::from(slot)][range.start..range.start + length] {
        prop_assert_eq!(Some(byte), other.wrote.pop_front(), "a byte that was not written");
    }
    own.free.extend(own.stream.read(length));
    Ok(())
}
