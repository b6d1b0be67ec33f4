#!/usr/bin/env bash
# Endpoints on the pool: an instance is a task that its owner pays for; a restart of the gateway finds
# it again, a killed daemon disturbs no stream, and who waits for room is told why. What the answers'
# `usage` says is what the bill says, through restarts of both.
set -euo pipefail
# shellcheck source=tests/e2e/daemon.sh
. "$(dirname "${BASH_SOURCE[0]}")/daemon.sh"
set_up "$@"
[[ -x $bin/fake_loam_engine ]] || skip "there is no fake_loam_engine in $bin"

# clean_up of daemon.sh ends what the daemon started; the gateway is this script's own.
gateway=0
end_gateway() {
  [[ $gateway -ne 0 ]] || return 0
  kill -TERM "$gateway" 2>/dev/null || true
  wait "$gateway" 2>/dev/null || true
  gateway=0
}
trap 'status=$?; set +e; end_gateway; (exit $status); clean_up' EXIT

mkdir "$root/models"
# The smallest file that is a whole GGUF: one tensor of one number.
{ printf 'GGUF\3\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0w\1\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'; head -c 11 /dev/zero; } \
  >"$root/models/tiny.gguf"
echo "operator_mounts = [\"$root/inference\", \"$root/models\"]" >>"$root/loamd.toml"
cat >"$root/gateway.toml" <<TOML
socket = "$root/gateway.sock"
tokens = "$data/tokens.json"
usage_file = "$root/usage.jsonl"
endpoints_file = "$root/endpoints.json"
run_dir = "$root/inference"
engine_program = "$bin/fake_loam_engine"
pool = "$socket"
bill_every = "200ms"
start_wait_max = "90s"
[[endpoint]]
model = "tiny"
owner = "acme"
file = "$root/models/tiny.gguf"
arguments = ["--tick-ms", "50", "--tokens", "200"]
min = 1
share = "0.05"
memory_mib = 16
grace = "1s"
TOML
export LOAM_GATEWAY="$root/gateway.sock"
start_gateway() {
  "$bin/loam-gateway" --config "$root/gateway.toml" </dev/null >>"$root/gateway.log" 2>&1 &
  gateway=$!
}
endpoint() { ask endpoint list | jq -r ".endpoints[] | select(.model == \"$1\") | .$2"; }
endpoint_is() { [[ $(endpoint "$1" "$2" 2>/dev/null) == "$3" ]]; }
instances() { ask ps | jq -r '.tasks[] | select(.name == "loam-engine" and .state != "finished") | .id'; }
chat() { LOAM_TOKEN="$key" loam chat "$@"; }
# used FILE: adds up the tokens that the answers in it say were used.
used() { jq -s 'map(.prompt_tokens + .generated_tokens) | add' "$1"; }
on_bill() { ask bill beta | jq '[.adjustments[].tokens] | add // 0'; }

cat >"$root/card.toml" <<'TOML'
currency = "USD"
on_demand = "10"
[[tokens]]
model = "tiny"
prompt = "1000"
generated = "5000"
TOML

start_daemon
loam rate publish "$root/card.toml" >/dev/null
make_tenant acme
make_tenant beta
key="$(ask token create ci --role member --tenant beta | jq -r .token)"

say "an instance is a task of the endpoint's owner"
start_gateway
wait_until "tiny serves" endpoint_is tiny state serving
task="$(instances)"
equal "tenant of $task" "$(fact "$task" tenant)" acme
equal "model of $task" "$(fact "$task" model)" tiny
equal "state of $task" "$(fact "$task" state)" running
# 0.05 of this machine's processors, in thousandths of one.
equal "processors of $task" "$(jq .cpu_milli "$data/attempts/$task"-l*/order.json)" "$((50 * $(nproc)))"
chat tiny --json --max-tokens 2 hello >"$root/answers" || die "the model does not answer"
equal "the answer" "$(jq -r .content "$root/answers")" "ab ab "

say "whoever looks on sees how it serves"
shown() { loam top --once | grep -Eq '^tiny +serving .* [0-9.]+m?s'; }
wait_until "tiny is in loam top" shown
equal "in loam top" "$(ask top | jq -r '.endpoints[] | .model + " " + .state')" "tiny serving"

say "a restart of the gateway finds it again"
end_gateway
sleep 1
equal "state without a gateway" "$(fact "$task" state)" running
start_gateway
wait_until "tiny serves again" endpoint_is tiny state serving
equal "instances" "$(instances)" "$task"
chat tiny --json --max-tokens 3 hello there >>"$root/answers"

say "a killed daemon disturbs no stream"
chat tiny --json hello >"$root/long" 2>"$root/long.err" &
stream=$!
runs() { [[ $(endpoint tiny in_flight) -gt 0 ]]; }
wait_until "the stream has begun" runs
kill_daemon
sleep 1
start_daemon
wait "$stream" || die "the stream broke: $(cat "$root/long.err")"
equal "tokens of the stream" "$(jq .generated_tokens "$root/long")" 200
cat "$root/long" >>"$root/answers"
wait_until "tiny is there" endpoint_is tiny instances 1
equal "instances" "$(instances)" "$task"

say "a model file that was cut short is refused at once"
weights="$root/models/tiny.gguf"
head -c 60 "$weights" >"$root/models/cut.gguf"
expect_exit 2 loam endpoint create cut --model "$root/models/cut.gguf" --owner acme --share 0.05 --memory 16MiB
expect_words "its tensors end at byte 68 and the file has 60"

say "who waits for room is told why"
expect_exit 2 loam endpoint create large --model "$weights" --owner acme
expect_words "says neither ce nor share" 'share = "0.5"'
expect_exit 4 loam endpoint create large --model "$weights" --owner acme \
  --share 0.5 --memory 4TiB
expect_words "no device of this pool could ever hold"
expect_exit 0 loam endpoint create large --model "$weights" --owner acme --share 0.98 --memory 16MiB --min 1
queued() { endpoint_is large queued 1 && [[ -n $(endpoint large why) ]]; }
wait_until "its instance waits" queued
equal "state of it" "$(endpoint large state)" starting

say "one that is deleted leaves no task behind"
expect_exit 0 loam endpoint remove large
only_tiny() { [[ $(instances) == "$task" ]]; }
wait_until "its task is gone" only_tiny

say "the bill says what the answers said"
end_gateway # which sends what is left
equal "tokens on the bill" "$(on_bill)" "$(used "$root/answers")"
cost="$(ask bill beta | jq -r .total)"
equal "cost" "$(picos "$cost")" "$(jq -s 'map(.prompt_tokens * 1000000000 + .generated_tokens * 5000000000) | add' "$root/answers")"
equal "the owner's credit" "$(ask bill acme | jq -r '[.adjustments[] | select(.kind == "token_income") | .net | tonumber] | add')" "-$cost"
loam cost export beta --output "$root/costs.csv" >/dev/null 2>&1
loam cost validate "$root/costs.csv" >/dev/null
loam invoice issue beta >/dev/null
equal "lines of the invoice" "$(ask invoice show inv-1 | jq -r '[.lines[].kind] | sort | join(" ")')" "cached_tokens generated_tokens prompt_tokens"

say "the owner pays for the instance"
loam --quiet stop "$task" >/dev/null
finished "$task" stopped
billed="$(ask bill acme | jq -r --arg id "$task" '.lines[] | select(.task == $id) | .net')"
[[ $(picos "$billed") -gt 0 ]] || die "the instance cost $billed"
equal "lines of beta's bill" "$(ask bill beta | jq '.lines | length')" 0
check_books beta
check_books acme
