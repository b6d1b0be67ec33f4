#!/usr/bin/env bash
# check_packages.sh BUILD_FOLDER [LIST]: every system header that the build has read belongs to a package of
# the list (group `build`) or to one that those depend on. A machine with more installed than the
# list says would hide a missing line; a bare machine would not build.
set -euo pipefail

readonly build="$1" list="${2:-$(dirname "${BASH_SOURCE[0]}")/packages.txt}"

# Packages that own the headers read, one a line.
used_packages() {
  ninja -C "$build" -t deps | awk '$1 ~ /^\/usr\// { print $1 }' | LC_ALL=C sort -u |
    xargs -r dpkg-query -S 2>/dev/null | awk -F': ' '{ sub(/:.*/, "", $1); print $1 }' | sort -u
}

# The listed packages and, without recommendations, all that they depend on.
promised_packages() {
  dpkg-query -W -f '${Package}\t${Provides}\t${Pre-Depends}, ${Depends}\n' |
    awk -F '\t' -v wanted="$(awk '$1 == "build" { print $2 }' "$list" | paste -sd' ')" '
      function bare(name) { sub(/^ +/, "", name); sub(/[ (:].*/, "", name); return name }
      {
        depends[$1] = $3
        n = split($2, provided, ",")
        for (i = 1; i <= n; ++i) provider[bare(provided[i])] = provider[bare(provided[i])] " " $1
      }
      function visit(name) {
        if ((name in seen) || !(name in depends)) return
        seen[name] = 1
        order[++last] = name
      }
      END {
        n = split(wanted, first, " ")
        for (i = 1; i <= n; ++i) visit(first[i])
        for (at = 1; at <= last; ++at) {
          n = split(depends[order[at]], needs, /[,|]/)
          for (i = 1; i <= n; ++i) {
            need = bare(needs[i])
            visit(need)
            m = split(provider[need], by, " ")
            for (j = 1; j <= m; ++j) visit(by[j])
          }
        }
        for (at = 1; at <= last; ++at) print order[at]
      }' | sort -u
}

used="$(used_packages)"
if [[ -z $used ]]; then
  echo "check_packages: the build in $build has read no system header; build first" >&2
  exit 1
fi
missing="$(comm -23 <(echo "$used") <(promised_packages))"
if [[ -n $missing ]]; then
  echo "not in $list, yet the build reads headers of:" && echo "$missing"
  exit 1
fi
echo "$(wc -l <<<"$used") packages are read, all listed or depended on"
