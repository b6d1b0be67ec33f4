#!/usr/bin/env bash
# A commitment bought and seen, and a shortfall that the keeper reports: both on the bill, the
# ledger and the FOCUS export; a report that is read again credits nothing again.
set -euo pipefail
# shellcheck source=tests/e2e/daemon.sh
. "$(dirname "${BASH_SOURCE[0]}")/daemon.sh"
set_up "$@"
start_daemon

# CLOCK_BOOTTIME as the keeper writes it; /proc/uptime has hundredths of a second.
boottime_ns() {
  local uptime rest
  read -r uptime rest </proc/uptime
  printf '%d' "$((10#${uptime/./} * 10000000))"
}

make_tenant acme

say "a commitment is refused where the card sells none"
set_prices
expect_refusal 4 "sells no commitment" loam commit buy acme --ce 1
cat >"$root/card.toml" <<'TOML'
currency = "USD"
on_demand = "10"
[[price]]
model = "commitment"
price = "0.05"
TOML
loam rate publish "$root/card.toml" >/dev/null
loam commit buy acme --ce 1 --project vision >/dev/null
equal "state" "$(ask commit list | jq -r '.commitments[0].state')" in_force
equal "fee" "$(ask commit list | jq -r '.commitments[0].fees[0].net')" 36.5
equal "on the bill" "$(ask bill acme | jq -r '.adjustments[0] | .kind + " " + .net + " " + .commitment')" "fee 36.5 com-1"

say "a shortfall that the keeper reports becomes a credit"
task="$(submit_gated 'true' --purchase commitment)"
wait_begun "$task"
lease="$(query "SELECT 'l' || lease_id FROM tasks WHERE id = ${task#t}")"
started="$(boottime_ns)"
sleep 3
now="$(boottime_ns)"
# Of a share of 0.05 over these seconds half was missing.
printf 'shortfall %s 0 0 %d %d %d %d %d 0 0\n' "$lease" "$started" "$now" \
  $(((now - started) / 20)) $(((now - started) / 40)) $(((now - started) / 40)) >>"$data/keeper/reports"
credited() { [[ $(ask bill acme | jq '[.adjustments[] | select(.kind == "credit")] | length') -eq 1 ]]; }
wait_until "it is credited" credited
credit="$(ask bill acme | jq -r '.adjustments[] | select(.kind == "credit") | .net')"
[[ $credit == -* ]] || die "the credit is $credit"

say "read again by another daemon it credits nothing again"
stop_daemon
start_daemon
sleep 2
credited || die "it was credited again"
equal "the credit" "$(ask bill acme | jq -r '.adjustments[] | select(.kind == "credit") | .net')" "$credit"
open_gate
finished "$task" succeeded

say "the books agree, and the export passes its check"
check_books acme
loam cost export acme --output "$root/costs.csv" >/dev/null 2>&1
loam cost validate "$root/costs.csv" >/dev/null
loam invoice issue acme >/dev/null
equal "lines of the invoice" "$(ask invoice show inv-1 | jq -r '[.lines[].kind] | sort | join(" ")')" "credit fee usage"
loam cost efficiency acme >/dev/null
