//! Fetching an offered message straight to its destination.

use crate::endpoint::Endpoint;
use crate::receive::{Label, Taken};
use crate::{Outcome, Peer, Sink};
use bellwire::{
    Buffer, Error, Get, LocalChain, MemoryRegion, RemoteChain, RemoteKey, RemoteSlice, Rights,
    Status,
};

/// The content of an offer, without its label.
pub(crate) struct Offer {
    /// The sender's memory, part by part.
    pub(crate) keys: Vec<RemoteKey>,
}

/// An offered message that is being fetched.
pub(crate) struct Transfer {
    label: Label,
    keys: Vec<RemoteKey>,
    taken: Taken,
    /// Bytes to fetch: as many as there is room for.
    total: usize,
    /// Our registered memory, while the fetch is posted.
    regions: Vec<MemoryRegion>,
}

impl Transfer {
    pub(crate) fn is_from(&self, peer: Peer) -> bool {
        self.label.peer == peer
    }
}

impl Endpoint {
    /// Fetches a message for a receive.
    #[cold]
    pub(crate) fn fetch(&mut self, label: Label, offer: Offer, taken: Taken, sink: &mut impl Sink) {
        let total = label.length.min(taken.into.len());
        let transfer = Transfer { label, keys: offer.keys, taken, total, regions: Vec::new() };
        if total == 0 {
            self.end_transfer(transfer, Status::Success, sink);
            return;
        }
        let number = self.transfers.insert(transfer);
        // Transfers that wait for room go first.
        if !self.unfetched.is_empty() || !self.post_fetch(number, sink) {
            self.unfetched.push_back(number);
        }
    }

    /// Posts fetches that had to wait. Returns how many.
    pub(crate) fn fetch_waiting(&mut self, sink: &mut impl Sink) -> usize {
        let mut started = 0;
        while let Some(&number) = self.unfetched.front() {
            if !self.post_fetch(number, sink) {
                break;
            }
            self.unfetched.pop_front();
            started += 1;
        }
        started
    }

    /// Posts the fetch of a transfer. `false`: there is no room now.
    fn post_fetch(&mut self, number: u64, sink: &mut impl Sink) -> bool {
        let Some(transfer) = self.transfers.find(number) else { return true };
        let peer = &mut self.peers[transfer.label.peer];
        let (mut left, mut sources) = (transfer.total as u64, Vec::with_capacity(1));
        for key in &transfer.keys {
            let length = key.length.min(left);
            left -= length;
            if length > 0 {
                sources.push(key.slice(0, length));
            }
        }
        let posted = (|| {
            let (mut left, mut parts) = (transfer.total, Vec::with_capacity(1));
            for span in transfer.taken.into.parts() {
                let span = span.part(0, left);
                left -= span.len();
                if !span.is_empty() {
                    let region = span.register(&mut self.function, Rights::empty())?;
                    parts.push(Buffer::from(&region));
                    transfer.regions.push(region);
                }
            }
            let pair = peer.fetch_pair(&mut self.function, self.completions)?;
            let get = Get::new(remote(sources), local(parts)).context(number);
            self.function.post_get(pair, get).map_err(|refused| refused.error)
        })();
        let Err(error) = posted else { return true };
        for region in std::mem::take(&mut transfer.regions) {
            let released = self.function.deregister_foreign(&region);
            debug_assert!(released.is_ok(), "{released:?}");
        }
        if matches!(error, Error::QueueFull { .. } | Error::Exhausted { .. }) {
            return false;
        }
        tracing::warn!("a message cannot be fetched: {error}");
        let transfer = self.transfers.remove(number).expect("found above");
        self.end_transfer(transfer, Status::ProtocolViolation, sink);
        true
    }

    /// The fetch of a transfer has ended.
    pub(crate) fn fetched(&mut self, number: u64, status: Status, sink: &mut impl Sink) {
        let Some(mut transfer) = self.transfers.remove(number) else { return };
        for region in std::mem::take(&mut transfer.regions) {
            let released = self.function.deregister_foreign(&region);
            debug_assert!(released.is_ok(), "{released:?}");
        }
        self.end_transfer(transfer, status, sink);
    }

    fn end_transfer(&mut self, transfer: Transfer, status: Status, sink: &mut impl Sink) {
        let Transfer { label, taken, total, .. } = transfer;
        let (length, outcome) = match status {
            Status::Success => (total, Outcome::Success),
            failed => (0, Outcome::Failed(failed)),
        };
        self.received(&label, length, taken, outcome, sink);
        // After our own completion: the sender may expect our program to see the message.
        if let Some(number) = label.number {
            self.tell_finished(label.peer, number, u64::from(!status.is_success()));
        }
    }
}

/// One part needs no list.
pub(crate) fn remote(mut sources: Vec<RemoteSlice>) -> RemoteChain {
    match sources.len() {
        1 => sources.remove(0).into(),
        _ => sources.into(),
    }
}

pub(crate) fn local(mut parts: Vec<Buffer>) -> LocalChain {
    match parts.len() {
        1 => parts.remove(0).into(),
        _ => parts.into(),
    }
}
