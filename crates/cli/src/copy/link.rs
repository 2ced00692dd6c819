//! The connection between sender and receiver: one queue pair, for messages and for the PUTs of the data.

use super::keep_alive::Alive;
use super::message::Hash;
use crate::host::asked;
use crate::talk::{Queue, is_timeout, refusal, successful};
use anyhow::{Context, Result, anyhow, bail};
use bellwire::{
    Address, Buffer, Device, Error, Listener, MemoryRegion, Put, RemoteSlice, Rights, Wait,
};
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use std::time::{Duration, Instant};

/// Bytes of one piece of a file: small enough for the caches of both sides, large enough that messages do not count.
pub const CHUNK_BYTES: usize = 256 << 10;

/// Pieces in the receiver's memory.
pub const SLOTS: u32 = 16;

/// How long nobody may say anything: either side compares what is left of an earlier attempt meanwhile, which takes about a second
/// for each gigabyte. A side that dies is noticed by its device, long before.
const PATIENCE: Duration = Duration::from_secs(3600);

/// How long the two may take to find each other and to say who they are.
pub const ACQUAINTANCE: Duration = Duration::from_secs(10);

/// Time between two looks at who else wants to send to us.
const GLANCE: Duration = Duration::from_millis(500);

/// Longest message: two paths of 4 KiB, of which JSON makes up to four times as much.
const MESSAGE_BYTES: usize = 48 << 10;

/// Sends and puts that are under way at most.
const DEPTH: usize = 64;

/// Messages that can wait for us.
const RECEIVES: usize = 32;

/// The functions of both sides: different ones, because the processes of a host share a node, unless the device is `shm`.
const SENDER: u8 = 0;
pub const RECEIVER: u8 = 1;
const NUMBER: u32 = 1;
/// The number is the version of what they say to each other.
const HELLO: &[u8] = b"bellwire copy 2";
const BUSY: &[u8] = b"busy";

