//! A node asks for a link from a place other than where it was last heard: it has moved, or another
//! station uses its name. The old place is asked first. Only if nothing answers there is the new
//! place believed.

use alloc::vec::Vec;

use crate::canary::planted;
use crate::reliable::PlaceCheck;

/// Most nodes that are asked for at their old places at once.
const CLAIMS: usize = 64;
/// Pauses after each Seek to an old place, in ns. After the last pause the old place has
/// failed.
const PAUSES_NS: [u64; 5] = [20_000_000, 40_000_000, 80_000_000, 160_000_000, 320_000_000];
/// How long an answer counts, in ns: further claims in that time are refused at once.
const ANSWER_NS: u64 = 1_000_000_000;
/// How long the failure of an old place is remembered, in ns. The claimant repeats its claim
/// sooner.
const FAILURE_NS: u64 = 4_000_000_000;

/// Nodes whose old places are being asked.
pub struct Claims<P> {
    claims: Vec<Claim<P>>,
}

struct Claim<P> {
    node: u32,
    /// Where the node was last heard.
    old: P,
    /// Seeks sent since the claim.
    seeks: usize,
    /// When the next Seek is due, or the last one has failed. Once decided: when the claim may
    /// be forgotten.
    next_ns: u64,
    has_answered: bool,
}

impl<P: Copy + Eq> Claims<P> {
    /// `node` was last heard at `old`, and now asks for a link from another place.
    /// [`PlaceCheck::Belongs`]: it may, because nothing answers at the old place.
    pub fn check(&mut self, node: u32, old: P, now_ns: u64) -> PlaceCheck {
        if planted("discovery-believe-claims") {
            return PlaceCheck::Belongs;
        }
        let is_over = |claim: &Claim<P>| claim.is_decided() && now_ns >= claim.next_ns;
        self.claims.retain(|claim| !is_over(claim) && (claim.node != node || claim.old == old));
        match self.claims.iter().find(|claim| claim.node == node) {
            Some(claim) if claim.has_answered => PlaceCheck::Elsewhere,
            Some(claim) if claim.is_decided() => PlaceCheck::Belongs,
            Some(_) => PlaceCheck::Pending,
            None => {
                if self.claims.len() < CLAIMS {
                    let (seeks, has_answered) = (0, false);
                    self.claims.push(Claim { node, old, seeks, next_ns: now_ns, has_answered });
                }
                PlaceCheck::Pending
            }
        }
    }

    /// The next Seek that is due: the node and its old place.
    pub fn poll_seek(&mut self, now_ns: u64) -> Option<(u32, P)> {
        let is_due = |claim: &&mut Claim<P>| !claim.is_decided() && now_ns >= claim.next_ns;
        let claim = self.claims.iter_mut().find(is_due)?;
        let pause_ns = PAUSES_NS.get(claim.seeks);
        claim.seeks += 1;
        claim.next_ns = now_ns + pause_ns.copied().unwrap_or(FAILURE_NS);
        (claim.seeks <= PAUSES_NS.len()).then_some((claim.node, claim.old))
    }

    /// A Seek for `node` was answered from `place`.
    pub fn answered(&mut self, node: u32, place: P, now_ns: u64) {
        if let Some(claim) = self.claims.iter_mut().find(|claim| claim.node == node)
            && claim.old == place
        {
            claim.has_answered = true;
            claim.next_ns = now_ns + ANSWER_NS;
        }
    }

    /// When to call [`poll_seek`](Self::poll_seek) again.
    #[inline]
    pub fn next_deadline(&self) -> u64 {
        let open = self.claims.iter().filter(|claim| !claim.is_decided());
        open.map(|claim| claim.next_ns).min().unwrap_or(u64::MAX)
    }

    /// Claims that are open, or were decided recently.
    pub fn count(&self) -> usize {
        self.claims.len()
    }
}

impl<P> Claim<P> {
    /// Whether the old place has answered or failed.
    fn is_decided(&self) -> bool {
        self.has_answered || self.seeks > PAUSES_NS.len()
    }
}

impl<P: Copy + Eq> Default for Claims<P> {
    fn default() -> Self {
        Claims { claims: Vec::with_capacity(CLAIMS) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends all Seeks that become due until `end_ns`; returns their number.
    fn ask(claims: &mut Claims<char>, now_ns: &mut u64, end_ns: u64) -> usize {
        let mut seeks = 0;
        for turn in 0.. {
            if claims.next_deadline() > end_ns {
                break;
            }
            assert!(turn <= CLAIMS * (PAUSES_NS.len() + 1), "Seeks without end");
            *now_ns = (*now_ns).max(claims.next_deadline());
            seeks += claims.poll_seek(*now_ns).is_some() as usize;
        }
        *now_ns = end_ns;
        seeks
    }

    /// A node that moved is believed after five unanswered Seeks to its old place.
    #[test]
    fn who_moves_is_believed_in_the_end() {
        let (mut claims, mut now_ns) = (Claims::default(), 5);
        assert_eq!(claims.check(7, 'a', now_ns), PlaceCheck::Pending);
        assert_eq!(claims.poll_seek(now_ns), Some((7, 'a')));
        assert_eq!(claims.check(7, 'a', now_ns), PlaceCheck::Pending);
        assert_eq!(ask(&mut claims, &mut now_ns, 700_000_000), 4);
        assert_eq!(claims.check(7, 'a', now_ns), PlaceCheck::Belongs);
        assert_eq!(claims.next_deadline(), u64::MAX);
    }

    /// A node that answers at its old place stays there, however often another uses its name.
    #[test]
    fn who_answers_stays() {
        let (mut claims, mut now_ns) = (Claims::default(), 5);
        for _ in 0..100 {
            assert_eq!(claims.check(7, 'a', now_ns), PlaceCheck::Pending);
            let end_ns = now_ns + 50_000_000;
            assert_eq!(ask(&mut claims, &mut now_ns, end_ns), 2);
            claims.answered(7, 'b', now_ns);
            assert_eq!(claims.check(7, 'a', now_ns), PlaceCheck::Pending);
            claims.answered(7, 'a', now_ns);
            assert_eq!(claims.check(7, 'a', now_ns), PlaceCheck::Elsewhere);
            now_ns += 2_000_000_000;
        }
    }

    /// Claims of many nodes are bounded, and delay a new claim only briefly.
    #[test]
    fn claims_without_end_are_bounded() {
        let (mut claims, mut now_ns) = (Claims::default(), 5);
        for node in 0..10_000 {
            assert_eq!(claims.check(node, 'a', now_ns), PlaceCheck::Pending);
            assert!(claims.count() <= CLAIMS);
        }
        ask(&mut claims, &mut now_ns, 10_000_000_000);
        assert_eq!(claims.check(77_777, 'a', now_ns), PlaceCheck::Pending);
        assert_eq!(ask(&mut claims, &mut now_ns, 11_000_000_000), 5);
        assert_eq!(claims.check(77_777, 'a', now_ns), PlaceCheck::Belongs);
    }
}
