//! Connected endpoints: how they find each other, and how they part.

mod world;

use bellwire::FunctionAddress;
use bellwire_tagged::*;
use bellwire_testkit::loopback::FabricOptions;
use std::time::{Duration, Instant};
use world::{Side, World, pattern, span, token};

/// What an endpoint was told of connections.
#[derive(PartialEq, Debug)]
enum Told {
    Asked(ConnectionRequest, Vec<u8>),
    Connected(Vec<u8>),
    Refused(Vec<u8>),
    Ended,
}

/// Records completions, and events of connections.
struct Ears<'a>(&'a mut Vec<TaggedCompletion>, &'a mut Vec<Told>);

impl Sink for Ears<'_> {
    fn completed(&mut self, done: TaggedCompletion) {
        self.0.push(done);
    }

    fn connection(&mut self, event: ConnectionEvent<'_>) {
        self.1.push(match event {
            ConnectionEvent::Requested(request, private_data) => {
                Told::Asked(request, private_data.into())
            }
            ConnectionEvent::Connected(private_data) => Told::Connected(private_data.into()),
            ConnectionEvent::Rejected(private_data) => Told::Refused(private_data.into()),
            ConnectionEvent::Disconnected => Told::Ended,
        });
    }
}

const CLIENT: usize = 0;
const LISTENER: usize = 1;
const SERVER: usize = 2;
const STRANGER: usize = 3;

/// A client, a listener, an endpoint that will be connected, and a stranger.
struct Hall {
    world: World,
    told: [Vec<Told>; 4],
}

impl Hall {
    fn new() -> Hall {
        Hall::over(FabricOptions::default())
    }

    fn over(options: FabricOptions) -> Hall {
        let patience = Duration::from_millis(50);
        let mut world = World::new(FabricOptions { patience, ..options }, 4);
        for restricted in [CLIENT, LISTENER, SERVER] {
            world.sides[restricted].endpoint.restrict_to_peer();
        }
        world.sides[LISTENER].endpoint.listen();
        Hall { world, told: Default::default() }
    }

    fn settle(&mut self) {
        let (mut quiet, mut turns) = (0, 0);
        // Periodic work is done only after a thousand idle polls.
        while quiet < 1500 {
            turns += 1;
            assert!(turns < 200_000, "it never comes to rest");
            let mut done = 0;
            for (side, told) in self.world.sides.iter_mut().zip(&mut self.told) {
                done += side.endpoint.progress(&mut Ears(&mut side.done, told)).unwrap();
            }
            quiet = if done == 0 { quiet + 1 } else { 0 };
        }
    }

    /// Waits for an event.
    fn wait(&mut self, at: usize) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.told[at].is_empty() {
            assert!(Instant::now() < deadline, "nothing is ever told");
            self.settle();
        }
    }

    fn endpoint(&mut self, at: usize) -> &mut Endpoint {
        &mut self.world.sides[at].endpoint
    }

    fn disconnect(&mut self, at: usize) {
        let side = &mut self.world.sides[at];
        side.endpoint.disconnect(&mut Ears(&mut side.done, &mut self.told[at]));
    }

    /// The client asks. Returns the request as the listener gets it.
    fn ask(&mut self, private_data: &[u8]) -> ConnectionRequest {
        self.endpoint(CLIENT).connect(at(LISTENER), private_data).unwrap();
        self.settle();
        match self.told[LISTENER].pop() {
            Some(Told::Asked(request, heard)) if heard == private_data => request,
            other => panic!("{other:?}"),
        }
    }

    fn connected() -> Hall {
        Hall::new().connect()
    }

    fn connect(mut self) -> Hall {
        let request = self.ask(b"");
        self.endpoint(SERVER).accept(&request, b"").unwrap();
        self.settle();
        for end in [CLIENT, SERVER] {
            assert_eq!(self.told[end].pop(), Some(Told::Connected(vec![])));
        }
        self
    }
}

