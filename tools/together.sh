#!/usr/bin/env bash
# Usage: tools/together.sh TARGET ...
# Makes each target beside the others, and shows what each wrote when all have ended; fails if one failed. For targets that build in folders of
# their own and depend on no clock: one core alone is busy with most of them, and each is over when the longest is.
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
