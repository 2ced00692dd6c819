//! What a queue pair knows of its peer's memory.

use crate::memory::RemoteMemory;
use std::collections::HashMap;

/// Keys of one peer that are remembered.
const KEYS: usize = 4096;

/// Memory of a peer, by its keys.
#[derive(Default)]
pub(crate) struct RemoteKeys {
    all: HashMap<u32, RemoteMemory>,
    /// The key that was used last: most programs use one for long.
    last: Option<(u32, RemoteMemory)>,
}

impl RemoteKeys {
    #[inline]
    pub(crate) fn get(&mut self, key: u32) -> Option<RemoteMemory> {
        match self.last {
            Some((last, memory)) if last == key => Some(memory),
            _ => self.find(key),
        }
    }

    fn find(&mut self, key: u32) -> Option<RemoteMemory> {
        let memory = *self.all.get(&key)?;
        self.last = Some((key, memory));
        Some(memory)
    }

    pub(crate) fn insert(&mut self, key: u32, memory: RemoteMemory) {
        // The peer is asked again for those that are forgotten.
        if self.all.len() >= KEYS {
            self.all.clear();
        }
        self.all.insert(key, memory);
        self.last = None;
    }

    pub(crate) fn remove(&mut self, key: u32) {
        self.all.remove(&key);
        self.last = None;
    }

    pub(crate) fn clear(&mut self) {
        *self = RemoteKeys::default();
    }
}