fn at(node: usize) -> FunctionAddress {
    FunctionAddress { node: node as u32, function: 0 }
}

/// A request arrives with its words. Another endpoint accepts it with words that the client gets.
/// Messages go both ways, the first of them right behind the acceptance.
#[test]
fn a_request_is_accepted() {
    let mut hall = Hall::new();
    let words = pattern(CONNECTION_BYTES, 1);
    let request = hall.ask(&words);
    assert_eq!(request.from, at(CLIENT));
    hall.endpoint(SERVER).accept(&request, b"welcome").unwrap();
    let mut first = pattern(100, 2);
    hall.world.post(SERVER, CLIENT, &mut first, None, 1);
    hall.settle();
    assert_eq!(hall.told[CLIENT], [Told::Connected(b"welcome".to_vec())]);
    let peer = hall.endpoint(CLIENT).connected().unwrap();
    assert_eq!(hall.endpoint(CLIENT).address_of(peer), at(SERVER));
    let mut into = vec![0; 100];
    let any = MatchCriteria { source: None, tag: None };
    hall.world.receive(CLIENT, any, &mut into, 2);
    hall.settle();
    assert_eq!(into, first);
    // A long one, the other way.
    let (mut long, mut into) = (pattern(300_000, 3), vec![0; 300_000]);
    hall.world.receive(SERVER, any, &mut into, 3);
    hall.world.post(CLIENT, SERVER, &mut long, None, 4);
    hall.settle();
    assert_eq!(hall.world.done(CLIENT, 4).outcome, Outcome::Success);
    assert_eq!(into, long);
    assert_eq!(hall.told[SERVER], [Told::Connected(vec![])]);
}

/// The listener, or another endpoint of its program, may reject a request with words. Where nobody
/// listens, or nobody is, it is refused without words. Too many words are refused, and so is a
/// second request while the first waits.
#[test]
fn a_request_is_refused() {
    let mut hall = Hall::new();
    for refuser in [LISTENER, SERVER] {
        let request = hall.ask(b"please");
        assert!(hall.endpoint(CLIENT).connect(at(LISTENER), b"").is_err(), "it is asking");
        hall.endpoint(refuser).reject(&request, b"no").unwrap();
        hall.settle();
        assert_eq!(hall.told[CLIENT].pop(), Some(Told::Refused(b"no".to_vec())));
    }
    for nobody in [SERVER, 77] {
        hall.endpoint(CLIENT).connect(at(nobody), b"").unwrap();
        hall.wait(CLIENT);
        assert_eq!(hall.told[CLIENT].pop(), Some(Told::Refused(vec![])));
    }
    let long = pattern(CONNECTION_BYTES + 1, 0);
    assert!(hall.endpoint(CLIENT).connect(at(LISTENER), &long).is_err());
    assert!(hall.endpoint(STRANGER).connect(at(LISTENER), b"").is_err(), "it is for anybody");
    // A refused endpoint can ask again.
    let request = hall.ask(b"");
    hall.endpoint(SERVER).accept(&request, b"").unwrap();
    assert!(hall.endpoint(SERVER).accept(&request, b"").is_err(), "it is connected");
    hall.settle();
    assert_eq!(hall.told[CLIENT].pop(), Some(Told::Connected(vec![])));
}

/// Messages that were sent before the end arrive before it. Then receives are cancelled, both sides
/// are told once, and nothing more is sent or taken.
#[test]
fn a_connection_ends_in_order() {
    let mut hall = Hall::connected();
    let any = MatchCriteria { source: None, tag: None };
    let (mut into, mut late) = (vec![0; 10], vec![0; 10]);
    hall.world.receive(SERVER, any, &mut into, 1);
    hall.world.receive(SERVER, any, &mut late, 2);
    let mut last = pattern(10, 5);
    hall.world.post(CLIENT, SERVER, &mut last, None, 3);
    hall.disconnect(CLIENT);
    assert_eq!(hall.told[CLIENT], [Told::Ended]);
    hall.disconnect(CLIENT);
    hall.settle();
    assert_eq!(into, last);
    assert_eq!(hall.world.done(SERVER, 2).outcome, Outcome::Cancelled);
    assert_eq!((&hall.told[CLIENT], &hall.told[SERVER]), (&vec![Told::Ended], &vec![Told::Ended]));
    assert_eq!(hall.endpoint(SERVER).connected(), None);
}

