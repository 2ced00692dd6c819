#!/usr/bin/env bash
# Usage: [FABTESTS=PREFIX] tools/test-verbs.sh [short|full]
# Runs programs of RDMA that know nothing of Bellwire over it: the ping-pongs of ibverbs-utils,
# perftest, rdmacm-utils, pyverbs, and ours in C. `short` is part of `make test`, and says NOT RUN
# where a package cannot be installed. `full` runs all that these programs offer, qperf, UCX, Open
# MPI, the crate sideway, and two network namespaces over udp as root: docs/verbs.md, How it is
# tested. FABTESTS is where libfabric's own tests are installed; no package of Debian has them.
# `full` fails without them, after all else has run.
set -euo pipefail
tools="$(dirname "$0")"
. "$tools/ran.sh"
. "$tools/verbs/perftest.sh"
. "$tools/verbs/programs.sh"

how="${1:-full}"
packages="ibverbs-utils rdmacm-utils perftest libibverbs-dev librdmacm-dev"
missing() {
    if [ "$how" = short ]; then not_run "test-verbs" "$1"; fi
    printf 'error: test-verbs: %s\n' "$1" >&2
    exit 1
}
for tool in ibv_devinfo ibv_rc_pingpong ib_send_lat rping cc nm; do
    command -v $tool >/dev/null || missing "$tool was not found: apt-get install $packages"
done
for header in infiniband/verbs.h rdma/rdma_cma.h; do
    [ -e /usr/include/$header ] || missing "no $header: apt-get install $packages"
done
[ "$(uname -m)" = x86_64 ] || missing "the library is for x86-64 only"

programs="$PWD/bindings/verbs/tests/programs"
library="$(built bellwire-verbs libibverbs.so)"
command="$(realpath "$(built bellwire-cli bellwire)")"
built bellwire-sysfs libbellwire_sysfs.so >/dev/null
built bellwire-sockets libbellwire_sockets.so >/dev/null
pyverbs="${CARGO_TARGET_DIR:-target}/pyverbs"
[ -e "$pyverbs/tests/test_qp.py" ] && /usr/bin/python3 -c 'import pyverbs.device' ||
    missing "no tests of pyverbs in $pyverbs: tools/need.sh pyverbs"
[ -e "$library" ] || library="$(built bellwire-verbs deps/libibverbs.so)"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/lib"
cp "$library" "$folder/lib/libibverbs.so.1"
ln -s libibverbs.so.1 "$folder/lib/librdmacm.so.1"
# The same as it is installed, for all users to read.
chmod 755 "$folder"
mkdir -p "$folder/opt/bin" "$folder/opt/lib"
cp "$command" "$folder/opt/bin/bellwire"
cp tools/bare.sh tools/both-ends.sh "$folder/opt"
cp -a "$folder/lib" "$folder/opt/lib/bellwire"
over() { LD_LIBRARY_PATH="$folder/lib" "$@"; }
# Programs of Python here come from the sources, which stay as they are.
export PYTHONDONTWRITEBYTECODE=1
for program in missing statuses transfers connections groups threads signals cancelled mapped killed outlives; do
    cc -O1 -Wall -Wno-unused-function -pthread "$programs/$program.c" -lrdmacm -libverbs -o "$folder/$program"
done

passed=0 failed=0
# check WHAT COMMAND...: the command succeeds. The limit ends what hangs, and says nothing of speed.
check() {
    local what="$1"
    shift
    if "$@" >"$folder/log" 2>&1; then
        passed=$((passed + 1))
        printf 'test %s ... ok\n' "$what"
    else
        failed=$((failed + 1))
        printf 'test %s ... FAILED (%s)\n' "$what" "$*"
        tail -n 30 "$folder/log"
    fi
}
limit_s=100
limited() { timeout -k 5 "$limit_s" "$@"; }

