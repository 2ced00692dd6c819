//! The block `cycle::packer` and [`Packer`] make the same packets, over random operations.
//!
//! Both get the same moves and bytes. The event-driven model has no delay of a module here, and
//! gets the bytes of a packet when gates have the packet whole: so it says from when on that could
//! leave. Its crossbar always has room.

use std::collections::VecDeque;

use super::*;
use crate::chpp::NicEvent;
use crate::chpp::config::{Config, Packing};
use crate::chpp::controllers::Controllers;
use crate::chpp::crossbar::Grant;
use crate::chpp::journal::Journal;
use crate::chpp::operations::Operations;
use crate::cycle::data_reorder::LANES;
use crate::cycle::line::{Beat, bytes_of};
use crate::cycle::packer::{self as gates, In, Out, Shape};
use crate::engine::{Model, Pool, Random, Schedule, Simulation};
use crate::units::Bytes;
use bellwire_wire::endpoint::Endpoint;
use bellwire_wire::entry::Move;

const PAPERS: Shape = Shape { beats: 256, packets: 16, payload: 128, longest: 2048 };

/// A cycle, in picoseconds.
const CYCLE: u64 = 4000;

/// The crossbar behind the event-driven packer.
struct Behind {
    controllers: Controllers,
    packets: Pool<Packet>,
    grants: Vec<Grant>,
    /// Of each packet, the cycle of its head, and its bytes.
    left: Vec<(u64, Vec<u8>)>,
    /// Cycles in which operations had left.
    sent: Vec<u64>,
}

impl Model for Behind {
    type Event = NicEvent;

    fn handle(&mut self, event: NicEvent, schedule: &mut Schedule<NicEvent>) {
        let crossbar = &mut self.controllers.crossbars[0];
        match event {
            NicEvent::CrossbarMatches { .. } => {
                crossbar.matches(schedule, &mut self.grants);
                for Grant { bound, head, .. } in self.grants.drain(..) {
                    self.left.push((head.ps() / CYCLE, self.packets.take(bound.packet).bytes));
                }
            }
            NicEvent::Crossed { input, output, .. } => {
                crossbar.crossed(schedule, input.into(), output.into());
            }
            _ => self.sent.push(schedule.now().ps() / CYCLE),
        }
    }
}

/// Operations, as both sides get them.
#[derive(Default)]
struct Work {
    moves: VecDeque<In>,
    data: VecDeque<In>,
    /// Of each packet, its operation's command, if it is the first one, and its bytes.
    packets: VecDeque<(Option<Box<Command>>, Vec<u8>)>,
}

impl Work {
    /// Some operations; `plain` ones are PUTs of several packets, without tails.
    fn random(operations: u32, plain: bool, random: &mut Random) -> Work {
        let mut work = Work::default();
        for operation in 0..operations {
            let is_put = plain || random.below(3) > 0;
            let longest = [20, 400][random.below(2) as usize];
            let mut moves = Vec::new();
            for _ in 0..1 + random.below(3) {
                let length =
                    if plain { 200 + random.below(800) } else { 1 + random.below(longest) };
                let destination = random.below((1 << 40) - 2048);
                moves.push(Move { source: 0, destination, length });
            }
            let tail: Vec<u8> = (0..random.below(17)).map(|_| random.word() as u8).collect();
            let endpoint = |cpu, random: &mut Random| {
                Endpoint::new(cpu, random.below(8) as u8, random.below(4) as u8).unwrap()
            };
            let length = match is_put {
                true => moves.iter().map(|it| it.length).sum(),
                false => [0, random.below(2049)][random.below(2) as usize],
            };
            let transfer = Transfer {
                source: endpoint(0, random),
                destination: endpoint(1, random),
                primitive: if is_put { Primitive::Put } else { Primitive::Nap },
                length,
                tail: if plain { Tail::EMPTY } else { Tail::new(&tail).unwrap() },
                ..Transfer::new(operation, Endpoint::new(0, 0, 0).unwrap(), 0)
            };
            let command = Command {
                magic: random.word() as u8,
                traffic_class: random.below(8) as u8,
                wants_event: random.below(2) == 1,
                moves: if is_put { moves } else { Vec::new() },
                ..Command::empty(transfer)
            };
            work.add(command, random);
        }
        work
    }

