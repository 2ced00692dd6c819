//! Connections: requested, accepted, rejected, ended, lost.

use super::bytes::pattern;
use super::stage::{A, B, Stage, assert_all_end, refuses};
use super::{Fixture, Node, Patience};
use bellwire::{
    Address, Buffer, ConnectionProgress, ConnectionState, Error, Message, Operation, Put, Status,
    Wait,
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
        let request = stage.request(B, listener);
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
                fixture.assert_way(&asking);
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
            fixture.assert_way(&listening);
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
        let request = stage.request(B, listener);
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
    let silent = stage.nodes[B].function.listen(900).expect("free");
    for (to, who) in [
        (Address { node: 60_000, ..address }, "no such node"),
        (Address { queue_pair: 901, ..address }, "nobody listens"),
    ] {
        times_out(&mut stage, to, who, Duration::from_millis(120));
    }
    // A request that a slow machine does not deliver in time is asked again, with more patience.
    let (to, mut patience) = (Address { queue_pair: 900, ..address }, Duration::from_millis(120));
    let request = loop {
        times_out(&mut stage, to, "no answer", patience);
        if let Some(request) = stage.nodes[B].function.poll_request(silent).expect("it listens") {
            break request;
        }
        patience *= 2;
        assert!(patience < super::patience::limit(), "the request never comes");
    };
    // An answer that comes too late connects nothing.
    let theirs = stage.nodes[B].queue_pair;
    let _ = stage.nodes[B].function.accept(request, theirs, b"late");
    stage.fence(B, A);
    let state = stage.nodes[A].function.query(pair).unwrap().connection;
    assert!(!matches!(state, ConnectionState::Connected { .. }), "{state:?}");
    let mut patience = Patience::new();
    while matches!(stage.nodes[B].state().connection, ConnectionState::Connected { .. }) {
        stage.turn();
        patience.spend(|| "the late acceptor still believes in its connection".to_owned());
    }
}

/// An attempt to connect with `to` ends without an answer, and not before its time.
fn times_out(stage: &mut Stage<'_>, to: Address, who: &str, patience: Duration) {
    stage.case = who.to_owned();
    let pair = stage.nodes[A].queue_pair;
    // By the device's clock, which is virtual on some devices.
    let since = stage.nodes[A].function.now();
    stage.nodes[A].function.start_connect(pair, to, b"", patience).expect("asked");
    let error = outcome(stage, A).expect_err("nobody accepts");
    let waited = stage.nodes[A].function.now() - since;
    assert!(waited >= patience, "not before its time: {who}");
    assert!(matches!(error, Error::Unreachable { peer, .. } if peer == to), "{who}: {error:?}");
}

/// A late listener is still found, because the request is repeated until its deadline.
pub fn a_late_listener_is_found(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let pair = stage.nodes[A].queue_pair;
    let to = Address { queue_pair: 44, ..stage.nodes[B].address() };
    let patience = super::patience::limit();
    stage.nodes[A].function.start_connect(pair, to, b"", patience).expect("asked");
    // The first request has come, and so has the answer to it, if it has one.
    stage.fence(A, B);
    stage.fence(B, A);
    let progress = stage.nodes[A].function.poll_connection(pair).expect("patience");
    assert_eq!(progress, ConnectionProgress::Waiting);
    let listener = stage.nodes[B].function.listen(44).expect("free");
    let request = stage.request(B, listener);
    let theirs = stage.nodes[B].queue_pair;
    stage.nodes[B].function.accept(request, theirs, b"").expect("accepted");
    outcome(&mut stage, A).expect("connected");
}

/// Both sides of a connection learn when the other's function is closed: all posted descriptors
/// complete, with their buffers.
pub fn a_peer_that_goes_away(fixture: &dyn Fixture) {
    let mut stage = Stage::connected(fixture);
    let pair = stage.nodes[A].queue_pair;
    let key = stage.nodes[B].region(4096).remote_key();
    let long = stage.nodes[A].function.limits().eager_bytes + 1;
    for context in 0..3 {
        stage.nodes[A].receive(16, context);
    }
    // Nobody receives these, so they are in flight when the peer goes.
    for context in 3..6 {
        stage.nodes[A].send(Message::buffer(vec![1; long]).context(context));
    }
    stage.until("the messages to wait there", |stage| {
        (stage.nodes[B].state().backlog_messages == 3).then_some(())
    });
    stage.nodes.remove(B);
    assert_all_end((0..6).map(|_| stage.next(A)), Status::PeerGone);
    let state = stage.nodes[A].function.query(pair).unwrap().connection;
    assert_eq!(state, ConnectionState::Disconnected { why: Status::PeerGone });
    let refused = stage.nodes[A].function.post_put(pair, Put::new(vec![0; 4096], key));
    refuses!(refused, Error::WrongState { .. });
}

/// Posted descriptors of an unconnected queue pair also complete when their target is closed. The
/// queue pair goes on with other targets.
pub fn a_target_that_goes_away(fixture: &dyn Fixture) {
    let mut stage = Stage::of(fixture, 3);
    let [alive, doomed] = [B, 2].map(|who| stage.nodes[who].address());
    let key = stage.nodes[2].region(4096).remote_key();
    let long = stage.nodes[A].function.limits().eager_bytes + 1;
    for context in 0..5 {
        stage.nodes[A].send(Message::buffer(vec![1; long]).to(doomed).context(context));
    }
    stage.until("the messages to wait there", |stage| {
        (stage.nodes[2].state().backlog_messages == 5).then_some(())
    });
    stage.nodes.remove(2);
    for _ in 0..5 {
        let done = stage.next(A);
        assert_eq!(done.status, Status::PeerGone, "{done:?}");
        assert_eq!(done.peer, doomed);
    }
    stage.nodes[A].put(Put::new(vec![1; 4096], key));
    let done = stage.next(A);
    let told = [Status::Unreachable, Status::PeerGone].contains(&done.status);
    assert!(told, "{done:?}");
    stage.nodes[B].receive(8, 0);
    stage.nodes[A].send(Message::inline(b"going on").to(alive));
    stage.success(A);
    stage.success(B);
}

/// Destroying a queue pair gives back everything that was posted to it, and tells its peer.
// shows: M-04
pub fn destroying_gives_everything_back(fixture: &dyn Fixture) {
    let mut stage = Stage::connected(fixture);
    let pair = stage.nodes[A].queue_pair;
    let long = stage.nodes[A].function.limits().eager_bytes + 1;
    for context in 0..4 {
        stage.nodes[A].receive(16, context);
        stage.nodes[A].send(Message::buffer(vec![1; long]).context(context + 4));
    }
    stage.until("the messages to wait there", |stage| {
        (stage.nodes[B].state().backlog_messages == 4).then_some(())
    });
    stage.nodes[A].function.destroy_queue_pair(pair).expect("it exists");
    let returned = (0..8).map(|_| stage.next(A));
    let returned = returned.inspect(|done| assert_eq!(done.queue_pair, pair, "{done:?}"));
    assert_all_end(returned, Status::Flushed);
    let end = ConnectionState::Disconnected { why: Status::PeerGone };
    stage.until("the peer to hear of it", |stage| {
        (stage.nodes[B].state().connection == end).then_some(())
    });
}
