#!/usr/bin/env bash
# Usage: tools/units.sh
# Has systemd read the units that are installed with the command, and a wrong one that it must
# notice. Without systemd-analyze it says NOT RUN.
set -euo pipefail
. "$(dirname "$0")/ran.sh"

command -v systemd-analyze >/dev/null ||
    not_run "units" "systemd-analyze is not installed (Debian: systemd)"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/bin"
ln -s "$(realpath "$(built bellwire-cli bellwire)")" "$folder/bin/bellwire"
sed -e "s|@PREFIX@|$folder|g" tools/systemd/bellwire-agent.service.in >"$folder/bellwire-agent.service"
cp tools/systemd/bellwire-agent.socket "$folder/"

# read_by_systemd: prints what it complains of. Its status is good also if it does not know a key.
read_by_systemd() {
    systemd-analyze verify --man=no "$folder"/bellwire-agent.{service,socket} 2>&1 || echo "it failed"
}
printf '== units: systemd-analyze verify\n'
said="$(read_by_systemd)"
[ -z "$said" ] || { printf 'error: units: %s\n' "$said" >&2 && exit 1; }
sed -i 's/^ProtectSystem=/ProtectSytem=/' "$folder/bellwire-agent.service"
said="$(read_by_systemd)"
case "$said" in
    *ProtectSytem*) ;;
    *) printf 'error: units: a wrong key is not noticed: %s\n' "$said" >&2 && exit 1 ;;
esac
rm "$folder/bin/bellwire"
said="$(read_by_systemd)"
case "$said" in
    *bin/bellwire*) ;;
    *) printf 'error: units: a missing command is not noticed: %s\n' "$said" >&2 && exit 1 ;;
esac
printf 'test result: ok. 3 passed; 0 failed\n'
