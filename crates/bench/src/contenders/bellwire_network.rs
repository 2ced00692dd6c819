//! Bellwire's devices for ordinary networks, driven through the public API: two processes on the
//! two sides of a veth pair, one queue pair each.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bellwire::{
    Address, Buffer, Completion, CompletionQueue, Device, DeviceOptions, Error, Function,
    KeySource, MemoryRegion, Message, Operation, QueuePair, QueuePairOptions, Rights, Wait,
};

use bellwire_ethernet::agent::server::{Agent, AgentOptions};

use super::{Contender, Kind, Start};
use crate::network::{ADDRESSES, INTERFACE, SECOND};
use crate::op::{Op, STREAM_WINDOW, Wire};
use crate::worker::{
    Delays, InHouse, LARGEST_NETWORK_BYTES, Outcome, Party, Schedule, Side, check_message, mark,
    meet, now_ns, processor_time_ns, spin_until, stamp, touched,
};

/// `eth` by AF_XDP, which carries frames of 1500 bytes only.
pub const ETH_XDP: Contender = Contender {
    name: "bellwire-eth-xdp",
    about: "Bellwire eth, by AF_XDP",
    kind: Kind::Bellwire,
    wires: &[Wire::Frames1500],
    start: start(|party| Pair::open(party, &format!("eth:{INTERFACE}?io=xdp"))),
};

pub const ETH_PACKET: Contender = Contender {
    name: "bellwire-eth-packet",
    about: "Bellwire eth, by AF_PACKET",
    kind: Kind::Bellwire,
    wires: &[Wire::Frames1500, Wire::Frames9000],
    start: start(|party| Pair::open(party, &format!("eth:{INTERFACE}?io=packet"))),
};

/// As [`ETH_PACKET`], with the socket and the egress rules of `bellwire agent`.
pub const ETH_AGENT: Contender = Contender {
    name: "bellwire-eth-agent",
    about: "Bellwire eth, by AF_PACKET with a socket of the agent",
    kind: Kind::Bellwire,
    wires: &[Wire::Frames1500],
    start: start(|party| {
        let file = serve_sockets(party)?;
        Pair::open(party, &format!("eth:{INTERFACE}?io=packet&agent={}", file.0.display()))
    }),
};

pub const UDP: Contender = Contender {
    name: "bellwire-udp",
    about: "Bellwire udp",
    kind: Kind::Bellwire,
    wires: &[Wire::Frames1500, Wire::Frames9000, Wire::Slow],
    start: start(|party| Pair::open(party, &format!("udp:{}", ADDRESSES[party.index]))),
};

/// As [`ETH_XDP`], with a key.
pub const ETH_KEYED: Contender = Contender {
    name: "bellwire-eth-xdp-key",
    about: "Bellwire eth, by AF_XDP, with a key",
    kind: Kind::Bellwire,
    wires: &[Wire::Frames1500],
    start: start(|party| Pair::open_with(party, &format!("eth:{INTERFACE}?io=xdp"), &keyed())),
};

/// As [`UDP`], with a key.
pub const UDP_KEYED: Contender = Contender {
    name: "bellwire-udp-key",
    about: "Bellwire udp, with a key",
    kind: Kind::Bellwire,
    wires: &[Wire::Frames1500],
    start: start(|party| {
        Pair::open_with(party, &format!("udp:{}", ADDRESSES[party.index]), &keyed())
    }),
};

/// The file of an agent's socket, which is removed with this.
struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // An agent that fails early has made none.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// An agent in a thread of this process, which ends with it. Returns where it listens.
fn serve_sockets(party: &Party) -> Result<SocketFile> {
    let name = format!("bellwire-bench-agent-{}-{}", party.leader_pid, party.index);
    let file = SocketFile(std::env::temp_dir().join(name));
    let mut agent = Agent::open(AgentOptions {
        interfaces: vec![INTERFACE.to_owned()],
        group: (rustix::process::getgid().as_raw(), "of the benchmark".to_owned()),
        path: Some(file.0.clone()),
        listener: None,
        allow_unrestricted: false,
    })
    .context("the agent")?;
    if let Some(why) = agent.unrestricted() {
        bail!("the agent cannot restrict what programs send ({why}): apt-get install nftables");
    }
    std::thread::spawn(move || agent.serve());
    Ok(file)
}

