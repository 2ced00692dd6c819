//! Frames from more addresses than a function has names for.

use super::assault::Flood;
use super::frames::{seek, senseless};
use super::ground::{Ground, NEWCOMER, PEER, SPARE, VICTIM};
use super::station::{From, HEARD};
use super::witness::{Witness, exchange};
use crate::conformance::Patience;
use crate::network::Carrier;
use bellwire_protocol::discovery::PLACES;

/// Addresses of an attack, unless more are needed.
pub const ADDRESSES: u64 = 2 * PLACES as u64;
/// More addresses than 16 bits can name. A function that forgets no name runs out of them.
pub const ALL_NAMES: u64 = 66_000;
/// Frames between two turns of the victim. Its queues hold more.
const BURST: usize = 64;

/// Sound frames for no link come from `addresses` addresses, and datagrams that are no frames. A
/// link stays up, and a new peer connects.
pub fn addresses(carrier: Carrier, addresses: u64) {
    let ground = Ground::new(carrier);
    let mut stage = ground.stage([ground.open(VICTIM, None), ground.open(PEER, None)]);
    let witness = Witness::of(&stage.nodes[VICTIM]);
    let node = stage.nodes[VICTIM].device.node();
    exchange(&mut stage, [VICTIM, PEER]);
    let mut station = ground.hostile();
    let junk: &[u8] = match carrier {
        Carrier::Udp => b"x",
        // The filter of an interface drops frames that are too short for a function number.
        _ => &[0xb1, 0x0f, 0, 0, 0, 0, 0, 0],
    };
    let (mut number, mut patience) = (HEARD, Patience::new());
    // Each address is used once, so frames that count are addresses.
    let arrived = |witness: &Witness| {
        ["frames_unknown", "frames_stale"].map(|counter| witness.shown(counter)).iter().sum::<u64>()
    };
    while arrived(&witness) < addresses {
        for _ in 0..BURST {
            station.send(From::MadeUp(number), &senseless(number.into()));
            number += 1;
            if number.is_multiple_of(8) {
                station.send(From::MadeUp(number), junk);
                station.send(From::MadeUp(number + 1), &seek(node, number));
                number += 2;
            }
        }
        stage.turns(4);
        while station.hear().is_some() {}
        if number % 4_096 < BURST as u32 {
            exchange(&mut stage, [VICTIM, PEER]);
        }
        patience.spend(|| format!("{} of {number} frames; {}", arrived(&witness), stage.story()));
    }
    stage.nodes.push(ground.open(SPARE, None));
    exchange(&mut stage, [NEWCOMER, VICTIM]);
    exchange(&mut stage, [VICTIM, PEER]);
    let [down, malformed, elsewhere] =
        witness.now(&mut stage, ["links_down", "frames_malformed", "frames_elsewhere"]);
    assert_eq!((down, elsewhere), (0, 0));
    assert!(malformed >= addresses / 16, "{malformed}");
}

/// Opens of [`ADDRESSES`] made-up nodes come, each from an address of its own. A new peer connects.
pub fn nodes(carrier: Carrier) {
    let ground = Ground::new(carrier);
    let mut stage = ground.stage([ground.open(VICTIM, None), ground.open(PEER, None)]);
    let witness = Witness::of(&stage.nodes[VICTIM]);
    let node = stage.nodes[VICTIM].device.node();
    exchange(&mut stage, [VICTIM, PEER]);
    let (mut station, mut flood) = (ground.hostile(), Flood::silent(1 << 20, node));
    let mut patience = Patience::new();
    while witness.shown("frames_challenged") < ADDRESSES {
        (0..BURST).for_each(|_| flood.step(&mut station));
        stage.turns(4);
        patience.spend(|| format!("{:?}; {}", flood.answers, stage.story()));
    }
    stage.nodes.push(ground.open(SPARE, None));
    exchange(&mut stage, [NEWCOMER, VICTIM]);
    exchange(&mut stage, [VICTIM, PEER]);
    let [down] = witness.now(&mut stage, ["links_down"]);
    assert_eq!((down, flood.answers.accepts), (0, 0));
}
