#!/usr/bin/env bash
# program_test.sh LOAM_BENCH SOURCE: loam-bench's exit statuses and files, and the page's table.
set -euo pipefail

program="$1" source="$2"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT

# status_of COMMAND...: its exit status; what it says goes to $folder/said.
status_of() {
  local status=0
  "$@" >"$folder/said" 2>&1 || status=$?
  echo "$status"
}

expect() {
  if [[ $2 != "$3" ]]; then
    printf 'FAILED %s: got %s, expected %s\n' "$1" "$2" "$3"
    cat "$folder/said"
    exit 1
  fi
}

says() { grep -q -F -- "$1" "$folder/said" || { echo "FAILED: nothing says '$1'" && cat "$folder/said" && exit 1; }; }

expect "--list" "$(status_of "$program" --list)" 0
says "base.parse_duration_ns (ns)"
expect "an unknown name" "$(status_of "$program" no_such_benchmark)" 2
says "'no_such_benchmark'"
expect "an unknown option" "$(status_of "$program" --no-such-option)" 2
expect "--help" "$(status_of "$program" --help)" 0

expect "a run" "$(status_of "$program" base --revision r1 --json "$folder/figures.json")" 0
says "base.money_times_ratio_ns"
grep -q '"revision":"r1"' "$folder/figures.json"
expect "a file in no folder" "$(status_of "$program" base --json "$folder/none/figures.json")" 2
says "cannot be written"

echo 'nonsense' >"$folder/bad.json"
expect "malformed JSON" "$(status_of "$program" --markdown "$folder/bad.json")" 2
expect "no JSON" "$(status_of "$program" --markdown "$folder/none.json")" 2

cat >"$folder/page.md" <<'PAGE'
before
<!-- figures: begin (written by ./dev bench --update-docs) -->
old
<!-- figures: end -->
after
PAGE
update() { "$source/tools/update_bench_docs.sh" "$folder/figures.json" "$folder/page.md" "$program"; }
expect "an update" "$(status_of update)" 0
cp "$folder/page.md" "$folder/once.md"
expect "a second update" "$(status_of update)" 0
cmp "$folder/page.md" "$folder/once.md"
grep -q '^| base.parse_duration_ns |' "$folder/page.md"
[[ $(head -n 1 "$folder/page.md") == before && $(tail -n 1 "$folder/page.md") == after ]]
if grep -q '^old$' "$folder/page.md"; then echo "FAILED: the old table is still there" && exit 1; fi
sed -i '/figures: end/d' "$folder/page.md"
expect "a page without its end marker" "$(status_of update)" 1
