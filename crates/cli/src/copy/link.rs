//! The sender's connection to the receiver: one queue pair, for messages and for the PUTs of the
//! data. Also the constants that both sides share.

use super::door::Door;
use super::keep_alive::Alive;
use super::message::Hash;
use super::turns::Answer;
use crate::host::asked;
use crate::talk::{Queue, is_timeout, post_text, refusal, successful};
use anyhow::{Context, Result, anyhow, bail};
use bellwire::{
    Address, Buffer, Device, DeviceOptions, Error, Function, KeySource, Put, RemoteSlice, Wait,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// Bytes of one piece of a file: small enough for the caches of both sides, large enough that the
/// cost of messages is negligible.
pub const CHUNK_BYTES: usize = 256 << 10;

/// How long a receiver may be silent. Meanwhile it may hash the remains of an earlier attempt,
/// about a second for each gigabyte. The device notices a dead side much earlier.
const PATIENCE: Duration = Duration::from_secs(3600);

/// How long the two sides may take to connect and exchange greetings.
pub const ACQUAINTANCE: Duration = Duration::from_secs(10);

/// Time between two requests of a sender that waits in line.
pub const AGAIN: Duration = Duration::from_millis(500);

/// Longest message in bytes: two paths of 4 KiB, which JSON expands up to four times.
pub const MESSAGE_BYTES: usize = 48 << 10;

/// Most sends and puts in flight.
pub const DEPTH: usize = 64;

/// Most messages that can wait for us.
pub const RECEIVES: usize = 32;

/// The functions of both sides. They differ because the processes of a host share a node, except on
/// `shm`.
pub const SENDER: u8 = 0;
pub const RECEIVER: u8 = 1;
/// Where a listener takes codes.
pub const PAIRING: u8 = 2;
/// If another copy has its function, a side takes one from here on, below [`FUNCTIONS`].
const FURTHER: u8 = 3;
const FUNCTIONS: u8 = 64;
pub const NUMBER: u32 = 1;
/// The greeting; its number is the version of the messages.
pub const HELLO: &[u8] = b"bellwire copy 3";

/// Opens a device with functions for many copies, unless the name sets their number.
pub fn open_device(name: &str, key: Option<KeySource>) -> Result<Device> {
    let mut options = DeviceOptions::default().functions(FUNCTIONS);
    if let Some(key) = key {
        options = options.key(key);
    }
    Ok(Device::open_with(name, &options)?)
}

/// Opens the function `first`, or another one if a copy on this host has it.
pub fn open_function(device: &Device, first: u8) -> Result<Function> {
    let others = (FURTHER..FUNCTIONS).map(|function| device.open_function(function));
    match device.open_function(first) {
        Err(taken @ Error::BadFunction { .. }) => {
            let is_taken = |opened: &bellwire::Result<Function>| {
                matches!(opened, Err(Error::BadFunction { .. }))
            };
            Ok(others.into_iter().find(|opened| !is_taken(opened)).unwrap_or(Err(taken))?)
        }
        opened => Ok(opened?),
    }
}

/// The text for a sender that must wait or is turned away.
pub fn told(answer: Answer) -> String {
    match answer {
        Answer::Now => "now".into(),
        Answer::Later { before } => format!("wait {before}"),
        Answer::Full => "full".into(),
        Answer::Over => "over".into(),
    }
}

/// The sender's side of the connection.
pub struct Link {
    alive: Alive,
    queue: Queue,
    /// Sends and puts that have not completed.
    outstanding: usize,
    /// Buffers returned by completed puts.
    spare: Vec<Vec<u8>>,
}

impl Link {
    /// Connects to the receiver at `to`, which the user calls `name`, once it is our turn. Until
    /// then, `waiting` gets the reason for the delay.
    pub fn connect(
        device: &Device,
        to: (u32, u8),
        name: &str,
        door: &Door,
        greeting: &[u8],
        mut waiting: impl FnMut(&str),
    ) -> Result<Link> {
        let mut function = open_function(device, SENDER)?;
        let queue = Queue::create(&mut function, DEPTH)?;
        for _ in 0..RECEIVES {
            queue.post_receive(&mut function, MESSAGE_BYTES)?;
        }
        let alive = Alive::keep(function)?;
        let to = Address::new(to.0, to.1, NUMBER);
        loop {
            let connected = alive.function().connect(queue.pair, to, greeting, ACQUAINTANCE);
            match connected {
                Ok(_) => return Ok(Link { alive, queue, outstanding: 0, spare: Vec::new() }),
                Err(Error::Rejected { reason, .. }) => match not_yet(&reason) {
                    Some(why) => waiting(&format!("{name} {why}")),
                    None => return Err(not_taken(name, &reason)),
                },
                Err(error) => return Err(asked(error, name, door.listener())),
            }
            std::thread::sleep(AGAIN);
        }
    }

    pub fn say(&mut self, message: &impl Serialize) -> Result<()> {
        let text = serde_json::to_vec(message)?;
        if text.len() > MESSAGE_BYTES {
            bail!("a name is too long: {} bytes of message", text.len());
        }
        self.make_room()?;
        post_text(&mut self.alive.function(), self.queue.pair, text)?;
        self.outstanding += 1;
        Ok(())
    }

    /// The next message.
    pub fn hear<T: DeserializeOwned>(&mut self) -> Result<T> {
        self.hear_within(PATIENCE)
    }

    /// The next message, if it comes within `patience`.
    fn hear_within<T: DeserializeOwned>(&mut self, patience: Duration) -> Result<T> {
        self.queue.hear(&mut self.alive.function(), MESSAGE_BYTES, Wait::Adaptive, Some(patience))
    }

    /// The next message, if it has arrived.
    pub fn hear_now<T: DeserializeOwned>(&mut self) -> Result<Option<T>> {
        match self.hear_within(Duration::ZERO) {
            Err(error) if is_timeout(&error) => Ok(None),
            heard => heard.map(Some),
        }
    }

    /// An empty buffer with room for a chunk.
    pub fn buffer(&mut self) -> Result<Vec<u8>> {
        self.reap()?;
        Ok(self.spare.pop().unwrap_or_else(|| Vec::with_capacity(CHUNK_BYTES)))
    }

    /// Puts all of `data` to a place of its length. A message sent afterwards arrives after the
    /// data.
    pub fn put(&mut self, data: Vec<u8>, to: RemoteSlice) -> Result<()> {
        self.make_room()?;
        self.alive.function().post_put(self.queue.pair, Put::new(data, to)).map_err(Error::from)?;
        self.outstanding += 1;
        Ok(())
    }

    /// Takes back a buffer that was not put.
    pub fn give_back(&mut self, buffer: Vec<u8>) {
        self.spare.push(buffer);
    }

    /// Waits until all posted operations have completed.
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
        let sends = self.queue.sends;
        let completion = self.alive.function().wait(sends, Wait::Adaptive, PATIENCE)?;
        self.finished(completion)
    }

    fn reap(&mut self) -> Result<()> {
        loop {
            let polled = self.alive.function().poll(self.queue.sends)?;
            let Some(completion) = polled else { return Ok(()) };
            self.finished(completion)?;
        }
    }

    fn finished(&mut self, completion: bellwire::Completion) -> Result<()> {
        self.outstanding -= 1;
        let completion = successful(completion)?;
        // Buffers of long messages are too large to keep.
        if let Some(buffer) = completion.buffer.and_then(Buffer::into_vec)
            && buffer.capacity() >= CHUNK_BYTES
        {
            self.spare.push(buffer);
        }
        Ok(())
    }
}

