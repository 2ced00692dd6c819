//! The window of operations that have been started and not answered.
//!
//! Source: cHPP Sec. 4.1: at most 32 requests of a function are in flight, and software keeps to
//! the limit (C-33). An answer names its operation by an [`OpId`], which comes back from a peer
//! that may be late, mistaken or hostile. Only the id of an operation in flight is accepted.

use alloc::boxed::Box;

use crate::canary::planted;

/// Operations that one function may have in flight, by default (C-33; cHPP Sec. 4.1).
pub const OPERATIONS_PER_FUNCTION: u16 = 32;

/// "No slot".
const NIL: u16 = u16::MAX;

/// Bits of an id that name the operation's slot; the others are its serial number.
const SLOT_BITS: u32 = 16;

/// Names one operation. An id is reused only after 2^48 further operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OpId(u64);

impl OpId {
    /// The id as it goes to the peer and comes back.
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// An id as a peer sent it. Any value is allowed here; [`Outstanding`] checks it.
    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}

/// At most `limit` operations in flight, with a `T` kept for each.
///
/// Nothing is allocated after construction, and starting and finishing take a fixed time.
pub struct Outstanding<T> {
    slots: Box<[Slot<T>]>,
    first_free: u16,
    in_flight: u16,
    next_serial: u64,
}

struct Slot<T> {
    /// Serial number of the operation that is, or was, in this slot.
    serial: u64,
    operation: Option<T>,
    next_free: u16,
}

/// The window is full; the refused operation is inside. Finish one, then start it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("as many operations are in flight as may be; wait for one to finish, then try again")]
pub struct WindowFull<T>(pub T);

/// No operation of this id is in flight: it was answered before, was abandoned, or never was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no operation {:#x} is in flight; the answer is late, doubled or forged", self.0.0)]
pub struct Stale(pub OpId);

impl<T> Outstanding<T> {
    /// An empty window of `limit` operations.
    ///
    /// # Panics
    /// If `limit` is 0 or 65,535.
    pub fn new(limit: u16) -> Self {
        assert!((1..NIL).contains(&limit), "a window has room for 1 to 65,534 operations");
        let slots = (1..=limit).map(|next_free| Slot {
            serial: 0,
            operation: None,
            next_free: if next_free < limit { next_free } else { NIL },
        });
        Self { slots: slots.collect(), first_free: 0, in_flight: 0, next_serial: 1 }
    }

    /// Starts an operation and returns the id that its answer must carry.
    ///
    /// # Errors
    /// [`WindowFull`] with the operation inside, if `limit` operations are in flight.
    #[inline]
    pub fn start(&mut self, operation: T) -> Result<OpId, WindowFull<T>> {
        let index = self.first_free;
        let Some(slot) = self.slots.get_mut(index as usize) else {
            return Err(WindowFull(operation));
        };
        self.first_free = slot.next_free;
        slot.serial = self.next_serial;
        slot.operation = Some(operation);
        self.next_serial = (self.next_serial + 1) & (u64::MAX >> SLOT_BITS);
        self.in_flight += 1;
        Ok(OpId(slot.serial << SLOT_BITS | index as u64))
    }

    /// What is kept for an operation in flight.
    ///
    /// # Errors
    /// [`Stale`] if no operation with this id is in flight.
    #[inline]
    pub fn operation(&mut self, id: OpId) -> Result<&mut T, Stale> {
        let slot = self.slots.get_mut(id.0 as u16 as usize);
        let slot =
            slot.filter(|slot| slot.serial == id.0 >> SLOT_BITS || planted("operation-stale"));
        slot.and_then(|slot| slot.operation.as_mut()).ok_or(Stale(id))
    }

    /// Ends an operation and returns what was kept for it. Its id is stale from then on.
    ///
    /// # Errors
    /// [`Stale`] if no operation with this id is in flight; nothing has changed then.
    #[inline]
    pub fn finish(&mut self, id: OpId) -> Result<T, Stale> {
        self.operation(id)?;
        self.vacate(id.0 as u16).ok_or(Stale(id))
    }

    /// Ends all operations in the order of their start, for instance because the peer is gone.
    pub fn abandon(&mut self, mut each: impl FnMut(T)) {
        // All ids become stale here, so the slots may change places.
        self.slots.sort_unstable_by_key(|slot| slot.serial);
        self.first_free = NIL;
        for index in 0..self.slots.len() as u16 {
            if self.slots[index as usize].operation.is_none() {
                self.slots[index as usize].next_free = self.first_free;
                self.first_free = index;
            }
        }
        for index in 0..self.slots.len() as u16 {
            if let Some(operation) = self.vacate(index) {
                each(operation);
            }
        }
    }

    /// Operations in flight.
    #[inline]
    pub fn in_flight(&self) -> u16 {
        self.in_flight
    }

    /// Operations that may be in flight.
    pub fn limit(&self) -> u16 {
        self.slots.len() as u16
    }

    /// Takes the operation out of a slot, if there is one, and frees the slot.
    fn vacate(&mut self, index: u16) -> Option<T> {
        let slot = &mut self.slots[index as usize];
        let operation = slot.operation.take()?;
        slot.next_free = self.first_free;
        self.first_free = index;
        self.in_flight -= 1;
        Some(operation)
    }
}
