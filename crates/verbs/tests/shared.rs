//! A function that several threads drive.

use bellwire::{
    Address, Completion, CompletionQueue, Device, Error, Function, Message, QueuePair,
    QueuePairOptions, Result, SharedFunction, Wait,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(8);

fn open(job: &str, node: u32) -> (Function, CompletionQueue, QueuePair) {
    let name = format!("shm:shared-{job}-{}?node={node}", std::process::id());
    let mut function = Device::open(&name).and_then(|device| device.open_function(0)).unwrap();
    let queue = function.create_completion_queue(256).unwrap();
    let pair = function.create_queue_pair(&QueuePairOptions::new(queue)).unwrap();
    (function, queue, pair)
}

fn look(queue: CompletionQueue) -> impl Fn(&mut Function, bool) -> Result<Option<Completion>> {
    move |function, progress| match progress {
        true => function.poll(queue),
        false => function.next_completion(queue),
    }
}

/// Runs a test for eight seconds at most: a wait that does not end fails.
fn within_limit(test: fn()) {
    let (done, is_done) = std::sync::mpsc::channel();
    let runner = thread::spawn(move || {
        test();
        done.send(()).expect("somebody waits");
    });
    match is_done.recv_timeout(PATIENCE) {
        Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("it does not end"),
        _ => runner.join().expect("the test passes"),
    }
}

/// A thread that sleeps gets its message although another thread polls, and takes it in, for a
/// queue of its own.
#[test]
fn a_sleeper_is_told_what_another_thread_took_in() {
    let (mut far, far_queue, far_pair) = open("told", 1);
    let (mut near, queue, pair) = open("told", 0);
    let other_queue = near.create_completion_queue(64).unwrap();
    for context in 0..200 {
        near.post_receive(pair, vec![0; 8], context).unwrap();
    }
    let to = Address::new(0, 0, pair.number);
    let shared = SharedFunction::new(near, false).unwrap();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            for context in 0..200 {
                let done = shared.wait_for(Wait::Block, PATIENCE, || false, look(queue));
                assert_eq!(done.unwrap().unwrap().context, context);
            }
            over.store(true, Ordering::Relaxed);
        });
        // It polls a queue that stays empty.
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let nothing = shared.lock().unwrap().poll(other_queue).unwrap();
                assert!(nothing.is_none());
                thread::yield_now();
            }
        });
        // It sleeps at the same queue that stays empty.
        scope.spawn(|| {
            let stop = || over.load(Ordering::Relaxed);
            while !stop() {
                let short = Duration::from_millis(20);
                let nothing = shared.wait_for(Wait::Block, short, stop, look(other_queue));
                assert!(matches!(nothing, Ok(None) | Err(Error::TimedOut { .. })), "{nothing:?}");
            }
        });
        for number in 0..200u64 {
            let bytes = number.to_le_bytes();
            let message = Message::inline(&bytes).to(to);
            far.post_send(far_pair, message).unwrap();
            far.wait(far_queue, Wait::Adaptive, PATIENCE).unwrap();
            if number % 16 == 0 {
                // Long enough for the others to fall asleep.
                thread::sleep(Duration::from_millis(2));
            }
        }
        sleeper.join().unwrap();
    });
}

/// A thread that polls takes in what another one waits for in its sleep, and tells it.
#[test]
fn a_poller_tells_a_sleeper() {
    let (mut far, far_queue, far_pair) = open("tells", 1);
    let (mut near, queue, pair) = open("tells", 0);
    let other_queue = near.create_completion_queue(64).unwrap();
    for context in 0..20 {
        near.post_receive(pair, vec![0; 8], context).unwrap();
    }
    let to = Address::new(0, 0, pair.number);
    let shared = SharedFunction::new(near, false).unwrap();
    let (over, taken) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            for context in 0..20 {
                let done = shared.wait_for(Wait::Block, Duration::MAX, || false, look(queue));
                let is_next = done.is_ok_and(|done| done.unwrap().context == context);
                assert!(is_next, "message {context}");
                taken.store(context + 1, Ordering::Relaxed);
            }
        });
        scope.spawn(|| {
            let stop = || over.load(Ordering::Relaxed);
            drop(shared.wait_for(Wait::Spin, Duration::MAX, stop, look(other_queue)));
        });
        for number in 0..20u64 {
            // Long enough for the one to fall asleep and for the other to take over.
            thread::sleep(Duration::from_millis(1));
            far.post_send(far_pair, Message::inline(&number.to_le_bytes()).to(to)).unwrap();
            let since = Instant::now();
            while taken.load(Ordering::Relaxed) <= number && since.elapsed() < PATIENCE {
                far.poll(far_queue).unwrap();
                thread::yield_now();
            }
            if taken.load(Ordering::Relaxed) <= number {
                break;
            }
        }
        over.store(true, Ordering::Relaxed);
        // Whoever still sleeps wakes up and fails.
        shared.close();
        sleeper.join().unwrap();
    });
}

