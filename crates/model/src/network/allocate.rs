//! A router's decisions in a cycle: virtual channel allocation and switch allocation.

use bellwire_protocol::canary::planted;

use super::config::Allocation;
use super::fabric::{Fabric, set};
use super::parts::State;
use crate::engine::{Policy, first_from, nth_set, ones};

/// Grants to each of 64 inputs: a bit set of outputs.
type Grants = [u64; 64];

impl Fabric {
    /// Lets every active router decide.
    pub(super) fn route_all(&mut self) {
        let mut grants: Grants = [0; 64];
        let mut matches: Vec<(u8, u8)> = std::mem::take(&mut self.matches);
        for word in 0..self.active_routers.len() {
            for bit in ones(std::mem::take(&mut self.active_routers[word])) {
                let router = word as u32 * 64 + bit as u32;
                if self.routers[router as usize].waited != 0 {
                    self.allocate_vcs(router);
                }
                if self.routers[router as usize].outputs != 0 {
                    matches.clear();
                    if self.config.allocation == Allocation::Islip {
                        self.allocate_switch::<true>(router, &mut grants, &mut matches);
                    } else {
                        self.allocate_switch::<false>(router, &mut grants, &mut matches);
                    }
                    for &(input, output) in &matches {
                        let queue = self.pick(router, input, output);
                        self.cross(queue);
                    }
                    if self.routers[router as usize].outputs != 0 {
                        self.active_routers[word] |= 1 << (router % 64);
                    }
                }
            }
        }
        self.matches = matches;
    }

    /// Allocates free virtual channels of each output to waiting heads, in turn.
    fn allocate_vcs(&mut self, router_number: u32) {
        let router = self.routers[router_number as usize];
        for output in ones(router.waited) {
            let output = output as u32;
            let port_number = router.first_port + output;
            let port = self.ports[port_number as usize];
            if port.free_vcs == 0 {
                continue;
            }
            let mut inputs = port.waiting;
            while inputs != 0 && self.ports[port_number as usize].free_vcs != 0 {
                self.counters.vc_contests += u64::from(inputs & (inputs - 1) != 0);
                let input = self.next_for_vc(port_number, inputs);
                inputs &= !(1 << input);
                let pair = router.pair(input, output);
                for vc in ones(self.pairs[pair].waiting.into()) {
                    let queue = (router.first_port + input) << self.vc_shift | vc as u32;
                    if self.give_vc(queue, port_number) {
                        self.pairs[pair].waiting &= !(1 << vc);
                        self.ports[port_number as usize].wait_turn = (input + 1) as u8;
                        if self.config.allocation == Allocation::Policy(Policy::Weighted) {
                            self.charge(port_number, input, port.waiting);
                        }
                        break;
                    }
                }
                if self.pairs[pair].waiting == 0 {
                    self.ports[port_number as usize].waiting &= !(1 << input);
                }
            }
            let after = &self.ports[port_number as usize];
            if after.waiting == 0 {
                self.routers[router_number as usize].waited &= !(1 << output);
            } else if after.free_vcs != 0 && after.free_vcs != port.free_vcs {
                // An input gets one per cycle. Stay active: nothing else wakes this router for the
                // input's other packets.
                set(&mut self.active_routers, router_number);
            }
        }
    }

    /// The input that gets a virtual channel next; the policy is that of the output.
    #[inline]
    fn next_for_vc(&mut self, port: u32, inputs: u64) -> u32 {
        match self.config.allocation {
            Allocation::Islip | Allocation::Policy(Policy::RoundRobin) => {
                first_from(inputs, u32::from(self.ports[port as usize].wait_turn)) as u32
            }
            Allocation::Pim | Allocation::Policy(Policy::Random) => self.by_lot(inputs) as u32,
            Allocation::Policy(Policy::Strict) => inputs.trailing_zeros(),
            Allocation::Policy(Policy::Weighted) => self.by_weight(port, inputs),
        }
    }

    fn give_vc(&mut self, number: u32, port: u32) -> bool {
        let queue = self.queues[number as usize];
        let allowed = queue.allowed & self.ports[port as usize].free_vcs;
        let Some(vc) = self.choose_vc(port, allowed, queue.left) else { return false };
        self.ports[port as usize].free_vcs &= !(1 << vc);
        let out_vc = port << self.vc_shift | vc;
        let queue = &mut self.queues[number as usize];
        queue.out_vc = out_vc;
        queue.to = self.ports[port as usize].to << self.vc_shift | vc;
        queue.state = State::Moving;
        let beside =
            self.ports[port as usize].free_vcs.count_ones() + 1 < u32::from(self.config.vcs);
        self.counters.vcs_beside += u64::from(beside);
        let out = &mut self.out_vcs[out_vc as usize];
        out.owner = number;
        let stats = &mut self.stats[number as usize];
        stats.vc_wait += self.cycle - stats.since;
        // Its first beat is here.
        if out.credits > 0 {
            self.ready(number);
        } else {
            stats.since = self.cycle;
        }
        true
    }

