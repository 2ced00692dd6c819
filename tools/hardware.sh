#!/usr/bin/env bash
# Usage: tools/hardware.sh short|full [BLOCK ...]
# Checks the RTL under hardware/: layouts, lint, lock-step with the model, proofs, planted faults,
# areas. `full` runs 10^8 cycles of each block in lock-step, proofs of minutes, mutants, place and
# route, and an optimized runner.
# If the tools cannot be installed, this says NOT RUN and succeeds.
set -euo pipefail
. "$(dirname "$0")/ran.sh"

form="${1:?short or full}"
shift
environment="${CARGO_TARGET_DIR:-target}/hardware/tools"
[ -e "$environment/wheels" ] ||
    not_run "hardware" "its tools cannot be installed (needs python3-venv, c++, perl and a package index)"

if [ "$form" = full ]; then
    cargo build -q --release -p bellwire-hardware
    runner="${CARGO_TARGET_DIR:-target}/release/hardware"
    cycles=100000000
    long=(--long)
else
    runner="$(built bellwire-hardware hardware)"
    cycles=1000000
    long=()
fi

hardware() {
    RUST_BACKTRACE=0 "$runner" --tools "$environment" --out "${CARGO_TARGET_DIR:-target}/hardware" \
        "${long[@]}" "${blocks[@]}" "$@"
}

blocks=()
for block in "$@"; do blocks+=(--block "$block"); done
hardware layouts --check
hardware lint
hardware lockstep --cycles "$cycles"
hardware prove
hardware faults
hardware synthesize
if [ "$form" = full ]; then
    hardware mutants --count 240
    hardware place
fi
