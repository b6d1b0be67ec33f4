#!/usr/bin/env bash
# Programs that misbehave end cleanly, and neither the daemon nor anybody's bill takes harm.
set -euo pipefail
# shellcheck source=tests/e2e/daemon.sh
. "$(dirname "${BASH_SOURCE[0]}")/daemon.sh"
set_up "$@"
start_daemon
set_prices
make_tenant acme

say "one that forks 10,000 times: what its limit allows, and all of it is gone with its end"
mark="forker-${root##*.}"
# shellcheck disable=SC2016  # a program of Perl
forks='$0 = shift; for (1..10000) { my $p = fork; if (!defined $p) { print "refused at $_\n"; exit 3 }
       if (!$p) { sleep 600; exit } } print "forked all\n"'
forker="$(submit -- perl -e "$forks" "$mark")"

say "one that closes its streams keeps its exit status"
closer="$(submit -- sh -c 'exec <&- >&- 2>&-; exit 5')"

say "one that writes without end fills no disk"
writer="$(time_limit=2s submit -- yes 'a line of a log that does not end')"

say "one that ignores SIGTERM is killed after its grace period"
stubborn="$(submit -- sh -c 'trap "" TERM INT; echo begun; while :; do sleep 0.1; done')"
wait_begun "$stubborn"
loam --quiet stop "$stubborn" >/dev/null
finished "$stubborn" stopped

finished "$closer" failed
equal "exit code of the one without streams" "$(fact "$closer" exit_code)" 5

wait_state "$forker" finished
case "$(loam logs "$forker" --stream stdout)" in
  "refused at "*) equal "exit code of the forker" "$(fact "$forker" exit_code)" 3 ;;
  "forked all") equal "exit code of the forker" "$(fact "$forker" exit_code)" 0 ;;
  *) die "the forker ended without a word: $(fact "$forker" reason)" ;;
esac
equal "processes left of the forker" "$(pgrep -c -f "$mark" || true)" 0

finished "$writer" limit_reached
size_kib="$(du -sk "$data/attempts/$writer"-*/logs | cut -f 1)"
say "its log takes $size_kib KiB of the disk"
((size_kib <= 64 * 1024)) || die "the log of $writer takes $size_kib KiB"
loam logs "$writer" --stream stdout 2>"$root/err" | tail -n 1 >"$root/out"
expect_words "rotated away"
grep -qE 'a line of a log that does not end|^[a-z ]*$' "$root/out" || die "what is left of the log is not what was written"

equal "loamd's health" "$(ask health | jq -r .status)" ok
check_books acme
