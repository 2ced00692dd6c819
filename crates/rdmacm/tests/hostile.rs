//! A peer or a stranger who says anything is left, and programs go on.

mod attacks;

/// Each attack is repelled.
#[test]
fn each_attack_is_repelled() {
    bellwire_testkit::cases::run(&attacks::ATTACKS);
}
