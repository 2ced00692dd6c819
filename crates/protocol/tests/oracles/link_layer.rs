//! One direction of a link, with its acknowledgements and credits on the way back, under planned
//! faults. The oracle: packets arrive once and in order; no buffer overflows; the run ends with
//! every buffer empty.

use std::collections::VecDeque;

use bellwire_protocol::link_layer::{
    Arrival, Cost, CreditGate, CreditLedger, Receiver, TimedOut, Transmitter,
};
use bellwire_wire::link::dllp::{Dllp, Granted, Stage};

/// A fault of one item on the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It comes, and its CRC is wrong.
    Damaged,
    /// Its framing is wrong, too: the receiver sees nothing.
    Vanished,
}

/// Which items meet a fault, counted from 0 in the order of sending over both directions.
pub type Faults = Vec<(u32, Fault)>;

/// The case to run.
#[derive(Clone, Debug)]
pub struct Case {
    /// Number of the first frame.
    pub first: u16,
    /// Packets to be sent.
    pub packets: u32,
    /// Packets that the replay buffer holds.
    pub replay: usize,
    /// Packets that the receive buffer holds.
    pub headers: u8,
    /// The faults to inject.
    pub faults: Faults,
}

/// Bytes of a packet; its payload is worth two data credits.
const BYTES: usize = 52;
const COST: Cost = Cost { data: 2 };
const LATENCY: u64 = 10;
const LINE: u64 = 4;
const ACKNOWLEDGE: u64 = 9;
const REPLAY: u64 = 120;
/// The receiver needs this long for a packet, and repeats its credits this long after the last.
const DRAIN: u64 = 7;
const REFRESH: u64 = 400;
/// PCIe repeats them forever; here, more repeats than faults are enough.
const REPEATS: u32 = 13;

enum Thing {
    Frame { sequence: u16, packet: u32 },
    Dllp(Dllp),
}

/// A line that counts its items over both directions.
#[derive(Default)]
struct Line {
    free_at: u64,
    things: VecDeque<(u64, Thing, Option<Fault>)>,
}

struct Link {
    faults: Faults,
    count: u32,
}

impl Link {
    fn send(&mut self, line: &mut Line, now: u64, thing: Thing) {
        let fault = self.faults.iter().find(|(index, _)| *index == self.count);
        self.count += 1;
        line.free_at = now + LINE;
        line.things.push_back((now + LINE + LATENCY, thing, fault.map(|(_, fault)| *fault)));
    }
}

fn due(
    things: &mut VecDeque<(u64, Thing, Option<Fault>)>,
    now: u64,
) -> Option<(u64, Thing, Option<Fault>)> {
    things.front().is_some_and(|front| front.0 <= now).then(|| things.pop_front())?
}

