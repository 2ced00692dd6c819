#!/usr/bin/env bash
# Usage: tools/dissector.sh
# Has tshark read a capture of frames of every kind with the dissector, and compares field by field
# with the project's own parser. Needs tshark; without it, this says NOT RUN and succeeds.
set -euo pipefail
. "$(dirname "$0")/ran.sh"

command -v tshark >/dev/null ||
    not_run "dissector" "tshark is not installed (Debian and Ubuntu: sudo apt-get install tshark)"

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
printf '== dissector: the frames of examples/capture.rs, read by tshark\n'
cargo run -q -p bellwire-protocol --example capture -- "$folder/frames.pcapng" >"$folder/expected"

fields=(kind function from length token sequence acknowledged credit.requests check.status section packet
    packet.length news.queue_pair received.bitmap open.incarnation seek.nonce challenge.cookie)
tshark -r "$folder/frames.pcapng" -X "lua_script:$(dirname "$0")/dissector/bellwire.lua" \
    -T fields -E separator=/t -E occurrence=a -E aggregator=, "${fields[@]/#/-ebellwire.}" \
    >"$folder/actual" 2>"$folder/complaints"

if grep -i 'lua.*error' "$folder/complaints" || ! diff "$folder/expected" "$folder/actual"; then
    printf 'error: the dissector does not read what was written (expected: <, read: >)\n' >&2
    exit 1
fi

# The capture must have each kind of frame and section, as Ethernet and as UDP, and a damaged frame.
for kind in 1 2 3 4 5 6 7 8 9 10; do
    cut -f1 "$folder/actual" | grep -qx "$kind" || { echo "error: no frame of kind $kind" >&2; exit 1; }
    cut -f10 "$folder/actual" | tr , '\n' | grep -qx "$kind" || [ "$kind" -gt 5 ] ||
        { echo "error: no section of kind $kind" >&2; exit 1; }
done
cut -f9 "$folder/actual" | grep -qx 0 || { echo "error: no damaged frame" >&2; exit 1; }
# The line that counts as a test.
printf 'test result: ok. %s passed; 0 failed\n' "$(wc -l <"$folder/actual")"
