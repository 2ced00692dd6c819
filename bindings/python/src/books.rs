//! What the binding knows of posted descriptors: the objects to give back, and which call waits
//! for which completion.

use crate::held::Held;
use crate::post::Data;
use bellwire::{Completion, CompletionQueue, Function, MemoryRegion};
use pyo3::prelude::*;
use std::collections::{HashMap, HashSet, VecDeque};

/// Some memory of this descriptor is registered for it alone.
pub const TRANSIENT: u64 = 1 << 63;
/// A call waits for this completion, so no other gets it.
pub const CLAIMED: u64 = 1 << 62;
/// The program wants no completion if it succeeds.
pub const SILENT: u64 = 1 << 61;
/// The other bits are an index.
const INDEX: u64 = SILENT - 1;

/// The objects of a posted descriptor.
pub struct Pending {
    pub context: Py<PyAny>,
    /// What the program posted, in order.
    pub buffers: Vec<Py<PyAny>>,
    /// Keeps the memory of those until the library is done with it.
    pub data: Vec<Data>,
    /// The regions that were registered for this descriptor alone.
    pub transient: Vec<MemoryRegion>,
}

/// A region whose handle the program dropped, to be deregistered when the function is free.
pub type Dead = (MemoryRegion, Option<Held>);

#[derive(Default)]
pub struct Books {
    pending: Vec<Option<Pending>>,
    free: Vec<u64>,
    /// Completions of waiting calls, that other calls have taken from the queue.
    results: HashMap<u64, Completion>,
    /// Completions that waiting calls have taken from the queue, for the program.
    aside: HashMap<CompletionQueue, VecDeque<Completion>>,
    /// Successes that the program does not want to see.
    silent: Vec<u64>,
    pub dead: Vec<Dead>,
    /// Descriptors whose waiting call has given up.
    abandoned: HashSet<u64>,
    /// Of each queue pair: the receives whose call has given up, oldest first. The next messages
    /// arrive in their buffers.
    left: HashMap<u32, Vec<u64>>,
}

impl Books {
    /// Enters a descriptor. The number goes with it as its context.
    pub fn enter(&mut self, pending: Pending, flags: u64) -> u64 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.pending.push(None);
            self.pending.len() as u64 - 1
        });
        self.pending[slot as usize] = Some(pending);
        // Zero is the context of events, which nobody posted.
        (slot + 1) | flags
    }

    /// Takes a descriptor out. Dropping it needs the interpreter.
    pub fn leave(&mut self, token: u64) -> Option<Pending> {
        let slot = (token & INDEX).checked_sub(1)?;
        let pending = self.pending.get_mut(slot as usize)?.take();
        if pending.is_some() {
            self.free.push(slot);
            if !self.left.is_empty() {
                self.left.values_mut().for_each(|left| left.retain(|&other| other != token));
                self.left.retain(|_, left| !left.is_empty());
            }
        }
        pending
    }

    /// Ends the regions that were registered for this descriptor alone. It is done, and its
    /// buffers are gone.
    pub fn end(&mut self, function: &mut Function, token: u64) {
        if token & TRANSIENT == 0 {
            return;
        }
        let slot = (token & INDEX).checked_sub(1).map(|slot| slot as usize);
        let pending = slot.and_then(|slot| self.pending.get_mut(slot)?.as_mut());
        for region in pending.into_iter().flat_map(|pending| pending.transient.drain(..)) {
            // It cannot fail: the region is there, and nothing uses it any more.
            let ended = function.deregister_foreign(&region);
            debug_assert!(ended.is_ok(), "{ended:?}");
        }
    }

    /// The call that waited for this completion gives up. The program gets it from the queue, or,
    /// if it is that of a receive, by the next receive of the same queue pair.
    pub fn abandon(&mut self, queue: CompletionQueue, token: u64, receiver: Option<u32>) {
        if let Some(left) = receiver.map(|receiver| self.left.entry(receiver).or_default())
            && !left.contains(&token)
        {
            left.push(token);
        }
        match self.results.remove(&token) {
            Some(completion) => self.aside.entry(queue).or_default().push_back(completion),
            None => drop(self.abandoned.insert(token)),
        }
    }

    /// The oldest receive of a queue pair that its call has abandoned. Another call waits for it
    /// now.
    pub fn reclaim(&mut self, queue: CompletionQueue, receiver: u32) -> Option<u64> {
        for &token in self.left.get(&receiver)? {
            if self.abandoned.remove(&token) {
                return Some(token);
            }
            let mut aside = self.aside.get_mut(&queue);
            let at = aside.iter().flat_map(|aside| aside.iter()).position(|of| of.context == token);
            if let Some(completion) = at.and_then(|at| aside.as_mut()?.remove(at)) {
                self.results.insert(token, completion);
                return Some(token);
            }
            // Another thread waits for it, or takes its completion from the queue just now.
        }
        None
    }

    /// Whether something waits for [`Books::sweep`].
    pub fn has_rubbish(&self) -> bool {
        !self.silent.is_empty() || !self.dead.is_empty()
    }

    /// The descriptors that succeeded silently.
    pub fn sweep(&mut self) -> Vec<Pending> {
        let silent = std::mem::take(&mut self.silent);
        silent.into_iter().filter_map(|token| self.leave(token)).collect()
    }

    /// Everything, when the function is closed.
    pub fn clear(&mut self) -> (Vec<Option<Pending>>, Vec<Dead>) {
        self.free.clear();
        self.results.clear();
        self.aside.clear();
        self.silent.clear();
        self.abandoned.clear();
        self.left.clear();
        (std::mem::take(&mut self.pending), std::mem::take(&mut self.dead))
    }

    /// Forgets the completions of a queue that is destroyed.
    pub fn forget(&mut self, queue: CompletionQueue) -> VecDeque<Completion> {
        self.aside.remove(&queue).unwrap_or_default()
    }

    /// Puts a completion back that the program has not seen.
    pub fn put_back(&mut self, queue: CompletionQueue, completion: Completion) {
        self.aside.entry(queue).or_default().push_front(completion);
    }

    /// Whether a completion is here for the program, or the one that a call waits for.
    pub fn take(&mut self, queue: CompletionQueue, mine: Option<u64>) -> Option<Completion> {
        match mine {
            Some(_) if self.results.is_empty() => None,
            Some(token) => self.results.remove(&token),
            None if self.aside.is_empty() => None,
            None => self.aside.get_mut(&queue)?.pop_front(),
        }
    }

    /// Files a completion that comes from the function: ends the regions of its descriptor, and
    /// returns it if it is the wanted one.
    pub fn file(
        &mut self,
        function: &mut Function,
        queue: CompletionQueue,
        mut completion: Completion,
        mine: Option<u64>,
    ) -> Option<Completion> {
        let token = completion.context;
        // The program's own objects are here.
        (completion.buffer, completion.rest) = (None, None);
        self.end(function, token);
        if token & SILENT != 0 && completion.status.is_success() {
            self.silent.push(token);
            return None;
        }
        let is_claimed = token & CLAIMED != 0 && !self.abandoned.remove(&token);
        if mine.map_or(!is_claimed, |mine| mine == token) {
            return Some(completion);
        }
        if is_claimed {
            self.results.insert(token, completion);
        } else {
            self.aside.entry(queue).or_default().push_back(completion);
        }
        None
    }
}
