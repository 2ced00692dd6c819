# For tools/test-verbs.sh: programs of RDMA apart from perftest, with what they offer.

# offers PROGRAM OPTION: the program's help lists the option.
offers() { "$1" --help 2>&1 | grep -q -e "^ *$2,"; }

# refuses TEXT COMMAND...: the command fails, and says so.
refuses() {
    local text="$1"
    shift
    ! "$@" >"$folder/said" 2>&1 && grep -q -e "$text" "$folder/said"
}

# every_pingpong WHERE: those of ibverbs-utils, with each option that they have. On-demand paging is
# refused.
every_pingpong() {
    local kind options option all
    for kind in rc uc ud srq; do
        for options in "-c" "-e" "-c -e" "-t" "-c -N" "-c -j" "-c -j -N"; do
            all=yes
            for option in $options; do
                offers ibv_${kind}_pingpong $option || all=no
            done
            [ $all = no ] && continue
            # shellcheck disable=SC2086
            check "ibv_${kind}_pingpong $options$1" between ibv_${kind}_pingpong -g 0 $options
        done
        for option in -o -O; do
            offers ibv_${kind}_pingpong $option || continue
            check "ibv_${kind}_pingpong $option is refused" refuses "isn't ODP capable" \
                over limited ibv_${kind}_pingpong -g 0 $option
        done
    done
}

# every_connection: the variants of rdmacm-utils.
every_connection() {
    local option
    for option in "-V -S 65535" "-V -q" "-v" "-d -S 64"; do
        check "rping $option" pair udp "rping -s -a $address -C 20 $option" \
            "rping -c -a $address -C 20 $option"
    done
    for option in "-c 4 -C 50 -S 1000" "-m -c 8" "-t 96" "-P ib" "-f ip" "-C 0" "-a 14"; do
        check "ucmatose $option" pair udp "ucmatose $option" "ucmatose $option -s $address"
    done
    for option in "-c 4 -C 50 -S 1000" "-P ipoib" "-f ip" "-C 0"; do
        check "udaddy $option" pair udp "udaddy $option" "udaddy $option -s $address"
    done
    check "rdma_xclient -c x is refused" refuses "Operation not supported" \
        over limited rdma_xclient -s "$address" -c x
    check "ibv_asyncwatch" watches
}
# It watches until it is ended.
watches() {
    LD_LIBRARY_PATH="$folder/lib" timeout 2 stdbuf -oL ibv_asyncwatch >"$folder/said" 2>&1
    [ $? = 124 ] && grep -q 'bellwire0: async event FD' "$folder/said"
}

# every_qperf: what qperf connects by librdmacm. It knows no global routes, so that its other tests
# need InfiniBand's own addresses, as on every RoCE card.
every_qperf() {
    local what
    for what in rc_lat rc_bw rc_bi_bw rc_rdma_read_lat rc_rdma_read_bw rc_rdma_write_lat \
        rc_rdma_write_bw rc_rdma_write_poll_lat rc_compare_swap_mr rc_fetch_add_mr \
        ver_rc_compare_swap ver_rc_fetch_add; do
        check "qperf $what" asks_qperf $what
    done
}
asks_qperf() {
    local server result=0
    port=$((port + 1))
    LD_LIBRARY_PATH="$folder/lib" timeout -k 5 $limit_s qperf -lp $port >"$folder/server" 2>&1 &
    server=$!
    is_listening tcp $port || result=1
    over limited qperf "$address" -lp $port -cm1 -t 1 "$1" || result=1
    # It serves for ever.
    kill $server
    wait $server || true
    return $result
}

# uct TRANSPORT TEST LAYOUT: UCX's transports alone.
uct() {
    local over="$command run --sysfs -- ucx_perftest -d bellwire0:1 -x $1"
    pair tcp "$over" "$over $address -t $2 -D $3 -n 500 -w 10"
}
every_uct() {
    local layout what
    for layout in short bcopy zcopy; do
        for what in am_lat am_bw; do
            for transport in rc_verbs ud_verbs; do
                check "ucx_perftest $what -D $layout over $transport alone" uct $transport $what $layout
            done
        done
        for what in put_lat put_bw; do
            check "ucx_perftest $what -D $layout over rc_verbs alone" uct rc_verbs $what $layout
        done
    done
    check "ucx_perftest get -D bcopy over rc_verbs alone" uct rc_verbs get bcopy
    for what in add_lat add_mr fadd cswap; do
        check "ucx_perftest $what over rc_verbs alone" uct rc_verbs $what short
    done
}

