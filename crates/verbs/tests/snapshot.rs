//! The snapshot that `bellwire stat` reads is renewed while a function is polled, in any way.

use bellwire::*;
use bellwire_ring::memory::View;
use std::time::{Duration, Instant};

struct Nobody;

impl Inbox for Nobody {
    fn message(&mut self, _: QueuePair, _: Address, _: Option<u64>, _: View<'_>) -> bool {
        false
    }
}

/// The snapshot of the only function of this process.
fn snapshot() -> String {
    let files = stat::files_of(std::process::id()).expect("procfs");
    stat::read(&files[0]).expect("it is whole soon").expect("one is written at the opening")
}

/// A poll, a poll with an inbox and mere progress renew it.
#[test]
fn a_snapshot_is_renewed() {
    let device = Device::open(&format!("shm:snapshot-{}", std::process::id())).expect("a job");
    let mut function = device.open_function(0).expect("a function");
    let queue = function.create_completion_queue(4).expect("a queue");
    for way in 0..3 {
        let (before, since) = (snapshot(), Instant::now());
        while snapshot() == before {
            match way {
                0 => drop(function.poll(queue).expect("a queue")),
                1 => drop(function.poll_with(queue, &mut Nobody).expect("a queue")),
                _ => drop(function.progress().expect("progress")),
            }
            assert!(since.elapsed() < Duration::from_secs(8), "way {way} does not renew it");
        }
        assert!(snapshot().contains("\"looks_at_control_sockets\":"), "{}", snapshot());
    }
}
