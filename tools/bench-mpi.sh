#!/usr/bin/env bash
# Usage: [ROUNDS=5] [PARTS="near far window collectives collectives-far"] [SIZES="8 1024 ..."]
#     [FABTESTS=PREFIX] tools/bench-mpi.sh
# Measures the provider beside its peers, in turns of one run: messages there and back, and many in
# a row. The two processes are on one host and, as root, on two hosts (network namespaces). Programs
# of libfabric measure, and programs of MPI (NetPIPE through Open MPI). Collective operations are
# measured with 2, 3, 4 and 8 ranks. Takes twenty minutes. PARTS and SIZES choose what is measured:
# messages on one host and on two, small ones of which 64 are sent at once, collective operations on
# one host and on two. FABTESTS is the place of libfabric's own tests (the first of several): their
# tagged benchmarks replace fi_pingpong.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds="${ROUNDS:-5}"
parts=" ${PARTS:-near far window collectives collectives-far} "
sizes="${SIZES:-8 1024 4096 65536 1048576 4194304}"
environment="${CARGO_TARGET_DIR:-$PWD/target}/mpi"

# The first call prepares, and has a second one measure, whose processes and namespaces end with it.
if [ "${1:-}" != --measure ]; then
    cargo build -q --release -p bellwire-libfabric
    folder="$(mktemp -d)" child=
    trap '[ -z "$child" ] || kill -KILL "$child" 2>/dev/null || true; rm -rf "$folder"' EXIT
    trap 'exit 130' INT TERM HUP
    cp "${environment%/mpi}/release/libbellwire_fi.so" "$folder/libbellwire-fi.so"
    for program in collectives window; do
        mpicc -O2 "bindings/libfabric/tests/programs/$program.c" -o "$folder/$program" ||
            echo "NOT RUN: $program: apt-get install libopenmpi-dev"
    done
    { [ -d "$environment" ] || python3 -m venv "$environment"; } >/dev/null 2>&1 &&
        "$environment/bin/pip" install -q libucx-cu12 >/dev/null 2>&1 ||
        echo "NOT RUN: the newest UCX: its wheel, libucx-cu12, cannot be installed"
    export folder TMPDIR="$folder"
    own=()
    [ "$(id -u)" != 0 ] || own=(tools/alone.sh --two-hosts)
    "${own[@]}" tools/bench-mpi.sh --measure &
    child=$!
    wait "$child"
    exit
fi

trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM HUP
export FI_PROVIDER_PATH="$folder" UCX_LOG_LEVEL=error OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Hosts, and how programs get there; the first one's address.
near=() far=() at=127.0.0.1 hosts="near" ahead=()
if [ "$(id -u)" = 0 ]; then
    near=(ip netns exec near) far=(ip netns exec far) at=10.99.0.1 hosts="near far"
    # On one host they have priority over all else. With a network that would starve the kernel.
    ahead=(chrt -r 50)
    printf '#!/bin/sh\nshift\nexec ip netns exec far unshare --uts sh -c "hostname far; $*"\n' >"$folder/agent"
    chmod +x "$folder/agent"
else
    echo "NOT RUN: two hosts: network namespaces need root"
fi
mpi=yes
command -v NPopenmpi >/dev/null || { mpi= && echo "NOT RUN: NetPIPE: apt-get install netpipe-openmpi"; }
command -v ucx_perftest >/dev/null || echo "NOT RUN: UCX by itself: apt-get install ucx-utils"
newest="$(echo "$environment"/lib/python3*/site-packages/libucx/lib)"

# All of these print the microseconds of a message to a process on HOST, or nothing. WAY is
# `pingpong`, half a round trip, or `bw`, many in a row.

