#!/usr/bin/env bash
# Installs and builds the peers of the benchmark, into out/peers/ of the project.
#
# A peer that cannot be built does not stop the others: the reason goes into out/peers/NAME.why. The
# report of the benchmark lists that peer as not measured, with the reason. Bellwire itself needs
# nothing from here. This may run again at any time.
set -uo pipefail

sources=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=$(cd "$sources/../../.." && pwd)/out/peers
mkdir -p "$out" || exit 1
rm -f "$out"/*.why

# without NAME WHY: says why a peer is not there.
without() {
    echo "$2" >"$out/$1.why"
    rm -f "${out:?}/$1"
    echo "peer $1: not built: $2" >&2
}

# install PACKAGE...: installs missing Debian packages. A failure shows when a peer is built.
install() {
    dpkg -s "$@" >/dev/null 2>&1 && return
    if ! command -v apt-get >/dev/null || [ "$(id -u)" -ne 0 ]; then
        echo "missing Debian packages, and not allowed to install them: $*" >&2
        return
    fi
    echo "installing $*" >&2
    {
        apt-get update -q
        DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@"
    } >"$out/apt.log" 2>&1 || echo "apt-get failed: see out/peers/apt.log" >&2
}

# build NAME SOURCE PACKAGES COMPILER ARGUMENTS...: compiles a peer unless it is up to date.
build() {
    local name=$1 source=$2 needs=$3 compiler=$4
    shift 4
    if [ "$out/$name" -nt "$sources/$source" ] && [ "$out/$name" -nt "$sources/peer.h" ]; then
        return
    fi
    if ! command -v "$compiler" >/dev/null; then
        without "$name" "there is no $compiler: install $needs"
    elif ! "$compiler" -O3 -Wall -Wextra -Wno-sign-compare "$sources/$source" -o "$out/$name" "$@" \
        >"$out/$name.log" 2>&1; then
        without "$name" "did not compile: install $needs (see out/peers/$name.log)"
    fi
}

install libucx-dev ucx-utils libfabric-dev libfabric-bin libopenmpi-dev openmpi-bin \
    wireguard-go wireguard-tools

# Versions, for the report.
version() { dpkg-query -W -f '${Version}' "$1" 2>/dev/null; }
version libucx0 >"$out/ucx-debian.version"
version libfabric1 >"$out/libfabric.version"
version libopenmpi3 >"$out/openmpi.version"
version wireguard-go >"$out/wireguard.version"

build ucx-debian ucx.c libucx-dev cc -lucp -lucs
build libfabric libfabric.c libfabric-dev cc -lfabric
build openmpi openmpi.c "libopenmpi-dev openmpi-bin" mpicc

wheel=$out/libucx
if [ ! -d "$wheel/libucx/lib" ]; then
    rm -rf "$wheel"
    echo "downloading libucx-cu12" >&2
    if python3 -m pip download -q --no-deps --only-binary :all: -d "$wheel" libucx-cu12 >"$out/pip.log" 2>&1; then
        python3 -m zipfile -e "$wheel"/*.whl "$wheel" && rm -f "$wheel"/*.whl
    fi
fi
if [ -d "$wheel/libucx/lib" ]; then
    cp "$wheel/libucx/UCX_WHEEL_VERSION.txt" "$out/ucx-newest.version"
    # The library finds its parts relative to itself. The program needs its path, because the wheel
    # is not installed.
    build ucx-newest ucx.c "the wheel libucx-cu12" cc -I"$wheel/libucx/include" -L"$wheel/libucx/lib" \
        -Wl,-rpath,"$wheel/libucx/lib" -lucp -lucs
else
    without ucx-newest "pip could not download libucx-cu12 (see out/peers/pip.log)"
fi

# iceoryx2 is built by cargo, once for each version of its lock file and source (a minute or two).
project=$sources/iceoryx2
if [ "$out/iceoryx2" -nt "$project/src/main.rs" ] && [ "$out/iceoryx2" -nt "$project/Cargo.lock" ]; then
    :
elif echo "building iceoryx2" >&2 && cargo build -q --release --locked --manifest-path "$project/Cargo.toml" \
    --target-dir "$out/iceoryx2-target" >"$out/iceoryx2.log" 2>&1; then
    cp "$out/iceoryx2-target/release/peer-iceoryx2" "$out/iceoryx2"
    sed -n '/^name = "iceoryx2"$/{n;s/version = "\(.*\)"/\1/p}' "$project/Cargo.lock" >"$out/iceoryx2.version"
else
    without iceoryx2 "cargo could not build it (see out/peers/iceoryx2.log)"
fi
exit 0
