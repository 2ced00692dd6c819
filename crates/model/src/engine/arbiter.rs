//! Arbiters: the choice between up to 64 requesters of one resource.

use bellwire_protocol::canary::planted;
use serde::{Deserialize, Serialize};

use super::Random;

/// How an arbiter chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Round-robin: the requester after the last served has priority (C-41).
    RoundRobin,
    /// Weighted round-robin: turns in a round are proportional to the weight (C-40).
    Weighted,
    /// Fixed priority: always the lowest requesting index (C-40). Starves the others, by intention.
    Strict,
    /// Uniformly at random.
    Random,
}

/// An arbiter over requesters `0..64`. Its cost does not depend on their number.
#[derive(Clone, Debug)]
pub struct Arbiter {
    policy: Policy,
    /// Requesters below this index were served in this round or did not request.
    next: u32,
    weights: Vec<u32>,
    /// Turns left in this round, under [`Policy::Weighted`].
    left: Vec<u32>,
    random: Random,
}

impl Arbiter {
    /// An arbiter that starts its first round at a random requester, so that index 0 has no
    /// advantage.
    pub fn new(policy: Policy, requesters: usize, random: &mut Random) -> Arbiter {
        let next = random.below(requesters.max(1) as u64) as u32;
        Arbiter {
            policy,
            next,
            weights: vec![1; requesters],
            left: vec![1; requesters],
            random: random.fork(1),
        }
    }

    /// An arbiter with these weights, under [`Policy::Weighted`]. A weight of zero counts as one.
    pub fn weighted(weights: &[u32], random: &mut Random) -> Arbiter {
        let weights: Vec<u32> = weights.iter().map(|&weight| weight.max(1)).collect();
        Arbiter { left: weights.clone(), weights, ..Arbiter::new(Policy::Weighted, 64, random) }
    }

    /// Chooses one of the set bits and counts it as served; nothing if none is set.
    pub fn grant(&mut self, requests: u64) -> Option<usize> {
        let chosen = self.choose(requests)?;
        self.serve(chosen);
        Some(chosen)
    }

    /// Chooses without counting, for allocators that may discard the grant.
    pub fn choose(&mut self, requests: u64) -> Option<usize> {
        if requests == 0 {
            return None;
        }
        Some(match self.policy {
            Policy::Strict => requests.trailing_zeros() as usize,
            Policy::Random => {
                nth_set(requests, self.random.below(u64::from(requests.count_ones())) as u32)
            }
            Policy::RoundRobin => first_from(requests, self.next),
            Policy::Weighted => {
                let with_turns = self.with_turns(requests);
                // Canary: a new round begins, whether or not the choice is served.
                if with_turns == 0 && planted("round-too-early") {
                    self.left.copy_from_slice(&self.weights);
                }
                first_from(if with_turns == 0 { requests } else { with_turns }, self.next)
            }
        })
    }

    /// Counts `chosen` as served.
    pub fn serve(&mut self, chosen: usize) {
        self.next = chosen as u32 + 1;
        if self.policy == Policy::Weighted {
            if self.left[chosen] == 0 {
                // All requesters have used their turns: a new round begins.
                self.left.copy_from_slice(&self.weights);
            }
            self.left[chosen] -= 1;
        }
    }

    fn with_turns(&self, requests: u64) -> u64 {
        let turns = self.left.iter().enumerate();
        turns.fold(0, |mask, (at, &left)| mask | u64::from(left > 0) << at) & requests
    }
}

/// The first set bit at or after `from`, with wrap-around.
#[inline]
pub(crate) fn first_from(bits: u64, from: u32) -> usize {
    ((bits.rotate_right(from).trailing_zeros() + from) & 63) as usize
}

/// The set bits, lowest first.
#[inline]
pub(crate) fn ones(bits: u64) -> Ones {
    Ones(bits)
}

/// The set bits that are left.
pub(crate) struct Ones(u64);

impl Iterator for Ones {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        let lowest = (self.0 != 0).then(|| self.0.trailing_zeros() as usize)?;
        self.0 &= self.0 - 1;
        Some(lowest)
    }
}

/// The `n`th set bit, counted from zero.
#[inline]
pub(crate) fn nth_set(mut bits: u64, n: u32) -> usize {
    for _ in 0..n {
        bits &= bits - 1;
    }
    bits.trailing_zeros() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(arbiter: &mut Arbiter, requests: u64, rounds: usize) -> Vec<usize> {
        let mut shares = vec![0; 64];
        for _ in 0..rounds {
            shares[arbiter.grant(requests).unwrap()] += 1;
        }
        shares
    }

    /// The set bits come once each, the lowest first.
    #[test]
    fn bits_come_lowest_first() {
        let first = |bits| ones(bits).take(4).collect::<Vec<usize>>();
        assert_eq!(first(0), [0; 0]);
        assert_eq!(first(1 << 63 | 0b1101), [0, 2, 3, 63]);
    }

    /// Under saturation each policy gives the shares that it promises.
    #[test]
    fn shares_are_as_promised() {
        let mut random = Random::new(5);
        let four = 0b1111;
        let round_robin = shares(&mut Arbiter::new(Policy::RoundRobin, 4, &mut random), four, 400);
        assert_eq!(round_robin[..4], [100; 4]);
        let weighted = shares(&mut Arbiter::weighted(&[1, 2, 3, 4], &mut random), four, 1000);
        assert_eq!(weighted[..4], [100, 200, 300, 400]);
        let strict = shares(&mut Arbiter::new(Policy::Strict, 4, &mut random), four, 100);
        assert_eq!(strict[..4], [100, 0, 0, 0]);
        let random = shares(&mut Arbiter::new(Policy::Random, 4, &mut random), four, 40_000);
        assert!(random[..4].iter().all(|&share| (9_500..10_500).contains(&share)), "{random:?}");
    }

    /// A lone requester is served for any weight, index and history.
    #[test]
    fn whoever_is_alone_is_served() {
        let mut random = Random::new(6);
        for policy in [Policy::RoundRobin, Policy::Weighted, Policy::Strict, Policy::Random] {
            let mut arbiter = Arbiter::new(policy, 64, &mut random);
            assert_eq!(arbiter.grant(0), None);
            for _ in 0..3 {
                assert_eq!(arbiter.grant(1 << 63), Some(63));
            }
        }
    }
}
