#!/usr/bin/env bash
# Usage: tools/dependencies.sh
# Compares dependencies.toml, the list of what was read of the crates of others, with what is
# linked. It complains of
#   - a crate that must be listed and is not, or is listed with another version: each direct
#     dependency of a package of ours, and everything that is linked into the library `bellwire`;
#   - an entry whose crate is linked no more;
#   - an entry that does not say who makes the crate, what we use it for, and what was read and
#     found, or why nothing was read.
# Dependencies of tests and of builds, and procedural macros of others, need no entry.
set -euo pipefail
shopt -s inherit_errexit

# tree ARGUMENT...: the crates of others that are linked, as lines `name version`.
tree() {
    cargo tree --locked --target x86_64-unknown-linux-gnu --prefix none --format '{p}' "$@" |
        awk '$3 !~ /^\(\// && NF { sub(/^v/, "", $2); print $1, $2 }' | sort -u
}

# compare LIST NEEDED LINKED: prints `file:line: what is wrong` for the list, without a line for an
# entry that is missing.
compare() {
    awk -v list="$1" '
        function fault(line, text) { print list (line ? ":" line : "") ": " text }
        # Ends an entry: its faults, and where the crate is listed.
        function ended(    line, key) {
            if (!entry) return
            line = entry
            entry = 0
            if (name == "" || version == "") {
                fault(line, "an entry needs `name` and `version`")
                return
            }
            key = name " " version
            if (key in at) fault(line, key " is listed twice")
            at[key] = line
            listed[++entries] = key
            if (!keys["by"] || !keys["use"] || !keys["unread"] && !(keys["read"] && keys["found"]))
                fault(line, key ": it needs `by`, `use`, and `read` and `found` or `unread`")
            if (keys["unread"] && keys["read"])
                fault(line, key ": it has both `read` and `unread`")
        }
        FILENAME == ARGV[1] { needed[++needs] = $1 " " $2; next }
        FILENAME == ARGV[2] { linked[$1 " " $2] = 1; versions[$1] = versions[$1] " " $2; next }
        # Text between lines of three quotes holds no keys.
        inside { if (/"""/) inside = 0; next }
        /^\[\[crate\]\]$/ { ended(); entry = FNR; name = version = ""; split("", keys); next }
        /^[a-z]+ = / {
            key = $1
            value = $0
            sub(/^[a-z]+ = /, "", value)
            if (value ~ /^"""/ && value !~ /^""".*"""$/) inside = 1
            gsub(/"/, "", value)
            if (key == "name") name = value
            if (key == "version") version = value
            keys[key] = 1
        }
        END {
            ended()
            for (i = 1; i <= needs; i++) {
                if (needed[i] in at) continue
                split(needed[i], part, " ")
                other = ""
                for (j = 1; j <= entries; j++) {
                    split(listed[j], old, " ")
                    if (old[1] == part[1] && !(listed[j] in linked) && !(listed[j] in told)) {
                        other = listed[j]
                        break
                    }
                }
                if (other == "") {
                    fault(0, needed[i] " is linked and not listed: read it, and enter what was " \
                        "read and found, or why not")
                    continue
                }
                told[other] = 1
                split(other, old, " ")
                fault(at[other], part[1] " is linked as " part[2] ", and " old[2] " was read: " \
                    "read what changed, and enter it")
            }
            for (i = 1; i <= entries; i++) {
                if (listed[i] in linked || listed[i] in told) continue
                split(listed[i], old, " ")
                text = listed[i] " is not linked any more"
                if (old[1] in versions) text = text ", but" versions[old[1]] " is"
                fault(at[listed[i]], text ": delete the entry, or read what changed and enter it")
            }
        }' "$2" "$3" "$1"
}

cd "$(dirname "$0")/.."
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
{
    tree --workspace --depth 1 --edges normal
    tree --package bellwire --edges normal,no-proc-macro
} | sort -u >"$folder/needed"
tree --workspace --edges normal >"$folder/linked"

found="$(compare dependencies.toml "$folder/needed" "$folder/linked")"
if [ -n "$found" ]; then
    printf '%s\n' "$found"
    echo "error: dependencies.toml: $(wc -l <<<"$found") faults" >&2
    exit 1
fi

# In a copy one entry is missing, one has another version, one says nothing, and one is of a crate
# that nobody uses: it must complain of these, and of nothing else.
read -r missing other silent < <(
    awk '{ versions[$1]++ } END { for (name in versions) if (versions[name] == 1) print name }' \
        "$folder/needed" | sort | head -n 3 | paste -sd ' '
)
awk -v missing="$missing" -v other="$other" -v silent="$silent" '
    # Printed together with the name.
    /^\[\[crate\]\]$/ { head = $0; next }
    head != "" && /^name = / {
        name = $3
        gsub(/"/, "", name)
        if (name != missing) print head
        head = ""
    }
    name == missing { next }
    name == other && /^version = / { $0 = "version = \"0.0.1\"" }
    name == silent && /^(read|unread) = / { sub(/^[a-z]+/, "nothing") }
    { print }
    END {
        print "[[crate]]\nname = \"unused\"\nversion = \"1.0.0\"\nby = \"nobody\"\nuse = \"none\""
        print "unread = \"nobody links it\""
    }' dependencies.toml >"$folder/dependencies.toml"
expected="$(printf '%s\n' "$missing" "$other" "$silent" unused | sort)"
found="$(compare "$folder/dependencies.toml" "$folder/needed" "$folder/linked" |
    awk '{ print $2 }' | sort)"
if ! diff <(printf '%s\n' "$expected") <(printf '%s\n' "$found") >&2; then
    echo 'error: tools/dependencies.sh: planted faults (<) and what was found (>) differ' >&2
    exit 1
fi
count="$(grep -c '^name = ' dependencies.toml)"
echo "== dependencies: $count entries fit what is linked, and all 4 planted faults are found"
