#!/usr/bin/env bash
# Usage: tools/robust.sh [RUNS [COMMAND ARGUMENT...]]
# Runs a command (`make unit`) several times (5) beside two busy loops per processor, and as often
# held to one processor. Each run has a log in target/robust. Fails if one of the runs failed.
set -euo pipefail
cd "$(dirname "$0")/.."

runs="${1:-5}"
[[ "$runs" =~ ^[1-9][0-9]*$ ]] || {
    printf 'robust.sh: RUNS is a number from 1, not `%s`\n' "$runs" >&2
    exit 2
}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- make --no-print-directory unit

logs="${CARGO_TARGET_DIR:-target}/robust"
rm -rf "$logs"
mkdir -p "$logs"
failed=0
loops=()

stop_loops() {
    [ ${#loops[@]} = 0 ] && return
    kill "${loops[@]}" 2>/dev/null || true
    wait "${loops[@]}" 2>/dev/null || true
    loops=()
}
trap stop_loops EXIT
trap 'exit 130' INT TERM HUP

# A loop ends by itself soon after this script, however that ends.
busy_loop() {
    trap - EXIT
    while kill -0 "$1" 2>/dev/null; do
        for ((turn = 0; turn < 100000; turn++)); do :; done
    done
}

start_loops() {
    local number
    for ((number = 0; number < 2 * $(nproc); number++)); do
        busy_loop $$ &
        loops+=($!)
    done
}

# several NAME COMMAND...: the runs of one setting.
several() {
    local name="$1" run log begin status
    shift
    for ((run = 1; run <= runs; run++)); do
        log="$logs/$name-$run.log"
        begin=$SECONDS
        status=0
        "$@" >"$log" 2>&1 </dev/null || status=$?
        [ "$status" = 0 ] || failed=$((failed + 1))
        # test result: ok. 11 passed; 0 failed; ...
        awk -v what="$name, run $run of $runs" -v status="$status" -v s=$((SECONDS - begin)) \
            -v log_file="$log" '
            /^test result: / { passed += $4; failed += $6 }
            END {
                printf "%s: %s (%d tests passed, %d failed, %d s): %s\n", what,
                    status ? "FAILED" : "passed", passed, failed, s, log_file
            }' "$log"
    done
}

start_loops
several beside-busy-loops "$@"
stop_loops
# The first processor that this process may use.
first="$(sed -n 's/^Cpus_allowed_list:[^0-9]*\([0-9]*\).*/\1/p' /proc/self/status)"
several on-one-processor taskset -c "$first" "$@"

printf '%d of %d runs failed\n' "$failed" $((2 * runs))
[ "$failed" = 0 ]