# is_listening PROTOCOL PORT [WHERE...]: waits until a server listens on a port of tcp, or has bound
# one of udp.
is_listening() {
    local protocol="$1" hex
    hex="$(printf ':%04X ' "$2")"
    shift 2
    for _ in $(seq 300); do
        "$@" cat /proc/net/$protocol /proc/net/${protocol}6 2>/dev/null |
            awk -v port="$hex" 'index($2 " ", port) && ($4 == "0A" || $4 == "07") { found = 1 }
                END { exit !found }' && return
        sleep 0.1
    done
    printf 'nobody listens on %s port %s\n' "$protocol" "$port" >&2
    return 1
}
# Below those that the kernel gives to others (32768 and up), whatever the number of checks.
port=$((10000 + $$ % 8000))
server_in=() client_in=() address=127.0.0.1
# pair PROTOCOL SERVER CLIENT: a server and a client, in namespaces if they are set. They find each
# other at a port of the protocol, which both get.
pair() {
    local server result=0 at option
    port=$((port + 1))
    at=$port option="-p $port"
    # Their option of that name is something else; their ports are fixed.
    case "$2" in
        udaddy*) at=7174 option="" ;;
        fi_pingpong*) at=47592 option="" ;;
    esac
    # The words of a command are apart.
    # shellcheck disable=SC2086
    over limited "${server_in[@]}" $2 $option >"$folder/server" 2>&1 &
    server=$!
    is_listening "$1" $at "${server_in[@]}" || result=1
    # shellcheck disable=SC2086
    over limited "${client_in[@]}" $3 $option || result=1
    # This server serves for ever.
    case "$2" in *cmtime* | *udpong*) kill $server; wait $server || true; return $result ;; esac
    wait $server || { result=1; cat "$folder/server"; }
    return $result
}
# between PROGRAM ARGUMENT...: one that finds its peer by a socket of its own.
between() { pair tcp "$*" "$* $address"; }
# on_shm COMMAND...: on a device of shared memory alone.
on_shm() { BELLWIRE_DEVICE="shm:verbs-$$" "$@"; }
# run_apart FUNCTION...: in a shell of its own, so that what it exports ends with it.
run_apart() { ("$@"); }
# on_loopback COMMAND...: datagrams to groups leave the host otherwise.
on_loopback() { BELLWIRE_DEVICE=auto:udp:127.0.0.1 "$@"; }
# connected PROGRAM ARGUMENT...: perftest, connected by librdmacm.
connected() { pair udp "$* -R" "$* -R $address"; }

# key NUMBER: a key file.
key() {
    (umask 077 && printf 'shared %064d\n' "$1" >"$folder/$1.key")
    printf '%s' "$folder/$1.key"
}
# keyed KEY KEY: a ping-pong over UDP, whose server and client have the key files of these numbers.
keyed() {
    export BELLWIRE_DEVICE=udp:127.0.0.1
    pair tcp "env BELLWIRE_KEY=$(key "$1") ibv_rc_pingpong -g 0 -c -n 100" \
        "env BELLWIRE_KEY=$(key "$2") ibv_rc_pingpong -g 0 -c -n 100 $address"
}
# stranger: the client's requests come to nobody, so they end in an error.
stranger() {
    ! limit_s=30 keyed 1 2 && grep -rqs 'Failed status' "$folder/server" "$folder/log"
}

# mckeys COUNT BIND ARGUMENT...: mckey sends to a group with that many receivers, in namespaces if
# they are set. A receiver that misses a datagram does not end.
mckeys() {
    local count="$1" bind="$2" group sender result=0 receivers=() receiver
    shift 2
    group="239.$(($$ / 256 % 256)).$(($$ % 256)).$((port % 256))"
    port=$((port + 1))
    for receiver in $(seq "$count"); do
        over limited "${server_in[@]}" mckey -m "$group" -b "$address" -C 20 >"$folder/mckey.$receiver" 2>&1 &
        receivers+=($!)
    done
    has_members "$group" "$count" "${server_in[@]}" || result=1
    over limited "${client_in[@]}" mckey -m "$group" -b "$bind" -C 20 -s "$@" || result=1
    for receiver in "${receivers[@]}"; do
        wait "$receiver" || { result=1; cat "$folder"/mckey.*; }
    done
    return $result
}
# has_members GROUP COUNT [WHERE...]: waits until sockets are bound to the group's address.
has_members() {
    local hex count="$2"
    # The address is written in the processor's order.
    hex="$(awk -F. '{ printf "%02X%02X%02X%02X:FD17", $4, $3, $2, $1 }' <<<"$1")"
    shift 2
    for _ in $(seq 300); do
        [ "$("$@" grep -c "$hex" /proc/net/udp)" = "$count" ] && return
        sleep 0.1
    done
    printf 'there are not %s sockets at %s\n' "$count" "$hex" >&2
    return 1
}

