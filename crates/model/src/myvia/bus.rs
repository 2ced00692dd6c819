//! The PCI bus between a host and its NIC: one burst at a time, round-robin between processor
//! writes and NIC DMA.

use super::config;
use crate::engine::{Arbiter, Event, Policy, Random, Schedule, Server};
use crate::units::Bytes;

/// A bus master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Master {
    /// The host's processor: programmed I/O.
    Host,
    /// The NIC's host DMA.
    Nic,
}

/// The direction of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From host memory to the NIC.
    Read,
    /// To host memory from the NIC, or to the NIC from the processor.
    Write,
}

#[derive(Clone, Copy, Debug)]
struct Transfer {
    direction: Direction,
    left: u32,
}

/// The bus.
#[derive(Clone, Debug)]
pub struct Bus {
    config: config::Bus,
    waiting: [Option<Transfer>; 2],
    /// The master whose burst is on the bus.
    master: Option<Master>,
    turns: Arbiter,
    server: Server,
    /// Bytes moved, by master.
    pub bytes: [u64; 2],
    /// Bursts, by master.
    pub bursts: [u64; 2],
}

impl Bus {
    /// An idle bus.
    pub fn new(config: &config::Bus, random: &mut Random) -> Bus {
        Bus {
            config: config.clone(),
            waiting: [None; 2],
            master: None,
            turns: Arbiter::new(Policy::RoundRobin, 2, random),
            server: Server::default(),
            bytes: [0; 2],
            bursts: [0; 2],
        }
    }

    /// Requests the bus for `bytes` bytes, at least one. A master must not request again before its
    /// transfer is done. `grant` is the event that calls [`Bus::grant`].
    pub fn ask<E: Event>(
        &mut self,
        schedule: &mut Schedule<E>,
        master: Master,
        direction: Direction,
        bytes: u32,
        grant: E,
    ) {
        let place = &mut self.waiting[master as usize];
        debug_assert!(place.is_none(), "{master:?} asks twice");
        *place = Some(Transfer { direction, left: bytes.max(1) });
        if self.master.is_none() {
            schedule.settle(grant);
        }
    }

    /// Starts the next burst, if the bus is free and requested; `done` is the event that calls
    /// [`Bus::burst_done`].
    pub fn grant<E: Event>(&mut self, schedule: &mut Schedule<E>, done: E) {
        if self.master.is_some() {
            return;
        }
        let wanted = self.waiting.map(|transfer| u64::from(transfer.is_some()));
        let wanted = wanted[0] | wanted[1] << 1;
        let Some(chosen) = self.turns.grant(wanted) else { return };
        let Some(transfer) = &mut self.waiting[chosen] else { return };
        let config = &self.config;
        let bytes = transfer.left.min(config.burst.count() as u32);
        transfer.left -= bytes;
        let overhead = match transfer.direction {
            Direction::Read => config.read_overhead,
            Direction::Write => config.write_overhead,
        };
        let words = Bytes::new(bytes.into()).pieces(config.width);
        let span = config.clock.period() * (overhead + words);
        self.master = Some(if chosen == 0 { Master::Host } else { Master::Nic });
        self.bytes[chosen] += u64::from(bytes);
        self.bursts[chosen] += 1;
        schedule.at(self.server.reserve(schedule.now(), span).ends, done);
    }

    /// Ends a burst. Returns the master if its transfer is done. If a request is pending, the event
    /// `grant` follows.
    pub fn burst_done<E: Event>(&mut self, schedule: &mut Schedule<E>, grant: E) -> Option<Master> {
        let master = self.master.take()?;
        let place = &mut self.waiting[master as usize];
        let finished = place.is_some_and(|transfer| transfer.left == 0);
        if finished {
            *place = None;
        }
        if self.waiting.iter().any(Option::is_some) {
            schedule.settle(grant);
        }
        finished.then_some(master)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Model, Simulation};
    use crate::units::{Frequency, Time};

    #[derive(Clone, Copy, Debug)]
    enum RigEvent {
        Grant,
        Done,
    }

    impl Event for RigEvent {
        fn trace(self) -> u64 {
            self as u64
        }
    }

    struct Rig {
        bus: Bus,
        finished: Vec<(Master, Time)>,
        writes_left: u32,
    }

    impl Model for Rig {
        type Event = RigEvent;
        fn handle(&mut self, event: RigEvent, schedule: &mut Schedule<RigEvent>) {
            match event {
                RigEvent::Grant => self.bus.grant(schedule, RigEvent::Done),
                RigEvent::Done => {
                    if let Some(master) = self.bus.burst_done(schedule, RigEvent::Grant) {
                        self.finished.push((master, schedule.now()));
                        if master == Master::Host && self.writes_left > 0 {
                            self.writes_left -= 1;
                            let write = Direction::Write;
                            self.bus.ask(schedule, Master::Host, write, 16, RigEvent::Grant);
                        }
                    }
                }
            }
        }
    }

    fn rig(writes_left: u32) -> Simulation<Rig> {
        let config = config::Bus {
            clock: Frequency::from_mhz(50),
            width: Bytes::new(4),
            burst: Bytes::new(64),
            read_overhead: 9,
            write_overhead: 4,
        };
        let mut schedule = Schedule::new(1, config.clock.period());
        let bus = Bus::new(&config, &mut schedule.random);
        Simulation { model: Rig { bus, finished: Vec::new(), writes_left }, schedule }
    }

    /// A read of 160 B alone takes its data clocks and the overhead of three bursts.
    #[test]
    fn bursts_cost_their_overhead() {
        let mut simulation = rig(0);
        let Simulation { model: rig, schedule } = &mut simulation;
        rig.bus.ask(schedule, Master::Nic, Direction::Read, 160, RigEvent::Grant);
        simulation.run(Time::NEVER);
        let rig = &simulation.model;
        assert_eq!(rig.finished, [(Master::Nic, Time::from_ps((40 + 3 * 9) * 20_000))]);
        assert_eq!((rig.bus.bytes, rig.bus.bursts), ([0, 160], [0, 3]));
    }

    /// A long DMA and processor writes alternate, so no write waits longer than one burst.
    #[test]
    fn masters_take_turns() {
        crate::limit::limited(|| {
            let mut simulation = rig(7);
            let Simulation { model: rig, schedule } = &mut simulation;
            rig.bus.ask(schedule, Master::Nic, Direction::Read, 64 * 8, RigEvent::Grant);
            rig.bus.ask(schedule, Master::Host, Direction::Write, 16, RigEvent::Grant);
            simulation.run(Time::NEVER);
            let rig = &simulation.model;
            let writes: Vec<Time> =
                rig.finished.iter().filter(|end| end.0 == Master::Host).map(|end| end.1).collect();
            let (burst, write) = ((9 + 16) * 20_000, (4 + 4) * 20_000);
            assert_eq!(writes.len(), 8);
            assert!(writes.windows(2).all(|pair| pair[1].since(pair[0]).ps() == burst + write));
            assert_eq!(rig.bus.server.busy(), simulation.now().since(Time::ZERO));
        });
    }
}
