#!/usr/bin/env bash
# Usage: tools/miri.sh PACKAGE ...
# Executes the library tests of each package under Miri, which finds undefined behaviour, with
# several seeds for its scheduler (MIRI_SEEDS, 8 by default). Miri comes with nightly toolchains
# only. Without it, this says NOT RUN and succeeds: the project needs only a stable toolchain.
set -euo pipefail
. "$(dirname "$0")/ran.sh"

install="rustup toolchain install nightly --component miri,rust-src"
[ $# -gt 0 ] || not_run "Miri" "no package is listed in MIRI_PACKAGES of the Makefile"
command -v rustup >/dev/null || not_run "Miri" "it is installed by rustup, which is not here"
cargo +nightly miri --version >/dev/null 2>&1 ||
    not_run "Miri" "it is not installed ($install)"
cargo +nightly miri setup >/dev/null 2>&1 ||
    not_run "Miri" "its standard library could not be built ($install)"

# The first seed is shown and counted. The others run beside each other, so their output is only of
# use if one fails.
seeds="1..${MIRI_SEEDS:-8}"
for package in "$@"; do
    test=(cargo +nightly miri test -p "$package" --lib)
    MIRIFLAGS="${MIRIFLAGS:-} -Zmiri-seed=0" ran_some "Miri in $package" "${test[@]}"
    MIRIFLAGS="${MIRIFLAGS:-} -Zmiri-many-seeds=$seeds" quietly "Miri in $package, seeds $seeds" \
        "${test[@]}"
done
