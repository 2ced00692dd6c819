//! The data path of both ends: what is inside the timed loops.

use super::arena::{Arena, window};
use super::end::{End, GLANCE, PATIENCE};
use super::pattern::{check, check_stamp, fill};
use crate::talk::successful;
use anyhow::{Context, Result, bail, ensure};
use bellwire::{
    Buffer, Completion, CompletionQueue, Error, Get, MemoryRegion, Operation, Put, RemoteKey,
    Rights, Wait,
};
use std::time::Instant;

impl End {
    /// Allocates the memory; the other end gets its key.
    pub fn allocate(&mut self, arena_bytes: usize) -> Result<MemoryRegion> {
        let rights = Rights::REMOTE_READ | Rights::REMOTE_WRITE;
        Ok(self.function.allocate_region(arena_bytes, rights)?)
    }

    /// Uses the memory, once the other end's key is known.
    pub fn use_arena(&mut self, region: MemoryRegion, remote: RemoteKey) -> Result<()> {
        ensure!(
            remote.length == region.len() as u64,
            "the two sides disagree about the memory for the test"
        );
        let eager_bytes = self.function.limits().eager_bytes;
        self.arena = Some(Arena::new(region, remote, eager_bytes));
        Ok(())
    }

    fn arena(&mut self) -> Result<&mut Arena> {
        self.arena.as_mut().context("something was to be measured before there was memory for it")
    }

