#!/usr/bin/env bash
# Needs a GPU. An engine that is built without the GPU, from the timing cache of a build on it, has
# the bytes of that build's; it is refused until it is verified on the GPU, and then has the bytes of
# the engine that the GPU's own build verified. Builds nothing of Kiln.
#
#   tests/cross_build_check.sh BIN_FOLDER
set -euo pipefail
bin=$(realpath "${1:?programs}")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1)

# check NAME MODEL OPTION...
check() {
  local name=$1 options=(--onnx "$2" --batches "1,8" --timing-cache "$work/$1.json" --quiet "${@:3}")
  local gpu="$work/$name.gpu" verified="$work/$name.verified" elsewhere="$work/$name.elsewhere"
  "$bin/engine-build" "${options[@]}" --target cuda --output "$work/first"
  "$bin/engine-build" "${options[@]}" --target cuda --output "$verified"
  "$bin/engine-build" "${options[@]}" --target cuda --no-verify --output "$gpu"
  CUDA_VISIBLE_DEVICES='' "$bin/engine-build" "${options[@]}" --target "sm_${capability/./}" \
    --output "$elsewhere"
  cmp "$gpu" "$elsewhere"
  if "$bin/engine-run" "$elsewhere" --batch 5 > "$work/refused" 2>&1; then
    echo "$name: an engine that nothing verified was run"
    return 1
  fi
  grep -q -- --verify-engine "$work/refused"
  "$bin/engine-build" --onnx "$2" --verify-engine "$elsewhere" --quiet
  cmp "$verified" "$elsewhere"
  "$bin/engine-run" "$elsewhere" --batch 5 > "$work/ran"
  echo "$name: passed"
}

check digits "$here/../apps/demo/digits.onnx"
check digits-half "$here/../apps/demo/digits.onnx" --fp16
check vit-half "$here/models/tiny/vit_torchscript.onnx" --fp16
check bert "$here/models/tiny/bert_torchscript.onnx"
