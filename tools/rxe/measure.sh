#!/bin/bash
# In the guest: measures what /share/figures does not have yet, and ends after as many seconds as
# /share/seconds has. Each figure is written at once as ROW|WHO|ROUND|FIGURE; the figure is `none`
# if a program gave none.
rounds=$(cat /share/rounds) rows=$(cat /share/rows) limit=$(cat /share/seconds) folder=/share/figures
cp -r /share/bellwire /tmp/
touch $folder
progress() { echo "$(printf '%3d' $SECONDS) s, $*" >/dev/console; }
port=20000

# at WHO: how both sides run and where the client finds the server.
at() {
    near=() far=() device=() device_far=() address=10.99.0.1
    case $1 in
        rxe-lo) device=(-d rxelo -x 1) device_far=(-d rxelo -x 1) address=127.0.0.1 ;;
        rxe-veth) device=(-d rxe0 -x 1) device_far=(-d rxe1 -x 1) ;;
        bellwire-shm) near=(bellwire shm:rxe$port) far=(bellwire shm:rxe$port) address=127.0.0.1 ;;
        bellwire-udp-lo) near=(bellwire udp:127.0.0.1) far=(bellwire udp:127.0.0.1) address=127.0.0.1 ;;
        bellwire-udp) near=(bellwire udp:10.99.0.1) far=(bellwire udp:10.99.0.2) ;;
        bellwire-eth) near=(bellwire eth:v0) far=(bellwire eth:v1) ;;
        tcp-lo) address=127.0.0.1 ;;
    esac
    local side
    for side in near far; do
        declare -n command=$side
        [ ${#command[@]} = 0 ] || command=(/tmp/bellwire/bellwire run --device "${command[1]}" --)
    done
}

# listens: waits until somebody listens at the port, by IPv4 or IPv6, or the server has ended. It
# starts no program, because that takes long here.
listens() {
    local hex line tries
    printf -v hex ':%04X 0*:0000 0A' $port
    for tries in $(seq 200); do
        while read -r line; do
            case $line in *$hex*) return ;; esac
        done < <(cat /proc/net/tcp /proc/net/tcp6)
        kill -0 $server 2>/dev/null || return
        read -r -t 0.05 <>/tmp/never
    done
}
[ -e /tmp/never ] || mkfifo /tmp/never

# perftest WHO PROGRAM ARGUMENTS...: the client's line of figures.
perftest() {
    local server
    port=$((port + 1))
    at $1
    shift
    taskset -c 0 timeout 30 "${near[@]}" "$@" "${device[@]}" -p $port >/tmp/server 2>&1 &
    server=$!
    listens
    taskset -c 1 timeout 30 "${far[@]}" "$@" "${device_far[@]}" -p $port $address 2>/tmp/client.errors >/tmp/client
    awk '$1 ~ /^[0-9]+$/ && NF >= 5 { print; found = 1; exit } END { exit !found }' /tmp/client || {
        kill $server 2>/dev/null
        echo "$* over $near $device: no figure" >>/share/trouble
        tail -n 4 /tmp/server /tmp/client /tmp/client.errors >>/share/trouble
    }
    wait $server
}
# tcp WHO TEST BYTES: what qperf prints of TCP.
tcp() {
    local server
    port=$((port + 1))
    at $1
    taskset -c 0 timeout 30 qperf -lp $port >/dev/null 2>&1 &
    server=$!
    listens
    taskset -c 1 timeout 30 qperf -lp $port -v -uu -t 1 -m $3 $address $2 2>>/share/trouble >/tmp/client
    kill $server
    wait $server 2>/dev/null
}
# A latency in us, a stream in MB/s, a rate in thousands a second.
typical() { perftest "$@" | awk '{ print $5 }'; }
stream() { perftest "$@" | awk '{ print $4 * 1.048576 }'; }
rate() { perftest "$@" | awk '{ print $5 * 1000 }'; }
tcp_latency() { tcp $1 tcp_lat 8; awk '$1 == "latency" { print $3 / 1000 }' /tmp/client; }
tcp_stream() { tcp $1 tcp_bw 65536; awk '$1 == "bw" { print $3 / 1e6 }' /tmp/client; }
tcp_rate() { tcp $1 tcp_bw 8; awk '$1 == "bw" { print $3 / 8e3 }' /tmp/client; }

# note ROW WHO COMMAND...
note() {
    local row="$1" who="$2" figure
    # shellcheck disable=SC2254
    case $row in $rows) ;; *) return ;; esac
    grep -qsF "$row|$who|$round|" $folder && return
    if [ $SECONDS -ge $limit ]; then
        echo later >/share/later
        exit 0
    fi
    figure=$("$3" "$who" "${@:4}")
    case $figure in [0-9]*) ;; *) figure=none ;; esac
    echo "$row|$who|$round|$figure" >>$folder
    progress "round $round of $rounds: $row, $who: $figure"
}

# outcomes: what becomes of wrong requests, over rxe and over Bellwire, as lines of a table.
outcomes() {
    progress "wrong requests, over rxe and over Bellwire"
    timeout 120 /share/outcomes 1 >/tmp/rxe 2>>/share/trouble
    timeout 120 /tmp/bellwire/bellwire run --device udp:10.99.0.1 -- /share/outcomes 0 >/tmp/ours 2>>/share/trouble
    paste -d'|' /tmp/rxe <(cut -d'|' -f3 /tmp/ours) >/share/outcomes.part
    mv /share/outcomes.part /share/outcomes.txt
}

[ -e /share/outcomes.txt ] || [ "$rows" != "*" ] || outcomes
all="rxe-lo bellwire-shm bellwire-udp-lo rxe-veth bellwire-udp bellwire-eth"
for round in $(seq $rounds); do
    for who in $all; do note "send, 8 B, one way, us" $who typical ib_send_lat -s 8 -n 3000; done
    for who in tcp-lo tcp-veth; do note "send, 8 B, one way, us" $who tcp_latency; done
    for who in $all; do note "write, 8 B, one way, us" $who typical ib_write_lat -s 8 -n 3000; done
    for who in $all; do note "read, 8 B, whole, us" $who typical ib_read_lat -s 8 -n 3000; done
    for who in $all; do note "atomic, 8 B, whole, us" $who typical ib_atomic_lat -n 3000; done
    for who in $all; do note "send, 64 KiB, MB/s" $who stream ib_send_bw -s 65536 -n 300; done
    for who in tcp-lo tcp-veth; do note "send, 64 KiB, MB/s" $who tcp_stream; done
    for who in $all; do note "write, 64 KiB, MB/s" $who stream ib_write_bw -s 65536 -n 300; done
    for who in $all; do note "read, 64 KiB, MB/s" $who stream ib_read_bw -s 65536 -n 300; done
    for who in $all; do note "send, 8 B, thousands a second" $who rate ib_send_bw -s 8 -n 10000; done
    for who in tcp-lo tcp-veth; do note "send, 8 B, thousands a second" $who tcp_rate; done
    for who in $all; do note "write, 8 B, thousands a second" $who rate ib_write_bw -s 8 -n 10000; done
    for who in $all; do note "send, 8 B, asleep, one way, us" $who typical ib_send_lat -e -s 8 -n 500; done
    for who in tcp-lo tcp-veth; do note "send, 8 B, asleep, one way, us" $who tcp_latency; done
done