    /// The next completion of `queue`, which must be a success.
    #[inline]
    fn next(&mut self, queue: CompletionQueue) -> Result<Completion> {
        // A wait for a peer's write to memory has no posted operation that fails with the peer, so
        // check the peer too.
        if self.wait != Wait::Spin {
            let since = Instant::now();
            loop {
                match self.function.wait(queue, self.wait, GLANCE) {
                    Err(Error::TimedOut { .. }) if since.elapsed() < PATIENCE => {
                        self.peer()?;
                    }
                    ended => return successful(ended?),
                }
            }
        }
        let (mut looks, mut since) = (0_u32, None);
        loop {
            if let Some(completion) = self.function.poll(queue)? {
                return successful(completion);
            }
            std::hint::spin_loop();
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(1 << 16) {
                self.peer()?;
                if since.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                    bail!("nothing happened within {} s", PATIENCE.as_secs());
                }
            }
        }
    }

    // Messages

    /// Posts receives for a run of `count` messages of `bytes`; returns how many remain to be
    /// posted.
    pub fn post_receives(&mut self, bytes: usize, count: u64) -> Result<u64> {
        let arena = self.arena.as_mut().context("no memory")?;
        let eager = bytes <= arena.eager_bytes;
        let first = count.min(if eager { 2 * window(bytes) } else { window(bytes) });
        for slot in 0..first {
            let buffer: Buffer = if eager {
                vec![0; bytes].into()
            } else {
                arena.region.slice(arena.in_at(slot, bytes), bytes).into()
            };
            self.function.post_receive(self.data.pair, buffer, 0).map_err(Error::from)?;
        }
        Ok(count - first)
    }

    /// Posts one message that begins with `stamp`, unsignaled. Up to the eager length it travels
    /// inside the descriptor; a longer one uses the first slot, which must be free.
    #[inline]
    pub fn send(&mut self, bytes: usize, stamp: u64) -> Result<()> {
        let arena = self.arena.as_mut().context("no memory")?;
        let send = if bytes <= arena.eager_bytes {
            arena.inline[..8].copy_from_slice(&stamp.to_le_bytes());
            bellwire::Message::inline(&arena.inline[..bytes])
        } else {
            let at = arena.out_at(0, bytes);
            arena.region.store_u64(at, stamp);
            bellwire::Message::buffer(arena.region.slice(at, bytes))
        };
        let posted = self.function.post_send(self.data.pair, send.unsignaled());
        Ok(posted.map_err(Error::from)?)
    }

    /// Posts a message from each of these slots, which must be free, by one call. They begin with
    /// `stamp` and the numbers behind it.
    fn send_together(&mut self, bytes: usize, slots: &[u64], stamp: u64) -> Result<()> {
        let arena = self.arena.as_mut().context("no memory")?;
        let mut sends = Vec::with_capacity(slots.len());
        let stamped = slots.iter().zip(stamp..);
        if bytes <= arena.eager_bytes {
            arena.inline.resize(arena.inline.len().max(slots.len() * bytes), 0);
            for ((&slot, stamp), place) in stamped.zip(arena.inline.chunks_exact_mut(bytes)) {
                place[..8].copy_from_slice(&stamp.to_le_bytes());
                sends.push(bellwire::Message::inline(place).context(slot));
            }
        } else {
            for (&slot, stamp) in stamped {
                let at = arena.out_at(slot, bytes);
                arena.region.store_u64(at, stamp);
                let buffer = arena.region.slice(at, bytes);
                sends.push(bellwire::Message::buffer(buffer).context(slot));
            }
        }
        let posted = self.function.post_sends(self.data.pair, &mut sends);
        Ok(posted.map_err(Error::from)?)
    }

    /// The next message, which must have `bytes` and begin with `stamp`. Returns the buffer.
    #[inline]
    pub fn receive(&mut self, bytes: usize, stamp: u64) -> Result<Buffer> {
        let completion = self.next(self.data.receives)?;
        let buffer = arrived(completion, bytes)?;
        check_stamp(stamp_of(&buffer), stamp)?;
        Ok(buffer)
    }

    /// Reposts a buffer if receives remain `to_post`.
    #[inline]
    pub fn post_again(&mut self, buffer: Buffer, to_post: &mut u64) -> Result<()> {
        if *to_post > 0 {
            *to_post -= 1;
            self.function.post_receive(self.data.pair, buffer, 0).map_err(Error::from)?;
        }
        Ok(())
    }

    /// Sends `count` stamped messages, with a window of them in flight. Posts as many at once as
    /// the window has room for.
    pub fn stream_out(&mut self, bytes: usize, count: u64) -> Result<()> {
        let mut free: Vec<u64> = (0..window(bytes)).collect();
        let (mut posted, mut completed) = (0, 0);
        while completed < count {
            let left = free.len() - free.len().min((count - posted) as usize);
            self.send_together(bytes, &free[left..], posted)?;
            posted += (free.len() - left) as u64;
            free.truncate(left);
            // Takes all finished ones. An empty queue ends the loop without a poll of the device.
            free.push(self.next(self.data.sends)?.context);
            completed += 1;
            while completed < posted
                && let Some(completion) = self.function.poll(self.data.sends)?
            {
                free.push(successful(completion)?.context);
                completed += 1;
            }
        }
        Ok(())
    }

    /// Takes `count` stamped messages, which must come in order.
    pub fn stream_in(&mut self, bytes: usize, count: u64, to_post: &mut u64) -> Result<()> {
        for stamp in 0..count {
            let buffer = self.receive(bytes, stamp)?;
            self.post_again(buffer, to_post)?;
        }
        Ok(())
    }

    // Puts and gets

    /// Clears the words that the next ping-pong polls.
    pub fn clear_ball(&mut self, bytes: usize) -> Result<()> {
        let arena = self.arena()?;
        let at = arena.last_word(arena.in_at(0, bytes), bytes);
        arena.region.store_u64(at, 0);
        Ok(())
    }

    /// Puts a message whose last word is `ball`. Unless we spin, an event tells the other side.
    #[inline]
    pub fn throw(&mut self, bytes: usize, ball: u64, event: Option<u32>) -> Result<()> {
        let arena = self.arena.as_mut().context("no memory")?;
        arena.thrown += 1;
        arena.region.store_u64(arena.last_word(arena.out_at(0, bytes), bytes), ball);
        self.post_put(bytes, 0, event.map(|number| (number, ball)))
    }

    /// Waits for the put whose last word is `ball`: polls that word, or waits for the event.
    #[inline]
    pub fn catch(&mut self, bytes: usize, ball: u64, event: Option<u32>) -> Result<()> {
        if event.is_some() {
            let completion = self.next(self.data.receives)?;
            ensure!(completion.operation == Operation::RemotePut, "an event was due");
            check_stamp(completion.immediate().unwrap_or(0), ball)?;
            return self.reap();
        }
        self.reap()?;
        // If our own puts do not complete at once, the device needs the program to poll, for the
        // peer's puts too.
        let arena = self.arena()?;
        arena.needs_us |= arena.thrown > 0;
        let needs_us = arena.needs_us;
        let (mut looks, mut since) = (0_u64, None);
        loop {
            let arena = self.arena.as_ref().context("no memory")?;
            if arena.region.load_u64(arena.last_word(arena.in_at(0, bytes), bytes)) == ball {
                return Ok(());
            }
            std::hint::spin_loop();
            looks += 1;
            if needs_us {
                self.reap()?;
            } else if looks.is_multiple_of(1024) {
                self.function.progress()?;
            }
            if looks.is_multiple_of(1 << 16) {
                self.peer()?;
                if since.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                    bail!("no put arrived within {} s", PATIENCE.as_secs());
                }
            }
        }
    }

    /// Takes the completion of a ping-pong put, if there is one.
    #[inline]
    fn reap(&mut self) -> Result<()> {
        if let Some(completion) = self.function.poll(self.data.sends)? {
            successful(completion)?;
            self.arena()?.thrown -= 1;
        }
        Ok(())
    }

    /// Waits for the completions of all ping-pong puts.
    pub fn settle(&mut self) -> Result<()> {
        let thrown = std::mem::take(&mut self.arena()?.thrown);
        self.reap_all(thrown)
    }

    /// Takes completions of puts or gets until none of the `outstanding` ones remains.
    fn reap_all(&mut self, mut outstanding: u64) -> Result<()> {
        while outstanding > 0 {
            self.next(self.data.sends)?;
            outstanding -= 1;
        }
        Ok(())
    }

    /// Gets one message and waits for it.
    #[inline]
    pub fn get(&mut self, bytes: usize) -> Result<()> {
        self.post_get(bytes, 0)?;
        self.next(self.data.sends)?;
        Ok(())
    }

    #[inline]
    fn post_get(&mut self, bytes: usize, slot: u64) -> Result<()> {
        let arena = self.arena.as_ref().context("no memory")?;
        let into = arena.region.slice(arena.in_at(slot, bytes), bytes);
        let get = Get::new(arena.remote_out(slot, bytes), into);
        Ok(self.function.post_get(self.data.pair, get).map_err(Error::from)?)
    }

    #[inline]
    fn post_put(&mut self, bytes: usize, slot: u64, event: Option<(u32, u64)>) -> Result<()> {
        let arena = self.arena.as_ref().context("no memory")?;
        let from = arena.region.slice(arena.out_at(slot, bytes), bytes);
        let put = Put::new(from, arena.remote_in(slot, bytes));
        let put = match event {
            Some((number, value)) => put.event(number, Some(value)),
            None => put,
        };
        Ok(self.function.post_put(self.data.pair, put).map_err(Error::from)?)
    }

    /// `count` puts or gets of one place, with a window of them in flight, until all are complete.
    pub fn stream_alone(&mut self, put: bool, bytes: usize, count: u64) -> Result<()> {
        let window = window(bytes);
        let (mut posted, mut completed) = (0, 0);
        while completed < count {
            while posted < count && posted - completed < window {
                if put {
                    self.post_put(bytes, 0, None)?;
                } else {
                    self.post_get(bytes, 0)?;
                }
                posted += 1;
            }
            self.next(self.data.sends)?;
            completed += 1;
            while completed < posted
                && let Some(completion) = self.function.poll(self.data.sends)?
            {
                successful(completion)?;
                completed += 1;
            }
        }
        Ok(())
    }

    // Comparison of every byte; untimed.

    /// Sends `count` messages with patterns, one after the other.
    pub fn send_patterns(&mut self, bytes: usize, count: u64) -> Result<()> {
        for number in 0..count {
            let mut message = vec![0; bytes];
            fill(&mut message, number);
            let arena = self.arena.as_mut().context("no memory")?;
            let send = if bytes <= arena.eager_bytes {
                bellwire::Message::inline(&message)
            } else {
                let at = arena.out_at(number % window(bytes), bytes);
                arena.region.write(at, &message);
                bellwire::Message::buffer(arena.region.slice(at, bytes))
            };
            self.function.post_send(self.data.pair, send).map_err(Error::from)?;
            self.next(self.data.sends)?;
        }
        Ok(())
    }

    /// Receives the patterns and compares them.
    pub fn receive_patterns(&mut self, bytes: usize, count: u64, to_post: &mut u64) -> Result<()> {
        for number in 0..count {
            let completion = self.next(self.data.receives)?;
            let buffer = arrived(completion, bytes)?;
            match buffer.region() {
                None => check(buffer.as_slice().unwrap_or_default(), number)?,
                Some(region) => {
                    let mut message = vec![0; bytes];
                    region.read(buffer.offset(), &mut message);
                    check(&message, number)?;
                }
            }
            self.post_again(buffer, to_post)?;
        }
        Ok(())
    }

    /// Fills the first `count` outgoing slots with patterns.
    pub fn fill_slots(&mut self, bytes: usize, count: u64) -> Result<()> {
        let arena = self.arena()?;
        arena.scratch.resize(bytes, 0);
        for slot in 0..count {
            fill(&mut arena.scratch, slot);
            arena.region.write(arena.out_at(slot, bytes), &arena.scratch);
        }
        Ok(())
    }

    /// Compares the first `count` incoming slots.
    pub fn check_slots(&mut self, bytes: usize, count: u64) -> Result<()> {
        (0..count).try_for_each(|slot| self.check_slot(bytes, slot))
    }

    fn check_slot(&mut self, bytes: usize, slot: u64) -> Result<()> {
        let arena = self.arena()?;
        arena.scratch.resize(bytes, 0);
        arena.region.read(arena.in_at(slot, bytes), &mut arena.scratch);
        check(&arena.scratch, slot)
    }

    /// Overwrites the first `count` incoming slots, so that a later match proves a transfer.
    pub fn spoil_slots(&mut self, bytes: usize, count: u64) -> Result<()> {
        let arena = self.arena()?;
        let nothing = vec![0xee; bytes];
        for slot in 0..count {
            arena.region.write(arena.in_at(slot, bytes), &nothing);
        }
        Ok(())
    }

    /// Puts the first `count` slots, each with an event that carries its number.
    pub fn put_slots(&mut self, bytes: usize, count: u64) -> Result<()> {
        let number = self.peer()?.queue_pair;
        (0..count).try_for_each(|slot| self.post_put(bytes, slot, Some((number, slot))))?;
        self.reap_all(count)
    }

    /// Waits for the events of `count` puts, and compares each slot when its event arrives.
    pub fn catch_slots(&mut self, bytes: usize, count: u64) -> Result<()> {
        for _ in 0..count {
            let completion = self.next(self.data.receives)?;
            ensure!(completion.operation == Operation::RemotePut, "an event was due");
            let slot = completion.immediate().context("an event without its value")?;
            ensure!(slot < count, "an event for slot {slot} of {count}");
            self.check_slot(bytes, slot)?;
        }
        Ok(())
    }

    /// Gets the first `count` slots.
    pub fn get_slots(&mut self, bytes: usize, count: u64) -> Result<()> {
        (0..count).try_for_each(|slot| self.post_get(bytes, slot))?;
        self.reap_all(count)
    }

    /// The queue pair that gets the event of each put, if we do not spin.
    pub fn event_of(&self) -> Result<Option<u32>> {
        Ok(if self.wait == Wait::Spin { None } else { Some(self.peer()?.queue_pair) })
    }
}

/// The buffer of a received message, which must have `bytes`.
#[inline]
fn arrived(completion: Completion, bytes: usize) -> Result<Buffer> {
    ensure!(
        completion.length == bytes,
        "a message of {} bytes arrived where {bytes} were due",
        completion.length
    );
    completion.buffer.context("a receive gives its buffer back")
}

/// The first word of a message.
#[inline]
fn stamp_of(buffer: &Buffer) -> u64 {
    match (buffer.as_slice(), buffer.region()) {
        (None, Some(region)) => region.load_u64(buffer.offset()),
        (message, _) => {
            let message = message.unwrap_or_default();
            u64::from_le_bytes(message[..8].try_into().expect("8 bytes"))
        }
    }
}
