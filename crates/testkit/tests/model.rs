//! The simulated device does what every device must do, in virtual time, and also what only it
//! does.

use bellwire::{
    Address, Atomic, Completion, Device, DeviceOptions, Error, Function, Get, Message, Operation,
    Put, Result, Rights, Status, Wait,
};
use bellwire_model::chpp::Config;
use bellwire_model::chpp::config::PROTOTYPE;
use bellwire_model::chpp::experiments::Kind;
use bellwire_model::chpp::experiments::single::single;
use bellwire_testkit::conformance::{self, Fixture, Named, Node};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A machine of this test alone.
struct Chpp(Named, PathBuf);

impl Fixture for Chpp {
    fn open(&self, options: &DeviceOptions) -> Result<Device> {
        self.0.open(&options.clone().setting("config", self.1.display()))
    }
}

/// The paper's interfaces with the maximum number of hosts that its addresses allow, so that the
/// largest checks find room.
fn chpp() -> Chpp {
    Chpp(Named::new("model:chpp"), config("sixteen-hosts", &[("ports = 4 ", "ports = 16 ")]))
}

/// A file with the prototype's text and some replacements.
fn config(name: &str, changes: &[(&str, &str)]) -> PathBuf {
    let mut text = PROTOTYPE.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from:?} is not in the prototype any more");
        text = text.replace(from, to);
    }
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name).with_extension("toml");
    // Several tests write the same file. Each writes under a name of its own first, so that no test
    // reads half a file.
    let writer = (std::process::id(), std::thread::current().id());
    let own = path.with_extension(format!("{writer:?}"));
    std::fs::write(&own, text).expect("a place for the configuration");
    std::fs::rename(&own, &path).expect("the same place");
    path
}

bellwire_testkit::conformance_tests_of_one_process!(chpp);

/// Checks of functions that share a host.
mod host {
    use super::{chpp, conformance};

    #[test]
    fn functions_as_configured() {
        conformance::run(conformance::host::functions_as_configured, &chpp());
    }

    #[test]
    #[ignore = "functions have no weights here: nic.arbitration of the configuration says how they share"]
    fn weights_share_the_receiver() {
        conformance::run(conformance::host::weights_share_the_receiver, &chpp());
    }

    #[test]
    fn equal_weights_share_equally() {
        conformance::run(conformance::host::equal_weights_share_equally, &chpp());
    }

    #[test]
    fn wrong_keys_are_counted() {
        conformance::run(conformance::host::wrong_keys_are_counted, &chpp());
    }

    #[test]
    fn absurd_regions() {
        conformance::run(conformance::host::absurd_regions, &chpp());
    }
}

/// Two functions over linked controllers, in a ring of eight with two hosts each, do the same as
/// over one.
// shows: C-02
#[test]
fn linked_controllers_carry_everything() {
    const LINKS: &str = "[links]\ntopology = { ring = { routers = 8 } }\nchannel_packets = 32\nlatency = \"166 ns\"\n\n[program]";
    let ring = config("ring", &[("ports = 4 ", "ports = 2 "), ("[program]", LINKS)]);
    let chpp = Chpp(Named::new("model:chpp"), ring);
    conformance::run(conformance::order::short_and_long_messages, &chpp);
    conformance::run(conformance::flow::many_senders_to_one_receiver, &chpp);
    conformance::run(conformance::thread::two_nodes_in_two_threads, &chpp);
}

/// The latency of an 8-byte message is the sum of three parts. First, the machine's time for a NAP
/// of 8 bytes with its data inside the descriptor (Table 3). Second, the stated costs of the two
/// programs. Third, at most 100 ns for the tail and the last poll.
// shows: C-17
#[test]
fn a_short_message_takes_what_the_machine_and_the_software_take() {
    let config = Config::prototype();
    let machine = single(&config, Kind::NapImmediate, 8).expect("a NAP").latency.as_ns();
    let software = (config.program.send + config.program.receive).as_ns();
    let copies = 2.0 * 8.0 / 10.0;
    let named = Named::new("model:chpp");
    let [mut from, mut to] = [(); 2].map(|()| Node::open(&named));
    to.receive(8, 1);
    let there = to.address();
    // The first message finds cold state; the bounds hold for both.
    for _ in 0..2 {
        to.receive(8, 1);
        let pair = from.queue_pair;
        let begun = from.function.now();
        let send = Message::inline(b"8 bytes.").to(there).unsignaled();
        from.function.post_send(pair, send).expect("room");
        let done = loop {
            if let Some(done) = to.poll() {
                break done;
            }
        };
        assert_eq!(done.status, Status::Success);
        let took = (to.function.now() - begun).as_nanos() as f64;
        let least = machine + software + copies;
        assert!(took >= least - 1.0, "{took} ns, but the parts alone take {least} ns");
        assert!(took <= least + 100.0, "{took} ns, but the parts take {least} ns");
        assert!(
            (1_200.0..1_600.0).contains(&took),
            "{took} ns is not the paper's 1.2 us with software"
        );
    }
}

