//! Peer: iceoryx2, publish and subscribe with polling. Two services, one for each direction. A slow
//! subscriber exerts back-pressure on the publisher, because no message may be lost here. Small
//! messages are sent as values. Stream messages are copied into a loaned sample and out of the
//! received one, from and to buffers as with the other contenders.
//!
//! Speaks the lines of the benchmark's src/worker/mod.rs, like peer.h.

use std::error::Error;
use std::io::{BufRead, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::*;

type Outcome<T> = Result<T, Box<dyn Error>>;
type Service = ipc::Service;

const STREAM_WINDOW: usize = 4;
const RATE_WINDOW: usize = 64;
const LARGEST_STREAM_BYTES: usize = 1 << 20;
const WARM_UP: u64 = 16;

/// One side: its ports for small messages and for streams, and the buffers of a stream.
struct Side {
    leads: bool,
    out: Publisher<Service, u64, ()>,
    inbound: Subscriber<Service, u64, ()>,
    stream_out: Option<Publisher<Service, [u8], ()>>,
    stream_in: Option<Subscriber<Service, [u8], ()>>,
    buffers: Vec<u8>,
}

fn main() {
    let cpus: Vec<usize> = std::env::args().skip(1).filter_map(|cpu| cpu.parse().ok()).collect();
    let [leader_cpu, follower_cpu] = cpus[..] else {
        println!("unable expected two CPU numbers");
        return;
    };
    let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
    let leader = std::process::id();
    // SAFETY: the program has one thread.
    let leads = unsafe { libc::fork() } != 0;
    let (control, other_end) = if leads { (ours, theirs) } else { (theirs, ours) };
    drop(other_end);
    if !leads {
        // SAFETY: requests a signal; touches no memory.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    }
    pin(if leads { leader_cpu } else { follower_cpu });
    set_log_level(LogLevel::Error);
    let outcome = if leads { lead(leader, control) } else { follow(leader, control) };
    if let Err(why) = outcome {
        println!("error {}", why.to_string().replace('\n', "; "));
        std::process::exit(1);
    }
}

fn pin(cpu: usize) {
    // SAFETY: a zeroed set is empty, the CPU is one that the driver found, and the set lives across
    // the call.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set);
    }
}

fn lead(id: u32, mut control: UnixStream) -> Outcome<()> {
    let mut side = Side::open(id, true)?;
    control.read_exact(&mut [0])?;
    println!("ready latency rate stream");
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split(' ').collect();
        let ["run", op, bytes, count] = words[..] else { return Err("not an order".into()) };
        let (bytes, count): (u64, u64) = (bytes.parse()?, count.parse()?);
        let mut order = [op.as_bytes()[0]; 17];
        order[1..9].copy_from_slice(&bytes.to_le_bytes());
        order[9..].copy_from_slice(&count.to_le_bytes());
        control.write_all(&order)?;
        let time_ns = side.run(order[0], bytes as usize, count)?;
        control.read_exact(&mut [0])?;
        println!("ns {time_ns}");
    }
    drop(control);
    // SAFETY: waits for this process's only child.
    unsafe { libc::wait(std::ptr::null_mut()) };
    Ok(())
}

fn follow(id: u32, mut control: UnixStream) -> Outcome<()> {
    let mut side = Side::open(id, false)?;
    control.write_all(&[0])?;
    let mut order = [0; 17];
    while control.read_exact(&mut order).is_ok() {
        let field = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| order[at + i]));
        side.run(order[0], field(1) as usize, field(9))?;
        control.write_all(&[0])?;
    }
    Ok(())
}

