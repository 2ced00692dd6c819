//! Schedules of message-passing programs: the reader is strict, and the schedule runs on the
//! modelled interface as MPI would run it.

use bellwire_model::chpp::experiments::Kind;
use bellwire_model::chpp::experiments::single::single;
use bellwire_model::chpp::workload::{Execution, Outcome};
use bellwire_model::chpp::{Config, Machine};
use bellwire_model::goal::{EXAMPLE, Schedule, Work};
use bellwire_model::units::Span;
use proptest::prelude::*;

/// The prototype with `ports` nodes.
fn machine(ports: usize) -> Config {
    let mut config = Config::prototype();
    config.crossbar.ports = ports;
    config
}

/// A schedule of two ranks.
fn two(rank_0: &str, rank_1: &str) -> String {
    format!("num_ranks 2\nrank 0 {{\n{rank_0}\n}}\nrank 1 {{\n{rank_1}\n}}\n")
}

fn run_on(config: &Config, text: &str, eager: u64) -> Result<Outcome, String> {
    let schedule = Schedule::read(text).map_err(|error| error.to_string())?;
    Execution::new(config, schedule, eager, 1)?.run(|_| {})
}

fn run(text: &str, eager: u64) -> Result<Outcome, String> {
    run_on(&machine(4), text, eager)
}

/// Every element of the format is read: comments, options in their order, any source and tag,
/// dependencies of both kinds, and operations without label.
#[test]
fn schedules_are_read() {
    let text = "/* two\nranks */ num_ranks 3\nrank 2 { calc 7 cpu 1 }\nrank 0 { // first\n\
                a: send 100b to 1 tag 3 cpu 2 nic 1\n b: recv 8b from -1 tag -1\nc: recv 9b from 1; d: calc 5\n\
                b requires a; c irequires a\n c requires b }\n";
    let schedule = Schedule::read(text).unwrap();
    let rank = &schedule.ranks[0].operations;
    assert_eq!(rank[0].work, Work::Send { bytes: 100, to: 1, tag: 3 });
    assert_eq!((rank[0].cpu, rank[0].line), (2, 5));
    assert_eq!(rank[1].work, Work::Receive { bytes: 8, from: None, tag: None });
    assert_eq!(rank[2].work, Work::Receive { bytes: 9, from: Some(1), tag: Some(0) });
    assert_eq!(rank[3].work, Work::Calculate { ns: 5 });
    assert_eq!(
        (&rank[1].requires[..], &rank[2].requires[..], &rank[2].irequires[..]),
        (&[0][..], &[1][..], &[0][..])
    );
    assert!(schedule.ranks[1].operations.is_empty());
    assert_eq!(schedule.ranks[2].operations[0].cpu, 1);
    assert_eq!(Schedule::read(EXAMPLE).unwrap().ranks.len(), 4);
}

/// An error names its line and the expected text.
#[test]
fn wrong_schedules_are_refused_with_their_line() {
    let refused = |text: &str, line: usize, says: &str| {
        let error = Schedule::read(text).expect_err(text);
        assert!(error.why.contains(says), "{text:?}: {error}");
        assert_eq!(error.line, line, "{text:?}: {error}");
    };
    for (text, line, says) in [
        ("", 1, "`num_ranks` should stand here, but the text is over"),
        ("num_ranks 0", 1, "must be 1 to 4096"),
        ("num_ranks 2\nrank 2 {\n}", 2, "rank 2 is beyond num_ranks 2"),
        ("num_ranks 1\nrank 0 { }\nrank 0 { }", 3, "for the second time"),
        ("num_ranks 1\nrank 0 {\ncalc 1\n", 3, "the rank of line 2 does not end"),
        ("num_ranks 1\nrank 0 {\n/* open\n", 3, "this comment does not end"),
        ("num_ranks 1\ncalc 3", 2, "`rank` should stand here, not `calc`"),
    ] {
        refused(text, line, says);
    }
    for (rank, line, says) in [
        ("calc x", 3, "nanoseconds, a number, should stand here, not `x`"),
        ("send 1 to 0", 3, "`b` should stand here, not `to`"),
        ("send 1b from 0", 3, "`to` should stand here, not `from`"),
        ("send 1b to -1", 3, "a rank, a number, should stand here, not `-1`"),
        ("send 1b to 1", 3, "there is no rank 1: num_ranks is 1"),
        ("recv 1b from 0 cpu 1 tag 2", 3, "should end here, but goes on with `tag`"),
        ("recv 1b from 0 tag 4294967296", 3, "too large"),
        ("calc 99999999999999999999", 3, "is too large"),
        ("a: calc 1\na: calc 2", 4, "label `a` is there already"),
        ("a: calc 1\na requires b", 4, "has the label `b`"),
        ("a: calc 1\nb: calc 2\na requires b\nb irequires a", 3, "can never begin"),
        ("label", 3, "should follow label `label`"),
        ("calc 1 %", 3, "'%' does not belong"),
    ] {
        refused(&format!("num_ranks 1\nrank 0 {{\n{rank}\n}}"), line, says);
    }
}

