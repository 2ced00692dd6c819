//! One end of a pair: a function with two connected queue pairs, one for orders and one for
//! measured data.

use super::arena::Arena;
use crate::host::asked;
use crate::talk::{Queue, is_timeout, refusal};
use anyhow::{Result, bail, ensure};
use bellwire::{Address, ConnectionState, Device, Error, Function, Listener, Wait};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::{Duration, Instant};

/// Longest message between leader and follower, in bytes.
pub const CONTROL_BYTES: usize = 1024;

/// Longest wait for any answer of the other side.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Time between two polls of the same state.
pub const GLANCE: Duration = Duration::from_millis(50);

/// The number that followers listen on.
const NUMBER: u32 = 1;

/// The leader's greeting; the last word is the version of the orders.
const ORDERS: &[u8] = b"bellwire perf orders 1";
const DATA: &[u8] = b"bellwire perf data 1";

pub struct End {
    pub function: Function,
    orders: Queue,
    pub data: Queue,
    /// How to wait during a measurement.
    pub wait: Wait,
    /// The memory for the data; `None` until both sides know its size.
    pub arena: Option<Arena>,
}

impl End {
    /// Opens function `number` and makes its queue pairs.
    pub fn open(device: &Device, number: u8) -> Result<End> {
        let mut function = device.open_function(number)?;
        let orders = Queue::create(&mut function, 16)?;
        let data = Queue::create(&mut function, 256)?;
        for _ in 0..4 {
            orders.post_receive(&mut function, CONTROL_BYTES)?;
        }
        Ok(End { function, orders, data, wait: Wait::Block, arena: None })
    }

    /// Connects to the follower that listens on `function` of `node`.
    pub fn connect(&mut self, node: u32, function: u8) -> Result<()> {
        let to = Address::new(node, function, NUMBER);
        let started = Instant::now();
        for (pair, words) in [(self.orders.pair, ORDERS), (self.data.pair, DATA)] {
            loop {
                match self.function.connect(pair, to, words, PATIENCE) {
                    Ok(_) => break,
                    // The follower waits for another leader's second connection, which arrives or
                    // times out soon.
                    Err(Error::Rejected { reason, .. })
                        if reason == refusal(DATA) && started.elapsed() < PATIENCE =>
                    {
                        std::thread::sleep(GLANCE);
                    }
                    Err(error) => {
                        let name = format!("node {node}");
                        return Err(asked(error, &name, "`bellwire perf --listen`"));
                    }
                }
            }
        }
        Ok(())
    }

    /// Waits for a leader without a time limit, and accepts both of its connections.
    pub fn accept(&mut self) -> Result<()> {
        let listener = self.function.listen(NUMBER)?;
        let accepted = self.accept_both(listener);
        self.function.stop_listening(listener)?;
        accepted
    }

    fn accept_both(&mut self, listener: Listener) -> Result<()> {
        self.orders.accept(&mut self.function, listener, ORDERS, None)?;
        let started = Instant::now();
        loop {
            match self.data.accept(&mut self.function, listener, DATA, Some(GLANCE)) {
                Err(error) if is_timeout(&error) && started.elapsed() < PATIENCE => {
                    let state = self.function.query(self.orders.pair)?.connection;
                    let there = matches!(state, ConnectionState::Connected { .. });
                    ensure!(there, "the leader is gone before it was all there");
                }
                ended => return ended,
            }
        }
    }

    /// The other end's queue pair for data.
    pub fn peer(&self) -> Result<Address> {
        match self.function.query(self.data.pair)?.connection {
            ConnectionState::Connected { peer } => Ok(peer),
            _ => bail!("the other side is gone"),
        }
    }

    /// Sends an order or an answer.
    pub fn say(&mut self, message: &impl Serialize) -> Result<()> {
        let text = text_of(message)?;
        let send = bellwire::Message::inline(&text).unsignaled();
        let posted = self.function.post_send(self.orders.pair, send);
        Ok(posted.map_err(Error::from)?)
    }

    /// Sends the last order, and waits until the other side has it: a message in flight when we end
    /// may be lost.
    pub fn say_last(&mut self, message: &impl Serialize) -> Result<()> {
        let send = bellwire::Message::buffer(text_of(message)?);
        self.function.post_send(self.orders.pair, send).map_err(Error::from)?;
        // The other side may have received it and gone, which is fine.
        self.function.wait(self.orders.sends, Wait::Adaptive, PATIENCE)?;
        Ok(())
    }

    /// The next order or answer. `None` as patience waits without a limit.
    pub fn hear<T: DeserializeOwned>(
        &mut self,
        how: Wait,
        patience: Option<Duration>,
    ) -> Result<T> {
        self.orders.hear(&mut self.function, CONTROL_BYTES, how, patience)
    }
}

fn text_of(message: &impl Serialize) -> Result<Vec<u8>> {
    let text = serde_json::to_vec(message)?;
    ensure!(text.len() <= CONTROL_BYTES, "a control message of {} bytes", text.len());
    Ok(text)
}
