//! Tests of the fabric: times and counts that are computed by hand from the parameters.

use super::{Allocation, Fabric, FabricConfig, Injection, Select, Switching, Topology};
use crate::engine::{Event, Model, Policy, Random, Schedule, Simulation, first_from, nth_set};
use crate::units::{Span, Time};

const CYCLE: Span = Span::from_ns(4);

#[derive(Clone, Copy)]
enum Step {
    Tick,
    /// A terminal takes a packet out, late.
    Take {
        terminal: u32,
        vc: u8,
        beats: u16,
    },
}

impl Event for Step {
    fn trace(self) -> u64 {
        0
    }
}

struct Bench {
    fabric: Fabric,
    /// Cycles from the delivery of a packet until its terminal takes it out.
    delay: u64,
    /// Cycle, source, destination and tag of each delivery.
    delivered: Vec<(u64, u32, u32, u64)>,
    /// Cycle and tag of each departure.
    departed: Vec<(u64, u64)>,
}

impl Model for Bench {
    type Event = Step;

    fn handle(&mut self, step: Step, schedule: &mut Schedule<Step>) {
        let fabric = &mut self.fabric;
        if let Step::Take { terminal, vc, beats } = step {
            return fabric.release(schedule, terminal, vc, beats, Step::Tick);
        }
        let cycle = fabric.cycle();
        fabric.tick(schedule, Step::Tick);
        let cycle = fabric.cycle().saturating_sub(1).max(cycle);
        self.departed.extend(fabric.departures().map(|packet| (cycle, packet.tag)));
        let delivered: Vec<_> = fabric.deliveries().collect();
        for it in delivered {
            let packet = it.packet;
            self.delivered.push((it.cycle, packet.source, packet.destination, packet.tag));
            let (terminal, vc, beats) = (packet.destination, it.vc, packet.beats);
            match self.delay {
                0 => fabric.release(schedule, terminal, vc, beats, Step::Tick),
                delay => schedule.after(CYCLE * delay, Step::Take { terminal, vc, beats }),
            }
        }
        fabric.audit().unwrap();
    }
}

/// Runs packets (source, destination, beats, class) that all come at once; their tags count.
fn run(fabric: Fabric, delay: u64, packets: &[(u32, u32, u16, u8)]) -> Bench {
    let mut schedule = Schedule::new(1, CYCLE);
    let mut bench = Bench { fabric, delay, delivered: Vec::new(), departed: Vec::new() };
    for (tag, &(source, destination, beats, class)) in (0..).zip(packets) {
        let injection = Injection { source, destination, beats, class, tag };
        bench.fabric.inject(&mut schedule, injection, Step::Tick);
    }
    let mut simulation = Simulation { model: bench, schedule };
    simulation.run(Time::NEVER);
    assert_eq!(simulation.model.fabric.packets_inside(), 0);
    simulation.model
}

fn cycles(bench: &Bench) -> Vec<u64> {
    bench.delivered.iter().map(|it| it.0).collect()
}

/// Routers in a row, each with a terminal.
fn row(routers: usize, config: FabricConfig) -> Fabric {
    let links: Vec<(usize, usize)> = (1..routers).map(|at| (at - 1, at)).collect();
    let topology = Topology::from_links("row", routers, 1, &links).unwrap();
    Fabric::new(topology, config, 1).unwrap()
}

/// A crossbar for cells: no limit, and no delay but one cycle on each line.
fn crossbar(ports: usize, config: FabricConfig, seed: u64) -> Fabric {
    let config = FabricConfig { buffer_beats: 0, pipeline_cycles: 0, ..config };
    Fabric::new(Topology::crossbar(ports).unwrap(), config, seed).unwrap()
}

