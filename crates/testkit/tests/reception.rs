//! How frames are received: into a mapped ring, before the kernel's stack, without a system call, a
//! wake-up or a second copy. Further tests count the calls, copies and memory of the ways to
//! receive that the HPCL paper compares itself with. (`bellwire-bench network` measures their
//! time.) The tests make their networks themselves, for which they need root and iproute2.

use bellwire::{Address, Device, Error, Inbox, Message, Operation, QueuePair, View, Wait};
use bellwire_ethernet::frame_io::FrameIo;
use bellwire_ethernet::interface::Interface;
use bellwire_ethernet::link_header::Mac;
use bellwire_ethernet::namespace::Namespace;
use bellwire_ethernet::packet::PacketIo;
use bellwire_ethernet::xdp::{Mode, XdpIo};
use bellwire_testkit::conformance::{Node, Patience, Stage};
use bellwire_testkit::mapping;
use bellwire_testkit::network::command::bellwire;
use bellwire_testkit::network::{Carrier, Network, WIRE};
use std::collections::HashSet;
use std::io::Read;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Duration;

/// The function that test frames are for.
const FUNCTION: u8 = 1;
const FRAMES: usize = 100;

/// The frame I/O on a host, and the host's address.
fn open<Io>(
    network: &Network,
    host: usize,
    open: impl FnOnce(&Interface) -> std::io::Result<Io>,
) -> (Io, Mac) {
    network.hosts[host].run(|| {
        let interface = Interface::find(WIRE).expect("the interface of a host");
        (open(&interface).expect("a packet socket or AF_XDP"), interface.mac)
    })
}

fn packet(interface: &Interface) -> std::io::Result<PacketIo> {
    PacketIo::open(interface, FUNCTION)
}

fn xdp(interface: &Interface) -> std::io::Result<XdpIo> {
    XdpIo::open(interface, FUNCTION, Mode::Generic)
}

/// Sends numbered frames of 500 bytes.
fn send(io: &mut impl FrameIo<Path = Mac>, to: Mac) {
    for number in 0..FRAMES {
        let room = io.room().expect("room");
        room[..500].fill(number as u8);
        room[2] = FUNCTION;
        io.stage(to, 500);
        assert!(io.flush());
    }
}

/// Sends frames while the receiver makes no system call. All of them are there at its first poll,
/// and its own counter of calls shows none.
fn receive_without_calls<Io: FrameIo<Path = Mac>>(
    network: &Network,
    way: impl Fn(&Interface) -> std::io::Result<Io>,
) -> Io {
    let (mut near, _) = open(network, 0, &way);
    let (mut far, to) = open(network, 1, &way);
    // Frames that an interface sends before it runs are lost.
    let mut patience = Patience::new();
    while far.receive(1, |_, _| ()) == 0 {
        if let Some(room) = near.room() {
            room[..500].fill(0);
            room[2] = FUNCTION;
            near.stage(to, 500);
            near.flush();
        }
        patience.spend(|| "no frame arrives".into());
    }
    while far.receive(64, |_, _| ()) > 0 {}
    let before = far.counters();
    send(&mut near, to);
    let mut next = 0;
    while next < FRAMES {
        let got = far.receive(64, |_, frame| {
            assert_eq!(frame[8], next as u8);
            next += 1;
        });
        patience.spend(|| format!("{next} of {FRAMES} frames"));
        if got > 0 {
            patience = Patience::new();
        }
    }
    let after = far.counters();
    assert_eq!(after.receive_calls, before.receive_calls, "no call was needed to receive");
    // The kernel's copy into the ring is the only one before a program has the bytes.
    assert_eq!(after.copies - before.copies, FRAMES as u64);
    far
}

/// Frames arrive although the receiver makes no call: it finds them in the mapped ring. They were
/// copied once on their way there, and are not copied again before the bytes go where they belong.
// shows: H-07, H-20, H-21
#[test]
fn frames_get_in_without_a_call_and_with_one_copy() {
    receive_without_calls(&Network::pair(Carrier::Packet), packet);
    let far = receive_without_calls(&Network::pair(Carrier::Xdp), xdp);
    assert_eq!(far.counters().frames_past_xdp, 0, "all came by AF_XDP");
}

