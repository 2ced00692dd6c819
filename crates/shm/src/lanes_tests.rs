//! Lanes with real senders, and an engine that answers as the test says.
//!
//! Each packet takes one line, unless its length is given: a header of 32 bytes, and up to 32 more.

use crate::bell::PeerBell;
use crate::control::Control;
use crate::inbound::Undelivered;
use crate::lanes::Lanes;
use crate::layout::{
    GEOMETRY, PAIR_BYTES, POOL_SEGMENT_BYTES, Side, doorbell_of, lane_memory, pool_of,
};
use crate::mapping::{Sharing, create};
use crate::socket::{self, Received};
use bellwire_device::{FunctionAddress, LinkId, Sink, Status, Verdict};
use bellwire_ring::doorbell::Doorbell;
use bellwire_ring::lane::{Full, LaneSender, Sent};
use bellwire_ring::memory::{Memory, View};
use bellwire_ring::segment::Segment;
use bellwire_ring::sync::Fences;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

/// Where a sender says that it is writing a packet: the first word of its line in the control
/// block.
const INTENT_OFFSET: usize = 64;
/// No lane of a test has this number or one behind it.
const OTHERS: u16 = 100;

/// Takes packets, unless the test says otherwise.
struct Engine {
    verdict: Verdict,
    /// The lanes of the packets that were taken.
    taken: Vec<u32>,
}

impl Sink for Engine {
    fn packet(&mut self, link: LinkId, _: FunctionAddress, _: [u64; 3], _: View<'_>) -> Verdict {
        if let Verdict::Taken = self.verdict {
            self.taken.push(link.0);
        }
        self.verdict
    }

    fn link_down(&mut self, _: LinkId, _: FunctionAddress, _: Status) {
        unreachable!("lanes know no links");
    }
}

/// A peer that sends to us.
struct Peer {
    pair: Memory,
    sender: LaneSender<Segment>,
    /// The peer's own, at which we ring.
    doorbell: Doorbell<Segment>,
    socket: OwnedFd,
}

struct World {
    lanes: Lanes,
    peers: Vec<Peer>,
    engine: Engine,
}

fn memory(bytes: usize) -> Memory {
    create("test", bytes, 0, Sharing::ReadWrite).expect("memory").memory
}

impl World {
    /// Links to as many peers as there are weights.
    fn new(weights: &[u32]) -> World {
        let pool = memory(POOL_SEGMENT_BYTES);
        let engine = Engine { verdict: Verdict::Taken, taken: Vec::new() };
        let mut world = World { lanes: Lanes::new(doorbell_of(&pool)), peers: Vec::new(), engine };
        for (number, &weight) in (0..).zip(weights) {
            let bell = world.insert(&pool, number);
            world.lanes.open(number, Fences::Symmetric, weight, bell);
        }
        world
    }

    /// A lane whose link is not up yet. Returns the bell to open it with.
    fn insert(&mut self, pool: &Memory, number: u32) -> Arc<PeerBell> {
        let (pair, theirs) = (memory(PAIR_BYTES), memory(POOL_SEGMENT_BYTES));
        let lane = || lane_memory(&pair, Side::Connecting, pool_of(pool));
        self.lanes.insert(number, FunctionAddress { node: number, function: 0 }, lane());
        let sender = LaneSender::new(lane(), GEOMETRY, Fences::Symmetric, 1);
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let pair_of = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
        let (near, socket) = pair_of.expect("two sockets");
        let bell = PeerBell::new(doorbell_of(&theirs), 0, Arc::new(near));
        let doorbell = doorbell_of(&theirs);
        self.peers.push(Peer { pair, sender, doorbell, socket });
        Arc::new(bell)
    }

    /// Sends a packet of `bytes`, and rings if the lane says so.
    fn send(&mut self, number: u32, bytes: usize) -> Result<Sent, Full> {
        let sent = self.send_silently(number, bytes);
        if sent == Ok(Sent::Ring) {
            self.lanes.doorbell.ring(number as usize);
        }
        sent
    }

    fn send_silently(&mut self, number: u32, bytes: usize) -> Result<Sent, Full> {
        let words = [(bytes as u64) << 32, 0, 0];
        let sender = &mut self.peers[number as usize].sender;
        sender.send(words, &vec![0; bytes], View::empty(), || true)
    }

    /// Answers the doorbell. Returns the lanes that rang.
    fn answer(&mut self) -> Vec<u32> {
        let mut rang = Vec::new();
        self.lanes.answer_doorbell(|number| rang.push(number));
        rang
    }