/// A packet alone. Its head takes the terminal's line (3), three pipelines (5), two links (7) and
/// the last line (3): 3 + 15 + 14 + 3 = 35 cycles; three more beats follow. Store-and-forward waits
/// for these three in each router: 9 more. The source sends its last beat in cycle 3.
#[test]
fn a_packet_alone_takes_its_lines_and_pipelines() {
    crate::limit::limited(|| {
        for (switching, at) in [
            (Switching::Wormhole, 38),
            (Switching::CutThrough, 38),
            (Switching::StoreAndForward, 47),
        ] {
            let config = FabricConfig {
                switching,
                pipeline_cycles: 5,
                link_cycles: 7,
                terminal_cycles: 3,
                ..FabricConfig::default()
            };
            let bench = run(row(3, config), 0, &[(0, 2, 4, 0)]);
            assert_eq!(bench.delivered, [(at, 0, 2, 0)], "{switching:?}");
            assert_eq!(bench.departed, [(3, 0)]);
            let counters = bench.fabric.counters();
            assert_eq!((counters.packets_in, counters.packets_out), (1, 1));
            assert_eq!((counters.beats_in, counters.beats_out, counters.hops), (4, 4, 12));
            assert_eq!(
                (counters.lost_requests, counters.vc_contests, counters.vcs_beside),
                (0, 0, 0)
            );
        }
    });
}

/// Terminals and routers beyond the 64th work as the others do.
#[test]
fn routers_beyond_a_word_work() {
    crate::limit::limited(|| {
        let first = run(row(2, FabricConfig::default()), 0, &[(1, 0, 4, 0)]);
        let later = run(row(72, FabricConfig::default()), 0, &[(70, 69, 4, 0)]);
        assert_eq!(cycles(&later), cycles(&first));
    });
}

/// A loop of credits. The link's is 4 (link) + 2 (pipeline) + 2 (credit) = 8 cycles for a buffer of
/// 4 beats. The first beat is sent in cycle 0, crosses in 3, crosses again in 9 and is delivered in
/// 10; so beats come in groups of 4, every 8 cycles. The terminal's loop, 1 + 2 + 2, is shorter.
#[test]
fn a_link_carries_its_credits_in_each_loop() {
    crate::limit::limited(|| {
        let config = FabricConfig {
            buffer_beats: 4,
            link_cycles: 4,
            credit_cycles: 2,
            ..FabricConfig::default()
        };
        let one = (0, 1, 1, 0);
        let bench = run(row(2, config.clone()), 0, &[one; 12]);
        let expected: Vec<u64> = (0..12).map(|at| 10 + at / 4 * 8 + at % 4).collect();
        assert_eq!(cycles(&bench), expected);
        // The same beats in one packet: its last beat comes when the last single one does.
        let bench = run(row(2, config.clone()), 0, &[(0, 1, 12, 0)]);
        assert_eq!(cycles(&bench), [10 + 2 * 8 + 3]);
        // In the first router beats 4 and 8 come in cycles 8 and 16, when all credits are away.
        // They leave in 11 and 19, and each of the three behind them a cycle later, when its credit
        // is back.
        let waited: u64 = bench.fabric.stats.iter().map(|stats| stats.credit_wait).sum();
        assert_eq!(waited, (3 + 3) + (3 + 3));
        // A credit's way of 3 cycles makes the loop 9.
        let slow = FabricConfig { credit_cycles: 3, ..config.clone() };
        let expected: Vec<u64> = (0..12).map(|at| 10 + at / 4 * 9 + at % 4).collect();
        assert_eq!(cycles(&run(row(2, slow), 0, &[one; 12])), expected);
        // Cut-through asks for room for a whole packet of 3. The second leaves its terminal when
        // two credits are back, in cycle 6, and is here in 9. In 12 two credits of the link are
        // back, too.
        let config = FabricConfig { switching: Switching::CutThrough, ..config };
        let bench = run(row(2, config), 0, &[(0, 1, 3, 0); 2]);
        assert_eq!(cycles(&bench), [12, 21]);
    });
}

