//! Peers: other adapters, and the packets to them.

use crate::head::{Head, Opcode};
use bellwire::{
    Address, CompletionQueue, Error, Function, FunctionAddress, Message, QueuePair,
    QueuePairOptions,
};
use bellwire_ring::memory::View;
use std::collections::{HashMap, VecDeque};

/// The number of the queue pair that every adapter receives on: the first of its function.
pub(crate) const MAILBOX: u32 = 1;
/// Unfinished descriptors to one peer.
const SEND_DEPTH: usize = 4096;
/// Peers that are remembered.
const PEERS: usize = 4096;
/// Answers that wait for room. No proper peer causes more.
const OUTBOX: usize = 1 << 16;

/// The queue pairs of the function that lead to one peer.
struct Peer {
    /// Messages, writes, reads and atomics, in order.
    pair: QueuePair,
    /// Fetches, so that long messages do not block short ones.
    fetches: Option<QueuePair>,
}

/// All peers.
pub(crate) struct Peers {
    queue: CompletionQueue,
    known: HashMap<FunctionAddress, Peer>,
    /// The last peer that was used.
    last: Option<(FunctionAddress, QueuePair)>,
    outbox: VecDeque<(FunctionAddress, Head, Vec<u8>)>,
}

/// A queue pair that nobody has.
const NOBODY: u32 = 0;

/// Context of a packet; if it fails, its peer is gone.
pub(crate) const PACKET: u64 = 0;

impl Peers {
    pub(crate) fn new(queue: CompletionQueue) -> Peers {
        Peers { queue, known: HashMap::new(), last: None, outbox: VecDeque::new() }
    }

    fn create(&self, function: &mut Function) -> Result<QueuePair, Error> {
        let options = QueuePairOptions::new(self.queue).send_depth(SEND_DEPTH).receive_depth(1);
        function.create_queue_pair(&options)
    }

    /// The queue pair for messages and accesses to a peer.
    #[inline]
    pub(crate) fn pair(
        &mut self,
        function: &mut Function,
        peer: FunctionAddress,
    ) -> Result<QueuePair, Error> {
        match self.last {
            Some((last, pair)) if last == peer => Ok(pair),
            _ => self.find(function, peer),
        }
    }

    fn find(&mut self, function: &mut Function, peer: FunctionAddress) -> Result<QueuePair, Error> {
        if !self.known.contains_key(&peer) {
            if self.known.len() >= PEERS {
                let hint = "close adapters that are not used";
                return Err(Error::Exhausted { what: "peers", limit: PEERS as u64, hint });
            }
            let pair = self.create(function)?;
            self.known.insert(peer, Peer { pair, fetches: None });
        }
        let pair = self.known[&peer].pair;
        self.last = Some((peer, pair));
        Ok(pair)
    }

    /// The queue pair for fetches from a peer.
    pub(crate) fn fetch_pair(
        &mut self,
        function: &mut Function,
        peer: FunctionAddress,
    ) -> Result<QueuePair, Error> {
        self.find(function, peer)?;
        if let Some(pair) = self.known[&peer].fetches {
            return Ok(pair);
        }
        let pair = self.create(function)?;
        self.known.get_mut(&peer).expect("it was found").fetches = Some(pair);
        Ok(pair)
    }

    /// Forgets a peer that is gone. What is under way to it ends as flushed, so that its memory is
    /// free. If a process comes to that address, it is a new peer.
    pub(crate) fn forget(&mut self, function: &mut Function, peer: FunctionAddress) {
        let Some(Peer { pair, fetches }) = self.known.remove(&peer) else { return };
        self.last = self.last.filter(|(last, _)| *last != peer);
        for pair in [Some(pair), fetches].into_iter().flatten() {
            let ended = function.destroy_queue_pair(pair);
            debug_assert!(ended.is_ok(), "{ended:?}");
        }
    }

    /// Sends a packet. [`Error::QueueFull`]: not now.
    #[inline]
    pub(crate) fn send(
        &mut self,
        function: &mut Function,
        peer: FunctionAddress,
        head: &Head,
        body: View<'_>,
    ) -> Result<(), Error> {
        let pair = self.pair(function, peer)?;
        let to = Address::new(peer.node, peer.function, MAILBOX);
        // Words of a call, where the device can send at once. A head in memory would be stored in
        // parts and loaded in others.
        let tail = head.tail();
        let rest = match &tail {
            None => Some(body),
            Some(tail) => body.is_empty().then(|| View::of(tail)),
        };
        if let Some(rest) = rest
            && function.send_at_once(pair, head.words(), rest, to)
        {
            return Ok(());
        }
        let mut bytes = [0; Head::BYTES];
        let length = head.emit(&mut bytes);
        let message = Message::gathered(&bytes[..length], body).to(to).context(PACKET).unsignaled();
        function.post_send(pair, message).map_err(|refused| refused.error)
    }

    /// Sends each peer a packet that changes nothing, and whose completion says that it has all
    /// that was sent before. Returns how many there will be.
    pub(crate) fn mark(&mut self, function: &mut Function) -> usize {
        let mut head = [0; Head::BYTES];
        Head::new(Opcode::Leave, NOBODY, NOBODY).emit(&mut head);
        let marked = |(peer, known): (&FunctionAddress, &Peer)| {
            let to = Address::new(peer.node, peer.function, MAILBOX);
            let message = Message::gathered(&head, View::empty()).to(to).context(PACKET);
            function.post_send(known.pair, message).is_ok()
        };
        self.known.iter().map(marked).filter(|&is_marked| is_marked).count()
    }

    /// Adds an answer to the outbox.
    pub(crate) fn answer(&mut self, peer: FunctionAddress, head: Head, body: Vec<u8>) {
        if self.outbox.len() >= OUTBOX {
            tracing::warn!("too many answers wait for peers; one was dropped");
            return;
        }
        self.outbox.push_back((peer, head, body));
    }

    /// Whether answers wait.
    #[inline]
    pub(crate) fn has_answers(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Sends answers. Returns how many.
    pub(crate) fn flush(&mut self, function: &mut Function) -> usize {
        let mut sent = 0;
        for _ in 0..self.outbox.len() {
            let Some((peer, head, body)) = self.outbox.pop_front() else { break };
            match self.send(function, peer, &head, View::of(&body)) {
                Err(Error::QueueFull { .. }) => self.outbox.push_back((peer, head, body)),
                // Another completion reports a peer that is gone.
                _ => sent += 1,
            }
        }
        sent
    }
}

#[cfg(test)]
mod tests {
    use super::{Head, NOBODY, Opcode};
    use crate::Adapter;
    use std::time::{Duration, Instant};

    /// A peer is remembered while its process is there, and not longer.
    #[test]
    fn a_peer_that_is_gone_is_forgotten() {
        let job = format!("shm:rdma-peers-{}", std::process::id());
        let mut own = Adapter::open(&job).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        for _ in 0..3 {
            let mut peer = Adapter::open(&job).unwrap();
            let head = Head::new(Opcode::Probe, NOBODY, NOBODY);
            own.state.peers.answer(peer.state.address, head, Vec::new());
            while own.state.peers.known.is_empty() || peer.state.packets == 0 {
                assert!(Instant::now() < deadline, "it does not become known");
                own.look();
                peer.look();
            }
            drop(peer);
            while !own.state.peers.known.is_empty() {
                assert!(Instant::now() < deadline, "it is not forgotten");
                own.look();
            }
        }
    }
}