    fn serve(&mut self, budget: usize) -> usize {
        self.lanes.serve(&mut self.engine, budget)
    }

    fn poll_alone(&mut self) -> Option<usize> {
        self.lanes.poll_alone(&mut self.engine)
    }

    /// Polls a lane that has credit, and no packet.
    fn activate(&mut self, number: u32) {
        assert_eq!(self.send(number, 0), Ok(Sent::Ring));
        assert_eq!(self.answer(), [number]);
        assert_eq!(self.serve(1000), 1);
        // The next look finds nothing, so that the lane is no stream.
        assert_eq!(self.serve(1000), 0);
        self.engine.taken.clear();
    }

    /// A packet by a bell.
    fn ring_and_serve(&mut self, number: u32) {
        assert_eq!(self.send(number, 0), Ok(Sent::Ring));
        assert_eq!((self.answer(), self.serve(1000)), (vec![number], 1));
    }

    /// Sleeps, and wakes at once. Returns whether there was nothing to do.
    fn sleeps(&mut self) -> bool {
        let sleeps = self.lanes.prepare_sleep();
        self.lanes.doorbell.end_sleep();
        sleeps
    }

    /// Other lanes take all credit.
    fn take_all_credit(&mut self) {
        for other in OTHERS.. {
            if self.lanes.credits.free_chunks() == 0 {
                return;
            }
            self.lanes.credits.want(other);
            while self.lanes.credits.top_up(other).is_some() {}
        }
    }

    /// Another lane waits for credit.
    fn press(&mut self) {
        self.take_all_credit();
        assert_eq!(self.lanes.credits.want(OTHERS - 1), None);
        assert_eq!(self.lanes.credits.waiting(), 1);
    }

    /// The credit of other lanes comes back, and goes to those that wait.
    fn return_credit(&mut self) {
        for other in (0..100).map(|n| OTHERS + n) {
            self.lanes.credits.park(other);
        }
        self.lanes.abandon(u32::from(OTHERS));
    }

    fn granted(&self, number: u16) -> u16 {
        self.lanes.credits.granted_to(number)
    }
}

/// Runs a test for eight seconds at most: a round that does not end fails.
fn within_limit(test: fn()) {
    let (done, is_done) = std::sync::mpsc::channel();
    let runner = std::thread::spawn(move || {
        test();
        done.send(()).expect("somebody waits");
    });
    match is_done.recv_timeout(Duration::from_secs(8)) {
        Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("it does not end"),
        _ => runner.join().expect("the test passes"),
    }
}

/// A lane that rings is polled, once, and gets two extents of one chunk.
#[test]
fn a_bell_brings_a_lane_back_with_credit() {
    let mut world = World::new(&[1, 1]);
    assert_eq!(world.send(1, 0), Ok(Sent::Ring));
    assert!(world.lanes.polled.is_empty() && world.lanes.doorbell.is_rung());
    assert_eq!(world.answer(), [1]);
    assert!(world.lanes.polled == [1] && !world.lanes.doorbell.is_rung());
    assert_eq!((world.lanes.grants, world.granted(1), world.granted(0)), (2, 2, 0));
    assert_eq!(world.lanes.undelivered(1), Undelivered::Packet);
    assert_eq!(world.serve(10), 1);
    assert_eq!(world.lanes.undelivered(1), Undelivered::Nothing);
    // The lane is polled, so its sender does not ring, and a late bell changes nothing.
    assert_eq!(world.send(1, 0), Ok(Sent::Done));
    world.lanes.doorbell.ring(1);
    world.answer();
    assert_eq!(world.lanes.polled, [1]);
    assert_eq!((world.serve(10), world.lanes.kicks), (1, 0));
    // The sender has entered the first extent, so another one is ahead.
    assert_eq!((world.lanes.grants, world.granted(1)), (3, 3));
    assert!(!world.peers[1].doorbell.is_rung(), "nobody waits there");
}

/// What came before the link was up is polled when it is, without a bell. After the end of a link
/// bells have no effect.
#[test]
fn bells_count_while_the_link_is_up() {
    let pool = memory(POOL_SEGMENT_BYTES);
    let mut world = World::new(&[]);
    world.lanes = Lanes::new(doorbell_of(&pool));
    let bell = world.insert(&pool, 0);
    assert_eq!(world.send(0, 0), Ok(Sent::Ring));
    assert_eq!(world.answer(), [0]);
    assert!(world.lanes.polled.is_empty());
    world.lanes.open(0, Fences::Symmetric, 1, bell);
    assert_eq!(world.lanes.polled, [0]);
    assert_eq!(world.serve(9), 1);
    assert!(world.sleeps() && world.lanes.polled.is_empty());
    // A look polls a parked lane only if a packet waits.
    world.lanes.look_at(0);
    assert!(world.lanes.polled.is_empty());
    assert_eq!(world.send_silently(0, 0), Ok(Sent::Ring));
    world.lanes.look_at(0);
    assert_eq!((world.lanes.polled.len(), world.serve(9)), (1, 1));
    assert!(world.sleeps());
    world.lanes.end(0);
    assert_eq!(world.send(0, 0), Ok(Sent::Ring));
    assert_eq!(world.answer(), [0]);
    assert!(world.lanes.polled.is_empty());
}

