#!/usr/bin/env bash
# A drained device takes nothing new and lets go on what runs; a waiting task says why it waits.
# While all this goes on, the projections answer queries of sqlite3.
set -euo pipefail
# shellcheck source=tests/e2e/daemon.sh
. "$(dirname "${BASH_SOURCE[0]}")/daemon.sh"
set_up "$@"
start_daemon
set_prices
make_tenant acme
device="$(ask device list | jq -r '.devices[0].name')"

running="$(submit_gated true)"
wait_begun "$running"
say "nothing new starts on a drained device, and the task says why"
loam --quiet device drain "$device" >/dev/null
equal "state of the device" "$(ask device list | jq -r '.devices[0].state')" draining
waiting="$(submit -- true)"
sleep 0.5
equal "state of the new task" "$(fact "$waiting" state)" waiting
reason="$(fact "$waiting" reason)"
[[ -n $reason ]] || die "the waiting task does not say why"
loam ps >"$root/err"
expect_words "$waiting" waiting
loam show "$waiting" >"$root/err"
expect_words "$reason"
ask quote --tenant acme --share 0.1 -- true >"$root/quote"
equal "a quote starts now" "$(jq .starts_now "$root/quote")" false

say "what runs goes on"
equal "state of the running task" "$(fact "$running" state)" running

say "sqlite3 sees what the daemon does"
equal "tasks" "$(query 'SELECT id, state FROM tasks ORDER BY id')" "${running#t}|running
${waiting#t}|waiting"
equal "draining devices" "$(query 'SELECT count(*) FROM devices WHERE draining')" 1
equal "live leases" "$(query 'SELECT count(*) FROM leases WHERE ended_ms IS NULL')" 1
open_gate
finished "$running" succeeded
equal "run and billed" "$(query "SELECT run_ms = billed_ms, billed_ms > 0 FROM tasks WHERE id = ${running#t}")" "1|1"
equal "usage" "$(query "SELECT sum(to_ms - from_ms) FROM usage WHERE task_id = ${running#t}")" "$(fact "$running" billed_ms)"
equal "net of charges" "$(query "SELECT net FROM charges WHERE task_id = ${running#t} OR task_id = '$running'")" "$(fact "$running" cost)"
for view in v_tasks v_leases v_devices v_usage v_bill v_transactions v_invoices charges; do
  query "SELECT * FROM $view" >"$root/out" || die "the view $view cannot be read"
done

say "undrained, the waiting one starts"
equal "state of the waiting task" "$(fact "$waiting" state)" waiting
loam --quiet device undrain "$device" >/dev/null
finished "$waiting" succeeded
check_books acme