    fn add(&mut self, command: Command, random: &mut Random) {
        let Transfer { operation, source, destination, primitive, length, tail, .. } =
            command.transfer;
        let bits = |it: Endpoint| {
            u16::from(it.cpu()) << 5 | u16::from(it.function()) << 2 | u16::from(it.queue_pair())
        };
        let mut tail_bytes = [0; LANES];
        tail_bytes[..tail.len()].copy_from_slice(tail.as_bytes());
        let common = In {
            move_valid: true,
            move_primitive: primitive.code(),
            move_traffic_class: command.traffic_class,
            move_magic: command.magic,
            move_source: bits(source),
            move_destination: bits(destination),
            move_wants_event: command.wants_event,
            move_tail_bytes: tail.len() as u8,
            move_tail: Beat { bytes: tail_bytes, k: 0 }.words(),
            move_operation: operation as u8,
            ..In::default()
        };
        let (moves, limit): (Vec<(u64, u64)>, u64) = match primitive {
            Primitive::Put => {
                let runs = command.moves.iter().map(|it| (it.destination, it.length));
                (runs.collect(), PAPERS.payload as u64)
            }
            _ => (vec![(0, length)], length.max(1)),
        };
        let mut command = Some(Box::new(command));
        let mut all = Vec::new();
        for (at, &(address, bytes)) in moves.iter().enumerate() {
            let is_last = at + 1 == moves.len();
            self.moves.push_back(In {
                move_last: is_last,
                move_address: address,
                move_bytes: bytes,
                ..common
            });
            let data: Vec<u8> = (0..bytes).map(|_| random.word() as u8).collect();
            all.extend_from_slice(&data);
            match bytes {
                0 => self.packets.push_back((command.take(), data)),
                _ => data.chunks(limit as usize).for_each(|piece| {
                    self.packets.push_back((command.take(), piece.to_vec()));
                }),
            }
        }
        // Reads of any lengths and alignments.
        let mut rest = &all[..];
        while !rest.is_empty() {
            let mut lane = random.below(LANES as u64) as usize;
            let size =
                rest.len().min([128, 1 + random.below(60)][random.below(2) as usize] as usize);
            let (mut read, behind) = rest.split_at(size);
            rest = behind;
            while !read.is_empty() {
                let (beat, left) = read.split_at(read.len().min(LANES - lane));
                let mut bytes = [0; LANES];
                bytes[lane..lane + beat.len()].copy_from_slice(beat);
                self.data.push_back(In {
                    in_valid: true,
                    in_ends: left.is_empty() && rest.is_empty(),
                    in_from: lane as u8,
                    in_to: (lane + beat.len() - 1) as u8,
                    in_data: Beat { bytes, k: 0 }.words(),
                    ..In::default()
                });
                (read, lane) = (left, 0);
            }
        }
    }
}

/// What gates did.
#[derive(Default)]
struct Gates {
    /// Of each packet, the cycle of its head, and its bytes.
    left: Vec<(u64, Vec<u8>)>,
    /// Cycles and operations of reports.
    sent: Vec<(u64, u8)>,
}

