//! All lines of one node: its cache, and the directory of the lines whose home it is.

use super::cache::{Access, CacheLine, State};
use super::home::{HomeLine, Said};
use super::message::{Kind, Message, Node};
use super::{Fault, Unexpected};

/// An access of a processor to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// Reads it.
    Read,
    /// Writes this content.
    Write(u64),
}

/// The result of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Done at once, with the content afterwards.
    Done(u64),
    /// Done when the answer arrives; [`Unit::handle`] reports it.
    Waits,
    /// Refused for now: messages are in flight for the line, or for every place of the cache.
    Busy,
}

/// A waiting access that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The line.
    pub line: u32,
    /// The access.
    pub want: Want,
    /// The content afterwards.
    pub data: u64,
}

/// The coherence unit of a node.
#[derive(Clone, Debug)]
pub struct Unit {
    node: Node,
    nodes: u8,
    /// The cache: one entry for every line of the system, most of them invalid.
    lines: Vec<CacheLine>,
    /// Lines whose home is here: every `nodes`-th line.
    homes: Vec<HomeLine>,
    wants: Vec<Option<Want>>,
    /// Lines that the cache may hold, and lines that it holds.
    capacity: usize,
    held: usize,
    /// The line where the search for a victim begins.
    victim: usize,
    fault: Option<Fault>,
    said: Vec<Said>,
}

impl Unit {
    /// The unit of one of `nodes` nodes; its cache holds `capacity` of `lines` lines.
    pub fn new(node: Node, nodes: u8, lines: u32, capacity: usize, fault: Option<Fault>) -> Unit {
        let of_home = lines.div_ceil(u32::from(nodes)) as usize;
        Unit {
            node,
            nodes,
            lines: vec![CacheLine::default(); lines as usize],
            homes: vec![HomeLine::default(); of_home],
            wants: vec![None; lines as usize],
            capacity,
            held: 0,
            victim: 0,
            fault,
            said: Vec::new(),
        }
    }

    /// The node that keeps the directory of a line.
    pub fn home_of(&self, line: u32) -> Node {
        (line % u32::from(self.nodes)) as Node
    }

    /// A line in the cache.
    pub fn cached(&self, line: u32) -> &CacheLine {
        &self.lines[line as usize]
    }

    /// The processor accesses a line; messages go to `out`.
    pub fn access(&mut self, line: u32, want: Want, out: &mut Vec<Message>) -> Outcome {
        let at = line as usize;
        let is_new = self.lines[at].state == State::Invalid;
        if is_new && self.held >= self.capacity && !self.make_room(out) {
            return Outcome::Busy;
        }
        let access = match want {
            Want::Read => self.lines[at].read(),
            Want::Write(data) => self.lines[at].write(data),
        };
        match access {
            Access::Hit => Outcome::Done(self.lines[at].data),
            Access::Busy => Outcome::Busy,
            Access::Asks(kind) => {
                self.held += usize::from(is_new);
                self.wants[at] = Some(want);
                out.push(self.message(kind, self.home_of(line), line, 0));
                Outcome::Waits
            }
        }
    }

    /// Handles a message; answers go to `out`. Returns the access that it completes, if any.
    ///
    /// # Errors
    /// [`Unexpected`], if the protocol has no transition for it.
    pub fn handle(
        &mut self,
        message: Message,
        out: &mut Vec<Message>,
    ) -> Result<Option<Done>, Unexpected> {
        let Message { kind, from, line, data, .. } = message;
        let at = line as usize;
        if kind.is_for_home() {
            let mut said = std::mem::take(&mut self.said);
            let home = &mut self.homes[at / usize::from(self.nodes)];
            home.handle(from, kind, data, self.fault, &mut said)?;
            out.extend(said.drain(..).map(|(to, kind, data)| self.message(kind, to, line, data)));
            self.said = said;
            return Ok(None);
        }
        let was_held = self.lines[at].state != State::Invalid;
        let answer = self.lines[at].handle(kind, data, self.fault)?;
        let now = self.lines[at];
        if let Some(kind) = answer {
            let data = if kind.has_data() { now.data } else { 0 };
            out.push(self.message(kind, from, line, data));
        }
        // An answer to a request changes one valid state to another; only eviction and invalidation
        // free a place.
        self.held -= usize::from(was_held && now.state == State::Invalid);
        if !matches!(kind, Kind::Shared | Kind::Exclusive) {
            return Ok(None);
        }
        let Some(want) = self.wants[at].take() else { return Ok(None) };
        if let Want::Write(data) = want {
            // Complete the access before the line can be taken away again.
            self.lines[at].write(data);
        }
        Ok(Some(Done { line, want, data: self.lines[at].data }))
    }

    /// Whether no message is in flight here.
    pub fn is_idle(&self) -> bool {
        self.homes.iter().all(HomeLine::is_idle)
            && self.lines.iter().all(|line| line.state.is_stable())
    }

    /// Evicts a line that has no messages in flight.
    fn make_room(&mut self, out: &mut Vec<Message>) -> bool {
        for step in 0..self.lines.len() {
            let at = (self.victim + step) % self.lines.len();
            if !self.lines[at].state.is_stable() || self.lines[at].state == State::Invalid {
                continue;
            }
            self.victim = at + 1;
            let line = at as u32;
            let data = self.lines[at].data;
            return match self.lines[at].evict() {
                Access::Hit => {
                    self.held -= 1;
                    true
                }
                // Its place becomes free when the home has answered.
                Access::Asks(kind) => {
                    out.push(self.message(kind, self.home_of(line), line, data));
                    false
                }
                Access::Busy => false,
            };
        }
        false
    }

