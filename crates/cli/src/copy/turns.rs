//! Which senders are served, and in which order the others wait. No I/O; time is an argument.
//!
//! Several senders are served at a time, so a slow one does not stop the others. If all places are
//! taken, those who ask wait in line, in the order in which they asked. A sender in line holds no
//! connection: it asks again, and is told its place in line.

use super::canary::planted;
use std::time::Duration;

/// How many are served, and how many may wait.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Senders that are served at a time.
    pub places: usize,
    /// Of these, senders of one node.
    pub places_of_node: usize,
    /// Senders that wait.
    pub line: usize,
    /// Of these, senders of one node.
    pub line_of_node: usize,
    /// A sender that has not asked again for this long has left the line.
    pub renewal: Duration,
    /// A sender whose place is wanted keeps it while it makes [`PACE_BYTES`] of progress in each
    /// interval of this length. Within the first one it has to say what it sends.
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

/// What a file, folder or link counts as progress, beside its data: creating it is work too.
pub const ENTRY_BYTES: u64 = 4 << 10;

/// A sender, as its requests name it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asker {
    pub node: u32,
    pub function: u8,
}

/// What a sender is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// It has a place.
    Now,
    /// It is in line, behind `before` others.
    Later { before: usize },
    /// The line is full.
    Full,
    /// Nobody is taken any more.
    Over,
}

/// Places and line.
pub struct Turns {
    rules: Rules,
    /// The node of each sender that has a place.
    served: Vec<u32>,
    line: Vec<Waiting>,
    closed: bool,
}

struct Waiting {
    asker: Asker,
    /// When it asked last.
    asked: Duration,
}

impl Turns {
    /// Free places, and nobody in line.
    pub fn new(rules: Rules) -> Turns {
        Turns { rules, served: Vec::new(), line: Vec::new(), closed: false }
    }

    /// A sender asks for a place. If the answer is [`Answer::Now`], it has one until
    /// [`Turns::leave`].
    pub fn ask(&mut self, asker: Asker, now: Duration) -> Answer {
        self.forget_absent(now);
        let position = self.line.iter().position(|waiting| waiting.asker == asker);
        let ahead = &self.line[..position.unwrap_or(self.line.len())];
        let before = ahead.len();
        // Those ahead who may not have a place yet because of their node do not hold up the others.
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

    /// A sender of `node` gives its place up.
    pub fn leave(&mut self, node: u32) {
        if let Some(place) = self.served.iter().position(|&served| served == node) {
            self.served.swap_remove(place);
        }
    }

    /// From now on only those in line are taken.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Whether the place of a sender of `node` is wanted: by somebody in line, or because the
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

    /// Whether nobody waits.
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

/// How one sender gets on.
pub struct Pace {
    /// When it last had made [`PACE_BYTES`] of progress.
    since: Duration,
    /// Progress after that.
    bytes: u64,
}

impl Pace {
    /// It begins.
    pub fn new(now: Duration) -> Pace {
        Pace { since: now, bytes: 0 }
    }

    /// It has made progress. A message alone is none.
    pub fn progress(&mut self, bytes: u64, now: Duration) {
        let bytes = if planted("progress is silence") { 0 } else { bytes };
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes >= PACE_BYTES {
            *self = Pace::new(now);
        }
    }

    /// It had to wait for us.
    pub fn excuse(&mut self, now: Duration) {
        self.since = now;
    }

    /// How long it has not made [`PACE_BYTES`] of progress.
    pub fn silent_for(&self, now: Duration) -> Duration {
        now.saturating_sub(self.since)
    }
}

/// The time that turns go by. A stall of our own, for instance of the disc, is not counted against
/// the senders.
pub struct Clock {
    /// When it was read last, by the machine's clock.
    read: Duration,
    now: Duration,
}

impl Clock {
    /// One step at most. Between two reads senders get this time to be heard.
    pub const STEP: Duration = Duration::from_secs(1);

    /// Begins at 0. `machine`: the machine's clock.
    pub fn new(machine: Duration) -> Clock {
        Clock { read: machine, now: Duration::ZERO }
    }

    /// The time.
    pub fn read(&mut self, machine: Duration) -> Duration {
        self.now += machine.saturating_sub(self.read).min(Self::STEP);
        self.read = machine;
        self.now
    }
}

#[cfg(test)]
mod tests;
