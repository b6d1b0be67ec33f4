#!/usr/bin/env bash
# links.sh ROOT: every relative link of the documents leads to a file that is there, and every
# heading it names (#...) is a heading of that file. Exit status: 0 all do, 1 some do not.
set -euo pipefail
cd "$1"

# The anchors of a page, made from its headings as forges make them.
anchors() {
  sed -nE 's/^#+ +(.*)$/\1/p' "$1" | tr '[:upper:]' '[:lower:]' |
    sed -E 's/[^[:alnum:]_ -]//g; s/ /-/g'
}

pages="$(find . -name '*.md' -not -path './build/*' -not -path './.git/*' -not -path './node_modules/*' | sort)"
dead=0
count=0
for page in $pages; do
  # Code, in fences or between backticks, holds no links.
  links="$(awk '/^```/ { fenced = !fenced; next } !fenced { gsub(/`[^`]*`/, ""); print }' "$page" |
    grep -oE '\]\([^)]+\)' | sed -E 's/^\]\(//; s/\)$//' || true)"
  for link in $links; do
    [[ $link == http://* || $link == https://* || $link == mailto:* ]] && continue
    count=$((count + 1))
    path="${link%%#*}"
    target="$page"
    [[ -n $path ]] && target="$(dirname "$page")/$path"
    if [[ ! -e $target ]]; then
      echo "$page: the link ($link) leads nowhere"
      dead=$((dead + 1))
    elif [[ $link == *'#'* && -f $target ]] && ! anchors "$target" | grep -qxF -- "${link#*#}"; then
      echo "$page: the link ($link) names no heading of $target"
      dead=$((dead + 1))
    fi
  done
done
if [[ $count -eq 0 ]]; then
  echo "no links found: the check itself is broken"
  exit 1
fi
[[ $dead -eq 0 ]] || exit 1
echo "$count links lead somewhere"
