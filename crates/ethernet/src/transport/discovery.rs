//! Where peers are: asking for them, answering, and what becomes of links meanwhile.
//!
//! The first answer is believed, but not for good. While nobody answers the link's own request at
//! that place, we keep asking where the node is. The request then goes to each announced place. So
//! a wrong answer costs time, and no more.

use super::{EthernetTransport, stage};
use crate::frame_io::FrameIo;
use crate::link_header::EVERY_FUNCTION;
use crate::links::{Link, State, Unanswered};
use crate::route::Route;
use bellwire_device::{FunctionAddress, LinkId, Sink, Status};
use bellwire_protocol::discovery::seek::{self, SeekFrame};
use bellwire_protocol::discovery::{Discovery, SeekOutcome};
use bellwire_protocol::reliable::{Endpoint, FunctionId, PathId, PeerId, PlaceCheck};
use bellwire_wire::frame::seek::SeekBody;

/// Maximum number of announced places that are not tried yet.
const ANNOUNCED: usize = 64;
/// Maximum number of questions for our place that wait for an answer.
const ANSWERS: usize = 64;
/// Time between two rounds of questions for further places of nodes, in ns.
const ROUND_NS: u64 = 1_000_000_000;
/// First and longest pause between two questions for a node's place, in ns.
pub(super) const ASK_PAUSE_NS: [u64; 2] = [2_000_000, 200_000_000];
/// How long a peer may leave a link's request unanswered before we ask again where its node is, in
/// ns.
const DOUBT_NS: u64 = 20_000_000;

/// What a function knows of places, and what it has heard of them since it last looked.
pub(super) struct Search<R: Route> {
    pub route: R,
    pub discovery: Discovery<R::Path>,
    /// Nodes that were found at a further place.
    pub further: Vec<(u32, R::Path)>,
    /// Announced places of nodes, while links wait for them.
    announced: Vec<(u32, R::Path)>,
    /// Nonces for our place: the asking station, the answer, and the station's function.
    pub answers: Vec<(R::Path, SeekBody, u8)>,
    /// When to ask next for nodes that may be at further places.
    next_round_ns: u64,
}

impl<R: Route> Search<R> {
    pub fn new(route: R, discovery: Discovery<R::Path>) -> Self {
        let (further, announced, answers) = (Vec::new(), Vec::new(), Vec::new());
        Search { route, discovery, further, announced, answers, next_round_ns: 0 }
    }

    /// Takes in a question or an answer about places; `false`: the frame is another. `links_wait`:
    /// links wait for announced places.
    pub fn handle_frame(
        &mut self,
        from: R::Path,
        bytes: &[u8],
        links_wait: bool,
        now_ns: u64,
    ) -> bool {
        let Some(frame) = seek::parse(bytes) else { return false };
        match self.discovery.handle(&mut self.route, from, frame, now_ns) {
            SeekOutcome::Asked(answer, function) if self.answers.len() < ANSWERS => {
                self.answers.push((from, answer, function));
            }
            SeekOutcome::Answered { node, is_further } => {
                if is_further {
                    self.further.push((node, from));
                }
                if links_wait && self.announced.len() < ANNOUNCED {
                    self.announced.push((node, from));
                }
            }
            SeekOutcome::Asked(..) | SeekOutcome::Ignored => {}
        }
        true
    }

    /// The number of a place that frames of `endpoint` come from or go to.
    pub fn path_id(&mut self, place: R::Path, endpoint: &Endpoint) -> PathId {
        self.discovery.places.number(place, || endpoint.paths())
    }

    /// Whether a node that asks for a link by a path is there.
    pub fn check_place(&mut self, node: u32, path: PathId, now_ns: u64) -> PlaceCheck {
        self.discovery.check_place(&mut self.route, node, path, now_ns)
    }

    /// How many announced places wait.
    #[cfg(test)]
    pub fn announced_count(&self) -> usize {
        self.announced.len()
    }

    /// A link with `node` came up by this path.
    pub fn came_up(&mut self, node: u32, path: PathId) {
        if let Some(place) = self.discovery.places.place(path) {
            self.route.heard(node, place);
        }
    }
}

impl<Io: FrameIo, R: Route<Path = Io::Path>> EthernetTransport<Io, R> {
    /// Sends a Seek or a Here. If there is no room now it is lost, and sent again later.
    pub(super) fn send_seek(&mut self, to: Io::Path, frame: SeekFrame, function: u8) {
        let Some(room) = self.io.room() else { return };
        seek::emit(frame, self.address.function, function, room);
        stage(&mut self.io, self.capture.as_deref(), to, seek::FRAME_BYTES, &[]);
        self.unsent = true;
    }

    /// Checks nodes that are said to have moved: asks at their old places.
    #[cold]
    pub(super) fn ask_old_places(&mut self, now_ns: u64) {
        while let Some((place, body)) = self.search.discovery.poll_seek(now_ns) {
            self.send_seek(place, SeekFrame::Seek(body), EVERY_FUNCTION);
        }
    }

