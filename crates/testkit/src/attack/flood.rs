//! Thousands of Opens. Half of their senders prove their address; none confirms the Accept.

use super::assault::Flood;
use super::ground::{Ground, NEWCOMER, PEER, SPARE, VICTIM};
use super::witness::{Witness, exchange};
use crate::conformance::Patience;
use crate::network::Carrier;

/// Opens that are sent without a cookie.
const OPENS: u32 = 6_000;
/// Accepts that the attacker gets, at least: more than half-open links that are kept at once.
const ACCEPTS: u64 = 512;
/// Opens between two messages of the honest peers.
const BURST: u32 = 50;

/// Honest peers exchange messages meanwhile, and one connects in the middle.
pub fn opens(carrier: Carrier) {
    let ground = Ground::new(carrier);
    let mut stage = ground.stage([ground.open(VICTIM, None), ground.open(PEER, None)]);
    let witness = Witness::of(&stage.nodes[VICTIM]);
    let node = stage.nodes[VICTIM].device.node();
    exchange(&mut stage, [VICTIM, PEER]);
    let (mut station, mut flood) = (ground.hostile(), Flood::new(1 << 20, node));
    let mut patience = Patience::new();
    while flood.count() < OPENS
        || witness.shown("frames_challenged") < u64::from(OPENS) / 2
        || flood.answers.accepts <= ACCEPTS
        || stage.nodes.len() == NEWCOMER
    {
        (0..BURST).for_each(|_| flood.step(&mut station));
        exchange(&mut stage, [VICTIM, PEER]);
        if stage.nodes.len() > NEWCOMER {
            exchange(&mut stage, [NEWCOMER, VICTIM]);
        } else if flood.count() > OPENS / 2 {
            stage.nodes.push(ground.open(SPARE, None));
        }
        patience.spend(|| format!("{:?}; {}", flood.answers, stage.story()));
    }
    let [down, up] = witness.now(&mut stage, ["links_down", "links_up"]);
    assert_eq!((down, up), (0, 2), "{:?}", flood.answers);
}
