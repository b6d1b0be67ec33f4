#!/usr/bin/env bash
# A budget in the running daemon: its notices reach a webhook and a program, also one that nobody took
# before the daemon ended; at 120 % somebody approves on the command line, and tasks go on.
set -euo pipefail
# shellcheck source=tests/e2e/daemon.sh
. "$(dirname "${BASH_SOURCE[0]}")/daemon.sh"
set_up "$@"
command -v python3 >/dev/null || die "python3 is not installed: apt-get install python3"

# The webhook is this script's own: it writes each notice to $root/posted, a line each.
webhook=0 port=0
cat >"$root/listen.py" <<'PY'
import http.server, sys

class Hook(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with open(sys.argv[1] + "/posted", "ab") as posted:
            posted.write(self.headers["Loam-Notice"].encode() + b" " + self.path.encode() + b" " + body + b"\n")
        self.send_response(204)
        self.end_headers()
    def log_message(self, *words):
        pass

server = http.server.HTTPServer(("127.0.0.1", int(sys.argv[2])), Hook)
with open(sys.argv[1] + "/port", "w") as port:
    port.write(str(server.server_port) + "\n")
server.serve_forever()
PY
listens() { [[ -s $root/port ]]; }
start_webhook() { # on the same port as before, where there was one
  rm -f "$root/port"
  python3 "$root/listen.py" "$root" "$port" </dev/null >>"$root/listen.log" 2>&1 &
  webhook=$!
  wait_until "the webhook listens" listens
  port="$(<"$root/port")"
}
end_webhook() {
  [[ $webhook -ne 0 ]] || return 0
  kill -TERM "$webhook" 2>/dev/null || true
  wait "$webhook" 2>/dev/null || true
  webhook=0
}
trap 'status=$?; set +e; end_webhook; (exit $status); clean_up' EXIT

printf '#!/bin/sh\nexec cat >>%q\n' "$root/run" >"$root/tell"
chmod +x "$root/tell"
echo "notify = [\"$root/tell\"]" >>"$root/loamd.toml"
: >"$root/posted"
: >"$root/run"
start_webhook
start_daemon
make_tenant acme
# A task costs 10, however long it runs.
cat >"$root/card.toml" <<'TOML'
currency = "USD"
on_demand = "10"
granularity = "task"
TOML
loam rate publish "$root/card.toml" >/dev/null

budget() { ask budget show ci | jq -r ".$1"; }
posted() { cut -d' ' -f3- "$root/posted" | jq -r '.kind' | sort -u | paste -sd' '; }
run_with() { jq -r '.kind' "$root/run" | sort -u | paste -sd' '; }
are_posted() { [[ $(posted) == "$1" ]]; }
are_run_with() { [[ $(run_with) == "$1" ]]; }
spend() { finished "$(submit -- true)" succeeded; }

say "only listed programs and webhooks are told"
expect_refusal 6 "may not be run for notices" loam budget set ci --tenant acme --monthly 25 --tell command:/bin/sh
loam budget set ci --tenant acme --monthly 25 --tell "http://127.0.0.1:$port/budget" --tell "command:$root/tell" >/dev/null

say "80 % reminds, and a task that would pass 100 % is refused"
spend
equal "notices before 80 %" "$(posted)$(run_with)" ""
spend
wait_until "the webhook has the reminder" are_posted reminder
wait_until "the program has the reminder" are_run_with reminder
equal "the path that was asked for" "$(cut -d' ' -f2 "$root/posted" | sort -u)" /budget
equal "spent" "$(budget spent)" 20
expect_refusal 4 "budget" loam submit --tenant acme "${slice[@]}" --time 1m -- true
expect_refusal 4 "has no open request" loam budget approve ci --until 2100-01-01 --up-to 60
expect_refusal 4 "has no open request" loam budget refuse ci

say "beyond 120 % somebody is asked; nobody listens at the webhook"
end_webhook
loam budget set ci --tenant acme --monthly 16 --wait 1h --tell "http://127.0.0.1:$port/budget" --tell "command:$root/tell" >/dev/null
wait_until "the program is told of the request" are_run_with "approval_requested limited reminder"
equal "an open request" "$(budget request_open)" true
equal "posted meanwhile" "$(posted)" reminder

say "the next daemon posts what the last one could not"
stop_daemon
jq -e '[.pending[].channel] | unique | length == 1' "$data/notices.json" >/dev/null || die "what waits: $(<"$data/notices.json")"
start_webhook
start_daemon
wait_until "the webhook has the request" are_posted "approval_requested limited reminder"
equal "an open request" "$(budget request_open)" true
expect_refusal 4 "budget" loam submit --tenant acme "${slice[@]}" --time 1m -- true

say "approved, tasks go on up to the new limit, also under another daemon"
expect_exit 2 loam budget approve ci --until 2100-01-01
expect_exit 0 loam budget approve ci --until 2100-01-01 --up-to 45
wait_until "the webhook has the approval" are_posted "approval_requested approved limited reminder"
wait_until "the program has the approval" are_run_with "approval_requested approved limited reminder"
equal "an open request" "$(budget request_open)" false
equal "the limit" "$(budget limit)" 45
equal "who approved" "$(budget approved_by)" "socket:$(ask whoami | jq -r .name)"
spend
stop_daemon
start_daemon
spend
equal "spent" "$(budget spent)" 40
expect_refusal 4 "budget" loam submit --tenant acme "${slice[@]}" --time 1m -- true

say "each notice is one of the journal, and was delivered once"
told="$(query "SELECT count(*) FROM journal WHERE type = 'budget_noticed'")"
equal "posted" "$(cut -d' ' -f1 "$root/posted" | sort -u | wc -l)" "$told"
equal "notices of the program" "$(wc -l <"$root/run")" "$told"
check_books acme
