//! `hostile FIRST FRAMES`: the worlds of `tests/hostile.rs` from number FIRST on, as many as one
//! likes. A world has some 40,000 frames, and its number decides all of them. So two runs have
//! frames of their own only if their first worlds are far apart.

#[allow(dead_code)]
#[path = "../tests/support/mod.rs"]
mod support;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let (Some(Ok(seed)), Some(Ok(frames))) = (arguments.next(), arguments.next()) else {
        eprintln!("hostile FIRST FRAMES");
        std::process::exit(2);
    };
    let mut told = 0;
    let outcome = support::run(seed, frames, |so_far| {
        if so_far.frames >= told + 10_000_000 {
            told = so_far.frames;
            eprintln!("{so_far:?}");
        }
    });
    match outcome {
        Ok(outcome) => println!("{outcome:?}"),
        Err(what) => {
            println!("{what}");
            std::process::exit(1);
        }
    }
}
