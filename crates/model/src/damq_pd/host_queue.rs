//! The send queue of a port in host memory, for descriptors that go by DMA (D-20).

use std::collections::VecDeque;

use super::process::Message;

/// Descriptors from the process's tail to the interface's head. An entry is free again when its descriptor has left the interface.
#[derive(Clone, Debug, Default)]
pub struct HostQueue {
    /// Written by the process and not yet asked for by the prefetcher.
    waiting: VecDeque<Message>,
    /// Entries that the process takes for used.
    pub used: usize,
    /// The most entries that were ever used.
    pub most: usize,
}

impl HostQueue {
    /// The process writes an entry.
    pub fn write(&mut self, message: Message) {
        self.waiting.push_back(message);
        self.used += 1;
        self.most = self.most.max(self.used);
    }

    /// The entry that is fetched next.
    pub fn next(&self) -> Option<&Message> {
        self.waiting.front()
    }

    /// The prefetcher asks for it.
    pub fn fetch(&mut self) -> Option<Message> {
        self.waiting.pop_front()
    }
}
