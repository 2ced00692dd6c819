//! The order of the measurements: program by program and size by size. Each takes several rounds in
//! which every way is measured once, so that disturbances of the machine affect all ways alike.

use super::place::Place;
use super::side::{Bellwire, PATIENCE, Program, Tcp};
use anyhow::{Context, Result, anyhow, bail};
use bellwire::{Address, Wait};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Sizes in bytes: the paper's two, a smaller one, and one between.
pub const SIZES: [usize; 4] = [8, 128, 512, 1196];
const ROUNDS: usize = 5;
/// Target duration of one measurement in one round.
const SAMPLE: Duration = Duration::from_millis(30);
/// Round trips or messages of the trial that determines the count.
const TRIAL: u64 = 16;

/// How messages travel, and how the program waits for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// Bellwire, polling: the present form of reaping (H-08).
    Polling,
    /// Bellwire, asleep until an interrupt (B-23).
    Asleep,
    /// TCP, blocking (B-22).
    Tcp,
}

pub const WAYS: [Way; 3] = [Way::Polling, Way::Asleep, Way::Tcp];

/// The result for one program, way and size.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// `pingpong` or `burst`.
    pub program: &'static str,
    pub way: Way,
    /// Length of a message.
    pub bytes: usize,
    /// Median of the rounds. Pingpong: round trip in microseconds. Burst: message bytes per second.
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

/// All results, and where they were measured.
pub struct Findings {
    /// The device's description of itself.
    pub device: String,
    /// Processors of the sides; none: the system chose.
    pub cpus: Vec<usize>,
    pub all: Vec<Finding>,
}

#[derive(Clone, Copy)]
struct Order {
    way: Way,
    program: Program,
    bytes: usize,
    count: u64,
}

pub fn measure(place: &Place) -> Result<Findings> {
    let cpus: Vec<usize> = crate::cpu::allowed_apart().into_iter().take(2).collect();
    let cpus = if cpus.len() == 2 { cpus } else { Vec::new() };
    std::thread::scope(|scope| {
        let (orders, their_orders) = channel();
        let (listening, listener) = channel();
        let (ours, from_us) = channel();
        let (theirs, from_them) = channel();
        let their_cpu = cpus.get(1).copied();
        let follower = scope.spawn(move || {
            let mut side = Side::open(place, 1, their_cpu, theirs, from_us, |place| {
                let bound = TcpListener::bind((place.address(1), 0)).context("listening by TCP")?;
                listening.send(bound.local_addr()?).context("the leader is gone")?;
                accept(&bound)
            })?;
            side.follow(&their_orders)
        });
        let lead = || -> Result<Findings> {
            let our_cpu = cpus.first().copied();
            let mut side = Side::open(place, 0, our_cpu, ours, from_them, |_| {
                let address = listener.recv().context("the follower is gone")?;
                TcpStream::connect(address).context("connecting by TCP")
            })?;
            let all = lead(&mut side, &orders)?;
            Ok(Findings { device: side.device.clone(), cpus: cpus.clone(), all })
        };
        let led = lead();
        drop(orders);
        let followed = follower.join().map_err(|_| anyhow!("the follower has panicked"))?;
        // A failure on one side times out the other; the earlier cause is more useful.
        match (led, followed) {
            (Ok(findings), Ok(())) => Ok(findings),
            (Err(error), Err(other)) => Err(error.context(format!("the other side: {other:#}"))),
            (Err(error), Ok(())) | (Ok(_), Err(error)) => Err(error),
        }
    })
}

/// The first connection, or an error if none comes in time.
fn accept(bound: &TcpListener) -> Result<TcpStream> {
    bound.set_nonblocking(true)?;
    let end = Instant::now() + PATIENCE;
    loop {
        match bound.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock && Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(error) => return Err(error).context("accepting by TCP"),
        }
    }
}

