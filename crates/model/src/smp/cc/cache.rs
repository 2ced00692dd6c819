//! One line in the cache of one node.

use super::message::Kind;
use super::{Fault, Unexpected};

/// What a cache has of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum State {
    /// Nothing.
    #[default]
    Invalid,
    /// A copy that others may have, too.
    Shared,
    /// The only copy, as in memory.
    Exclusive,
    /// The only copy, and memory is out of date.
    Modified,
    /// Nothing, and wants to read: GetS is under way.
    WantsShared,
    /// Nothing, and wants to write: GetM is under way.
    WantsExclusive,
    /// A shared copy, and wants to write: GetM is under way.
    Upgrades,
    /// Gives up what it owned: Put is under way, and it still has the data.
    GivesUp,
    /// The same, and it was asked for the data meanwhile: nothing is left.
    GaveUp,
}

/// A line in a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct CacheLine {
    /// What it is to the cache.
    pub state: State,
    /// Its content, where the state has any.
    pub data: u64,
}

/// What an access comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Done.
    Hit,
    /// To be asked for at the home; the access is done when the answer has come.
    Asks(Kind),
    /// Something is under way for this line; try again later.
    Busy,
}

impl State {
    /// Whether it may be read.
    pub const fn is_readable(self) -> bool {
        matches!(self, State::Shared | State::Exclusive | State::Modified | State::Upgrades)
    }

    /// Whether it may be written.
    pub const fn is_writable(self) -> bool {
        matches!(self, State::Exclusive | State::Modified)
    }

    /// Whether nothing is under way.
    pub const fn is_stable(self) -> bool {
        matches!(self, State::Invalid | State::Shared | State::Exclusive | State::Modified)
    }
}

impl CacheLine {
    /// The processor reads.
    pub fn read(&mut self) -> Access {
        match self.state {
            State::Shared | State::Exclusive | State::Modified => Access::Hit,
            State::Invalid => {
                self.state = State::WantsShared;
                Access::Asks(Kind::GetS)
            }
            _ => Access::Busy,
        }
    }

    /// The processor writes `data`.
    pub fn write(&mut self, data: u64) -> Access {
        match self.state {
            State::Exclusive | State::Modified => {
                *self = CacheLine { state: State::Modified, data };
                Access::Hit
            }
            State::Shared => {
                self.state = State::Upgrades;
                Access::Asks(Kind::GetM)
            }
            State::Invalid => {
                self.state = State::WantsExclusive;
                Access::Asks(Kind::GetM)
            }
            _ => Access::Busy,
        }
    }

    /// The cache needs the place: a shared copy is dropped without a word, an only one is given back.
    pub fn evict(&mut self) -> Access {
        match self.state {
            State::Shared => {
                *self = CacheLine::default();
                Access::Hit
            }
            State::Exclusive | State::Modified => {
                self.state = State::GivesUp;
                Access::Asks(Kind::Put)
            }
            State::Invalid => Access::Hit,
            _ => Access::Busy,
        }
    }

    /// A message of the home comes; the answer to it, if it wants one.
    ///
    /// # Errors
    /// [`Unexpected`], if the protocol has a hole.
    pub fn handle(
        &mut self,
        kind: Kind,
        data: u64,
        fault: Option<Fault>,
    ) -> Result<Option<Kind>, Unexpected> {
        let state = match (kind, self.state) {
            (Kind::Shared, State::WantsShared) => {
                self.data = data;
                State::Shared
            }
            (Kind::Exclusive, State::WantsShared | State::WantsExclusive | State::Upgrades) => {
                self.data = data;
                State::Exclusive
            }
            (Kind::PutDone, State::GivesUp | State::GaveUp) => State::Invalid,
            (Kind::Fetch, State::Exclusive | State::Modified) => {
                self.state = State::Shared;
                return Ok(Some(Kind::Fetched));
            }
            (Kind::FetchInvalidate, State::Exclusive | State::Modified) => {
                self.state = State::Invalid;
                return Ok(Some(Kind::Fetched));
            }
            (Kind::Fetch | Kind::FetchInvalidate, State::GivesUp) => {
                self.state = State::GaveUp;
                return Ok(Some(Kind::Fetched));
            }
            (Kind::Invalidate, State::Shared) if fault == Some(Fault::KeepsInvalidated) => {
                return Ok(Some(Kind::Invalidated));
            }
            (Kind::Invalidate, State::Shared) => {
                self.state = State::Invalid;
                return Ok(Some(Kind::Invalidated));
            }
            (Kind::Invalidate, State::Upgrades) => {
                self.state = State::WantsExclusive;
                return Ok(Some(Kind::Invalidated));
            }
            // It had a copy, dropped it without a word, and perhaps asks for another.
            (
                Kind::Invalidate,
                State::Invalid | State::WantsShared | State::WantsExclusive | State::GaveUp,
            ) => return Ok(Some(Kind::Invalidated)),
            (kind, state) => {
                let (what, state) = (format!("a cache gets {kind:?}"), format!("{state:?}"));
                return Err(Unexpected { what, state });
            }
        };
        self.state = state;
        Ok(None)
    }
}
