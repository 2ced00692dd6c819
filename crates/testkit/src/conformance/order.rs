//! Order: messages from one queue pair to another are received in the order of posting, however
//! they travel.

use super::Fixture;
use super::bytes::{Random, assert_same, pattern};
use super::stage::{A, B, Stage, accepted};
use bellwire::{Message, Operation, Put, Rights};

/// Short messages are received in the order in which one queue pair sent them to another, with
/// receives posted at random times.
// shows: H-11
pub fn short_messages(fixture: &dyn Fixture) {
    const MESSAGES: usize = 10_000;
    let mut stage = Stage::pair(fixture);
    let to = stage.nodes[B].address();
    let queue_pair = stage.nodes[A].queue_pair;
    let mut random = Random(11);
    let (mut sent, mut received, mut receives) = (0, 0, 0);
    while received < MESSAGES {
        for _ in 0..random.below(200) {
            let bytes = (sent as u64).to_le_bytes().repeat(1 + sent % 9);
            let send = Message::inline(&bytes).to(to).unsignaled().immediate(sent as u64);
            if sent == MESSAGES || !accepted(stage.nodes[A].function.post_send(queue_pair, send)) {
                break;
            }
            sent += 1;
        }
        for _ in 0..random.below(200) {
            if receives == MESSAGES || receives - received == 250 {
                break;
            }
            stage.nodes[B].receive(72, receives as u64);
            receives += 1;
        }
        stage.turn();
        while let Some(done) = stage.nodes[B].poll() {
            assert_eq!(done.immediate(), Some(received as u64), "{done:?}; {}", stage.story());
            assert_eq!(done.context, received as u64, "receives are used in order: {done:?}");
            let expected = (received as u64).to_le_bytes().repeat(1 + received % 9);
            assert_same(&done.buffer.unwrap().into_bytes(done.length), &expected, "the data");
            received += 1;
        }
    }
}

/// Short and long messages between two queue pairs keep their order, whether the receives come
/// first or last.
// shows: C-53, H-25
pub fn short_and_long_messages(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let to = stage.nodes[B].address();
    let eager = stage.nodes[A].function.limits().eager_bytes;
    let mut random = Random(53);
    let sizes = [0, 8, 100, eager, eager + 1, 2 * eager, 100_000, 300_000];
    for round in 0..40 {
        let count = 1 + random.below(40);
        let chosen: Vec<_> = (0..count).map(|_| sizes[random.below(sizes.len())]).collect();
        stage.case = format!("round {round}: {chosen:?}");
        let receives_first = random.below(count + 1);
        for number in 0..receives_first {
            stage.nodes[B].receive(300_000, number as u64);
        }
        for (number, &size) in chosen.iter().enumerate() {
            let bytes = pattern((round * 100 + number) as u64, size);
            stage.nodes[A].send(Message::buffer(bytes).to(to).context(number as u64));
        }
        for _ in 0..random.below(20) {
            stage.turn();
        }
        for number in receives_first..count {
            stage.nodes[B].receive(300_000, number as u64);
        }
        for (number, &size) in chosen.iter().enumerate() {
            let done = stage.success(B);
            assert_eq!((done.context, done.length), (number as u64, size), "{}", stage.case);
            let bytes = pattern((round * 100 + number) as u64, size);
            assert_same(&done.buffer.unwrap().into_bytes(size), &bytes, &stage.case);
        }
        let mut contexts: Vec<_> = (0..count).map(|_| stage.success(A).context).collect();
        contexts.sort();
        assert_eq!(contexts, (0..count as u64).collect::<Vec<_>>(), "each completes once");
    }
}

/// Short messages to one peer complete in order, one completion each, and the completion queue
/// wraps around many times.
// shows: C-13
pub fn completions_of_short_sends(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let to = stage.nodes[B].address();
    let node = &mut stage.nodes[A];
    let small = node.function.create_completion_queue(7).expect("a queue");
    let options = bellwire::QueuePairOptions::new(small);
    let queue_pair = node.function.create_queue_pair(&options).expect("a queue pair");
    let (mut posted, mut finished) = (0, 0);
    let mut random = Random(13);
    while finished < 2_000 {
        for _ in 0..random.below(8) {
            let send = Message::inline(&[1; 8]).to(to).context(posted);
            if accepted(stage.nodes[A].function.post_send(queue_pair, send)) {
                posted += 1;
            }
        }
        for _ in 0..(posted - finished).min(random.below(8) as u64) {
            let done = stage.next_of(A, small);
            assert!(done.status.is_success(), "{done:?}");
            assert_eq!(done.context, finished, "in the order of posting");
            finished += 1;
        }
        // Nobody else takes these.
        while stage.nodes[B].state().backlog_messages > 0 {
            stage.nodes[B].receive(8, 0);
            stage.success(B);
        }
    }
}

