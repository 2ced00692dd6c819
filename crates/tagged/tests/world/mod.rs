//! Endpoints on the in-process fabric, driven in turns by one thread.
#![allow(dead_code)] // Each test uses what it needs.

use bellwire::{Address, Function, FunctionAddress, Message, QueuePairOptions};
use bellwire_tagged::*;
use bellwire_testkit::loopback::{Fabric, FabricOptions};

/// An endpoint, and what has completed at it.
pub struct Side {
    pub endpoint: Endpoint,
    pub done: Vec<TaggedCompletion>,
}

/// All sides.
pub struct World {
    pub fabric: Fabric,
    pub sides: Vec<Side>,
}

/// Context and note of a test's operation.
pub fn token(context: u64) -> Token {
    Token { context, note: 7 }
}

pub fn any(tag: u64) -> MatchCriteria {
    MatchCriteria { source: None, tag: Some((tag, 0)) }
}

pub fn pattern(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|at| (at as u8).wrapping_mul(31) ^ (at >> 8) as u8 ^ seed).collect()
}

/// A message with a tag that counts as sent early.
pub fn message(to: Peer, tag: u64, body: &Spans, context: u64) -> TaggedMessage<'_> {
    let (token, mode) = (token(context), SendMode::Transmit);
    TaggedMessage { to, tag: Some(tag), data: None, body, token, mode }
}

/// Pseudorandom numbers (xorshift).
pub fn random(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

/// Words as a packet has them.
pub fn packet(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The memory of a vector that the test keeps until all is done.
pub fn span(bytes: &mut [u8]) -> Span {
    // SAFETY: tests keep their vectors, and look at them after the operations have completed.
    unsafe { Span::new(bytes.as_mut_ptr(), bytes.len()) }
}

impl World {
    pub fn new(options: FabricOptions, nodes: u32) -> World {
        let fabric = Fabric::new(options);
        let open = |node| {
            let endpoint = Endpoint::open(&fabric.device(node), 0, &Options::default()).unwrap();
            Side { endpoint, done: Vec::new() }
        };
        let sides = (0..nodes).map(open).collect();
        World { fabric, sides }
    }

    /// Two sides; memory is reached directly, or only by packets.
    pub fn pair(direct: bool) -> World {
        let options = FabricOptions { direct_brought: direct, ..FabricOptions::default() };
        World::new(options, 2)
    }

    pub fn turn(&mut self) -> usize {
        let turn = |side: &mut Side| {
            let Side { endpoint, done } = side;
            endpoint.progress(&mut |one| done.push(one)).unwrap()
        };
        self.sides.iter_mut().map(turn).sum()
    }

    pub fn settle(&mut self) {
        let mut quiet = 0;
        for _ in 0..200_000 {
            quiet = if self.turn() == 0 { quiet + 1 } else { 0 };
            // The engine may be at work without any completion.
            if quiet == 500 {
                return;
            }
        }
        panic!("it never comes to rest");
    }

    /// Ends the last side. Another endpoint takes its place, and side `to` alone hears of that.
    pub fn replace_last(&mut self, to: usize) -> Function {
        const CREDIT: u64 = 4;
        let node = self.sides.len() as u32 - 1;
        self.sides.pop();
        let mut function = self.fabric.device(node).open_function(0).unwrap();
        let queue = function.create_completion_queue(64).unwrap();
        let pair = function.create_queue_pair(&QueuePairOptions::new(queue)).unwrap();
        // One of them may be the incarnation that was there, which is random.
        for incarnation in [9, 10] {
            let bytes = packet(&[CREDIT | incarnation << 16]);
            let to = Address::new(to as u32, 0, 1);
            let send = Message::inline(&bytes).to(to).immediate(0).unsignaled();
            function.post_send(pair, send).unwrap();
        }
        for _ in 0..100 {
            function.progress().unwrap();
            let Side { endpoint, done } = &mut self.sides[to];
            endpoint.progress(&mut |one| done.push(one)).unwrap();
        }
        function
    }

    pub fn peer(&mut self, of: usize, at: u32) -> Peer {
        self.sides[of].endpoint.peer(FunctionAddress { node: at, function: 0 })
    }

    /// Posts a message from the first side to the second. Retries while there is no room.
    pub fn send(
        &mut self,
        bytes: &mut [u8],
        tag: Option<u64>,
        context: u64,
        mode: SendMode,
    ) -> SendStatus {
        self.send_from(0, 1, &span(bytes).into(), tag, None, context, mode)
    }

    /// As [`World::send`], from any side to any other; the message counts as sent early.
    pub fn post(&mut self, from: usize, to: usize, bytes: &mut [u8], tag: Option<u64>, at: u64) {
        let body = span(bytes).into();
        let _status = self.send_from(from, to as u32, &body, tag, None, at, SendMode::Transmit);
    }

    #[allow(clippy::too_many_arguments)]
    pub fn send_from(
        &mut self,
        from: usize,
        to: u32,
        body: &Spans,
        tag: Option<u64>,
        data: Option<u64>,
        context: u64,
        mode: SendMode,
    ) -> SendStatus {
        let to = self.peer(from, to);
        for _ in 0..100_000 {
            let message = TaggedMessage { to, tag, data, body, token: token(context), mode };
            match self.sides[from].endpoint.send(message) {
                Ok(sent) => return sent,
                Err(PostError::Again) => drop(self.turn()),
                Err(refused) => panic!("{refused:?}"),
            }
        }
        panic!("no room ever");
    }

    pub fn receive(&mut self, at: usize, selection: MatchCriteria, into: &mut [u8], context: u64) {
        let Side { endpoint, done } = &mut self.sides[at];
        let sink = &mut |one| done.push(one);
        endpoint.receive(selection, span(into).into(), token(context), sink).unwrap();
    }

    /// Contexts of the operations of a side that have failed, in order. None has succeeded.
    pub fn failed(&self, at: usize) -> Vec<u64> {
        let done = &self.sides[at].done;
        assert!(done.iter().all(|one| matches!(one.outcome, Outcome::Failed(_))), "{done:?}");
        let mut contexts: Vec<u64> = done.iter().map(|one| one.token.context).collect();
        contexts.sort_unstable();
        contexts
    }

    /// What has completed at a side, by context.
    pub fn done(&self, at: usize, context: u64) -> &TaggedCompletion {
        let mut all = self.sides[at].done.iter().filter(|done| done.token.context == context);
        let found = all.next().unwrap_or_else(|| panic!("{context} has not completed"));
        assert!(all.next().is_none(), "{context} has completed twice");
        found
    }
}
