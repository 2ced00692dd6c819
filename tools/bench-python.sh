#!/usr/bin/env bash
# Usage: tools/bench-python.sh
# Measures a ping-pong between two Python processes over Bellwire, beside the same without Python
# (crates/verbs/examples/ping_pong.rs), mpi4py, pyzmq, multiprocessing.Pipe, shared memory and Ray's
# object store, in one run. The memory is NumPy's, PyTorch's, or the library's. The rounds of all
# contenders alternate. Prints the median of the rounds, in microseconds one way. What is missing
# says NOT RUN.
set -euo pipefail
. "$(dirname "$0")/ran.sh"

top="$PWD/bindings/python"
target="$(realpath -m "${CARGO_TARGET_DIR:-target}")"
tools="$target/python"
[ -x "$tools/bin/python" ] || python3 -m venv "$tools"
"$tools/bin/python" -m pip install -q maturin numpy pyzmq mpi4py ray >&2
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
native="${NATIVE:-$target/release/examples/ping_pong}"
[ -n "${NATIVE:-}" ] || cargo build -q --release -p bellwire --example ping_pong >&2
if [ -z "${WHEEL:-}" ]; then
    PATH="$tools/bin:$PATH" maturin build -q --release --manifest-path "$top/Cargo.toml" --out "$folder/wheels" >&2
    WHEEL="$(echo "$folder"/wheels/*.whl)"
fi
"$tools/bin/python" -m pip install -q --no-deps --target "$folder/package" "$WHEEL" >&2
export PYTHONPATH="$folder/package"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# one CONTENDER BYTES: one round.
one() {
    local rounds=4000
    [ "$2" -le 4096 ] || rounds=300
    case "$1" in
        native)
            local cores first last other status=0
            cores="$(taskset -c -p $$ | sed 's/.*: //')"
            first="${cores%%[,-]*}" last="${cores##*[,-]}"
            taskset -c "$last" "$native" "bench-$$" 1 "$2" $rounds &
            other=$!
            taskset -c "$first" "$native" "bench-$$" 0 "$2" $rounds || status=$?
            wait "$other" || status=$?
            return "$status"
            ;;
        mpi) mpirun --oversubscribe -n 2 "$tools/bin/python" "$top/bench/pingpong.py" mpi "$2" $rounds ;;
        *) "$tools/bin/python" "$top/bench/pingpong.py" "$1" "$2" $rounds ;;
    esac
}
contenders="native bellwire bellwire-allocated bellwire-torch mpi zmq pipe shared-memory ray"
if ! "$tools/bin/python" -c 'import torch' 2>/dev/null && ! /usr/bin/python3 -c 'import torch' 2>/dev/null; then
    echo "NOT RUN: bench-python: tensors of PyTorch (Debian: python3-torch)"
    contenders="${contenders/ bellwire-torch/}"
fi
for bytes in ${SIZES:-8 1048576}; do
    for round in $(seq "${ROUNDS:-3}"); do
        for contender in $contenders; do
            printf '%s %s\n' "$contender" "$(one "$contender" "$bytes" 2>"$folder/log" || { tail -n 3 "$folder/log" >&2; echo nan; })" >>"$folder/$bytes"
        done
    done
    printf '\n%s B, us one way: median of the rounds (all rounds)\n' "$bytes"
    for contender in $contenders; do
        sed -n "s/^$contender //p" "$folder/$bytes" | sort -g >"$folder/sorted"
        printf '%-20s %10s   (%s)\n' "$contender" "$(sed -n "$(((${ROUNDS:-3} + 1) / 2))p" "$folder/sorted")" "$(paste -sd' ' "$folder/sorted")"
    done
done
