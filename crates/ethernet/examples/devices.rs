//! Messages through the public API over `eth` and `udp`, beside kernel TCP: to be held against `raw`, the limit.
//!
//! Two threads in two network namespaces of their own, joined by a veth pair.
//! `cargo run --release -p bellwire-ethernet --example devices [MTU] [spin|block] [KIND]`

use bellwire::{Address, Device, Function, Operation, QueuePairOptions, Send, Wait};
use bellwire_ethernet::testing::{enter_new_namespace, ip, stay_on, thread_number};
use std::error::Error;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

const SIZES: [usize; 6] = [8, 128, 1196, 4096, 65_536, 1 << 20];
const PATIENCE: Duration = Duration::from_secs(20);

type Result<T> = std::result::Result<T, Box<dyn Error + std::marker::Send + Sync>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let mtu: usize = arguments.get(1).map_or(Ok(1500), |text| text.parse())?;
    let how =
        if arguments.get(2).is_some_and(|how| how == "block") { Wait::Block } else { Wait::Spin };
    println!("messages over veth, MTU {mtu}, {how:?}; one way");
    println!(
        "{:<12} {:>8} {:>10} {:>10} {:>12} {:>10}",
        "", "bytes", "median us", "p99 us", "messages/s", "MB/s"
    );
    for kind in ["eth packet", "eth xdp", "udp", "tcp"] {
        if arguments.get(3).is_some_and(|only| !kind.contains(only.as_str())) {
            continue;
        }
        if let Err(error) = measure(kind, mtu, how) {
            println!("{kind:<12} failed: {error}");
        }
    }
    Ok(())
}

fn measure(kind: &'static str, mtu: usize, how: Wait) -> Result<()> {
    let (tell_number, number) = channel();
    let (tell_ready, ready) = channel::<()>();
    let (tell_node, node) = channel();
    let far = std::thread::spawn(move || -> Result<()> {
        stay_on(1);
        enter_new_namespace()?;
        tell_number.send(thread_number())?;
        ready.recv()?;
        ip("addr add 10.9.0.2/24 dev far\nlink set far up")?;
        if kind == "tcp" {
            let listener = TcpListener::bind("10.9.0.2:9000")?;
            tell_node.send(0)?;
            return echo_tcp(listener.accept()?.0, how);
        }
        let device = open(kind, "far", "10.9.0.2")?;
        let mut side = Side::new(&device, how)?;
        tell_node.send(device.node())?;
        side.echo()
    });
    let near = std::thread::spawn(move || -> Result<()> {
        stay_on(0);
        enter_new_namespace()?;
        let number: i32 = number.recv()?;
        ip(&format!(
            "link add near mtu {mtu} type veth peer name far mtu {mtu} netns {number}\n\
             addr add 10.9.0.1/24 dev near\nlink set near up"
        ))?;
        tell_ready.send(())?;
        let node = node.recv_timeout(PATIENCE)?;
        if kind == "tcp" {
            return ping_tcp(TcpStream::connect("10.9.0.2:9000")?, how);
        }
        let device = open(kind, "near", "10.9.0.1")?;
        let mut side = Side::new(&device, how)?;
        println!("{}", device.describe());
        side.ping(kind, Address::new(node, 0, 1))
    });
    let [near, far] = [near, far].map(|thread| thread.join().expect("no panic"));
    near.and(far)
}

fn open(kind: &str, interface: &str, address: &str) -> Result<Device> {
    Ok(match kind {
        "udp" => Device::open(&format!("udp:{address}"))?,
        "eth packet" => Device::open(&format!("eth:{interface}?io=packet"))?,
        _ => Device::open(&format!("eth:{interface}?io=xdp"))?,
    })
}

/// All sizes, or the one that the environment names.
fn sizes() -> Vec<usize> {
    let only: Option<usize> = std::env::var("SIZE").ok().and_then(|text| text.parse().ok());
    only.map_or_else(|| SIZES.to_vec(), |only| vec![only])
}

struct Side {
    function: Function,
    completions: bellwire::CompletionQueue,
    pair: bellwire::QueuePair,
    how: Wait,
}

/// Messages of a burst that are not acknowledged by the program at the other side.
const BURST: usize = 512;