/// The end of the function ends all waits, and every later call.
#[test]
fn the_end_wakes_everybody() {
    within_limit(end_all_waits);
}

fn end_all_waits() {
    let (function, queue, _) = open("end", 0);
    let shared = SharedFunction::new(function, false).unwrap();
    thread::scope(|scope| {
        let waits = [Wait::Spin, Wait::Adaptive, Wait::Block, Wait::Block];
        let shared = &shared;
        let waits = waits.map(|how| {
            scope
                .spawn(move || shared.wait_for(how, Duration::MAX, || false, look(queue)).map(drop))
        });
        thread::sleep(Duration::from_millis(50));
        assert!(shared.close().is_some());
        for wait in waits {
            assert!(matches!(wait.join().unwrap(), Err(Error::Closed)));
        }
    });
    assert!(shared.close().is_none());
    assert!(matches!(shared.lock().map(drop), Err(Error::Closed)));
    assert!(matches!(shared.begin_sleep(|_| Ok(false)), Err(Error::Closed)));
}

/// A thread that polls lets another in, and a wait ends when it is told to stop.
#[test]
fn a_poller_lets_others_in_and_can_be_stopped() {
    within_limit(stop_a_poller);
}

fn stop_a_poller() {
    let (function, queue, _) = open("stop", 0);
    let shared = SharedFunction::new(function, false).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let poller = scope.spawn(|| {
            let told = || stop.load(Ordering::Relaxed);
            shared.wait_for(Wait::Spin, Duration::MAX, told, look(queue)).map(drop)
        });
        for _ in 0..100 {
            shared.lock().unwrap().progress().unwrap();
        }
        stop.store(true, Ordering::Relaxed);
        poller.join().unwrap().unwrap();
    });
    let timed_out = shared.wait_for(Wait::Block, Duration::from_millis(1), || false, look(queue));
    assert!(matches!(timed_out, Err(Error::TimedOut { .. })));
}

/// A sleep that ends is forgotten: the descriptor is not readable for it any more.
#[test]
fn sleeps_of_an_event_loop_begin_and_end() {
    let (function, queue, _) = open("loop", 0);
    let shared = SharedFunction::new(function, false).unwrap();
    let is_ready = |function: &mut Function| Ok(function.next_completion(queue)?.is_some());
    let readable = || {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let fd = shared.events();
        let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() > 0
    };
    for _ in 0..3 {
        // Opening a function may leave something to do first.
        let since = Instant::now();
        while !shared.begin_sleep(is_ready).unwrap() {
            assert!(since.elapsed() < PATIENCE, "there is always something to do");
        }
        assert!(!readable());
        drop(shared.lock().unwrap());
        assert!(readable(), "another user of the function tells the sleeper");
        drop(shared.end_sleep().unwrap());
    }
}

/// A child has no part in the function: it takes no lock, and closes nothing.
#[test]
fn a_child_shares_nothing() {
    let (function, queue, _) = open("child", 0);
    let shared = SharedFunction::new(function, false).unwrap();
    // SAFETY: the child only calls functions of this crate that take no lock, and _exit.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let refused = !shared.is_same_process()
            && shared.close().is_none()
            && matches!(shared.lock().map(drop), Err(Error::Forked))
            && matches!(shared.try_lock().map(drop), Err(Error::Forked))
            && matches!(shared.wait_until_free(), Err(Error::Forked));
        // SAFETY: leaves without running anything of the parent's.
        unsafe { libc::_exit(if refused { 0 } else { 1 }) }
    }
    let mut status = 0;
    // SAFETY: waits for the child made above.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0, "the child was refused everywhere");
    assert!(shared.is_same_process());
    assert!(shared.lock().unwrap().next_completion(queue).unwrap().is_none());
    assert!(shared.close().is_some());
}