/// Short messages go as one NAP; long ones ask first and go as a PUT. The data is right in both
/// cases: the receiver compares every byte.
// shows: C-53
#[test]
fn messages_go_by_their_size() {
    let text = "num_ranks 2\nrank 0 {\nsend 64b to 1 tag 1\nsend 100000b to 1 tag 2\n}\n\
                rank 1 {\nrecv 100000b from 0 tag 2\nrecv 64b from 0 tag 1\n}\n";
    let outcome = run(text, 1024).unwrap();
    assert_eq!((outcome.eager, outcome.rendezvous, outcome.bytes), (1, 1, 100_064));
    assert_eq!(run(text, 63).unwrap().rendezvous, 2);
    assert_eq!(run(text, 1024).unwrap().trace_hash, outcome.trace_hash);

    // Canary: a byte that changes in the sender's memory before the fetch is noticed.
    let mut execution =
        Execution::new(&machine(4), Schedule::read(text).unwrap(), 1024, 1).unwrap();
    let mut api = execution.machine.api();
    let from = api.free_memory(0, 0);
    api.memory_mut(from + 99_999, 1).unwrap()[0] ^= 1;
    let error = execution.run(|_| {}).unwrap_err();
    assert!(error.contains("came to rank 1 with other data than was sent"), "{error}");
}

/// The example: a rank works only after the token has passed it, and the root ends last.
#[test]
fn the_example_runs() {
    crate::limit::limited(|| {
        let outcome = run(EXAMPLE, 1024).unwrap();
        assert_eq!((outcome.eager, outcome.rendezvous), (4, 3));
        // Rank 3 works as soon as the token has passed it, and rank 0 waits for all results.
        assert_eq!(outcome.time, outcome.rank_times[0]);
        assert!(outcome.rank_times[0] > outcome.rank_times[2]);
        assert!(outcome.time > Span::from_ns(3 * 1242 + 5000));
    });
}

/// A barrier made of NAPs (dissemination): no rank leaves it before the last one has arrived,
/// whichever that is.
// shows: C-54
#[test]
fn nobody_leaves_a_barrier_early() {
    for late in 0..8 {
        let mut text = "num_ranks 8\n".to_owned();
        for rank in 0..8 {
            let work = if rank == late { 50_000 } else { 100 * rank };
            text += &format!("rank {rank} {{\n w: calc {work}\n");
            let mut before = "w".to_owned();
            for (round, step) in [1, 2, 4].into_iter().enumerate() {
                let (to, from) = ((rank + step) % 8, (rank + 8 - step) % 8);
                text += &format!(
                    " s{round}: send 8b to {to} tag {round}\n r{round}: recv 8b from {from} tag {round}\n s{round} requires {before}\n"
                );
                if round > 0 {
                    text += &format!(" s{round} requires r{}\n", round - 1);
                }
                before = format!("s{round}");
            }
            text += " out: calc 1\n out requires r2\n out requires s2\n out requires r1\n out requires r0\n}\n";
        }
        let outcome = run(&text, 1024).unwrap();
        let first = outcome.rank_times.iter().min().unwrap();
        assert!(*first > Span::from_ns(50_000), "{late}: {outcome:?}");
        // Canary: without the waits, some rank leaves early.
        let hasty = text.replace(
            " out requires r2\n out requires s2\n out requires r1\n out requires r0\n",
            " out requires w\n",
        );
        let first = run(&hasty, 1024).map(|outcome| outcome.rank_times[(late as usize + 1) % 8]);
        assert!(first.unwrap() < Span::from_ns(50_000 + 2000 * 4));
    }
}

