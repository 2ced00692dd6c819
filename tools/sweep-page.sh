#!/usr/bin/env bash
# Usage: tools/sweep-page.sh [COMMAND]
# Runs a small sweep, and opens its page in headless Chromium, or says NOT RUN where there is none.
# There must be no message on the console. Every point is drawn inside of its chart, the front is
# what no point beats, and keys, buttons and links work. COMMAND is a built `bellwire`.
set -euo pipefail
. "$(dirname "$0")/ran.sh"
. "$(dirname "$0")/chromium.sh"
[ -n "$chromium" ] || not_run "sweep page" "Chromium is not installed (Debian: chromium)"

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
cat >"$folder/sweep.toml" <<'TOML'
model = "hpcl"
load = "round-trip"
minimise = ["nic.interrupt_gap", "round_trip_us"]

[set]
"load.over" = "tcp"

[grid]
"load.bytes" = { from = "64 B", to = "1000 B", steps = 5 }
"nic.interrupt_gap" = ["0 us", "31.25 us", "125 us"]
TOML
"${1:-$(built bellwire-cli bellwire)}" model sweep "$folder/sweep.toml" --html "$folder/sweep.html" >"$folder/told"

cat >"$folder/script" <<'JS'
  const charts = Array.from(document.querySelectorAll('figure > svg.chart'));
  check('a chart for each axis, and the front', charts.length === 3);
  const points = (within) => Array.from(within.querySelectorAll('.point > circle.full'));
  check('each chart has all points', charts.every((chart) => points(chart.querySelector('.series')).length === 15));
  const inside = (chart) => {
    const box = chart.getBoundingClientRect();
    return points(chart).map((point) => point.getBoundingClientRect()).every((at) =>
      at.left >= box.left && at.right <= box.right && at.top >= box.top && at.bottom <= box.bottom);
  };
  check('no point is outside of its chart', charts.every(inside));
  const front = document.querySelector('#front figure > svg.chart');
  const place = (point) => [point.cx.baseVal.value, point.cy.baseVal.value];
  const drawn = points(front.querySelector('[data-series="0"]')).map(place);
  const best = points(front.querySelector('[data-series="1"]')).map(place);
  const beats = (one, other) => one[0] <= other[0] && one[1] >= other[1] && (one[0] < other[0] || one[1] > other[1]);
  check('there is a front', best.length > 0);
  check('no point beats the front', best.every((other) => !drawn.some((one) => beats(one, other))));
  const listed = document.querySelectorAll('#front > .scroll tbody tr');
  check('the front is listed', listed.length === best.length);
  charts[0].focus();
  key(charts[0], 'ArrowRight');
  check('keys walk to a point', !tip.hidden && tip.textContent.includes('round_trip_us'));
  key(charts[0], 'Escape');
  check('and away', tip.hidden);
  const series = front.querySelector('[data-series="1"]');
  const button = document.querySelector('#front .key[data-series="1"]');
  button.click();
  check('the front is taken away', getComputedStyle(series).display === 'none');
  button.click();
  check('and put back', getComputedStyle(series).display !== 'none');
  const numbers = document.querySelector('#points details');
  numbers.open = true;
  check('numbers can be read', numbers.querySelector('tbody tr').getBoundingClientRect().height > 0);
  const bars = Array.from(document.querySelectorAll('#effects rect.full'));
  const width = (bar) => bar.width.baseVal.value;
  check('a bar for each axis', bars.length === 2 && bars.every((bar) => width(bar) >= 0 && width(bar) <= 100));
  check('the sweep has its lines', document.querySelector('#file code').textContent.trim().split('\n').length === 10);
  const links = Array.from(document.querySelectorAll('nav a'));
  check('links lead somewhere', links.length === 4 && links.every((link) => document.querySelector(link.getAttribute('href'))));
  const before = paper();
  document.getElementById('theme').click();
  check('the theme changes', paper() !== before);
  document.getElementById('theme').click();
  const page = document.documentElement;
  check('nothing is wider than the screen', page.scrollWidth <= page.clientWidth);
  ended();
JS
printf '== sweep page: in %s\n' "$("$chromium" --version 2>/dev/null)"
with_checks "$folder/sweep.html" "$folder/script"
all_hold "sweep page" 16

# Canaries: a point off its chart, one that beats the front, and a sweep in one line are noticed.
planted() {
    sed "$2" "$folder/sweep.html" >"$folder/planted.html"
    with_checks "$folder/planted.html" "$folder/script"
    if all_hold "planted" 16 >"$folder/said" 2>&1 || ! grep -qF "check failed: $1" "$folder/said"; then
        cat "$folder/said" >&2
        printf 'error: sweep page: a planted fault was not noticed: %s\n' "$1" >&2
        exit 1
    fi
}
planted 'no point is outside of its chart' '0,/circle class="full" cx="[0-9.]*"/s//circle class="full" cx="900"/'
planted 'no point beats the front' '/id="front"/,$s/\(data-series="0">\)/\1<g class="point"><title>p<\/title><circle class="full" cx="30" cy="279" r="0.1"\/><\/g>/'
planted 'the sweep has its lines' '/<pre class="scroll">/,/<\/pre>/{:more;N;/<\/pre>/!bmore;s/\n/ /g}'