/// A terminal takes a packet when it comes: its loop is the line (3) and the credit's way (2). One
/// that takes it 4 cycles later has a loop of 9. The first beat crosses in cycle 3 and is delivered
/// in 6.
#[test]
fn a_terminal_returns_credits_when_it_takes() {
    crate::limit::limited(|| {
        let config = FabricConfig {
            sink_beats: 1,
            buffer_beats: 0,
            pipeline_cycles: 0,
            terminal_cycles: 3,
            credit_cycles: 2,
            ..FabricConfig::default()
        };
        for (delay, round) in [(0, 5), (4, 9)] {
            let fabric = Fabric::new(Topology::crossbar(2).unwrap(), config.clone(), 1).unwrap();
            let bench = run(fabric, delay, &[(0, 1, 1, 0); 4]);
            assert_eq!(cycles(&bench), [6, 6 + round, 6 + 2 * round, 6 + 3 * round]);
        }
    });
}

/// Four inputs ask for one output. With one virtual channel they take turns for it: 3 of 4
/// allocations are contested, and no request is lost, as only one input has a channel. With four
/// channels each input gets one in the first cycle, three of them beside others; then 4, 3, 2 and 1
/// requests lose 3, 2, 1 and 0.
#[test]
fn inputs_take_turns() {
    let packets: Vec<_> = (0..8).map(|at| (at % 4, 0, 1, 0)).collect();
    for (vcs, contests, beside, lost) in [(1, 3, 0, 0), (4, 3, 3, 6)] {
        let config = FabricConfig { vcs, ..FabricConfig::default() };
        let bench = run(crossbar(4, config.clone(), 7), 0, &packets[..4]);
        // Sent in cycle 0, they cross in 1, 2, 3 and 4.
        assert_eq!(cycles(&bench), [2, 3, 4, 5]);
        let counters = bench.fabric.counters();
        assert_eq!(
            (counters.vc_contests, counters.vcs_beside, counters.lost_requests),
            (contests, beside, lost),
            "{vcs} channels"
        );
        // They wait 0, 1, 2 and 3 cycles for the only channel.
        let waited: u64 = bench.fabric.stats.iter().map(|stats| stats.vc_wait).sum();
        assert_eq!(waited, if vcs == 1 { 6 } else { 0 });
        for seed in 0..8 {
            let bench = run(crossbar(4, config.clone(), seed), 0, &packets);
            let inputs: Vec<u32> = bench.delivered.iter().map(|it| it.1).collect();
            assert!(inputs.windows(2).all(|two| two[1] == (two[0] + 1) % 4), "{inputs:?}");
        }
    }
}

/// Inputs with weights 3 and 1 have three turns of four and one, with one virtual channel or with
/// several; the lowest input goes first where the policy is strict.
#[test]
fn inputs_are_served_by_policy() {
    crate::limit::limited(|| {
        let packets: Vec<_> = (0..32).map(|at| (at % 2, 0, 1, 0)).collect();
        for (vcs, seed) in [(1, 0), (1, 1), (2, 2), (2, 3)] {
            let inputs = |policy, weights: &[u32]| {
                let (allocation, weights) = (Allocation::Policy(policy), weights.to_vec());
                let config = FabricConfig { vcs, allocation, weights, ..FabricConfig::default() };
                let bench = run(crossbar(2, config, seed), 0, &packets);
                bench.delivered.iter().map(|it| it.1).collect::<Vec<u32>>()
            };
            let weighted = inputs(Policy::Weighted, &[3, 1]);
            for four in weighted[..16].chunks(4) {
                assert_eq!(four.iter().filter(|&&input| input == 0).count(), 3, "{weighted:?}");
            }
            let fair = inputs(Policy::Weighted, &[]);
            assert!(fair.chunks(2).all(|two| two[0] != two[1]), "{fair:?}");
            let in_turn = fair.windows(2).all(|two| two[0] != two[1]);
            assert!(in_turn || vcs > 1, "{fair:?}");
            let strict = inputs(Policy::Strict, &[]);
            let first = strict[..16].iter().filter(|&&input| input == 0).count();
            // With one channel the other input may have it when a packet is at the front again.
            assert!(first >= if vcs == 1 { 8 } else { 15 }, "{strict:?}");
        }
    });
}