# pair HOST COMMAND...: runs the command as server, and as its client on HOST; prints the client's
# output.
pair() {
    local -n client="$1"
    local first=()
    [ "$1" = far ] || first=("${ahead[@]}")
    shift
    timeout 10 "${near[@]}" "${first[@]}" "$@" >/dev/null 2>&1 &
    sleep 0.3
    timeout 10 "${client[@]}" "${first[@]}" "$@" $at 2>/dev/null || kill $! 2>/dev/null || true
    wait
}
# fabric HOST PROVIDER WAY BYTES COUNT: by libfabric's programs.
fabric() {
    local program=(fi_pingpong -e rdm -m tagged)
    [ -z "${FABTESTS:-}" ] || program=("${FABTESTS%% *}/bin/fi_rdm_tagged_$3")
    pair "$1" "${program[@]}" -p "$2" -S "$4" -I "$5" | awk '$1 ~ /^[0-9]/ { time = $(NF - 1) } END { print time }'
}
# ucx HOST TRANSPORTS WAY BYTES COUNT: by UCX's own program.
ucx() {
    local test=tag_lat
    [ "$3" = pingpong ] || test=tag_bw
    UCX_TLS="$2" pair "$1" ucx_perftest -t "$test" -s "$4" -n "$5" -w 100 -f | awk 'NF == 8 && $1 ~ /^[0-9]+$/ { time = $4 } END { print time }'
}
# launch HOST RANKS: sets `command` to what starts ranks of MPI, the second half of them on HOST.
launch() {
    command=(timeout 60 "${near[@]}" "${ahead[@]}" mpirun --oversubscribe -n "$2")
    if [ "$1" = far ]; then
        # Bound, both ranks would have the first processor of their host, which is one and the same.
        command=(timeout 60 "${near[@]}" mpirun --oversubscribe -n "$2" --bind-to none
            --host "10.99.0.1:$((($2 + 1) / 2)),10.99.0.2:$(($2 / 2))"
            --mca plm_rsh_agent "$folder/agent" --mca oob_tcp_if_include eth0 --mca btl_tcp_if_include eth0)
    fi
}
# many HOST WAY BYTES FLAGS...: 64 messages at once, with flags of mpirun.
many() {
    local bytes="$3" command
    launch "$1" 2
    shift 3
    "${command[@]}" "$@" "$folder/window" 0.3 "$bytes" 2>/dev/null | awk '{ print $2 }' || true
}
# netpipe HOST WAY BYTES FLAGS...: by NetPIPE, with flags of mpirun.
netpipe() {
    local bytes="$3" stream= command
    launch "$1" 2
    [ "$2" = pingpong ] || stream=-s
    shift 3
    rm -f "$folder/np"
    "${command[@]}" "$@" NPopenmpi $stream -p 0 -l "$bytes" -u "$bytes" -o "$folder/np" >/dev/null 2>&1 || true
    awk '$1 == '"$bytes"' { print $3 * 1e6 }' "$folder/np" 2>/dev/null || true
}

# collectives HOST RANKS FLAGS...: prints operations, their bytes and times, with flags of mpirun.
collectives() {
    local command
    launch "$1" "$2"
    shift 2
    "${command[@]}" "$@" "$folder/collectives" 0.05 ${SIZES:-8 1024 16384 65536 131072 1048576} 2>/dev/null || true
}

# note TABLE BYTES NAME: notes the time that it reads, and says how far we are.
note() {
    local time=
    read -r time || true
    case "$time" in [0-9]*) echo "$1 $2 $3 $time" >>"$folder/times" ;; esac
    printf '%3d s, round %d of %d: %s, %d bytes, %s: %s us\n' "$SECONDS" "$round" "$rounds" "$1" "$2" "$3" "${time:-no}" >&2
}
# note_all HOST RANKS NAME: notes what collectives prints.
note_all() {
    local operation bytes time
    while read -r operation bytes time; do echo "$time" | note "$operation-$1-$2" "$bytes" "$3"; done
}
# by_fabric HOST WAY BYTES COUNT: all contenders, one after the other.
by_fabric() {
    local into="fabric-$1-$2 $3" rest=("${@:2}")
    fabric "$1" bellwire "${rest[@]}" | note $into bellwire
    if [ "$1" = near ]; then
        FI_BELLWIRE_DEVICE="shm:bench-mpi-$$" fabric "$1" bellwire "${rest[@]}" | note $into bellwire-shm
        fabric "$1" shm "${rest[@]}" | note $into libfabric-shm
        ucx "$1" posix,sysv,cma,self "${rest[@]}" | note $into ucx
    else
        fabric "$1" tcp "${rest[@]}" | note $into libfabric-tcp
        UCX_NET_DEVICES=eth0 ucx "$1" tcp "${rest[@]}" | note $into ucx-tcp
    fi
}
# by_each HOST NOTE...: has what `run` names run by each way of MPI to HOST, and its output noted.
by_each() {
    local host="$1" own=openmpi-vader own_flags=(--mca pml ob1 --mca btl self,vader) transports=posix,sysv,cma,self
    local ucx=(--mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any --mca osc ^ucx --mca btl self -x UCX_LOG_LEVEL)
    shift
    if [ "$host" = far ]; then
        own=openmpi-tcp own_flags=(--mca pml ob1 --mca btl self,vader,tcp) transports+=,tcp
        ucx+=(-x UCX_NET_DEVICES=eth0)
    fi
    ucx+=(-x "UCX_TLS=$transports")
    "${run[@]}" --mca pml cm --mca mtl ofi --mca btl self -x FI_PROVIDER_PATH -x FI_PROVIDER=bellwire | "$@" bellwire
    "${run[@]}" "${own_flags[@]}" | "$@" $own
    "${run[@]}" "${ucx[@]}" | "$@" ucx
    [ ! -d "$newest" ] || LD_LIBRARY_PATH="$newest" "${run[@]}" "${ucx[@]}" -x LD_LIBRARY_PATH | "$@" ucx-newest
}
# by_mpi HOST WAY BYTES: all contenders, one after the other.
by_mpi() {
    local run=(netpipe "$@")
    [ "$2" != window ] || run[0]=many
    by_each "$1" note "mpi-$1-$2" "$3"
}

