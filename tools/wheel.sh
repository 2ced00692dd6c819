#!/usr/bin/env bash
# Usage: tools/wheel.sh FOLDER [OPTION ...]
# Builds a wheel of the Python package into FOLDER by maturin, with these options for it. The wheel
# holds our licences, and those of the crates in it. maturin is that of target/python, or of PATH.
set -euo pipefail

folder="$1"
shift
licences=bindings/python/LICENCES
trap 'rm -f "$licences"' EXIT
tools/licences.py bellwire-python >"$licences"
PATH="$(realpath -m "${CARGO_TARGET_DIR:-target}")/python/bin:$PATH" \
    maturin build -q --manifest-path bindings/python/Cargo.toml --out "$folder" "$@" >&2
wheels=("$folder"/bellwire-*-cp39-abi3-*.whl)
files="$(python3 -m zipfile -l "${wheels[-1]}")"
for text in LICENCES LICENSE-APACHE LICENSE-MIT; do
    grep -q "/licenses/$text " <<<"$files" ||
        { echo "error: wheel: $text is missing in the wheel" >&2; exit 1; }
done