/// Weights are those of the inputs of each router: of the second, the terminal has weight 3, and
/// the link from the first has weight 1.
#[test]
fn each_router_has_its_weights() {
    let packets: Vec<_> = (0..64).map(|at| (at % 2, 1, 1, 0)).collect();
    for (vcs, seed) in [(1, 0), (2, 1), (2, 2)] {
        let config = FabricConfig {
            vcs,
            allocation: Allocation::Policy(Policy::Weighted),
            weights: vec![3, 1],
            ..FabricConfig::default()
        };
        let topology = Topology::from_links("row", 2, 1, &[(0, 1)]).unwrap();
        let bench = run(Fabric::new(topology, config, seed).unwrap(), 0, &packets);
        let sources: Vec<u32> = bench.delivered.iter().map(|it| it.1).collect();
        let of_terminal = sources[8..32].iter().filter(|&&source| source == 1).count();
        assert!((17..=19).contains(&of_terminal), "{vcs} channels: {sources:?}");
    }
}

/// A packet holds its virtual channel to its end: with one, packets of 3 beats come one after the
/// other; with two, their beats alternate.
#[test]
fn packets_hold_their_channel() {
    crate::limit::limited(|| {
        let packets = [(0, 0, 3, 0), (1, 0, 3, 0)];
        for (vcs, last) in [(1, [4, 7]), (2, [6, 7])] {
            let config = FabricConfig { vcs, ..FabricConfig::default() };
            let bench = run(crossbar(2, config, 1), 0, &packets);
            assert_eq!(cycles(&bench), last, "{vcs} channels");
        }
    });
}

/// An input that asked for nothing has saved up no turns: 16 packets of input 0 alone, and then the
/// turns of equal inputs alternate from the first on. With weights 1 and 2 the input that comes
/// late has two turns of three.
#[test]
fn idle_inputs_save_up_no_turns() {
    let alone = [(0, 0, 1, 0); 16];
    let both: Vec<_> = (0..16).map(|at| (at % 2, 0, 1, 0)).collect();
    for (weights, late) in [(vec![], 4), (vec![1, 2], 6)] {
        for seed in 0..4 {
            let config = FabricConfig {
                vcs: 2,
                allocation: Allocation::Policy(Policy::Weighted),
                weights: weights.clone(),
                ..FabricConfig::default()
            };
            let first = run(crossbar(3, config, seed), 0, &alone);
            let bench = run(first.fabric, 0, &both);
            let inputs: Vec<u32> = bench.delivered[..9].iter().map(|it| it.1).collect();
            let of_late = inputs.iter().filter(|&&input| input == 1).count();
            assert!((late..=late + 1).contains(&of_late), "{weights:?} {inputs:?}");
        }
    }
}

/// Nor against a long packet that already has its channel. When the packet of input 1 comes, both
/// take turns beat by beat: it ends within two cycles of that of input 0.
#[test]
fn turns_are_not_saved_up_for_long_packets() {
    let config = FabricConfig {
        vcs: 2,
        allocation: Allocation::Policy(Policy::Weighted),
        ..FabricConfig::default()
    };
    for seed in 0..4 {
        let first = run(crossbar(3, config.clone(), seed), 0, &[(0, 0, 1, 0); 16]);
        let bench = run(first.fabric, 0, &[(0, 0, 12, 0), (1, 1, 1, 0), (1, 0, 12, 0)]);
        let end = |tag| bench.delivered.iter().find(|it| it.3 == tag).unwrap().0;
        assert!(end(0).abs_diff(end(2)) <= 2, "{:?}", bench.delivered);
    }
}

