//! The processes of one in-house contender: a leader, which the driver controls, and its followers.
//!
//! The driver starts `bellwire-bench worker NAME CPU CPU`. That process forks its followers, and
//! all of them open their side of the contender. The leader prints `ready OP OP ...` or `unable
//! WHY`. Then it reads lines `run OP BYTES COUNT`. For each line every party runs the operation,
//! and the leader answers `ns TOTAL` (for a fan-in `ns TOTAL SHARE SHARE ...`) or `error WHY`. It
//! ends at the end of its input. Between operations all parties sleep, so a contender costs nothing
//! while another one is measured. The peers written in C speak the same lines.

mod memory;
mod paced;
mod party;

use std::io::{BufRead, Write};

use anyhow::{Context, Result, bail, ensure};

pub use memory::{SharedMemory, meet, spin_until, touched};
pub use paced::{Delays, Schedule, now_ns, stamp};
pub use party::Party;

use crate::op::Op;

/// A contender that is part of this program.
pub struct InHouse {
    /// Operations that it can run.
    pub ops: &'static [Op],
    /// Processes beside the leader: 1 for a pair.
    pub followers: usize,
    /// Memory that all parties share from the start, in bytes.
    pub shared_bytes: usize,
    /// Opens one party's side; called once in every process, at the same time.
    pub open: fn(&Party) -> Result<Box<dyn Side>>,
}

impl InHouse {
    /// A contender of two processes without shared memory.
    pub const fn pair(ops: &'static [Op], open: fn(&Party) -> Result<Box<dyn Side>>) -> InHouse {
        InHouse { ops, followers: 1, shared_bytes: 0, open }
    }
}

/// One process's part in a contender.
pub trait Side {
    /// Runs this party's part of an operation. Only the leader's outcome is used. Its time begins
    /// when every participating party is awake, and ends when the leader knows that all is done.
    fn run(&mut self, op: Op, bytes: usize, count: u64) -> Result<Outcome>;
}

/// The leader's result of one operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    pub time_ns: u64,
    /// Messages from each sender, in a fan-in.
    pub shares: Vec<u64>,
}

impl Outcome {
    /// An outcome with a time only, from `start` until now.
    pub fn since(start: std::time::Instant) -> Outcome {
        Outcome { time_ns: start.elapsed().as_nanos() as u64, shares: Vec::new() }
    }
}

/// Runs a contender's parties until the input ends; the followers never return from here.
pub fn serve(contender: &InHouse, cpus: [usize; 2]) -> Result<()> {
    let mut party = Party::assemble(contender.followers, contender.shared_bytes, cpus)?;
    let outcome =
        if party.is_leader() { lead(contender, &mut party) } else { follow(contender, &mut party) };
    if let Err(why) = &outcome {
        // The driver reads this line in place of an answer, from any party.
        println!("error {}", one_line(why));
    }
    if !party.is_leader() {
        std::process::exit(i32::from(outcome.is_err()));
    }
    if outcome.is_ok() {
        party.dismiss();
    }
    // After an error a follower may spin for ever; it ends with this process.
    outcome
}

fn lead(contender: &InHouse, party: &mut Party) -> Result<()> {
    let opened = (contender.open)(party).and_then(|side| party.all_agree().map(|()| side));
    let mut side = match opened {
        Ok(side) => side,
        Err(why) => {
            println!("unable {}", one_line(&why));
            return Ok(());
        }
    };
    let words: Vec<String> = contender.ops.iter().map(|op| op.word()).collect();
    println!("ready {}", words.join(" "));

    for line in std::io::stdin().lock().lines() {
        let (op, bytes, count) = parse_run(&line.context("reading the next order")?)?;
        ensure!(contender.ops.contains(&op), "it cannot run `{}`", op.word());
        party.order(op, bytes, count)?;
        let outcome = side.run(op, bytes, count)?;
        party.all_agree()?;
        let shares: String = outcome.shares.iter().map(|share| format!(" {share}")).collect();
        println!("ns {}{shares}", outcome.time_ns);
        std::io::stdout().flush()?;
    }
    Ok(())
}

fn follow(contender: &InHouse, party: &mut Party) -> Result<()> {
    let mut side = match (contender.open)(party) {
        Ok(side) => side,
        Err(why) => return party.disagree(&one_line(&why)),
    };
    party.agree()?;
    while let Some((op, bytes, count)) = party.next_order()? {
        side.run(op, bytes, count)?;
        party.agree()?;
    }
    Ok(())
}

/// Reads a line `run OP BYTES COUNT`.
fn parse_run(line: &str) -> Result<(Op, usize, u64)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let ["run", op, bytes, count] = words[..] else {
        bail!("expected `run OP BYTES COUNT`, got `{line}`");
    };
    let op = Op::from_word(op).with_context(|| format!("no operation is named `{op}`"))?;
    let (bytes, count) = (bytes.parse()?, count.parse()?);
    ensure!(bytes >= 8, "a message has at least 8 bytes, as it carries its number");
    ensure!(bytes <= crate::op::LARGEST_BYTES, "no row has messages of {bytes} bytes");
    ensure!(count > 0, "an operation needs at least one message");
    Ok((op, bytes, count))
}

fn one_line(error: &anyhow::Error) -> String {
    format!("{error:#}").replace('\n', "; ")
}

/// The largest message on a network, in bytes.
pub const LARGEST_NETWORK_BYTES: usize = 1 << 20;

/// Writes a message's number to its beginning and to its end.
#[inline]
pub fn mark(message: &mut [u8], number: u64) {
    let end = message.len() - 8;
    message[end..].copy_from_slice(&number.to_ne_bytes());
    message[..8].copy_from_slice(&number.to_ne_bytes());
}

/// Checks at the receiver that message number `expected` arrived, by its beginning and its end.
#[inline]
pub fn check_message(message: &[u8], expected: u64) -> Result<()> {
    let number = |at: usize| u64::from_ne_bytes(std::array::from_fn(|i| message[at + i]));
    check_arrived(expected, number(0))?;
    check_arrived(expected, number(message.len() - 8))
}

/// Processor time of this process so far, in user and in system mode, in ns.
pub fn processor_time_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Checks at the receiver that message number `expected` arrived.
pub fn check_arrived(expected: u64, arrived: u64) -> Result<()> {
    ensure!(
        expected == arrived,
        "message {expected} was due, but {arrived} arrived: the contender lost or changed data"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An order is parsed word by word. A malformed one is refused with a sentence instead of a
    /// panic.
    #[test]
    fn orders_are_checked() {
        assert_eq!(parse_run("run stream 65536 7").expect("fine"), (Op::Stream, 65536, 7));
        for broken in ["", "run", "run fly 8 1", "run rate 7 1", "run rate 8 0", "run rate x 1"] {
            assert!(parse_run(broken).is_err(), "{broken:?} was taken");
        }
    }

    /// The receivers' check catches an unexpected message (a canary for every in-house figure).
    #[test]
    fn wrong_message_is_caught() {
        assert!(check_arrived(3, 3).is_ok());
        assert!(check_arrived(3, 4).is_err());

        let mut message = [0; 24];
        mark(&mut message, 5);
        assert!(check_message(&message, 5).is_ok());
        message[23] ^= 1;
        assert!(check_message(&message, 5).is_err());
    }
}
