//! Standstill: when nothing can happen any more on a machine.
//!
//! - **A deadlock** (C-26): no event is pending, and blocks of the machine wait for each other in a
//!   cycle. No program can resolve that.
//! - **No program sends**: no event is pending, no link is being set up, and all programs are known
//!   (`programs=N`). During the [`PATIENCE`] after the last change all programs only polled, or
//!   waited without a deadline. Whether a program would send after its next empty poll cannot be
//!   known. A program with a deadline may act after it, so that deadline is awaited.

use crate::seat::Waits;
use crate::turns::Doing;
use crate::wire::Condition;
use crate::world::{FAR, State};
use bellwire_model::units::{Span, Time};

/// Virtual time without any change after which a standstill is assumed. Longer than deadlines of
/// programs, or than their own counts of polls, take.
const PATIENCE: Span = Span::from_ns(600_000_000_000);

impl State {
    /// Detects a standstill. Called when no event is pending and no program acts before `until`.
    /// `true`: a standstill begins, and the caller must [wake](State::wake) the waiting programs.
    pub(crate) fn gets_stuck(&mut self, until: Time) -> bool {
        if self.standstill.is_some() || self.nic.machine.is_pending() {
            return false;
        }
        let deadlock = self.nic.machine.deadlock();
        self.standstill = deadlock.or_else(|| self.who_waits_forever(until));
        self.standstill.is_some()
    }