/// In LogGP's regime (one processor, nothing shared), a message takes o + L(k), as measured alone,
/// and answers take the corresponding multiple. n in a row take (n - 1) o more, where o is the
/// slowest part. A long message grows by G per byte.
#[test]
fn loggp_holds() {
    let mut config = machine(2);
    for (cpu_ns, bytes) in [(200u64, 8), (2000, 64), (2000, 1000)] {
        config.host.cpu_start = Span::from_ns(cpu_ns);
        // A tail of 16 bytes goes along, over bus, wires and descriptor path.
        let one = run_on(
            &config,
            &two(&format!("send {bytes}b to 1"), &format!("recv {bytes}b from 0")),
            1024,
        )
        .unwrap();
        let alone = single(&config, Kind::NapImmediate, bytes).unwrap().latency;
        let off = one.time.as_ns() - alone.as_ns();
        assert!((0.0..=24.0).contains(&off), "{bytes}: {} and {alone}", one.time);

        let mut text = "num_ranks 2\nrank 0 {\n".to_owned();
        let rounds = 10;
        for at in 0..rounds {
            text += &format!(
                "s{at}: send {bytes}b to 1\nr{at}: recv {bytes}b from 1\nr{at} requires s{at}\n"
            );
            if at > 0 {
                text += &format!("s{at} requires r{}\n", at - 1);
            }
        }
        text += "}\nrank 1 {\n";
        for at in 0..rounds {
            text += &format!(
                "r{at}: recv {bytes}b from 0\ns{at}: send {bytes}b to 0\ns{at} requires r{at}\n"
            );
        }
        text += "}\n";
        let there_and_back = run_on(&config, &text, 1024).unwrap();
        let each = there_and_back.time.as_ns() / (2 * rounds) as f64;
        // The stores by which software updates its rings come in between now and then.
        assert!((each / one.time.as_ns() - 1.0).abs() < 0.01, "{each} and {}", one.time);
    }
    config.host.cpu_start = Span::from_ns(2000);
    for count in [2u64, 5, 30] {
        let each = |what: &str| (0..count).map(|_| format!("{what}\n")).collect::<String>();
        let time = |text: &str| run_on(&config, text, 1024).unwrap().time;
        let many = time(&two(&each("send 8b to 1"), &each("recv 8b from 0")));
        let one = time(&two("send 8b to 1", "recv 8b from 0"));
        assert_eq!(many, one + Span::from_ns(2000) * (count - 1), "{count} in a row");
    }
    // G: between 100 KB and 200 KB each byte takes the time of bus and engine, 10 cycles per 128
    // bytes (5.1).
    let long = |bytes: u64| {
        let text = two(&format!("send {bytes}b to 1"), &format!("recv {bytes}b from 0"));
        run_on(&config, &text, 1024).unwrap().time.as_ns()
    };
    let gap = (long(204_800) - long(102_400)) / 102_400.0;
    assert!((gap / 0.3125 - 1.0).abs() < 0.01, "{gap} ns for each byte");
}

/// Two ranks that both send first complete with eager messages. With messages that ask first they
/// deadlock, and the report names them with their lines.
#[test]
fn a_deadlock_is_explained() {
    let text = "num_ranks 2\nrank 0 {\ns: send 5000b to 1\nr: recv 5000b from 1\nr requires s\n}\n\
                rank 1 {\ns: send 5000b to 0\nr: recv 5000b from 0\nr requires s\n}\n";
    let error = run(text, 1024).unwrap_err();
    for says in [
        "4 of 4 operations are not over",
        "deadlock: 4 wait for each other",
        "rank 0, line 3: send 5000b to 1 tag 0 waits for the other side, held by rank 1, line 9",
    ] {
        assert!(error.contains(says), "{says}: {error}");
    }
    run(&text.replace("5000b", "500b"), 1024).unwrap();
}

