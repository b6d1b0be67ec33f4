#!/usr/bin/env bash
# Absurd quantities and malformed requests are refused with the value and a next step, by the client
# and by the daemon alike, and leave nothing behind.
set -euo pipefail
# shellcheck source=tests/e2e/daemon.sh
. "$(dirname "${BASH_SOURCE[0]}")/daemon.sh"
set_up "$@"
start_daemon
set_prices
make_tenant acme
ask_for() { loam submit --tenant acme "$@" -- true; }

say "quantities that are none, too small or too large"
big=1000000000000000000000000000000
expect_refusal 2 "0 CE" ask_for --ce 0
expect_refusal 2 "'-1'" ask_for --ce -1
expect_refusal 2 "'$big'" ask_for --ce "$big"
expect_refusal 2 "'NaN'" ask_for --ce NaN
expect_refusal 2 "'1e3'" ask_for --ce 1e3
expect_refusal 2 "'inf'" ask_for --ce inf
expect_refusal 2 "'0'" ask_for --share 0
expect_refusal 2 "1.01" ask_for --share 1.01
expect_refusal 2 "'-0.5'" ask_for --share -0.5
expect_refusal 2 "''" ask_for --share ''
expect_refusal 2 "'1e3GiB'" ask_for --share 0.1 --memory 1e3GiB
expect_refusal 2 "'0'" ask_for --share 0.1 --memory 0
expect_refusal 2 "$big" ask_for --share 0.1 --memory "${big}GiB"
expect_refusal 2 "'NaNGiB'" ask_for --share 0.1 --memory NaNGiB
expect_refusal 2 "0s" ask_for --share 0.1 --time 0s
expect_refusal 2 "'-1h'" ask_for --share 0.1 --time -1h
expect_refusal 2 "$big" ask_for --share 0.1 --time "${big}h"
expect_refusal 2 "'soon'" ask_for --share 0.1 --deadline soon
expect_refusal 2 "0 is too small" ask_for --share 0.1 --gang 0
expect_refusal 2 "--colour" ask_for --share 0.1 --colour red
expect_refusal 2 "$big" loam rate set "$big"
expect_refusal 2 "'NaN'" loam tenant topup acme NaN
expect_refusal 2 "-5" loam tenant topup acme -5

say "paths that name no place, before anything is set aside for them"
expect_refusal 2 "'work'" ask_for --share 0.1 --workdir work
expect_refusal 2 "'/a/../b'" ask_for --share 0.1 --workdir /a/../b
expect_refusal 2 "'/'" ask_for --share 0.1 --workdir /
expect_refusal 2 "'/usr/lib'" ask_for --share 0.1 --mount "$gate:/usr/lib"
expect_refusal 2 "'/a/./b'" ask_for --share 0.1 --mount "$gate:/a/./b"

say "more than there is can be asked for, and is refused by what there is"
expect_exit 4 ask_for --ce 1000000
expect_words "error: " "asks for 1000000 CE of one device, and the most there is" "next: "
expect_exit 4 ask_for --share 0.1 --memory 1000TiB
expect_words "error: " "1024000GiB of one device's memory, and the most there is" "next: "
expect_exit 4 ask_for --share 0.1 --cpu 10000
expect_words "error: " "10000 CPUs of one node, and the most there is" "next: "

say "request files that are no request"
from() { printf '%s' "$1" >"$root/request.json"; }
from '{"tenant":"acme","command":["true"],"share":"0.1"'
expect_refusal 2 "not JSON" loam submit --file "$root/request.json"
from '[]'
expect_refusal 2 "request.json" loam submit --file "$root/request.json"
from ''
expect_refusal 2 "not JSON" loam submit --file "$root/request.json"
from '{"tenant":"acme","command":["true"],"share":"0.1","colour":"red"}'
expect_refusal 2 "'colour'" loam submit --file "$root/request.json"
from '{"tenant":"acme","command":["true"],"share":0.1}'
expect_refusal 2 "'share'" loam submit --file "$root/request.json"
from '{"tenant":"acme","command":[],"share":"0.1"}'
expect_refusal 2 "no program" loam submit --file "$root/request.json"
from '{"tenant":"acme","command":["true"],"share":"0.1","memory":"1e3GiB"}'
expect_refusal 2 "1e3" loam submit --file "$root/request.json"
from '{"tenant":"nobody","command":["true"],"share":"0.1"}'
expect_refusal 3 "nobody" loam submit --file "$root/request.json"
head -c 4096 /dev/urandom >"$root/request.json"
expect_refusal 2 "not JSON" loam submit --file "$root/request.json"
expect_refusal 3 "none.json" loam submit --file "$root/none.json"

say "the same from a client of somebody else's"
if command -v curl >/dev/null; then
  post() {
    curl -sS --unix-socket "$socket" -H 'content-type: application/json' -o "$root/out" -w '%{http_code}' \
      --data-binary "$1" http://localhost/v1/tasks
  }
  equal "status of half a document" "$(post '{"tenant":"acme"')" 400
  equal "status of an unknown field" "$(post '{"tenant":"acme","command":["true"],"share":"0.1","colour":1}')" 400
  grep -q colour "$root/out" || die "the answer does not name the field: $(cat "$root/out")"
  equal "status of 10^30 CE" "$(post '{"tenant":"acme","command":["true"],"ce":"'$big'"}')" 400
  grep -q "$big" "$root/out" || die "the answer does not name the value: $(cat "$root/out")"
  equal "status of NaN" "$(post '{"tenant":"acme","command":["true"],"ce":NaN}')" 400
else
  say "(no curl here: left out)"
fi

say "what cannot be honoured yet is refused by name"
expect_refusal 4 "'image'" ask_for --share 0.1 --image sha256:abc

say "nothing of all this is left behind"
equal "tasks" "$(ask ps --all | jq '.tasks | length')" 0
equal "loamd's health" "$(ask health | jq -r .status)" ok
check_books acme
