//! The side that gives the orders and takes the times.

use super::arena::arena_bytes;
use super::crew::{Board, Crew};
use super::end::{End, PATIENCE};
use super::order::{Answer, Op, Order, Transfers, WaitMode};
use super::plan::Plan;
use anyhow::{Context, Result, bail};
use bellwire::{Address, Device, Wait};
use std::any::Any;
use std::sync::Barrier;
use std::thread::ScopedJoinHandle;
use std::time::Instant;

/// Round trips timed as one while they are short. Reading the clock costs about 25 ns, so each of
/// eight round trips carries 3 ns of it.
const SHORT_BATCH: u64 = 8;

/// Round trips of at least this many nanoseconds are timed one by one.
const LONG_NS: f64 = 4e3;

/// Connected pairs, driven together.
pub struct Leader {
    pairs: Vec<Pair>,
    /// The leaders of the other pairs, if each pair has its own, and the time at which all of them
    /// know the others' values.
    crew: Option<(Crew, Instant)>,
}

struct Pair {
    end: End,
    cpu: Option<usize>,
}

pub struct Latency {
    /// One-way times in nanoseconds (for a get: the whole operation), each the mean of a batch.
    pub times_ns: Vec<f64>,
    /// Round trips in a batch.
    pub batch: u64,
}

pub struct Stream {
    /// Messages per second of each pair.
    pub rates: Vec<f64>,
    /// Messages per second of all pairs, over the time of the slowest.
    pub total: f64,
}

/// The processor of a pair: number `pair` modulo their count, or `None` if there are none.
pub fn cpu_of(cpus: &[usize], pair: usize) -> Option<usize> {
    (!cpus.is_empty()).then(|| cpus[pair % cpus.len()])
}

impl Leader {
    /// Connects `pairs` functions to the follower's, whose first is at `follower`, and has both
    /// sides allocate memory for `sizes`. `own_cpus` and `their_cpus`: their processors, in turn.
    pub fn connect(
        device: &Device,
        follower: Address,
        pairs: u8,
        wait: WaitMode,
        (own_cpus, their_cpus): (&[usize], &[usize]),
        sizes: &[usize],
    ) -> Result<Leader> {
        let mut leader = Leader { pairs: Vec::new(), crew: None };
        for number in 0..pairs {
            let mut end = End::open(device, number)?;
            end.connect(follower.node, follower.function + number)?;
            let cpu = cpu_of(their_cpus, number.into());
            prepare(&mut end, pairs, wait, cpu, sizes)?;
            leader.pairs.push(Pair { end, cpu: cpu_of(own_cpus, number.into()) });
        }
        Ok(leader)
    }

    /// Makes the leader of `end`, one of several leaders with a pair each; `first` is the address
    /// of the first leader's function.
    pub fn join(
        mut end: End,
        (number, board): (u8, Board),
        (first, follower): (Address, Address),
        plan: &Plan,
    ) -> Result<Leader> {
        end.connect(follower.node, follower.function + number)?;
        prepare(&mut end, plan.pairs, plan.wait, None, &plan.sizes)?;
        let crew = Crew::join(&mut end, number, board, first)?;
        let now = end.function.now();
        Ok(Leader { pairs: vec![Pair { end, cpu: None }], crew: Some((crew, now)) })
    }

    /// Whether another leader reports the progress of all.
    pub fn is_silent(&self) -> bool {
        self.crew.as_ref().is_some_and(|(crew, _)| crew.member > 0)
    }

    /// Has every byte of `count` transfers compared.
    pub fn verify(&mut self, op: Op, bytes: usize, count: u64) -> Result<()> {
        self.begin(&Order::Verify(Transfers { op, bytes, count }))?;
        self.all(|end| {
            match op {
                Op::Send => end.send_patterns(bytes, count)?,
                Op::Put => {
                    end.fill_slots(bytes, count)?;
                    end.put_slots(bytes, count)?;
                }
                Op::Get => {
                    end.spoil_slots(bytes, count)?;
                    end.get_slots(bytes, count)?;
                    end.check_slots(bytes, count)?;
                    end.say(&Order::Rest)?;
                }
            }
            done(end)
        })?;
        Ok(())
    }

