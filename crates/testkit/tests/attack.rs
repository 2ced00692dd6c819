//! Attacks from a third address on functions of `udp` and `eth`.
//!
//! Those on `eth` make networks out of namespaces. That needs root and iproute2: without them each
//! test fails and says that it did not run.

use bellwire_testkit::attack::{From, Numbers, amplify, block, flood, here, moved, places, steal};
use bellwire_testkit::network::Carrier;

/// One test for each carrier.
macro_rules! with_each_carrier {
    ($($(#[$shows:meta])* $name:ident: $attack:expr;)*) => {$(
        $(#[$shows])*
        mod $name {
            use super::*;

            #[test]
            fn packet() { $attack(Carrier::Packet); }
            #[test]
            fn xdp() { $attack(Carrier::Xdp); }
            #[test]
            fn udp() { $attack(Carrier::Udp); }
        }
    )*};
}

with_each_carrier! {
    /// A link stays up though somebody else uses the peer's name from another address.
    a_link_is_not_stolen: |carrier| {
        steal::link(carrier, Numbers::Natural, From::Own);
        steal::link(carrier, Numbers::Chosen, From::Own);
        if carrier != Carrier::Udp {
            steal::link(carrier, Numbers::Natural, From::Twin);
        }
    };
    /// A link stays up though its peer is busy and does not answer while its name is used.
    a_link_of_a_busy_peer_is_not_stolen: steal::link_of_a_busy_peer;
    /// A peer without a link keeps its name while it is alive.
    a_name_is_not_stolen: |carrier| {
        steal::name(carrier, Numbers::Natural, From::Own);
        steal::name(carrier, Numbers::Chosen, From::Own);
        if carrier != Carrier::Udp {
            steal::name(carrier, Numbers::Natural, From::Twin);
        }
    };
    /// Frames from more addresses than have names keep nobody from connecting.
    places_do_not_run_out: |carrier| places::addresses(carrier, places::ADDRESSES);
    /// Nor do Opens of as many made-up nodes.
    nodes_do_not_run_out: places::nodes;
    /// Answers that nobody asked for do not move a connect.
    unasked_answers_teach_nothing: here::unasked;
    /// Opens in a peer's name do not keep that peer from connecting.
    a_name_is_not_blocked: |carrier| {
        block::a_name(carrier, false);
        block::a_name(carrier, true);
    };
    /// A sender that has not proved its address gets no more bytes than it sent.
    answers_are_not_longer_than_questions: amplify::single_frames;
    /// Thousands of half-open links keep nobody from connecting.
    half_open_links_make_room: flood::opens;
    /// A node with a chosen number moves.
    a_node_moves: moved::a_node_that_moves;
}

/// A number that is the address of another host is refused, with what to do.
#[test]
fn numbers_of_other_hosts_are_refused() {
    moved::a_number_of_another_host();
}

/// A node that is refused for its number is told what to do.
#[test]
fn refused_numbers_are_told() {
    moved::a_refused_number_is_told();
}
