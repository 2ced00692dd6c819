//! The machine under synthetic traffic: plans are read, runs are measured, and impossible values
//! are refused.

use bellwire_model::chpp::Config;
use bellwire_model::chpp::experiments::Kind;
use bellwire_model::chpp::experiments::single::single;
use bellwire_model::chpp::workload::{EXAMPLE, Plan, Report};
use proptest::prelude::*;

/// Runs the example with some pieces of its text replaced.
fn run(changes: &[(&str, &str)]) -> Report {
    let (_, mut workload) = Plan::read(&changed(changes)).unwrap();
    let report = workload.run(|_| {}).unwrap();
    workload.machine.audit().unwrap();
    report
}

fn changed(changes: &[(&str, &str)]) -> String {
    changes.iter().fold(EXAMPLE.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    })
}

const ARRIVAL: &str = "{ random = { load = \"1 GB/s\" } }";
const PATTERN: &str = "pattern = \"uniform\"";
const SIZES: &str = "{ bytes = \"4096 B\" }";
const TIME: &str = "time = \"2 ms\"";

/// The example settles and carries the offered load. The same seed gives the same run, another seed
/// another run.
#[test]
fn the_example_carries_what_is_offered() {
    let report = run(&[]);
    assert!(report.settled, "{report}");
    assert!(report.throughput_gb_s.holds(1.0, 3.0), "{report}");
    assert!(report.latency_ns.mean > 3146.0, "more than without load: {report}");
    assert!(report.limit.why.starts_with("nothing"), "{report}");
    assert_eq!(run(&[]).trace_hash, report.trace_hash);
    assert_ne!(run(&[("seed = 1", "seed = 2")]).trace_hash, report.trace_hash);
}

/// A node has a place for its own data, and one for that of each other node: of a PUT from there,
/// or of its own GET.
#[test]
fn data_has_places_of_its_own() {
    for kind in ["\"put\"", "\"get\""] {
        let text = changed(&[
            ("\"put\"", kind),
            (SIZES, "{ bytes = \"128 B\" }"),
            (TIME, "time = \"30 us\""),
        ]);
        let (_, mut workload) = Plan::read(&text).unwrap();
        let mut api = workload.machine.api();
        let free = [0, 1, 2, 3].map(|node| api.free_memory(node, 0));
        for (node, free) in (1..).zip(free) {
            api.memory_mut(free, 128).unwrap().fill(node);
        }
        workload.run(|_| {}).unwrap();
        let api = workload.machine.api();
        for (node, free) in free.into_iter().enumerate() {
            for other in (0..4).filter(|&other| other != node) {
                let place = api.memory(free + 128 * (1 + other as u64), 128).unwrap();
                assert!(place.iter().all(|&byte| byte == 1 + other as u8), "{kind} {node} {other}");
            }
        }
    }
}

/// A run reports fill and stay time of every queue in use: descriptors, doorbells, tags, commands,
/// packers, ports, channels, receive buffers, slots and rings. Fill is rate times stay (Little), up
/// to the items still inside at the end. Canary: twice the stay does not fit.
#[test]
fn all_queues_are_told_of() {
    let report = run(&[("\"put\"", "\"nap-indirect\""), (SIZES, "{ bytes = \"1024 B\" }")]);
    for name in [
        "operations of function 0.0 before software",
        "doorbell FIFO of function 0.0",
        "descriptors being read of node 0",
        "tags of node 0",
        "commands of node 0",
        "data reads in order of node 0",
        "packer, last packets of node 0",
        "what comes over the internal bus of node 0",
        "writes to memory of node 0",
        "input 0 channel 0 of crossbar 0",
        "dispatch of node 0",
        "receive buffer of node 0",
        "send ring of queue pair 0.0.0",
        "receive ring of queue pair 0.0.0",
        "free NAP slots on the chip of queue pair 0.0.0",
    ] {
        assert!(report.queues.iter().any(|queue| queue.queue == name), "{name} in {report}");
    }
    let time_ns = 2e6;
    for queue in report.queues.iter().filter(|queue| queue.came > 1_000 && queue.mean > 0.0) {
        let expected = queue.came as f64 / time_ns * queue.mean_stay_ns;
        let inside = queue.most as f64 / queue.came as f64;
        assert!((expected / queue.mean - 1.0).abs() < 0.02 + inside, "{queue:?}");
        assert!((2.0 * expected / queue.mean - 1.0).abs() > 0.02 + inside, "canary: {queue:?}");
    }
}