/// Nor is what an input lags behind taken from it while it asks. One that comes late has two turns
/// of weight 1 less than the other, which then is charged one more for its channel. With weight 8 a
/// packet takes two eighths, for channel and beat, and the first channel one: 12 packets come
/// first.
#[test]
fn a_heavy_input_catches_up() {
    let both: Vec<_> = (0..60).map(|at| (at % 2, 0, 1, 0)).collect();
    let config = FabricConfig {
        vcs: 2,
        allocation: Allocation::Policy(Policy::Weighted),
        weights: vec![1, 8],
        ..FabricConfig::default()
    };
    for seed in 0..4 {
        let first = run(crossbar(3, config.clone(), seed), 0, &[(0, 0, 1, 0); 16]);
        let bench = run(first.fabric, 0, &both);
        let inputs: Vec<u32> = bench.delivered.iter().map(|it| it.1).collect();
        assert_eq!(inputs.iter().position(|&input| input == 0), Some(12), "{inputs:?}");
    }
}

/// Cut-through takes a channel that has room for the whole packet. Of packets of 3 beats two go at
/// once, each on a channel with 4 credits, one of which is left. They cross from cycles 1 and 4 on,
/// and each credit is back 10 cycles later: in cycle 12 the first channel has three again, and in
/// 15 the second.
#[test]
fn whole_packets_wait_for_their_room() {
    let config = FabricConfig {
        vcs: 2,
        switching: Switching::CutThrough,
        buffer_beats: 4,
        pipeline_cycles: 0,
        credit_cycles: 10,
        ..FabricConfig::default()
    };
    for seed in 0..4 {
        let topology = Topology::crossbar(2).unwrap();
        let fabric = Fabric::new(topology, config.clone(), seed).unwrap();
        let bench = run(fabric, 0, &[(0, 1, 3, 0); 4]);
        assert_eq!(bench.departed, [(2, 0), (5, 1), (14, 2), (17, 3)]);
    }
}

/// Two classes share two channels, each with a lane at the terminal. A lane takes a channel that
/// the other does not hold, so that no packet is cut into by another: each is there two cycles
/// after its last beat has left. Long packets hold theirs while short ones come and go.
#[test]
fn lanes_take_free_channels() {
    let class = super::Class { first_vc: 0, vcs: 2 };
    let config = FabricConfig { vcs: 2, classes: vec![class; 2], ..FabricConfig::default() };
    let packets: Vec<_> = (0..24).map(|at| (0, 1, [9, 1][at % 2], (at % 2) as u8)).collect();
    for seed in 0..4 {
        let bench = run(crossbar(2, config.clone(), seed), 0, &packets);
        let mut came: Vec<(u64, u64)> = bench.delivered.iter().map(|it| (it.0, it.3)).collect();
        came.sort_unstable();
        let left = bench.departed.iter().map(|&(cycle, tag)| (cycle + 2, tag));
        assert_eq!(came, left.collect::<Vec<_>>());
    }
}

/// Two classes share one channel, each with a lane at the terminal. A packet holds the channel to
/// its end: packets of 3 beats leave in cycles 2 and 5, and not with their beats in turns.
#[test]
fn classes_may_share_a_channel() {
    let class = super::Class { first_vc: 0, vcs: 1 };
    let config = FabricConfig { vcs: 1, classes: vec![class; 2], ..FabricConfig::default() };
    let bench = run(crossbar(2, config, 1), 0, &[(0, 1, 3, 0), (0, 1, 3, 1)]);
    let departed: Vec<u64> = bench.departed.iter().map(|it| it.0).collect();
    assert_eq!((departed, cycles(&bench)), (vec![2, 5], vec![4, 7]));
}

