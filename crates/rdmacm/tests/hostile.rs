//! A peer or a stranger who says anything is left, and programs go on.

mod attacks;

/// Each attack is repelled.
#[test]
fn each_attack_is_repelled() {
    for (name, attack) in attacks::ATTACKS {
        println!("{name}");
        attack();
    }
}
