use super::single::single;
use super::*;
use crate::chpp::experiments::Kind;
use crate::chpp::experiments::single as event_driven;
use crate::chpp::journal::Stage;
use crate::cycle::nic_core::Shape;

/// Two nodes with blocks of the sizes that the gates have.
fn machine() -> Machine<ChppNic> {
    let blocks = [(); 2].map(|()| ChppNic::new(Shape::PROTOTYPE));
    Machine::new(&Config::prototype(), 1, blocks.into(), Shape::PROTOTYPE.packets)
}

/// Each kind of operation arrives, in about the time that the event-driven machine needs. The two
/// have nothing in common but hosts, wires and formats.
#[test]
fn operations_take_as_long_as_in_the_event_driven_machine() {
    let mut machine = machine();
    for kind in Kind::ALL {
        for bytes in [1, 64, 256, 1024, 2048, 65_536] {
            if kind.is_nap() && bytes > 2048 {
                continue;
            }
            let here = single(&mut machine, kind, bytes).unwrap().total.as_ns();
            let there = event_driven::single(&Config::prototype(), kind, bytes).unwrap();
            let ratio = here / there.latency.as_ns();
            assert!((0.85..1.15).contains(&ratio), "{} of {bytes}: {ratio}", kind.name());
        }
    }
}

/// The stages of an operation are those that it goes through, one behind the other, and their times
/// add up.
#[test]
fn stages_tell_where_time_goes() {
    use Stage::*;
    let mut machine = machine();
    let begins = [Processor, DoorbellWrite, Doorbell, Arbiter, DescriptorRead, DescriptorMemory];
    let reads = [DataRead, DataMemory];
    let ends = [DataReorder, Packer, Crossbar, Dispatch, Upload, DataWrite, EventWrite];
    for kind in Kind::ALL {
        let found = single(&mut machine, kind, 128).unwrap();
        let mut expected = begins.to_vec();
        expected.push(DescriptorExtract);
        expected.extend((kind == Kind::Get).then_some(GetTrip));
        expected.extend(reads.iter().filter(|_| kind != Kind::NapImmediate));
        expected.extend(ends);
        let stages: Vec<Stage> = found.intervals.iter().map(|interval| interval.stage).collect();
        assert_eq!(stages, expected, "{}", kind.name());
        assert_eq!(found.accounted(), found.total);
        // Wires, memory and the processor take what the configuration says, as there.
        assert_eq!(found.time_in(Processor), Config::prototype().host.cpu_start);
        let there = event_driven::single(&Config::prototype(), kind, 128).unwrap().explanation;
        for stage in [DoorbellWrite, DescriptorMemory, DataMemory] {
            let [here, there] = [&found, &there].map(|it| it.time_in(stage).as_ns());
            assert!(here >= 0.85 * there && here <= 1.15 * there, "{stage:?}: {here}, {there}");
        }
    }
}

/// A clock that never stands changes nothing but the count of cycles.
#[test]
fn a_standing_clock_changes_nothing() {
    let [stands, goes] = [true, false].map(|stands| {
        let mut machine = machine();
        machine.stands = stands;
        let times = [8, 300].map(|bytes| {
            let span = single(&mut machine, Kind::Put, bytes).unwrap().total;
            // Software does nothing for a while.
            let until = machine.now() + Span::from_ns(20_000);
            while machine.now() < until {
                machine.step(until);
            }
            (span, machine.now())
        });
        (times, machine.trace_hash(), machine.cycles())
    });
    assert_eq!((stands.0, stands.1), (goes.0, goes.1));
    assert!(stands.2 < goes.2, "{} and {} cycles", stands.2, goes.2);
}

/// Queue pairs of all functions have their rings, keys and slots: each sends to each of another
/// node, more than its ring and its list have entries.
#[test]
fn all_queue_pairs_are_open() {
    let mut machine = machine();
    let mut came = 0;
    let rounds = 70;
    for pair in 0..32 {
        let (function, queue_pair) = (pair / 4, pair % 4);
        let [from, to] = [0, 1].map(|node| Endpoint::new(node, function, queue_pair).unwrap());
        [from, to].into_iter().for_each(|end| machine.consumes(end, true));
        for round in 0..if pair % 8 == 0 { rounds } else { 2 } {
            let keys = (machine.key(from), machine.key(to));
            let data = [pair, round];
            let ends = (from, to);
            let posted = event_driven::described(
                Kind::NapImmediate,
                ends,
                (0, 0),
                (2, &data),
                keys,
                |descriptor| machine.post(0, function.into(), descriptor),
            );
            posted.unwrap();
            let until = machine.now() + Span::from_ns(1_000_000);
            while machine.is_pending() && machine.step(until) {}
            while let Some(told) = machine.next_told() {
                if told.ring == RingKind::Receive {
                    assert_eq!(
                        (told.function, told.queue_pair),
                        (function.into(), queue_pair.into())
                    );
                    assert_eq!(machine.memory(told.event.address, 2).unwrap(), data);
                    came += 1;
                }
            }
        }
    }
    assert_eq!(came, 4 * usize::from(rounds) + 28 * 2);
    assert_eq!(machine.fault(), None);
}
