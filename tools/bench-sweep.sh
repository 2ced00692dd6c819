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
cargo build -q --release -p bellwire-cli -p bellwire-sweep --examples --bins >&2
PATH="$tools/bin:$PATH" maturin build -q --release --manifest-path "$top/Cargo.toml" --out "$folder/wheels" >&2
"$tools/bin/python" -m pip install -q --no-deps --target "$folder/package" "$folder"/wheels/*.whl >&2

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
# seconds: of a run of the command, which begins anew.
seconds() {
    rm -f "$folder/sweep.parquet"
    "$@" "$target/release/bellwire" model sweep "$folder/sweep.toml" --json |
        "$tools/bin/python" -c 'import json, sys; told = json.load(sys.stdin); assert told["failed"] == 0; print(told["seconds"])'
}
for _ in $(seq "$rounds"); do
    "$target/release/examples/plain_loop" "$folder/sweep.toml" | cut -d' ' -f2 >>"$folder/loop"
    seconds taskset -c 0 >>"$folder/one"
    seconds env >>"$folder/all"
done
# line WHAT FILE CORES: the median of the rounds.
line() {
    sort -g "$folder/$2" | awk -v what="$1" -v cores="$3" '{ of[NR] = $1 } END {
        median = of[int((NR + 1) / 2)]
        printf "%-28s %8.2f s %9.0f points/s/core\n", what, median, 10000 / median / cores }'
}
printf '10000 points of chpp, median of %s rounds\n' "$rounds"
line "plain loop" loop 1
line "bellwire model sweep, 1 core" one 1
line "bellwire model sweep, $cores cores" all "$cores"
PYTHONPATH="$folder/package" "$tools/bin/python" "$top/bench/sweep.py" "$folder/sweep.toml" "$cores" "$rounds"
