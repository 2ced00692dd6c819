#!/usr/bin/env bash
# Usage: [ROUNDS=5] [FABTESTS=PREFIX] tools/bench-mpi.sh
# Measures the provider beside its peers, in turns of one run: one way of a message and back, and messages one after the other, between two processes
# of one host and, as root, of two hosts (network namespaces). First as libfabric's programs see it, then as MPI's do (NetPIPE through Open MPI).
# With FABTESTS, where libfabric's own tests are installed, their tagged benchmarks are used instead of fi_pingpong.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds="${ROUNDS:-5}"
target="${CARGO_TARGET_DIR:-$PWD/target}"

# The first call prepares, and has the second one measure; whatever that starts, ends with this one.
if [ "${1:-}" != --measure ]; then
    cargo build -q --release -p bellwire-libfabric
    folder="$(mktemp -d)"
    child=
    trap '[ -z "$child" ] || kill -KILL "$child" 2>/dev/null || true; rm -rf "$folder"' EXIT
    trap 'exit 130' INT TERM HUP
    cp "$target/release/libbellwire_fi.so" "$folder/libbellwire-fi.so"
    # The newest UCX, as a wheel, beside the system's.
    [ -d "$target/mpi" ] || python3 -m venv "$target/mpi" >/dev/null 2>&1 || true
    "$target/mpi/bin/pip" install -q libucx-cu12 >/dev/null 2>&1 || true
    export folder TMPDIR="$folder"
    if [ "$(id -u)" = 0 ]; then
        tools/alone.sh --two-hosts "$PWD/tools/bench-mpi.sh" --measure &
    else
        "$PWD/tools/bench-mpi.sh" --measure &
    fi
    child=$!
    wait "$child"
    exit
fi

newest="$(echo "$target"/mpi/lib/python3*/site-packages/libucx)"
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM HUP
export FI_PROVIDER_PATH="$folder" UCX_LOG_LEVEL=error OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
if [ "$(id -u)" = 0 ]; then
    near=(ip netns exec near) far=(ip netns exec far) at=10.99.0.1
    # Whoever starts ranks on a host finds it here.
    printf '#!/bin/sh\nshift\nexec ip netns exec far unshare --uts sh -c "hostname far; $*"\n' >"$folder/agent"
    chmod +x "$folder/agent"
else
    near=() far=() at=127.0.0.1
fi
# Messages of so many bytes, and how many of them: on one host, and between two.
host_sizes=(8:20000 1024:20000 4096:10000 16384:5000 65536:2000 262144:1000 1048576:300 4194304:60)
wire_sizes=(8:2000 1024:2000 4096:1500 16384:1000 65536:400 262144:150 1048576:60 4194304:20)

# note TABLE BYTES NAME: takes a time in microseconds, if there is one.
note() {
    local time
    read -r time || true
    case "$time" in *[0-9]*) echo "$1 $2 $3 $time" >>"$folder/times" ;; esac
}
# pair HOST COMMAND...: runs a server here and its client, which is told where the server is, on that host (`near` or `far`); prints what the client says.
pair() {
    local -n client="$1"
    shift
    timeout 30 "${near[@]}" "$@" >/dev/null 2>&1 &
    sleep 0.3
    timeout 30 "${client[@]}" "$@" $at 2>/dev/null || kill $! 2>/dev/null || true
    wait
}
# The time is in the last column but one.
fabric() { awk '$1 ~ /^[0-9]/ { time = $(NF - 1) } END { print time }'; }
fabric_pingpong() {
    local host="$1" provider="$2" bytes="$3" turns="$4"
    if [ -n "${FABTESTS:-}" ]; then
        pair "$host" "${FABTESTS%% *}/bin/fi_rdm_tagged_pingpong" -p "$provider" -I "$turns" -S "$bytes" | fabric
    else
        pair "$host" fi_pingpong -p "$provider" -e rdm -m tagged -I "$turns" -S "$bytes" | fabric
    fi
}
fabric_stream() { pair "$1" "${FABTESTS%% *}/bin/fi_rdm_tagged_bw" -p "$2" -I "$4" -S "$3" | fabric; }
# ucx HOST TLS LIBRARY TEST BYTES TURNS: of the system's UCX, or of the one in a folder.
ucx() {
    local program=ucx_perftest
    [ -z "$3" ] || program="$folder/ucx_perftest"
    UCX_TLS="$2" LD_LIBRARY_PATH="$3" pair "$1" $program -t "$4" -s "$5" -n "$6" -w 100 -f | awk '$1 ~ /^[0-9]+$/ { time = $4 } END { print time }'
}
# netpipe HOSTS MODE BYTES FLAGS...: half a round trip, or one message of a stream (MODE -s), in microseconds.
netpipe() {
    local where="$1" mode="$2" bytes="$3" start=()
    shift 3
    if [ "$where" = far ]; then
        start=(--host 10.99.0.1:1,10.99.0.2:1 --mca plm_rsh_agent "$folder/agent" --mca oob_tcp_if_include eth0)
    fi
    rm -f "$folder/np"
    timeout 60 "${near[@]}" unshare_name mpirun --oversubscribe -n 2 "${start[@]}" "$@" \
        NPopenmpi $mode -p 0 -l "$bytes" -u "$bytes" -o "$folder/np" >/dev/null 2>&1 || true
    awk '$1 == '"$bytes"' { print $3 * 1e6 }' "$folder/np" 2>/dev/null || true
}