/// Whom the engine accuses is polled no more. An expelled peer keeps its credit until its lane is
/// abandoned, and its bells have no effect.
#[test]
fn violators_keep_their_credit_until_they_are_gone() {
    let mut world = World::new(&[1, 1]);
    world.activate(0);
    world.activate(1);
    assert_eq!(world.send(0, 0), Ok(Sent::Done));
    world.engine.verdict = Verdict::Violation;
    assert_eq!(world.serve(9), 0);
    assert_eq!((&world.lanes.violators[..], &world.lanes.polled[..]), (&[0][..], &[1][..]));
    world.lanes.expel(1);
    assert!(world.lanes.polled.is_empty());
    world.lanes.doorbell.ring(1);
    world.answer();
    assert!(world.lanes.polled.is_empty());
    assert_eq!((world.granted(0), world.granted(1)), (3, 2));
    world.lanes.abandon(0);
    assert_eq!((world.granted(0), world.granted(1)), (0, 2));
    assert_eq!(world.lanes.undelivered(0), Undelivered::Nothing);
}

/// The regions that senders copy by system calls are known by their marks.
#[test]
fn busy_regions_are_known() {
    let world = World::new(&[1, 1, 1]);
    world.peers[0].sender.mark_busy(3);
    world.peers[2].sender.mark_busy(7);
    assert_eq!([0, 1, 2, 3].map(|n| world.lanes.busy_region(n)), [Some(3), None, Some(7), None]);
    let busy_with = |index| world.lanes.busy_with(index).collect::<Vec<_>>();
    assert_eq!([busy_with(3), busy_with(7), busy_with(0)], [vec![0], vec![2], vec![]]);
    world.peers[2].sender.mark_idle();
    assert_eq!(world.lanes.busy_region(2), None);
}

/// A lane that is alone is looked at without a round, unless it streams.
#[test]
fn a_lone_lane_has_a_fast_path() {
    within_limit(|| {
        let mut world = World::new(&[1, 1]);
        assert_eq!(world.poll_alone(), None, "nobody is polled");
        world.activate(0);
        assert_eq!(world.poll_alone(), Some(0));
        world.lanes.doorbell.ring(0);
        assert_eq!(world.poll_alone(), None, "a bell comes first");
        world.answer();
        assert_eq!(world.send(0, 0), Ok(Sent::Done));
        // The packet stands in the next run.
        assert_eq!((world.poll_alone(), world.poll_alone()), (None, Some(1)));
        assert_eq!(world.poll_alone(), None, "there may be more, for a round");
        assert_eq!(world.send(0, 0), Ok(Sent::Done));
        assert_eq!((world.serve(1000), world.poll_alone()), (1, None));
        assert_eq!((world.serve(1000), world.poll_alone()), (0, Some(0)));
        world.engine.verdict = Verdict::Stalled;
        assert_eq!(world.send(0, 0), Ok(Sent::Done));
        assert_eq!(world.poll_alone(), None);
        assert_eq!(world.lanes.undelivered(0), Undelivered::Stalled);
        world.engine.verdict = Verdict::Taken;
        assert_eq!(
            (world.poll_alone(), world.lanes.undelivered(0)),
            (Some(1), Undelivered::Nothing)
        );
        world.activate(1);
        assert_eq!(world.poll_alone(), None, "there are two");
    });
}

