#!/usr/bin/env bash
# fetch_llama.sh DIR: puts the model library that loam-engine needs into DIR with npm: the packages and
# versions of tools/llama/package-lock.json, checked against its hashes, their scripts not run. Then
# checks the headers out of the source bundle in one of them. What is there already stays.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/llama"
dir="${1:?usage: fetch_llama.sh DIR}"
readonly here dir

stop() {
  echo "$1" >&2
  exit 1
}

command -v npm >/dev/null || stop "npm is not installed"
command -v git >/dev/null || stop "git is not installed"
mkdir -p "$dir"
# Two configures at once must not write one folder.
exec 9>"$dir/.lock"
flock 9

if ! cmp -s "$here/package-lock.json" "$dir/.installed"; then
  cp "$here/package.json" "$here/package-lock.json" "$dir/"
  (cd "$dir" && timeout 300 npm ci --ignore-scripts --omit=optional --no-audit --no-fund \
    --fetch-retries=1 >npm.log 2>&1) || stop "npm cannot fetch the packages (see npm.log there)"
  rm -rf "$dir/source"
  cp "$here/package-lock.json" "$dir/.installed"
fi

if [[ ! -f $dir/source/include/llama.h ]]; then
  rm -rf "$dir/source"
  git clone --quiet --no-checkout "$dir/node_modules/node-llama-cpp/llama/gitRelease.bundle" "$dir/source" 2>/dev/null
  git -C "$dir/source" checkout --quiet HEAD -- include ggml/include LICENSE models/ggml-vocab-gpt-2.gguf
fi
