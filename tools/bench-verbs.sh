#!/usr/bin/env bash
# Usage: [ROUNDS=5] tools/bench-verbs.sh [--json]
# Measures Debian's perftest, unmodified, over Bellwire, beside our own API and, between two network
# namespaces, beside raw UDP and TCP, in turns of one run. All spin, on two pinned processors,
# unless a row says asleep. A probe before and after each measurement says whether the processors
# are near (a cache line takes under 90 ns) or far (above 130 ns): a virtual machine moves them.
# Others are not used. A round takes a quarter of a minute. A table is printed, or one JSON object.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds="${ROUNDS:-5}" json=
target="${CARGO_TARGET_DIR:-$PWD/target}/release"
[ "${1:-}" != --json ] || { json=1 && shift; }

# The first call prepares, and has a second one measure, whose processes and namespaces end with it.
if [ "${1:-}" != --measure ]; then
    cargo build -q --release -p bellwire-cli -p bellwire-verbs -p bellwire-bench
    folder="$(mktemp -d)" child=
    trap '[ -z "$child" ] || kill -KILL "$child" 2>/dev/null || true; rm -rf "$folder"' EXIT
    trap 'exit 130' INT TERM HUP
    export folder
    own=()
    [ "$(id -u)" != 0 ] || own=(tools/alone.sh --two-hosts)
    "${own[@]}" tools/bench-verbs.sh ${json:+--json} --measure &
    child=$!
    wait "$child"
    exit
fi

trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM HUP
missing() { echo "NOT RUN: $*" | tee -a "$folder/missing" >&2; }
touch "$folder/missing" "$folder/figures"
near=() far=() at=127.0.0.1 hosts=memory
if [ "$(id -u)" = 0 ]; then
    near=(ip netns exec near) far=(ip netns exec far) at=10.99.0.1 hosts="memory wire"
else
    missing "a network: namespaces need root"
fi
[ "$(nproc)" -ge 2 ] || { missing "all: there is one processor"; exit 1; }
command -v ib_send_lat >/dev/null || { missing "perftest: apt-get install perftest"; exit 1; }
command -v qperf >/dev/null || missing "TCP asleep by qperf: apt-get install qperf"

# worker NAME: one of the benchmark's own contenders, which sleeps between orders.
declare -A to from
worker() {
    local order answer
    mkfifo "$folder/$1.in" "$folder/$1.out"
    "${@:2}" "$target/bellwire-bench" worker "${1%%@*}" 1 0 <"$folder/$1.in" >"$folder/$1.out" 2>"$folder/$1.log" &
    exec {order}>"$folder/$1.in" {answer}<"$folder/$1.out"
    to[$1]=$order from[$1]=$answer
    read -r -t 20 word words <&"$answer" && [ "$word" = ready ] || { missing "$1: ${words:-no answer}"; unset "to[$1]"; }
}
# own NAME OP BYTES COUNT: the nanoseconds in all.
own() {
    local name="$1" word time
    [ -n "${to[$name]:-}" ] || return 0
    echo "run ${*:2}" >&"${to[$name]}"
    read -r -t 30 word time <&"${from[$name]}" || return 0
    [ "$word" != ns ] || echo "${time%% *}"
}
worker line
worker bellwire
if [ "$hosts" != memory ]; then
    # Contenders of the benchmark know these addresses and this name.
    for side in near:10.77.0.1 far:10.77.0.2; do
        ip -n "${side%:*}" address add "${side#*:}/24" dev eth0
        ip -n "${side%:*}" link property add dev eth0 altname wire
    done
    for name in bellwire-udp raw-udp tcp; do
        worker $name env BELLWIRE_BENCH_FAR_NAMESPACE=/run/netns/far ip netns exec near
    done
fi
port=20000
# verbs HOST PROGRAM ARGUMENTS...: the line of figures of the client.
verbs() {
    local server client=("${near[@]}") run=("$target/bellwire" run --) tries
    [ "$1" = memory ] || client=("${far[@]}")
    shift
    port=$((port + 1))
    taskset -c 0 timeout 20 "${near[@]}" "${run[@]}" "$@" -p $port >/dev/null 2>&1 &
    server=$!
    for tries in $(seq 100); do
        "${near[@]}" ss -Hltn "sport = :$port" | grep -q . && break
        sleep 0.02
    done
    taskset -c 1 timeout 20 "${client[@]}" "${run[@]}" "$@" -p $port $at 2>/dev/null | awk '$1 ~ /^[0-9]+$/ && NF >= 5 { print; exit }' || true
    wait $server || true
}
# tcp_asleep: qperf's one-way latency of TCP in us; both sides sleep.
tcp_asleep() {
    local server
    taskset -c 0 timeout 20 "${near[@]}" qperf -lp 29765 >/dev/null 2>&1 &
    server=$!
    sleep 0.2
    taskset -c 1 timeout 10 "${far[@]}" qperf -lp 29765 -v -uu -t 1 -m 8 $at tcp_lat 2>/dev/null |
        awk '$1 == "latency" { print $3 / 1000 }' || true
    kill $server 2>/dev/null
    wait $server 2>/dev/null || true
}

