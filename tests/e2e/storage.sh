#!/usr/bin/env bash
# What a task holds on the node's disk is measured and billed: while it runs, while it is paused, and
# once however often it is told; then what reports make of the bill.
set -euo pipefail
# shellcheck source=tests/e2e/daemon.sh
. "$(dirname "${BASH_SOURCE[0]}")/daemon.sh"
set_up "$@"
start_daemon
make_tenant acme
cat >"$root/card.toml" <<'TOML'
currency = "USD"
on_demand = "10"
[services]
storage = "1000"
backup = "500"
TOML
loam rate publish "$root/card.toml" >/dev/null

stored() { ask bill acme | jq -r '[.adjustments[] | select(.kind == "storage") | .net] | first // "0"'; }
backed_up() { ask bill acme | jq -r '[.adjustments[] | select(.kind == "backup") | .net] | first // "0"'; }
is_charged() { [[ $(picos "$(stored)") -gt $(picos "${1:-0}") ]]; }
goes_on() { [[ $(loam logs "$1" --stream stderr 2>&1) == *"copies: 0000000002"* ]]; }
held_on_disk() { jq -e '.usage.storage_mib_ms > 0 and .usage.checkpoint_mib_ms > 0' "$data/attempts/$1"-*/pulse/heartbeat.json >/dev/null 2>&1; }

say "a quote names the price of what nobody knows before"
expect_exit 0 loam quote --tenant acme "${slice[@]}" --time 1m
grep -qF "storage 1000 USD a GiB-hour held" "$root/out" || die "the quote does not name the price of storage"

say "what a task holds is measured while it runs"
# shellcheck disable=SC2016 # the task's own shell expands it
fill='dd if=/dev/zero of=big bs=1M count=64 2>/dev/null; dd if=/dev/zero of="$LOAM_CHECKPOINT_DIR/state" bs=1M count=32 2>/dev/null; echo "copies: $(ls "$LOAM_BACKUP_DIR")" >&2; '
task="$(submit --backups 2 --mount "$(gate_mount)" --project vision -- sh -c "$fill$(gated true)")"
wait_begun "$task"
wait_until "its storage is measured" held_on_disk "$task"

say "a daemon that starts tells of it, and each charges only what came since the last"
stop_daemon
start_daemon
wait_until "it is charged" is_charged 0
before="$(stored)"
equal "whose it is" "$(ask bill acme | jq -r '[.adjustments[] | select(.kind == "storage") | .task] | join(" ")')" "$task"
stop_daemon
start_daemon
wait_until "more of it is charged" is_charged "$before"

say "paused, it pays for the checkpoint that it keeps"
loam --quiet pause "$task" >/dev/null
wait_state "$task" paused
before="$(stored)"
equal "copies before it went on from any" "$(ls "$data/backups/$task")" ""
equal "what copies cost that there are not" "$(backed_up)" 0
sleep 2
say "it goes on, and what it went on from is kept as a copy that it sees"
loam --quiet resume "$task" >/dev/null
wait_until "it has gone on" goes_on "$task"
equal "copies" "$(ls "$data/backups/$task")" 0000000002
cmp "$data/backups/$task/0000000002/state" "$data/checkpoints/$task/state" || die "the copy is another"
sleep 1
loam --quiet stop "$task" >/dev/null
finished "$task" stopped
is_charged "$before" || die "the kept checkpoint was not charged: $(stored)"
[[ $(picos "$(backed_up)") -gt 0 ]] || die "the copy was not charged"
before="$(stored)"
sleep 1
equal "what is charged of a finished task" "$(stored)" "$before"

say "the books agree, and so do the reports"
check_books acme
equal "cost of storage" "$(ask cost acme --by meter | jq -r '.lines[] | select(.meter == "storage") | .cost')" "$before"
loam cost export acme --output "$root/costs.csv" >/dev/null 2>&1
loam cost validate "$root/costs.csv" >/dev/null
printf 'time,group,name,value\n%s,vision,requests,1000\n' "$(ask health | jq -r .started_at)" >"$root/figures.csv"
equal "groups with a cost a unit" \
  "$(ask cost efficiency acme --figures "$root/figures.csv" | jq -r '[.[] | select(.value > 0) | .group] | join(" ")')" vision
for bucket in week month; do
  [[ $(ask cost efficiency --bucket "$bucket" | jq '.reports | length') -ge 1 ]] || die "there is no report by $bucket"
done
{ echo time,amount; for i in {0..335}; do echo "$i,$((i % 24 < 8 ? 2 : 6))"; done; } >"$root/use.csv"
equal "commitment for the week to come" \
  "$(ask advise --usage "$root/use.csv" --on-demand 2 --committed 1.3 --forecast 7d | jq .commitment)" 6
equal "leases of the task" "$(query "SELECT count(*) FROM leases WHERE task_id = ${task#t}")" 2
loam invoice issue acme >/dev/null
equal "lines of the invoice" "$(ask invoice show inv-1 | jq -r '[.lines[].kind] | unique | join(" ")')" "backup storage usage"
