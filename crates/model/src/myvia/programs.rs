//! The paper's benchmark programs, and traffic of its mix (M-30, M-31; paper 2.2, 4).

use super::config::Setup;
use super::kmem::PAGE;
use super::machine::{Completion, HostApi, Machine, Program, Status};
use super::memory::RegionId;
use super::pipeline::Side;
use crate::engine::Random;
use crate::network::Sizes;
use crate::units::{Span, Time};

/// The most unfinished sends of a window, and the number of posted receives. The paper does not
/// say; our choice.
pub const WINDOW: u64 = 64;

/// The longest message of the mix.
pub const LONGEST_OF_MIX: u32 = 65_536;

/// Lengths of messages.
#[derive(Clone, Debug)]
pub enum Lengths {
    /// All the same length.
    Fixed(u32),
    /// Random lengths as the paper found them in programs (M-31), up to this limit.
    Mix(Random, u32),
}

impl Lengths {
    fn next(&mut self) -> u32 {
        match self {
            Lengths::Fixed(bytes) => *bytes,
            Lengths::Mix(random, most) => loop {
                let bytes = Sizes::draw_bytes(random);
                if bytes <= u64::from(*most) {
                    break bytes as u32;
                }
            },
        }
    }

    /// The longest possible length.
    fn most(&self) -> u32 {
        match self {
            Lengths::Fixed(bytes) => *bytes,
            Lengths::Mix(_, most) => *most,
        }
    }
}

/// Where a window's sends lie in memory.
#[derive(Clone, Debug)]
pub enum Places {
    /// One buffer per place of the window, reused.
    Reused,
    /// Random places in a region of this many bytes: poor locality.
    Scattered(u64, Random),
}

/// Both ends of a ping-pong; the first end begins.
#[derive(Clone, Debug)]
pub struct PingPong {
    lengths: Lengths,
    rounds_left: u64,
    vis: [u16; 2],
    regions: [RegionId; 2],
    /// When it ended.
    pub ended: Option<Time>,
    /// Bytes of data in one direction.
    pub bytes: u64,
    /// Faults; zero if all went well.
    pub faults: u64,
}

impl PingPong {
    /// Posts the first receives and the first send.
    ///
    /// # Errors
    /// A sentence, if memory is full.
    pub fn begin(
        running: &mut Machine,
        mut lengths: Lengths,
        rounds: u64,
    ) -> Result<PingPong, String> {
        let vis = running.model.connect(0, 1);
        let most = lengths.most();
        let bytes = 2 * u64::from(most.max(1));
        let regions = [register(running, 0, bytes)?, register(running, 1, bytes)?];
        let first = lengths.next();
        let mut program = PingPong {
            lengths,
            rounds_left: rounds,
            vis: [vis.0, vis.1],
            regions,
            ended: None,
            bytes: 0,
            faults: 0,
        };
        let api = &mut running.api();
        program.post_receive(api, 0);
        program.post_receive(api, 1);
        program.post_send(api, 0, first);
        Ok(program)
    }

    fn post_receive(&mut self, api: &mut HostApi<'_>, host: u8) {
        let (vi, region) = (self.vis[usize::from(host)], self.regions[usize::from(host)]);
        let most = self.lengths.most();
        let posted = api.receive(host, vi, region, u64::from(most), most);
        self.faults += u64::from(posted.is_err());
    }

    fn post_send(&mut self, api: &mut HostApi<'_>, host: u8, length: u32) {
        let (vi, region) = (self.vis[usize::from(host)], self.regions[usize::from(host)]);
        self.faults += u64::from(api.send(host, vi, region, 0, length).is_err());
        self.bytes += if host == 0 { u64::from(length) } else { 0 };
    }
}

impl Program for PingPong {
    fn completed(&mut self, completion: &Completion, api: &mut HostApi<'_>) {
        self.faults += u64::from(completion.status != Status::Success);
        if completion.side == Side::Send {
            return;
        }
        let host = completion.host;
        let mut length = completion.length;
        if host == 0 {
            self.rounds_left -= 1;
            if self.rounds_left == 0 {
                self.ended = Some(api.now());
                return;
            }
            length = self.lengths.next();
        }
        // The answer first; the next receive is not urgent.
        self.post_send(api, host, length);
        self.post_receive(api, host);
    }
}

