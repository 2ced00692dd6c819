//! The descriptor interface of DAMQ-PD: the promises of its blocks, by example. The oracle tests of
//! the buffer are in `damq_pd::oracle_tests`.

use bellwire_model::damq_pd::experiments::start::{Start, start};
use bellwire_model::damq_pd::{
    Config, DescriptorBuffer, Load, Machine, Organisation, POLICIES, PortWord, Submission, Traffic,
    Way, Word,
};
use bellwire_model::units::{Bytes, Span, Time};

/// Later than the end of every run here.
const END: Time = Time::from_ps(1 << 42);

fn machine(config: &Config, loads: &[Load]) -> Machine {
    let mut config = config.clone();
    config.nic.ports = loads.len();
    Machine::new(&config, loads, 1).expect("the configuration is sound")
}

fn run(machine: &mut Machine, until: Time) {
    machine.run_before(until).expect("it does not stall");
    machine.model.check().expect("nothing is lost");
}

fn steps(start: &Start) -> String {
    start.steps.iter().map(|entry| format!("{:?}", entry.step)).collect::<Vec<_>>().join(" ")
}

/// The paper's interface with one way of submission.
fn by(submission: Submission) -> Config {
    let mut config = Config::paper();
    config.host.submission = submission;
    config
}

fn word(last: bool) -> Word {
    Word::new(0, last)
}

/// A word enters in every cycle for a million cycles. After a gap of five cycles one leaves every
/// cycle: four cycles for the descriptor, and the pipeline behind it.
// shows: D-04, D-05
#[test]
fn a_word_a_cycle_goes_in_and_comes_out() {
    const CYCLES: u64 = 1_000_000;
    let mut buffer = DescriptorBuffer::new(Organisation::DamqPd, 4, 64, 4);
    let mut gaps = Vec::new();
    for cycle in 0..CYCLES {
        let write =
            PortWord { port: (cycle / 4 % 4) as u8, way: Way::Pio, word: word(cycle % 4 == 3) };
        if buffer.cycle(Some(write), true).is_none() {
            gaps.push(cycle);
        }
    }
    assert_eq!(gaps, (0..7).collect::<Vec<_>>());
    // One word is still in the input register.
    assert_eq!(buffer.written[Way::Pio as usize], CYCLES - 1);
    buffer.check().unwrap();
}

/// A port with three words is never selected, however long it waits; with its fourth word it is.
// shows: D-06, D-07
#[test]
fn three_words_are_not_enough() {
    let mut buffer = DescriptorBuffer::new(Organisation::DamqPd, 2, 64, 4);
    let write = |port, last| Some(PortWord { port, way: Way::Pio, word: word(last) });
    for _ in 0..3 {
        assert_eq!(buffer.cycle(write(0, false), true), None);
    }
    for cycle in 0..10_000 {
        let read = buffer.cycle(write(1, cycle % 4 == 3), true);
        assert!(read.is_none_or(|read| read.port == 1));
        assert_eq!(buffer.arbiter.eligible & 1, 0);
    }
    buffer.cycle(write(0, true), true);
    let own = (0..40).filter_map(|_| buffer.cycle(None, true)).filter(|read| read.port == 0);
    assert_eq!(own.count(), 4);
}

/// Ports that always have descriptors leave in strict round-robin.
// shows: D-08
#[test]
fn saturated_ports_take_turns() {
    const PORTS: u8 = 16;
    let mut buffer = DescriptorBuffer::new(Organisation::DamqPd, PORTS.into(), 1024, 4);
    // Fill lists of different length, and then let all of them leave.
    for port in 0..PORTS {
        for _ in 0..8 + port % 3 {
            for at in 0..4 {
                buffer.cycle(Some(PortWord { port, way: Way::Pio, word: word(at == 3) }), false);
            }
        }
    }
    let mut turns = Vec::new();
    while turns.len() < 8 * usize::from(PORTS) {
        turns.extend(
            buffer.cycle(None, true).filter(|read| read.word.is_last()).map(|read| read.port),
        );
    }
    for (at, port) in turns.into_iter().enumerate() {
        assert_eq!(port, at as u8 % PORTS);
    }
}

