#!/usr/bin/env bash
# check_house.sh [ROOT]: the rules of the house that no compiler knows. Prints FILE:LINE: RULE: what
# is wrong, one a line, and exits 1 where there is any. The rules are listed in CONTRIBUTING.md and
# implemented in check_house.awk; tests/house proves that each of them can fail.
#
# A line is let off one rule by `house-allow RULE: reason` in a comment on it or on the line above.
set -euo pipefail

tools="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
cd "${1:-$tools/..}"

# Text files of the tree, without what is built or fetched.
tree_files() {
  find . \( -name build -o -name .git -o -name .cache -o -name node_modules \) -prune -o -type f \
    \( -name '*.cpp' -o -name '*.hpp' -o -name '*.c' -o -name '*.h' -o -name '*.cl' -o -name '*.sh' \
    -o -name '*.awk' -o -name '*.md' -o -name '*.toml' -o -name '*.txt' -o -name '*.cmake' \
    -o -name '*.json' -o -name '*.scn' -o -name '*.sql' -o -name '*.js' -o -name '*.ts' \
    -o -name '*.svelte' -o -name '*.py' -o -path './dev' -o -path './.ci/run' -o -path './tools/*' \) \
    -print | sed 's|^\./||' | LC_ALL=C sort
}

mapfile -t files < <(tree_files)
if ((${#files[@]} == 0)); then
  echo "check_house: no files under $PWD" >&2
  exit 1
fi
LC_ALL=C awk -f "$tools/check_house.awk" "${files[@]}"
