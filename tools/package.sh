#!/usr/bin/env bash
# Usage: tools/package.sh
# Makes Debian packages and a Python wheel from a release build, in target/packages. lintian reads
# the packages. All are installed into a new root that mmdebstrap makes, and used there; purging
# them must leave nothing. Without root, mmdebstrap or debhelper the rest says NOT RUN.
set -euo pipefail
. "$(dirname "$0")/ran.sh"

export PROJECT="$PWD"
target="$(realpath -m "${CARGO_TARGET_DIR:-target}")"
export BUILT="$target/release"
out="$target/packages"
version="$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)"
maintainer="${DEBFULLNAME:-The Bellwire contributors} <${DEBEMAIL:-bellwire@$(hostname -f)}>"
shipped=(bellwire-cli bellwire-libfabric bellwire-verbs bellwire-sysfs bellwire-sockets bellwire-vipl)
packages=(bellwire bellwire-libfabric libvipl1 libvipl-dev)
rm -rf "$out"
mkdir -p "$out"
passed=0
# check WHAT COMMAND...: the command succeeds; `!` before it: it must fail. The limit ends hangs.
check() {
    local what="$1" wanted=0 status=0
    shift
    [ "$1" != ! ] || { wanted=1 && shift; }
    timeout -k 5 900 bash -c '"$@"' - "$@" >"$out/log" 2>&1 || status=1
    if [ "$status" != "$wanted" ]; then
        printf 'test package %s ... FAILED (%s)\n' "$what" "$*"
        tail -n 60 "$out/log"
        exit 1
    fi
    passed=$((passed + 1))
    printf 'test package %s ... ok\n' "$what"
}

printf '== package: the release build\n'
cargo build -q --release "${shipped[@]/#/-p}"

printf '== package: the wheel\n'
[ -x "$target/python/bin/maturin" ] || {
    [ -x "$target/python/bin/python" ] || python3 -m venv "$target/python"
    "$target/python/bin/python" -m pip install -q maturin
} >&2 || true
if [ -x "$target/python/bin/maturin" ]; then
    tools/wheel.sh "$out" --release
    wheel="$(basename "$out"/bellwire-*-cp39-abi3-*.whl)"
    echo "$wheel"
else
    echo "NOT RUN: package: pip cannot install maturin (needs python3-venv and a package index)"
fi

command -v dh >/dev/null && command -v lintian >/dev/null ||
    not_run "package" "debhelper or lintian is not installed (Debian: debhelper lintian)"
printf '== package: Debian packages\n'
source="$out/bellwire-$version"
mkdir "$source"
cp -r packaging/debian "$source/"
sed -i "s|@MAINTAINER@|$maintainer|" "$source/debian/control"
# For debian/*.docs and *.examples. At the top, CHANGELOG.md would be taken for that of Debian.
mkdir "$source/project"
cp -r README.md CHANGELOG.md SECURITY.md PROMISES.md docs "$source/project/"
cp -r bindings/vipl/examples "$source/"
tools/licences.py "${shipped[@]}" >"$source/LICENCES"
date="$(git log -1 --format=%cD 2>/dev/null || date -R)"
printf 'bellwire (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- %s  %s\n' \
    "$version" "$maintainer" "$date" >"$source/debian/changelog"
