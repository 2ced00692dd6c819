#!/usr/bin/env bash
# Usage: tools/robust.sh [RUNS [COMMAND ARGUMENT...]]
# Runs a command (`make unit`) several times (5) beside two busy loops per processor, and as often
# held to one processor, as many at once as there are processors. Each run has a log in
# target/robust. Fails if one of the runs failed.
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
# Whoever ends this script ends what it runs.
end_all() {
    mapfile -t running < <(jobs -p)
    kill "${running[@]}" 2>/dev/null || true
    exit 130
}
trap end_all INT TERM HUP

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

# one NAME RUN COMMAND...: a run, and what became of it in a line.
one() {
    local name="$1" run="$2" begin=$SECONDS status=0
    shift 2
    local log="$logs/$name-$run.log"
    trap end_all TERM
    # A process group, which ends as a whole.
    timeout 0 "$@" >"$log" 2>&1 </dev/null &
    wait $! || status=$?
    # test result: ok. 11 passed; 0 failed; ...
    awk -v what="$name, run $run of $runs" -v status="$status" -v s=$((SECONDS - begin)) \
        -v log_file="$log" '
        /^test result: / { passed += $4; failed += $6 }
        END {
            printf "%s: %s (%d tests passed, %d failed, %d s): %s\n", what,
                status ? "FAILED" : "passed", passed, failed, s, log_file
        }' "$log"
    return "$status"
}

start_loops
for ((run = 1; run <= runs; run++)); do
    one beside-busy-loops "$run" "$@" || failed=$((failed + 1))
done
stop_loops

# The processors that this process may use.
mapfile -t processors < <(taskset -c -p $$ | sed 's/.*: //; s/,/\n/g' |
    awk -F- '{ for (at = $1; at <= ($2 == "" ? $1 : $2); at++) print at }')
for ((run = 1; run <= runs; run += ${#processors[@]})); do
    held=()
    for processor in "${processors[@]:0:runs - run + 1}"; do
        one on-one-processor $((run + ${#held[@]})) taskset -c "$processor" "$@" &
        held+=($!)
    done
    for id in "${held[@]}"; do wait "$id" || failed=$((failed + 1)); done
done

printf '%d of %d runs failed\n' "$failed" $((2 * runs))
[ "$failed" = 0 ]
