#!/usr/bin/env bash
# Usage: tools/rxe/guest.sh prepare
#        tools/rxe/guest.sh boot SCRIPT SECONDS
# `prepare` makes, once, an emulated guest with the kernel's rxe: the kernel of this Debian release
# and a root of its packages, in $GUEST (default target/rxe-guest, 1 GB while it is made), as root.
# `boot` runs SCRIPT there for at most SECONDS. The folder $GUEST/share is /share in the guest.
# Lines like `12 s, ...` on its console go to standard error. The guest has no network to the
# outside. GUEST_PACKAGES adds packages, and GUEST_OPTIONS options of the kernel, as mtu=9000.
set -euo pipefail
cd "$(dirname "$0")/../.."
guest="${GUEST:-${CARGO_TARGET_DIR:-$PWD/target}/rxe-guest}"
packages=kmod,iproute2,rdma-core,ibverbs-utils,perftest,qperf${GUEST_PACKAGES:+,$GUEST_PACKAGES}
stop() {
    printf 'reference-rxe: %s\n' "$@" >&2
    exit 1
}
say() { echo "reference-rxe: $*" >&2; }

prepare() {
    [ "$(uname -m)" = x86_64 ] || stop "the guest is x86-64, and this machine is $(uname -m)"
    [ "$(id -u)" = 0 ] || stop "making the guest's root needs root: sudo make reference-rxe"
    local tool release kernel version missing=""
    for tool in qemu-system-x86_64 mmdebstrap cpio depmod dpkg-deb apt-get; do
        command -v $tool >/dev/null || [ -x /usr/sbin/$tool ] || missing+=" $tool"
    done
    [ -z "$missing" ] || stop "not found:$missing" \
        "On Debian: sudo apt-get install qemu-system-x86 seabios mmdebstrap cpio kmod"
    release="$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)"
    grep -qx 'ID=debian' /etc/os-release ||
        stop "this is not Debian: the guest takes kernel and packages from the host's release, so" \
            "that programs that were built here run there"
    kernel="$(apt-cache depends linux-image-amd64 2>/dev/null | awk '/Depends: linux-image/ { print $2; exit }')"
    [ -n "$kernel" ] || stop "apt knows no package linux-image-amd64; run: sudo apt-get update"
    if [ -e "$guest/initrd" ] && [ "$(cat "$guest/made-of" 2>/dev/null)" = "$release $kernel $packages" ]; then
        return
    fi
    say "making the guest of $kernel: about 80 MB of packages, a minute"
    rm -rf "${guest:?}/root" "$guest/kernel" "$guest/initrd" "$guest/made-of"
    mkdir -p "$guest/kernel"
    (cd "$guest/kernel" && apt-get download -qq "$kernel" && dpkg-deb -x "$kernel"_*.deb . && rm ./*.deb) ||
        stop "the package $kernel could not be fetched; see the message above. Try: sudo apt-get update"
    version="$(ls "$guest/kernel/lib/modules")"
    mmdebstrap --quiet --variant=minbase --include="$packages" \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
        --dpkgopt='path-exclude=/usr/share/locale/*' "$release" "$guest/root" ||
        stop "the guest's packages could not be installed; see the message above"
    # All of the root is memory of the guest.
    rm -rf "$guest"/root/usr/share/i18n "$guest"/root/usr/lib/x86_64-linux-gnu/gconv \
        "$guest"/root/var/cache "$guest"/root/var/lib/{apt,dpkg}
    depmod -b "$guest/kernel" "$version"
    mkdir -p "$guest/root/lib/modules/$version"
    (
        cd "$guest/kernel"
        for module in virtio_pci 9pnet_virtio 9p veth ib_uverbs rdma_ucm rdma_rxe crc32_generic crc32_pclmul; do
            modprobe -d . -S "$version" --show-depends $module
        done | awk '$1 == "insmod" { print $2 }' | sed 's,.*/lib/modules/,lib/modules/,' | sort -u |
            cpio -pdm --quiet ../root
        cp "lib/modules/$version"/modules.{order,builtin,builtin.modinfo} "../root/lib/modules/$version/"
    )
    depmod -b "$guest/root" "$version"
    mv "$guest/kernel/boot/vmlinuz-$version" "$guest/linux"
    (cd "$guest/root" && find . -xdev -print0 | cpio -0oH newc --quiet) >"$guest/initrd"
    rm -rf "${guest:?}/root" "$guest/kernel"
    echo "$release $kernel $packages" >"$guest/made-of"
}

# boot SCRIPT SECONDS
boot() {
    [ -e "$guest/made-of" ] || stop "there is no guest yet: tools/rxe/guest.sh prepare"
    mkdir -p "$guest/share"
    rm -f "$guest/share/status" "$guest/share/output"
    cp "$1" "$guest/share/script"
    # The first process comes beside the root, so that it changes without making all again.
    { cat "$guest/initrd" && (cd tools/rxe && echo init | cpio -oH newc --quiet); } >"$guest/initrd.whole"
    # Hardware virtualisation is not tried: where it is nested, the kernel may hang at its start.
    # It ends with this script, however that ends.
    setpriv --pdeathsig TERM timeout "$2" setpriv --pdeathsig KILL qemu-system-x86_64 -M pc -accel tcg,thread=multi -cpu max -smp 2 -m 3072 \
        -nodefaults -display none -monitor none -no-reboot -serial stdio \
        -kernel "$guest/linux" -initrd "$guest/initrd.whole" \
        -append "console=ttyS0 quiet panic=-1 mitigations=off rdinit=/init ${GUEST_OPTIONS:-}" \
        -virtfs "local,path=$guest/share,mount_tag=share,security_model=none,multidevs=remap" \
        </dev/null 2>&1 | stdbuf -oL tr -d '\r' | tee "$guest/console" | grep --line-buffered '^ *[0-9]* s, ' >&2 || true
    rm -f "$guest/initrd.whole"
    [ -e "$guest/share/status" ] ||
        stop "the guest ended, or was stopped after $2 s, before its script did; $guest/console has its last words"
    return "$(cat "$guest/share/status")"
}

case "${1:-}" in
    prepare) prepare ;;
    boot) boot "$2" "$3" ;;
    *) stop "usage: tools/rxe/guest.sh prepare | boot SCRIPT SECONDS" ;;
esac
