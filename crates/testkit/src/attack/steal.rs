//! Somebody goes through a whole handshake in a peer's name, from another address, with a later
//! incarnation.

use super::assault::{Answers, Assault};
use super::frames::Claim;
use super::ground::{Ground, PEER, VICTIM};
use super::station::From;
use super::witness::{Witness, exchange, exchange_while, greet};
use crate::conformance::{Patience, Stage};
use crate::network::Carrier;
use bellwire_wire::frame::finish::RefuseReason;
use std::time::{Duration, Instant};

/// Claims that are refused before an attack is over.
const CLAIMS: u64 = 20;
/// How long a busy peer leaves its function alone. Its old place has failed after 0.62 s.
const BUSY: Duration = Duration::from_millis(900);

/// Whose number the peer has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Numbers {
    /// It follows from the peer's address.
    Natural,
    /// The peer has chosen it.
    Chosen,
}

impl Numbers {
    /// What the peer is opened with.
    fn of_peer(self, ground: &Ground) -> Option<u32> {
        (self == Numbers::Chosen).then(|| ground.chosen(0))
    }
}

/// A link that is up stays up, and its messages arrive, while both ends answer.
pub fn link(carrier: Carrier, numbers: Numbers, from: From) {
    let ground = Ground::new(carrier);
    let peer = numbers.of_peer(&ground);
    let mut stage = ground.stage([ground.open(VICTIM, None), ground.open(PEER, peer)]);
    let witness = Witness::of(&stage.nodes[VICTIM]);
    greet(&mut stage, [PEER, VICTIM]);
    exchange(&mut stage, [VICTIM, PEER]);
    let claim = claim(&stage);
    let (mut station, mut assault) = (ground.hostile(), Assault::new(claim, from));
    let mut patience = Patience::new();
    while witness.shown("frames_elsewhere") < CLAIMS {
        exchange_while(&mut stage, [VICTIM, PEER], [40, 4_000], |_| assault.step(&mut station));
        patience.spend(|| format!("{:?}; {}", assault.answers, stage.story()));
    }
    assert_refused(&assault.answers);
    exchange(&mut stage, [VICTIM, PEER]);
    let [down, challenged] = witness.now(&mut stage, ["links_down", "frames_challenged"]);
    assert_eq!(down, 0, "{:?}", assault.answers);
    assert!(challenged > 0);
    // A number that is an address is refused at once.
    if carrier == Carrier::Udp && numbers == Numbers::Natural {
        assert!(assault.answers.refusals.contains(&RefuseReason::Elsewhere));
    }
}

/// A link stays up while its peer is busy, so that it does not answer at its old place.
pub fn link_of_a_busy_peer(carrier: Carrier) {
    let ground = Ground::new(carrier);
    let peer = Numbers::Chosen.of_peer(&ground);
    let mut stage = ground.stage([ground.open(VICTIM, None), ground.open(PEER, peer)]);
    let witness = Witness::of(&stage.nodes[VICTIM]);
    greet(&mut stage, [PEER, VICTIM]);
    exchange(&mut stage, [VICTIM, PEER]);
    let (mut station, mut assault) = (ground.hostile(), Assault::new(claim(&stage), From::Own));
    let since = Instant::now();
    let mut patience = Patience::new();
    // Refused, or successful.
    let has_ended = |answers: &Answers| {
        let shown = |counter| witness.shown(counter) > 0;
        answers.challenges > 0 && shown("frames_elsewhere")
            || answers.accepts > 0
            || answers.stolen > 0
            || shown("links_down")
    };
    while since.elapsed() < BUSY || !has_ended(&assault.answers) {
        assault.step(&mut station);
        stage.nodes[VICTIM].function.progress().expect("progress");
        patience.spend(|| format!("{:?}; {}", assault.answers, stage.story()));
    }
    exchange(&mut stage, [VICTIM, PEER]);
    let [down, elsewhere] = witness.now(&mut stage, ["links_down", "frames_elsewhere"]);
    assert_eq!(down, 0, "{:?}", assault.answers);
    assert!(elsewhere > 0, "{:?}", assault.answers);
    assert_refused(&assault.answers);
}

/// A peer that was heard before keeps its name without a link: its place is asked, and it answers.
pub fn name(carrier: Carrier, numbers: Numbers, from: From) {
    let ground = Ground::new(carrier);
    let peer = numbers.of_peer(&ground);
    let mut stage = ground.stage([ground.open(VICTIM, None), ground.open(PEER, peer)]);
    let witness = Witness::of(&stage.nodes[VICTIM]);
    greet(&mut stage, [PEER, VICTIM]);
    exchange(&mut stage, [VICTIM, PEER]);
    // The peer closes its function, and with it the link. It opens it again, without a link.
    drop(stage.nodes.remove(PEER));
    let mut patience = Patience::new();
    while stage.nodes[VICTIM].function.counters().function.links_lost == 0 {
        stage.turn();
        patience.spend(|| stage.story());
    }
    stage.nodes.push(ground.open(PEER, peer));
    let (mut station, mut assault) = (ground.hostile(), Assault::new(claim(&stage), from));
    let mut patience = Patience::new();
    while assault.answers.refusals.len() < CLAIMS as usize && assault.answers.accepts == 0 {
        assault.step(&mut station);
        stage.turn();
        patience.spend(|| format!("{:?}; {}", assault.answers, stage.story()));
    }
    assert_refused(&assault.answers);
    let refusals = &assault.answers.refusals;
    assert!(refusals.iter().all(|&reason| reason == RefuseReason::Elsewhere), "{refusals:?}");
    exchange(&mut stage, [VICTIM, PEER]);
    let [elsewhere] = witness.now(&mut stage, ["frames_elsewhere"]);
    assert!(elsewhere >= CLAIMS);
}

fn claim(stage: &Stage<'_>) -> Claim {
    let [victim, peer] = [VICTIM, PEER].map(|who| stage.nodes[who].device.node());
    Claim::latest(peer, victim)
}

/// The attacker has shown that it receives at its address, and got nothing for it.
#[track_caller]
fn assert_refused(answers: &Answers) {
    assert!(answers.challenges > 0, "{answers:?}");
    assert_eq!((answers.accepts, answers.stolen), (0, 0), "{answers:?}");
}
