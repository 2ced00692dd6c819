#!/usr/bin/env bash
# Usage: tools/python.sh [short|full]
# Tests the Python package: types, stubs against the extension, tests, and the notebooks of the
# tutorial. `short` is part of `make test`: it uses the build of the other tests, and says NOT RUN
# where packages are missing. `full` builds a wheel, installs it into an environment of its own, and
# tests that, with each CPython that is found.
set -euo pipefail
. "$(dirname "$0")/ran.sh"

how="${1:-full}"
top="$PWD/bindings/python"
target="$(realpath -m "${CARGO_TARGET_DIR:-target}")"
tools="$target/python"
"$tools/bin/python" -c 'import pytest, numpy, mypy, pyarrow, polars, nbclient, ipykernel, matplotlib' 2>/dev/null || {
    [ "$how" = short ] || { printf 'error: python: packages are missing: tools/need.sh venv python\n' >&2; exit 1; }
    not_run "python" "pip cannot install its packages (needs python3-venv and a package index)"
}

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
passed=0 failed=0
# check WHAT COMMAND...: the command succeeds. The limit ends what hangs, and says nothing of speed.
check() {
    local what="$1"
    shift
    if timeout -k 5 600 bash -c '"$@"' - "$@" >"$folder/log" 2>&1; then
        passed=$((passed + 1))
        printf 'test python %s ... ok\n' "$what"
    else
        failed=$((failed + 1))
        printf 'test python %s ... FAILED (%s)\n' "$what" "$*"
        tail -n 60 "$folder/log"
    fi
}
# suite PYTHON WHAT: runs the tests and adds up their results.
suite() {
    local counts status=0
    timeout -k 5 900 "$1" -X faulthandler -m pytest -q "$top/tests" -p no:cacheprovider >"$folder/log" 2>&1 || status=$?
    # Skipped tests are counted nowhere, and said.
    counts="$(sed -nE 's/^(.*(passed|failed|error).*) in [0-9.]+s.*$/\1/p' "$folder/log" | tail -n 1)"
    passed=$((passed + $(grep -oE '[0-9]+ passed' <<<"$counts" | grep -oE '[0-9]+' || echo 0)))
    printf 'python tests (%s): %s\n' "$2" "${counts:-no result}"
    if [ "$status" != 0 ]; then
        failed=$((failed + 1))
        printf 'test python %s ... FAILED (status %s)\n' "$2" "$status"
        tail -n 120 "$folder/log"
    fi
    ! grep -q skipped <<<"$counts" || printf 'NOT RUN: python: %s (%s)\n' "$counts" "$2"
}
stubs() { (cd "$folder" && "$tools/bin/python" -m mypy.stubtest bellwire --mypy-config-file "$top/pyproject.toml"); }
notebooks() { "$tools/bin/python" "$top/notebooks/run.py" "$folder/notebooks"; }
# What compares types must see a wrong one.
canary() {
    mkdir -p "$folder/wrong" && cp -r "$1/bellwire" "$folder/wrong/"
    sed -i 's/def poll(self) -> /def poll(self, wrong: int) -> /' "$folder/wrong/bellwire/_bellwire.pyi"
    ! (cd "$folder" && PYTHONPATH="$folder/wrong" "$tools/bin/python" -m mypy.stubtest bellwire)
}
# `timeout` starts another shell.
export -f stubs notebooks canary
export top tools folder

if [ "$how" = short ]; then
    # No test needs the extension, so the build of the tests lacks it; the rest of it is used.
    if [ -n "${TESTS:-}" ]; then
        ${TESTS/cargo test/cargo build} --quiet >&2
    else
        cargo build -q -p bellwire-python -p bellwire-cli >&2
    fi
    extension="$target/debug/lib_bellwire.so"
    export BELLWIRE="$target/debug/bellwire"
    mkdir -p "$folder/package"
    cp -r "$top/python/bellwire" "$folder/package/"
    cp "$extension" "$folder/package/bellwire/_bellwire.abi3.so"
    export PYTHONPATH="$folder/package" MYPYPATH="$folder/package" MYPY_CACHE_DIR="$folder/mypy"
    check "types" "$tools/bin/python" -m mypy --config-file "$top/pyproject.toml" -p bellwire
    check "stubs" stubs
    check "wrong stubs are noticed" canary "$folder/package"
    suite "$tools/bin/python" short
    check "notebooks" notebooks
else
    "$tools/bin/python" -m pip install -q maturin >&2
    tools/wheel.sh "$folder/wheels" --release
    wheel="$(echo "$folder"/wheels/bellwire-*-cp39-abi3-*.whl)"
    printf 'python: %s\n' "$(basename "$wheel")"
    # The command hands sweeps to the package.
    cargo build -q --release -p bellwire-cli >&2
    export BELLWIRE="$target/release/bellwire"
    for version in 3.9 3.10 3.11 3.12 3.13 3.14; do
        # That of the system, or the newest one of pyenv.
        python=
        for found in "$(command -v "python$version")" $(ls -d "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version".*/bin/python 2>/dev/null | sort -rV); do
            "$found" -c 'import ensurepip' 2>/dev/null && python="$found" && break
        done
        [ -n "$python" ] || { printf 'NOT RUN: python: there is no CPython %s with ensurepip\n' "$version"; continue; }
        "$python" -m venv "$folder/$version"
        "$folder/$version/bin/python" -m pip install -q "$wheel" pytest numpy >&2
        # Tables need more, which old versions may lack.
        "$folder/$version/bin/python" -m pip install -q pyarrow polars >&2 || true
        "$folder/$version/bin/python" -m pip install -q pandas duckdb distributed ray >&2 || true
        suite "$folder/$version/bin/python" "CPython $version"
    done
    check "from the sources" "$tools/bin/python" -m pip install -q --no-deps --force-reinstall --target "$folder/sources" "$top"
    export PYTHONPATH="$folder/sources" MYPY_CACHE_DIR="$folder/mypy"
    check "types" "$tools/bin/python" -m mypy --config-file "$top/pyproject.toml" -p bellwire
    check "stubs" stubs
    check "wrong stubs are noticed" canary "$folder/sources"
    check "notebooks" notebooks
fi
if [ "$failed" = 0 ]; then result=ok; else result=FAILED; fi
printf 'test result: %s. %d passed; %d failed\n' "$result" "$passed" "$failed"
[ "$failed" = 0 ]
