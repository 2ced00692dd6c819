//! What a function does with frames about places, and whom it believes.

use std::collections::{BTreeMap, BTreeSet};

use bellwire_protocol::Secret;
use bellwire_protocol::discovery::seek::{ANY_NODE, SeekFrame};
use bellwire_protocol::discovery::{
    Binding, Claims, Discovery, NEIGHBOURS, NeighbourTable, Neighbours, PLACES, Places,
    STATION_NEIGHBOURS, SeekOutcome,
};
use bellwire_protocol::reliable::{PathId, PlaceCheck};
use bellwire_wire::frame::seek::SeekBody;

/// Nodes below 10 are bound to place 'b'; the others are where they were announced.
#[derive(Default)]
struct Table(BTreeMap<u32, char>);

impl NeighbourTable<char> for Table {
    fn binding(&self, node: u32, place: char) -> Binding {
        match (node < 10, place == 'b') {
            (true, true) => Binding::Here,
            (true, false) => Binding::Elsewhere,
            (false, _) => Binding::None,
        }
    }

    fn other_place(&self, node: u32, place: char) -> Option<char> {
        self.0.get(&node).copied().filter(|&known| known != place)
    }

    fn heard(&mut self, node: u32, place: char) {
        self.0.insert(node, place);
    }

    fn announced(&mut self, node: u32, place: char) -> bool {
        let is_known = self.0.contains_key(&node);
        self.0.entry(node).or_insert(place);
        is_known
    }

    fn forget(&mut self, node: u32) {
        self.0.remove(&node);
    }
}

fn discovery() -> Discovery<char> {
    Discovery::new(77, 1500, Secret::from_seed(1))
}

/// A Seek for our node or for any node is answered with our number, our frame length and the
/// asker's nonce. A Seek for another node is not answered.
#[test]
fn a_seek_for_us_is_answered() {
    let (mut discovery, mut table) = (discovery(), Table::default());
    for (to, is_for_us) in [(77, true), (ANY_NODE, true), (78, false), (0, false)] {
        let body = SeekBody { from: 5, to, frame_bytes: 9000, nonce: 11 };
        let outcome = discovery.handle(&mut table, 'a', (SeekFrame::Seek(body), 3), 1);
        let answer = SeekBody { from: 77, to: 5, frame_bytes: 1500, nonce: 11 };
        let expected = if is_for_us { SeekOutcome::Asked(answer, 3) } else { SeekOutcome::Ignored };
        assert_eq!(outcome, expected, "Seek for {to}");
    }
    assert!(table.0.is_empty(), "a Seek proves nothing");
}

/// A Here counts only with the nonce of our Seek for that node. The second place of a node is a
/// further one.
#[test]
fn only_an_answer_to_our_seek_counts() {
    let (mut discovery, mut table) = (discovery(), Table::default());
    let seek = discovery.seek(50, 1);
    assert_eq!((seek.from, seek.to, seek.frame_bytes), (77, 50, 1500));
    let here = |nonce| SeekFrame::Here(SeekBody { from: 50, to: 77, frame_bytes: 1500, nonce });
    let mut handle = |frame, from| discovery.handle(&mut table, from, (frame, 0), 2);
    assert_eq!(handle(here(seek.nonce ^ 1), 'a'), SeekOutcome::Ignored);
    let answered = |is_further| SeekOutcome::Answered { node: 50, is_further };
    assert_eq!(handle(here(seek.nonce), 'a'), answered(false));
    assert_eq!(handle(here(seek.nonce), 'c'), answered(true));
    assert_eq!(table.0[&50], 'a');
}

/// A bound number belongs to its address. A chosen one belongs to the station where it was last
/// heard: that place is asked first, and an answer from there refuses the claim.
#[test]
fn a_claim_is_checked_at_the_old_place() {
    let (mut discovery, mut table) = (discovery(), Table::default());
    let none = std::iter::empty::<PathId>;
    let [a, b] = ['a', 'b'].map(|place| discovery.places.number(place, none));
    let mut check = |discovery: &mut Discovery<char>, node, path, now_ns| {
        discovery.check_place(&mut table, node, path, now_ns)
    };
    assert_eq!(check(&mut discovery, 5, b, 1), PlaceCheck::Belongs);
    assert_eq!(check(&mut discovery, 5, a, 1), PlaceCheck::Elsewhere);
    assert_eq!(check(&mut discovery, 5, PathId(99), 1), PlaceCheck::Pending);
    assert_eq!(check(&mut discovery, 50, b, 1), PlaceCheck::Belongs, "never heard");
    table.heard(50, 'a');
    assert_eq!(discovery.check_place(&mut table, 50, a, 1), PlaceCheck::Belongs);
    assert_eq!((discovery.next_deadline(), discovery.poll_seek(5)), (u64::MAX, None));
    assert_eq!(discovery.check_place(&mut table, 50, b, 5), PlaceCheck::Pending);
    assert_eq!(discovery.next_deadline(), 5);
    let seek = discovery.seek(50, 5);
    assert_eq!(discovery.poll_seek(5), Some(('a', seek)));
    assert_eq!(discovery.next_deadline(), 20_000_005);
    assert_eq!(discovery.poll_seek(6), None);
    let here = SeekFrame::Here(SeekBody { from: 50, to: 77, frame_bytes: 1500, ..seek });
    discovery.handle(&mut table, 'b', (here, 0), 6);
    assert_eq!(discovery.check_place(&mut table, 50, b, 6), PlaceCheck::Pending);
    discovery.handle(&mut table, 'a', (here, 0), 7);
    assert_eq!(discovery.check_place(&mut table, 50, b, 7), PlaceCheck::Elsewhere);
    assert_eq!(discovery.next_deadline(), u64::MAX);
}

