//! Bellwire's shared-memory device, driven through its public API: two processes, one queue pair
//! each, spinning on their completion queues.

use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use bellwire::{
    Address, Buffer, Completion, CompletionQueue, Device, Error, Function, MemoryRegion, Message,
    Operation, Put, QueuePair, QueuePairOptions, RemoteKey, Rights,
};

use super::copy_straight::{LARGEST_STREAM_BYTES, stamp};
use super::{Contender, Kind, Start};
use crate::op::{BATCH, LARGEST_BYTES, Op, STREAM_WINDOW, Wire};
use crate::worker::{
    InHouse, Outcome, Party, SharedMemory, Side, check_arrived, meet, spin_until, touched,
};

/// Bellwire with memory that it allocated itself; peers reach it without an intermediate copy.
pub const LIBRARY_MEMORY: Contender = Contender {
    name: "bellwire",
    about: "Bellwire shm, memory of the library",
    kind: Kind::Bellwire,
    wires: &[Wire::Memory],
    start: Start::InHouse(InHouse::pair(
        &[
            Op::Latency,
            Op::PutLatency,
            Op::Rate,
            Op::BatchRate,
            Op::Stream,
            Op::PutStream,
            Op::PutRate,
        ],
        |party| Ok(Box::new(Pair::open(party, Memory::Library)?)),
    )),
};

/// Bellwire with the program's own unregistered buffers, as in all peers' streams.
pub const PROGRAM_MEMORY: Contender = Contender {
    name: "bellwire-vec",
    about: "Bellwire shm, unregistered buffers of the program",
    kind: Kind::Bellwire,
    wires: &[Wire::Memory],
    start: Start::InHouse(InHouse::pair(&[Op::Stream], |party| {
        Ok(Box::new(Pair::open(party, Memory::Program)?))
    })),
};

/// Messages of 8 bytes in flight, and receives posted for them: the same as for the other
/// contenders.
pub const RATE_WINDOW: usize = 64;

/// Control words after those of [`meet`]: each party's message to the other, [`TOLD`] words each.
const TELL: usize = 2;
const TOLD: usize = 6;

/// Polls of memory between two calls that drive the library, while a put is awaited. The put needs
/// no help of ours.
const LOOKS: u32 = 256;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Memory {
    Library,
    Program,
}

struct Pair {
    index: usize,
    shared: SharedMemory,
    function: Function,
    completions: CompletionQueue,
    queue_pair: QueuePair,
    peer: Address,
    memory: Memory,
    /// The source of puts, and the buffers of streams.
    region: MemoryRegion,
    /// The peer puts into this.
    window: MemoryRegion,
    peer_window: RemoteKey,
    /// Values put so far: they never repeat, because the window is not cleared between runs.
    puts: u64,
    /// Receive buffers of small messages, and the program's stream buffers, while they are not
    /// posted.
    small: Vec<Buffer>,
    large: Vec<Vec<u8>>,
}

impl Pair {
    fn open(party: &Party, memory: Memory) -> Result<Pair> {
        let device = Device::open(&format!("shm:bench-{}", party.leader_pid))?;
        let mut function = device.open_function(0)?;
        let completions = function.create_completion_queue(4 * RATE_WINDOW)?;
        let queue_pair = function.create_queue_pair(&QueuePairOptions::new(completions))?;
        let region =
            function.allocate_region(LARGEST_BYTES, Rights::REMOTE_READ | Rights::REMOTE_WRITE)?;
        let window = function.allocate_region(LARGEST_BYTES, Rights::REMOTE_WRITE)?;
        for memory in [&region, &window] {
            memory.write(0, &touched(LARGEST_BYTES));
            memory.store_u64(0, 0);
        }
        let address = function.query(queue_pair)?.address;
        let key = window.remote_key();
        tell(party, address, key);
        let (peer, peer_window) = hear(party)?;
        let large = match memory {
            Memory::Library => Vec::new(),
            Memory::Program => (0..STREAM_WINDOW).map(|_| touched(LARGEST_STREAM_BYTES)).collect(),
        };
        let mut pair = Pair {
            index: party.index,
            shared: party.shared,
            function,
            completions,
            queue_pair,
            peer,
            memory,
            region,
            window,
            peer_window,
            puts: 0,
            small: (0..RATE_WINDOW).map(|_| vec![0; 8].into()).collect(),
            large,
        };
        // The first message makes the link; no figure contains it.
        pair.ping_pong(1)?;
        Ok(pair)
    }

