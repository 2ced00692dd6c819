//! Blocks made of channels and delays match LogGP exactly, and every result doubles when every time
//! doubles.

use bellwire_model::engine::{Channel, Event, Model, Schedule, Simulation, Timing};
use bellwire_model::units::{Span, Time};

#[derive(Clone, Copy)]
enum PairEvent {
    /// A processor has spent its overhead on a message to send.
    Prepared,
    /// The interface may begin the next message.
    Free,
    Arrived,
    /// A processor has spent its overhead on a received message.
    Received,
    Room,
}

impl Event for PairEvent {
    fn trace(self) -> u64 {
        self as u64
    }
}

/// LogGP's parameters (Alexandrov et al. 1995), in picoseconds.
#[derive(Clone, Copy)]
struct LogGp {
    latency: u64,
    overhead: u64,
    gap: u64,
    gap_per_byte: u64,
}

/// Two processors with interfaces, and a network with one channel; a beat is a byte.
struct Pair {
    parameters: LogGp,
    bytes: u32,
    to_prepare: u32,
    prepared: u32,
    interface_free: bool,
    network: Channel<(), PairEvent>,
    /// When the receiving processor will be free.
    receiver_free: Time,
    received: u32,
}

impl Pair {
    fn inject(&mut self, schedule: &mut Schedule<PairEvent>) {
        if self.interface_free && self.prepared > 0 {
            self.prepared -= 1;
            self.interface_free = false;
            // The first byte takes the latency, each further byte a gap.
            self.network
                .offer(schedule, self.bytes - 1, ())
                .expect("the line is free after each gap");
            let LogGp { gap, gap_per_byte, .. } = self.parameters;
            let busy = gap + gap_per_byte * u64::from(self.bytes - 1);
            schedule.after(Span::from_ps(busy), PairEvent::Free);
        }
    }
}

impl Model for Pair {
    type Event = PairEvent;

    fn handle(&mut self, event: PairEvent, schedule: &mut Schedule<PairEvent>) {
        let overhead = Span::from_ps(self.parameters.overhead);
        match event {
            PairEvent::Prepared => {
                self.prepared += 1;
                self.to_prepare -= 1;
                if self.to_prepare > 0 {
                    schedule.after(overhead, PairEvent::Prepared);
                }
                self.inject(schedule);
            }
            PairEvent::Free => {
                self.interface_free = true;
                self.inject(schedule);
            }
            PairEvent::Arrived => {
                self.network.take(schedule).expect("it has arrived");
                self.receiver_free = self.receiver_free.max(schedule.now()) + overhead;
                schedule.at(self.receiver_free, PairEvent::Received);
            }
            PairEvent::Received => self.received += 1,
            PairEvent::Room => {}
        }
    }
}

/// When the last of `messages` messages has been received.
fn end(parameters: LogGp, messages: u32, bytes: u32) -> u64 {
    let timing = Timing {
        latency: Span::from_ps(parameters.latency),
        beat: Span::from_ps(parameters.gap_per_byte),
        ..Timing::default()
    };
    let pair = Pair {
        parameters,
        bytes,
        to_prepare: messages,
        prepared: 0,
        interface_free: true,
        network: Channel::new("network", timing, u32::MAX, PairEvent::Arrived, PairEvent::Room),
        receiver_free: Time::ZERO,
        received: 0,
    };
    let mut simulation = Simulation { model: pair, schedule: Schedule::new(1, Span::from_ns(100)) };
    simulation.schedule.after(Span::from_ps(parameters.overhead), PairEvent::Prepared);
    simulation.run(Time::NEVER);
    let Simulation { model: pair, schedule } = simulation;
    assert_eq!(pair.received, messages);
    pair.network.audit(schedule.now()).unwrap();
    // The interface may become free shortly after the last message is received.
    pair.receiver_free.ps()
}

const NETWORK: LogGp =
    LogGp { latency: 700_000, overhead: 200_000, gap: 350_000, gap_per_byte: 312 };

/// One message takes 2 o + L + (k-1) G; n back to back (n-1)(g + (k-1) G) more, as g > o.
#[test]
fn messages_take_what_loggp_says() {
    let LogGp { latency, overhead, gap, gap_per_byte } = NETWORK;
    for bytes in [1, 8, 64, 2048] {
        let body = u64::from(bytes - 1) * gap_per_byte;
        let one = 2 * overhead + latency + body;
        assert_eq!(end(NETWORK, 1, bytes), one);
        for messages in [2, 5, 100] {
            let many = u64::from(messages - 1) * (gap + body) + one;
            assert_eq!(end(NETWORK, messages, bytes), many);
            // Canary: a gap that is one picosecond longer is noticed.
            assert_ne!(end(LogGp { gap: gap + 1, ..NETWORK }, messages, bytes), many);
        }
    }
}

/// At half the clock every time doubles.
#[test]
fn doubling_every_time_doubles_the_end() {
    let LogGp { latency, overhead, gap, gap_per_byte } = NETWORK;
    let twice = LogGp {
        latency: 2 * latency,
        overhead: 2 * overhead,
        gap: 2 * gap,
        gap_per_byte: 2 * gap_per_byte,
    };
    for (messages, bytes) in [(1, 1), (7, 100), (50, 4096)] {
        assert_eq!(end(twice, messages, bytes), 2 * end(NETWORK, messages, bytes));
        // Canary: a single unchanged time is noticed.
        let forgotten = LogGp { latency, ..twice };
        assert_ne!(end(forgotten, messages, bytes), 2 * end(NETWORK, messages, bytes));
    }
}
