#!/usr/bin/env bash
# Usage: tools/together.sh TARGET ...
# Makes all targets at the same time, and shows the output of each when all have ended. Fails if one
# failed. For targets that build in folders of their own and depend on no clock: most of them use
# one core, so together they take as long as the longest.
set -euo pipefail

logs="$(mktemp -d)"
trap 'rm -rf "$logs"' EXIT
for target in "$@"; do
    (
        status=0
        make --no-print-directory "$target" >"$logs/$target" 2>&1 || status=$?
        echo "$status" >"$logs/$target.status"
    ) &
done
echo "== $*: beside each other"
wait

failed=""
for target in "$@"; do
    cat "$logs/$target"
    [ "$(cat "$logs/$target.status")" = 0 ] || failed="$failed $target"
done
[ -z "$failed" ] || {
    printf 'error: failed:%s\n' "$failed" >&2
    exit 1
}