/// In a closed loop of w messages per node, throughput times latency is w (Little), for every
/// operation.
#[test]
fn closed_loops_obey_littles_law() {
    for (operation, bytes) in
        [("put", 4096), ("get", 512), ("nap-indirect", 1024), ("nap-immediate", 64)]
    {
        let report = run(&[
            ("\"put\"", &format!("\"{operation}\"")),
            (ARRIVAL, "{ closed = { window = 3 } }"),
            (SIZES, &format!("{{ bytes = \"{bytes} B\" }}")),
            (TIME, "time = \"1 ms\""),
        ]);
        // GB/s is bytes per nanosecond.
        let inside = report.throughput_gb_s.mean / f64::from(bytes) * report.latency_ns.mean;
        assert!((inside / 3.0 - 1.0).abs() < 0.02, "{operation}: {inside} under way\n{report}");
        assert!(report.settled && report.under_way == 3 * 4, "{report}");
        assert!(inside / 2.9 > 1.01, "canary: another window is told apart");
    }
}

/// Every pattern and arrival runs. With all messages to one node, that node is the limit, and equal
/// senders get equal service.
#[test]
fn patterns_and_arrivals_run() {
    for pattern in ["\"permutation\"", "{ shift = 1 }", "\"all-to-all\""] {
        let report = run(&[
            (PATTERN, &format!("pattern = {pattern}")),
            (TIME, "time = \"500 us\""),
            (ARRIVAL, "\"saturated\""),
        ]);
        assert!(report.fairness() > 0.9, "{pattern}: {report}");
        assert!(report.throughput_gb_s.mean > 2.0, "{pattern}: {report}");
    }
    let hot = run(&[
        (PATTERN, "pattern = { hot-spot = { terminal = 2, share = 1.0 } }"),
        (ARRIVAL, "\"saturated\""),
    ]);
    assert!(hot.limit.resource.ends_with("node 2") && hot.limit.utilisation > 0.9, "{hot}");
    let smooth = run(&[]);
    let bursts = run(&[
        (ARRIVAL, "{ bursts = { load = \"1 GB/s\", messages = 8 } }"),
        (TIME, "time = \"8 ms\""),
    ]);
    assert!(bursts.throughput_gb_s.holds(1.0, 3.0), "{bursts}");
    assert!(bursts.latency_ns.mean > 2.0 * smooth.latency_ns.mean, "bursts wait longer: {bursts}");
}

/// A load above the limit does not count as settled, and the report names the limit.
#[test]
fn overload_is_told() {
    let report = run(&[(ARRIVAL, "{ random = { load = \"6 GB/s\" } }")]);
    assert!(!report.settled && report.under_way > 100, "{report}");
    assert!(!report.limit.why.starts_with("nothing"), "{report}");
}

/// MyVIA's mix of sizes runs over the interface, and the report has its results.
// shows: M-31
#[test]
fn the_mix_runs() {
    let report = run(&[(SIZES, "\"mix\""), (TIME, "time = \"10 ms\"")]);
    assert!(report.throughput_gb_s.holds(1.0, 3.0), "{report}");
    assert!(report.messages > 1000 && report.percentiles_ns.p99 > report.percentiles_ns.p50);
    assert!(report.to_string().contains("99 %"), "{report}");
}

/// Linked controllers run from the same file.
#[test]
fn linked_controllers_run() {
    crate::limit::limited(|| {
        let links = "# links = {";
        let report = run(&[
            (links, "links = {"),
            ("ports = 4, channels = 4", "ports = 2, channels = 2"),
            (ARRIVAL, "{ random = { load = \"300 MB/s\" } }"),
        ]);
        assert!(report.delivered_from.len() == 8 && report.settled, "{report}");
        assert!(report.throughput_gb_s.holds(0.3, 3.0), "{report}");
    });
}