# table TABLE TITLE: for each contender the median of all rounds, the least, the most, and the ratio
# to Bellwire's.
table() {
    awk -v table="$1" -v title="$2" '
        function shown(time) { return sprintf(time < 10 ? "%.2f" : time < 100 ? "%.1f" : "%.0f", time) }
        $1 == table {
            if (!($2 in size_known)) { size_known[$2]; sizes[++last_size] = $2 }
            if (!($3 in name_known)) { name_known[$3]; names[++last_name] = $3 }
            # Each cell is kept in order.
            for (at = ++count[$2, $3]; at > 1 && times[$2, $3, at - 1] > $4; at--) times[$2, $3, at] = times[$2, $3, at - 1]
            times[$2, $3, at] = $4
        }
        END {
            if (!last_name) exit
            printf "\n## %s\n\n| bytes |", title
            for (n = 1; n <= last_name; n++) printf " %s |", names[n]
            printf "\n|---|"
            for (n = 1; n <= last_name; n++) printf "---|"
            for (s = 1; s <= last_size; s++) {
                size = sizes[s]
                printf "\n| %d |", size
                for (n = 1; n <= last_name; n++) {
                    all = count[size, names[n]]
                    middle = times[size, names[n], int((all + 1) / 2)]
                    if (n == 1) own = middle
                    if (!all) { printf " - |"; continue }
                    printf " %s (%s..%s)", shown(middle), shown(times[size, names[n], 1]), shown(times[size, names[n], all])
                    if (n > 1 && own > 0) printf " = %.2f x |", middle / own
                    else printf " |"
                }
            }
            printf "\n"
        }' "$folder/times"
}

touch "$folder/times"
for round in $(seq "$rounds"); do
    for host in $hosts; do
        if [[ "$parts" = *" window "* ]] && [ -x "$folder/window" ]; then
            for bytes in 8 1024; do by_mpi $host window $bytes; done
        fi
        [[ "$parts" = *" $host "* ]] || continue
        # Over a network, fewer take as long.
        [ "$host" = near ] && share=1 || share=10
        for size in 8:10000 1024:10000 4096:10000 65536:2000 1048576:300 4194304:60; do
            bytes="${size%:*}" count="$((${size#*:} / share))"
            [[ " $sizes " = *" $bytes "* ]] || continue
            by_fabric $host pingpong "$bytes" "$count"
            [ -z "$mpi" ] || by_mpi $host pingpong "$bytes"
            if [ "$bytes" -ge 65536 ]; then
                [ -z "${FABTESTS:-}" ] || by_fabric $host bw "$bytes" "$count"
                [ -z "$mpi" ] || by_mpi $host bw "$bytes"
            fi
        done
    done
done
for round in $(seq "$rounds"); do
    for host in $hosts; do
        part=collectives
        [ "$host" = near ] || part=collectives-far
        [[ "$parts" = *" $part "* ]] && [ -x "$folder/collectives" ] || continue
        for ranks in 2 3 4 8; do
            run=(collectives $host $ranks)
            by_each $host note_all $host $ranks
        done
    done
done
echo "Microseconds: the middle (least..most) of $rounds rounds in turns, and how many times Bellwire's that is: above 1, Bellwire is ahead."
for way in "pingpong:half a round trip" "bw:one of many in a row"; do
    table "fabric-near-${way%:*}" "Two processes of one host, ${way#*:}, by programs of libfabric and UCX"
    table "mpi-near-${way%:*}" "Two ranks of one host, ${way#*:}, by NetPIPE over Open MPI"
    table "fabric-far-${way%:*}" "Two hosts, ${way#*:}, by programs of libfabric and UCX"
    table "mpi-far-${way%:*}" "Two hosts, ${way#*:}, by NetPIPE over Open MPI"
done
for host in near:one far:two; do
    table "mpi-${host%:*}-window" "Two ranks of ${host#*:} host(s), one of 64 at once, over Open MPI"
done
for host in near:one far:two; do
    for ranks in 2 3 4 8; do
        for operation in allreduce alltoall bcast; do
            table "$operation-${host%:*}-$ranks" "$operation over Open MPI, $ranks ranks of ${host#*:} host(s)"
        done
    done
done
