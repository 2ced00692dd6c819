//! One that speaks the protocol of datagrams by hand: a socket of UDP and a queue pair of its own.

use crate::calls::{LIMIT_MS, bind, connect, good, open, poll, receive, send};
use bellwire_rdma::{
    Access, Attributes, Bytes, Capacity, Context, CqId, Datagram, HostDevice, Mask, Operation,
    QpState, QueuePairOptions, SendRequest, Service, Sge, WorkOpcode,
};
use bellwire_rsockets::datagram::frame::{Ask, Hello, Seal};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::time::{Duration, Instant};

const ROOM: usize = 40 + 4096;
const KEY: u32 = 77;

pub struct Stranger {
    pub udp: UdpSocket,
    /// Its thread sees to what is under way.
    context: Context,
    queue: CqId,
    number: u32,
    key: u32,
    /// Freed after the context: fields drop in order.
    memory: Vec<u8>,
}

impl Stranger {
    pub fn new() -> Stranger {
        let udp = UdpSocket::bind("127.0.0.1:0").expect("a port");
        udp.set_read_timeout(Some(Duration::from_millis(LIMIT_MS as u64))).expect("an option");
        let device = &HostDevice::all()[0];
        let context = Context::open(&device.below).expect("the first device opens");
        let mut adapter = context.lock();
        let domain = adapter.create_domain().unwrap();
        let queue = adapter.create_queue(64, None, 0).unwrap();
        let options = QueuePairOptions {
            service: Service::Datagram,
            domain,
            send_queue: queue,
            receive_queue: queue,
            shared: None,
            capacity: Capacity {
                sends: 32,
                receives: 1,
                send_parts: 1,
                receive_parts: 1,
                inline_bytes: 64,
            },
            signal_all: true,
            object: 0,
        };
        let number = adapter.create_queue_pair(&options).unwrap();
        let (mut new, _) = adapter.query(number).unwrap();
        let states = [QpState::Init, QpState::ReadyToReceive, QpState::ReadyToSend];
        let masks = [Mask::PKEY_INDEX | Mask::PORT | Mask::QKEY, Mask::empty(), Mask::SEND_PSN];
        for (state, mask) in states.into_iter().zip(masks) {
            new = Attributes { state, qkey: KEY, port: 1, ..new };
            adapter.modify(number, Mask::STATE | mask, &new).unwrap();
        }
        let mut memory = vec![0; ROOM];
        let (start, base) = (memory.as_mut_ptr(), memory.as_ptr() as u64);
        // SAFETY: the memory outlives the context, and is only read here.
        let key = unsafe { adapter.register(domain, start, ROOM, base, Access::LOCAL_WRITE) };
        drop(adapter);
        Stranger { udp, context, queue, number, key: key.unwrap(), memory }
    }

    pub fn port(&self) -> u16 {
        self.udp.local_addr().expect("it is bound").port()
    }

    /// The way to a port of the loopback.
    pub fn ask(&mut self, port: u16) -> Hello {
        let frame = Ask { nonce: 5, data: None }.emit();
        self.udp.send_to(&frame, ("127.0.0.1", port)).expect("sent");
        let mut answer = [0; 100];
        let hello = loop {
            let length = self.udp.recv(&mut answer).expect("an answer");
            // A way that is a second old is asked for again.
            if Ask::parse(&answer[..length]).is_none() {
                break Hello::parse(&answer[..length]).expect("it is one");
            }
        };
        assert_eq!(hello.nonce, 5);
        assert_eq!(hello.seal.from.port(), self.port());
        hello
    }

    /// Sends bytes to a queue pair.
    pub fn send(&mut self, way: &Hello, bytes: &[u8]) {
        let to = Datagram { host: way.host, queue_pair: way.queue_pair, key: way.key };
        let request = SendRequest {
            id: 1,
            operation: Operation::default(),
            bytes: Bytes::Inline(bytes),
            signaled: true,
            solicited: false,
            fence: false,
            to: Some(to),
        };
        self.context.lock().post_send(self.number, &request).unwrap();
        self.completion(WorkOpcode::Send);
    }

    /// Posts its receive.
    pub fn post(&mut self) {
        let address = self.memory.as_ptr() as u64;
        let part = Sge { address, length: ROOM as u32, key: self.key };
        self.context.lock().post_receive(self.number, 2, &[part]).unwrap();
    }

