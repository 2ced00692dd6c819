//! Senders that are stopped in the middle of a packet (SIGSTOP, a debugger), for any time.
//!
//! Such a sender keeps its lane's credit. Its extents cannot be given to others, because it writes
//! there when it goes on. The pool bounds what is kept, and no sender waits for the pool: a
//! credit-starved sender goes on in the memory of its pair.

use crate::ShmDevice;
use crate::transport::ShmTransport;
use bellwire_device::{
    AccessMode, FunctionAddress, Kind, LinkId, PacketHeader, Sink, Status, Transport, Verdict,
};
use bellwire_ring::memory::View;
use std::time::{Duration, Instant};

const WATCHDOG: Duration = Duration::from_secs(8);
const CHUNKS: u64 = 128;

/// Counts the packets of each node, and checks their order.
struct Counting(Vec<u64>);

impl Sink for Counting {
    fn packet(
        &mut self,
        _link: LinkId,
        from: FunctionAddress,
        [_, _, argument]: [u64; 3],
        _payload: View<'_>,
    ) -> Verdict {
        let next = &mut self.0[from.node as usize];
        assert_eq!(argument, *next, "packets of node {} come in order", from.node);
        *next += 1;
        Verdict::Taken
    }

    fn link_down(&mut self, _link: LinkId, peer: FunctionAddress, why: Status) {
        panic!("the link to {peer} went down: {why}");
    }
}

struct Sender {
    transport: ShmTransport,
    link: LinkId,
    sent: u64,
}

impl Sender {
    fn send(&mut self) -> bool {
        let header = PacketHeader::new(Kind::Send, 1, 1, self.sent);
        let sent = self.transport.send(self.link, header, &[], View::of(&[7; 4000])).is_ok();
        self.sent += u64::from(sent);
        sent
    }
}

fn counter(transport: &ShmTransport, name: &str) -> u64 {
    transport.counter_rows().iter().find(|row| row.0 == name).expect("a counter").1
}

/// Stopped senders keep their credit. Others get through, the receiver sleeps, and all credit comes
/// back when the stopped senders go on.
// shows: D-13, D-16, D-18
#[test]
fn stopped_senders_stop_nobody_else() {
    const STOPPED: usize = 6;
    let job = format!("stopped-{}", std::process::id());
    let open = |node| {
        let device = ShmDevice::open(&job, AccessMode::Owner, Some(node)).expect("the job is ours");
        device.open_function(0, 16).expect("a function")
    };
    let mut receiver = open(0);
    let mut sink = Counting(vec![0; STOPPED + 2]);
    let started = Instant::now();
    let mut senders: Vec<Sender> = (1..=STOPPED as u32 + 1)
        .map(|node| {
            let mut transport = open(node);
            let to = FunctionAddress { node: 0, function: 0 };
            let link = transport.link(to, WATCHDOG).expect("a link");
            Sender { transport, link, sent: 0 }
        })
        .collect();
    let mut nothing = Counting(Vec::new());
    // Each takes as much credit as it can get, in bursts that leave it dry, and is stopped while it
    // holds that.
    for sender in &mut senders[..STOPPED] {
        while sender.sent < 2_000 {
            assert!(started.elapsed() < WATCHDOG, "sent {}", sender.sent);
            while sender.sent < 2_000 && sender.send() {}
            sender.transport.poll(&mut nothing, 16);
            while receiver.poll(&mut sink, 64) > 0 {}
        }
        while sink.0.iter().sum::<u64>() % 2_000 != 0 {
            receiver.poll(&mut sink, 64);
        }
        sender.transport.set_intent(sender.link, 1);
    }
    let kept = CHUNKS - counter(&receiver, "credit_chunks_free");
    println!("{kept} of {CHUNKS} chunks are kept by {STOPPED} stopped senders");
    assert!(kept > 0, "a stopped sender keeps what it has");

    let other = &mut senders[STOPPED];
    while sink.0[STOPPED + 1] < 2_000 {
        assert!(started.elapsed() < WATCHDOG, "{:?}", sink.0);
        while other.sent < 2_000 && other.send() {}
        other.transport.poll(&mut nothing, 16);
        receiver.poll(&mut sink, 64);
    }
    while !receiver.arm() {
        assert!(started.elapsed() < WATCHDOG, "stopped senders keep the receiver awake");
        receiver.poll(&mut sink, 64);
    }
    assert!(counter(&receiver, "credit_chunks_free") < CHUNKS, "they still have it");

    for sender in &mut senders[..STOPPED] {
        sender.transport.set_intent(sender.link, 0);
        while !sender.send() {
            receiver.poll(&mut sink, 64);
        }
    }
    while sink.0[1..=STOPPED].iter().any(|&count| count < 2_001)
        || !receiver.arm()
        || counter(&receiver, "credit_chunks_free") < CHUNKS
    {
        assert!(started.elapsed() < WATCHDOG, "{:?}", sink.0);
        receiver.poll(&mut sink, 64);
    }
}
