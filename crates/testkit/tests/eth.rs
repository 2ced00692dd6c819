//! The Ethernet device does what every device must do, by both ways of frames, in networks that the
//! tests make themselves.
//!
//! A network is a private namespace with a bridge and a veth pair for each node. It vanishes with
//! the last thread and socket in it, however a test ends. Making one needs root and iproute2.
//! Without them each test fails and says that it did not run, so that it does not count as passed.

use bellwire::{Device, DeviceOptions, Error, Function, Message, Result};
use bellwire_ethernet::testing::{enter_new_namespace, ip, thread_number};
use bellwire_testkit::conformance::child::Process;
use bellwire_testkit::conformance::{self, Fixture, Node, Patience, Stage};
use bellwire_testkit::network::hub::a_bystander_keeps_out;
use bellwire_testkit::network::{Carrier, assert_frames_by, assert_way};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

/// Nodes on a bridge in a namespace, which this thread enters for good.
struct Bridged {
    way: &'static str,
    mtu: usize,
    nodes: AtomicU32,
    /// The device name of another process's node.
    other: String,
    /// The namespace.
    made_in: String,
}

/// This thread's network namespace.
fn here() -> String {
    let link = std::fs::read_link("/proc/thread-self/ns/net").expect("procfs");
    link.to_string_lossy().into_owned()
}

impl Bridged {
    fn new(way: &'static str, mtu: usize) -> Bridged {
        enter_new_namespace()
            .and_then(|()| {
                ip(&format!("link add bridge mtu {mtu} type bridge\nlink set bridge up"))
            })
            .expect("NOT RUN: making a network namespace needs root, and ip of iproute2");
        let other = format!("eth:n999?io={way}");
        Bridged { way, mtu, nodes: AtomicU32::new(0), other, made_in: here() }
    }

    /// Makes interface `n` followed by the number.
    fn plug_in(&self, node: u32) {
        let mtu = self.mtu;
        ip(&format!(
            "link add n{node} mtu {mtu} type veth peer name b{node} mtu {mtu}\n\
             link set b{node} master bridge\n\
             link set b{node} up\n\
             link set n{node} up"
        ))
        .expect("a veth pair");
    }

    /// Adds the interface that another process will open.
    fn with_other(self) -> Bridged {
        self.plug_in(999);
        self
    }
}

impl Fixture for Bridged {
    fn open(&self, options: &DeviceOptions) -> Result<Device> {
        let node = self.nodes.fetch_add(1, Ordering::Relaxed);
        self.plug_in(node);
        let options = options.clone().setting("io", self.way);
        let device = Device::open_with(&format!("eth:n{node}"), &options);
        // Three times an interface was not there that ip(8) should have made. `ip` sees now that
        // its commands ran. So if this happens again, the interface was made and is gone.
        if let Err(Error::DeviceUnavailable { why, .. }) = &device
            && why.contains("No such device")
        {
            let links = std::fs::read_to_string("/proc/thread-self/net/dev");
            panic!("{why}: in {}, made in {}, with {links:?}", here(), self.made_in);
        }
        device
    }

    fn name(&self) -> Option<&str> {
        Some(&self.other)
    }

    fn delivers_later(&self) -> bool {
        true
    }

    fn assert_opened(&self, device: &Device) {
        assert_way(device, self.way);
    }

    fn assert_way(&self, node: &Node) {
        // A device has AF_XDP for one function. Its others say that they go by AF_PACKET.
        let carrier = if self.way == "xdp" { Carrier::Xdp } else { Carrier::Packet };
        assert_frames_by(carrier, node);
    }
}

/// By AF_PACKET, with frames as on most networks.
mod packet {
    fn packet() -> super::Bridged {
        super::Bridged::new("packet", 1500)
    }
    bellwire_testkit::conformance_tests!(packet);
}

/// By AF_XDP.
mod xdp {
    fn xdp() -> super::Bridged {
        super::Bridged::new("xdp", 1500)
    }
    bellwire_testkit::conformance_tests!(xdp);
}

/// Checks with a second process.
mod process {
    use super::{Bridged, conformance};

    fn run(check: conformance::Check, way: &'static str) {
        conformance::run(check, &Bridged::new(way, 1500).with_other());
    }

    #[test]
    fn messages() {
        run(conformance::process::messages, "packet");
        run(conformance::process::messages, "xdp");
    }