    /// Matches inputs and outputs, each at most once. Compiled twice: large networks run iSLIP and
    /// should not pay for the choice.
    fn allocate_switch<const ISLIP: bool>(
        &mut self,
        number: u32,
        grants: &mut Grants,
        matches: &mut Vec<(u8, u8)>,
    ) {
        let router = self.routers[number as usize];
        let first = router.first_port as usize;
        let last = first + router.ports as usize;
        let (mut outputs, mut taken) = (router.outputs, 0u64);
        let mut lost = 0;
        for round in 0..self.config.iterations {
            // Grant: each unmatched output grants to one unmatched input.
            let mut granted = 0u64;
            for output in ones(outputs) {
                let port = &self.ports[first..last][output];
                let requests = port.requests & !taken;
                if requests == 0 {
                    outputs &= !(1 << output);
                    continue;
                }
                if round == 0 {
                    lost += u64::from(requests.count_ones()) - 1;
                }
                let input = if ISLIP {
                    first_from(requests, port.grant_turn.into())
                } else {
                    self.grant(router.first_port + output as u32, requests)
                };
                if ISLIP && planted("network-pointers-run") {
                    // Canary: a pointer moves with each grant, accepted or not.
                    self.ports[first + output].grant_turn = (input + 1) as u8;
                }
                let before = if granted >> input & 1 == 0 { 0 } else { grants[input & 63] };
                grants[input & 63] = before | 1 << output;
                granted |= 1 << input;
            }
            if granted == 0 {
                break;
            }
            // Accept: each input with grants accepts one.
            for input in ones(granted) {
                let input = input as u32;
                let offers = grants[input as usize & 63];
                let output = if ISLIP {
                    let ports = &mut self.ports[first..last];
                    let output =
                        first_from(offers, ports[input as usize].accept_turn.into()) as u32;
                    if round == 0 {
                        // Pointers move only on an accepted grant: this desynchronises iSLIP's
                        // pointers.
                        ports[output as usize].grant_turn = (input + 1) as u8;
                        ports[input as usize].accept_turn = (output + 1) as u8;
                    }
                    output
                } else {
                    self.accept(router.first_port + input, offers)
                };
                if round == 0 {
                    // The input declined the grants of other outputs.
                    lost += u64::from(offers & (offers - 1) != 0);
                } else {
                    self.counters.later_rounds += 1;
                }
                taken |= 1 << input;
                outputs &= !(1 << output);
                matches.push((input as u8, output as u8));
            }
        }
        self.counters.lost_requests += lost;
    }

    #[inline]
    fn grant(&mut self, port: u32, requests: u64) -> usize {
        let turn = u32::from(self.ports[port as usize].grant_turn);
        let in_turn = first_from(requests, turn);
        match self.config.allocation {
            Allocation::Pim | Allocation::Policy(Policy::Random) => self.by_lot(requests),
            Allocation::Islip | Allocation::Policy(Policy::RoundRobin) => {
                self.ports[port as usize].grant_turn = (in_turn + 1) as u8;
                in_turn
            }
            Allocation::Policy(Policy::Strict) => requests.trailing_zeros() as usize,
            Allocation::Policy(Policy::Weighted) => {
                let input = self.by_weight(port, requests);
                self.charge(port, input, requests);
                input as usize
            }
        }
    }

    #[inline]
    fn accept(&mut self, port: u32, grants: u64) -> u32 {
        if self.config.allocation == Allocation::Pim {
            return self.by_lot(grants) as u32;
        }
        let output = first_from(grants, u32::from(self.ports[port as usize].accept_turn)) as u32;
        self.ports[port as usize].accept_turn = (output + 1) as u8;
        output
    }

    fn by_lot(&mut self, set: u64) -> usize {
        nth_set(set, self.random.below(u64::from(set.count_ones())) as u32)
    }

    /// The input with the least service for its weight; equal inputs take turns.
    fn by_weight(&self, port: u32, requests: u64) -> u32 {
        let router = self.routers[self.ports[port as usize].router as usize];
        let output = port - router.first_port;
        let turn = u32::from(self.ports[port as usize].grant_turn);
        let inputs = ones(requests.rotate_right(turn)).map(|at| (at as u32 + turn) % 64);
        let least = inputs.min_by_key(|&input| self.served[router.pair(input, output)]);
        least.expect("an input asks")
    }

    /// Charges an input for one turn, in inverse proportion to its weight.
    fn charge(&mut self, port: u32, input: u32, requests: u64) {
        let router = self.routers[self.ports[port as usize].router as usize];
        let output = port - router.first_port;
        let had = self.served[router.pair(input, output)];
        let weight = self.config.weights.get(input as usize).copied().unwrap_or(1).max(1);
        self.served[router.pair(input, output)] = had + WEIGHT_UNIT / u64::from(weight);
        // An input that was idle must not have saved up turns.
        let floor = had.saturating_sub(WEIGHT_UNIT);
        for idle in (0..router.ports).filter(|idle| requests >> idle & 1 == 0) {
            let had = &mut self.served[router.pair(idle, output)];
            *had = (*had).max(floor);
        }
        self.ports[port as usize].grant_turn = (input + 1) as u8;
    }

