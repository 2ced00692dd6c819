//! Connections: requested, accepted, rejected, ended, lost.

use super::bytes::pattern;
use super::stage::{A, B, Stage, refuses};
use super::{Fixture, Node, Patience};
use bellwire::{
    Address, Buffer, ConnectionProgress, ConnectionState, Error, Message, Operation, Put, Rights,
    Status, Wait,
};
use std::time::Duration;

/// Waits for the end of an attempt to connect.
#[track_caller]
fn outcome(stage: &mut Stage<'_>, who: usize) -> Result<Vec<u8>, Error> {
    let pair = stage.nodes[who].queue_pair;
    stage.until("the end of an attempt", |stage| {
        match stage.nodes[who].function.poll_connection(pair) {
            Ok(ConnectionProgress::Waiting) => None,
            Ok(ConnectionProgress::Connected(data)) => Some(Ok(data)),
            Err(error) => Some(Err(error)),
        }
    })
}

/// Two queue pairs connect with private data both ways, talk without naming a destination, and
/// disconnect. Then sends are refused, and both can be connected again.
// shows: M-01, M-03, M-04
pub fn connect_talk_disconnect(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let [ours, theirs] = [A, B].map(|who| stage.nodes[who].queue_pair);
    let [from, to] = [A, B].map(|who| stage.nodes[who].address());
    let most = stage.nodes[A].function.limits().private_data_bytes;
    for (round, length) in [0, 1, most].into_iter().enumerate() {
        let listener = stage.nodes[B].function.listen(500).expect("free");
        let there = Address { queue_pair: 500, ..to };
        let [question, answer] = [1, 2].map(|seed| pattern(seed + round as u64, length));
        let patience = Duration::from_secs(30);
        stage.nodes[A].function.start_connect(ours, there, &question, patience).expect("asked");
        let state = stage.nodes[A].function.query(ours).unwrap().connection;
        assert_eq!(state, ConnectionState::Connecting { to: there });
        let asking = &mut stage.nodes[A].function;
        refuses!(asking.post_send(ours, Message::inline(b"early")), Error::WrongState { .. });
        refuses!(asking.start_connect(ours, there, &[], patience), Error::WrongState { .. });
        let request = stage.until("the request", |stage| {
            stage.nodes[B].function.poll_request(listener).expect("listening")
        });
        assert_eq!((request.peer, &request.private_data), (from, &question));
        stage.nodes[B].function.accept(request, theirs, &answer).expect("accepted");
        assert_eq!(outcome(&mut stage, A).expect("connected"), answer);
        refuses!(stage.nodes[A].function.poll_connection(ours), Error::WrongState { .. });
        stage.nodes[B].function.stop_listening(listener).expect("it listened");
        let states = [(A, ours, to), (B, theirs, from)];
        for (who, pair, peer) in states {
            let state = stage.nodes[who].function.query(pair).unwrap().connection;
            assert_eq!(state, ConnectionState::Connected { peer });
            stage.nodes[1 - who].receive(100_000, 1);
            let send = Message::buffer(vec![who as u8; [8, 100_000][round % 2]]);
            stage.nodes[who].send_on(pair, send);
            assert_eq!(stage.success(who).peer, peer);
            assert_eq!(stage.success(1 - who).operation, Operation::Receive);
        }
        // Descriptors that are posted at the end come back: flushed here, and as gone there.
        stage.nodes[A].receive(10, 21);
        stage.nodes[B].receive(10, 22);
        stage.nodes[A].function.disconnect(ours).expect("connected");
        let flushed = stage.next(A);
        assert_eq!((flushed.status, flushed.context), (Status::Flushed, 21));
        assert_eq!(flushed.buffer.and_then(Buffer::into_vec).map(|bytes| bytes.len()), Some(10));
        let gone = stage.next(B);
        assert_eq!((gone.status, gone.context), (Status::PeerGone, 22));
        assert_eq!(gone.buffer.and_then(Buffer::into_vec).map(|bytes| bytes.len()), Some(10));
        for (who, pair, why) in [(A, ours, Status::Flushed), (B, theirs, Status::PeerGone)] {
            let function = &mut stage.nodes[who].function;
            let state = function.query(pair).unwrap().connection;
            assert_eq!(state, ConnectionState::Disconnected { why });
            refuses!(function.post_send(pair, Message::inline(b"late")), Error::WrongState { .. });
        }
    }
}

