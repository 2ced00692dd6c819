//! Decides which senders are served, and in which order the others wait. No I/O; time is an
//! argument.
//!
//! Several senders are served at a time, so a slow one does not block the others. If all places are
//! taken, further senders wait in line, in the order of their requests. A sender in line holds no
//! connection: it asks again, and learns its place in line.

use super::canary::planted;
use std::time::Duration;

/// Limits of places and of the line.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Senders that are served at a time.
    pub places: usize,
    /// Most served senders of one node.
    pub places_of_node: usize,
    /// Most senders in line.
    pub line: usize,
    /// Most senders of one node in line.
    pub line_of_node: usize,
    /// A sender that has not asked again for this long has left the line.
    pub renewal: Duration,
    /// A sender whose place is wanted keeps it while it makes [`PACE_BYTES`] of progress in each
    /// interval of this length. Within the first interval it must announce its copy.
    pub silence: Duration,
}

/// The rules of `--listen`.
pub const LISTENER: Rules = Rules {
    places: 8,
    places_of_node: 4,
    line: 64,
    line_of_node: 16,
    renewal: Duration::from_secs(3),
    silence: Duration::from_secs(10),
};

impl Rules {
    /// The rules of `--listen`.
    pub fn of_listener() -> Rules {
        if planted("silence is for ever") {
            return Rules { silence: Duration::MAX, ..LISTENER };
        }
        LISTENER
    }
}

/// The rules of a receiver that serves one known sender.
pub const ALONE: Rules =
    Rules { places: 1, places_of_node: 1, line: 0, line_of_node: 0, ..LISTENER };

/// Progress that keeps a place, in bytes for each [`Rules::silence`]: 6.5 kB/s.
pub const PACE_BYTES: u64 = 64 << 10;

/// Progress that a file, folder or link counts in bytes, beside its data: creating it is work too.
pub const ENTRY_BYTES: u64 = 4 << 10;

/// A sender, identified by the address of its requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asker {
    pub node: u32,
    pub function: u8,
}

/// The answer to a sender's request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// It has a place.
    Now,
    /// It is in line, behind `before` others.
    Later {
        before: usize,
    },
    Full,
    /// No sender is admitted any more.
    Over,
}

pub struct Turns {
    rules: Rules,
    /// The node of each sender that has a place.
    served: Vec<u32>,
    line: Vec<Waiting>,
    closed: bool,
}

struct Waiting {
    asker: Asker,
    asked: Duration,
}

impl Turns {
    /// All places free, and nobody in line.
    pub fn new(rules: Rules) -> Turns {
        Turns { rules, served: Vec::new(), line: Vec::new(), closed: false }
    }

    /// Handles a sender's request. After [`Answer::Now`], it holds a place until [`Turns::leave`].
    pub fn ask(&mut self, asker: Asker, now: Duration) -> Answer {
        self.forget_absent(now);
        let position = self.line.iter().position(|waiting| waiting.asker == asker);
        let ahead = &self.line[..position.unwrap_or(self.line.len())];
        let before = ahead.len();
        // Senders ahead whose node has no place left do not block the others.
        let entitled = ahead.iter().filter(|waiting| self.has_room(waiting.asker.node)).count();
        let free = self.rules.places.saturating_sub(self.served.len());
        match position {
            None if self.closed => return Answer::Over,
            _ if entitled < free && self.has_room(asker.node) => {
                if let Some(position) = position {
                    self.line.remove(position);
                }
                self.served.push(asker.node);
                return Answer::Now;
            }
            Some(position) => self.line[position].asked = now,
            None => {
                let of_node = self.line.iter().filter(|w| w.asker.node == asker.node).count();
                if self.line.len() >= self.rules.line || of_node >= self.rules.line_of_node {
                    return Answer::Full;
                }
                self.line.push(Waiting { asker, asked: now });
            }
        }
        Answer::Later { before }
    }

    /// A sender of `node` gives up its place.
    pub fn leave(&mut self, node: u32) {
        if let Some(place) = self.served.iter().position(|&served| served == node) {
            self.served.swap_remove(place);
        }
    }

    /// From now on admits only senders in line.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Whether the place of a sender of `node` is wanted: by a sender in line, or because the
    /// listener wants to end.
    pub fn is_wanted(&mut self, node: u32, now: Duration) -> bool {
        self.forget_absent(now);
        let all_taken = self.served.len() >= self.rules.places;
        let wants = |waiting: &Waiting| match self.has_room(waiting.asker.node) {
            true => all_taken,
            false => waiting.asker.node == node,
        };
        self.closed || self.line.iter().any(wants)
    }

    pub fn line_is_empty(&mut self, now: Duration) -> bool {
        self.forget_absent(now);
        self.line.is_empty()
    }

    fn has_room(&self, node: u32) -> bool {
        let of_node = self.served.iter().filter(|&&served| served == node).count();
        of_node < self.rules.places_of_node
    }

    fn forget_absent(&mut self, now: Duration) {
        let renewal = self.rules.renewal;
        self.line.retain(|waiting| now < waiting.asked + renewal);
    }
}

pub struct Pace {
    /// When it last completed [`PACE_BYTES`] of progress.
    since: Duration,
    /// Progress after that.
    bytes: u64,
}

impl Pace {
    pub fn new(now: Duration) -> Pace {
        Pace { since: now, bytes: 0 }
    }

    /// Counts progress. A message alone counts nothing.
    pub fn progress(&mut self, bytes: u64, now: Duration) {
        let bytes = if planted("progress is silence") { 0 } else { bytes };
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes >= PACE_BYTES {
            *self = Pace::new(now);
        }
    }

    /// Restarts the interval, because the sender had to wait for us.
    pub fn excuse(&mut self, now: Duration) {
        self.since = now;
    }

    /// Time since it last completed [`PACE_BYTES`] of progress.
    pub fn silent_for(&self, now: Duration) -> Duration {
        now.saturating_sub(self.since)
    }
}

/// The clock of turns. A stall of our own, for instance of the disc, does not count against the
/// senders.
pub struct Clock {
    /// The machine's clock at the last read.
    read: Duration,
    now: Duration,
}

impl Clock {
    /// Longest step between two reads. Within it, senders get their messages handled.
    pub const STEP: Duration = Duration::from_secs(1);

    /// Begins at 0. `machine`: the machine's clock.
    pub fn new(machine: Duration) -> Clock {
        Clock { read: machine, now: Duration::ZERO }
    }

    /// Reads the time.
    pub fn read(&mut self, machine: Duration) -> Duration {
        self.now += machine.saturating_sub(self.read).min(Self::STEP);
        self.read = machine;
        self.now
    }
}

#[cfg(test)]
mod tests;