/// Options with a key that both sides share.
fn keyed() -> DeviceOptions {
    let key = KeySource::text(format!("shared {}", "5a".repeat(32)));
    DeviceOptions::default().key(key)
}

/// `eth` by one of two slow wires.
pub const ETH_ONE: Contender = Contender {
    name: "bellwire-eth-one",
    about: "Bellwire eth, by one of two wires that are held to 1 Gbit/s each",
    kind: Kind::Bellwire,
    wires: &[Wire::Slow],
    start: start(|party| Pair::open(party, &format!("eth:{INTERFACE}?io=packet"))),
};

/// `eth` by both slow wires (H-29).
pub const ETH_TWO: Contender = Contender {
    name: "bellwire-eth-two",
    about: "Bellwire eth, by both wires as one",
    kind: Kind::Bellwire,
    wires: &[Wire::Slow],
    start: start(|party| Pair::open(party, &format!("eth:{INTERFACE}+{SECOND}?io=packet"))),
};

const fn start(open: fn(&Party) -> Result<Box<dyn Side>>) -> Start {
    const OPS: &[Op] =
        &[Op::Latency, Op::BlockingLatency, Op::Rate, Op::Stream, Op::Tail, Op::Idle];
    Start::InHouse(InHouse::pair(OPS, open))
}

/// Small messages in flight, and receives posted for them. TCP's socket buffers hold at least as
/// many.
const WINDOW: usize = 512;

/// Largest message sent from inside its descriptor, in bytes.
const SMALL_BYTES: usize = 4096;

/// Control words after those of [`meet`]: each party's queue pair.
const TELL: usize = 2;

/// Control words after those: how often each party has finished.
const DONE: usize = 4;

/// Longer than an acknowledgement waits for a frame that carries it.
const SETTLING: Duration = Duration::from_micros(200);

/// A message that takes longer ends the contender.
const PATIENCE: Duration = Duration::from_secs(60);

struct Pair {
    party: Role,
    function: Function,
    completions: CompletionQueue,
    queue_pair: QueuePair,
    peer: Address,
    region: MemoryRegion,
    /// Receive buffers of small messages that are not posted.
    small: Vec<Buffer>,
    message: Vec<u8>,
    how: Wait,
}

struct Role {
    index: usize,
    shared: crate::worker::SharedMemory,
}

impl Pair {
    fn open(party: &Party, device: &str) -> Result<Box<dyn Side>> {
        Self::open_with(party, device, &DeviceOptions::default())
    }

    fn open_with(party: &Party, device: &str, options: &DeviceOptions) -> Result<Box<dyn Side>> {
        let device = Device::open_with(device, options)?;
        let mut function = device.open_function(0)?;
        let completions = function.create_completion_queue(4 * WINDOW)?;
        let options =
            QueuePairOptions::new(completions).send_depth(WINDOW).receive_depth(2 * WINDOW);
        let queue_pair = function.create_queue_pair(&options)?;
        let region = function.allocate_region(
            STREAM_WINDOW * LARGEST_NETWORK_BYTES,
            Rights::REMOTE_READ | Rights::REMOTE_WRITE,
        )?;
        region.write(0, &touched(STREAM_WINDOW * LARGEST_NETWORK_BYTES));

        let own = function.query(queue_pair)?.address;
        let words = [party.index, 1 - party.index].map(|side| party.shared.word(TELL + side));
        // A queue pair of a numbered node never gives a zero word. Release pairs with the Acquire
        // below.
        words[0].store(
            (u64::from(own.node) << 32) | (u64::from(own.queue_pair) + 1),
            Ordering::Release,
        );
        spin_until(|| words[1].load(Ordering::Acquire) != 0);
        let told = words[1].load(Ordering::Relaxed);
        let mut pair = Pair {
            party: Role { index: party.index, shared: party.shared },
            function,
            completions,
            queue_pair,
            peer: Address::new((told >> 32) as u32, 0, told as u32 - 1),
            region,
            small: (0..WINDOW).map(|_| vec![0; SMALL_BYTES].into()).collect(),
            message: touched(SMALL_BYTES),
            how: Wait::Spin,
        };
        // The first message makes the link; no figure contains it.
        pair.ping_pong(8, 1)?;
        pair.settle()?;
        Ok(Box::new(pair))
    }

    fn leads(&self) -> bool {
        self.party.index == 0
    }

