//! Rules of the specification between two adapters, and between one and a peer written by hand.

#[allow(dead_code)] // Attacks use more of it.
#[path = "attacks/arena.rs"]
mod arena;
mod rules;

/// Each rule holds.
#[test]
fn each_rule_holds() {
    bellwire_testkit::cases::run(&rules::RULES);
}
