#!/usr/bin/env bash
# bench/daemon.sh BIN: figures of a running loamd as its users meet it, printed as loam-bench reads
# them. Starts a daemon of its own with a data folder that is gone afterwards.
set -euo pipefail

bin="$(cd "$1" && pwd)"
readonly bin
root="$(mktemp -d)"
readonly root
export LOAM_HOST="$root/loamd.sock"
daemon=0

clean_up() {
  if [[ $daemon -ne 0 ]]; then kill "$daemon" 2>/dev/null || true; fi
  # What outlives a daemon: tasks, and the keeper.
  pkill -f "loam-launch $root/" 2>/dev/null || true
  pkill -f "loam-keeper --root $root/" 2>/dev/null || true
  wait 2>/dev/null || true
  rm -rf "$root"
}
trap clean_up EXIT

"$bin/loamd" --data "$root/data" --socket "$LOAM_HOST" --log-level warning >"$root/loamd.log" 2>&1 &
daemon=$!
for ((i = 0; i < 300; ++i)); do
  "$bin/loam" --json device list >/dev/null 2>&1 && break
  sleep 0.1
done
uuid="$("$bin/loam" --json device list | jq -r '.devices[0].uuid')"
"$bin/loam" --quiet device calibrate "$uuid" >/dev/null 2>&1
"$bin/loam" --quiet rate set 1 >/dev/null
"$bin/loam" --quiet tenant create acme --topup 100000 >/dev/null

# milliseconds NOW THEN, from $EPOCHREALTIME texts
milliseconds() { awk -v a="$1" -v b="$2" 'BEGIN {printf "%.3f\n", (b - a) * 1000}'; }
# percentile P FILE: of one number a line.
percentile() { sort -g "$2" | awk -v p="$1" '{v[NR] = $1} END {i = int(NR * p + 0.999999); print v[i < 1 ? 1 : i]}'; }

quotes="$root/quotes"
for ((i = 0; i < 300; ++i)); do
  from="$EPOCHREALTIME"
  "$bin/loam" quote --tenant acme --share 0.3 --memory 64MiB --time 1m -- /bin/true >/dev/null
  milliseconds "$from" "$EPOCHREALTIME" >>"$quotes"
done

# The first thing the program does is to tell the time.
starts="$root/starts"
for ((i = 0; i < 40; ++i)); do
  from="$EPOCHREALTIME"
  id="$("$bin/loam" submit --tenant acme --share 0.3 --memory 64MiB --time 1m -- /usr/bin/date +%s.%N)"
  until [[ "$("$bin/loam" --json show "$id" | jq -r .state)" == finished ]]; do sleep 0.02; done
  milliseconds "$from" "$("$bin/loam" logs "$id")" >>"$starts"
done

# At rest: nobody asks anything for 20 s.
switches() { cat /proc/"$daemon"/task/*/status | awk '/^voluntary_ctxt_switches/ {n += $2} END {print n}'; }
sleep 2
rest_seconds=20
before="$(switches)"
sleep "$rest_seconds"
after="$(switches)"
memory_kib="$(awk '/^VmRSS/ {print $2}' /proc/"$daemon"/status)"

# A full device, 64 clients at once, and 100,000 tasks that wait: what submitting takes, and a page of them.
tasks=100000
"$bin/loam" submit --tenant acme --share 1 --time 1h -- /bin/sleep 3600 >/dev/null
crowd="$("$bin/bench_clients" "$LOAM_HOST" 64 "$tasks")"
pages="$root/pages"
for ((i = 0; i < 50; ++i)); do
  from="$EPOCHREALTIME"
  "$bin/loam" --quiet ps >/dev/null
  milliseconds "$from" "$EPOCHREALTIME" >>"$pages"
done

jq -n -c --argjson crowd "$crowd" --argjson page "$(percentile 0.99 "$pages")" --argjson tasks "$tasks" \
  --argjson q50 "$(percentile 0.5 "$quotes")" --argjson q99 "$(percentile 0.99 "$quotes")" \
  --argjson s50 "$(percentile 0.5 "$starts")" --argjson s90 "$(percentile 0.9 "$starts")" \
  --argjson memory "$memory_kib" --argjson wakeups "$((after - before))" --argjson seconds "$rest_seconds" '
  {figures: [
    {name: "daemon.quote_ms_p99", value: $q99, note: "loam quote as a command, 300 runs"},
    {name: "daemon.quote_ms_p50", value: $q50, note: "the same"},
    {name: "daemon.submit_to_first_instruction_ms_p50", value: $s50, note: "loam submit to the program telling the time, 40 runs"},
    {name: "daemon.submit_to_first_instruction_ms_p90", value: $s90, note: "the same"},
    {name: "daemon.rest_memory_mib", value: ($memory / 1024), note: "resident, after the runs above"},
    {name: "daemon.rest_wakeups_per_s", value: ($wakeups / $seconds), note: "voluntary context switches over \($seconds) s"},
    {name: "daemon.submissions_per_second", value: $crowd.per_second, note: "64 clients over the socket at once, each with a key, \($tasks) tasks; clients and daemon share the machine"},
    {name: "daemon.submission_ms_p50", value: $crowd.ms_p50, note: "of one of them"},
    {name: "daemon.submission_ms_p99", value: $crowd.ms_p99, note: "the same"},
    {name: "daemon.ps_ms_p99", value: $page, note: "loam ps as a command, over \($tasks) live tasks, 50 runs"}]}'