line() { own line latency 8 500; }
# note ROW NAME COMMAND...: runs it between two probes, and keeps the figure that it prints.
note() {
    local row="$1" name="$2" before after figure place
    before="$(line)"
    figure="$("${@:3}")" || true
    after="$(line)"
    place="$(awk -v a="${before:-0}" -v b="${after:-0}" 'BEGIN { a /= 1000; b /= 1000
        print (a > 0 && a < 90 && b < 90 ? "near" : a > 130 && b > 130 ? "far" : "neither") }')"
    case "$figure" in [0-9]*) echo "$row|$name|$place|$figure" >>"$folder/figures" ;; esac
    printf '%3d s, round %d of %d: %s, %s: %s (%s)\n' "$SECONDS" "$round" "$rounds" "$row" "$name" "${figure:-no figure}" "$place" >&2
}
# Figures: us for latencies, M/s for rates, GB/s for streams.
typical() { verbs "$@" | awk '{ print $5 }'; }
rate() { verbs "$@" | awk '{ print $5 }'; }
stream() { verbs "$@" | awk '{ print $4 * 1048576 / 1e9 }'; }
own_latency() { own "$1" "$2" 8 "$3" | awk -v n="$3" '{ print $1 / 2000 / n }'; }
own_rate() { own "$1" "$2" 8 "$3" | awk -v n="$3" '{ print n * 1000 / $1 }'; }
own_stream() { own bellwire "$1" "$2" "$3" | awk -v n="$3" -v b="$2" '{ print n * b / $1 }'; }

for round in $(seq "$rounds"); do
    row="send, 2 B, one way, us"
    note "$row" verbs typical memory ib_send_lat -s 2 -n 50000
    note "$row" native own_latency bellwire latency 50000
    row="write, 2 B, one way, us"
    note "$row" verbs typical memory ib_write_lat -s 2 -n 50000
    note "$row" native own_latency bellwire put_latency 50000
    note "read, 2 B, whole, us" verbs typical memory ib_read_lat -s 2 -n 20000
    note "atomic, 8 B, whole, us" verbs typical memory ib_atomic_lat -n 20000
    row="send, 8 B, M/s"
    note "$row" verbs rate memory ib_send_bw -s 8 -n 1000000
    note "$row" native own_rate bellwire rate 1000000
    row="send, 8 B, lists of 16, M/s"
    note "$row" verbs rate memory ib_send_bw -s 8 -l 16 -r 512 -n 1000000
    note "$row" native own_rate bellwire batch_rate 1000000
    note "write, 8 B, M/s" verbs rate memory ib_write_bw -s 8 -n 1000000
    note "write, 8 B, lists of 16, M/s" verbs rate memory ib_write_bw -s 8 -l 16 -n 1000000
    for size in 65536:50000 1048576:4000; do
        bytes="${size%:*}" count="${size#*:}"
        row="write, $((bytes / 1024)) KiB, GB/s"
        note "$row" verbs stream memory ib_write_bw -s "$bytes" -n "$count"
        note "$row" native own_stream put_stream "$bytes" "$count"
        row="send, $((bytes / 1024)) KiB, GB/s"
        note "$row" verbs stream memory ib_send_bw -s "$bytes" -n "$((count / 4))"
        note "$row" native own_stream stream "$bytes" "$((count / 4))"
    done
    if [ "$hosts" != memory ]; then
        row="wire: send, 2 B, one way, us"
        note "$row" verbs typical wire ib_send_lat -s 2 -n 1000
        for name in bellwire-udp raw-udp tcp; do note "$row" $name own_latency $name latency 1000; done
        row="wire: send, 8 B, M/s"
        note "$row" verbs rate wire ib_send_bw -s 8 -n 200000
        for name in bellwire-udp raw-udp tcp; do note "$row" $name own_rate $name rate 100000; done
        row="wire: send, 2 B, one way, asleep, us"
        note "$row" verbs typical wire ib_send_lat -e -s 2 -n 5000
        note "$row" tcp own_latency tcp blocking_latency 5000
        ! command -v qperf >/dev/null || note "$row" tcp-qperf tcp_asleep
    fi
done

