//! Memory of the program that is registered for long, over `shm`.

use bellwire::*;
use std::ptr::NonNull;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(8);

fn open(node: u32) -> (Function, CompletionQueue, QueuePair) {
    let device = Device::open(&format!("shm:for-long-{}?node={node}", std::process::id()));
    let mut function = device.and_then(|device| device.open_function(0)).expect("a function");
    let queue = function.create_completion_queue(16).expect("a queue");
    let pair = function.create_queue_pair(&QueuePairOptions::new(queue)).expect("a pair");
    (function, queue, pair)
}

/// How many regions a function reaches by a mapping, and by the kernel's copies.
fn ways(function: &Function) -> [u64; 2] {
    let rows = function.counters().device;
    ["regions_mapped", "regions_attached"]
        .map(|name| rows.iter().find(|row| row.0 == name).expect("shm has it").1)
}

fn check() {
    let (mut near, queue, pair) = open(0);
    let (mut far, ..) = open(1);
    let mut memory = vec![0_u8; 1 << 20];
    let (start, length) = (NonNull::new(memory.as_mut_ptr()).expect("memory"), memory.len());
    // In each case: the rights for later regions, those of one, and how it is then reached.
    let cases = [
        (Rights::empty(), Rights::REMOTE_READ, [0, 1]),
        (Rights::REMOTE_READ, Rights::REMOTE_READ, [1, 1]),
        (Rights::REMOTE_READ | Rights::REMOTE_WRITE, Rights::REMOTE_READ, [1, 2]),
    ];
    for (rights, of_one, expected) in cases {
        // SAFETY: the memory stays until both regions are gone, and nobody else uses it.
        let (long, one) = unsafe {
            let long = far.register_for_long(start, length, rights).expect("memory");
            (long, far.register_foreign(start, length, of_one).expect("memory"))
        };
        let get = Get::new(one.remote_key().slice(5_000, 8), vec![1; 8]);
        near.post_get(pair, get).expect("room");
        let since = Instant::now();
        let done = loop {
            if let Some(done) = near.poll(queue).expect("a queue") {
                break done;
            }
            far.progress().expect("progress");
            assert!(since.elapsed() < LONG, "it does not end");
        };
        assert_eq!(done.status, Status::Success);
        assert_eq!(done.buffer.and_then(Buffer::into_vec), Some(vec![0; 8]));
        assert_eq!(ways(&near), expected, "{rights:?}");
        far.deregister_foreign(&one).expect("it is registered");
        far.deregister_foreign(&long).expect("it is registered");
    }
}

/// Later regions of the same rights are mapped, and others are copied by the kernel.
#[test]
fn memory_for_long_is_mapped() {
    // SAFETY: the child, which has one thread, runs the test and ends at once.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::alarm(LONG.as_secs() as u32);
            let passes = std::panic::catch_unwind(check).is_ok();
            libc::_exit(i32::from(!passes));
        }
        let mut status = -1;
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        assert_eq!(status, 0, "how the child ended, as wait(2) says it");
    }
}