(cd "$source" && quietly "dpkg-buildpackage" env DEB_BUILD_OPTIONS=noautodbgsym dpkg-buildpackage -us -uc -b)
rm -rf "$source"
(cd "$out" && ls -sh ./*.deb)
debs=("${packages[@]/%/_${version}_amd64.deb}")

suppressed=
[ -n "${DEBEMAIL:-}" ] || {
    suppressed=bogus-mail-host,bogus-mail-host-in-debian-changelog
    echo "NOT RUN: package: the maintainer's address: set DEBEMAIL for packages that others get"
}
lint() { lintian --allow-root --fail-on error,warning ${suppressed:+--suppress-tags "$suppressed"} "$@"; }
export -f lint
export suppressed
check "lintian finds no error and no warning" lint "${debs[@]/#/$out/}"
sed 's/^/lintian: /' "$out/log"
planted="$(mktemp -d)"
dpkg-deb -R "$out/${debs[0]}" "$planted/tree"
mkdir -p "$planted/tree/usr/local/planted"
dpkg-deb -b "$planted/tree" "$planted/planted.deb" >/dev/null
check "lintian notices a planted error" ! lint "$planted/planted.deb"
rm -rf "$planted"

command -v mmdebstrap >/dev/null && command -v ip >/dev/null ||
    not_run "package: installing" "mmdebstrap or ip is not installed (Debian: mmdebstrap iproute2)"
[ "$(id -u)" = 0 ] || not_run "package: installing" "it makes a root and a network namespace, so it needs root"
root="$(mktemp -d)"
space="package-$$"
tidy() {
    ip netns pids "$space" 2>/dev/null | xargs -r kill 2>/dev/null || true
    ip netns del "$space" 2>/dev/null || true
    umount "$root/proc" 2>/dev/null || true
    rm -rf --one-file-system "$root"
}
trap tidy EXIT
printf '== package: a new root\n'
# The packages' dependencies, and what uses them; nothing of Rust.
. /etc/os-release
quietly "mmdebstrap" mmdebstrap --variant=minbase \
    --include=man-db,bash-completion,zsh,fish,ibverbs-utils,libfabric-bin,gcc,libc6-dev,pkg-config,python3-venv \
    "$VERSION_CODENAME" "$root"
mount -t proc proc "$root/proc"
ip netns add "$space"
ip -n "$space" link set lo up
# inside COMMAND: as root of the new system, with a loopback of its own.
inside() { ip netns exec "$space" chroot "$root" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 TERM=dumb bash -c "$1"; }
export -f inside
export root space
# files: all that the new system has, without caches and lists that dpkg itself keeps.
files() {
    (cd "$root" && find . -xdev \( -path ./proc -o -path ./tmp -o -path ./root -o -path ./var/lib/dpkg \
        -o -path ./var/cache -o -path ./var/log \) -prune -o -print | sort)
}

mkdir "$root/tmp/packages"
cp "${debs[@]/#/$out/}" "$root/tmp/packages/"
[ -z "${wheel:-}" ] || cp "$out/$wheel" "$root/tmp/packages/"
files >"$out/before"
check "dpkg installs all packages" inside 'dpkg -i /tmp/packages/*.deb'
check "bellwire perf" inside 'bellwire perf --quick --ops send --sizes 8 --json | grep -q p50'
check "bellwire run -- ibv_devinfo" inside 'bellwire run -- ibv_devinfo | grep -q "hca_id:.bellwire0"'
check "libfabric finds the provider" inside 'fi_info -p bellwire | grep -q "provider: bellwire"'
check "man bellwire" inside 'man bellwire | grep -q "bellwire-perf(1)"'
check "man of a command" inside 'man bellwire-copy | grep -q -e --listen'
check "man vipl" inside 'man vipl | grep -q VipOpenNic'
check "bash completes" inside '. /usr/share/bash-completion/bash_completion; _completion_loader bellwire || true
    COMP_WORDS=(bellwire mo) COMP_CWORD=1; _bellwire bellwire mo bellwire; [ "${COMPREPLY[*]}" = model ]'
check "zsh completes" inside 'zsh -fc "autoload -U compinit; compinit -u -D; [[ \${_comps[bellwire]-} = _bellwire ]]"'
check "fish completes" inside '[ "$(fish -c "complete -C \"bellwire mo\"" | cut -f1)" = model ]'
check "a program of VIPL by pkg-config" inside 'cd /usr/share/doc/libvipl-dev/examples &&
    cc -O2 pingpong.c sides.c -o /tmp/pingpong $(pkg-config --cflags --libs vipl) -lpthread &&
    /tmp/pingpong both model:chpp && /tmp/pingpong both shm:packages'
if [ -n "${wheel:-}" ]; then
    check "pip installs the wheel without an index" inside \
        "python3 -m venv /tmp/python && /tmp/python/bin/pip install -q --no-index /tmp/packages/$wheel"
    check "Python moves bytes" inside '/tmp/python/bin/python -c "
import bellwire, threading
one, two = (bellwire.open_queue_pair(f\"shm:packages?node={node}\") for node in (0, 1))
# Each makes its own progress, so they need a thread each.
sender = threading.Thread(target=one.send, args=(b\"hello\", two.address))
sender.start()
buffer = bytearray(5)
two.receive(buffer)
sender.join()
assert buffer == b\"hello\", buffer"'
fi
check "dpkg purges all packages" inside "dpkg --purge ${packages[*]}"
files >"$out/after"
check "nothing stays behind" diff "$out/before" "$out/after"
touch "$root/usr/share/planted"
files >"$out/after"
check "something that stays is noticed" ! diff "$out/before" "$out/after"
rm -f "$out"/before "$out"/after "$out"/log
printf 'test result: ok. %s passed; 0 failed\n' "$passed"