/// A received frame lies in the memory that the kernel wrote to: a mapping of the packet socket's
/// ring.
// shows: H-20, H-21
#[test]
fn frames_are_handed_out_of_the_ring() {
    let network = Network::pair(Carrier::Packet);
    let mut far = receive_without_calls(&network, packet);
    let (mut near, _) = open(&network, 0, packet);
    let (_, to) = open(&network, 1, |_| Ok(()));
    send(&mut near, to);
    let (mut seen, mut patience) = (0, Patience::new());
    while seen < FRAMES {
        far.receive(64, |_, frame| {
            let mapping = mapping::of(frame.as_ptr() as usize);
            assert!(mapping.contains("socket:["), "{mapping}");
            seen += 1;
        });
        patience.spend(|| format!("{seen} frames"));
    }
}

/// Notes where messages lie that it is shown.
struct Places(Vec<usize>);

impl Inbox for Places {
    fn message(&mut self, _: QueuePair, _: Address, _: Option<u64>, view: View<'_>) -> bool {
        self.0.push(view.as_ptr() as usize);
        true
    }
}

/// A message that is shown in place lies in the frame that the kernel wrote: in the mapped ring of
/// the packet socket, or in the memory that AF_XDP shares, which has a chunk for each frame.
// shows: H-20, H-21
#[test]
fn messages_are_shown_in_the_frame() {
    const MESSAGES: usize = 100;
    /// The shorter of the chunk lengths of AF_XDP.
    const CHUNK: usize = 2048;
    for carrier in [Carrier::Packet, Carrier::Xdp] {
        let network = Network::pair(carrier);
        let mut stage = network.stage();
        let (pair, to) = (stage.nodes[0].queue_pair, stage.nodes[1].address());
        let mut places = Places(Vec::new());
        for number in 0..MESSAGES {
            let send = Message::inline(&[7; 64]).to(to).unsignaled();
            stage.nodes[0].function.post_send(pair, send).expect("room");
            let mut patience = Patience::new();
            while places.0.len() <= number {
                stage.nodes[0].function.progress().expect("progress");
                let node = &mut stage.nodes[1];
                let done = node.function.poll_with(node.completions, &mut places);
                assert!(done.expect("a queue").is_none());
                patience.spend(|| format!("message {number} is not shown"));
            }
        }
        let mapping = mapping::of_all(&places.0);
        if carrier == Carrier::Packet {
            assert!(mapping.contains("socket:["), "{mapping}");
        } else {
            let chunks: HashSet<usize> = places.0.iter().map(|place| place / CHUNK).collect();
            assert_eq!(chunks.len(), MESSAGES, "a chunk for each frame: {:x?}", places.0);
        }
    }
}

/// The number of datagrams that a host's IP stack reports as received.
fn datagrams(network: &Network, host: usize) -> u64 {
    let table = network.hosts[host].run(|| std::fs::read_to_string("/proc/thread-self/net/snmp"));
    let table = table.expect("the kernel counts");
    let mut rows = table.lines().filter(|row| row.starts_with("Ip:"));
    let (names, counts) = (rows.next().expect("names"), rows.next().expect("counts"));
    let place = names.split(' ').position(|name| name == "InReceives").expect("a column");
    counts.split(' ').nth(place).and_then(|count| count.parse().ok()).expect("a number")
}

/// Messages between two nodes of a network, one at a time.
fn ping_pong(stage: &mut Stage<'_>, rounds: u64) {
    let addresses = [0, 1].map(|node: usize| stage.nodes[node].address());
    for round in 0..rounds {
        let (from, to) = if round % 2 == 0 { (0, 1) } else { (1, 0) };
        stage.nodes[to].receive(64, round);
        let bytes = [round as u8; 64];
        let send = Message::inline(&bytes).to(addresses[to]).unsignaled();
        let pair = stage.nodes[from].queue_pair;
        stage.nodes[from].function.post_send(pair, send).expect("room");
        let mut patience = Patience::new();
        while stage.nodes[to].poll().is_none() {
            stage.nodes[from].function.progress().expect("progress");
            patience.spend(|| format!("message {round}: {}", stage.story()));
        }
    }
}