/// Claims of different nodes are asked for apart. When a node was heard elsewhere meanwhile, its
/// claim begins anew there. A failed old place is asked five times, and is remembered for four
/// seconds.
#[test]
fn each_claim_is_asked_for_apart() {
    let mut claims = Claims::default();
    assert_eq!(
        (claims.check(7, 'a', 0), claims.check(8, 'b', 0)),
        (PlaceCheck::Pending, PlaceCheck::Pending)
    );
    assert_eq!(claims.count(), 2);
    assert_eq!((claims.poll_seek(0), claims.poll_seek(0)), (Some((7, 'a')), Some((8, 'b'))));
    assert_eq!(claims.poll_seek(0), None);
    assert_eq!(claims.check(7, 'c', 1), PlaceCheck::Pending);
    assert_eq!((claims.count(), claims.poll_seek(1)), (2, Some((7, 'c'))));
    let mut now_ns = 1;
    for wait_ms in [20, 40, 80, 160, 320] {
        claims.answered(8, 'b', now_ns);
        assert_eq!(claims.poll_seek(now_ns + wait_ms * 1_000_000 - 1), None);
        now_ns += wait_ms * 1_000_000;
        assert_eq!(claims.next_deadline(), now_ns);
        assert_eq!(claims.check(7, 'c', now_ns), PlaceCheck::Pending);
        let seek = claims.poll_seek(now_ns);
        assert_eq!(seek, (wait_ms < 320).then_some((7, 'c')));
    }
    assert_eq!(claims.check(7, 'c', now_ns + 3_999_999_999), PlaceCheck::Belongs);
    assert_eq!(claims.check(7, 'c', now_ns + 4_000_000_000), PlaceCheck::Pending, "forgotten");
    // The answer for the other counts for one second.
    assert_eq!(claims.check(8, 'b', now_ns), PlaceCheck::Pending);
    claims.answered(8, 'b', now_ns);
    assert_eq!(claims.check(8, 'b', now_ns + 999_999_999), PlaceCheck::Elsewhere);
    assert_eq!(claims.check(8, 'b', now_ns + 1_000_000_000), PlaceCheck::Pending);
}

/// No number is given to two places, however often the table was full.
#[test]
fn no_number_is_given_twice() {
    let mut places = Places::default();
    let mut numbers = BTreeSet::new();
    for place in 0..3 * PLACES {
        assert!(numbers.insert(places.number(place, std::iter::empty)), "place {place}");
        assert_eq!(places.count(), place % PLACES + 1);
    }
    assert_eq!((places.known_number(0), places.place(PathId(0))), (None, None));
}

/// The oldest node of a station makes room, not the one with the least number. A node that the
/// user asked for does not count among those that were heard.
#[test]
fn the_oldest_node_makes_room() {
    let mut nodes = Neighbours::default();
    let most = STATION_NEIGHBOURS as u32;
    nodes.found(5, 'x');
    for node in (1000..1000 + most).rev() {
        nodes.heard(node, 'x', |place| place == 'x');
    }
    assert_eq!(nodes.count(), STATION_NEIGHBOURS + 1);
    nodes.heard(1, 'x', |place| place == 'x');
    assert_eq!((nodes.place(1000), nodes.place(999 + most)), (Some('x'), None));
    assert_eq!((nodes.place(1), nodes.place(5)), (Some('x'), Some('x')));
    nodes.forget(5);
    assert_eq!((nodes.place(5), nodes.count()), (None, STATION_NEIGHBOURS));
}

/// All stations together have room for 4,096 nodes that were heard. A node that is forgotten leaves
/// room for one.
#[test]
fn a_forgotten_node_leaves_room() {
    let mut nodes = Neighbours::default();
    let most = NEIGHBOURS as u32;
    let hear = |nodes: &mut Neighbours<u32>, node| nodes.heard(node, node, |place| place == node);
    (0..most).for_each(|node| hear(&mut nodes, node));
    nodes.forget(9);
    hear(&mut nodes, most);
    assert_eq!((nodes.place(0), nodes.count()), (Some(0), NEIGHBOURS));
    hear(&mut nodes, most + 1);
    assert_eq!((nodes.place(0), nodes.place(1), nodes.count()), (None, Some(1), NEIGHBOURS));
}

/// The user may ask for 65,536 nodes; the place of a further one is not remembered.
#[test]
fn nodes_asked_for_are_bounded() {
    let mut nodes = Neighbours::default();
    nodes.heard(70_001, 1, |_| false);
    (0..65_536).for_each(|node| nodes.found(node, 2));
    nodes.found(70_000, 2);
    assert_eq!(
        (nodes.place(0), nodes.place(65_535), nodes.place(70_000)),
        (Some(2), Some(2), None)
    );
    assert_eq!((nodes.place(70_001), nodes.count()), (Some(1), 65_537));
    nodes.forget(0);
    nodes.found(70_001, 3);
    assert_eq!((nodes.place(70_001), nodes.count()), (Some(3), 65_536));
}
