//! Nodes in one thread, driven in turn: the simplest way to run both sides of a check.

use super::patience::limit;
use super::{Fixture, Patience};
use bellwire::{
    Address, Atomic, Buffer, Completion, CompletionQueue, ConnectionRequest, Counters, Device,
    DeviceOptions, Error, Function, FunctionOptions, Get, Listener, MemoryRegion, Message, Put,
    QueuePair, QueuePairOptions, QueuePairState, Refused, Rights, Status, Wait,
};
use std::fmt::Display;
use std::ops::{Deref, DerefMut};

/// The first node of a stage.
pub const A: usize = 0;
/// The second node of a stage.
pub const B: usize = 1;

/// Depth of each node's first completion queue.
pub const COMPLETIONS: usize = 16_384;

/// One node with one function, one completion queue and one queue pair on it.
#[derive(Debug)]
pub struct Node {
    /// The device.
    pub device: Device,
    /// Its function 0.
    pub function: Function,
    /// A completion queue of [`COMPLETIONS`] entries.
    pub completions: CompletionQueue,
    /// A queue pair with both sides on `completions`, of 256 sends and 256 receives.
    pub queue_pair: QueuePair,
}

impl Node {
    /// Function 0 of a new node.
    pub fn open(fixture: &dyn Fixture) -> Node {
        Self::open_with(fixture, &FunctionOptions::default())
    }

    /// Function 0 of a new node, with options.
    pub fn open_with(fixture: &dyn Fixture, options: &FunctionOptions) -> Node {
        let device = fixture.open(&DeviceOptions::default()).expect("a node opens");
        let function = fixture.open_function(&device, options).expect("a function opens");
        let node = Self::with(device, function);
        fixture.assert_opened(&node.device);
        node
    }

    /// Function `number` of a node that is open.
    pub fn of(device: Device, number: u8, options: &FunctionOptions) -> Node {
        let function = device.open_function_with(number, options).expect("a function opens");
        Self::with(device, function)
    }

    fn with(device: Device, mut function: Function) -> Node {
        let completions = function.create_completion_queue(COMPLETIONS).expect("a queue");
        let options = QueuePairOptions::new(completions);
        let queue_pair = function.create_queue_pair(&options).expect("a queue pair");
        Node { device, function, completions, queue_pair }
    }

    /// The address that peers send to.
    pub fn address(&self) -> Address {
        self.address_of(self.queue_pair)
    }

    /// The address of another queue pair of this function.
    pub fn address_of(&self, queue_pair: QueuePair) -> Address {
        self.function.query(queue_pair).expect("it exists").address
    }

    /// A further queue pair on the same completion queue.
    pub fn another(&mut self) -> QueuePair {
        self.another_with(|options| options)
    }

    /// A further queue pair on the same completion queue, with options.
    pub fn another_with(
        &mut self,
        change: impl FnOnce(QueuePairOptions) -> QueuePairOptions,
    ) -> QueuePair {
        let options = change(QueuePairOptions::new(self.completions));
        self.function.create_queue_pair(&options).expect("a queue pair")
    }

    /// Posts a receive of `bytes` bytes to the node's queue pair.
    #[track_caller]
    pub fn receive(&mut self, bytes: usize, context: u64) {
        self.receive_on(self.queue_pair, bytes, context);
    }

    /// Posts a receive of `bytes` bytes to a queue pair.
    #[track_caller]
    pub fn receive_on(&mut self, queue_pair: QueuePair, bytes: usize, context: u64) {
        self.function.post_receive(queue_pair, vec![0xee; bytes], context).expect("room for it");
    }

    /// Posts a receive into `buffer` to the node's queue pair.
    #[track_caller]
    pub fn receive_into(&mut self, buffer: impl Into<Buffer>, context: u64) {
        self.function.post_receive(self.queue_pair, buffer, context).expect("room for it");
    }

    /// Posts a message to the node's queue pair.
    #[track_caller]
    pub fn send(&mut self, message: Message<'_>) {
        self.send_on(self.queue_pair, message);
    }

    /// Posts a message to a queue pair.
    #[track_caller]
    pub fn send_on(&mut self, queue_pair: QueuePair, message: Message<'_>) {
        self.function.post_send(queue_pair, message).expect("room for it");
    }

    /// Posts a put to the node's queue pair.
    #[track_caller]
    pub fn put(&mut self, put: Put<'_>) {
        self.function.post_put(self.queue_pair, put).expect("room for it");
    }

    /// Posts a get to the node's queue pair.
    #[track_caller]
    pub fn get(&mut self, get: Get) {
        self.function.post_get(self.queue_pair, get).expect("room for it");
    }

