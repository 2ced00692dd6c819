//! What a seed decides before anything happens: functions, pairs that talk, settings of the
//! protocol, and kinds of faults.

use bellwire_protocol::reliable::{Config, FunctionId};

use crate::chance::{Chance, scatter};
use crate::race::Race;

/// Most functions in one world where any two may talk.
const MOST_FUNCTIONS: u64 = 9;
/// Functions in a world where all but the first talk with the first only: an incast of 16.
const INCAST_FUNCTIONS: u64 = 17;

/// The kinds of adversary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Attack {
    /// Sends any frame from any address, and sees only what is sent to its own. Node numbers follow
    /// from addresses.
    OffPath,
    /// The same where node numbers are chosen, and nodes are found by asking for them.
    OffPathSeeking,
    /// Sees, delays, drops and repeats frames in flight, and makes up or alters those without
    /// packets.
    OnPath,
}

/// A world before its first event.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Everything follows from this.
    pub seed: u64,
    /// Address and settings of each function. Several functions may belong to one node.
    pub functions: Vec<(FunctionId, Config)>,
    /// Which functions talk, by index; the first of each pair asks for the link.
    pub pairs: Vec<(usize, usize)>,
    /// Whether the second asks, too.
    pub both_ask: bool,
    /// Interfaces by which each pair is joined (H-29): 1 to 3.
    pub interfaces: u32,
    /// One-way latency, by interface, in ns.
    pub latency_ns: [u64; 3],
    /// Time that a byte occupies the line into a function, in ps; 0: none.
    pub byte_ps: u64,
    /// A function handles frames only this long after their arrival, in ns, so that several are
    /// handled together.
    pub batch_ns: u64,
    /// Highest rates of faults.
    pub worst: Weather,
    /// Functions are killed and started again.
    pub restarts: bool,
    /// Programs close links and ask for new ones.
    pub closes: bool,
    /// Functions do not poll for a while; programs refuse packets for a while.
    pub stalls: bool,
    /// All frames between some functions disappear for a while, in one direction or both.
    pub cuts: bool,
    /// The MTU of the network changes, and not every function is told.
    pub mtu_changes: bool,
    /// Peers are given up late, so that only a restart or a close may end a link.
    pub is_patient: bool,
    /// When the faults end, one function is gone for good.
    pub death: bool,
    /// Longest payload that programs send.
    pub longest_bytes: u32,
    /// Mean time between two sendings of a program, in ns.
    pub pause_ns: u64,
    /// Frames after which the faults stop.
    pub frames: u64,
    /// A race for the line into the first function: all others send to it without pause.
    pub race: Option<Race>,
    /// The adversary, if there is one.
    pub attack: Option<Attack>,
    /// All functions share a key.
    pub has_key: bool,
    /// After the faults no program sends or asks anything new: a dead peer shows only by its
    /// silence.
    pub is_silent: bool,
}

/// Rates of the network's faults, each in 1024 frames.
#[derive(Clone, Copy, Default, Debug)]
pub struct Weather {
    /// They disappear.
    pub loss: u32,
    /// They come twice.
    pub repeat: u32,
    /// They are overtaken.
    pub late: u32,
    /// One to three bits are wrong, or a burst of up to 32.
    pub damage: u32,
    /// An old frame comes again.
    pub replay: u32,
}

impl Scenario {
    /// The world of `seed`.
    pub fn new(seed: u64) -> Self {
        let mut chance = Chance::new(seed ^ 0xbe11_0000_0000_0000);
        let is_incast = chance.hits(50);
        let count = if is_incast {
            INCAST_FUNCTIONS
        } else {
            chance.pick(&[2, 2, 2, 3, 3, 4, 5, 6, MOST_FUNCTIONS])
        } as usize;
        let is_patient = chance.hits(500);
        // In some worlds all functions use HPCL's recovery, in some a few.
        let hpcl_per_mille = chance.pick(&[0, 0, 0, 0, 0, 0, 0, 300, 1000, 1000]);
        let longest_bytes =
            chance.pick(&[16, 16, 64, 64, 64, 64, 300, 300, 300, 1500, 4096, 20_000]) as u32;
        let functions = (0..count)
            .map(|index| {
                // Up to three functions live on each node.
                let address =
                    FunctionId { node: 1 + index as u32 / 3, function: (index % 3 * 41) as u8 };
                (address, config(&mut chance, is_patient, hpcl_per_mille, longest_bytes))
            })
            .collect();
        let mut pairs = Vec::new();
        for first in 0..if is_incast { 1 } else { count } {
            for second in first + 1..count {
                // A chain joins all functions, so that none is isolated.
                if is_incast || second == first + 1 || chance.hits(400) {
                    let swapped = chance.hits(500);
                    pairs.push(if swapped { (second, first) } else { (first, second) });
                }
            }
        }
        // Two of five worlds have few faults, so that windows grow and many frames are in flight.
        let is_fair = chance.hits(400);
        let mut worst = |most: u64| chance.below(most + 1) as u32;
        let worst = Weather {
            loss: if is_fair { worst(20) } else { worst(512) },
            repeat: if is_fair { worst(10) } else { worst(200) },
            late: if is_fair { worst(10) } else { worst(300) },
            damage: if is_fair { worst(5) } else { worst(100) },
            replay: if is_fair { worst(3) } else { worst(30) },
        };
        let mut scenario = Scenario {
            seed,
            functions,
            pairs,
            both_ask: chance.hits(500),
            interfaces: chance.pick(&[1, 1, 2, 3]),
            latency_ns: [
                chance.between(500, 20_000),
                chance.between(500, 50_000),
                chance.between(500, 200_000),
            ],
            // In an incast the lines are the bottleneck.
            byte_ps: chance.pick(if is_incast { &[800, 8000] } else { &[0, 0, 100, 800, 8000] }),
            batch_ns: chance.pick(&[0, 0, 2_000, 20_000]),
            worst,
            restarts: chance.hits(300),
            closes: chance.hits(200),
            stalls: chance.hits(500),
            cuts: chance.hits(300),
            mtu_changes: chance.hits(300),
            is_patient,
            death: !is_patient && chance.hits(200),
            longest_bytes,
            pause_ns: chance.pick(&[500, 2_000, 10_000, 100_000]),
            frames: 1 << chance.between(8, 15),
            race: None,
            is_silent: chance.hits(300),
            attack: None,
            has_key: scatter(seed ^ 0x6b65_7973).is_multiple_of(8),
        };
        scenario.attack = chance.pick(&[
            None,
            None,
            Some(Attack::OffPath),
            Some(Attack::OffPath),
            Some(Attack::OffPathSeeking),
            Some(Attack::OnPath),
        ]);
        if scenario.seeks() {
            // A node that does not answer at its old place may be taken over, so here all nodes
            // answer.
            (scenario.cuts, scenario.death, scenario.interfaces) = (false, false, 1);
            // A restarted node would not know which peer was first.
            scenario.restarts = false;
            scenario.worst = Weather { loss: scenario.worst.loss.min(20), ..Weather::default() };
        }
        scenario
    }