    /// The next completion, which must be a success.
    #[inline]
    fn next(&mut self) -> Result<Completion> {
        let done = self.function.wait(self.completions, self.how, PATIENCE)?;
        ensure!(done.status.is_success(), "{:?} ended as {:?}", done.operation, done.status);
        Ok(done)
    }

    #[inline]
    fn post_small_receive(&mut self) -> Result<()> {
        let buffer = self.small.pop().context("all receive buffers are posted")?;
        Ok(self.function.post_receive(self.queue_pair, buffer, 0).map_err(Error::from)?)
    }

    #[inline]
    fn send_small(&mut self, bytes: usize, number: u64, signaled: bool) -> Result<()> {
        mark(&mut self.message[..bytes], number);
        let send = Message::inline(&self.message[..bytes]).to(self.peer);
        let send = if signaled { send } else { send.unsignaled() };
        Ok(self.function.post_send(self.queue_pair, send).map_err(Error::from)?)
    }

    /// Checks a received small message, and keeps its buffer.
    #[inline]
    fn take_small(&mut self, bytes: usize, due: u64, done: Completion) -> Result<()> {
        ensure!(done.operation == Operation::Receive, "a {:?} was not due", done.operation);
        ensure!(done.length == bytes, "{} bytes came in place of {bytes}", done.length);
        let buffer = done.buffer.context("a receive without its buffer")?;
        let message = buffer.as_slice().context("small receives are vectors")?;
        check_message(&message[..bytes], due)?;
        self.small.push(buffer);
        Ok(())
    }

    #[inline]
    fn receive_small(&mut self, bytes: usize, due: u64) -> Result<()> {
        let done = self.next()?;
        self.take_small(bytes, due, done)
    }

    /// Each side posts its next receive while its own message is in flight, off the critical path.
    fn ping_pong(&mut self, bytes: usize, count: u64) -> Result<()> {
        if !self.leads() {
            self.post_small_receive()?;
        }
        for number in 0..count {
            if self.leads() {
                self.send_small(bytes, number, false)?;
                self.post_small_receive()?;
                self.receive_small(bytes, number)?;
            } else {
                self.receive_small(bytes, number)?;
                self.send_small(bytes, number, false)?;
                if number + 1 < count {
                    self.post_small_receive()?;
                }
            }
        }
        Ok(())
    }

    /// Small messages one way, each with its completion on both sides.
    fn rate(&mut self, bytes: usize, count: u64) -> Result<()> {
        if !self.leads() {
            for _ in 0..(WINDOW as u64).min(count) {
                self.post_small_receive()?;
            }
            for number in 0..count {
                self.receive_small(bytes, number)?;
                if number + (WINDOW as u64) < count {
                    self.post_small_receive()?;
                }
            }
            return self.send_small(8, count, false);
        }
        self.post_small_receive()?;
        let mut in_flight = 0;
        for number in 0..count {
            if in_flight == WINDOW {
                let done = self.next()?;
                ensure!(done.operation == Operation::Send, "a {:?} was not due", done.operation);
                in_flight -= 1;
            }
            self.send_small(bytes, number, true)?;
            in_flight += 1;
        }
        // The answer may come before the last sends complete here.
        for _ in 0..=in_flight {
            let done = self.next()?;
            if done.operation == Operation::Receive {
                self.take_small(8, count, done)?;
            }
        }
        Ok(())
    }

    /// Messages at random times to the leader.
    fn paced(&mut self, bytes: usize, count: u64) -> Result<Outcome> {
        if self.leads() {
            let mut delays = Delays::new(count);
            for _ in 0..(WINDOW as u64).min(count) {
                self.post_small_receive()?;
            }
            for number in 0..count {
                let done = self.next()?;
                if let Some(message) = done.buffer.as_ref().and_then(|buffer| buffer.as_slice()) {
                    delays.arrived(message);
                }
                self.take_small(bytes, number, done)?;
                if number + (WINDOW as u64) < count {
                    self.post_small_receive()?;
                }
            }
            return Ok(delays.outcome());
        }
        let mut schedule = Schedule::new(bytes);
        let mut in_flight = 0;
        for number in 0..count {
            let due_ns = schedule.next_ns();
            while now_ns() < due_ns || in_flight == WINDOW {
                if let Some(done) = self.function.poll(self.completions)? {
                    let (operation, status) = (done.operation, done.status);
                    ensure!(operation == Operation::Send, "a {operation:?} was not due");
                    ensure!(status.is_success(), "a send ended as {status:?}");
                    in_flight -= 1;
                }
            }
            stamp(&mut self.message[..bytes], due_ns);
            self.send_small(bytes, number, true)?;
            in_flight += 1;
        }
        for _ in 0..in_flight {
            self.next()?;
        }
        Ok(Outcome::default())
    }

