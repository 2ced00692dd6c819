//! One line in the directory of its home.

use std::cmp::Ordering;
use std::collections::VecDeque;

use super::message::{Kind, Node};
use super::{Fault, Unexpected};

/// Who has the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Holders {
    /// Memory alone.
    #[default]
    Nobody,
    /// Perhaps these, by bits; memory is up to date.
    Sharers(u8),
    /// One, who may have changed it.
    Owner(Node),
}

/// A request that waits or is being served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// Who asks.
    pub from: Node,
    /// For what.
    pub kind: Kind,
    /// With what, for a Put.
    pub data: u64,
}

/// What the request that is being served waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Serving {
    request: Request,
    /// Sharers that have not given up.
    invalidations: u8,
    /// Whether the owner has not answered.
    fetch: bool,
}

/// A line at home.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct HomeLine {
    /// Who has it.
    pub holders: Holders,
    /// Memory.
    pub memory: u64,
    serving: Option<Serving>,
    waiting: VecDeque<Request>,
}

/// What the home says: to whom, what, with what data.
pub type Said = (Node, Kind, u64);

impl HomeLine {
    /// Whether nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.serving.is_none() && self.waiting.is_empty()
    }

    /// Replaces the content of all requests that wait: for those who follow content through every state.
    pub(super) fn replace_data(&mut self, data: u64) {
        let serving = self.serving.iter_mut().map(|serving| &mut serving.request);
        for request in serving.chain(&mut self.waiting).filter(|request| request.kind.has_data()) {
            request.data = data;
        }
    }

    /// Orders two nodes by what this line knows of them. Equal are only those that it knows the same of.
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

    /// Gives each node another number: `numbers[node]`.
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

    /// A message comes; what is said in answer is added to `out`.
    ///
    /// # Errors
    /// [`Unexpected`], if the protocol has a hole.
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
            // It was overtaken by a Fetch, which has brought the data.
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

    /// Answers if all that was waited for has come, and begins with whoever waits.
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