    /// The report, if all programs have polled and waited without a result for long enough.
    fn who_waits_forever(&self, until: Time) -> Option<String> {
        let asks = |condition| matches!(condition, Condition::Asking(_));
        if until.since(self.changed) < PATIENCE
            || !self.knows_all()
            || self.wires.iter().any(|wire| asks(wire.condition))
        {
            return None;
        }
        // A sleep of at least half of `FAR` has no deadline.
        let acts_later = |doing| matches!(doing, Doing::Sleeps(end) if end.ps() < FAR.ps() / 2);
        let mut who = Vec::new();
        for seat in self.seats.iter().flatten() {
            let sleeps = seat.waits == Waits::Sleeps;
            if sleeps && acts_later(self.turns[seat.driver].doing) {
                return None;
            }
            who.push(format!("{} {}", seat.address, if sleeps { "sleeps" } else { "polls" }));
        }
        who.sort_unstable();
        let passed = PATIENCE.ps() / 1_000_000_000_000;
        Some(format!(
            "nothing is under way, and for {passed} s of virtual time every program has only looked or slept ({})",
            who.join(", ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::event_driven;
    use crate::nic::Nic;
    use crate::transport::VirtualTransport;
    use crate::world::World;
    use bellwire_device::{
        Error, FunctionAddress, LinkId, PacketHeader, Sink, Status, Transport, Verdict,
    };
    use bellwire_model::chpp::experiments::Kind;
    use bellwire_model::chpp::experiments::single::post;
    use bellwire_model::chpp::{Config, Machine};
    use bellwire_ring::memory::View;
    use bellwire_wire::endpoint::Endpoint;
    use std::sync::Arc;
    use std::time::Duration;

    const HOUR: Duration = Duration::from_secs(3600);

    /// Counts packets.
    #[derive(Default)]
    struct Counter(usize);

    impl Sink for Counter {
        fn packet(&mut self, _: LinkId, _: FunctionAddress, _: [u64; 3], _: View<'_>) -> Verdict {
            self.0 += 1;
            Verdict::Taken
        }

        fn link_down(&mut self, _: LinkId, _: FunctionAddress, _: Status) {}
    }

    /// Two functions of one program on two hosts of `config`, in a world with this number of
    /// programs, on whose machine `prepare` has done something before.
    fn two_functions(
        config: &Config,
        programs: usize,
        prepare: impl FnOnce(&mut Machine),
    ) -> (Arc<World>, [VirtualTransport; 2]) {
        let mut machine = event_driven(config, 1).expect("a machine");
        prepare(&mut machine);
        let world = Arc::new(World::new(Nic::new(config, Box::new(machine)), 1, programs));
        let functions = [0, 1].map(|node| {
            let address = FunctionAddress { node, function: 0 };
            VirtualTransport::open(world.clone(), node as usize, address).expect("a function")
        });
        (world, functions)
    }

    /// The same on a machine with GETs in both directions, which programs of the device never post.
    /// With `get_channel`, GETs have their own channel.
    fn among_gets(get_channel: bool) -> [VirtualTransport; 2] {
        let mut config = Config::prototype();
        config.crossbar.channels = 1;
        config.crossbar.channel_packets = 4;
        config.crossbar.get_channel = get_channel;
        let other = |node| Endpoint::new(node, 1, 0).expect("the second function");
        let post_gets = |machine: &mut Machine| {
            let mut api = machine.api();
            for at in 0..32 {
                for node in [0u8, 1] {
                    let ends = (other(node), other(1 - node));
                    let near = api.free_memory(node.into(), 1) + (1 << 20) + at * 4096;
                    let far = api.free_memory((1 - node).into(), 1);
                    post(&mut api, Kind::Get, ends, (near, far), 4096).expect("a descriptor");
                }
            }
        };
        two_functions(&config, 0, post_gets).1
    }

    fn send(from: &mut VirtualTransport, link: LinkId) {
        let header = PacketHeader::new(bellwire_device::Kind::Send, 0, 0, 0);
        from.send(link, header, &[], View::of(b"a word")).expect("there is room");
    }

    /// If GETs share the channel of PUTs, the machine deadlocks. A sleeping function is woken with
    /// the cycle of waits, and a polling one gets it, too. With a channel for GETs the packets
    /// arrive, and no standstill is reported.
    // shows: C-26, C-27
    #[test]
    fn a_deadlock_ends_waits() {
        let mut counter = Counter::default();
        for sleeps in [true, false] {
            let [mut one, mut other] = among_gets(false);
            if sleeps {
                let slept = other.sleep(Some(HOUR));
                assert!(matches!(slept, Err(Error::Standstill { .. })), "{slept:?}");
            }
            let since = one.now();
            let why = loop {
                assert_eq!(one.poll(&mut counter, 8), 0);
                match one.standstill() {
                    Some(Error::Standstill { why }) => break why,
                    _ => assert!(one.now() - since < HOUR, "polls for ever"),
                }
            };
            assert!(why.contains("receive buffer") && why.contains("room for a packet"), "{why}");
        }

        let [mut sends, mut receives] = among_gets(true);
        let link = sends.link(receives.address(), HOUR).expect("a link");
        send(&mut sends, link);
        while receives.poll(&mut counter, 8) == 0 {
            receives.sleep(Some(HOUR)).expect("it comes");
        }
        assert_eq!((counter.0, receives.standstill().is_none()), (1, true));
    }

    /// If all programs poll and none sends, they get a standstill with their addresses after the
    /// patience, not before.
    ///
    /// Canaries: no standstill while a program sends from time to time, or while a link is being
    /// set up.
    #[test]
    fn polling_for_nothing_ends() {
        let mut counter = Counter::default();
        let patience = Duration::from_nanos(PATIENCE.ps() / 1000);
        let (_world, [mut one, mut other]) = two_functions(&Config::prototype(), 1, |_| ());
        let link = one.link(other.address(), HOUR).expect("a link");
        let begun = one.now();
        let mut due = begun + patience / 2;
        for _ in 0..3 {
            while one.now() < due {
                one.poll(&mut counter, 8);
                other.poll(&mut counter, 8);
                assert!(one.standstill().is_none(), "{:?} after the last message", due - one.now());
            }
            send(&mut one, link);
            due = one.now() + patience * 3 / 4;
        }
        let sent = one.now();
        let why = loop {
            other.poll(&mut counter, 8);
            one.poll(&mut counter, 8);
            if let Some(Error::Standstill { why }) = one.standstill() {
                break why;
            }
        };
        let waited = one.now() - sent;
        // The last poll would have lasted until then.
        assert!(waited > patience * 99 / 100 && waited < patience * 2, "{waited:?}");
        assert!(why.contains("0.0 polls, 1.0 polls"), "{why}");
        assert_eq!(counter.0, 3);

        let (_world, [mut one, mut other]) = two_functions(&Config::prototype(), 1, |_| ());
        let nobody = FunctionAddress { node: 2, function: 0 };
        one.link(nobody, patience * 3).expect("a link that is asked for");
        let begun = one.now();
        while one.now() - begun < patience * 2 {
            one.poll(&mut counter, 8);
            other.poll(&mut counter, 8);
            assert!(one.standstill().is_none());
        }
    }
}
