//! The program in which the tests' second processes begin.

fn main() {
    let kind = std::env::args().nth(1).unwrap_or_default();
    if !bellwire_testkit::play(&kind) {
        eprintln!(
            "the tests of bellwire-testkit start this program, for a kind of tests, not {kind:?}"
        );
        std::process::exit(2);
    }
}
