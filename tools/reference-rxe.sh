#!/usr/bin/env bash
# Usage: [ROUNDS=3] [LIMIT=SECONDS] [ROWS=PATTERN] tools/reference-rxe.sh [--json]
# Measures Debian's perftest, unmodified, over Bellwire and over the kernel's rxe, and TCP beside,
# in an emulated guest (tools/rxe/guest.sh), as root. All spin, on two pinned processors, unless a
# row says asleep; qperf, which measures TCP, sleeps. Prints tables, or one JSON object. A whole run
# also writes docs/performance-rxe.md. A run that is cut off goes on where it stopped; with LIMIT it
# stops by itself. With ROWS it measures the rows whose name matches the pattern, as "write, 8 B*".
set -euo pipefail
cd "$(dirname "$0")/.."
rounds="${ROUNDS:-3}" limit="${LIMIT:-3600}" json=
[ "${1:-}" != --json ] || json=1
target="${CARGO_TARGET_DIR:-$PWD/target}/release"
export GUEST="${GUEST:-${CARGO_TARGET_DIR:-$PWD/target}/rxe-guest}"
share="$GUEST/share"
case "$rounds$limit" in *[!0-9]*) echo "reference-rxe: ROUNDS and LIMIT are numbers" >&2 && exit 1 ;; esac

tools/rxe/guest.sh prepare
cargo build -q --release -p bellwire-cli -p bellwire-verbs
mkdir -p "$share/bellwire"
install -m 755 "$target/bellwire" "$target/libibverbs.so" "$share/bellwire/"
cc -O2 -Wall -Wno-unused-function -o "$share/outcomes" bindings/verbs/tests/programs/outcomes.c -libverbs

# Figures of other programs are of no use, and those of some rows would be from another time.
programs="$(cat "$share"/bellwire/* "$share/outcomes" "$GUEST/made-of" tools/rxe/{init,measure.sh} | sha256sum) ${ROWS:-*}"
if [ "$(cat "$share/programs" 2>/dev/null)" != "$programs" ]; then
    rm -f "$share/figures" "$share/outcomes.txt"
    echo "$programs" >"$share/programs"
fi
rm -f "$share/later" "$share/trouble"
echo "$rounds" >"$share/rounds"
echo "${ROWS:-*}" >"$share/rows"
# The guest begins after ten seconds, and ends its last figure.
echo $((limit > 60 ? limit - 60 : limit)) >"$share/seconds"
# What gave no figure is tried again.
touch "$share/figures"
sed -i '/|none$/d' "$share/figures"
had="$(wc -l <"$share/figures")"
[ "$had" = 0 ] || echo "reference-rxe: $had figures are there already" >&2
setpriv --pdeathsig TERM tools/rxe/guest.sh boot tools/rxe/measure.sh "$limit"

