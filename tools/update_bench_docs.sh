#!/usr/bin/env bash
# update_bench_docs.sh FIGURES.json PAGE.md [PROGRAM]: puts the table of the figures between the two
# marker lines of the page, so that no number in it is ever typed.
set -euo pipefail

readonly figures="$1" page="$2" program="${3:-build/bin/loam-bench}"
readonly begin='<!-- figures: begin (written by ./dev bench --update-docs) -->'
readonly end='<!-- figures: end -->'

for marker in "$begin" "$end"; do
  if [[ $(grep -c -x -F -- "$marker" "$page") -ne 1 ]]; then
    echo "update_bench_docs: $page must have exactly one line '$marker'" >&2
    exit 1
  fi
done

table="$(mktemp)"
new_page="$(mktemp)"
trap 'rm -f "$table" "$new_page"' EXIT
"$program" --markdown "$figures" >"$table"
awk -v begin="$begin" -v end="$end" -v table="$table" '
  $0 == end { inside = 0 }
  !inside { print }
  $0 == begin {
    inside = 1
    print ""
    while ((getline line < table) > 0) print line
    print ""
  }' "$page" >"$new_page"
cat "$new_page" >"$page"
