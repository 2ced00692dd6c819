//! Numbered messages between nodes, and the proof that each came once, whole and in order.

use crate::conformance::bytes::{Random, pattern};
use crate::conformance::{Patience, Stage};
use bellwire::{Completion, Message, Operation, Status};

/// Receives that each node has posted.
const RECEIVES: usize = 64;
/// Sizes of messages in bytes: nothing, words, one frame, several, many.
const SIZES: [usize; 10] = [0, 1, 8, 100, 1196, 1500, 5_000, 20_000, 70_000, 200_000];

/// Messages from one node to another.
#[derive(Clone, Debug)]
pub struct Flow {
    /// The sending node.
    pub from: usize,
    /// The receiving node.
    pub to: usize,
    posted: u64,
    sent: u64,
    /// Messages that arrived.
    pub received: u64,
}

/// The traffic between the nodes of a stage.
#[derive(Debug)]
pub struct Traffic {
    /// The flows.
    pub flows: Vec<Flow>,
    /// Messages of each flow.
    pub messages: u64,
    /// Maximum number of messages of each flow in flight.
    pub window: u64,
    /// Longest message in bytes.
    pub longest: usize,
    /// This message of each flow is sent with a wrong byte: the canary of the checks.
    pub falsified: Option<u64>,
    receives: Vec<usize>,
}

impl Traffic {
    /// `messages` over each of the flows, which are pairs of sender and receiver.
    pub fn new(flows: impl IntoIterator<Item = (usize, usize)>, messages: u64) -> Traffic {
        let flow = |(from, to)| Flow { from, to, posted: 0, sent: 0, received: 0 };
        Traffic {
            flows: flows.into_iter().map(flow).collect(),
            messages,
            window: 8,
            longest: *SIZES.last().expect("some"),
            falsified: None,
            receives: Vec::new(),
        }
    }

    /// Both ways between nodes 0 and 1.
    pub fn both_ways(messages: u64) -> Traffic {
        Traffic::new([(0, 1), (1, 0)], messages)
    }

    /// From every node to every other one.
    pub fn all_to_all(nodes: usize, messages: u64) -> Traffic {
        let others = |from| (0..nodes).filter(move |&to| to != from).map(move |to| (from, to));
        Traffic::new((0..nodes).flat_map(others), messages)
    }

    /// Bytes of message `number` of a flow.
    fn message(&self, from: usize, to: usize, number: u64) -> Vec<u8> {
        let seed = (from as u64) << 48 | (to as u64) << 32 | number;
        let mut random = Random(seed);
        let fitting = SIZES.iter().take_while(|&&size| size <= self.longest).count();
        pattern(seed, SIZES[random.below(fitting)])
    }

    /// Messages that arrived, over all flows.
    pub fn received(&self) -> u64 {
        self.flows.iter().map(|flow| flow.received).sum()
    }

    /// Whether all messages arrived, and their senders know.
    pub fn is_over(&self) -> bool {
        let all = |flow: &Flow| flow.received == self.messages && flow.sent == self.messages;
        self.flows.iter().all(all)
    }

    /// Posts and receives as much as possible now. Panics if a message failed or is wrong.
    #[track_caller]
    pub fn step(&mut self, stage: &mut Stage<'_>) {
        self.receives.resize(stage.nodes.len(), 0);
        for (node, posted) in stage.nodes.iter_mut().zip(&mut self.receives) {
            while *posted < RECEIVES {
                node.receive(self.longest, 0);
                *posted += 1;
            }
        }
        for number in 0..self.flows.len() {
            let Flow { from, to, posted, sent, .. } = self.flows[number];
            if posted == self.messages || posted - sent >= self.window {
                continue;
            }
            let mut bytes = self.message(from, to, posted);
            if self.falsified == Some(posted) {
                bytes.push(0);
            }
            let there = stage.nodes[to].address();
            stage.nodes[from].send(Message::buffer(bytes).to(there).context(number as u64));
            self.flows[number].posted += 1;
        }
        for who in 0..stage.nodes.len() {
            while let Some(done) = stage.nodes[who].poll() {
                assert_eq!(done.status, Status::Success, "{done:?}; {}", stage.story());
                match done.operation {
                    Operation::Receive => self.check(stage, who, done),
                    _ => self.flows[done.context as usize].sent += 1,
                }
            }
        }
    }

    /// Compares a received message with the next one of its sender.
    #[track_caller]
    fn check(&mut self, stage: &Stage<'_>, who: usize, done: Completion) {
        self.receives[who] -= 1;
        let from = stage.nodes.iter().position(|node| node.address() == done.peer);
        let from = from.unwrap_or_else(|| panic!("a message from nobody: {done:?}"));
        let flow = self.flows.iter().position(|flow| (flow.from, flow.to) == (from, who));
        let flow = flow.unwrap_or_else(|| panic!("a message of no flow: {done:?}"));
        let number = self.flows[flow].received;
        let expected = self.message(from, who, number);
        let length = done.length;
        let bytes = done.buffer.expect("its buffer").into_bytes(length);
        assert!(bytes == expected, "message {number} from {from} to {who} is another one");
        self.flows[flow].received += 1;
    }

    /// Steps until all messages arrived.
    #[track_caller]
    pub fn finish(&mut self, stage: &mut Stage<'_>) {
        self.until(stage, |traffic| traffic.is_over());
    }

    /// Steps until `condition` holds.
    #[track_caller]
    pub fn until(&mut self, stage: &mut Stage<'_>, condition: impl Fn(&Traffic) -> bool) {
        let (mut patience, mut before) = (Patience::new(), self.received());
        while !condition(self) {
            self.step(stage);
            // Each arrival renews the patience, because loss and slow machines take time.
            if self.received() != before {
                (patience, before) = (Patience::new(), self.received());
            }
            patience.spend(|| format!("no message arrives; {:?}; {}", self.flows, stage.story()));
        }
    }
}