/// Terminal 1 has 2 packets in the lane of destination 0 and one in that of destination 1. They
/// wait until their last beats have left, one beat in a cycle. The fabric works in cycles 0 to 5,
/// and after the last beat has left, it crosses and is delivered.
#[test]
fn terminals_count_what_waits() {
    let config = FabricConfig { vcs: 3, select: Select::Destination, ..FabricConfig::default() };
    let mut fabric = crossbar(2, config, 1);
    assert_eq!((fabric.config().vcs, fabric.topology().terminals()), (3, 2));
    let mut schedule = Schedule::new(1, CYCLE);
    for (tag, destination) in (0..).zip([0, 0, 1]) {
        let injection = Injection { source: 1, destination, beats: 2, class: 0, tag };
        fabric.inject(&mut schedule, injection, Step::Tick);
    }
    let model = Bench { fabric, delay: 0, delivered: Vec::new(), departed: Vec::new() };
    let mut bench = Simulation { model, schedule };
    let mut waiting = Vec::new();
    while bench.step(Time::NEVER) {
        waiting.push([0, 1].map(|terminal| bench.model.fabric.waiting(terminal)));
    }
    let departed: Vec<u64> = bench.model.departed.iter().map(|it| it.0).collect();
    let left = |cycle| 3 - departed.iter().filter(|&&at| at <= cycle).count() as u32;
    assert_eq!(waiting, (0..8).map(|cycle| [0, left(cycle)]).collect::<Vec<_>>());
    assert_eq!((departed.len(), departed[2]), (3, 5));
    assert_eq!(bench.model.fabric.counters().cycles, 8);
    let ports = bench.model.fabric.router_ports() as usize;
    assert_eq!([0, 1].map(|terminal| bench.model.fabric.sent(ports + terminal)), [0, 6]);
}

/// A fabric that sleeps until a beat comes at the end of a long link wakes for a packet that is
/// injected earlier. That one takes its line (1), the pipeline (2), and the last line (1).
#[test]
fn an_injection_wakes_the_fabric() {
    crate::limit::limited(|| {
        let config = FabricConfig { link_cycles: 40, ..FabricConfig::default() };
        let mut bench = Simulation {
            model: Bench {
                fabric: row(2, config),
                delay: 0,
                delivered: Vec::new(),
                departed: Vec::new(),
            },
            schedule: Schedule::new(1, CYCLE),
        };
        let of = |source, tag| Injection { source, destination: 1, beats: 1, class: 0, tag };
        bench.model.fabric.inject(&mut bench.schedule, of(0, 0), Step::Tick);
        bench.run(Time::ZERO + CYCLE * 20);
        bench.model.fabric.inject(&mut bench.schedule, of(1, 1), Step::Tick);
        bench.run(Time::NEVER);
        // The first takes 1 + 2, 40 + 2, and 1.
        assert_eq!(bench.model.delivered, [(24, 1, 1, 1), (46, 0, 1, 0)]);
    });
}

/// On rings a class of 5 channels from 1 on has 3 for packets that will cross the dateline, and 2
/// for those that have. No other class's channel is among them.
#[test]
fn halves_of_a_class_are_its_own() {
    use super::routing::DatelineClass;
    let classes = vec![super::Class { first_vc: 1, vcs: 5 }];
    let config = FabricConfig { vcs: 16, classes, ..FabricConfig::default() };
    let fabric = crossbar(2, config, 1);
    let (source, destination) = (0, 1);
    let packet =
        super::packets::Packet { source, destination, beats: 1, class: 0, tag: 0, born: 0 };
    let allowed = |class| fabric.allowed(&packet, class);
    assert_eq!(allowed(DatelineClass::Any), 0b11_1110);
    assert_eq!(allowed(DatelineClass::Before), 0b00_1110);
    assert_eq!(allowed(DatelineClass::After), 0b11_0000);
}

