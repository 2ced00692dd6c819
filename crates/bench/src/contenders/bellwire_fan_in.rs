//! Bellwire with many senders: one process receives on one queue pair from [`FAN_IN_SENDERS`]
//! processes.
//!
//! A separate contender: a fan-in receiver has links to all senders, and the pair must have one
//! only.

use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use bellwire::{
    Address, Completion, CompletionQueue, Device, Error, Function, Message, QueuePair,
    QueuePairOptions,
};

use super::copy_straight::stamp;
use super::{Contender, Kind, Start};
use crate::op::{FAN_IN_SENDERS, Op, Wire};
use crate::worker::{InHouse, Outcome, Party, SharedMemory, Side, check_arrived, spin_until};

/// Bellwire's fan-in.
pub const CONTENDER: Contender = Contender {
    name: "bellwire-fan-in",
    about: "Bellwire shm, one receiver and its senders",
    kind: Kind::Bellwire,
    wires: &[Wire::Memory],
    start: Start::InHouse(InHouse {
        ops: &[Op::FanIn],
        followers: FAN_IN_SENDERS,
        shared_bytes: 0,
        open: |party| Ok(Box::new(FanIn::open(party)?)),
    }),
};

/// Messages in flight of each sender, and receives posted for all of them.
const SEND_WINDOW: usize = 64;
const RECEIVE_WINDOW: usize = 256;

/// Control words: the receiver's address, the number of the finished fan-in, and each sender's
/// count of messages.
const ADDRESS: usize = 2;
const STOP: usize = 3;
const SENT: usize = 4;

/// The upper bits of a message are its sender, the rest its number.
const SENDER_SHIFT: u32 = 56;

struct FanIn {
    index: usize,
    shared: SharedMemory,
    function: Function,
    completions: CompletionQueue,
    queue_pair: QueuePair,
    receiver: Address,
    /// Messages received from each sender; a sender counts its sent messages in its own place.
    counts: Vec<u64>,
    fan_ins: u64,
}

impl FanIn {
    fn open(party: &Party) -> Result<FanIn> {
        let device = Device::open(&format!("shm:bench-{}", party.leader_pid))?;
        let mut function = device.open_function(0)?;
        let completions = function.create_completion_queue(4 * RECEIVE_WINDOW)?;
        let options = QueuePairOptions::new(completions).receive_depth(RECEIVE_WINDOW);
        let queue_pair = function.create_queue_pair(&options)?;
        let own = function.query(queue_pair)?.address;
        let word = party.shared.word(ADDRESS);
        if party.is_leader() {
            for _ in 0..RECEIVE_WINDOW {
                function.post_receive(queue_pair, vec![0; 8], 0).map_err(Error::from)?;
            }
            // Never zero, because the numbers of queue pairs begin with 1.
            word.store(u64::from(own.node) << 32 | u64::from(own.queue_pair), Ordering::Release);
        } else {
            spin_until(|| word.load(Ordering::Acquire) != 0);
        }
        let told = word.load(Ordering::Acquire);
        let receiver = Address::new((told >> 32) as u32, 0, told as u32);
        Ok(FanIn {
            index: party.index,
            shared: party.shared,
            function,
            completions,
            queue_pair,
            receiver,
            counts: vec![0; FAN_IN_SENDERS],
            fan_ins: 0,
        })
    }

    fn poll(&mut self) -> Result<Option<Completion>> {
        let done = self.function.poll(self.completions)?;
        if let Some(Completion { status, operation, .. }) = &done {
            ensure!(status.is_success(), "{operation:?} ended as {status:?}");
        }
        Ok(done)
    }

    /// Receives a message if there is one, checks that it is its sender's next, and reposts its
    /// buffer.
    fn receive(&mut self) -> Result<bool> {
        let Some(done) = self.poll()? else { return Ok(false) };
        let buffer = done.buffer.context("a receive without its buffer")?;
        let bytes = buffer.as_slice().context("receives are vectors")?;
        let message = stamp(bytes);
        let sender = (message >> SENDER_SHIFT) as usize;
        let count = self.counts.get_mut(sender).context("a message of nobody")?;
        check_arrived(*count, message & ((1 << SENDER_SHIFT) - 1))?;
        *count += 1;
        self.function.post_receive(self.queue_pair, buffer, 0).map_err(Error::from)?;
        Ok(true)
    }

    fn receive_from_all(&mut self, count: u64) -> Result<Outcome> {
        let before = self.counts.clone();
        let start = Instant::now();
        let mut total = 0;
        while total < count {
            if self.receive()? {
                total += 1;
            } else {
                std::hint::spin_loop();
            }
        }
        let time_ns = start.elapsed().as_nanos() as u64;
        let shares = self.counts.iter().zip(&before).map(|(now, before)| now - before).collect();
        self.shared.word(STOP).store(self.fan_ins, Ordering::Release);
        // Messages in flight are received, but not counted.
        for sender in 0..FAN_IN_SENDERS {
            let sent = self.shared.word(SENT + sender);
            while sent.load(Ordering::Acquire) != self.counts[sender] | self.fan_ins << SENDER_SHIFT
            {
                self.receive()?;
            }
        }
        Ok(Outcome { time_ns, shares })
    }

    fn send_until_stopped(&mut self) -> Result<Outcome> {
        let sender = self.index - 1;
        let stop = self.shared.word(STOP);
        let mut in_flight = 0;
        while stop.load(Ordering::Relaxed) != self.fan_ins {
            if in_flight == SEND_WINDOW {
                if self.poll()?.is_some() {
                    in_flight -= 1;
                } else {
                    // All senders share one CPU: yield to another one while this one has no room.
                    std::thread::yield_now();
                }
                continue;
            }
            let message = (sender as u64) << SENDER_SHIFT | self.counts[sender];
            let bytes = message.to_ne_bytes();
            let send = Message::inline(&bytes).to(self.receiver);
            self.function.post_send(self.queue_pair, send).map_err(Error::from)?;
            self.counts[sender] += 1;
            in_flight += 1;
        }
        let told = self.counts[sender] | self.fan_ins << SENDER_SHIFT;
        self.shared.word(SENT + sender).store(told, Ordering::Release);
        while in_flight > 0 {
            if self.poll()?.is_some() {
                in_flight -= 1;
            } else {
                std::thread::yield_now();
            }
        }
        Ok(Outcome::default())
    }
}

impl Side for FanIn {
    fn run(&mut self, _op: Op, _bytes: usize, count: u64) -> Result<Outcome> {
        // Fits into the upper bits. A run has too few samples for the number to repeat while it
        // matters.
        self.fan_ins = (self.fan_ins + 1) & 0xff;
        if self.index == 0 { self.receive_from_all(count) } else { self.send_until_stopped() }
    }
}
