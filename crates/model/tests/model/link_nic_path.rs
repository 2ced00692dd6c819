//! Two whole interfaces of cHPP whose network is a link in each direction, with hosts that speak
//! TLPs. Lanes have skew, hit symbols, and die for a while. The lock-step of
//! `hardware/chpp_link_nic` has this load, too.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use bellwire_model::cycle::chpp_link_nic::{ChppLinkNic, In, Out, Shape};
use bellwire_model::cycle::{chpp_nic, lane_train, smp_link, smp_port};
use bellwire_model::engine::Random;

use super::core_path::{Fault, Interface, Path};
use super::nic_path::{Cycle, TlpHost};

const LANES: usize = 8;

/// A link whose buffers are often full, and that trains in a short time.
pub const PORT: smp_port::Shape = smp_port::Shape {
    link: smp_link::Shape {
        replay: 40,
        replay_after: 300,
        acknowledge_after: 20,
        headers: 4,
        data: 64,
        update_again_after: 200,
        init_again_after: 100,
        cut_through: true,
    },
    mark_every: 64,
    max_skew: 7,
    train: lane_train::Shape { every: 16, sets: 2, lost_after: 200 },
};

/// What lanes are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wires {
    /// Nothing happens to them.
    Sound,
    /// Symbols are hit, and lanes die for a while.
    Hit,
    /// One carries nothing at all.
    Cut,
}

/// What is seen of an interface.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// What enters in a cycle.
    pub enters: In,
    /// What leaves.
    pub leaves: Out,
    /// Times that lanes were trained, and that something was damaged.
    pub trained: u64,
    /// See `trained`.
    pub damaged: u64,
    /// Packets that were dropped, and what was refused.
    pub dropped: u64,
    /// See `dropped`.
    pub refused: u64,
}

/// The lanes to each end.
struct Lanes {
    random: Random,
    wires: Wires,
    words: [[VecDeque<(u8, u16)>; LANES]; 2],
    /// Lanes that carry nothing, and of 65,536 words of a lane, how many are hit.
    dead: [u8; 2],
    hit: u64,
}

impl Lanes {
    fn new(wires: Wires, max_skew: usize, seed: u64) -> Lanes {
        let mut random = Random::new(seed);
        let mut lane = || -> VecDeque<(u8, u16)> {
            (0..3 + random.below(max_skew as u64 + 1)).map(|_| (0, 0)).collect()
        };
        let words = [(); 2].map(|()| [(); LANES].map(|()| lane()));
        Lanes { random, wires, words, dead: [0; 2], hit: 0 }
    }

    /// What comes to an end in this cycle.
    fn comes(&mut self, at: usize) -> ([u8; LANES], [u16; LANES]) {
        if self.wires == Wires::Hit && self.random.below(1024) == 0 {
            self.hit = [0, 2, 16][self.random.below(3) as usize];
            self.dead[at] = if self.random.below(4) == 0 { 1 << self.random.below(8) } else { 0 };
        }
        if self.wires == Wires::Cut {
            self.dead[at] = 1;
        }
        let mut came = ([0; LANES], [0; LANES]);
        for lane in 0..LANES {
            let (k, mut data) = self.words[at][lane].pop_front().expect("one was put");
            if self.hit > 0 && self.random.below(65_536) < self.hit {
                data ^= 1 << self.random.below(16);
            }
            let is_dead = self.dead[at] >> lane & 1 == 1;
            (came.0[lane], came.1[lane]) = if is_dead { (0, 0) } else { (k, data) };
        }
        came
    }

    /// What an end sends.
    fn goes(&mut self, from: usize, out: &Out) {
        for lane in 0..LANES {
            self.words[1 - from][lane].push_back((out.lane_tx_k[lane], out.lane_tx_data[lane]));
        }
    }
}

/// What is seen of each interface.
pub type Both = [Rc<Cell<Seen>>; 2];

/// Both interfaces.
pub fn interfaces(shape: Shape, seed: u64, wires: Wires) -> ([Cycle; 2], Both) {
    let lanes = Rc::new(RefCell::new(Lanes::new(wires, shape.port.max_skew, seed)));
    let seen = Both::default();
    let cycle = |at: usize| interface(at, shape, Rc::clone(&lanes), Rc::clone(&seen[at]));
    ([cycle(0), cycle(1)], seen)
}

/// An interface at its lanes.
fn interface(at: usize, shape: Shape, lanes: Rc<RefCell<Lanes>>, seen: Rc<Cell<Seen>>) -> Cycle {
    let mut nic = ChppLinkNic::new(shape);
    Box::new(move |enters: chpp_nic::In| {
        let (lane_rx_k, lane_rx_data) = lanes.borrow_mut().comes(at);
        let enters = In {
            cpu: enters.cpu,
            cpus: enters.cpus,
            device: enters.device,
            base: enters.base,
            read_credit: enters.read_credit,
            rx_valid: enters.rx_valid,
            rx_last: enters.rx_last,
            rx_empty: enters.rx_empty,
            rx_data: enters.rx_data,
            tx_ready: enters.tx_ready,
            lane_rx_k,
            lane_rx_data,
        };
        let leaves = nic.cycle(enters);
        lanes.borrow_mut().goes(at, &leaves);
        let before = seen.get();
        seen.set(Seen {
            enters,
            leaves,
            trained: before.trained + u64::from(leaves.trained),
            damaged: before.damaged + u64::from(leaves.damaged),
            dropped: before.dropped + u64::from(leaves.dropped != [false; 2]),
            refused: before.refused + u64::from(leaves.refused),
        });
        chpp_nic::Out {
            rx_ready: leaves.rx_ready,
            tx_valid: leaves.tx_valid,
            tx_last: leaves.tx_last,
            tx_empty: leaves.tx_empty,
            tx_data: leaves.tx_data,
            ..Default::default()
        }
    })
}

/// Both interfaces with their hosts, and what is seen of each.
pub fn linked(shape: Shape, seed: u64, wires: Wires, fault: Fault) -> (Path, Both) {
    let (cycles, seen) = interfaces(shape, seed, wires);
    let cycles = RefCell::new(cycles.map(Some));
    let interface = |cpu: u8| -> Box<dyn Interface> {
        let cycle = cycles.borrow_mut()[usize::from(cpu)].take().expect("each has one host");
        Box::new(TlpHost::new(cycle, Rc::default(), 10 * seed + 5 + u64::from(cpu)))
    };
    let path = Path::over(&interface, shape.nic, seed, fault);
    (path, seen)
}
