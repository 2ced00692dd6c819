#!/usr/bin/env bash
# Usage: both-ends.sh PROTOCOL PORT SERVER CLIENT
# Runs a server, and a client as soon as the server's port is there. Both must succeed. It needs
# /proc, and no file that can be written.
set -euo pipefail

# The words of a command are apart.
# shellcheck disable=SC2086
# Without /dev/null a job in the background cannot get it as its input.
timeout -k 5 100 $3 <&0 &
server=$!
port="$(printf ':%04X ' "$2")"
found=""
for _ in $(seq 300); do
    listed="$(cat /proc/net/"$1" /proc/net/"$1"6 2>/proc/self/fd/1 || true)"
    # The state of a listener, or of a socket of udp that is bound.
    if [[ "$listed" =~ $port[0-9A-F:]+\ (0A|07) ]]; then found=1; break; fi
    sleep 0.1
done
[ -n "$found" ] || { printf 'nobody listens on %s port %s\n' "$1" "$2"; exit 1; }
# shellcheck disable=SC2086
timeout -k 5 100 $4
wait $server
