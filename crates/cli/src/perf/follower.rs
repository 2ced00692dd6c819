//! The side that obeys the leader.

use super::end::{End, PATIENCE};
use super::order::{Answer, Op, Order, Transfers};
use anyhow::{Context, Result, bail};
use bellwire::{Device, Wait};
use std::thread::JoinHandle;

/// Serves one leader from its connection to its farewell, with as many functions as it requests,
/// from number `first` on.
pub fn serve(device: &Device, first: u8) -> Result<()> {
    let mut end = End::open(device, first)?;
    end.accept()?;
    let mut others = Vec::new();
    let served = end.serve(|pairs| {
        for number in 1..pairs {
            // Opened here, so that the leader gets the error if that fails.
            others.push(start_other(End::open(device, first + number)?, number)?);
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
pub fn serve_one(mut end: End) -> Result<()> {
    end.accept()?;
    end.serve(|_| Ok(()))
}

fn start_other(end: End, number: u8) -> Result<JoinHandle<Result<()>>> {
    let serve = move || serve_one(end);
    let thread = std::thread::Builder::new().name(format!("pair {number}"));
    thread.spawn(serve).context("cannot start a thread for a further pair")
}

impl End {
    /// Obeys until told to leave. `start_others` gets the number of pairs.
    fn serve(&mut self, mut start_others: impl FnMut(u8) -> Result<()>) -> Result<()> {
        loop {
            // Sleep between orders, so that other measurements can use this processor.
            let order = self.hear(Wait::Block, None).context("the leader is gone")?;
            if order == Order::Bye {
                return Ok(());
            }
            if let Err(error) = self.obey(order, &mut start_others) {
                // A leader that is gone needs no answer.
                let _ = self.say(&Answer::Failed { why: crate::command::sentence(&error) });
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
                self.wait = wait.into();
                let region = self.allocate(arena_bytes)?;
                let own = region.remote_key().into();
                self.use_arena(region, key.open()?)?;
                start_others(pairs)?;
                return self.say(&Answer::Ready { key: Some(own) });
            }
            Order::Verify(Transfers { op, bytes, count }) => self.verify(op, bytes, count)?,
            Order::PingPong(Transfers { op, bytes, count }) => self.ping_pong(op, bytes, count)?,
            Order::Stream(Transfers { op, bytes, count }) => self.stream(op, bytes, count)?,
            Order::Rest | Order::Bye => bail!("the leader ended what it had not begun"),
        }
        self.say(&Answer::Done)
    }

    fn verify(&mut self, op: Op, bytes: usize, count: u64) -> Result<()> {
        match op {
            Op::Send => {
                let mut to_post = self.post_receives(bytes, count)?;
                self.ready()?;
                self.receive_patterns(bytes, count, &mut to_post)
            }
            Op::Put => {
                self.spoil_slots(bytes, count)?;
                self.ready()?;
                self.catch_slots(bytes, count)
            }
            Op::Get => {
                self.fill_slots(bytes, count)?;
                self.ready()?;
                self.attend()
            }
        }
    }

    fn ping_pong(&mut self, op: Op, bytes: usize, count: u64) -> Result<()> {
        match op {
            Op::Send => {
                let mut to_post = self.post_receives(bytes, count)?;
                self.ready()?;
                for stamp in 0..count {
                    let buffer = self.receive(bytes, stamp)?;
                    self.send(bytes, stamp)?;
                    self.post_again(buffer, &mut to_post)?;
                }
                Ok(())
            }
            Op::Put => {
                let event = self.event_of()?;
                self.clear_ball(bytes)?;
                self.ready()?;
                for ball in 1..=count {
                    self.catch(bytes, ball, event)?;
                    self.throw(bytes, ball, event)?;
                }
                self.settle()
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
                let mut to_post = self.post_receives(bytes, count)?;
                self.ready()?;
                self.stream_in(bytes, count, &mut to_post)
            }
            Op::Put | Op::Get => {
                self.ready()?;
                self.attend()
            }
        }
    }

    fn ready(&mut self) -> Result<()> {
        self.say(&Answer::Ready { key: None })
    }

    /// Waits as in a measurement until the leader is done: some devices need the program to move
    /// data.
    fn attend(&mut self) -> Result<()> {
        match self.hear(self.wait, Some(PATIENCE))? {
            Order::Rest => Ok(()),
            other => bail!("{other:?} was not due"),
        }
    }
}
