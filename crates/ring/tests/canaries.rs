//! Shows that the checkers of this crate see: each canary is a fault planted in the lane or the doorbell (see `canary.rs`),
//! and the model that is named beside it must fail. Without the fault, that model passes: `make loom`.
#![cfg(all(feature = "canaries", not(loom)))]

use std::path::{Path, PathBuf};
use std::process::Command;

/// Fault, the model in `lane/model_tests.rs` that catches it, and what is wrong.
const CANARIES: [(&str, &str, &str); 13] = [
    ("skipped-wake-up", "parking", "the sender does not ring for a parked lane"),
    ("relaxed-publish", "granting", "the tag is stored without release"),
    ("sleep-without-look", "parking", "the receiver sleeps without a look at the bells"),
    ("park-ignores-intent", "parking_twice", "extents are taken back in mid-packet"),
    ("stale-nonce", "host_memory", "every run has the same nonce"),
    ("host-reuse", "host_memory", "a host chunk is used again before it was read"),
    ("bell-lost", "parking", "a bell is not in the summary"),
    ("grant-before-nonce", "granting", "a grant is published before its nonce"),
    ("unseen-parking", "parking_twice", "a sender that missed a parking stays in its old extent"),
    ("bell-forgotten", "parking", "a bell that was answered while parking is forgotten"),
    ("one-small-chunk", "parking_early", "the small chunks do not alternate"),
    ("skipped-light-fence", "parking", "the sender has no fence between write and look"),
    ("skipped-heavy-fence", "parking", "the receiver has no fence between write and look"),
];

/// Every planted fault makes its model fail.
#[test]
fn every_canary_is_caught() {
    let models = build_models();
    let mut survivors = Vec::new();
    for (fault, model, what) in CANARIES {
        let output = Command::new(&models)
            .args(["--exact", &format!("lane::model_tests::{model}"), "--test-threads", "1"])
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

/// Builds the models with the canaries in, and returns where they are.
fn build_models() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("loom");
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["test", "--no-run", "--release", "--lib", "--features", "canaries"])
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
