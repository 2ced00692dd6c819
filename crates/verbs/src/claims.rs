//! Owned function and channel numbers of one node.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

/// A number that one owner has at a time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Number {
    Function(u8),
    Channel(u16),
}

/// The owned numbers of a node.
#[derive(Clone, Default)]
pub(crate) struct Claims(Arc<Mutex<HashSet<Number>>>);

/// Ownership of a number. Dropping it frees the number.
pub(crate) struct Claim {
    claims: Claims,
    number: Number,
}

impl Claims {
    /// Claims a number; `None`: it has an owner.
    pub(crate) fn claim(&self, number: Number) -> Option<Claim> {
        self.with(|owned| owned.insert(number)).then(|| Claim { claims: self.clone(), number })
    }

    /// A panic elsewhere cannot leave the set half changed, so a poisoned lock is usable.
    fn with(&self, change: impl FnOnce(&mut HashSet<Number>) -> bool) -> bool {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.claims.with(|owned| owned.remove(&self.number));
    }
}
