# shellcheck shell=bash
# daemon.sh: a loamd of a script's own, and the words in which a script says what it expects.
#
# A script sources this and calls `set_up "$@"` with the folder of the programs and, optionally, a
# folder that keeps calibrations between scripts. Everything lies in one temporary folder ($root),
# also the socket; the programs that outlive a daemon on purpose (launchers, the keeper) carry that
# folder in their command line, by which clean_up finds them and nobody else's.
#
# A script holds tasks at its will with the gate: a folder that every task may mount. `gated WORDS…`
# is a program that says it has begun and waits for `open_gate`.

wait_s=90 # of any one thing; generous, since the machine may be busy with something else
daemon=0  # process id of loamd, 0 where none runs
listen="" # what --listen is given
socket="" data="" root="" bin="" calibrations="" gate=""

say() { printf '  %s\n' "$*"; }

die() {
  trap - ERR
  printf 'FAILED: %s\n' "$*" >&2
  if [[ -s $root/err ]]; then printf -- '--- the last error stream\n%s\n' "$(tail -n 5 "$root/err")" >&2; fi
  if [[ -s $root/loamd.log ]]; then printf -- '--- loamd.log\n%s\n' "$(tail -n 15 "$root/loamd.log")" >&2; fi
  exit 1
}

# ctest takes this exit status for a test that could not be made here.
skip() {
  printf 'SKIPPED: %s\n' "$*"
  exit 77
}

loam() { "$bin/loam" "$@"; }
ask() { "$bin/loam" --json "$@"; }

# set_up BIN [CALIBRATIONS]
set_up() {
  local need
  for need in jq sqlite3; do command -v "$need" >/dev/null || die "$need is not installed: apt-get install $need"; done
  bin="$(realpath "$1")"
  calibrations="${2:-}"
  [[ -x $bin/loamd ]] || die "there is no loamd in $bin: ./dev build"
  root="$(mktemp -d "${TMPDIR:-/tmp}/loam-e2e.XXXXXX")"
  trap clean_up EXIT
  trap 'die "line $LINENO: $BASH_COMMAND"' ERR
  data="$root/data" socket="$root/loamd.sock" gate="$root/gate"
  mkdir "$gate" "$data"
  unset LOAM_TOKEN LOAM_TENANT
  export LOAM_HOST="$socket"
  write_settings
  share_calibration
}

write_settings() {
  cat >"$root/loamd.toml" <<TOML
node = "n1"
catalog = "$(realpath "$(dirname "${BASH_SOURCE[0]}")/../../share/catalog.toml")"
mounts = ["$gate"]
shared = ["$bin"]
device_locks = "$root/locks"
check_devices = "1s"
TOML
}