    #[test]
    fn sleepers_wake_each_other() {
        run(conformance::process::sleepers_wake_each_other, "packet");
        run(conformance::process::sleepers_wake_each_other, "xdp");
    }

    #[test]
    fn a_killed_peer() {
        run(conformance::process::a_killed_peer, "packet");
        run(conformance::process::a_killed_peer, "xdp");
    }

    #[test]
    fn a_silent_peer() {
        run(conformance::process::a_silent_peer, "packet");
        run(conformance::process::a_silent_peer, "xdp");
    }
}

/// Sends some messages from each node to each other one, and receives them all.
fn all_to_all(stage: &mut Stage<'_>, messages: usize) {
    let to: Vec<_> = stage.nodes.iter().map(Node::address).collect();
    for round in 0..messages {
        stage.case = format!("round {round}");
        for from in 0..to.len() {
            for (number, &there) in to.iter().enumerate() {
                stage.nodes[number].receive(8, 0);
                let (pair, bytes) = (stage.nodes[from].queue_pair, (from as u64).to_le_bytes());
                let send = Message::inline(&bytes).to(there).unsignaled();
                stage.nodes[from].function.post_send(pair, send).expect("room");
            }
        }
        for number in 0..to.len() {
            let mut heard: Vec<u32> = (0..to.len())
                .map(|_| {
                    let done = stage.success(number);
                    let bytes = done.buffer.unwrap().into_bytes(8);
                    let from = u64::from_le_bytes(bytes.try_into().unwrap()) as usize;
                    assert_eq!(done.peer, to[from]);
                    from as u32
                })
                .collect();
            heard.sort_unstable();
            assert_eq!(heard, (0..to.len() as u32).collect::<Vec<_>>());
        }
    }
}

/// Sixteen nodes on one network all talk to each other.
// shows: H-30
#[test]
fn sixteen_nodes_all_to_all() {
    let network = Bridged::new("packet", 1500);
    let mut stage = Stage::of(&network, 16);
    all_to_all(&mut stage, 5);
}

/// The same code runs over interfaces of two different drivers, by both ways.
// shows: H-01
#[test]
fn other_drivers_carry_frames_too() {
    for way in ["packet", "xdp"] {
        let network = Bridged::new(way, 1500);
        network.plug_in(0);
        ip("link add link n0 m0 type macvlan mode bridge\n\
            link add link n0 m1 type macvlan mode bridge\n\
            link set m0 up\nlink set m1 up")
        .expect("two macvlan interfaces");
        let open = |name: &str| Device::open(&format!("eth:{name}?io={way}")).expect("it opens");
        let nodes = ["m0", "m1"].map(|name| Node::of(open(name), 0, &Default::default()));
        let mut stage = Stage::with(&network, nodes);
        stage.case = way.into();
        all_to_all(&mut stage, 20);
    }
}

/// On a link that floods, a function takes no frame of others and answers none, while the others
/// connect and talk. This holds for either way, and for the way that is measured to be faster.
// shows: H-02, H-03
#[test]
fn a_bystander_on_a_hub_keeps_out() {
    for carrier in [Carrier::Packet, Carrier::Xdp, Carrier::Faster] {
        a_bystander_keeps_out(carrier);
    }
}

/// Frames of nine thousand bytes carry messages of every size.
#[test]
fn jumbo_frames_carry_every_size() {
    let network = Bridged::new("packet", 9000);
    conformance::run(conformance::message::every_size_and_memory, &network);
}

/// A device reports which way it took and why. A requested way that is not available is an error
/// with the reason. An unusable interface is refused with what to do.
#[test]
fn the_way_is_told_and_never_changed_silently() {
    let network = Bridged::new("xdp", 1500);
    let device = network.open(&DeviceOptions::default()).unwrap();
    let function = device.open_function(0).unwrap();
    let told = device.describe();
    assert!(told.contains("by AF_XDP, generic") && told.contains("it was asked for"), "{told}");
    // The hook has one owner: a second function that requires it is refused, and one that does not
    // gets the other way.
    let insisting = Device::open("eth:n0?io=xdp").unwrap().open_function(1).err().unwrap();
    assert!(matches!(insisting, Error::DeviceUnavailable { .. }), "{insisting}");
    let easy = Device::open("eth:n0").unwrap();
    drop(easy.open_function(1).unwrap());
    assert!(easy.describe().contains("by AF_PACKET, because AF_XDP is not available"));
    drop(function);
    let measured = Device::open("eth:n0").unwrap();
    drop(measured.open_function(0).unwrap());
    assert!(measured.describe().contains("sending a frame takes"), "{}", measured.describe());
    let jumbo = Bridged::new("xdp", 9000);
    let error = jumbo.open(&DeviceOptions::default()).unwrap().open_function(0).err().unwrap();
    assert!(error.to_string().contains("do not fit in a page"), "{error}");
    let absent = Device::open("eth:nowhere").unwrap_err().to_string();
    assert!(absent.contains("ip link show"), "{absent}");
    ip("link set n0 down").unwrap();
    let down = Device::open("eth:n0").unwrap_err().to_string();
    assert!(down.contains("ip link set n0 up"), "{down}");
}

