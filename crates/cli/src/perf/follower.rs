//! The side that obeys the leader.

use super::end::{End, PATIENCE};
use super::order::{Answer, Op, Order};
use anyhow::{Context, Result, bail};
use bellwire::{Device, Wait};
use std::thread::JoinHandle;

/// Serves one leader from its connection to its farewell, with as many functions as it requests,
/// from number `first` on.
pub fn serve(device: &Device, first: u8) -> Result<()> {
    let (base, mut first) = (first, Pair::accept(End::open(device, first)?)?);
    let mut others = Vec::new();
    let served = first.serve(|pairs| {
        for number in 1..pairs {
            // Opened here, so that the leader gets the error if that fails.
            others.push(start_other(End::open(device, base + number)?, number)?);
        }
        Ok(())
    });
    for other in others {
        // The threads end with their leader. Their errors repeat the first pair's.
        if let Ok(Err(error)) = other.join()
            && served.is_ok()
        {
            return Err(error);
        }
    }
    served
}

/// Serves one pair of a leader; other calls serve its other pairs.
pub fn serve_one(end: End) -> Result<()> {
    Pair::accept(end)?.serve(|_| Ok(()))
}

fn start_other(end: End, number: u8) -> Result<JoinHandle<Result<()>>> {
    let serve = move || serve_one(end);
    let thread = std::thread::Builder::new().name(format!("pair {number}"));
    thread.spawn(serve).context("cannot start a thread for a further pair")
}

struct Pair {
    end: End,
}

impl Pair {
    fn accept(mut end: End) -> Result<Pair> {
        end.accept()?;
        Ok(Pair { end })
    }

    /// Obeys until told to leave. `start_others` gets the number of pairs.
    fn serve(&mut self, mut start_others: impl FnMut(u8) -> Result<()>) -> Result<()> {
        loop {
            // Sleep between orders, so that other measurements can use this processor.
            let order = self.end.hear(Wait::Block, None).context("the leader is gone")?;
            if order == Order::Bye {
                return Ok(());
            }
            if let Err(error) = self.obey(order, &mut start_others) {
                // A leader that is gone needs no answer.
                let _ = self.end.say(&Answer::Failed { why: crate::command::sentence(&error) });
                return Err(error);
            }
        }
    }

    fn obey(
        &mut self,
        order: Order,
        start_others: &mut impl FnMut(u8) -> Result<()>,
    ) -> Result<()> {
        match order {
            Order::Prepare { pairs, wait, cpu, arena_bytes, key } => {
                if let Some(cpu) = cpu {
                    crate::cpu::stay_on(cpu)
                        .with_context(|| format!("the follower cannot run on CPU {cpu}"))?;
                }
                self.end.wait = wait.into();
                let region = self.end.allocate(arena_bytes)?;
                let own = region.remote_key().into();
                self.end.use_arena(region, key.open()?)?;
                start_others(pairs)?;
                return self.end.say(&Answer::Ready { key: Some(own) });
            }
            Order::Verify { op, bytes, count } => self.verify(op, bytes, count)?,
            Order::PingPong { op, bytes, count } => self.ping_pong(op, bytes, count)?,
            Order::Stream { op, bytes, count } => self.stream(op, bytes, count)?,
            Order::Rest | Order::Bye => bail!("the leader ended what it had not begun"),
        }
        self.end.say(&Answer::Done)
    }

    fn verify(&mut self, op: Op, bytes: usize, count: u64) -> Result<()> {
        match op {
            Op::Send => {
                let mut to_post = self.end.post_receives(bytes, count)?;
                self.ready()?;
                self.end.receive_patterns(bytes, count, &mut to_post)
            }
            Op::Put => {
                self.end.spoil_slots(bytes, count)?;
                self.ready()?;
                self.end.catch_slots(bytes, count)
            }
            Op::Get => {
                self.end.fill_slots(bytes, count)?;
                self.ready()?;
                self.attend()
            }
        }
    }

    fn ping_pong(&mut self, op: Op, bytes: usize, count: u64) -> Result<()> {
        match op {
            Op::Send => {
                let mut to_post = self.end.post_receives(bytes, count)?;
                self.ready()?;
                for stamp in 0..count {
                    let buffer = self.end.receive(bytes, stamp)?;
                    self.end.send(bytes, 0, stamp, false)?;
                    self.end.post_again(buffer, &mut to_post)?;
                }
                Ok(())
            }
            Op::Put => {
                let event = self.end.event_of()?;
                self.end.clear_ball(bytes)?;
                self.ready()?;
                for ball in 1..=count {
                    self.end.catch(bytes, ball, event)?;
                    self.end.throw(bytes, ball, event)?;
                }
                self.end.settle()
            }
            Op::Get => {
                self.ready()?;
                self.attend()
            }
        }
    }

    fn stream(&mut self, op: Op, bytes: usize, count: u64) -> Result<()> {
        match op {
            Op::Send => {
                let mut to_post = self.end.post_receives(bytes, count)?;
                self.ready()?;
                self.end.stream_in(bytes, count, &mut to_post)
            }
            Op::Put | Op::Get => {
                self.ready()?;
                self.attend()
            }
        }
    }

    fn ready(&mut self) -> Result<()> {
        self.end.say(&Answer::Ready { key: None })
    }

    /// Waits as in a measurement until the leader is done: some devices need the program to move
    /// data.
    fn attend(&mut self) -> Result<()> {
        match self.end.hear(self.end.wait, Some(PATIENCE))? {
            Order::Rest => Ok(()),
            other => bail!("{other:?} was not due"),
        }
    }
}
