//! Four hosts whose interfaces a crossbar joins, as `chpp_quad` has them, beside the event-driven
//! machine with four nodes.

use std::sync::{Arc, Mutex};

use bellwire_wire::descriptor::Work;
use bellwire_wire::entry::{Chain, Entry};
use bellwire_wire::tail::Tail;

use super::beside::{LONG, Posted, event_by_event, in_cycles};
use super::*;
use crate::cycle::chpp_quad::{self, ChppQuad, PORTS};

/// The sizes of the gates.
const QUAD: chpp_quad::Shape =
    chpp_quad::Shape { nic: Shape { room: 4 * 257, ..Shape::PROTOTYPE }, channels: 2 };

/// All interfaces, and the hosts that have no room for reads.
struct Shared {
    quad: ChppQuad,
    closed: [bool; PORTS],
}

/// One of them. What moves between two is inside, where the machine does not see it.
struct Interfaced {
    shared: Arc<Mutex<Shared>>,
    at: usize,
}

impl Interface for Interfaced {
    fn cycle(&mut self, input: In) -> Out {
        let shared = &mut *self.shared.lock().unwrap();
        let read_credit = !shared.closed[self.at];
        let out = shared.quad.interface(self.at, In { read_credit, ..input });
        if self.at == PORTS - 1 {
            shared.quad.clock();
        }
        Out { from_credit: [false; CLASSES], to_valid: false, ..out }
    }

    fn taps(&self) -> Taps {
        self.shared.lock().unwrap().quad.taps(self.at)
    }
}

/// Four hosts that have opened all. No clock stands, as packets move unseen: so a test lets no time
/// pass in which nothing happens.
fn machine(quad: ChppQuad) -> (Machine<Interfaced>, Arc<Mutex<Shared>>) {
    let shared = Arc::new(Mutex::new(Shared { quad, closed: [false; PORTS] }));
    let interfaces = (0..PORTS).map(|at| Interfaced { shared: Arc::clone(&shared), at });
    let mut machine = Machine::new(&Config::prototype(), 1, interfaces.collect(), 4);
    machine.stands = false;
    while machine.is_pending() && machine.step(Time::ZERO + LONG) {}
    (machine, shared)
}

fn end(node: usize, function: u8) -> Endpoint {
    Endpoint::new(node as u8, function, 0).unwrap()
}

/// The other processors.
fn others(node: usize) -> impl Iterator<Item = usize> {
    (0..PORTS).filter(move |&other| other != node)
}

/// Bytes of an operation.
const BYTES: usize = 300;

/// Where memory begins that programs of a function may use.
fn place(machine: &Machine<Interfaced>, of: Endpoint) -> u64 {
    machine.window(of.cpu().into(), of.function().into())[1]
}

/// What lies there, which is something else in each function of each processor.
fn pattern(of: Endpoint) -> impl Iterator<Item = u8> {
    let first = 8 * of.cpu() + of.function();
    (0..BYTES).map(move |at| (at as u8).wrapping_mul(7).wrapping_add(first))
}

fn fill(machine: &mut Machine<Interfaced>) {
    for of in (0..PORTS).flat_map(|node| (0..8).map(move |function| end(node, function))) {
        let at = place(machine, of);
        let memory = machine.memory_mut(at, BYTES).unwrap().iter_mut();
        memory.zip(pattern(of)).for_each(|(byte, here)| *byte = here);
    }
}

/// How much longer an operation takes than in the event-driven machine: for the own processor, and
/// for another one.
type Later = [[f64; 2]; 2];

/// That of a kind, over all processors. Four operations go at the same time, from each processor
/// and to each, so none waits for another one.
fn later_ns(machine: &mut Machine<Interfaced>, config: &Config, kind: Kind) -> Later {
    let mut posted = Vec::new();
    for step in 0..PORTS {
        for from in 0..PORTS {
            let at = Span::from_ns(3_000) * step as u64;
            let [from, to] = [end(from, step as u8), end((from + step) % PORTS, 4 + step as u8)];
            posted.push(Posted { at, kind, bytes: BYTES as u64, from, to });
        }
    }
    fill(machine);
    let [here, there] = [in_cycles(machine, &posted), event_by_event(config, &posted)];
    for Posted { from, to, .. } in &posted {
        // A NAP goes to a slot, and its event alone is looked at.
        let (source, target) = if kind == Kind::Get { (to, from) } else { (from, to) };
        let came = machine.memory(place(machine, *target), BYTES).unwrap();
        let sent = if kind.is_nap() { target } else { source };
        assert!(came.iter().copied().eq(pattern(*sent)), "{} {from:?} {to:?}", kind.name());
    }
    [0..PORTS, PORTS..PORTS * PORTS].map(|of| {
        let ns = |at: Option<Time>| (at.expect("it has an event") - Time::ZERO).as_ns();
        let later = of.map(|at| ns(here.0[at]) - ns(there.0[at]));
        later.fold([f64::INFINITY, f64::NEG_INFINITY], |[least, most], later| {
            [least.min(later), most.max(later)]
        })
    })
}

