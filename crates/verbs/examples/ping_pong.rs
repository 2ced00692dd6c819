//! One message back and forth between two processes, each time the same memory:
//! `ping_pong NAME SIDE BYTES ROUNDS` on sides 0 and 1. Side 0 prints the median time of one way
//! in microseconds. `bellwire perf` measures more; this is the loop of the Python benchmark.

use bellwire::{
    Address, Buffer, Device, Function, MemoryRegion, Message, QueuePairOptions, Rights,
};
use bellwire::{CompletionQueue, QueuePair, Wait};
use std::error::Error;
use std::time::{Duration, Instant};

const WARM_UP: usize = 50;
const PATIENCE: Duration = Duration::from_secs(60);

struct Side {
    function: Function,
    completions: CompletionQueue,
    pair: QueuePair,
    peer: Address,
    out: MemoryRegion,
    into: MemoryRegion,
}

impl Side {
    fn open(name: &str, side: u32, bytes: usize) -> bellwire::Result<Side> {
        let device = Device::open(&format!("shm:{name}?node={side}"))?;
        let mut function = device.open_function(0)?;
        let completions = function.create_completion_queue(16)?;
        let pair = function.create_queue_pair(&QueuePairOptions::new(completions))?;
        let out = function.allocate_region(bytes, Rights::REMOTE_READ)?;
        let into = function.allocate_region(bytes, Rights::empty())?;
        let peer = Address::new(1 - side, 0, pair.number);
        let mut side = Side { function, completions, pair, peer, out, into };
        side.expect()?;
        Ok(side)
    }

    fn expect(&mut self) -> bellwire::Result<()> {
        let into: Buffer = self.into.slice(0, self.into.len()).into();
        self.function.post_receive(self.pair, into, 1).map_err(|refused| refused.error)
    }

    fn send(&mut self) -> bellwire::Result<()> {
        let out = self.out.slice(0, self.out.len());
        let message = Message::buffer(out).to(self.peer).unsignaled();
        self.function.post_send(self.pair, message).map_err(|refused| refused.error)
    }

    fn receive(&mut self) -> Result<(), Box<dyn Error>> {
        let done = self.function.wait(self.completions, Wait::Spin, PATIENCE)?;
        if !done.status.is_success() {
            return Err(done.status.to_string().into());
        }
        Ok(self.expect()?)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let usage = "usage: ping_pong NAME SIDE BYTES ROUNDS";
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, side, bytes, rounds] = &arguments[..] else { return Err(usage.into()) };
    let (number, bytes, rounds): (u32, usize, usize) =
        (side.parse()?, bytes.parse()?, rounds.parse()?);
    if number > 1 || bytes == 0 || rounds == 0 {
        return Err(usage.into());
    }
    let mut side = Side::open(name, number, bytes)?;
    let content: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
    side.out.write(0, &content);
    let batch = if bytes <= 4096 { 8 } else { 1 };
    let mut times_us = Vec::new();
    for round in 0..WARM_UP + rounds {
        let mark = [(round % 251) as u8];
        let begin = Instant::now();
        if number == 0 {
            side.out.write(0, &mark);
        }
        for _ in 0..batch {
            if number == 0 {
                side.send()?;
                side.receive()?;
            } else {
                side.receive()?;
                side.out.write(0, &mark);
                side.send()?;
            }
        }
        times_us.push(begin.elapsed().as_secs_f64() * 1e6 / f64::from(2 * batch));
        let mut arrived = [0];
        side.into.read(0, &mut arrived);
        assert_eq!(arrived, mark, "wrong data");
    }
    let mut arrived = vec![0; bytes];
    side.into.read(0, &mut arrived);
    assert_eq!(arrived[1..], content[1..], "wrong data");
    // The last message leaves, and nobody ends before the other is done.
    if number == 0 {
        side.send()?;
        let measured = &mut times_us[WARM_UP..];
        measured.sort_by(f64::total_cmp);
        println!("{:.3}", measured[measured.len() / 2]);
    } else {
        side.receive()?;
    }
    Ok(())
}
