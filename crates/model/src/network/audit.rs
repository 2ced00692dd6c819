//! Laws that a fabric obeys at every moment, and the waits that explain a standstill.

use super::fabric::{Counters, Fabric};
use super::packets::NONE;
use super::parts::{QueueStats, State, UNLIMITED};
use super::routing::DatelineClass;
use crate::engine::Waits;
use crate::stats::Imbalance;

impl Fabric {
    /// Checks that packets, beats and credits are conserved, that no buffer exceeds its room, and
    /// Little's law on every queue. Exact at any moment between ticks.
    ///
    /// # Errors
    /// The first law that does not hold.
    pub fn audit(&self) -> Result<(), Imbalance> {
        let Counters { packets_in, packets_out, .. } = self.counters;
        let inside = self.packets.len() as u64;
        if packets_in != packets_out + inside {
            return Err(Imbalance {
                queue: self.topology.name().to_owned(),
                law: "packets in = out + inside does not hold",
                details: format!("{packets_in} in, {packets_out} out, {inside} inside"),
            });
        }
        let law = "credits and beats do not make the room";
        let (beats, credits) = self.under_way();
        self.audit_beats(&beats)?;
        for (number, out) in self.out_vcs.iter().enumerate() {
            let port = self.ports[number >> self.vc_shift];
            if out.credits == UNLIMITED || port.to == NONE {
                continue;
            }
            let to = (port.to << self.vc_shift) as usize | number & ((1 << self.vc_shift) - 1);
            let sink = to >= self.queues.len();
            let room = if sink { self.config.sink_beats } else { self.config.buffer_beats };
            let held = if sink { 0 } else { self.queues[to].occupied };
            let sum = out.credits + beats[to] + held + credits[number];
            // The beats that terminals hold are known only as a sum; the check is below.
            if sum > room || (sum != room && !sink) {
                let details = format!(
                    "{} with the sender, {} on the link, {held} held, {} returning, room {room}",
                    out.credits, beats[to], credits[number]
                );
                return Err(Imbalance { queue: self.queue_name(to), law, details });
            }
        }
        if self.config.sink_beats != 0 {
            let first = self.queues.len();
            let sinks = (self.sources.len() << self.vc_shift) as u64;
            let on_links: u64 = beats[first..].iter().map(|&beats| u64::from(beats)).sum();
            let with_senders: u64 = (0..self.out_vcs.len())
                .filter(|&vc| self.leads_to_terminal(vc))
                .map(|vc| u64::from(self.out_vcs[vc].credits) + u64::from(credits[vc]))
                .sum();
            let sum = on_links + with_senders + self.at_sinks;
            let room = sinks * u64::from(self.config.sink_beats);
            if sum != room {
                let details = format!(
                    "{on_links} on links, {with_senders} free, {} held, room {room}",
                    self.at_sinks
                );
                return Err(Imbalance { queue: "terminals".to_owned(), law, details });
            }
        }
        for (number, stats) in self.stats.iter().enumerate() {
            self.audit_queue(number, stats)?;
        }
        Ok(())
    }

    /// Injected beats are in the sources, in queues, on links, at terminals, or delivered.
    fn audit_beats(&self, on_links: &[u32]) -> Result<(), Imbalance> {
        let mut sources = 0;
        for lane in &self.lanes {
            let packets = self.packets.list(lane.head).into_iter().map(|place| place.packet);
            let mut beats = packets.map(|packet| u64::from(self.packets.packet(packet).beats));
            // A part of the first may have left.
            let first = beats.next().map_or(0, |_| u64::from(lane.left));
            sources += first + beats.sum::<u64>();
        }
        let queued: u64 = self.queues.iter().map(|queue| u64::from(queue.occupied)).sum();
        let links: u64 = on_links.iter().map(|&beats| u64::from(beats)).sum();
        let sent_to_terminals: u64 = (0..self.router_ports() as usize)
            .filter(|&port| self.leads_to_terminal(port << self.vc_shift))
            .map(|port| self.sent(port))
            .sum();
        let between_routers: u64 =
            on_links[..self.queues.len()].iter().map(|&beats| u64::from(beats)).sum();
        let sum = sources + queued + between_routers + sent_to_terminals;
        if self.counters.beats_in != sum {
            return Err(Imbalance {
                queue: self.topology.name().to_owned(),
                law: "beats in = in sources + queued + on links + sent to terminals does not hold",
                details: format!(
                    "{} in, {sources} in sources, {queued} queued, {links} on links, {sent_to_terminals} to terminals",
                    self.counters.beats_in
                ),
            });
        }
        Ok(())
    }