/// Frames of `eth` leave the kernel in the link layer and never reach its network stack. No
/// protocol of it gets one, and none is left for it to drop. By AF_XDP not even another packet
/// socket of the host gets one. Those of `udp`, the variant through the stack's soft interrupt, all
/// pass the stack.
// shows: H-24, B-24
#[test]
fn frames_do_not_pass_the_stack() {
    const ROUNDS: u64 = 200;
    for carrier in [Carrier::Packet, Carrier::Xdp, Carrier::Udp] {
        let network = Network::pair(carrier);
        let mut stage = network.stage();
        // Lets the datagrams pass that a new interface causes by itself.
        ping_pong(&mut stage, 2);
        let before = [datagrams(&network, 1), network.frames_unwanted(1, WIRE)];
        ping_pong(&mut stage, ROUNDS);
        let after = [datagrams(&network, 1), network.frames_unwanted(1, WIRE)];
        let [passed, unwanted] = [0, 1].map(|count: usize| after[count] - before[count]);
        if carrier == Carrier::Udp {
            assert!(passed >= ROUNDS / 2, "{passed} datagrams of {ROUNDS} messages");
            continue;
        }
        assert!(passed < ROUNDS / 10, "{passed} datagrams beside {ROUNDS} messages");
        assert!(unwanted < ROUNDS / 10, "{unwanted} frames reached the end of the stack");

        // Another socket for frames of our EtherType and this function.
        let (mut observer, _) = open(&network, 1, |interface| PacketIo::open(interface, 0));
        ping_pong(&mut stage, ROUNDS);
        let mut seen = 0;
        while observer.receive(64, |_, _| seen += 1) > 0 {}
        if carrier == Carrier::Xdp {
            assert_eq!(seen, 0, "frames were left to the kernel");
        } else {
            // The control: it sees frames that AF_XDP does not take.
            assert!(seen >= ROUNDS / 2, "{seen} frames of {ROUNDS} messages");
        }
    }
}

/// The control for the test above: where no device is open, frames of our EtherType reach the end
/// of the stack, and the kernel counts each.
#[test]
fn frames_without_a_device_reach_the_end_of_the_stack() {
    let network = Network::pair(Carrier::Packet);
    let (mut near, _) = open(&network, 0, packet);
    let (_, to) = open(&network, 1, |_| Ok(()));
    let before = network.frames_unwanted(1, WIRE);
    let mut patience = Patience::new();
    // Frames that an interface sends before it runs are lost.
    while network.frames_unwanted(1, WIRE) < before + FRAMES as u64 {
        send(&mut near, to);
        patience.spend(|| "the kernel counts none".into());
    }
}

/// How often this thread slept in a call (voluntary context switches).
fn sleeps() -> i64 {
    // SAFETY: zeros are a value of this plain structure, which the kernel then writes.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage), 0);
        usage
    };
    usage.ru_nvcsw
}

/// Two threads send each other messages in turn and wait in one mode. Returns how often both slept.
fn sleeps_of_ping_pong(network: &Network, wait: Wait, rounds: u64) -> i64 {
    let nodes = [0, 1].map(|host| network.node(host));
    let addresses = nodes.each_ref().map(Node::address);
    let play = |mut node: Node, leads: bool| {
        let peer = addresses[usize::from(leads)];
        let before = sleeps();
        for round in 0..2 * rounds {
            if (round % 2 == 0) == leads {
                let bytes = [round as u8; 8];
                let send = Message::inline(&bytes).to(peer).unsignaled();
                node.function.post_send(node.queue_pair, send).expect("room");
            } else {
                node.receive(8, round);
                let patience = Duration::from_secs(30);
                let done = node.function.wait(node.completions, wait, patience);
                let done = done.expect("the other one's message");
                assert_eq!((done.operation, done.context), (Operation::Receive, round));
            }
        }
        let slept = sleeps() - before;
        // Until the last message is acknowledged.
        node.flush(node.queue_pair);
        slept
    };
    std::thread::scope(|scope| {
        let [near, far] = nodes;
        let near = scope.spawn(move || play(near, true));
        let far = scope.spawn(move || play(far, false));
        near.join().expect("no panic") + far.join().expect("no panic")
    })
}