/// The first turns are drawn, each below its limit: no input, output or channel has an advantage.
#[test]
fn first_turns_are_drawn() {
    let config = FabricConfig { vcs: 8, ..FabricConfig::default() };
    let mut seen = [[0_u32; 8]; 5];
    for seed in 0..40 {
        let fabric = crossbar(8, config.clone(), seed);
        for port in &fabric.ports[..8] {
            let turns =
                [port.grant_turn, port.accept_turn, port.vc_turn, port.wait_turn, port.pick_turn];
            seen.iter_mut().zip(turns).for_each(|(seen, turn)| seen[usize::from(turn)] += 1);
        }
    }
    // 40 of 320 are expected of each.
    assert!(seen.iter().flatten().all(|count| (15..80).contains(count)), "{seen:?}");
}

/// Two channels of one input take turns at its output, and two lanes at its terminal. Packets of 2
/// beats of two classes: beats leave the terminal in turns, so that the packets end one cycle
/// apart, in cycles 2 + 2 and 2 + 3. In one class the second follows the first.
#[test]
fn channels_take_turns() {
    let class = |first_vc| super::Class { first_vc, vcs: 1 };
    let classes = vec![class(0), class(1)];
    let config = FabricConfig { vcs: 2, classes, ..FabricConfig::default() };
    let ends = |classes: [u8; 2]| {
        let packets = classes.map(|class| (0, 1, 2, class));
        let bench = run(crossbar(2, config.clone(), 1), 0, &packets);
        (cycles(&bench), bench.departed.iter().map(|it| it.0).collect::<Vec<_>>())
    };
    assert_eq!(ends([0, 1]), (vec![4, 5], vec![2, 3]));
    assert_eq!(ends([0, 0]), (vec![3, 5], vec![1, 3]));
}

/// The matching of each cycle, as its authors describe it, over queues that are always full enough.
struct Oracle {
    allocation: Allocation,
    iterations: u8,
    waiting: [[u32; 4]; 4],
    /// Whether the packet in front has no virtual channel yet.
    fresh: [[bool; 4]; 4],
    grant: [u32; 4],
    accept: [u32; 4],
    random: Random,
}

impl Oracle {
    /// The matches (input, output) of a cycle.
    fn cycle(&mut self) -> Vec<(usize, usize)> {
        let mut matches: Vec<(usize, usize)> = Vec::new();
        let by_lot = |random: &mut Random, set: u64| {
            nth_set(set, random.below(u64::from(set.count_ones())) as u32)
        };
        let policy = Allocation::Policy;
        // Channels are given by lot, too, and there is one for each.
        for output in 0..4 {
            let fresh = (0..4).filter(|&input| std::mem::take(&mut self.fresh[input][output]));
            let mut left = fresh.count() as u64;
            while left > 0 && [Allocation::Pim, policy(Policy::Random)].contains(&self.allocation) {
                self.random.below(left);
                left -= 1;
            }
        }
        for round in 0..self.iterations {
            let mut offers = [0_u64; 4];
            for output in 0..4 {
                let is_free = |input: usize| matches.iter().all(|it| it.0 != input);
                let asks = |&input: &usize| self.waiting[input][output] > 0 && is_free(input);
                let requests: u64 = (0..4).filter(asks).map(|input| 1 << input).sum();
                if requests == 0 || matches.iter().any(|it| it.1 == output) {
                    continue;
                }
                let input = match self.allocation {
                    Allocation::Pim => by_lot(&mut self.random, requests),
                    it if it == policy(Policy::Random) => by_lot(&mut self.random, requests),
                    it if it == policy(Policy::Strict) => requests.trailing_zeros() as usize,
                    _ => first_from(requests, self.grant[output]),
                };
                if self.allocation == policy(Policy::RoundRobin) {
                    self.grant[output] = input as u32 + 1;
                }
                offers[input] |= 1 << output;
            }
            for input in (0..4).filter(|&input| offers[input] != 0) {
                let output = match self.allocation {
                    Allocation::Pim => by_lot(&mut self.random, offers[input]),
                    _ => first_from(offers[input], self.accept[input]),
                };
                let is_islip = self.allocation == Allocation::Islip;
                if is_islip && round == 0 {
                    self.grant[output] = input as u32 + 1;
                }
                if !is_islip || round == 0 {
                    self.accept[input] = output as u32 + 1;
                }
                matches.push((input, output));
            }
        }
        for &(input, output) in &matches {
            self.waiting[input][output] -= 1;
            self.fresh[input][output] = self.waiting[input][output] > 0;
        }
        matches.sort_unstable();
        matches
    }
}

