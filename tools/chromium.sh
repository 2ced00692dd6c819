# For scripts that open a page in headless Chromium. They set `folder`, and remove it at the end.

chromium="$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)"

# browse OPTION... ADDRESS: root may not use the sandbox; a page without requests needs none.
browse() {
    timeout 120 "$chromium" --headless=new --no-sandbox --disable-gpu --hide-scrollbars --enable-logging=stderr \
        --user-data-dir="$folder/profile" "$@" 2>"$folder/log"
}

# with_checks PAGE SCRIPT: the page with a script at its end, in $folder/checked.html. The script
# calls `check(name, holds)`, and `ended()` after the last one; `key(element, name)` presses a key.
with_checks() {
    cat >"$folder/checks" <<HTML
<script>//<![CDATA[
addEventListener('load', () => {
  const passed = [];
  const check = (name, holds) => { if (holds) passed.push(name); else console.error('check failed: ' + name); };
  const ended = () => { document.body.dataset.passed = passed.length; };
  const key = (chart, name) => chart.dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true }));
  const tip = document.getElementById('tip');
  const paper = () => getComputedStyle(document.body).backgroundColor;
$(cat "$2")
});
//]]></script>
HTML
    sed "/<\/body>/{
        r $folder/checks
        N
    }" "$1" >"$folder/checked.html"
    grep -q "const ended" "$folder/checked.html"
}

# all_hold WHAT COUNT: opens $folder/checked.html on a wide and on a narrow screen. Succeeds if all
# checks hold, so many of them, and the console has no message; else it says why.
all_hold() {
    local size passed
    for size in 1280,1200 500,900; do
        browse --window-size="$size" --virtual-time-budget=10000 --dump-dom "file://$folder/checked.html" >"$folder/dom"
        if grep -F 'CONSOLE' "$folder/log"; then
            printf 'error: %s: the browser complains (%s)\n' "$1" "$size" >&2
            return 1
        fi
        passed="$(sed -n 's/.*data-passed="\([0-9]*\)".*/\1/p' "$folder/dom" | head -n1)"
        [ "${passed:-0}" -eq "$2" ] || {
            printf 'error: %s: %s of %s checks passed (%s)\n' "$1" "${passed:-none}" "$2" "$size" >&2
            return 1
        }
        printf 'test result: ok. %s passed; 0 failed (%s, %s)\n' "$passed" "$1" "$size"
    done
}