/// Runs both, and compares packets and operations. Returns how many packets left, and how many of
/// them later than the event-driven model's.
fn side_by_side(config: &Config, plain: bool, seed: u64) -> Result<(usize, usize), String> {
    let mut random = Random::new(seed);
    let mut work = Work::random(300, plain, &mut random);
    let packets = work.packets.len();
    let controllers = Controllers::new(config, &mut random).unwrap();
    let behind = Behind {
        controllers,
        packets: Pool::default(),
        grants: Vec::new(),
        left: Vec::new(),
        sent: Vec::new(),
    };
    let schedule = Schedule::new(seed, Span::from_ps(CYCLE));
    let mut simulation = Simulation { model: behind, schedule };
    let (mut packer, mut data) = (Packer::default(), DataUnit::new(config));
    let (mut spare, mut notices) = (Vec::new(), VecDeque::new());
    let (mut journal, mut operations) = (Journal::default(), Operations::default());

    let mut block = gates::Packer::new(PAPERS);
    let mut seen = Gates::default();
    let mut before = Out::default();
    let (mut coming, mut head) = (Vec::new(), 0);
    let mut rates = [8, 8];
    for at in 0..4_000_000 {
        if seen.left.len() == packets && at > seen.left[packets - 1].0 + 200 {
            break;
        }
        if random.below(256) == 0 {
            rates = [1, 2].map(|_| [1, 4, 8, 8][random.below(4) as usize]);
        }
        let [moves, brings] = rates.map(|rate| random.below(8) < rate);
        let mut input = work.moves.front().copied().unwrap_or_default();
        input.move_valid &= moves;
        if let Some(beat) = work.data.front() {
            input.in_valid = brings;
            input.in_ends = beat.in_ends;
            (input.in_from, input.in_to, input.in_data) = (beat.in_from, beat.in_to, beat.in_data);
        }
        (input.out_ready, input.sent_ready) = (true, true);
        let out = block.cycle(input);
        if input.move_valid && out.move_ready {
            work.moves.pop_front();
        }
        if input.in_valid && out.in_ready {
            work.data.pop_front();
        }
        if out.out_valid {
            if coming.is_empty() {
                head = at;
            }
            coming.extend_from_slice(&bytes_of(out.out_data)[..=usize::from(out.out_to)]);
            if out.out_last {
                seen.left.push((head, std::mem::take(&mut coming)));
            }
        }
        if out.sent_valid {
            seen.sent.push((at, out.sent_operation));
        }

        // A packet is whole: the event-driven model gets its bytes.
        let gone = out.out_valid && out.out_last;
        let whole = out.packets + u8::from(gone) - before.packets;
        before = out;
        let now = Time::from_ps(at * CYCLE);
        while simulation.step(now) {}
        for _ in 0..whole {
            let (command, bytes) = work.packets.pop_front().expect("there is one");
            if let Some(command) = command {
                data.commands.push(now, command);
            }
            if !bytes.is_empty() {
                data.comes(&bytes, now);
            }
            let Behind { controllers, packets, .. } = &mut simulation.model;
            let mut cx = Context {
                schedule: &mut simulation.schedule,
                config,
                packets,
                spare: &mut spare,
                controllers,
                journal: &mut journal,
                operations: &mut operations,
                notices: &mut notices,
            };
            packer.turn(&mut cx, &mut data);
        }
    }
    while simulation.step(Time::from_ps(20_000_000 * CYCLE)) {}
    let Behind { left, sent, .. } = &simulation.model;
    if (left.len(), seen.left.len()) != (packets, packets) {
        return Err(format!("{} and {} packets of {packets}", left.len(), seen.left.len()));
    }
    let mut late = 0;
    for (at, ((head, bytes), (seen, gate_bytes))) in left.iter().zip(&seen.left).enumerate() {
        if bytes != gate_bytes {
            return Err(format!("packet {at} is {bytes:x?}, and in gates {gate_bytes:x?}"));
        }
        if *seen < head + 1 {
            return Err(format!("packet {at} leaves in cycle {seen}, and could in {head}"));
        }
        late += usize::from(*seen > head + 1);
    }
    let operations: Vec<u8> = seen.sent.iter().map(|it| it.1).collect();
    assert_eq!(operations, (0..300).map(|at| at as u8).collect::<Vec<_>>());
    if late == 0 {
        // A report is offered in the cycle after the last beat.
        let reports: Vec<u64> = seen.sent.iter().map(|it| it.0).collect();
        let expected: Vec<u64> = sent.iter().map(|last| last + 2).collect();
        assert_eq!(reports, expected);
    }
    Ok((packets, late))
}

fn config() -> Config {
    let mut config = Config::prototype();
    config.nic.module_cycles = 0;
    config.nic.packing = Packing::Streamed;
    config.crossbar.channels = 1;
    (config.crossbar.channel_packets, config.crossbar.receive_packets) = (1 << 20, 1 << 20);
    config
}

/// Gates make the same packets of the same operations, byte for byte, in the same order: PUTs of
/// several moves, NAPs, with and without data and tails, from reads of any alignment. No packet
/// leaves before its bytes have come. PUTs without a tail leave in the very cycles in which the
/// event-driven model's do, counted from then, and so are their reports.
#[test]
fn gates_make_the_same_packets() {
    for seed in 1..=4 {
        let (packets, late) = side_by_side(&config(), true, seed).unwrap();
        assert!(packets > 2000 && late == 0, "{late} of {packets}");
        let (packets, late) = side_by_side(&config(), false, seed).unwrap();
        // A tail takes a beat of its own there, and a report a cycle; what follows is late, too.
        assert!(packets > 600 && 0 < late && late < packets, "{late} of {packets}");
    }
}

/// Canary: packets of another size, and another delay, are noticed.
#[test]
fn other_packets_are_noticed() {
    let mut config = config();
    config.nic.put_payload = Bytes::new(64);
    side_by_side(&config, true, 1).unwrap_err();
    config.nic.put_payload = Bytes::new(128);
    config.nic.module_cycles = 40;
    side_by_side(&config, true, 1).unwrap_err();
}
