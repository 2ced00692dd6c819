//! Network devices with a key: peers with the key are served as without one, and nobody else is
//! answered. `crates/keys/tests` shows what an adversary on the path cannot do.

use bellwire::{
    Device, DeviceOptions, Function, FunctionOptions, KeySource, Message, Result, Status,
};
use bellwire_ethernet::testing::{enter_new_namespace, ip};
use bellwire_keys::{KeyFile, public_of};
use bellwire_testkit::conformance::{self, Fixture, Node, Patience, Stage};
use bellwire_testkit::network::{Carrier, Network, assert_frames_by, assert_way};
use std::net::{Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};

/// Key files, which vanish with this.
struct Files(PathBuf);

impl Files {
    fn new() -> Files {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("bellwire-test-keys-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder).expect("a folder");
        Files(folder)
    }

    fn shared(&self, key: u8) -> PathBuf {
        self.file(&format!("shared-{key}"), &KeyFile::Shared([key; 32]))
    }

    fn private(&self, key: u8, peers: &[u8]) -> PathBuf {
        let peer = |&peer: &u8| (public_of(&[peer; 32]), format!("peer {peer}"));
        let peers = peers.iter().map(peer).collect();
        self.file(&format!("private-{key}"), &KeyFile::Private { key: [key; 32], peers })
    }

    fn file(&self, name: &str, file: &KeyFile) -> PathBuf {
        let path = self.0.join(name);
        if !path.exists() {
            file.create(&path).expect("a key file");
        }
        path
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Nodes at loopback addresses that no other test uses, under a shared key.
struct Udp {
    files: Files,
    port: u16,
    nodes: AtomicU32,
    other: String,
}

/// The first two bytes of addresses of this process.
fn network() -> String {
    format!("127.{}", 121 + std::process::id() % 120)
}

fn udp() -> Udp {
    static COUNT: AtomicU16 = AtomicU16::new(0);
    let port = 20_000 + 256 * (COUNT.fetch_add(1, Ordering::Relaxed) % 150);
    let files = Files::new();
    let key = files.shared(1);
    let other = format!("udp:{}.255.1?port={port}&key={}", network(), key.display());
    Udp { files, port, nodes: AtomicU32::new(0), other }
}

impl Udp {
    /// A node with this key file, or without one.
    fn with(&self, key: Option<&Path>) -> Node {
        let number = self.nodes.fetch_add(1, Ordering::Relaxed);
        let mut options = DeviceOptions::default().setting("port", self.port);
        if let Some(key) = key {
            options = options.setting("key", key.display());
        }
        let device = Device::open_with(&format!("udp:{}.0.{}", network(), 1 + number), &options);
        Node::of(device.expect("a device"), 0, &Default::default())
    }

    fn stage(&self, nodes: Vec<Node>) -> Stage<'_> {
        Stage::with(self, nodes)
    }
}

impl Fixture for Udp {
    fn open(&self, options: &DeviceOptions) -> Result<Device> {
        let number = self.nodes.fetch_add(1, Ordering::Relaxed);
        let key = self.files.shared(1);
        let options = options.clone().setting("port", self.port).setting("key", key.display());
        // A number that is an address is available only at that address.
        let own = options.node_asked().map(|node| Ipv4Addr::from(node).to_string());
        let own = own.filter(|own| own.starts_with(&network()));
        let address = own.unwrap_or(format!("{}.0.{}", network(), 1 + number));
        Device::open_with(&format!("udp:{address}"), &options)
    }

    fn name(&self) -> Option<&str> {
        Some(&self.other)
    }

    fn delivers_later(&self) -> bool {
        true
    }

    fn assert_way(&self, node: &Node) {
        assert_frames_by(Carrier::Udp, node);
    }
}

/// What devices must do, under a shared key by UDP.
#[test]
fn udp_does_what_devices_do() {
    for check in [
        conformance::message::every_size_and_memory,
        conformance::message::a_node_talks_to_itself,
        conformance::onesided::put_every_size_and_memory,
        conformance::order::short_and_long_messages,
        conformance::flow::floods_both_ways,
        conformance::connection::connect_talk_disconnect,
        conformance::waiting::sleepers_sleep,
        conformance::process::messages,
        conformance::process::a_killed_peer,
    ] {
        conformance::run(check, &udp());
    }
}

/// Messages that are posted together leave at the end of the call, under a key too.
#[test]
fn a_list_leaves_at_its_end() {
    conformance::batch::a_list_leaves_at_its_end(&mut Stage::pair(&udp()));
}

/// Nodes on a bridge in a namespace, which this thread enters for good, with listed keys.
struct Bridged {
    files: Files,
    way: &'static str,
    nodes: AtomicU32,
}

impl Fixture for Bridged {
    fn open(&self, options: &DeviceOptions) -> Result<Device> {
        let node = self.nodes.fetch_add(1, Ordering::Relaxed);
        ip(&format!(
            "link add n{node} type veth peer name b{node}\n\
             link set b{node} master bridge\n\
             link set b{node} up\n\
             link set n{node} up"
        ))
        .expect("a veth pair");
        let own = node as u8 + 1;
        let peers: Vec<u8> = (1..=9).filter(|&peer| peer != own).collect();
        let key = self.files.private(own, &peers);
        let options = options.clone().setting("io", self.way).setting("key", key.display());
        Device::open_with(&format!("eth:n{node}"), &options)
    }

    fn delivers_later(&self) -> bool {
        true
    }

    fn assert_opened(&self, device: &Device) {
        assert_way(device, self.way);
    }

    fn assert_way(&self, node: &Node) {
        let carrier = if self.way == "xdp" { Carrier::Xdp } else { Carrier::Packet };
        assert_frames_by(carrier, node);
    }
}

/// What devices must do, with listed keys on an Ethernet: nodes are found by broadcast.
#[test]
fn eth_does_what_devices_do() {
    for way in ["packet", "xdp"] {
        for check in [
            conformance::message::every_size_and_memory,
            conformance::onesided::get_every_size_and_memory,
            conformance::flow::floods_both_ways,
            conformance::connection::connect_talk_disconnect,
        ] {
            enter_new_namespace()
                .and_then(|()| ip("link add bridge type bridge\nlink set bridge up"))
                .expect("NOT RUN: making a network namespace needs root, and ip of iproute2");
            conformance::run(
                check,
                &Bridged { files: Files::new(), way, nodes: AtomicU32::new(0) },
            );
        }
    }
}

/// Two hosts at both ends of a veth pair, under a shared key. A sealed frame has to fit its MTU of
/// 1,500 bytes.
struct Wired {
    files: Files,
    network: Network,
}

impl Fixture for Wired {
    fn open(&self, options: &DeviceOptions) -> Result<Device> {
        let key = self.files.shared(1);
        self.network.open(&options.clone().setting("key", key.display()))
    }

    fn open_function(&self, device: &Device, options: &FunctionOptions) -> Result<Function> {
        // The host has an address that ends with its number, from 1 on. Its socket belongs there.
        let number = device.node() as u8 - 1;
        self.network.hosts[usize::from(number)].run(|| device.open_function_with(0, options))
    }

    fn delivers_later(&self) -> bool {
        true
    }

    fn assert_way(&self, node: &Node) {
        self.network.assert_way(node);
    }
}

/// What devices must do, with a key over a wire: small packets share frames, and long ones take
/// several. Over loopback no frame is full.
#[test]
fn udp_does_it_over_a_wire() {
    for check in [
        conformance::message::every_size_and_memory,
        conformance::onesided::put_every_size_and_memory,
        conformance::onesided::get_every_size_and_memory,
        conformance::order::short_and_long_messages,
        conformance::flow::floods_both_ways,
    ] {
        let network = Network::pair(Carrier::Udp);
        conformance::run(check, &Wired { files: Files::new(), network });
    }
}

/// A key comes from memory or by a callback as from a file. A callback is asked once for an
/// opening, and its error refuses the device.
#[test]
fn keys_come_from_memory_and_callbacks() {
    let network = udp();
    let open = |key: KeySource| {
        let number = network.nodes.fetch_add(1, Ordering::Relaxed);
        let options = DeviceOptions::default().setting("port", network.port).key(key);
        Device::open_with(&format!("udp:{}.0.{}", self::network(), 1 + number), &options)
    };
    let text = KeyFile::Shared([1; 32]).print();
    let asked = Arc::new(AtomicU32::new(0));
    let (count, answer) = (asked.clone(), text.clone());
    let callback = KeySource::callback(move || {
        count.fetch_add(1, Ordering::Relaxed);
        Ok(answer.clone())
    });
    let ways = [KeySource::text(text), callback, KeySource::File(network.files.shared(1))];
    let nodes: Vec<Node> = ways
        .into_iter()
        .map(|key| Node::of(open(key).expect("a device"), 0, &Default::default()))
        .collect();
    let mut stage = network.stage(nodes);
    assert_eq!(status_of_a_message(&mut stage), Status::Success);
    stage.nodes.swap(1, 2);
    assert_eq!(status_of_a_message(&mut stage), Status::Success);
    assert_eq!(asked.load(Ordering::Relaxed), 1);

    let refused = |key: KeySource| open(key).expect_err("it is refused").to_string();
    let told = refused(KeySource::callback(|| Err(std::io::Error::other("the store is locked"))));
    assert!(told.contains("the store is locked"), "{told}");
    let told = refused(KeySource::text("shared 12"));
    assert!(told.contains("line 1 is none of"), "{told}");
    // A device that cannot seal does not open without a word.
    let options = DeviceOptions::default().key(KeySource::text("shared 12"));
    let told = Device::open_with("shm:keyed", &options).expect_err("it is refused").to_string();
    assert!(told.contains("shm has no setting \"key\""), "{told}");
}

/// Sends a message from node 0 to node 1, and returns what became of it. Node 1 is polled
/// meanwhile.
fn status_of_a_message(stage: &mut Stage<'_>) -> Status {
    let to = stage.nodes[1].address();
    stage.nodes[1].receive(8, 0);
    let pair = stage.nodes[0].queue_pair;
    let sent = stage.nodes[0].function.post_send(pair, Message::inline(b"anything").to(to));
    sent.expect("it is accepted");
    let mut patience = Patience::new();
    loop {
        for _ in 0..100 {
            stage.nodes[1].function.progress().expect("it works");
            if let Some(done) = stage.nodes[0].poll() {
                return done.status;
            }
        }
        patience.spend(|| "the message does not end".to_owned());
    }
}

/// Peers whose keys do not match are unreachable for each other, whoever asks. Peers with matching
/// keys reach each other.
#[test]
fn strangers_are_not_served() {
    let network = udp();
    let file = &network.files;
    let cases = [
        ("a shared key", Some(file.shared(1)), Some(file.shared(1)), true),
        ("listed keys", Some(file.private(5, &[6])), Some(file.private(6, &[5])), true),
        ("another key", Some(file.shared(1)), Some(file.shared(2)), false),
        ("no key, asking", None, Some(file.shared(1)), false),
        ("no key, asked", Some(file.shared(1)), None, false),
        ("a key of another kind", Some(file.private(5, &[6])), Some(file.shared(1)), false),
        ("one who is not listed", Some(file.private(7, &[6])), Some(file.private(6, &[5])), false),
    ];
    for (what, near, far, reach) in cases {
        let (near, far) = (network.with(near.as_deref()), network.with(far.as_deref()));
        let mut stage = network.stage(vec![near, far]);
        let status = status_of_a_message(&mut stage);
        let expected = if reach { Status::Success } else { Status::Unreachable };
        assert_eq!(status, expected, "{what}");
    }
}

/// Who knows no key gets not one datagram, whatever it sends.
#[test]
fn strangers_hear_nothing() {
    use bellwire_protocol::discovery::seek::{self, ANY_NODE, SeekFrame};
    use bellwire_wire::frame::header::{FrameHeader, FrameKind};
    use bellwire_wire::frame::seek::SeekBody;
    let network = udp();
    let mut node = network.with(Some(&network.files.shared(1)));
    let stranger = UdpSocket::bind(format!("{}.9.9:0", self::network())).expect("a socket");
    stranger.set_nonblocking(true).expect("it works");
    let to = format!("{}.0.1:{}", self::network(), network.port);
    let mut frames = Vec::new();
    let mut question = [0; seek::FRAME_BYTES];
    let body = SeekBody { from: 9, to: ANY_NODE, frame_bytes: 1500, nonce: 7 };
    seek::emit(SeekFrame::Seek(body), 0, 0, &mut question);
    frames.push(question.to_vec());
    for &kind in FrameKind::ALL {
        let mut frame = vec![0; 200];
        let mut header = FrameHeader::new(kind, 0, 0, 77);
        header.length = 200;
        header.emit(&mut frame).expect("it has room");
        bellwire_wire::frame::check::seal(&mut frame).expect("it has room");
        frames.push(frame);
    }
    for step in 0..16 {
        let mut frame = vec![step; 200];
        frame[..8].copy_from_slice(&[0xb1, 11 | step << 4, 0, 0, 200, 0, 4, 0]);
        frames.push(frame);
    }
    for frame in &frames {
        stranger.send_to(frame, &to).expect("it is sent");
        for _ in 0..20 {
            node.function.progress().expect("it works");
        }
    }
    let mut patience = Patience::new();
    // All were seen, so an answer would be here.
    let seen = |node: &Node| {
        ["frames_plain", "requests_refused", "frames_of_no_session"]
            .map(|name| node.device_counter(name).expect("it is counted"))
            .iter()
            .sum::<u64>()
    };
    while seen(&node) < frames.len() as u64 {
        node.function.progress().expect("it works");
        patience.spend(|| format!("{} of {} were seen", seen(&node), frames.len()));
    }
    let mut answer = [0; 2000];
    let heard = stranger.recv_from(&mut answer).map_err(|error| error.kind());
    assert_eq!(heard, Err(std::io::ErrorKind::WouldBlock));
}

/// A key file that others can read, or that is none, is refused with what to do; no device is
/// opened without it.
#[test]
fn bad_key_files_are_refused() {
    use std::os::unix::fs::PermissionsExt;
    let files = Files::new();
    let key = files.shared(1);
    let open = |key: &Path| {
        Device::open(&format!("udp:127.0.0.1?key={}", key.display())).err().map(|it| it.to_string())
    };
    assert_eq!(open(&key), None);
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).expect("it is ours");
    let told = open(&key).expect("it is refused");
    assert!(told.contains("chmod 600"), "{told}");
    let told = open(&files.0.join("none")).expect("it is refused");
    assert!(told.contains("cannot be read") && told.contains("bellwire key new"), "{told}");
}