/// Runs the case; returns the number of items that were on the line.
pub fn run(case: &Case) -> Result<u32, String> {
    let mut link = Link { faults: case.faults.clone(), count: 0 };
    let (mut forward, mut back) = (Line::default(), Line::default());
    let mut transmitter = Transmitter::starting_at(case.first, case.replay * BYTES, REPLAY);
    let mut receiver = Receiver::starting_at(case.first, ACKNOWLEDGE);
    let mut gate = CreditGate::default();
    let mut ledger = CreditLedger::new(case.headers, u16::from(case.headers) * COST.data);
    gate.handle_granted(ledger.granted());
    let (mut sent, mut delivered, mut freed) = (0, Vec::new(), Vec::new());
    let mut buffer: VecDeque<u64> = VecDeque::new();
    let (mut update, mut refresh, mut repeats) = (false, u64::MAX, 0);
    let mut now = 0;
    for _ in 0..100_000 {
        // Arrivals.
        while let Some((_, thing, fault)) = due(&mut forward.things, now) {
            let arrival = match (thing, fault) {
                (_, Some(Fault::Vanished)) => continue,
                (_, Some(Fault::Damaged)) => (receiver.handle_damaged(), 0),
                (Thing::Frame { sequence, packet }, None) => {
                    (receiver.handle_frame(now, sequence), packet)
                }
                (Thing::Dllp(_), None) => unreachable!("nothing of the sort goes forward"),
            };
            if let (Arrival::Deliver, packet) = arrival {
                ledger.enter(COST).map_err(|overflow| overflow.to_string())?;
                delivered.push(packet);
                buffer.push_back(buffer.back().map_or(now, |last| now.max(*last)) + DRAIN);
            }
        }
        while let Some((_, thing, fault)) = due(&mut back.things, now) {
            let (Thing::Dllp(packet), None) = (thing, fault) else { continue };
            let done = match packet {
                Dllp::Ack { sequence } => {
                    transmitter.handle_ack(now, sequence, |one| freed.push(one))
                }
                Dllp::Nak { sequence } => {
                    transmitter.handle_nak(now, sequence, |one| freed.push(one))
                }
                Dllp::Credits { granted, .. } => {
                    gate.handle_granted(granted);
                    Ok(())
                }
            };
            done.map_err(|error| error.to_string())?;
        }
        while buffer.front().is_some_and(|done| *done <= now) {
            buffer.pop_front();
            ledger.leave(COST);
            (update, refresh, repeats) = (true, now + REFRESH, REPEATS);
        }
        if now >= refresh {
            repeats -= 1;
            (update, refresh) = (true, if repeats > 0 { now + REFRESH } else { u64::MAX });
        }
        // Transmissions.
        if transmitter.handle_timeout(now) == TimedOut::Retrain {
            return Err("four replays in a row did not help".into());
        }
        while sent < case.packets && transmitter.has_room(BYTES) && gate.allows(COST).is_ok() {
            gate.spend(COST);
            transmitter.push(sent, BYTES).map_err(|_| "there was room")?;
            sent += 1;
        }
        if now >= forward.free_at
            && let Some((sequence, &packet, _)) = transmitter.poll(now)
        {
            link.send(&mut forward, now, Thing::Frame { sequence, packet });
        }
        if now >= back.free_at {
            if let Some(packet) = receiver.poll(now) {
                link.send(&mut back, now, Thing::Dllp(packet));
            } else if update {
                update = false;
                let credits =
                    Dllp::Credits { stage: Stage::Update, channel: 0, granted: ledger.granted() };
                link.send(&mut back, now, Thing::Dllp(credits));
            }
        }
        if delivered.len() > case.packets as usize {
            return Err(format!("more came than was sent: {delivered:?}"));
        }
        let is_quiet = forward.things.is_empty() && back.things.is_empty() && buffer.is_empty();
        if is_quiet && !update && refresh == u64::MAX && transmitter.held_frames() == 0 {
            break;
        }
        now += 1;
    }
    let expected: Vec<u32> = (0..case.packets).collect();
    if delivered != expected || freed != expected {
        return Err(format!("delivered {delivered:?}, acknowledged {freed:?}"));
    }
    let whole = Granted { headers: case.headers, data: u16::from(case.headers) * COST.data };
    if gate.left() != (whole.headers, whole.data) || ledger.held() != (0, 0) {
        return Err(format!("credits are lost: {:?} of {whole:?}", gate.left()));
    }
    let sums = [transmitter.frames_acknowledged, receiver.frames_delivered];
    if sums != [u64::from(case.packets); 2] || transmitter.held_bytes() != 0 {
        return Err(format!("counters do not balance: {sums:?}"));
    }
    Ok(link.count)
}

/// Runs every single and double fault of a case, of both kinds at every place; returns the number
/// of runs.
pub fn every_double_fault(case: &Case) -> Result<u32, String> {
    let try_with = |faults: Faults| {
        let result = run(&Case { faults: faults.clone(), ..case.clone() });
        result.map_err(|error| format!("{faults:?}: {error}"))
    };
    let kinds = [Fault::Damaged, Fault::Vanished];
    let mut runs = 0;
    for place in 0..try_with(vec![])? {
        for kind in kinds {
            let things = try_with(vec![(place, kind)])?;
            runs += 1;
            for second in place + 1..things {
                for second_kind in kinds {
                    try_with(vec![(place, kind), (second, second_kind)])?;
                    runs += 1;
                }
            }
        }
    }
    Ok(runs)
}

/// The cases for every double fault: replay buffer or credits as the limit, numbers that wrap.
pub fn cases() -> [Case; 4] {
    let case = Case { first: 0, packets: 8, replay: 4, headers: 6, faults: Vec::new() };
    [
        case.clone(),
        Case { first: 4092, ..case.clone() },
        Case { first: 4095, replay: 8, headers: 2, ..case.clone() },
        Case { first: 2046, replay: 1, headers: 1, packets: 4, ..case },
    ]
}
