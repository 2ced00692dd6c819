#!/usr/bin/env bash
# Usage: tools/bare.sh FOLDER user|root COMMAND...
# Runs a command of FOLDER or of the system where there is next to nothing: in user, mount, network,
# process and IPC namespaces of its own, with a file system that cannot be written.
#   user  as user 65534, with /proc, but neither /sys nor /tmp nor /dev
#   root  as the root of the namespaces, with /proc, a few devices and 64 MiB of /dev/shm
# FOLDER is /opt there, and a copy of this script is in it. The loopback is up.
# Exit status 77 and a reason: this host does not allow such namespaces.
set -euo pipefail

# Nobody's files may be read by nobody only.
become=()
if [ "$(id -u)" = 0 ]; then
    become=(setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs)
fi
fresh=(unshare --user --map-root-user --mount --net --pid --ipc --fork --kill-child)

case "$1" in
    # The root of the new namespaces builds the file system, and becomes who was asked for.
    --build)
        folder="$2" who="$3" root=/mnt
        shift 3
        cd /
        mount -t tmpfs -o mode=755 none $root
        mkdir $root/usr $root/etc $root/proc $root/opt $root/old
        for link in bin sbin lib lib64; do
            [ ! -L /$link ] || cp -d /$link $root/
        done
        mount --rbind /usr $root/usr
        mount --rbind "$folder" $root/opt
        mount -t proc proc $root/proc
        # perftest and others look names of users up.
        printf 'nobody:x:65534:65534::/:/bin/sh\n' >$root/etc/passwd
        if [ "$who" = root ]; then
            mkdir $root/dev $root/dev/shm
            mount -t tmpfs -o size=64m none $root/dev/shm
            for device in null zero random urandom; do
                : >$root/dev/$device
                mount --bind /dev/$device $root/dev/$device
            done
        fi
        ip link set lo up
        cd $root
        pivot_root . old
        cd /
        # Programs of the old root are in use no more.
        umount -l /old
        rmdir /old
        mount -o remount,bind,ro /
        if [ "$who" = user ]; then
            exec unshare --user --map-user=65534 --map-group=65534 "$@"
        fi
        exec "$@"
        ;;
esac

folder="$1"
"${become[@]}" "${fresh[@]}" true 2>/dev/null || {
    printf 'this host does not let a user make namespaces\n'
    exit 77
}
exec "${become[@]}" "${fresh[@]}" "$folder/bare.sh" --build "$@"
