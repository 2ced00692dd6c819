//! Opens in a peer's name with absurd incarnations, while that peer connects.

use super::assault::Assault;
use super::frames::{Claim, LATEST};
use super::ground::{Ground, NEWCOMER, PEER, SPARE, VICTIM};
use super::station::From;
use super::witness::{Witness, exchange, exchange_while};
use crate::conformance::Patience;
use crate::network::Carrier;

/// Opens of each kind before the peer is there, at least.
const BEFORE: u64 = 200;

/// The peer connects, though the attacker proves its own address and was first. `is_chosen`: the
/// peer has chosen its number.
pub fn a_name(carrier: Carrier, is_chosen: bool) {
    let ground = Ground::new(carrier);
    let mut stage = ground.stage([ground.open(VICTIM, None), ground.open(SPARE, None)]);
    let witness = Witness::of(&stage.nodes[VICTIM]);
    let node = stage.nodes[VICTIM].device.node();
    exchange(&mut stage, [1, VICTIM]);
    let number = is_chosen.then(|| ground.chosen(0));
    let latest = Claim::latest(number.unwrap_or_else(|| ground.natural(PEER)), node);
    let absurd = Claim { incarnation: u64::MAX, ..latest };
    let mut station = ground.hostile();
    // This one answers the Challenge. It confirms no Accept before the peer is there.
    let mut assault = Assault::new(latest, From::Own);
    assault.confirms = false;
    let mut attack = || {
        let unproved = Claim { incarnation: LATEST - 1, ..latest };
        station.send(From::MadeUp(0), &unproved.open(0));
        station.send(From::MadeUp(1), &absurd.open(0));
        assault.step(&mut station);
    };
    let mut patience = Patience::new();
    while ["frames_challenged", "frames_malformed"].iter().any(|name| witness.shown(name) < BEFORE)
    {
        attack();
        stage.turn();
        patience.spend(|| stage.story());
    }
    stage.nodes.push(ground.open(PEER, number));
    for _ in 0..20 {
        exchange_while(&mut stage, [NEWCOMER, VICTIM], [40, 4_000], |_| attack());
    }
    // Now the attacker confirms its Accepts, too late.
    assault.confirms = true;
    let [before] = witness.now(&mut stage, ["frames_challenged"]);
    let mut patience = Patience::new();
    while witness.shown("frames_challenged") < before + 5 {
        station.send(From::MadeUp(0), &latest.open(0));
        assault.step(&mut station);
        exchange(&mut stage, [VICTIM, NEWCOMER]);
        patience.spend(|| format!("{:?}; {}", assault.answers, stage.story()));
    }
    exchange(&mut stage, [VICTIM, 1]);
    let [down, elsewhere] = witness.now(&mut stage, ["links_down", "frames_elsewhere"]);
    assert_eq!((down, assault.answers.stolen), (0, 0), "{:?}", assault.answers);
    assert!(elsewhere > 0 && assault.answers.challenges > 0, "{:?}", assault.answers);
}
