//! The cost of sleep, and that it loses no packet.

use bellwire_device::{
    AccessMode, FunctionAddress, Kind, LinkId, PacketHeader, Sink, Status, Transport, Verdict,
};
use bellwire_ring::memory::View;
use bellwire_shm::{ShmDevice, ShmTransport};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const WATCHDOG: Duration = Duration::from_secs(8);

/// Checks that packets come in order and whole.
#[derive(Default)]
struct InOrder {
    taken: u64,
    from: Option<LinkId>,
}

impl Sink for InOrder {
    fn packet(
        &mut self,
        link: LinkId,
        _from: FunctionAddress,
        [_, _, argument]: [u64; 3],
        payload: View<'_>,
    ) -> Verdict {
        assert_eq!(argument, self.taken, "the next packet");
        assert!(payload.to_vec().iter().all(|&byte| byte == self.taken as u8), "its payload");
        self.taken += 1;
        self.from = Some(link);
        Verdict::Taken
    }

    fn link_down(&mut self, _link: LinkId, peer: FunctionAddress, why: Status) {
        panic!("the link to {peer} went down: {why}");
    }
}

fn open(job: &str, node: u32) -> ShmTransport {
    let device = ShmDevice::open(job, AccessMode::Owner, Some(node)).expect("the job is ours");
    device.open_function(0, 16).expect("a function")
}

fn counter(transport: &ShmTransport, name: &str) -> u64 {
    transport.counter_rows().iter().find(|row| row.0 == name).expect("a counter").1
}

fn send(transport: &mut ShmTransport, sink: &mut InOrder, link: LinkId, number: u64, bytes: usize) {
    let started = Instant::now();
    let body = vec![number as u8; bytes];
    let header = PacketHeader::new(Kind::Send, 1, 1, number);
    while transport.send(link, header, &[], View::of(&body)).is_err() {
        assert!(started.elapsed() < WATCHDOG, "packet {number} of {bytes} bytes finds no room");
        transport.poll(sink, 16);
    }
}

/// Sleeps until `count` packets were taken.
fn take(transport: &mut ShmTransport, sink: &mut InOrder, count: u64) {
    let started = Instant::now();
    while sink.taken < count {
        assert!(started.elapsed() < WATCHDOG, "{} of {count} packets came", sink.taken);
        if transport.poll(sink, 16) == 0 && sink.taken < count {
            transport.sleep(Some(WATCHDOG)).expect("sleeping works");
        }
    }
}

/// Bounces packets of `lengths`, in turn, between two threads that sleep between any two. Returns
/// how often both parked their lanes.
fn bounce(job: &str, rounds: u64, lengths: &[usize]) -> u64 {
    let job = format!("{job}-{}", std::process::id());
    let (mut left, mut right) = (open(&job, 0), open(&job, 1));
    let length = |round: u64| lengths[round as usize % lengths.len()];
    std::thread::scope(|scope| {
        let echo = scope.spawn(move || {
            let mut sink = InOrder::default();
            for round in 0..rounds {
                take(&mut right, &mut sink, round + 1);
                let from = sink.from.expect("a packet came");
                send(&mut right, &mut sink, from, round, length(round));
            }
            // Takes the last answer before this end goes.
            take(&mut right, &mut sink, rounds + 1);
            counter(&right, "parks")
        });
        let mut sink = InOrder::default();
        let link = left.link(FunctionAddress { node: 1, function: 0 }, WATCHDOG).expect("a link");
        for round in 0..rounds {
            send(&mut left, &mut sink, link, round, length(round));
            take(&mut left, &mut sink, round + 1);
        }
        send(&mut left, &mut sink, link, rounds, 8);
        echo.join().expect("the echo passed") + counter(&left, "parks")
    })
}

/// A lane that delivers one short packet between two sleeps stays parked, so that most sleeps need
/// no barrier.
// shows: D-14
#[test]
fn few_sleeps_park() {
    let rounds = 2_000;
    let parks = bounce("few-parks", rounds, &[8]);
    println!("{parks} parkings in {} sleeps", 2 * rounds);
    assert!(parks < rounds, "{parks} parkings");
}

/// Packets of all lengths pass between two sides that always sleep: through the small chunk, host
/// memory and the pool.
// shows: D-02, D-16
#[test]
fn all_lengths_wake_a_sleeper() {
    bounce("all-lengths", 3_000, &[0, 8, 500, 800, 832, 1_000, 4_000, 8_000, 8, 8, 8]);
}

/// Bursts that exceed a parked lane's serves and its credit reach a receiver that sleeps whenever
/// it has caught up.
// shows: D-02, D-14, D-16
#[test]
fn bursts_wake_a_sleeper() {
    let job = format!("bursts-{}", std::process::id());
    let (mut left, mut right) = (open(&job, 0), open(&job, 1));
    let (packets, done) = (40_000_u64, AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            take(&mut right, &mut InOrder::default(), packets);
            done.store(true, Ordering::Release);
        });
        let mut sink = InOrder::default();
        let link = left.link(FunctionAddress { node: 1, function: 0 }, WATCHDOG).expect("a link");
        let mut burst = 0;
        for number in 0..packets {
            send(&mut left, &mut sink, link, number, (number % 1_500) as usize);
            if burst == 0 {
                burst = 1 + number * 7 % 200;
                std::thread::sleep(Duration::from_micros(number % 50));
            }
            burst -= 1;
        }
        while !done.load(Ordering::Acquire) {
            left.poll(&mut sink, 16);
            std::thread::yield_now();
        }
    });
}
