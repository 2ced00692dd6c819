#!/usr/bin/env bash
# Usage: tools/manual.sh
# Has groff, zsh and fish read the manual pages and completions that the command writes of itself.
# What is not installed says NOT RUN.
set -euo pipefail
. "$(dirname "$0")/ran.sh"

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
"$(built bellwire-cli bellwire)" write-manual "$folder"
export HOME="$folder"
passed=0

# sound PAGE: groff has no complaint, lines that it cannot fill well excepted.
sound() { [ -z "$(groff -man -z -ww -Wbreak -Kutf8 -Tutf8 "$1" 2>&1 | tee -a "$folder/said")" ]; }
# knows PAGES-OF-ZSH: zsh parses the completion, and has it for the command.
knows() {
    zsh -fn "$1/_bellwire" 2>>"$folder/said" && zsh -fc "fpath=('$1' \$fpath); autoload -U compinit
        compinit -u -D; [[ \${_comps[bellwire]-} = _bellwire ]]" 2>>"$folder/said"
}
# offers SCRIPT WORDS EXPECTED: what fish completes the words to.
offers() {
    [ "$(fish --no-config -c "source '$1' && complete -C '$2'" 2>>"$folder/said" | cut -f1)" = "$3" ]
}
# check WHAT COMMAND...; with `!` the command must fail, as something is planted.
check() {
    local what="$1" wanted=0 status=0
    shift
    [ "$1" != ! ] || { wanted=1 && shift; }
    : >"$folder/said"
    "$@" || status=$?
    if [ "$status" != "$wanted" ]; then
        printf 'error: manual: %s\n' "$what" >&2
        cat "$folder/said" >&2
        exit 1
    fi
    passed=$((passed + 1))
}
# has COMMAND PACKAGE
has() { command -v "$1" >/dev/null || { printf 'NOT RUN: manual: %s is not installed (Debian: %s)\n' "$1" "$2"; return 1; }; }

printf '== manual: pages and completions\n'
if has groff groff-base; then
    for page in "$folder"/man1/*.1; do check "$(basename "$page")" sound "$page"; done
    printf '.TH a 1\n.SH NAME\n.nosuchrequest\n' >"$folder/planted.1"
    check "a wrong page is noticed" ! sound "$folder/planted.1"
fi
if has zsh zsh; then
    check "zsh knows the completion" knows "$folder/zsh"
    mkdir "$folder/planted"
    { cat "$folder/zsh/_bellwire"; echo 'if then ('; } >"$folder/planted/_bellwire"
    check "a wrong completion is noticed" ! knows "$folder/planted"
fi
if has fish fish; then
    script="$folder/fish/bellwire.fish"
    check "fish completes a command" offers "$script" "bellwire mod" model
    check "fish completes a second word" offers "$script" "bellwire model expl" explain
    check "fish offers nothing hidden" offers "$script" "bellwire write" ""
    check "what it does not offer is noticed" ! offers "$script" "bellwire mod" nodel
fi
printf 'test result: ok. %s passed; 0 failed\n' "$passed"