/// Inputs and outputs are matched as the oracle matches them, cycle by cycle, by iSLIP (McKeown
/// 1999), PIM (Anderson et al. 1993) and by policy, in one round and in three.
#[test]
fn matches_are_those_of_the_algorithms() {
    crate::limit::limited(|| {
        let policy = Allocation::Policy;
        for (allocation, iterations, seed) in [
            (Allocation::Islip, 1, 1),
            (Allocation::Islip, 3, 2),
            (Allocation::Islip, 4, 5),
            (Allocation::Pim, 1, 3),
            (Allocation::Pim, 3, 4),
            (policy(Policy::RoundRobin), 1, 5),
            (policy(Policy::RoundRobin), 3, 6),
            (policy(Policy::Strict), 2, 7),
            (policy(Policy::Strict), 4, 9),
            (policy(Policy::Random), 2, 8),
        ] {
            let config = FabricConfig {
                vcs: 4,
                select: Select::Destination,
                allocation,
                iterations,
                ..FabricConfig::default()
            };
            let mut fabric = crossbar(4, config, seed);
            let pointer = |of: fn(&super::parts::Port) -> u8| {
                [0, 1, 2, 3].map(|port| u32::from(of(&fabric.ports[port])))
            };
            let mut oracle = Oracle {
                allocation,
                iterations,
                waiting: [[0; 4]; 4],
                fresh: [[false; 4]; 4],
                grant: pointer(|port| port.grant_turn),
                accept: pointer(|port| port.accept_turn),
                random: fabric.random.clone(),
            };
            // Packets are in their queues from the beginning: terminals send one in each cycle, and
            // the first match is made when all have come.
            let mut schedule = Schedule::new(1, CYCLE);
            let mut random = Random::new(seed);
            let mut loads = Vec::new();
            for source in 0..4 {
                for _ in 0..30 {
                    let destination = random.below(4) as u32;
                    loads.push((source, destination));
                }
            }
            for (tag, &(source, destination)) in (0..).zip(&loads) {
                let injection = Injection { source, destination, beats: 1, class: 0, tag };
                fabric.inject(&mut schedule, injection, Step::Tick);
            }
            let mut bench = Simulation {
                model: Bench { fabric, delay: 0, delivered: Vec::new(), departed: Vec::new() },
                schedule,
            };
            bench.run(Time::NEVER);
            // In cycle c the terminals' packets of cycle c - 1 are in the queues.
            let order = |source: usize, bench: &Simulation<Bench>| {
                let mut left: Vec<(u64, u64)> = bench.model.departed.clone();
                left.retain(|&(_, tag)| loads[tag as usize].0 as usize == source);
                left
            };
            let departures = [0, 1, 2, 3].map(|source| order(source, &bench));
            for cycle in 1..200 {
                for (source, departures) in departures.iter().enumerate() {
                    for &(left, tag) in departures {
                        if left + 1 == cycle {
                            let output = loads[tag as usize].1 as usize;
                            oracle.fresh[source][output] |= oracle.waiting[source][output] == 0;
                            oracle.waiting[source][output] += 1;
                        }
                    }
                }
                let expected = oracle.cycle();
                let mut got: Vec<(usize, usize)> = bench
                    .model
                    .delivered
                    .iter()
                    .filter(|it| it.0 == cycle + 1)
                    .map(|it| (it.1 as usize, it.2 as usize))
                    .collect();
                got.sort_unstable();
                assert_eq!(got, expected, "{allocation:?}, {iterations} rounds, cycle {cycle}");
            }
            assert_eq!(bench.model.delivered.len(), 120);
        }
    });
}
