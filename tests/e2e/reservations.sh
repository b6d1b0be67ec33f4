#!/usr/bin/env bash
# Capacity reserved, used and kept from others on a real device: who may run on it, who waits beside it,
# and that a restart of the daemon forgets none of it.
set -euo pipefail
# shellcheck source=tests/e2e/daemon.sh
. "$(dirname "${BASH_SOURCE[0]}")/daemon.sh"
set_up "$@"
start_daemon
make_tenant acme
make_tenant beta

say "a reservation is refused where the card sells none"
set_prices
expect_refusal 4 "does not sell reservation" loam reservation make --tenant acme --share 0.5 --for 1h
cat >"$root/card.toml" <<'TOML'
currency = "USD"
on_demand = "10"
reservation_unused = "50%"
[[price]]
model = "reservation"
price = "20"
TOML
loam rate publish "$root/card.toml" >/dev/null

say "a quote, a reservation, and what is set aside for it"
begin="$(date -u -d '+2 seconds' +%Y-%m-%dT%H:%M:%SZ)"
of_it=(--tenant acme --share 0.5 --memory 64MiB --from "$begin" --for 1h)
quoted="$(ask reservation quote "${of_it[@]}" | jq -r .held)"
loam reservation make "${of_it[@]}" >/dev/null
has_begun_itself() { [[ $(ask reservation list | jq -r '.reservations[0].state') == in_force ]]; }
wait_until "it has begun" has_begun_itself
equal "state" "$(ask reservation list | jq -r '.reservations[0].state')" in_force
equal "set aside" "$(ask reservation list | jq -r '.reservations[0].held')" "$quoted"
equal "held of acme" "$(ask tenant show acme | jq -r .held)" "$quoted"

say "its own tasks run on it; others wait for what is left, or are told"
slice=(--share 0.2 --memory 16MiB)
task="$(submit_gated 'true' --reservation rsv-1)"
wait_begun "$task"
equal "bought as" "$(fact "$task" purchase_model)" reservation
tenant=beta slice=(--share 0.8 --memory 16MiB)
wide="$(submit -- true)"
waits_for_it() { [[ $(fact "$wide" reason) == *"rsv-1"* ]]; }
wait_until "$wide waits for what is reserved" waits_for_it
expect_refusal 3 "no reservation rsv-1" loam submit --tenant beta --share 0.2 --reservation rsv-1 -- true
expect_refusal 4 "no room" loam reservation make --tenant beta --share 0.8 --memory 16MiB --for 10m
slice=(--share 0.3 --memory 16MiB)
narrow="$(submit -- true)"
finished "$narrow" succeeded

say "a killed daemon comes back with it"
kill_daemon
start_daemon
equal "state" "$(ask reservation list | jq -r '.reservations[0].state')" in_force
waits_for_it || die "$wide waits for '$(fact "$wide" reason)'"
open_gate
finished "$task" succeeded
equal "the bill says so" "$(ask bill acme | jq -r '.lines[0].purchase_model')" reservation
loam stop "$wide" >/dev/null

say "one that has begun is charged to its end; one that has not is cancelled for nothing"
expect_refusal 4 "began at" loam reservation cancel rsv-1
before="$(ask tenant show acme | jq -r .held)"
loam reservation make --tenant acme --share 0.5 --memory 64MiB --from "$(date -u -d '+3 hours' +%Y-%m-%dT%H:%M:%SZ)" --for 1h >/dev/null
loam reservation cancel rsv-2 --reason "not needed" >/dev/null
equal "held of acme" "$(ask tenant show acme | jq -r .held)" "$before"
equal "state" "$(ask reservation list --all | jq -r '.reservations[1].state')" cancelled
loam cost export acme --output "$root/costs.csv" >/dev/null 2>&1
loam cost validate "$root/costs.csv" >/dev/null
expect_exit 0 loam verify --data "$data"