/// `connect` and `wait_request` wait for each other in two threads, in every wait mode.
pub fn connect_waits(fixture: &dyn Fixture) {
    for how in [Wait::Spin, Wait::Adaptive, Wait::Block] {
        let mut listening = Node::open(fixture);
        let mut asking = Node::open(fixture);
        let to = Address { queue_pair: 80, ..listening.address() };
        std::thread::scope(|scope| {
            let other = scope.spawn(move || {
                let pair = asking.queue_pair;
                let patience = super::patience::limit();
                let answer = asking.function.connect(pair, to, b"hello", patience);
                assert_eq!(answer.expect("connected"), b"welcome");
                asking.send(Message::inline(b"first"));
                asking.wait_success(how, "sent");
                asking
            });
            let patience = super::patience::limit();
            let pair = listening.queue_pair;
            let listener = listening.function.listen(80).expect("free");
            let request =
                listening.function.wait_request(listener, how, patience).expect("a request");
            assert_eq!(request.private_data, b"hello");
            listening.function.accept(request, pair, b"welcome").expect("accepted");
            listening.receive(8, 0);
            assert_eq!(listening.wait(how, "a message").length, 5);
            drop(other.join().expect("the other side"));
        });
    }
}

/// A refused request ends the attempt with the reason; the queue pair can ask again.
pub fn rejections(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let pair = stage.nodes[A].queue_pair;
    let there = Address { queue_pair: 1, ..stage.nodes[B].address() };
    // Numbers of listeners and queue pairs do not collide.
    let listener = stage.nodes[B].function.listen(1).expect("free");
    refuses!(stage.nodes[B].function.listen(1), Error::InUse { .. });
    for reason in ["", "not today"] {
        let patience = Duration::from_secs(30);
        stage.nodes[A].function.start_connect(pair, there, b"please", patience).expect("asked");
        let request = stage.until("the request", |stage| {
            stage.nodes[B].function.poll_request(listener).expect("listening")
        });
        stage.nodes[B].function.reject(request, reason.as_bytes()).expect("rejected");
        let error = outcome(&mut stage, A).expect_err("rejected");
        let told = matches!(&error, Error::Rejected { peer, reason: r } if *peer == there && r.contains(reason));
        assert!(told, "{error:?}");
        let state = stage.nodes[A].function.query(pair).unwrap().connection;
        assert!(!matches!(state, ConnectionState::Connecting { .. }), "{state:?}");
    }
    stage.connect((A, pair), (B, stage.nodes[B].queue_pair));
}

/// An attempt without an answer times out: if the node does not exist, if nobody listens, and if
/// the listener does not answer.
pub fn deadlines(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let pair = stage.nodes[A].queue_pair;
    let address = stage.nodes[B].address();
    let patience = Duration::from_millis(120);
    let silent = stage.nodes[B].function.listen(900).expect("free");
    for (to, who) in [
        (Address { node: 60_000, ..address }, "no such node"),
        (Address { queue_pair: 901, ..address }, "nobody listens"),
        (Address { queue_pair: 900, ..address }, "no answer"),
    ] {
        stage.case = who.to_owned();
        // By the device's clock, which is virtual on some devices.
        let since = stage.nodes[A].function.now();
        stage.nodes[A].function.start_connect(pair, to, b"", patience).expect("asked");
        let error = outcome(&mut stage, A).expect_err("nobody accepts");
        let waited = stage.nodes[A].function.now() - since;
        assert!(waited >= patience, "not before its time: {who}");
        assert!(matches!(error, Error::Unreachable { peer, .. } if peer == to), "{who}: {error:?}");
    }
    // An answer that comes too late connects nothing.
    let request = stage.until("the old request", |stage| {
        stage.nodes[B].function.poll_request(silent).expect("listening")
    });
    let theirs = stage.nodes[B].queue_pair;
    let _ = stage.nodes[B].function.accept(request, theirs, b"late");
    stage.rest();
    let state = stage.nodes[A].function.query(pair).unwrap().connection;
    assert!(!matches!(state, ConnectionState::Connected { .. }), "{state:?}");
    let mut patience = Patience::new();
    while matches!(
        stage.nodes[B].function.query(theirs).unwrap().connection,
        ConnectionState::Connected { .. }
    ) {
        stage.turn();
        patience.spend(|| "the late acceptor still believes in its connection".to_owned());
    }
}

/// A late listener is still found, because the request is repeated until its deadline.
pub fn a_late_listener_is_found(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let pair = stage.nodes[A].queue_pair;
    let to = Address { queue_pair: 44, ..stage.nodes[B].address() };
    let patience = super::patience::limit();
    stage.nodes[A].function.start_connect(pair, to, b"", patience).expect("asked");
    for _ in 0..300 {
        stage.turn();
        let progress = stage.nodes[A].function.poll_connection(pair).expect("patience");
        assert_eq!(progress, ConnectionProgress::Waiting);
    }
    let listener = stage.nodes[B].function.listen(44).expect("free");
    let request = stage.until("the repeated request", |stage| {
        stage.nodes[B].function.poll_request(listener).expect("listening")
    });
    let theirs = stage.nodes[B].queue_pair;
    stage.nodes[B].function.accept(request, theirs, b"").expect("accepted");
    outcome(&mut stage, A).expect("connected");
}