/// Messages that wait to be fetched fail when their receiver ends the connection.
#[test]
fn the_end_of_a_connection_ends_fetches() {
    const LONG: usize = SEGMENTED_BYTES + 1;
    let options = FabricOptions { regions: 4, direct_brought: false, ..FabricOptions::default() };
    let mut hall = Hall::over(options).connect();
    let (mut bytes, mut into) = (pattern(LONG, 1), vec![vec![0; LONG]; 4]);
    for _ in 0..4 {
        hall.world.post(CLIENT, SERVER, &mut bytes, None, 100);
    }
    hall.settle();
    assert_eq!(hall.endpoint(SERVER).unexpected(), 4);
    for (at, into) in (0..).zip(&mut into) {
        // Two regions each, so that two fetches wait.
        let (a, b) = into.split_at_mut(1000);
        let spans = Spans::of(&[span(a), span(b)]);
        let any = MatchCriteria { source: None, tag: None };
        let Side { endpoint, done } = &mut hall.world.sides[SERVER];
        endpoint.receive(any, spans, token(at), &mut |one| done.push(one)).unwrap();
    }
    hall.disconnect(SERVER);
    let flushed = Outcome::Failed(bellwire::Status::Flushed);
    let failed = hall.world.sides[SERVER].done.iter().filter(|done| done.outcome == flushed);
    assert_eq!(failed.count(), 2, "{:?}", hall.world.sides[SERVER].done);
    hall.settle();
    assert_eq!(hall.world.sides[SERVER].done.len(), 4);
}

/// A stranger's messages, and its control messages about the connection, change nothing.
#[test]
fn strangers_are_not_heard() {
    let mut hall = Hall::connected();
    let mut intrusion = pattern(10, 5);
    for (to, tag) in [(CLIENT, None), (SERVER, Some(1)), (LISTENER, None)] {
        hall.world.post(STRANGER, to, &mut intrusion, tag, 1);
    }
    hall.endpoint(STRANGER).restrict_to_peer();
    hall.settle();
    assert!(hall.world.sides[..3].iter().all(|side| side.endpoint.unexpected() == 0));
    // A stranger can neither accept nor reject a request that it never got; this one is old.
    let mut other = Hall::new();
    let foreign = other.ask(b"");
    hall.disconnect(CLIENT);
    hall.settle();
    hall.told[CLIENT].clear();
    hall.ask(b"");
    hall.endpoint(STRANGER).reject(&foreign, b"").unwrap();
    hall.endpoint(STRANGER).accept(&foreign, b"").unwrap();
    hall.settle();
    assert_eq!(hall.told[CLIENT], []);
    assert_eq!(hall.told[STRANGER], [Told::Refused(vec![])], "it must not believe in a connection");
}

/// A peer that dies ends its connection, which is reported once, even if nothing was in flight.
#[test]
fn a_dead_peer_ends_its_connection() {
    for (dead, left) in [(CLIENT, SERVER), (SERVER, CLIENT)] {
        let mut hall = Hall::connected();
        let mut into = [0; 10];
        hall.world.receive(left, MatchCriteria { source: None, tag: None }, &mut into, 9);
        hall.world.fabric.kill(at(dead));
        // Its address is empty now.
        hall.world.sides[dead].endpoint = {
            let device = hall.world.fabric.device(9);
            Endpoint::open(&device, 0, &Options::default()).unwrap()
        };
        hall.wait(left);
        hall.settle();
        assert_eq!(hall.told[left], [Told::Ended]);
        assert_eq!(hall.world.done(left, 9).outcome, Outcome::Cancelled);
    }
}
