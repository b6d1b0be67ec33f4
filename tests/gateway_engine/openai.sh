#!/usr/bin/env bash
# openai.sh PROGRAMS WORK: the official client's calls against the gateway over loam-engine on a generated
# model of about a million parameters. WORK keeps the installed client. Exit status 77: skipped.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
programs="$1"
work="$2"

root="$(mktemp -d "${TMPDIR:-/tmp}/loam-openai.XXXXXX")"
engine=0
end() {
  if [[ $engine -ne 0 ]]; then
    kill -TERM "$engine" 2>/dev/null || true
    wait "$engine" || true
  fi
  rm -rf "$root"
}
trap end EXIT

"$programs/loam-model" generate tiny "$root/tiny.gguf" >"$root/model.log"
"$programs/loam-engine" --model "$root/tiny.gguf" --name tiny --socket "$root/engine" --context 1024 \
  >"$root/engine.log" 2>&1 &
engine=$!
for _ in {1..300}; do
  [[ -S $root/engine ]] && break
  kill -0 "$engine" || { cat "$root/engine.log"; exit 1; }
  sleep 0.1
done
# run.sh looks for the calls and the client's version beside itself.
cp "$here/real_test.mjs" "$here/../gateway/openai/"{run.sh,package.json,package-lock.json} "$root/"
"$root/run.sh" "$programs/serve_gateway" "$work" real_test.mjs "$root/engine"
