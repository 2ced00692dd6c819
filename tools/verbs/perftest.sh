# For tools/test-verbs.sh: perftest's eight programs, with all that they offer.

perftests="ib_send_lat ib_write_lat ib_read_lat ib_atomic_lat ib_send_bw ib_write_bw ib_read_bw ib_atomic_bw"

# kinds_of PROGRAM: the kinds of queue pair with which the specification allows its operation.
kinds_of() {
    case "$1" in
        ib_send_*) printf 'RC UC UD' ;;
        ib_write_*) printf 'RC UC' ;;
        *) printf RC ;;
    esac
}

# every_perftest WHERE: each program with each kind of queue pair, connected by a socket and by
# librdmacm, polling and asleep. perftest itself refuses UC with librdmacm, and its writes never
# sleep.
every_perftest() {
    local program kind by asleep how
    for program in $perftests; do
        for kind in $(kinds_of "$program"); do
            for by in between connected; do
                [ "$kind $by" = "UC connected" ] && continue
                for asleep in "" " -e"; do
                    case "$program$asleep" in ib_write_*-e) continue ;; esac
                    how="-n 200 -c $kind$asleep"
                    case "$program $kind" in *_bw\ UD) how="$how -s 2048" ;; esac
                    # The words of the options are apart.
                    # shellcheck disable=SC2086
                    check "$program $how, $by$1" $by $program $how
                done
            done
        done
    done
}

# perftest_options: each program with each option that changes what it asks of the library.
perftest_options() {
    local program option
    local all=("-D 2" "-n 200 -x 0" "-n 200 -m 256" "-n 200 -m 4096" "-n 200 -S 1" "-n 200 -u 10"
        "-n 200 -z" "-n 200 --use_old_post_send" "-n 200 --tclass=96"
        "-n 200 --perform_warm_up" "-n 200 -s 1048576")
    local bandwidth=("-n 200 -q 4" "-n 200 -q 4 -R" "-n 200 -b" "-n 200 -q 4 -b" "-n 200 -Q 10"
        "-n 200 -N" "-n 200 -q 2 --mr_per_qp" "-n 320 -s 8 -l 16" "-D 2 -q 4 -b" "-n 200 -t 1")
    local -A own=(
        [ib_send_lat]="-n 200 -I 64 -s 32;-n 200 -r 64 --use-srq;-n 200 -r 64 --use-srq -c UD -s 1024;-n 200 --inline_recv=64"
        [ib_send_bw]="-n 200 -I 64 -s 32;-n 200 -r 64 --use-srq;-n 200 -q 4 -r 256 --use-srq;-n 320 -s 64 --recv_post_list=16;-n 200 -e -b -q 4;-n 200 -b --report-both;-n 200 --reversed;-n 200 -t 1 -r 5"
        [ib_write_lat]="-n 200 -I 64 -s 32"
        [ib_write_bw]="-n 200 -I 64 -s 32;-n 200 --reversed;-n 200 -b --report-both"
        [ib_read_lat]="-n 200 -o 4"
        [ib_read_bw]="-n 200 -o 4;-n 200 -q 4 -o 2"
        [ib_atomic_lat]="-n 200 -A FETCH_AND_ADD;-n 200 -A CMP_AND_SWAP;-n 200 -o 4"
        [ib_atomic_bw]="-n 200 -A FETCH_AND_ADD;-n 200 -A CMP_AND_SWAP;-n 200 -o 4"
    )
    for program in $perftests; do
        local options=("${all[@]}") more
        case "$program" in
            # Atomics have one size. perftest 4.5 waits for completions of small requests that it
            # did not ask for (mended in its 25.07).
            ib_atomic_*) unset 'options[-1]' 'options[-1]' ;;
        esac
        case "$program" in *_bw) options+=("${bandwidth[@]}") ;; esac
        IFS=';' read -ra more <<<"${own[$program]}"
        for option in "${options[@]}" "${more[@]}"; do
            case "$option" in
                # They find each other by librdmacm.
                *-z | *-R) check "$program $option" pair udp "$program $option" "$program $option $address" ;;
                # shellcheck disable=SC2086
                *) check "$program $option" between $program $option ;;
            esac
        done
    done
}

# every_size: sizes up to 8 MiB. For each size perftest measures the processor's clock twice, for
# 0.2 s of the processor's time. So beside others that compute these take minutes.
every_size() {
    local program limit_s=600
    for program in $perftests; do
        case "$program" in ib_atomic_*) continue ;; esac
        check "$program -a" between "$program" -n 50 -a
    done
    check "ib_write_bw -q 4 -a" between ib_write_bw -n 50 -q 4 -a
    check "ib_send_bw -c UD -a" between ib_send_bw -n 50 -c UD -a
}

# endless: programs that report for ever are stopped by a signal, and the other side ends too.
endless() {
    local program whom
    for program in ib_send_bw ib_write_bw ib_read_bw; do
        for whom in server client; do
            # It ends with its last report.
            signal=TERM sleeps=3000 check "the $whom of an endless $program is stopped" killed $whom tcp \
                "$program -D 1 --run_infinitely" "$program -D 1 --run_infinitely 127.0.0.1"
        done
    done
}
