#!/usr/bin/env bash
# Usage: tools/crates.sh [short]
# Checks the crates that a user depends on: `bellwire` and all that it needs. `short` sees that each
# can be packed, with what a registry shows of it. Otherwise each package is built by itself, by the
# oldest Rust that Cargo.toml promises, and is compared with the last version, if there is one.
set -euo pipefail
. "$(dirname "$0")/ran.sh"

mapfile -t crates < <(cargo tree -p bellwire -e normal --prefix none -f '{p}' |
    sed -n 's/^\(bellwire[a-z-]*\) .*/\1/p' | sort -u)
[ "${#crates[@]}" -ge 10 ] || { echo "error: crates: only ${crates[*]}" >&2; exit 1; }
chosen=("${crates[@]/#/-p}")
passed=0

# complete CRATE: its package has what a registry shows.
complete() {
    local crate="$1" file
    cargo package -p "$crate" --list --allow-dirty >"$folder/list" || return 1
    for file in Cargo.toml README.md LICENSE-MIT LICENSE-APACHE src/lib.rs; do
        grep -qx "$file" "$folder/list" || { echo "error: crates: $crate has no $file"; return 1; }
    done
    cargo metadata --no-deps --format-version 1 | python3 -c '
import json, sys
crate, = (one for one in json.load(sys.stdin)["packages"] if one["name"] == sys.argv[1])
wanted = "description license rust_version documentation readme keywords categories".split()
missing = [name for name in wanted if not crate[name]]
# A dependency within a package has a version, or nobody else can build it.
missing += [one["name"] for one in crate["dependencies"] if one["kind"] is None and one["req"] == "*"]
if crate["publish"] == []:
    missing.append("publish = true")
if missing:
    sys.exit("error: crates: " + sys.argv[1] + " lacks " + ", ".join(missing))
' "$crate"
}

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
printf '== crates: %s\n' "${crates[*]}"
for crate in "${crates[@]}"; do
    complete "$crate"
    passed=$((passed + 1))
done
# This one is not for users, so it lacks what they need.
if complete bellwire-testkit >/dev/null 2>&1; then
    echo 'error: crates: a crate without a readme is taken for complete' >&2
    exit 1
fi
passed=$((passed + 1))

if [ "${1:-}" != short ]; then
    quietly "crates: each package is built by itself" cargo package --allow-dirty "${chosen[@]}"
    passed=$((passed + 1))
    oldest="$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)"
    if cargo "+$oldest" --version >/dev/null 2>&1; then
        quietly "crates: Rust $oldest builds them" env \
            CARGO_TARGET_DIR="$(realpath -m "${CARGO_TARGET_DIR:-target}")/msrv" cargo "+$oldest" check --locked "${chosen[@]}"
        passed=$((passed + 1))
    else
        printf 'NOT RUN: crates: Rust %s cannot be installed\n' "$oldest"
    fi
    last="$(git tag --list 'v[0-9]*' --sort=-version:refname | head -n 1)"
    if [ -z "$last" ]; then
        echo 'NOT RUN: crates: semantic versions: no tag v* marks a former version'
    elif cargo semver-checks --version >/dev/null 2>&1; then
        quietly "crates: what changed since $last fits the version" cargo semver-checks --baseline-rev "$last" "${chosen[@]}"
        passed=$((passed + 1))
    else
        echo 'NOT RUN: crates: semantic versions: cargo install cargo-semver-checks'
    fi
fi
printf 'test result: ok. %s passed; 0 failed\n' "$passed"
