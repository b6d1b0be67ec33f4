#!/usr/bin/env bash
# transcript.sh README BIN [--record]: types the commands of README's block marked `console` into a
# shell, with the programs in BIN and a fresh loamd, and compares what comes back with what the README
# shows. --record writes what came back into the README instead, for review.
#
# What differs from one machine and run to the next is folded on both sides before the comparison:
# numbers, device names, types and UUIDs, instants, the spaces and dashes that align columns. Words,
# their order, the number of lines and every exit status that the README shows must be the same.
# Exit status: 0 the same, 1 not, 77 there is no OpenCL device to run it with.
set -uo pipefail

readme="$(realpath "$1")"
bin="$(realpath "$2")"
record="${3:-}"
scratch="$(mktemp -d /tmp/loam-readme.XXXXXX)"

# Ends what the transcript started, by process id: loamd, and the keeper, which outlives it. They carry
# this run's own folder among their arguments.
clean_up() {
  local pid
  for pid in $(pgrep -f "$scratch"); do
    case "$(readlink "/proc/$pid/exe")" in
      "$bin"/*) kill "$pid" ;;
    esac
  done 2>/dev/null
  rm -rf "$scratch"
}
trap clean_up EXIT

block() { awk '/^```console$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$readme"; }

# The commands are typed as they stand, but for where things are: the README's /tmp/loam is this
# run's own folder, and its build/bin is the build under test.
here() { sed -e "s|/tmp/loam|$scratch|g" -e "s|\$PWD/build/bin|$bin|g"; }
there() { sed -e "s|$scratch|/tmp/loam|g" -e "s|$bin|\$PWD/build/bin|g"; }

fold() {
  sed -E \
    -e '/^loam-guard: no turn on the device/d' \
    -e 's/CL-[0-9a-f-]{36}/UUID/g' \
    -e "s|$device_type|TYPE|g; s|$device_name|NODE|g" \
    -e 's/^training on .*, /training on DEVICE, /' \
    -e 's/\b(GPU|NVD|AMD)-[0-9a-f-]{36}/UUID/g' \
    -e 's/([0-9]+h )?([0-9]+m )?[0-9]+(\.[0-9]+)?s\b/N s/g' \
    -e 's/\b(software|advisory)\b/ISOLATION/g' \
    -e 's/-?[0-9]+([.:-][0-9]+)*/N/g' \
    -e 's/[[:space:]]+/ /g; s/ $//'
}

replay() {
  local line
  {
    block | here | while IFS= read -r line; do
      [[ $line == '$ '* ]] || continue
      printf 'printf "%%s\\n" %q\n' "$line"
      printf '%s\n' "${line#'$ '}"
      # Where the README starts loamd, a person takes a second to type on; a script waits for it.
      if [[ $line == '$ loamd '* ]]; then
        # shellcheck disable=SC2016  # for the script that is written here
        printf 'for i in $(seq 300); do loam --host %q/sock health >/dev/null 2>&1 && break; sleep 0.2; done\n' \
          "$scratch"
      fi
    done
  } >"$scratch/script"
  # Into a file, not a pipe: loamd goes on and would hold a pipe open.
  (cd "$scratch" && exec bash "$scratch/script") >"$scratch/raw" 2>&1 </dev/null
  there <"$scratch/raw" | sed -e '/^loam-guard: no turn on the device/d' -e '/between repeats: the device was not idle/d'
}

export NO_COLOR=1 PATH="$bin:$PATH"
unset LOAM_HOST LOAM_TOKEN LOAM_TENANT
if [[ -z "$(block)" ]]; then
  echo "there is no block marked console in $readme"
  exit 1
fi
replay >"$scratch/got"

# The names of the device, where it has some: as shown in the README and as found here.
device_of() { sed -nE 's/^device +([^ ]+)$/\1/p' "$1" | head -n 1; }
type_of() { sed -nE 's/^type +([^ ]+)$/\1/p' "$1" | head -n 1; }
block >"$scratch/shown"
if [[ $record == --record ]]; then
  awk -v got="$scratch/got" '
    /^```console$/ { print; while ((getline line < got) > 0) print line; inside = 1; next }
    /^```$/ { inside = 0 }
    !inside' "$readme" >"$scratch/readme" && cp "$scratch/readme" "$readme"
  exit 0
fi
if grep -q '^no devices' "$scratch/got"; then
  echo "no OpenCL device on this machine: install pocl-opencl-icd"
  exit 77
fi
for side in shown got; do
  device_name="$(device_of "$scratch/$side")" device_type="$(type_of "$scratch/$side")"
  device_name="${device_name:-no device}" device_type="${device_type:-no type}"
  fold <"$scratch/$side" >"$scratch/$side.folded"
done
if ! diff -u --label README --label "this build" "$scratch/shown.folded" "$scratch/got.folded"; then
  echo "--- what this build said, unfolded:"
  cat "$scratch/got"
  echo "--- loamd's log:"
  cat "$scratch/loamd.log" 2>/dev/null
  echo "the README shows something else; where this build is right: tests/readme/transcript.sh README.md $bin --record"
  exit 1
fi
