#!/usr/bin/env bash
# A backup of a running daemon restores to the same bills.
set -euo pipefail
# shellcheck source=tests/e2e/daemon.sh
. "$(dirname "${BASH_SOURCE[0]}")/daemon.sh"
set_up "$@"
start_daemon
set_prices
make_tenant acme
for code in 0 1; do
  task="$(submit -- sh -c "sleep 0.2; exit $code")"
  wait_state "$task" finished
done
bill() { ask bill acme | jq 'del(.from, .to)'; }
bill >"$root/bill"

say "a backup of a running daemon, verified"
expect_exit 0 loam backup "$root/backup.db"
expect_exit 0 loam verify "$root/backup.db"
say "a backup goes over no file that is there"
expect_exit 4 loam backup "$root/backup.db"
expect_words "$root/backup.db" "next: "
later="$(submit -- true)"
wait_state "$later" finished

say "no restore into a folder that a daemon uses, nor over a journal"
expect_exit 4 loam restore "$root/backup.db" --data "$data"
expect_words "$data" "next: "
stop_daemon
expect_exit 4 loam restore "$root/backup.db" --data "$data"
expect_words "$data" "next: "

say "restored elsewhere, it is served with the same bills"
data="$root/restored" socket="$root/restored.sock"
export LOAM_HOST="$socket"
expect_exit 0 loam restore "$root/backup.db" --data "$data"
expect_exit 0 loam verify --data "$data"
share_calibration
start_daemon
bill >"$root/bill.restored"
cmp "$root/bill" "$root/bill.restored" || die "the bills differ: $(diff "$root/bill" "$root/bill.restored")"
check_books acme
say "and it works on"
task="$(submit -- true)"
finished "$task" succeeded
check_books acme

say "a backup that was changed is not restored"
stop_daemon
dd if=/dev/urandom of="$root/backup.db" bs=4096 seek=3 count=2 conv=notrunc status=none
expect_exit 7 loam verify "$root/backup.db"
expect_exit 7 loam restore "$root/backup.db" --data "$root/elsewhere"
expect_words "error: " "backup.db" "next: "
[[ ! -e $root/elsewhere/journal.db ]] || die "a bad backup left a journal behind"
