//! The data path of a function that needs its transport, behind one dynamic call each.

use super::{Core, Inbox};
use crate::completion_queue::Taken;
use crate::{Atomic, Get, Message, Put, Result};
use bellwire_device::{QueuePair, Transport};

/// A transport as a function sees it. Every [`Transport`] implements it; no other type does.
#[allow(missing_docs)]
pub trait DynTransport: Transport {
    fn progress(&mut self, core: &mut Core) -> usize;
    fn poll_queue<'a>(&mut self, core: &'a mut Core, queue: u32) -> Option<Taken<'a>>;
    fn poll_with<'a>(
        &mut self,
        core: &'a mut Core,
        queue: u32,
        inbox: &mut dyn Inbox,
    ) -> Option<Taken<'a>>;
    fn post_send(&mut self, core: &mut Core, from: QueuePair, send: &mut Message<'_>)
    -> Result<()>;
    fn post_sends(
        &mut self,
        core: &mut Core,
        from: QueuePair,
        sends: &mut [Message<'_>],
        posted: &mut usize,
    ) -> Result<()>;
    fn post_put(&mut self, core: &mut Core, from: QueuePair, put: &mut Put<'_>) -> Result<()>;
    fn post_get(&mut self, core: &mut Core, from: QueuePair, get: &mut Get) -> Result<()>;
    fn post_atomic(&mut self, core: &mut Core, from: QueuePair, atomic: &Atomic) -> Result<()>;
}

impl<T: Transport> DynTransport for T {
    fn progress(&mut self, core: &mut Core) -> usize {
        core.progress(self)
    }

    fn poll_queue<'a>(&mut self, core: &'a mut Core, queue: u32) -> Option<Taken<'a>> {
        core.poll(self, queue)
    }

    fn poll_with<'a>(
        &mut self,
        core: &'a mut Core,
        queue: u32,
        inbox: &mut dyn Inbox,
    ) -> Option<Taken<'a>> {
        core.poll_with(self, queue, inbox)
    }

    fn post_send(
        &mut self,
        core: &mut Core,
        from: QueuePair,
        send: &mut Message<'_>,
    ) -> Result<()> {
        core.post_send(self, from, send)
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

    fn post_put(&mut self, core: &mut Core, from: QueuePair, put: &mut Put<'_>) -> Result<()> {
        core.post_put(self, from, put)
    }

    fn post_get(&mut self, core: &mut Core, from: QueuePair, get: &mut Get) -> Result<()> {
        core.post_get(self, from, get)
    }

    fn post_atomic(&mut self, core: &mut Core, from: QueuePair, atomic: &Atomic) -> Result<()> {
        core.post_atomic(self, from, atomic)
    }
}
