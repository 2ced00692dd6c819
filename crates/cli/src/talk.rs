//! Conversations between two processes of this program over a connected queue pair.

use anyhow::{Context, Result, bail};
use bellwire::{
    Completion, CompletionQueue, Error, Function, Listener, QueuePair, QueuePairOptions, Wait,
};
use serde::de::DeserializeOwned;
use std::time::Duration;

/// A queue pair with completion queues of its own.
#[derive(Clone, Copy)]
pub struct Queue {
    pub pair: QueuePair,
    pub sends: CompletionQueue,
    pub receives: CompletionQueue,
}

impl Queue {
    /// Makes a queue pair for `depth` sends and receives.
    pub fn create(function: &mut Function, depth: usize) -> Result<Queue> {
        let sends = function.create_completion_queue(2 * depth)?;
        let receives = function.create_completion_queue(2 * depth)?;
        let options = QueuePairOptions::new(sends)
            .receive_completions(receives)
            .send_depth(depth)
            .receive_depth(depth);
        let pair = function.create_queue_pair(&options)?;
        Ok(Queue { pair, sends, receives })
    }

    /// Accepts the next connection whose greeting is `expected`. `None` as patience waits without a
    /// limit.
    pub fn accept(
        &self,
        function: &mut Function,
        listener: Listener,
        expected: &[u8],
        patience: Option<Duration>,
    ) -> Result<()> {
        loop {
            let request = match function.wait_request(listener, Wait::Block, one_wait(patience)) {
                Err(Error::TimedOut { .. }) if patience.is_none() => continue,
                request => request.context("the other side did not connect")?,
            };
            if request.private_data == expected {
                return Ok(function.accept(request, self.pair, &[])?);
            }
            function.reject(request, refusal(expected).as_bytes())?;
        }
    }

    /// Posts a receive for a message of up to `bytes`.
    pub fn post_receive(&self, function: &mut Function, bytes: usize) -> Result<()> {
        Ok(post_receive(function, self.pair, bytes)?)
    }

    /// The next message, as JSON; posts another receive of `bytes`. `None` as patience waits
    /// without a limit.
    pub fn hear<T: DeserializeOwned>(
        &self,
        function: &mut Function,
        bytes: usize,
        how: Wait,
        patience: Option<Duration>,
    ) -> Result<T> {
        let completion = loop {
            match function.wait(self.receives, how, one_wait(patience)) {
                Err(Error::TimedOut { .. }) if patience.is_none() => continue,
                completion => break successful(completion?)?,
            }
        };
        let length = completion.length;
        let buffer = completion.buffer.context("a receive gives its buffer back")?;
        let message = serde_json::from_slice(&buffer.into_bytes(length));
        self.post_receive(function, bytes)?;
        message.context("the other side said nonsense")
    }
}

/// Posts a receive for a message of up to `bytes` to a connected queue pair.
pub fn post_receive(
    function: &mut Function,
    pair: QueuePair,
    bytes: usize,
) -> bellwire::Result<()> {
    match function.post_receive(pair, vec![0; bytes], 0).map_err(Error::from) {
        // The peer may have left after its last message; otherwise the next wait reports that it
        // is gone.
        Ok(()) | Err(Error::WrongState { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Posts a message, inside the descriptor if it is short.
pub fn post_text(function: &mut Function, pair: QueuePair, text: Vec<u8>) -> bellwire::Result<()> {
    let send = if text.len() <= function.limits().eager_bytes {
        bellwire::Message::inline(&text)
    } else {
        bellwire::Message::buffer(text)
    };
    function.post_send(pair, send).map_err(Error::from)
}

/// The completion if it is a success, otherwise its status as an error.
#[inline]
pub fn successful(completion: Completion) -> Result<Completion> {
    if completion.status.is_success() {
        return Ok(completion);
    }
    let Completion { operation, status, length, peer, .. } = completion;
    bail!("{operation:?} with {peer} failed after {length} bytes: {status}")
}

/// The refusal for a wrong greeting.
pub fn refusal(expected: &[u8]) -> String {
    format!("this is {}", String::from_utf8_lossy(expected))
}

pub fn is_timeout(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(Error::TimedOut { .. }))
}

/// The length of one wait, for a patience that may have no limit.
fn one_wait(patience: Option<Duration>) -> Duration {
    patience.unwrap_or(Duration::from_secs(3600))
}
