//! Two programs find each other, agree or not, and part; strangers get nothing.

use bellwire_rdmacm::{
    Endpoint, Event, Manager, Offer, Patience, REQUEST_LIMIT, STRANGERS, Sink, reason,
};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream, UdpSocket};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const TCP: u16 = 0x0106;
const UDP: u16 = 0x0111;
/// What anything may take before it counts as a hang.
const LIMIT: Duration = Duration::from_secs(60);

fn any_port() -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)
}

fn sink() -> (Sink, Receiver<Event>) {
    let (sender, receiver) = channel();
    // A test that has ended hears nothing more.
    let sink: Sink = Arc::new(move |event| drop(sender.send(event)));
    (sink, receiver)
}

/// An end, its events, and where it is bound.
struct Side {
    end: Endpoint,
    events: Receiver<Event>,
    at: SocketAddrV4,
}

impl Side {
    fn new(manager: &Manager, space: u16) -> Side {
        let (sink, events) = sink();
        let end = manager.endpoint(space, sink);
        let at = end.bind(any_port()).expect("a free port");
        Side { end, events, at }
    }

    fn next(&self) -> Event {
        self.events.recv_timeout(LIMIT).expect("an event")
    }

    /// The passive side of a request that waits at this listener.
    fn request(&self) -> (Side, Offer) {
        let Event::Request { end, offer, local, peer } = self.next() else { panic!("a request") };
        assert_eq!(local, self.at);
        assert_eq!(peer.port(), offer.port);
        let (sink, events) = sink();
        end.adopt(&sink);
        (Side { end, events, at: local }, offer)
    }
}

fn offer(data: &[u8]) -> Offer {
    Offer { queue_pair: 17, psn: 3, data: data.to_vec(), ..Offer::default() }
}

/// A listener, and another process's manager with an end that has asked it.
fn asked(space: u16) -> (Side, Manager, Side) {
    let passive = Manager::new().expect("a manager");
    let listener = Side::new(&passive, space);
    listener.end.listen(0).expect("bound");
    let active = Manager::new().expect("a manager");
    let client = Side::new(&active, space);
    client.end.connect(listener.at, offer(b"question")).expect("bound");
    (listener, active, client)
}

/// Request, reply and ready; then the end, which both hear; then the time in which something could
/// still arrive.
#[test]
fn programs_connect_and_part() {
    let (listener, _active, client) = asked(TCP);
    let (server, request) = listener.request();
    assert_eq!((request.port, request.space), (client.at.port(), TCP));
    assert_eq!(request.data, b"question");
    server.end.accept(offer(b"answer")).expect("asked");
    let Event::Reply(reply) = client.next() else { panic!("a reply") };
    assert_eq!(reply.data, b"answer");
    client.end.ready().expect("replied");
    assert!(matches!(server.next(), Event::Ready));
    client.end.disconnect().expect("connected");
    for side in [&server, &client] {
        assert!(matches!(side.next(), Event::Disconnected));
        assert!(matches!(side.next(), Event::TimeWaitExit));
    }
    // The other side does so, too, when it hears of it.
    server.end.disconnect().expect("it was connected");
    let again = client.end.connect(listener.at, offer(b""));
    assert_eq!(again.expect_err("an end is used once").kind(), ErrorKind::InvalidInput);
}

/// Datagrams need one answer.
#[test]
fn a_service_of_datagrams_answers() {
    let (listener, _active, client) = asked(UDP);
    let (server, _) = listener.request();
    server.end.accept(Offer { qkey: 5, ..offer(b"here") }).expect("asked");
    let Event::Datagrams(reply) = client.next() else { panic!("an answer") };
    assert_eq!((reply.qkey, &reply.data[..]), (5, &b"here"[..]));
}

/// A program refuses, ends without an answer, or does not listen, and each has its reason.
#[test]
fn refusals_have_their_reason() {
    let (listener, active, client) = asked(TCP);
    let (server, _) = listener.request();
    server.end.reject(77, b"no".to_vec()).expect("asked");
    assert!(matches!(client.next(), Event::Rejected(77, data) if data == b"no"));
    // A refused end can ask again.
    client.end.connect(listener.at, offer(b"again")).expect("bound");
    drop(listener.request());
    assert!(matches!(client.next(), Event::Rejected(reason::CONSUMER, _)));
    // Another port space is another service.
    let other = Side::new(&active, UDP);
    other.end.connect(listener.at, offer(b"")).expect("bound");
    assert!(matches!(other.next(), Event::Rejected(reason::NO_SERVICE, _)));
    let nobody = listener.at;
    drop(listener);
    client.end.connect(nobody, offer(b"")).expect("bound");
    assert!(matches!(client.next(), Event::Rejected(reason::NO_SERVICE, _)));
}

