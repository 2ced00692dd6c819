//! Flow control: full queues, STOP and GO, a backlog that fills.

use crate::world::*;
use bellwire::*;

/// A completion queue never overflows: a post without a free entry is refused, and succeeds when
/// one is free.
// shows: C-16
#[test]
fn a_completion_queue_never_overflows() {
    let mut world = World::pair();
    let to = world.sides[1].address();
    for number in 0..10 {
        world.sides[1].receive(8, number);
    }
    let a = &mut world.sides[0];
    let small = a.function.create_completion_queue(3).unwrap();
    let pair = a.function.create_queue_pair(&QueuePairOptions::new(small)).unwrap();
    a.function.post_receive(pair, vec![0; 8], 0).unwrap();
    let post = |function: &mut Function| {
        function.post_send(pair, Message::inline(b"x").to(to)).map_err(|refused| refused.error)
    };
    // One entry is reserved by the receive. The first send has to wait for its link, and reserves
    // one too.
    post(&mut a.function).unwrap();
    post(&mut a.function).unwrap();
    let full = |result| matches!(result, Err(Error::QueueFull { queue: "completion queue", .. }));
    assert!(full(post(&mut a.function)));
    world.settle();
    let a = &mut world.sides[0];
    assert!(full(post(&mut a.function)), "finished, but not polled");
    assert!(a.function.poll(small).unwrap().is_some());
    post(&mut a.function).unwrap();
    assert!(full(post(&mut a.function)));
    let refused = a.function.post_receive(pair, vec![1; 8], 0).unwrap_err();
    assert!(matches!(refused.error, Error::QueueFull { .. }));
    world.check_counters();
}

/// A full send queue refuses a post and returns the descriptor. No accepted descriptor is lost.
#[test]
fn a_full_send_queue_is_an_error_that_passes() {
    let options = FabricOptions { link_packets: 1, ..FabricOptions::default() };
    let mut world = World::new(options, 2);
    let to = world.sides[1].address();
    let a = &mut world.sides[0];
    let options = QueuePairOptions::new(a.cq).send_depth(4);
    let pair = a.function.create_queue_pair(&options).unwrap();
    let mut post = |number| {
        let send = Message::buffer(vec![number; 8]).to(to);
        a.function.post_send(pair, send).map_err(|refused| refused.error)
    };
    let (accepted, error) =
        (0..u8::MAX).find_map(|number| Some((number, post(number).err()?))).expect("a limit");
    assert!(matches!(error, Error::QueueFull { queue: "send queue", depth: 4 }));
    (0..accepted).for_each(|number| world.sides[1].receive(8, number as u64));
    world.settle();
    let received = world.sides[1].take_all(Operation::Receive);
    assert_eq!(received.len(), accepted as usize);
    for (number, received) in (0..accepted).zip(received) {
        assert_eq!(bytes(received), [number; 8]);
    }
}

/// A queue pair that its program does not read stops its senders, while another one of the same
/// function works on. When it is read, its senders continue, and nothing is lost.
// shows: H-15, H-16, D-18
#[test]
fn stop_and_go() {
    let options = FunctionOptions::default().backlog_bytes(64 << 10);
    let fabric = FabricOptions { link_packets: 4, ..FabricOptions::default() };
    let mut world = World::with(fabric, 2, &options);
    let to = world.sides[1].address();
    const COUNT: u64 = 250;
    for number in 0..COUNT {
        world.sides[0].send(to, &pattern(900, number), number);
    }
    world.settle();
    let state = world.sides[1].state();
    assert_eq!(state.counters.stops, 1);
    assert!(world.sides[0].state().posted_sends > 0, "the rest is held back");
    world.check_counters();

    // The other queue pair still receives.
    let b = &mut world.sides[1];
    let other = b.function.create_queue_pair(&QueuePairOptions::new(b.cq)).unwrap();
    b.function.post_receive(other, vec![0; 900], 1).unwrap();
    let a = &mut world.sides[0];
    let second = a.function.create_queue_pair(&QueuePairOptions::new(a.cq)).unwrap();
    let send = Message::inline(b"neighbour").to(Address::new(1, 0, other.number));
    a.function.post_send(second, send).unwrap();
    world.settle();
    assert_eq!(bytes(world.sides[1].take()), b"neighbour");

    for round in 0..COUNT / 50 {
        for number in round * 50..(round + 1) * 50 {
            world.sides[1].receive(900, number);
        }
        world.settle();
        for number in round * 50..(round + 1) * 50 {
            assert_eq!(bytes(world.sides[1].take()), pattern(900, number));
        }
    }
    assert_eq!(world.sides[0].state().posted_sends, 0);
    world.check_counters();
}

