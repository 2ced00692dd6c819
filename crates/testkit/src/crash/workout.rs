//! The workout: all operations between two nodes, the same on both sides, asleep whenever idle.

use crate::conformance::bytes::{assert_same, pattern};
use crate::conformance::{Node, Patience};
use bellwire::{
    Address, Atomic, Buffer, Completion, ConnectionState, Error, Get, MemoryRegion, Message,
    Operation, Put, Refused, RemoteKey, Status, Wait,
};
use std::time::Duration;

/// The peer is gone.
#[derive(Debug)]
pub struct Ended;

/// How long one sleep lasts before a check whether the peer still exists.
const NAP: Duration = Duration::from_millis(20);
/// Bytes in each region.
const REGION: usize = 128 << 10;

/// What is to be done after the first post.
type AfterPost<'g> = Box<dyn FnOnce(&mut Node) + 'g>;

/// One side.
pub struct Workout<'g> {
    /// Our node.
    pub node: Node,
    /// The peer's address, unless we are connected.
    pub to: Option<Address>,
    /// Whether the peer's process is known to have ended.
    pub gone: Box<dyn FnMut() -> bool + 'g>,
    /// Descriptors without a completion yet.
    open: u64,
    /// Messages received so far.
    heard: u64,
    after_first_post: Option<AfterPost<'g>>,
    regions: [MemoryRegion; 2],
}

impl<'g> Workout<'g> {
    /// A workout at `node`.
    pub fn new(mut node: Node, to: Option<Address>, gone: impl FnMut() -> bool + 'g) -> Self {
        let regions = node.regions(REGION);
        let gone = Box::new(gone);
        Workout { node, to, gone, open: 0, heard: 0, after_first_post: None, regions }
    }

    /// Runs something once, after the first post and before any poll.
    pub fn after_first_post(&mut self, something: impl FnOnce(&mut Node) + 'g) {
        self.after_first_post = Some(Box::new(something));
    }

    /// Runs all of it. `second`: this side puts into the second half of the peer's regions.
    pub fn run(&mut self, second: bool) -> Result<(), Ended> {
        let keys = self.exchange_keys()?;
        for round in 0..2 {
            self.exchange_messages(&[8, 0, 40, 1000].repeat(10))?;
            self.exchange_messages(&[60_000, 8, 100_000])?;
            for key in keys {
                self.reach(key, round, second)?;
            }
            self.exchange_messages(&[8])?;
            self.flood(round == u64::from(second))?;
        }
        self.exchange_messages(&[1])
    }

    /// Exchanges the keys of the regions.
    fn exchange_keys(&mut self) -> Result<[RemoteKey; 2], Ended> {
        let mut keys = self.regions[0].remote_key().to_bytes().to_vec();
        keys.extend(self.regions[1].remote_key().to_bytes());
        self.receive(48);
        self.send(keys)?;
        if let Some(something) = self.after_first_post.take() {
            something(&mut self.node);
        }
        let mut theirs = None;
        while theirs.is_none() || self.open > 0 {
            let done = self.next()?;
            if done.operation == Operation::Receive {
                let bytes = done.buffer.expect("its buffer").into_bytes(48);
                theirs = Some([0, 24].map(|at| RemoteKey::from_bytes(&bytes[at..at + 24])));
            }
        }
        Ok(theirs.expect("just looked").map(|key| key.expect("a key")))
    }

    /// Messages of these lengths both ways; all must come in order and whole.
    fn exchange_messages(&mut self, lengths: &[usize]) -> Result<(), Ended> {
        for &length in lengths {
            self.receive(length);
        }
        for (number, &length) in lengths.iter().enumerate() {
            self.send(pattern(number as u64, length))?;
        }
        let mut next = 0;
        while self.open > 0 {
            let done = self.next()?;
            if done.operation == Operation::Receive {
                let length = lengths[next];
                let bytes = done.buffer.expect("its buffer").into_bytes(done.length);
                assert_same(&bytes, &pattern(next as u64, length), "a message of the workout");
                next += 1;
            }
        }
        Ok(())
    }

    /// Puts, gets and atomics on one of the peer's regions.
    fn reach(&mut self, key: RemoteKey, round: u64, second: bool) -> Result<(), Ended> {
        let pair = self.node.queue_pair;
        let half = if second { REGION as u64 / 2 } else { 0 };
        for length in [64, 50_000] {
            let bytes = pattern(round + length as u64, length);
            let part = key.slice(half + 8, length as u64);
            let put = Put::new(bytes.clone(), part).context(1);
            // Both sides made their queue pairs alike, so these have the same number.
            let put = put.event(pair.number, Some(round));
            let posted = self.node.function.post_put(pair, put);
            self.posted(posted)?;
            self.finish(|done| done.operation == Operation::Put)?;
            let posted =
                self.node.function.post_get(pair, Get::new(part, vec![0; length]).context(2));
            self.posted(posted)?;
            let got = self.finish(|done| done.operation == Operation::Get)?;
            let got = got.buffer.and_then(Buffer::into_vec).expect("its buffer");
            assert_same(&got, &bytes, "what was put is got back");
            let add = Atomic::fetch_add(key.at(half), 1).context(3);
            let posted = self.node.function.post_atomic(pair, add);
            self.posted(posted)?;
            self.finish(|done| done.operation == Operation::FetchAdd)?;
        }
        Ok(())
    }