    fn audit_queue(&self, number: usize, stats: &QueueStats) -> Result<(), Imbalance> {
        let queue = self.queues[number];
        let wrong = |law, details| Err(Imbalance { queue: self.queue_name(number), law, details });
        let mut inside = 0;
        let mut stays = stats.stayed;
        for place in self.packets.list(queue.head) {
            inside += 1;
            stays += self.cycle - place.entered;
        }
        if stats.entered != stats.left + inside || inside != u64::from(stats.inside) {
            let details =
                format!("{} entered, {} left, {inside} inside", stats.entered, stats.left);
            return wrong("packets entered = left + inside does not hold", details);
        }
        let area = stats.area + u64::from(stats.inside) * (self.cycle - stats.changed);
        if area != stays {
            let details = format!("number over time {area} cycles, sum of stays {stays} cycles");
            return wrong("Little's law does not hold", details);
        }
        if self.config.buffer_beats != 0 && queue.occupied > self.config.buffer_beats {
            let details =
                format!("{} beats, room for {}", queue.occupied, self.config.buffer_beats);
            return wrong("a buffer holds more than it has room for", details);
        }
        Ok(())
    }

    /// Adds the current waits. If the fabric sleeps with packets inside, these waits explain why. A
    /// cycle among them is a deadlock in the fabric; with the waits of other blocks, a cycle is a
    /// deadlock through those blocks (C-26).
    ///
    /// `terminal` names the block that takes packets out at a terminal. It appears as a holder
    /// where [`FabricConfig::sink_beats`](super::FabricConfig::sink_beats) is a limit, and never as
    /// a waiter.
    pub fn waits(&self, waits: &mut Waits, terminal: impl Fn(u32) -> String) {
        for (number, lane) in self.lanes.iter().enumerate().filter(|(_, lane)| lane.head != NONE) {
            let source = number as u32 / self.lanes_each;
            let port = self.router_ports() + source;
            let first = self.ports[port as usize].to << self.vc_shift;
            let name = format!("source {source}");
            if lane.out_vc == NONE {
                let packet = self.packets.packet(self.packets.place(lane.head).packet);
                for vc in bits(self.allowed(packet, DatelineClass::Any)) {
                    let holder = self.queue_name((first | vc) as usize);
                    waits.add(name.clone(), holder, "a virtual channel");
                }
            } else if self.out_vcs[lane.out_vc as usize].credits == 0 {
                let vc = lane.out_vc - (port << self.vc_shift);
                waits.add(name, self.queue_name((first | vc) as usize), "a credit");
            }
        }
        for (number, queue) in self.queues.iter().enumerate() {
            let name = || self.queue_name(number);
            let port_number =
                self.routers[queue.router as usize].first_port + u32::from(queue.out_port);
            let ahead = |vc: u32| {
                let to = self.ports[port_number as usize].to << self.vc_shift | vc;
                // Behind the input queues come the terminals' receiving ends.
                match to.checked_sub(self.queues.len() as u32) {
                    Some(sink) => terminal(sink >> self.vc_shift),
                    None => self.queue_name(to as usize),
                }
            };
            match queue.state {
                State::Empty => {}
                State::Filling => self.wait_for_rest(number, waits),
                State::WaitsForVc => {
                    for vc in bits(queue.allowed) {
                        let out = self.out_vcs[(port_number << self.vc_shift | vc) as usize];
                        if out.owner == NONE {
                            waits.add(name(), ahead(vc), "room for a packet");
                        } else {
                            let holder = self.queue_name(out.owner as usize);
                            waits.add(name(), holder, format!("virtual channel {vc}"));
                        }
                    }
                }
                State::Moving if queue.occupied == 0 => self.wait_for_rest(number, waits),
                State::Moving => {
                    if self.out_vcs[queue.out_vc as usize].credits == 0 {
                        let vc = queue.out_vc - (port_number << self.vc_shift);
                        waits.add(name(), ahead(vc), "a credit");
                    }
                }
            }
        }
    }

    /// Adds the wait for the rest of the first packet, which is still one hop back.
    fn wait_for_rest(&self, number: usize, waits: &mut Waits) {
        let from = self.ports[number >> self.vc_shift].from;
        if from == NONE {
            return;
        }
        let out =
            self.out_vcs[(from << self.vc_shift) as usize | number & ((1 << self.vc_shift) - 1)];
        if out.owner == NONE {
            return;
        }
        let holder = if self.ports[from as usize].router == NONE {
            format!("source {}", out.owner / self.lanes_each)
        } else {
            self.queue_name(out.owner as usize)
        };
        waits.add(self.queue_name(number), holder, "the rest of a packet");
    }

    fn leads_to_terminal(&self, out_vc: usize) -> bool {
        let port = self.ports[out_vc >> self.vc_shift];
        port.router != NONE && port.to != NONE && port.to >= self.router_ports()
    }

