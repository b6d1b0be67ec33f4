# shellcheck shell=bash
# steps.sh: what ./dev says. Numbered steps with elapsed time, failures with a reason and a next
# step; colour only on a terminal and never under NO_COLOR. Sourced by ./dev.

steps_total=1
step_number=0
step_name=""
value=""
started_at=$SECONDS

if [[ -t 1 && -z ${NO_COLOR:-} && ${TERM:-dumb} != dumb ]]; then
  bold=$'\e[1m' red=$'\e[31m' green=$'\e[32m' plain=$'\e[0m'
else
  bold="" red="" green="" plain=""
fi

elapsed() { printf '%d:%02d' $(((SECONDS - started_at) / 60)) $(((SECONDS - started_at) % 60)); }

# step NAME: announces the next step.
step() {
  step_number=$((step_number + 1))
  step_name="$1"
  printf '%s[%d/%d] %s%s  (%s)\n' "$bold" "$step_number" "$steps_total" "$1" "$plain" "$(elapsed)"
}

done_line() { printf '%s%s%s  (%s)\n' "$green" "$1" "$plain" "$(elapsed)"; }

# fail REASON [NEXT_STEP]
fail() {
  printf '%sdev: %s%s\n' "$red" "${step_name:+$step_name: }$1" "$plain" >&2
  if [[ -n ${2:-} ]]; then printf '     next: %s\n' "$2" >&2; fi
  exit 1
}

usage_fault() {
  printf 'dev: %s\n     next: ./dev help\n' "$1" >&2
  exit 2
}

# take_value --option VALUE ...: puts VALUE into $value, or ends with a fault that names the option.
take_value() {
  [[ $# -ge 2 && -n $2 ]] || usage_fault "$1 needs a value"
  value="$2"
}

# The revision that figures are reported with; a tree without git has none.
revision() {
  local name
  name="$(git rev-parse --short=12 HEAD 2>/dev/null)" || { echo unknown && return; }
  [[ -z "$(git status --porcelain --untracked-files=no 2>/dev/null)" ]] || name="$name+changes"
  echo "$name"
}