/// With DMA alone and all ports saturated, the prefetcher fetches equally often for each port,
/// within one.
// shows: D-09
#[test]
fn prefetch_takes_turns() {
    let mut machine = machine(&by(Submission::Dma), &[Load::SATURATED; 24]);
    run(&mut machine, Time::from_ps(200_000_000));
    let fetched = &machine.model.prefetcher.fetched;
    let (least, most) = (fetched.iter().min().unwrap(), fetched.iter().max().unwrap());
    assert!(*least > 300 && most - least <= 1, "{fetched:?}");
}

/// A submission by PIO takes the six steps of Fig. 2, without a DMA read of the descriptor.
// shows: D-10
#[test]
fn pio_takes_six_steps() {
    let start = start(&Config::paper(), Submission::Pio).unwrap();
    assert_eq!(
        steps(&start),
        "DataPrepared DescriptorWritten LogicEntered DataReadBegins DataCame Sent"
    );
    assert_eq!(start.machine.model.bus.up.packets(Traffic::DescriptorRead), 0);
}

/// A submission by DMA takes the nine steps of Fig. 1: one PIO write and one DMA read deliver the
/// descriptor.
// shows: D-11
#[test]
fn dma_takes_nine_steps() {
    crate::limit::limited(|| {
        let start = start(&Config::paper(), Submission::Dma).unwrap();
        assert_eq!(
            steps(&start),
            "DataPrepared DescriptorPrepared DoorbellRung PrefetchEntered DescriptorReadBegins \
         DescriptorCame DataReadBegins DataCame Sent"
        );
        let bus = &start.machine.model.bus;
        assert_eq!(
            (bus.down.packets(Traffic::Doorbell), bus.down.packets(Traffic::PioWrite)),
            (1, 0)
        );
        assert_eq!(bus.up.packets(Traffic::DescriptorRead), 1);
    });
}

/// The 16 stores of a descriptor leave as two bursts. Their latency, reading out included, is
/// within 7 % of a one-word descriptor's single packet. Without combining they are 16 packets, with
/// eight times the header bytes.
// shows: D-12
#[test]
fn stores_are_combined() {
    crate::limit::limited(|| {
        let mut config = Config::paper();
        config.bus.header = Bytes::new(24);
        let begin = |config: &Config, words| {
            let mut machine = machine(config, &[Load { messages: 1, words, ..Load::SATURATED }]);
            machine.model.processes[0].credits = machine.model.credits.request(0);
            run(&mut machine, END);
            let down = &machine.model.bus.down;
            (
                machine.model.ports[0].latency.mean(),
                down.packets(Traffic::PioWrite),
                down.bytes(Traffic::PioWrite),
            )
        };
        let (whole, packets, bytes) = begin(&config, 4);
        assert_eq!((packets, bytes), (2, 128 + 2 * 24));
        // A descriptor of one word leaves as a single packet. Its reading out also takes fewer
        // cycles.
        let (single, ..) = begin(&config, 1);
        assert!(whole < 1.07 * single, "{whole} ps against {single} ps");
        config.bus.burst = Bytes::new(8);
        let (_, packets, bytes) = begin(&config, 4);
        assert_eq!((packets, bytes), (16, 128 + 16 * 24));
    });
}

/// In any mix of loads, words in the buffer plus unspent credits never exceed the granted words.
/// Granted words never exceed the buffer.
// shows: D-13, D-14
#[test]
fn credits_bound_what_is_written() {
    for (_, policy) in POLICIES {
        let mut config = Config::paper();
        config.nic.depth = 96;
        config.credits.policy = policy;
        let mut loads = [Load { words: 0, ..Load::SATURATED }; 12];
        loads[3] = Load { gap: Span::from_ns(300), burst: 20, ..loads[3] };
        let mut machine = machine(&config, &loads);
        for step in 1..20_000 {
            run(&mut machine, Time::from_ps(step * 6_000));
            let held: u32 = (0..12).map(|port| u32::from(machine.model.credits.held(port))).sum();
            let unspent: u32 = machine.model.processes.iter().map(|p| u32::from(p.credits)).sum();
            let inside = machine.model.buffer.inside(Way::Pio) as u32;
            assert!(inside + unspent <= held && held + machine.model.credits.free() == 96);
        }
        assert_eq!(machine.model.buffer.overflows, 0);
    }
}