/// The first host sends messages in a row, whether or not the second receives. The second receives
/// what arrives. A message without a posted receive is lost.
#[derive(Clone, Debug)]
pub struct Window {
    lengths: Lengths,
    places: Places,
    /// Bytes of a buffer.
    buffer: u64,
    messages: u64,
    posted: u64,
    vis: [u16; 2],
    regions: [RegionId; 2],
    /// The most sends in progress; initially [`WINDOW`].
    pub unfinished: u64,
    /// Sends that have completed.
    pub sent: u64,
    /// Messages that have come.
    pub received: u64,
    /// The number of the next message, if none is lost.
    due: u64,
    /// When all sends had completed and the last message had come.
    pub ended: Option<Time>,
    /// Bytes of data that have come. Bytes are counted at the receiver: a send can complete before
    /// its data has left the sender's NIC.
    pub bytes: u64,
    /// Faults; zero if all went well.
    pub faults: u64,
}

impl Window {
    /// Posts receives (if the second host receives) and the first sends.
    ///
    /// # Errors
    /// A sentence, if memory is full.
    pub fn begin(
        running: &mut Machine,
        lengths: Lengths,
        places: Places,
        messages: u64,
        receives: bool,
    ) -> Result<Window, String> {
        let vis = running.model.connect(0, 1);
        let buffer = u64::from(lengths.most().max(1)).next_multiple_of(PAGE);
        let all = buffer * WINDOW;
        let sends = match places {
            Places::Reused => all,
            Places::Scattered(bytes, _) => bytes + buffer,
        };
        let regions = [register(running, 0, sends)?, register(running, 1, all)?];
        let mut program = Window {
            lengths,
            places,
            buffer,
            messages,
            posted: 0,
            vis: [vis.0, vis.1],
            regions,
            unfinished: WINDOW,
            sent: 0,
            received: 0,
            due: 0,
            ended: None,
            bytes: 0,
            faults: 0,
        };
        let api = &mut running.api();
        for number in 0..if receives { WINDOW } else { 0 } {
            program.post_receive(api, number);
        }
        Ok(program)
    }

    /// Starts to send.
    pub fn start(&mut self, api: &mut HostApi<'_>) {
        for _ in 0..self.unfinished.min(self.messages) {
            self.post_send(api);
        }
    }

    fn post_receive(&mut self, api: &mut HostApi<'_>, number: u64) {
        let offset = number % WINDOW * self.buffer;
        let posted = api.receive(1, self.vis[1], self.regions[1], offset, self.lengths.most());
        self.faults += u64::from(posted.is_err());
    }

    fn post_send(&mut self, api: &mut HostApi<'_>) {
        let length = self.lengths.next();
        let reused = self.posted % WINDOW * self.buffer;
        let offset = match &mut self.places {
            Places::Reused => reused,
            Places::Scattered(bytes, random) => random.below(*bytes / PAGE) * PAGE,
        };
        self.posted += 1;
        let posted = api.send(0, self.vis[0], self.regions[0], offset, length);
        self.faults += u64::from(posted.is_err());
    }
}

impl Program for Window {
    fn completed(&mut self, completion: &Completion, api: &mut HostApi<'_>) {
        self.faults += u64::from(completion.status != Status::Success);
        match completion.side {
            Side::Receive => {
                // Messages without a receive are lost; the others arrive in order.
                self.faults += u64::from(completion.message < self.due);
                self.due = completion.message + 1;
                self.received += 1;
                self.bytes += u64::from(completion.length);
                if self.ended.is_some() {
                    self.ended = Some(api.now());
                }
                self.post_receive(api, completion.number);
            }
            Side::Send => {
                self.sent += 1;
                if self.posted < self.messages {
                    self.post_send(api);
                } else if self.sent == self.messages {
                    self.ended = Some(api.now());
                }
            }
        }
    }
}

fn register(running: &mut Machine, host: u8, bytes: u64) -> Result<RegionId, String> {
    running.model.register(host, bytes).map_err(|error| error.to_string())
}

/// Runs a ping-pong of `rounds` round trips on a new machine. Returns the mean one-way time.
///
/// # Errors
/// A sentence, if the run fails or breaks a law.
pub fn ping_pong(setup: &Setup, lengths: Lengths, rounds: u64, seed: u64) -> Result<Span, String> {
    let mut running = Machine::new(setup, 2, seed).map_err(|error| error.to_string())?;
    // The receives reach the NICs before the first send: the same processor posts them first.
    let mut program = PingPong::begin(&mut running, lengths, rounds)?;
    running.run_program(&mut program, Time::NEVER);
    running.model.audit(running.schedule.now())?;
    let ended = program.ended.filter(|_| program.faults == 0);
    let ended = ended.ok_or_else(|| format!("{}: the ping-pong did not end", setup.name))?;
    Ok(ended.since(Time::ZERO) / (2 * rounds))
}