    /// The virtual channel of the input that sends to this output; channels take turns.
    #[inline]
    fn pick(&mut self, number: u32, input: u8, output: u8) -> u32 {
        let router = self.routers[number as usize];
        let ready = self.pairs[router.pair(input.into(), output.into())].ready;
        let port_number = router.first_port + u32::from(input);
        let turn = &mut self.ports[port_number as usize].pick_turn;
        let vc = (ready.rotate_right(u32::from(*turn)).trailing_zeros() + u32::from(*turn)) % 32;
        *turn = (vc + 1) as u8;
        port_number << self.vc_shift | vc
    }
}

/// The charge for one turn at weight 1; divisible by all small weights.
const WEIGHT_UNIT: u64 = 720_720;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Ended, Event, Model, Schedule, Simulation};
    use crate::network::config::Select;
    use crate::network::fabric::Injection;
    use crate::network::{FabricConfig, Topology};
    use crate::units::{Span, Time};

    #[derive(Clone, Copy)]
    struct Tick;

    impl Event for Tick {
        fn trace(self) -> u64 {
            0
        }
    }

    /// Compares the pointers before and after each cycle.
    struct Watched {
        fabric: Fabric,
        later_cycles: u64,
    }

    impl Model for Watched {
        type Event = Tick;

        fn handle(&mut self, tick: Tick, schedule: &mut Schedule<Tick>) {
            let pointers = |fabric: &Fabric| -> [Vec<u8>; 2] {
                let ports = || fabric.ports.iter();
                [
                    ports().map(|port| port.grant_turn).collect(),
                    ports().map(|port| port.accept_turn).collect(),
                ]
            };
            let (before, counted) = (pointers(&self.fabric), self.fabric.counters());
            self.fabric.tick(schedule, tick);
            self.fabric.deliveries();
            let counters = self.fabric.counters();
            let later = counters.later_rounds - counted.later_rounds;
            let first = counters.hops - counted.hops - later;
            for (before, after) in before.iter().zip(pointers(&self.fabric)) {
                let moved = before.iter().zip(after).filter(|(before, after)| *before != after);
                let moved = moved.count() as u64;
                assert!(moved <= first, "{moved} moved, {first} and {later} later matches");
            }
            self.later_cycles += u64::from(later > 0);
        }
    }

    /// iSLIP moves a pointer only with a match of the first round: a match of a later one must not
    /// make an output forget whom it owes a turn (McKeown 1999, III-C). A busy crossbar of four
    /// ports matches in later rounds, too.
    #[test]
    fn islip_pointers_move_in_the_first_round_only() {
        crate::limit::limited(|| {
            let config = FabricConfig {
                vcs: 4,
                select: Select::Destination,
                allocation: Allocation::Islip,
                iterations: 4,
                buffer_beats: 0,
                ..FabricConfig::default()
            };
            let fabric = Fabric::build(Topology::crossbar(4).expect("four ports"), config, 1);
            let mut running = Simulation {
                model: Watched { fabric, later_cycles: 0 },
                schedule: Schedule::new(1, Span::from_ns(4)),
            };
            for number in 0..4000_u32 {
                let destination = running.schedule.random.below(4) as u32;
                let source = number % 4;
                let injection = Injection { source, destination, beats: 1, class: 0, tag: 0 };
                running.model.fabric.inject(&mut running.schedule, injection, Tick);
            }
            assert_eq!(running.run(Time::NEVER), Ended::Quiet);
            assert_eq!(running.model.fabric.packets_inside(), 0);
            assert!(running.model.later_cycles > 10, "{}", running.model.later_cycles);
        });
    }

    /// Three rounds of a strict policy. In the first all outputs grant to input 0, which takes
    /// output 0. In the second nobody is left for output 3, and outputs 1 and 2 grant to input 1,
    /// which takes output 1. In the third input 2 gets output 2.
    #[test]
    fn outputs_without_requests_stop_no_others() {
        let config = FabricConfig {
            allocation: Allocation::Policy(Policy::Strict),
            iterations: 3,
            ..FabricConfig::default()
        };
        let mut fabric = Fabric::build(Topology::crossbar(4).expect("four ports"), config, 1);
        fabric.routers[0].outputs = 0b1111;
        for (output, requests) in [0b001, 0b111, 0b111, 0b001].into_iter().enumerate() {
            fabric.ports[output].requests = requests;
            fabric.ports[output].accept_turn = output as u8;
        }
        let mut matches = Vec::new();
        fabric.allocate_switch::<false>(0, &mut [0; 64], &mut matches);
        assert_eq!(matches, [(0, 0), (1, 1), (2, 2)]);
    }
}