# stream ARGUMENT...: rstream of rdmacm-utils. `-T s` is for TCP.
stream() { pair udp "rstream $*" "rstream -s $address $*"; }
# datagrams SERVER CLIENT: udpong of rdmacm-utils, with the options of each side. Its echo, and so
# all sizes, is left out: once an answer takes more than a millisecond, it asks with an old number
# and never ends.
datagrams() { pair udp "udpong $1" "udpong -s $address $2"; }
# copies: rcopy takes a file to its server, which writes it where it is told.
copies() {
    local server result=0
    head -c 3000000 /dev/urandom >"$folder/original"
    # Its port is fixed.
    over limited "${server_in[@]}" rcopy >"$folder/server" 2>&1 &
    server=$!
    is_listening udp 7427 "${server_in[@]}" &&
        over limited "${client_in[@]}" rcopy "$folder/original" "$address:$folder/copy" || result=1
    kill $server 2>/dev/null
    wait $server 2>/dev/null || true
    cmp "$folder/original" "$folder/copy" && return $result
}
# carried ARGUMENT...: an ordinary program, whose connections Bellwire carries.
carried() { limited "$command" run --sockets -v -- "$@"; }
# A file comes over Bellwire from a server of Python, also to a client without it, by TCP. A client
# finds a server without it, too, and says so.
web() {
    local server plain at result=0
    mkdir -p "$folder/web"
    head -c 3000000 /dev/urandom >"$folder/web/file"
    port=$((port + 2))
    at=$port
    (cd "$folder/web" && exec timeout 60 "${server_in[@]}" "$command" run --sockets -v -- \
        /usr/bin/python3 -m http.server $at) >"$folder/server" 2>&1 &
    server=$!
    (cd "$folder/web" && exec timeout 60 "${server_in[@]}" /usr/bin/python3 -m http.server \
        $((at + 1))) >/dev/null 2>&1 &
    plain=$!
    is_listening udp $at "${server_in[@]}" && is_listening tcp $((at + 1)) "${server_in[@]}" || result=1
    for round in 1 2 3; do
        carried "${client_in[@]}" curl -sS -o "$folder/got" "http://$address:$at/file" 2>"$folder/said" &&
            grep -q "a stream to $address:$at" "$folder/said" &&
            cmp "$folder/got" "$folder/web/file" || { result=1; cat "$folder/said"; }
    done
    "${client_in[@]}" curl -sS -o "$folder/got" "http://$address:$at/file" &&
        cmp "$folder/got" "$folder/web/file" || result=1
    carried "${client_in[@]}" curl -sS -o "$folder/got" "http://$address:$((at + 1))/file" 2>"$folder/said" &&
        grep -q "is an ordinary socket now" "$folder/said" &&
        cmp "$folder/got" "$folder/web/file" || { result=1; cat "$folder/said"; }
    kill $server $plain
    wait $server $plain || true
    [ $result = 0 ] || cat "$folder/server"
    return $result
}
# Bytes go through netcat, which ends when the sender does.
netcat() {
    local server
    head -c 1000000 /dev/urandom >"$folder/original"
    port=$((port + 1))
    carried "${server_in[@]}" nc -l $port >"$folder/copy" 2>"$folder/server" &
    server=$!
    is_listening udp $port "${server_in[@]}" &&
        carried "${client_in[@]}" nc -N $address $port <"$folder/original" && wait $server &&
        cmp "$folder/original" "$folder/copy"
}
# perf3 ARGUMENT...: iperf3 over Bellwire.
perf3() {
    pair udp "$command run --sockets -- iperf3 -s -1" \
        "$command run --sockets -- iperf3 -c $address $*"
}

