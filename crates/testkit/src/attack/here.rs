//! Here frames that nobody asked for say that a node is where an impostor is.

use super::frames::{here, senseless};
use super::ground::{Ground, HOSTILE, PEER, VICTIM};
use super::station::{From, Station};
use super::witness::{Witness, exchange, exchange_while};
use crate::conformance::Patience;
use crate::conformance::bytes::Random;
use crate::network::Carrier;

/// Here frames before the victim connects, at least.
const BEFORE: u64 = 300;

/// A connect goes to the honest peer. The impostor is a real function where the frames come from.
/// It gets no Open and no message.
pub fn unasked(carrier: Carrier) {
    let ground = Ground::new(carrier);
    // On Ethernet the impostor has the same node number, so that it would agree to a link.
    let number = (carrier != Carrier::Udp).then(|| ground.chosen(0));
    let mut stage = ground.stage([ground.open(VICTIM, None), ground.open(PEER, number)]);
    let [victim, peer] = [VICTIM, PEER].map(|who| Witness::of(&stage.nodes[who]));
    let mut impostor = ground.open(HOSTILE, number);
    let witness = Witness::of_namesake(&impostor, &peer);
    let node = stage.nodes[PEER].device.node();
    let mut station = ground.hostile();
    let mut random = Random(7);
    let mut patience = Patience::new();
    while victim.shown("frames_unknown") < BEFORE {
        lie(&mut station, node, &mut random);
        stage.turn();
        patience.spend(|| format!("{} arrived", victim.shown("frames_unknown")));
    }
    // The impostor does not look, so that it answers no question either.
    exchange_while(&mut stage, [VICTIM, PEER], [5_000, 40], |_| {
        lie(&mut station, node, &mut random);
    });
    for _ in 0..50 {
        exchange_while(&mut stage, [VICTIM, PEER], [40, 40], |_| {
            lie(&mut station, node, &mut random);
        });
    }
    let before = witness.shown("serial");
    let mut patience = Patience::new();
    while witness.shown("serial") < before + 2 {
        assert!(impostor.poll().is_none());
        stage.turn();
        patience.spend(|| "the impostor shows nothing".into());
    }
    for counter in ["frames_challenged", "frames_unknown", "links_up"] {
        assert_eq!(witness.shown(counter), 0, "{counter} of the impostor");
    }
    assert_eq!(impostor.counters().total.messages_arrived, 0);
    exchange(&mut stage, [VICTIM, PEER]);
    let [down, up] = victim.now(&mut stage, ["links_down", "links_up"]);
    assert_eq!((down, up), (0, 1));
}

/// Says twice that `node` is here, to the victim and to all. The victim counts the frame behind it.
fn lie(station: &mut Station, node: u32, random: &mut Random) {
    for nonce in [0, random.below(usize::MAX) as u64] {
        station.send(From::Own, &here(node, nonce));
        station.broadcast(From::Own, &here(node, nonce));
    }
    station.send(From::Own, &senseless(1));
    while station.hear().is_some() {}
}