/// Gives the orders and takes the times.
fn lead(side: &mut Side, orders: &Sender<Order>) -> Result<Vec<Finding>> {
    let programs = [(Program::PingPong, "pingpong"), (Program::Burst, "burst")];
    let steps = programs.len() * SIZES.len() * WAYS.len() * ROUNDS;
    // Hidden if standard error is no terminal.
    let bar = ProgressBar::new(steps as u64).with_style(
        ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}").context("a template")?,
    );
    let mut all = Vec::new();
    for (program, name) in programs {
        for bytes in SIZES {
            let mut timed = |way, count| -> Result<Duration> {
                let order = Order { way, program, bytes, count };
                orders.send(order).context("the follower is gone")?;
                let begin = Instant::now();
                side.run(order)?;
                Ok(begin.elapsed())
            };
            let mut counts = Vec::new();
            for way in WAYS {
                // The first round makes links and wakes sleepers.
                timed(way, TRIAL)?;
                let each = timed(way, TRIAL)?.as_secs_f64() / TRIAL as f64;
                let count = SAMPLE.as_secs_f64() / each;
                counts.push((count as u64).clamp(TRIAL, 1_000_000));
            }
            let mut samples = WAYS.map(|_| Vec::new());
            for _ in 0..ROUNDS {
                for ((way, &count), samples) in WAYS.into_iter().zip(&counts).zip(&mut samples) {
                    bar.set_message(format!("{name}, {bytes} B, {}", way.name()));
                    bar.inc(1);
                    let time = timed(way, count)?.as_secs_f64();
                    samples.push(match program {
                        Program::PingPong => time * 1e6 / count as f64,
                        Program::Burst => count as f64 * bytes as f64 / time,
                    });
                }
            }
            for (way, mut samples) in WAYS.into_iter().zip(samples) {
                samples.sort_by(f64::total_cmp);
                all.push(Finding {
                    program: name,
                    way,
                    bytes,
                    median: samples[ROUNDS / 2],
                    least: samples[0],
                    most: samples[ROUNDS - 1],
                });
            }
        }
    }
    bar.finish_and_clear();
    Ok(all)
}

/// One side with its Bellwire end and its TCP end.
struct Side {
    bellwire: Bellwire,
    tcp: Tcp,
    device: String,
}

impl Side {
    fn open(
        place: &Place,
        number: usize,
        cpu: Option<usize>,
        tell: Sender<Address>,
        hear: Receiver<Address>,
        connect: impl FnOnce(&Place) -> Result<TcpStream>,
    ) -> Result<Side> {
        if let Some(cpu) = cpu {
            crate::cpu::stay_on(cpu)?;
        }
        let leads = number == 0;
        place.run(number, || {
            let stream = connect(place)?;
            let meet = |own| {
                tell.send(own).context("the other side is gone")?;
                hear.recv().context("the other side is gone")
            };
            let device = place.device(number);
            let (bellwire, device) =
                Bellwire::open(&device, leads, meet).with_context(|| device.clone())?;
            Ok(Side { bellwire, tcp: Tcp::new(stream, leads)?, device })
        })
    }

    fn run(&mut self, Order { way, program, bytes, count }: Order) -> Result<()> {
        match way {
            Way::Polling => self.bellwire.run(program, Wait::Spin, bytes, count),
            Way::Asleep => self.bellwire.run(program, Wait::Block, bytes, count),
            Way::Tcp => self.tcp.run(program, bytes, count),
        }
    }

    /// Carries out orders until there are no more.
    fn follow(&mut self, orders: &Receiver<Order>) -> Result<()> {
        /// Acknowledgements are sent while no order is there.
        const TURN: Duration = Duration::from_micros(100);
        loop {
            match orders.recv_timeout(TURN) {
                Ok(order) => self.run(order)?,
                Err(RecvTimeoutError::Timeout) => self.bellwire.settle()?,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    }
}

impl Way {
    pub fn name(self) -> &'static str {
        match self {
            Way::Polling => "Bellwire, polling",
            Way::Asleep => "Bellwire, asleep",
            Way::Tcp => "TCP",
        }
    }
}

impl Findings {
    pub fn median(&self, program: &str, way: Way, bytes: usize) -> Result<f64> {
        let found =
            self.all.iter().find(|one| (one.program, one.way, one.bytes) == (program, way, bytes));
        match found {
            Some(found) => Ok(found.median),
            None => bail!("{program} of {bytes} B by {} was not measured", way.name()),
        }
    }
}