    fn leads(&self) -> bool {
        self.index == 0
    }

    /// The next completion, which must be a success. An empty poll pauses by itself.
    #[inline(always)]
    fn next(&mut self) -> Result<Completion> {
        loop {
            if let Some(done) = self.function.poll(self.completions)? {
                let Completion { status, operation, .. } = &done;
                ensure!(status.is_success(), "{operation:?} ended as {status:?}");
                return Ok(done);
            }
        }
    }

    #[inline(always)]
    fn post_small_receive(&mut self) -> Result<()> {
        let buffer = self.small.pop().context("all receive buffers are posted")?;
        Ok(self.function.post_receive(self.queue_pair, buffer, 0).map_err(Error::from)?)
    }

    #[inline(always)]
    fn send_small(&mut self, number: u64) -> Result<()> {
        let bytes = number.to_ne_bytes();
        let send = Message::inline(&bytes).to(self.peer).unsignaled();
        Ok(self.function.post_send(self.queue_pair, send).map_err(Error::from)?)
    }

    /// Checks a received small message, and keeps its buffer.
    #[inline(always)]
    fn take_small(&mut self, due: u64, done: Completion) -> Result<()> {
        let buffer = done.buffer.context("a receive without its buffer")?;
        check_arrived(due, stamp(buffer.as_slice().context("small receives are vectors")?))?;
        self.small.push(buffer);
        Ok(())
    }

    /// Receives the expected message; nothing else completes meanwhile.
    #[inline(always)]
    fn receive_small(&mut self, due: u64) -> Result<()> {
        let done = self.next()?;
        self.take_small(due, done)
    }

    /// Each side posts its next receive while its own message is in flight, off the critical path.
    fn ping_pong(&mut self, count: u64) -> Result<()> {
        if !self.leads() {
            self.post_small_receive()?;
        }
        for number in 0..count {
            if self.leads() {
                self.send_small(number)?;
                self.post_small_receive()?;
                self.receive_small(number)?;
            } else {
                self.receive_small(number)?;
                self.send_small(number)?;
                if number + 1 < count {
                    self.post_small_receive()?;
                }
            }
        }
        Ok(())
    }

    /// Small messages one way, each with its completion on both sides.
    fn rate(&mut self, count: u64) -> Result<()> {
        if self.leads() {
            self.post_small_receive()?;
            let mut in_flight = 0;
            for number in 0..count {
                if in_flight == RATE_WINDOW {
                    self.sent()?;
                    in_flight -= 1;
                }
                let bytes = number.to_ne_bytes();
                let send = Message::inline(&bytes).to(self.peer);
                self.function.post_send(self.queue_pair, send).map_err(Error::from)?;
                in_flight += 1;
            }
            // The answer may come before the last sends complete here.
            for _ in 0..=in_flight {
                let done = self.next()?;
                if done.operation == Operation::Receive {
                    self.take_small(count, done)?;
                }
            }
            return Ok(());
        }
        for _ in 0..(RATE_WINDOW as u64).min(count) {
            self.post_small_receive()?;
        }
        for number in 0..count {
            self.receive_small(number)?;
            if number + (RATE_WINDOW as u64) < count {
                self.post_small_receive()?;
            }
        }
        self.send_small(count)
    }

    /// Like [`Pair::rate`], with many messages posted by one call. The receiver's part is the same.
    fn batch_rate(&mut self, count: u64) -> Result<()> {
        if !self.leads() {
            return self.rate(count);
        }
        self.post_small_receive()?;
        let (mut posted, mut in_flight) = (0, 0);
        while posted < count {
            let batch = BATCH.min((count - posted) as usize);
            while in_flight + batch > RATE_WINDOW {
                self.sent()?;
                in_flight -= 1;
            }
            let numbers: [[u8; 8]; BATCH] =
                std::array::from_fn(|place| (posted + place as u64).to_ne_bytes());
            let mut sends = numbers.each_ref().map(|bytes| Message::inline(bytes).to(self.peer));
            let sends = &mut sends[..batch];
            self.function.post_sends(self.queue_pair, sends).map_err(Error::from)?;
            posted += batch as u64;
            in_flight += batch;
        }
        for _ in 0..=in_flight {
            let done = self.next()?;
            if done.operation == Operation::Receive {
                self.take_small(count, done)?;
            }
        }
        Ok(())
    }