/// When a message is received that was posted after a put, the put's bytes are in memory, for short
/// and long messages. The same holds when the put's event comes.
// shows: C-23
pub fn puts_before_messages(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let to = stage.nodes[B].address();
    let theirs = stage.nodes[B].queue_pair;
    let eager = stage.nodes[A].function.limits().eager_bytes;
    const ROOM: usize = 400_000;
    let node = &mut stage.nodes[B];
    let regions = [
        node.function.allocate_region(ROOM, Rights::REMOTE_WRITE).expect("allocated"),
        node.function.register(vec![0; ROOM], Rights::REMOTE_WRITE).expect("registered"),
    ];
    for round in 0..40 {
        let size = [8, eager, eager + 1, 100_000, ROOM][round % 5];
        let region = &regions[round / 5 % 2];
        let message = [8, 2 * eager][round / 10 % 2];
        stage.case = format!("round {round}: {size} bytes and a message of {message}");
        let bytes = pattern(round as u64, size);
        stage.nodes[B].receive(message, 1);
        let key = region.remote_key().slice(0, size as u64);
        let mut put = Put::new(bytes.clone(), key);
        if round % 2 == 1 {
            put = put.event(theirs.number, None);
        }
        stage.nodes[A].put(put);
        stage.nodes[A].send(Message::buffer(vec![1; message]).to(to));
        let done = stage.success(B);
        let mut found = vec![0; size];
        region.read(0, &mut found);
        assert_same(&found, &bytes, &stage.case);
        if round % 2 == 1 {
            assert_eq!(done.operation, Operation::RemotePut, "the event comes before the message");
            stage.success(B);
        }
        stage.success(A);
        stage.success(A);
    }
}

/// Messages of many queue pairs are mixed; those of each are received in the order of posting, also
/// from the backlog.
// shows: D-02
pub fn many_queue_pairs_interleaved(fixture: &dyn Fixture) {
    const PAIRS: usize = 16;
    const EACH: usize = 100;
    let mut stage = Stage::pair(fixture);
    let mut random = Random(2);
    let ours: Vec<_> = (0..PAIRS).map(|_| stage.nodes[A].another()).collect();
    let theirs: Vec<_> = (0..PAIRS).map(|_| stage.nodes[B].another()).collect();
    let to: Vec<_> = theirs.iter().map(|&pair| stage.nodes[B].address_of(pair)).collect();
    let (mut sent, mut received) = ([0; PAIRS], [0; PAIRS]);
    let mut receives = [0; PAIRS];
    let eager = stage.nodes[A].function.limits().eager_bytes;
    while received != [EACH; PAIRS] {
        for _ in 0..50 {
            let pair = random.below(PAIRS);
            if sent[pair] < EACH {
                let bytes = vec![sent[pair] as u8; random.below(eager.min(700))];
                let value = (pair * EACH + sent[pair]) as u64;
                let send = Message::inline(&bytes).to(to[pair]).immediate(value).unsignaled();
                if accepted(stage.nodes[A].function.post_send(ours[pair], send)) {
                    sent[pair] += 1;
                }
            }
            let pair = random.below(PAIRS);
            if random.below(2) == 0 && receives[pair] < EACH {
                stage.nodes[B].receive_on(theirs[pair], 700, 0);
                receives[pair] += 1;
            }
        }
        stage.turn();
        while let Some(done) = stage.nodes[B].poll() {
            let pair = theirs.iter().position(|&pair| pair == done.queue_pair).expect("ours");
            assert_eq!(done.immediate(), Some((pair * EACH + received[pair]) as u64));
            let bytes = done.buffer.unwrap().into_bytes(done.length);
            assert!(bytes.iter().all(|&byte| byte == received[pair] as u8));
            received[pair] += 1;
        }
    }
}