/// A server that listens a little later than its client asks is found.
#[test]
fn a_late_listener_is_found() {
    let manager = Manager::new().expect("a manager");
    let listener = Side::new(&manager, TCP);
    let active = Manager::new().expect("a manager");
    let client = Side::new(&active, TCP);
    let patience = Patience { silent: LIMIT, nobody: LIMIT };
    client.end.connect_within(listener.at, offer(b""), patience).expect("bound");
    // The client's question came to the same socket before this one, and has the same answer.
    let (kind, _) = answer_of(&listener);
    assert_eq!(kind, NOBODY);
    listener.end.listen(0).expect("bound");
    let (server, _) = listener.request();
    server.end.accept(offer(b"")).expect("asked");
    assert!(matches!(client.next(), Event::Reply(_)));
}

/// A port belongs to one program at a time.
#[test]
fn a_port_is_taken_once() {
    let manager = Manager::new().expect("a manager");
    let one = Side::new(&manager, TCP);
    let (sink, _events) = sink();
    let two = manager.endpoint(TCP, sink);
    assert_eq!(two.bind(one.at).expect_err("taken").kind(), ErrorKind::AddrInUse);
    drop(one.end);
    two.bind(one.at).expect("free again");
}

/// A program that ends in the middle is noticed, wherever the other one is.
#[test]
fn an_end_in_the_middle_is_noticed() {
    // Connected.
    let (listener, active, client) = asked(TCP);
    let (server, _) = listener.request();
    server.end.accept(offer(b"")).expect("asked");
    assert!(matches!(client.next(), Event::Reply(_)));
    client.end.ready().expect("replied");
    assert!(matches!(server.next(), Event::Ready));
    drop((client, active));
    assert!(matches!(server.next(), Event::Disconnected));
    // After the reply.
    let (listener, active, client) = asked(TCP);
    let (server, _) = listener.request();
    server.end.accept(offer(b"")).expect("asked");
    assert!(matches!(client.next(), Event::Reply(_)));
    drop((client, active));
    assert!(matches!(server.next(), Event::Rejected(reason::CONSUMER, _)));
    // Before it: the answer says so.
    let (listener, active, client) = asked(TCP);
    let (server, _) = listener.request();
    drop((client, active));
    match server.end.accept(offer(b"")) {
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        // The manager has not read the end yet, and the reply goes nowhere.
        Ok(()) => assert!(matches!(server.next(), Event::ConnectError(_))),
    }
}

/// Kinds of answers: a port follows, and nobody listens.
const HERE: u8 = 2;
const NOBODY: u8 = 3;

/// What a side answers to the question who listens: the kind, and the port.
fn answer_of(side: &Side) -> (u8, u16) {
    let socket = UdpSocket::bind(any_port()).expect("a port");
    socket.set_read_timeout(Some(LIMIT)).expect("a limit");
    let mut who = b"BWCM\x01\x01\x01\x06".to_vec();
    who.extend([7; 8]);
    who.extend([0, 0]);
    socket.send_to(&who, side.at).expect("sent");
    let mut answer = [0; 64];
    let (length, from) = socket.recv_from(&mut answer).expect("an answer");
    assert_eq!((length, from), (who.len(), side.at.into()));
    assert_eq!(answer[..5], *b"BWCM\x01");
    (answer[5], u16::from_be_bytes([answer[16], answer[17]]))
}

/// Where a conversation with a listener begins.
fn conversation_of(listener: &Side) -> SocketAddrV4 {
    let (kind, port) = answer_of(listener);
    assert_eq!(kind, HERE);
    SocketAddrV4::new(*listener.at.ip(), port)
}