    /// Round trips on all pairs at once, `count` in each.
    pub fn latency(&mut self, op: Op, bytes: usize, count: u64, short: bool) -> Result<Latency> {
        let batch = if short { SHORT_BATCH } else { 1 };
        let batches = count.div_ceil(batch);
        let count = batches * batch;
        self.begin(&Order::PingPong(Transfers { op, bytes, count }))?;
        let times = self.all(|end| {
            let times = match op {
                Op::Send => ping_pong_send(end, bytes, batches, batch)?,
                Op::Put => ping_pong_put(end, bytes, batches, batch)?,
                Op::Get => {
                    let times = timed(end, batches, batch, |end, _| end.get(bytes))?;
                    end.say(&Order::Rest)?;
                    times
                }
            };
            done(end)?;
            Ok(times)
        })?;
        // A get is complete when the data is here; for other operations a round trip is two
        // messages.
        let messages = if op == Op::Get { 1.0 } else { 2.0 };
        let times_ns = times.into_iter().flatten().map(|time_ns| time_ns / messages).collect();
        Ok(Latency { times_ns, batch })
    }

    /// Whether round trips of this one-way time are timed in batches.
    pub fn is_short(one_way_ns: f64) -> bool {
        2.0 * one_way_ns < LONG_NS
    }

    /// A stream on all pairs at once, `count` transfers in each.
    pub fn stream(&mut self, op: Op, bytes: usize, count: u64) -> Result<Stream> {
        self.begin(&Order::Stream(Transfers { op, bytes, count }))?;
        let spans = self.all(|end| {
            let start = end.function.now();
            match op {
                // Complete when the receiving program has seen the last message.
                Op::Send => {
                    end.stream_out(bytes, count)?;
                    done(end)?;
                    Ok((start, end.function.now()))
                }
                Op::Put | Op::Get => {
                    end.stream_alone(op == Op::Put, bytes, count)?;
                    let span = (start, end.function.now());
                    end.say(&Order::Rest)?;
                    done(end)?;
                    Ok(span)
                }
            }
        })?;
        let rate = |count: u64, (start, end): (Instant, Instant)| {
            count as f64 / (end - start).as_secs_f64().max(1e-9)
        };
        let first = spans.iter().map(|span| span.0).min().context("no pair")?;
        let last = spans.iter().map(|span| span.1).max().context("no pair")?;
        let total = rate(count * spans.len() as u64, (first, last));
        Ok(Stream { rates: spans.iter().map(|&span| rate(count, span)).collect(), total })
    }

    /// The time, by the device's clock.
    pub fn now(&self) -> Instant {
        match &self.crew {
            // All leaders must read the same time.
            Some((_, known)) => *known,
            None => self.pairs.first().map_or_else(Instant::now, |pair| pair.end.function.now()),
        }
    }

    /// Tells the followers to leave.
    pub fn bye(mut self) -> Result<()> {
        self.pairs.iter_mut().try_for_each(|pair| pair.end.say_last(&Order::Bye))
    }

    /// Gives an order to all followers and waits until they are ready.
    fn begin(&mut self, order: &Order) -> Result<()> {
        for pair in &mut self.pairs {
            pair.end.say(order)?;
            match answer(&mut pair.end, Wait::Adaptive)? {
                Answer::Ready { .. } => {}
                other => bail!("{other:?} was not due"),
            }
        }
        Ok(())
    }

