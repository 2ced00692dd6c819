//! A process with its library: it writes descriptors by PIO while it has credits, else into its
//! queue in host memory (D-16, D-17).

use super::config::{Config, LONGEST, Submission};
use super::word::Way;
use crate::engine::Random;
use crate::units::{Span, Time};

/// A message that a program posts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Number among those of its port, from zero.
    pub number: u32,
    /// Words of its descriptor, 1..=4: above 16 and up to 128 B (D-21).
    pub words: u16,
    /// When the program posted it.
    pub posted: Time,
}

/// What a program posts, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Mean time between posts; zero means that it always has another message.
    pub gap: Span,
    /// Messages that are posted at once.
    pub burst: u32,
    /// It begins at a random moment within this span.
    pub start: Span,
    /// Words of a descriptor; 0 draws 1 to 4.
    pub words: u16,
    /// Total number of messages.
    pub messages: u32,
}

impl Load {
    /// A program that always has another message, with the longest descriptors.
    pub const SATURATED: Load =
        Load { gap: Span::ZERO, burst: 1, start: Span::ZERO, words: LONGEST, messages: u32::MAX };

    /// A program that posts nothing.
    pub const IDLE: Load =
        Load { gap: Span::ZERO, burst: 1, start: Span::ZERO, words: LONGEST, messages: 0 };
}

/// State of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It will act at the time for which it is scheduled.
    Scheduled,
    /// It has no more messages.
    Done,
    /// It waits for the answer to a PIO read.
    Asks,
    /// Its queue in host memory is full (D-20).
    QueueFull,
}

/// A process, its one virtual port, and its program.
#[derive(Clone, Debug)]
pub struct Process {
    /// What it does.
    pub state: State,
    /// The current way of submission.
    pub mode: Way,
    /// Words that it may write by PIO.
    pub credits: u16,
    /// What the status line in host memory offers (D-17).
    pub offered: u16,
    load: Load,
    random: Random,
    /// Messages submitted so far.
    pub posted: u32,
    burst_left: u32,
    next_post: Time,
    next_words: u16,
    /// Messages submitted, by way.
    pub submitted: [u64; 2],
    /// Changes from PIO to DMA and back.
    pub changes: u64,
    /// PIO reads of credits.
    pub reads: u64,
    /// Time spent waiting for answers to PIO reads.
    pub asked: Span,
    /// When the PIO read in flight began.
    pub asking_since: Time,
}

impl Process {
    /// A process that runs `load`.
    pub fn new(config: &Config, load: Load, mut random: Random) -> Process {
        let mode = match config.host.submission {
            Submission::Dma => Way::Dma,
            Submission::Pio | Submission::PioAndDma => Way::Pio,
        };
        let start = Span::from_ps(random.below(load.start.ps() + 1));
        let next_post = Time::ZERO + start + draw_gap(&load, &mut random);
        let next_words = draw_words(&load, &mut random);
        Process {
            state: State::Scheduled,
            mode,
            credits: 0,
            offered: 0,
            load,
            random,
            posted: 0,
            burst_left: load.burst,
            next_post,
            next_words,
            submitted: [0; 2],
            changes: 0,
            reads: 0,
            asked: Span::ZERO,
            asking_since: Time::ZERO,
        }
    }

    /// The message that is due at `now`; otherwise the time of the next one, or `None` after the
    /// last.
    pub fn due(&self, now: Time) -> Result<Message, Option<Time>> {
        if self.posted >= self.load.messages {
            return Err(None);
        }
        if self.next_post > now {
            return Err(Some(self.next_post));
        }
        // A saturated program posts when it can submit.
        let posted = if self.load.gap == Span::ZERO { now } else { self.next_post };
        Ok(Message { number: self.posted, words: self.next_words, posted })
    }

    /// Counts the message that is due as submitted.
    pub fn submit(&mut self) {
        self.posted += 1;
        self.submitted[self.mode as usize] += 1;
        self.next_words = draw_words(&self.load, &mut self.random);
        self.burst_left -= 1;
        if self.burst_left == 0 {
            self.burst_left = self.load.burst;
            self.next_post += draw_gap(&self.load, &mut self.random);
        }
    }

    /// Changes the way of submission.
    pub fn change(&mut self, mode: Way) {
        self.mode = mode;
        self.changes += 1;
    }
}

fn draw_gap(load: &Load, random: &mut Random) -> Span {
    if load.gap == Span::ZERO {
        return Span::ZERO;
    }
    Span::from_ps(random.exponential_of(load.gap.ps() * u64::from(load.burst)))
}

fn draw_words(load: &Load, random: &mut Random) -> u16 {
    if load.words == 0 { 1 + random.below(u64::from(LONGEST)) as u16 } else { load.words }
}
