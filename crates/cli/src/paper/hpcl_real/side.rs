//! The paper's two programs, over a Bellwire device and over TCP. Both sides run the same code; the
//! leading side measures.

use anyhow::{Context, Result, ensure};
use bellwire::{
    Address, Buffer, Completion, CompletionQueue, Device, Error, Function, Message, Operation,
    QueuePair, QueuePairOptions, Wait,
};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A program of the paper (H-28).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Program {
    PingPong,
    /// Messages one way, and an answer after the last one.
    Burst,
}

/// Messages in flight in a burst.
const WINDOW: usize = 256;
pub const LONGEST_BYTES: usize = 2048;
/// Longest wait for the other side.
pub const PATIENCE: Duration = Duration::from_secs(10);
const ANSWER_BYTES: usize = 8;

/// One side's end of a Bellwire device.
pub struct Bellwire {
    leads: bool,
    function: Function,
    completions: CompletionQueue,
    pair: QueuePair,
    peer: Address,
    /// Receive buffers that are not posted.
    free: Vec<Buffer>,
    message: Vec<u8>,
}

impl Bellwire {
    /// Opens the device; `meet` gives our address to the other side and returns its.
    pub fn open(
        device: &str,
        leads: bool,
        meet: impl FnOnce(Address) -> Result<Address>,
    ) -> Result<(Bellwire, String)> {
        let device = Device::open(device)?;
        let mut function = device.open_function(0)?;
        let completions = function.create_completion_queue(4 * WINDOW)?;
        let options = QueuePairOptions::new(completions).send_depth(WINDOW).receive_depth(WINDOW);
        let pair = function.create_queue_pair(&options)?;
        let peer = meet(function.query(pair)?.address)?;
        let free = (0..WINDOW).map(|_| vec![0; LONGEST_BYTES].into()).collect();
        let message = vec![0; LONGEST_BYTES];
        let side = Bellwire { leads, function, completions, pair, peer, free, message };
        Ok((side, device.describe()))
    }

    pub fn run(&mut self, program: Program, how: Wait, bytes: usize, count: u64) -> Result<()> {
        match program {
            Program::PingPong => self.ping_pong(how, bytes, count),
            Program::Burst => self.burst(how, bytes, count),
        }
    }

    /// Makes sure that the last sends arrive and are acknowledged, while this side is otherwise
    /// idle.
    pub fn settle(&mut self) -> Result<()> {
        self.function.progress()?;
        Ok(())
    }

    fn ping_pong(&mut self, how: Wait, bytes: usize, count: u64) -> Result<()> {
        if !self.leads {
            self.post()?;
        }
        for number in 0..count {
            if self.leads {
                self.send(bytes, number, false)?;
                self.post()?;
                self.receive(how, bytes, number)?;
            } else {
                self.receive(how, bytes, number)?;
                self.send(bytes, number, false)?;
                if number + 1 < count {
                    self.post()?;
                }
            }
        }
        Ok(())
    }

    fn burst(&mut self, how: Wait, bytes: usize, count: u64) -> Result<()> {
        let window = WINDOW as u64;
        if !self.leads {
            for _ in 0..window.min(count) {
                self.post()?;
            }
            for number in 0..count {
                self.receive(how, bytes, number)?;
                if number + window < count {
                    self.post()?;
                }
            }
            return self.send(ANSWER_BYTES, count, false);
        }
        self.post()?;
        let mut in_flight = 0;
        for number in 0..count {
            if in_flight == window {
                let done = self.next(how)?;
                ensure!(done.operation == Operation::Send, "a {:?} was not due", done.operation);
                in_flight -= 1;
            }
            self.send(bytes, number, true)?;
            in_flight += 1;
        }
        // The answer may come before the last sends complete here.
        for _ in 0..=in_flight {
            let done = self.next(how)?;
            if done.operation == Operation::Receive {
                self.take(ANSWER_BYTES, count, done)?;
            }
        }
        Ok(())
    }

    fn next(&mut self, how: Wait) -> Result<Completion> {
        let done = self.function.wait(self.completions, how, PATIENCE)?;
        ensure!(done.status.is_success(), "{:?} ended as {:?}", done.operation, done.status);
        Ok(done)
    }

