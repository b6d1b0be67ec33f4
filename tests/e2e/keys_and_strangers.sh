#!/usr/bin/env bash
# Who asks: the same request twice, tokens over TCP, and what a tenant learns of another's tasks.
set -euo pipefail
# shellcheck source=tests/e2e/daemon.sh
. "$(dirname "${BASH_SOURCE[0]}")/daemon.sh"
set_up "$@"
port=$((20000 + RANDOM % 10000)) # below the range from which the kernel lends ports
while (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((port + 1)); done
listen="127.0.0.1:$port"
start_daemon
set_prices
make_tenant acme
make_tenant beta

say "one key from four clients at once is one task"
for i in 1 2 3 4; do submit --key once -- sh -c 'echo once' >"$root/key.$i" & pids[i]=$!; done
for i in 1 2 3 4; do wait "${pids[i]}" || die "client $i was refused"; done
equal "ids" "$(sort -u "$root"/key.? | wc -l)" 1
task="$(cat "$root/key.1")"
equal "tasks" "$(ask ps --all | jq '.tasks | length')" 1
say "the same key with another request is a conflict"
expect_refusal 4 "once" submit --key once -- sh -c 'echo twice'
finished "$task" succeeded
equal "id under the key after its end" "$(submit --key once -- sh -c 'echo once')" "$task"
say "over TCP nobody is known without a token, with a wrong or with a revoked one"
export LOAM_HOST="$listen"
expect_refusal 6 "token" loam ps
LOAM_TOKEN="loam_0000000000000000000000000000000000000000" expect_refusal 6 "token" loam ps
LOAM_TOKEN=$'not a token' expect_refusal 6 "token" loam ps
token_of() { LOAM_HOST="$socket" ask token create "$@" | jq -r '.token // .secret'; }
beta_token="$(token_of beta-ci --tenant beta)"
acme_token="$(token_of acme-ci --tenant acme)"
expect_exit 0 env LOAM_TOKEN="$beta_token" "$bin/loam" ps
say "another's same key is its own"
other="$(LOAM_TOKEN="$beta_token" tenant=beta submit --key once -- sh -c 'echo once')"
[[ $other != "$task" ]] || die "beta's key found acme's task"
LOAM_HOST="$socket" finished "$other" succeeded
if grep -qF -- "$beta_token" "$data/tokens.json"; then die "the token itself is on disk"; fi

say "another tenant's task is answered as one that does not exist"
# The same words but for the id, whatever is asked.
for verb in show logs stop pause resume; do
  LOAM_TOKEN="$beta_token" expect_exit 3 loam "$verb" "$task"
  theirs="$(sed "s/\b$task\b/ID/g" "$root/err")"
  LOAM_TOKEN="$beta_token" expect_exit 3 loam "$verb" t4711
  equal "what $verb says" "$theirs" "$(sed 's/\bt4711\b/ID/g' "$root/err")"
done
equal "tasks that beta sees" "$(LOAM_TOKEN="$beta_token" ask ps --all | jq -c '[.tasks[].tenant] | unique')" '["beta"]'
LOAM_TOKEN="$beta_token" expect_exit 3 loam bill acme
theirs="$(sed 's/\bacme\b/NAME/g' "$root/err")"
LOAM_TOKEN="$beta_token" expect_exit 3 loam bill nobody
equal "what bill says" "$theirs" "$(sed 's/\bnobody\b/NAME/g' "$root/err")"
say "a member neither drains devices nor sets prices nor fills its own wallet"
for words in "device drain n1/0" "rate set 0.01" "tenant topup beta 5" "token create more --role admin"; do
  # shellcheck disable=SC2086
  LOAM_TOKEN="$beta_token" expect_refusal 6 "" loam $words
done
equal "wallet of acme from acme's token" "$(LOAM_TOKEN="$acme_token" ask tenant show acme | jq -r .name)" acme

say "a revoked token is out at once"
LOAM_HOST="$socket" loam --quiet token revoke beta-ci >"$root/out"
LOAM_TOKEN="$beta_token" expect_refusal 6 "token" loam ps
export LOAM_HOST="$socket"
check_books acme
check_books beta