/// The program is detached however its owner ends: the hook is free again after a function is
/// closed, and after its process was killed.
// shows: H-05
#[test]
fn nothing_stays_attached() {
    use conformance::child::{DEVICE, PEER, ROLE};
    let network = Bridged::new("xdp", 1500).with_other();
    let device = Device::open("eth:n999?io=xdp").unwrap();
    for _ in 0..3 {
        drop(device.open_function(0).expect("free again"));
    }
    let mut parent = Node::open(&network);
    let peer = parent.address().to_string();
    parent.receive(48, 0);
    let environment = [(ROLE, "echo"), (DEVICE, network.other.as_str()), (PEER, peer.as_str())];
    let child = Process::start("process", &environment);
    let mut stage = Stage::with(&network, [parent]);
    // The child has the hook: its first message came through it.
    stage.success(0);
    device.open_function(0).map(drop).expect_err("the child has it");
    child.signal(libc::SIGKILL);
    let mut patience = Patience::new();
    while device.open_function(0).is_err() {
        patience.spend(|| "the hook is never free again".into());
    }
}

/// Messages that are sent while the interface is down arrive when it is up again.
#[test]
fn an_interface_may_go_down_for_a_while() {
    let network = Bridged::new("packet", 1500);
    let mut stage = Stage::pair(&network);
    let (to, pair) = (stage.nodes[1].address(), stage.nodes[0].queue_pair);
    for round in 0..3u8 {
        stage.nodes[1].receive(8, 0);
        if round == 1 {
            ip("link set n1 down").unwrap();
        }
        let bytes = [round];
        let send = Message::inline(&bytes).to(to);
        stage.nodes[0].function.post_send(pair, send).unwrap();
        if round == 1 {
            for _ in 0..100 {
                stage.turn();
                std::thread::sleep(Duration::from_millis(1));
            }
            ip("link set n1 up").unwrap();
        }
        let done = stage.success(1);
        assert_eq!(done.buffer.unwrap().into_bytes(1), [round]);
        stage.success(0);
    }
}

/// Two namespaces joined by a veth pair, this thread in one and another thread in the other. Runs
/// `far` there, with the flag that tells it to end, and `near` here.
fn two_hosts(
    far: impl FnOnce(&AtomicBool, &dyn Fn(u32)) + std::marker::Send,
    near: impl FnOnce(u32) + std::marker::Send,
) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (tell_number, number) = channel();
        let (tell_ready, ready) = channel::<()>();
        let (tell_node, node) = channel();
        let over = &over;
        scope.spawn(move || {
            enter_new_namespace().expect("NOT RUN: needs root, and ip of iproute2");
            tell_number.send(thread_number()).unwrap();
            ready.recv().unwrap();
            ip("addr add 10.8.0.2/24 dev far\nlink set far up").unwrap();
            far(over, &|node| tell_node.send(node).unwrap());
        });
        let near = scope.spawn(move || {
            enter_new_namespace().expect("NOT RUN: needs root, and ip of iproute2");
            let number: i32 = number.recv().unwrap();
            ip(&format!(
                "link add near type veth peer name far netns {number}\n\
                 addr add 10.8.0.1/24 dev near\nlink set near up"
            ))
            .unwrap();
            tell_ready.send(()).unwrap();
            near(node.recv().unwrap());
        });
        let result = near.join();
        over.store(true, Ordering::Relaxed);
        result.expect("the near host succeeds");
    });
}

/// Makes progress until `over`.
fn poll_until(over: &AtomicBool, function: &mut Function) {
    while !over.load(Ordering::Relaxed) {
        function.progress().expect("progress");
    }
}

