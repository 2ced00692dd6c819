//! Rendezvous: fetching an offered message straight to its destination.

use crate::completion::{Outcome, Peer, Sink, is_no_room};
use crate::control::Control;
use crate::envelope::Envelope;
use crate::matching::{Matched, Offer};
use crate::multi_receive::MultiReceives;
use crate::slots::Slots;
use crate::transport::Transport;
use bellwire::{Error, MemoryRegion, RemoteKey, Rights, Status};
use std::collections::VecDeque;

/// An offered message that is being fetched.
struct Fetch {
    envelope: Envelope,
    keys: Vec<RemoteKey>,
    matched: Matched,
    /// Bytes to fetch: as many as there is room for.
    total: usize,
    /// Our registered memory, while the fetch is posted.
    regions: Vec<MemoryRegion>,
}

/// The fetches of an endpoint.
pub(crate) struct Fetches {
    fetches: Slots<Fetch>,
    /// Fetches that are not posted yet.
    unposted: VecDeque<u64>,
}

impl Fetches {
    pub(crate) fn new() -> Fetches {
        Fetches { fetches: Slots::new(), unposted: VecDeque::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fetches.len() == 0
    }

    /// Whether fetches wait for room.
    #[inline]
    pub(crate) fn has_unposted(&self) -> bool {
        !self.unposted.is_empty()
    }

    /// Fetches a message for a receive.
    pub(crate) fn begin(
        &mut self,
        transport: &mut Transport,
        buffers: &mut MultiReceives,
        (envelope, offer, matched): (Envelope, Offer, Matched),
        sink: &mut impl Sink,
    ) {
        let total = envelope.length.min(matched.into.len());
        let fetch = Fetch { envelope, keys: offer.keys, matched, total, regions: Vec::new() };
        if total == 0 {
            return fetch.end(transport, buffers, Status::Success, sink);
        }
        let number = self.fetches.insert(fetch);
        // Fetches that wait for room go first.
        if self.has_unposted() || !self.post(transport, buffers, number, sink) {
            self.unposted.push_back(number);
        }
    }

    /// Posts fetches that had to wait. Returns how many.
    pub(crate) fn post_waiting(
        &mut self,
        transport: &mut Transport,
        buffers: &mut MultiReceives,
        sink: &mut impl Sink,
    ) -> usize {
        let mut posted = 0;
        while let Some(&number) = self.unposted.front() {
            if !self.post(transport, buffers, number, sink) {
                break;
            }
            self.unposted.pop_front();
            posted += 1;
        }
        posted
    }

    /// `false`: there is no room now.
    fn post(
        &mut self,
        transport: &mut Transport,
        buffers: &mut MultiReceives,
        number: u64,
        sink: &mut impl Sink,
    ) -> bool {
        let Some(fetch) = self.fetches.find(number) else { return true };
        let Err(error) = fetch.post(transport, number) else { return true };
        if is_no_room(&error) {
            return false;
        }
        tracing::warn!("a message cannot be fetched: {error}");
        self.finish(transport, buffers, number, Status::ProtocolViolation, sink);
        true
    }

    /// A fetch has ended.
    pub(crate) fn finish(
        &mut self,
        transport: &mut Transport,
        buffers: &mut MultiReceives,
        number: u64,
        status: Status,
        sink: &mut impl Sink,
    ) {
        let Some(mut fetch) = self.fetches.remove(number) else { return };
        transport.release(std::mem::take(&mut fetch.regions));
        fetch.end(transport, buffers, status, sink);
    }

    /// A peer is gone. Posted fetches end by themselves.
    pub(crate) fn fail_unposted(
        &mut self,
        transport: &mut Transport,
        buffers: &mut MultiReceives,
        peer: Peer,
        why: Status,
        sink: &mut impl Sink,
    ) {
        let waiting: Vec<u64> = self.unposted.iter().copied().collect();
        for number in waiting {
            if self.fetches.find(number).is_some_and(|fetch| fetch.envelope.peer == peer) {
                self.unposted.retain(|&other| other != number);
                self.finish(transport, buffers, number, why, sink);
            }
        }
    }
}

impl Fetch {
    fn post(&mut self, transport: &mut Transport, number: u64) -> Result<(), Error> {
        let (mut left, mut sources) = (self.total as u64, Vec::with_capacity(1));
        for key in &self.keys {
            let length = key.length.min(left);
            left -= length;
            if length > 0 {
                sources.push(key.slice(0, length));
            }
        }
        let mut left = self.total;
        let parts = self.matched.into.spans().iter().map(|span| {
            let part = span.part(0, left);
            left -= part.len();
            part
        });
        self.regions = transport.register(parts, Rights::empty())?;
        let posted = transport.get(self.envelope.peer, sources, &self.regions, number);
        if posted.is_err() {
            transport.release(std::mem::take(&mut self.regions));
        }
        posted
    }

    fn end(
        self,
        transport: &mut Transport,
        buffers: &mut MultiReceives,
        status: Status,
        sink: &mut impl Sink,
    ) {
        let Fetch { envelope, matched, total, .. } = self;
        let (length, outcome) = match status {
            Status::Success => (total, Outcome::Success),
            failed => (0, Outcome::Failed(failed)),
        };
        buffers.complete(&envelope, length, matched, outcome, sink);
        // After our own completion: the sender may expect our program to see the message.
        if let Some(operation) = envelope.operation {
            let status = u64::from(!status.is_success());
            transport.send_control(envelope.peer, Control::Finished { operation, status });
        }
    }
}