/// Lanes take turns of 16 lines for each unit of weight. A turn that the budget cuts off goes on.
#[test]
fn lanes_take_turns_by_their_weights() {
    within_limit(|| {
        let mut world = World::new(&[1, 3]);
        world.activate(0);
        world.activate(1);
        for _ in 0..60 {
            assert_eq!((world.send(0, 0), world.send(1, 0)), (Ok(Sent::Done), Ok(Sent::Done)));
        }
        let turns = |world: &mut World, budget| {
            let taken = world.serve(budget);
            let lanes = std::mem::take(&mut world.engine.taken);
            assert_eq!(taken, lanes.len());
            let turns = lanes.chunk_by(|a, b| a == b);
            turns.map(|turn| (turn[0], turn.len())).collect::<Vec<_>>()
        };
        assert_eq!(turns(&mut world, 20), [(0, 16), (1, 4)]);
        assert_eq!(turns(&mut world, 34), [(1, 34)]);
        assert_eq!(turns(&mut world, 16), [(1, 10), (0, 6)]);
        // The second lane has 12 left, and the first one ten of this turn.
        assert_eq!(turns(&mut world, 1000), [(0, 10), (1, 12), (0, 28)]);
        // A packet of 100 bytes counts as two lines.
        for _ in 0..20 {
            assert_eq!(world.send(0, 100), Ok(Sent::Done));
        }
        for _ in 0..120 {
            assert_eq!(world.send(1, 0), Ok(Sent::Done));
        }
        let found = turns(&mut world, 1000);
        assert_eq!(found, [(1, 48), (0, 8), (1, 48), (0, 8), (1, 24), (0, 4)]);
    });
}

/// Between two sleeps a parked lane is served four times as it is, and then comes back with credit.
/// A sender that waits for credit gets it at once.
#[test]
fn a_parked_lane_is_served_four_times() {
    let mut world = World::new(&[1]);
    world.activate(0);
    assert_eq!((world.sleeps(), world.lanes.parks, world.granted(0)), (true, 1, 0));
    assert!(world.lanes.polled.is_empty());
    for _ in 0..4 {
        world.ring_and_serve(0);
        assert_eq!((world.granted(0), &world.lanes.polled[..]), (0, &[0][..]));
    }
    world.ring_and_serve(0);
    assert_eq!(world.granted(0), 2);

    assert_eq!((world.sleeps(), world.granted(0)), (true, 0));
    assert_eq!(world.send(0, 0), Ok(Sent::Ring));
    world.peers[0].sender.announce_waiting();
    world.answer();
    assert_eq!(world.granted(0), 2, "it waits");
    assert_eq!(world.serve(9), 1);
    // It was told of the credit, and sleeps no more.
    assert_eq!((world.sleeps(), world.send(0, 0)), (true, Ok(Sent::Ring)));
    world.answer();
    assert_eq!((world.granted(0), world.serve(9)), (0, 1));
    assert!(world.sleeps());
    world.lanes.doorbell.ring(0);
    world.answer();
    assert_eq!(world.granted(0), 2, "whoever rings without a packet wants credit");
}

/// A parked lane with less than half of its small chunk left is parked anew, for an empty one.
#[test]
fn a_lane_with_little_room_is_parked_anew() {
    let mut world = World::new(&[1]);
    world.activate(0);
    assert_eq!((world.sleeps(), world.lanes.parks), (true, 1));
    // Of 13 lines one is for the way on: six packets leave six.
    for round in 0..6 {
        world.ring_and_serve(0);
        assert_eq!((world.sleeps(), world.lanes.parks), (true, 1), "round {round}");
        assert!(world.lanes.polled.is_empty());
    }
    world.ring_and_serve(0);
    assert_eq!((world.sleeps(), world.lanes.parks), (true, 2));
}

/// Who sleeps takes first what has come, unless the engine has no room for it.
#[test]
fn packets_come_before_sleep() {
    let mut world = World::new(&[1, 1]);
    world.activate(0);
    assert_eq!(world.send(0, 0), Ok(Sent::Done));
    world.serve(9);
    assert_eq!(world.send(0, 0), Ok(Sent::Done));
    // An active lane: parking begins, and the packet is taken before it ends.
    assert_eq!((world.sleeps(), world.lanes.parks), (false, 0));
    assert_eq!(world.serve(9), 1);
    assert_eq!((world.sleeps(), world.lanes.parks), (true, 1));
    // A parked lane.
    assert_eq!(world.send(0, 0), Ok(Sent::Ring));
    assert!(!world.sleeps(), "a bell");
    world.answer();
    assert!(!world.sleeps(), "a packet");
    world.engine.verdict = Verdict::Stalled;
    assert_eq!(world.serve(9), 0);
    assert_eq!((world.sleeps(), world.lanes.parks, &world.lanes.polled[..]), (true, 1, &[0][..]));
    world.engine.verdict = Verdict::Taken;
    assert_eq!(world.serve(9), 1);
    assert!(world.sleeps() && world.lanes.polled.is_empty());

    // A sender that is writing keeps its lane, and rings later: nobody waits for it.
    world.activate(1);
    let intent = |world: &World, value| world.peers[1].pair.view().store(INTENT_OFFSET, value);
    intent(&world, 1);
    assert_eq!((world.sleeps(), world.lanes.parks, &world.lanes.polled[..]), (true, 1, &[1][..]));
    intent(&world, 0);
    world.lanes.park_idle();
    assert_eq!((world.lanes.parks, world.lanes.polled.len()), (2, 0));
}

