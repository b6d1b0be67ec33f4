#!/usr/bin/env bash
# run.sh SERVER WORK [TEST.mjs [ARGUMENT]...]: runs the official client's calls in TEST (client_test.mjs)
# against SERVER (tests/gateway/serve_main.cpp), which is given the arguments. WORK keeps the installed
# client from one run to the next. Exit status 77: skipped, and why.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
server="$1"
work="$2"
calls="${3:-client_test.mjs}"

for program in node npm; do
  if ! command -v "$program" > /dev/null; then
    echo "skipped: $program is missing (Debian: nodejs npm)"
    exit 77
  fi
done

mkdir -p "$work"
cp "$here/package.json" "$here/$calls" "$work/"
if ! cmp -s "$here/package-lock.json" "$work/package-lock.json" || [[ ! -d "$work/node_modules" ]]; then
  rm -f "$work/package-lock.json"
  cp "$here/package-lock.json" "$work/installing.json"
  mv "$work/installing.json" "$work/package-lock.json"
  if ! (cd "$work" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error); then
    rm -f "$work/package-lock.json"
    echo "skipped: npm could not install the official client, openai"
    exit 77
  fi
fi

coproc SERVING { "$server" "${@:4}"; }
read -r port <&"${SERVING[0]}"
status=0
(cd "$work" && OPENAI_BASE_URL="http://127.0.0.1:$port/v1" OPENAI_API_KEY=key-acme \
  node --test "$calls") || status=$?
eval "exec ${SERVING[1]}>&-"
wait "$SERVING_PID" || status=1
exit "$status"
