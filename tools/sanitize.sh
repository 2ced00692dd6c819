#!/usr/bin/env bash
# Usage: tools/sanitize.sh [PACKAGE ...]
# Runs the tests of the packages with unsafe code under the address sanitizer, which stops at a read
# or write beyond memory, or of memory that was freed. Without packages: those of the devices, the
# engine and libibverbs. Then Miri executes all tests of the ring, also those that are too long for
# `make test`. It takes half an hour, so it is no part of a test. Both come with nightly toolchains
# only; without one this says NOT RUN.
set -euo pipefail
. "$(dirname "$0")/ran.sh"

install="rustup toolchain install nightly --component rust-src"
command -v rustup >/dev/null || not_run "sanitize" "it is installed by rustup, which is not here"
cargo +nightly --version >/dev/null 2>&1 || not_run "sanitize" "no nightly toolchain ($install)"
[ "$(uname -m)" = x86_64 ] || not_run "sanitize" "it was tried on x86-64 only"

host=x86_64-unknown-linux-gnu
export RUSTFLAGS="${RUSTFLAGS:-} -Zsanitizer=address"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/sanitize"
# Leaks are not looked for: functions that are abandoned as a crash would leave memory, by design.
export ASAN_OPTIONS="detect_leaks=0:detect_stack_use_after_return=1:${ASAN_OPTIONS:-}"
sanitized() { cargo +nightly test --target "$host" "$@"; }

# What finds nothing must be able to find something: a bound that is off by one, planted in the type
# by which all devices reach shared memory.
canary="$(mktemp)"
trap 'rm -f "$canary"' EXIT
if BELLWIRE_CANARY=part-beyond-end sanitized -p bellwire-ring --features canaries --test memory \
    a_read_beyond_the_end >"$canary" 2>&1 || ! grep -q 'AddressSanitizer: heap-buffer-overflow' "$canary"; then
    cat "$canary" >&2
    printf 'error: sanitize: the planted read beyond the end was not reported\n' >&2
    exit 1
fi
printf 'test a planted read beyond the end is reported (canary) ... ok\n'

[ $# -gt 0 ] || set -- bellwire-ring bellwire-device bellwire-shm bellwire-ethernet bellwire bellwire-rdma
for package in "$@"; do
    # One at a time: the sanitizer takes twice the memory.
    ran_some "address sanitizer in $package" sanitized -p "$package" --lib --tests
done

# Neither flags nor tests of the sanitizer.
ring=(env -u RUSTFLAGS CARGO_TARGET_DIR="${CARGO_TARGET_DIR%/sanitize}/miri" MIRIFLAGS=-Zmiri-seed=0
    cargo +nightly miri test -p bellwire-ring --tests)
ran_some "Miri in all tests of bellwire-ring" "${ring[@]}"
