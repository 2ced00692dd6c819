//! The data path of a function that needs its transport, behind one dynamic call each.

use super::{Core, Inbox, PackedMessages};
use crate::completion_queue::{Found, Taken};
use crate::descriptor::{Destination, Report};
use crate::{Atomic, Get, Message, Put, Result};
use bellwire_device::{QueuePair, RemoteSlice, Transport};
use bellwire_ring::memory::View;

/// Slot and generation of a queue pair in one word, which calls pass in a register.
#[derive(Clone, Copy)]
pub struct Handle(u64);

impl From<QueuePair> for Handle {
    #[inline(always)]
    fn from(handle: QueuePair) -> Self {
        Handle(u64::from(handle.slot) | u64::from(handle.generation) << 32)
    }
}

impl Handle {
    /// The whole handle of the queue pair with this number.
    pub(crate) fn queue_pair(self, number: u32) -> QueuePair {
        QueuePair { number, slot: self.slot(), generation: self.generation() }
    }

    #[inline(always)]
    pub(super) fn slot(self) -> u32 {
        self.0 as u32
    }

    #[inline(always)]
    pub(super) fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// A transport as a function sees it. Every [`Transport`] implements it; no other type does.
#[allow(missing_docs)]
pub trait DynTransport: Transport {
    fn progress(&mut self, core: &mut Core) -> usize;
    /// [`Transport::look_around`].
    fn look_beside_packets(&mut self, core: &mut Core) -> bool;
    fn poll_queue<'a>(&mut self, core: &'a mut Core, queue: u32, found: Found)
    -> Option<Taken<'a>>;
    fn poll_with<'a>(
        &mut self,
        core: &'a mut Core,
        queue: u32,
        found: Found,
        inbox: &mut dyn Inbox,
    ) -> Option<Taken<'a>>;
    /// Posts a short message (`Message::short`), if it can leave at once. `false`: nothing has
    /// changed. All arguments travel in words of the call, so the descriptor is never in memory:
    /// its stores would wait behind those of the last packet, whose line another core holds.
    fn send_short(
        &mut self,
        core: &mut Core,
        from: Handle,
        bytes: &[u8],
        to: Destination,
        report: Report,
    ) -> bool;
    /// The same for an unsignaled message of two words and more bytes.
    fn send_headed(
        &mut self,
        core: &mut Core,
        from: Handle,
        head: [u64; 2],
        body: View<'_>,
        to: Destination,
    ) -> bool;
    /// The same for any message.
    fn send_at_once(&mut self, core: &mut Core, from: Handle, send: &mut Message<'_>) -> bool;
    /// Posts a message that cannot leave at once.
    fn post_waiting_send(
        &mut self,
        core: &mut Core,
        from: QueuePair,
        send: &mut Message<'_>,
    ) -> Result<()>;
    fn post_sends(
        &mut self,
        core: &mut Core,
        from: QueuePair,
        sends: &mut [Message<'_>],
        posted: &mut usize,
    ) -> Result<()>;
    /// Posts gathered messages; context, and whether more follow at once.
    fn post_packed(
        &mut self,
        core: &mut Core,
        from: QueuePair,
        to: Destination,
        packed: &mut PackedMessages,
        how: (u64, bool),
    ) -> Result<()>;
    /// The same for a short put (`Put::short`) that goes through no window yet.
    fn put_short(
        &mut self,
        core: &mut Core,
        from: Handle,
        bytes: &[u8],
        to: RemoteSlice,
        report: Report,
    ) -> bool;
    /// The same for any put.
    fn put_at_once(&mut self, core: &mut Core, from: Handle, put: &mut Put<'_>) -> bool;
    /// Posts a put that is not done at once.
    fn post_longer_put(
        &mut self,
        core: &mut Core,
        from: QueuePair,
        put: &mut Put<'_>,
    ) -> Result<()>;
    fn post_get(&mut self, core: &mut Core, from: QueuePair, get: &mut Get) -> Result<()>;
    fn post_atomic(&mut self, core: &mut Core, from: QueuePair, atomic: &Atomic) -> Result<()>;
}

impl<T: Transport> DynTransport for T {
    fn progress(&mut self, core: &mut Core) -> usize {
        core.progress(self)
    }

    fn look_beside_packets(&mut self, core: &mut Core) -> bool {
        self.look_around(core)
    }

    fn poll_queue<'a>(
        &mut self,
        core: &'a mut Core,
        queue: u32,
        found: Found,
    ) -> Option<Taken<'a>> {
        core.poll(self, queue, found)
    }

    fn poll_with<'a>(
        &mut self,
        core: &'a mut Core,
        queue: u32,
        found: Found,
        inbox: &mut dyn Inbox,
    ) -> Option<Taken<'a>> {
        core.poll_with(self, queue, found, inbox)
    }

    fn send_short(
        &mut self,
        core: &mut Core,
        from: Handle,
        bytes: &[u8],
        to: Destination,
        report: Report,
    ) -> bool {
        core.sends_at_once(self, from, &mut Message::short(bytes, to, report))
    }

    fn send_headed(
        &mut self,
        core: &mut Core,
        from: Handle,
        head: [u64; 2],
        body: View<'_>,
        to: Destination,
    ) -> bool {
        let bytes = head.map(u64::to_le_bytes);
        let mut message = Message::gathered(bytes.as_flattened(), body).unsignaled();
        message.to = to;
        core.sends_at_once(self, from, &mut message)
    }

    fn send_at_once(&mut self, core: &mut Core, from: Handle, send: &mut Message<'_>) -> bool {
        core.sends_at_once(self, from, send)
    }

    fn post_waiting_send(
        &mut self,
        core: &mut Core,
        from: QueuePair,
        send: &mut Message<'_>,
    ) -> Result<()> {
        core.post_waiting_send(self, from, send)
    }

    fn post_sends(
        &mut self,
        core: &mut Core,
        from: QueuePair,
        sends: &mut [Message<'_>],
        posted: &mut usize,
    ) -> Result<()> {
        core.post_sends(self, from, sends, posted)
    }

    fn post_packed(
        &mut self,
        core: &mut Core,
        from: QueuePair,
        to: Destination,
        packed: &mut PackedMessages,
        how: (u64, bool),
    ) -> Result<()> {
        core.post_packed(self, from, to, packed, how)
    }

    fn put_short(
        &mut self,
        core: &mut Core,
        from: Handle,
        bytes: &[u8],
        to: RemoteSlice,
        report: Report,
    ) -> bool {
        core.puts_piece(self, from, View::of(bytes), &to, report).is_some()
    }

    fn put_at_once(&mut self, core: &mut Core, from: Handle, put: &mut Put<'_>) -> bool {
        core.puts_at_once(self, from, put)
    }

    fn post_longer_put(
        &mut self,
        core: &mut Core,
        from: QueuePair,
        put: &mut Put<'_>,
    ) -> Result<()> {
        core.post_longer_put(self, from, put)
    }

    fn post_get(&mut self, core: &mut Core, from: QueuePair, get: &mut Get) -> Result<()> {
        core.post_get(self, from, get)
    }

    fn post_atomic(&mut self, core: &mut Core, from: QueuePair, atomic: &Atomic) -> Result<()> {
        core.post_atomic(self, from, atomic)
    }
}