/// What a program sees of a completion, on any device.
type Seen = (usize, String, Status, u64, usize, Option<u64>, Vec<u8>);

fn seen(node: usize, done: Completion) -> Seen {
    let (status, context, length) = (done.status, done.context, done.length);
    let value = match done.operation {
        Operation::FetchAdd | Operation::CompareSwap => Some(done.value()),
        _ => done.immediate(),
    };
    let bytes = done.buffer.map_or_else(Vec::new, |buffer| buffer.into_bytes(length));
    (node, format!("{:?}", done.operation), status, context, length, value, bytes)
}

/// A program with two nodes that uses a bit of everything, with and without errors. Returns all its
/// completions, in the order of their contexts.
fn program(fixture: &dyn Fixture) -> Vec<Seen> {
    let mut nodes = [(); 2].map(|()| Node::open(fixture));
    let addresses = [0, 1].map(|who: usize| nodes[who].address());
    let region = nodes[1].function.allocate_region(50_000, Rights::all()).expect("room");
    let key = region.remote_key();
    let mut expected = 0;
    for (number, size) in [0, 8, 128, 129, 2_040, 2_041, 8_000, 40_000].into_iter().enumerate() {
        let number = number as u64;
        let bytes: Vec<u8> = (0..size).map(|at| (at as u64 * 7 + number) as u8).collect();
        for node in &mut nodes {
            // One in three receives is too short.
            let room = if number % 3 == 2 { size / 2 } else { size + 5 };
            node.receive(room, 100 + number);
        }
        for (node, other) in nodes.iter_mut().zip([addresses[1], addresses[0]]) {
            let pair = node.queue_pair;
            let send = Message::buffer(bytes.clone()).to(other).context(200 + number);
            node.function.post_send(pair, send.immediate(number)).expect("room");
        }
        let pair = nodes[0].queue_pair;
        let put = Put::new(bytes, key.slice(number, size as u64)).context(300 + number);
        let put = put.event(addresses[1].queue_pair, Some(number));
        nodes[0].function.post_put(pair, put).expect("room");
        nodes[0]
            .function
            .post_atomic(pair, Atomic::fetch_add(key.at(49_000), number).context(400 + number))
            .expect("room");
        expected += 7;
    }
    let pair = nodes[0].queue_pair;
    let wrong = bellwire::RemoteKey { key: key.key ^ 1, ..key };
    let get = Get::new(wrong.slice(0, 8), vec![0; 8]).context(500);
    nodes[0].function.post_get(pair, get).expect("accepted");
    let nobody = Address { queue_pair: 77, ..addresses[1] };
    let send = Message::inline(b"nobody").to(nobody).context(501);
    nodes[0].function.post_send(pair, send).expect("accepted");
    let mut all = Vec::new();
    let mut patience = conformance::Patience::new();
    while all.len() < expected + 2 {
        for (who, node) in nodes.iter_mut().enumerate() {
            while let Some(done) = node.poll() {
                all.push(seen(who, done));
            }
        }
        patience.spend(|| format!("{} of {expected} completions", all.len()));
    }
    // After its completion a put's bytes are there.
    let get = Get::new(key.slice(0, 45_000), vec![0; 45_000]).context(600);
    nodes[0].function.post_get(pair, get).expect("room");
    loop {
        nodes[1].function.progress().expect("progress");
        if let Some(done) = nodes[0].poll() {
            all.push(seen(0, done));
            break;
        }
    }
    all.sort_by_key(|seen| (seen.0, seen.1.clone(), seen.3, seen.5));
    all
}

/// The same program has the same completions, with the same bytes and errors, over shared memory
/// and over the simulated interface.
// shows: C-33
#[test]
fn a_program_sees_the_same_as_over_shared_memory() {
    let over_shm = program(&Named::new("shm"));
    let over_model = program(&Named::new("model:chpp"));
    assert_eq!(over_shm.len(), over_model.len());
    for (shm, model) in over_shm.iter().zip(&over_model) {
        assert_eq!(shm, model);
    }
}

/// The trace of a run of two programs in two threads that exchange messages of all lengths, and
/// each program's events with their times.
fn trace(seed: u64) -> (u64, Vec<String>) {
    let jitter = config("jitter", &[("memory_jitter = \"0 ns\"", "memory_jitter = \"60 ns\"")]);
    let fixture = Chpp(Named::new("model:chpp"), jitter);
    let options = DeviceOptions::default().setting("seed", seed).setting("programs", 2);
    let devices = [(); 2].map(|()| fixture.open(&options).expect("a node opens"));
    let nodes = [0, 1].map(|who: usize| Node::of(devices[who].clone(), 0, &Default::default()));
    let addresses = [0, 1].map(|who: usize| nodes[who].address());
    let run = |(who, mut node): (usize, Node)| {
        let (peer, pair) = (addresses[1 - who], node.queue_pair);
        let base = node.function.now();
        let mut diary = String::new();
        for round in 0..60_u64 {
            let how = [Wait::Spin, Wait::Adaptive, Wait::Block][(round % 3) as usize];
            node.receive(20_000, round);
            let bytes = vec![who as u8; (round as usize * 311 + who * 5_000) % 20_000];
            let send = Message::buffer(bytes).to(peer).unsignaled();
            node.function.post_send(pair, send).expect("room");
            let limit = Duration::from_secs(5);
            let done = node.function.wait(node.completions, how, limit).expect("a message");
            let time = (node.function.now() - base).as_nanos();
            diary += &format!("{round}: {} bytes at {time} ns\n", done.length);
        }
        node.flush(pair);
        diary
    };
    let diaries = std::thread::scope(|scope| {
        let threads: Vec<_> =
            nodes.into_iter().enumerate().map(|node| scope.spawn(move || run(node))).collect();
        threads.into_iter().map(|thread| thread.join().expect("it runs")).collect()
    });
    let hash = devices[0].virtual_time().expect("its time is virtual").trace_hash;
    (hash, diaries)
}

