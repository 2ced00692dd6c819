//! The reference measurements, between two threads on the same two processors: one cache line that
//! goes back and forth, a plain copy, a Unix socket, and TCP over the loopback interface.

use anyhow::{Context, Result, anyhow};
use std::hint::{black_box, spin_loop};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Round trips of the line in one probe: 40 us if the processors are near, 200 us if they are far.
const LINE_ROUND_TRIPS: u64 = 500;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Socket {
    /// A Unix stream socket.
    Unix,
    /// TCP over loopback, with TCP_NODELAY.
    Tcp,
}

/// The thread on the other processor, which sleeps between orders.
pub struct Limits {
    ball: Arc<Ball>,
    unix: UnixStream,
    tcp: TcpStream,
    jobs: Option<Sender<Job>>,
    results: Receiver<Result<()>>,
    thread: Option<JoinHandle<()>>,
    /// Whether there are two processors: spinning on one would measure the scheduler.
    two_cpus: bool,
    /// Buffers for socket messages and copies.
    buffers: [Vec<u8>; 2],
}

/// The word that goes back and forth. It is alone in its cache line and in the adjacent line that
/// processors prefetch.
#[repr(align(128))]
struct Ball(AtomicU64);

enum Job {
    /// Answer the ball this many times.
    Line(u64),
    /// Echo messages: socket, bytes of a message, number of messages.
    Echo(Socket, usize, u64),
    /// Take this many bytes from the socket, then send one.
    Sink(Socket, u64),
}

impl Limits {
    /// Starts the other thread, on `cpu`. `two_cpus`: whether `cpu` differs from ours.
    pub fn start(cpu: Option<usize>, two_cpus: bool, longest_bytes: usize) -> Result<Limits> {
        let (unix, their_unix) = UnixStream::pair().context("a Unix socket")?;
        let (tcp, their_tcp) =
            tcp_pair().context("TCP over loopback (if `lo` is down: ip link set lo up)")?;
        for (unix, tcp) in [(&unix, &tcp), (&their_unix, &their_tcp)] {
            // No hang if the other thread fails.
            unix.set_read_timeout(Some(Duration::from_secs(20)))?;
            tcp.set_read_timeout(Some(Duration::from_secs(20)))?;
            unix.set_write_timeout(Some(Duration::from_secs(20)))?;
            tcp.set_write_timeout(Some(Duration::from_secs(20)))?;
        }
        let ball = Arc::new(Ball(AtomicU64::new(0)));
        let (jobs, their_jobs) = channel();
        let (their_results, results) = channel();
        let their_ball = ball.clone();
        let opposite = move || {
            // If this fails, the leader's own pinning has already failed and been reported.
            let _ = cpu.map(crate::cpu::stay_on);
            let mut opposite = Opposite {
                ball: their_ball,
                unix: their_unix,
                tcp: their_tcp,
                buffer: vec![0; longest_bytes.max(64 << 10)],
            };
            for job in their_jobs {
                if their_results.send(opposite.run(job)).is_err() {
                    break;
                }
            }
        };
        let thread = std::thread::Builder::new().name("limits".into()).spawn(opposite)?;
        Ok(Limits {
            ball,
            unix,
            tcp,
            jobs: Some(jobs),
            results,
            thread: Some(thread),
            two_cpus,
            buffers: [vec![1; longest_bytes], vec![2; longest_bytes]],
        })
    }

    /// One-way time of a cache line between the two processors, in nanoseconds; `None` if there is
    /// only one.
    pub fn line_ns(&mut self) -> Result<Option<f64>> {
        if !self.two_cpus {
            return Ok(None);
        }
        // We answer even values, the other thread odd ones. Release pairs with the other's Acquire.
        let ball = self.ball.clone();
        ball.0.store(0, Ordering::Release);
        self.begin(Job::Line(LINE_ROUND_TRIPS + 1))?;
        let mut start = Instant::now();
        for turn in 0..=LINE_ROUND_TRIPS {
            ball.0.store(2 * turn + 1, Ordering::Release);
            while ball.0.load(Ordering::Acquire) != 2 * turn + 2 {
                spin_loop();
            }
            if turn == 0 {
                // The first round woke the other thread.
                start = Instant::now();
            }
        }
        let time_ns = start.elapsed().as_nanos() as f64;
        self.end()?;
        Ok(Some(time_ns / (2 * LINE_ROUND_TRIPS) as f64))
    }

    /// Bytes per second of a copy between two buffers of `bytes` in this thread.
    pub fn memcpy(&mut self, bytes: usize, count: u64) -> f64 {
        let [from, to] = &mut self.buffers;
        let start = Instant::now();
        for _ in 0..count {
            black_box(&mut to[..bytes]).copy_from_slice(black_box(&from[..bytes]));
        }
        (count * bytes as u64) as f64 / start.elapsed().as_secs_f64().max(1e-9)
    }