/// A TCP connection and messages use the same interface at the same time. The program in the link
/// layer takes our frames and leaves the rest to the kernel, and both arrive whole.
// shows: H-02, H-03
#[test]
fn tcp_and_messages_share_an_interface() {
    const MESSAGES: u64 = 2_000;
    const BYTES: usize = 1 << 20;
    for (way, carrier) in [("xdp", Carrier::Xdp), ("packet", Carrier::Packet)] {
        let name = |interface: &str| format!("eth:{interface}?io={way}");
        two_hosts(
            |over, tell| {
                let listener = TcpListener::bind("10.8.0.2:9000").unwrap();
                let mut node =
                    Node::of(Device::open(&name("far")).unwrap(), 0, &Default::default());
                (0..256).for_each(|_| node.receive(8, 0));
                tell(node.device.node());
                std::thread::scope(|scope| {
                    scope.spawn(|| {
                        let (mut stream, _) = listener.accept().unwrap();
                        let mut bytes = vec![0; BYTES];
                        stream.read_exact(&mut bytes).unwrap();
                        stream.write_all(&bytes).unwrap();
                    });
                    let mut next = 0u64;
                    while next < MESSAGES {
                        let Some(done) = node.poll() else { continue };
                        assert!(done.status.is_success(), "{done:?}");
                        let bytes = done.buffer.unwrap().into_bytes(8);
                        assert_eq!(u64::from_le_bytes(bytes.try_into().unwrap()), next);
                        next += 1;
                        node.receive(8, 0);
                    }
                    assert_frames_by(carrier, &node);
                    let received = node.device_counter("frames_received").expect("it is counted");
                    assert!(received >= MESSAGES, "{received} frames");
                    poll_until(over, &mut node.function);
                });
            },
            |there| {
                let mut node =
                    Node::of(Device::open(&name("near")).unwrap(), 0, &Default::default());
                assert_way(&node.device, way);
                let to = bellwire::Address::new(there, 0, 1);
                let pair = node.queue_pair;
                std::thread::scope(|scope| {
                    let tcp = scope.spawn(|| {
                        let mut stream = TcpStream::connect("10.8.0.2:9000").unwrap();
                        let sent: Vec<u8> = (0..BYTES).map(|at| (at % 251) as u8).collect();
                        stream.write_all(&sent).unwrap();
                        let mut back = vec![0; BYTES];
                        stream.read_exact(&mut back).unwrap();
                        assert!(back == sent, "TCP brings back what was sent");
                    });
                    let mut patience = Patience::new();
                    for number in 0..MESSAGES {
                        let bytes = number.to_le_bytes();
                        node.function.post_send(pair, Message::inline(&bytes).to(to)).unwrap();
                        let done = loop {
                            if let Some(done) = node.poll() {
                                break done;
                            }
                            patience.spend(|| format!("message {number}"));
                        };
                        assert!(done.status.is_success(), "{done:?}");
                    }
                    let mut patience = Patience::new();
                    while !tcp.is_finished() {
                        node.function.progress().unwrap();
                        std::thread::sleep(Duration::from_micros(50));
                        patience.spend(|| "TCP stands still beside messages".into());
                    }
                });
            },
        );
    }
}

/// A node is found by its Ethernet address, by its IP address, and by its number alone.
#[test]
fn nodes_are_found_by_any_of_their_addresses() {
    two_hosts(
        |over, tell| {
            let mut node = Node::of(
                Device::open("eth:far?io=packet&node=77").unwrap(),
                0,
                &Default::default(),
            );
            node.receive(8, 0);
            tell(node.device.node());
            poll_until(over, &mut node.function);
        },
        |there| {
            assert_eq!(there, 77);
            let mut node = Node::of(Device::open("eth:near").unwrap(), 0, &Default::default());
            let limit = Duration::from_secs(20);
            assert_eq!(node.device.lookup("10.8.0.2", 0, limit).expect("by IP"), 77);
            let absent = node.device.lookup("10.8.0.9", 0, Duration::from_millis(100)).unwrap_err();
            assert!(absent.to_string().contains("no neighbour of near has it"), "{absent}");
            let absent = node.device.lookup("02:00:00:00:00:99", 3, Duration::from_millis(100));
            assert!(absent.unwrap_err().to_string().contains("no answer"));
            let pair = node.queue_pair;
            let send = Message::inline(b"hello").to(bellwire::Address::new(77, 0, 1));
            node.function.post_send(pair, send).unwrap();
            let mut patience = Patience::new();
            while node.poll().is_none_or(|done| !done.status.is_success()) {
                patience.spend(|| "the message never leaves".into());
            }
        },
    );
}