# talks LIMIT: waits until the limit's child has a connection of tcp. Each program of RDMA finds its
# peer by one, and keeps it.
talks() {
    local inodes
    for _ in $(seq 300); do
        kill -0 "$1" || break
        inodes="$(pgrep -P "$1" | sed 's,.*,/proc/&/fd,' |
            xargs -r -I FD find FD -lname 'socket:*' -printf '%l\n' 2>/dev/null | tr -dc '0-9\n')" || true
        awk -v inodes="$inodes" 'BEGIN { split(inodes, list, "\n"); for (at in list) own[list[at]] = 1 }
            $4 == "01" && $10 in own { found = 1 } END { exit !found }' /proc/net/tcp /proc/net/tcp6 && return
        sleep 0.1
    done
    printf 'process %s has no connection\n' "$1" >&2
    return 1
}
# killed WHOM PROTOCOL SERVER CLIENT: of two programs that transfer for ever, one is killed. The
# other one ends within 2 s, as control.h counts them, or within $sleeps sleeps. The signal is
# KILL, or $signal.
killed() {
    local whom="$1" server client victim other result=0 status=0
    port=$((port + 1))
    # Not by functions: the process must be the limit's only child.
    # shellcheck disable=SC2086
    LD_LIBRARY_PATH="$folder/lib" timeout 60 $3 -p $port >"$folder/server" 2>&1 &
    server=$!
    is_listening "$2" $port
    # shellcheck disable=SC2086
    LD_LIBRARY_PATH="$folder/lib" timeout 60 $4 -p $port >"$folder/client" 2>&1 &
    client=$!
    talks $client || { cat "$folder/server"; return 1; }
    sleep 1
    if [ "$whom" = server ]; then victim=$server other=$client; else victim=$client other=$server; fi
    # shellcheck disable=SC2086
    "$folder/outlives" "$(kill -l ${signal:-KILL})" "$(pgrep -P $victim)" "$(pgrep -P $other)" \
        ${sleeps:-} || result=1
    # What does not end by itself, also because it is stopped, ends now.
    pkill -KILL -P $victim || true
    [ $result = 0 ] || pkill -KILL -P $other || true
    wait $victim 2>/dev/null || true
    wait $other 2>/dev/null || status=$?
    printf 'the other one ended with %s\n' $status
    return $result
}
# unnoticed: a program whose peer is only stopped does not end, and that is seen.
unnoticed() {
    ! signal=STOP killed client tcp "ib_send_bw -n 100000000" "ib_send_bw -n 100000000 127.0.0.1" \
        >"$folder/said" && grep -q 'still runs after 200 sleeps' "$folder/said"
}
# kills DEVICE JOB: our program whose peers are killed at any point of what they do.
kills() {
    # A peer that sends nothing is asked once a second.
    local ways="" limit_s=600
    [ "$how" = full ] || ways=short
    BELLWIRE_DEVICE="$1" over limited "$folder/killed" "$2" $$ $ways
}