    /// Seeks the nodes of unsettled links, and reports links that are down.
    #[cold]
    pub(super) fn settle_links(&mut self, sink: &mut impl Sink) -> usize {
        let now_ns = self.clock.now_ns();
        let mut settled = 0;
        for number in self.links.unsettled.clone() {
            let Some(Link { peer, state }) = self.links.at_mut(number) else { continue };
            let peer = *peer;
            match state {
                State::Seeking { give_up_ns, ask_again_ns, pause_ns } => {
                    let left = give_up_ns.saturating_sub(now_ns);
                    if let Some(path) = self.search.route.find(peer) {
                        settled += 1;
                        match self.connect(peer, path, left, now_ns) {
                            Some(id) => {
                                self.links.found(number, id);
                                self.doubt(number, left, now_ns);
                            }
                            None => self.links.lose(number, Status::Unreachable),
                        }
                    } else if left == 0 {
                        self.links.lose(number, Status::Unreachable);
                        settled += 1;
                    } else if now_ns >= *ask_again_ns {
                        *ask_again_ns = now_ns + *pause_ns;
                        *pause_ns = (2 * *pause_ns).min(ASK_PAUSE_NS[1]);
                        self.seek(peer.node);
                    }
                }
                State::Down { why, reported, .. } if !*reported => {
                    *reported = true;
                    let why = *why;
                    self.links.unsettled.retain(|&other| other != number);
                    sink.link_down(LinkId(number), peer, why);
                    settled += 1;
                }
                _ => self.links.unsettled.retain(|&other| other != number),
            }
        }
        settled
    }

    pub(super) fn connect(
        &mut self,
        peer: FunctionAddress,
        path: Io::Path,
        patience_ns: u64,
        now_ns: u64,
    ) -> Option<PeerId> {
        let path = self.search.path_id(path, &self.endpoint);
        let id = FunctionId { node: peer.node, function: peer.function };
        let id = self.endpoint.connect(id, path, patience_ns, now_ns)?;
        for further in self.search.route.others(peer) {
            let path = self.search.path_id(further, &self.endpoint);
            self.endpoint.add_path(id, path);
        }
        // Ask soon whether there are more places.
        self.search.next_round_ns = 0;
        self.next_tick_ns = 0;
        Some(id)
    }

    /// Lets links use further announced places of their nodes (H-29).
    #[cold]
    pub(super) fn add_paths(&mut self) {
        for (node, place) in std::mem::take(&mut self.search.further) {
            let path = self.search.path_id(place, &self.endpoint);
            for id in self.links.of_node(node) {
                self.endpoint.add_path(id, path);
            }
        }
    }

    /// The place of this link's peer is unconfirmed: if it does not answer there, it may be
    /// elsewhere.
    pub(super) fn doubt(&mut self, number: u32, patience_ns: u64, now_ns: u64) {
        if self.search.route.broadcast().is_some() {
            self.links.unanswered.push(Unanswered {
                number,
                give_up_ns: now_ns.saturating_add(patience_ns),
                ask_again_ns: now_ns + DOUBT_NS,
                pause_ns: DOUBT_NS,
            });
        }
    }

    /// Asks again for nodes that do not answer, and lets the protocol try each announced place.
    #[cold]
    pub(super) fn retry_seeks(&mut self, now_ns: u64) {
        for (node, place) in std::mem::take(&mut self.search.announced) {
            let path = self.search.path_id(place, &self.endpoint);
            for id in self.links.of_node(node) {
                self.endpoint.guess_path(id, path);
            }
        }
        let mut unanswered = std::mem::take(&mut self.links.unanswered);
        unanswered.retain_mut(|asked| {
            let Some(Link { peer, state: State::Known(id) }) = self.links.at(asked.number) else {
                return false;
            };
            let (peer, id) = (*peer, *id);
            if now_ns >= asked.ask_again_ns {
                asked.ask_again_ns = now_ns + asked.pause_ns;
                asked.pause_ns = (2 * asked.pause_ns).min(ASK_PAUSE_NS[1]);
                self.seek(peer.node);
            }
            let is_up = self.endpoint.is_up(id);
            if is_up {
                self.add_others(id, peer);
            }
            !is_up
        });
        self.links.unanswered = unanswered;
    }

    /// Gives a link the paths through other interfaces, which are forgotten with the guesses.
    fn add_others(&mut self, id: PeerId, peer: FunctionAddress) {
        let others = self.search.route.others(peer);
        if others.is_empty() {
            return;
        }
        for place in self.search.route.find(peer).into_iter().chain(others) {
            let path = self.search.path_id(place, &self.endpoint);
            self.endpoint.add_path(id, path);
        }
    }

    /// Asks for the place of a node by broadcast.
    fn seek(&mut self, node: u32) {
        if let Some(broadcast) = self.search.route.broadcast() {
            let body = self.search.discovery.seek(node, self.clock.now_ns());
            self.send_seek(broadcast, SeekFrame::Seek(body), EVERY_FUNCTION);
        }
    }

    /// Asks once in [`ROUND_NS`] for all nodes that may have further places.
    pub(super) fn ask_for_further_places(&mut self, now_ns: u64) {
        if now_ns < self.search.next_round_ns {
            return;
        }
        self.search.next_round_ns = now_ns + ROUND_NS;
        let mut nodes = self.links.nodes();
        nodes.retain(|&node| self.search.route.is_incomplete(node));
        nodes.into_iter().for_each(|node| self.seek(node));
    }
}

#[cfg(test)]
mod tests;