    /// Runs `work` with every pair at once, each on a thread and processor of its own.
    fn all<T: Any + Clone + Send>(
        &mut self,
        work: impl Fn(&mut End) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        if let [Pair { end, .. }] = &mut self.pairs[..] {
            let Some((crew, known)) = &mut self.crew else { return Ok(vec![work(end)?]) };
            crew.meet(end)?;
            let found = (work(end)?, end.function.now());
            let all = crew.share(end, found)?;
            *known = all.iter().map(|(_, now)| *now).max().context("no pair")?;
            return Ok(all.into_iter().map(|(found, _)| found).collect());
        }
        let barrier = Barrier::new(self.pairs.len());
        std::thread::scope(|scope| {
            let start = |pair| {
                let (work, barrier) = (&work, &barrier);
                scope.spawn(move || {
                    let Pair { end, cpu }: &mut Pair = pair;
                    // Without pinning, figures are worse but not wrong; the first pair has already
                    // reported the failure.
                    let _ = cpu.map(crate::cpu::stay_on);
                    barrier.wait();
                    work(end)
                })
            };
            let threads: Vec<_> = self.pairs.iter_mut().map(start).collect();
            join_all(threads)
        })
    }
}

/// The results of all threads, or the first error.
pub fn join_all<T>(threads: Vec<ScopedJoinHandle<'_, Result<T>>>) -> Result<Vec<T>> {
    // Join all before returning the first error.
    let joined: Vec<Result<T>> = threads
        .into_iter()
        .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        .collect();
    joined.into_iter().collect()
}

/// Makes both sides of a connected pair allocate memory for `sizes`.
fn prepare(
    end: &mut End,
    pairs: u8,
    wait: WaitMode,
    their_cpu: Option<usize>,
    sizes: &[usize],
) -> Result<()> {
    end.wait = wait.into();
    let region = end.allocate(arena_bytes(sizes))?;
    end.say(&Order::Prepare {
        pairs,
        wait,
        cpu: their_cpu,
        arena_bytes: region.len(),
        key: region.remote_key().into(),
    })?;
    match answer(end, Wait::Adaptive)? {
        Answer::Ready { key: Some(key) } => end.use_arena(region, key.open()?),
        other => bail!("{other:?} was not due"),
    }
}

fn ping_pong_send(end: &mut End, bytes: usize, batches: u64, batch: u64) -> Result<Vec<f64>> {
    let mut to_post = end.post_receives(bytes, batches * batch)?;
    timed(end, batches, batch, |end, stamp| {
        end.send(bytes, stamp)?;
        let buffer = end.receive(bytes, stamp)?;
        end.post_again(buffer, &mut to_post)
    })
}

fn ping_pong_put(end: &mut End, bytes: usize, batches: u64, batch: u64) -> Result<Vec<f64>> {
    let event = end.event_of()?;
    end.clear_ball(bytes)?;
    let times = timed(end, batches, batch, |end, turn| {
        end.throw(bytes, turn + 1, event)?;
        end.catch(bytes, turn + 1, event)
    })?;
    end.settle()?;
    Ok(times)
}

/// Repeats `one` in batches, and returns the mean time of each batch in nanoseconds, by the
/// device's clock.
fn timed(
    end: &mut End,
    batches: u64,
    batch: u64,
    mut one: impl FnMut(&mut End, u64) -> Result<()>,
) -> Result<Vec<f64>> {
    let mut times = Vec::with_capacity(batches as usize);
    let mut before = end.function.now();
    for number in 0..batches {
        for turn in number * batch..(number + 1) * batch {
            one(end, turn)?;
        }
        let now = end.function.now();
        times.push((now - before).as_nanos() as f64 / batch as f64);
        before = now;
    }
    Ok(times)
}

fn done(end: &mut End) -> Result<()> {
    match answer(end, end.wait)? {
        Answer::Done => Ok(()),
        other => bail!("{other:?} was not due"),
    }
}

fn answer(end: &mut End, how: Wait) -> Result<Answer> {
    match end.hear(how, Some(PATIENCE)).context("the other side does not answer")? {
        Answer::Failed { why } => bail!("the other side: {why}"),
        answer => Ok(answer),
    }
}
