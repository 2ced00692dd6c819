//! What a hostile peer or a stranger tries, one lie at a time. Each attack fails if the lie was
//! believed.

use bellwire_rdmacm::{Endpoint, Event, Manager, Offer, STRANGERS, Sink};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// The port space TCP.
const TCP: u16 = 0x0106;

/// All attacks, by name.
pub const ATTACKS: [(&str, fn()); 6] = [
    ("lies_in_a_request", lies_in_a_request),
    ("lies_in_a_look_up", lies_in_a_look_up),
    ("answers_of_somebody_else", answers_of_somebody_else),
    ("frames_out_of_order", frames_out_of_order),
    ("a_crowd_of_strangers", a_crowd_of_strangers),
    ("a_silent_stranger", a_silent_stranger),
];

/// What anything may take before it counts as a hang, which also shows a planted fault.
fn limit() -> Duration {
    let is_planted = std::env::var_os("BELLWIRE_CANARY").is_some();
    Duration::from_secs(if is_planted { 3 } else { 60 })
}

struct Side {
    end: Endpoint,
    events: Receiver<Event>,
    at: SocketAddrV4,
    _manager: Manager,
}

fn side() -> Side {
    let manager = Manager::new().expect("a manager");
    let (sender, events) = channel();
    // A test that has ended hears nothing more.
    let sink: Sink = Arc::new(move |event| drop(sender.send(event)));
    let end = manager.endpoint(TCP, sink);
    let at = end.bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    Side { end, events, at, _manager: manager }
}

fn listening() -> Side {
    let side = side();
    side.end.listen(0).expect("bound");
    side
}

/// Sends a look-up.
fn look_up(socket: &UdpSocket, to: SocketAddrV4, bytes: &[u8]) {
    socket.send_to(bytes, to).expect("sent");
}

fn look_up_bytes(kind: u8, nonce: u64, port: u16) -> Vec<u8> {
    let mut bytes = b"BWCM\x01".to_vec();
    bytes.push(kind);
    bytes.extend(TCP.to_be_bytes());
    bytes.extend(nonce.to_be_bytes());
    bytes.extend(port.to_be_bytes());
    bytes
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    socket.set_read_timeout(Some(limit())).expect("a limit");
    socket
}

/// A conversation with a listener.
fn conversation(listener: &Side) -> TcpStream {
    let socket = socket();
    look_up(&socket, listener.at, &look_up_bytes(1, 7, 0));
    let mut answer = [0; 64];
    let (length, _) = socket.recv_from(&mut answer).expect("an answer");
    assert_eq!((length, answer[5]), (18, 2));
    let port = u16::from_be_bytes([answer[16], answer[17]]);
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("it listens");
    stream.set_read_timeout(Some(limit())).expect("a limit");
    stream
}

