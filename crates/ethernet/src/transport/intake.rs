//! The interface between protocol and engine: received packets, and bytes to send.

use super::discovery::Search;
use crate::links::Links;
use crate::route::Route;
use bellwire_device::{LinkId, Sink, Verdict};
use bellwire_protocol::reliable::{self, Body, Channel, PathId, PeerId, PlaceCheck};
use bellwire_ring::memory::View;

/// Packets on their way from the protocol to the engine.
pub(super) struct Intake<'a, S, R: Route> {
    pub links: &'a mut Links,
    pub sink: &'a mut S,
    pub search: &'a mut Search<R>,
    pub now_ns: u64,
    /// Packets that were taken.
    pub packets: usize,
}

impl<S: Sink, R: Route> reliable::Sink for Intake<'_, S, R> {
    #[inline]
    fn packet(
        &mut self,
        peer: PeerId,
        _: Channel,
        words: [u64; 3],
        payload: &[u8],
    ) -> reliable::Verdict {
        let Some((number, link)) =
            self.links.number_of(peer).and_then(|n| Some((n, self.links.at(n)?)))
        else {
            // The event that adds this link comes right after.
            return reliable::Verdict::Stalled;
        };
        match self.sink.packet(LinkId(number), link.peer, words, View::of(payload)) {
            Verdict::Taken => {
                self.packets += 1;
                reliable::Verdict::Taken
            }
            Verdict::Stalled => reliable::Verdict::Stalled,
            Verdict::Violation => reliable::Verdict::Violation,
        }
    }

    fn check_place(&mut self, node: u32, path: PathId) -> PlaceCheck {
        self.search.check_place(node, path, self.now_ns)
    }

    #[inline]
    fn delivered(&mut self, peer: PeerId, count: u64) {
        if let Some(number) = self.links.number_of(peer) {
            self.sink.delivered(LinkId(number), count);
        }
    }
}

/// Bytes that others may change while the protocol reads them.
pub(super) struct Bytes<'a>(pub View<'a>);

impl Body for Bytes<'_> {
    #[inline]
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn read(&self, offset: usize, into: &mut [u8]) {
        self.0.read(offset, into);
    }
}