    /// Waits for one send to complete.
    fn sent(&mut self) -> Result<()> {
        let done = self.next()?;
        ensure!(done.operation == Operation::Send, "a {:?} was not due", done.operation);
        Ok(())
    }

    /// Large messages one way.
    fn stream(&mut self, bytes: usize, count: u64) -> Result<()> {
        if self.leads() { self.stream_out(bytes, count) } else { self.stream_in(bytes, count) }
    }

    fn stream_out(&mut self, bytes: usize, count: u64) -> Result<()> {
        self.post_small_receive()?;
        let window = STREAM_WINDOW as u64;
        let mut buffers = self.take_buffers(bytes);
        let mut free: Vec<bool> = vec![true; STREAM_WINDOW];
        let (mut posted, mut finished) = (0, 0);
        let mut answered = false;
        while finished < count || !answered {
            let slot = (posted % window) as usize;
            if posted < count && free[slot] {
                let buffer: Buffer = match self.memory {
                    Memory::Library => {
                        self.region.store_u64(slot * bytes, posted);
                        self.region.slice(slot * bytes, bytes).into()
                    }
                    Memory::Program => {
                        let mut buffer = buffers[slot].take().context("a buffer in flight")?;
                        buffer[..8].copy_from_slice(&posted.to_ne_bytes());
                        buffer.into()
                    }
                };
                let send = Message::buffer(buffer).to(self.peer).context(slot as u64);
                self.function.post_send(self.queue_pair, send).map_err(Error::from)?;
                free[slot] = false;
                posted += 1;
                continue;
            }
            let done = self.next()?;
            if done.operation == Operation::Receive {
                self.take_small(count, done)?;
                answered = true;
                continue;
            }
            let slot = done.context as usize;
            if let Some(buffer) = done.buffer.and_then(Buffer::into_vec) {
                buffers[slot] = Some(buffer);
            }
            free[slot] = true;
            finished += 1;
        }
        self.keep_buffers(buffers);
        Ok(())
    }

    fn stream_in(&mut self, bytes: usize, count: u64) -> Result<()> {
        let window = STREAM_WINDOW as u64;
        let mut buffers = self.take_buffers(bytes);
        for number in 0..count.min(window) {
            let buffer = self.stream_target(number, bytes, &mut buffers)?;
            self.function.post_receive(self.queue_pair, buffer, number).map_err(Error::from)?;
        }
        for number in 0..count {
            let done = self.next()?;
            let slot = (number % window) as usize;
            let buffer = done.buffer.context("a receive without its buffer")?;
            match buffer.region() {
                Some(_) => check_arrived(number, self.region.load_u64(buffer.offset()))?,
                None => {
                    let bytes = buffer.into_vec().context("it is a vector")?;
                    check_arrived(number, stamp(&bytes))?;
                    buffers[slot] = Some(bytes);
                }
            }
            if number + window < count {
                let buffer = self.stream_target(number, bytes, &mut buffers)?;
                self.function.post_receive(self.queue_pair, buffer, 0).map_err(Error::from)?;
            }
        }
        self.keep_buffers(buffers);
        self.send_small(count)
    }

    fn stream_target(
        &self,
        number: u64,
        bytes: usize,
        buffers: &mut [Option<Vec<u8>>],
    ) -> Result<Buffer> {
        let slot = number as usize % STREAM_WINDOW;
        match self.memory {
            Memory::Library => Ok(self.region.slice(slot * bytes, bytes).into()),
            Memory::Program => Ok(buffers[slot].take().context("a buffer in flight")?.into()),
        }
    }

    /// The program's buffers, cut to `bytes`: their memory stays the same.
    fn take_buffers(&mut self, bytes: usize) -> Vec<Option<Vec<u8>>> {
        self.large.iter_mut().for_each(|buffer| buffer.resize(bytes, 0x5a));
        std::mem::take(&mut self.large).into_iter().map(Some).collect()
    }

    fn keep_buffers(&mut self, buffers: Vec<Option<Vec<u8>>>) {
        self.large = buffers.into_iter().flatten().collect();
    }

