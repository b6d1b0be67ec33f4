#!/usr/bin/env bash
# Measures the device once and keeps the result for the other scripts; at once where it is kept already.
# calibrate.sh BIN CALIBRATIONS
set -euo pipefail
# shellcheck source=tests/e2e/daemon.sh
. "$(dirname "${BASH_SOURCE[0]}")/daemon.sh"

if compgen -G "$2/*.json" >/dev/null; then
  say "measured before: $(ls "$2")"
  exit 0
fi
set_up "$1"
start_daemon
say "a device that nobody measured says so and what to run"
ask device list >"$root/devices"
equal "number of devices" "$(jq '.devices | length > 0' "$root/devices")" true
jq -e '.devices | all(.state == "ready" or (.note | test("loam device calibrate")))' "$root/devices" >/dev/null ||
  die "a device is refused without the command to run: $(cat "$root/devices")"
say "measuring it makes it ready"
loam device calibrate --all
equal "devices not ready" "$(ask device list | jq '[.devices[] | select(.state != "ready")] | length')" 0
mkdir -p "$2.new"
cp "$data"/calibrations/*.json "$2.new/"
mkdir -p "$2"
mv "$2.new"/*.json "$2/"
rmdir "$2.new"