/// Two threads exchange messages, in all wait modes. With the same seed they do the same at the
/// same virtual times in every run. With another seed, which draws other memory latencies, they do
/// not.
#[test]
fn a_seed_fixes_what_two_threads_do() {
    let (first, again, other) = (trace(5), trace(5), trace(6));
    assert_eq!(first.1, again.1);
    assert_eq!(first.0, again.0, "the same diaries, but another trace");
    assert_ne!(first.0, other.0);
    assert_ne!(first.1, other.1, "the seed must make a difference");
}

/// A program that only polls, and that can never receive anything, learns so from `poll` and
/// `progress`.
#[test]
fn polling_for_nothing_ends() {
    let options = DeviceOptions::default().setting("programs", 1);
    let device = chpp().open(&options).expect("a node opens");
    let mut node = Node::of(device, 0, &Default::default());
    node.receive(64, 1);
    let told = loop {
        match node.function.poll(node.completions) {
            Ok(None) => {}
            other => break other,
        }
    };
    assert!(matches!(told, Err(Error::Standstill { .. })), "{told:?}");
    let told = node.function.progress();
    assert!(matches!(told, Err(Error::Standstill { .. })), "{told:?}");
}

/// A thread with an open function that waits for something else than the device delays no other
/// thread. When it comes back, it finds the messages that were sent to it.
#[test]
fn who_is_away_holds_up_nobody() {
    let named = Named::new("model:chpp");
    let [mut away, mut first, mut second] = [(); 3].map(|()| Node::open(&named));
    let to_away = away.address();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let absent = std::thread::spawn(move || {
        away.receive(8, 9);
        // Its function has begun, so the others wait for it from now on.
        away.function.progress().expect("progress");
        released.recv().expect("the others finish");
        let done = away.function.wait(away.completions, Wait::Block, Duration::from_secs(5));
        (done.expect("a message").context, away)
    });
    let pairs = [first.queue_pair, second.queue_pair];
    let to = second.address();
    for number in 0..500 {
        second.receive(8, number);
        let send = Message::inline(b"past it.").to(to).unsignaled();
        first.function.post_send(pairs[0], send).expect("room");
        let done = second.function.wait(second.completions, Wait::Spin, Duration::from_secs(5));
        assert_eq!(done.expect("a message").context, number);
    }
    let send = Message::inline(b"for you.").to(to_away).unsignaled();
    second.function.post_send(pairs[1], send).expect("room");
    release.send(()).expect("it waits");
    assert_eq!(absent.join().expect("it comes back").0, 9);
}

/// A program that opens an open machine may repeat its configuration, but not contradict it. Names,
/// files and functions that do not exist are refused with the reason.
#[test]
fn openings_of_one_name_agree() {
    let named = Named::new("model:chpp");
    let with = |key, value: &str| named.open(&DeviceOptions::default().setting(key, value));
    let device = with("seed", "3").expect("the first says how it is");
    assert!(device.describe().contains("seed 3"), "{}", device.describe());
    let plain = named.open(&DeviceOptions::default()).expect("who says nothing takes it as it is");
    assert_eq!((device.node(), plain.node()), (0, 1));
    let other = with("seed", "4").expect_err("it is open with another seed");
    assert!(other.to_string().contains("another seed"), "{other}");
    let five_ports = config("other", &[("ports = 4 ", "ports = 5 ")]);
    let other = with("config", five_ports.to_str().expect("text"))
        .expect_err("it is open with another configuration");
    assert!(other.to_string().contains("another configuration"), "{other}");
    let nowhere = with("config", "/nowhere/chpp.toml").expect_err("there is no such file");
    assert!(nowhere.to_string().contains("/nowhere/chpp.toml"), "{nowhere}");
    for bad in ["model:", "model:other", "model:chpp:"] {
        let error = Device::open(bad).expect_err("no such machine");
        assert!(error.to_string().contains("names no device"), "{bad}: {error}");
    }
    let functions: Vec<Function> = (0..).map_while(|n| plain.open_function(n).ok()).collect();
    assert_eq!(functions.len(), 8, "as many as the device was opened with");
}