/// Events wait while the completion queue has no room, in order with messages, and none is lost.
// shows: C-14, C-16
#[test]
fn events_wait_for_room_in_the_completion_queue() {
    let mut world = World::pair();
    let b = &mut world.sides[1];
    let small = b.function.create_completion_queue(2).unwrap();
    let pair = b.function.create_queue_pair(&QueuePairOptions::new(small)).unwrap();
    let region = b.function.allocate_region(64, Rights::REMOTE_WRITE).unwrap();
    let a = &mut world.sides[0];
    for number in 0..10 {
        let put = Put::new(vec![number as u8; 8], region.remote_key().slice(0, 8))
            .event(pair.number, Some(number));
        a.function.post_put(a.qp, put).unwrap();
    }
    let mut seen = Vec::new();
    while seen.len() < 10 {
        world.settle();
        let b = &mut world.sides[1];
        let event = b.function.poll(small).unwrap().expect("an event");
        assert_eq!((event.operation, event.length), (Operation::RemotePut, 8));
        assert_eq!(event.queue_pair, pair);
        seen.push(event.immediate().unwrap());
    }
    assert_eq!(seen, (0..10).collect::<Vec<_>>());
    assert_eq!(world.sides[1].function.query(pair).unwrap().counters.events_received, 10);
    assert!(world.sides[1].function.poll(small).unwrap().is_none());
    world.check_counters();
}

/// Receives of a shared queue serve all its queue pairs, in order for each.
#[test]
fn a_shared_receive_queue_serves_all_its_queue_pairs() {
    let mut world = World::pair();
    let b = &mut world.sides[1];
    let shared = b.function.create_shared_receive_queue(64).unwrap();
    let options = QueuePairOptions::new(b.cq).shared_receive(shared);
    let pairs: Vec<QueuePair> =
        (0..4).map(|_| b.function.create_queue_pair(&options).unwrap()).collect();
    let refused = b.function.post_receive(pairs[0], vec![0; 8], 0).unwrap_err();
    assert!(matches!(refused.error, Error::WrongState { .. }));
    // Half of the messages find a receive, the other half waits for one.
    for number in 0..16 {
        b.function.post_shared_receive(shared, vec![0; 8], number).unwrap();
    }
    for number in 0..32u64 {
        let to = Address::new(1, 0, pairs[number as usize % 4].number);
        world.sides[0].send(to, &number.to_le_bytes(), number);
    }
    world.settle();
    let b = &mut world.sides[1];
    assert_eq!(b.done.len(), 16);
    assert!(matches!(b.function.destroy_shared_receive_queue(shared), Err(Error::InUse { .. })));
    for number in 16..32 {
        b.function.post_shared_receive(shared, vec![0; 8], number).unwrap();
    }
    world.settle();
    let received = world.sides[1].take_all(Operation::Receive);
    assert_eq!(received.len(), 32);
    let mut last = [None; 4];
    for received in received {
        let slot = pairs.iter().position(|&pair| pair == received.queue_pair).unwrap();
        let number = u64::from_le_bytes(bytes(received).try_into().unwrap());
        assert_eq!(number as usize % 4, slot);
        assert!(last[slot].replace(number) < Some(number), "in order for each queue pair");
    }
    world.check_counters();
    let b = &mut world.sides[1];
    b.function.post_shared_receive(shared, vec![9; 3], 99).unwrap();
    pairs.into_iter().for_each(|pair| b.function.destroy_queue_pair(pair).unwrap());
    let left = b.function.destroy_shared_receive_queue(shared).unwrap();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].1, 99);
}