/// A program that waits by polling gets messages without a wake-up. One that waits for interrupts
/// is woken about once for each message.
// shows: H-08, B-23
#[test]
fn who_polls_is_never_woken() {
    const ROUNDS: u64 = 300;
    for carrier in [Carrier::Packet, Carrier::Xdp, Carrier::Udp] {
        let network = Network::pair(carrier);
        let polling = sleeps_of_ping_pong(&network, Wait::Spin, ROUNDS);
        let blocking = sleeps_of_ping_pong(&network, Wait::Block, ROUNDS);
        // Page faults and the like make a thread sleep, too.
        assert!(polling < ROUNDS as i64 / 10, "{carrier:?}: {polling} sleeps of who polls");
        assert!(blocking > ROUNDS as i64 / 2, "{carrier:?}: {blocking} sleeps of who blocks");
    }
}

/// A program that is ready to sleep does not sleep for a message that is there already.
// shows: H-09
#[test]
fn nobody_sleeps_for_a_message_that_is_there() {
    const MESSAGES: u64 = 100;
    for carrier in [Carrier::Packet, Carrier::Xdp, Carrier::Udp] {
        let network = Network::pair(carrier);
        let mut stage = network.stage();
        let (pair, to) = (stage.nodes[0].queue_pair, stage.nodes[1].address());
        let mut slept = 0;
        for number in 0..=MESSAGES {
            stage.nodes[1].receive(8, number);
            let send = Message::inline(&[1; 8]).to(to).unsignaled();
            let before = stage.nodes[0].device_counter("frames_sent");
            assert!(before.is_some(), "frames are counted");
            stage.nodes[0].function.post_send(pair, send).expect("room");
            if number == 0 {
                // The first one makes the link, which needs both nodes.
                let mut patience = Patience::new();
                while stage.nodes[1].poll().is_none() {
                    stage.nodes[0].function.progress().expect("progress");
                    patience.spend(|| stage.story());
                }
                continue;
            }
            // Until the frame is on the wire, which delivers it at once.
            let mut patience = Patience::new();
            while stage.nodes[0].device_counter("frames_sent") == before {
                stage.nodes[0].function.progress().expect("progress");
                patience.spend(|| stage.story());
            }
            let node = &mut stage.nodes[1];
            let before = sleeps();
            let done = node.function.wait(node.completions, Wait::Block, Duration::from_secs(30));
            slept += sleeps() - before;
            assert_eq!(done.expect("it is there").context, number);
        }
        assert!(slept < MESSAGES as i64 / 10, "{carrier:?}: {slept} sleeps");
    }
}

/// Whether the descriptor that a function waits at is readable within some milliseconds.
fn is_readable(node: &Node, patience_ms: i32) -> bool {
    let fd = node.function.wait_fd().as_raw_fd();
    let mut fds = [libc::pollfd { fd, events: libc::POLLIN, revents: 0 }];
    // SAFETY: one entry, which is ours.
    unsafe { libc::poll(fds.as_mut_ptr(), 1, patience_ms) > 0 }
}

