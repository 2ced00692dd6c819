//! Many queue pairs, and many peers.

use super::Fixture;
use super::stage::{A, B, Stage};
use bellwire::{Address, Message};

/// Thousands of queue pairs on each side: each gets its own messages, in order, and no others.
// shows: D-22
pub fn thousands_of_queue_pairs(fixture: &dyn Fixture) {
    const PAIRS: usize = 4_096;
    let mut stage = Stage::pair(fixture);
    let shallow = |o: bellwire::QueuePairOptions| o.send_depth(2).receive_depth(2);
    let ours: Vec<_> = (0..PAIRS).map(|_| stage.nodes[A].another_with(shallow)).collect();
    let theirs: Vec<_> = (0..PAIRS).map(|_| stage.nodes[B].another_with(shallow)).collect();
    assert_eq!(stage.nodes[A].function.queue_pairs().len(), PAIRS + 1);
    let to: Vec<Address> = theirs.iter().map(|&pair| stage.nodes[B].address_of(pair)).collect();
    let slot: std::collections::HashMap<_, _> =
        theirs.iter().enumerate().map(|(slot, pair)| (*pair, slot)).collect();
    for round in 0..2u64 {
        let mut heard = vec![false; PAIRS];
        for batch in (0..PAIRS).step_by(128) {
            // Not in the order of creation.
            let members: Vec<_> = (batch..batch + 128).map(|n| n * 1_237 % PAIRS).collect();
            for &member in &members {
                stage.nodes[B].receive_on(theirs[member], 8, member as u64);
                let bytes = round.to_le_bytes();
                let send = Message::inline(&bytes).to(to[member]);
                stage.nodes[A].send_on(ours[member], send.immediate(member as u64).unsignaled());
            }
            for _ in &members {
                let done = stage.success(B);
                let member = slot[&done.queue_pair];
                assert_eq!(done.context, member as u64, "{done:?}");
                assert_eq!(done.immediate(), Some(member as u64), "{done:?}");
                assert_eq!(done.peer.queue_pair, ours[member].number, "{done:?}");
                let bytes = done.buffer.unwrap().into_bytes(8);
                assert_eq!(bytes, round.to_le_bytes());
                assert!(!std::mem::replace(&mut heard[member], true), "twice");
            }
        }
        assert!(heard.iter().all(|&heard| heard));
    }
}

/// Hundreds of nodes talk to one, and it answers each.
pub fn hundreds_of_peers(fixture: &dyn Fixture) {
    const NODES: usize = 256;
    allow_descriptors(NODES * 12);
    let mut stage = Stage::of(fixture, NODES);
    let to = stage.nodes[A].address();
    for round in 0..3u64 {
        let mut unanswered = 0;
        for who in 1..NODES {
            stage.nodes[A].receive(16, who as u64);
            stage.nodes[who].receive(16, 0);
            let bytes = [round as u8; 16];
            let send = Message::inline(&bytes).to(to).immediate(who as u64);
            stage.nodes[who].send(send.unsignaled());
            unanswered += 1;
            if unanswered == 64 || who == NODES - 1 {
                (0..std::mem::take(&mut unanswered)).for_each(|_| answer_one(&mut stage, round));
            }
        }
        for who in 1..NODES {
            let done = stage.success(who);
            assert_eq!((done.peer, done.immediate()), (to, Some(who as u64 + round)), "{done:?}");
        }
    }
    let counters = stage.nodes[A].counters();
    assert_eq!(counters.total.messages_received, 3 * (NODES as u64 - 1));
}

/// The first node takes one message and answers it.
fn answer_one(stage: &mut Stage<'_>, round: u64) {
    let done = stage.success(A);
    let who = done.immediate().expect("its number");
    assert_eq!(done.peer, stage.nodes[who as usize].address(), "{done:?}");
    let answer = Message::inline(b"answer").to(done.peer).immediate(who + round).unsignaled();
    stage.nodes[A].send(answer);
}

/// Raises the soft limit of open descriptors to `needed`, if the hard limit allows it.
pub fn allow_descriptors(needed: usize) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < needed as u64) {
        let wanted = limit.maximum.map_or(needed as u64, |maximum| maximum.min(needed as u64));
        let raised = Rlimit { current: Some(wanted), maximum: limit.maximum };
        // If it fails, the open fails and says so.
        let _ = setrlimit(Resource::Nofile, raised);
    }
}
