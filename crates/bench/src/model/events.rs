//! The event core alone: the hold model. A thousand events are pending; each one that fires
//! schedules another at a random time.

use bellwire_model::engine::{Event, Model, Schedule, Simulation};
use bellwire_model::units::{Span, Time};

use super::{Row, cpu};

const PENDING: u64 = 1_000;
const EVENTS: u64 = 20_000_000;

#[derive(Clone, Copy)]
struct HoldEvent(u32);

impl Event for HoldEvent {
    fn trace(self) -> u64 {
        self.0.into()
    }
}

/// Delays of one to 512 cycles of 4 ns plus some picoseconds, typical of a NIC's clocks and
/// memories.
struct Hold {
    left: u64,
}

impl Model for Hold {
    type Event = HoldEvent;

    fn handle(&mut self, event: HoldEvent, schedule: &mut Schedule<HoldEvent>) {
        if self.left > 0 {
            self.left -= 1;
            let delay = 4_000 + schedule.random.below(2_048_000);
            schedule.after(Span::from_ps(delay), event);
        }
    }
}

/// Measures the event core.
pub fn row(rounds: usize) -> Row {
    let model = (0..rounds)
        .map(|round| {
            let mut schedule = Schedule::new(round as u64, Span::from_ns(4));
            for number in 0..PENDING {
                schedule.at(Time::from_ps(number * 2_000), HoldEvent(number as u32));
            }
            let before = cpu::own();
            let mut simulation = Simulation { model: Hold { left: EVENTS }, schedule };
            simulation.run(Time::NEVER);
            simulation.events() as f64 / (cpu::own() - before).as_secs_f64()
        })
        .collect();
    Row::alone(format!("event core, {PENDING} pending"), "events", model, 25e6)
}
