#!/bin/sh
# The checks that need a card, as tests of the suite: one name each, reported as skipped (77) where
# the machine has no card, and never passed in silence.
#
#   if_there.sh NAME     one of: discovery catalogue calibration
#
# All three come out of one run of check.sh, whose answer is kept in the build folder.
set -eu
here="$(cd "$(dirname "$0")" && pwd)"
name="$1"
kept="${2:-.}/device_check.json"
case "$name" in
  discovery | catalogue | calibration) ;;
  *)
    echo "FAILED: there is no device check '$name'" >&2
    exit 1
    ;;
esac
found=no
for node in /dev/nvidia0 /dev/kfd; do [ -e "$node" ] && found="$node"; done
if [ "$found" = no ]; then
  echo "SKIPPED: device.$name: this machine has no card (neither /dev/nvidia0 nor /dev/kfd)"
  exit 77
fi
if [ "$name" = discovery ] || [ ! -s "$kept" ]; then "$here/check.sh" "$kept" >/dev/null || true; fi
[ -s "$kept" ] || {
  echo "FAILED: check.sh gave no answer" >&2
  exit 1
}
case "$name" in
  discovery) wanted='(.devices | length) > 0' ;;
  catalogue) wanted='(.devices | length) > 0 and all(.devices[]; .worth_by_catalogue.refused == null)' ;;
  calibration) wanted='(.devices | length) > 0 and all(.devices[]; .calibration.failed? == null)' ;;
esac
jq -e "$wanted" "$kept" >/dev/null || {
  echo "FAILED: device.$name on $found: see $kept" >&2
  exit 1
}