impl Side {
    fn new(device: &Device, how: Wait) -> Result<Side> {
        let mut function = device.open_function(0)?;
        let completions = function.create_completion_queue(4096)?;
        let options = QueuePairOptions::new(completions).receive_depth(1024).send_depth(1024);
        let pair = function.create_queue_pair(&options)?;
        for _ in 0..BURST {
            // As small as they may be, so that they fit in the cache.
            function.post_receive(pair, vec![0; *sizes().iter().max().expect("a size")], 0)?;
        }
        Ok(Side { function, completions, pair, how })
    }

    /// The next message's length, immediate value, and sender.
    fn receive(&mut self) -> Result<(usize, u64, Address)> {
        loop {
            let done = self.function.wait(self.completions, self.how, PATIENCE)?;
            if !done.status.is_success() {
                return Err(format!("{done:?} {:?}", self.function.counters()).into());
            }
            if done.operation == Operation::Receive {
                let told = (done.length, done.immediate().unwrap_or(0), done.peer);
                let buffer = done.buffer.ok_or("its buffer")?;
                self.function.post_receive(self.pair, buffer, 0).map_err(|r| r.error)?;
                return Ok(told);
            }
        }
    }

    /// Posts, making progress while there is no room.
    fn send(&mut self, bytes: &[u8], immediate: u64, to: Address) -> Result<()> {
        loop {
            let send = if bytes.len() > 4096 {
                Send::buffer(bytes.to_vec())
            } else {
                Send::immediate(bytes)
            };
            let send = send.to(to).with_immediate(immediate).unsignaled();
            match self.function.post_send(self.pair, send) {
                Ok(()) => return Ok(()),
                Err(refused) if matches!(refused.error, bellwire::Error::QueueFull { .. }) => {
                    self.function.progress()?;
                }
                Err(refused) => return Err(refused.error.into()),
            }
        }
    }

    fn echo(&mut self) -> Result<()> {
        let answer = vec![1; 1 << 20];
        let mut count = 0u64;
        loop {
            let (length, what, from) = self.receive()?;
            match what {
                0 => self.send(&answer[..length], 0, from)?,
                1 => {
                    count += 1;
                    if count.is_multiple_of(BURST as u64 / 2) {
                        self.send(&[], 1, from)?;
                    }
                }
                _ => return Ok(()),
            }
        }
    }

    /// What both sides need of a processor while they are linked, blocked, and have nothing to do.
    fn idle(&mut self, kind: &str) -> Result<()> {
        let (since, before) = (Instant::now(), processor_time()?);
        while since.elapsed() < Duration::from_secs(3) {
            let left = Duration::from_secs(3).saturating_sub(since.elapsed());
            if self.function.wait(self.completions, Wait::Block, left).is_ok() {
                return Err("a message that nobody sent".into());
            }
        }
        let busy = (processor_time()? - before).as_secs_f64() / since.elapsed().as_secs_f64();
        println!("{kind:<12} idle: {:.2} % of a processor for both sides", 100.0 * busy);
        Ok(())
    }

    fn ping(&mut self, kind: &str, to: Address) -> Result<()> {
        let bytes = vec![7; 1 << 20];
        for size in sizes() {
            let rounds = if size > 4_096 { 300 } else { 10_000 };
            let mut times = Vec::with_capacity(rounds);
            for _ in 0..rounds {
                let since = Instant::now();
                self.send(&bytes[..size], 0, to)?;
                self.receive()?;
                times.push(since.elapsed().as_nanos() as f64 / 2e3);
            }
            let (mut sent, mut open) = (0u64, 0u64);
            let since = Instant::now();
            while since.elapsed() < Duration::from_millis(400) {
                while open < BURST as u64 {
                    self.send(&bytes[..size], 1, to)?;
                    (sent, open) = (sent + 1, open + 1);
                }
                self.receive()?;
                open -= BURST as u64 / 2;
            }
            while !sent.is_multiple_of(BURST as u64 / 2) {
                self.send(&bytes[..size], 1, to)?;
                (sent, open) = (sent + 1, open + 1);
            }
            while open > 0 {
                self.receive()?;
                open -= BURST as u64 / 2;
            }
            report(kind, size, times, sent as f64 / since.elapsed().as_secs_f64());
        }
        if std::env::var("COUNTERS").is_ok() {
            for (name, value) in self.function.counters().rows() {
                println!("    {name} {value}");
            }
        }
        if self.how == Wait::Block {
            self.idle(kind)?;
        }
        self.send(&[], 9, to)?;
        let until = Instant::now() + Duration::from_millis(50);
        while Instant::now() < until {
            self.function.progress()?;
        }
        Ok(())
    }
}

