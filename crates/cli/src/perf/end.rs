//! One end of a pair: a function with two connected queue pairs, one for orders and one for the data that is measured.

use super::data::Arena;
use anyhow::{Context, Result, bail, ensure};
use bellwire::{
    Address, Completion, CompletionQueue, ConnectionState, Device, Error, Function, Listener,
    QueuePair, QueuePairOptions, Wait,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// Longest message between leader and follower, in bytes.
pub const CONTROL_BYTES: usize = 1024;

/// How long the other side may take for anything before it is given up.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The number that followers listen on.
const NUMBER: u32 = 1;

/// What the leader calls itself when it connects; the last word is the version of what is said.
const ORDERS: &[u8] = b"bellwire perf orders 1";
const DATA: &[u8] = b"bellwire perf data 1";

/// A queue pair with completion queues of its own.
#[derive(Clone, Copy)]
pub struct Queue {
    pub pair: QueuePair,
    pub sends: CompletionQueue,
    pub receives: CompletionQueue,
}

impl Queue {
    fn create(function: &mut Function, depth: usize) -> Result<Queue> {
        let sends = function.create_completion_queue(2 * depth)?;
        let receives = function.create_completion_queue(2 * depth)?;
        let options = QueuePairOptions::new(sends)
            .receive_completions(receives)
            .send_depth(depth)
            .receive_depth(depth);
        let pair = function.create_queue_pair(&options)?;
        Ok(Queue { pair, sends, receives })
    }
}

/// One end of a pair.
pub struct End {
    pub function: Function,
    orders: Queue,
    pub data: Queue,
    /// How to wait while something is measured.
    pub wait: Wait,
    /// The memory for the data; there is none until both sides know how much.
    pub arena: Option<Arena>,
}

impl End {
    /// Opens function `number` and makes its queue pairs.
    pub fn open(device: &Device, number: u8) -> Result<End> {
        let mut function = device.open_function(number)?;
        let orders = Queue::create(&mut function, 16)?;
        let data = Queue::create(&mut function, 256)?;
        let mut end = End { function, orders, data, wait: Wait::Block, arena: None };
        for _ in 0..4 {
            end.post_order_receive()?;
        }
        Ok(end)
    }

    /// Connects to the follower that listens on `function` of `node`.
    pub fn connect(&mut self, node: u32, function: u8) -> Result<()> {
        let to = Address::new(node, function, NUMBER);
        let why = || format!("is `bellwire perf --listen` running as node {node}?");
        self.function.connect(self.orders.pair, to, ORDERS, PATIENCE).with_context(why)?;
        self.function.connect(self.data.pair, to, DATA, PATIENCE).with_context(why)?;
        Ok(())
    }

    /// Waits for a leader, however long that takes, and accepts both of its connections.
    pub fn accept(&mut self) -> Result<()> {
        let listener = self.function.listen(NUMBER)?;
        self.accept_as(listener, ORDERS, self.orders.pair, None)?;
        self.accept_as(listener, DATA, self.data.pair, Some(PATIENCE))?;
        self.function.stop_listening(listener)?;
        Ok(())
    }

    fn accept_as(
        &mut self,
        listener: Listener,
        expected: &[u8],
        pair: QueuePair,
        patience: Option<Duration>,
    ) -> Result<()> {
        loop {
            let one_wait = patience.unwrap_or(Duration::from_secs(3600));
            let request = match self.function.wait_request(listener, Wait::Block, one_wait) {
                Err(Error::TimedOut { .. }) if patience.is_none() => continue,
                request => request.context("the leader did not connect")?,
            };
            if request.private_data == expected {
                return Ok(self.function.accept(request, pair, &[])?);
            }
            let reason = format!("this is {}", String::from_utf8_lossy(expected));
            self.function.reject(request, reason.as_bytes())?;
        }
    }

    /// The queue pair of the other end that belongs to our queue pair for data.
    pub fn peer(&self) -> Result<Address> {
        match self.function.query(self.data.pair)?.connection {
            ConnectionState::Connected { peer } => Ok(peer),
            _ => bail!("the other side is gone"),
        }
    }

    /// Sends an order or an answer.
    pub fn say(&mut self, message: &impl Serialize) -> Result<()> {
        let text = serde_json::to_vec(message)?;
        ensure!(text.len() <= CONTROL_BYTES, "a control message of {} bytes", text.len());
        let send = bellwire::Send::immediate(&text).unsignaled();
        let posted = self.function.post_send(self.orders.pair, send);
        Ok(posted.map_err(Error::from)?)
    }

    /// The next order or answer. `None` as patience waits for ever.
    pub fn hear<T: DeserializeOwned>(
        &mut self,
        how: Wait,
        patience: Option<Duration>,
    ) -> Result<T> {
        let one_wait = patience.unwrap_or(Duration::from_secs(3600));
        let completion = loop {
            match self.function.wait(self.orders.receives, how, one_wait) {
                Err(Error::TimedOut { .. }) if patience.is_none() => continue,
                completion => break successful(completion?)?,
            }
        };
        let bytes = completion.length;
        let buffer = completion.buffer.context("a receive gives its buffer back")?;
        let text = buffer.into_bytes(bytes);
        let message = serde_json::from_slice(&text).context("the other side said nonsense")?;
        match self.post_order_receive() {
            // These were its last words, perhaps; if not, the next call tells that it is gone.
            Ok(()) | Err(Error::WrongState { .. }) => Ok(message),
            Err(error) => Err(error.into()),
        }
    }

    fn post_order_receive(&mut self) -> bellwire::Result<()> {
        self.function.post_receive(self.orders.pair, vec![0; CONTROL_BYTES], 0)?;
        Ok(())
    }
}

/// The completion if it is one of success, otherwise an error with what it says.
#[inline]
pub fn successful(completion: Completion) -> Result<Completion> {
    if completion.status.is_success() {
        return Ok(completion);
    }
    let Completion { operation, status, length, peer, .. } = completion;
    bail!("{operation:?} with {peer} failed after {length} bytes: {status}")
}