/// A lone port requests once per grant, and submits nothing for the 600 ns of each request. It gets
/// the whole buffer.
// shows: D-14, D-15
#[test]
fn each_grant_takes_a_read() {
    let mut machine = machine(&Config::paper(), &[Load::SATURATED]);
    run(&mut machine, Time::from_ps(200_000_000));
    let process = &machine.model.processes[0];
    let answered = machine.model.credits.grants;
    assert!(process.reads - answered <= 1 && machine.model.credits.refusals == 0);
    // The request waits only for the last words on the wires, 8 ns at most.
    let mean = process.asked.as_ns() / answered as f64;
    assert!((600.0..608.0).contains(&mean), "{mean} ns");
    assert!(machine.model.peak <= 1024);
    assert!(process.submitted[Way::Pio as usize] / answered > 200);
}

/// While one port holds the whole buffer idle, another submits by DMA: it requests once, waits for
/// that one read, and never again. When the first has used up its credits, the other returns to PIO
/// without another request.
// shows: D-16, D-17, D-18
#[test]
fn a_hog_makes_others_use_dma_until_it_is_done() {
    let hog = Load { gap: Span::from_ns(800), burst: 256, messages: 256, ..Load::SATURATED };
    let other = Load { gap: Span::from_ns(100), messages: 2000, ..Load::SATURATED };
    let mut machine = machine(&Config::paper(), &[hog, other]);
    let mut held = 0;
    while held < 1024 {
        held += machine.model.credits.request(0);
    }
    machine.model.processes[0].credits = held;
    // The first port begins after a random (exponential) time; until then it has written nothing.
    let mut now = Time::ZERO;
    let mut by_dma = 0;
    while machine.model.processes[0].posted == 0 {
        by_dma = machine.model.ports[1].left[Way::Dma as usize];
        now += Span::from_ns(100);
        run(&mut machine, now);
    }
    assert!(by_dma > 20, "the other is served while the hog holds everything: {by_dma}");
    assert_eq!(machine.model.ports[1].left[Way::Pio as usize], 0);
    assert_eq!(machine.model.processes[1].reads, 1);
    // The answer comes at a clock edge, which may add a cycle.
    assert!((600.0..602.1).contains(&machine.model.processes[1].asked.as_ns()));
    run(&mut machine, END);
    let other = &machine.model.processes[1];
    assert!(other.submitted[Way::Pio as usize] > 1000, "{:?}", other.submitted);
    assert_eq!(machine.model.left_over(), 0);
}

/// While the send engine is stopped, the queue in host memory absorbs a burst beyond the buffer, up
/// to its depth. Then all descriptors leave in order.
// shows: D-20
#[test]
fn bursts_are_absorbed_up_to_the_queue() {
    crate::limit::limited(|| {
        let mut config = Config::paper();
        config.host.queue = 500;
        let mut machine = machine(&config, &[Load { messages: 2000, ..Load::SATURATED }]);
        machine.stop_engine(true);
        run(&mut machine, Time::from_ps(1 << 30));
        assert_eq!(machine.model.processes[0].posted, 1024 / 4 + 500);
        assert_eq!(machine.model.queues[0].most, 500);
        machine.stop_engine(false);
        run(&mut machine, END);
        assert_eq!(machine.model.ports[0].latency.count(), 2000);
    });
}