/// Without credit a lane waits, and its sender, which sleeps, is woken when some comes back.
#[test]
fn credit_that_comes_back_wakes_who_waits() {
    let mut world = World::new(&[1, 1]);
    world.take_all_credit();
    for number in [0, 1] {
        world.ring_and_serve(number);
        assert_eq!((world.granted(number as u16), world.lanes.grants), (0, 0));
    }
    assert_eq!(world.lanes.credits.waiting(), 2);
    // The second one's link ends while it waits.
    world.lanes.end(1);
    let asleep = &world.peers[0];
    asleep.sender.announce_waiting();
    assert!(asleep.doorbell.prepare_sleep());
    world.return_credit();
    assert!(world.granted(0) > 0 && world.lanes.grants > 0);
    assert_eq!((world.granted(1), world.lanes.credits.waiting()), (0, 0));
    assert_eq!(world.lanes.kicks, 1);
    assert!(world.peers[0].doorbell.is_rung());
    let kick = socket::receive(&world.peers[0].socket);
    assert!(matches!(kick, Received::Message(Control::Kick, _)));
    // One that waits awake sees the bell, and needs no kick. One that does not wait hears nothing.
    world.peers[0].doorbell.answer(|_| {});
    world.lanes.call_senders();
    assert!(!world.peers[0].doorbell.is_rung());
    world.peers[0].sender.announce_waiting();
    world.lanes.call_senders();
    assert!(world.peers[0].doorbell.is_rung());
    assert_eq!(world.lanes.kicks, 1);
    assert!(matches!(socket::receive(&world.peers[0].socket), Received::Nothing));
}

/// Lanes that are idle since the last check are parked if others wait for credit, however their
/// last packet was taken. A packet that waits keeps a lane.
#[test]
fn idle_lanes_give_their_credit_to_others() {
    let mut world = World::new(&[1]);
    world.activate(0);
    assert_eq!(world.send(0, 0), Ok(Sent::Done));
    assert_eq!(world.serve(9), 1);
    for _ in 0..2 {
        world.lanes.park_idle();
        assert_eq!(world.lanes.parks, 0, "nobody waits");
    }
    world.press();
    assert_eq!(world.send(0, 0), Ok(Sent::Done));
    world.lanes.park_idle();
    assert_eq!(world.lanes.parks, 0, "a packet waits");
    assert_eq!(world.serve(9), 1);
    world.lanes.park_idle();
    assert_eq!(world.lanes.parks, 0, "it was busy");
    assert_eq!(world.serve(9), 0);
    assert_eq!(world.send(0, 0), Ok(Sent::Done));
    assert_eq!(world.poll_alone(), Some(1));
    world.lanes.park_idle();
    assert_eq!(world.lanes.parks, 0, "it was busy by the fast path");
    world.lanes.park_idle();
    assert_eq!((world.lanes.parks, world.lanes.polled.len()), (1, 0));
}

/// Up to eight idle lanes stay polled.
#[test]
fn more_than_eight_idle_lanes_are_parked() {
    let mut world = World::new(&[1; 9]);
    for number in 0..8 {
        world.activate(number);
    }
    for _ in 0..2 {
        world.lanes.park_idle();
        assert_eq!((world.lanes.parks, world.lanes.polled.len()), (0, 8));
    }
    world.activate(8);
    // The first one finds the others idle, and the ninth busy.
    world.lanes.park_idle();
    assert_eq!((world.lanes.parks, &world.lanes.polled[..]), (8, &[8][..]));
}

/// A lane whose link is over delivers what it has, and gets no more credit.
#[test]
fn an_ended_lane_is_emptied() {
    within_limit(|| {
        let mut world = World::new(&[1]);
        world.activate(0);
        let mut sent = 0;
        while world.send(0, 1_000).is_ok() {
            sent += 1;
        }
        world.lanes.end(0);
        let grants = world.lanes.grants;
        let taken = std::iter::repeat_with(|| world.serve(1_000)).take_while(|&taken| taken > 0);
        assert_eq!(taken.sum::<usize>(), sent);
        assert_eq!(world.lanes.grants, grants);
        assert_eq!(world.lanes.undelivered(0), Undelivered::Nothing);
    });
}