    /// Posts an atomic to the node's queue pair.
    #[track_caller]
    pub fn atomic(&mut self, atomic: Atomic) {
        self.function.post_atomic(self.queue_pair, atomic).expect("room for it");
    }

    /// The state of the node's queue pair.
    pub fn state(&self) -> QueuePairState {
        self.function.query(self.queue_pair).expect("it exists")
    }

    /// Memory of the library, with all rights.
    #[track_caller]
    pub fn region(&mut self, bytes: usize) -> MemoryRegion {
        self.function.allocate_region(bytes, Rights::all()).expect("room for it")
    }

    /// Waits for the next completion, within [`limit`]. Panics, with `story`, if none comes.
    #[track_caller]
    pub fn wait(&mut self, how: Wait, story: impl Display) -> Completion {
        let done = self.function.wait(self.completions, how, limit());
        done.unwrap_or_else(|error| panic!("{story}: {error}\n{:?}", self.counters()))
    }

    /// Waits for the next completion, which must be a success.
    #[track_caller]
    pub fn wait_success(&mut self, how: Wait, story: impl Display) -> Completion {
        let done = self.wait(how, &story);
        assert_eq!(done.status, Status::Success, "{story}: {done:?}");
        done
    }

    /// Memory of both kinds: the library's, and the program's.
    #[track_caller]
    pub fn regions(&mut self, bytes: usize) -> [MemoryRegion; 2] {
        let brought = self.function.register(vec![0; bytes], Rights::all());
        [self.region(bytes), brought.expect("room for it")]
    }

    /// The next completion, after one poll at most.
    pub fn poll(&mut self) -> Option<Completion> {
        self.function.poll(self.completions).expect("the queue exists")
    }

    /// Makes progress until every send of a queue pair has finished. A function that is no longer
    /// driven must not have any left.
    #[track_caller]
    pub fn flush(&mut self, queue_pair: QueuePair) {
        let mut patience = Patience::new();
        while self.function.query(queue_pair).expect("it exists").posted_sends > 0 {
            self.function.progress().expect("progress");
            patience.spend(|| format!("sends never finish: {:?}", self.function.query(queue_pair)));
        }
    }

    /// A counter of the function's device as it is now; `None` if the device has none of this name.
    pub fn device_counter(&self, name: &str) -> Option<u64> {
        let counters = self.function.counters();
        counters.device.iter().find(|row| row.0 == name).map(|row| row.1)
    }

    /// The function's counters, after a check that they agree with each other.
    #[track_caller]
    pub fn counters(&self) -> Counters {
        let counters = self.function.counters();
        assert_laws(&self.function, &counters);
        counters
    }
}

/// Whether a descriptor was accepted. Panics if the reason for a refusal is not a full queue.
#[track_caller]
pub fn accepted<D>(result: Result<(), Refused<D>>) -> bool {
    match result {
        Ok(()) => true,
        Err(Refused { error: Error::QueueFull { .. }, .. }) => false,
        Err(refused) => panic!("{}", refused.error),
    }
}

/// Asserts that these are the completions of the contexts from 0 on, all with this status and with
/// their buffers.
#[track_caller]
pub fn assert_all_end(completions: impl Iterator<Item = Completion>, status: Status) {
    let mut contexts = Vec::new();
    for done in completions {
        assert_eq!(done.status, status, "{done:?}");
        assert!(done.buffer.is_some(), "{done:?}");
        contexts.push(done.context);
    }
    contexts.sort();
    assert_eq!(contexts, (0..contexts.len() as u64).collect::<Vec<_>>());
}

/// Asserts that a call fails with an error of this pattern, which says something. The error of a
/// refused descriptor is the reason of the refusal.
macro_rules! refuses {
    ($result:expr, $error:pat) => {{
        let error = bellwire::Error::from($result.map(drop).expect_err("it must be refused"));
        assert!(matches!(error, $error), "{error:?}");
        assert!(!error.to_string().is_empty());
    }};
}
pub(crate) use refuses;

/// Asserts the laws that the documentation of the counters states, for every queue pair and at any
/// time.
#[track_caller]
pub fn assert_laws(function: &Function, counters: &Counters) {
    for queue_pair in function.queue_pairs() {
        let state = function.query(queue_pair).expect("it was just listed");
        let count = state.counters;
        let story = || format!("queue pair {}: {state:#?}", queue_pair.number);
        let [sends, receives] = [state.posted_sends as u64, state.posted_receives as u64];
        assert_eq!(count.sends_posted, count.sends_completed + sends, "sends of {}", story());
        assert_eq!(
            count.receives_posted,
            count.receives_completed + receives,
            "receives of {}",
            story()
        );
        let accounted = count.messages_received
            + count.messages_discarded
            + count.messages_unfinished
            + state.backlog_messages as u64;
        assert_eq!(count.messages_arrived, accounted, "messages of {}", story());
        let listed = counters.queue_pairs.iter().find(|(number, _)| *number == queue_pair.number);
        assert_eq!(listed.map(|(_, count)| count), Some(&count), "the snapshot of {}", story());
    }
    let mut sum = bellwire::QueuePairCounters::default();
    counters.queue_pairs.iter().for_each(|(_, count)| sum.add(count));
    for ((name, total), (_, part)) in counters.total.rows().zip(sum.rows()) {
        assert!(total >= part, "{name}: {total} in all, but {part} in the queue pairs that exist");
    }
}

