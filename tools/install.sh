#!/bin/bash
# Usage: [LIBDIR=FOLDER] tools/install.sh BUILT PREFIX [DESTDIR]
# Installs the C library, and the command with its manual, the libfabric provider and the libraries
# of `bellwire run` if they were built. BUILT is the folder that holds libvipl.so and libvipl.a.
# LIBDIR is where libraries for others go, in place of PREFIX/lib.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
built=$1 prefix=$2 root=${3:-}
vipl=$here/bindings/vipl
libdir=${LIBDIR:-$prefix/lib}
lib=$root$libdir private=$root$prefix/lib/bellwire include=$root$prefix/include man=$root$prefix/share/man/man3
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/Cargo.toml" | head -1)

install -d "$lib/pkgconfig" "$include" "$man"
install -m 755 "$built/libvipl.so" "$lib/libvipl.so.1.0.0"
ln -sf libvipl.so.1.0.0 "$lib/libvipl.so.1"
ln -sf libvipl.so.1 "$lib/libvipl.so"
if [ -f "$built/libvipl.a" ]; then
    install -m 644 "$built/libvipl.a" "$lib/libvipl.a"
fi
# What only a debugger of the library itself wants is four fifths of it.
if command -v strip >/dev/null; then
    strip --strip-debug "$lib/libvipl.so.1.0.0" "$lib/libvipl.a" 2>/dev/null || true
fi
install -m 644 "$vipl/include/vipl.h" "$include/vipl.h"
install -m 644 "$vipl/vipl.3" "$man/vipl.3"
sed -e "s|@PREFIX@|$prefix|g" -e "s|@LIBDIR@|${libdir/#"$prefix"/\${prefix\}}|g" -e "s|@VERSION@|$version|g" "$vipl/vipl.pc.in" > "$lib/pkgconfig/vipl.pc"
chmod 644 "$lib/pkgconfig/vipl.pc"
echo "installed libvipl.so.1.0.0, vipl.h, vipl.pc and vipl(3) under $root$prefix"

# Providers are loaded by name, from the folder that FI_PROVIDER_PATH names.
if [ -f "$built/libbellwire_fi.so" ]; then
    install -D -m 755 "$built/libbellwire_fi.so" "$lib/libfabric/libbellwire-fi.so"
    echo "installed the libfabric provider: export FI_PROVIDER_PATH=$libdir/libfabric FI_PROVIDER=bellwire"
fi
# In a folder of its own, which `bellwire run` names: it must never stand in for the system's.
if [ -f "$built/libibverbs.so" ]; then
    install -D -m 755 "$built/libibverbs.so" "$private/libibverbs.so.1"
    ln -sf libibverbs.so.1 "$private/librdmacm.so.1"
    # To be preloaded. A build of tests does not have all of them.
    for preloaded in sysfs sockets; do
        library="$built/libbellwire_$preloaded.so"
        if [ -f "$library" ]; then install -m 755 "$library" "$private/"; fi
    done
    echo "installed libibverbs.so.1 and librdmacm.so.1 in $prefix/lib/bellwire: bellwire run -- ibv_devinfo"
fi
if [ -f "$built/bellwire" ]; then
    install -D -m 755 "$built/bellwire" "$root$prefix/bin/bellwire"
    # Only an administrator turns these on: docs/agent.md.
    units=$root$prefix/lib/systemd/system
    install -d "$units"
    install -m 644 "$here/tools/systemd/bellwire-agent.socket" "$units/"
    sed -e "s|@PREFIX@|$prefix|g" "$here/tools/systemd/bellwire-agent.service.in" \
        > "$units/bellwire-agent.service"
    # The command writes its own manual and completions.
    written=$(mktemp -d)
    trap 'rm -rf "$written"' EXIT
    "$built/bellwire" write-manual "$written"
    share=$root$prefix/share
    install -D -m 644 -t "$share/man/man1" "$written"/man1/*
    install -D -m 644 "$written/bash/bellwire.bash" "$share/bash-completion/completions/bellwire"
    install -D -m 644 -t "$share/zsh/site-functions" "$written/zsh/_bellwire"
    install -D -m 644 -t "$share/fish/vendor_completions.d" "$written/fish/bellwire.fish"
    echo "installed bellwire, bellwire(1) and completions for bash, zsh and fish under $root$prefix"
fi
