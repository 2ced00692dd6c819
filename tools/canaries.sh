#!/usr/bin/env bash
# Usage: tools/canaries.sh PACKAGE ...
# Runs the canaries of each package: faults that are planted on purpose and that a checker must catch. All packages are built at once, and as
# members of the workspace, so that nothing is built again that another step has built already.
set -euo pipefail
. "$(dirname "$0")/ran.sh"

[ $# -gt 0 ] || not_run "canaries" "no package is listed in CANARY_PACKAGES of the Makefile"
features="$(printf ',%s/canaries' "$@")"
ran_each $# "canaries of $*" \
    cargo test --workspace --features "${features#,}" --test canaries --no-fail-fast
