#!/usr/bin/env bash
# infer.sh PROGRAMS MODELS: makes the models where they are missing, then measures serving.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
if [[ ! -x $1/bench_infer ]]; then
  echo "infer.sh: $1/bench_infer is not there: the model library was not found when the build was configured" >&2
  exit 1
fi
"$here/../tools/make_models.sh" "$1" "$2" learner >&2
exec "$1/bench_infer" "$2"