    fn message(&self, kind: Kind, to: Node, line: u32, data: u64) -> Message {
        Message { kind, from: self.node, to, line, data }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Node 0 of two, whose cache holds one line.
    fn unit() -> Unit {
        Unit::new(0, 2, 8, 1, None)
    }

    fn hear(unit: &mut Unit, kind: Kind, line: u32, data: u64) -> (Option<Done>, Vec<Message>) {
        let mut out = Vec::new();
        let message = Message { kind, from: 1, to: 0, line, data };
        let done = unit.handle(message, &mut out).expect("there is a transition");
        (done, out)
    }

    /// A cache of one line gives its only copy up before it asks for another line, and drops a
    /// shared copy at once.
    #[test]
    fn a_full_cache_makes_room() {
        let mut unit = unit();
        let mut out = Vec::new();
        let message = |kind, line, data| Message { kind, from: 0, to: 1, line, data };
        assert!(unit.is_idle());
        assert_eq!(unit.access(3, Want::Write(7), &mut out), Outcome::Waits);
        assert_eq!((unit.held, unit.is_idle()), (1, false));
        assert_eq!(std::mem::take(&mut out), [message(Kind::GetM, 3, 0)]);
        assert_eq!(unit.access(3, Want::Read, &mut out), Outcome::Busy);
        assert_eq!(unit.access(5, Want::Read, &mut out), Outcome::Busy, "nothing can be evicted");
        let (done, answers) = hear(&mut unit, Kind::Exclusive, 3, 1);
        assert_eq!(done, Some(Done { line: 3, want: Want::Write(7), data: 7 }));
        assert_eq!((answers, unit.held, unit.is_idle()), (vec![], 1, true));
        assert_eq!(*unit.cached(3), CacheLine { state: State::Modified, data: 7 });
        assert_eq!(unit.access(3, Want::Read, &mut out), Outcome::Done(7));
        // Another line needs the place.
        assert_eq!(unit.access(5, Want::Read, &mut out), Outcome::Busy);
        assert_eq!(std::mem::take(&mut out), [message(Kind::Put, 3, 7)]);
        assert_eq!((unit.held, unit.victim), (1, 4));
        assert_eq!(hear(&mut unit, Kind::PutDone, 3, 0), (None, vec![]));
        assert_eq!(unit.held, 0);
        assert_eq!(unit.access(5, Want::Read, &mut out), Outcome::Waits);
        assert_eq!(std::mem::take(&mut out), [message(Kind::GetS, 5, 0)]);
        let (done, _) = hear(&mut unit, Kind::Shared, 5, 9);
        assert_eq!(done, Some(Done { line: 5, want: Want::Read, data: 9 }));
        // A shared copy is dropped without a word, and its place is free.
        assert_eq!(unit.access(7, Want::Read, &mut out), Outcome::Waits);
        assert_eq!(std::mem::take(&mut out), [message(Kind::GetS, 7, 0)]);
        assert_eq!((unit.held, unit.victim), (1, 6));
        assert_eq!(unit.cached(5).state, State::Invalid);
        hear(&mut unit, Kind::Exclusive, 7, 2);
        // It is taken away by its home: the place is free.
        let (_, answers) = hear(&mut unit, Kind::FetchInvalidate, 7, 0);
        assert_eq!(answers, [message(Kind::Fetched, 7, 2)]);
        assert_eq!(unit.held, 0);
    }

    /// The search for a victim begins behind the last one, and goes around the end.
    #[test]
    fn victims_are_searched_in_turn() {
        let mut unit = Unit::new(0, 2, 4, 4, None);
        let mut out = Vec::new();
        for line in [1, 3] {
            unit.access(line, Want::Read, &mut out);
            hear(&mut unit, Kind::Shared, line, 0);
        }
        let mut evicts = || {
            assert!(unit.make_room(&mut out));
            let left = [1, 3].into_iter().find(|line| unit.cached(*line).state == State::Shared);
            (left, unit.victim, unit.held)
        };
        assert_eq!(evicts(), (Some(3), 2, 1));
        assert_eq!(evicts(), (None, 4, 0));
        assert!(!unit.make_room(&mut out), "nothing is left");
        unit.access(1, Want::Read, &mut out);
        hear(&mut unit, Kind::Shared, 1, 0);
        assert!(unit.make_room(&mut out), "behind the end comes the beginning");
        assert_eq!((unit.victim, unit.held), (2, 0));
    }

    /// A home is idle when nothing is in service, and its lines are every second one.
    #[test]
    fn homes_serve_every_second_line() {
        let mut unit = unit();
        assert_eq!([0, 1, 2, 7].map(|line| unit.home_of(line)), [0, 1, 0, 1]);
        let (_, out) = hear(&mut unit, Kind::GetM, 6, 0);
        let answer = Message { kind: Kind::Exclusive, from: 0, to: 1, line: 6, data: 0 };
        assert_eq!((out, unit.is_idle()), (vec![answer], true));
        hear(&mut unit, Kind::GetS, 6, 0);
        assert!(!unit.is_idle(), "the owner is asked");
        assert_eq!(unit.homes.len(), 4);
    }
}
