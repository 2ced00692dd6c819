//! How frames are received: into a mapped ring, before the kernel's stack, without a system call, a
//! wake-up or a second copy. Further tests count the calls, copies and memory of the ways to
//! receive that the HPCL paper compares itself with. (`bellwire-bench network` measures their
//! time.) The tests make their networks themselves, for which they need root and iproute2.

use bellwire::{Device, Error, Message, Operation, Wait};
use bellwire_ethernet::frame_io::FrameIo;
use bellwire_ethernet::interface::Interface;
use bellwire_ethernet::link_header::Mac;
use bellwire_ethernet::packet::PacketIo;
use bellwire_ethernet::xdp::{Mode, XdpIo};
use bellwire_testkit::conformance::{Node, Patience};
use bellwire_testkit::network::command::bellwire;
use bellwire_testkit::network::{Carrier, Network, WIRE};
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
    receive_without_calls(&Network::pair(Carrier::Xdp), xdp);
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
    let maps = std::fs::read_to_string("/proc/self/maps").expect("this process's mappings");
    let (mut seen, mut patience) = (0, Patience::new());
    while seen < FRAMES {
        far.receive(64, |_, frame| {
            let at = frame.as_ptr() as usize;
            let mapping = maps.lines().find(|line| {
                let range = line.split_whitespace().next().and_then(|range| range.split_once('-'));
                let ends = range.map(|(a, b)| [a, b].map(|end| usize::from_str_radix(end, 16)));
                matches!(ends, Some([Ok(start), Ok(end)]) if (start..end).contains(&at))
            });
            assert!(mapping.is_some_and(|line| line.contains("socket:[")), "{mapping:?}");
            seen += 1;
        });
        patience.spend(|| format!("{seen} frames"));
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
fn ping_pong(network: &Network, rounds: u64) {
    let mut stage = network.stage();
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

/// Frames of `eth` leave the kernel in the link layer and never reach its network stack, by either
/// way. Those of `udp`, the variant through the stack's soft interrupt, all do.
// shows: H-24, B-24
#[test]
fn frames_do_not_pass_the_stack() {
    const ROUNDS: u64 = 200;
    for carrier in [Carrier::Packet, Carrier::Xdp, Carrier::Udp] {
        let network = Network::pair(carrier);
        // Lets the datagrams pass that a new interface causes by itself.
        ping_pong(&network, 2);
        let before = datagrams(&network, 1);
        ping_pong(&network, ROUNDS);
        let passed = datagrams(&network, 1) - before;
        if carrier == Carrier::Udp {
            assert!(passed >= ROUNDS / 2, "{passed} datagrams of {ROUNDS} messages");
        } else {
            assert!(passed < ROUNDS / 10, "{passed} datagrams beside {ROUNDS} messages");
        }
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
        // Sends the last message out.
        for _ in 0..100 {
            node.function.progress().expect("progress");
            std::thread::sleep(Duration::from_millis(1));
        }
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
            stage.nodes[0].function.post_send(pair, send).expect("room");
            // Now the frame is on the wire, which delivers it at once.
            for _ in 0..4 {
                stage.nodes[0].function.progress().expect("progress");
            }
            if number == 0 {
                // The first one makes the link, which needs both nodes.
                let mut patience = Patience::new();
                while stage.nodes[1].poll().is_none() {
                    stage.nodes[0].function.progress().expect("progress");
                    patience.spend(|| stage.story());
                }
                continue;
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

        let readable = |node: &Node, patience_ms: i32| {
            let fd = node.function.wait_fd().as_raw_fd();
            let mut fds = [libc::pollfd { fd, events: libc::POLLIN, revents: 0 }];
            // SAFETY: one entry, which is ours.
            unsafe { libc::poll(fds.as_mut_ptr(), 1, patience_ms) > 0 }
        };
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
                if readable(&stage.nodes[1], 1)
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

/// A buffer for each message costs an allocation and a copy each. The ring allocates none, and
/// hands out the memory that the kernel wrote.
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
    let dynamic = allocation_counter::measure(|| {
        for _ in 0..FRAMES {
            let mut buffer = vec![0; 1500];
            let length = far.recv(&mut buffer).expect("it arrives");
            messages.push(buffer[..length].to_vec());
        }
    });
    assert!(dynamic.count_total >= 2 * FRAMES as u64 && messages.len() == FRAMES);

    let network = Network::pair(Carrier::Packet);
    let mut far = receive_without_calls(&network, packet);
    let (mut near, _) = open(&network, 0, packet);
    let (_, to) = open(&network, 1, |_| Ok(()));
    send(&mut near, to);
    let (mut patience, mut seen) = (Patience::new(), 0);
    let mut belongs = [0; 500];
    let mut look = || far.receive(64, |_, frame| belongs.copy_from_slice(&frame[..500]));
    let fixed = allocation_counter::measure(|| {
        while seen < FRAMES {
            seen += look();
            patience.spend(|| "no more frames".into());
        }
    });
    assert_eq!(fixed.count_total, 0);
    assert_eq!(belongs[8], FRAMES as u8 - 1);
}

/// Buffers for each connection: with TCP sockets, receive memory and descriptors to wait for grow
/// with the peers. A function has one ring and the same descriptors for all of them.
// shows: B-26
#[test]
fn buffers_for_each_connection_grow_with_peers() {
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
    let network = Network::bridged(Carrier::Packet, 5);
    let (mut io, to) = open(&network, 0, packet);
    let waits = io.wait_fds().len();
    let mut others: Vec<PacketIo> = (1..5).map(|host| open(&network, host, packet).0).collect();
    let (mut heard, mut patience) = (std::collections::HashSet::new(), Patience::new());
    while heard.len() < others.len() {
        for other in &mut others {
            let room = other.room().expect("room");
            room[..64].fill(0);
            room[2] = FUNCTION;
            other.stage(to, 64);
            other.flush();
        }
        // One poll for all.
        io.receive(64, |from, _| {
            heard.insert(from);
        });
        patience.spend(|| format!("{} peers heard", heard.len()));
    }
    assert_eq!(io.wait_fds().len(), waits);
}

/// The HPCL paper's pingpong and burst run on the real devices next to TCP, over loopback and
/// between two namespaces that the command makes. The report has ratios beside the paper's and the
/// model's. Without the privilege to make namespaces it says what to do.
// shows: H-26, H-27, H-28, B-22, B-23
#[test]
fn the_papers_programs_on_real_devices() {
    for carrier in ["udp", "eth"] {
        let arguments = ["paper", "hpcl-ethernet", "--json", "--real", carrier];
        let output = bellwire().args(arguments).output().expect("the command");
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
        for part in ["measured", "model", "model_interrupts_at_once", "paper"] {
            assert_eq!(report.matches(&format!("\"{part}\": ")).count(), 5, "{report}");
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
