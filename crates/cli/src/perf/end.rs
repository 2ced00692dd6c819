//! One end of a pair: a function with two connected queue pairs, one for orders and one for the data that is measured.

use super::data::Arena;
use crate::host::asked;
use crate::talk::{Queue, is_timeout, refusal};
use anyhow::{Result, bail, ensure};
use bellwire::{Address, ConnectionState, Device, Error, Function, Listener, Wait};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::{Duration, Instant};

/// Longest message between leader and follower, in bytes.
pub const CONTROL_BYTES: usize = 1024;

/// How long the other side may take for anything before it is given up.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Time from one look at something to the next.
pub const GLANCE: Duration = Duration::from_millis(50);

/// The number that followers listen on.
const NUMBER: u32 = 1;

/// What the leader calls itself when it connects; the last word is the version of what is said.
const ORDERS: &[u8] = b"bellwire perf orders 1";
const DATA: &[u8] = b"bellwire perf data 1";

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
                    // It waits for the second connection of another leader, which it will have or give up soon.
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

    /// Waits for a leader, however long that takes, and accepts both of its connections.
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

    /// The queue pair of the other end that belongs to our queue pair for data.
    pub fn peer(&self) -> Result<Address> {
        match self.function.query(self.data.pair)?.connection {
            ConnectionState::Connected { peer } => Ok(peer),
            _ => bail!("the other side is gone"),
        }
    }

    /// Sends an order or an answer.
    pub fn say(&mut self, message: &impl Serialize) -> Result<()> {
        let text = text_of(message)?;
        let send = bellwire::Send::immediate(&text).unsignaled();
        let posted = self.function.post_send(self.orders.pair, send);
        Ok(posted.map_err(Error::from)?)
    }

    /// Sends the last order, and waits until the other side has it: what is on its way when we end may be lost.
    pub fn say_last(&mut self, message: &impl Serialize) -> Result<()> {
        let send = bellwire::Send::buffer(text_of(message)?);
        self.function.post_send(self.orders.pair, send).map_err(Error::from)?;
        // The other side may have heard it and gone, which is as good.
        self.function.wait(self.orders.sends, Wait::Adaptive, PATIENCE)?;
        Ok(())
    }

    /// The next order or answer. `None` as patience waits for ever.
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