/// The operations of HPCL's character device in their present form. Open: a function, which belongs
/// to its opener alone. Ioctl: the kernel's data of the interface. Mmap: the receive ring. Poll: a
/// descriptor that is readable when there is something. Release: dropping the function, after which
/// others may open it.
// shows: H-04
#[test]
fn the_operations_of_a_device() {
    for carrier in [Carrier::Packet, Carrier::Xdp, Carrier::Udp] {
        let network = Network::pair(carrier);
        let mut stage = network.stage();
        let again = || {
            let device = network.hosts[1].run(|| Device::open(&network.device(1)));
            network.hosts[1]
                .run(|| device.expect("a second opening of the device").open_function(0))
        };
        assert!(matches!(again(), Err(Error::BadFunction { .. })), "{carrier:?}");

        let interface = network.hosts[1].run(|| Interface::find(WIRE)).expect("it is there");
        assert!(interface.is_up && interface.mtu == 1500);

        let to = stage.nodes[1].address();
        // The first message makes the link.
        for number in 0..3 {
            stage.nodes[1].receive(8, number);
            let mut patience = Patience::new();
            while !stage.nodes[1].function.arm().expect("the kernel agrees") {
                stage.nodes[0].function.progress().expect("progress");
                patience.spend(|| "there is always something to do".into());
            }
            let pair = stage.nodes[0].queue_pair;
            let send = Message::inline(&[7; 8]).to(to).unsignaled();
            stage.nodes[0].function.post_send(pair, send).expect("room");
            loop {
                stage.nodes[0].function.progress().expect("progress");
                if is_readable(&stage.nodes[1], 1)
                    && let Some(done) = stage.nodes[1].poll()
                {
                    assert_eq!((done.context, done.length), (number, 8));
                    break;
                }
                let _ = stage.nodes[1].function.arm().expect("the kernel agrees");
                patience.spend(|| stage.story());
            }
        }
        drop(stage);
        drop(again().expect("it is free"));
    }
}

/// What `FRAMES` messages cost the function that receives them, by its device's own counters and by
/// the allocator: the frames that came and went, copies, and allocations.
fn cost_of_receiving(carrier: Carrier) -> [u64; 3] {
    let network = Network::pair(carrier);
    let mut stage = network.stage();
    let (pair, to) = (stage.nodes[0].queue_pair, stage.nodes[1].address());
    let mut places = Places(Vec::with_capacity(4 * FRAMES));
    let mut cost = [0; 3];
    // The first half makes the link, and grows every buffer.
    for number in 0..2 * FRAMES {
        let bytes = [number as u8; 64];
        let send = Message::inline(&bytes).to(to).unsignaled();
        stage.nodes[0].function.post_send(pair, send).expect("room");
        // The frames of the kernel, which follow those of the protocol under the same name.
        let counts = |stage: &Stage<'_>| {
            let rows = stage.nodes[1].counters().device;
            ["frames_received", "frames_sent", "copies"]
                .map(|name| rows.iter().rfind(|row| row.0 == name).expect("it is counted").1)
        };
        let before = counts(&stage);
        let mut patience = Patience::new();
        while places.0.len() <= number {
            stage.nodes[0].function.progress().expect("progress");
            let node = &mut stage.nodes[1];
            let polled = allocation_counter::measure(|| {
                let done = node.function.poll_with(node.completions, &mut places);
                assert!(done.expect("a queue").is_none());
            });
            if number >= FRAMES {
                cost[2] += polled.count_total;
            }
            patience.spend(|| format!("message {number} does not come"));
        }
        if number >= FRAMES {
            let after = counts(&stage);
            let [received, sent, copies]: [u64; 3] =
                std::array::from_fn(|at| after[at] - before[at]);
            assert!(received > 0, "a message came");
            cost[0] += received + sent;
            cost[1] += copies;
        }
    }
    cost
}

/// A buffer for each message costs an allocation each, and a copy beside the kernel's. A function
/// allocates nothing to receive, and shows the message in the memory that the kernel wrote: the
/// kernel's copy is the only one.
// shows: B-25
#[test]
fn buffers_made_for_each_message_cost_more() {
    let network = Network::pair(Carrier::Udp);
    let bind = |host: usize, ip: &str| network.hosts[host].run(|| UdpSocket::bind((ip, 7000)));
    let near = bind(0, "10.9.0.1").expect("an address of this host");
    let far = bind(1, "10.9.0.2").expect("an address of this host");
    far.set_read_timeout(Some(Duration::from_secs(30))).expect("an option");
    for number in 0..FRAMES {
        near.send_to(&[number as u8; 500], "10.9.0.2:7000").expect("sent");
    }
    let mut messages = Vec::with_capacity(FRAMES);
    // The kernel copies to the buffer, and the program to the message.
    let dynamic = allocation_counter::measure(|| {
        for _ in 0..FRAMES {
            let mut buffer = vec![0; 1500];
            let length = far.recv(&mut buffer).expect("it arrives");
            messages.push(buffer[..length].to_vec());
        }
    });
    assert!(dynamic.count_total >= 2 * FRAMES as u64 && messages.len() == FRAMES);
    for carrier in [Carrier::Packet, Carrier::Xdp] {
        // Acknowledgements that go back are frames too.
        let [frames, copies, allocations] = cost_of_receiving(carrier);
        assert_eq!((copies, allocations), (frames, 0), "{carrier:?}: copies and allocations");
    }
}