/// Whether the other side ends the connection, without a word.
fn is_ended(stream: &mut TcpStream) -> bool {
    match stream.read(&mut [0; 512]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

fn frame(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = b"BWCM\x01".to_vec();
    bytes.push(kind);
    bytes.extend((body.len() as u16).to_be_bytes());
    bytes.extend(body);
    bytes
}

/// An offer with two bytes of private data.
fn offer() -> Vec<u8> {
    let mut body = Vec::new();
    for word in [17u32, 3, 1] {
        body.extend(word.to_be_bytes());
    }
    body.extend([0; 16]);
    body.extend(7174u16.to_be_bytes());
    body.extend(TCP.to_be_bytes());
    body.extend([0, 0, 0, 0, 0, 0, 2, 2, b'h', b'i']);
    body
}

/// Each lie in a request ends the conversation, and the program hears of none.
fn lies_in_a_request() {
    let listener = listening();
    let good = frame(1, &offer());
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        bytes
    };
    let long = frame(1, &[offer(), vec![0; 1000]].concat());
    for (what, bytes) in [
        ("magic", with(0, b'X')),
        ("version", with(4, 2)),
        ("kind", with(5, 7)),
        ("another kind", with(5, 3)),
        ("a body shorter than its data", with(7, 41)),
        ("data longer than the body", with(47, 3)),
        ("data shorter than the body", with(47, 1)),
        ("a queue pair of 25 bits", with(8, 1)),
        ("a PSN of 25 bits", with(12, 1)),
        ("another port space", with(8 + 30, 9)),
        ("a body longer than any", long[..200].to_vec()),
    ] {
        let mut stream = conversation(&listener);
        stream.write_all(&bytes).expect("sent");
        assert!(is_ended(&mut stream), "{what}");
    }
    assert!(listener.events.try_recv().is_err(), "the program hears of a lie");
    let mut stream = conversation(&listener);
    stream.write_all(&good).expect("sent");
    let event = listener.events.recv_timeout(limit());
    assert!(matches!(event, Ok(Event::Request { .. })), "{event:?}");
}

/// Look-ups of another version or length are not answered.
fn lies_in_a_look_up() {
    let listener = listening();
    let socket = socket();
    let good = look_up_bytes(1, 7, 0);
    let mut version = good.clone();
    version[4] = 2;
    let longer = [&good[..], b"x"].concat();
    let mut kind = good.clone();
    kind[5] = 9;
    for lie in [version, longer, good[..17].to_vec(), kind, b"XXXX".to_vec()] {
        look_up(&socket, listener.at, &lie);
    }
    // Only the last question has this nonce, and it comes after the others.
    look_up(&socket, listener.at, &look_up_bytes(1, 8, 0));
    let mut answer = [0; 64];
    let (length, _) = socket.recv_from(&mut answer).expect("an answer");
    assert_eq!((length, &answer[8..16]), (18, &8u64.to_be_bytes()[..]), "a lie was answered");
}

/// Who asks for a connection believes only the port that it asked, and its own nonce.
fn answers_of_somebody_else() {
    let client = side();
    let (asked, other) = (socket(), socket());
    let trap = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let trap_port = trap.local_addr().expect("bound").port();
    let SocketAddr::V4(to) = asked.local_addr().expect("bound") else { panic!("IPv4") };
    client.end.connect(to, Offer::default()).expect("bound");
    let mut question = [0; 64];
    let (length, from) = asked.recv_from(&mut question).expect("a question");
    assert_eq!((length, question[5]), (18, 1));
    let nonce = u64::from_be_bytes(question[8..16].try_into().expect("8 bytes"));
    asked.send_to(&look_up_bytes(2, nonce ^ 1, trap_port), from).expect("sent");
    other.send_to(&look_up_bytes(2, nonce, trap_port), from).expect("sent");
    // The next question shows that both were read and not believed.
    let (_, again) = asked.recv_from(&mut question).expect("it asks again");
    assert_eq!(again, from);
    trap.set_nonblocking(true).expect("an option");
    let caught = trap.accept();
    assert!(caught.is_err_and(|error| error.kind() == ErrorKind::WouldBlock), "it came");
    // A true answer leads to a request; a repeated one to nothing more.
    let good = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = good.local_addr().expect("bound").port();
    for _ in 0..3 {
        asked.send_to(&look_up_bytes(2, nonce, port), from).expect("sent");
    }
    let (mut stream, _) = good.accept().expect("it comes");
    let mut head = [0; 8];
    stream.read_exact(&mut head).expect("a request");
    assert_eq!(head[..6], *b"BWCM\x01\x01");
    good.set_nonblocking(true).expect("an option");
    let twice = good.accept();
    assert!(twice.is_err_and(|error| error.kind() == ErrorKind::WouldBlock), "it came twice");
}

/// Frames that are repeated, or come before their time, end the conversation.
fn frames_out_of_order() {
    let listener = listening();
    let request = frame(1, &offer());
    let empty = |kind: u8| frame(kind, &[]);
    for (what, second) in [
        ("a second request", request.clone()),
        ("ready before the reply", empty(3)),
        ("an end before the reply", empty(5)),
        ("an answer to no end", empty(6)),
        ("a reply to the passive side", frame(2, &offer())),
    ] {
        let mut stream = conversation(&listener);
        stream.write_all(&request).expect("sent");
        let event = listener.events.recv_timeout(limit());
        let Ok(Event::Request { end, .. }) = event else { panic!("{what}: {event:?}") };
        stream.write_all(&second).expect("sent");
        assert!(is_ended(&mut stream), "{what}");
        drop(end);
    }
    // Without a request, too.
    for kind in 2..=6 {
        let mut stream = conversation(&listener);
        let body = if kind == 2 { offer() } else { Vec::new() };
        stream.write_all(&frame(kind, &body)).expect("sent");
        assert!(is_ended(&mut stream), "kind {kind} first");
    }
}

/// Of more strangers than a listener keeps the oldest goes, and programs still connect.
fn a_crowd_of_strangers() {
    let listener = listening();
    let mut oldest = conversation(&listener);
    let crowd: Vec<TcpStream> = (0..STRANGERS).map(|_| conversation(&listener)).collect();
    let begin = Instant::now();
    // A silent one would end in time as well, and later than this.
    oldest.set_read_timeout(Some(bellwire_rdmacm::REQUEST_LIMIT / 2)).expect("a limit");
    let ended = is_ended(&mut oldest);
    assert!(ended || begin.elapsed() < bellwire_rdmacm::REQUEST_LIMIT / 4, "the oldest stays");
    drop(crowd);
    let mut stream = conversation(&listener);
    stream.write_all(&frame(1, &offer())).expect("sent");
    let event = listener.events.recv_timeout(limit());
    assert!(matches!(event, Ok(Event::Request { .. })), "{event:?}");
}

/// A stranger who says nothing does not stay.
fn a_silent_stranger() {
    let listener = listening();
    let mut stream = conversation(&listener);
    // Longer than it may stay, also where a planted fault shortens other waits.
    let patience = limit() + 2 * bellwire_rdmacm::REQUEST_LIMIT;
    stream.set_read_timeout(Some(patience)).expect("a limit");
    assert!(is_ended(&mut stream));
}
