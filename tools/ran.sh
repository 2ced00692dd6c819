# For the other scripts here: telling what ran from what did not, and building nothing twice.

# built PACKAGE FILE: builds the package, and prints the path of FILE in target/debug. Within
# `make test` all is built already as the tests need it (TESTS), and that build is used.
built() {
    if [ -z "${TESTS:-}" ]; then
        cargo build -q -p "$1" >&2
    else
        $TESTS --no-run --quiet >&2
        # A program whose package has no folder of tests is not among what tests need.
        case "$2" in *.so) ;; *) ${TESTS/#cargo test/cargo build} --quiet --bin "$2" >&2 ;; esac
    fi
    printf '%s' "${CARGO_TARGET_DIR:-target}/debug/$2"
}

# ran_some WHAT COMMAND...: runs tests, and fails if they fail or if there was not a single one.
ran_some() {
    local what="$1" log
    shift
    log="$(mktemp)"
    printf '== %s: %s\n' "$what" "$*"
    if ! "$@" 2>&1 | tee "$log"; then
        rm -f "$log"
        return 1
    fi
    if ! grep -qE '^test result: ok\. [1-9]' "$log"; then
        rm -f "$log"
        printf 'error: %s: not a single test ran; add one, or take the package off the list\n' \
            "$what" >&2
        return 1
    fi
    rm -f "$log"
}

# quietly WHAT COMMAND...: prints what the command wrote only if it fails.
quietly() {
    local what="$1" log
    shift
    log="$(mktemp)"
    printf '== %s: %s\n' "$what" "$*"
    if ! "$@" >"$log" 2>&1; then
        cat "$log" >&2
        rm -f "$log"
        return 1
    fi
    rm -f "$log"
    printf '== %s: passed\n' "$what"
}

# not_run WHAT WHY: says so in a line that .ci/run repeats at its end, and leaves without failing.
not_run() {
    printf 'NOT RUN: %s: %s\n' "$1" "$2"
    exit 0
}
