//! `bellwire perf`: its output, with both sides or with one; never any speed.

mod support;

use bellwire::{
    Address, CompletionQueue, Device, Function, Message, QueuePair, QueuePairOptions, Rights, Wait,
};
use serde_json::{Value, json};
use std::thread::JoinHandle;
use support::{Running, bellwire, run, unique, until};

/// `--json` prints exactly one object with a row for each operation and size, and plausible
/// figures.
#[test]
fn json_has_a_row_for_each_operation_and_size() {
    let measured = run(bellwire().args(["perf", "--quick", "--sizes", "8,100KiB", "--json"]));
    let object = measured.done().json();
    let rows = object["rows"].as_array().expect("rows");
    let found: Vec<_> =
        rows.iter().map(|row| (row["op"].as_str(), row["bytes"].as_u64())).collect();
    let expected: Vec<_> = [8, 102_400]
        .into_iter()
        .flat_map(|bytes| ["send", "put", "get"].map(|op| (Some(op), Some(bytes))))
        .collect();
    assert_eq!(found, expected);
    assert!(object["device"].as_str().is_some_and(|name| name.starts_with("shm:perf-")));
    for row in rows {
        let figure = |pointer: &str| row.pointer(pointer).and_then(Value::as_f64).expect(pointer);
        let (min, p50, p99) =
            (figure("/latency_ns/min"), figure("/latency_ns/p50"), figure("/latency_ns/p99"));
        assert!(0.0 < min && min <= p50 && p50 <= p99, "{row}");
        let bandwidth = figure("/rate_msgs_per_s") * figure("/bytes");
        assert!(
            bandwidth > 0.0 && (bandwidth / figure("/bandwidth_bytes_per_s") - 1.0).abs() < 1e-6
        );
        assert!(figure("/compared_messages") >= 4.0);
    }
    for limit in object["limits"]["rows"].as_array().expect("limits") {
        for pointer in ["/memcpy_bytes_per_s", "/unix/latency_ns/p50", "/tcp/rate_msgs_per_s"] {
            assert!(
                limit.pointer(pointer).and_then(Value::as_f64) > Some(0.0),
                "{pointer}: {limit}"
            );
        }
    }
}

/// On the simulated device both sides run in one process, all times are marked as virtual, and two
/// runs agree to the last digit. Another process cannot be the other side.
#[test]
fn a_simulated_device_is_measured_in_virtual_time() {
    let measure =
        || run(bellwire().args(["perf", "model:chpp", "--quick", "--json"])).done().json();
    let object = measure();
    assert_eq!(object, measure(), "the same again");
    assert!(object["simulated"]["trace_hash"].is_u64() && object["limits"].is_null(), "{object}");
    assert_eq!(object["rows"].as_array().map(Vec::len), Some(9));
    for row in object["rows"].as_array().expect("rows") {
        let figure = |pointer: &str| row.pointer(pointer).and_then(Value::as_f64).expect(pointer);
        // Virtual, so the same on every machine: no message is faster than the machine's doorbell.
        assert!(figure("/latency_ns/min") > 1_000.0 && row["ratios"].is_null(), "{row}");
        assert!(figure("/bandwidth_bytes_per_s") < 3.2e9, "{row}");
    }
    let table = run(bellwire().args(["perf", "model:chpp", "--quick", "--sizes", "8"]));
    assert!(table.stdout.contains("ALL TIMES ARE VIRTUAL"), "{}", table.stdout);
    for heading in ["LATENCY", "STREAM"] {
        assert!(table.stdout.contains(&format!("VIRTUAL {heading}")), "{}", table.stdout);
    }
    for other in [&["--listen"][..], &["--connect", "0"]] {
        let output = run(bellwire().args(["perf", "model:chpp"]).args(other));
        assert_eq!(output.code, 2, "{}", output.stdout);
        assert!(output.stderr.contains("inside one process"), "{}", output.stderr);
    }
}