    /// One side sends more than the other has receives for; then all is received.
    fn flood(&mut self, sending: bool) -> Result<(), Ended> {
        const MESSAGES: u64 = 200;
        if sending {
            for number in 0..MESSAGES {
                self.send(pattern(number, 6_000))?;
            }
            while self.open > 0 {
                self.next()?;
            }
        } else {
            for number in 0..MESSAGES {
                self.receive(6_000);
                let done = self.finish(|done| done.operation == Operation::Receive)?;
                let bytes = done.buffer.expect("its buffer").into_bytes(done.length);
                assert_same(&bytes, &pattern(number, 6_000), "a message of the flood");
            }
        }
        self.exchange_messages(&[2])
    }

    fn receive(&mut self, length: usize) {
        let pair = self.node.queue_pair;
        // The connection may have ended already; then the next wait says so.
        if self.node.function.post_receive(pair, vec![0; length], self.heard).is_ok() {
            self.open += 1;
        }
    }

    fn send(&mut self, bytes: Vec<u8>) -> Result<(), Ended> {
        let mut send = Message::buffer(bytes);
        if let Some(to) = self.to {
            send = send.to(to);
        }
        let pair = self.node.queue_pair;
        let posted = self.node.function.post_send(pair, send);
        self.posted(posted)
    }

    fn posted<D>(&mut self, result: Result<(), Refused<D>>) -> Result<(), Ended> {
        match result {
            Ok(()) => {
                self.open += 1;
                Ok(())
            }
            Err(refused) => Err(ended(refused.error)),
        }
    }

    /// Takes completions until one satisfies `asked`. Returns that one.
    fn finish(&mut self, asked: impl Fn(&Completion) -> bool) -> Result<Completion, Ended> {
        loop {
            let done = self.next()?;
            if asked(&done) {
                return Ok(done);
            }
        }
    }

    /// The next completion except events, asleep until it comes.
    fn next(&mut self) -> Result<Completion, Ended> {
        let mut patience = Patience::new();
        loop {
            match self.node.function.wait(self.node.completions, Wait::Block, NAP) {
                Ok(done) if done.operation == Operation::RemotePut => {}
                Ok(done) => {
                    self.open -= 1;
                    if done.operation == Operation::Receive && done.status.is_success() {
                        self.heard += 1;
                    }
                    return self.judge(done);
                }
                Err(Error::TimedOut { .. }) => {
                    let state = self.node.function.query(self.node.queue_pair);
                    let over = (self.gone)()
                        || state.is_ok_and(|state| {
                            matches!(state.connection, ConnectionState::Disconnected { .. })
                        });
                    if over {
                        return Err(Ended);
                    }
                    assert!(!patience.is_over(), "nothing came: {}", self.story());
                    patience.spend(|| self.story());
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn judge(&self, done: Completion) -> Result<Completion, Ended> {
        assert!(
            done.buffer.is_some() || done.operation == Operation::FetchAdd,
            "every buffer comes back: {done:?}"
        );
        match done.status {
            Status::Success => Ok(done),
            Status::PeerGone | Status::Unreachable | Status::Flushed => Err(Ended),
            _ => panic!("nobody broke a rule: {done:?}"),
        }
    }

    /// After the peer's end: every posted descriptor completes. Receives of an unconnected queue
    /// pair could still serve other peers, so they come back when it is destroyed.
    pub fn drain(&mut self) {
        let pair = self.node.queue_pair;
        let mut patience = Patience::new();
        while self.node.function.query(pair).expect("it exists").posted_sends > 0 {
            self.take(&mut patience);
        }
        if self.to.is_none() {
            while self.node.function.query(pair).expect("it exists").posted_receives > 0 {
                self.take(&mut patience);
            }
        }
        self.node.function.destroy_queue_pair(pair).expect("it exists");
        while self.open > 0 {
            self.take(&mut patience);
        }
        self.node.counters();
    }

    fn take(&mut self, patience: &mut Patience) {
        match self.node.function.wait(self.node.completions, Wait::Block, NAP) {
            Ok(done) if done.operation == Operation::RemotePut => {}
            Ok(done) => {
                self.open -= 1;
                let _ = self.judge(done);
            }
            Err(Error::TimedOut { .. }) => {
                assert!(!patience.is_over(), "descriptors that never complete: {}", self.story());
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn story(&self) -> String {
        let state = self.node.function.query(self.node.queue_pair);
        format!("{} descriptors open; {state:#?}; {:?}", self.open, self.node.counters().function)
    }
}

/// Asserts that a post was refused only because the peer is gone.
fn ended(error: Error) -> Ended {
    match error {
        Error::WrongState { .. } => Ended,
        error => panic!("{error}"),
    }
}