/// A message without sender or receiver is named with its line, eager or not; so is a message that
/// is too long for its receive.
#[test]
fn what_does_not_fit_together_is_told() {
    for (operations, eager, says) in [
        (
            ("send 64b to 1 tag 1", "recv 64b from 0 tag 2"),
            1024,
            "rank 1, line 6: recv 64b from 0 tag 2 is never sent",
        ),
        (
            ("send 64b to 1 tag 1", "calc 1"),
            1024,
            "rank 0, line 3: send 64b to 1 tag 1 is never received",
        ),
        (
            ("send 64b to 1 tag 1", "calc 1"),
            10,
            "rank 0, line 3: send 64b to 1 tag 1 is never received",
        ),
        (
            ("send 64b to 1", "recv 63b from 0"),
            1024,
            "line 6: rank 1 receives 63 B, but rank 0 sent 64 B",
        ),
        (("send 9000000b to 1", "recv 9000000b from 0"), 1024, "line 3: 9000000 B are more than"),
        (("calc 99999999999999999", "calc 1"), 1024, "take more than"),
        (("calc 1 cpu 256", "calc 1"), 1024, "line 3: cpu 256"),
    ] {
        let text = two(operations.0, operations.1);
        let error = run(&text, eager).unwrap_err();
        assert!(error.contains(says), "{text}{says}: {error}");
    }
    let many = "num_ranks 40\n";
    assert!(run(many, 1024).unwrap_err().contains("give the machine more nodes"));
    assert!(run("num_ranks 2", 4096).unwrap_err().contains("a NAP carries 2048 B"));
}

/// Messages of one sender are received in order, "any source" takes the first to arrive, and a
/// processor does one thing at a time.
#[test]
fn receives_match_in_order() {
    let text = "num_ranks 3\nrank 0 {\na: recv 10b from -1\nb: recv 2000b from -1\nb requires a\nc: recv 30b from 1 tag -1\n}\n\
                rank 1 {\ns: send 10b to 0\nt: send 30b to 0 tag 9\nt requires s\n}\n\
                rank 2 {\nw: calc 20000\ns: send 2000b to 0\ns requires w\n}\n";
    // If rank 2's message came first, it would be too long for its receive.
    run(text, 1024).unwrap();
    let one = run("num_ranks 1\nrank 0 {\ncalc 700\ncalc 300\ncalc 900 cpu 1\n}", 1024).unwrap();
    assert_eq!(one.time, Span::from_ns(1000));
}

/// A rank may be any function of any node: 32 ranks on 4 nodes exchange all-to-all.
#[test]
fn ranks_are_functions() {
    let mut text = "num_ranks 32\n".to_owned();
    for rank in 0..32 {
        text += &format!("rank {rank} {{\n");
        for other in (0..32).filter(|other| *other != rank) {
            text += &format!(
                "send {}b to {other} tag {rank}\nrecv 2000b from {other} tag {other}\n",
                10 + 50 * (rank % 30)
            );
        }
        text += "}\n";
    }
    let outcome = run(&text, 1000).unwrap();
    assert_eq!(outcome.eager + outcome.rendezvous, 32 * 31);
    assert!(outcome.eager > 0 && outcome.rendezvous > 0);
}

/// A processor writes an eager message in 200 ns and goes on, if the interface has a place for its
/// descriptor. If not, the send ends with its event. The event frees the place.
#[test]
fn a_send_ends_when_it_is_written() {
    let time = |depth: usize, rank_0: &str| {
        let mut config = machine(2);
        config.nic.doorbell_depth = depth;
        let text = two(rank_0, "recv 8b from 0\nrecv 8b from 0");
        run_on(&config, &text, 1024).unwrap().rank_times[0]
    };
    let apart = "a: send 8b to 1\nb: calc 100000\nc: send 8b to 1\nd: calc 100\n\
                 b requires a\nc requires b\nd requires c";
    for depth in [1, 64] {
        assert_eq!(time(depth, apart), Span::from_ns(200 + 100_000 + 200 + 100), "{depth}");
    }
    let together = "send 8b to 1\nsend 8b to 1";
    assert_eq!(time(2, together), Span::from_ns(2 * 200));
    assert!(time(1, together) > Span::from_ns(1000));
}

