//! Leaders of several pairs of a simulated device, each in a thread of its own. They wait for each
//! other only through the device, because only then is every run the same. All act in step, and
//! each learns the others' measurements.

use super::end::{CONTROL_BYTES, End, PATIENCE};
use crate::talk::Queue;
use anyhow::{Context, Result};
use bellwire::{Address, Error, Wait};
use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

/// The number that the first leader listens on.
const NUMBER: u32 = 2;

/// The greeting of the others when they connect to it.
const CREW: &[u8] = b"bellwire perf crew 1";

/// Values that members share: a place for each member.
pub type Board = Arc<Mutex<Vec<Option<Box<dyn Any + Send>>>>>;

pub struct Crew {
    pub member: usize,
    board: Board,
    /// The first member: a queue to each other member. The others: one queue to the first.
    queues: Vec<Queue>,
}

/// A board with a place for each of `members`.
pub fn board(members: u8) -> Board {
    Arc::new(Mutex::new((0..members).map(|_| None).collect()))
}

impl Crew {
    /// Joins as number `member`, with its own `end`; `first` is the address of the first member's
    /// function.
    pub fn join(end: &mut End, member: u8, board: Board, first: Address) -> Result<Crew> {
        let members = board.lock().unwrap_or_else(PoisonError::into_inner).len();
        let function = &mut end.function;
        let mut queues = Vec::new();
        for _ in 0..if member == 0 { members - 1 } else { 1 } {
            let queue = Queue::create(function, 4)?;
            queue.post_receive(function, CONTROL_BYTES)?;
            queues.push(queue);
        }
        if member == 0 {
            let listener = function.listen(NUMBER)?;
            for queue in &queues {
                queue.accept(function, listener, CREW, Some(PATIENCE))?;
            }
            function.stop_listening(listener)?;
        } else {
            let to = Address { queue_pair: NUMBER, ..first };
            for queue in &queues {
                function.connect(queue.pair, to, CREW, PATIENCE)?;
            }
        }
        Ok(Crew { member: member.into(), board, queues })
    }

    /// Waits until all members are here.
    pub fn meet(&self, end: &mut End) -> Result<()> {
        if self.member > 0 {
            self.say(end)?;
        }
        self.hear(end).context("the other pairs do not come")?;
        if self.member == 0 {
            self.say(end)?;
        }
        Ok(())
    }

    /// Shares a value with the others, and returns all members' values in their order.
    pub fn share<T: Any + Clone + Send>(&self, end: &mut End, own: T) -> Result<Vec<T>> {
        let lock = || self.board.lock().unwrap_or_else(PoisonError::into_inner);
        lock()[self.member] = Some(Box::new(own));
        self.meet(end)?;
        // No member writes its next value before all have met again.
        let told = lock();
        let each = told.iter().map(|told| told.as_ref()?.downcast_ref::<T>().cloned());
        each.collect::<Option<_>>().context("the pairs are out of step")
    }

    fn say(&self, end: &mut End) -> Result<()> {
        for queue in &self.queues {
            let send = bellwire::Message::inline(b"0").unsignaled();
            end.function.post_send(queue.pair, send).map_err(Error::from)?;
        }
        Ok(())
    }

    fn hear(&self, end: &mut End) -> Result<()> {
        let patience = Some(PATIENCE);
        self.queues.iter().try_for_each(|queue| {
            queue.hear::<u8>(&mut end.function, CONTROL_BYTES, Wait::Block, patience).map(drop)
        })
    }
}
