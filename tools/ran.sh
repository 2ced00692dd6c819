# For the other scripts here: telling what ran from what did not.

# ran_each COUNT WHAT COMMAND...: runs tests in COUNT programs at least, and fails if they fail or if fewer of them had any.
ran_each() {
    local wanted="$1" what="$2" log
    shift 2
    log="$(mktemp)"
    printf '== %s: %s\n' "$what" "$*"
    if ! "$@" 2>&1 | tee "$log"; then
        rm -f "$log"
        return 1
    fi
    if [ "$(grep -cE '^test result: ok\. [1-9]' "$log")" -lt "$wanted" ]; then
        rm -f "$log"
        printf 'error: %s: not a single test ran; add one, or take the package off the list\n' \
            "$what" >&2
        return 1
    fi
    rm -f "$log"
}

# ran_some WHAT COMMAND...: the same for one program.
ran_some() {
    ran_each 1 "$@"
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