# tables JSON: prints the figures that there are.
tables() {
    awk -F'|' -v json="$1" -v outcomes="$share/outcomes.txt" -v rounds="$rounds" -v machine="$(cat "$GUEST/made-of") in QEMU $(qemu-system-x86_64 --version | awk '{ print $4; exit }'), on $(awk -F': ' '/model name/ { print $2; exit }' /proc/cpuinfo), $(date -u +%F)" '
        function shown(x) { return sprintf(x < 10 ? "%.2f" : x < 100 ? "%.1f" : "%.0f", x) }
        function middle(key) { return value[key, int((count[key] + 1) / 2)] }
        function cell(key) {
            if (!count[key]) return key in failed ? "none" : "-"
            return shown(middle(key)) (count[key] > 1 ? " (" shown(value[key, 1]) "-" shown(value[key, count[key]]) ")" : "")
        }
        # How many times better ours is.
        function better(row, ours, theirs) {
            if (!count[row, ours] || !count[row, theirs]) return "-"
            return sprintf("%.2f", row ~ /, us$/ ? middle(row SUBSEP theirs) / middle(row SUBSEP ours) : middle(row SUBSEP ours) / middle(row SUBSEP theirs))
        }
        {
            if (!($1 in known)) { known[$1]; rows[++last] = $1 }
            key = $1 SUBSEP $2
            if ($4 == "none") { failed[key]; next }
            for (n = ++count[key]; n > 1 && value[key, n - 1] > $4 + 0; n--) value[key, n] = value[key, n - 1]
            value[key, n] = $4 + 0
        }
        END {
            names = split("rxe-lo bellwire-shm bellwire-udp-lo tcp-lo rxe-veth bellwire-udp bellwire-eth tcp-veth", who, " ")
            if (json) {
                printf "{\"machine\":\"%s\",\"rows\":[", machine
                for (r = 1; r <= last; r++) {
                    printf "%s{\"row\":\"%s\"", (r > 1 ? "," : ""), rows[r]
                    for (w = 1; w <= names; w++) {
                        key = rows[r] SUBSEP who[w]
                        if (count[key]) printf ",\"%s\":{\"median\":%g,\"least\":%g,\"most\":%g,\"samples\":%d}", who[w], middle(key), value[key, 1], value[key, count[key]], count[key]
                    }
                    printf "}"
                }
                while ((getline line < outcomes) > 0) {
                    split(line, part, "|")
                    printf "%s{\"case\":\"%s\",\"specification\":\"%s\",\"rxe\":\"%s\",\"bellwire\":\"%s\"}", (cases++ ? "," : "],\"outcomes\":["), part[1], part[2], part[3], part[4]
                }
                print "]}"
                exit
            }
            print "# Performance beside the kernel'"'"'s rxe"
            print ""
            print "Made by `make reference-rxe`. Do not edit by hand: the next run writes it anew."
            print ""
            print "Debian'"'"'s perftest, unmodified, over the kernel'"'"'s software device rxe and over Bellwire, and TCP by"
            print "qperf, in an emulated guest. All spin, on two pinned processors, unless a row says asleep; qperf"
            print "sleeps. The figure of a latency is `t_typical`. The processors are emulated, so what an operation"
            print "costs has another weight than on a real machine. Cells show the median, and in brackets the least"
            print "and the most."
            print ""
            print "[performance-verbs.md](performance-verbs.md) says what the time goes into."
            print ""
            print "- " machine
            print "- " rounds " rounds; the veth pair has an MTU of 1500, so that rxe sends 1,024 bytes in a packet\n"
            print "## On one host\n"
            print "| row | rxe on lo | Bellwire shm | Bellwire udp | TCP | shm better than rxe, times |\n|---|---|---|---|---|---|"
            for (r = 1; r <= last; r++) {
                line = "| " rows[r]
                for (w = 1; w <= 4; w++) line = line " | " cell(rows[r] SUBSEP who[w])
                print line " | " better(rows[r], "bellwire-shm", "rxe-lo") " |"
            }
            print "\n## Over a veth pair\n"
            print "| row | rxe | Bellwire udp | Bellwire eth | TCP | udp, eth better than rxe, times |\n|---|---|---|---|---|---|"
            for (r = 1; r <= last; r++) {
                line = "| " rows[r]
                for (w = 5; w <= 8; w++) line = line " | " cell(rows[r] SUBSEP who[w])
                print line " | " better(rows[r], "bellwire-udp", "rxe-veth") ", " better(rows[r], "bellwire-eth", "rxe-veth") " |"
            }
            print "\n## Wrong requests\n"
            print "| case | specification | rxe | Bellwire |\n|---|---|---|---|"
            while ((getline line < outcomes) > 0) {
                split(line, part, "|")
                print "| " part[1] " | " part[2] " | " (part[3] == part[2] ? "the same" : part[3]) " | " (part[4] == part[2] ? "the same" : part[4]) " |"
            }
        }' "$share/figures"
}
tables "$json"
[ ! -s "$share/trouble" ] || { echo "reference-rxe: programs without a figure:" && cat "$share/trouble"; } >&2
if [ -e "$share/later" ]; then
    echo "reference-rxe: stopped after $limit s; run it again for the other figures" >&2
    exit 1
fi
[ "${ROWS:-*}" != "*" ] || tables "" >docs/performance-rxe.md
if grep -q '|none$' "$share/figures"; then
    echo "reference-rxe: not every program gave its figure; run it again for these alone" >&2
    exit 1
fi
# The next run measures anew.
rm -f "$share/programs"