# The exports of the installed libraries, with their versions, are among ours.
exports() {
    local systems
    systems="$(ldconfig -p | awk '/lib(ibverbs|rdmacm).so.1 .*x86-64/ { print $NF }')"
    [ "$(wc -w <<<"$systems")" = 2 ] || { printf 'not two: %s\n' "$systems"; return 1; }
    names() { nm -D --with-symbol-versions "$@" | awk '$2 == "T" { sub("@@", "@", $3); print $3 }' | sort; }
    # shellcheck disable=SC2086
    comm -23 <(names $systems) <(names "$folder/lib/libibverbs.so.1") >"$folder/absent"
    cat "$folder/absent"
    [ ! -s "$folder/absent" ]
}
# All that the installed programs want is there, also of libraries of cards that come with them.
complete() {
    local program
    for program in ibv_devinfo ib_send_bw ibv_srq_pingpong rping rstream; do
        LD_BIND_NOW=1 over limited "$(command -v $program)" --help >/dev/null 2>"$folder/absent" || true
        if grep -E 'symbol lookup error|not found|version' "$folder/absent"; then return 1; fi
    done
}
layouts() { ${TESTS:-cargo test -p bellwire-verbs} --quiet --lib layout -- --ignored; }
# says TEXT COMMAND...: the command succeeds, and its output has the text.
says() {
    local text="$1"
    shift
    "$@" >"$folder/said" 2>&1 && grep -q -- "$text" "$folder/said"
}
listed() {
    says '^hca_id:.*bellwire0' over limited ibv_devinfo -v && says bellwire0 over limited ibv_devices
}
doctor() {
    says 'RDMA (verbs) *good *bellwire0' "$command" doctor
}
runs() {
    says 'LD_LIBRARY_PATH=' "$command" run -v -- ibv_devices &&
        says '::ffff:127.0.0.1' "$command" run --device udp:127.0.0.1 -- ibv_devinfo -v
}
compared() { /usr/bin/python3 bindings/verbs/tests/compared.py docs/verbs.md; }
# rdma-core's own tests in Python.
pyverbs() {
    limited "$command" run --sysfs --device auto:udp:127.0.0.1 -- /usr/bin/python3 bindings/verbs/tests/run_pyverbs.py \
        "$pyverbs" bindings/verbs/tests/pyverbs-skipped.txt docs/verbs.md >"$folder/said" 2>&1 || {
        cat "$folder/said"
        return 1
    }
    tail -n 1 "$folder/said"
}
# ucx TRANSPORTS TEST: UCX, which looks at files of devices itself.
ucx() {
    local over="$command run --sysfs -- env UCX_TLS=$1,self UCX_NET_DEVICES=bellwire0:1 ucx_perftest"
    pair tcp "$over" "$over $address -t $2 -n 500 -w 10"
}
# What keeps a program from running over Bellwire is said, and how to mend it where that is known.
explained() {
    local script="$folder/script"
    printf '#!/no/such/interpreter\n' >"$script"
    chmod 755 "$script"
    printf 'int main(void) { return 0; }\n' >"$folder/static.c"
    cc -static "$folder/static.c" -o "$folder/static"
    explains 'no folder of PATH has it' no-such-program &&
        explains 'there is no such file' "$folder/no-such-program" &&
        explains 'is not executable' "$folder/static.c" &&
        explains 'the loader or interpreter that it names is not' "$script" &&
        explains 'names no device' --device foo:bar -- ibv_devinfo &&
        explains 'is not an address of this host' --device udp:203.0.113.1 -- ibv_devinfo &&
        says 'is linked statically' "$command" run -- "$folder/static" &&
        says 'changes its user' "$command" run -- "$(command -v su)" --version &&
        says 'is itself not linked with libibverbs' "$command" run -v -- true
}
# explains TEXT ARGUMENT...: `bellwire run` fails, and says so.
explains() {
    local text="$1"
    shift
    [ "$1" = --device ] || set -- -- "$@"
    ! "$command" run "$@" >"$folder/said" 2>&1 && grep -q -- "$text" "$folder/said"
}
# bare WHO PROTOCOL PORT SERVER CLIENT: both ends where there is next to nothing (tools/bare.sh).
bare() {
    local who="$1"
    shift
    limited tools/bare.sh "$folder/opt" "$who" /opt/bin/bellwire run -- /opt/both-ends.sh "$@"
}

# Each call that is not offered is reported once.
refused() {
    over limited "$folder/missing" 2>"$folder/said" &&
        [ "$(grep -c 'is not offered; docs/verbs.md' "$folder/said")" = 2 ]
}

check "the exports of the installed library are among ours" exports
check "installed programs find all symbols" complete
check "structures have the header's layout" layouts
check "devices are listed" listed
check "bellwire run" runs
check "bellwire doctor" doctor
check "what cannot run is explained" explained
check "what is not offered fails and is reported once" refused
check "statuses by their causes" over limited "$folder/statuses"
check "a device without groups" env BELLWIRE_DEVICE="shm:test-verbs-$$" LD_LIBRARY_PATH="$folder/lib" timeout 60 "$folder/statuses" without-groups
check "transfers" over limited "$folder/transfers"
check "pages that peers map" over limited "$folder/mapped"
check "connections" over limited "$folder/connections"
check "groups" env BELLWIRE_DEVICE=auto:udp:127.0.0.1 LD_LIBRARY_PATH="$folder/lib" timeout 60 "$folder/groups"
check "threads, forks and ends" over limited "$folder/threads"
check "signals of the program" over limited "$folder/signals"
check "threads are cancelled" over limited "$folder/cancelled"
check "a peer is killed at any point, over shm" kills "shm:killed-$$" "killed-$$"
check "a peer is killed at any point, over UDP" kills udp:127.0.0.1 none
check "a peer that is stopped is not noticed (canary)" \
    env BELLWIRE_DEVICE="shm:stopped-$$" LD_LIBRARY_PATH="$folder/lib" timeout 60 "$folder/killed" canary
check "lists of tests that are not run are compared (canary)" compared
check "pyverbs" pyverbs
for kind in rc uc ud srq; do
    check "ibv_${kind}_pingpong -c" between ibv_${kind}_pingpong -g 0 -c
    check "ibv_${kind}_pingpong -e" between ibv_${kind}_pingpong -g 0 -e
