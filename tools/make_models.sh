#!/usr/bin/env bash
# make_models.sh PROGRAMS DIR [20m|learner]: the models that benchmarks use, made here and kept in DIR: 20m and
# 124m with seeded random weights, each also at q8_0 and mixed; with `20m` that alone. With `learner` also a small one that
# is trained on the licence texts that Debian installs, with a part held back to judge it on; the one
# pass over the text took 64 s of one processor. What is there already stays; nothing of it belongs
# into the repository.
set -euo pipefail

programs="${1:?usage: make_models.sh PROGRAMS DIR [20m|learner]}"
dir="${2:?usage: make_models.sh PROGRAMS DIR [20m|learner]}"
readonly programs dir
model="$programs/loam-model"
mkdir -p "$dir"
exec 9>"$dir/.lock"
flock 9

# once FILE COMMAND...: runs the command, which writes the file named as @, unless it is there.
once() {
  local file="$dir/$1" word
  local -a command=()
  shift
  [[ -f $file ]] && return
  for word in "$@"; do command+=("${word/#@/$file.part}"); done
  "${command[@]}" >"$file.log"
  [[ ! -f $file.part.json ]] || mv "$file.part.json" "$file.json"
  mv "$file.part" "$file"
}

sizes=(20m 124m)
[[ ${3:-} != 20m ]] || sizes=(20m)
for size in "${sizes[@]}"; do
  once "$size.f16.gguf" "$model" generate "$size" @
  once "$size.q8_0.gguf" "$model" import "$dir/$size.f16.gguf" @ --precision q8_0
  once "$size.mixed.gguf" "$model" import "$dir/$size.f16.gguf" @ --precision mixed
done

[[ ${3:-} == learner ]] || exit 0

if [[ ! -f $dir/held_back.txt ]]; then
  # The same bytes in the same order everywhere; links point at texts that are listed anyway.
  find /usr/share/common-licenses -type f | LC_ALL=C sort | xargs cat >"$dir/all.txt"
  size="$(wc -c <"$dir/all.txt")"
  head -c $((size * 9 / 10)) "$dir/all.txt" >"$dir/learn.txt"
  tail -c $((size / 10)) "$dir/all.txt" >"$dir/held_back.txt"
fi
once learner.f32.gguf "$model" generate learner @
once learner.trained.gguf "$model" train "$dir/learner.f32.gguf" @ --text "$dir/learn.txt" --epochs 1
once learner.f16.gguf "$model" import "$dir/learner.trained.gguf" @ --precision f16
for precision in q8_0 q4_K_M mixed; do
  once "learner.$precision.gguf" "$model" import "$dir/learner.f16.gguf" @ \
    --precision "$precision" --text "$dir/held_back.txt"
done
