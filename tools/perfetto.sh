#!/usr/bin/env bash
# Usage: tools/perfetto.sh [TRACE]
# Reads a trace of the cHPP model, or TRACE, with Perfetto's own schema (of its Python package).
# Every field must be known, and no byte may be left over. Without the package this says NOT RUN and
# succeeds.
set -euo pipefail
. "$(dirname "$0")/ran.sh"

environment="${CARGO_TARGET_DIR:-target}/perfetto"
python="$environment/bin/python3"
"$python" -c 'import perfetto.protos.perfetto.trace.perfetto_trace_pb2' 2>/dev/null ||
    not_run "perfetto" "Perfetto's Python package cannot be installed (needs python3-venv and a package index)"

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
trace="${1:-$folder/put.pftrace}"
[ $# -gt 0 ] ||
    "$(built bellwire-cli bellwire)" model explain --op put --bytes 4096 --trace "$trace" >/dev/null
printf '== perfetto: %s, read with the schema of the perfetto package\n' "$(basename "$trace")"
"$python" - "$trace" <<'PYTHON'
import sys
from google.protobuf import unknown_fields
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

trace = Trace()
content = open(sys.argv[1], "rb").read()
assert trace.ParseFromString(content) == len(content), "bytes are left over"


def known(message, where):
    assert not len(unknown_fields.UnknownFieldSet(message)), f"unknown field in {where}"
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for inner in value if field.is_repeated else [value]:
                known(inner, f"{where}.{field.name}")


known(trace, "Trace")
kinds = [packet.track_event.type for packet in trace.packet if packet.HasField("track_event")]
assert kinds.count(TrackEvent.TYPE_SLICE_BEGIN) == kinds.count(TrackEvent.TYPE_SLICE_END) > 0
print(f"test result: ok. {len(trace.packet)} passed; 0 failed")
PYTHON