share_calibration() {
  if [[ -n $calibrations && -d $calibrations ]]; then
    mkdir -p "$data/calibrations"
    cp "$calibrations"/*.json "$data/calibrations/"
  fi
}

# start_daemon: loamd on $data and $socket, and waits until it answers. The process is $daemon.
start_daemon() {
  local deadline=$((SECONDS + wait_s))
  "$bin/loamd" --config "$root/loamd.toml" --data "$data" --socket "$socket" ${listen:+--listen "$listen"} \
    </dev/null >>"$root/loamd.log" 2>&1 &
  daemon=$!
  until ask health >/dev/null 2>&1; do
    kill -0 "$daemon" 2>/dev/null || die "loamd did not start"
    ((SECONDS < deadline)) || die "loamd does not answer within $wait_s s"
    sleep 0.05
  done
}

stop_daemon() {
  local status=0
  kill -TERM "$daemon"
  wait "$daemon" || status=$?
  daemon=0
  [[ $status -eq 0 ]] || die "loamd ended with $status on SIGTERM"
}

kill_daemon() {
  kill -KILL "$daemon"
  { wait "$daemon" || true; } 2>/dev/null
  daemon=0
}

# Processes of this script's loamd that outlive it: their command lines hold its data folder.
outliving() { pgrep -f -- "$1.*$root/" || true; }

clean_up() {
  local status=$? id pid
  trap - EXIT ERR
  set +e
  open_gate 2>/dev/null
  if [[ $daemon -ne 0 ]] && kill -0 "$daemon" 2>/dev/null; then
    for id in $(ask ps 2>/dev/null | jq -r '.tasks[]? | .id'); do loam stop "$id" >/dev/null 2>&1; done
    kill -TERM "$daemon"
    for _ in {1..100}; do kill -0 "$daemon" 2>/dev/null || break; sleep 0.1; done
    kill -KILL "$daemon" 2>/dev/null
  fi
  for pid in $(outliving loam-launch); do kill -TERM "$pid" 2>/dev/null; done
  for _ in {1..20}; do [[ -n $(outliving loam-launch) ]] || break; sleep 0.1; done
  for pid in $(outliving loam-launch) $(outliving loam-keeper) $(outliving loamd); do kill -KILL "$pid" 2>/dev/null; done
  while mountpoint -q "$data" 2>/dev/null; do umount -l "$data" || break; done
  if [[ $status -ne 0 && $status -ne 77 && -n ${LOAM_E2E_KEEP:-} ]]; then
    printf 'kept for a look: %s\n' "$root" >&2
  else
    rm -rf "$root"
  fi
  exit "$status"
}

# --- what a script expects ----------------------------------------------------------------------

# expect_exit CODE COMMAND…: its streams are then in $root/out and $root/err.
expect_exit() {
  local wanted="$1" status=0
  shift
  "$@" >"$root/out" 2>"$root/err" </dev/null || status=$?
  [[ $status -eq $wanted ]] || die "exit status $status instead of $wanted: $*"
}

# The last command's error stream holds each of the words.
expect_words() {
  local words
  for words in "$@"; do
    grep -qF -- "$words" "$root/err" || die "the error stream does not say: $words"
  done
}

# expect_refusal CODE WORDS COMMAND…: an error that says WORDS, and what to do next.
expect_refusal() {
  local code="$1" words="$2"
  shift 2
  expect_exit "$code" "$@"
  expect_words "error: " "$words" "next: "
}

equal() { [[ $2 == "$3" ]] || die "$1 is '$2' instead of '$3'"; }

# wait_until WHAT COMMAND…: until the command succeeds.
wait_until() {
  local what="$1" deadline=$((SECONDS + wait_s))
  shift
  until "$@"; do
    if [[ $daemon -ne 0 ]]; then kill -0 "$daemon" 2>/dev/null || die "loamd ended while waiting until $what"; fi
    ((SECONDS < deadline)) || die "not within $wait_s s: $what"
    sleep 0.05
  done
}

# --- tasks --------------------------------------------------------------------------------------

# A small slice, so that many fit.
slice=(--share 0.05 --memory 16MiB --grace 1s)
time_limit=5m

submit() { loam --quiet submit --tenant "${tenant:-acme}" "${slice[@]}" --time "$time_limit" "$@"; }
run() { loam run --tenant acme "${slice[@]}" --time "$time_limit" "$@"; }

fact() { ask show "$1" 2>/dev/null | jq -r ".$2"; }
in_state() { [[ $(fact "$1" state) == "$2" ]]; }
wait_state() { wait_until "$1 is $2" in_state "$1" "$2"; }

# finished ID OUTCOME: waits for its end and checks how it ended and that it is billed what it ran.
finished() {
  wait_state "$1" finished
  local seen
  seen="$(ask show "$1")"
  equal "outcome of $1 ($(jq -r .reason <<<"$seen"))" "$(jq -r .outcome <<<"$seen")" "$2"
  equal "billed time of $1" "$(jq -r .billed_ms <<<"$seen")" "$(jq -r .run_ms <<<"$seen")"
}

gate_mount() { printf '%s:%s' "$gate" "$gate"; }
# A shell program for `-- sh -c`: says "begun", waits for the gate, then does WORDS.
gated() { printf 'echo begun; while [ ! -e %q/open ]; do sleep 0.05; done; %s' "$gate" "$*"; }
open_gate() { : >"$gate/open"; }
close_gate() { rm -f "$gate/open"; }
submit_gated() { submit --mount "$(gate_mount)" "${@:2}" -- sh -c "$(gated "$1")"; }
has_begun() { [[ $(loam logs "$1" --stream stdout 2>/dev/null | head -n 1) == begun ]]; }
wait_begun() { wait_until "$1 has begun" has_begun "$1"; }

# What the launcher measured of the last attempt of a task, in whole milliseconds.
launcher_ms() {
  local status
  status="$(find "$data/attempts" -path "*/$1-l*" -name status.json | sort -V | tail -n 1)"
  jq '((.end_boottime_ns - .start_boottime_ns) / 1000000) | floor' "$status"
}

# ran_as_measured ID: the engine's instants are whole milliseconds, so start and end may round apart.
ran_as_measured() {
  local run launcher
  run="$(fact "$1" run_ms)" launcher="$(launcher_ms "$1")"
  ((run - launcher <= 1 && launcher - run <= 1)) || die "run time of $1 is $run ms, its launcher measured $launcher ms"
}

# --- money --------------------------------------------------------------------------------------

# A tenant with 100 in the wallet; a price that makes a second cost something that can be seen.
make_tenant() { loam --quiet tenant create "$1" --topup 100 >/dev/null; }
set_prices() { loam rate set 10 >/dev/null; }

# picos AMOUNT: exact, in millionths of a millionth.
picos() {
  local whole="${1%%.*}" part=""
  [[ $1 == *.* ]] && part="${1#*.}"
  part="${part}000000000000"
  local sign=""
  [[ $1 == -* ]] && sign="-"
  local units="$((10#${whole#-} * 1000000000000 + 10#${part:0:12}))"
  printf '%d' "$sign$units"
}

# check_books TENANT: at rest, nothing is held, the wallet and the bill are what was paid in, every
# task is billed what it ran, the journal is good, and the node keeps no slice page.
check_books() {
  local bill tenant wallet total wrong
  bill="$(ask bill "$1")" tenant="$(ask tenant show "$1")"
  if [[ $(jq '.lines | length' <<<"$bill") -gt 0 ]]; then # an empty bill proves nothing
    equal "billed_equals_run of $1" "$(jq -r .billed_equals_run <<<"$bill")" true
  fi
  equal "held of $1" "$(jq -r .held <<<"$tenant")" 0
  wallet="$(jq -r .wallet <<<"$tenant")" total="$(jq -r .total <<<"$bill")"
  equal "wallet $wallet + bill $total of $1" "$(($(picos "$wallet") + $(picos "$total")))" "$(picos 100)"
  wrong="$(query "SELECT id, run_ms, billed_ms FROM tasks t WHERE run_ms <> billed_ms AND NOT EXISTS
    (SELECT 1 FROM leases l WHERE l.task_id = t.id AND l.ended_ms IS NULL)")"
  equal "tasks not billed what they ran" "$wrong" ""
  wait_until "no slice page is left" no_page_left
  expect_exit 0 loam verify --data "$data"
}

no_page_left() { [[ -z $(find "$data/keeper/pages" -type f 2>/dev/null) ]]; }

query() { sqlite3 -readonly -cmd '.timeout 5000' "$data/journal.db" "$1"; }
