//! The send queue of a port in host memory, for descriptors that go by DMA (D-20).

use std::collections::VecDeque;

use super::process::Message;

/// Descriptors from the process's tail to the interface's head. An entry becomes free when its
/// descriptor has left the interface.
#[derive(Clone, Debug, Default)]
pub struct HostQueue {
    /// Descriptors that the process has written and the prefetcher has not requested.
    pub waiting: VecDeque<Message>,
    /// Entries that the process counts as used.
    pub used: usize,
    /// The peak of `used`.
    pub most: usize,
}

impl HostQueue {
    /// The process writes an entry.
    pub fn write(&mut self, message: Message) {
        self.waiting.push_back(message);
        self.used += 1;
        self.most = self.most.max(self.used);
    }
}
