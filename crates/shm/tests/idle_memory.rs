//! What peers cost a receiver: 2, 64 and 1,024 peers have all sent a burst that exceeds their
//! credit, and are idle again.

use bellwire_device::{
    AccessMode, FunctionAddress, Kind, LinkId, PacketHeader, Sink, Status, Transport, Verdict,
};
use bellwire_ring::memory::View;
use bellwire_shm::{ShmDevice, ShmTransport};
use std::time::{Duration, Instant};

/// Counts packets, and checks that each sender's packets come in order.
struct Counting {
    next: Vec<u64>,
    taken: usize,
}

impl Sink for Counting {
    fn packet(
        &mut self,
        _link: LinkId,
        from: FunctionAddress,
        [_, _, argument]: [u64; 3],
        payload: View<'_>,
    ) -> Verdict {
        let next = &mut self.next[from.node as usize];
        assert_eq!(argument, *next, "packets of node {} come in order", from.node);
        assert_eq!(payload.len(), BYTES);
        *next += 1;
        self.taken += 1;
        Verdict::Taken
    }

    fn link_down(&mut self, _link: LinkId, peer: FunctionAddress, why: Status) {
        panic!("the link to {peer} went down: {why}");
    }
}

const BYTES: usize = 1000;
const WATCHDOG: Duration = Duration::from_secs(120);

/// Bytes of memory that back all pairs' segments. Both ends are in this process, so the
/// proportional share (PSS) of all mappings is the total.
fn pair_bytes() -> usize {
    let maps = std::fs::read_to_string("/proc/self/smaps").expect("Linux has it");
    let (mut inside, mut kilobytes) = (false, 0);
    for line in maps.lines() {
        if line.contains("-") && line.split_whitespace().count() >= 5 && !line.contains(" kB") {
            inside = line.contains("bellwire pair");
        } else if inside && let Some(rest) = line.strip_prefix("Pss:") {
            kilobytes += rest.trim().trim_end_matches(" kB").parse::<usize>().expect("a number");
        }
    }
    kilobytes * 1024
}

fn open(job: &str, node: u32) -> ShmTransport {
    let device = ShmDevice::open(job, AccessMode::Owner, Some(node)).expect("the job is ours");
    device.open_function(0, 16).expect("a function")
}

fn counter(transport: &ShmTransport, name: &str) -> u64 {
    transport.counter_rows().iter().find(|row| row.0 == name).expect("a counter").1
}

fn burst_then_idle(peers: usize) -> usize {
    let job = format!("idle-memory-{}-{peers}", std::process::id());
    let before = pair_bytes();
    let mut receiver = open(&job, 0);
    let mut sink = Counting { next: vec![0; peers + 1], taken: 0 };
    let mut senders: Vec<_> = (1..=peers as u32).map(|node| open(&job, node)).collect();
    let mut nothing = Counting { next: Vec::new(), taken: 0 };
    let to = FunctionAddress { node: 0, function: 0 };
    let links: Vec<_> = senders.iter_mut().map(|s| s.link(to, WATCHDOG).expect("a link")).collect();

    // Bursts: each sends until it is refused, while nobody receives, so that many go on in their
    // own memory.
    let started = Instant::now();
    let each = 200;
    let mut sent = vec![0_u64; peers];
    while sent.iter().any(|&count| count < each) {
        assert!(started.elapsed() < WATCHDOG, "sent {sent:?}, taken {}", sink.taken);
        for ((sender, link), sent) in senders.iter_mut().zip(&links).zip(&mut sent) {
            let body = [*sent as u8; BYTES];
            while *sent < each {
                let header = PacketHeader::new(Kind::Send, 1, 1, *sent);
                if sender.send(*link, header, &[], View::of(&body)).is_err() {
                    break;
                }
                *sent += 1;
            }
            sender.poll(&mut nothing, 16);
        }
        while receiver.poll(&mut sink, 64) > 0 {}
    }
    while sink.taken < peers * each as usize {
        assert!(started.elapsed() < WATCHDOG, "taken {} of {}", sink.taken, peers * each as usize);
        receiver.poll(&mut sink, 64);
    }

    let went_host: u64 = senders.iter().map(|s| counter(s, "went_to_host_memory")).sum();
    assert!(went_host > 0, "the bursts are longer than the credit, so some go on in host memory");

    // Idle: the receiver prepares to sleep, which parks all lanes; the senders get their turn to
    // release pages.
    let quiet = Instant::now();
    loop {
        while !receiver.arm() {
            receiver.poll(&mut sink, 64);
        }
        for sender in &mut senders {
            std::thread::sleep(Duration::from_micros(10));
            sender.poll(&mut nothing, 16);
        }
        receiver.poll(&mut sink, 64);
        let free = counter(&receiver, "credit_chunks_free");
        if free == 128 && pair_bytes() - before <= peers * 4096 {
            break;
        }
        let (held, used) = (128 - free, pair_bytes() - before);
        assert!(
            quiet.elapsed() < WATCHDOG,
            "{held} chunks are held and {used} bytes used by {peers} idle peers"
        );
    }
    assert_eq!(counter(&receiver, "lanes_polled"), 0, "nobody is polled");
    (pair_bytes() - before) / peers
}

/// Memory follows what is in flight, not the number of peers. An idle peer holds no credit and
/// costs one page, whatever it did before.
// shows: D-14, D-16, D-17, D-18, D-20, D-22
#[test]
fn an_idle_peer_costs_one_page() {
    let wanted = 16_384;
    let limits = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let _ = rustix::process::setrlimit(
        rustix::process::Resource::Nofile,
        rustix::process::Rlimit {
            current: limits.maximum.map(|m| m.min(wanted)).or(Some(wanted)),
            ..limits
        },
    );
    for peers in [2, 64, 1024] {
        let each = burst_then_idle(peers);
        println!("{peers} idle peers: {each} bytes each");
        assert!(each <= 4096);
    }
}
