//! One line in the directory of its home.

use std::cmp::Ordering;
use std::collections::VecDeque;

use super::message::{Kind, Node};
use super::{Fault, Unexpected};

/// The caches that have the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Holders {
    /// None: only memory has it.
    #[default]
    Nobody,
    /// Perhaps these nodes, one bit each; memory is up to date.
    Sharers(u8),
    /// One node, which may have written it.
    Owner(Node),
}

/// A request that waits or is in service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// The node that asks.
    pub from: Node,
    /// The kind of request.
    pub kind: Kind,
    /// The data of a Put.
    pub data: u64,
}

/// The answers that the request in service waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Serving {
    request: Request,
    /// Invalidations without an answer yet.
    invalidations: u8,
    /// Whether the owner's answer is missing.
    fetch: bool,
}

/// A line in its home's directory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct HomeLine {
    /// The caches that have it.
    pub holders: Holders,
    /// Its content in memory.
    pub memory: u64,
    serving: Option<Serving>,
    waiting: VecDeque<Request>,
}

/// A message that the home sends: target, kind, data.
pub type Said = (Node, Kind, u64);

impl HomeLine {
    /// Whether no request is in service.
    pub fn is_idle(&self) -> bool {
        self.serving.is_none() && self.waiting.is_empty()
    }

    /// Replaces the content of all waiting requests; for the exploration of states.
    pub(super) fn replace_data(&mut self, data: u64) {
        let serving = self.serving.iter_mut().map(|serving| &mut serving.request);
        for request in serving.chain(&mut self.waiting).filter(|request| request.kind.has_data()) {
            request.data = data;
        }
    }

    /// Orders two nodes by this line's knowledge of them. Equal nodes are interchangeable for it.
    pub(super) fn compare(&self, one: Node, other: Node) -> Ordering {
        let holds = |node| match self.holders {
            Holders::Nobody => false,
            Holders::Sharers(sharers) => sharers >> node & 1 == 1,
            Holders::Owner(owner) => owner == node,
        };
        let served = |node| self.serving.is_some_and(|serving| serving.request.from == node);
        let waits = |node| self.waiting.iter().map(move |request| request.from == node);
        (holds(one), served(one))
            .cmp(&(holds(other), served(other)))
            .then_with(|| waits(one).cmp(waits(other)))
    }

    /// Renumbers the nodes: each becomes `numbers[node]`.
    pub(super) fn renumber(&mut self, numbers: &[Node]) {
        let number = |node: Node| numbers[usize::from(node)];
        self.holders = match self.holders {
            Holders::Nobody => Holders::Nobody,
            Holders::Sharers(sharers) => {
                let holding = (0..numbers.len() as Node).filter(|node| sharers >> node & 1 == 1);
                Holders::Sharers(holding.fold(0, |bits, node| bits | 1 << number(node)))
            }
            Holders::Owner(owner) => Holders::Owner(number(owner)),
        };
        let serving = self.serving.iter_mut().map(|serving| &mut serving.request);
        for request in serving.chain(&mut self.waiting) {
            request.from = number(request.from);
        }
    }

    /// Handles a message and adds the answers to `out`.
    ///
    /// # Errors
    /// [`Unexpected`], if the protocol has no transition for it.
    pub fn handle(
        &mut self,
        from: Node,
        kind: Kind,
        data: u64,
        fault: Option<Fault>,
        out: &mut Vec<Said>,
    ) -> Result<(), Unexpected> {
        match (kind, &mut self.serving) {
            (Kind::GetS | Kind::GetM | Kind::Put, Some(_)) => {
                self.waiting.push_back(Request { from, kind, data });
                return Ok(());
            }
            (Kind::GetS | Kind::GetM | Kind::Put, None) => {
                self.begin(Request { from, kind, data }, fault, out);
            }
            (Kind::Fetched, Some(serving)) if serving.fetch => {
                serving.fetch = false;
                if fault != Some(Fault::LosesWriteback) {
                    self.memory = data;
                }
            }
            (Kind::Invalidated, Some(serving)) if serving.invalidations > 0 => {
                serving.invalidations -= 1;
            }
            (kind, serving) => {
                let what = format!("a home gets {kind:?} of node {from}");
                return Err(Unexpected { what, state: format!("{serving:?}") });
            }
        }
        self.go_on(fault, out);
        Ok(())
    }

    fn begin(&mut self, request: Request, fault: Option<Fault>, out: &mut Vec<Said>) {
        let Request { from, kind, data } = request;
        let mut serving = Serving { request, invalidations: 0, fetch: false };
        match (kind, self.holders) {
            (Kind::Put, Holders::Owner(owner)) if owner == from => {
                if fault != Some(Fault::LosesWriteback) {
                    self.memory = data;
                }
                self.holders = Holders::Nobody;
            }
            // A Fetch overtook this Put and has brought the data.
            (Kind::Put, _) => {}
            (Kind::GetM, Holders::Owner(owner)) => {
                serving.fetch = true;
                out.push((owner, Kind::FetchInvalidate, 0));
            }
            (_, Holders::Owner(owner)) => {
                serving.fetch = true;
                out.push((owner, Kind::Fetch, 0));
            }
            (Kind::GetM, Holders::Sharers(sharers)) => {
                let others = sharers & !(1 << from);
                let nodes = (0..8u8).filter(|node| others >> node & 1 == 1);
                out.extend(nodes.map(|node| (node, Kind::Invalidate, 0)));
                serving.invalidations = others.count_ones() as u8;
            }
            (_, Holders::Sharers(_) | Holders::Nobody) => {}
        }
        self.serving = Some(serving);
    }

    /// Completes the request in service if all answers have arrived, and starts the next one.
    fn go_on(&mut self, fault: Option<Fault>, out: &mut Vec<Said>) {
        while let Some(serving) = self.serving {
            let enough = u8::from(fault == Some(Fault::CountsTooFew));
            if serving.fetch || serving.invalidations > enough {
                return;
            }
            let from = serving.request.from;
            match serving.request.kind {
                Kind::Put => {
                    if fault != Some(Fault::SilentToPut) {
                        out.push((from, Kind::PutDone, 0));
                    }
                }
                Kind::GetS => match self.holders {
                    Holders::Nobody => {
                        self.holders = Holders::Owner(from);
                        out.push((from, Kind::Exclusive, self.memory));
                    }
                    holders => {
                        let before = match holders {
                            Holders::Owner(owner) => 1 << owner,
                            Holders::Sharers(sharers) => sharers,
                            Holders::Nobody => 0,
                        };
                        let new = if fault == Some(Fault::ForgetsSharer) { 0 } else { 1 << from };
                        self.holders = Holders::Sharers(before | new);
                        out.push((from, Kind::Shared, self.memory));
                    }
                },
                _ => {
                    self.holders = Holders::Owner(from);
                    out.push((from, Kind::Exclusive, self.memory));
                }
            }
            self.serving = None;
            if let Some(next) = self.waiting.pop_front() {
                self.begin(next, fault, out);
            }
        }
    }
}
