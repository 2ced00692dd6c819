#!/usr/bin/env bash
# Usage: tools/canaries.sh PACKAGE ...
# Runs the canaries of each package: faults that are planted on purpose and that a checker must catch.
set -euo pipefail
. "$(dirname "$0")/ran.sh"

[ $# -gt 0 ] || not_run "canaries" "no package is listed in CANARY_PACKAGES of the Makefile"
for package in "$@"; do
    ran_some "canaries of $package" cargo test -p "$package" --features canaries --test canaries
done
