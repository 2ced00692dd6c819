#!/usr/bin/env bash
# Usage: tools/report.sh [PAGE [FOLDER]]
# Opens the report in headless Chromium, or says NOT RUN where there is none. There must be no
# message on the console. What its script adds must work: pointing by keys, hiding curves, light and
# dark, searching rows. The page is PAGE, or written anew by `bellwire paper all`. Pictures of its
# top go to FOLDER: light, dark, and on a phone.
set -euo pipefail
. "$(dirname "$0")/ran.sh"
. "$(dirname "$0")/chromium.sh"
[ -n "$chromium" ] || not_run "report" "Chromium is not installed (Debian: chromium)"

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
page="${1:-$folder/report.html}"
[ $# -gt 0 ] || "$(built bellwire-cli bellwire)" paper all --html "$page"

cat >"$folder/script" <<'JS'
  const chart = document.querySelector('figure > svg.chart');
  chart.focus();
  key(chart, 'ArrowRight');
  const first = tip.textContent;
  check('keys walk to a point', !tip.hidden && first.length > 5);
  check('and say it aloud', document.getElementById('told').textContent === first);
  key(chart, 'ArrowRight');
  check('and on to the next', tip.textContent !== first);
  key(chart, 'ArrowDown');
  check('and to another curve', tip.textContent.split(' (')[0] !== first.split(' (')[0]);
  key(chart, 'Escape');
  check('and away', tip.hidden);
  const button = document.querySelector('.key');
  const series = chart.querySelector('.series');
  button.click();
  check('a curve is taken away', getComputedStyle(series).display === 'none');
  button.click();
  check('and put back', getComputedStyle(series).display !== 'none');
  const before = paper();
  document.getElementById('theme').click();
  check('the theme changes', paper() !== before);
  document.getElementById('theme').click();
  check('and back', paper() === before);
  const words = document.getElementById('words');
  words.value = 'doorbell';
  words.dispatchEvent(new Event('input'));
  const left = Array.from(document.querySelectorAll('.board tbody tr')).filter((row) => row.offsetParent !== null).length;
  check('rows are found', left > 0 && left < 100);
  location.hash = document.querySelector('.board tr.gone').id;
  setTimeout(() => {
    check('a link brings rows back', document.querySelectorAll('.board tr.gone').length === 0);
    const page = document.documentElement;
    check('nothing is wider than the screen', page.scrollWidth <= page.clientWidth);
    ended();
  }, 200);
JS
with_checks "$page" "$folder/script"
grep -q "a link brings rows back" "$folder/checked.html"

printf '== report: %s in %s\n' "$(basename "$page")" "$("$chromium" --version 2>/dev/null)"
all_hold report 12

# Canary: an error on the page must be seen, else the silence above says nothing.
sed 's|^.use strict.;$|console.error("planted");|' "$page" >"$folder/planted.html"
browse --virtual-time-budget=2000 --dump-dom "file://$folder/planted.html" >/dev/null
grep -q 'CONSOLE.*planted' "$folder/log" || {
    echo "error: report: a message planted on the console was not seen" >&2
    exit 1
}

if [ $# -gt 1 ]; then
    mkdir -p "$2"
    # The checks have chosen a theme, and the browser remembers.
    rm -rf "$folder/profile"
    address="file://$(realpath "$page")"
    browse --window-size=1280,2400 --screenshot="$2/light.png" --blink-settings=preferredColorScheme=1 "$address"
    browse --window-size=1280,2400 --screenshot="$2/dark.png" --blink-settings=preferredColorScheme=0 "$address"
    browse --window-size=500,2400 --screenshot="$2/phone.png" "$address"
    echo "wrote $2/light.png, dark.png, phone.png"
fi
