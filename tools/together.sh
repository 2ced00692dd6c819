#!/usr/bin/env bash
# Usage: tools/together.sh TARGET ...
# Makes all targets at the same time. The output of the first one is shown as it comes, that of each
# other one when all have ended. Fails if one failed. For targets that build in folders of their own
# and pass on a busy machine: none of them keeps all processors busy, so together they take less.
set -euo pipefail

logs="$(mktemp -d)"
trap 'rm -rf "$logs"' EXIT

# make_one TARGET: leaves its status in a file, and says how long it took.
make_one() {
    local status=0 began=$SECONDS
    make --no-print-directory "$1" || status=$?
    echo "== $1: $((SECONDS - began)) s"
    echo "$status" >"$logs/$1.status"
}

echo "== $*: beside each other"
for target in "${@:2}"; do
    make_one "$target" >"$logs/$target" 2>&1 &
done
make_one "$1"
wait

failed=""
for target in "$@"; do
    [ "$target" = "$1" ] || cat "$logs/$target"
    [ "$(cat "$logs/$target.status")" = 0 ] || failed="$failed $target"
done
[ -z "$failed" ] || {
    printf 'error: failed:%s\n' "$failed" >&2
    exit 1
}
