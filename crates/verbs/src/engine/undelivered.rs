//! Short messages that the device has taken and the peer has not acknowledged. They complete when
//! the device reports their delivery, or when the link or queue pair ends. Only for devices that
//! deliver later: on the others a message that was taken has arrived.

use super::Core;
use super::work::{Ended, Outcome, Posted, Work};
use bellwire_device::{Address, Buffer, LinkId, Operation as Finished, Status};
use bellwire_ring::canary::planted;

/// A message in flight. It still counts as a posted descriptor of its queue pair and keeps its
/// completion entry reserved.
pub(crate) struct Undelivered {
    /// Its packet's number on its link.
    pub(super) receipt: u64,
    pub(super) slot: u32,
    pub(super) signaled: bool,
    pub(super) to: Address,
    pub(super) context: u64,
    pub(super) length: usize,
    pub(super) buffer: Option<Buffer>,
}

impl Undelivered {
    /// A message that was queued and has now left with `receipt`.
    pub(super) fn of(posted: Posted, slot: u32, length: usize, receipt: u64) -> Self {
        let Posted { to, context, signaled, work, .. } = posted;
        let Work::Message(message) = work else { unreachable!("only messages have receipts") };
        let buffer = message.data.into_buffer();
        Undelivered { receipt, slot, signaled, to, context, length, buffer }
    }
}

impl Core {
    /// Keeps a message until it is delivered. Its descriptor already counts as posted.
    #[inline]
    pub(super) fn await_delivery(&mut self, link: LinkId, message: Undelivered) {
        if planted("complete-on-taking") {
            return self.complete_delivery(message, Status::Success);
        }
        match self.links.find_mut(link) {
            Some(link) => link.undelivered.push_back(message),
            None => self.complete_delivery(message, Status::PeerGone),
        }
    }

    /// The peer has the first `count` packets of a link.
    pub(super) fn on_delivered(&mut self, link: LinkId, count: u64) {
        let Some(entry) = self.links.find_mut(link) else { return };
        let mut undelivered = std::mem::take(&mut entry.undelivered);
        while undelivered.front().is_some_and(|message| message.receipt <= count) {
            let Some(message) = undelivered.pop_front() else { break };
            self.complete_delivery(message, Status::Success);
        }
        if let Some(entry) = self.links.find_mut(link) {
            entry.undelivered = undelivered;
        }
    }

    /// Completes the undelivered messages of a queue pair: no report of their delivery will follow.
    pub(super) fn forget_undelivered(&mut self, slot: u32, why: Status) {
        for message in self.links.take_undelivered(slot) {
            self.complete_delivery(message, why);
        }
    }

    pub(super) fn complete_delivery(&mut self, message: Undelivered, status: Status) {
        let Undelivered { slot, signaled, to, context, length, buffer, .. } = message;
        let outcome =
            Outcome { status, length: if status.is_success() { length } else { 0 }, value: 0 };
        let kind = Finished::Send;
        self.finish(slot, Ended { kind, to, context, signaled, buffers: (buffer, None) }, outcome);
    }
}