/// A rank sends at most what its window has room for, and receives in half of the window: of three
/// messages of a quarter, the last takes the place of an earlier one.
#[test]
fn messages_have_room() {
    let mut config = machine(2);
    config.host.window = "4 MiB".parse().unwrap();
    (config.host.ring_entries, config.host.slots) = (16, 160);
    let mut empty = Machine::new(&config, 1).unwrap();
    let api = empty.api();
    let room = api.window(0, 0) + (2 << 20) - api.free_memory(0, 0);
    let fits = |bytes: u64| {
        let text = two(&format!("send {bytes}b to 1"), &format!("recv {bytes}b from 0"));
        Execution::new(&config, Schedule::read(&text).unwrap(), 1024, 1).map(|_| ())
    };
    assert_eq!(fits(room), Ok(()));
    assert!(fits(room + 1).unwrap_err().contains("leave no room"));

    config.host.slots = 16;
    (config.nic.slot_cache, config.nic.slot_batch) = (16, 8);
    let each = |what: &str| format!("{what}\n").repeat(3);
    let text = two(&each("send 1048576b to 1"), &each("recv 1048576b from 0"));
    assert_eq!(run_on(&config, &text, 1024).unwrap().bytes, 3 << 20);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// No text makes the reader panic.
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,120}") {
        let _ = Schedule::read(&text);
    }

    /// Pieces of the format in any order cause no panic; a valid schedule runs to its end, or is
    /// refused with a reason.
    #[test]
    fn any_pieces_run_or_are_refused(pieces in proptest::collection::vec(piece(), 0..40), ranks in 1u32..4) {
        let text = format!("num_ranks {ranks}\nrank 0 {{\n{}\n}}", pieces.join("\n"));
        let _ = run(&text, 100);
        let _ = Schedule::read(&pieces.join(" "));
    }

    /// Messages that match all arrive, in whatever order the ranks act.
    #[test]
    fn what_fits_together_ends(messages in proptest::collection::vec((0usize..5, 0usize..5, 0u64..5000), 1..25), eager in 0u64..2048) {
        let mut ranks = vec![String::new(); 5];
        for (tag, (from, to, bytes)) in messages.iter().enumerate() {
            ranks[*from] += &format!("send {bytes}b to {to} tag {tag}\n");
            ranks[*to] += &format!("recv {bytes}b from -1 tag {tag}\n");
        }
        let ranks = ranks.iter().enumerate().map(|(rank, all)| format!("rank {rank} {{\n{all}}}\n"));
        let text = format!("num_ranks 5\n{}", ranks.collect::<String>());
        let outcome = run(&text, eager);
        prop_assert!(outcome.is_ok(), "{}{:?}", text, outcome);
        prop_assert_eq!(outcome.unwrap().bytes, messages.iter().map(|message| message.2).sum::<u64>());
    }
}

fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        (0..6u8, 0..3000u64, 0..4u32, 0..3u32).prop_map(|(label, bytes, to, tag)| format!(
            "l{label}: send {bytes}b to {to} tag {tag}"
        )),
        (0..6u8, 0..3000u64, 0..4u32)
            .prop_map(|(label, bytes, from)| format!("m{label}: recv {bytes}b from {from}")),
        (0..3000u64, 0..3u32).prop_map(|(bytes, tag)| format!("recv {bytes}b from -1 tag {tag}")),
        (0..9u64, 0..400u32).prop_map(|(ns, cpu)| format!("calc {ns} cpu {cpu}")),
        (0..6u8, 0..6u8).prop_map(|(a, b)| format!("l{a} requires m{b}")),
        (0..6u8, 0..6u8).prop_map(|(a, b)| format!("m{a} irequires l{b}")),
        Just("}".to_owned()),
        Just("rank 1 {".to_owned()),
        Just("/*".to_owned()),
        any::<u64>().prop_map(|number| number.to_string()),
    ]
}

/// An outcome names the times of 16 ranks, and how many more there are.
#[test]
fn an_outcome_is_printed() {
    let mut outcome = run(&two("send 64b to 1", "recv 64b from 0"), 1024).unwrap();
    let told = outcome.to_string();
    assert!(told.contains("messages     1 eager, 0 rendezvous; 64 B, all as sent"), "{told}");
    assert!(!told.contains("more"), "{told}");
    outcome.rank_times = vec![Span::from_ns(5); 16];
    assert!(!outcome.to_string().contains("more"));
    outcome.rank_times = vec![Span::from_ns(5); 19];
    assert!(outcome.to_string().contains(", and 3 more\n"), "{outcome}");
}

/// A run tells from time to time the share of its operations that are over: never less than before,
/// and all of them at the end.
#[test]
fn progress_is_told() {
    let calculations = "calc 400000\n".repeat(8);
    let schedule = Schedule::read(&two(&calculations, &calculations)).unwrap();
    let mut told = Vec::new();
    Execution::new(&machine(4), schedule, 1024, 1).unwrap().run(|done| told.push(done)).unwrap();
    assert!(told.len() > 3 && told.is_sorted(), "{told:?}");
    assert!(told.iter().all(|done| (0.0..=1.0).contains(done) && (done * 16.0).fract() == 0.0));
    assert!(told.iter().any(|done| *done > 0.0 && *done < 1.0) && told.ends_with(&[1.0]));
}
