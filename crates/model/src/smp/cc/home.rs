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

#[cfg(test)]
mod tests {
    use super::*;

    fn told(home: &mut HomeLine, from: Node, kind: Kind, data: u64) -> Vec<Said> {
        let mut out = Vec::new();
        home.handle(from, kind, data, None, &mut out).expect("there is a transition");
        out
    }

    /// A read of two nodes and a write of a third: the first owner keeps a copy and brings its
    /// content; both give their copies up before the third has the line.
    #[test]
    fn a_line_is_shared_and_taken_away() {
        let mut home = HomeLine { memory: 4, ..HomeLine::default() };
        assert!(home.is_idle());
        assert_eq!(told(&mut home, 1, Kind::GetS, 0), [(1, Kind::Exclusive, 4)]);
        assert_eq!((home.holders, home.is_idle()), (Holders::Owner(1), true));
        assert_eq!(told(&mut home, 2, Kind::GetS, 0), [(1, Kind::Fetch, 0)]);
        assert!(!home.is_idle());
        // What comes meanwhile waits.
        assert_eq!(told(&mut home, 0, Kind::GetM, 0), []);
        let out = told(&mut home, 1, Kind::Fetched, 5);
        assert_eq!(out, [(2, Kind::Shared, 5), (1, Kind::Invalidate, 0), (2, Kind::Invalidate, 0)]);
        assert_eq!((home.holders, home.memory), (Holders::Sharers(0b110), 5));
        assert_eq!(told(&mut home, 2, Kind::Invalidated, 0), []);
        assert!(!home.is_idle(), "one answer is missing");
        assert_eq!(told(&mut home, 1, Kind::Invalidated, 0), [(0, Kind::Exclusive, 5)]);
        assert_eq!((home.holders, home.is_idle()), (Holders::Owner(0), true));
        // The next writer gets what the last one wrote.
        assert_eq!(told(&mut home, 3, Kind::GetM, 0), [(0, Kind::FetchInvalidate, 0)]);
        assert_eq!(told(&mut home, 0, Kind::Fetched, 6), [(3, Kind::Exclusive, 6)]);
        assert_eq!(told(&mut home, 3, Kind::Put, 7), [(3, Kind::PutDone, 0)]);
        assert_eq!((home.holders, home.memory), (Holders::Nobody, 7));
        // A Put of a former owner changes nothing.
        assert_eq!(told(&mut home, 0, Kind::Put, 9), [(0, Kind::PutDone, 0)]);
        assert_eq!(home.memory, 7);
    }

    /// An answer that was not asked for is told, and not counted.
    #[test]
    fn answers_to_nothing_are_refused() {
        let refuses =
            |home: &mut HomeLine, kind| home.handle(1, kind, 0, None, &mut Vec::new()).is_err();
        let mut home = HomeLine::default();
        assert!(refuses(&mut home, Kind::Fetched) && refuses(&mut home, Kind::Invalidated));
        told(&mut home, 1, Kind::GetM, 0);
        told(&mut home, 2, Kind::GetS, 0);
        assert!(refuses(&mut home, Kind::Invalidated), "a fetch is in service");
        told(&mut home, 1, Kind::Fetched, 3);
        told(&mut home, 0, Kind::GetM, 0);
        assert!(refuses(&mut home, Kind::Fetched), "invalidations are in service");
        told(&mut home, 1, Kind::Invalidated, 0);
        assert!(refuses(&mut home, Kind::Shared));
    }

    /// Nodes are ordered by what a line knows of them: copies first, then service, then waiting.
    /// Renumbering moves all of it.
    #[test]
    fn nodes_are_told_apart() {
        use Ordering::{Equal, Greater, Less};
        let mut home = HomeLine { holders: Holders::Sharers(0b0110), ..HomeLine::default() };
        assert_eq!(
            [(1, 2), (1, 0), (0, 1), (0, 3)].map(|(a, b)| home.compare(a, b)),
            [Equal, Greater, Less, Equal]
        );
        told(&mut home, 3, Kind::GetM, 0);
        assert_eq!((home.compare(3, 0), home.compare(3, 1)), (Greater, Less));
        told(&mut home, 0, Kind::Put, 8);
        assert_eq!((home.compare(0, 3), home.compare(1, 2)), (Less, Equal));
        told(&mut home, 1, Kind::GetS, 0);
        // Both have copies; 1 waits behind another, which comes before not at all.
        assert_eq!(home.compare(1, 2), Greater);
        let mut moved = home.clone();
        moved.renumber(&[3, 2, 1, 0]);
        assert_eq!(moved.holders, Holders::Sharers(0b0110));
        assert_eq!((moved.compare(0, 3), moved.compare(2, 1)), (Greater, Greater));
        moved.renumber(&[1, 0, 3, 2]);
        assert_eq!(moved.holders, Holders::Sharers(0b1001));
        // Only what waits with a line's content has content.
        home.replace_data(99);
        let data: Vec<u64> = home.waiting.iter().map(|request| request.data).collect();
        assert_eq!(data, [99, 0]);
        let owned = HomeLine { holders: Holders::Owner(2), ..HomeLine::default() };
        assert_eq!((owned.compare(2, 1), owned.compare(1, 0)), (Greater, Equal));
    }
}