/// Several pairs of a simulated device run at once, each side in a thread of its own. Two runs
/// still agree to the last digit.
#[test]
fn simulated_pairs_repeat() {
    let measure = || {
        run(bellwire().args([
            "perf",
            "model:chpp",
            "--pairs",
            "2",
            "--quick",
            "--sizes",
            "8,4096",
            "--ops",
            "send,put",
            "--json",
        ]))
        .done()
        .json()
    };
    let object = measure();
    assert_eq!(object, measure(), "the same again");
    for row in object["rows"].as_array().expect("rows") {
        assert_eq!(row["pair_rates_msgs_per_s"].as_array().map(Vec::len), Some(2), "{row}");
    }
}

/// The tables end with the command that repeats the measurement and a suggestion. Every way of
/// waiting works.
#[test]
fn tables_end_with_what_to_do_next() {
    for wait in ["adaptive", "block"] {
        let output = run(bellwire()
            .args(["perf", "--quick", "--sizes", "8,64KiB", "--ops", "send,put", "--wait", wait]))
        .done();
        let lines: Vec<&str> = output.stdout.lines().rev().take(3).collect();
        assert!(lines[0].starts_with("Try next:"), "{}", output.stdout);
        assert!(lines[1].contains(&format!("--wait {wait}")), "{}", output.stdout);
        assert!(lines[2].starts_with("All data was right"), "{}", output.stdout);
        // No progress bar without a terminal.
        assert!(output.stderr.is_empty(), "{}", output.stderr);
    }
}

/// Several pairs run at once, and each has a rate of its own.
#[test]
fn pairs_have_rates_of_their_own() {
    let output = run(bellwire().args([
        "perf", "--quick", "--pairs", "3", "--sizes", "8,64KiB", "--ops", "send", "--json",
    ]))
    .done();
    for row in output.json()["rows"].as_array().expect("rows") {
        let rates = row["pair_rates_msgs_per_s"].as_array().expect("an array");
        assert_eq!(rates.len(), 3);
        assert!(rates.iter().all(|rate| rate.as_f64() > Some(0.0)));
    }
}

/// With `--listen` and `--connect` the user starts both sides. The listener serves one leader after
/// the other, and survives a leader that is killed.
#[test]
fn a_listener_outlives_its_leaders() {
    let device = format!("shm:{}", unique("listen"));
    let listener = Running::listener(&device);
    let connect = ["perf", &device, "--connect", "0", "--quick", "--sizes", "8", "--ops", "send"];
    for killed in [false, true, false] {
        if killed {
            let arguments = ["perf", &device, "--connect", "0", "--sizes", "8..1MiB"];
            let leader = Running::start(bellwire().args(arguments));
            // Two open functions: the leader's own is open too, so it has begun.
            until("the leader's function", || open_functions(&device) >= 2);
            leader.kill();
        } else {
            run(bellwire().args(connect)).done();
        }
    }
    listener.kill();
}

/// A listener gives up a leader that dies between its two connections. A leader that comes
/// meanwhile waits and is served.
#[test]
fn half_a_leader_does_not_keep_the_listener() {
    let device = format!("shm:{}", unique("half"));
    let listener = Running::listener(&device);
    let mut half = Leader::open(&device);
    half.connect(b"bellwire perf orders 1");
    let leader = measure(&device);
    until("the leader's function", || open_functions(&device) >= 3);
    drop(half);
    leader.join().expect("no panic").done();
    listener.kill();
}

