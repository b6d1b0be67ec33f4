#!/usr/bin/env bash
# A spot task with a deadline on a real device: where there is no spot left it is bought on demand while
# that still meets the deadline, whoever is on spot leaves, and the bill tells the prices, and whose
# cost it is by its tags.
set -euo pipefail
# shellcheck source=tests/e2e/daemon.sh
. "$(dirname "${BASH_SOURCE[0]}")/daemon.sh"
set_up "$@"
cat >>"$root/loamd.toml" <<'TOML'

[[queue]]
name = "default"
safe = "0s"
TOML
start_daemon
make_tenant acme
make_tenant beta
cat >"$root/card.toml" <<'TOML'
currency = "USD"
on_demand = "10"
[spot]
floor = "30%"
ceiling = "100%"
TOML
loam rate publish "$root/card.toml" >/dev/null
from_now() { date -u -d "+$1" +%Y-%m-%dT%H:%M:%SZ; }

say "a deadline that a change to on demand would miss is refused with the earliest that can be promised"
expect_refusal 2 "at the earliest" loam submit --tenant acme --purchase spot --share 1 --time 20m \
  --deadline "$(from_now '10 minutes')" -- true

say "the quote says when it is bought on demand should no spot come"
of_it=(--tenant acme --purchase spot --share 1 --time 20m --deadline "$(from_now '2 hours')")
turns="$(ask quote "${of_it[@]}" | jq -r .turns_at)"
[[ $turns > $(from_now '1 minute') && $turns < $(from_now '2 hours') ]] || die "turns at $turns"

say "who waits for spot until then displaces it on demand, and is billed so"
tenant=beta slice=(--purchase spot --share 1)
other="$(submit_gated 'true')"
wait_begun "$other"
due="$(loam submit --tenant acme --purchase spot --share 1 --time 20m --tag team=red \
  --deadline "$(from_now '24 minutes')" -- true)"
finished "$due" succeeded
equal "bought as" "$(ask bill acme | jq -r '[.lines[].purchase_model] | unique | join(",")')" on_demand
equal "by team" "$(ask cost acme --by tag:team | jq -r '[.. | strings | select(. == "red")] | length > 0')" true
loam stop "$other" >/dev/null
open_gate
