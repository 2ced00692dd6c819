//! Waiting in the three ways, across threads.

use crate::world::*;
use bellwire::*;
use std::time::Duration;

/// Two threads answer each other in all three ways of waiting, and no wake-up is lost.
#[test]
fn ping_pong_in_all_ways() {
    for how in [Wait::Spin, Wait::Adaptive, Wait::Block] {
        let mut world = World::pair();
        let addresses = [world.sides[0].address(), world.sides[1].address()];
        const ROUNDS: u64 = 300;
        std::thread::scope(|scope| {
            for (number, side) in world.sides.iter_mut().enumerate() {
                scope.spawn(move || {
                    let to = addresses[1 - number];
                    side.receive(4096, 0);
                    for round in 0..ROUNDS {
                        if number == 0 || round > 0 {
                            let length = if round % 10 == 9 { 3000 } else { 8 };
                            side.send(to, &pattern(length, round), round);
                        }
                        loop {
                            let done = side.function.wait(side.cq, how, LONG).unwrap();
                            assert_eq!(done.status, Status::Success);
                            if done.operation == Operation::Receive {
                                break;
                            }
                        }
                        side.receive(4096, 0);
                    }
                    // The last answers are still in flight.
                    if number == 1 {
                        side.send(to, b"end", 0);
                    }
                    while side.function.wait(side.cq, how, Duration::from_millis(20)).is_ok() {}
                });
            }
        });
        world.settle();
        world.check_counters();
    }
}

/// A wait ends at its deadline with a named error, in all three ways.
#[test]
fn a_wait_ends_at_its_deadline() {
    let mut world = World::pair();
    let side = &mut world.sides[0];
    for how in [Wait::Spin, Wait::Adaptive, Wait::Block] {
        let ended = side.function.wait(side.cq, how, Duration::from_millis(5)).unwrap_err();
        assert!(matches!(ended, Error::TimedOut { .. }));
    }
    let listener = side.function.listen(1).unwrap();
    let ended = side.function.wait_request(listener, Wait::Block, Duration::from_millis(5));
    assert!(matches!(ended, Err(Error::TimedOut { .. })));
}

/// The descriptor for `poll` becomes readable when a message comes, after it was armed.
#[test]
fn the_descriptor_wakes_a_poll_loop() {
    let mut world = World::pair();
    let to = world.sides[1].address();
    world.settle();
    world.sides[1].receive(8, 1);
    assert!(world.sides[1].function.arm().unwrap(), "nothing to do yet");
    world.sides[0].send(to, b"wake", 1);
    world.sides[0].turn();
    let fd = world.sides[1].function.wait_fd();
    let mut waiting = [rustix::event::PollFd::new(&fd, rustix::event::PollFlags::IN)];
    let limit = rustix::event::Timespec { tv_sec: 20, tv_nsec: 0 };
    assert_eq!(rustix::event::poll(&mut waiting, Some(&limit)).unwrap(), 1);
    let (_, b) = world.both();
    assert_eq!(bytes(b.function.poll(b.cq).unwrap().unwrap()), b"wake");
    world.sides[0].send(to, b"again", 2);
    world.sides[0].turn();
    assert!(!world.sides[1].function.arm().unwrap(), "something is to do");
}

/// Other work still progresses while each poll of a program finds a message. A long message for
/// another queue pair is fetched, though the program does not poll that pair's queue.
#[test]
fn a_busy_receiver_still_does_its_deferred_work() {
    let mut world = World::pair();
    let (a, b) = world.both();
    let aside = b.function.create_completion_queue(4).unwrap();
    let second = b.function.create_queue_pair(&QueuePairOptions::new(aside)).unwrap();
    let long = pattern(500_000, 1);
    b.function.post_receive(second, vec![0; long.len()], 7).unwrap();
    let to_second = b.function.query(second).unwrap().address;
    a.function.post_send(a.qp, Message::buffer(long.clone()).to(to_second).context(9)).unwrap();

    let other = a.function.create_queue_pair(&QueuePairOptions::new(a.cq)).unwrap();
    let to = b.address();
    let fetched = (0..1_000_u64).any(|number| {
        b.function.post_receive(b.qp, vec![0; 8], number).unwrap();
        let number_bytes = number.to_le_bytes();
        let send = Message::inline(&number_bytes).to(to).unsignaled();
        a.function.post_send(other, send).unwrap();
        let found = b.function.poll(b.cq).unwrap().expect("there is always a message");
        assert_eq!(found.context, number);
        a.function.poll(a.cq).unwrap().is_some_and(|done| done.context == 9)
    });
    assert!(fetched, "the long message waits as long as short ones come");
    let done = b.function.poll(aside).unwrap().expect("it has arrived");
    assert_eq!(bytes(done), long);
}

/// A thread that waits in `Block` sleeps in the kernel, and does not poll until its deadline.
#[test]
fn a_blocking_wait_sleeps() {
    let sleeps = || {
        // SAFETY: the kernel fills in what is ours.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage), 0);
            usage
        };
        usage.ru_nvcsw
    };
    let mut world = World::pair();
    let side = &mut world.sides[0];
    let before = sleeps();
    let ended = side.function.wait(side.cq, Wait::Block, Duration::from_millis(5));
    assert!(matches!(ended, Err(Error::TimedOut { .. })));
    assert!(sleeps() > before);
}
