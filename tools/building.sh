# shellcheck shell=bash
# building.sh: configure, build, test and fuzz one preset. Sourced by ./dev.

# Compiled files are found again in another checkout of the same tree.
export CCACHE_BASEDIR="$root" CCACHE_NOHASHDIR=1

# As many jobs as there are cores, but no more than one for every 2 GiB: the largest files need it.
job_count() {
  if [[ -n ${LOAM_JOBS:-} ]]; then echo "$LOAM_JOBS" && return; fi
  local cores gibibytes
  cores="$(nproc)"
  gibibytes="$(awk '/^MemTotal/ { print int($2 / 1048576) }' /proc/meminfo)"
  local by_memory=$((gibibytes / 2 > 0 ? gibibytes / 2 : 1))
  echo $((cores < by_memory ? cores : by_memory))
}

require_preset() {
  case $1 in
    release | debug | asan | tsan | fuzz) ;;
    *) usage_fault "there is no preset '$1'; take release, debug, asan, tsan or fuzz" ;;
  esac
}

# step_configure PRESET: skipped by ninja's own knowledge where the build files are up to date.
step_configure() {
  local preset="$1" log="$log_dir/configure.$1.log"
  require_preset "$preset"
  step "configure ($preset)"
  mkdir -p "$log_dir"
  [[ build/$preset/build.ninja -nt CMakePresets.json ]] && return
  cmake --preset "$preset" >"$log" 2>&1 || {
    grep -A 12 'CMake Error' "$log" >&2 || tail -n 20 "$log" >&2
    fail "cmake refused the tree" "see $log; after moving the tree remove build/$preset"
  }
}

# Shortens ninja's output: on a terminal one line that is overwritten, elsewhere every 20th step;
# whatever is no progress line (warnings, errors) always.
show_progress() {
  awk -v terminal="$([[ -t 1 ]] && echo 1 || echo 0)" -v columns="${COLUMNS:-100}" '
    function clear() { if (open) printf "\r\033[K"; open = 0 }
    match($0, /^\[[0-9]+\/[0-9]+\] /) {
      split(substr($0, 2, RLENGTH - 3), at, "/")
      if (terminal) { printf "\r\033[K      %s", substr($0, 1, columns - 8); open = 1 }
      else if (at[1] % 20 == 0 || at[1] == at[2]) print "      " $0
      fflush(); next
    }
    { clear(); print; fflush() }
    END { clear() }'
}

# step_build PRESET [TARGET]
step_build() {
  local preset="$1" log="$log_dir/build.$1.log"
  step "build ($preset)"
  cmake --build --preset "$preset" --target "${2:-all}" --parallel "$(job_count)" 2>&1 | tee "$log" | show_progress ||
    fail "the build failed (the first error is above)" "whole log: $log"
}

# run_ctest PRESET [CTEST OPTIONS]: ends with ctest's own closing lines.
run_ctest() {
  local preset="$1" log="$log_dir/test.$1.log"
  shift
  ctest --preset "$preset" --parallel "$(job_count)" --no-tests=error "$@" 2>&1 | tee "$log" ||
    fail "tests failed (listed above)" "one again: ./dev test --preset $preset --only NAME; log: $log"
}

# run_fuzzers NAME SECONDS: every target of the fuzz build, or the one of that name. What is found on the
# way is kept in build/corpus, so that the next run goes on from there.
run_fuzzers() {
  local name="$1" seconds="$2" target seeds log ran=0
  while read -r target seeds; do
    [[ -z $name || $target == "$name" ]] || continue
    ran=1
    log="$log_dir/fuzz.$target.log"
    mkdir -p "build/corpus/$target"
    printf '      %s\n' "$target"
    "build/fuzz/tests/fuzz_$target" -max_total_time="$seconds" -timeout=10 \
      -artifact_prefix="build/corpus/$target." "build/corpus/$target" "$seeds" >"$log" 2>&1 || {
      tail -n 30 "$log" >&2
      fail "$target crashed; the input is build/corpus/$target.*" \
        "repeat it: build/fuzz/tests/fuzz_$target INPUT; then keep the input in $seeds"
    }
  done <build/fuzz/fuzzers.txt
  ((ran)) || fail "there is no fuzz target${name:+ named $name}" "build/fuzz/fuzzers.txt names them"
  done_line "no crash"
}