    /// The way to it, with a seal of its own.
    pub fn hello(&self, nonce: u64, token: u64) -> Hello {
        let from = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1);
        let (host, queue_pair) = (self.context.lock().host(), self.number);
        Hello { nonce, seal: Seal { token, from }, host, queue_pair, key: KEY }
    }

    /// What came into its receive; `None`: something came with a question instead.
    pub fn received(&mut self) -> Option<Vec<u8>> {
        let limit = Instant::now() + Duration::from_millis(LIMIT_MS as u64);
        let mut frame = [0; 100];
        self.udp.set_nonblocking(true).expect("an option");
        let received = loop {
            assert!(Instant::now() < limit, "nothing comes");
            if let Some(done) = self.context.lock().poll(self.queue)
                && done.opcode == WorkOpcode::Receive
            {
                break Some(self.memory[40..done.length as usize].to_vec());
            }
            if let Ok(length) = self.udp.recv(&mut frame)
                && Ask::parse(&frame[..length]).is_some_and(|ask| ask.data.is_some())
            {
                break None;
            }
            std::thread::yield_now();
        };
        self.udp.set_nonblocking(false).expect("an option");
        received
    }

    /// Waits for a completion.
    fn completion(&mut self, opcode: WorkOpcode) {
        let limit = Instant::now() + Duration::from_millis(LIMIT_MS as u64);
        loop {
            assert!(Instant::now() < limit, "no completion of {opcode:?}");
            match self.context.lock().poll(self.queue) {
                Some(done) if done.opcode == opcode => return,
                _ => std::thread::yield_now(),
            }
        }
    }
}

/// Seals that were given to nobody, or to another address, are not heard. `checked`: otherwise they
/// are, because a fault is planted.
pub fn seals_are_checked(checked: bool) {
    let server = open(libc::SOCK_DGRAM);
    let port = bind(&server);
    let mut stranger = Stranger::new();
    let hello = stranger.ask(port);
    let elsewhere = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 9);
    let forged = [
        Seal { token: hello.seal.token ^ 1, ..hello.seal },
        Seal { from: elsewhere, ..hello.seal },
        Seal { token: 0, from: elsewhere },
    ];
    let mut room = [0; 9];
    for seal in forged {
        stranger.send(&hello, &[&seal.emit()[..], b"false"].concat());
        // Another version, and too short ones, never are.
        let mut other = hello.seal.emit();
        other[14] ^= 3;
        stranger.send(&hello, &other);
        stranger.send(&hello, &hello.seal.emit()[..15]);
        stranger.send(&hello, b"");
        if !checked {
            assert_ne!(poll(&server, libc::POLLIN, LIMIT_MS), 0);
            assert_eq!(receive(&server, &mut room, 0), 5);
        }
        stranger.send(&hello, &[&hello.seal.emit()[..], b"true"].concat());
        assert_ne!(poll(&server, libc::POLLIN, LIMIT_MS), 0);
        assert_eq!(receive(&server, &mut room, 0), 4);
        assert_eq!(&room[..4], b"true");
    }
}

/// An answer with another nonce leads nowhere: datagrams go on by UDP. With the right one they go
/// to the queue pair that it names, with its seal.
pub fn nonces_are_checked() {
    let client = open(libc::SOCK_DGRAM);
    let mut stranger = Stranger::new();
    good(connect(&client, stranger.port()));
    let mut frame = [0; 100];
    let mut question = |stranger: &Stranger| {
        assert_eq!(send(&client, b"data", 0), 4);
        let (length, SocketAddr::V4(from)) =
            stranger.udp.recv_from(&mut frame).expect("a question")
        else {
            panic!("an address of IPv6")
        };
        let ask = Ask::parse(&frame[..length]).expect("it is one");
        assert_eq!(ask.data, Some(&b"data"[..]));
        (ask.nonce, from)
    };
    let (nonce, from) = question(&stranger);
    for wrong in [nonce ^ 1, 0] {
        stranger.udp.send_to(&stranger.hello(wrong, 3).emit(), from).expect("sent");
        // What follows it on the same way has been looked at once this is answered.
        stranger.ask(from.port());
        assert_eq!(question(&stranger), (nonce, from), "a wrong nonce leads nowhere");
    }
    let hello = stranger.hello(nonce, 0x0102_0304_0506_0708);
    stranger.post();
    // Who is paused for three seconds after the answer has forgotten the way, and asks with the
    // next datagram.
    let received = loop {
        stranger.udp.send_to(&hello.emit(), from).expect("sent");
        stranger.ask(from.port());
        assert_eq!(send(&client, b"direct", 0), 6);
        if let Some(received) = stranger.received() {
            break received;
        }
    };
    assert_eq!(received, [&hello.seal.emit()[..], b"direct"].concat());
}

/// Frames that are no question and no answer to one.
pub fn hostile_frames(hello: &Hello) -> Vec<Vec<u8>> {
    let mut ask = Ask { nonce: 1, data: Some(b"data") }.emit();
    let mut frames = vec![Vec::new(), vec![0; 2000], b"GET / HTTP/1.0\r\n\r\n".to_vec()];
    frames.extend((1..ask.len()).map(|length| ask[..length].to_vec()));
    for at in 0..7 {
        let mut other = ask.clone();
        other[at] ^= 0x10;
        frames.push(other);
    }
    // A length beyond its end, and one that leaves data over.
    for length in [[0, 29], [0x10, 0], [0xff, 0xfe]] {
        ask[6..8].copy_from_slice(&length);
        frames.push(ask.clone());
    }
    ask.push(0);
    frames.push(ask);
    let bytes = hello.emit();
    frames.extend((8..bytes.len()).step_by(3).map(|length| bytes[..length].to_vec()));
    frames.push(Ask { nonce: 1, data: Some(&[7; 4081]) }.emit());
    frames.push(bytes.to_vec());
    frames
}
