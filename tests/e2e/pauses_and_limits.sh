#!/usr/bin/env bash
# Pause with a checkpoint and resume from it, stop while starting, and the time limit.
set -euo pipefail
# shellcheck source=tests/e2e/daemon.sh
. "$(dirname "${BASH_SOURCE[0]}")/daemon.sh"
set_up "$@"
start_daemon
set_prices
make_tenant acme

say "the time limit ends a task, and loam run says so"
time_limit=1s expect_exit 124 run -- sh -c 'sleep 60'
expect_words "time limit"

say "the time limit holds while no daemon runs"
alone="$(time_limit=3s submit -- sh -c 'sleep 60')"
wait_state "$alone" running
kill_daemon
limited() { jq -e '.phase == "exited" and .notices[0].action == "limit"' "$data/attempts/$alone"-*/status.json >/dev/null; }
wait_until "its launcher has ended it" limited
start_daemon
finished "$alone" limit_reached
equal "billed time" "$(fact "$alone" billed_ms)" "$(fact "$alone" run_ms)"
ran_as_measured "$alone"

say "a training task is paused, saves, and gives its device back"
task="$(loam --quiet submit --tenant acme --share 0.4 --memory 128MiB --time 10m --grace 30s -- \
  "$bin/loam-demo-train" --size 64 --steps 1000000 --checkpoint-every 20)"
trained() { loam logs "$task" --stream stdout 2>/dev/null | grep -q '^step'; }
wait_until "$task has trained" trained
loam --quiet pause "$task" >/dev/null
wait_state "$task" paused
wait_until "its attempt has ended" jq -e '.phase == "exited"' "$data/attempts/$task"-l*-e1/status.json >/dev/null
find "$data/checkpoints/$task" -type f | grep -q . || die "nothing was saved"
equal "tasks on the device" "$(ask device list | jq '.devices[0].leases')" 0
ran="$(fact "$task" run_ms)"
equal "billed so far" "$(fact "$task" billed_ms)" "$ran"

say "paused time is not billed"
sleep 1
equal "run time after a second of pause" "$(fact "$task" run_ms)" "$ran"
equal "billed after a second of pause" "$(fact "$task" billed_ms)" "$ran"

say "resumed, it goes on from its checkpoint"
loam --quiet resume "$task" >/dev/null
wait_state "$task" running
resumed() { loam logs "$task" --stream stdout 2>/dev/null | grep -qE '^resumed at step [1-9]'; }
wait_until "it says where it resumes" resumed
equal "attempts" "$(fact "$task" attempts)" 2
loam --quiet stop "$task" >/dev/null
finished "$task" stopped
sum="$(jq -s 'map((.end_boottime_ns - .start_boottime_ns) / 1000000 | floor) | add' "$data/attempts/$task"-*/status.json)"
ran="$(fact "$task" run_ms)"
((ran - sum <= 2 && sum - ran <= 2)) || die "run time of both attempts is $ran ms, their launchers measured $sum ms"

say "stopped before and while it starts"
for pause_s in 0 0.02 0.1; do
  early="$(submit -- sleep 60)"
  sleep "$pause_s"
  loam --quiet stop "$early" >/dev/null
  finished "$early" stopped
done

say "what cannot be done in the present state is refused"
expect_exit 4 loam resume "$task"
expect_words "error: " "$task" "next: "
expect_exit 4 loam pause "$task"
expect_words "error: " "$task" "next: "
check_books acme
