#!/usr/bin/env bash
# infer_replay.sh PROGRAMS MODELS TRACE.csv: makes the model where it is missing, then replays.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
if [[ ! -x $1/bench_infer_replay ]]; then
  echo "infer_replay.sh: $1/bench_infer_replay is not there: the model library was not found when the build was configured" >&2
  exit 1
fi
"$here/../tools/make_models.sh" "$1" "$2" 20m >&2
exec "$1/bench_infer_replay" "$2" "$3"