/// A listener gives up a leader that dies while the follower waits for puts. Only their missing
/// events could reveal the death.
#[test]
fn a_leader_that_puts_nothing_does_not_keep_the_listener() {
    let device = format!("shm:{}", unique("put"));
    let listener = Running::listener(&device);
    for wait in ["spin", "block"] {
        let mut silent = Leader::open(&device);
        let orders = silent.connect(b"bellwire perf orders 1");
        silent.connect(b"bellwire perf data 1");
        let region = silent.function.allocate_region(1 << 20, Rights::all()).expect("memory");
        let key = region.remote_key().to_bytes();
        let prepare = json!({
            "pairs": 1, "wait": wait, "cpu": null, "arena_bytes": 1 << 20, "key": key.to_vec()
        });
        silent.order(orders, &json!({ "Prepare": prepare }));
        silent.order(orders, &json!({ "Verify": { "op": "put", "bytes": 8, "count": 1 } }));
        let leader = measure(&device);
        until("the leader's function", || open_functions(&device) >= 3);
        drop(silent);
        let output = leader.join().expect("no panic");
        assert_eq!(output.code, 0, "{wait}: {}", output.stderr);
    }
    listener.kill();
}

/// The first steps of a leader.
struct Leader {
    function: Function,
    completions: CompletionQueue,
}

impl Leader {
    fn open(device: &str) -> Leader {
        let device = Device::open(device).expect("the device");
        let mut function = device.open_function(0).expect("a function");
        let completions = function.create_completion_queue(64).expect("room");
        Leader { function, completions }
    }

    fn connect(&mut self, as_whom: &[u8]) -> QueuePair {
        let options = QueuePairOptions::new(self.completions);
        let pair = self.function.create_queue_pair(&options).expect("room");
        let to = Address::new(0, 0, 1);
        self.function.connect(pair, to, as_whom, support::DEADLINE).expect("accepted");
        pair
    }

    /// Gives an order, and waits for the follower's `Ready`.
    fn order(&mut self, orders: QueuePair, order: &Value) {
        self.function.post_receive(orders, vec![0; 1024], 0).expect("posted");
        let text = order.to_string();
        let send = Message::inline(text.as_bytes()).unsignaled();
        self.function.post_send(orders, send).expect("posted");
        let answer = self.function.wait(self.completions, Wait::Block, support::DEADLINE);
        let answer = answer.expect("an answer");
        let bytes = answer.buffer.expect("a buffer").into_bytes(answer.length);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert!(text.contains("Ready"), "{text}");
    }
}

/// `bellwire perf --connect`, in a thread.
fn measure(device: &str) -> JoinHandle<support::Output> {
    let connect = ["perf", device, "--connect", "0", "--quick", "--sizes", "8", "--ops", "send"];
    let mut command = bellwire();
    command.args(connect);
    std::thread::spawn(move || run(&mut command))
}

/// If the leader is killed, the side that it started ends too, and nothing of either is left.
#[test]
fn the_other_side_ends_with_its_leader() {
    let device = format!("shm:{}", unique("orphan"));
    let leader = Running::start(bellwire().args(["perf", &device, "--sizes", "8..4MiB"]));
    until("both sides", || open_functions(&device) >= 2);
    leader.kill();
    until("the end of the other side", || open_functions(&device) == 0);
}

/// Number of open functions of a device, according to `bellwire list`.
fn open_functions(device: &str) -> usize {
    let object = run(bellwire().args(["list", "--json"])).done().json();
    let functions = object["functions"].as_array().expect("an array");
    functions.iter().filter(|function| function["device"] == device).count()
}

/// Over UDP both sides share a node, or are on different nodes and name each other by address.
#[test]
fn udp_is_measured_on_one_host_and_between_two() {
    let network =
        format!("127.{}.{}", 1 + std::process::id() % 120, std::process::id() / 120 % 250);
    let device = format!("udp:{network}.1");
    let few = ["--quick", "--json", "--sizes", "8,4KiB", "--wait", "adaptive"];
    let measure = |arguments: &[&str]| {
        let object = run(bellwire().arg("perf").args(arguments).args(few)).done().json();
        assert_eq!(object["rows"].as_array().map(Vec::len), Some(6));
    };
    measure(&[&device]);

    let listener = Running::listener(&device);
    let address = format!("{network}.1");
    let other = format!("udp:{network}.2?port=49664");
    for _ in 0..2 {
        measure(&[&other, "--connect", &address]);
    }
    listener.kill();
}