/// A listener that works: another program connects to it.
fn still_works(listener: &Side) {
    let manager = Manager::new().expect("a manager");
    let client = Side::new(&manager, TCP);
    client.end.connect(listener.at, offer(b"")).expect("bound");
    let (server, _) = listener.request();
    server.end.accept(offer(b"")).expect("asked");
    assert!(matches!(client.next(), Event::Reply(_)));
}

/// Whether the other side has ended the connection.
fn is_ended(stream: &mut TcpStream) -> bool {
    stream.set_read_timeout(Some(LIMIT)).expect("a limit");
    match stream.read(&mut [0; 16]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

/// Strangers who say nonsense are left, more of them than a listener keeps are not kept, and one
/// who says nothing ends in time. Programs connect meanwhile.
#[test]
fn strangers_get_nothing() {
    let manager = Manager::new().expect("a manager");
    let listener = Side::new(&manager, TCP);
    listener.end.listen(0).expect("bound");
    let at = conversation_of(&listener);
    for nonsense in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        b"BWCM\x02\x01\x00\x00",
        b"BWCM\x01\x01\xff\xff",
        b"BWCM\x01\x03\x00\x00",
        b"BWCM\x01\x05\x00\x00",
    ] {
        let mut stream = TcpStream::connect(at).expect("it listens");
        stream.write_all(nonsense).expect("sent");
        assert!(is_ended(&mut stream), "{nonsense:?}");
    }
    let mut oldest = TcpStream::connect(at).expect("it listens");
    let crowd: Vec<TcpStream> =
        (0..STRANGERS).map(|_| TcpStream::connect(at).expect("it listens")).collect();
    assert!(is_ended(&mut oldest));
    still_works(&listener);
    drop(crowd);
    let mut silent = TcpStream::connect(at).expect("it listens");
    let begin = std::time::Instant::now();
    assert!(is_ended(&mut silent));
    assert!(begin.elapsed() > REQUEST_LIMIT / 2, "not at once");
    still_works(&listener);
}

/// Requests that come in one turn of the manager each take one place of the backlog. The manager's
/// thread is in the listener's sink while they come, so that it finds both at once.
#[test]
fn requests_that_come_together_take_a_place_each() {
    let manager = Manager::new().expect("a manager");
    let (heard, events) = channel();
    let (go, hold) = channel::<()>();
    let hold = Mutex::new(hold);
    let sink: Sink = Arc::new(move |event| {
        let _ = heard.send(event);
        // Without a sender nothing is held any more.
        let _ = hold.lock().expect("no panic").recv();
    });
    let end = manager.endpoint(TCP, sink);
    let at = end.bind(any_port()).expect("a free port");
    end.listen(3).expect("bound");
    let listener = Side { end, events, at };
    let conversation = conversation_of(&listener);
    let mut streams = [(); 2].map(|()| TcpStream::connect(conversation).expect("it listens"));
    // Its stream comes after those two, so they are accepted when its request is heard.
    let active = Manager::new().expect("a manager");
    let client = Side::new(&active, TCP);
    client.end.connect(at, offer(b"")).expect("bound");
    let mut requests = vec![listener.next()];
    let mut request = b"BWCM\x01\x01\x00\x28".to_vec();
    request.extend([0; 30]);
    request.extend(TCP.to_be_bytes());
    request.extend([0; 8]);
    for stream in &mut streams {
        stream.write_all(&request).expect("sent");
    }
    drop(go);
    requests.extend([listener.next(), listener.next()]);
    assert!(requests.iter().all(|event| matches!(event, Event::Request { .. })), "{requests:?}");
}

/// A listener takes as many unanswered requests as its backlog says; the next one waits for an
/// answer.
#[test]
fn a_backlog_is_kept() {
    let passive = Manager::new().expect("a manager");
    let listener = Side::new(&passive, TCP);
    listener.end.listen(2).expect("bound");
    let active = Manager::new().expect("a manager");
    let clients: Vec<Side> = (0..3).map(|_| Side::new(&active, TCP)).collect();
    for client in &clients {
        client.end.connect(listener.at, offer(b"")).expect("bound");
    }
    let (first, _) = listener.request();
    let (_second, _) = listener.request();
    // Long enough for a third one, if there could be one; a slow machine proves less.
    assert!(listener.events.recv_timeout(Duration::from_millis(300)).is_err());
    first.end.accept(offer(b"")).expect("asked");
    let _third = listener.request();
}