fn report(kind: &str, size: usize, mut times: Vec<f64>, rate: f64) {
    times.sort_by(f64::total_cmp);
    println!(
        "{kind:<12} {size:>8} {:>10.2} {:>10.2} {rate:>12.0} {:>10.1}",
        times[times.len() / 2],
        times[times.len() * 99 / 100],
        rate * size as f64 / 1e6,
    );
}

/// Processor time of this process so far.
fn processor_time() -> Result<Duration> {
    let schedule = std::fs::read_dir("/proc/self/task")?;
    let mut total_ns = 0;
    for task in schedule {
        // First number: time on a processor, in ns (proc(5)).
        let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
        total_ns += text.split(' ').next().unwrap_or("0").parse::<u64>()?;
    }
    Ok(Duration::from_nanos(total_ns))
}

/// Reads all of a message; spinning, without sleeping in the kernel.
fn read(stream: &mut TcpStream, bytes: &mut [u8]) -> Result<bool> {
    let mut done = 0;
    while done < bytes.len() {
        match stream.read(&mut bytes[done..]) {
            Ok(0) => return Ok(false),
            Ok(count) => done += count,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}

fn write(stream: &mut TcpStream, bytes: &[u8]) -> Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match stream.write(&bytes[done..]) {
            Ok(count) => done += count,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// A header of 8 bytes, size and whether to answer, goes before each message.
fn echo_tcp(mut stream: TcpStream, how: Wait) -> Result<()> {
    stream.set_nodelay(true)?;
    stream.set_nonblocking(how == Wait::Spin)?;
    let mut bytes = vec![0; (1 << 20) + 8];
    let mut count = 0;
    while read(&mut stream, &mut bytes[..8])? {
        let word = u64::from_le_bytes(bytes[..8].try_into()?);
        let size = (word >> 1) as usize;
        if !read(&mut stream, &mut bytes[8..8 + size])? {
            break;
        }
        count += 1;
        if word & 1 == 0 {
            write(&mut stream, &bytes[..8 + size])?;
        } else if count % (BURST / 2) == 0 {
            write(&mut stream, &0u64.to_le_bytes())?;
        }
    }
    Ok(())
}

fn ping_tcp(mut stream: TcpStream, how: Wait) -> Result<()> {
    stream.set_nodelay(true)?;
    stream.set_nonblocking(how == Wait::Spin)?;
    let mut bytes = vec![7; (1 << 20) + 8];
    for size in sizes() {
        bytes[..8].copy_from_slice(&((size as u64) << 1).to_le_bytes());
        let rounds = if size > 4_096 { 256 } else { BURST * 20 };
        let mut times = Vec::new();
        for _ in 0..rounds {
            let since = Instant::now();
            write(&mut stream, &bytes[..8 + size])?;
            read(&mut stream, &mut bytes[..8 + size])?;
            times.push(since.elapsed().as_nanos() as f64 / 2e3);
        }
        bytes[..8].copy_from_slice(&((size as u64) << 1 | 1).to_le_bytes());
        let (mut sent, mut open) = (0u64, 0usize);
        let since = Instant::now();
        let mut word = [0; 8];
        while since.elapsed() < Duration::from_millis(400) || !sent.is_multiple_of(BURST as u64) {
            while open < BURST {
                write(&mut stream, &bytes[..8 + size])?;
                (sent, open) = (sent + 1, open + 1);
            }
            read(&mut stream, &mut word)?;
            open -= BURST / 2;
        }
        while open > 0 {
            read(&mut stream, &mut word)?;
            open -= BURST / 2;
        }
        report("tcp", size, times, sent as f64 / since.elapsed().as_secs_f64());
    }
    Ok(())
}
