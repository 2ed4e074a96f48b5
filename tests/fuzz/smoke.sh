#!/usr/bin/env bash
# smoke.sh BUILD_FOLDER [SECONDS]: every fuzzer for a short while, from files of its kind if any.
# For a real hunt run one by hand: build-fuzz/bin/engine_fuzz -jobs=8 CORPUS_FOLDER
set -euo pipefail
build=$(cd "$1" && pwd) seconds=${2:-20}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$here/../.."

declare -A seeds=(
  [array_file_fuzz]=tests/models/tiny [onnx_fuzz]=tests/models/tiny
  [host_engine_fuzz]=tests/compat/v1
)

for source in "$here"/*_fuzz.cc; do
  name=$(basename "$source" .cc)
  mkdir -p "$work/$name"
  corpus=("$work/$name")
  [[ -n "${seeds[$name]:-}" ]] && corpus+=("${seeds[$name]}")
  echo "fuzz: $name for $seconds s"
  if ! "$build/bin/$name" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 \
    -print_final_stats=1 -artifact_prefix="$build/" "${corpus[@]}" >"$work/log" 2>&1; then
    tail -n 60 "$work/log"
    echo "fuzz: $name failed; its input is in $build" >&2
    exit 1
  fi
  grep -E 'number_of_executed_units|peak_rss' "$work/log" || true
done