    /// Seven senders share the line into the first function for a while; then an eighth joins.
    /// There are no faults.
    pub fn latecomer(seed: u64) -> Self {
        const SENDERS: usize = 8;
        const MS: u64 = 1_000_000;
        let address = |index: usize| FunctionId { node: 1 + index as u32, function: 0 };
        let config = Config {
            links: 64,
            queue_pairs: 64,
            retries: 100_000,
            keep_alive_probes: 100_000,
            ..Config::new(1500)
        };
        Scenario {
            functions: (0..=SENDERS).map(|index| (address(index), config)).collect(),
            pairs: (1..=SENDERS).map(|sender| (sender, 0)).collect(),
            both_ask: false,
            interfaces: 1,
            latency_ns: [5_000; 3],
            // 8 Gbit/s: less than the senders offer.
            byte_ps: 1_000,
            batch_ns: 0,
            worst: Weather::default(),
            restarts: false,
            closes: false,
            stalls: false,
            cuts: false,
            mtu_changes: false,
            is_patient: true,
            death: false,
            longest_bytes: 1024,
            pause_ns: 500,
            frames: u64::MAX,
            attack: None,
            has_key: false,
            race: Some(Race { joins_ns: 20 * MS, watched_from_ns: 40 * MS, ends_ns: 80 * MS }),
            is_silent: true,
            ..Scenario::new(seed)
        }
    }

    /// Whether node numbers are chosen, and nodes sought.
    pub fn seeks(&self) -> bool {
        self.attack == Some(Attack::OffPathSeeking)
    }

    /// Whether links may end while nothing in the world is broken for good.
    pub fn links_may_end(&self) -> bool {
        self.attack == Some(Attack::OnPath) || self.restarts || self.closes || !self.is_patient
    }
}

/// Settings of one function: small sizes, to reach every limit, and in some worlds the
/// production's.
fn config(
    chance: &mut Chance,
    is_patient: bool,
    hpcl_per_mille: u64,
    longest_bytes: u32,
) -> Config {
    let frame_bytes = chance.pick(&[256, 256, 512, 1500, 1500, 9000]);
    let is_hpcl = chance.hits(hpcl_per_mille);
    let base = if is_hpcl { Config::hpcl(frame_bytes) } else { Config::new(frame_bytes) };
    let packet_bytes = longest_bytes.max(256);
    let least = (packet_bytes + 64).next_power_of_two();
    let base = Config { packet_bytes, ..base };
    let base = if chance.hits(250) {
        base
    } else {
        Config {
            send_bytes: least << chance.below(5),
            receive_bytes: least << chance.below(5),
            window_frames: chance.pick(&[1, 2, 3, 8, 31, 64, 256, 1024]),
            early_frames: chance.pick(&[0, 1, 8, 64, 512]),
            acknowledge_every: chance.pick(&[1, 2, 16]),
            acknowledge_delay_ns: chance.pick(&[0, 5_000, 25_000]),
            ..base
        }
    };
    Config {
        links: 64,
        queue_pairs: 64,
        timeout_ns: [chance.pick(&[100_000, 500_000, 2_000_000]), 100_000_000],
        first_timeout_ns: 2_000_000,
        retries: if is_patient { 100_000 } else { base.retries },
        keep_alive_probes: if is_patient { 100_000 } else { base.keep_alive_probes },
        ..base
    }
}