    /// The readable name of an input queue or terminal.
    pub(super) fn queue_name(&self, number: usize) -> String {
        match self.queues.get(number) {
            Some(queue) if self.config.vcs == 1 => {
                format!("router {}, input {}", queue.router, queue.port)
            }
            Some(queue) => {
                format!("router {}, input {}, VC {}", queue.router, queue.port, queue.vc)
            }
            None => format!("terminal {}", (number - self.queues.len()) >> self.vc_shift),
        }
    }
}

fn bits(set: u32) -> impl Iterator<Item = u32> {
    (0..32).filter(move |bit| set >> bit & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Ended, Event, Model, Random, Schedule, Simulation};
    use crate::network::{FabricConfig, Injection, Select, Switching, Topology};
    use crate::units::{Span, Time};

    #[derive(Clone, Copy)]
    struct Tick;

    impl Event for Tick {
        fn trace(self) -> u64 {
            0
        }
    }

    struct Bench {
        fabric: Fabric,
        /// Whether a terminal takes out what it gets, at once.
        takes: fn(u32) -> bool,
    }

    impl Model for Bench {
        type Event = Tick;

        fn handle(&mut self, _: Tick, schedule: &mut Schedule<Tick>) {
            self.fabric.tick(schedule, Tick);
            let delivered: Vec<_> = self.fabric.deliveries().collect();
            for delivery in delivered {
                let (to, beats) = (delivery.packet.destination, delivery.packet.beats);
                if (self.takes)(to) {
                    self.fabric.release(schedule, to, delivery.vc, beats, Tick);
                }
            }
        }
    }

    const CYCLE: Span = Span::from_ns(4);

    /// Injects `packets` packets of `beats` beats at each terminal, to `to(source, random)`.
    fn loaded(
        mut fabric: Fabric,
        packets: usize,
        beats: u16,
        to: impl Fn(u32, &mut Random) -> u32,
    ) -> Simulation<Bench> {
        let mut schedule = Schedule::new(1, CYCLE);
        let mut random = Random::new(2);
        for _ in 0..packets {
            for source in 0..fabric.topology().terminals() as u32 {
                let destination = to(source, &mut random);
                let injection = Injection { source, destination, beats, class: 0, tag: 0 };
                fabric.inject(&mut schedule, injection, Tick);
            }
        }
        Simulation { model: Bench { fabric, takes: |_| true }, schedule }
    }

    fn uniform(config: FabricConfig) -> Simulation<Bench> {
        let fabric = Fabric::new(Topology::torus(4, 2).unwrap(), config, 3).unwrap();
        loaded(fabric, 40, 4, |_, random| random.below(16) as u32)
    }

    fn after(bench: &mut Simulation<Bench>, cycles: u64) {
        bench.run(Time::ZERO + CYCLE * cycles);
    }

    /// In every cycle, beats and credits are conserved and Little's law holds, with all kinds of
    /// switching. At the end everything is delivered.
    #[test]
    fn every_cycle_balances() {
        for switching in [Switching::Wormhole, Switching::CutThrough, Switching::StoreAndForward] {
            let config = FabricConfig {
                vcs: 3,
                switching,
                buffer_beats: 5,
                sink_beats: 4,
                ..FabricConfig::default()
            };
            let mut bench = uniform(config);
            for cycle in 0..800 {
                after(&mut bench, cycle);
                bench.model.fabric.audit().unwrap_or_else(|error| panic!("cycle {cycle}: {error}"));
            }
            assert_eq!(bench.run(Time::NEVER), Ended::Quiet);
            assert_eq!(bench.model.fabric.counters().packets_out, 640);
            assert_eq!(bench.model.fabric.packets_inside(), 0);
        }
    }

    type Fault = fn(&mut Fabric);

    /// Canaries: the audit detects and names each kind of loss.
    #[test]
    fn every_loss_is_caught() {
        let faults: [(&str, Fault); 6] = [
            ("credits and beats do not make the room", |fabric| {
                let at = fabric.out_vcs.iter().position(|vc| vc.credits > 0).unwrap();
                fabric.out_vcs[at].credits -= 1;
            }),
            ("credits and beats do not make the room", |fabric| {
                let queue = fabric.queues.iter_mut().find(|queue| queue.occupied > 1).unwrap();
                queue.occupied -= 1;
                // The beat is gone, but the counters say that it was sent.
                fabric.counters.beats_in -= 1;
            }),
            ("beats in = in sources", |fabric| {
                let queue = fabric.queues.iter_mut().find(|queue| queue.occupied > 1).unwrap();
                queue.occupied -= 1;
            }),
            ("packets in = out + inside", |fabric| fabric.counters.packets_out += 1),
            ("Little's law", |fabric| fabric.stats[5].stayed += 1),
            ("entered = left + inside", |fabric| fabric.stats[5].left += 1),
        ];
        for (law, fault) in faults {
            let config = FabricConfig { vcs: 2, buffer_beats: 5, ..FabricConfig::default() };
            let mut bench = uniform(config);
            after(&mut bench, 60);
            bench.model.fabric.audit().unwrap();
            fault(&mut bench.model.fabric);
            let error = bench.model.fabric.audit().expect_err("the fault is there").to_string();
            assert!(error.contains(law), "{law}: {error}");
        }
    }

    /// Packets that wait for each other in a ring without dateline stand still; the fabric detects
    /// this and names each wait. With the dateline the same load goes through.
    #[test]
    fn a_deadlock_is_found_and_explained() {
        crate::limit::limited(|| {
            let ring = Topology::ring(8).unwrap();
            let config = FabricConfig { buffer_beats: 2, ..FabricConfig::default() };
            let all_one_way = |source: u32, _: &mut Random| (source + 3) % 8;
            let mut bench =
                loaded(Fabric::build(ring.clone(), config.clone(), 1), 10, 16, all_one_way);
            assert_eq!(bench.run(Time::NEVER), Ended::Quiet);
            assert!(bench.model.fabric.stands_still());
            bench.model.fabric.audit().unwrap();
            let mut waits = Waits::default();
            bench.model.fabric.waits(&mut waits, |terminal| format!("terminal {terminal}"));
            let cycle = waits.cycle().expect("a deadlock").to_string();
            assert!(cycle.contains("router 0, input") && cycle.contains("waits for"), "{cycle}");

            let config = FabricConfig { vcs: 2, ..config };
            let mut bench = loaded(Fabric::new(ring, config, 1).unwrap(), 10, 16, all_one_way);
            bench.run(Time::NEVER);
            assert!(!bench.model.fabric.stands_still() && bench.model.fabric.packets_inside() == 0);
        });
    }

    /// A terminal that takes nothing out stops its senders once its room is full. It loses nothing,
    /// and the waits name it.
    #[test]
    fn a_slow_terminal_holds_its_senders_back() {
        crate::limit::limited(|| {
            let config = FabricConfig { sink_beats: 3, ..FabricConfig::default() };
            let fabric = Fabric::new(Topology::crossbar(4).unwrap(), config, 1).unwrap();
            let mut bench = loaded(fabric, 5, 1, |_, _| 2);
            bench.model.takes = |_| false;
            assert_eq!(bench.run(Time::NEVER), Ended::Quiet);
            assert_eq!(bench.model.fabric.counters().packets_out, 3);
            bench.model.fabric.audit().unwrap();
            let mut waits = Waits::default();
            bench.model.fabric.waits(&mut waits, |terminal| format!("the program at {terminal}"));
            assert!(waits.all().iter().any(|wait| wait.holder == "the program at 2"), "{waits:?}");
            assert_eq!(waits.cycle(), None);
        });
    }

    /// Deliveries on a crossbar of four under all-to-all traffic, where terminal 0 takes nothing.
    fn beside_a_blocked_output(queues: u8) -> u64 {
        let config = FabricConfig {
            vcs: queues,
            select: Select::Destination,
            buffer_beats: 4,
            sink_beats: 4,
            ..FabricConfig::default()
        };
        let fabric = Fabric::new(Topology::crossbar(4).unwrap(), config, 1).unwrap();
        let mut bench = loaded(fabric, 200, 2, |_, random| random.below(4) as u32);
        bench.model.takes = |terminal| terminal != 0;
        for cycle in 0..2_000 {
            after(&mut bench, cycle);
            for queue in &bench.model.fabric.queues {
                for place in bench.model.fabric.packets.list(queue.head) {
                    let destination = bench.model.fabric.packets.packet(place.packet).destination;
                    assert_eq!(u32::from(queue.vc), destination % u32::from(queues));
                }
            }
        }
        bench.model.fabric.audit().unwrap();
        bench.model.fabric.counters().packets_out
    }

    /// In every queue and cycle, a packet's channel is its destination modulo the number of
    /// channels. With one channel per output, a blocked output blocks no other traffic; with one
    /// channel, it blocks all; with two, only the traffic on its channel.
    // shows: C-42, C-43
    #[test]
    fn a_blocked_output_holds_up_who_shares_its_channel() {
        crate::limit::limited(|| {
            let (one, two, four) = (
                beside_a_blocked_output(1),
                beside_a_blocked_output(2),
                beside_a_blocked_output(4),
            );
            // About 600 of 800 packets go to the other three outputs, and about 400 to the two
            // outputs on the other channel.
            assert!(one < 60, "{one}");
            assert!((380..480).contains(&two), "{two}");
            assert!((570..640).contains(&four), "{four}");
        });
    }
}