/// Descriptors of one to four words, 32 to 128 B, are submitted in both ways and leave whole; the
/// machine compares each word.
#[test]
fn descriptors_of_all_sizes_go_through() {
    crate::limit::limited(|| {
        for submission in [Submission::PioAndDma, Submission::Pio, Submission::Dma] {
            let load = Load { words: 0, messages: 3000, ..Load::SATURATED };
            let mut machine = machine(&by(submission), &[load; 6]);
            run(&mut machine, END);
            assert_eq!(machine.model.latencies_ns.len(), 18_000);
        }
    });
}

/// 16, 32 and 64 ports run on the same design and get equal service.
// shows: D-22
#[test]
fn ports_are_many() {
    for ports in [16, 32, 64] {
        let mut machine = machine(&Config::paper(), &vec![Load::SATURATED; ports]);
        run(&mut machine, Time::from_ps(500_000_000));
        let left: Vec<u64> =
            machine.model.ports.iter().map(|port| port.left.iter().sum()).collect();
        let (least, most) = (left.iter().min().unwrap(), left.iter().max().unwrap());
        assert!(*least * 10 >= *most * 7, "{left:?}");
    }
}

/// With PIO alone, a process that finds the buffer full polls and submits nothing meanwhile; no
/// descriptor is read by DMA.
// shows: B-11
#[test]
fn pio_alone_polls() {
    crate::limit::limited(|| {
        let mut config = by(Submission::Pio);
        config.nic.depth = 64;
        let mut machine = machine(&config, &[Load::SATURATED; 8]);
        machine.stop_engine(true);
        let until = Time::from_ps(60_000_000);
        run(&mut machine, until);
        let reads: u64 = machine.model.processes.iter().map(|process| process.reads).sum();
        assert!(reads > 700, "60 us of eight processes, a read of 600 ns after the other: {reads}");
        let submitted: u64 =
            machine.model.processes.iter().map(|process| u64::from(process.posted)).sum();
        assert_eq!(submitted, 64 / 4);
        assert_eq!(machine.model.bus.up.packets(Traffic::DescriptorRead), 0);
        // It polls as long as necessary, and then continues.
        machine.stop_engine(false);
        run(&mut machine, Time::from_ps(120_000_000));
        assert!(machine.model.processes.iter().all(|process| process.posted > 20));
    });
}

/// With DMA alone a process never stops before its queue is full and requests no credits; each
/// descriptor costs one read.
// shows: B-12
#[test]
fn dma_alone_reads_each_descriptor() {
    crate::limit::limited(|| {
        let mut machine =
            machine(&by(Submission::Dma), &[Load { messages: 900, ..Load::SATURATED }; 4]);
        run(&mut machine, END);
        let bus = &machine.model.bus;
        assert_eq!(bus.up.packets(Traffic::DescriptorRead), 3600);
        assert_eq!(bus.down.packets(Traffic::Doorbell), 3600);
        assert_eq!(bus.down.packets(Traffic::PioRead), 0);
        assert!(machine.model.processes.iter().all(|process| process.asked == Span::ZERO));
    });
}

/// The same configuration, loads and seed give the same run.
#[test]
fn runs_repeat() {
    let run = || {
        let load = Load { gap: Span::from_ns(90), burst: 5, words: 0, ..Load::SATURATED };
        let mut machine = machine(&Config::paper(), &[load; 9]);
        run(&mut machine, Time::from_ps(100_000_000));
        machine.model.latencies_ns
    };
    assert_eq!(run(), run());
}

/// An impossible configuration is refused with the parameter's name and the remedy.
#[test]
fn impossible_configurations_are_refused() {
    let refusal = |change: fn(&mut Config)| {
        let mut config = Config::paper();
        change(&mut config);
        config.check().unwrap_err().to_string()
    };
    assert!(refusal(|config| config.nic.ports = 65).contains("`nic.ports` is 65"));
    assert!(refusal(|config| config.credits.least = 2000).contains("1024"));
    assert!(refusal(|config| config.bus.pio_read = Span::from_ns(499)).contains("pio_read"));
    assert!(Config::parse("[nic]\nclock = \"1 GHz\"\ncolour = 1").is_err());
}