    fn put(&mut self, bytes: usize) -> Result<()> {
        let source = self.region.slice(0, bytes);
        let put = Put::new(source, self.peer_window.slice(0, bytes as u64));
        Ok(self.function.post_put(self.queue_pair, put).map_err(Error::from)?)
    }

    fn await_value(&mut self, value: u64) -> Result<()> {
        let mut looks = 0_u32;
        while self.window.load_u64(0) != value {
            looks += 1;
            if looks.is_multiple_of(LOOKS) {
                self.function.progress()?;
            }
            std::hint::spin_loop();
        }
        Ok(())
    }

    fn put_ping_pong(&mut self, count: u64) -> Result<()> {
        for number in 0..count {
            self.puts += 1;
            if !self.leads() {
                self.await_value(self.puts)?;
            }
            let value = self.puts.to_ne_bytes();
            let put = Put::inline(&value, self.peer_window.slice(0, 8));
            // The last put signals the end: the first one waits for the peer's memory, and no code
            // drives it afterwards.
            let put = if number + 1 == count { put } else { put.unsignaled() };
            self.function.post_put(self.queue_pair, put).map_err(Error::from)?;
            if number + 1 == count {
                let done = self.next()?;
                ensure!(done.operation == Operation::Put, "a {:?} was not due", done.operation);
            }
            if self.leads() {
                self.await_value(self.puts)?;
            }
        }
        Ok(())
    }

    /// Small puts, of which the last one tells when all are complete.
    fn put_rate(&mut self, count: u64) -> Result<()> {
        for number in 0..count {
            let value = number.to_ne_bytes();
            let put = Put::inline(&value, self.peer_window.slice(0, 8));
            let put = if number + 1 == count { put } else { put.unsignaled() };
            self.function.post_put(self.queue_pair, put).map_err(Error::from)?;
        }
        let done = self.next()?;
        ensure!(done.operation == Operation::Put, "a {:?} was not due", done.operation);
        Ok(())
    }

    fn put_stream(&mut self, bytes: usize, count: u64) -> Result<()> {
        let (mut posted, mut finished) = (0, 0);
        while finished < count {
            if posted < count && posted - finished < STREAM_WINDOW as u64 {
                self.put(bytes)?;
                posted += 1;
                continue;
            }
            self.next()?;
            finished += 1;
        }
        Ok(())
    }
}

impl Side for Pair {
    fn run(&mut self, op: Op, bytes: usize, count: u64) -> Result<Outcome> {
        meet(self.shared, self.index);
        let start = Instant::now();
        match op {
            Op::Latency => self.ping_pong(count)?,
            Op::PutLatency => self.put_ping_pong(count)?,
            Op::Rate => self.rate(count)?,
            Op::BatchRate => self.batch_rate(count)?,
            Op::Stream => self.stream(bytes, count)?,
            Op::PutRate if self.leads() => self.put_rate(count)?,
            _ if self.leads() => self.put_stream(bytes, count)?,
            _ => {}
        }
        Ok(Outcome::since(start))
    }
}

/// Tells the other party our queue pair and the key of our window.
fn tell(party: &Party, address: Address, key: RemoteKey) {
    let first = TELL + party.index * TOLD;
    let node = u64::from(address.node) << 32 | u64::from(address.queue_pair);
    let words = key.to_bytes();
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| words[at * 8 + i]));
    for (at, value) in [node, word(0), word(1), word(2)].into_iter().enumerate() {
        party.shared.word(first + 1 + at).store(value, Ordering::Relaxed);
    }
    // Publishes the words before; pairs with Acquire in `hear`.
    party.shared.word(first).store(1, Ordering::Release);
}

/// Hears the same from the other party.
fn hear(party: &Party) -> Result<(Address, RemoteKey)> {
    let first = TELL + (1 - party.index) * TOLD;
    spin_until(|| party.shared.word(first).load(Ordering::Acquire) == 1);
    let word = |at: usize| party.shared.word(first + 1 + at).load(Ordering::Relaxed);
    let address = Address::new((word(0) >> 32) as u32, 0, word(0) as u32);
    let bytes: Vec<u8> = (1..4).flat_map(|at| word(at).to_le_bytes()).collect();
    let key = RemoteKey::from_bytes(&bytes).context("the other side's key")?;
    Ok((address, key))
}