done
for kind in rc ud; do
    check "ibv_${kind}_pingpong over shm" on_shm between ibv_${kind}_pingpong -g 0 -c
done
check "rping over shm" on_shm pair udp "rping -s -a $address -C 20" "rping -c -a $address -C 20"
check "ibv_rc_pingpong over UDP with a key" run_apart keyed 1 1
check "a client with another key does not get in" run_apart stranger
check "ibv_rc_pingpong -j -N" between ibv_rc_pingpong -g 0 -c -j -N
check "ibv_rc_pingpong of long messages" between ibv_rc_pingpong -g 0 -c -s 300000 -n 100
for program in ib_send_lat ib_write_lat ib_read_lat ib_atomic_lat ib_send_bw ib_write_bw ib_read_bw \
    ib_atomic_bw; do
    check "$program" between $program -n 200
done
check "rping" pair udp "rping -s -a $address -V -C 20" "rping -c -a $address -V -C 20"
check "ucmatose" pair udp "ucmatose -c 4" "ucmatose -c 4 -s $address"
check "udaddy" pair udp "udaddy -c 4" "udaddy -c 4 -s $address"
check "cmtime" pair udp "cmtime -c 20" "cmtime -c 20 -s $address"
check "mckey with three receivers" on_loopback mckeys 3 $address
check "rdma_client and rdma_server" pair udp rdma_server "rdma_client -s $address"
check "rdma_xclient and rdma_xserver" pair udp rdma_xserver "rdma_xclient -s $address"
check "rstream" stream -S 1000 -C 10 -I 20
check "rstream -T n -T v" stream -S 100000 -C 10 -I 4 -T n -T v
check "rstream -T a" stream -S 64 -C 10 -I 20 -T a
check "udpong" datagrams "" "-S 1000 -C 200"
check "riostream" pair udp "riostream -S 10000 -C 10 -I 20 -T v" \
    "riostream -s $address -S 10000 -C 10 -I 20 -T v"
check "http.server and curl by --sockets" web
for program in ib_send_lat ib_write_bw; do
    check "$program -R" connected $program -n 200
done
if limited tools/bare.sh "$folder/opt" user true >"$folder/log" 2>&1; then
    for who in user root; do
        check "ibv_rc_pingpong as $who with nothing but /proc" bare $who tcp 18515 \
            "ibv_rc_pingpong -g 0 -c" "ibv_rc_pingpong -g 0 -c 127.0.0.1"
        check "ib_send_lat as $who with nothing but /proc" bare $who tcp 18515 "ib_send_lat -n 200" \
            "ib_send_lat -n 200 127.0.0.1"
        check "rping as $who with nothing but /proc" bare $who udp 7174 \
            "rping -s -a 127.0.0.1 -V -C 20" "rping -c -a 127.0.0.1 -V -C 20"
    done
else
    printf 'NOT RUN: test-verbs: nothing but /proc: %s\n' "$(cat "$folder/log")"
fi
for whom in server client; do
    check "the $whom is killed" killed $whom tcp "ib_send_bw -n 100000000" \
        "ib_send_bw -n 100000000 127.0.0.1"
    check "the $whom of a connection is killed" killed $whom udp "rping -s -a 127.0.0.1" \
        "rping -c -a 127.0.0.1"
    check "the $whom of a stream is killed" killed $whom udp "rstream -S 4096 -C 1000 -I 1000000" \
        "rstream -s 127.0.0.1 -S 4096 -C 1000 -I 1000000"
done
check "a program whose peer is stopped goes on (canary)" unnoticed