# The middle of each cell, its quartiles, and the goal: row, against which name, limit and side.
awk -F'|' -v json="$json" -v missing="$(paste -sd';' "$folder/missing")" -v rounds="$rounds" \
    -v machine="$(uname -r), $(nproc) processors, $(awk -F': ' '/model name/ { print $2; exit }' /proc/cpuinfo), $(date -u +%F)" '
    function goal(row, name, most, limit) { goals[row] = name "|" most "|" limit }
    function wish(row, most, limit) { wishes[row] = most "|" limit }
    function shown(x) { return sprintf(x < 1 ? "%.3f" : x < 100 ? "%.2f" : "%.0f", x) }
    function at(key, part,  n) { n = count[key]; return value[key, int(1 + (n - 1) * part + 0.5)] }
    BEGIN {
        goal("send, 2 B, one way, us", "native", 1, 1.5)
        goal("write, 2 B, one way, us", "native", 1, 1.5)
        goal("send, 8 B, M/s", "native", 0, 0.7)
        goal("send, 8 B, lists of 16, M/s", "native", 0, 0.7)
        goal("write, 1024 KiB, GB/s", "native", 0, 0.9)
        goal("wire: send, 2 B, one way, us", "raw-udp", 1, 1.2)
        goal("wire: send, 8 B, M/s", "tcp", 0, 10)
        goal("wire: send, 2 B, one way, asleep, us", "tcp", 1, 1)
        wish("send, 2 B, one way, us", 1, 0.25); wish("write, 2 B, one way, us", 1, 0.25)
        wish("read, 2 B, whole, us", 1, 0.4); wish("atomic, 8 B, whole, us", 1, 0.5)
        wish("send, 8 B, M/s", 0, 8); wish("write, 8 B, lists of 16, M/s", 0, 15)
        wish("write, 64 KiB, GB/s", 0, 8); wish("send, 64 KiB, GB/s", 0, 8)
    }
    {
        key = $1 "|" $2 "|" $3
        if (!($1 in row_known)) { row_known[$1]; rows[++last_row] = $1 }
        if (!(($1 "|" $2) in pair_known)) { pair_known[$1 "|" $2]; names[$1] = names[$1] (names[$1] ? "|" : "") $2 }
        for (n = ++count[key]; n > 1 && value[key, n - 1] > $4 + 0; n--) value[key, n] = value[key, n - 1]
        value[key, n] = $4 + 0
    }
    END {
        if (json) printf "{\"machine\":\"%s\",\"rounds\":%d,\"not_run\":\"%s\",\"rows\":[", machine, rounds, missing
        else {
            printf "%s; %d rounds. Cells: the middle (quartiles, samples). Ratio: to perftest over Bellwire, for the goal.\n\n", machine, rounds
            print "| row | who | near | far | near: verbs / it | far: verbs / it | goal | |\n|---|---|---|---|---|---|---|---|"
        }
        for (r = 1; r <= last_row; r++) {
            row = rows[r]
            n = split(names[row], who, "|")
            for (w = 1; w <= n; w++) {
                line = ""; verdict = ""; wanted = ""
                split("near|far", place, "|")
                if (json) printf "%s{\"row\":\"%s\",\"who\":\"%s\"", first++ ? "," : "", row, who[w]
                for (p = 1; p <= 2; p++) {
                    key = row "|" who[w] "|" place[p]; base = row "|verbs|" place[p]
                    ratio[p] = ""
                    if (!count[key]) { cell[p] = "-"; continue }
                    cell[p] = shown(at(key, .5)) " (" shown(at(key, .25)) "-" shown(at(key, .75)) ", " count[key] ")"
                    if (json) printf ",\"%s\":{\"median\":%g,\"p25\":%g,\"p75\":%g,\"samples\":%d}", place[p], at(key, .5), at(key, .25), at(key, .75), count[key]
                    if (who[w] != "verbs" && count[base]) ratio[p] = at(base, .5) / at(key, .5)
                    if (who[w] == "verbs" && row in wishes) {
                        split(wishes[row], g, "|")
                        wanted = "wish: " (g[1] ? "at most " : "at least ") g[2]
                        ok = g[1] ? at(key, .5) <= g[2] : at(key, .5) >= g[2]
                        verdict = verdict (verdict ? ", " : "") place[p] " " (ok ? "met" : "MISSED")
                    }
                    if (row in goals && ratio[p] != "") {
                        split(goals[row], g, "|")
                        if (g[1] == who[w]) {
                            wanted = (g[2] ? "at most " : "at least ") g[3] " x"
                            ok = g[2] ? ratio[p] <= g[3] : ratio[p] >= g[3]
                            verdict = verdict (verdict ? ", " : "") place[p] " " (ok ? "met" : "MISSED")
                        }
                    }
                }
                if (json) printf ",\"near_ratio\":%s,\"far_ratio\":%s,\"goal\":\"%s\",\"verdict\":\"%s\"}", ratio[1] == "" ? "null" : ratio[1], ratio[2] == "" ? "null" : ratio[2], wanted, verdict
                else printf "| %s | %s | %s | %s | %s | %s | %s | %s |\n", row, who[w], cell[1], cell[2], ratio[1] == "" ? "-" : shown(ratio[1]), ratio[2] == "" ? "-" : shown(ratio[2]), wanted ? wanted : "-", verdict ? verdict : "-"
            }
        }
        if (json) print "]}"
    }' "$folder/figures"
[ -n "$json" ] || cat "$folder/missing"