    /// One-way times in nanoseconds of messages of `bytes` through a socket, one for each round
    /// trip.
    pub fn ping_pong(&mut self, socket: Socket, bytes: usize, count: u64) -> Result<Vec<f64>> {
        self.begin(Job::Echo(socket, bytes, count))?;
        let mut times = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let start = Instant::now();
            let message = &mut self.buffers[0][..bytes];
            match socket {
                Socket::Unix => round_trip(&mut self.unix, message)?,
                Socket::Tcp => round_trip(&mut self.tcp, message)?,
            }
            times.push(start.elapsed().as_nanos() as f64 / 2.0);
        }
        self.end()?;
        Ok(times)
    }

    /// Messages of `bytes` per second through a socket, one call for each; the receiver takes all
    /// bytes that are there.
    pub fn stream(&mut self, socket: Socket, bytes: usize, count: u64) -> Result<f64> {
        self.begin(Job::Sink(socket, count * bytes as u64))?;
        let message = &self.buffers[0][..bytes];
        let start = Instant::now();
        match socket {
            Socket::Unix => pour(&mut self.unix, message, count)?,
            Socket::Tcp => pour(&mut self.tcp, message, count)?,
        }
        let rate = count as f64 / start.elapsed().as_secs_f64().max(1e-9);
        self.end()?;
        Ok(rate)
    }

    fn begin(&mut self, job: Job) -> Result<()> {
        let jobs = self.jobs.as_ref().context("the thread for limits has ended")?;
        jobs.send(job).map_err(|_| anyhow!("the thread for limits has ended"))
    }

    fn end(&mut self) -> Result<()> {
        self.results.recv().context("the thread for limits has ended")?
    }
}

impl Drop for Limits {
    fn drop(&mut self) {
        drop(self.jobs.take());
        // Its reads from a socket end now too.
        let _ = self.unix.shutdown(std::net::Shutdown::Both);
        let _ = self.tcp.shutdown(std::net::Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The state of the other thread.
struct Opposite {
    ball: Arc<Ball>,
    unix: UnixStream,
    tcp: TcpStream,
    buffer: Vec<u8>,
}

impl Opposite {
    fn run(&mut self, job: Job) -> Result<()> {
        match job {
            Job::Line(count) => {
                for turn in 0..count {
                    while self.ball.0.load(Ordering::Acquire) != 2 * turn + 1 {
                        spin_loop();
                    }
                    self.ball.0.store(2 * turn + 2, Ordering::Release);
                }
                Ok(())
            }
            Job::Echo(Socket::Unix, bytes, count) => {
                echo(&mut self.unix, &mut self.buffer[..bytes], count)
            }
            Job::Echo(Socket::Tcp, bytes, count) => {
                echo(&mut self.tcp, &mut self.buffer[..bytes], count)
            }
            Job::Sink(Socket::Unix, bytes) => sink(&mut self.unix, &mut self.buffer, bytes),
            Job::Sink(Socket::Tcp, bytes) => sink(&mut self.tcp, &mut self.buffer, bytes),
        }
    }
}

fn tcp_pair() -> std::io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let ours = TcpStream::connect(listener.local_addr()?)?;
    let (theirs, _) = listener.accept()?;
    ours.set_nodelay(true)?;
    theirs.set_nodelay(true)?;
    Ok((ours, theirs))
}

fn round_trip(socket: &mut (impl Read + Write), message: &mut [u8]) -> Result<()> {
    socket.write_all(message)?;
    Ok(socket.read_exact(message)?)
}

fn echo(socket: &mut (impl Read + Write), message: &mut [u8], count: u64) -> Result<()> {
    for _ in 0..count {
        socket.read_exact(message)?;
        socket.write_all(message)?;
    }
    Ok(())
}

fn pour(socket: &mut (impl Read + Write), message: &[u8], count: u64) -> Result<()> {
    for _ in 0..count {
        socket.write_all(message)?;
    }
    Ok(socket.read_exact(&mut [0])?)
}

fn sink(socket: &mut (impl Read + Write), buffer: &mut [u8], mut bytes: u64) -> Result<()> {
    while bytes > 0 {
        let most = bytes.min(buffer.len() as u64) as usize;
        let count = socket.read(&mut buffer[..most])?;
        anyhow::ensure!(count > 0, "a socket was closed early");
        bytes -= count as u64;
    }
    Ok(socket.write_all(&[0])?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every reference measurement ends, gives a figure, and can be repeated.
    #[test]
    fn limits_give_figures() {
        let mut limits =
            Limits::start(None, crate::cpu::allowed().len() > 1, 100_000).expect("sockets");
        for _ in 0..2 {
            if let Some(line_ns) = limits.line_ns().expect("a line") {
                assert!(line_ns > 0.0);
            }
            assert!(limits.memcpy(100_000, 3) > 0.0);
            for socket in [Socket::Unix, Socket::Tcp] {
                for bytes in [8, 100_000] {
                    assert_eq!(limits.ping_pong(socket, bytes, 5).expect("a socket").len(), 5);
                    assert!(limits.stream(socket, bytes, 5).expect("a socket") > 0.0);
                }
            }
        }
    }
}