    /// Large messages one way, between regions of library memory.
    fn stream(&mut self, bytes: usize, count: u64) -> Result<()> {
        let window = STREAM_WINDOW as u64;
        if !self.leads() {
            for number in 0..count.min(window) {
                self.post_large_receive(bytes, number)?;
            }
            for number in 0..count {
                let done = self.next()?;
                ensure!(done.operation == Operation::Receive, "a {:?} was not due", done.operation);
                ensure!(done.length == bytes, "{} bytes came in place of {bytes}", done.length);
                let part = done.buffer.context("a receive without its buffer")?;
                let (first, last) = (part.offset(), part.offset() + bytes - 8);
                let stamps = [first, last].map(|at| self.region.load_u64(at));
                ensure!(stamps == [number; 2], "message {number} was due, but {stamps:?} arrived");
                if number + window < count {
                    self.post_large_receive(bytes, number + window)?;
                }
            }
            return self.send_small(8, count, false);
        }
        self.post_small_receive()?;
        let (mut posted, mut finished, mut answered) = (0, 0, false);
        let mut free = [true; STREAM_WINDOW];
        while finished < count || !answered {
            let slot = (posted % window) as usize;
            if posted < count && free[slot] {
                let first = slot * bytes;
                self.region.store_u64(first, posted);
                self.region.store_u64(first + bytes - 8, posted);
                let send = Message::buffer(self.region.slice(first, bytes));
                let send = send.to(self.peer).context(slot as u64);
                self.function.post_send(self.queue_pair, send).map_err(Error::from)?;
                free[slot] = false;
                posted += 1;
                continue;
            }
            let done = self.next()?;
            if done.operation == Operation::Receive {
                self.take_small(8, count, done)?;
                answered = true;
            } else {
                free[done.context as usize] = true;
                finished += 1;
            }
        }
        Ok(())
    }

    fn post_large_receive(&mut self, bytes: usize, number: u64) -> Result<()> {
        let slot = number as usize % STREAM_WINDOW;
        let part = self.region.slice(slot * bytes, bytes);
        Ok(self.function.post_receive(self.queue_pair, part, number).map_err(Error::from)?)
    }

    /// Makes progress until both sides have finished and their messages are acknowledged: nothing
    /// is sent while a program makes no calls.
    fn settle(&mut self) -> Result<()> {
        let words = [0, 1].map(|side| self.party.shared.word(DONE + side));
        let own = words[self.party.index].fetch_add(1, Ordering::Relaxed) + 1;
        let mut since = None;
        while since.is_none_or(|since: Instant| since.elapsed() < SETTLING) {
            self.function.progress()?;
            if since.is_none() && words[1 - self.party.index].load(Ordering::Relaxed) >= own {
                since = Some(Instant::now());
            }
        }
        Ok(())
    }

    /// Sleeps for a message that does not come. Returns the processor time used.
    fn idle(&mut self, time: Duration) -> Result<Outcome> {
        let before_ns = processor_time_ns();
        match self.function.wait(self.completions, Wait::Block, time) {
            Err(Error::TimedOut { .. }) => {}
            Err(why) => return Err(why.into()),
            Ok(done) => bail!("a {:?} was not due", done.operation),
        }
        Ok(Outcome { time_ns: processor_time_ns() - before_ns, shares: Vec::new() })
    }
}

impl Side for Pair {
    fn run(&mut self, op: Op, bytes: usize, count: u64) -> Result<Outcome> {
        if op == Op::Idle {
            return self.idle(Duration::from_millis(count));
        }
        meet(self.party.shared, self.party.index);
        self.how = if op == Op::BlockingLatency { Wait::Block } else { Wait::Spin };
        if op == Op::Tail {
            let outcome = self.paced(bytes, count)?;
            self.settle()?;
            return Ok(outcome);
        }
        let start = Instant::now();
        match op {
            Op::Latency | Op::BlockingLatency => self.ping_pong(bytes, count)?,
            Op::Rate => self.rate(bytes, count)?,
            _ => self.stream(bytes, count)?,
        }
        let outcome = Outcome::since(start);
        self.settle()?;
        Ok(outcome)
    }
}
