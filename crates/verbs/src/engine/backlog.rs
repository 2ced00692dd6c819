//! Messages that arrived before a receive was posted for them.
//!
//! All queue pairs share one memory without fixed parts (DAMQ, D-01, D-02). A queue pair that takes
//! too much of it stops its gate. Its senders wait until it has been read (STOP and GO, H-15,
//! H-16). So a program that neglects one queue pair does not starve the others.

use bellwire_device::{FunctionAddress, Kind, LinkId, PacketHeader};
use bellwire_protocol::{Damq, GatePolicy, Signal};
use bellwire_ring::memory::View;

/// Bytes in a cell: a short message takes one.
const CELL_BYTES: usize = 256;

/// All facts about a waiting message beside its bytes.
#[derive(Clone, Copy)]
pub(crate) struct Waiting {
    pub(crate) kind: Kind,
    pub(crate) link: LinkId,
    pub(crate) link_generation: u32,
    pub(crate) from: FunctionAddress,
    pub(crate) header: PacketHeader,
}

impl Default for Waiting {
    fn default() -> Self {
        Waiting {
            kind: Kind::Send,
            link: LinkId(0),
            link_generation: 0,
            from: FunctionAddress::default(),
            header: PacketHeader::new(Kind::Send, 0, 0, 0),
        }
    }
}

/// The backlog of a function. Its memory is allocated when the first message has to wait.
pub(crate) struct Backlog {
    bytes: usize,
    queue_pairs: usize,
    store: Option<Box<Store>>,
}

struct Store {
    queues: Damq<Waiting>,
    policy: GatePolicy,
}

/// There is no room: the packet stays in its link.
pub(crate) struct Full;

impl Backlog {
    /// `bytes` of memory for the queue pairs in slots below `queue_pairs`.
    pub(crate) fn new(bytes: usize, queue_pairs: usize) -> Self {
        Backlog { bytes, queue_pairs, store: None }
    }

    /// Appends a message to the queue pair's. Returns a signal for its senders if there is one.
    pub(crate) fn push(
        &mut self,
        slot: u32,
        waiting: Waiting,
        payload: View<'_>,
    ) -> Result<Option<Signal>, Full> {
        let store = self.store.get_or_insert_with(|| {
            let cells = (self.bytes / CELL_BYTES).max(1);
            Box::new(Store {
                queues: Damq::new(cells, CELL_BYTES, self.queue_pairs),
                policy: GatePolicy::new(self.queue_pairs),
            })
        });
        let copy = |offset, piece: &mut [u8]| payload.read(offset, piece);
        store.queues.push(slot, waiting, payload.len(), copy).map_err(|_| Full)?;
        Ok(store.observe(slot))
    }

    /// The queue pair's oldest message and its length in bytes.
    pub(crate) fn front(&self, slot: u32) -> Option<(Waiting, usize)> {
        self.store.as_ref()?.queues.front(slot)
    }

    /// Takes the queue pair's oldest message. `read` gets its bytes, piece by piece.
    pub(crate) fn pop(&mut self, slot: u32, read: impl FnMut(usize, &[u8])) -> Option<Signal> {
        let store = self.store.as_mut()?;
        store.queues.pop(slot, read);
        store.observe(slot)
    }

    /// Whether a message of `length` bytes would fit.
    pub(crate) fn has_room(&self, length: usize) -> bool {
        self.store
            .as_ref()
            .is_none_or(|store| store.queues.cells_for(length) <= store.queues.free_cells())
    }

    /// Messages of a queue pair.
    pub(crate) fn messages_of(&self, slot: u32) -> usize {
        self.store.as_ref().map_or(0, |store| store.queues.messages_of(slot))
    }
}

impl Store {
    fn observe(&mut self, slot: u32) -> Option<Signal> {
        self.policy.observe(slot, self.queues.cells_of(slot), self.queues.free_cells())
    }
}
