#!/usr/bin/env bash
# Usage: tools/verbs-start.sh
# Runs the commands of docs/verbs-start.md as they stand there, as root on Debian: those for a
# machine, the Dockerfile in a new root that mmdebstrap makes, the steps of the GitHub workflow, and
# the two namespaces. There is no Docker: `docker run` becomes a chroot without capabilities in a
# network namespace, and an image of the registry a root of the same release.
set -euo pipefail
cd "$(dirname "$0")/.."
checkout="$PWD" page=docs/verbs-start.md
for tool in mmdebstrap ip setpriv cargo; do
    command -v $tool >/dev/null || { echo "verbs-start: $tool was not found" >&2; exit 1; }
done
[ "$(id -u)" = 0 ] || { echo "verbs-start: it makes roots and namespaces, so it needs root" >&2; exit 1; }
folder="$(mktemp -d)"
spaces=(verbs-peer-$$ verbs-own-$$)
tidy() {
    for space in "${spaces[@]}" left right; do
        ip netns pids $space 2>/dev/null | xargs -r kill 2>/dev/null || true
        ip netns del $space 2>/dev/null || true
    done
    for place in proc dev; do
        umount "$folder/root/$place" 2>/dev/null || true
    done
    rm -rf --one-file-system "$folder"
}
for space in left right; do
    [ ! -e /run/netns/$space ] || { echo "verbs-start: there is a namespace $space already" >&2; exit 1; }
done
trap tidy EXIT
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$checkout/target}"
export RUSTUP_HOME="${RUSTUP_HOME:-$HOME/.rustup}" CARGO_HOME="${CARGO_HOME:-$HOME/.cargo}"

# block TITLE KIND: the indented lines, or the fenced block of a kind, below a title of the page.
block() {
    awk -v title="## $1" -v kind="$2" '
        /^## / { inside = ($0 == title) }
        !inside { next }
        kind == "" && !fenced && /^    / { print substr($0, 5) }
        $0 == "```" && fenced { fenced = 0 }
        kind != "" && fenced && wanted { print }
        /^```./ { fenced = 1; wanted = ($0 == "```" kind) }' $page
}
# nonempty FILE
nonempty() { [ -s "$1" ] || { echo "verbs-start: $page has no such block: $1" >&2; exit 1; }; }
say() { printf '== verbs-start: %s\n' "$*"; }
# runs WHAT SCRIPT: each line as at a prompt; all must succeed, those in the background, too.
runs() {
    local jobs
    say "$1"
    { cat "$2"; echo 'for job in $(jobs -p); do wait $job; done'; } >"$2.all"
    HOME="$folder/home" timeout 900 bash -ex "$2.all"
}
mkdir "$folder/home"

block "A machine" "" >"$folder/machine"
nonempty "$folder/machine"
runs "a machine" "$folder/machine"

say "the Dockerfile"
block "A Dockerfile" dockerfile >"$folder/dockerfile"
nonempty "$folder/dockerfile"
stage=0
while read -r word rest; do
    case $stage$word in
        *FROM) stage=$((stage + 1)); [ $stage = 1 ] || mmdebstrap --quiet --variant=minbase \
            "$(sed 's/.*:\([a-z]*\).*/\1/' <<<"$rest")" "$folder/root" ;;
        1COPY) [ "$rest" = ". /src" ] ;;
        1RUN) bash -exc "$(sed "s,/src,$checkout,; s,/out,$folder/out," <<<"$rest")" ;;
        2RUN) chroot "$folder/root" sh -exc "DEBIAN_FRONTEND=noninteractive; $rest" >"$folder/log" 2>&1 ||
            { cat "$folder/log"; exit 1; } ;;
        2COPY)
            read -r from source to <<<"$rest"
            [ "$from" = --from=build ]
            mkdir -p "$folder/root$to"
            case $to in */) cp -r "$folder${source}" "$folder/root$to" ;; *) cp -r "$folder$source/." "$folder/root$to" ;; esac ;;
        2ENTRYPOINT) entry="$(tr -d '[]",' <<<"$rest")" ;;
        [12]) ;;
        *) echo "verbs-start: what is $word?" >&2; exit 1 ;;
    esac
done <"$folder/dockerfile"
mount -t proc proc "$folder/root/proc"
for space in "${spaces[@]}"; do ip netns add $space; done
ip link add name eth0 netns ${spaces[0]} type veth peer name eth0 netns ${spaces[1]}
for side in 0 1; do
    ip -n ${spaces[$side]} addr add 172.30.0.$((side + 2))/24 dev eth0
    ip -n ${spaces[$side]} link set eth0 up
    ip -n ${spaces[$side]} link set lo up
done
echo "172.30.0.2 peer" >>"$folder/root/etc/hosts"
# docker ARGUMENT...: what the page asks of Docker.
docker() {
    case "$1 $2" in
        "build "* | "network create") return ;;
        "run "*) ;;
        *) echo "verbs-start: docker $*?" >&2; return 1 ;;
    esac
    local space=${spaces[1]} detached=
    shift
    while [[ $1 == -* ]]; do
        case $1 in
            -d) detached=1 ;;
            --rm) ;;
            --name) space=${spaces[0]}; shift ;;
            --network) shift ;;
            *) echo "verbs-start: docker run $1?" >&2; return 1 ;;
        esac
        shift
    done
    shift
    # shellcheck disable=SC2086
    set -- ip netns exec $space chroot "$folder/root" setpriv --bounding-set=-all --no-new-privs $entry "$@"
    if [ -n "$detached" ]; then "$@" >"$folder/detached" 2>&1 & sleep 1; else "$@"; fi
}
block "A Dockerfile" "" >"$folder/docker"
nonempty "$folder/docker"
. "$folder/docker"
wait

say "the GitHub workflow"
block "A GitHub workflow" yaml >"$folder/workflow"
nonempty "$folder/workflow"
mkdir "$folder/runner"
ln -s "$checkout" "$folder/runner/bellwire"
command -v sudo >/dev/null || sudo() { "$@"; }
export -f sudo 2>/dev/null || true
export GITHUB_PATH="$folder/github-path"
: >"$GITHUB_PATH"
# The steps that run something, each to a file of its own.
awk -v folder="$folder" '
    /^ *(- )?run: \|$/ { step = sprintf("%s/step-%02d", folder, ++steps); wide = match($0, /[^ -]/) + 1; many = 1; next }
    many && match($0, /[^ ]/) > wide - 1 { print substr($0, match($0, /[^ ]/)) >step; next }
    { many = 0 }
    sub(/^ *(- )?run: /, "") { step = sprintf("%s/step-%02d", folder, ++steps); print >step }
' "$folder/workflow"
[ "$(ls "$folder"/step-* | wc -l)" -ge 4 ]
for step in "$folder"/step-*; do
    say "$(head -n 1 "$step")"
    (cd "$folder/runner" && PATH="$(tr '\n' : <"$GITHUB_PATH")$PATH" HOME="$folder/home" timeout 900 bash -ex "$step")
done

block "Two network namespaces" "" >"$folder/namespaces"
nonempty "$folder/namespaces"
export PATH="$folder/home/.local/bin:$PATH"
runs "two network namespaces" "$folder/namespaces"
say "all commands of $page ran"