/// The nodes of a stage. The counters of a node that leaves, or is left at the end, must agree with
/// each other and with the way that the fixture tests.
pub struct Nodes<'f> {
    fixture: &'f dyn Fixture,
    nodes: Vec<Node>,
}

impl Nodes<'_> {
    /// A further node.
    pub fn push(&mut self, node: Node) {
        self.nodes.push(node);
    }

    /// Takes node `who` away.
    #[track_caller]
    pub fn remove(&mut self, who: usize) -> Node {
        self.ask(&self.nodes[who]);
        self.nodes.remove(who)
    }

    /// Takes all nodes away and asks none: a forked child may not.
    pub fn leave(&mut self) -> Vec<Node> {
        std::mem::take(&mut self.nodes)
    }

    #[track_caller]
    fn ask(&self, node: &Node) {
        node.counters();
        self.fixture.assert_way(node);
    }
}

impl Deref for Nodes<'_> {
    type Target = [Node];

    fn deref(&self) -> &[Node] {
        &self.nodes
    }
}

impl DerefMut for Nodes<'_> {
    fn deref_mut(&mut self) -> &mut [Node] {
        &mut self.nodes
    }
}

impl Drop for Nodes<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.nodes.iter().for_each(|node| self.ask(node));
        }
    }
}

/// Some nodes of one fixture, driven by one thread.
pub struct Stage<'f> {
    /// The source of the nodes.
    pub fixture: &'f dyn Fixture,
    /// The nodes.
    pub nodes: Nodes<'f>,
    /// The current case, for the text of a failure.
    pub case: String,
}