/// Buffers for each connection: with TCP sockets, receive memory and descriptors to wait for grow
/// with the peers. A function has one ring and the same descriptors for all of them.
// shows: B-26
#[test]
fn buffers_for_each_connection_grow_with_peers() {
    const ALONE: &str = "BELLWIRE_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return one_ring_serves_all_peers();
    }
    let mut before = [0; 2];
    for peers in [1, 4, 16] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let address = listener.local_addr().expect("it has one");
        let near: Vec<TcpStream> = (0..peers)
            .map(|_| {
                let far = TcpStream::connect(address).expect("it listens");
                let (near, _) = listener.accept().expect("a peer");
                drop(far);
                near
            })
            .collect();
        let bytes: usize = near.iter().map(receive_buffer_bytes).sum();
        // Each socket must be checked on its own.
        let checks = near.into_iter().filter_map(|mut one| one.read(&mut [0; 1]).ok()).count();
        assert!(
            bytes >= 4 * before[0] && checks >= 4 * before[1],
            "{bytes} bytes, {checks} checks"
        );
        before = [bytes, checks];
    }
    // Other tests of this process open descriptors meanwhile.
    let mut alone = std::process::Command::new(std::env::current_exe().expect("we run"));
    alone.args(["--exact", "buffers_for_each_connection_grow_with_peers", "--nocapture"]);
    let output = alone.env(ALONE, "1").output().expect("we can be started again");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Four peers come, and the function opens no descriptor and maps no memory for them. One wait is
/// for all of them.
fn one_ring_serves_all_peers() {
    for carrier in [Carrier::Packet, Carrier::Xdp] {
        let network = Network::bridged(carrier, 5);
        let mut stage = network.stage();
        let before = opened();
        assert!(before[0] > 5 && before[1] > 0, "{before:?}");
        let to = stage.nodes[0].address();
        for peer in 1..5 {
            stage.nodes[0].receive(8, peer as u64);
            let send = Message::inline(b"a peer").to(to).unsignaled();
            let pair = stage.nodes[peer].queue_pair;
            stage.nodes[peer].function.post_send(pair, send).expect("room");
            // One wait finds whichever peer it is.
            let mut patience = Patience::new();
            let mut woken = false;
            loop {
                stage.nodes[peer].function.progress().expect("progress");
                woken |= is_readable(&stage.nodes[0], 1);
                if let Some(done) = stage.nodes[0].poll() {
                    assert_eq!(done.peer, stage.nodes[peer].address());
                    break;
                }
                let _ = stage.nodes[0].function.arm().expect("the kernel agrees");
                patience.spend(|| stage.story());
            }
            assert!(woken, "{carrier:?}: peer {peer} was found without a wait");
        }
        assert_eq!(opened(), before, "{carrier:?}: with four peers and without any");
        assert_eq!(stage.nodes[0].device_counter("links"), Some(4));
    }
}

/// The descriptors that this process has open, and the bytes of memory that it shares with the
/// kernel in rings of sockets.
fn opened() -> [u64; 2] {
    let files = std::fs::read_dir("/proc/self/fd").expect("our own").count();
    let maps = std::fs::read_to_string("/proc/self/maps").expect("this process's mappings");
    let length = |line: &str| {
        let (start, end) = line.split_whitespace().next()?.split_once('-')?;
        let [start, end] = [start, end].map(|end| u64::from_str_radix(end, 16).ok());
        line.contains("socket:[").then_some(end? - start?)
    };
    [files as u64, maps.lines().filter_map(length).sum()]
}