/// A shared receive without a free completion entry stays posted, and its message waits.
#[test]
fn a_shared_receive_waits_for_room_to_complete() {
    let mut world = World::pair();
    let b = &mut world.sides[1];
    let small = b.function.create_completion_queue(1).unwrap();
    let shared = b.function.create_shared_receive_queue(8).unwrap();
    let options = QueuePairOptions::new(small).shared_receive(shared);
    let pair = b.function.create_queue_pair(&options).unwrap();
    (0..3).for_each(|n| b.function.post_shared_receive(shared, vec![0; 8], n).unwrap());
    let to = Address::new(1, 0, pair.number);
    for number in 0..3u64 {
        world.sides[0].send(to, &number.to_le_bytes(), 0);
    }
    world.settle();
    for number in 0..20u64 {
        let b = &mut world.sides[1];
        let received = b.function.poll(small).unwrap().expect("a message");
        assert_eq!(bytes(received), number.to_le_bytes());
        b.function.post_shared_receive(shared, vec![0; 8], number).unwrap();
        // The free entry belongs to an older message.
        let newest = (number + 3).to_le_bytes();
        let newest = Message::inline(&newest).to(to).unsignaled();
        let a = &mut world.sides[0];
        a.function.post_send(a.qp, newest).unwrap();
        world.settle();
    }
    world.check_counters();
}

/// While the backlog is full, messages stay in their links, and none is lost or reordered.
// shows: H-15, H-16
#[test]
fn a_full_backlog_leaves_messages_in_their_links() {
    let options = FunctionOptions::default().backlog_bytes(4096);
    let mut world = World::with(FabricOptions::default(), 4, &options);
    let to = world.sides[0].address();
    for number in 0..40 {
        (1..4).for_each(|side| world.sides[side].send(to, &pattern(1000, number), number));
    }
    world.settle();
    assert!(world.sides[0].function.counters().function.packets_stalled > 0);
    assert!(world.fabric.packets_towards(to.function_address()) > 0);
    let mut next = [0; 4];
    for number in 0..120 {
        world.sides[0].receive(1000, number);
        world.settle();
        let received = world.sides[0].take();
        let from = received.peer.node as usize;
        assert_eq!(bytes(received), pattern(1000, next[from]));
        next[from] += 1;
    }
    assert_eq!(next, [0, 40, 40, 40]);
    world.check_counters();
}

/// Unsignaled sends keep no entry of the completion queue, even if they had to wait.
#[test]
fn silent_sends_leave_no_reservation() {
    let options = FabricOptions { link_packets: 1, ..FabricOptions::default() };
    let mut world = World::new(options, 2);
    let to = world.sides[1].address();
    let a = &mut world.sides[0];
    let small = a.function.create_completion_queue(4).unwrap();
    let pair = a.function.create_queue_pair(&QueuePairOptions::new(small)).unwrap();
    for number in 0..20u64 {
        let a = &mut world.sides[0];
        for part in 0..4 {
            let bytes = (number * 4 + part).to_le_bytes();
            let send = Message::inline(&bytes).to(to).unsignaled();
            a.function.post_send(pair, send).unwrap();
        }
        (0..4).for_each(|_| world.sides[1].receive(8, 0));
        world.settle();
    }
    assert_eq!(world.sides[1].take_all(Operation::Receive).len(), 80);
    assert!(world.sides[0].function.poll(small).unwrap().is_none());
}

