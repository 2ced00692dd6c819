#!/usr/bin/env bash
# Usage: tools/hardware.sh short|full [BLOCK ...]
#        tools/hardware.sh library
# Checks the RTL under hardware/: layouts, lint, lock-step with the model, proofs, planted faults,
# areas, and conformance of the device rtl:chpp. `full` runs 10^8 cycles of each block in lock-step,
# proofs of minutes, mutants, place and route, hosts of cocotbext-pcie, all of conformance, and an
# optimized runner. `library` builds the gates for the device rtl:chpp, and puts them beside
# optimized programs.
# If the tools cannot be installed, this says NOT RUN and succeeds.
set -euo pipefail
. "$(dirname "$0")/ran.sh"

form="${1:?short, full or library}"
shift
environment="${CARGO_TARGET_DIR:-target}/hardware/tools"
[ -e "$environment/wheels" ] ||
    not_run "hardware" "its tools cannot be installed (needs python3-venv, c++, perl and a package index)"

if [ "$form" != short ]; then
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

if [ "$form" = library ]; then
    mkdir -p "${CARGO_TARGET_DIR:-target}/release"
    hardware library "${CARGO_TARGET_DIR:-target}/release/libbellwire_rtl.so"
    exit
fi

hardware layouts --check
hardware lint
hardware lockstep --cycles "$cycles"
hardware prove
hardware faults
hardware synthesize
if [ "$form" = full ]; then
    hardware mutants --count 240
    hardware place
    tools/cocotb.sh
fi

# Of conformance over gates `short` has the parts that take seconds.
if [ "${#blocks[@]}" = 0 ]; then
    library="$(realpath "${CARGO_TARGET_DIR:-target}/hardware")/libbellwire_rtl.so"
    hardware library "$library"
    hardware table3 "$library"
    export BELLWIRE_RTL="$library" RUST_TEST_THREADS=2
    if [ "$form" = full ]; then
        ran_some "conformance over gates" cargo test -q --release -p bellwire-testkit \
            --features gates --test rtl
    else
        # shellcheck disable=SC2086 # a command with its arguments
        ran_some "conformance over gates" ${TESTS:-cargo test -p bellwire-testkit} -q \
            --features bellwire-testkit/gates --test rtl -- \
            batch:: channel:: connection:: fault:: function:: inbox:: object:: refusal:: thread::
    fi
fi
