#!/usr/bin/env bash
# A device that its driver does not show any more is lost: what ran on it is stopped and billed to when the device was last seen;
# once it is back it is sold again. And a device that another loamd of this machine sells is not sold twice.
set -euo pipefail
# shellcheck source=tests/e2e/daemon.sh
. "$(dirname "${BASH_SOURCE[0]}")/daemon.sh"
set_up "$@"
# The OpenCL loader of this daemon looks for drivers here and nowhere else.
export OCL_ICD_VENDORS="$root/vendors"
mkdir "$root/vendors"
cp /etc/OpenCL/vendors/*.icd "$root/vendors/" 2>/dev/null || { echo "skipped: no OpenCL driver is installed"; exit 77; }
start_daemon
set_prices
make_tenant acme
state_of_device() { ask device list | jq -r '.devices[0].state'; }
is() { [[ $(state_of_device) == "$1" ]]; }
equal "state of the device" "$(state_of_device)" ready

say "a device that is gone is lost, and so is what ran on it"
task="$(submit_gated true --restarts 3)"
wait_begun "$task"
mkdir "$root/away"
mv "$root/vendors/"* "$root/away/"
wait_until "the device is lost" is lost
wait_state "$task" waiting
loam device list >"$root/err" 2>&1
expect_words "its driver does not show it any more"
none_left() { [[ -z $(outliving loam-launch) ]]; }
wait_until "nothing of it runs" none_left

say "once it is back, the task runs on"
mv "$root/away/"* "$root/vendors/"
wait_until "the device is back" is ready
wait_state "$task" running
open_gate
finished "$task" succeeded

say "another loamd of this machine is told who sells the device"
first="$daemon"
other="$root/other"
mkdir -p "$other"
cp -r "$data/calibrations" "$other/"
"$bin/loamd" --config "$root/loamd.toml" --data "$other" --socket "$root/other.sock" </dev/null 2>"$root/other.log" &
second=$!
answers() { LOAM_HOST="$root/other.sock" loam health >/dev/null 2>&1; }
wait_until "the second answers" answers
LOAM_HOST="$root/other.sock" loam device list >"$root/err" 2>&1
expect_words refused "another loamd of this machine sells it: the one with the data folder $data (process $first)"
say "and sells it once the first is gone"
stop_daemon
LOAM_HOST="$root/other.sock" loam device discover >/dev/null
equal "state of the device" "$(LOAM_HOST="$root/other.sock" loam --json device list | jq -r '.devices[0].state')" ready
kill "$second"
wait "$second"