/// Each reaches each, and their bytes arrive. What each has for itself takes as long as in the
/// event-driven machine, within seven cycles. To another processor are two crossbars more, of four
/// cycles each, and a GET goes there and back.
// shows: C-04
#[test]
fn each_reaches_each_in_its_time() {
    let (mut machine, _) = machine(ChppQuad::new(QUAD));
    let config = Config::of_gates();
    let cycle_ns = config.nic.cycle().as_ns();
    for kind in Kind::ALL {
        let [own, other] = later_ns(&mut machine, &config, kind);
        assert!(own.iter().all(|ns| ns.abs() <= 7.0 * cycle_ns), "{}: {own:?} ns", kind.name());
        let ways = if kind == Kind::Get { 2.0 } else { 1.0 };
        let crossbars_ns = ways * 2.0 * 4.0 * cycle_ns;
        for (own, other) in own.into_iter().zip(other) {
            let rest_ns = other - own - crossbars_ns;
            assert!(rest_ns.abs() <= 2.0 * cycle_ns, "{}: {own}, {other} ns", kind.name());
        }
    }
}

/// Lets all that can come to its end do so. Says which operations have had their events, by the
/// numbers in tails.
fn run(machine: &mut Machine<Interfaced>, came: &mut [bool]) {
    let until = machine.now() + LONG;
    while machine.is_pending() && machine.step(until) {
        while let Some(Told { ring, event, .. }) = machine.next_told() {
            if ring == RingKind::Receive {
                let number = event.tail.immediate().unwrap() as usize;
                assert!(!std::mem::replace(&mut came[number], true), "{number} has come twice");
            }
        }
    }
    assert_eq!(machine.fault(), None);
}

/// Posts an operation of some bytes. A GET has a descriptor that is nearly as long as one may be.
fn post(machine: &mut Machine<Interfaced>, number: usize, kind: Kind, ends: [Endpoint; 2]) {
    let [from, to] = ends;
    ends.into_iter().for_each(|end| machine.consumes(end, true));
    let places = ends.map(|end| place(machine, end));
    let keys = ends.map(|end| machine.key(end));
    // All but one of the destinations are empty.
    let mut destinations = vec![Entry { address: places[0], length: 0 }; 253];
    destinations[0].length = BYTES as u64;
    let sources = [Entry { address: places[1], length: BYTES as u64 }];
    let chain = Chain { sources: (&sources[..]).into(), destinations: (&destinations[..]).into() };
    let about = (ends.into(), places.into(), (BYTES as u64, &[7; BYTES][..]), keys.into());
    let (ends, places, data, keys) = about;
    let posted = event_driven::described(kind, ends, places, data, keys, |descriptor| {
        let mut descriptor = *descriptor;
        descriptor.tail = Tail::new(&(number as u64).to_le_bytes()).unwrap();
        if let Work::Get { return_magic, .. } = descriptor.work {
            descriptor.work = Work::Get { chain, return_magic };
        }
        machine.post(from.cpu().into(), from.function().into(), &descriptor)
    });
    posted.unwrap();
    assert!(kind != Kind::Get || to.cpu() != from.cpu());
}

/// A host has no room for reads, so it serves no GET, and places for GETs are full up to the
/// crossbar. Then PUTs and NAPs go from each of the others to each, also to that host, and then it
/// has room again. Says how many of the PUTs and NAPs came meanwhile, how many there were, and how
/// many GETs came: before there was room, and of all in the end.
fn behind_gets(quad: ChppQuad) -> ([usize; 2], [usize; 2]) {
    let (mut machine, shared) = machine(quad);
    let mut came = vec![false; 100];
    let count = |came: &[bool]| came.iter().filter(|came| **came).count();
    shared.lock().unwrap().closed[3] = true;
    for number in 0..GETS {
        post(&mut machine, number, Kind::Get, [end(number % 3, 1), end(3, 2)]);
    }
    run(&mut machine, &mut came);
    let mut number = GETS;
    for from in 0..3 {
        for to in others(from) {
            for kind in [Kind::Put, Kind::NapImmediate, Kind::NapIndirect] {
                post(&mut machine, number, kind, [end(from, 3), end(to, 4)]);
                number += 1;
            }
        }
    }
    run(&mut machine, &mut came);
    let (gets, others) = (count(&came[..GETS]), count(&came[GETS..number]));
    shared.lock().unwrap().closed[3] = false;
    post(&mut machine, number, Kind::Put, [end(3, 5), end(0, 5)]);
    run(&mut machine, &mut came);
    ([others, number - GETS], [gets, count(&came[..GETS])])
}

/// GETs of three processors, which all of them have places for.
const GETS: usize = 15;

/// GETs that wait stop no PUT and no NAP, however long their descriptors are. When their host can
/// serve them, it serves all.
// shows: C-27
#[test]
fn gets_that_wait_stop_no_puts() {
    assert_eq!(behind_gets(ChppQuad::new(QUAD)), ([27, 27], [0, GETS]));
}

/// Canary: with the room that `nic_core` has alone, PUTs wait behind a GET that has a place.
#[test]
fn gets_without_room_stop_puts() {
    let nic = Shape::PROTOTYPE;
    let ([others, all], _) = behind_gets(ChppQuad::tight(chpp_quad::Shape { nic, ..QUAD }));
    assert!(others < all, "{others} of {all}");
}
