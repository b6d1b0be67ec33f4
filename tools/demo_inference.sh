# shellcheck shell=bash disable=SC2154
# demo_inference.sh: the part of the demo that serves a model. Sourced by tools/demo, whose words it
# uses. An endpoint's instance is a task of acme's; beta asks it something, and the tokens are on
# beta's bill and to acme's credit.

gateway=0
readonly models="$PWD/build/models"

# Whether a model can be served here, with the words that say why not.
can_serve() {
  if [[ ! -x $bin/loam-engine || ! -x $bin/loam-model ]]; then
    printf '  no model is served: loam-engine was not built, because its model library could not be fetched\n'
    return 1
  fi
}

# Seeded weights, made once and kept in build/.
make_demo_model() {
  local model="$models/demo.q8_0.gguf"
  mkdir -p "$models"
  [[ -f $model ]] && return
  printf '  making a model of 20 million weights\n'
  "$bin/loam-model" generate 20m "$models/demo.f16.gguf" >"$models/demo.log" 2>&1
  "$bin/loam-model" import "$models/demo.f16.gguf" "$model.part" --precision q8_0 >>"$models/demo.log" 2>&1
  rm -f "$models/demo.f16.gguf" "$model.part.json"
  mv "$model.part" "$model"
}

start_gateway() {
  cat >"$root/gateway.toml" <<END
socket = "$root/gateway.sock"
tokens = "$root/data/tokens.json"
usage_file = "$root/inference-usage.jsonl"
endpoints_file = "$root/inference-endpoints.json"
run_dir = "$root/inference"
pool = "$LOAM_HOST"
bill_every = "1s"

[[endpoint]]
model = "demo"
owner = "acme"
file = "$models/demo.q8_0.gguf"
arguments = ["--context", "512"]
share = "0.3"
memory_mib = 128
time = "20m"
END
  export LOAM_GATEWAY="$root/gateway.sock"
  "$bin/loam-gateway" --config "$root/gateway.toml" >>"$root/gateway.log" 2>&1 &
  gateway=$!
  local i
  for ((i = 0; i < 100; ++i)); do
    if loam endpoint list >/dev/null 2>&1; then return; fi
    sleep 0.1
  done
  fail "loam-gateway does not answer: $(tail -n 2 "$root/gateway.log")" "read build/demo/gateway.log"
}

end_gateway() {
  [[ $gateway -ne 0 ]] || return 0
  kill "$gateway" 2>/dev/null || true
  wait "$gateway" 2>/dev/null || true
  gateway=0
}

# What kind KIND of adjustments on a tenant's bill comes to, in tokens and money.
token_lines() {
  ask bill "$1" | jq -c --arg kind "$2" '[.adjustments[] | select(.kind | test($kind))] |
    {tokens: (map(.tokens) | add // 0), net: (map(.net | tonumber) | add // 0)}'
}

# Leaves the facts in build/demo/inference.json: null where no model is served.
serve_model() {
  local key answer used billed i
  echo null >"$root/inference.json"
  can_serve || return 0
  make_demo_model
  start_gateway
  key="$(ask token create demo-chat --role member --tenant beta | jq -r .token)"
  answer="$(LOAM_TOKEN="$key" ask chat demo --max-tokens 24 --temperature 0 "What is a lease?")"
  printf '  beta: What is a lease?\n  demo: %s\n' "$(jq -r .content <<<"$answer" | tr -s '[:space:][:cntrl:]' ' ' | cut -c1-100)"
  printf '  (the weights are random, so are the words)\n'
  used="$(jq '.prompt_tokens + .generated_tokens' <<<"$answer")"
  for ((i = 0; i < 150; ++i)); do
    billed="$(token_lines beta '_tokens$')"
    [[ $(jq .tokens <<<"$billed") -ge $used ]] && break
    sleep 0.1
  done
  loam endpoint list
  loam bill beta
  jq -n --argjson answer "$answer" --argjson billed "$billed" \
    --argjson income "$(token_lines acme '^token_income$')" '
    {model: $answer.model, prompt_tokens: $answer.prompt_tokens, generated_tokens: $answer.generated_tokens,
     billed_tokens: $billed.tokens, token_cost: $billed.net, owner_credit: $income.net}' >"$root/inference.json"
}