impl<'f> Stage<'f> {
    /// Two nodes, [`A`] and [`B`].
    pub fn pair(fixture: &'f dyn Fixture) -> Stage<'f> {
        Self::of(fixture, 2)
    }

    /// `count` nodes.
    pub fn of(fixture: &'f dyn Fixture, count: usize) -> Stage<'f> {
        Self::with(fixture, (0..count).map(|_| Node::open(fixture)))
    }

    /// These nodes.
    pub fn with(fixture: &'f dyn Fixture, nodes: impl IntoIterator<Item = Node>) -> Stage<'f> {
        let nodes = Nodes { fixture, nodes: nodes.into_iter().collect() };
        Stage { fixture, nodes, case: String::new() }
    }

    /// Two nodes whose queue pairs are connected to each other.
    pub fn connected(fixture: &'f dyn Fixture) -> Stage<'f> {
        let mut stage = Self::pair(fixture);
        let [ours, theirs] = [stage.nodes[A].queue_pair, stage.nodes[B].queue_pair];
        stage.connect((A, ours), (B, theirs));
        stage
    }

    /// Connects two queue pairs.
    #[track_caller]
    pub fn connect(&mut self, from: (usize, QueuePair), to: (usize, QueuePair)) {
        const NUMBER: u32 = 7_000;
        let node = self.nodes[to.0].device.node();
        let listener = self.nodes[to.0].function.listen(NUMBER).expect("a free number");
        let function = self.nodes[to.0].function.address().function;
        let there = Address::new(node, function, NUMBER);
        let asking = &mut self.nodes[from.0].function;
        asking.start_connect(from.1, there, b"", limit()).expect("it may ask");
        let request = self.request(to.0, listener);
        self.nodes[to.0].function.accept(request, to.1, b"").expect("it may accept");
        self.until("the answer", |stage| {
            match stage.nodes[from.0].function.poll_connection(from.1).expect("it is accepted") {
                bellwire::ConnectionProgress::Waiting => None,
                bellwire::ConnectionProgress::Connected(_) => Some(()),
            }
        });
        self.nodes[to.0].function.stop_listening(listener).expect("it listened");
    }

    /// Lets every node make progress once. Returns how much they did together.
    pub fn turn(&mut self) -> usize {
        let progress = |node: &mut Node| node.function.progress().expect("progress");
        self.nodes.iter_mut().map(progress).sum()
    }

    /// Lets every node make progress `count` times.
    pub fn turns(&mut self, count: usize) {
        (0..count).for_each(|_| _ = self.turn());
    }

    /// The next request at a listener of a node.
    #[track_caller]
    pub fn request(&mut self, who: usize, listener: Listener) -> ConnectionRequest {
        self.until("a connection request", |stage| {
            stage.nodes[who].function.poll_request(listener).expect("it listens")
        })
    }

    /// Lets all nodes make progress until `answer` returns a value. Panics, with a story, if it
    /// never does.
    #[track_caller]
    pub fn until<T>(
        &mut self,
        what: &str,
        mut answer: impl FnMut(&mut Stage<'f>) -> Option<T>,
    ) -> T {
        let mut patience = Patience::new();
        loop {
            if let Some(found) = answer(self) {
                return found;
            }
            self.turn();
            patience.spend(|| format!("waiting for {what}; {}", self.story()));
        }
    }

    /// The next completion of a node.
    #[track_caller]
    pub fn next(&mut self, who: usize) -> Completion {
        self.next_of(who, self.nodes[who].completions)
    }

    /// The next completion of one of a node's queues.
    #[track_caller]
    pub fn next_of(&mut self, who: usize, queue: CompletionQueue) -> Completion {
        let what = format!("a completion at node {who}");
        self.until(&what, |stage| stage.nodes[who].function.poll(queue).expect("the queue exists"))
    }

    /// The next completion of a node, which must be a success.
    #[track_caller]
    pub fn success(&mut self, who: usize) -> Completion {
        let done = self.next(who);
        assert_eq!(done.status, Status::Success, "{done:?}; {}", self.story());
        done
    }

    /// Sends a message that comes after all that has left one node for another. Waits until both
    /// know that it came. What has left before has come by then. Sends that wait for room in
    /// another queue pair have not left.
    #[track_caller]
    pub fn fence(&mut self, from: usize, to: usize) {
        let ends = [from, to].map(|who| {
            let function = &mut self.nodes[who].function;
            let queue = function.create_completion_queue(2).expect("a queue");
            let options = QueuePairOptions::new(queue);
            (who, queue, function.create_queue_pair(&options).expect("a queue pair"))
        });
        let [(_, _, sender), (_, _, receiver)] = ends;
        let there = self.nodes[to].address_of(receiver);
        self.nodes[to].receive_on(receiver, 8, 0);
        self.nodes[from].send_on(sender, Message::inline(b"fence").to(there));
        for (who, queue, pair) in ends.into_iter().rev() {
            let done = self.next_of(who, queue);
            assert_eq!(done.status, Status::Success, "{done:?}; {}", self.story());
            let function = &mut self.nodes[who].function;
            function.destroy_queue_pair(pair).expect("it exists");
            function.destroy_completion_queue(queue).expect("nothing uses it");
        }
    }

    /// The state of the nodes, for the text of a failure.
    pub fn story(&self) -> String {
        let mut story = format!("case: {}", self.case);
        // A few of hundreds of nodes suffice.
        for (number, node) in self.nodes.iter().enumerate().take(3) {
            let rows: Vec<_> = node.function.counters().rows().filter(|(_, n)| *n != 0).collect();
            let state = node.function.query(node.queue_pair);
            story += &format!("\n  node {number}: {rows:?}\n    {state:?}");
        }
        story
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::Loopback;
    use crate::loopback::FabricOptions;
    use bellwire::Result;

    /// Every node has gone another way.
    struct OtherWay(Loopback);

    impl Fixture for OtherWay {
        fn open(&self, options: &DeviceOptions) -> Result<Device> {
            self.0.open(options)
        }

        fn assert_way(&self, _: &Node) {
            panic!("another way");
        }
    }

    /// A node that leaves a stage before its end is asked, too.
    #[test]
    #[should_panic(expected = "another way")]
    fn who_leaves_is_asked() {
        let fixture = OtherWay(Loopback::new(FabricOptions::default()));
        let mut stage = Stage::pair(&fixture);
        let left = stage.nodes.remove(B);
        // Nobody is asked at the end.
        drop(stage.nodes.leave());
        drop((stage, left));
    }

    /// What was sent before a fence has come when it has, and what comes later is seen.
    #[test]
    fn a_fence_is_the_last() {
        let fixture = Loopback::new(FabricOptions::default());
        let mut stage = Stage::pair(&fixture);
        let to = stage.nodes[B].address();
        for number in 0..50 {
            stage.nodes[B].receive(8, number);
            stage.nodes[A].send(Message::inline(b"earlier").to(to).unsignaled());
        }
        stage.fence(A, B);
        (0..50).for_each(|_| drop(stage.nodes[B].poll().expect("it was sent before")));
        assert!(stage.nodes[B].poll().is_none());
    }
}
