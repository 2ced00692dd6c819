#!/usr/bin/env bash
# Usage: tools/alone.sh [--two-hosts] COMMAND ARGUMENT...
# Runs a command, as root, that sees only its own processes and its own network. Its processes,
# mounts and interfaces end with it, and at the latest with the caller, however that ends. With
# --two-hosts there are two network namespaces as two hosts, `near` and `far`, joined by eth0, with
# the addresses 10.99.0.1 and 10.99.0.2. This runs something on the far one:
# `ip netns exec far unshare --uts sh -c 'hostname far; ...'`.
set -euo pipefail

if [ "${1:-}" != --inside ]; then
    exec setpriv --pdeathsig KILL unshare --net --mount --pid --fork --kill-child --mount-proc "$0" --inside "$@"
fi
shift
ip link set lo up
if [ "$1" = --two-hosts ]; then
    shift
    # Names of namespaces are mounts, and these are only ours.
    mkdir -p /run/netns
    mount -t tmpfs none /run/netns
    ip netns add near
    ip netns add far
    ip -n near link add eth0 type veth peer name eth0 netns far
    ip -n near address add 10.99.0.1/24 dev eth0
    ip -n far address add 10.99.0.2/24 dev eth0
    for host in near far; do ip -n $host link set lo up && ip -n $host link set eth0 up; done
    # The kernel looks at new interfaces once a second or so; until then some programs do not take
    # them.
    for host in near far; do until ip -n $host link show eth0 | grep -q LOWER_UP; do sleep 0.1; done; done
fi
exec "$@"
