//! The receiving side of all connections. It admits senders in turn, serves several at a time, and
//! reports how each one ended.
//!
//! One function and one thread serve all senders. [`Turns`] decides which sender has a place;
//! [`Receiver`] handles its messages.

use super::canary::planted;
use super::keep_alive::Alive;
use super::link::{ACQUAINTANCE, CHUNK_BYTES, DEPTH, HELLO, MESSAGE_BYTES, NUMBER, RECEIVES, told};
use super::message::{ToReceiver, ToSender};
use super::names::Budget;
use super::part::SUFFIX;
use super::place::{Announced, Destination, Place};
use super::receiver::{Received, Receiver, SLOTS, Step};
use super::turns::{Answer, Asker, Clock, Pace, Rules, Turns};
use crate::talk::{post_receive, post_text, refusal, successful};
use anyhow::{Context, Result, anyhow, bail, ensure};
use bellwire::{
    Completion, CompletionQueue, ConnectionRequest, Error, Function, Listener, MemoryRegion,
    Operation, QueuePair, QueuePairOptions, Rights, Wait,
};
use indicatif::ProgressBar;
use std::time::{Duration, Instant};

/// Time between two checks for requests and silent senders.
const GLANCE: Duration = Duration::from_millis(200);

/// Longest silence of a sender whose place is not wanted. The device notices a dead sender much
/// earlier.
pub const LONGEST_SILENCE: Duration = Duration::from_secs(600);

/// How long a sender may take to read its result while its place is wanted.
const FAREWELL: Duration = Duration::from_secs(2);

/// Most completions taken before the next check.
const BATCH: usize = 64;

/// How a sender's copy ended.
pub struct Ended {
    /// Where the sender is.
    pub node: u32,
    /// From its connection to its end.
    pub took: Duration,
    /// The complete copy; `None` if the sender had nothing to send.
    pub outcome: Result<Option<Received>>,
}

/// All senders.
pub struct Reception {
    alive: Alive,
    listener: Listener,
    /// Completion queue of all queue pairs.
    queue: CompletionQueue,
    rules: Rules,
    turns: Turns,
    clock: Clock,
    started: Instant,
    sessions: Vec<Session>,
    destination: Destination,
    /// What a sender greets with.
    greeting: Vec<u8>,
    budget: Budget,
    /// A chunk is copied here once, then hashed and written.
    chunk: Vec<u8>,
    /// Makes a sender's progress bar.
    bar: Box<dyn Fn() -> Result<ProgressBar>>,
}

/// One sender with a place.
struct Session {
    pair: QueuePair,
    node: u32,
    started: Instant,
    /// Messages to it that have not completed.
    outstanding: usize,
    pace: Pace,
    stage: Stage,
}

enum Stage {
    /// It is connected, and has not announced its copy.
    Connected,
    Copying(Box<Receiver>),
    /// It has been sent its result. Its memory stays until it disconnects: otherwise a put in
    /// flight would fail, and the sender would see that error before the result.
    Leaving(Option<MemoryRegion>),
}

impl Reception {
    /// Listens with `function` for senders; their copies go to `destination`.
    pub fn open(
        mut function: Function,
        rules: Rules,
        destination: Destination,
        greeting: Vec<u8>,
        bar: impl Fn() -> Result<ProgressBar> + 'static,
    ) -> Result<Reception> {
        // Twice: completions of a destroyed queue pair may still be in the queue.
        let depth = 2 * rules.places * (DEPTH + RECEIVES);
        let queue = function.create_completion_queue(depth)?;
        let listener = function.listen(NUMBER)?;
        let started = Instant::now();
        Ok(Reception {
            alive: Alive::keep(function)?,
            listener,
            queue,
            rules,
            turns: Turns::new(rules),
            clock: Clock::new(Duration::ZERO),
            started,
            sessions: Vec::new(),
            destination,
            greeting,
            budget: Budget::new(),
            chunk: vec![0; CHUNK_BYTES],
            bar: Box::new(bar),
        })
    }

