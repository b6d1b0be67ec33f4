#!/usr/bin/env bash
# A full disk under the journal: no new work, nothing lost, and back to work when there is space.
set -euo pipefail
# shellcheck source=tests/e2e/daemon.sh
. "$(dirname "${BASH_SOURCE[0]}")/daemon.sh"
set_up "$@"
mount -t tmpfs -o size=24m loam-e2e "$data" 2>"$root/err" || skip "no tmpfs can be mounted here: $(cat "$root/err")"
share_calibration
start_daemon
set_prices
make_tenant acme
task="$(submit_gated 'echo done; exit 9')"
wait_begun "$task"

say "on a full disk new work is refused in words"
cat /dev/zero >"$data/fill" 2>/dev/null || true
full() { ! submit -- true >"$root/out" 2>"$root/err"; }
wait_until "new work is refused" full # the journal may have a page to spare
expect_refusal 5 "" submit -- true
before="$(ask ps --all | jq '.tasks | length')"
say "what there is can be seen and goes on"
equal "state of the task" "$(fact "$task" state)" running
kill -0 "$daemon" || die "loamd ended"

say "the task ends on the full disk"
open_gate
ended() { jq -e '.phase == "exited"' "$data/attempts/$task"-*/status.json >/dev/null; }
wait_until "the launcher has noted the end" ended

say "with space again loamd recovers by itself; the end is told and billed for what it ran"
rm "$data/fill"
finished "$task" failed
equal "exit code" "$(fact "$task" exit_code)" 9
ran_as_measured "$task"
again() { submit -- true >"$root/out" 2>"$root/err"; }
wait_until "new work is taken again" again
finished "$(cat "$root/out")" succeeded
equal "tasks" "$(ask ps --all | jq '.tasks | length')" "$((before + 1))"
check_books acme