impl Side {
    fn open(id: u32, leads: bool) -> Outcome<Side> {
        let node = NodeBuilder::new().create::<Service>()?;
        let small = |direction: &str| -> Outcome<_> {
            let name = format!("bellwire-bench/{id}/{direction}");
            Ok(node
                .service_builder(&name.as_str().try_into()?)
                .publish_subscribe::<u64>()
                .enable_safe_overflow(false)
                .subscriber_max_buffer_size(RATE_WINDOW)
                .open_or_create()?)
        };
        let (up, down) = (small("up")?, small("down")?);
        let (out, inbound) = if leads { (&down, &up) } else { (&up, &down) };
        // The library waits for room by sleeping, which costs far more than a retry.
        let strategy = BackpressureStrategy::DiscardData;
        let stream = node
            .service_builder(&format!("bellwire-bench/{id}/stream").as_str().try_into()?)
            .publish_subscribe::<[u8]>()
            .enable_safe_overflow(false)
            .subscriber_max_buffer_size(STREAM_WINDOW)
            .open_or_create()?;
        let stream_publisher = || {
            let builder = stream.publisher_builder().initial_max_slice_len(LARGEST_STREAM_BYTES);
            builder.backpressure_strategy(strategy).create()
        };
        let mut side = Side {
            leads,
            out: out.publisher_builder().backpressure_strategy(strategy).create()?,
            inbound: inbound.subscriber_builder().create()?,
            stream_out: leads.then(stream_publisher).transpose()?,
            stream_in: (!leads).then(|| stream.subscriber_builder().create()).transpose()?,
            buffers: vec![0x5a; STREAM_WINDOW * LARGEST_STREAM_BYTES],
        };
        side.first_contact()?;
        Ok(side)
    }

    /// A message sent before its subscriber exists is lost, so both sides send until both have
    /// received.
    fn first_contact(&mut self) -> Outcome<()> {
        const HELLO: u64 = u64::MAX;
        const HEARD: u64 = u64::MAX - 1;
        let (mut heard, mut answered) = (false, false);
        while !(heard && answered) {
            self.out.send_copy(if heard { HEARD } else { HELLO })?;
            std::thread::sleep(std::time::Duration::from_millis(1));
            while let Some(sample) = self.inbound.receive()? {
                heard = true;
                answered |= *sample == HEARD;
            }
        }
        self.out.send_copy(HEARD)?;
        // Receivers skip leftovers of this: message numbers never grow so large.
        Ok(())
    }

    fn send(&self, number: u64) -> Outcome<()> {
        while self.out.send_copy(number)? == 0 {
            std::hint::spin_loop();
        }
        Ok(())
    }

    fn receive(&self, due: u64) -> Outcome<()> {
        loop {
            match self.inbound.receive()? {
                Some(sample) if *sample >= u64::MAX - 1 => {}
                Some(sample) => return check(due, *sample),
                None => std::hint::spin_loop(),
            }
        }
    }

    fn ping_pong(&self, count: u64) -> Outcome<()> {
        for number in 0..count {
            if self.leads {
                self.send(number)?;
                self.receive(number)?;
            } else {
                self.receive(number)?;
                self.send(number)?;
            }
        }
        Ok(())
    }

    fn rate(&self, count: u64) -> Outcome<()> {
        if self.leads {
            (0..count).try_for_each(|number| self.send(number))?;
            self.receive(count)
        } else {
            (0..count).try_for_each(|number| self.receive(number))?;
            self.send(count)
        }
    }

    fn stream(&mut self, bytes: usize, count: u64) -> Outcome<()> {
        for number in 0..count {
            let offset = number as usize % STREAM_WINDOW * bytes;
            let buffer = &mut self.buffers[offset..offset + bytes];
            if let Some(out) = &self.stream_out {
                buffer[..8].copy_from_slice(&number.to_ne_bytes());
                while out.loan_slice_uninit(bytes)?.write_from_slice(buffer).send()? == 0 {
                    std::hint::spin_loop();
                }
            } else if let Some(inbound) = &self.stream_in {
                let sample = loop {
                    match inbound.receive()? {
                        Some(sample) => break sample,
                        None => std::hint::spin_loop(),
                    }
                };
                buffer.copy_from_slice(&sample);
                check(number, u64::from_ne_bytes(std::array::from_fn(|at| buffer[at])))?;
            }
        }
        if self.leads { self.receive(count) } else { self.send(count) }
    }

    /// Runs the operation whose word begins with `op`.
    fn run(&mut self, op: u8, bytes: usize, count: u64) -> Outcome<u64> {
        self.ping_pong(WARM_UP)?;
        let start = Instant::now();
        match op {
            b'l' => self.ping_pong(count)?,
            b'r' => self.rate(count)?,
            b's' => self.stream(bytes, count)?,
            _ => return Err("no such operation".into()),
        }
        Ok(start.elapsed().as_nanos() as u64)
    }
}

fn check(due: u64, came: u64) -> Outcome<()> {
    if due == came {
        Ok(())
    } else {
        Err(format!("message {due} was due, but {came} arrived").into())
    }
}
