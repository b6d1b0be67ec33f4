#!/usr/bin/env bash
# loam-keeper killed with SIGKILL while leases run: another serves within moments and adopts the pages,
# with nothing submitted, and also while no daemon runs.
set -euo pipefail
# shellcheck source=tests/e2e/daemon.sh
. "$(dirname "${BASH_SOURCE[0]}")/daemon.sh"
set_up "$@"
start_daemon
set_prices
make_tenant acme

keeper() { cat "$data/keeper/keeper.lock"; }
# serves OTHER: a keeper that is not process OTHER.
serves_not() { local pid; pid="$(keeper)"; [[ -n $pid && $pid != "$1" ]] && kill -0 "$pid" 2>/dev/null; }
parent_of() { awk '/^PPid:/ { print $2 }' "/proc/$1/status"; }

task="$(submit_gated 'true')"
wait_begun "$task"

say "the one that serves is killed: the process beside it starts another"
first="$(keeper)"
kill -KILL "$first"
wait_until "another keeper serves" serves_not "$first"
grep -q "process $first was ended by signal 9; another takes over" "$data/keeper/keeper.log" ||
  die "the keeper's log does not say so"

say "both are killed: the daemon starts another, and says so"
second="$(keeper)"
kill -KILL "$(parent_of "$second")" "$second"
wait_until "another keeper serves" serves_not "$second"
wait_until "the daemon says so" grep -q "loam-keeper had died; process" "$root/loamd.log"

say "without a daemon too"
kill_daemon
third="$(keeper)"
kill -KILL "$third"
wait_until "another keeper serves" serves_not "$third"
start_daemon
equal "state" "$(fact "$task" state)" running
open_gate
finished "$task" succeeded
check_books acme

say "told to end, it does, and its watcher with it"
last="$(keeper)" watcher="$(parent_of "$(keeper)")"
stop_daemon
kill -TERM "$last" 2>/dev/null || true # one without leases ends with its daemon
gone() { ! kill -0 "$last" 2>/dev/null && ! kill -0 "$watcher" 2>/dev/null; }
wait_until "both have ended" gone
