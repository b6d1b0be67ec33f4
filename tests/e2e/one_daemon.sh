#!/usr/bin/env bash
# One loamd for one data folder and one socket; the second is told who holds it.
set -euo pipefail
# shellcheck source=tests/e2e/daemon.sh
. "$(dirname "${BASH_SOURCE[0]}")/daemon.sh"
set_up "$@"

say "without a daemon the client says so, and how to start one"
expect_refusal 5 "no loamd answers at $socket" loam ps

start_daemon
say "a second loamd on the same data is refused and names the holder"
expect_exit 1 "$bin/loamd" --config "$root/loamd.toml" --data "$data" --socket "$root/other.sock"
expect_words "$data" "in use by process $daemon" "next: "
say "so is one on the same socket"
expect_exit 1 "$bin/loamd" --config "$root/loamd.toml" --data "$root/other" --socket "$socket"
expect_words "$socket" "next: "
say "the first serves on"
equal "loamd's health" "$(ask health | jq -r .status)" ok
say "a folder whose holder was killed is free again"
kill_daemon
start_daemon
say "a keeper without leases ends with its daemon"
no_keeper() { [[ -z $(outliving loam-keeper) ]]; }
no_keeper && die "no keeper serves"
stop_daemon
wait_until "its keeper has left" no_keeper

say "the keeper leaves with the folder it serves"
kept="$root/kept"
mkdir -p "$kept"
"$bin/loam-keeper" --root "$kept" 2>"$root/keeper.log" &
keeper=$!
wait_until "the keeper serves" test -d "$kept/pages"
rm -rf "$kept"
left() { ! kill -0 "$keeper" 2>/dev/null; }
wait_until "it has left" left
