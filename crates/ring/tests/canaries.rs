//! Shows that this crate's checkers detect faults. Each canary is a fault planted in the lane or
//! the doorbell (see `canary.rs`), and the model named beside it must fail. Without the fault, the
//! model passes: `make loom`.
#![cfg(all(feature = "canaries", not(loom)))]

use std::path::{Path, PathBuf};
use std::process::Command;

/// Fault, its meaning, and the models in `src/lane` that catch it: one of `exhaustive_tests.rs`,
/// and one of `model_tests.rs`, with bounded preemptions.
const CANARIES: [(&str, &str, &str, &str); 13] = [
    ("skipped-wake-up", "the sender does not ring for a parked lane", "sleep_between", "parking"),
    ("relaxed-publish", "the tag is stored without release", "two_slots_and_two_links", "granting"),
    ("sleep-without-look", "the receiver sleeps without a look at bells", "two_sleeps", "parking"),
    ("park-ignores-intent", "extents are taken back in mid-packet", "parking", "parking_twice"),
    ("stale-nonce", "every run has the same nonce", "parking", "host_memory"),
    ("host-reuse", "a host chunk is used again before it was read", "host_chunks", "host_memory"),
    ("bell-lost", "a bell is not in the summary", "two_sleeps", "parking"),
    ("grant-before-nonce", "a grant is published before its nonce", "credit_comes", "granting"),
    ("unseen-parking", "a sender does not see that it was parked", "late_bell", "parking_twice"),
    ("bell-forgotten", "a bell answered while parking is forgotten", "parking_twice", "parking"),
    ("one-small-chunk", "the small chunks do not alternate", "parking_early", "parking_early"),
    ("skipped-light-fence", "the sender has no fence before its look", "parking", "parking"),
    ("skipped-heavy-fence", "the receiver has no fence before its look", "parking", "parking"),
];

/// Every planted fault makes its model fail.
#[test]
fn every_canary_is_caught() {
    let models = build_models();
    let mut survivors = Vec::new();
    let tries = CANARIES.iter().flat_map(|(fault, what, exhaustive, bounded)| {
        let models = [("exhaustive_tests", exhaustive), ("model_tests", bounded)];
        models.map(|(file, model)| (fault, what, format!("{file}::{model}")))
    });
    for (fault, what, model) in tries {
        let output = Command::new(&models)
            .args(["--exact", &format!("lane::{model}"), "--test-threads", "1"])
            .env("BELLWIRE_CANARY", fault)
            .env("RUST_BACKTRACE", "0")
            .output()
            .expect("the models can be executed");
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(printed.contains("running 1 test"), "no model is called {model}: {printed}");
        if output.status.success() {
            survivors.push(format!("{fault} ({what}) was not caught by {model}"));
        }
    }
    assert!(survivors.is_empty(), "{}", survivors.join("\n"));
}

/// Builds the models with the canaries in, as `make loom` does, and returns the path of the binary.
fn build_models() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("loom");
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["test", "--no-run", "--profile", "loom", "--lib", "--features", "canaries"])
        .args(["--message-format", "json", "--manifest-path"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"))
        .arg("--target-dir")
        .arg(target)
        .env("RUSTFLAGS", "--cfg loom")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .output()
        .expect("cargo can be executed");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "the models do not build: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let (_, rest) = printed.rsplit_once("\"executable\":\"").expect("cargo names what it built");
    let (path, _) = rest.split_once('"').expect("the name ends");
    PathBuf::from(path)
}
