#!/usr/bin/env bash
# Usage: tools/text.sh [--comments | --canary]
# Refuses text that a reader stumbles over, with file and line:
#   - merge-conflict markers in any tracked file,
#   - prose of documents (*.md) that is wider than 100 columns,
#   - with --comments instead: comments that are wider than 100 columns.
# Tables, code blocks, pages that a program writes, and lines of one word (a link, the name of a
# test) may be wider. --canary plants each fault in a folder. It checks that each is found, and
# nothing else.
set -euo pipefail
shopt -s inherit_errexit

generated='^docs/(feature-rows|performance|performance-model|performance-rxe)[.]md$'
with_comments='[.](rs|c|h|sv|svh|sh|lua|py)$|^Makefile$|^[.]ci/run$'

# Each check takes names of files, relative to this folder, and prints `file:line: what is wrong`.

markers() {
    # grep ends with 1 if it finds nothing.
    { grep -nIE '^(<{7} |={7}$|>{7} |[|]{7} )' /dev/null "$@" || [ $? = 1 ]; } |
        awk -F: '{ print $1 ":" $2 ": a merge left its marker" }'
}

# Columns, of any awk: bytes that continue a character of UTF-8 are not counted.
columns='function columns(text) { gsub(/[\200-\277]/, "", text); return length(text) }'

documents() {
    LC_ALL=C awk "$columns"'
        FNR == 1 { code = 0 }
        /^ *```/ { code = !code; next }
        code || /^ *\|/ || columns($0) <= 100 { next }
        {
            text = $0
            gsub(/\[[^]]*\]\([^)]*\)/, "link", text)
            sub(/^ *([-*>] +)?/, "", text)
            if (text ~ / /) print FILENAME ":" FNR ": wider than 100 columns"
        }' /dev/null "$@"
}

# A line is a comment if it begins as one, or has one behind its code. Lines of rows that a test
# shows are read by a program, and drawings (between ``` in a comment) are as wide as they must be.
comments() {
    LC_ALL=C awk "$columns"'
        FNR == 1 { block = drawing = 0; slashes = FILENAME ~ /\.(rs|c|h|svh?)$/ }
        {
            if (slashes) {
                if ($0 ~ /^ *\/\*/) block = 1
                comment = block || $0 ~ /^ *\/\// || $0 ~ /[;{}(),] +\/\/ [^"]*$/
                if ($0 ~ /\*\//) block = 0
            } else {
                comment = FILENAME ~ /\.lua$/ ? $0 ~ /^ *--/ : $0 ~ /^[ \t]*#/
            }
        }
        slashes && /^ *\/\/[\/!]? *```/ { drawing = !drawing }
        slashes && !comment { drawing = 0 }
        !comment || drawing || columns($0) <= 100 || /\/\/ shows: / { next }
        {
            text = $0
            sub(/^[ \t]*(\/\/[\/!]?|\/\*+!?|\*|#+!?|--) */, "", text)
            if (text ~ / /) print FILENAME ":" FNR ": a comment wider than 100 columns"
        }' /dev/null "$@"
}

# chosen PATTERN FILE...: those of the files whose names the pattern finds.
chosen() {
    local pattern="$1"
    shift
    printf '%s\n' "$@" | awk -v pattern="$pattern" '$0 ~ pattern'
}

# check markers|documents|comments FILE...
check() {
    local what="$1" files
    shift
    case "$what" in
        markers) mapfile -t files < <(printf '%s\n' "$@") ;;
        documents) mapfile -t files < <(chosen '[.]md$' "$@" | { grep -vE "$generated" || [ $? = 1 ]; }) ;;
        comments) mapfile -t files < <(chosen "$with_comments" "$@") ;;
    esac
    "$what" "${files[@]}"
}

canary() {
    local folder wide words hundred found expected
    folder="$(mktemp -d)"
    # shellcheck disable=SC2064
    trap "rm -rf '$folder'" EXIT
    cd "$folder"
    words="$(printf 'word %.0s' {1..30})"
    wide="$(printf 'x%.0s' {1..150})"
    mkdir docs
    hundred="$(printf 'µ%.0s' {1..95})"

    # Each planted fault stands in a line of its own.
    printf 'a\n%s HEAD\nb\n%s\nc\n%s 1234567 (Do it)\n' '<<<<<<<' '=======' '>>>>>>>' >marked.toml
    printf 'short\n%s\n- %s\n' "$words" "$words" >wide.md
    printf '```text\nx\n```\n%s\n' "$words" >docs/behind_code.md
    printf 'fn f() {}\n/// %s\nf(); // %s\n' "$words" "$words" >wide.rs
    printf '//! ```text\n//! x\n//! ```\n//! %s\n' "$words" >behind_drawing.rs
    printf '/*\n * %s\n */\n' "$words" | tee wide.c >wide.h
    printf '#!/bin/sh\n# %s\n' "$words" >wide.sh
    printf -- '-- %s\n' "$words" >wide.lua
    printf 'all:\n# %s\n' "$words" >Makefile

    # And what may stand.
    printf '%s\n' '<<<<<<<' '<<<<<< HEAD' '========' ' =======' >good.txt
    printf '%s\n' "| $words |" '```text' "$words" '```' "https://$wide" \
        "- [some words]($wide)" "  \`$wide\`," "abcd $hundred" >good.md
    printf '%s\n' "$words" >docs/performance.md
    printf '%s\n' "let a = \"; // $words\";" "// shows: $words" '/// ```text' "/// $words" '/// ```' \
        "// https://$wide" "//  $hundred " "f($wide);" >good.rs
    printf 'echo %s\n' "$words" >good.sh

    expected="$(printf '%s\n' Makefile:2 behind_drawing.rs:4 docs/behind_code.md:4 marked.toml:2 \
        marked.toml:4 marked.toml:6 wide.c:2 wide.h:2 wide.lua:1 wide.md:2 wide.md:3 wide.rs:2 wide.rs:3 \
        wide.sh:2 | LC_ALL=C sort)"
    mapfile -t files < <(find . -type f | sed 's|^\./||')
    found="$(for what in markers documents comments; do check "$what" "${files[@]}"; done |
        cut -d: -f1,2 | LC_ALL=C sort)"
    if ! diff <(printf '%s\n' "$expected") <(printf '%s\n' "$found"); then
        echo 'error: tools/text.sh: planted faults (<) and what was found (>) differ' >&2
        exit 1
    fi
    echo "tools/text.sh: all $(wc -l <<<"$expected") planted faults found, and nothing else"
}

checks=(markers documents)
case "${1:-}" in
    '') ;;
    --comments) checks=(comments) ;;
    --canary) canary && exit ;;
    *) echo "tools/text.sh does not know \`$1\`" >&2 && exit 2 ;;
esac

cd "$(dirname "$0")/.."
# Files that are deleted and not yet committed are listed, too.
mapfile -t files < <(git ls-files | while IFS= read -r file; do [ -f "$file" ] && printf '%s\n' "$file"; done)
if [ "${#files[@]}" -lt 100 ]; then
    echo 'NOT RUN: tools/text.sh: git lists no files; this is no checkout'
    exit 0
fi
found="$(for what in "${checks[@]}"; do check "$what" "${files[@]}"; done)"
if [ -n "$found" ]; then
    printf '%s\n' "$found"
    echo "error: $(wc -l <<<"$found") lines; wrap them at 100 columns, or end the merge (CONTRIBUTING.md, Prose)" >&2
    exit 1
fi
