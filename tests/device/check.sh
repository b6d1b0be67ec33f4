#!/bin/sh
# The device check for a machine with a real GPU: builds one program, runs it, and prints one JSON
# object with every card, its driver, what it is worth and what was measured. Takes about a minute
# after the build. Run it from anywhere; it needs the build's packages and the vendor's driver.
#
#   tests/device/check.sh [FILE]     also writes the JSON to FILE
#
# Exit status: 0 all cards found, priced and measured; 1 something failed; 2 no card here.
set -eu
cd "$(dirname "$0")/../.."
cmake --preset release >/dev/null
cmake --build --preset release --target loam-device-check >/dev/null
status=0
answer=$(build/release/tests/loam-device-check share/catalog.toml) || status=$?
printf '%s\n' "$answer"
if [ "$#" -gt 0 ]; then printf '%s\n' "$answer" >"$1"; fi
exit "$status"