/// The HPCL paper's pingpong and burst run on the real devices next to TCP, over loopback and
/// between two namespaces that the command makes. The report has ratios of these times beside the
/// paper's and the model's. Without the privilege to make namespaces it says what to do.
// shows: H-26, H-28, B-22
#[test]
fn the_papers_programs_on_real_devices() {
    for carrier in ["udp", "eth"] {
        let arguments = ["paper", "hpcl-ethernet", "--json", "--real", carrier];
        // The ports of `udp` on loopback belong to whoever has them first.
        let apart = Namespace::new().expect("root, and iproute2");
        let output = apart.run(|| bellwire().args(arguments).output()).expect("root");
        let output = output.expect("the command");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{carrier}: {said}");
        let report = String::from_utf8(output.stdout).expect("text");
        // Four sizes, three ways each.
        for program in ["pingpong", "burst"] {
            assert_eq!(report.matches(&format!("\"program\": \"{program}\"")).count(), 12);
        }
        for way in ["polling", "asleep", "tcp"] {
            assert_eq!(report.matches(&format!("\"way\": \"{way}\"")).count(), 8);
        }
        for part in ["measured", "model", "model_interrupts_at_once"] {
            let values = values_of(&report, part);
            assert!(values.len() == 5 && values.iter().all(|&value| value > 0.0), "{report}");
        }
        let of = |program: &str, way: &str, bytes: u32| median_of(&report, program, way, bytes);
        let expected = [
            of("pingpong", "tcp", 128) / of("pingpong", "polling", 128),
            of("pingpong", "asleep", 128) / of("pingpong", "polling", 128),
            of("burst", "polling", 128) / of("burst", "tcp", 128),
            of("burst", "polling", 1_196) / of("burst", "tcp", 1_196),
            of("burst", "polling", 1_196) / of("burst", "polling", 128),
        ];
        assert_eq!(values_of(&report, "measured"), expected, "{report}");
        // It gives one number.
        assert_eq!(values_of(&report, "paper").iter().filter(|value| !value.is_nan()).count(), 1);
        for part in ["median", "least", "most"] {
            let values = values_of(&report, part);
            assert!(values.len() == 24 && values.iter().all(|&value| value > 0.0), "{report}");
        }
    }
    let mut command = std::process::Command::new("setpriv");
    command.args(["--bounding-set", "-sys_admin"]).arg(bellwire().get_program());
    command.args(["paper", "hpcl-ethernet", "--real", "eth"]);
    let output = command.output().expect("setpriv of util-linux");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("run it as root") && said.contains("--real udp"), "{said}");
}

/// The median that a report has for a program, a way and a length.
fn median_of(report: &str, program: &str, way: &str, bytes: u32) -> f64 {
    let (way, bytes) = (format!("\"way\": \"{way}\","), format!("\"bytes\": {bytes},"));
    let findings = report.split("\"program\": \"").skip(1);
    let mut of = findings.filter(|it| {
        it.starts_with(&format!("{program}\"")) && it.contains(&way) && it.contains(&bytes)
    });
    let finding = of.next().unwrap_or_else(|| panic!("no {program}, {way} {bytes} in {report}"));
    values_of(finding, "median")[0]
}

/// The values of a name in a report, in its order; not a number where it has none.
fn values_of(report: &str, name: &str) -> Vec<f64> {
    let value = |rest: &str| rest.split([',', '\n']).next()?.parse().ok();
    report.split(&format!("\"{name}\": ")).skip(1).map(|it| value(it).unwrap_or(f64::NAN)).collect()
}

fn receive_buffer_bytes(socket: &TcpStream) -> usize {
    let (mut bytes, mut length) = (0i32, size_of::<i32>() as u32);
    // SAFETY: the kernel writes one integer.
    let result = unsafe {
        let (fd, option) = (socket.as_raw_fd(), libc::SO_RCVBUF);
        let bytes = (&raw mut bytes).cast();
        libc::getsockopt(fd, libc::SOL_SOCKET, option, bytes, &raw mut length)
    };
    assert_eq!(result, 0);
    bytes as usize
}