    fn post(&mut self) -> Result<()> {
        let buffer = self.free.pop().context("all receive buffers are posted")?;
        Ok(self.function.post_receive(self.pair, buffer, 0).map_err(Error::from)?)
    }

    fn send(&mut self, bytes: usize, number: u64, signaled: bool) -> Result<()> {
        mark(&mut self.message[..bytes], number);
        let send = Message::inline(&self.message[..bytes]).to(self.peer);
        let send = if signaled { send } else { send.unsignaled() };
        Ok(self.function.post_send(self.pair, send).map_err(Error::from)?)
    }

    fn receive(&mut self, how: Wait, bytes: usize, due: u64) -> Result<()> {
        let done = self.next(how)?;
        self.take(bytes, due, done)
    }

    fn take(&mut self, bytes: usize, due: u64, done: Completion) -> Result<()> {
        ensure!(done.operation == Operation::Receive, "a {:?} was not due", done.operation);
        ensure!(done.length == bytes, "{} bytes came in place of {bytes}", done.length);
        let buffer = done.buffer.context("a receive without its buffer")?;
        check(&buffer.as_slice().context("receives are vectors")?[..bytes], due)?;
        self.free.push(buffer);
        Ok(())
    }
}

/// One side's end of a blocking TCP connection, like netperf's.
pub struct Tcp {
    leads: bool,
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Tcp {
    pub fn new(stream: TcpStream, leads: bool) -> Result<Tcp> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Tcp { leads, stream, buffer: vec![0; 64 << 10] })
    }

    pub fn run(&mut self, program: Program, bytes: usize, count: u64) -> Result<()> {
        // A burst shares segments, as in the paper's figure. A ping-pong has only one message to
        // send, so nothing to share.
        self.stream.set_nodelay(program == Program::PingPong)?;
        match program {
            Program::PingPong => (0..count).try_for_each(|number| match self.leads {
                true => self.send(bytes, number).and_then(|()| self.receive(bytes, number, 1)),
                false => self.receive(bytes, number, 1).and_then(|()| self.send(bytes, number)),
            }),
            Program::Burst if self.leads => {
                (0..count).try_for_each(|number| self.send(bytes, number))?;
                // Bytes held back to share a segment go now.
                self.stream.set_nodelay(true)?;
                self.receive(ANSWER_BYTES, count, 1)
            }
            Program::Burst => {
                self.receive(bytes, 0, count)?;
                self.stream.set_nodelay(true)?;
                self.send(ANSWER_BYTES, count)
            }
        }
    }

    fn send(&mut self, bytes: usize, number: u64) -> Result<()> {
        mark(&mut self.buffer[..bytes], number);
        self.stream.write_all(&self.buffer[..bytes]).context("sending by TCP")
    }

    /// Takes `count` messages, with as few calls as their arrival allows.
    fn receive(&mut self, bytes: usize, first: u64, count: u64) -> Result<()> {
        let (mut number, mut filled) = (first, 0);
        while number < first + count {
            let left = (first + count - number) as usize;
            let room = self.buffer.len().min(left.saturating_mul(bytes));
            let came = self.stream.read(&mut self.buffer[filled..room]);
            let came = came.context("receiving by TCP")?;
            ensure!(came > 0, "the other side has closed the connection");
            filled += came;
            let whole = filled / bytes * bytes;
            for message in self.buffer[..whole].chunks_exact(bytes) {
                check(message, number)?;
                number += 1;
            }
            self.buffer.copy_within(whole..filled, 0);
            filled -= whole;
        }
        Ok(())
    }
}

/// Numbers a message at both ends.
fn mark(message: &mut [u8], number: u64) {
    let last = message.len() - 8;
    message[last..].copy_from_slice(&number.to_le_bytes());
    message[..8].copy_from_slice(&number.to_le_bytes());
}

fn check(message: &[u8], due: u64) -> Result<()> {
    let ends = [message.first_chunk(), message.last_chunk()];
    let told = ends.map(|end| end.map(|bytes: &[u8; 8]| u64::from_le_bytes(*bytes)));
    ensure!(told == [Some(due); 2], "message {due} was due, but {told:?} came");
    Ok(())
}
