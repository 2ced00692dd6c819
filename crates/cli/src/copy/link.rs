//! The connection between sender and receiver: one queue pair, for messages and for the PUTs of the data.

use super::message::Hash;
use crate::talk::{Queue, successful};
use anyhow::{Context, Result, bail};
use bellwire::{
    Address, Buffer, Device, Error, Function, MemoryRegion, Put, RemoteSlice, Rights, Wait,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// Bytes of one piece of a file: small enough for the caches of both sides, large enough that messages do not count.
pub const CHUNK_BYTES: usize = 256 << 10;

/// Pieces in the receiver's memory.
pub const SLOTS: u32 = 16;

/// How long the other side may take for anything: discs stall.
const PATIENCE: Duration = Duration::from_secs(120);

/// Longest message: two paths of 4 KiB, of which JSON makes up to four times as much.
const MESSAGE_BYTES: usize = 48 << 10;

/// Sends and puts that are under way at most.
const DEPTH: usize = 64;

/// Messages that can wait for us.
const RECEIVES: usize = 32;

/// The functions of both sides: different ones, because the processes of a host share a node, unless the device is `shm`.
const SENDER: u8 = 0;
const RECEIVER: u8 = 1;
const NUMBER: u32 = 1;
const HELLO: &[u8] = b"bellwire copy 1";

/// One side of the connection.
pub struct Link {
    function: Function,
    queue: Queue,
    /// Sends and puts that have not completed.
    outstanding: usize,
    /// Buffers that puts gave back.
    spare: Vec<Vec<u8>>,
}

impl Link {
    fn open(device: &Device, function: u8) -> Result<Link> {
        let mut function = device.open_function(function)?;
        let queue = Queue::create(&mut function, DEPTH)?;
        for _ in 0..RECEIVES {
            queue.post_receive(&mut function, MESSAGE_BYTES)?;
        }
        Ok(Link { function, queue, outstanding: 0, spare: Vec::new() })
    }

    /// Connects to the receiver that is `node`.
    pub fn connect(device: &Device, node: u32) -> Result<Link> {
        let mut link = Link::open(device, SENDER)?;
        let to = Address::new(node, RECEIVER, NUMBER);
        link.function.connect(link.queue.pair, to, HELLO, PATIENCE)?;
        Ok(link)
    }

    /// Waits for the sender.
    pub fn accept(device: &Device) -> Result<Link> {
        let mut link = Link::open(device, RECEIVER)?;
        let listener = link.function.listen(NUMBER)?;
        link.queue.accept(&mut link.function, listener, HELLO, Some(PATIENCE))?;
        link.function.stop_listening(listener)?;
        Ok(link)
    }

    /// The memory for chunks.
    pub fn allocate_slots(&mut self) -> Result<MemoryRegion> {
        Ok(self.function.allocate(SLOTS as usize * CHUNK_BYTES, Rights::REMOTE_WRITE)?)
    }

    /// Sends a message.
    pub fn say(&mut self, message: &impl Serialize) -> Result<()> {
        let text = serde_json::to_vec(message)?;
        if text.len() > MESSAGE_BYTES {
            bail!("a name is too long: {} bytes of message", text.len());
        }
        self.make_room()?;
        let send = if text.len() <= self.function.limits().eager_bytes {
            bellwire::Send::immediate(&text)
        } else {
            bellwire::Send::buffer(text)
        };
        self.function.post_send(self.queue.pair, send).map_err(Error::from)?;
        self.outstanding += 1;
        Ok(())
    }

    /// The next message.
    pub fn hear<T: DeserializeOwned>(&mut self) -> Result<T> {
        self.queue.hear(&mut self.function, MESSAGE_BYTES, Wait::Adaptive, Some(PATIENCE))
    }

    /// An empty buffer with room for a chunk.
    pub fn buffer(&mut self) -> Result<Vec<u8>> {
        self.reap()?;
        Ok(self.spare.pop().unwrap_or_else(|| Vec::with_capacity(CHUNK_BYTES)))
    }

    /// Puts all of `data` to a place of its length. A message that is sent after it arrives after it.
    pub fn put(&mut self, data: Vec<u8>, to: RemoteSlice) -> Result<()> {
        self.make_room()?;
        self.function.post_put(self.queue.pair, Put::new(data, to)).map_err(Error::from)?;
        self.outstanding += 1;
        Ok(())
    }

    /// Takes a buffer back that was not put after all.
    pub fn give_back(&mut self, buffer: Vec<u8>) {
        self.spare.push(buffer);
    }

    /// Waits until everything that was posted has left.
    pub fn drain(&mut self) -> Result<()> {
        while self.outstanding > 0 {
            self.take_one()?;
        }
        Ok(())
    }

    fn make_room(&mut self) -> Result<()> {
        self.reap()?;
        while self.outstanding >= DEPTH {
            self.take_one()?;
        }
        Ok(())
    }

    fn take_one(&mut self) -> Result<()> {
        let completion = self.function.wait(self.queue.sends, Wait::Adaptive, PATIENCE)?;
        self.finished(completion)
    }

    fn reap(&mut self) -> Result<()> {
        while let Some(completion) = self.function.poll(self.queue.sends)? {
            self.finished(completion)?;
        }
        Ok(())
    }

    fn finished(&mut self, completion: bellwire::Completion) -> Result<()> {
        self.outstanding -= 1;
        let completion = successful(completion)?;
        // Buffers of long messages are not worth keeping.
        if let Some(Buffer::Vec(buffer)) = completion.buffer
            && buffer.capacity() >= CHUNK_BYTES
        {
            self.spare.push(buffer);
        }
        Ok(())
    }
}

/// Hashes `bytes` bytes from where `file` stands; fails if there are fewer.
pub fn hash_prefix(
    file: &mut impl std::io::Read,
    hasher: &mut blake3::Hasher,
    bytes: u64,
) -> Result<Hash> {
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut left = bytes;
    while left > 0 {
        let piece = &mut buffer[..left.min(CHUNK_BYTES as u64) as usize];
        file.read_exact(piece).context("cannot read what is there already")?;
        hasher.update(piece);
        left -= piece.len() as u64;
    }
    Ok(*hasher.finalize().as_bytes())
}