    /// From now on admits only senders that already wait in line.
    pub fn close(&mut self) {
        self.turns.close();
    }

    /// Whether no sender is served or waits.
    pub fn is_idle(&mut self) -> bool {
        let now = self.now();
        self.sessions.is_empty() && self.turns.line_is_empty(now)
    }

    /// Waits for at most `patience` until something happens, and handles it. Returns the copies
    /// that ended.
    pub fn round(&mut self, patience: Duration) -> Result<Vec<Ended>> {
        let mut ended = Vec::new();
        self.take_requests(patience)?;
        self.take_completions(patience.min(GLANCE), &mut ended)?;
        let now = self.now();
        for index in 0..self.sessions.len() {
            self.work(index, now, &mut ended);
        }
        for index in (0..self.sessions.len()).rev() {
            self.look_after(index, now, &mut ended)?;
        }
        Ok(ended)
    }

    fn now(&mut self) -> Duration {
        self.clock.read(self.started.elapsed())
    }

    // Requests

    fn take_requests(&mut self, patience: Duration) -> Result<()> {
        let now = self.now();
        if self.sessions.is_empty() {
            let line_is_empty = self.turns.line_is_empty(now);
            let patience = if line_is_empty { patience } else { patience.min(GLANCE) };
            let waited = self.alive.function().wait_request(self.listener, Wait::Block, patience);
            match waited {
                Ok(request) => self.answer(request)?,
                Err(Error::TimedOut { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        loop {
            let request = self.alive.function().poll_request(self.listener)?;
            let Some(request) = request else { return Ok(()) };
            self.answer(request)?;
        }
    }

    fn answer(&mut self, request: ConnectionRequest) -> Result<()> {
        let now = self.now();
        if !is_equal(&request.private_data, &self.greeting) {
            // Here and below: a sender that is gone needs no answer.
            let _ = self.alive.function().reject(request, refusal(HELLO).as_bytes());
            return Ok(());
        }
        let asker = Asker { node: request.peer.node, function: request.peer.function };
        let answer = self.turns.ask(asker, now);
        if answer != Answer::Now {
            let _ = self.alive.function().reject(request, told(answer).as_bytes());
            return Ok(());
        }
        let mut function = self.alive.function();
        match connect(&mut function, self.queue, request) {
            Ok(pair) => self.sessions.push(Session {
                pair,
                node: asker.node,
                started: Instant::now(),
                outstanding: 0,
                pace: Pace::new(now),
                stage: Stage::Connected,
            }),
            Err(error) => {
                self.turns.leave(asker.node);
                // The peer went away meanwhile. Any other error would repeat.
                if !matches!(error, Error::Unreachable { .. }) {
                    return Err(error).context("cannot accept a connection");
                }
            }
        }
        Ok(())
    }

    // Connected senders

    fn take_completions(&mut self, patience: Duration, ended: &mut Vec<Ended>) -> Result<()> {
        if self.sessions.is_empty() {
            return Ok(());
        }
        let has_work = |session: &Session| match &session.stage {
            Stage::Copying(receiver) => receiver.has_work(),
            _ => false,
        };
        let patience = if self.sessions.iter().any(has_work) { Duration::ZERO } else { patience };
        let waited = self.alive.function().wait(self.queue, Wait::Adaptive, patience);
        match waited {
            Ok(completion) => self.completed(completion, ended)?,
            Err(Error::TimedOut { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        for _ in 0..BATCH {
            let polled = self.alive.function().poll(self.queue)?;
            let Some(completion) = polled else { break };
            self.completed(completion, ended)?;
        }
        Ok(())
    }

    fn completed(&mut self, completion: Completion, ended: &mut Vec<Ended>) -> Result<()> {
        let pair = completion.queue_pair;
        let Some(index) = self.sessions.iter().position(|session| session.pair == pair) else {
            // It ended meanwhile.
            return Ok(());
        };
        if completion.operation != Operation::Receive {
            self.sessions[index].outstanding -= 1;
        }
        let completion = match successful(completion) {
            Ok(completion) => completion,
            Err(error) => {
                self.end(index, Err(error.context(SenderGone)), ended);
                return self.remove(index);
            }
        };
        if completion.operation != Operation::Receive {
            return Ok(());
        }
        let length = completion.length;
        let buffer = completion.buffer.context("a receive gives its buffer back")?;
        let heard = serde_json::from_slice(&buffer.into_bytes(length));
        post_receive(&mut self.alive.function(), pair, MESSAGE_BYTES)?;
        if let Err(error) = heard
            .context("it said nonsense")
            .context(SenderGone)
            .and_then(|message| self.hear(index, message, ended))
        {
            self.end(index, Err(error), ended);
        }
        Ok(())
    }

    fn hear(&mut self, index: usize, message: ToReceiver, ended: &mut Vec<Ended>) -> Result<()> {
        let now = self.clock.read(self.started.elapsed());
        let session = &mut self.sessions[index];
        let mut answers = Vec::new();
        match &mut session.stage {
            Stage::Leaving(_) => return Ok(()),
            Stage::Connected => {
                let (receiver, ready) = self.begin(message)?;
                self.sessions[index].stage = Stage::Copying(Box::new(receiver));
                self.sessions[index].pace = Pace::new(now);
                answers.push(ready);
            }
            Stage::Copying(receiver) => {
                let (destination, chunk) = (&mut self.destination, &mut self.chunk);
                match receiver.hear(message, destination, chunk, &mut answers)? {
                    Step::Progress(bytes) => session.pace.progress(bytes, now),
                    Step::Complete(received) => {
                        answers.push(ToSender::Finished);
                        self.end(index, Ok(Some(received)), ended);
                    }
                    Step::Nothing => {
                        answers.push(ToSender::Finished);
                        self.end(index, Ok(None), ended);
                    }
                }
            }
        }
        answers.iter().try_for_each(|answer| self.say(index, answer))
    }

    /// A sender announces its copy.
    fn begin(&mut self, message: ToReceiver) -> Result<(Receiver, ToSender)> {
        let ToReceiver::Hello { name, folder, bytes, origin } = message else {
            bail!("no greeting")
        };
        let bar = (self.bar)()?;
        bar.set_length(bytes);
        let announced = Announced { name: &name, folder, origin: &origin };
        let place = Place::find(&self.destination, &announced)?;
        let length = SLOTS as usize * CHUNK_BYTES;
        let slots = self.alive.function().allocate_region(length, Rights::REMOTE_WRITE)?;
        let key = slots.remote_key().to_bytes().to_vec();
        let ready = ToSender::Ready { key, slots: SLOTS, resuming: place.part.resuming };
        Ok((Receiver::new(place, slots, &self.destination, &self.budget, bar), ready))
    }

    /// Does the work that a sender waits for.
    fn work(&mut self, index: usize, now: Duration, ended: &mut Vec<Ended>) {
        let session = &mut self.sessions[index];
        let Stage::Copying(receiver) = &mut session.stage else { return };
        if !receiver.has_work() {
            return;
        }
        session.pace.excuse(now);
        let mut answers = Vec::new();
        let worked = receiver.work(&mut self.chunk, &mut answers);
        let said =
            worked.and_then(|()| answers.iter().try_for_each(|answer| self.say(index, answer)));
        if let Err(error) = said {
            self.end(index, Err(error), ended);
        }
    }

    /// Ends a session that takes too long.
    fn look_after(&mut self, index: usize, now: Duration, ended: &mut Vec<Ended>) -> Result<()> {
        let session = &self.sessions[index];
        let silent = session.pace.silent_for(now);
        let is_wanted = self.turns.is_wanted(session.node, now);
        match session.stage {
            Stage::Leaving(_) if silent >= ACQUAINTANCE || is_wanted && silent >= FAREWELL => {
                return self.remove(index);
            }
            Stage::Connected if silent >= self.rules.silence => {
                let seconds = self.rules.silence.as_secs();
                let why = anyhow!("it did not say within {seconds} s what it sends");
                self.end(index, Err(why), ended);
            }
            Stage::Copying(_) if is_wanted && silent >= self.rules.silence => {
                self.end(index, Err(anyhow!(LostItsTurn(self.rules.silence))), ended);
            }
            Stage::Copying(_) if silent >= LONGEST_SILENCE => {
                self.end(index, Err(anyhow!(LostItsTurn(LONGEST_SILENCE))), ended);
            }
            _ => {}
        }
        Ok(())
    }

    /// Ends a copy; a sender whose copy is incomplete gets the reason.
    fn end(&mut self, index: usize, outcome: Result<Option<Received>>, ended: &mut Vec<Ended>) {
        if let Err(error) = &outcome {
            let why = crate::command::sentence(error);
            // If the message fails, the sender has disconnected or will see the disconnect.
            let _ = self.say(index, &ToSender::Failed { why });
        }
        let now = self.clock.read(self.started.elapsed());
        let session = &mut self.sessions[index];
        let slots = match std::mem::replace(&mut session.stage, Stage::Leaving(None)) {
            // It had ended already.
            leaving @ Stage::Leaving(_) => {
                session.stage = leaving;
                return;
            }
            Stage::Connected => None,
            Stage::Copying(receiver) => {
                receiver.bar.finish_and_clear();
                Some(match &outcome {
                    Ok(Some(_)) => receiver.slots,
                    _ => receiver.leave(&mut self.destination),
                })
            }
        };
        if let Some(slots) = &slots
            && planted("memory goes first")
        {
            let _ = self.alive.function().deregister_foreign(slots);
        }
        session.stage = Stage::Leaving(slots);
        session.pace = Pace::new(now);
        ended.push(Ended { node: session.node, took: session.started.elapsed(), outcome });
    }

    fn remove(&mut self, index: usize) -> Result<()> {
        let session = self.sessions.swap_remove(index);
        self.turns.leave(session.node);
        let mut function = self.alive.function();
        if let Stage::Leaving(Some(slots)) = &session.stage {
            // No operation that we posted uses it.
            let _ = function.deregister_foreign(slots);
        }
        Ok(function.destroy_queue_pair(session.pair)?)
    }

    /// Sends a message without waiting: a sender that takes no messages is dropped.
    fn say(&mut self, index: usize, message: &ToSender) -> Result<()> {
        let session = &mut self.sessions[index];
        ensure!(session.outstanding < DEPTH, "it takes nothing that it is told");
        let text = serde_json::to_vec(message)?;
        let mut function = self.alive.function();
        post_text(&mut function, session.pair, text)?;
        session.outstanding += 1;
        Ok(())
    }
}

/// Accepts a request with a queue pair of its own.
/// Compares in a time that depends on the lengths only.
fn is_equal(ours: &[u8], theirs: &[u8]) -> bool {
    blake3::hash(ours) == blake3::hash(theirs)
}

fn connect(
    function: &mut Function,
    queue: CompletionQueue,
    request: ConnectionRequest,
) -> bellwire::Result<QueuePair> {
    let options = QueuePairOptions::new(queue).send_depth(DEPTH).receive_depth(RECEIVES);
    let pair = function.create_queue_pair(&options)?;
    let accepted = (0..RECEIVES)
        .try_for_each(|_| post_receive(function, pair, MESSAGE_BYTES))
        .and_then(|()| function.accept(request, pair, &[]));
    if let Err(error) = accepted {
        function.destroy_queue_pair(pair)?;
        return Err(error);
    }
    Ok(pair)
}

/// The connection ended before the copy did.
#[derive(Debug, thiserror::Error)]
#[error(
    "the sender is gone, or talks nonsense (what came stays in a {} beside DEST, and the same copy goes on from there)",
    SUFFIX
)]
struct SenderGone;

/// The sender made too little progress while its place was wanted.
#[derive(Debug, thiserror::Error)]
#[error("the sender was silent for {} s and has lost its turn", .0.as_secs())]
struct LostItsTurn(Duration);
