#!/usr/bin/env bash
# Programs as they come: not there, not executable, with every byte in arguments and output.
set -euo pipefail
# shellcheck source=tests/e2e/daemon.sh
. "$(dirname "${BASH_SOURCE[0]}")/daemon.sh"
set_up "$@"
start_daemon
set_prices
make_tenant acme

say "a program that does not exist is refused by name and costs nothing"
expect_exit 125 run -- /no/such/program
expect_words "refused" "program not found" "/no/such/program" "shared" "--mount" "0.00 USD"
say "so is one that is not executable"
expect_exit 125 run -- /etc/passwd
expect_words "refused" "not executable" "/etc/passwd" "0.00 USD"
equal "bill" "$(ask bill acme | jq -r .total)" 0

say "arguments with spaces, newlines, quotes and nothing arrive as they are"
arguments=('a b' $'two\nlines' "it's \"quoted\"" '' '*' "\$HOME" '--share' 'ünï' $'tab\there' '\n')
printf '<%s>\0' "${arguments[@]}" >"$root/wanted"
expect_exit 0 run -- printf '<%s>\0' "${arguments[@]}"
cmp "$root/out" "$root/wanted" || die "the arguments changed on the way"

say "its ports are told; what no device could keep is refused"
expect_exit 0 run --port 8080 --port 8443 --bandwidth 0.05 -- sh -c "echo \"\$LOAM_PORTS\""
equal "ports" "$(cat "$root/out")" "8080,8443"
expect_refusal 2 "the port 8080 is named twice" run --port 8080 --port 8080 -- true
expect_refusal 4 "'bandwidth 0.5' cannot be honoured yet" run --bandwidth 0.5 -- true

say "an argument that is not UTF-8 arrives or is refused by name, and is never changed"
status=0
run -- printf '<%s>' $'\xff\xfe' >"$root/out" 2>"$root/err" || status=$?
if [[ $status -eq 0 ]]; then
  printf '<\xff\xfe>' | cmp - "$root/out" || die "the argument changed on the way"
else
  equal "exit status" "$status" 2
  expect_words "error: " "is not UTF-8" "next: "
fi

say "so is any other word of a request"
for option in --env=A --name --tag=k --project --mount; do
  expect_exit 2 loam submit --tenant acme --share 0.1 "$option"=$'x\xff' -- true
  expect_words "error: " "${option%%=*}" "is not UTF-8" "next: "
done

say "output of every byte comes back as it was, live and later, each stream on its own"
octal="$(printf '\\%o' {0..255})"
# shellcheck disable=SC2059
printf "$octal" >"$root/wanted"
expect_exit 0 run -- sh -c "printf '$octal'; printf 'e\377r\200r' >&2"
cmp "$root/out" "$root/wanted" || die "bytes of the live output changed"
id="$(ask ps --all --limit 1 | jq -r '.tasks[0].id')"
loam logs "$id" --stream stdout | cmp - "$root/wanted" || die "bytes of the log changed"
loam logs "$id" --stream stderr 2>&1 >/dev/null | cmp - <(printf 'e\377r\200r') || die "bytes of the error log changed"

say "the exit status is passed on, also that of a signal"
expect_exit 42 run -- sh -c 'exit 42'
expect_exit 137 run -- sh -c 'kill -KILL $$'
check_books acme
