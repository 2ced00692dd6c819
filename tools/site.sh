#!/usr/bin/env bash
# Usage: tools/site.sh [PICTURE]
# Builds the documentation site in target/site/html, without a warning: the pages of the project,
# its command, and the references of Rust and Python. All links are checked. Headless Chromium opens
# the site, and searches it; PICTURE takes a screenshot. What is not installed says NOT RUN.
set -euo pipefail
. "$(dirname "$0")/ran.sh"

target="$(realpath -m "${CARGO_TARGET_DIR:-target}")"
tools="$target/site-tools/bin"
site="$target/site"
export SITE_PAGES="$site/pages" SITE_HTML="$site/html" NO_MKDOCS_2_WARNING=1 DISABLE_MKDOCS_2_WARNING=true
[ -x "$tools/mkdocs" ] && [ -x "$tools/pdoc" ] ||
    not_run "site" "pip could not install mkdocs-material and pdoc (needs python3-venv and a package index)"
passed=0
# check WHAT COMMAND...; with `!` the command must fail, as something is planted.
check() {
    local what="$1" wanted=0 status=0
    shift
    [ "$1" != ! ] || { wanted=1 && shift; }
    timeout -k 5 600 "$@" >"$site/log" 2>&1 || status=1
    if [ "$status" != "$wanted" ]; then
        printf 'error: site: %s (%s)\n' "$what" "$*" >&2
        tail -n 60 "$site/log" >&2
        exit 1
    fi
    passed=$((passed + 1))
}

printf '== site: pages\n'
rm -rf "$site"
mkdir -p "$SITE_PAGES/docs" "$SITE_PAGES/crates/verbs/examples"
for page in *.md docs/* hardware/*/README.md; do
    mkdir -p "$SITE_PAGES/$(dirname "$page")"
    cp "$page" "$SITE_PAGES/$page"
done
# What pages link to outside of them.
cp crates/verbs/examples/first.rs "$SITE_PAGES/crates/verbs/examples/"

bellwire="$(built bellwire-cli bellwire)"
"$bellwire" write-manual "$site/manual"
{
    printf '# The command\n\nWhat `--help` says, of each command. The same is in the manual pages.\n'
    for page in bellwire $(cd "$site/manual/man1" && ls bellwire-*.1); do
        words="${page%.1}"
        # A name of a model has hyphens of its own: clap knows where a word ends.
        title="$(sed -n '/^\.SH SYNOPSIS/{n;s/^\\fB\([^\\]*\)\(\(\\-[^\\]*\)*\)\\fR.*/\1\2/;s/\\-/-/g;p;q}' "$site/manual/man1/$words.1")"
        printf '\n## %s\n\n```text\n' "$title"
        # shellcheck disable=SC2086
        "$bellwire" ${title#bellwire} --help || [ "$title" = bellwire ]
        printf '```\n'
    done
} >"$SITE_PAGES/command.md"
cat >"$SITE_PAGES/reference.md" <<'MD'
# References

| for | read |
|---|---|
| Rust: the crate `bellwire` | <a href="rust/bellwire/index.html">its documentation</a>, and that of <a href="rust/index.html">all crates</a> |
| Python: the package `bellwire` | <a href="python/bellwire.html">its documentation</a> |
| the command | [what `--help` says](command.md), or `man bellwire` |
| C: the Virtual Interface Provider Library | [docs/vipl.md](docs/vipl.md), `man vipl`, and the header `vipl.h` |
| C: libibverbs, librdmacm, rsockets, libfabric | their own manual pages; [docs/verbs.md](docs/verbs.md) and [docs/mpi.md](docs/mpi.md) say what is offered |
MD
check "mkdocs builds without a warning" "$tools/mkdocs" build --strict
! grep -iE 'warning|error' "$site/log" || { echo 'error: site: mkdocs complains' >&2; exit 1; }

printf '== site: references\n'
RUSTDOCFLAGS="-D warnings" cargo doc -q --no-deps --workspace --exclude bellwire-cli
cp -r "$target/doc" "$SITE_HTML/rust"
# Browsers ask for it on the pages of the references.
cp "$SITE_HTML/assets/images/favicon.png" "$SITE_HTML/favicon.ico"
# rustdoc writes no page for all crates together.
{
    printf '<!doctype html><title>Crates of Bellwire</title><h1>Crates of Bellwire</h1><ul>\n'
    for crate in "$SITE_HTML"/rust/*/index.html; do
        name="$(basename "$(dirname "$crate")")"
        case "$name" in src | static.files | search.desc | trait.impl | type.impl) continue ;; esac
        printf '<li><a href="%s/index.html">%s</a>\n' "$name" "$name"
    done
    printf '</ul>\n'
} >"$SITE_HTML/rust/index.html"
if [ -n "${TESTS:-}" ]; then ${TESTS/cargo test/cargo build} --quiet >&2; else cargo build -q -p bellwire-python >&2; fi
mkdir "$site/package"
cp -r bindings/python/python/bellwire "$site/package/"
cp "$target/debug/lib_bellwire.so" "$site/package/bellwire/_bellwire.abi3.so"
check "pdoc reads the package" env PYTHONPATH="$site/package" "$tools/pdoc" --no-show-source -o "$SITE_HTML/python" bellwire
! grep -iE 'warn|error' "$site/log" || { echo 'error: site: pdoc complains' >&2; exit 1; }

printf '== site: links\n'
check "all links lead somewhere" tools/links.py "$SITE_HTML" rust python
cat "$site/log"
printf '[a](docs/nosuch.md) [b](docs/network.md#nosuch)\n' >>"$SITE_PAGES/reference.md"
check "mkdocs notices planted links" ! env SITE_HTML="$site/planted" "$tools/mkdocs" build --strict
[ "$(grep -c nosuch "$site/log")" = 2 ] || { echo 'error: site: a planted link was not named' >&2; exit 1; }
sed -i '$d' "$SITE_PAGES/reference.md"
mkdir "$site/broken"
printf '<p id="here"><a href="#here">a</a><a href="#gone">b</a><a href="gone.html">c</a>\n' >"$site/broken/index.html"
check "planted links are noticed" ! tools/links.py "$site/broken"
[ "$(grep -c gone "$site/log")" = 2 ] || { echo 'error: site: a planted link was not named' >&2; exit 1; }

if [ -x /usr/bin/chromium ] && [ -x /usr/bin/chromedriver ]; then
    printf '== site: in %s\n' "$(/usr/bin/chromium --version 2>/dev/null)"
    check "headless Chromium opens and searches it" "$tools/python" tools/browse.py "$SITE_HTML" "$@"
    cat "$site/log"
else
    echo "NOT RUN: site: in a browser: Chromium or its driver is not installed (Debian: chromium chromium-driver)"
fi
printf 'test result: ok. %s passed; 0 failed (%s)\n' "$passed" "$SITE_HTML"