/// A message without a receive stays in its link while the program has a completion to take. If the
/// program then polls without posting a receive, the message goes to the backlog.
#[test]
fn messages_wait_in_their_link_while_others_are_taken() {
    let mut world = World::pair();
    let to = world.sides[1].address();
    world.sides[1].receive(8, 1);
    (0..3).for_each(|number| world.sides[0].send(to, b"message", number));
    world.sides[0].turn();
    let backlogged = |b: &Side| b.state().counters.messages_backlogged;
    let poll = |b: &mut Side| b.function.poll(b.cq).unwrap().map(|done| done.context);
    while poll(&mut world.sides[1]) != Some(1) {
        world.sides[0].turn();
    }
    let b = &mut world.sides[1];
    assert_eq!((b.function.counters().function.packets_stalled, backlogged(b)), (1, 0));
    b.receive(8, 2);
    assert_eq!((poll(b), backlogged(b)), (Some(2), 0));
    assert_eq!((poll(b), backlogged(b)), (None, 1));
    b.receive(8, 3);
    assert_eq!(poll(b), Some(3));
}

/// Receives of a shared queue whose completions had no room go on when there is some, without a
/// further post.
#[test]
fn shared_receives_go_on_when_completions_have_room() {
    let mut world = World::pair();
    let b = &mut world.sides[1];
    let small = b.function.create_completion_queue(1).unwrap();
    let shared = b.function.create_shared_receive_queue(8).unwrap();
    let options = QueuePairOptions::new(small).shared_receive(shared);
    let pair = b.function.create_queue_pair(&options).unwrap();
    (0..3).for_each(|n| b.function.post_shared_receive(shared, vec![0; 8], n).unwrap());
    // Another queue pair has a message in the backlog, too, and gets its receive meanwhile.
    let (other, to) = (b.address(), Address::new(1, 0, pair.number));
    (0..3u8).for_each(|number| world.sides[0].send(to, &[number], 0));
    world.sides[0].send(other, b"other", 0);
    world.settle();
    world.sides[1].receive(8, 9);
    world.settle();
    assert_eq!(world.sides[1].take().context, 9);
    for number in 0..3u8 {
        let b = &mut world.sides[1];
        let received = b.function.next_completion(small).unwrap().expect("a message");
        assert_eq!(bytes(received), [number]);
        world.settle();
    }
    world.check_counters();
}

/// A receive that a long message fills counts until it is complete.
#[test]
fn a_receive_under_way_still_counts() {
    let mut world = World::new(FabricOptions { pending_every: 1, ..Default::default() }, 2);
    let b = &mut world.sides[1];
    let pair = b.function.create_queue_pair(&QueuePairOptions::new(b.cq).receive_depth(2)).unwrap();
    let to = Address::new(1, 0, pair.number);
    for context in 0..2 {
        b.function.post_receive(pair, vec![0; 3000], context).unwrap();
    }
    world.sides[0].send(to, &pattern(3000, 1), 1);
    world.turn();
    world.turn();
    let b = &mut world.sides[1];
    let state = b.function.query(pair).unwrap();
    assert_eq!((state.posted_receives, state.counters.messages_unfinished), (2, 1));
    refuses!(
        b.function.post_receive(pair, vec![0; 8], 2),
        Error::QueueFull { queue: "receive queue", depth: 2 }
    );
}

/// Of more long messages than can arrive at once, the further ones wait in the backlog.
#[test]
fn long_messages_beyond_the_limit_wait() {
    let options = FunctionOptions::default().outstanding(1024);
    let fabric = FabricOptions { pending_every: 1, link_packets: 400, ..Default::default() };
    let mut world = World::with(FabricOptions { regions: 400, ..fabric }, 2, &options);
    for Side { function, cq, qp, .. } in &mut world.sides {
        let deep = QueuePairOptions::new(*cq).send_depth(300).receive_depth(300);
        *qp = function.create_queue_pair(&deep).unwrap();
    }
    let to = world.sides[1].address();
    for number in 0..260 {
        world.sides[1].receive(2000, number);
        world.sides[0].send(to, &pattern(2000, number), number);
    }
    (0..20).for_each(|_| _ = world.turn());
    let state = world.sides[1].state();
    assert_eq!((state.counters.messages_unfinished, state.backlog_messages), (256, 4));
    assert_eq!(state.posted_receives, 260);
    world.check_counters();
}

