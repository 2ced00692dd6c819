#!/usr/bin/env bash
# Usage: tools/loom.sh PACKAGE ...
# Runs the library tests of each package under loom, which executes them in every interleaving that
# the memory model allows. A package without such a test fails, so that no check passes without a
# run. The build has the features of its canaries (feature `canaries`, in tests/canaries.rs of the
# package), so that it is built once.
set -euo pipefail
. "$(dirname "$0")/ran.sh"

[ $# -gt 0 ] || not_run "loom" "no package is listed in LOOM_PACKAGES of the Makefile"
for package in "$@"; do
    RUSTFLAGS="${RUSTFLAGS:-} --cfg loom" \
        ran_some "loom in $package" cargo test -p "$package" --features canaries --profile loom --lib
done
