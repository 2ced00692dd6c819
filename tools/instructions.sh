#!/usr/bin/env bash
# Usage: tools/instructions.sh [--write]
# Counts the instructions of each operation of crates/verbs/examples/operations.rs with callgrind.
# They may differ by 3 % from the table in docs/data-path.md. Work that is planted in one operation
# must be found. --write puts the counts into the table instead.
set -euo pipefail
. "$(dirname "$0")/ran.sh"

page=docs/data-path.md
compiler="$(rustc --version | cut -d' ' -f2)"
command -v valgrind >/dev/null || not_run "instructions" "valgrind is not installed (Debian: valgrind)"
[ "$(uname -m)" = x86_64 ] || not_run "instructions" "the table is of x86-64"
[ "${1:-}" = --write ] || grep -q "rustc $compiler " "$page" ||
    not_run "instructions" "the table in $page is of another compiler than $compiler; tools/instructions.sh --write"

cargo build -q --release -p bellwire --example operations
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT

# count [extra]: prints each operation with its instructions. What is not a packet is checked by the
# clock, and not counted.
count() {
    timeout 600 valgrind --tool=callgrind --callgrind-out-file="$folder/profile" \
        --toggle-collect='*ShmTransport*check*' --collect-atstart=yes \
        "${CARGO_TARGET_DIR:-target}/release/examples/operations" "$@" >"$folder/log" 2>&1 ||
        { cat "$folder/log" >&2; return 1; }
    # A function's name stands behind its number where it is first used. The line after `calls=` has
    # the instructions of these calls, in its last column.
    awk '
        /^c?fn=/ {
            number = $1; sub(/^c?fn=/, "", number)
            if (NF > 1) { name = $2; sub(/'"'"'[0-9]+$/, "", name); names[number] = name }
            called = names[number]
        }
        /^calls=/ { times = $1; sub(/^calls=/, "", times); behind = 1; next }
        behind { behind = 0; calls[called] += times; cost[called] += $NF }
        END {
            for (name in calls)
                if (sub(/^operations::(post|poll|put)_/, "&", name))
                    printf "%s %.0f\n", substr(name, 13), cost[name] / calls[name]
        }' "$folder/profile" | sort
}

# compare: the lines of `count` with the table.
compare() {
    awk '
        NR == FNR { if (match($0, /^\| `[a-z_0-9]+` \| [0-9]+ \|/)) { gsub(/`/, "", $2); due[$2] = $4 } next }
        !($1 in due) { print "  " $1 ": " $2 ", and not in the table"; wrong = 1; next }
        { off = ($2 - due[$1]) / due[$1] * 100; seen[$1] = 1 }
        off > 3 || off < -3 { printf "  %s: %d, in the table %d (%+.1f %%)\n", $1, $2, due[$1], off; wrong = 1 }
        END {
            for (name in due) if (!(name in seen)) { print "  " name ": not counted"; wrong = 1 }
            exit wrong
        }' "$page" -
}

printf '== instructions: callgrind counts the small path\n'
counts="$(count)"
if [ "${1:-}" = --write ]; then
    awk -v compiler="$compiler" '
        NR == FNR { now[$1] = $2; next }
        match($0, /^\| `[a-z_0-9]+` \| [0-9]+ \|/) { name = $2; gsub(/`/, "", name); sub(/\| [0-9]+ \|/, "| " now[name] " |") }
        { sub(/rustc [0-9.]+ /, "rustc " compiler " "); print }' - "$page" <<<"$counts" >"$folder/page"
    cp "$folder/page" "$page"
    exit
fi
compare <<<"$counts" || { echo "error: the small path has other counts than $page" >&2; exit 1; }
if compare <<<"$(count extra)" >/dev/null; then
    echo "error: instructions: the planted work was not found" >&2
    exit 1
fi
printf '== instructions: passed\n'
