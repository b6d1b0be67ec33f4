#!/usr/bin/env bash
# Endpoints on the pool: an instance is a task that its owner pays for; a restart of the gateway finds
# it again, a killed daemon disturbs no stream, and who waits for room is told why.
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
echo weights >"$root/models/tiny.gguf"
echo "operator_mounts = [\"$root/inference\", \"$root/models\"]" >>"$root/loamd.toml"
cat >"$root/gateway.toml" <<TOML
socket = "$root/gateway.sock"
tokens = "$data/tokens.json"
usage_file = "$root/usage.jsonl"
endpoints_file = "$root/endpoints.json"
run_dir = "$root/inference"
engine_program = "$bin/fake_loam_engine"
pool = "$socket"
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

start_daemon
set_prices
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
[[ $(chat tiny --max-tokens 2 hello 2>/dev/null) == ab* ]] || die "the model does not answer"

say "a restart of the gateway finds it again"
end_gateway
sleep 1
equal "state without a gateway" "$(fact "$task" state)" running
start_gateway
wait_until "tiny serves again" endpoint_is tiny state serving
equal "instances" "$(instances)" "$task"
chat tiny --max-tokens 2 hello >/dev/null 2>&1

say "a killed daemon disturbs no stream"
chat tiny hello >"$root/long" 2>"$root/long.err" &
stream=$!
has_text() { [[ -s $root/long ]]; }
wait_until "the stream has begun" has_text
kill_daemon
sleep 1
start_daemon
wait "$stream" || die "the stream broke: $(cat "$root/long.err")"
equal "tokens of the stream" "$(wc -w <"$root/long")" 200
wait_until "tiny is there" endpoint_is tiny instances 1
equal "instances" "$(instances)" "$task"

say "who waits for room is told why"
weights="$root/models/tiny.gguf"
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
expect_exit 0 loam endpoint delete large
only_tiny() { [[ $(instances) == "$task" ]]; }
wait_until "its task is gone" only_tiny

say "the owner pays"
end_gateway
loam --quiet stop "$task" >/dev/null
finished "$task" stopped
billed="$(ask bill acme | jq -r --arg id "$task" '.lines[] | select(.task == $id) | .net')"
[[ $(picos "$billed") -gt 0 ]] || die "the instance cost $billed"
equal "lines of beta's bill" "$(ask bill beta | jq '.lines | length')" 0
check_books acme
