#!/usr/bin/env bash
# loamd killed with SIGKILL at any moment: no task is lost, none runs twice, each is billed what it ran.
set -euo pipefail
# shellcheck source=tests/e2e/daemon.sh
. "$(dirname "${BASH_SOURCE[0]}")/daemon.sh"
set_up "$@"
start_daemon
set_prices
make_tenant acme

# Each task leaves a mark in a folder that it may write, so that a second run would show.
mkdir "$gate/marks"
marking() { submit --mount "$(gate_mount):rw" -- sh -c "$(gated "date +%N > '$gate/marks/$1.'\$\$; exit ${2:-0}")"; }

say "an attempt that ends while there is no daemon is billed its run time"
alone="$(marking alone 6)"
wait_begun "$alone"
kill_daemon
open_gate
noted() { jq -e '.phase == "exited"' "$data/attempts/$alone"-*/status.json >/dev/null; }
wait_until "the launcher has noted the end" noted
start_daemon
finished "$alone" failed
equal "exit code" "$(fact "$alone" exit_code)" 6
ran_as_measured "$alone"
close_gate

say "killed five times while tasks run, start and end, and right after an answer"
long="$(marking long 0)"
ids=("$alone" "$long")
for round in 1 2 3 4 5; do
  ids+=("$(submit -- sh -c 'sleep 0.3')" "$(submit -- sh -c 'exit 3')" "$(marking "round$round" 0)")
  sleep "0.$((RANDOM % 8))"
  kill_daemon
  sleep "0.$((RANDOM % 4))"
  start_daemon
  equal "state of the task that runs through it all in round $round" "$(fact "$long" state)" running
done
open_gate

say "every task ends once"
for id in "${ids[@]}"; do wait_state "$id" finished; done
equal "tasks" "$(ask ps --all --limit 500 | jq -r '.tasks[].id' | sort)" "$(printf '%s\n' "${ids[@]}" | sort)"
for id in "${ids[@]}"; do
  equal "attempts of $id" "$(fact "$id" attempts)" 1
  equal "billed time of $id" "$(fact "$id" billed_ms)" "$(fact "$id" run_ms)"
  ran_as_measured "$id"
  case "$(fact "$id" outcome)" in succeeded | failed) ;; *) die "$id: $(fact "$id" outcome), $(fact "$id" reason)" ;; esac
done
for name in alone long round1 round2 round3 round4 round5; do
  marks=("$gate/marks/$name".*)
  equal "runs of $name" "${#marks[@]}" 1
  [[ -e ${marks[0]} ]] || die "$name did not run"
done
check_books acme

say "a daemon that ends on SIGTERM leaves tasks to the next one too"
close_gate
last="$(marking last 0)"
wait_begun "$last"
stop_daemon
start_daemon
equal "state" "$(fact "$last" state)" running
open_gate
finished "$last" succeeded
check_books acme