/// An unsignaled message that had to wait gives its completion entry to an event that waits for
/// one.
#[test]
fn a_silent_message_frees_its_entry_for_an_event() {
    let mut world = World::pair();
    let (from, to) = (world.sides[0].address(), world.sides[1].address());
    let a = &mut world.sides[0];
    let small = a.function.create_completion_queue(1).unwrap();
    let pair = a.function.create_queue_pair(&QueuePairOptions::new(small)).unwrap();
    let region = a.function.allocate_region(8, Rights::REMOTE_WRITE).unwrap();
    world.fabric.hold_requests(Some(from.function_address()));
    let a = &mut world.sides[0];
    a.function.post_send(pair, Message::inline(b"waits").to(to).unsignaled()).unwrap();
    assert_eq!(a.function.query(pair).unwrap().counters.sends_waited, 1);
    let b = &mut world.sides[1];
    let put = Put::new(vec![1; 8], region.remote_key()).event(pair.number, Some(6));
    b.function.post_put(b.qp, put).unwrap();
    world.settle();
    assert!(world.sides[0].function.next_completion(small).unwrap().is_none());
    world.fabric.hold_requests(None);
    world.settle();
    let event = world.sides[0].function.next_completion(small).unwrap().expect("its turn");
    assert_eq!(event.immediate(), Some(6));
    world.check_counters();
}

/// An event waits for the completion entry of an unsignaled send, which is free once that has left.
#[test]
fn an_unsignaled_send_makes_room() {
    let mut world = World::pair();
    let (to, from) = (world.sides[0].address(), world.sides[1].address().function_address());
    world.sides[0].receive(8, 1);
    let b = &mut world.sides[1];
    let small = b.function.create_completion_queue(1).unwrap();
    let pair = b.function.create_queue_pair(&QueuePairOptions::new(small)).unwrap();
    let region = b.function.allocate_region(8, Rights::REMOTE_WRITE).unwrap();
    world.fabric.hold_requests(Some(from));
    let send = Message::inline(b"waits").to(to).unsignaled();
    world.sides[1].function.post_send(pair, send).unwrap();
    let a = &mut world.sides[0];
    let put = Put::new(vec![1; 8], region.remote_key()).event(pair.number, Some(5));
    a.function.post_put(a.qp, put).unwrap();
    world.settle();
    let b = &mut world.sides[1];
    assert!(b.function.next_completion(small).unwrap().is_none());
    assert_eq!(b.function.query(pair).unwrap().backlog_messages, 1);
    world.fabric.hold_requests(None);
    world.settle();
    let b = &mut world.sides[1];
    let event = b.function.next_completion(small).unwrap().expect("there is room now");
    assert_eq!((event.operation, event.immediate()), (Operation::RemotePut, Some(5)));
    assert_eq!(b.function.query(pair).unwrap().counters.events_received, 1);
    world.check_counters();
}

/// A receive takes a message out of the backlog, and the event behind that waits for the entry of
/// its completion.
#[test]
fn an_event_waits_behind_a_message() {
    let mut world = World::pair();
    let b = &mut world.sides[1];
    let small = b.function.create_completion_queue(1).unwrap();
    let pair = b.function.create_queue_pair(&QueuePairOptions::new(small)).unwrap();
    let region = b.function.allocate_region(8, Rights::REMOTE_WRITE).unwrap();
    let a = &mut world.sides[0];
    a.send(Address::new(1, 0, pair.number), b"first", 1);
    let put = Put::new(vec![1; 8], region.remote_key()).event(pair.number, Some(5));
    a.function.post_put(a.qp, put).unwrap();
    world.settle();
    let b = &mut world.sides[1];
    assert_eq!(b.function.query(pair).unwrap().backlog_messages, 2);
    b.function.post_receive(pair, vec![0; 8], 7).unwrap();
    world.settle();
    let b = &mut world.sides[1];
    let first = b.function.next_completion(small).unwrap().expect("the message");
    assert_eq!((first.context, bytes(first)), (7, b"first".to_vec()));
    world.settle();
    let b = &mut world.sides[1];
    let event = b.function.next_completion(small).unwrap().expect("the event");
    assert_eq!(event.immediate(), Some(5));
    world.check_counters();
}