/// Both sides of a connection learn when the other's function is closed: all posted descriptors
/// complete, with their buffers.
pub fn a_peer_that_goes_away(fixture: &dyn Fixture) {
    let mut stage = Stage::connected(fixture);
    let pair = stage.nodes[A].queue_pair;
    let region = stage.nodes[B].function.allocate_region(4096, Rights::all()).expect("allocated");
    let key = region.remote_key();
    let long = stage.nodes[A].function.limits().eager_bytes + 1;
    let function = &mut stage.nodes[A].function;
    for context in 0..3 {
        function.post_receive(pair, vec![0; 16], context).expect("room");
    }
    // Nobody receives these, so they are in flight when the peer goes.
    for context in 3..6 {
        function.post_send(pair, Message::buffer(vec![1; long]).context(context)).expect("room");
    }
    for _ in 0..50 {
        stage.turn();
    }
    stage.nodes.truncate(1);
    let mut contexts = Vec::new();
    for _ in 0..6 {
        let done = stage.next(A);
        assert_eq!(done.status, Status::PeerGone, "{done:?}");
        assert!(done.buffer.is_some(), "{done:?}");
        contexts.push(done.context);
    }
    contexts.sort();
    assert_eq!(contexts, [0, 1, 2, 3, 4, 5]);
    let state = stage.nodes[A].function.query(pair).unwrap().connection;
    assert_eq!(state, ConnectionState::Disconnected { why: Status::PeerGone });
    let refused = stage.nodes[A].function.post_put(pair, Put::new(vec![0; 4096], key));
    refuses!(refused, Error::WrongState { .. });
}

/// Posted descriptors of an unconnected queue pair also complete when their target is closed. The
/// queue pair goes on with other targets.
pub fn a_target_that_goes_away(fixture: &dyn Fixture) {
    let mut stage = Stage::of(fixture, 3);
    let pair = stage.nodes[A].queue_pair;
    let [alive, doomed] = [B, 2].map(|who| stage.nodes[who].address());
    let key = stage.nodes[2].function.allocate_region(4096, Rights::all()).unwrap().remote_key();
    let long = stage.nodes[A].function.limits().eager_bytes + 1;
    let function = &mut stage.nodes[A].function;
    for context in 0..5 {
        let send = Message::buffer(vec![1; long]).to(doomed).context(context);
        function.post_send(pair, send).expect("room");
    }
    let theirs = stage.nodes[2].queue_pair;
    stage.until("the messages to wait there", |stage| {
        let state = stage.nodes[2].function.query(theirs).unwrap();
        (state.backlog_messages == 5).then_some(())
    });
    stage.nodes.truncate(2);
    for _ in 0..5 {
        let done = stage.next(A);
        assert_eq!(done.status, Status::PeerGone, "{done:?}");
        assert_eq!(done.peer, doomed);
    }
    let function = &mut stage.nodes[A].function;
    function.post_put(pair, Put::new(vec![1; 4096], key)).expect("accepted");
    let done = stage.next(A);
    let told = [Status::Unreachable, Status::PeerGone].contains(&done.status);
    assert!(told, "{done:?}");
    stage.nodes[B].receive(8, 0);
    let function = &mut stage.nodes[A].function;
    function.post_send(pair, Message::inline(b"going on").to(alive)).expect("room");
    stage.success(A);
    stage.success(B);
}

/// Destroying a queue pair gives back everything that was posted to it, and tells its peer.
// shows: M-04
pub fn destroying_gives_everything_back(fixture: &dyn Fixture) {
    let mut stage = Stage::connected(fixture);
    let pair = stage.nodes[A].queue_pair;
    let long = stage.nodes[A].function.limits().eager_bytes + 1;
    let function = &mut stage.nodes[A].function;
    for context in 0..4 {
        function.post_receive(pair, vec![0; 16], context).expect("room");
        let send = Message::buffer(vec![1; long]).context(context + 4);
        function.post_send(pair, send).expect("room");
    }
    for _ in 0..20 {
        stage.turn();
    }
    stage.nodes[A].function.destroy_queue_pair(pair).expect("it exists");
    let mut contexts = Vec::new();
    for _ in 0..8 {
        let done = stage.next(A);
        assert_eq!((done.status, done.queue_pair), (Status::Flushed, pair), "{done:?}");
        assert!(done.buffer.is_some(), "{done:?}");
        contexts.push(done.context);
    }
    contexts.sort();
    assert_eq!(contexts, (0..8).collect::<Vec<_>>());
    let theirs = stage.nodes[B].queue_pair;
    stage.until("the peer to hear of it", |stage| {
        let state = stage.nodes[B].function.query(theirs).unwrap().connection;
        (state == ConnectionState::Disconnected { why: Status::PeerGone }).then_some(())
    });
}
