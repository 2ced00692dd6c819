//! One line in the cache of one node.

use super::message::Kind;
use super::{Fault, Unexpected};

/// The state of a line in a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum State {
    /// No copy.
    #[default]
    Invalid,
    /// A copy that other caches may have, too.
    Shared,
    /// The only copy, equal to memory.
    Exclusive,
    /// The only copy; memory is stale.
    Modified,
    /// No copy, and wants to read: GetS is in flight.
    WantsShared,
    /// No copy, and wants to write: GetM is in flight.
    WantsExclusive,
    /// A shared copy, and wants to write: GetM is in flight.
    Upgrades,
    /// Gives up its only copy: Put is in flight, and it still has the data.
    GivesUp,
    /// Gives up, and a Fetch or FetchInvalidate has taken the data meanwhile.
    GaveUp,
}

/// A line in a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct CacheLine {
    /// Its state.
    pub state: State,
    /// Its content, if the state has any.
    pub data: u64,
}

/// The result of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Done.
    Hit,
    /// The home must be asked with this message; the access is done when the answer arrives.
    Asks(Kind),
    /// A message for this line is in flight; try again later.
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

    /// Whether no message is in flight.
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

    /// Evicts the line: a shared copy is dropped silently, an only copy is given back.
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

    /// Handles a message of the home and returns the answer, if there is one.
    ///
    /// # Errors
    /// [`Unexpected`], if the protocol has no transition for it.
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
            // It dropped its shared copy silently, and may have asked for another.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What a processor's access does in each state: S-07's table of transitions.
    #[test]
    fn accesses_change_states() {
        use State::*;
        let asks = |kind, state| (Access::Asks(kind), state);
        let all = [
            // State, then read, write and evict: what comes of it, and the state afterwards.
            (
                Invalid,
                asks(Kind::GetS, WantsShared),
                asks(Kind::GetM, WantsExclusive),
                (Access::Hit, Invalid),
            ),
            (Shared, (Access::Hit, Shared), asks(Kind::GetM, Upgrades), (Access::Hit, Invalid)),
            (
                Exclusive,
                (Access::Hit, Exclusive),
                (Access::Hit, Modified),
                asks(Kind::Put, GivesUp),
            ),
            (Modified, (Access::Hit, Modified), (Access::Hit, Modified), asks(Kind::Put, GivesUp)),
        ];
        for (state, reads, writes, evicts) in all {
            let line = CacheLine { state, data: 7 };
            let after = |access: fn(&mut CacheLine) -> Access| {
                let mut line = line;
                (access(&mut line), line.state)
            };
            assert_eq!(after(CacheLine::read), reads, "{state:?}");
            assert_eq!(after(|line| line.write(9)), writes, "{state:?}");
            assert_eq!(after(CacheLine::evict), evicts, "{state:?}");
            assert!(state.is_stable());
        }
        for state in [WantsShared, WantsExclusive, Upgrades, GivesUp, GaveUp] {
            let mut line = CacheLine { state, data: 7 };
            assert_eq!([line.read(), line.write(9), line.evict()], [Access::Busy; 3]);
            assert_eq!(line, CacheLine { state, data: 7 });
            assert!(!state.is_stable() && !state.is_writable());
        }
        let writable = [Invalid, Shared, Exclusive, Modified].map(State::is_writable);
        assert_eq!(writable, [false, false, true, true]);
        let readable = [Invalid, Shared, Exclusive, Modified, Upgrades, GivesUp];
        assert_eq!(readable.map(State::is_readable), [false, true, true, true, true, false]);
    }

    /// Only a planted fault keeps a copy that was to be given up.
    #[test]
    fn an_invalidated_copy_is_gone() {
        for (fault, state) in
            [(None, State::Invalid), (Some(Fault::KeepsInvalidated), State::Shared)]
        {
            let mut line = CacheLine { state: State::Shared, data: 7 };
            let answer = line.handle(Kind::Invalidate, 0, fault).expect("there is a transition");
            assert_eq!((answer, line.state), (Some(Kind::Invalidated), state));
        }
    }
}
