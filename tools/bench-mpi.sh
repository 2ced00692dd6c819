#!/usr/bin/env bash
# Usage: tools/bench-mpi.sh
# Measures the provider beside its peers, in turns of one run, and prints each peer's time as a ratio to Bellwire's: above 1, Bellwire is faster.
# Between two processes: fi_pingpong over this provider, libfabric's shm and tcp. Through MPI: NetPIPE over this provider, Open MPI's shared memory and TCP.
set -euo pipefail
target="${CARGO_TARGET_DIR:-target}"
cargo build -q --release -p bellwire-libfabric
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
cp "$target/release/libbellwire_fi.so" "$folder/libbellwire-fi.so"
export FI_PROVIDER_PATH="$folder" OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
rounds="${ROUNDS:-5}"

# pingpong PROVIDER BYTES TURNS: half a round trip, in microseconds.
pingpong() {
    timeout 60 fi_pingpong -p "$1" -e rdm -I "$3" -S "$2" >/dev/null 2>&1 &
    sleep 0.3
    timeout 60 fi_pingpong -p "$1" -e rdm -I "$3" -S "$2" 127.0.0.1 2>/dev/null | awk 'END { print $7 }'
    wait
}
# netpipe BYTES FLAGS...: half a round trip, in microseconds.
netpipe() {
    local bytes="$1"
    shift
    timeout 100 mpirun --oversubscribe -n 2 "$@" NPopenmpi -p 0 -l "$bytes" -u "$bytes" -o "$folder/np" >/dev/null 2>&1 || true
    awk '$1 == '"$bytes"' { print $3 * 1e6 }' "$folder/np"
}
middle() { sort -g | awk '{ all[NR] = $1 } END { if (NR) print all[int((NR + 1) / 2)] }'; }
# table TITLE: reads "bytes name microseconds" of all rounds; the first name is Bellwire's.
table() {
    local input="$1" names="$2" bytes name
    printf '| bytes | bellwire, us |'
    for name in ${names#* }; do printf ' %s / bellwire |' "$name"; done
    printf '\n|---|---|'
    for name in ${names#* }; do printf -- '---|'; done
    printf '\n'
    for bytes in $(awk '{ print $1 }' "$input" | sort -gu); do
        own="$(awk -v b="$bytes" '$1 == b && $2 == "bellwire" { print $3 }' "$input" | middle)"
        printf '| %s | %s |' "$bytes" "$own"
        for name in ${names#* }; do
            theirs="$(awk -v b="$bytes" -v n="$name" '$1 == b && $2 == n { print $3 }' "$input" | middle)"
            awk -v a="$theirs" -v b="$own" 'BEGIN { if (a > 0 && b > 0) printf " %.2f |", a / b; else printf " - |" }'
        done
        printf '\n'
    done
}

echo "## fi_pingpong, FI_EP_RDM, two processes of one host (middle of $rounds rounds)"
for _ in $(seq "$rounds"); do
    for size in 8:20000 256:20000 4096:10000 65536:3000 1048576:500 4194304:100; do
        for provider in bellwire shm tcp; do
            time="$(pingpong "$provider" "${size%:*}" "${size#*:}")"
            [ -z "$time" ] || echo "${size%:*} $provider $time" >>"$folder/pingpong"
        done
    done
done
table "$folder/pingpong" "bellwire shm tcp"
command -v NPopenmpi >/dev/null || { echo "NOT RUN: NetPIPE: apt-get install netpipe-openmpi"; exit 0; }
echo
echo "## NetPIPE through Open MPI, two ranks of one host (middle of $rounds rounds)"
for _ in $(seq "$rounds"); do
    for size in 8 1024 65536 1048576; do
        echo "$size bellwire $(FI_PROVIDER=bellwire netpipe $size --mca pml cm --mca mtl ofi --mca btl self)"
        echo "$size vader $(netpipe $size --mca pml ob1 --mca btl self,vader)"
        echo "$size tcp $(netpipe $size --mca pml ob1 --mca btl self,tcp)"
    done
done >"$folder/netpipe"
table "$folder/netpipe" "bellwire vader tcp"