/// One side of the connection.
pub struct Link {
    alive: Alive,
    queue: Queue,
    /// Where senders ask for us, if we receive.
    listener: Option<Listener>,
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
        let alive = Alive::keep(function)?;
        Ok(Link { alive, queue, listener: None, outstanding: 0, spare: Vec::new() })
    }

    /// Connects to the receiver that is `node`, which the user calls `name`.
    pub fn connect(device: &Device, node: u32, name: &str) -> Result<Link> {
        let link = Link::open(device, SENDER)?;
        let to = Address::new(node, RECEIVER, NUMBER);
        let deadline = Instant::now() + ACQUAINTANCE;
        loop {
            let connected = link.alive.function().connect(link.queue.pair, to, HELLO, ACQUAINTANCE);
            match connected {
                Ok(_) => return Ok(link),
                // With a sender that was killed, perhaps, which is noticed soon.
                Err(Error::Rejected { reason, .. })
                    if reason.as_bytes() == BUSY && Instant::now() < deadline =>
                {
                    std::thread::sleep(GLANCE);
                }
                Err(Error::Rejected { reason, .. }) => return Err(not_taken(name, &reason)),
                Err(error) => return Err(asked(error, name, "`bellwire copy --listen`")),
            }
        }
    }

    /// Begins to listen for senders.
    pub fn listen(device: &Device) -> Result<Link> {
        let mut link = Link::open(device, RECEIVER)?;
        let listener = link.alive.function().listen(NUMBER)?;
        link.listener = Some(listener);
        Ok(link)
    }

    /// Waits for the sender, for ever if `patience` is `None`. Others are told that we are busy, as long as this lives.
    pub fn accept(&mut self, patience: Option<Duration>) -> Result<()> {
        let listener = self.listener.context("nobody listens")?;
        self.queue.accept(&mut self.alive.function(), listener, HELLO, patience)
    }

    /// The node of the other side.
    pub fn peer_node(&self) -> Option<u32> {
        match self.alive.function().query(self.queue.pair).ok()?.connection {
            bellwire::ConnectionState::Connected { peer } => Some(peer.node),
            _ => None,
        }
    }

    /// The memory for chunks.
    pub fn allocate_slots(&mut self) -> Result<MemoryRegion> {
        Ok(self.alive.function().allocate(SLOTS as usize * CHUNK_BYTES, Rights::REMOTE_WRITE)?)
    }

    /// Sends a message.
    pub fn say(&mut self, message: &impl Serialize) -> Result<()> {
        let text = serde_json::to_vec(message)?;
        if text.len() > MESSAGE_BYTES {
            bail!("a name is too long: {} bytes of message", text.len());
        }
        self.make_room()?;
        let mut function = self.alive.function();
        let send = if text.len() <= function.limits().eager_bytes {
            bellwire::Send::immediate(&text)
        } else {
            bellwire::Send::buffer(text)
        };
        function.post_send(self.queue.pair, send).map_err(Error::from)?;
        drop(function);
        self.outstanding += 1;
        Ok(())
    }

    /// The next message.
    pub fn hear<T: DeserializeOwned>(&mut self) -> Result<T> {
        self.hear_within(PATIENCE)
    }

    /// The next message, if it comes within `patience`.
    pub fn hear_within<T: DeserializeOwned>(&mut self, patience: Duration) -> Result<T> {
        let deadline = Instant::now() + patience;
        loop {
            self.turn_others_away()?;
            let left = deadline.saturating_duration_since(Instant::now()).min(GLANCE);
            let mut function = self.alive.function();
            match self.queue.hear(&mut function, MESSAGE_BYTES, Wait::Adaptive, Some(left)) {
                Err(error) if is_timeout(&error) && Instant::now() < deadline => {}
                heard => return heard,
            }
        }
    }

    /// The next message, if it is here.
    pub fn hear_now<T: DeserializeOwned>(&mut self) -> Result<Option<T>> {
        match self.hear_within(Duration::ZERO) {
            Err(error) if is_timeout(&error) => Ok(None),
            heard => heard.map(Some),
        }
    }

    /// Waits until the other side has closed the connection, but not for long.
    pub fn wait_for_end(&mut self) {
        let deadline = Instant::now() + ACQUAINTANCE;
        let is_over = |heard: Result<IgnoredAny>| heard.is_err_and(|error| !is_timeout(&error));
        while Instant::now() < deadline && !is_over(self.hear_within(GLANCE)) {}
    }

    /// Tells whoever else wants to send to us that we are busy.
    fn turn_others_away(&mut self) -> Result<()> {
        let Some(listener) = self.listener else { return Ok(()) };
        let mut function = self.alive.function();
        while let Some(request) = function.poll_request(listener)? {
            // If it is gone by now, it does not want to know.
            let _ = function.reject(request, BUSY);
        }
        Ok(())
    }

    /// An empty buffer with room for a chunk.
    pub fn buffer(&mut self) -> Result<Vec<u8>> {
        self.reap()?;
        Ok(self.spare.pop().unwrap_or_else(|| Vec::with_capacity(CHUNK_BYTES)))
    }

    /// Puts all of `data` to a place of its length. A message that is sent after it arrives after it.
    pub fn put(&mut self, data: Vec<u8>, to: RemoteSlice) -> Result<()> {
        self.make_room()?;
        let put = Put::new(data, to);
        self.alive.function().post_put(self.queue.pair, put).map_err(Error::from)?;
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
        // Buffers of long messages are not worth keeping.
        if let Some(buffer) = completion.buffer.and_then(Buffer::into_vec)
            && buffer.capacity() >= CHUNK_BYTES
        {
            self.spare.push(buffer);
        }
        Ok(())
    }
}

/// What it means that the side called `name` turned us away with these words.
fn not_taken(name: &str, reason: &str) -> anyhow::Error {
    let own = refusal(HELLO);
    if reason.as_bytes() == BUSY {
        anyhow!("{name} is busy with another copy: try again when that is done")
    } else if reason.starts_with("this is bellwire copy ") {
        anyhow!(
            "on {name} {reason}, but here {own}: use the same version of Bellwire on both sides"
        )
    } else {
        anyhow!("on {name} something else listens ({reason}), and here {own}")
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