if [ "$how" = full ]; then
    every_pingpong ""
    every_perftest ""
    perftest_options
    every_size
    endless
    every_connection
    every_qperf
    # libfabric's own provider for verbs, over which MPI runs, too.
    for kind in "verbs -e msg" "verbs;ofi_rxm -e rdm"; do
        for size in 64 65536; do
            check "fi_pingpong -p $kind of $size bytes" pair tcp \
                "fi_pingpong -p $kind -I 100 -S $size" "fi_pingpong -p $kind -I 100 -S $size $address"
        done
    done
    # All sizes are millions of messages.
    limit_s=600
    check "rstream -S all" stream -S all
    check "riostream -S all" pair udp "riostream -S all" "riostream -s $address -S all"
    limit_s=100
    for options in "-T a" "-T b" "-T n" "-B 8192"; do
        check "udpong $options" datagrams "$options" "-S 2000 -C 500 $options"
    done
    check "udpong -b" datagrams "-b 127.0.0.1" "-S 64 -C 500"
    check "rstream -b" pair udp "rstream -b 127.0.0.1 -S 1000 -C 5 -I 5" \
        "rstream -s $address -S 1000 -C 5 -I 5"
    for options in "-I 5 -C 10" "-B 8192 -S 30000 -C 5 -I 5" \
        "-f ip -S 1000 -C 5 -I 5" "-k 5 -i 16 -S 64 -C 10 -I 20" "-T b -S 4096 -C 10 -I 20" \
        "-T r -S 4096 -C 10 -I 20" "-T v -S 4096 -C 10 -I 20" "-T a -T n -S 100000 -C 10 -I 5"; do
        check "rstream $options" stream $options
    done
    check "rstream -T s, which is TCP" pair tcp "rstream -T s -S 1000 -C 5 -I 5" \
        "rstream -s $address -T s -S 1000 -C 5 -I 5"
    check "rcopy" copies
    check "netcat by --sockets" netcat
    check "iperf3 by --sockets" perf3 -t 2
    check "iperf3 -R by --sockets" perf3 -t 2 -R
    check "rstream -T s by --sockets" pair udp \
        "$command run --sockets -- rstream -T s -S 1000 -C 10 -I 20" \
        "$command run --sockets -- rstream -T s -s $address -S 1000 -C 10 -I 20"
    for whom in server client; do
        for program in ib_send_bw ib_read_bw; do
            check "the $whom is killed, and $program asleep" killed $whom tcp \
                "$program -e -n 100000000" "$program -e -n 100000000 127.0.0.1"
        done
    done
    for kind in rc_verbs,ud_verbs:aux ud_verbs; do
        for what in tag_lat tag_bw tag_sync_lat tag_sync_bw ucp_put_lat ucp_put_bw ucp_get ucp_add \
            ucp_fadd ucp_swap ucp_cswap stream_bw stream_lat ucp_am_lat ucp_am_bw; do
            check "ucx_perftest $what over $kind" ucx $kind $what
        done
    done
    cc -O1 -Wall "$programs/ucp_sockets.c" -lucp -lucs -o "$folder/ucp_sockets"
    for kind in rc_verbs,ud_verbs:aux rc_verbs; do
        check "UCX over librdmacm and $kind" ucp_sockets $kind
    done
    every_uct
    every_mpi
    every_sideway
    every_fabtest
    left=bellwire-l-$$ right=bellwire-r-$$
    if [ "$(id -u)" = 0 ] && ip netns add $left 2>/dev/null; then
        ip netns add $right
        trap 'ip netns del $left; ip netns del $right; rm -rf "$folder"' EXIT
        ip link add name wire netns $left type veth peer name wire netns $right
        ip -n $left addr add 10.78.0.1/24 dev wire
        ip -n $right addr add 10.78.0.2/24 dev wire
        for side in $left $right; do ip -n $side link set wire up; done
        server_in=(ip netns exec $left) client_in=(ip netns exec $right) address=10.78.0.1
        every_pingpong " between two namespaces"
        every_perftest " between two namespaces"
        check "rping between two namespaces" pair udp "rping -s -a $address -V -C 100" \
            "rping -c -a $address -V -C 100"
        check "rstream between two namespaces" stream -I 20 -C 10
        check "udpong between two namespaces" datagrams "-b $address" "-S 1400 -C 200"
        check "riostream between two namespaces" pair udp "riostream -S 10000 -C 10 -I 20 -T v" \
            "riostream -s $address -S 10000 -C 10 -I 20 -T v"
        check "http.server and curl by --sockets between two namespaces" web
        check "ucmatose between two namespaces" pair udp ucmatose "ucmatose -s $address"
        check "udaddy between two namespaces" pair udp udaddy "udaddy -s $address"
        check "mckey between two namespaces" mckeys 2 10.78.0.2
        check "mckey that only sends between two namespaces" mckeys 2 10.78.0.2 -o
    else
        printf 'NOT RUN: test-verbs: two namespaces: they need root and ip\n'
    fi
fi

printf 'test result: %s. %d passed; %d failed\n' "$([ $failed = 0 ] && echo ok || echo FAILED)" \
    $passed $failed
[ $failed = 0 ]
