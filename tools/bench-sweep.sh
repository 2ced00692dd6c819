#!/usr/bin/env bash
# Usage: tools/bench-sweep.sh
# Measures a sweep of 10,000 points: the command on one core and on all, beside a plain loop in one
# thread, and the Python package on this machine, on Dask and on Ray with as many workers as cores.
set -euo pipefail

top="$PWD/bindings/python"
target="$(realpath -m "${CARGO_TARGET_DIR:-target}")"
tools="$target/python"
[ -x "$tools/bin/python" ] || python3 -m venv "$tools"
"$tools/bin/python" -m pip install -q maturin pyarrow distributed ray >&2
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
# BIN and PACKAGE name what is built already: a folder of the command and examples, and one of the
# Python package.
if [ -z "${BIN:-}" ]; then
    cargo build -q --release -p bellwire-cli -p bellwire-sweep --examples --bins >&2
    PATH="$tools/bin:$PATH" maturin build -q --release --manifest-path "$top/Cargo.toml" --out "$folder/wheels" >&2
    "$tools/bin/python" -m pip install -q --no-deps --target "$folder/package" "$folder"/wheels/*.whl >&2
    BIN="$target/release" PACKAGE="$folder/package"
fi

cat >"$folder/sweep.toml" <<'TOML'
model = "chpp"
load = "operation"
points = 10000

[sobol]
"load.operation" = ["put", "get"]
"load.bytes" = { from = "64 B", to = "4 KiB", scale = "log" }
"nic.clock" = { from = "100 MHz", to = "500 MHz" }
"pcie.latency" = { from = "50 ns", to = "400 ns" }
"nic.module_cycles" = { from = 1, to = 8 }
TOML

rounds="${ROUNDS:-3}"
cores="$(nproc)"
TIMEFORMAT='%R %U %S'
# timed FILE COMMAND...: notes the time and the processor's time of a run that begins anew.
timed() {
    local file="$1"
    shift
    rm -f "$folder/sweep.parquet"
    { time "$@" >"$folder/told" 2>&1; } 2>>"$folder/$file"
}
for _ in $(seq "$rounds"); do
    timed loop taskset -c 0 "$BIN/examples/plain_loop" "$folder/sweep.toml"
    timed one taskset -c 0 "$BIN/bellwire" model sweep "$folder/sweep.toml"
    timed all "$BIN/bellwire" model sweep "$folder/sweep.toml"
done
# line WHAT FILE CORES: the medians of the rounds. The processor's time is the one to compare where
# the machine has other work.
line() {
    local seconds cpu
    seconds="$(cut -d' ' -f1 "$folder/$2" | sort -g | sed -n "$(((rounds + 1) / 2))p")"
    cpu="$(awk '{ print $2 + $3 }' "$folder/$2" | sort -g | sed -n "$(((rounds + 1) / 2))p")"
    awk -v what="$1" -v cores="$3" -v seconds="$seconds" -v cpu="$cpu" 'BEGIN {
        printf "%-28s %8.2f s %9.0f points/s/core %8.2f s of processors %9.0f points/s of them\n",
            what, seconds, 10000 / seconds / cores, cpu, 10000 / cpu }'
}
printf '10000 points of chpp, median of %s rounds\n' "$rounds"
line "plain loop" loop 1
line "bellwire model sweep, 1 core" one 1
line "bellwire model sweep, $cores cores" all "$cores"
PYTHONPATH="$PACKAGE" "$tools/bin/python" "$top/bench/sweep.py" "$folder/sweep.toml" "$cores" "$rounds"
