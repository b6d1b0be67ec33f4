# shellcheck shell=bash
# tidying.sh: layout and lint. Sourced by ./dev.

# Every source file of our own, NUL-separated.
source_files() {
  find src tests bench demo -type f \
    \( -name '*.cpp' -o -name '*.hpp' -o -name '*.c' -o -name '*.h' \) -print0
}

# Every script that is run by itself, NUL-separated; those that ./dev sources are checked with it.
shell_files() {
  grep -l -Z -m 1 -r -E '^#!.*(bash|/sh)' dev .ci tools tests
}

# Names the files that clang-format would change; fails where there are any.
check_layout() {
  local off
  off="$(source_files | xargs -0 -r -n 40 clang-format --dry-run 2>&1 |
    sed -n 's/^\([^: ]*\):[0-9]*:[0-9]*: warning: .*/      \1/p' | sort -u)"
  [[ -z $off ]] && return
  echo "$off"
  fail "the files above are laid out differently" "./dev fmt"
}

command_fmt() {
  [[ $# -eq 0 || $1 == --check ]] || usage_fault "fmt does not know '$1'"
  steps_total=2
  step_setup tidy
  step "layout"
  if (($#)); then
    check_layout
  else
    source_files | xargs -0 -r -n 40 clang-format -i
  fi
}

# The .cpp files that differ from the main branch, or from REVISION with --since, NUL-separated; all
# without git or with --all.
files_to_lint() {
  local base=""
  case "${1:-}" in
    --all) ;;
    --since) base="$2" ;;
    *) base="$(git merge-base HEAD main 2>/dev/null)" || base="" ;;
  esac
  if [[ -n $base ]]; then
    { git diff -z --name-only --diff-filter=d "$base" && git ls-files -z --others --exclude-standard; } |
      grep -z -E '^(src|tests|bench|demo)/.*\.cpp$' || true
  else
    find src tests bench demo -type f -name '*.cpp' -print0
  fi
}

# Lints the files that the release build compiles, and names those that it does not.
run_clang_tidy() {
  local log="$log_dir/clang-tidy.log" file
  local -a files=()
  while IFS= read -r -d '' file; do
    if grep -q -F "\"$root/$file\"" build/tidy/compile_commands.json; then
      files+=("$file")
    else
      echo "      not in the release build, so not linted: $file"
    fi
  done < <(files_to_lint "$@" | sort -z -u)
  echo "      ${#files[@]} file(s)"
  ((${#files[@]})) || return 0
  printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(job_count)" \
    clang-tidy -p build/tidy --quiet 2>"$log.stderr" | tee "$log" || {
    grep -v 'warnings\? generated' "$log.stderr" >&2 || true
    fail "clang-tidy found faults (above)" "log: $log"
  }
}

command_tidy() {
  case "$*" in
    "" | --all) ;;
    "--since "*) git rev-parse -q --verify "$2^{commit}" >/dev/null || usage_fault "there is no revision '$2'" ;;
    *) usage_fault "tidy does not know '$1'" ;;
  esac
  steps_total=6
  step_setup build tidy
  step "house rules"
  tools/check_house.sh || fail "the house rules are broken (above)" "the rules: CONTRIBUTING.md"
  step "layout"
  check_layout
  step "shellcheck"
  shell_files | xargs -0 shellcheck -x -a || fail "shellcheck found faults (above)"
  rm -f build/tidy/build.ninja  # files that are new are found anew
  step_configure tidy
  step "clang-tidy"
  run_clang_tidy "$@"
  done_line "tidy"
}