/// An error in a file names the line, the fault and the remedy.
#[test]
fn wrong_plans_are_refused_with_their_line() {
    for (from, to, says) in [
        ("tags = 64", "tgas = 64", "unknown field `tgas`"),
        ("tags = 64", "tags = 0", "`nic.tags` is 0; it must lie in 1..=256"),
        ("tags = 64", "clock = \"250 ns\"", "the unit `ns` is none of Hz"),
        ("ports = 4", "ports = 17", "must lie in 1..=16"),
        ("\"put\"", "\"push\"", "unknown variant `push`"),
        ("\"put\"", "\"nap-indirect\"", "a NAP, which carries 2048 B at most"),
        ("\"4096 B\"", "\"0 B\"", "take 1 B or more"),
        ("\"4096 B\"", "\"7 MiB\"", "have room in `host.window`"),
        ("\"1 GB/s\"", "1", "such as \"4 GB/s\""),
        (ARRIVAL, "{ closed = { window = 0 } }", "take 1 or more"),
        (ARRIVAL, "{ bursts = { load = \"1 GB/s\", messages = 0.5 } }", "1 message or more"),
        (PATTERN, "pattern = { hot-spot = { terminal = 4, share = 0.5 } }", "the last one is 3"),
        (TIME, "time = \"2 ns\"", "must be 1 us to 10000 ms"),
        (TIME, "tiem = \"2 ms\"", "unknown field `tiem`"),
        ("# warm_up = \"500 us\"", "warm_up = \"2 ms\"", "leaves nothing to measure"),
    ] {
        let text = changed(&[(from, to)]);
        let line = EXAMPLE[..EXAMPLE.find(from).unwrap()].matches('\n').count() + 1;
        let said = Plan::read(&text).err().expect("it is wrong").to_string();
        assert!(said.contains(says), "{to}: {said}");
        assert!(said.contains(&format!("line {line}")), "{to}: {said}, but it is line {line}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// No text makes the reader panic.
    #[test]
    fn any_text_is_read_or_refused(text in "[\\PC\n]{0,200}") {
        let _ = Plan::read(&text);
    }

    /// No value of any parameter causes a panic: it runs, or is refused with a sentence.
    #[test]
    fn any_value_runs_or_is_refused(line in 0..EXAMPLE.lines().count(), value in value(), extra in parameter(), other in value()) {
        let mut lines: Vec<String> = EXAMPLE.lines().map(str::to_owned).collect();
        if let Some((key, _)) = lines[line].clone().split_once('=').filter(|(key, _)| !key.starts_with('#')) {
            lines[line] = format!("{key}= {value}");
        }
        let (section, key) = extra;
        let text = lines.join("\n").replace("time = \"2 ms\"", "time = \"3 us\"");
        let text = format!("{text}\n[chpp.{section}]\n{key} = {other}\n");
        let alone = EXAMPLE
            .replace("time = \"2 ms\"", "time = \"3 us\"")
            .replace("nic = { tags = 64 }", "")
            .replace("crossbar = { ports = 4, channels = 4 }", &format!("{section} = {{ {key} = {other} }}"));
        for text in [text, alone] {
            match Plan::read(&text) {
                Ok((_, mut workload)) => {
                    let _ = workload.run(|_| {});
                }
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
        }
    }
}

fn value() -> impl Strategy<Value = String> {
    let number =
        prop_oneof![0u64..40, any::<u64>().prop_map(|n| n >> 1), (0u32..63).prop_map(|n| 1 << n)];
    let unit = prop_oneof![
        Just("B"),
        Just("KiB"),
        Just("ns"),
        Just("us"),
        Just("s"),
        Just("MHz"),
        Just("GHz"),
        Just("GB/s"),
        Just("B/s")
    ];
    prop_oneof![
        number.clone().prop_map(|n| n.to_string()),
        (number, unit).prop_map(|(n, unit)| format!("\"{n} {unit}\"")),
        Just("true".to_owned()),
        Just("[1, 9000000000]".to_owned()),
        Just("\"saturated\"".to_owned()),
        Just("\"mix\"".to_owned()),
    ]
}

fn parameter() -> impl Strategy<Value = (String, String)> {
    let prototype: toml::Table = toml::from_str(bellwire_model::chpp::config::PROTOTYPE).unwrap();
    let names: Vec<(String, String)> = prototype
        .iter()
        .filter_map(|(section, keys)| Some((section, keys.as_table()?)))
        .flat_map(|(section, keys)| keys.keys().map(move |key| (section.clone(), key.clone())))
        .collect();
    proptest::sample::select(names)
}

/// A run tells its progress in hundredths of its time.
#[test]
fn progress_is_told() {
    let (_, mut workload) = Plan::read(&changed(&[(TIME, "time = \"100 us\"")])).unwrap();
    let mut told = Vec::new();
    workload.run(|done| told.push(done)).unwrap();
    let expected: Vec<f64> = (1..=100).map(|part| f64::from(part) / 100.0).collect();
    assert_eq!(told, expected);
}

/// In a closed loop of one message per node and no contention, each takes the latency of one alone,
/// and a node sends the next one when it is over.
#[test]
fn a_loop_of_one_takes_the_latency_of_one() {
    let report = run(&[
        (ARRIVAL, "{ closed = { window = 1 } }"),
        (PATTERN, "pattern = { shift = 1 }"),
        (SIZES, "{ bytes = \"64 B\" }"),
        (TIME, "time = \"200 us\"\nwarm_up = \"150 us\""),
    ]);
    let alone = single(&Config::prototype(), Kind::Put, 64).unwrap().latency.as_ns();
    let mean = report.latency_ns.mean;
    assert!((mean / alone - 1.0).abs() < 0.01, "{mean} and {alone}");
    assert!((report.throughput_gb_s.mean * mean / 64.0 - 1.0).abs() < 0.05, "{report}");
    // Only what ends in the last 50 us counts as a message.
    let expected = report.delivered_from.len() as f64 * 50_000.0 / mean;
    assert!((report.messages as f64 / expected - 1.0).abs() < 0.05, "{report}");
    assert_eq!(report.delivered_from.iter().sum::<u64>(), 64 * report.messages);
}