/// A message waits for a completion entry although there is a shared receive.
#[test]
fn a_shared_receive_waits_for_room() {
    let mut world = World::pair();
    let (a, b) = world.both();
    let small = b.function.create_completion_queue(1).unwrap();
    let shared = b.function.create_shared_receive_queue(4).unwrap();
    let options = QueuePairOptions::new(small).shared_receive(shared);
    let pair = b.function.create_queue_pair(&options).unwrap();
    b.function.post_shared_receive(shared, vec![0; 8], 7).unwrap();
    a.receive(8, 1);
    b.function.post_send(pair, Message::inline(b"fills").to(a.address())).unwrap();
    world.settle();
    world.sides[0].send(Address::new(1, 0, pair.number), b"waits", 1);
    world.settle();
    let b = &mut world.sides[1];
    let sent = b.function.next_completion(small).unwrap().expect("the send");
    assert_eq!(sent.operation, Operation::Send);
    assert!(b.function.next_completion(small).unwrap().is_none());
    world.settle();
    let b = &mut world.sides[1];
    let received = b.function.next_completion(small).unwrap().expect("the message");
    assert_eq!((received.context, bytes(received)), (7, b"waits".to_vec()));
    world.check_counters();
}

/// 256 long messages arrive at once. One more waits for one of them, and comes in its order.
#[test]
fn long_messages_wait_for_each_other() {
    const MOST: u64 = 256;
    let options = FunctionOptions::default().outstanding(300);
    let fabric = FabricOptions { link_packets: 1024, ..by_packets() };
    let mut world = World::with(fabric, 2, &options);
    let (a, b) = world.both();
    let deep = |cq| QueuePairOptions::new(cq).send_depth(300).receive_depth(300);
    let from = a.function.create_queue_pair(&deep(a.cq)).unwrap();
    let to = b.function.create_queue_pair(&deep(b.cq)).unwrap();
    for number in 0..=MOST {
        b.function.post_receive(to, vec![0; 1_100], number).unwrap();
        let address = Address::new(1, 0, to.number);
        let message = Message::buffer(pattern(1_100, number)).to(address);
        a.function.post_send(from, message).unwrap();
    }
    (0..30).for_each(|_| _ = a.function.progress().unwrap());
    (0..10).for_each(|_| _ = b.function.progress().unwrap());
    assert_eq!(b.function.query(to).unwrap().backlog_messages, 1);
    world.settle();
    for number in 0..=MOST {
        let received = world.sides[1].take();
        assert_eq!(received.context, number);
        assert!(bytes(received) == pattern(1_100, number));
    }
    world.check_counters();
}

/// A short message that leaves at once needs no place in the send queue.
#[test]
fn a_message_that_leaves_at_once_needs_no_place() {
    let mut world = World::pair();
    let to = world.sides[1].address();
    (0..2).for_each(|_| world.sides[0].send(to, b"link", 0));
    world.settle();
    let a = &mut world.sides[0];
    let options = QueuePairOptions::new(a.cq).send_depth(1);
    let pair = a.function.create_queue_pair(&options).unwrap();
    a.function.post_send(pair, Message::buffer(vec![1; 3_000]).to(to)).unwrap();
    let long = a.function.post_send(pair, Message::buffer(vec![1; 3_000]).to(to));
    assert!(matches!(long.unwrap_err().error, Error::QueueFull { queue: "send queue", depth: 1 }));
    a.function.post_send(pair, Message::inline(b"short").to(to)).unwrap();
    world.settle();
    (0..4).for_each(|number| world.sides[1].receive(3_000, number));
    world.settle();
    let lengths: Vec<usize> = world.sides[1].done.iter().map(|done| done.length).collect();
    assert_eq!(lengths, [4, 4, 3_000, 5]);
}