/// Results of a window.
pub struct Flow {
    /// Decimal megabytes of data that came per second, from the first post until the last came.
    pub megabytes_per_second: f64,
    /// Messages per second.
    pub messages_per_second: f64,
    /// From the first post until all sends had completed and the last message had come.
    pub took: Span,
    /// The machine afterwards.
    pub running: Machine,
    /// The program afterwards.
    pub program: Window,
}

/// Runs a window of `messages` messages on a new machine; receives are posted before.
///
/// # Errors
/// A sentence, if the run fails or breaks a law.
pub fn window(
    setup: &Setup,
    lengths: Lengths,
    places: Places,
    messages: u64,
    seed: u64,
) -> Result<Flow, String> {
    let mut running = Machine::new(setup, 2, seed).map_err(|error| error.to_string())?;
    let mut program = Window::begin(&mut running, lengths, places, messages, true)?;
    let (running, took) = run_window(running, &mut program)?;
    let seconds = took.ps() as f64 / 1e12;
    Ok(Flow {
        megabytes_per_second: program.bytes as f64 / 1e6 / seconds,
        messages_per_second: messages as f64 / seconds,
        took,
        running,
        program,
    })
}

/// Runs a prepared window to its end. Returns the machine and the time from the first post to the
/// last completion.
///
/// # Errors
/// A sentence, if the run fails.
pub fn run_window(mut running: Machine, program: &mut Window) -> Result<(Machine, Span), String> {
    running.run_program(program, Time::NEVER);
    let began = running.schedule.now();
    program.start(&mut running.api());
    running.run_program(program, Time::NEVER);
    running.model.audit(running.schedule.now())?;
    let name = &running.model.setup.name;
    let node = &running.model.nodes[1];
    let dropped = node.agent.counts.dropped + node.processor.counts.dropped;
    let lost = program.received + dropped != program.messages;
    let Some(ended) = program.ended.filter(|_| program.faults == 0 && !lost) else {
        return Err(format!(
            "{name}: of {} messages {} were sent and {} came, with {} faults",
            program.messages, program.sent, program.received, program.faults
        ));
    };
    Ok((running, ended.since(began)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(system: &str) -> Machine {
        Machine::new(&Setup::paper(system).unwrap(), 2, 1).unwrap()
    }

    /// Where the operations of a host begin in its region, in order of their numbers.
    fn offsets(running: &Machine, host: usize) -> Vec<u64> {
        running.model.nodes[host].operations.iter().flatten().map(|it| it.offset).collect()
    }

    /// Five rounds of 100 B: both ends send from the beginning of their regions and receive behind.
    /// The time of one way is a tenth of the whole.
    #[test]
    fn a_ping_pong_counts_its_rounds() {
        crate::limit::limited(|| {
            let mut running = machine("myvia-a");
            let mut program = PingPong::begin(&mut running, Lengths::Fixed(100), 5).unwrap();
            assert_eq!((offsets(&running, 0), offsets(&running, 1)), (vec![100, 0], vec![100]));
            assert_eq!((program.bytes, program.rounds_left, program.ended), (100, 5, None));
            running.run_program(&mut program, Time::NEVER);
            assert_eq!((program.bytes, program.rounds_left, program.faults), (500, 0, 0));
            let took = program.ended.expect("it ended").since(Time::ZERO);
            let setup = Setup::paper("myvia-a").unwrap();
            let one_way = ping_pong(&setup, Lengths::Fixed(100), 5, 1).unwrap();
            assert_eq!(one_way, took / 10);
            assert!(one_way > Span::from_ns(1000), "{one_way}");
        });
    }

    /// What is refused, or ends badly, is a fault, and no sends are answered.
    #[test]
    fn faults_are_counted() {
        let mut running = machine("myvia-a");
        let mut program = PingPong::begin(&mut running, Lengths::Fixed(100), 5).unwrap();
        program.regions = [9, 9];
        let mut completion = Completion {
            host: 1,
            vi: 0,
            side: Side::Send,
            number: 0,
            message: 0,
            length: 100,
            status: Status::Success,
            posted: Time::ZERO,
        };
        program.completed(&completion, &mut running.api());
        assert_eq!((program.faults, program.bytes), (0, 100));
        completion.side = Side::Receive;
        program.completed(&completion, &mut running.api());
        assert_eq!((program.faults, program.bytes), (2, 100), "neither can be posted");
        completion.status = Status::TooLong;
        program.completed(&completion, &mut running.api());
        assert_eq!(program.faults, 5);
        let mut window =
            Window::begin(&mut running, Lengths::Fixed(100), Places::Reused, 9, false).unwrap();
        window.regions = [9, 9];
        window.completed(&completion, &mut running.api());
        assert_eq!((window.faults, window.received, window.bytes, window.due), (2, 1, 100, 1));
        (completion.status, completion.message) = (Status::Success, 0);
        window.completed(&completion, &mut running.api());
        assert_eq!((window.faults, window.received), (4, 2), "it came before");
        completion.message = 7;
        window.completed(&completion, &mut running.api());
        assert_eq!((window.faults, window.due), (5, 8), "those between were lost");
        window.post_send(&mut running.api());
        assert_eq!((window.faults, window.posted), (6, 1));
    }

    /// Each place of a window has whole pages, and operations use the places in turn.
    #[test]
    fn windows_use_their_places_in_turn() {
        let mut running = machine("myvia-a");
        let mut window =
            Window::begin(&mut running, Lengths::Fixed(5000), Places::Reused, 100, true).unwrap();
        let places: Vec<u64> = (0..64).map(|place| place * 8192).collect();
        assert_eq!((offsets(&running, 1), window.buffer), (places, 8192));
        window.unfinished = 3;
        window.start(&mut running.api());
        assert_eq!((offsets(&running, 0), window.posted), (vec![0, 8192, 16_384], 3));
        (window.posted, window.messages) = (65, 67);
        window.post_send(&mut running.api());
        assert_eq!(offsets(&running, 0).last(), Some(&8192));
        window.post_receive(&mut running.api(), 66);
        assert_eq!((window.faults, offsets(&running, 1)[64..].to_vec()), (0, vec![16_384]));
        let mut few = machine("myvia-a");
        let mut window =
            Window::begin(&mut few, Lengths::Fixed(0), Places::Reused, 2, true).unwrap();
        window.start(&mut few.api());
        assert_eq!((offsets(&few, 0), window.buffer), (vec![0, 4096], 4096));
        // Scattered places begin at pages of a region that has a buffer more.
        let scattered = Places::Scattered(40_960, Random::new(5));
        let mut running = machine("myvia-a");
        let mut window =
            Window::begin(&mut running, Lengths::Fixed(100), scattered, 60, true).unwrap();
        window.start(&mut running.api());
        let places = offsets(&running, 0);
        assert!(places.iter().all(|place| place % 4096 == 0 && *place < 40_960), "{places:?}");
        assert!(places.iter().collect::<std::collections::BTreeSet<_>>().len() > 5);
        assert_eq!((window.faults, running.model.nodes[0].memory.length(0)), (0, 45_056));
    }

    /// A flow is what came, by the time that it took.
    #[test]
    fn flows_are_rates() {
        let setup = Setup::paper("myvia-a").unwrap();
        let flow = window(&setup, Lengths::Fixed(1000), Places::Reused, 200, 1).unwrap();
        let program = &flow.program;
        assert_eq!((program.sent, program.received, program.posted), (200, 200, 200));
        assert_eq!((program.bytes, program.faults, program.due), (200_000, 0, 200));
        let microseconds = flow.took.ps() as f64 / 1e6;
        let close = |one: f64, other: f64| (one / other - 1.0).abs() < 1e-9;
        assert!(close(flow.megabytes_per_second, 200_000.0 / microseconds));
        assert!(close(flow.messages_per_second, 200.0 / microseconds * 1e6));
        assert!(program.ended.expect("it ended").since(Time::ZERO) >= flow.took);
    }

    /// Without receives all is lost, in the NIC or in the kernel, and that is no fault. A run with
    /// a fault is none.
    #[test]
    fn lost_messages_are_counted() {
        for system in ["myvia-a", "m-via-100"] {
            let run = |faults| {
                let mut running = machine(system);
                let lengths = Lengths::Fixed(100);
                let mut window =
                    Window::begin(&mut running, lengths, Places::Reused, 20, false).unwrap();
                window.faults = faults;
                let ran = run_window(running, &mut window).is_ok();
                (ran, window.sent, window.received, window.bytes)
            };
            assert_eq!(run(0), (true, 20, 0, 0), "{system}");
            assert_eq!(run(1), (false, 20, 0, 0), "{system}");
        }
    }

    /// Lengths of a mix keep to their limit.
    #[test]
    fn a_mix_has_a_longest_message() {
        let mut mix = Lengths::Mix(Random::new(3), 1000);
        let lengths: Vec<u32> = (0..200).map(|_| mix.next()).collect();
        assert!(lengths.iter().all(|length| *length <= 1000) && mix.most() == 1000);
        assert!(lengths.iter().collect::<std::collections::BTreeSet<_>>().len() > 3);
        let mut none = Lengths::Fixed(7);
        assert_eq!((none.next(), none.most()), (7, 7));
    }
}