# ucp_sockets TRANSPORTS: two ends of UCX that find each other by librdmacm.
ucp_sockets() {
    local over="$command run --sysfs -- env UCX_TLS=$1,self UCX_NET_DEVICES=bellwire0:1"
    over="$over UCX_SOCKADDR_TLS_PRIORITY=rdmacm $folder/ucp_sockets"
    pair udp "$over server" "$over client $address" && grep -q 'cm.*rdmacm' "$folder/server"
}

# every_mpi: a program that checks each byte, over MPI's ways to libibverbs. ucx_perftest has no
# check of its own.
every_mpi() {
    local transport
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    mpicc -O1 -Wall bindings/libfabric/tests/programs/exchange.c -o "$folder/exchange"
    for transport in rc_verbs,ud_verbs:aux ud_verbs; do
        check "Open MPI over UCX's $transport" limited "$command" run --sysfs -- \
            env UCX_TLS=$transport,self UCX_NET_DEVICES=bellwire0:1 \
            mpirun --oversubscribe -n 3 --mca pml ucx --mca osc ucx --mca btl self "$folder/exchange"
    done
    check "Open MPI over libfabric's verbs;ofi_rxm" limited "$command" run -- \
        env FI_PROVIDER=verbs,ofi_rxm mpirun --oversubscribe -n 3 --mca pml cm --mca mtl ofi \
        --mca mtl_ofi_provider_include "verbs;ofi_rxm" --mca btl self --mca osc pt2pt \
        "$folder/exchange"
}

# every_sideway: the examples of the crate sideway, a binding for Rust that loads the libraries when
# it runs.
every_sideway() {
    local examples="${CARGO_TARGET_DIR:-$PWD/target}/sideway/bin"
    [ -x "$examples/rc_pingpong" ] || missing "no examples of sideway: tools/need.sh sideway"
    for program in rc_pingpong rc_pingpong_split; do
        for option in "" " -t"; do
            # shellcheck disable=SC2086
            check "sideway's $program$option" between "$examples/$program" -n 300$option
        done
    done
    check "sideway's cmtime" pair udp "$examples/cmtime -c 20 -b $address" \
        "$examples/cmtime -c 20 -s $address"
    check "sideway's show_gids" says '::*ffff' over limited "$examples/show_gids"
    check "sideway's ibv_devinfo" says 'hca_id: *bellwire0' over limited "$examples/ibv_devinfo"
}

# every_fabtest: the quick set of libfabric's own tests over its own providers for verbs. Their list
# says what does not run (bindings/verbs/tests/fabtests-not-run.txt). What libfabric excludes for a
# provider stands in its own list, which is used.
every_fabtest() {
    if [ ! -x "${FABTESTS:-}/bin/runfabtests.sh" ]; then
        printf 'NOT RUN: test-verbs: fabtests: FABTESTS does not say where they are installed\n'
        failed=$((failed + 1))
        return
    fi
    if [ "$(id -u)" != 0 ]; then
        printf 'NOT RUN: test-verbs: fabtests: they kill what has their name, so they need root to be alone\n'
        failed=$((failed + 1))
        return
    fi
    local limit_s=1800
    check "fabtests over verbs;ofi_rxm" fabtests "verbs;ofi_rxm" ofi_rxm 40
    check "fabtests over verbs" fabtests verbs verbs 25
}
# fabtests PROVIDER NAME LEAST: on a network of their own, because others may use their ports. They
# kill all processes of their name when they are done, so they see only their own. libfabric's verbs
# wants an address that is not the loopback's.
fabtests() {
    local bin="$FABTESTS/bin" alone="$PWD/tools/alone.sh"
    local excludes="$FABTESTS/share/fabtests/test_configs/$2/$2.exclude"
    [ -e "$excludes" ] || { printf 'there is no %s\n' "$excludes"; return 1; }
    (cd "$folder" && PATH="$bin:$PATH" limited "$alone" --two-hosts ip netns exec near "$command" run -- \
        "$bin/runfabtests.sh" -vv -p "$bin" -T 120 -g 10.99.0.1 -s 10.99.0.1 -c 10.99.0.1 \
        -f "$excludes" -t quick "$1") \
        >"$folder/fabtests" 2>&1 || true
    /usr/bin/python3 bindings/verbs/tests/read_fabtests.py "$folder/fabtests" "$1" \
        bindings/verbs/tests/fabtests-not-run.txt docs/verbs.md "$3" || {
        cat "$folder/fabtests"
        return 1
    }
}
