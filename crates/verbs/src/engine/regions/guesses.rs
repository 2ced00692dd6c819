//! An attacker without a key, who guesses.

use super::{Regions, Request, splitmix};
use bellwire_device::{FunctionAddress, MemoryRegion, Rights, Status};
use bellwire_ring::memory::Memory;

const REGIONS: usize = 64;

/// Fills a table with regions whose keys have `bits` random bits. Requests each with every right
/// and random keys of the same number of bits. Returns the number of granted requests. Every
/// refusal must be because of the key.
fn hits(bits: u32, guesses: u64) -> u64 {
    let mask = u64::MAX >> (64 - bits);
    let mut regions = Regions::new(FunctionAddress { node: 1, function: 2 }, REGIONS, None);
    for _ in 0..REGIONS {
        let mut key = regions.reserve(4096).unwrap();
        key.key &= mask;
        let memory = Memory::from_vec(vec![0; 4096]);
        regions.enter(MemoryRegion::new(memory, Rights::all(), key), true);
    }
    let mut state = 0x6e55_u64;
    let mut hits = 0;
    for number in 0..guesses {
        let guess = splitmix(&mut state);
        let request =
            Request { key: guess & mask, index: number % REGIONS as u64, offset: 0, length: 8 };
        let right = [Rights::REMOTE_READ, Rights::REMOTE_WRITE, Rights::REMOTE_ATOMIC]
            [(number / REGIONS as u64 % 3) as usize];
        match regions.check(request, right) {
            Ok(_) => hits += 1,
            Err(status) => assert_eq!(status, Status::WrongKey),
        }
    }
    hits
}

/// A million guesses of the keys of 64 regions reach none of them. (`make guesses` tries 10^9.)
// shows: C-09
#[test]
fn guessed_keys_reach_nothing() {
    assert_eq!(hits(64, 1_000_000), 0);
}

/// The same with 10^9 guesses. Run it by name.
#[test]
#[ignore = "takes long: cargo test --release -p bellwire --lib guesses -- --ignored"]
fn a_thousand_million_guessed_keys_reach_nothing() {
    assert_eq!(hits(64, 1_000_000_000), 0);
}

/// Canary: keys of 16 bits are hit, so the test notices hits.
#[test]
fn short_keys_would_be_hit() {
    assert!(hits(16, 1_000_000) > 0);
}