/// The reason to wait, if `reason` gives one.
fn not_yet(reason: &str) -> Option<String> {
    match (reason, reason.strip_prefix("wait ").map(str::parse::<usize>)) {
        ("full", _) => Some("is busy, and too many copies wait for it".into()),
        (_, Some(Ok(0))) => Some("is busy with other copies; this one is the next".into()),
        (_, Some(Ok(before))) => {
            Some(format!("is busy with other copies; waiting, with {before} before this one"))
        }
        _ => None,
    }
}

/// The error for a refusal with this text by the side called `name`.
fn not_taken(name: &str, reason: &str) -> anyhow::Error {
    let own = refusal(HELLO);
    if reason == told(Answer::Over) {
        anyhow!("{name} has what it listened for, and takes no more: start --listen there again")
    } else if reason == own {
        anyhow!("{name} takes the copy of a sender with its code, and no other")
    } else if reason.starts_with("this is bellwire copy ") {
        anyhow!(
            "on {name} {reason}, but here {own}: use the same version of Bellwire on both sides"
        )
    } else {
        anyhow!("on {name} something else listens ({reason}), and here {own}")
    }
}

/// Hashes `bytes` bytes from the current position of `file`; fails if there are fewer. `done` gets
/// the progress.
pub fn hash_prefix(
    file: &mut impl std::io::Read,
    hasher: &mut blake3::Hasher,
    bytes: u64,
    mut done: impl FnMut(u64) -> Result<()>,
) -> Result<Hash> {
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut left = bytes;
    while left > 0 {
        let piece = &mut buffer[..left.min(CHUNK_BYTES as u64) as usize];
        file.read_exact(piece).context("cannot read what is there already")?;
        hasher.update(piece);
        left -= piece.len() as u64;
        done(piece.len() as u64)?;
    }
    Ok(*hasher.finalize().as_bytes())
}
